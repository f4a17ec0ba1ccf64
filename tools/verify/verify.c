// verify.c: `rlhf-host verify`: checks a run against its hash chain, recomputes phases, to the bit
// or with another backend within limits, and writes a receipt.
#include "verify/verify.h"

#include "base/file.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "verify/phase_range.h"
#include "verify/receipt.h"
#include "verify/receipt_page.h"
#include "verify/record.h"
#include "verify/within_limits.h"
#include "weights/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rlhf/plugin.h>

struct options {
    const char *phase, *out, *receipt, *backend, *algo;
    struct rlhf__flag_list set;
    int64_t threads;
    int32_t all, json, trust_run;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_SW(O, "--all", all, "recompute all phases"),
    RLHF__FLAG_S(O, "--phase", phase, "A..B", "recompute these phases, or one: 7"),
    RLHF__FLAG_S(O, "--out", out, "FILE.json", "write a receipt, and the page FILE.html"),
    RLHF__FLAG_S(O, "--receipt", receipt, "FILE",
                 "check this receipt (.json or .html), and with "
                 "RUN that it belongs to the run"),
    RLHF__FLAG_S(O, "--backend", backend, "NAME",
                 "cpu: equal to the bit; reference, cuda or a file: from the recorded responses, "
                 "within limits [cpu]"),
    RLHF__FLAG_I(O, "--threads", threads, "N", 0, 1024, "CPU threads; 0: one a core [0]"),
    RLHF__FLAG_L(O, "--set", set, "KEY=VALUE",
                 "where a file of the run is: prompts.path=..., policy.path=..., ..."),
    RLHF__FLAG_S(O, "--algo", algo, "X.so", "the run's algorithm, if it was not installed"),
    RLHF__FLAG_SW(O, "--trust-run", trust_run, "run the code that the run's config.json names"),
    RLHF__FLAG_SW(O, "--json", json, "print the receipt instead of sentences"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)
#define USAGE   "rlhf-host verify RUN [--all | --phase A..B] [options]"

struct job {
    const struct rlhf__env *env;
    const struct options *o;
    const char *run;
    struct rlhf__chain_file chain;
    struct rlhf__faults faults;
    struct rlhf__replay_told told;
    json_t *on_trust;    // ids of rewards that are not functions, or NULL
    const char *answers; // id of the environment whose answers come from the record, or NULL
    int32_t has_promise; // 1: its program promises to be a function
    int64_t first, last, phases;
};

// Returns 1 if phases come from the record and are compared within limits, and 0 if they are
// recomputed from the settings alone and must be equal to the bit.
static int has_limits(const struct options *o) { return strcmp(o->backend, "cpu") != 0; }

// ---- before anything is computed ----

static const json_t *begin_of(const struct job *j) {
    const struct rlhf__chain_line *l =
        rlhf__chain_file_last(&j->chain, RLHF__CHAIN_BEGIN, INT64_MAX);
    return l ? json_object_get(l->value, "begin") : NULL;
}

static rlhf_status read_chain(struct job *j, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    if (rlhf__is_dir(j->run)) RLHF_TRY(rlhf__links_stay(j->run, "the run directory", err));
    rlhf__path_put(path, "%s/config.json", j->run);
    if (!rlhf__is_file(path))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "verify: %s is not a run directory (it has no config.json)", j->run);
    RLHF_TRY(rlhf__chain_file_read(j->run, &j->chain, err));
    const struct rlhf__chain_line *last =
        rlhf__chain_file_last(&j->chain, RLHF__CHAIN_PHASE, INT64_MAX);
    if (!begin_of(j))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "verify: %s has no hash chain (" RLHF__CHAIN_FILE ")", j->run);
    if (!last)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "verify: %s has nothing to verify: it ended before its first phase was "
                          "done",
                          j->run);
    j->phases = last->phase;
    const char *was = rlhf__json_text_in(begin_of(j), "version");
    if (strcmp(was, RLHF_SDK_VERSION) == 0) return RLHF_OK;
    for (size_t i = 0; i < j->chain.n; i++) {
        const char *wrong = rlhf__chain_file_wrong(&j->chain, i);
        if (!wrong) continue;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "verify: %s/" RLHF__CHAIN_FILE " was edited: line %d: %s", j->run,
                          j->chain.line[i].number, wrong);
    }
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "verify: %s was made by version %s, and this is version %s: verify it with the "
        "version that made it",
        j->run, was, RLHF_SDK_VERSION);
}

