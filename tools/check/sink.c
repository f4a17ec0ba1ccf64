// sink.c: tests a sink, in guarded memory, with runs of a few phases that end in all possible ways.
#include "check/cases.h"

#include "base/file.h"
#include "base/folder.h"
#include "check/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS = 3, SAMPLES = 2 };

static const rlhf_sink_ops *ops_of(const struct rlhf__probe *t) {
    return &t->check->plugin->ops.sink;
}

// A sink's arguments are in guarded memory, which the sink must not write.
struct maker {
    struct rlhf__guards *guards;
    int32_t ok, reserved;
};

static void *lay(struct maker *m, const void *from, size_t n, const char *what) {
    void *at = rlhf__guard_take(m->guards, n, RLHF__GUARD_END, RLHF__CHECK_BORROWED, what);
    if (!at) m->ok = 0;
    if (at && n) memcpy(at, from, n);
    return at;
}

static const char *lay_text(struct maker *m, const char *text, const char *what) {
    return lay(m, text, strlen(text) + 1, what);
}

static rlhf_status begin(struct rlhf__probe *t, const char *dir, int resumed,
                         struct rlhf__error *err) {
    struct maker m = {rlhf__guards_new(t->check->log), 1, 0};
    if (!m.guards) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    const rlhf_sink_run run = {.size = sizeof run,
                               .resumed = resumed != 0,
                               .phase = resumed ? 2 : 0,
                               .phases = 10,
                               .dir = lay_text(&m, dir, "run->dir"),
                               .name = lay_text(&m, rlhf__path_base(dir), "run->name"),
                               .config = lay_text(&m, "{\"run\": {\"seed\": 1}}", "run->config")};
    rlhf__guards_close(m.guards);
    rlhf__probe_begin(t, "begin()");
    const rlhf_status st = m.ok ? ops_of(t)->begin(t->self, &run) : (rlhf_status)RLHF_E_NOMEM;
    const rlhf_status told = rlhf__probe_end(t, st, err);
    rlhf__guards_free(m.guards);
    return told;
}

static rlhf_status phase(struct rlhf__probe *t, int64_t number, int empty,
                         struct rlhf__error *err) {
    static const char *const names[METRICS] = {"loss/policy", "objective/scores",
                                               "rewards/x/caf\xc3\xa9"};
    static const double values[METRICS] = {0.25, NAN, -1e300};
    static const float scores[SAMPLES] = {1, -2.5f};
    struct maker m = {rlhf__guards_new(t->check->log), 1, 0};
    if (!m.guards) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    const char *name[METRICS];
    rlhf_str prompt[SAMPLES], response[SAMPLES];
    for (int i = 0; i < METRICS; i++)
        name[i] = lay_text(&m, names[i], "phase->name");
    for (int i = 0; i < SAMPLES; i++) {
        prompt[i] = (rlhf_str){lay(&m, "a \"question\"\n", 13, "the text of phase->prompt"), 13};
        response[i] = (rlhf_str){lay(&m, "\xff\x00 ", 3, "the text of phase->response"), i ? 0 : 3};
    }
    const uint32_t n = empty ? 0 : METRICS, k = empty ? 0 : SAMPLES;
    const rlhf_sink_phase p = {.size = sizeof p,
                               .n_metrics = n,
                               .n_samples = k,
                               .phase = number,
                               .steps = 4 * number,
                               .elapsed = 1.5 * (double)number,
                               .name = lay(&m, name, n * sizeof *name, "phase->name"),
                               .value = lay(&m, values, n * sizeof *values, "phase->value"),
                               .prompt = lay(&m, prompt, k * sizeof *prompt, "phase->prompt"),
                               .response =
                                   lay(&m, response, k * sizeof *response, "phase->response"),
                               .score = lay(&m, scores, k * sizeof *scores, "phase->score")};
    rlhf__guards_close(m.guards);
    rlhf__probe_begin(t, "phase()");
    const rlhf_status st = m.ok ? ops_of(t)->phase(t->self, &p) : (rlhf_status)RLHF_E_NOMEM;
    const rlhf_status told = rlhf__probe_end(t, st, err);
    rlhf__guards_free(m.guards);
    return told;
}

