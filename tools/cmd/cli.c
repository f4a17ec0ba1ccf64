// cli.c: see cli.h.
#include "cmd/cli.h"

#include "base/printable.h"
#include "base/signals.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "cmd/ranks.h"
#include "config/config_json.h"
#include "config/layer.h"
#include "config/resume.h"
#include "keep/manifest.h"
#include "keep/run_dir.h"
#include "model/free_memory.h"
#include "setup/setup.h"
#include "supervise/last_words.h"
#include "team/agree.h"
#include "team/join.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *algo, *judge, *environment, *config, *preset, *resume;
    const char *policy, *adapter, *data, *prompts, *out, *phases, *seed, *threads;
    struct rlhf__flag_list reward, sink, set;
    int32_t print_config, dry_run, trust_run, allow_changed_plugins, allow_changed_inputs;
    int argc; // the command line without the program's name, for messages
    char **argv;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--algo", algo, "X.so[:k=v,..]",
                 "algorithm: ppo.so, sft.so, classify.so, a path"),
    RLHF__FLAG_L(O, "--reward", reward, "X.so[:k=v,..]", "reward, repeatable: imdb.so:weight=1"),
    RLHF__FLAG_S(O, "--judge", judge, "X.so[:k=v,..]",
                 "reward that scores and labels pairs but does not train"),
    RLHF__FLAG_S(O, "--env", environment, "X.so[:k=v,..]",
                 "answers the policy between its turns: a game, tools, a user"),
    RLHF__FLAG_L(O, "--sink", sink, "X.so[:k=v,..]",
                 "gets the run's metrics and samples, repeatable: wandb.so"),
    RLHF__FLAG_S(O, "--policy", policy, "DIR", "model to train, or a GGUF file (policy.path)"),
    RLHF__FLAG_S(O, "--adapter", adapter, "DIR", "adapter to train on (policy.adapter.path)"),
    RLHF__FLAG_S(O, "--data", data, "FILE", "rows of supervised algorithms (data.path)"),
    RLHF__FLAG_S(O, "--prompts", prompts, "FILE", "prompts of rollout algorithms (prompts.path)"),
    RLHF__FLAG_S(O, "--config", config, "FILE", "settings as JSON, over preset and defaults"),
    RLHF__FLAG_S(O, "--preset", preset, "NAME", "named settings that come with the program"),
    RLHF__FLAG_L(O, "--set", set, "PATH=VALUE",
                 "one setting, repeatable: optim.lr=1e-5, algo.KEY=.."),
    RLHF__FLAG_S(O, "--out", out, "DIR", "run directory (run.dir)"),
    RLHF__FLAG_S(O, "--phases", phases, "N", "phases to run (run.phases)"),
    RLHF__FLAG_S(O, "--seed", seed, "N", "seed of the run (run.seed)"),
    RLHF__FLAG_S(O, "--threads", threads, "N", "CPU threads, 0 = all (run.threads)"),
    RLHF__FLAG_S(O, "--resume", resume, "RUN", "go on with the run in this directory"),
    RLHF__FLAG_SW(O, "--trust-run", trust_run,
                  "with --resume: run the code and use the services that the run names"),
    RLHF__FLAG_SW(O, "--allow-changed-plugins", allow_changed_plugins,
                  "with --resume: plugins and kernels may differ from those that made the run"),
    RLHF__FLAG_SW(O, "--allow-changed-inputs", allow_changed_inputs,
                  "with --resume: rows, prompts and frozen models may differ from the run's"),
    RLHF__FLAG_SW(O, "--print-config", print_config,
                  "print the resolved settings as JSON and stop"),
    RLHF__FLAG_SW(O, "--dry-run", dry_run, "set everything up, run no phase, write nothing"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

void rlhf__cli_train_help(FILE *out) { rlhf__flags_help(out, flags, N_FLAGS); }

// ---- short flags are settings -----------------------------------------------------------------

struct assignments {
    char *made[9]; // heap-allocated
    size_t n_made;
    // `all` lists the assignments from short flags, then those from --set. `flag` has the flag from
    // which each assignment comes.
    const char **all, **flag;
    size_t n;
};

static void assignments_free(struct assignments *a) {
    for (size_t i = 0; i < a->n_made; i++)
        free(a->made[i]);
    free(a->all);
    free(a->flag);
}

static rlhf_status collect(const struct options *o, struct assignments *a,
                           struct rlhf__error *err) {
    const struct {
        const char *flag, *path, *value;
    } shorts[] = {
        {"--policy", "policy.path", o->policy}, {"--adapter", "policy.adapter.path", o->adapter},
        {"--data", "data.path", o->data},       {"--prompts", "prompts.path", o->prompts},
        {"--out", "run.dir", o->out},           {"--phases", "run.phases", o->phases},
        {"--seed", "run.seed", o->seed},        {"--threads", "run.threads", o->threads},
    };
    a->all = calloc(9 + o->set.n, sizeof *a->all);
    a->flag = calloc(9 + o->set.n, sizeof *a->flag);
    if (!a->all || !a->flag) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++) {
        if (!shorts[i].value) continue;
        char *text;
        if (asprintf(&text, "%s=%s", shorts[i].path, shorts[i].value) < 0)
            return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
        a->made[a->n_made++] = text;
        a->flag[a->n] = shorts[i].flag;
        a->all[a->n++] = text;
    }
    for (size_t i = 0; i < o->set.n; i++) {
        a->flag[a->n] = "--set";
        a->all[a->n++] = o->set.item[i];
    }
    return RLHF_OK;
}

