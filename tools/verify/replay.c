// replay.c: see replay.h.
#include "verify/replay.h"

#include "base/file.h"
#include "cmd/program.h"
#include "verify/recompute_files.h"
#include "verify/scratch.h"

#include <stdio.h>
#include <string.h>

static int has_checkpoint(const struct rlhf__replay_job *j, int64_t phase) {
    return rlhf__run_files_checkpoint(j->again.run, phase);
}

// The last checkpoint before a phase, or 0.
static int64_t checkpoint_before(const struct rlhf__replay_job *j, int64_t phase) {
    for (int64_t p = phase - 1; p > 0; p--)
        if (has_checkpoint(j, p)) return p;
    return 0;
}

static int is_wanted(void *arg, int64_t phase) {
    const struct rlhf__replay_job *j = arg;
    return rlhf__chain_file_at(j->chain, RLHF__CHAIN_CHECKPOINT, phase) != NULL;
}

static rlhf_status compute(const struct rlhf__replay_job *j, int64_t from, int64_t phases,
                           const struct rlhf__folder *out, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__again_told told;
    struct rlhf__again_part part = {.from = from,
                                    .phases = phases,
                                    .samples = 1,
                                    .keep = is_wanted,
                                    .arg = (void *)(uintptr_t)j};
    rlhf__path_put(path, "%s/rollouts.jsonl", j->again.run);
    if (j->trusted) RLHF_TRY(rlhf__recorded_open(path, &part.rows, err));
    const rlhf_status st = rlhf__again(&j->again, &part, out, &told, err);
    rlhf__recorded_close(part.rows);
    return st;
}

// ---- whether it can be recomputed here ----

static rlhf_status check_name(const char *run, const char *what, const char *was, const char *is,
                              const char *advice, struct rlhf__error *err) {
    if (strcmp(was, is) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "verify: %s was computed with %s %s, and here it is %s: %s", run, what,
                      *was ? was : "without a name", *is ? is : "without a name", advice);
}

static rlhf_status check_plugins(const char *run, const json_t *was, const json_t *is,
                                 struct rlhf__error *err) {
    static const char advice[] = "install the version of the run";
    size_t i;
    json_t *p;
    json_array_foreach(is, i, p) {
        const char *role = rlhf__json_text_in(p, "role"), *id = rlhf__json_text_in(p, "id");
        const json_t *q = NULL;
        for (size_t k = 0; k < json_array_size(was) && !q; k++) {
            const json_t *one = json_array_get(was, k);
            if (strcmp(rlhf__json_text_in(one, "role"), role) == 0 &&
                strcmp(rlhf__json_text_in(one, "id"), id) == 0)
                q = one;
        }
        char what[300], old[300];
        snprintf(what, sizeof what, "%.40s %.200s", role, id);
        snprintf(old, sizeof old, "%.200s", q ? rlhf__json_text_in(q, "version") : "not used");
        RLHF_TRY(check_name(run, what, old, rlhf__json_text_in(p, "version"), advice, err));
    }
    return RLHF_OK;
}

static rlhf_status check_inputs(const char *run, const json_t *was, const json_t *is,
                                struct rlhf__error *err) {
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)is, name, v) {
        const char *old = rlhf__json_text_in(was, name), *now = rlhf__json_text_in(is, name);
        if (*old && strcmp(old, now) == 0) continue;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "verify: %s read another %s: its sha256 was %.12s and is %.12s; --set "
                          "names where the run's file is",
                          run, name, *old ? old : "none", now);
    }
    return RLHF_OK;
}

static rlhf_status check_config(const char *run, const json_t *was, const json_t *is,
                                struct rlhf__error *err) {
    struct rlhf__faults f = {0};
    const struct rlhf__fault at = {.phase = 0};
    rlhf_status st = rlhf__faults_compare(&f, &at, was, is, err);
    if (st == RLHF_OK && f.n > 0)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "verify: the settings of %s are not those that its chain names: %s was %s "
                        "and is %s",
                        run, f.item[0].where, f.item[0].was[0] ? f.item[0].was : "not there",
                        f.item[0].expected[0] ? f.item[0].expected : "not there");
    rlhf__faults_finish(&f);
    return st;
}

