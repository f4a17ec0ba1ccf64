// report_page.c: see report_page.h.
#include "page/report_page.h"

#include "base/json.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "page/page.h"
#include "page/page_file.h"
#include "page/report_data.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define NAME "report.html"

extern char **environ;

struct options {
    const char *out;
    int32_t json, open;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--out", out, "FILE",
                 "the page; of one run RUN/report.html, of several report.html by default"),
    RLHF__FLAG_SW(O, "--json", json, "print the data of the page as JSON instead of writing it"),
    RLHF__FLAG_SW(O, "--open", open, "open the page in the browser (xdg-open)"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

// ---- the page ----

static rlhf_status make_page(const struct rlhf__report_data *data, struct rlhf__buf *out,
                             struct rlhf__error *err) {
    static const char *scripts[] = {"chart.js", "report.js"};
    const struct rlhf__page page = {.title = data->title,
                                    .style = "page.css",
                                    .scripts = scripts,
                                    .n_scripts = 2,
                                    .json = rlhf__buf_text(&data->json),
                                    .json_len = data->json.len};
    return rlhf__page_write(&page, out, err);
}

static rlhf_status write_page(const struct rlhf__report_data *data, const char *path,
                              struct rlhf__error *err) {
    struct rlhf__buf page = RLHF__BUF_INIT;
    rlhf_status st = make_page(data, &page, err);
    if (st == RLHF_OK) st = rlhf__file_write(NULL, path, page.data, page.len, err);
    rlhf__buf_finish(&page);
    return st;
}

// ---- the command ----

static void open_page(const struct rlhf__env *env, const char *path) {
    char name[] = "xdg-open", real[RLHF__PATH_CAP];
    char *argv[] = {name, real, NULL};
    pid_t pid;
    int status;
    if (!rlhf__path_real(path, real)) return;
    // Hide the output of xdg-open and of the programs that it tries, because it does not help the
    // user.
    posix_spawn_file_actions_t quiet;
    int failed = posix_spawn_file_actions_init(&quiet);
    if (!failed) {
        failed = posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
        if (!failed) failed = posix_spawn_file_actions_adddup2(&quiet, 1, 2);
        if (!failed) failed = posix_spawnp(&pid, name, &quiet, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&quiet);
    }
    if (failed) {
        rlhf__logf(env->log, RLHF_LOG_WARN, "xdg-open cannot be started (%s); open '%s' yourself",
                   strerror(failed), path);
        return;
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        rlhf__logf(env->log, RLHF_LOG_WARN, "xdg-open found no browser; open '%s' yourself", path);
}

static rlhf_status print_json(const struct rlhf__report_data *data, struct rlhf__error *err) {
    fwrite(data->json.data, 1, data->json.len, stdout);
    putchar('\n');
    return rlhf__print_flush(err);
}

static rlhf_status print_done(const struct rlhf__report_data *data, const char *path,
                              struct rlhf__error *err) {
    struct rlhf__buf said = RLHF__BUF_INIT;
    rlhf__put_printable(&said, data->said, strlen(data->said), "");
    char shown[RLHF__PATH_CAP];
    printf("%s\n%s\n", rlhf__buf_text(&said), rlhf__printable(path, shown, sizeof shown));
    rlhf__buf_finish(&said);
    return rlhf__print_flush(err);
}

static rlhf_status report(const struct rlhf__env *env, const struct options *o,
                          const struct rlhf__flag_list *runs, struct rlhf__error *err) {
    struct rlhf__report_data data = {0};
    char path[RLHF__PATH_CAP];
    if (o->out)
        rlhf__path_put(path, "%s", o->out);
    else if (runs->n == 1)
        rlhf__path_put(path, "%s/" NAME, runs->item[0]);
    else
        rlhf__path_put(path, "%s", NAME);
    rlhf_status st = o->out ? rlhf__page_file_check("report", path, err) : RLHF_OK;
    rlhf__signals_at_once(1);
    if (st == RLHF_OK && rlhf__report_data_make(runs->item, runs->n, &data, err) < 0)
        st = rlhf__error_context(err, "report");
    rlhf__signals_at_once(0); // no page is left half-written
    if (st == RLHF_OK && !o->json && !o->out) st = rlhf__page_file_check("report", path, err);
    if (st == RLHF_OK && o->json) st = print_json(&data, err);
    if (st == RLHF_OK && !o->json) {
        st = write_page(&data, path, err);
        if (st == RLHF_OK) st = print_done(&data, path, err);
        if (st == RLHF_OK && o->open) open_page(env, path);
    }
    rlhf__report_data_finish(&data);
    return st;
}

int rlhf__cmd_report(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct rlhf__flag_list runs = {0};
    struct options o = {0};
    if (rlhf__flags_helped(flags, N_FLAGS, "rlhf-host report RUN... [--out FILE] [flags]", argc,
                           argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, &runs, &err);
    const struct rlhf__flag_idle idle[] = {{"--out", o.out != NULL}, {"--open", o.open}};
    if (st == RLHF_OK && runs.n == 0)
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "report: give the directory of a run, as in report RUN");
    if (st == RLHF_OK && o.json) st = rlhf__flags_idle(idle, 2, "report", "with --json", &err);
    if (st == RLHF_OK) st = report(env, &o, &runs, &err);
    free(runs.item);
    return rlhf__cmd_end(env, st, &err);
}

// ---- at the end of a run ----

void rlhf__report_after_run(const struct rlhf__env *env, const char *run) {
    struct rlhf__report_data data = {0};
    struct rlhf__error err = {0, ""};
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/" NAME, run);
    rlhf_status st = rlhf__page_file_check("report", path, &err);
    if (st == RLHF_OK) st = rlhf__report_data_make(&run, 1, &data, &err);
    if (st == RLHF_OK) st = write_page(&data, path, &err);
    if (st < 0) rlhf__logf(env->log, RLHF_LOG_WARN, "the report was not written: %s", err.text);
    rlhf__report_data_finish(&data);
}
