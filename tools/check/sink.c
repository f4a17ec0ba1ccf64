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
    int32_t ok;
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

// Checks an answer, and sets *from to the first phase that the sink needs.
static rlhf_status take_answer(const rlhf_sink_answer *known, int64_t *from,
                               struct rlhf__error *err) {
    *from = known->from_phase;
    if (known->from_phase < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "begin() gave an answer that the host refuses");
    return RLHF_OK;
}

static rlhf_status begin(struct rlhf__probe *t, const char *own_dir, int resumed, int64_t *from,
                         struct rlhf__error *err) {
    const char *dir = t->check->scratch;
    struct maker m = {rlhf__guards_open(t->check->log), 1};
    const uint32_t minor = t->check->plugin->abi_minor;
    rlhf_sink_answer known = {0};
    if (!m.guards) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    rlhf_sink_run run = {.resumed = resumed != 0,
                         .phases_done = resumed ? 2 : 0,
                         .phases = 10,
                         .dir = lay_text(&m, dir, "run->dir"),
                         .own_dir = lay_text(&m, own_dir, "run->own_dir"),
                         .name = lay_text(&m, rlhf__path_base(dir), "run->name"),
                         .config = lay_text(&m, "{\"run\": {\"seed\": 1}}", "run->config")};
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_sink_run, &run, minor, &tails);
    rlhf__guards_protect(m.guards);
    rlhf_sink_answer *answer = RLHF__GUARDED(rlhf_sink_answer, m.guards, minor);
    rlhf__probe_begin(t, "begin()");
    const rlhf_status st =
        m.ok && answer ? ops_of(t)->begin(t->self, &run, answer) : (rlhf_status)RLHF_E_NOMEM;
    rlhf__guard_kept(&tails, t->check->log);
    const rlhf_status told = rlhf__probe_end(t, st, err);
    if (answer)
        rlhf__guard_struct_end(RLHF__STRUCT_rlhf_sink_answer, answer, &known, minor, t->check->log);
    rlhf__guards_close(m.guards);
    return told == RLHF_OK ? take_answer(&known, from, err) : told;
}

// The texts and numbers of a phase.
struct laid {
    const char *name[METRICS], *id, *sentence;
    rlhf_str prompt[SAMPLES], response[SAMPLES];
    const rlhf_spread *spread[2];
};

static const rlhf_spread *lay_spread(struct maker *m, const char *name, int counted,
                                     uint32_t minor) {
    static const double values[] = {-1, 0.5, 3};
    static const int64_t counts[] = {2, 1, 4};
    rlhf_spread s = {.n = 3,
                     .numbers = 7,
                     .mean = 0.5,
                     .name = lay_text(m, name, "spread->name"),
                     .value = lay(m, values, sizeof values, "spread->value"),
                     .count = counted ? lay(m, counts, sizeof counts, "spread->count") : NULL};
    RLHF__PASS(rlhf_spread, &s, minor);
    return lay(m, &s, sizeof s, "phase->spread");
}

static void lay_texts(struct maker *m, struct laid *out, uint32_t minor) {
    static const char *const names[METRICS] = {"loss/policy", "objective/scores",
                                               "rewards/x/caf\xc3\xa9"};
    for (int i = 0; i < METRICS; i++)
        out->name[i] = lay_text(m, names[i], "phase->name");
    for (int i = 0; i < SAMPLES; i++) {
        out->prompt[i] =
            (rlhf_str){lay(m, "a \"question\"\n", 13, "the text of phase->prompt"), 13};
        out->response[i] =
            (rlhf_str){lay(m, "\xff\x00 ", 3, "the text of phase->response"), i ? 0 : 3};
    }
    out->id = lay_text(m, "collapsed", "phase->warning_id");
    out->sentence = lay_text(m, "the policy \"collapsed\"", "phase->warning");
    out->spread[0] = lay_spread(m, "length", 1, minor);
    out->spread[1] = lay_spread(m, "kl", 0, minor);
}

