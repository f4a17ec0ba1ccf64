// test_progress.c: plain lines in a file, and the bar on a terminal (here a pseudo-terminal).
#include "support/check.h"

#include "report/progress.h"

#include <jansson.h>
#include <math.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(int32_t kind, struct rlhf__log *log) {
    struct rlhf__error err;
    struct rlhf__progress *p;
    if (rlhf__progress_open(kind, log, &p, &err) < 0) return;
    struct rlhf__progress_state s = {.phase = 10,
                                     .phases = 20,
                                     .label = "reward",
                                     .kl = NAN,
                                     .tokens_per_s = NAN,
                                     .first_phase = 10,
                                     .judge = NAN,
                                     .accuracy = NAN};
    rlhf__progress_phase(p, &s); // before the first phase of this process ends
    s.phase = 11, s.value = 0.5, s.kl = 1.25, s.tokens_per_s = 5210.4, s.seconds = 8;
    rlhf__progress_phase(p, &s);
    rlhf__progress_note(p, "rollout");
    rlhf__logf(log, RLHF_LOG_INFO, "a line");
    s.phase = 20, s.value = 0.75, s.kl = NAN, s.tokens_per_s = NAN, s.seconds = 3700;
    s.judge = 0.25, s.accuracy = 0.875, s.failures = 3, s.retries = 2;
    rlhf__progress_phase(p, &s);
    rlhf__progress_close(p);
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

// Removes the time "HH:MM:SS " from every line. If midnight has passed, a line also has the date in
// front of the time, which is removed, too. Fails the test if a line lacks its time.
static void skip_times(char *text) {
    char *to = text;
    for (const char *line = text; *line;) {
        int digits = (int)strspn(line, "0123456789-");
        if (digits == 10) line += 11;
        assert_true(line[2] == ':' && line[5] == ':' && line[8] == ' ');
        size_t n = strcspn(line + 9, "\n") + 1;
        memmove(to, line + 9, n);
        to += n;
        line += 9 + n;
    }
    *to = '\0';
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
    skip_times(out);
    assert_string_equal(out, "phase 11/20  reward 0.5000  kl 1.250  5210 tok/s  "
                             "elapsed 0:08  ETA 1:12\n"
                             "phase 20/20  reward 0.7500  judge 0.2500  accuracy 0.8750  failures "
                             "3  retries 2  elapsed 1:01:40\n");
}

// Runs `f` with a log in a child whose output goes to a terminal. Returns the terminal's output.
static void in_terminal(int no_color, unsigned short columns, void (*f)(struct rlhf__log *log),
                        char *out, size_t cap) {
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
        f(&log);
        _exit(0);
    }
    read_all(master, out, cap);
    close(master);
    waitpid(pid, NULL, 0);
}

static void show_auto(struct rlhf__log *log) { show(RLHF__PROGRESS_AUTO, log); }

static void on_a_terminal(int no_color, unsigned short columns, char *out, size_t cap) {
    in_terminal(no_color, columns, show_auto, out, cap);
}

static void a_bar_on_a_terminal(void **state) {
    (void)state;
    char out[4096];
    on_a_terminal(1, 100, out, sizeof out);
    assert_null(strstr(out, "\033[3")); // NO_COLOR
    // Before the first phase, the bar shows the step of the run, without numbers.
    assert_non_null(strstr(out, "\r\033[K━━━━━━━━━━━━             10/20\r\033[K"));
    // 11 of 20 phases of a bar of 24 columns.
    assert_non_null(strstr(out, "\r\033[K━━━━━━━━━━━━━            11/20  reward 0.5000  kl 1.250  "
                                "5210 tok/s  ETA 1:12  rollout"));
    // The log line removes the bar first and restores it afterwards.
    const char *line = strstr(out, "a line\r\n");
    assert_non_null(line);
    const char *erase = NULL;
    for (const char *at = strstr(out, "\r\033[K"); at && at < line; at = strstr(at + 1, "\r\033[K"))
        erase = at;
    assert_non_null(erase);
    assert_true(line - erase < 31); // date and time
    assert_non_null(strstr(line, "11/20"));
    assert_non_null(strstr(line, "━━━━━━━━━━━━━━━━━━━━━━━━ 20/20  reward 0.7500  judge 0.2500  "
                                 "accuracy 0.8750  failures 3  retries 2\r\n"));
    on_a_terminal(0, 100, out, sizeof out);
    assert_non_null(strstr(out, "\033[32m"));
}

