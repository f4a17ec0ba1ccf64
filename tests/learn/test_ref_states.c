// test_ref_states.c: the reference's hidden states for a full KL, kept on the device.
#include "learner_kit.h"

#include <stdlib.h>
#include <string.h>

// Counts transfers and bytes, through the table that all models of the fixture use.
static struct transfers {
    rlhf_status (*upload)(void *, rlhf_dev, const void *, uint64_t);
    rlhf_status (*download)(void *, void *, rlhf_dev, uint64_t);
    int up, down;
} transfers;

static rlhf_status counted_upload(void *ctx, rlhf_dev dst, const void *src, uint64_t bytes) {
    transfers.up++;
    return transfers.upload(ctx, dst, src, bytes);
}

static rlhf_status counted_download(void *ctx, void *dst, rlhf_dev src, uint64_t bytes) {
    transfers.down++;
    return transfers.download(ctx, dst, src, bytes);
}

static void count_transfers(struct fixture *f) {
    rlhf_compute *t = f->session.compute->table;
    transfers.upload = t->upload;
    transfers.download = t->download;
    t->upload = counted_upload;
    t->download = counted_download;
    transfers.up = transfers.down = 0;
}

// Runs rows 5, 2, 3, 0 as a separate minibatch. Returns its loss and gradient.
static struct result *run_part(struct fixture *f, int share, int64_t microbatch_tokens) {
    static const uint32_t pick[] = {5, 2, 3, 0};
    struct result *r = calloc(1, sizeof *r);
    struct rlhf__rows part = {0};
    assert_non_null(r);
    f->e.flags = share ? RLHF__SHARE_PROMPTS : 0;
    MUST(rlhf__rows_pick(&part, &f->e, pick, 4, &err));
    memset(&f->seen, 0, sizeof f->seen);
    f->learner.microbatch_tokens = microbatch_tokens;
    f->learner.loss_sum = 0;
    MUST(rlhf__minibatch(&f->learner, &part, 0, 0, 0, &f->stop, &err));
    r->seen = f->seen;
    r->loss = f->learner.loss_sum;
    learner_collect(r, f, f->optim);
    rlhf__rows_finish(&part);
    return r;
}

static void same_results(struct result *a, struct result *b) {
    learner_same_heads(&a->seen, &b->seen);
    assert_true(a->seen.kl[TOTAL / 2 - 1] != 0);
    assert_true(a->loss == b->loss);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->grad, b->grad, a->n * sizeof *a->grad);
    learner_result_free(a);
    learner_result_free(b);
}

// States on the device give the same numbers as states through the host, without being transferred.
// Tested with all rows and with some rows, with and without shared prompts, and in one or several
// microbatches.
static void states_stay_on_the_device(void **state) {
    struct fixture *f = *state;
    static const int32_t dtypes[] = {RLHF__DTYPE_F32, RLHF__DTYPE_BF16};
    for (int k = 0; k < 2; k++) {
        struct result *whole[2][2], *part[2][2];
        int up[2][2];
        learner_open(f, "cpu", dtypes[k], 2, 0);
        count_transfers(f);
        for (int device = 0; device < 2; device++)
            for (int share = 0; share < 2; share++) {
                const rlhf_compute *c = f->session.compute->table;
                rlhf_dev dev = NULL;
                if (device) {
                    struct rlhf__rows *e = &f->e;
                    free(e->ref_hidden);
                    e->ref_hidden = NULL;
                    free(e->ref_row);
                    uint64_t bytes = (uint64_t)(ROWS * RESPONSE) * rlhf__state_bytes(f->reference);
                    assert_int_equal(c->alloc(c->ctx, bytes, &dev), RLHF_OK);
                    MUST(rlhf__rows_refer(e, dev, &err));
                    e->flags = share ? RLHF__SHARE_PROMPTS : 0;
                    struct rlhf__pass_out out = {.dev_hidden = dev};
                    transfers.down = 0;
                    MUST(rlhf__pass(f->reference, e, &f->learner.dist, 50, &out, &err));
                    assert_int_equal(transfers.down, 0);
                }
                transfers.up = 0;
                whole[device][share] = learner_run(f, share, share ? 36 : 60, 2);
                up[device][share] = transfers.up;
                part[device][share] = run_part(f, share, 50);
                c->release(c->ctx, dev);
            }
        for (int share = 0; share < 2; share++) {
            assert_int_equal(up[0][share] - up[1][share], 2); // one per microbatch
            same_results(whole[0][share], whole[1][share]);
            same_results(part[0][share], part[1][share]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(states_stay_on_the_device)};
    return cmocka_run_group_tests_name("learn: reference states", tests, learner_setup,
                                       learner_teardown);
}
