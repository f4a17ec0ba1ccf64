// test_time_estimate.c: the line about the time of a run, and how it is known that the machine is
// busy.
#include "support/check.h"

#include "estimate/speed.h"
#include "setup/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---- the line ----

struct a_case {
    struct rlhf__phase_seconds seconds;
    int64_t done, phases, every; // phases done, in all; data.eval_every
    int32_t rewards;             // 1: rewards score responses
    const char *says;            // the end of the line
};

static void check(const struct a_case *c) {
    struct rlhf__config config = {.data = {.eval_every = c->every}};
    struct rlhf__run r = {.config = &config,
                          .count = {.phase = c->done, .phases = c->phases},
                          .cast = {.n_rewards = (uint32_t)c->rewards},
                          .seconds = c->seconds};
    struct rlhf__log log;
    char *said = NULL;
    size_t n = 0;
    rlhf__log_init(&log);
    log.out = open_memstream(&said, &n);
    assert_non_null(log.out);
    r.report.log = &log;
    rlhf__say_time(&r);
    fclose(log.out);
    if (!strstr(said, c->says)) fail_msg("\"%s\" does not say \"%s\"", said, c->says);
    rlhf__log_finish(&log);
    free(said);
}

#define PARTS   .sampling = 2, .update = 1, .tokens = 24
#define PHASE   "3.0 s per phase (sampling 2.0 s, update 1.0 s) if all responses have 24 tokens, "
#define HELD    .held_out = 0.5
#define SHARED  .share = 0.5
#define LIMITED "; other programs or a limit leave this process 50 % of its threads' time: about "