// Returns a copy of begin[key]. If the scores come from the record (`trusted`), leaves out the
// rewards and the judge, because a recomputed phase does not open them.
static json_t *trimmed(const json_t *begin, int trusted, const char *key) {
    json_t *v = json_deep_copy(json_object_get(begin, key));
    if (!trusted) return v;
    json_object_del(v, "reward");
    json_object_del(v, "judge");
    return v;
}

static rlhf_status compare_begin(const struct rlhf__replay_job *j, const json_t *was,
                                 const json_t *is, struct rlhf__error *err) {
    const char *run = j->again.run;
    if (!j->limits)
        RLHF_TRY(check_name(run, "the arithmetic", rlhf__json_text_in(was, "arithmetic"),
                            rlhf__json_text_in(is, "arithmetic"),
                            "a machine or a setting that keeps to it can verify it, and --backend "
                            "reference compares within limits",
                            err));
    RLHF_TRY(
        check_plugins(run, json_object_get(was, "plugins"), json_object_get(is, "plugins"), err));
    RLHF_TRY(check_inputs(run, json_object_get(was, "inputs"), json_object_get(is, "inputs"), err));
    json_t *a = trimmed(was, j->trusted, "config"), *b = trimmed(is, j->trusted, "config");
    const rlhf_status st = check_config(run, a, b, err);
    json_decref(a);
    json_decref(b);
    return st;
}

static rlhf_status read_begin(const char *dir, struct rlhf__replay_told *told,
                              struct rlhf__error *err) {
    struct rlhf__chain_file c = {.n = 0};
    char path[RLHF__PATH_CAP];
    rlhf_status st = rlhf__chain_file_read(dir, &c, err);
    const struct rlhf__chain_line *l = rlhf__chain_file_last(&c, RLHF__CHAIN_BEGIN, INT64_MAX);
    if (st == RLHF_OK && l) told->begin = json_incref(json_object_get(l->value, "begin"));
    rlhf__chain_file_finish(&c);
    rlhf__path_put(path, "%s/manifest.json", dir);
    return st == RLHF_OK ? rlhf__json_load(path, &told->manifest, err) : st;
}

static const json_t *begin_of(const struct rlhf__replay_job *j, int64_t phase) {
    const struct rlhf__chain_line *l = rlhf__chain_file_last(j->chain, RLHF__CHAIN_BEGIN, phase);
    return l ? json_object_get(l->value, "begin") : NULL;
}

rlhf_status rlhf__replay_begin(const struct rlhf__replay_job *j, const char *dir,
                               struct rlhf__replay_told *told, struct rlhf__error *err) {
    RLHF_TRY(read_begin(dir, told, err));
    return compare_begin(j, begin_of(j, INT64_MAX), told->begin, err);
}

// The record lacks the groups that algo.dynamic_sampling replaced. So if scores or answers come
// from the record, a phase in which groups were replaced cannot be recomputed.
static rlhf_status check_rounds(const struct rlhf__replay_job *j, int64_t from,
                                struct rlhf__error *err) {
    const json_t *config = json_object_get(begin_of(j, INT64_MAX), "config");
    const json_t *algo = json_object_get(config, "algo");
    if (!j->trusted || !json_is_true(json_object_get(algo, "dynamic_sampling"))) return RLHF_OK;
    for (int64_t p = from + 1; p <= j->last; p++) {
        json_t *row = NULL;
        int64_t last;
        RLHF_TRY(rlhf__run_files_metrics(j->again.run, p, &row, &last, err));
        const double rounds = json_number_value(json_object_get(row, "sampling/fresh_rounds"));
        json_decref(row);
        if (!(rounds > 0)) continue;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "verify: phase %lld cannot be recomputed: algo.dynamic_sampling replaced "
                          "groups, and rollouts.jsonl, from which scores or answers are taken on "
                          "trust, lacks them; --phase chooses other phases",
                          (long long)p);
    }
    return RLHF_OK;
}

