// within_limits.c: see within_limits.h.
#include "verify/within_limits.h"

#include "base/file.h"
#include "cmd/program.h"
#include "verify/checkpoints.h"
#include "verify/numbers.h"
#include "verify/recompute_files.h"
#include "verify/recompute_report.h"
#include "verify/recompute_rounding.h"
#include "verify/scratch.h"

#include <stdio.h>
#include <string.h>

#define REFERENCE "reference"

struct job {
    const struct rlhf__replay_job *job;
    struct rlhf__replay_told *told;
    struct rlhf__faults *faults;
    struct rlhf__recorded *rows; // of the run
    int64_t left_from;           // the first phase of the current range that is left out; 0: none
    char why[1000];              // why it is left out
};

// ---- phases that are left out ----

// Report the range that ended before `phase`.
static void end_left(struct job *j, int64_t phase) {
    struct rlhf__buf *text = &j->told->left_text;
    const size_t used = text->len;
    const long long from = j->left_from, to = phase - 1;
    if (from == 0) return;
    j->left_from = 0;
    j->told->left += to - from + 1;
    if (used) rlhf__buf_puts(text, "; ");
    if (from < to)
        rlhf__buf_printf(text, "phases %lld to %lld", from, to);
    else
        rlhf__buf_printf(text, "phase %lld", from);
    rlhf__buf_printf(text, " cannot be recomputed: %s", j->why);
    if (j->job->shows && !text->bad)
        printf("%s\n", rlhf__buf_text(text) + used + (used ? strlen("; ") : 0));
}

static void leave(struct job *j, int64_t phase, const char *why) {
    if (j->left_from && strcmp(why, j->why) != 0) end_left(j, phase);
    if (j->left_from) return;
    j->left_from = phase;
    snprintf(j->why, sizeof j->why, "%s", why);
}

// Returns why the checkpoints do not suffice for a phase, or NULL if they do.
static const char *lacks_checkpoint(const struct job *j, int64_t phase) {
    if ((phase > 1 && !rlhf__run_files_checkpoint(j->job->again.run, phase - 1)) ||
        !rlhf__run_files_checkpoint(j->job->again.run, phase))
        return "checkpoints are missing: a phase needs those of its beginning and its end, which "
               "checkpoint.every=1 and checkpoint.keep=0 keep";
    return NULL;
}

// ---- one phase ----

// The results of a phase: of the run, or of a trial.
struct results {
    const char *dir;             // has metrics.jsonl
    const char *checkpoint;      // of the phase's end
    struct rlhf__recorded *rows; // of rollouts.jsonl, positioned at the phase
};

// Compare the results with those that were recomputed, in the folder `dir`.
static rlhf_status compare(const struct job *j, int64_t phase, const struct results *run,
                           const char *dir, const struct rlhf__again_told *told,
                           const struct rlhf__check_limits *l, struct rlhf__checks *c,
                           struct rlhf__error *err) {
    char path[RLHF__PATH_CAP], before[RLHF__PATH_CAP], again[RLHF__PATH_CAP];
    struct rlhf__recorded *mine = NULL;
    json_t *theirs = NULL, *row = NULL;
    int64_t last;
    int found;
    rlhf__path_put(path, "%s/rollouts.jsonl", dir);
    rlhf_status st = RLHF_OK;
    if (told->samples) st = rlhf__recorded_open(path, &mine, err);
    if (mine) st = rlhf__recorded_seek(mine, phase, &found, err);
    if (mine && st == RLHF_OK) st = rlhf__numbers_rollouts(run->rows, mine, l, c, err);
    rlhf__recorded_close(mine);
    if (st == RLHF_OK) st = rlhf__run_files_metrics(run->dir, phase, &theirs, &last, err);
    if (st == RLHF_OK) st = rlhf__run_files_metrics(dir, phase, &row, &last, err);
    if (st == RLHF_OK && !theirs)
        st = rlhf__checks_fail(c, "metrics", "the run has no row of this phase", err);
    else if (st == RLHF_OK)
        st = rlhf__numbers_metrics(theirs, row, told->samples, l, c, err);
    json_decref(theirs);
    json_decref(row);
    RLHF_TRY(st);
    rlhf__path_put(again, "%s/%06lld", dir, (long long)phase);
    if (told->reads_start)
        rlhf__path_put(before, "%s/checkpoints/%06lld", j->job->again.run, (long long)(phase - 1));
    else
        rlhf__path_put(before, "%s/%06d", dir, 0);
    const struct rlhf__checkpoints dirs = {before, run->checkpoint, again};
    return rlhf__checkpoints_compare(&dirs, l, c, err);
}

