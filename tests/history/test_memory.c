// test_memory.c: each allocation in turn fails while a run is read and judged. Reading then either
// fails with RLHF_E_NOMEM or goes on without the data that it could not keep.
#include "support/scratch.h"

#include "history/judged_run.h"

#include <stdint.h>

static long left; // allocations until one fails; 0: none fails

static int fails(void) { return left > 0 && --left == 0; }

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);

void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }
char *__wrap_strdup(const char *s) { return fails() ? NULL : __real_strdup(s); }

// A run of three phases with two metrics, a distribution and a held-out text.
static void write_run(struct scratch *s) {
    struct rlhf__buf metrics = RLHF__BUF_INIT, spread = RLHF__BUF_INIT, samples = RLHF__BUF_INIT;
    for (int phase = 1; phase <= 3; phase++) {
        rlhf__buf_printf(&metrics,
                         "{\"phase\": %d, \"objective/scores\": %d, \"objective/kl\": 0.5}\n",
                         phase, phase);
        rlhf__buf_printf(&spread, "{\"phase\": %d, \"reward\": {\"m\": 1, \"n\": [[1, 4]]}}\n",
                         phase);
        rlhf__buf_printf(&samples,
                         "{\"phase\": %d, \"eval\": true, \"reward\": 1, \"prompt\": \"It\", "
                         "\"response\": \" was\", \"rewards\": {\"a\": 1, \"b\": 0}}\n",
                         phase);
    }
    scratch_text(s, "metrics.jsonl", rlhf__buf_text(&metrics));
    scratch_text(s, "spread.jsonl", rlhf__buf_text(&spread));
    scratch_text(s, "samples.jsonl", rlhf__buf_text(&samples));
    scratch_text(s, "config.json", "{\"run\": {\"phases\": 3}}");
    rlhf__buf_finish(&metrics);
    rlhf__buf_finish(&spread);
    rlhf__buf_finish(&samples);
}

// Reads and judges the run while the n-th allocation fails (0: none).
static rlhf_status read_run(const struct scratch *s, long n, size_t *curves) {
    const char *const path[] = {s->dir};
    struct rlhf__curve_range range = RLHF__CURVE_RANGE_INIT;
    struct rlhf__judged_run run = {0};
    struct rlhf__error err = {0};
    left = n;
    rlhf_status st = rlhf__judged_runs_open(path, 1, &run, &range, &err);
    if (st == RLHF_OK) st = rlhf__judged_run_read(&run, &range, &err);
    if (st == RLHF_OK) st = rlhf__judged_run_judge(&run, &err);
    *curves = run.curves.n;
    rlhf__judged_run_finish(&run);
    return st;
}

static void every_allocation_fails_once(void **state) {
    struct scratch *s = *state;
    size_t curves;
    write_run(s);
    assert_int_equal(read_run(s, 0, &curves), RLHF_OK);
    assert_int_equal(curves, 2);
    long n = 1, refused = 0;
    for (;; n++) {
        const rlhf_status st = read_run(s, n, &curves);
        if (left > 0) break; // there were fewer than n allocations
        assert_true(st == RLHF_OK || st == RLHF_E_NOMEM);
        refused += st != RLHF_OK;
    }
    left = 0;
    assert_true(n > 100 && refused > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_allocation_fails_once, scratch_setup,
                                        scratch_teardown),
    };
    json_set_alloc_funcs(__wrap_malloc, free);
    return cmocka_run_group_tests_name("history_memory", tests, NULL, NULL);
}