// ---- the run ----------------------------------------------------------------------------------

static rlhf_status print_config(const struct rlhf__config *c, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf_status st = rlhf__config_print(c, &text, err);
    if (st == RLHF_OK && fwrite(rlhf__buf_text(&text), 1, text.len, stdout) != text.len)
        st = rlhf__fail(err, RLHF_E_IO, "cannot write to standard output: %s", strerror(errno));
    if (st == RLHF_OK) st = rlhf__print_flush(err);
    rlhf__buf_finish(&text);
    return st;
}

// With log.format=json, signal handlers also write JSON.
static void speak_json(struct rlhf__log *log) {
    log->json = 1;
    rlhf__signals_json(1);
    rlhf__last_words_json(1);
}

// Append to `err` the user's command, with flags that name all code of the run. Code gets no flag
// if only an option of a plugin outside the searched directories names it, because such a plugin is
// not opened. If a plugin of the run is not installed, appends nothing, because `err` already lists
// such plugins.
static void say_whole_command(const struct options *o, const struct rlhf__config_request *req,
                              const struct rlhf__run_request *run, struct rlhf__error *err) {
    struct rlhf__config_request trusting = *req;
    struct rlhf__config c;
    struct rlhf__error none;
    const struct rlhf__plugin *algo, **rewards = NULL, **sinks = NULL, *judge = NULL, *env = NULL;
    struct rlhf__buf say = RLHF__BUF_INIT;
    trusting.trust_run = 1;
    rlhf_status st = rlhf__config_load(&trusting, &c, &none);
    if (st == RLHF_OK && run->plugins) {
        st = rlhf__config_resolve(&c, run->plugins, &algo, &rewards, &judge, &none);
        if (st == RLHF_OK) st = rlhf__config_resolve_environment(&c, run->plugins, &env, &none);
        if (st == RLHF_OK) st = rlhf__config_resolve_sinks(&c, run->plugins, &sinks, &none);
    }
    for (int i = 0; i < o->argc; i++) {
        rlhf__buf_puts(&say, " ");
        rlhf__put_shell(&say, o->argv[i]);
    }
    if (st == RLHF_OK)
        rlhf__resume_words(req, &c, &(struct rlhf__resume_code){rewards, judge, env, sinks}, &say);
    const size_t n = strlen(err->text);
    if (st == RLHF_OK && !say.bad && say.len + 64 < sizeof err->text - n)
        snprintf(err->text + n, sizeof err->text - n, "; the whole command: rlhf-host%s",
                 rlhf__buf_text(&say));
    free(rewards);
    free(sinks);
    rlhf__buf_finish(&say);
    rlhf__config_finish(&c);
}

// Extends the message `err` if it asks the user to name the code of a resumed run again. If this
// code has changed since the run last used it, appends the list of changes. Otherwise appends the
// whole command to type. If the run cannot be resumed for another reason, replaces the message by
// that reason.
static rlhf_status say_trust(const struct options *o, const struct rlhf__config_request *req,
                             const struct rlhf__run_request *run, rlhf_status st,
                             struct rlhf__error *err) {
    const struct rlhf__run_dir *dir = run->dir;
    struct rlhf__buf changed = RLHF__BUF_INIT;
    struct rlhf__error ended = {0};
    if (st != RLHF_E_INVALID || !o->resume || !strstr(err->text, "--trust-run")) return st;
    if (!o->print_config && rlhf__run_dir_can_go_on(dir, &ended) != RLHF_OK) {
        *err = ended;
        return ended.code;
    }
    if (o->allow_changed_inputs) return st;
    rlhf__manifest_changed_code(o->resume, &changed);
    const size_t n = strlen(err->text);
    if (changed.len)
        snprintf(err->text + n, sizeof err->text - n,
                 "; it has changed since, too: %s, which --allow-changed-inputs accepts",
                 rlhf__buf_text(&changed));
    if (changed.len == 0) say_whole_command(o, req, run, err);
    rlhf__buf_finish(&changed);
    return st;
}