static void a_narrow_terminal_has_a_short_bar(void **state) {
    (void)state;
    char out[4096];
    on_a_terminal(1, 80, out, sizeof out);
    assert_non_null(strstr(out, "\r\033[K━━━━━      11/20  reward 0.5000  kl 1.250  ETA 1:12  "
                                "rollout\r"));
    on_a_terminal(1, 53, out, sizeof out); // the line is cut to the terminal
    assert_non_null(strstr(out, "\r\033[K━━━    11/20  reward 0.5000  ETA 1:12  rollout\r"));
    on_a_terminal(1, 30, out, sizeof out); // the time left and the stage are dropped last
    assert_non_null(strstr(out, "\r\033[K 11/20  ETA 1:12  rollout\r"));
}

static void show_arithmetic(struct rlhf__log *log) {
    struct rlhf__error err;
    struct rlhf__progress *p;
    if (rlhf__progress_open(RLHF__PROGRESS_AUTO, log, &p, &err) < 0) return;
    struct rlhf__progress_state s = {.phase = 26,
                                     .phases = 200,
                                     .label = "reward",
                                     .value = 0.7617,
                                     .accuracy = 0.7617,
                                     .kl = 0.387,
                                     .judge = NAN,
                                     .tokens_per_s = 5436,
                                     .seconds = 26};
    rlhf__progress_phase(p, &s);
    rlhf__progress_step(p, "rollout", 128, 512);
    rlhf__progress_close(p);
}

// If the line is too long, repeated information is dropped first, then the speed.
static void what_repeats_makes_room(void **state) {
    (void)state;
    char out[4096];
    in_terminal(1, 80, show_arithmetic, out, sizeof out);
    assert_non_null(strstr(out, " 26/200  reward 0.7617  kl 0.387  ETA 2:54  rollout 128/512\r"));
    in_terminal(1, 110, show_arithmetic, out, sizeof out);
    assert_non_null(strstr(out, " 26/200  reward 0.7617  kl 0.387  5436 tok/s  ETA 2:54  rollout "
                                "128/512\r"));
    in_terminal(1, 140, show_arithmetic, out, sizeof out);
    assert_non_null(strstr(out, " 26/200  reward 0.7617  accuracy 0.7617  kl 0.387  5436 tok/s  "
                                "ETA 2:54  rollout 128/512\r"));
}

static void set_columns(unsigned short columns) {
    struct winsize size = {24, columns, 0, 0};
    ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
}

// First a bar of 78 columns, then terminals of 50, 20 and 100 columns.
static void draw_while_it_shrinks(struct rlhf__log *log) {
    struct rlhf__error err;
    struct rlhf__progress *p;
    if (rlhf__progress_open(RLHF__PROGRESS_AUTO, log, &p, &err) < 0) return;
    struct rlhf__progress_state s = {.phase = 11,
                                     .phases = 20,
                                     .label = "reward",
                                     .value = 0.5,
                                     .kl = 1.25,
                                     .tokens_per_s = 5210.4,
                                     .seconds = 8,
                                     .first_phase = 10,
                                     .judge = NAN,
                                     .accuracy = NAN};
    rlhf__progress_phase(p, &s);
    rlhf__progress_note(p, "one");
    set_columns(50);
    rlhf__progress_note(p, "two");
    set_columns(30);
    rlhf__logf(log, RLHF_LOG_INFO, "a line");
    set_columns(100);
    rlhf__progress_note(p, "three");
    rlhf__progress_close(p);
}

