// recompute.c: `rlhf-host recompute`: computes the phases of a finished run once more from the
// run's files, and compares the results with those of the run.
#include "recompute/recompute.h"

#include "base/file.h"
#include "base/links.h"
#include "base/signals.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "recompute/again.h"
#include "recompute/checkpoints.h"
#include "recompute/numbers.h"
#include "recompute/phase_range.h"
#include "recompute/report.h"
#include "recompute/rounding.h"
#include "recompute/run_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFERENCE "reference"

struct options {
    const char *phases, *backend, *algo;
    int64_t threads;
    int32_t json, trust_run, changed_plugins, changed_inputs;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--phases", phases, "A..B", "phases to recompute, or one: 7 [all]"),
    RLHF__FLAG_S(O, "--backend", backend, "NAME",
                 "kernels to compute with: reference, cpu, cuda or a file [reference]"),
    RLHF__FLAG_I(O, "--threads", threads, "N", 0, 1024, "CPU threads; 0: one a core [0]"),
    RLHF__FLAG_SW(O, "--json", json, "one JSON object instead of tables"),
    RLHF__FLAG_S(O, "--algo", algo, "X.so", "the run's algorithm, if it was not installed"),
    RLHF__FLAG_SW(O, "--trust-run", trust_run, "run the code that the run's config.json names"),
    RLHF__FLAG_SW(O, "--allow-changed-plugins", changed_plugins,
                  "the algorithm may differ from the one that made the run"),
    RLHF__FLAG_SW(O, "--allow-changed-inputs", changed_inputs,
                  "rows, prompts and frozen models may differ from the run's"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)
#define USAGE   "rlhf-host recompute RUN [options]"

struct job {
    const struct options *o;
    const char *run;
    struct rlhf__again again;
    char dtype[8], arithmetic[16]; // of the run's products
    int64_t first, last;
    struct rlhf__recorded *rows; // of the run
    json_t *phases, *skipped;    // for --json
    int64_t done, wrong;         // phases
    int64_t skip_from;           // the first phase of the current skipped range; 0 = none
    char why[1200];              // why they are skipped
};

// ---- phases that are skipped ----

// Report the range of skipped phases that ended before `phase`.
static void end_skipped(struct job *j, int64_t phase) {
    const long long from = j->skip_from, to = phase - 1;
    if (from == 0) return;
    j->skip_from = 0;
    if (j->o->json)
        json_array_append_new(j->skipped, json_pack("{s:I, s:I, s:s}", "from", (json_int_t)from,
                                                    "to", (json_int_t)to, "why", j->why));
    else if (from == to)
        printf("phase %lld skipped: %s\n", from, j->why);
    else
        printf("phases %lld to %lld skipped: %s\n", from, to, j->why);
}

static void skip(struct job *j, int64_t phase, const char *why) {
    if (j->skip_from && strcmp(why, j->why) != 0) end_skipped(j, phase);
    if (j->skip_from) return;
    j->skip_from = phase;
    snprintf(j->why, sizeof j->why, "%s", why);
}

// Returns why the checkpoints do not suffice for a phase, or NULL if they do.
static const char *lacks_checkpoint(const struct job *j, int64_t phase) {
    if ((phase > 1 && !rlhf__run_files_checkpoint(j->run, phase - 1)) ||
        !rlhf__run_files_checkpoint(j->run, phase))
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
        rlhf__path_put(before, "%s/checkpoints/%06lld", j->run, (long long)(phase - 1));
    else
        rlhf__path_put(before, "%s/%06d", dir, 0);
    const struct rlhf__checkpoints dirs = {before, run->checkpoint, again};
    return rlhf__checkpoints_compare(&dirs, l, c, err);
}

static rlhf_status compare_run(const struct job *j, int64_t phase, const char *dir,
                               const struct rlhf__again_told *told, struct rlhf__checks *c,
                               int *exact, int *bf16, struct rlhf__error *err) {
    char checkpoint[RLHF__PATH_CAP];
    RLHF_TRY(rlhf__run_files_arithmetic(j->run, dir, exact, bf16, err));
    const struct rlhf__check_limits l = rlhf__check_limits(*bf16, *exact);
    rlhf__path_put(checkpoint, "%s/checkpoints/%06lld", j->run, (long long)phase);
    const struct results run = {j->run, checkpoint, j->rows};
    return compare(j, phase, &run, dir, told, &l, c, err);
}

static rlhf_status show(struct job *j, const struct rlhf__recomputed *p, struct rlhf__error *err) {
    j->done++;
    j->wrong += rlhf__checks_wrong(p->checks) > 0;
    if (!j->o->json) {
        rlhf__recompute_print(p);
        return rlhf__print_flush(err);
    }
    json_t *v = rlhf__recompute_json(p);
    if (v && json_array_append_new(j->phases, v) == 0) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for the report");
}

static int is_cancelled(const struct rlhf__env *env) { return env->cancelled && *env->cancelled; }

static int every_one(void *arg, int64_t phase) {
    (void)arg;
    (void)phase;
    return 1;
}

// ---- trials ----

// A scratch directory. `*out` is NULL after an error.
static rlhf_status scratch(struct rlhf__folder **out, struct rlhf__error *err) {
    char dir[RLHF__PATH_CAP];
    const char *tmp = getenv("TMPDIR");
    *out = NULL;
    rlhf__path_put(dir, "%s/rlhf-recompute-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return rlhf__fail(err, RLHF_E_IO, "cannot make a directory in %s: %s",
                          tmp && *tmp ? tmp : "/tmp", strerror(errno));
    RLHF_TRY(rlhf__folder_open(NULL, dir, out, err));
    return *out ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %s", dir);
}

static void remove_scratch(struct rlhf__folder *f) {
    char dir[RLHF__PATH_CAP];
    if (!f) return;
    rlhf__path_put(dir, "%s", f->path);
    rlhf__folder_close(f);
    rlhf__folder_remove(NULL, dir, NULL);
}

static rlhf_status try_in(const struct job *j, int64_t phase, int seed, const char *dir,
                          const struct rlhf__folder *out, struct rlhf__checks *trial,
                          struct rlhf__error *err) {
    const struct rlhf__check_limits zero = {0};
    struct rlhf__again again = j->again;
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
        if (is_cancelled(j->again.env))
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped in phase %lld", (long long)phase);
        st = scratch(&out, err);
        if (st == RLHF_OK) st = try_in(j, phase, i, dir, out, &trial, err);
        if (st == RLHF_OK) rlhf__rounding_allow(c, &trial);
        remove_scratch(out);
        rlhf__checks_finish(&trial);
    }
    return st;
}

