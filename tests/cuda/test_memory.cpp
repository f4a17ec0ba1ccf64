// test_memory.cpp: memory, transfers, marks and lost cards of the CUDA backend, on the fake
// runtime.
#include "fake_backend.h"
#include "machine/context.h"

namespace {

// ---- the card's hints ----

// Small cards give no hints, so the host uses its own numbers.
void hints(void **) {
    const struct {
        const char *card;
        uint32_t slots, microbatch;
    } cases[] = {{"", 0, 0},
                 {"memory=14G", 0, 0},
                 {"memory=15G", 256, 16384},
                 {"memory=24G", 256, 16384},
                 {"memory=31G", 512, 32768},
                 {"memory=80G", 512, 32768}};
    for (const auto &x : cases) {
        assert_true(fake(x.card));
        backend *b = make(0);
        if (b->c->slots_hint != x.slots || b->c->microbatch_hint != x.microbatch)
            fail_msg("%s: %u slots, %u tokens", x.card, b->c->slots_hint, b->c->microbatch_hint);
        end(b);
    }
}

// The LM head's budget does not affect any bit. By default it depends on the card's memory.
void head_budget(void **) {
    const struct {
        const char *card;
        uint64_t asked, want;
    } cases[] = {{"memory=24G", 0, 4ull << 30},
                 {"memory=39G", 0, 4ull << 30},
                 {"memory=40G", 0, 8ull << 30},
                 {"memory=80G", 1 << 30, 1 << 30}};
    for (const auto &x : cases) {
        assert_true(fake(x.card));
        backend *b = make(0, x.asked);
        const uint64_t got = ((const rlhf__cuda *)b->ctx)->workspace_bytes;
        if (got != x.want) fail_msg("%s: %llu bytes", x.card, (unsigned long long)got);
        end(b);
    }
}

// If the file has no machine code for a card, the driver compiles the kernels at the first start,
// and `devices` reports this.
void compiled_by_the_driver(void **) {
    for (int new_card = 0; new_card < 2; new_card++) {
        assert_true(fake(new_card ? "sm=120" : "sm=86"));
        const int compiled =
            described(0).find("the driver compiles the kernels") != std::string::npos;
        assert_int_equal(compiled, new_card);
    }
}

// A context's card stays current after a query of another card, even if the other card cannot be
// used.
void a_look_changes_no_card(void **) {
    assert_true(fake("devices=3,sm=90/90/75"));
    for (uint32_t gpu = 0; gpu < 2; gpu++) {
        backend *b = make(0, 0, gpu);
        rlhf_dev p = take(b, 400);
        for (uint32_t other = 0; other < 4; other++) {
            assert_int_equal(described(other).find("\"missing\"") != std::string::npos, other >= 2);
            OK(b->c->add(b->ctx, p, p, RLHF_F32, 100));
        }
        OK(b->c->sync(b->ctx));
        end(b);
    }
}

// ---- allocations ----

void blocks(void **state) {
    backend *b = (backend *)*state;
    const uint64_t before = b->c->bytes_in_use(b->ctx);
    rlhf_dev p[200];
    for (int i = 0; i < 200; i++) // in an order different from that of their addresses
        p[i * 7 % 200] = take(b, (uint64_t)(i % 5) * 100);
    assert_int_equal(b->c->bytes_in_use(b->ctx) - before, 40 * 1000);
    same(b, p[7], std::vector<float>(25, 0.0f)); // the memory is zeroed
    for (int i = 0; i < 200; i++)
        b->c->release(b->ctx, p[i * 11 % 200]);
    b->c->release(b->ctx, NULL);
    assert_int_equal(b->c->bytes_in_use(b->ctx), before);
}

void no_allocation_waits(void **state) {
    backend *b = (backend *)*state;
    rlhf_dev p = take(b, 4000);
    const uint64_t queued = pending();
    assert_true(queued > 0);
    b->c->release(b->ctx, p);
    p = take(b, 8000);
    assert_true(pending() > queued);
    b->c->release(b->ctx, p);
}

void memory_runs_out(void **state) {
    backend *b = (backend *)*state;
    rlhf_dev p, q, r;
    assert_true(fake("memory=8M"));
    p = take(b, 3 << 20);
    q = take(b, 3 << 20);
    assert_int_equal(b->c->alloc(b->ctx, 4 << 20, &r), RLHF_E_NOMEM);
    assert_null(r);
    SAYS("out of device memory: 4194304 bytes (4.0 MiB) asked for, 6.0 MiB in use here, ");
    SAYS("MiB free of 8.0");
    OK(b->c->sync(b->ctx)); // the failure has no lasting effect
    b->c->release(b->ctx, p);
    r = take(b, 4 << 20); // waits for memory whose release is pending
    b->c->release(b->ctx, q);
    b->c->release(b->ctx, r);
    assert_true(fake("fail=cudaMallocAsync:2@1")); // retried once the stream has caught up
    p = take(b, 400);
    assert_int_equal(pending(), 1);
    b->c->release(b->ctx, p);
}

void without_pools(void **) {
    assert_true(fake("pools=0,memory=8M"));
    backend *b = make(0);
    rlhf_dev p = take(b, 6 << 20), q;
    assert_int_equal(b->c->alloc(b->ctx, 4 << 20, &q), RLHF_E_NOMEM);
    b->c->release(b->ctx, p);
    q = take(b, 6 << 20);
    b->c->release(b->ctx, q);
    end(b);
}

// ---- transfers ----

void upload_reads_at_once(void **state) {
    backend *b = (backend *)*state;
    const size_t n = 5 << 18; // five pieces of the ring
    rlhf_dev p = take(b, n * 4), q = take(b, 400);
    std::vector<float> v = numbers(n, 1.0f), w = v;
    OK(b->c->upload(b->ctx, p, w.data(), n * 4));
    std::fill(w.begin(), w.end(), -1.0f);
    void *pinned;
    OK(b->c->alloc_host(b->ctx, 400, &pinned));
    memcpy(pinned, v.data(), 400);
    OK(b->c->upload(b->ctx, q, pinned, 400)); // pinned memory too
    memset(pinned, 0, 400);
    same(b, p, v);
    same(b, q, std::vector<float>(v.begin(), v.begin() + 100));
    for (int i = 0; i < 3000; i++) { // wraps around the ring
        const float x = (float)i;
        OK(b->c->upload(b->ctx, rlhf_dev_at(p, (uint64_t)i * 4), &x, 4));
        v[(size_t)i] = x;
    }
    same(b, p, v);
    b->c->release_host(b->ctx, pinned);
    b->c->release(b->ctx, p);
    b->c->release(b->ctx, q);
}

void small_uploads_do_not_wait(void **state) {
    backend *b = (backend *)*state;
    rlhf_dev p = take(b, 64);
    const float v[16] = {0};
    const uint64_t queued = pending();
    for (int i = 0; i < 10; i++)
        OK(b->c->upload(b->ctx, p, v, sizeof v));
    assert_int_equal(pending(), queued + 10);
    b->c->release(b->ctx, p);
}

void asynchronous_transfers(void **state) {
    backend *b = (backend *)*state;
    rlhf_dev p = take(b, 4000);
    float *h, local[16];
    OK(b->c->alloc_host(b->ctx, 4000, (void **)&h));
    assert_true((uintptr_t)h % 64 == 0 && h[0] == 0.0f && h[999] == 0.0f);
    h[0] = 5.0f;
    uint64_t first, second;
    OK(b->c->upload_async(b->ctx, p, h, 4000));
    OK(b->c->download_async(b->ctx, h + 500, p, 4));
    OK(b->c->mark(b->ctx, &first));
    OK(b->c->download_async(b->ctx, h + 501, p, 4));
    OK(b->c->mark(b->ctx, &second));
    assert_true(first > 0 && second > first);
    assert_true(h[500] == 0.0f);
    OK(b->c->wait(b->ctx, first));
    assert_true(h[500] == 5.0f && h[501] == 0.0f); // the later download is still pending
    OK(b->c->wait(b->ctx, second));
    assert_true(h[501] == 5.0f);
    OK(b->c->wait(b->ctx, 0));
    OK(b->c->wait(b->ctx, first)); // again
    assert_int_equal(b->c->wait(b->ctx, second + 1), RLHF_E_INVALID);
    SAYS("wait: ticket 3, mark gave 1 to 2");
    for (int i = 0; i < 200; i++)
        OK(b->c->mark(b->ctx, &second));
    OK(b->c->wait(b->ctx, 3)); // the event of this mark has been reused
    assert_int_equal(b->c->upload_async(b->ctx, p, local, 64), RLHF_E_INVALID);
    SAYS("upload_async: the 64 bytes of host memory do not lie in one buffer of alloc_host");
    assert_int_equal(b->c->download_async(b->ctx, h + 990, p, 64), RLHF_E_INVALID);
    b->c->release_host(b->ctx, h);
    b->c->release_host(b->ctx, NULL);
    b->c->release(b->ctx, p);
}

// Embeds an invalid id. The error is reported only when something waits.
void faults_at_marks(void **state) {
    backend *b = (backend *)*state;
    const int32_t ids[4] = {0, 1, 9, 2}, none[4] = {0, 0, 0, 0};
    rlhf_dev t = take(b, 256), out = take(b, 256), i = take(b, 16), z = take(b, 16);
    uint64_t before, after;
    OK(b->c->upload(b->ctx, i, ids, 16));
    OK(b->c->upload(b->ctx, z, none, 16));
    rlhf_dev wte = take(b, 4 * 16);
    OK(b->c->mark(b->ctx, &before));
    OK(b->c->gather(b->ctx, out, wte, z, 4, 4, RLHF_F32));
    OK(b->c->embed(b->ctx, out, i, z, wte, t, 1.0, 4, 4));
    OK(b->c->mark(b->ctx, &after));
    OK(b->c->wait(b->ctx, before));
    const rlhf_status st = b->c->wait(b->ctx, after);
    if (st != RLHF_E_INVALID) fail_msg("status %d", st);
    SAYS("embed");
    OK(b->c->wait(b->ctx, after)); // once
    OK(b->c->sync(b->ctx));
    for (rlhf_dev p : {t, out, i, z, wte})
        b->c->release(b->ctx, p);
}

// ---- logits ----

struct scores {
    std::vector<float> logp, kl, d_hidden, d_weight;
};
// Runs lm_head (if forward is set) and lm_head_bwd of 300 rows, with a reference. The planned
// failures are counted from the point where the weights are packed.
scores head(backend *b, int32_t dtype, const char *plan, int forward) {
    enum { ROWS = 300, D = 8, VOCAB = 200 };
    const uint64_t size = rlhf_dtype_size(dtype);
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    rlhf_lm_head a = {};
    a.size = sizeof a, a.rows = ROWS, a.d = D, a.vocab = VOCAB, a.dtype = dtype, a.dist = &dist;
    std::vector<float> v = numbers(ROWS * D, -3.0f);
    for (size_t i = 0; i < v.size(); i++)
        v[i] = (float)((i * 7919) % 97) / 97.0f - 0.5f;
    rlhf_weight *w[2];
    rlhf_dev from = take(b, ROWS * D * 4), hidden = take(b, ROWS * D * size);
    rlhf_dev out[4] = {take(b, ROWS * 4), take(b, ROWS * 4), take(b, ROWS * D * size),
                       take(b, VOCAB * D * 4)};
    rlhf_dev target = take(b, ROWS * 4), ones = take(b, ROWS * 4);
    OK(b->c->upload(b->ctx, from, v.data(), v.size() * 4));
    OK(b->c->upload(b->ctx, ones, std::vector<float>(ROWS, 1.0f).data(), ROWS * 4));
    OK(b->c->convert(b->ctx, hidden, dtype, from, RLHF_F32, ROWS * D));
    for (int i = 0; i < 2; i++) {
        OK(b->c->weight_create(b->ctx, D, VOCAB, dtype, RLHF_WEIGHT_BACKWARD, &w[i]));
        OK(b->c->weight_pack(b->ctx, w[i], rlhf_dev_at(from, (uint64_t)i * 64)));
    }
    a.hidden = a.ref_hidden = hidden, a.weight = w[0], a.ref_weight = w[1], a.target = target;
    a.logp = out[0], a.kl = out[1], a.d_hidden = out[2], a.d_weight = out[3];
    a.d_logp = a.d_kl = ones;
    int32_t what;
    assert_true(fake(plan));
    OK(b->c->record(b->ctx, 77, &what));
    if (forward) OK(b->c->lm_head(b->ctx, &a));
    OK(b->c->lm_head_bwd(b->ctx, &a));
    OK(b->c->record_end(b->ctx));
    scores s = {std::vector<float>(ROWS), std::vector<float>(ROWS),
                std::vector<float>(ROWS * D * size / 4), std::vector<float>(VOCAB * D)};
    std::vector<float> *to[4] = {&s.logp, &s.kl, &s.d_hidden, &s.d_weight};
    for (int i = 0; i < 4; i++)
        OK(b->c->download(b->ctx, to[i]->data(), out[i], to[i]->size() * 4));
    for (rlhf_dev p : {from, hidden, out[0], out[1], out[2], out[3], target, ones})
        b->c->release(b->ctx, p);
    for (rlhf_weight *p : w)
        b->c->weight_destroy(b->ctx, p);
    return s;
}

// If the logits of all rows do not fit, they are computed in blocks, with the same bits.
void a_head_without_memory(void **) {
    const char *const plans[] = {"", "fail=cudaMallocAsync:2@1x2", // the logits
                                 "fail=cudaMallocAsync:2@3x2",     // the reference's
                                 "fail=cudaMallocAsync:2@1x4"};    // and those of half the rows
    for (int32_t dtype : {RLHF_F32, RLHF_BF16}) {
        scores want;
        for (const char *plan : plans) {
            backend *b = make(0);
            const scores got = head(b, dtype, plan, 1);
            if (!*plan) want = got;
            assert_true(got.kl[5] > 0.0f && got.logp[5] < 0.0f);
            assert_memory_equal(got.logp.data(), want.logp.data(), got.logp.size() * 4);
            assert_memory_equal(got.kl.data(), want.kl.data(), got.kl.size() * 4);
            assert_memory_equal(got.d_hidden.data(), want.d_hidden.data(), got.d_hidden.size() * 4);
            assert_memory_equal(got.d_weight.data(), want.d_weight.data(), got.d_weight.size() * 4);
            end(b);
            assert_true(fake(""));
        }
    }
}

// The backward pass succeeds even if memory runs out. To save memory, it gives up the logits that
// lm_head kept, or computes logits in smaller blocks.
void a_way_back_without_memory(void **) {
    const struct {
        const char *plan;
        int forward;
    } plans[] = {{"", 1},
                 {"fail=cudaMallocAsync:2@4x2", 1}, // bf16: the derivatives' own
                 {"", 0},
                 {"fail=cudaMallocAsync:2@1x2", 0},  // f32: the logits; bf16: the derivatives
                 {"fail=cudaMallocAsync:2@2x2", 0},  // bf16: the logits
                 {"fail=cudaMallocAsync:2@2x4", 0}}; // and those of half the rows
    for (int32_t dtype : {RLHF_F32, RLHF_BF16}) {
        scores want;
        for (const auto &p : plans) {
            backend *b = make(0);
            const scores got = head(b, dtype, p.plan, p.forward);
            if (!*p.plan && p.forward) want = got;
            assert_true(want.d_weight[5] != 0.0f);
            assert_memory_equal(got.d_hidden.data(), want.d_hidden.data(), got.d_hidden.size() * 4);
            assert_memory_equal(got.d_weight.data(), want.d_weight.data(), got.d_weight.size() * 4);
            end(b);
            assert_true(fake(""));
        }
    }
}

// ---- device errors ----

void lost_cards(void **state) {
    backend *b = (backend *)*state;
    rlhf_dev p = take(b, 400);
    static const struct {
        const char *plan, *sentence;
    } losses[] = {
        {"fail=any:214@1", "the GPU's memory has an error that it cannot correct (ECC)"},
        {"fail=any:46@1", "the GPU was lost, or another process has it for itself"},
        {"fail=any:220@1", "the GPU's links have an error that they cannot correct (NVLink)"},
        {"fail=any:226@1", "a kernel broke off"},
        {"fail=any:702@1", "a kernel broke off"},
        {"fail=any:710@1", "a kernel broke off"},
        {"fail=any:717@1", "a kernel broke off"},
        {"fail=any:810@1", "the MPS server has ended this process's work"},
        {"fail=any:999@1", "the GPU was lost"},
        {"fail=any:700@2", "a kernel broke off"},
        {"fail=cudaStreamSynchronize:719@1", "waiting for the GPU: a kernel broke off"},
    };
    for (const auto &l : losses) {
        assert_true(fake(l.plan));
        assert_int_equal(b->c->sync(b->ctx), RLHF_E_DEVICE);
        SAYS(l.sentence);
        SAYS("nothing more can be done on it in this process");
        assert_int_equal(b->c->add(b->ctx, p, p, RLHF_F32, 100), RLHF_E_DEVICE); // permanent
        SAYS("add");
    }
    assert_true(fake("fail=launch:701@1"));
    assert_int_equal(b->c->add(b->ctx, p, p, RLHF_F32, 100), RLHF_E_DEVICE);
    SAYS("too many resources requested for launch (CUDA error 701)");
    OK(b->c->add(b->ctx, p, p, RLHF_F32, 100)); // only that call fails
    b->c->release(b->ctx, p);
}

// Whichever call fails first, open reports it and releases everything.
void open_fails_cleanly(void **) {
    const uint64_t before = in_use();
    for (int n = 1;; n++) {
        char plan[64];
        snprintf(plan, sizeof plan, "fail=any:2@%d", n);
        assert_true(fake(plan));
        backend b = {};
        const rlhf_status st = open_on(&b, 0, 0, 0);
        const int said = b.of.said[0] != 0;
        rlhf_test_backend_close(&b.of);
        if (st == RLHF_OK) break;
        assert_true(n < 500 && said && !b.c);
        assert_int_equal(in_use(), before);
    }
}

} // namespace

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(hints),
        TEST(head_budget),
        TEST(compiled_by_the_driver),
        TEST(a_look_changes_no_card),
        TEST(blocks),
        TEST(no_allocation_waits),
        TEST(memory_runs_out),
        TEST(without_pools),
        TEST(upload_reads_at_once),
        TEST(small_uploads_do_not_wait),
        TEST(asynchronous_transfers),
        TEST(faults_at_marks),
        TEST(a_head_without_memory),
        TEST(a_way_back_without_memory),
        TEST(lost_cards),
        TEST(open_fails_cleanly),
    };
    return cmocka_run_group_tests_name("cuda: memory", tests, load, NULL);
}
