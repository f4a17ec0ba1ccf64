// main.c: rlhf-host: selects the command.
#include "build_id.h"
#include "cmd/cli.h"
#include "cmd/help.h"
#include "cmd/help_search.h"
#include "cmd/help_trl.h"
#include "cmd/program.h"
#include "export/export.h"
#include "inspect/inspect.h"
#include "option/nearest.h"
#include "page/report_page.h"
#include "prompt/prompt.h"
#include "runs/runs.h"
#include "team/join.h"
#include "verify/verify.h"
#include "worker/serve.h"

#include <stdio.h>
#include <string.h>

typedef int (*command_fn)(const struct rlhf__env *env, int argc, char **argv);

static int cmd_help(const struct rlhf__env *env, int argc, char **argv);

static const struct {
    const char *name;
    command_fn run;
} commands[] = {
    {"generate", rlhf__cmd_generate},
    {"play", rlhf__cmd_play},
    {"tokenize", rlhf__cmd_tokenize},
    {"eval", rlhf__cmd_eval},
    {"label", rlhf__cmd_label},
    {"pairs", rlhf__cmd_pairs},
    {"export", rlhf__cmd_export},
    {"inspect", rlhf__cmd_inspect},
    {"plugin", rlhf__cmd_plugin},
    {"devices", rlhf__cmd_devices},
    {"report", rlhf__cmd_report},
    {"runs", rlhf__cmd_runs},
    {"samples", rlhf__cmd_samples},
    {"verify", rlhf__cmd_verify},
    {"help", cmd_help},
};

// Internal command, started by the host itself; not for users.
#define HIDDEN "worker"

static void offer_commands(struct rlhf__nearest *near) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        rlhf__nearest_offer(near, commands[i].name);
    rlhf__nearest_offer(near, "settings"); // of help
}

// Returns a hint for a word that is not a command. If the word is a plugin, the hint names the
// plugin's flag. If the word means training, the hint is that training needs no command. Returns
// NULL for other words.
static const char *run_hint(const char *name) {
    static const char *const words[] = {"train", "run", "sft", "grpo", "ppo", "dpo", "rloo", "kto"};
    const size_t n = strlen(name);
    if (n > 3 && strcmp(name + n - 3, ".so") == 0)
        return "; an algorithm is given by --algo X.so, a reward by --reward X.so";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return "; training needs no command word: rlhf-host --algo X.so ...";
    return NULL;
}

static int unknown_command(struct rlhf__log *log, const char *name) {
    struct rlhf__nearest near = {name, NULL, 0};
    struct rlhf__error err;
    char hint[128];
    offer_commands(&near);
    const char *run = run_hint(name);
    rlhf__fail(&err, RLHF_E_INVALID, "unknown command \"%s\"%s; see rlhf-host --help", name,
               run ? run : rlhf__nearest_hint(&near, hint, sizeof hint));
    rlhf__log_error(log, err.text);
    return 2;
}

// `help COMMAND` and `--help COMMAND` do the same as `COMMAND --help`.
static int cmd_help(const struct rlhf__env *env, int argc, char **argv) {
    static char flag[] = "--help";
    if (argc < 2 || strcmp(argv[1], "help") == 0 || argv[1][0] == '-') {
        rlhf__help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "settings") == 0) {
        if (argc > 2) return rlhf__search_settings(env, argv[2]);
        rlhf__help_settings(env->dirs, NULL, stdout);
        return 0;
    }
    if (strcmp(argv[1], "trl") == 0) return rlhf__help_trl(env, argc > 2 ? argv[2] : NULL);
    char *args[] = {argv[1], flag, NULL};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(env, 2, args);
    struct rlhf__nearest near = {argv[1], NULL, 0};
    offer_commands(&near);
    return rlhf__search(env, &near);
}

// Runs --version, which is given alone or with --json, in either order.
static int version(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err;
    const int json =
        argc == 3 && (strcmp(argv[1], "--json") == 0 || strcmp(argv[2], "--json") == 0);
    rlhf_status st = RLHF_OK;
    if (argc > 2 && !json)
        st = rlhf__fail(&err, RLHF_E_INVALID, "--version goes alone, or with --json");
    else if (json)
        st = rlhf__version_json(env->dirs, RLHF_GIT_ID, RLHF_BUILD_TYPE, &err);
    else
        st = rlhf__version(env->dirs, &err);
    if (st < 0) rlhf__log_error(env->log, err.text);
    return rlhf__exit_status(st);
}

static int dispatch(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err;
    if (argc < 2) {
        rlhf__help(stderr);
        return 2;
    }
    for (int i = 1; i < argc && argv[1][0] == '-'; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return cmd_help(env, argc - i, argv + i);
        if (strcmp(argv[i], "--version") == 0) return version(env, argc, argv);
    }
    struct rlhf__env training = *env; // pages are not part of the host
    training.run_ended = rlhf__report_after_run;
    if (argv[1][0] == '-') return rlhf__cli_train(&training, argc, argv);
    if (strcmp(argv[1], HIDDEN) == 0) return rlhf__cmd_worker(env, argc - 1, argv + 1);
    if (rlhf__join_refuse(argv[1], &err) != RLHF_OK) {
        rlhf__log_error(env->log, err.text);
        return 2;
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(env, argc - 1, argv + 1);
    return unknown_command(env->log, argv[1]);
}

int main(int argc, char **argv) { return rlhf__program(argc, argv, dispatch); }
