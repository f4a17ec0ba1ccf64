// test_csv.c: csv.so: columns grow, and a resumed run writes the same bytes as an uninterrupted
// one.
#include "sinks/fixture.h"

#include "base/decimal.h"

#include <math.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sink k;

// Reports a phase. Phase 4 has a metric that no other phase has. Every even phase has a further
// metric.
static rlhf_status phase(int64_t p) {
    const char *name[4] = {"b", "loss"};
    double value[4] = {p == 3 ? NAN : 1e-7, 0.5 * (double)p};
    uint32_t n = 2;
    if (p % 2 == 0) {
        name[n] = "eval,\"x\"";
        value[n++] = (double)p;
    }
    if (p == 4) {
        name[n] = "a";
        value[n++] = 1;
    }
    const rlhf_sink_phase in = {
        .size = sizeof in, .n_metrics = n, .phases_done = p, .name = name, .value = value};
    return k.ops->phase(k.self, &in);
}

// Writes the phases from begin()'s answer to `to`.
static void run(struct scratch *s, int64_t done, int64_t to) {
    sink_load(&k, "csv.so");
    assert_int_equal(sink_begin(&k, s->dir, done), RLHF_OK);
    for (int64_t p = k.from > 0 ? k.from : 1; p <= to; p++)
        assert_int_equal(phase(p), RLHF_OK);
    sink_end(&k);
}

static void check_csv(struct scratch *s, const char *want) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    check_ok(rlhf__file_read(scratch_path(s, "metrics.csv"), 1 << 20, &b, &err), &err);
    assert_string_equal(rlhf__buf_text(&b), want);
    rlhf__buf_finish(&b);
}

#define TWO  "phase,b,eval__x_,loss\n1,1e-07,,0.5\n2,1e-07,2,1\n"
#define FOUR "phase,a,b,eval__x_,loss\n1,,1e-07,,0.5\n2,,1e-07,2,1\n3,,nan,,1.5\n4,1,1e-07,4,2\n"

static void columns_grow(void **state) {
    struct scratch *s = *state;
    run(s, -1, 1);
    check_csv(s, "phase,b,loss\n1,1e-07,0.5\n");
    run(s, -1, 2);
    check_csv(s, TWO);
    run(s, -1, 4);
    check_csv(s, FOUR);
    run(s, 2, 2); // the column of phase 4 is removed, too
    check_csv(s, TWO);
    run(s, 2, 4);
    check_csv(s, FOUR);
}

// Whatever the file has, a resumed run writes the same bytes. No link is followed.
static void another_file_goes(void **state) {
    struct scratch *s = *state;
    scratch_text(s, "metrics.csv", "phase,b,lo");
    run(s, 1, 2);
    check_csv(s, TWO);
    scratch_text(s, "metrics.csv", "time,b\n1,2\n");
    run(s, 0, 4);
    check_csv(s, FOUR);
    scratch_text(s, "else", "kept");
    assert_int_equal(unlink(scratch_path(s, "metrics.csv")), 0);
    assert_int_equal(symlink("else", scratch_path(s, "metrics.csv")), 0);
    sink_load(&k, "csv.so");
    assert_int_equal(sink_begin(&k, s->dir, 1), RLHF_E_IO);
    assert_non_null(strstr(rlhf_test_failure(&k.host), "metrics.csv: cannot be opened: "));
    sink_end(&k);
}

static void a_phase_without_metrics(void **state) {
    struct scratch *s = *state;
    sink_load(&k, "csv.so");
    assert_int_equal(sink_begin(&k, s->dir, -1), RLHF_OK);
    const rlhf_sink_phase in = {.size = sizeof in, .phases_done = 1};
    assert_int_equal(k.ops->phase(k.self, &in), RLHF_OK);
    assert_int_equal(phase(2), RLHF_OK);
    sink_end(&k);
    check_csv(s, "phase,b,eval__x_,loss\n1,,,\n2,1e-07,2,1\n");
}

// A full disk leaves whole rows. The limit holds for this process, so another one meets it.
static void a_full_disk_leaves_whole_rows(void **state) {
    struct scratch *s = *state;
    int status;
    const pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit most = {60, 60};
        signal(SIGXFSZ, SIG_IGN);
        sink_load(&k, "csv.so");
        if (sink_begin(&k, s->dir, -1) != RLHF_OK || phase(1) != RLHF_OK || phase(3) != RLHF_OK)
            _exit(1);
        setrlimit(RLIMIT_FSIZE, &most);
        for (int64_t p = 5; p < 30; p += 2)
            if (phase(p) == RLHF_E_IO) _exit(phase(p) != RLHF_E_IO);
        _exit(2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    check_csv(s, "phase,b,loss\n1,1e-07,0.5\n3,nan,1.5\n5,1e-07,2.5\n7,1e-07,3.5\n");
}

// The numbers are those of metrics.jsonl.
static void numbers_are_the_hosts(void **state) {
    struct scratch *s = *state;
    struct rlhf__buf want = RLHF__BUF_INIT;
    rlhf_rng g = {7, 7, 0};
    char text[40];
    const char *const name = "x";
    sink_load(&k, "csv.so");
    assert_int_equal(sink_begin(&k, s->dir, -1), RLHF_OK);
    rlhf__buf_puts(&want, "phase,x\n");
    for (int64_t i = 1; i <= 20000; i++) {
        double v;
        const uint64_t bits = rlhf_rng_below(&g, UINT64_MAX);
        memcpy(&v, &bits, sizeof v);
        if (i % 4 == 1) v = ldexp(1, (int)(i / 4) % 2000 - 1000);
        if (i % 4 == 2) v = (double)(int64_t)(bits % 100000) / 1000;
        if (i % 4 == 3) v = (double)(float)(1 / (1 + (double)i));
        if (!isfinite(v)) v = -0.0;
        const rlhf_sink_phase in = {
            .size = sizeof in, .n_metrics = 1, .phases_done = i, .name = &name, .value = &v};
        assert_int_equal(k.ops->phase(k.self, &in), RLHF_OK);
        rlhf__buf_printf(&want, "%lld,%s\n", (long long)i, rlhf__format_double(v, 0, text));
    }
    sink_end(&k);
    check_csv(s, rlhf__buf_text(&want));
    rlhf__buf_finish(&want);
}

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(columns_grow),
        T(another_file_goes),
        T(a_phase_without_metrics),
        T(a_full_disk_leaves_whole_rows),
        T(numbers_are_the_hosts),
    };
    return cmocka_run_group_tests_name("test_sink_csv", tests, NULL, NULL);
}