// Returns the value of a setting that was typed as --set PATH=VALUE, or NULL.
static const char *typed(const struct options *o, const char *path) {
    const size_t n = strlen(path);
    for (size_t i = o->set.n; i-- > 0;)
        if (strncmp(o->set.item[i], path, n) == 0 && o->set.item[i][n] == '=')
            return o->set.item[i] + n + 1;
    return NULL;
}

// Under a launcher, this rank may have to get the settings of a resumed run from rank 0.
static rlhf_status find_settings(const struct rlhf__env *env, const struct options *o,
                                 struct rlhf__config_request *req, struct rlhf__ranks *ranks,
                                 struct rlhf__error *err) {
    const char *timeout = typed(o, "parallel.timeout_s");
    if (o->print_config) return RLHF_OK;
    return rlhf__ranks_resume(ranks, env, &req->resume, typed(o, "parallel.backend"),
                              timeout ? strtod(timeout, NULL) : 0, err);
}

// Sets *exit_status if it returns RLHF_OK.
static rlhf_status with_run(const struct rlhf__env *env, const struct options *o,
                            struct rlhf__config_request *req, int *exit_status,
                            struct rlhf__error *err) {
    struct rlhf__config config;
    struct rlhf__run_dir dir;
    struct rlhf__run_request run = {.env = env, .config = &config, .dir = &dir};
    struct rlhf__ranks ranks = {.joined = 0};
    memset(&config, 0, sizeof config);
    rlhf_status st = find_settings(env, o, req, &ranks, err);
    run.resume = req->resume;
    rlhf__run_dir_begin(&dir, req->resume);
    rlhf__path_put(dir.shipped, "%s", ranks.shipped);
    if (st == RLHF_OK) st = rlhf__config_load(req, &config, err);
    if (st < 0) rlhf__config_hint(req, &config, err);
    run.dry_run = o->dry_run;
    run.allow_changed_plugins = o->allow_changed_plugins;
    run.allow_changed_inputs = o->allow_changed_inputs;
    if (st == RLHF_OK && rlhf__team_rank(rlhf__joined(&ranks.collective)) == 0)
        env->log->level = config.log.level;
    if (st == RLHF_OK && config.log.format == RLHF__LOG_JSON) speak_json(env->log);
    if (st == RLHF_OK) st = rlhf__plugins_open(env->dirs, &run.plugins, err);
    if (st == RLHF_OK)
        st = rlhf__config_resolve(&config, run.plugins, &run.algo, &run.rewards, &run.judge, err);
    if (st == RLHF_OK)
        st = rlhf__config_resolve_environment(&config, run.plugins, &run.environment, err);
    if (st == RLHF_OK) st = rlhf__config_resolve_sinks(&config, run.plugins, &run.sinks, err);
    st = say_trust(o, req, &run, st, err);
    if (o->print_config) {
        if (st == RLHF_OK) st = rlhf__join_refuse("--print-config", err);
        if (st == RLHF_OK) st = print_config(&config, err);
    } else {
        st = rlhf__ranks_join(&ranks, &run, st, err);
        // run.algo is NULL only if the config was not resolved, because a resolved config has an
        // algorithm.
        if (st == RLHF_OK && run.algo) *exit_status = rlhf__cmd_run(&run);
        rlhf__ranks_leave(&ranks, st < 0 ? rlhf__exit_status(st) : *exit_status);
    }
    free(run.rewards);
    free(run.sinks);
    rlhf__plugins_close(run.plugins);
    rlhf__config_finish(&config);
    rlhf__run_dir_finish(&dir);
    return st;
}

// Reject flags without effect.
static rlhf_status check_flags(const struct options *o, struct rlhf__error *err) {
    const char *resumes = o->trust_run               ? "--trust-run"
                          : o->allow_changed_plugins ? "--allow-changed-plugins"
                          : o->allow_changed_inputs  ? "--allow-changed-inputs"
                                                     : NULL;
    if (resumes && !o->resume)
        return rlhf__fail(err, RLHF_E_INVALID, "%s goes with --resume RUN", resumes);
    if (o->dry_run && o->print_config)
        return rlhf__fail(err, RLHF_E_INVALID, "--dry-run has no effect with --print-config");
    return RLHF_OK;
}

