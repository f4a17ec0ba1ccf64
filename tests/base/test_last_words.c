// test_last_words.c: the stack of fatal-signal handlers, and their messages. tests/faults tests the
// messages of the program.
#include "support/check.h"

#include "base/clock.h"
#include "base/running.h"
#include "supervise/last_words.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// Returns 0 if handlers have a separate stack that is large enough for this CPU's registers.
static int child(void) {
    stack_t own;
    rlhf__last_words_install();
    if (sigaltstack(NULL, &own) != 0 || (own.ss_flags & SS_DISABLE)) return 1;
    return own.ss_size >= 32768 && (long)own.ss_size >= sysconf(_SC_SIGSTKSZ) ? 0 : 2;
}

static void handlers_have_room(void **state) {
    int status;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void fall(int fd) {
    dup2(fd, STDERR_FILENO);
    rlhf__last_words_install();
    rlhf__last_words_json(1);
    rlhf__running_begin("reward", "the \"odd\" \\one", "score()");
    raise(SIGSEGV);
    _exit(0);
}

// If log lines are JSON, the message is JSON too. Quotes in a name are left out, so they need no
// escapes.
static void the_sentence_is_json_where_lines_are(void **state) {
    char text[512] = "";
    int ends[2], status;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) fall(ends[1]);
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0); // with sanitizers, it exits
    static const char time[] = "{\"time\": \"",
                      want[] = "Z\", \"event\": \"log\", \"level\": \"error\", \"message\": "
                               "\"reward the odd one, score(): segmentation fault\"}\n";
    assert_memory_equal(text, time, sizeof time - 1);
    assert_memory_equal(text + sizeof time - 1 + RLHF__UTC_BYTES - 2, want, sizeof want - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handlers_have_room),
        cmocka_unit_test(the_sentence_is_json_where_lines_are),
    };
    return cmocka_run_group_tests_name("base_last_words", tests, NULL, NULL);
}