static rlhf_status phase(struct rlhf__probe *t, int64_t number, int empty,
                         struct rlhf__error *err) {
    static const double values[METRICS] = {0.25, NAN, -1e300};
    static const double scores[SAMPLES] = {1, -2.5}, logps[SAMPLES] = {-7.5, NAN};
    static const uint8_t held_out[SAMPLES] = {0, 1};
    struct maker m = {rlhf__guards_open(t->check->log), 1};
    struct laid laid;
    if (!m.guards) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    lay_texts(&m, &laid, t->check->plugin->abi_minor);
    const uint32_t n = empty ? 0 : METRICS, k = empty ? 0 : SAMPLES, some = !empty;
    rlhf_sink_phase p = {
        .flags = empty ? 0 : RLHF_SINK_PHASE_BEST,
        .n_metrics = n,
        .n_samples = k,
        .n_spreads = 2 * some,
        .n_warnings = some,
        .phases_done = number,
        .elapsed = 1.5 * (double)number,
        .name = lay(&m, laid.name, n * sizeof *laid.name, "phase->name"),
        .value = lay(&m, values, n * sizeof *values, "phase->value"),
        .prompt = lay(&m, laid.prompt, k * sizeof *laid.prompt, "phase->prompt"),
        .response = lay(&m, laid.response, k * sizeof *laid.response, "phase->response"),
        .score = lay(&m, scores, k * sizeof *scores, "phase->score"),
        .ref_logp = lay(&m, logps, k * sizeof *logps, "phase->ref_logp"),
        .held_out = lay(&m, held_out, k * sizeof *held_out, "phase->held_out"),
        .spread = lay(&m, laid.spread, 2 * some * sizeof *laid.spread, "phase->spread"),
        .warning_id = lay(&m, &laid.id, some * sizeof laid.id, "phase->warning_id"),
        .warning = lay(&m, &laid.sentence, some * sizeof laid.sentence, "phase->warning"),
        .checkpoint = empty ? NULL : lay_text(&m, "checkpoints/000003", "phase->checkpoint")};
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_sink_phase, &p, t->check->plugin->abi_minor, &tails);
    rlhf__guards_protect(m.guards);
    rlhf__probe_begin(t, "phase()");
    const rlhf_status st = m.ok ? ops_of(t)->phase(t->self, &p) : (rlhf_status)RLHF_E_NOMEM;
    rlhf__guard_kept(&tails, t->check->log);
    const rlhf_status told = rlhf__probe_end(t, st, err);
    rlhf__guards_close(m.guards);
    return told;
}

static rlhf_status end(struct rlhf__probe *t, int32_t how, const char *why,
                       struct rlhf__error *err) {
    struct maker m = {rlhf__guards_open(t->check->log), 1};
    const int failed = how == RLHF_RUN_FAILED;
    if (!m.guards) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    const char *const id = lay_text(&m, "flat", "end->finding_id");
    const char *const sentence = lay_text(&m, "the reward is flat", "end->finding");
    rlhf_sink_end e = {.how = how,
                       .phases_done = 3,
                       .why = lay_text(&m, why, "end->why"),
                       .last_checkpoint =
                           failed ? NULL
                                  : lay_text(&m, "checkpoints/000003", "end->last_checkpoint"),
                       .verdict = lay_text(&m, failed ? "" : "Reward rose", "end->verdict"),
                       .verdict_kind = failed ? RLHF_RUN_VERDICT_NONE : RLHF_RUN_VERDICT_GOOD,
                       .n_findings = !failed,
                       .finding_id = lay(&m, &id, sizeof id, "end->finding_id"),
                       .finding = lay(&m, &sentence, sizeof sentence, "end->finding")};
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_sink_end, &e, t->check->plugin->abi_minor, &tails);
    rlhf_status told = RLHF_OK;
    rlhf__guards_protect(m.guards);
    if (ops_of(t)->end && m.ok) {
        rlhf__probe_begin(t, "end()");
        const rlhf_status st = ops_of(t)->end(t->self, &e);
        rlhf__guard_kept(&tails, t->check->log);
        told = rlhf__probe_end(t, st, err);
    }
    rlhf__guards_close(m.guards);
    return told;
}

// Runs the sink as the host does: after a failure, only end() is called.
static rlhf_status run_in(struct rlhf__probe *t, const char *own_dir, int resumed, int32_t how,
                          struct rlhf__error *err) {
    struct rlhf__error late;
    int64_t from = 0;
    rlhf_status st = begin(t, own_dir, resumed, &from, err);
    for (int64_t i = 0; st == RLHF_OK && i <= (resumed ? 5 : 3); i++)
        if (i >= from) st = phase(t, i, i == 2, err);
    const rlhf_status ended = end(t, how, how == RLHF_RUN_DONE ? "" : "the user stopped it", &late);
    if (st != RLHF_OK || ended == RLHF_OK) return st;
    *err = late;
    return ended;
}

// Runs the phases with a new directory as run->own_dir, and removes it afterwards.
static rlhf_status run(struct rlhf__probe *t, int resumed, int32_t how, struct rlhf__error *err) {
    char dir[RLHF__PATH_CAP];
    struct rlhf__error none;
    rlhf__path_put(dir, "%s/own/XXXXXX", t->check->scratch);
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
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK &&
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
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK) {
        const int64_t before = rlhf__probe_allocs(&t);
        rlhf__probe_fail_alloc(&t, step + 1);
        run(&t, 0, RLHF_RUN_DONE, &err);
        more = rlhf__probe_allocs(&t) - before > step;
    }
    rlhf__probe_finish(&t);
    return more;
}

const struct rlhf__check_case rlhf__sink_cases[] = {
    {"run", RLHF__CHECK_SINK, 1, 0, try_run},
    {"run-memory", RLHF__CHECK_MEMORY, 0, 0, try_run_memory},
    {NULL, 0, 0, 0, NULL},
};