// Determine the phases from the flags. If the user changed settings, inputs or plugins when
// resuming the run, the run directory has only the new ones. Then only the phases after that resume
// can be recomputed.
static rlhf_status choose_phases(struct job *j, struct rlhf__error *err) {
    const struct rlhf__chain_line *l =
        rlhf__chain_file_last(&j->chain, RLHF__CHAIN_BEGIN, INT64_MAX);
    if (j->o->phase && j->o->all)
        return rlhf__fail(err, RLHF_E_INVALID, "verify: give --all or --phase, not both");
    if (!j->o->phase && !j->o->all) return RLHF_OK;
    RLHF_TRY(rlhf__phase_range("--phase", j->o->phase, j->phases, &j->first, &j->last, err));
    if (j->first > l->phase) return RLHF_OK;
    if (j->o->all && l->phase < j->phases) {
        j->told.left = l->phase;
        j->first = l->phase + 1;
        rlhf__buf_printf(&j->told.left_text,
                         "phases 1 to %lld cannot be recomputed: the run was resumed after them "
                         "with other settings, inputs or plugins",
                         (long long)l->phase);
        if (!j->o->json) printf("%s\n", rlhf__buf_text(&j->told.left_text));
        return rlhf__buf_ok(&j->told.left_text, err);
    }
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "verify: phase %lld cannot be recomputed: after phase %lld the run was resumed "
        "with other settings, inputs or plugins, and only those are kept; phases from %lld on can "
        "be",
        (long long)j->first, (long long)l->phase, (long long)l->phase + 1);
}

static int is_set(const struct options *o, const char *section) {
    for (size_t i = 0; i < o->set.n; i++)
        if (strncmp(o->set.item[i], section, strlen(section)) == 0) return 1;
    return 0;
}

// Returns 1 if the answers of the environment `p` come from the record. There are two cases. Either
// `p` does not promise to be a function (the same turns get the same answers), or only the program
// of `p` promises it and the user does not allow `verify` to run this program.
static int is_recorded(const struct job *j, const json_t *p) {
    if (has_limits(j->o) || !json_is_true(json_object_get(p, "function"))) return 1;
    if (!json_is_true(json_object_get(p, "promised"))) return 0;
    return !j->o->trust_run && !is_set(j->o, "environment.");
}

// List the rewards that are not functions of their arguments. Also check whether the environment is
// such a function.
static void see_code(struct job *j) {
    const json_t *plugins = json_object_get(begin_of(j), "plugins");
    size_t i;
    json_t *p;
    json_array_foreach(plugins, i, p) {
        const char *role = rlhf__json_text_in(p, "role");
        if (strcmp(role, "environment") == 0 && is_recorded(j, p)) {
            j->answers = rlhf__json_text_in(p, "id");
            j->has_promise = json_is_true(json_object_get(p, "promised"));
        }
        if (strcmp(role, "reward") != 0 && strcmp(role, "judge") != 0) continue;
        if (!has_limits(j->o) && json_is_true(json_object_get(p, "function"))) continue;
        if (!j->on_trust) j->on_trust = json_array();
        json_array_append(j->on_trust, json_object_get(p, "id"));
    }
}

// Check that the run has recorded what is taken on trust.
static rlhf_status check_trust(const struct job *j, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    const json_t *config = json_object_get(begin_of(j), "config");
    const char *reward = json_string_value(json_array_get(j->on_trust, 0));
    const char *who = j->answers ? j->answers : reward ? reward : "a reward";
    const char *of = j->answers ? "its episodes" : "its arguments";
    const char *what = j->answers ? "answers" : "scores";
    if (j->first == 0 || has_limits(j->o) || !(j->on_trust || j->answers)) return RLHF_OK;
    rlhf__path_put(path, "%s/rollouts.jsonl", j->run);
    if (!rlhf__is_file(path))
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "verify: %s does not promise the same %s each time, and %s has not recorded them: only "
            "runs with log.rollouts=true can be recomputed then; without --all and --phase, "
            "verify compares the files alone",
            who, what, j->run);
    if (json_integer_value(json_object_get(json_object_get(config, "rollout"), "ahead")) == 0)
        return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "verify: %s is not a function of %s, so its %s come from rollouts.jsonl; "
                      "that does not work for a run with rollout.ahead",
                      who, of, what);
}