// When a terminal became narrower, it wrapped the bar. So all lines of the bar are removed.
static void a_terminal_that_shrinks(void **state) {
    (void)state;
    char out[4096];
    in_terminal(1, 100, draw_while_it_shrinks, out, sizeof out);
    const char *one = strstr(out, "ETA 1:12  one"), *two, *line, *three;
    assert_non_null(one);
    two = strstr(one, "\r\033[1A\033[J"); // 24 + 58 columns on 50 are 2 lines
    assert_non_null(two);
    assert_non_null(strstr(two, "11/20  reward"));
    line = strstr(two + 1, "\r\033[1A\033[J"); // 36 columns on 30 are 2 lines
    assert_non_null(line);
    assert_non_null(strstr(line, "a line\r\n\r\033[K"));
    three = strstr(line, "three");
    assert_non_null(three);
    assert_null(strstr(strstr(line, "a line"), "A\033[J")); // the terminal is wider: not wrapped
}

static void load_and_work(struct rlhf__log *log) {
    struct rlhf__error err;
    struct rlhf__progress *p;
    if (rlhf__progress_open(RLHF__PROGRESS_AUTO, log, &p, &err) < 0) return;
    rlhf__progress_note(p, "loading the policy");
    const struct rlhf__watch *w = rlhf__progress_watch(p);
    rlhf__watch_seen(w, "reading rows", 4096, 0);
    rlhf__logf(log, RLHF_LOG_INFO, "a line");
    struct rlhf__progress_state s = {
        .phases = 20, .kl = NAN, .tokens_per_s = NAN, .judge = NAN, .accuracy = NAN};
    rlhf__progress_phase(p, &s);
    rlhf__watch_seen(w, "rollout", 3, 8);
    for (int i = 4; i < 8; i++)
        rlhf__watch_seen(w, "rollout", i, 8); // all at once: not displayed
    rlhf__watch_seen(w, "reward imdb", 0, 0);
    rlhf__progress_close(p);
}

static void only_load(struct rlhf__log *log) {
    struct rlhf__error err;
    struct rlhf__progress *p;
    if (rlhf__progress_open(RLHF__PROGRESS_AUTO, log, &p, &err) < 0) return;
    rlhf__progress_note(p, "loading the policy");
    rlhf__progress_close(p);
    rlhf__log_error(log, "no such model");
}

// Before the first phase and within one, the screen shows the current step.
static void a_long_wait_is_never_silent(void **state) {
    (void)state;
    char out[4096];
    in_terminal(1, 100, load_and_work, out, sizeof out);
    assert_non_null(strstr(out, "\r\033[Kloading the policy"));
    assert_non_null(strstr(out, "\r\033[Kreading rows 4096\r\033[K"));
    assert_non_null(strstr(out, "a line\r\n\r\033[Kreading rows 4096"));
    assert_non_null(strstr(out, " 0/20  rollout 3/8\r\033[K"));
    assert_null(strstr(out, "rollout 5/8"));
    assert_non_null(strstr(out, " 0/20  reward imdb"));
    // Without a bar, a note leaves nothing on the screen.
    in_terminal(1, 100, only_load, out, sizeof out);
    assert_non_null(strstr(out, "loading the policy\r\033[Krlhf-host: error: no such model"));
}

