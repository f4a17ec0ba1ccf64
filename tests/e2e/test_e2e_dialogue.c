// test_e2e_dialogue.c: `generate` without a prompt on a terminal: texts, commands, editing, Ctrl-C.
#include "e2e.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TALK                                                                                       \
    "exec env XDG_STATE_HOME=\"$PWD/state\" \"$HOST\" generate --threads 1 --model "               \
    "s/checkpoints/latest "                                                                        \
    "--ignore-eos --max-new 6 "
#define N(keys) (sizeof keys / sizeof *keys)

static int setup(void **state) {
    int failed = e2e_setup(state);
    struct e2e *t = *state;
    return failed ? failed
                  : e2e_run(t, "--algo sft.so --policy model --data texts.jsonl --set "
                               "policy.init=random --set batch.size=8 --phases 2 --set "
                               "checkpoint.every=1 --out s");
}

static void ends(struct e2e *t, int got, int want) {
    if (got != want) fail_msg("exit status %d\n%s", got, t->out);
}

// The text is the same as with --prompt. The text's numbers are below it.
static void a_text(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys keys[] = {{"> ", "It was\n"}, {"a token)", "/quit\n"}};
    char want[512];
    assert_int_equal(e2e_terminal(t, 100, TALK "--prompt 'It was' 2>/dev/null"), 0);
    snprintf(want, sizeof want, "%.*s", (int)strcspn(t->out, "\r"), t->out);
    ends(t, e2e_typed(t, 24, 100, keys, N(keys), TALK), 0);
    e2e_says(t, "latest, ");
    e2e_says(t, "temperature 1, up to 6 tokens");
    e2e_says(t, want);
    e2e_says(t, "  6 tokens in ");
    e2e_says(t, ", log-prob -");
}

// Ctrl-D ends the dialogue. A private file keeps the typed lines, and the next session recalls them
// with the arrow key.
static void lines_are_kept(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys first[] = {{"> ", "/seed 77\n"}, {"> ", "\004"}},
                          second[] = {{"> ", "\033[A\n"}, {"> ", "\004"}};
    char path[512];
    struct stat s;
    ends(t, e2e_typed(t, 24, 100, first, N(first), TALK), 0);
    snprintf(path, sizeof path, "%s/state/rlhf-host/history", t->dir);
    void *lib = dlopen("libedit.so.2", RTLD_LAZY);
    if (!lib) {
        print_message("libedit is not installed: lines are not kept\n");
        skip();
    }
    dlclose(lib);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
    ends(t, e2e_typed(t, 24, 100, second, N(second), TALK), 0);
    e2e_says(t, "/seed 77");
    // Tab completes commands and paths.
    const struct e2e_keys tab[] = {
        {"> ", "/temp\t0.5\n"}, {"> ", "/compare s/check\t000\t1\n"}, {"compared", "\004"}};
    ends(t, e2e_typed(t, 24, 100, tab, N(tab), TALK), 0);
    e2e_says(t, "temperature 0.5, up to 6 tokens, compared with 00000");
}

// Ctrl-D during a text ends the dialogue after the text.
static void ctrl_d_in_a_text(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys keys[] = {{"> ", "/n 300\n"}, {"> ", "It was\n"}, {"\n", "\004"}};
    ends(t, e2e_typed(t, 24, 100, keys, N(keys), TALK), 0);
}

// Bad arguments lead to one sentence, and the dialogue continues.
static void bad_commands(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys keys[] = {
        {"> ", "/temprature 2\n"},          {"/help lists them", "/temperature cold\n"},
        {"found \"cold\"", "/max-new 0\n"}, {"found \"0\"", "/model nowhere\n"},
        {"nowhere", "/compare\n"},          {"DIR|off", "/greedy now\n"},
        {"no argument", "/tokens\n"},       {"no text yet", "/reward nothing.so\n"},
        {"nothing.so", "/new\n"},           {"no chat template", "/help\n"},
        {"Ctrl-C stops", "It was\n"},       {"a token)", "/quit\n"}};
    ends(t, e2e_typed(t, 24, 100, keys, N(keys), TALK), 0);
    e2e_says(t, "\"/temperature\"");
}

// With a second model, texts are in two columns, and the table of tokens has the log-probs of both.
static void two_models(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys keys[] = {{"> ", "/compare s/checkpoints/000001\n"},
                                    {"compared with 000001", "It was\n"},
                                    {", under 000001 -", "/tokens\n"},
                                    {"ratio", "/model s/checkpoints/000001\n"},
                                    {"000001, ", "/n 2\n"},
                                    {"> ", "It was\n"},
                                    {"---", "/quit\n"}};
    ends(t, e2e_typed(t, 24, 100, keys, N(keys), TALK), 0);
    e2e_says(t, "  000001           ");
}

// Ctrl-C stops a text or discards a line. It does not end the program.
static void ctrl_c(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys keys[] = {{"> ", "half a line\003"}, {"Ctrl-D or /quit", "/n 1000\n"},
                                    {"> ", "It was\n"},        {"a token)", "\003"},
                                    {"> ", "/n 1\n"},          {"> ", "The film\n"},
                                    {"a token)", "\004"}};
    ends(t, e2e_typed(t, 24, 100, keys, N(keys), TALK), 0);
    assert_null(strstr(t->out, "stopping"));
}

// A closed terminal and SIGTERM end the dialogue.
static void signals_end_it(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys keys[] = {{"> ", ""}};
    ends(t, e2e_typed(t, 24, 100, keys, N(keys), "(sleep 2; kill -TERM $$) & " TALK), 143);
}

// Control characters that a person types or a model writes are shown, not sent.
static void controls_are_shown(void **state) {
    struct e2e *t = *state;
    const struct e2e_keys keys[] = {{"> ", "a\xe2\x80\xae"
                                           "b\n"},
                                    {"a token)", "/quit\n"}};
    ends(t, e2e_typed(t, 24, 100, keys, N(keys), TALK), 0);
    e2e_says(t, "a\\u202eb");
}

// Input from a pipe or a file, and --json, do not start a dialogue.
static void only_on_terminals(void **state) {
    struct e2e *t = *state;
    ends(t, e2e_terminal(t, 100, "echo 'It was' | " TALK), 0);
    assert_null(strstr(t->out, "/help"));
    ends(t, e2e_terminal(t, 100, TALK "--json"), 0);
    e2e_says(t, "\"prompt\": \"\"");
    ends(t, e2e_terminal(t, 100, TALK ">texts.txt"), 0);
    assert_null(strstr(t->out, "/help"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text),
        cmocka_unit_test(lines_are_kept),
        cmocka_unit_test(ctrl_d_in_a_text),
        cmocka_unit_test(bad_commands),
        cmocka_unit_test(two_models),
        cmocka_unit_test(ctrl_c),
        cmocka_unit_test(signals_end_it),
        cmocka_unit_test(controls_are_shown),
        cmocka_unit_test(only_on_terminals),
    };
    return cmocka_run_group_tests(tests, setup, e2e_teardown);
}