static rlhf_status compare_run(const struct job *j, int64_t phase, const char *dir,
                               const struct rlhf__again_told *told, struct rlhf__checks *c,
                               int *exact, int *bf16, struct rlhf__error *err) {
    char checkpoint[RLHF__PATH_CAP];
    RLHF_TRY(rlhf__run_files_arithmetic(j->job->again.run, dir, exact, bf16, err));
    const struct rlhf__check_limits l = rlhf__check_limits(*bf16, *exact);
    rlhf__path_put(checkpoint, "%s/checkpoints/%06lld", j->job->again.run, (long long)phase);
    const struct results run = {j->job->again.run, checkpoint, j->rows};
    return compare(j, phase, &run, dir, told, &l, c, err);
}

static int is_cancelled(const struct rlhf__env *env) { return env->cancelled && *env->cancelled; }

static int every_one(void *arg, int64_t phase) {
    (void)arg;
    (void)phase;
    return 1;
}

// ---- trials ----

static rlhf_status try_in(const struct job *j, int64_t phase, int seed, const char *dir,
                          const struct rlhf__folder *out, struct rlhf__checks *trial,
                          struct rlhf__error *err) {
    const struct rlhf__check_limits zero = {0};
    struct rlhf__again again = j->job->again;
    struct rlhf__again_told told;
    char backend[64], rows[RLHF__PATH_CAP], checkpoint[RLHF__PATH_CAP];
    const struct rlhf__again_part part = {
        .from = phase - 1, .phases = 1, .own_logp = seed % 2, .rows = j->rows, .keep = every_one};
    struct results results = {out->path, checkpoint, NULL};
    int found;
    snprintf(backend, sizeof backend, REFERENCE ":rounding=%d,rounding_scale=%d", seed,
             1 << (seed - 1) / 2);
    again.backend = backend;
    RLHF_TRY(rlhf__recorded_seek(j->rows, phase, &found, err));
    RLHF_TRY(rlhf__again(&again, &part, out, &told, err));
    rlhf__path_put(rows, "%s/rollouts.jsonl", out->path);
    rlhf__path_put(checkpoint, "%s/%06lld", out->path, (long long)phase);
    rlhf_status st = rlhf__recorded_open(rows, &results.rows, err);
    if (st == RLHF_OK) st = rlhf__recorded_seek(results.rows, phase, &found, err);
    if (st == RLHF_OK) st = compare(j, phase, &results, dir, &told, &zero, trial, err);
    rlhf__recorded_close(results.rows);
    return st;
}

// Raise the limits of failed checks to what rounding does to the phase, which was recomputed in the
// folder `dir`.
static rlhf_status allow_rounding(const struct job *j, int64_t phase, const char *dir,
                                  struct rlhf__checks *c, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    for (int i = 1; st == RLHF_OK && i <= RLHF__ROUNDING_TRIALS && rlhf__checks_wrong(c); i++) {
        struct rlhf__checks trial = {0};
        struct rlhf__folder *out = NULL;
        if (is_cancelled(j->job->again.env))
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped in phase %lld", (long long)phase);
        st = rlhf__scratch_make(&out, err);
        if (st == RLHF_OK) st = try_in(j, phase, i, dir, out, &trial, err);
        if (st == RLHF_OK) rlhf__rounding_allow(c, &trial);
        rlhf__scratch_remove(out);
        rlhf__checks_finish(&trial);
    }
    return st;
}

// ---- a phase ----

static const char *after(const char *text, const char *start) {
    const size_t n = strlen(start);
    return strncmp(text, start, n) == 0 ? text + n : NULL;
}

// Append the fault that a check found.
static rlhf_status blame(struct job *j, int64_t phase, const struct rlhf__recompute_check *k,
                         struct rlhf__error *err) {
    struct rlhf__fault f = {.phase = phase};
    const char *file = after(k->what, "element of ");
    if (!file) file = after(k->what, "update of ");
    if (file)
        snprintf(f.file, sizeof f.file, "checkpoints/%06lld/%.100s", (long long)phase, file);
    else
        snprintf(f.file, sizeof f.file, "metrics.jsonl");
    snprintf(f.where, sizeof f.where, "%s%s%.150s", k->what, k->where[0] ? ": " : "", k->where);
    if (k->has_values) {
        snprintf(f.was, sizeof f.was, "%.9g", k->run);
        snprintf(f.expected, sizeof f.expected, "%.9g within %.2g", k->again, k->limit);
    }
    return rlhf__faults_add(j->faults, &f, err);
}

