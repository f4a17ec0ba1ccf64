// test_e2e_progress.c: the output of a run while it works: on a terminal, as lines, and as JSON.
#include "e2e.h"

#include <stdlib.h>
#include <string.h>

#define PPO                                                                                        \
    "--algo ppo.so --reward period_count.so --policy model --set policy.init=random "              \
    "--prompts prompts.txt --set batch.size=8 --set sampling.max_new_tokens=8 --threads 1 "

static void a_terminal_shows_every_step(void **state) {
    struct e2e *t = *state;
    static const char *const steps[] = {"\r\033[Kloading the policy",
                                        "\r\033[Kloading the reference",
                                        "\r\033[Kloading period_count.so",
                                        "\r\033[Kchecking",
                                        " 0/2  rollout 1/8",
                                        " 0/2  reward period_count",
                                        " 0/2  reference 8/8",
                                        " 0/2  values 8/8",
                                        " 0/2  update 2/16",
                                        " 1/2  reward "};
    assert_int_equal(e2e_terminal(t, 120,
                                  "\"$HOST\" " PPO "--algo ppo.so:epochs=2,minibatches=4 "
                                  "--phases 2 --out a"),
                     0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        e2e_says(t, steps[i]);
    assert_int_equal(e2e_terminal(t, 120,
                                  "\"$HOST\" --algo sft.so --policy model --set policy.init=random "
                                  "--data texts.jsonl --phases 1 --dry-run --threads 1"),
                     0);
    e2e_says(t, "\r\033[Ktokenising rows 64/64");
    // A failure while loading leaves only its message on the screen.
    assert_int_equal(e2e_terminal(t, 120, "\"$HOST\" " PPO "--policy nowhere --out b"), 2);
    e2e_says(t, "loading the policy\r\033[Krlhf-host: error: ");
}

// Some commands only print a result. While they work, they show the current task, and then remove
// it from the screen.
static void other_commands_say_what_they_wait_for(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo sft.so --policy model --set policy.init=random --data "
                                "texts.jsonl --set run.phases=1 --out a"),
                     0);
#define M "--model a/checkpoints/latest "
    assert_int_equal(e2e_terminal(t, 120, "\"$HOST\" eval " M "--data texts.jsonl --json"), 0);
    e2e_says(t, "\r\033[Kloading the model");
    e2e_says(t, "\r\033[Kmeasuring the rows\r\033[K{\"model\"");
    assert_int_equal(e2e_terminal(t, 120,
                                  "\"$HOST\" eval " M "--data prompts.txt --n 4 --set "
                                  "sampling.max_new_tokens=4 --reward period_count.so"),
                     0);
    e2e_says(t, "\r\033[Kscoring the responses\r\033[Kreward  ");
    assert_int_equal(e2e_terminal(t, 120,
                                  "\"$HOST\" pairs " M "--prompts prompts.txt --out p.jsonl --set "
                                  "sampling.max_new_tokens=4 --judge period_count.so || true"),
                     0);
    e2e_says(t, "\r\033[Kloading the model");
    assert_int_equal(e2e_shell(t, "\"$HOST\" eval " M "--data texts.jsonl"), 0);
    assert_null(strchr(t->out, '\r'));
}

static void lines_carry_the_time(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO "--phases 2 --out a"), 0);
    assert_int_equal(e2e_shell(t, "\"$HOST\" " PPO "--phases 2 --out b 2>log | "
                                  "grep -cE '^[0-2][0-9]:[0-5][0-9]:[0-6][0-9] phase [12]/2 ' && "
                                  "grep -cE '^20[0-9]{2}-[01][0-9]-[0-3][0-9] [0-2][0-9]:' log"),
                     0);
    e2e_says(t, "2\n1\n");
}

// A run does not depend on its progress display: it succeeds even if the reader of the display goes
// away.
static void nobody_has_to_look(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t,
                               "\"$HOST\" " PPO "--phases 2 --out a 2>log >/dev/full || exit; "
                               "{ \"$HOST\" " PPO "--phases 2 --out b 2>>log; echo $? >status; } "
                               "| true; cat log status"),
                     0);
    e2e_says(t, "done after 2 of 2 phases: b\n");
    assert_string_equal(t->out + strlen(t->out) - 3, "\n0\n"); // the status
    assert_null(strstr(t->out, "error"));
    // But if a command cannot write its result, it fails.
    assert_int_equal(e2e_shell(t, "\"$HOST\" " PPO "--print-config >/dev/full"), 1);
}