static void the_line_adds_up(void **state) {
    (void)state;
    static const struct a_case cases[] = {
        {{PARTS}, 0, 8, 0, 1, PHASE "24 s for 8 phases\n"},
        {{PARTS}, 7, 8, 0, 1, PHASE "3.0 s for 1 phase\n"},
        // before the first phase and after the last; then also after phases 3 and 6
        {{PARTS, HELD},
         0,
         8,
         0,
         1,
         "25 s for 8 phases and 2 measurements of held-out rows (0.5 s each)\n"},
        {{PARTS, HELD},
         0,
         8,
         3,
         1,
         "26 s for 8 phases and 4 measurements of held-out rows (0.5 s each)\n"},
        {{PARTS, HELD},
         0,
         6,
         3,
         1,
         "20 s for 6 phases and 3 measurements of held-out rows (0.5 s each)\n"},
        // Phase 3 has been measured.
        {{PARTS, HELD},
         3,
         8,
         3,
         1,
         "16 s for 5 phases and 2 measurements of held-out rows (0.5 s each)\n"},
        {{PARTS, HELD},
         2,
         8,
         3,
         1,
         "20 s for 6 phases and 3 measurements of held-out rows (0.5 s each)\n"},
        // Without rewards, rows are not measured before the first phase.
        {{.update = 3, HELD},
         0,
         8,
         0,
         0,
         "(update 3.0 s), 24 s for 8 phases and 1 measurement of held-out rows (0.5 s)\n"},
        {{PARTS, SHARED}, 0, 8, 0, 1, PHASE "24 s for 8 phases" LIMITED "48 s with this load\n"},
        {{PARTS, HELD, SHARED},
         0,
         8,
         0,
         1,
         "held-out rows (0.5 s each)" LIMITED "50 s with this load\n"},
        {{.sampling = 0}, 0, 8, 0, 1, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

// ---- the load ----

enum { LARGE_ROWS = 1024, NAP_NS = 4000000 };

static rlhf_status t_alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    (void)ctx;
    *out = calloc(1, bytes);
    return *out ? RLHF_OK : RLHF_E_NOMEM;
}
static void t_release(void *ctx, rlhf_dev dev) {
    (void)ctx;
    free(dev);
}
static rlhf_status t_upload(void *ctx, rlhf_dev to, const void *from, uint64_t bytes) {
    (void)ctx;
    memcpy(to, from, bytes);
    return RLHF_OK;
}
static rlhf_status t_sync(void *ctx) {
    (void)ctx;
    return RLHF_OK;
}
static rlhf_status t_weight_create(void *ctx, int32_t k, int32_t n, int32_t dtype, uint32_t flags,
                                   rlhf_weight **out) {
    (void)ctx, (void)k, (void)n, (void)dtype, (void)flags;
    *out = NULL;
    return RLHF_OK;
}
static rlhf_status t_weight_pack(void *ctx, rlhf_weight *w, rlhf_dev src) {
    (void)ctx, (void)w, (void)src;
    return RLHF_OK;
}
static void t_weight_destroy(void *ctx, rlhf_weight *w) { (void)ctx, (void)w; }
static int large_products;

// A large product waits without using the processor, as if other programs did.
static rlhf_status t_linear(void *ctx, rlhf_dev out, int32_t dtype, int32_t accumulate, rlhf_dev x,
                            const rlhf_weight *w, rlhf_dev bias, uint32_t rows) {
    (void)ctx, (void)out, (void)dtype, (void)accumulate, (void)x, (void)w, (void)bias;
    if (rows != LARGE_ROWS) return RLHF_OK;
    large_products++;
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return RLHF_OK;
}
static rlhf_status t_attention(void *ctx, const rlhf_attn *a, const rlhf_ragged *r, rlhf_dev out,
                               rlhf_dev lse, rlhf_dev q, rlhf_dev k, rlhf_dev v) {
    (void)ctx, (void)a, (void)r, (void)out, (void)lse, (void)q, (void)k, (void)v;
    return RLHF_OK;
}
static rlhf_status t_lm_head(void *ctx, const rlhf_lm_head *a) {
    (void)ctx, (void)a;
    return RLHF_OK;
}
static rlhf_status t_add(void *ctx, rlhf_dev to, rlhf_dev x, int32_t dtype, uint64_t n) {
    (void)ctx, (void)to, (void)x, (void)dtype, (void)n;
    return RLHF_OK;
}

static const rlhf_compute sleepy = {.size = sizeof sleepy,
                                    .name = "sleepy",
                                    .device = RLHF_DEVICE_CPU,
                                    .threads = 1,
                                    .alloc = t_alloc,
                                    .release = t_release,
                                    .upload = t_upload,
                                    .sync = t_sync,
                                    .weight_create = t_weight_create,
                                    .weight_pack = t_weight_pack,
                                    .weight_destroy = t_weight_destroy,
                                    .linear = t_linear,
                                    .attention = t_attention,
                                    .lm_head = t_lm_head,
                                    .add = t_add};

static void waiting_threads_are_noticed(void **state) {
    (void)state;
    struct rlhf__speed s;
    assert_true(rlhf__speed_measure(&sleepy, RLHF_F32, 1e15, &s));
    // by processor time, the product is faster than while it waits
    assert_true(s.product > 2.0 * LARGE_ROWS * LARGE_ROWS * LARGE_ROWS / (NAP_NS * 1e-9));
    assert_true(rlhf__speed_busy(&s));
    assert_true(s.share < 0.5);
    s.share = 0.95;
    assert_false(rlhf__speed_busy(&s));
}

// The measurement takes a small part of the run's time.
static void short_runs_are_measured_briefly(void **state) {
    (void)state;
    struct rlhf__speed s;
    large_products = 0;
    assert_true(rlhf__speed_measure(&sleepy, RLHF_F32, 1e15, &s));
    assert_true(large_products >= 3);
    large_products = 0;
    assert_true(rlhf__speed_measure(&sleepy, RLHF_F32, 1e6, &s));
    assert_true(s.product > 0);
    assert_int_equal(large_products, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_line_adds_up),
                                       cmocka_unit_test(waiting_threads_are_noticed),
                                       cmocka_unit_test(short_runs_are_measured_briefly)};
    return cmocka_run_group_tests_name("run: the time estimate", tests, NULL, NULL);
}