static rlhf_status end(struct rlhf__probe *t, int32_t how, const char *why,
                       struct rlhf__error *err) {
    if (!ops_of(t)->end) return RLHF_OK;
    rlhf__probe_begin(t, "end()");
    return rlhf__probe_end(t, ops_of(t)->end(t->self, how, why), err);
}

// Runs the sink as the host does: after a failure, only end() is called.
static rlhf_status run_in(struct rlhf__probe *t, const char *dir, int resumed, int32_t how,
                          struct rlhf__error *err) {
    struct rlhf__error late;
    rlhf_status st = begin(t, dir, resumed, err);
    for (int64_t i = 1; st == RLHF_OK && i <= 3; i++)
        st = phase(t, (resumed ? 2 : 0) + i, i == 2, err);
    const rlhf_status ended = end(t, how, how == RLHF_RUN_DONE ? "" : "the user stopped it", &late);
    if (st != RLHF_OK || ended == RLHF_OK) return st;
    *err = late;
    return ended;
}

// Runs the phases with a new temporary directory as run->dir, and removes it afterwards.
static rlhf_status run(struct rlhf__probe *t, int resumed, int32_t how, struct rlhf__error *err) {
    const char *temporary = getenv("TMPDIR");
    char dir[RLHF__PATH_CAP];
    struct rlhf__error none;
    rlhf__path_put(dir, "%s/rlhf-check-XXXXXX",
                   temporary && *temporary == '/' ? temporary : "/tmp");
    if (!mkdtemp(dir)) return rlhf__fail(err, RLHF_E_IO, "cannot make the directory %s", dir);
    const rlhf_status st = run_in(t, dir, resumed, how, err);
    rlhf__folder_remove(NULL, dir, &none);
    return st;
}

static int try_run(struct rlhf__check *c, int32_t step) {
    static const struct {
        int32_t resumed, how;
        const char *what;
    } forms[] = {{0, RLHF_RUN_DONE, "a run that is done"},
                 {1, RLHF_RUN_STOPPED, "a run that is resumed, and stopped"},
                 {0, RLHF_RUN_FAILED, "a run that fails"}};
    struct rlhf__probe t;
    struct rlhf__error err;
    if (step >= (int32_t)(sizeof forms / sizeof *forms)) return 0;
    rlhf__child_log_doing(c->log, "%s", forms[step].what);
    if (rlhf__probe_create(c, NULL, 0, &t, &err) == RLHF_OK &&
        run(&t, forms[step].resumed, forms[step].how, &err) < 0)
        rlhf__child_log_fact(c->log, "%s: it fails, and the run would go on without it: %s",
                             forms[step].what, err.text);
    rlhf__probe_finish(&t);
    return 1;
}

// Let allocation `step` of a run fail. The sink may report the failure. It must not crash or leak.
static int try_run_memory(struct rlhf__check *c, int32_t step) {
    struct rlhf__probe t = {.check = c};
    struct rlhf__error err;
    int more = 0;
    if (step >= 200) return 0;
    rlhf__child_log_doing(c->log, "a run with no memory for allocation %d", step + 1);
    if (rlhf__probe_create(c, NULL, 0, &t, &err) == RLHF_OK) {
        const int64_t before = rlhf__probe_allocs(&t);
        rlhf__probe_fail_alloc(&t, step + 1);
        run(&t, 0, RLHF_RUN_DONE, &err);
        more = rlhf__probe_allocs(&t) - before > step;
    }
    rlhf__probe_finish(&t);
    return more;
}

const struct rlhf__check_case rlhf__sink_cases[] = {
    {"run", RLHF__CHECK_SINK, 1, 0, 0, try_run},
    {"run-memory", RLHF__CHECK_MEMORY, 0, 0, 0, try_run_memory},
    {NULL, 0, 0, 0, 0, NULL},
};
