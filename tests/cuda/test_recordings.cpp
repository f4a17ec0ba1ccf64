// test_recordings.cpp: recordings of the CUDA backend, on the fake runtime.
#include "fake_backend.h"

namespace {

struct sum {
    rlhf_dev to, from;
};
void two_adds(backend *b, const sum *s) {
    OK(b->c->add(b->ctx, s->to, s->from, RLHF_F32, 100));
    OK(b->c->add(b->ctx, s->to, s->from, RLHF_F32, 100));
}
int32_t once(backend *b, uint64_t key, const sum *s) {
    int32_t what = -1;
    OK(b->c->record(b->ctx, key, &what));
    if (what != RLHF_RECORD_REPLAY) two_adds(b, s);
    OK(b->c->record_end(b->ctx));
    return what;
}

void recordings(void **state) {
    backend *b = (backend *)*state;
    const sum s = {take(b, 400), take(b, 400)};
    rlhf_dev other = take(b, 400);
    std::vector<float> v = numbers(100, 1.0f), want(100);
    OK(b->c->upload(b->ctx, s.from, v.data(), 400));
    const int32_t how[6] = {RLHF_RECORD_RUN,    RLHF_RECORD_CAPTURE, RLHF_RECORD_REPLAY,
                            RLHF_RECORD_REPLAY, RLHF_RECORD_REPLAY,  RLHF_RECORD_REPLAY};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(once(b, 7, &s), how[i]);
        for (int k = 0; k < 100; k++)
            want[(size_t)k] += 2 * v[(size_t)k];
        if (i == 3) { // contents may change
            v[0] = 50.0f;
            OK(b->c->upload(b->ctx, s.from, v.data(), 400));
        }
    }
    same(b, s.to, want);
    assert_int_equal(once(b, 8, &s), RLHF_RECORD_RUN); // another key
    // If memory that existed at capture is released, the recording is dropped. Releasing later
    // memory does not drop it.
    b->c->release(b->ctx, take(b, 400));
    assert_int_equal(once(b, 7, &s), RLHF_RECORD_REPLAY);
    b->c->release(b->ctx, other);
    assert_int_equal(once(b, 7, &s), RLHF_RECORD_RUN);
    b->c->release(b->ctx, take(b, 400));
    assert_int_equal(once(b, 7, &s), RLHF_RECORD_CAPTURE);
    // If memory is released before the capture, when the calls have only run once, the recording
    // also starts over, because another model may get the same address.
    other = take(b, 400);
    assert_int_equal(once(b, 9, &s), RLHF_RECORD_RUN);
    b->c->release(b->ctx, other);
    assert_int_equal(once(b, 9, &s), RLHF_RECORD_RUN);
    assert_int_equal(once(b, 9, &s), RLHF_RECORD_CAPTURE);
    assert_int_equal(once(b, 7, &s), RLHF_RECORD_REPLAY);
    for (uint64_t key = 100; key < 300; key++) { // more than are kept
        assert_int_equal(once(b, key, &s), RLHF_RECORD_RUN);
        assert_int_equal(once(b, key, &s), RLHF_RECORD_CAPTURE);
    }
    assert_int_equal(once(b, 299, &s), RLHF_RECORD_REPLAY);
    assert_int_equal(once(b, 100, &s), RLHF_RECORD_RUN);
    b->c->release(b->ctx, s.to);
    b->c->release(b->ctx, s.from);
}

// If memory for an optional part runs out, a call continues without it, and the recording is
// unaffected. If the call cannot continue, the next recording starts over.
void recordings_without_memory(void **state) {
    backend *b = (backend *)*state;
    const sum s = {take(b, 400), take(b, 400)};
    rlhf_dev x = take(b, 600 * 4), stats = take(b, 600 * 8), dgamma = take(b, 400);
    int32_t what;
    for (uint32_t rows = 500; rows <= 550; rows += 50) { // sums of chunks of rows
        OK(b->c->record(b->ctx, rows, &what));
        if (rows == 550) assert_true(fake("fail=cudaMallocAsync:2@1x2")); // for the optional part
        OK(b->c->norm_bwd(b->ctx, x, 0, dgamma, NULL, x, RLHF_F32, x, stats, dgamma, rows, 1));
        OK(b->c->record_end(b->ctx));
    }
    once(b, 7, &s);
    assert_true(fake("fail=cudaGraphInstantiate:2@1"));
    assert_int_equal(once(b, 7, &s), RLHF_RECORD_CAPTURE); // retried
    assert_int_equal(once(b, 7, &s), RLHF_RECORD_REPLAY);
    once(b, 8, &s);
    assert_true(fake("fail=cudaGraphInstantiate:2@1x2"));
    OK(b->c->record(b->ctx, 8, &what));
    two_adds(b, &s);
    assert_int_equal(b->c->record_end(b->ctx), RLHF_E_NOMEM);
    SAYS("keeping what was recorded: out of memory");
    assert_int_equal(once(b, 8, &s), RLHF_RECORD_RUN);
    for (rlhf_dev p : {s.to, s.from, x, stats, dgamma})
        b->c->release(b->ctx, p);
}