// ---- a phase ----

static rlhf_status in_folder(struct job *j, int64_t phase, const struct rlhf__folder *out,
                             struct rlhf__error *err) {
    struct rlhf__again_told told;
    struct rlhf__checks checks = {0};
    int exact = 0, bf16 = 0;
    const struct rlhf__again_part part = {
        .from = phase - 1, .phases = 1, .rows = j->rows, .keep = every_one};
    const rlhf_status ran = rlhf__again(&j->again, &part, out, &told, err);
    // Phase 1 is skipped after any failure, because it needs the models that the run began with,
    // which may no longer exist.
    if (ran == RLHF_E_UNSUPPORTED || (ran != RLHF_OK && ran != RLHF_E_CANCELLED && phase == 1)) {
        skip(j, phase, err->text);
        return RLHF_OK;
    }
    RLHF_TRY(ran);
    if (told.lacks_rows) {
        skip(j, phase, "rollouts.jsonl lacks the responses, which log.rollouts=true records");
        return RLHF_OK;
    }
    end_skipped(j, phase);
    rlhf_status st = compare_run(j, phase, out->path, &told, &checks, &exact, &bf16, err);
    if (st == RLHF_OK && !exact && strcmp(j->o->backend, REFERENCE) == 0)
        st = allow_rounding(j, phase, out->path, &checks, err);
    const struct rlhf__recomputed p = {
        .phase = phase, .dtype = bf16 ? "bf16" : "f32", .must_equal = exact, .checks = &checks};
    if (st == RLHF_OK) st = show(j, &p, err);
    rlhf__checks_finish(&checks);
    return st;
}

// Recompute a phase in a scratch directory, which is removed afterwards.
static rlhf_status one_phase(struct job *j, int64_t phase, struct rlhf__error *err) {
    struct rlhf__folder *out = NULL;
    int found;
    const char *why = lacks_checkpoint(j, phase);
    if (why) {
        skip(j, phase, why);
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__recorded_seek(j->rows, phase, &found, err));
    rlhf_status st = scratch(&out, err);
    if (st == RLHF_OK) st = in_folder(j, phase, out, err);
    remove_scratch(out);
    return st;
}

