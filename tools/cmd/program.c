// program.c: see program.h.
#include "cmd/program.h"

#include "base/file.h"
#include "base/json.h"
#include "base/signals.h"
#include "cmd/commands.h"
#include "supervise/last_words.h"
#include "team/join.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Opens those of the descriptors 0 to 2 that are closed. Otherwise a file that is opened later
// would get the number of stdout or stderr, and would receive printed text.
static void fill_descriptors(void) {
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        int got = open("/dev/null", O_RDWR);
        if (got < 0) got = open("/", O_RDONLY | O_DIRECTORY); // any file will do
        if (got < 0) return;
    }
}

// Returns 1 if stdout is a pipe and its reader has exited, as in `rlhf-host ... | head`. Does not
// use errno, because calls after the failed write may have changed errno.
static int reader_is_gone(void) {
    struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR);
}

// Returns `status`, or 1 if `status` is 0 and writing to stdout failed. Logs the failure, unless
// stdout is a pipe and its reader has exited. Does not check progress output (report/progress.c).
static int check_output(struct rlhf__log *log, int status) {
    errno = 0;
    const int bad = fflush(stdout) != 0 || ferror(stdout), why = errno;
    if (!bad || status != 0) return status;
    struct rlhf__error err;
    rlhf__fail(&err, RLHF_E_IO, "cannot write to standard output%s%s", why ? ": " : "",
               why ? strerror(why) : "");
    if (why != EPIPE && !reader_is_gone()) rlhf__log_error(log, err.text);
    return 1;
}

// A stack that is too small would end the program with a segmentation fault. The deepest recursion,
// calls in a chat template, needs less than half of `least`.
static rlhf_status check_stack(struct rlhf__error *err) {
    const rlim_t least = (rlim_t)1024 << 10;
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= least) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the stack is limited to %llu KiB (ulimit -s), and the program needs %llu",
                      (unsigned long long)(stack.rlim_cur >> 10),
                      (unsigned long long)(least >> 10));
}

int rlhf__program(int argc, char **argv,
                  int (*work)(const struct rlhf__env *env, int argc, char **argv)) {
    struct rlhf__dirs dirs;
    struct rlhf__log log;
    struct rlhf__error err;
    int status = 1;
    rlhf__signals_install(); // first, because SIGUSR1 ends a program without a handler
    fill_descriptors();
    rlhf__json_guard_memory();
    rlhf__log_init(&log);
    rlhf__join_prepare(&log);
    rlhf__last_words_install();
    if (check_stack(&err) < 0) {
        rlhf__log_error(&log, err.text);
        status = rlhf__exit_status(err.code);
    } else if (rlhf__dirs_find(&dirs, &err) < 0) {
        rlhf__log_error(&log, err.text);
    } else {
        // This path names the running program even if its file has been replaced.
        snprintf(dirs.program, sizeof dirs.program, "/proc/self/exe");
        struct rlhf__env env = {&dirs,
                                &log,
                                rlhf__signals_flag(),
                                rlhf__signals_checkpoint(),
                                (const char *const *)argv,
                                NULL};
        status = check_output(&log, work(&env, argc, argv));
    }
    rlhf__log_finish(&log);
    return status;
}

int rlhf__program_exec(const struct rlhf__env *env, const char *name, char **argv) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/%s", env->dirs->exe, name);
    execv(path, argv);
    struct rlhf__error err;
    rlhf__fail(&err, RLHF_E_IO, "cannot start %s, which is installed with rlhf-host: %s", path,
               strerror(errno));
    rlhf__log_error(env->log, err.text);
    return rlhf__exit_status(RLHF_E_IO);
}

// ---- output ----

rlhf_status rlhf__print_flush(struct rlhf__error *err) {
    if (fflush(stdout) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "cannot write to standard output: %s", strerror(errno));
}

rlhf_status rlhf__print_json_new(json_t *v, struct rlhf__error *err) {
    if (!v) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory printing");
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__json_write(&line, v, 0);
    rlhf_status st = rlhf__buf_ok(&line, err);
    if (st == RLHF_OK) puts(rlhf__buf_text(&line));
    rlhf__buf_finish(&line);
    json_decref(v);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// ---- exit status ----

// The end of every command: rlhf__cmd_end of commands.h.

int rlhf__cmd_end(const struct rlhf__env *env, rlhf_status st, const struct rlhf__error *err) {
    int asked = env->cancelled ? *env->cancelled : 0;
    if (st == RLHF_OK) return 0;
    if (st == RLHF_E_CANCELLED && asked) return 128 + asked;
    rlhf__log_error(env->log, err->text);
    return rlhf__exit_status(st);
}