static void json_is_one_object_a_line(void **state) {
    struct e2e *t = *state;
    int samples = 0, phases = 0, logs = 0;
    assert_int_equal(e2e_shell(t, "\"$HOST\" " PPO "--phases 2 --out a --set log.format=json "
                                  "--set log.samples=3 2>log >lines && test ! -s lines && cat log"),
                     0);
    for (const char *at = t->out; *at; at = strchr(at, '\n') + 1) {
        json_error_t err;
        json_t *row = json_loads(at, JSON_DISABLE_EOF_CHECK | JSON_ALLOW_NUL, &err);
        if (!row) fail_msg("no JSON: %s", at);
        const char *event = json_string_value(json_object_get(row, "event"));
        samples += strcmp(event, "sample") == 0 && json_object_get(row, "response") != NULL;
        phases += strcmp(event, "phase") == 0 && json_object_get(row, "reward") != NULL;
        logs += strcmp(event, "log") == 0 && json_object_get(row, "message") != NULL;
        json_decref(row);
    }
    assert_int_equal(phases, 2);
    assert_true(samples >= 3 && logs >= 2);
    assert_int_equal(e2e_run(t, PPO "--set log.format=json --set log.progress=bar"), 2);
    e2e_says(t, "log.progress has no effect here: log.format is json");
    assert_int_equal(e2e_run(t, "--resume a --phases 2 --set log.format=json"), 0);
    e2e_says(t, "\"level\": \"warn\", \"message\": \"nothing to do");
}

// Without sample tables, and with rows of a file, a terminal keeps the lines of phases.
static void a_terminal_keeps_a_history(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_terminal(t, 120, "\"$HOST\" " PPO "--phases 3 --set log.samples=0 --out a"), 0);
    e2e_says(t, " phase 1/3  reward ");
    e2e_says(t, " phase 2/3  reward ");
    assert_null(strstr(t->out, " phase 3/3")); // the bar shows this, so no line does
    assert_int_equal(e2e_terminal(t, 120, "\"$HOST\" " PPO "--phases 3 --out b"), 0);
    assert_null(strstr(t->out, " phase 2/3  reward "));
    assert_int_equal(e2e_terminal(t, 120,
                                  "\"$HOST\" --algo sft.so --policy model --set policy.init=random "
                                  "--data texts.jsonl --set batch.size=2 --phases 42 --threads 1 "
                                  "--out c"),
                     0);
    e2e_says(t, " phase 1/42  loss ");
    e2e_says(t, " phase 39/42  loss ");
    assert_null(strstr(t->out, " phase 40/42"));
}

// On a terminal, a long message is broken at blanks. Elsewhere it is one line.
static void messages_are_broken_at_blanks(void **state) {
    struct e2e *t = *state;
    const char *bad = "\"$HOST\" --algo ppo.so --reward none.so";
    int lines = 0;
    assert_int_equal(e2e_shell(t, "%s", bad), 2);
    const char *whole = strstr(t->out, "rlhf-host: error: ");
    assert_non_null(whole);
    assert_true(strlen(whole) > 80);
    char *text = strdup(whole);
    assert_int_equal(e2e_terminal(t, 60, "%s", bad), 2);
    char *at = strstr(t->out, "rlhf-host: error: "), *words = text;
    assert_non_null(at);
    // The same words are in lines of at most 60 columns.
    for (char *line, *rest; (line = strtok_r(lines++ ? NULL : at, "\r\n", &rest));) {
        if (strlen(line) > 60) fail_msg("%zu columns: %s", strlen(line), line);
        for (char *word, *more = line; (word = strtok_r(NULL, " ", &more));) {
            const size_t n = strcspn(words, " \n");
            if (strlen(word) != n || strncmp(word, words, n) != 0) fail_msg("%s: %s", word, words);
            words += n + 1;
        }
    }
    assert_true(lines > 2);
    free(text);
}

#define FULL  "\"$HOST\" " PPO "--set log.progress=full "
#define ENTER "\033[?1049h"
#define LEAVE "\033[?25h\033[?1049l"

// Returns the output after the alternate screen was closed. The run must have opened and closed it
// exactly once.
static const char *after_screen(const struct e2e *t) {
    const char *enter = strstr(t->out, ENTER), *leave = strstr(t->out, LEAVE);
    if (!enter || !leave || leave < enter) fail_msg("no alternate screen in:\n%.600s", t->out);
    assert_null(strstr(enter + 1, ENTER));
    assert_null(strstr(leave + 1, LEAVE));
    return leave + strlen(LEAVE);
}