// ---- the command ----

static rlhf_status begin(struct job *j, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    json_t *row = NULL;
    int64_t last = 0;
    if (rlhf__is_dir(j->run)) RLHF_TRY(rlhf__links_stay(j->run, "the run directory", err));
    rlhf__path_put(path, "%s/config.json", j->run);
    if (!rlhf__is_file(path))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "recompute: %s is not a run directory (it has no config.json)", j->run);
    RLHF_TRY(rlhf__run_files_metrics(j->run, -1, &row, &last, err));
    json_decref(row);
    if (last == 0)
        return rlhf__fail(err, RLHF_E_INVALID, "recompute: %s/metrics.jsonl has no phases", j->run);
    RLHF_TRY(rlhf__phase_range("--phases", j->o->phases, last, &j->first, &j->last, err));
    rlhf__path_put(path, "%s/rollouts.jsonl", j->run);
    return rlhf__recorded_open(path, &j->rows, err);
}

static rlhf_status finish(struct job *j, struct rlhf__error *err) {
    end_skipped(j, j->last + 1);
    RLHF_TRY(rlhf__print_flush(err)); // print this before an error
    if (j->done == 0)
        return rlhf__fail(err, RLHF_E_INVALID, "recompute: no phase could be recomputed%s%s",
                          j->o->json ? ": " : "", j->o->json ? j->why : "");
    if (j->o->json)
        return rlhf__print_json_new(json_pack("{s:s, s:b, s:O, s:O}", "run", j->run, "differs",
                                              j->wrong > 0, "phases", j->phases, "skipped",
                                              j->skipped),
                                    err);
    if (j->wrong > 0)
        printf("phases that differ: %lld of %lld\n", (long long)j->wrong, (long long)j->done);
    return rlhf__print_flush(err);
}

static rlhf_status recompute(struct job *j, struct rlhf__error *err) {
    rlhf__signals_at_once(1);
    RLHF_TRY(begin(j, err));
    rlhf__signals_at_once(0); // from here on there is a scratch directory to remove
    for (int64_t phase = j->first; phase <= j->last; phase++) {
        if (is_cancelled(j->again.env))
            return rlhf__fail(err, RLHF_E_CANCELLED, "stopped before phase %lld", (long long)phase);
        RLHF_TRY(one_phase(j, phase, err));
    }
    return finish(j, err);
}

int rlhf__cmd_recompute(const struct rlhf__env *env, int argc, char **argv) {
    struct options o = {.backend = REFERENCE};
    struct rlhf__flag_list rest = {0};
    struct rlhf__error err = {0, ""};
    if (rlhf__flags_helped(flags, N_FLAGS, USAGE, argc, argv)) return 0;
    struct job j = {.o = &o, .phases = json_array(), .skipped = json_array()};
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, &rest, &err);
    if (st == RLHF_OK && rest.n != 1)
        st = rlhf__fail(&err, RLHF_E_INVALID, "recompute: give one run directory, as in " USAGE);
    if (st == RLHF_OK) {
        j.run = rest.item[0];
        j.again = (struct rlhf__again){.env = env,
                                       .command = "recompute",
                                       .run = j.run,
                                       .algo = o.algo,
                                       .backend = o.backend,
                                       .threads = o.threads,
                                       .trust_run = o.trust_run,
                                       .changed_plugins = o.changed_plugins,
                                       .changed_inputs = o.changed_inputs};
        rlhf__run_files_compute(j.run, j.dtype, j.arithmetic);
        j.again.arithmetic = j.arithmetic;
        if (j.dtype[0]) j.again.dtype = j.dtype; // auto means f32 or bf16, depending on the machine
        env->log->level = RLHF_LOG_ERROR;        // the warnings of the run are not repeated
        st = recompute(&j, &err);
    }
    rlhf__recorded_close(j.rows);
    json_decref(j.phases);
    json_decref(j.skipped);
    free(rest.item);
    if (st != RLHF_OK) return rlhf__cmd_end(env, st, &err);
    return j.wrong > 0;
}