rlhf_status rlhf__replay_check(const struct rlhf__replay_job *j, struct rlhf__replay_told *told,
                               struct rlhf__error *err) {
    struct rlhf__folder *out = NULL;
    told->from = checkpoint_before(j, j->first);
    RLHF_TRY(check_rounds(j, told->from, err));
    rlhf_status st = rlhf__scratch_make(&out, err);
    if (st == RLHF_OK) st = compute(j, told->from, 0, out, err);
    if (st == RLHF_OK) st = rlhf__replay_begin(j, out->path, told, err);
    rlhf__scratch_remove(out);
    return st;
}

// ---- the phases ----

static rlhf_status compare(const struct rlhf__replay_job *j, const char *dir, int64_t from,
                           int64_t to, struct rlhf__replay_told *told, struct rlhf__faults *f,
                           struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__chain_file again = {.n = 0};
    struct rlhf__same s = {.run = j->again.run,
                           .again = dir,
                           .chain = j->chain,
                           .chain_again = &again,
                           .trusted = j->trusted};
    rlhf_status st = rlhf__chain_file_read(dir, &again, err);
    rlhf__path_put(path, "%s/rollouts.jsonl", j->again.run);
    if (st == RLHF_OK) st = rlhf__recorded_open(path, &s.rows, err);
    rlhf__path_put(path, "%s/rollouts.jsonl", dir);
    if (st == RLHF_OK) st = rlhf__recorded_open(path, &s.rows_again, err);
    // Before the first phase, only held-out responses were scored.
    if (st == RLHF_OK && from == 1 && !j->trusted &&
        rlhf__chain_file_at(j->chain, RLHF__CHAIN_PHASE, 0))
        st = rlhf__same_phase(&s, 0, f, err);
    for (int64_t p = from; st == RLHF_OK && p <= to; p++) {
        const size_t before = f->n;
        st = rlhf__same_phase(&s, p, f, err);
        if (st != RLHF_OK) break;
        told->recomputed++;
        told->equal += f->n == before;
        if (!j->shows) continue;
        printf("phase %lld: %s\n", (long long)p, f->n == before ? "equal to the bit" : "differs");
        for (size_t i = before; i < f->n; i++)
            rlhf__fault_print(&f->item[i]);
        st = rlhf__print_flush(err);
    }
    rlhf__recorded_close(s.rows);
    rlhf__recorded_close(s.rows_again);
    rlhf__chain_file_finish(&again);
    return st;
}

// Recompute the phases `from` + 1 to `to`, starting at the checkpoint of phase `from`.
static rlhf_status segment(const struct rlhf__replay_job *j, int64_t from, int64_t to,
                           struct rlhf__replay_told *told, struct rlhf__faults *f,
                           struct rlhf__error *err) {
    char where[600];
    struct rlhf__folder *out = NULL;
    RLHF_TRY(rlhf__scratch_make(&out, err));
    rlhf_status st = compute(j, from, to - from, out, err);
    if (st == RLHF_OK) {
        st = compare(j, out->path, from + 1, to, told, f, err);
    } else if (st == RLHF_E_INVALID && rlhf__faults_count(f, 0, from) > 0) {
        // The checkpoint was edited so that it cannot be read. Report this as a fault of the run.
        snprintf(where, sizeof where, "phases %lld to %lld cannot be recomputed: %.400s",
                 (long long)from + 1, (long long)to, err->text);
        st = rlhf__faults_say(f, from + 1, "checkpoints", where, err);
    }
    rlhf__scratch_remove(out);
    return st;
}

rlhf_status rlhf__replay_run(const struct rlhf__replay_job *j, struct rlhf__replay_told *told,
                             struct rlhf__faults *f, struct rlhf__error *err) {
    for (int64_t from = checkpoint_before(j, j->first), to; from < j->last; from = to) {
        to = from + 1;
        while (to < j->last && !has_checkpoint(j, to))
            to++;
        RLHF_TRY(segment(j, from, to, told, f, err));
    }
    return RLHF_OK;
}