static rlhf_status show(struct job *j, const struct rlhf__recomputed *p, struct rlhf__error *err) {
    j->told->recomputed++;
    j->told->equal += rlhf__checks_wrong(p->checks) == 0;
    for (size_t i = 0; i < p->checks->n; i++)
        if (p->checks->item[i].wrong) RLHF_TRY(blame(j, p->phase, &p->checks->item[i], err));
    if (j->job->shows) rlhf__recompute_print(p);
    json_t *v = rlhf__recompute_json(p);
    if (!v || json_array_append_new(j->told->compared, v) != 0)
        return RLHF__NOMEM(err, "out of memory for the receipt");
    return rlhf__print_flush(err);
}

static rlhf_status in_folder(struct job *j, int64_t phase, const struct rlhf__folder *out,
                             struct rlhf__error *err) {
    struct rlhf__again_told told;
    struct rlhf__checks checks = {0};
    int exact = 0, bf16 = 0;
    const struct rlhf__again_part part = {
        .from = phase - 1, .phases = 1, .rows = j->rows, .keep = every_one};
    const rlhf_status ran = rlhf__again(&j->job->again, &part, out, &told, err);
    // Phase 1 needs the models that the run began with, which may no longer exist. A phase whose
    // files were edited may be unreadable.
    const int may_fail =
        ran == RLHF_E_UNSUPPORTED || phase == 1 || rlhf__faults_count(j->faults, 0, phase) > 0;
    if (ran != RLHF_OK && ran != RLHF_E_CANCELLED && may_fail) {
        leave(j, phase, err->text);
        return RLHF_OK;
    }
    RLHF_TRY(ran);
    if (told.lacks_rows) {
        leave(j, phase, "rollouts.jsonl lacks the responses, which log.rollouts=true records");
        return RLHF_OK;
    }
    end_left(j, phase);
    if (!j->told->begin) RLHF_TRY(rlhf__replay_begin(j->job, out->path, j->told, err));
    rlhf_status st = compare_run(j, phase, out->path, &told, &checks, &exact, &bf16, err);
    if (st == RLHF_OK && !exact && strcmp(j->job->again.backend, REFERENCE) == 0)
        st = allow_rounding(j, phase, out->path, &checks, err);
    const struct rlhf__recomputed p = {
        .phase = phase, .dtype = bf16 ? "bf16" : "f32", .must_equal = exact, .checks = &checks};
    if (st == RLHF_OK) st = show(j, &p, err);
    rlhf__checks_finish(&checks);
    return st;
}

static rlhf_status one_phase(struct job *j, int64_t phase, struct rlhf__error *err) {
    struct rlhf__folder *out = NULL;
    int found;
    const char *why = lacks_checkpoint(j, phase);
    if (why) {
        leave(j, phase, why);
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__recorded_seek(j->rows, phase, &found, err));
    rlhf_status st = rlhf__scratch_make(&out, err);
    if (st == RLHF_OK) st = in_folder(j, phase, out, err);
    rlhf__scratch_remove(out);
    return st;
}

rlhf_status rlhf__within_limits(const struct rlhf__replay_job *job, struct rlhf__replay_told *told,
                                struct rlhf__faults *f, struct rlhf__error *err) {
    struct job j = {.job = job, .told = told, .faults = f};
    char path[RLHF__PATH_CAP];
    told->from = job->first - 1;
    told->compared = json_array();
    rlhf__path_put(path, "%s/rollouts.jsonl", job->again.run);
    rlhf_status st = rlhf__recorded_open(path, &j.rows, err);
    for (int64_t p = job->first; st == RLHF_OK && p <= job->last; p++)
        st = is_cancelled(job->again.env)
                 ? rlhf__fail(err, RLHF_E_CANCELLED, "stopped before phase %lld", (long long)p)
                 : one_phase(&j, p, err);
    rlhf__recorded_close(j.rows);
    RLHF_TRY(st);
    end_left(&j, job->last + 1);
    RLHF_TRY(rlhf__buf_ok(&told->left_text, err));
    RLHF_TRY(rlhf__print_flush(err)); // print this before an error
    if (told->recomputed > 0 || f->n > 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "verify: no phase can be recomputed%s%s",
                      job->shows ? "" : ": ", job->shows ? "" : rlhf__buf_text(&told->left_text));
}