// Each line of the log is a JSON object, and the terminal gets nothing else.
static void json_has_objects_for_phases(void **state) {
    (void)state;
    char *text = NULL, out[64];
    size_t n = 0;
    struct rlhf__log log;
    rlhf__log_init(&log);
    log.out = open_memstream(&text, &n);
    log.json = 1;
    int fd[2], was = dup(STDOUT_FILENO);
    assert_int_equal(pipe(fd), 0);
    fflush(stdout);
    dup2(fd[1], STDOUT_FILENO);
    show(RLHF__PROGRESS_AUTO, &log);
    rlhf__log_error(&log, "it \"failed\"\n\033[31m");
    fflush(stdout);
    dup2(was, STDOUT_FILENO);
    close(was);
    close(fd[1]);
    assert_int_equal(read_all(fd[0], out, sizeof out), 0);
    close(fd[0]);
    fclose(log.out);
    json_t *row[4];
    const char *at = text;
    for (int i = 0; i < 4; i++, at = strchr(at, '\n') + 1) {
        row[i] = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
        if (!row[i]) fail_msg("no JSON: %s", at);
        const char *when = json_string_value(json_object_get(row[i], "time"));
        assert_true(when && strlen(when) == 24 && when[10] == 'T' && when[23] == 'Z');
    }
    assert_int_equal(*at, 0);
    double kl = 0;
    const char *event = NULL, *level = NULL, *message = NULL;
    json_int_t phase = 0, phases = 0;
    assert_int_equal(json_unpack(row[0], "{s:s, s:I, s:I, s:F}", "event", &event, "phase", &phase,
                                 "phases", &phases, "kl", &kl),
                     0);
    assert_string_equal(event, "phase");
    assert_true(phase == 11 && phases == 20 && kl == 1.25);
    assert_int_equal(json_unpack(row[1], "{s:s, s:s, s:s}", "event", &event, "level", &level,
                                 "message", &message),
                     0);
    assert_string_equal(event, "log");
    assert_string_equal(level, "info");
    assert_string_equal(message, "a line");
    assert_null(json_object_get(row[2], "kl")); // not measured
    assert_string_equal(json_string_value(json_object_get(row[3], "level")), "error");
    assert_string_equal(json_string_value(json_object_get(row[3], "message")),
                        "it \"failed\"\n\033[31m");
    for (int i = 0; i < 4; i++)
        json_decref(row[i]);
    free(text);
    rlhf__log_finish(&log);
}

// The first line of a day has the date.
static void the_date_once_a_day(void **state) {
    (void)state;
    char *text = NULL, when[32];
    size_t n = 0;
    struct rlhf__log log;
    rlhf__log_init(&log);
    log.color = 0;
    log.out = open_memstream(&text, &n);
    rlhf__logf(&log, RLHF_LOG_INFO, "one");
    int32_t day = log.day;
    rlhf__logf(&log, RLHF_LOG_INFO, "two");
    int same = log.day == day; // unless the test runs at midnight
    fclose(log.out);
    assert_true(text[4] == '-' && text[7] == '-' && text[10] == ' ' && text[13] == ':');
    assert_non_null(strstr(text, " one\n"));
    const char *second = strchr(text, '\n') + 1;
    if (same)
        assert_true(second[2] == ':' && second[5] == ':' && strcmp(second + 8, " two\n") == 0);
    day = 0;
    assert_int_equal(strlen(rlhf__clock_text(&day, when)), 19);
    assert_true(day != 0);
    free(text);
    rlhf__log_finish(&log);
}

static const char go_on[] = "rlhf-host --resume runs/ppo-20261123-1 --set "
                            "reward.0.file=/home/somebody/rewards/mine.py --set "
                            "'run.note=a b'";

static void say_command(struct rlhf__log *log) {
    rlhf__log_command(log, "2 phases are kept; go on:", go_on);
}

// A command is printed on one separate line without breaks, so that it can be copied.
static void a_command_is_not_broken(void **state) {
    (void)state;
    char out[1024], want[512];
    in_terminal(1, 60, say_command, out, sizeof out);
    snprintf(want, sizeof want, "2 phases are kept; go on:\r\n%s\r\n", go_on);
    if (!strstr(out, want)) fail_msg("%s", out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_lines_without_a_terminal),
        cmocka_unit_test(a_bar_on_a_terminal),
        cmocka_unit_test(a_narrow_terminal_has_a_short_bar),
        cmocka_unit_test(what_repeats_makes_room),
        cmocka_unit_test(a_terminal_that_shrinks),
        cmocka_unit_test(a_long_wait_is_never_silent),
        cmocka_unit_test(a_command_is_not_broken),
        cmocka_unit_test(json_has_objects_for_phases),
        cmocka_unit_test(the_date_once_a_day),
    };
    return cmocka_run_group_tests_name("report_progress", tests, NULL, NULL);
}