void a_replay_is_few_calls(void **state) {
    backend *b = (backend *)*state;
    const sum s = {take(b, 400), take(b, 400)};
    once(b, 1, &s);
    once(b, 1, &s);
    const uint64_t before = calls();
    once(b, 1, &s);
    assert_int_equal(calls() - before, 1); // cudaGraphLaunch
    b->c->release(b->ctx, s.to);
    b->c->release(b->ctx, s.from);
}

void what_may_not_be_recorded(void **state) {
    backend *b = (backend *)*state;
    const sum s = {take(b, 400), take(b, 400)};
    rlhf_dev p = NULL;
    void *h;
    float x = 0;
    uint64_t t;
    int32_t what;
    rlhf_weight *w, *other;
    OK(b->c->weight_create(b->ctx, 8, 8, RLHF_F32, 0, &w));
    assert_int_equal(b->c->record(b->ctx, 0, &what), RLHF_E_INVALID);
    assert_int_equal(b->c->record_end(b->ctx), RLHF_E_INVALID);
    for (int capture = 0; capture < 2; capture++)
        for (int i = 0; i < 12; i++) {
            const uint64_t key = (uint64_t)(100 * capture + i + 1);
            if (capture) once(b, key, &s);
            OK(b->c->record(b->ctx, key, &what));
            assert_int_equal(what, capture ? RLHF_RECORD_CAPTURE : RLHF_RECORD_RUN);
            two_adds(b, &s);
            const rlhf_status st = i == 0   ? b->c->alloc(b->ctx, 4, &p)
                                   : i == 1 ? b->c->upload(b->ctx, s.to, &x, 4)
                                   : i == 2 ? b->c->download(b->ctx, &x, s.to, 4)
                                   : i == 3 ? b->c->sync(b->ctx)
                                   : i == 4 ? b->c->alloc_host(b->ctx, 4, &h)
                                   : i == 5 ? b->c->mark(b->ctx, &t)
                                   : i == 6 ? b->c->wait(b->ctx, 0)
                                   : i == 7 ? b->c->record(b->ctx, 5, &what)
                                   : i == 8 ? b->c->weight_create(b->ctx, 8, 8, RLHF_F32, 0, &other)
                                   : i == 9 ? b->c->weight_pack(b->ctx, w, s.from)
                                   : i == 10 ? (b->c->weight_destroy(b->ctx, w), RLHF_E_INVALID)
                                             : b->c->upload_async(b->ctx, s.to, &x, 4);
            if (st != RLHF_E_INVALID) fail_msg("call %d: %d", i, st);
            SAYS("between record and record_end");
            assert_int_equal(b->c->record_end(b->ctx), RLHF_E_INVALID);
            SAYS("between record and record_end");
            assert_int_equal(once(b, key, &s), RLHF_RECORD_RUN); // from the begin
        }
    OK(b->c->weight_pack(b->ctx, w, s.from)); // w is still there
    b->c->weight_destroy(b->ctx, w);
    b->c->release(b->ctx, s.to);
    b->c->release(b->ctx, s.from);
}

void guard_records_nothing(void **) {
    backend *b = make(1);
    const sum s = {take(b, 400), take(b, 400)};
    for (int i = 0; i < 3; i++)
        assert_int_equal(once(b, 1, &s), RLHF_RECORD_RUN);
    end(b); // also frees memory that was not released
}

} // namespace

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(recordings),
        TEST(recordings_without_memory),
        TEST(a_replay_is_few_calls),
        TEST(what_may_not_be_recorded),
        TEST(guard_records_nothing),
    };
    return cmocka_run_group_tests_name("cuda: recordings", tests, load, NULL);
}