static void has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("expected \"%s\" in:\n%.600s", part, text);
}

// The whole terminal shows curves, times and samples. Log lines and tables are printed at the end.
static void the_whole_terminal(void **state) {
    struct e2e *t = *state;
    static const char *const parts[] = {"f   ppo.so  period_count.so   policy ",
                                        "phase 2/3\033[K",
                                        "   ETA 0:0",
                                        " reward ",
                                        " kl ",
                                        " per token",
                                        " grad norm ",
                                        " time ",
                                        " speed ",
                                        "no step skipped",
                                        "text of phase 2"};
    assert_int_equal(e2e_typed(t, 24, 100, NULL, 0, FULL "--phases 3 --out f"), 0);
    const char *after = after_screen(t);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        e2e_says(t, parts[i]);
    has(after, "text of phase 1"); // tables
    has(after, "text of phase 3");
    has(after, "3/3  reward "); // the bar stays
    has(after, "done after 3 of 3 phases");
}

// A smaller terminal shows the bar instead. Without a terminal, plain lines are printed.
static void no_room_for_the_whole_terminal(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_typed(t, 24, 99, NULL, 0, FULL "--phases 1 --out g"), 0);
    assert_null(strstr(t->out, ENTER));
    e2e_says(t, " 0/1  rollout ");
    assert_int_equal(e2e_typed(t, 23, 100, NULL, 0, FULL "--phases 1 --out h"), 0);
    assert_null(strstr(t->out, ENTER));
    assert_int_equal(e2e_shell(t, FULL "--phases 1 --out i"), 0);
    assert_null(strstr(t->out, "\033["));
    e2e_says(t, "phase 1/1  reward ");
    assert_int_equal(e2e_shell(t, FULL "--phases 1 --set log.format=json --out j"), 2);
    e2e_says(t, "log.progress");
}

// Ctrl-C, pressed twice, a crash and an error restore the terminal, and log lines are printed.
static void the_terminal_is_given_back(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys once[] = {{"phase 2/999", "\003"}},
                          twice[] = {{"phase 2/999", "\003\003"}};
    assert_int_equal(e2e_typed(t, 24, 100, once, 1, FULL "--phases 999 --out k"), 130);
    const char *after = after_screen(t);
    // "finishing phase 2 ...; Ctrl-C again: at once", or "stopping; press again to stop at once" if
    // the key came between two phases
    has(after, " again");
    has(after, "text of phase 1");
    has(after, "rlhf-host --resume k");
    assert_int_equal(e2e_typed(t, 24, 100, twice, 1, FULL "--phases 999 --out l"), 130);
    has(after_screen(t), "text of phase 1");
    assert_int_equal(
        e2e_typed(t, 24, 100, NULL, 0,
                  "export ASAN_OPTIONS=$ASAN_OPTIONS:handle_segv=0 "
                  "TSAN_OPTIONS=$TSAN_OPTIONS:handle_segv=0; " // so that our handler gets it first
                  FULL "--phases 9999 --out m & until [ -s m/samples.jsonl ]; do "
                  "sleep 0.1; done; sleep 0.5; kill -SEGV $!; wait $!"),
        128 + 11);
    after = after_screen(t);
    has(after, "text of phase 1");
    has(after, "segmentation fault");
}

// Long descriptions are wrapped at the terminal's width. In a pipe, each is one line. The lines
// with the plugin's file and hash are single words.
static void help_fits_the_terminal(void **state) {
    struct e2e *t = *state;
    static const char *const pages[] = {"help settings", "help reward", "plugin info grpo.so"};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        assert_int_equal(e2e_terminal(t, 72, "\"$HOST\" %s", pages[i]), 0);
        for (const char *at = t->out, *end; (end = strchr(at, '\n')); at = end + 1)
            if (end - at > 73 && strncmp(at, "  file", 6) != 0 && strncmp(at, "  sha256", 8) != 0)
                fail_msg("%s: %.*s", pages[i], (int)(end - at), at);
        assert_int_equal(
            e2e_shell(t, "\"$HOST\" %s | awk 'length($0) > 120 { n++ } END { exit !n }'", pages[i]),
            0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(help_fits_the_terminal, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_terminal_shows_every_step, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(other_commands_say_what_they_wait_for, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(lines_carry_the_time, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(nobody_has_to_look, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(json_is_one_object_a_line, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(messages_are_broken_at_blanks, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_terminal_keeps_a_history, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_whole_terminal, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(no_room_for_the_whole_terminal, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_terminal_is_given_back, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_progress", tests, NULL, NULL);
}