// ---- the checks ----

static rlhf_status check_record(struct job *j, struct rlhf__error *err) {
    RLHF_TRY(rlhf__record_chain(&j->chain, &j->faults, err));
    RLHF_TRY(rlhf__record_config(j->run, &j->chain, &j->faults, err));
    RLHF_TRY(rlhf__record_metrics(j->run, &j->chain, &j->faults, err));
    RLHF_TRY(rlhf__record_rollouts(j->run, &j->chain, &j->faults, err));
    RLHF_TRY(rlhf__record_checkpoints(j->run, &j->chain, &j->faults, err));
    if (j->o->json) return RLHF_OK;
    printf("files: %s\n", j->faults.n == 0 ? "as the chain says" : "not as the chain says");
    for (size_t i = 0; i < j->faults.n; i++)
        rlhf__fault_print(&j->faults.item[i]);
    return rlhf__print_flush(err);
}

static rlhf_status replay(struct job *j, struct rlhf__error *err) {
    const struct options *o = j->o;
    const struct rlhf__replay_job r = {
        .again = {.env = j->env,
                  .run = j->run,
                  .algo = o->algo,
                  .backend = o->backend,
                  .threads = o->threads,
                  .trust_run = o->trust_run,
                  .rewards = !j->on_trust && !has_limits(o),
                  .environment = !j->answers && !has_limits(o),
                  .dtype = rlhf__json_text_in(begin_of(j), "dtype"),
                  .arithmetic = rlhf__json_text_in(begin_of(j), "arithmetic"),
                  .set = o->set.item,
                  .n_set = o->set.n},
        .chain = &j->chain,
        .first = j->first,
        .last = j->last,
        .trusted = j->on_trust || j->answers || has_limits(o),
        .shows = !o->json,
        .limits = has_limits(o)};
    if (j->first == 0) return RLHF_OK;
    if (rlhf__faults_count(&j->faults, 0, 0) > 0) { // config.json, or the chain's own beginning
        if (!o->json) printf("nothing is recomputed: the settings are not those of the run\n");
        return RLHF_OK;
    }
    if (r.limits) return rlhf__within_limits(&r, &j->told, &j->faults, err);
    RLHF_TRY(rlhf__replay_check(&r, &j->told, err));
    if (!o->json && j->told.from < j->first - 1)
        printf("phase %lld begins at %s %lld, so all phases from there on are recomputed\n",
               (long long)j->first, j->told.from ? "checkpoint" : "phase", (long long)j->told.from);
    RLHF_TRY(rlhf__print_flush(err));
    return rlhf__replay_run(&r, &j->told, &j->faults, err);
}

static void print_end(const struct job *j) {
    const long long done = j->told.recomputed;
    if (j->first == 0)
        printf("nothing was recomputed; --all or --phase A..B does\n");
    else if (has_limits(j->o))
        printf("%lld of %lld phases are equal within the limits (%s)\n", (long long)j->told.equal,
               done, rlhf__json_text_in(begin_of(j), "dtype"));
    else
        printf("%lld of %lld phases are equal to the bit (%s, arithmetic %s)\n",
               (long long)j->told.equal, done, rlhf__json_text_in(begin_of(j), "dtype"),
               rlhf__json_text_in(begin_of(j), "arithmetic"));
    if (j->told.left) printf("not verified: %lld phases\n", (long long)j->told.left);
    if (j->on_trust && done > 0) {
        printf("rewards of %lld phases were taken on trust:", done);
        for (size_t i = 0; i < json_array_size(j->on_trust); i++)
            printf("%s %s", i ? "," : "", json_string_value(json_array_get(j->on_trust, i)));
        printf("\n");
    }
    if (j->answers && done > 0)
        printf("answers of the environment in %lld phases were taken on trust: %s%s\n", done,
               j->answers,
               j->has_promise ? " (its program promises the same answers; --trust-run runs it)"
                              : "");
    printf("head of the chain: %s\n", rlhf__chain_file_head(&j->chain, j->chain.n));
}

