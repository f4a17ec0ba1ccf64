// runs.c: see runs.h.
#include "runs/runs.h"

#include "base/printable.h"
#include "base/signals.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "option/nearest.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(const struct rlhf__env *env, int argc, char **argv);
    int reads; // 1: it changes no file
} parts[] = {{"list", rlhf__runs_list, 1},
             {"compare", rlhf__runs_compare, 1},
             {"show", rlhf__runs_show, 1},
             {"prune", rlhf__runs_prune, 0}};
enum { PARTS = sizeof parts / sizeof *parts };

static void help(void) {
    rlhf__print_two_columns(
        stdout,
        "usage: rlhf-host runs list [DIR] [--watch] [--json]      the runs in a directory\n"
        "       rlhf-host runs compare RUN RUN... [--json]        settings that differ, and the "
        "end\n"
        "       rlhf-host runs show RUN [--json]                  whether it worked, by which "
        "rules\n"
        "       rlhf-host runs prune [DIR|RUN]... --keep-last | --keep N [--yes]  remove old "
        "checkpoints\n"
        "DIR is runs if it is not given.\n"
        "  --json                   print one JSON object\n"
        "  --watch                  list: draw the table again every two seconds, until Ctrl-C\n"
        "  --metric NAME            compare: a further metric of the table; repeatable\n"
        "  --keep-last              prune: keep the newest checkpoint of each run\n"
        "  --keep N                 prune: keep the newest N checkpoints of each run\n"
        "  --yes                    prune: remove them; without it prune only says what it would "
        "remove\n");
}

int rlhf__cmd_runs(const struct rlhf__env *env, int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    char name[32]; // in messages
    struct rlhf__nearest near = {what, NULL, 0};
    struct rlhf__error err = {0, ""};
    char hint[64];
    if (rlhf__flags_want_help(argc, argv)) {
        help();
        return 0;
    }
    for (size_t i = 0; i < PARTS; i++) {
        rlhf__nearest_offer(&near, parts[i].name);
        if (strcmp(what, parts[i].name) != 0) continue;
        snprintf(name, sizeof name, "runs %s", parts[i].name);
        argv[1] = name;
        rlhf__signals_at_once(parts[i].reads);
        return parts[i].run(env, argc - 1, argv + 1);
    }
    rlhf__fail(&err, RLHF_E_INVALID,
               "runs: write \"runs list\", \"runs compare RUN RUN\", \"runs show RUN\" or \"runs "
               "prune\", found \"%s\"%s",
               what, rlhf__nearest_hint(&near, hint, sizeof hint));
    return rlhf__cmd_end(env, RLHF_E_INVALID, &err);
}
