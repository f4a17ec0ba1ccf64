// test_progress.c: plain lines into a file, the bar on a terminal (a pseudo-terminal here).
#include "support/check.h"

#include "report/progress.h"

#include <math.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(int32_t kind, struct rlhf__log *log) {
    struct rlhf__error err;
    struct rlhf__progress *p;
    if (rlhf__progress_create(kind, log, &p, &err) < 0) return;
    struct rlhf__progress_state s = {10, 20, "reward", 0, NAN, NAN, 0, 10, NULL, NAN, NAN};
    rlhf__progress_phase(p, &s); // nothing done yet in this process
    s = (struct rlhf__progress_state){11, 20, "reward", 0.5, 1.25, 5210.4, 8, 10, NULL, NAN, NAN};
    rlhf__progress_phase(p, &s);
    rlhf__progress_note(p, "rollout");
    rlhf__logf(log, RLHF_LOG_INFO, "a line");
    s = (struct rlhf__progress_state){20,   20, "reward", 0.75, NAN,  NAN,
                                      3700, 10, NULL,     0.25, 0.875};
    rlhf__progress_phase(p, &s);
    rlhf__progress_destroy(p);
}

static size_t read_all(int fd, char *out, size_t cap) {
    size_t n = 0;
    for (;;) {
        ssize_t got = read(fd, out + n, cap - 1 - n);
        if (got <= 0) break; // EIO: the other end of the terminal is closed
        n += (size_t)got;
    }
    out[n] = '\0';
    return n;
}

static void plain_lines_without_a_terminal(void **state) {
    (void)state;
    int fd[2];
    char out[2048];
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fd[1], STDOUT_FILENO);
        close(fd[0]);
        close(fd[1]);
        show(RLHF__PROGRESS_AUTO, NULL);
        fflush(stdout);
        _exit(0);
    }
    close(fd[1]);
    read_all(fd[0], out, sizeof out);
    close(fd[0]);
    waitpid(pid, NULL, 0);
    assert_string_equal(
        out, "phase 11/20  reward 0.5000  kl 1.250  5210 tok/s  "
             "elapsed 0:08  ETA 1:12\n"
             "phase 20/20  reward 0.7500  judge 0.2500  accuracy 0.8750  elapsed 1:01:40\n");
}

static void on_a_terminal(int no_color, unsigned short columns, char *out, size_t cap) {
    int master;
    struct winsize size = {24, columns, 0, 0};
    pid_t pid = forkpty(&master, NULL, NULL, &size);
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlhf__log log;
        setenv("TERM", "xterm", 1);
        if (no_color)
            setenv("NO_COLOR", "1", 1);
        else
            unsetenv("NO_COLOR");
        rlhf__log_init(&log);
        show(RLHF__PROGRESS_AUTO, &log);
        _exit(0);
    }
    read_all(master, out, cap);
    close(master);
    waitpid(pid, NULL, 0);
}

static void a_bar_on_a_terminal(void **state) {
    (void)state;
    char out[4096];
    on_a_terminal(1, 100, out, sizeof out);
    assert_null(strstr(out, "\033[3")); // NO_COLOR
    // Before the first phase: where the run stands, no numbers.
    assert_non_null(strstr(out, "\r\033[K━━━━━━━━━━━━             10/20\r\033[K"));
    // 11 of 20 phases of a bar of 24 columns.
    assert_non_null(strstr(out, "\r\033[K━━━━━━━━━━━━━            11/20  reward 0.5000  kl 1.250  "
                                "5210 tok/s  ETA 1:12  rollout"));
    // The log line takes the bar off first and puts it back after.
    const char *line = strstr(out, "a line\r\n");
    assert_non_null(line);
    const char *erase = NULL;
    for (const char *at = strstr(out, "\r\033[K"); at && at < line; at = strstr(at + 1, "\r\033[K"))
        erase = at;
    assert_non_null(erase);
    assert_true(line - erase < 20);
    assert_non_null(strstr(line, "11/20"));
    assert_non_null(strstr(
        line, "━━━━━━━━━━━━━━━━━━━━━━━━ 20/20  reward 0.7500  judge 0.2500  accuracy 0.8750\r\n"));
    on_a_terminal(0, 100, out, sizeof out);
    assert_non_null(strstr(out, "\033[32m"));
}

static void a_narrow_terminal_has_a_short_bar(void **state) {
    (void)state;
    char out[4096];
    on_a_terminal(1, 80, out, sizeof out);
    assert_non_null(strstr(out, "\r\033[K━━━━━      11/20  reward 0.5000  kl 1.250  5210 tok/s  "
                                "ETA 1:12  rollout\r"));
    on_a_terminal(1, 53, out, sizeof out); // the line is cut to the terminal
    assert_non_null(strstr(out, "\r\033[K━━━    11/20  reward 0.5000  kl 1.250  5210 tok/s...\r"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lines_without_a_terminal),
        cmocka_unit_test(a_bar_on_a_terminal),
        cmocka_unit_test(a_narrow_terminal_has_a_short_bar),
    };
    return cmocka_run_group_tests_name("report_progress", tests, NULL, NULL);
}