static rlhf_status give_receipt(const struct job *j, struct rlhf__error *err) {
    const struct rlhf__receipt r = {.run = rlhf__path_base(j->run),
                                    .dir = j->run,
                                    .chain = &j->chain,
                                    .told = &j->told,
                                    .faults = &j->faults,
                                    .limits = has_limits(j->o),
                                    .first = j->o->all ? 1 : j->first,
                                    .last = j->last,
                                    .on_trust = j->on_trust,
                                    .answers = j->answers};
    json_t *v = rlhf__receipt_json(&r);
    if (!v) return RLHF__NOMEM(err, "out of memory for the receipt");
    rlhf_status st = j->o->out ? rlhf__receipt_write(j->o->out, v, err) : RLHF_OK;
    if (st == RLHF_OK && j->o->json) return rlhf__print_json_new(v, err);
    json_decref(v);
    if (st == RLHF_OK && j->o->out) printf("receipt: %s\n", j->o->out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

static rlhf_status verify(struct job *j, struct rlhf__error *err) {
    if (j->o->out) RLHF_TRY(rlhf__receipt_can_write(j->o->out, err));
    rlhf__signals_at_once(1);
    RLHF_TRY(read_chain(j, err));
    RLHF_TRY(choose_phases(j, err));
    see_code(j);
    RLHF_TRY(check_trust(j, err));
    RLHF_TRY(check_record(j, err));
    rlhf__signals_at_once(0); // from here on there is a scratch directory to remove
    RLHF_TRY(replay(j, err));
    if (!j->o->json) print_end(j);
    return give_receipt(j, err);
}

// ---- receipts ----

static rlhf_status check_receipt(struct job *j, struct rlhf__error *err) {
    static const char *const keys[] = {"begin", "head", "seal"};
    const char *path = j->o->receipt;
    json_t *v = NULL;
    rlhf__signals_at_once(1);
    RLHF_TRY(rlhf__receipt_read(path, &v, err));
    rlhf_status st = RLHF_OK;
    const struct rlhf__receipt r = {.run = "", .dir = j->run, .chain = &j->chain};
    if (j->run) {
        st = rlhf__is_dir(j->run) ? rlhf__links_stay(j->run, "the run directory", err) : RLHF_OK;
        if (st == RLHF_OK) st = rlhf__chain_file_read(j->run, &j->chain, err);
        for (size_t i = 0; st == RLHF_OK && i < sizeof keys / sizeof *keys; i++) {
            const char *is = rlhf__receipt_digest(&r, keys[i]);
            if (strcmp(is, rlhf__json_text_in(v, keys[i])) != 0)
                st = rlhf__fail(err, RLHF_E_INVALID,
                                "verify: %s is the receipt of another run: its %s is %.12s, and "
                                "that of %s is %.12s",
                                path, keys[i], rlhf__json_text_in(v, keys[i]), j->run,
                                *is ? is : "missing");
        }
    }
    char verdict[RLHF__VERDICT];
    rlhf__receipt_verdict(v, verdict);
    if (st == RLHF_OK)
        printf("%s is unchanged%s: the run %s\n", path, j->run ? " and belongs to the run" : "",
               verdict);
    json_decref(v);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

int rlhf__cmd_verify(const struct rlhf__env *env, int argc, char **argv) {
    struct options o = {.backend = "cpu"};
    struct rlhf__flag_list rest = {0};
    struct rlhf__error err = {0, ""};
    struct job j = {.env = env, .o = &o};
    if (rlhf__flags_helped(flags, N_FLAGS, USAGE, argc, argv)) return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, &rest, &err);
    if (st == RLHF_OK && rest.n != 1 && !(o.receipt && rest.n == 0))
        st = rlhf__fail(&err, RLHF_E_INVALID, "verify: give one run directory, as in " USAGE);
    if (st == RLHF_OK) {
        j.run = rest.n ? rest.item[0] : NULL;
        env->log->level = RLHF_LOG_ERROR; // the warnings of the run are not repeated
        st = o.receipt ? check_receipt(&j, &err) : verify(&j, &err);
    }
    const int doubtful = j.faults.n > 0 || j.told.left > 0;
    rlhf__faults_finish(&j.faults);
    rlhf__chain_file_finish(&j.chain);
    json_decref(j.told.begin);
    json_decref(j.told.manifest);
    json_decref(j.told.compared);
    rlhf__buf_finish(&j.told.left_text);
    json_decref(j.on_trust);
    free(o.set.item);
    free(rest.item);
    return st == RLHF_OK ? doubtful : rlhf__cmd_end(env, st, &err);
}
