// list.c: `rlhf-host runs list`.
#include "base/json.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "runs/list_table.h"
#include "runs/old_checkpoints.h"
#include "runs/run_row_json.h"
#include "runs/runs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { WATCH_MS = 2000, STEP_MS = 100, LINES_BELOW = 6 };

struct options {
    int32_t json, watch;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// ---- reading ----

static rlhf_status sum_freed(const struct rlhf__runs_found *f, int64_t *freed,
                             struct rlhf__error *err) {
    struct rlhf__needed_list needed = {0};
    struct rlhf__error skipped;
    rlhf_status st = rlhf__needed_collect(f, &needed, err);
    *freed = 0;
    for (size_t i = 0; st == RLHF_OK && !needed.unknown && !needed.crowded && i < f->n; i++) {
        struct rlhf__old_checkpoints old;
        if (rlhf__old_checkpoints_find(&f->all[i], 1, &needed, &old, &skipped) == RLHF_OK)
            *freed += old.bytes;
        rlhf__old_checkpoints_finish(&old);
    }
    rlhf__needed_finish(&needed);
    return st;
}

static rlhf_status find(const char *dir, struct rlhf__runs_found *f, int64_t *freed,
                        struct rlhf__error *err) {
    RLHF_TRY(rlhf__runs_find(dir, f, err));
    rlhf__runs_sort(f);
    return sum_freed(f, freed, err);
}

// ---- as an object ----

static rlhf_status print_object(const struct rlhf__runs_found *f, const char *dir, int64_t freed,
                                struct rlhf__error *err) {
    json_t *all = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(all, rlhf__run_row_json(&f->all[i]));
    return rlhf__print_json_new(json_pack("{so,so,sI,sI,sI}", "directory", rlhf__json_text(dir),
                                          "runs", all, "prune_frees", (json_int_t)freed,
                                          "other_directories", (json_int_t)f->others,
                                          "unreadable_directories", (json_int_t)f->closed),
                                err);
}

// ---- as a table ----

static rlhf_status print_table(const struct rlhf__runs_found *f, struct rlhf__list_view *v,
                               const char *before, struct rlhf__error *err) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf__buf_puts(&out, before);
    rlhf__list_table_put(f, v, &out);
    const rlhf_status st = rlhf__buf_ok(&out, err);
    if (st == RLHF_OK) fputs(rlhf__buf_text(&out), stdout);
    rlhf__buf_finish(&out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

static rlhf_status list(const char *dir, int json, struct rlhf__error *err) {
    struct rlhf__runs_found f = {0};
    struct rlhf__list_view v = {.dir = dir, .now = now()};
    v.width = rlhf__terminal_width(STDOUT_FILENO, 0);
    rlhf_status st = find(dir, &f, &v.freed, err);
    if (st == RLHF_OK)
        st = json ? print_object(&f, dir, v.freed, err) : print_table(&f, &v, "", err);
    rlhf__runs_found_finish(&f);
    return st;
}

// ---- watching ----

static int lines_of_terminal(void) {
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

static int sleep_until_next(const struct rlhf__env *env) {
    const struct timespec step = {0, STEP_MS * 1000000L};
    for (int i = 0; i < WATCH_MS / STEP_MS && !*env->cancelled; i++)
        nanosleep(&step, NULL);
    return *env->cancelled == 0;
}

// Returns RLHF_E_CANCELLED after Ctrl-C.
static rlhf_status watch(const struct rlhf__env *env, const char *dir, struct rlhf__error *err) {
    rlhf_status st;
    rlhf__signals_at_once(0); // the screen is left as it should be
    do {
        struct rlhf__runs_found f = {0};
        struct rlhf__list_view v = {.dir = dir, .now = now()};
        v.width = rlhf__terminal_width(STDOUT_FILENO, 0);
        v.most = lines_of_terminal() - LINES_BELOW;
        if (v.most < 1) v.most = 1;
        st = find(dir, &f, &v.freed, err);
        if (st == RLHF_OK) st = print_table(&f, &v, "\033[H\033[2J", err);
        rlhf__runs_found_finish(&f);
    } while (st == RLHF_OK && sleep_until_next(env));
    return st == RLHF_OK ? RLHF_E_CANCELLED : st;
}

int rlhf__runs_list(const struct rlhf__env *env, int argc, char **argv) {
    static const struct rlhf__flag flags[] = {
        RLHF__FLAG_SW(struct options, "--json", json, "print one JSON object"),
        RLHF__FLAG_SW(struct options, "--watch", watch,
                      "draw the table again every two seconds, until Ctrl-C"),
    };
    struct options o = {0};
    struct rlhf__flag_list rest = {0};
    struct rlhf__error err = {0, ""};
    rlhf_status st = rlhf__flags_parse(flags, 2, argc, argv, &o, &rest, &err);
    const char *dir = rest.n ? rest.item[0] : RLHF__RUNS_DIR;
    const struct rlhf__flag_idle idle = {"--watch", o.watch};
    if (st == RLHF_OK && rest.n > 1)
        st = rlhf__fail(&err, RLHF_E_INVALID, "runs list: give one directory, found \"%s\" too",
                        rest.item[1]);
    if (st == RLHF_OK && o.json) st = rlhf__flags_idle(&idle, 1, argv[0], "with --json", &err);
    if (st == RLHF_OK && !isatty(STDOUT_FILENO))
        st = rlhf__flags_idle(&idle, 1, argv[0], "without a terminal", &err);
    if (st == RLHF_OK && !rest.n) st = rlhf__runs_default(argv[0], &err);
    if (st == RLHF_OK) st = o.watch ? watch(env, dir, &err) : list(dir, o.json, &err);
    free(rest.item);
    return rlhf__cmd_end(env, st, &err);
}