int rlhf__cli_train(const struct rlhf__env *env, int argc, char **argv) {
    struct options o = {.argc = argc - 1, .argv = argv + 1};
    struct assignments a = {0};
    struct rlhf__error err = {0};
    int exit_status = 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK) st = check_flags(&o, &err);
    if (st == RLHF_OK) st = collect(&o, &a, &err);
    if (st == RLHF_OK) {
        struct rlhf__config_request req = {.dirs = env->dirs,
                                           .config_file = o.config,
                                           .preset = o.preset,
                                           .algo = o.algo,
                                           .judge = o.judge,
                                           .environment = o.environment,
                                           .reward = o.reward.item,
                                           .n_reward = o.reward.n,
                                           .sink = o.sink.item,
                                           .n_sink = o.sink.n,
                                           .set = a.all,
                                           .set_flag = a.flag,
                                           .n_set = a.n,
                                           .resume = o.resume,
                                           .trust_run = o.trust_run};
        st = with_run(env, &o, &req, &exit_status, &err);
    }
    if (st < 0) {
        rlhf__log_error(env->log, err.text);
        exit_status = rlhf__exit_status(st);
    }
    assignments_free(&a);
    free(o.reward.item);
    free(o.sink.item);
    free(o.set.item);
    return exit_status;
}

// ---- training ----

// The training command: set up, run, report how it ended.

static rlhf_status find_dir(const struct rlhf__run_request *req, struct rlhf__error *err) {
    if (rlhf__team_rank(req->team) > 0) return RLHF_OK; // rank 0 chooses it
    if (!req->resume) return rlhf__run_dir_choose(req->dir, req->config, req->algo->stem, err);
    if (strlen(req->resume) >= 4000)
        return rlhf__fail(err, RLHF_E_INVALID, "--resume: the path is longer than 4,000 bytes");
    return rlhf__run_dir_attach(req->dir, req->resume, req->dry_run, req->env->log, err);
}

// Print to standard output how much memory the run will need.
static rlhf_status print_memory(const struct rlhf__memory_need *need, int json,
                                struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (!need->known) return RLHF_OK;
    if (json) return rlhf__print_json_new(rlhf__memory_need_json(need), err);
    rlhf__memory_need_table(need, &text);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) fputs(rlhf__buf_text(&text), stdout);
    rlhf__buf_finish(&text);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// Write the report page of the run. Takes the path of the run's directory from the open descriptor,
// because the working directory may have changed and a parent may have been renamed.
static void run_ended(const struct rlhf__run_request *req) {
    char fd[64], real[RLHF__PATH_CAP];
    if (!req->config->log.report || !req->env->run_ended || !req->dir->root) return;
    snprintf(fd, sizeof fd, "/proc/self/fd/%d", req->dir->root->fd);
    if (!rlhf__path_real(fd, real)) rlhf__path_put(real, "%s", req->dir->name);
    req->env->run_ended(req->env, real);
}

int rlhf__cmd_run(const struct rlhf__run_request *asked_for) {
    struct rlhf__error err = {0, ""}, unprinted = {0, ""};
    struct rlhf__run *t = NULL;
    struct rlhf__memory_need need = {0};
    struct rlhf__run_request with_need = *asked_for;
    const struct rlhf__run_request *req = &with_need;
    with_need.need = &need;
    rlhf_status st = find_dir(req, &err);
    st = rlhf__team_agree(req->team, RLHF__BARRIER_SETUP, NULL, st, &err);
    if (st == RLHF_OK) st = rlhf__ranks_share(req, &err);
    if (st == RLHF_OK) st = rlhf__run_open(req, &t, &err);
    if (t && req->dry_run) rlhf__progress_end(t->report.progress); // do not leave a partial bar
    if (req->dry_run && rlhf__team_rank(req->team) == 0 &&
        print_memory(&need, req->env->log->json, &unprinted) != RLHF_OK && st == RLHF_OK) {
        err = unprinted;
        st = err.code;
    }
    if (st == RLHF_OK && !req->dry_run) st = rlhf__run_phases(t, &err);
    if (t && st == RLHF_OK && req->dry_run) {
        const int64_t left = t->count.phases - t->count.phase;
        rlhf__logf(req->env->log, RLHF_LOG_INFO,
                   "dry run: all is set up for %lld phase%s; nothing was run or written",
                   (long long)left, left == 1 ? "" : "s");
    }
    const int collapsed = t && t->collapsed;
    int ran = t && t->report.began > 0 && !t->bad_input;
    // A run with all its phases gets its page again, because it may have been killed before the
    // page was written.
    const int has_phases = t && !req->dry_run && t->count.phase > 0 &&
                           (t->report.began > 0 || t->count.phase >= t->count.phases);
    st = rlhf__team_agree(req->team, RLHF__BARRIER_END, NULL, st, &err);
    rlhf__run_close(t);
    if (has_phases && rlhf__team_rank(req->team) == 0) run_ended(req);
    if (st != RLHF_OK) {
        int status = rlhf__cmd_end(req->env, st, &err);
        // Status 2 means bad input. If a run fails after it has begun, the status is 1 instead.
        return ran && status == 2 ? 1 : status;
    }
    int asked = req->env->cancelled ? *req->env->cancelled : 0;
    if (asked) return 128 + asked;
    return collapsed ? RLHF__EXIT_COLLAPSED : 0;
}
