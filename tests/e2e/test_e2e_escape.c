// test_e2e_escape.c: texts of models, data, plugins and paths reach a terminal and the log safely:
// no control characters, no forged lines, no invalid UTF-8.
#include "e2e.h"

#include <stdlib.h>
#include <string.h>

#define PPO                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--set batch.size=8 --set sampling.max_new_tokens=4 --set run.phases=1 "
#define RUDE "--reward \"$RLHF_TEST_PLUGINS/rude_reward.so"

// Returns the number of bytes of the character at p (NUL-ended). Returns 0 for a character that
// must not reach a terminal.
static int clean_char(const unsigned char *p, const char *controls) {
    if (p[0] < 0x20 || p[0] == 0x7f) return strchr(controls, p[0]) != NULL;
    if (p[0] < 0x80) return 1;
    int more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc2 ? 1 : 0;
    if (!more || p[0] > 0xf4) return 0;
    for (int i = 1; i <= more; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    int c1 = p[0] == 0xc2 && p[1] < 0xa0;
    int bidi = p[0] == 0xe2 && p[1] == 0x80 && p[2] >= 0xaa && p[2] <= 0xae;
    return c1 || bidi ? 0 : more + 1;
}

static void assert_clean(const char *out, const char *controls) {
    const unsigned char *p = (const unsigned char *)out;
    while (*p) {
        int n = clean_char(p, controls);
        if (!n) fail_msg("byte %zu (0x%02x) in:\n%s", (size_t)((const char *)p - out), *p, out);
        p += n;
    }
}

static void plugins_cannot_write_to_the_terminal(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, PPO RUDE "\" --set log.samples_every=0 --out r"), 0);
    assert_clean(t->out, "\n");
    e2e_says(t, "rude_reward: logs \\x1b[31mred\\nerror: forged\\x9b2J\\u202eabc\\xff.\n");
    assert_int_equal(e2e_run(t, PPO RUDE ":fail=true\" --out f"), 1);
    assert_clean(t->out, "\n");
    e2e_says(t, "fails \\x1b[31mred\\nerror: forged");
    assert_int_equal(e2e_run(t, "plugin info \"$RLHF_TEST_PLUGINS/rude_reward.so\""), 0);
    assert_clean(t->out, "\n");
    e2e_says(t, "sums up \\u202eabc");
    e2e_says(t, "helps \\u202eabc");
    assert_int_equal(e2e_run(t, "plugin info --json \"$RLHF_TEST_PLUGINS/rude_reward.so\""), 0);
    assert_clean(t->out, "\n");
    const char *list = "mkdir -p rewards && cp \"$RLHF_TEST_PLUGINS/rude_reward.so\" rewards && "
                       "RLHF_PLUGIN_PATH=$PWD \"$HOST\" plugin list";
    assert_int_equal(e2e_shell(t, "%s", list), 0);
    assert_clean(t->out, "\n");
    e2e_says(t, "sums up \\u202eabc");
    assert_int_equal(e2e_shell(t, "%s --json", list), 0);
    assert_clean(t->out, "\n");
}

// A child process opens a plugin file and sends the program a description of it. A constructor in
// the file can forge this answer. A forged answer affects only the result for that file, and is
// shown escaped. The program limits how long it waits for the child and how much it reads.
static void a_constructor_answers_for_itself_alone(void **state) {
    struct e2e *t = *state;
    static const char file[] = "\"$RLHF_TEST_PLUGINS/forger.so\"";
    assert_int_equal(e2e_shell(t, "FORGE=text \"$HOST\" plugin info %s", file), 0);
    assert_string_equal(t->out, "forged \\x1b]0;title\\x07\\x1b[2Jtext\n");
    assert_int_equal(e2e_shell(t, "FORGE=text \"$HOST\" plugin info --json %s", file), 2);
    assert_clean(t->out, "\n");
    e2e_says(t, "not valid JSON");
    assert_int_equal(e2e_shell(t, "FORGE=failure \"$HOST\" plugin info %s", file), 2);
    assert_clean(t->out, "\n");
    assert_int_equal(e2e_shell(t, "FORGE=flood \"$HOST\" plugin info %s", file), 1);
    e2e_says(t, "forger.so: sent more than 16 MiB while being loaded");
    assert_int_equal(e2e_shell(t, "FORGE=many \"$HOST\" plugin check %s", file), 2);
    e2e_says(t, "forger.so: its answer is not what was asked");
    // An alarm ends a file that loads for too long. This constructor removes the alarm.
    assert_int_equal(e2e_shell(t, "FORGE=sleep timeout 60 \"$HOST\" plugin info %s", file), 1);
    e2e_says(t, "forger.so: still loading after 10 seconds");
    const char *list = "mkdir -p rewards && cp \"$RLHF_TEST_PLUGINS/forger.so\" rewards && "
                       "RLHF_PLUGIN_PATH=$PWD \"$HOST\" plugin list";
    assert_int_equal(e2e_shell(t, "export FORGE=rows; %s", list), 0);
    e2e_says(t, "org.rlhf-host.answer"); // this plugin is still listed
    e2e_says(t, "forger.so");
    assert_int_equal(
        e2e_shell(t, "export FORGE=rows; %s --json | grep -A1 '\"id\": \"forged\"'", list), 0);
    assert_int_equal(
        e2e_shell(t, "export FORGE=rows; %s --json | grep '\"path\": \"/answer.so\"'", list), 1);
    assert_int_equal(e2e_shell(t, "export FORGE=many; %s", list), 0);
    e2e_says(t, "forger.so: its answer is not what was asked");
    e2e_says(t, "org.rlhf-host.answer");
}

static void sentences_quote_what_they_found_escaped(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "rows.jsonl", "{\"text\": \"a\", \"label\": \"\\u001b[2J\\u202eb\\n\"}\n");
    const char *run = "--algo classify.so --policy model --set policy.init=random --out x ";
    assert_int_equal(e2e_run(t, "%s --data rows.jsonl --set score.labels=no,yes", run), 2);
    assert_clean(t->out, "\n");
    e2e_says(t, "\\x1b[2J\\u202eb\\n");
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" %s --data \"$(printf 'a\\033[31m\\377\\nb.jsonl')\"", run), 2);
    assert_clean(t->out, "\n");
    assert_int_equal(e2e_shell(t, "\"$HOST\" --set \"$(printf 'a\\033[31m.b\\nc=1')\""), 2);
    assert_clean(t->out, "\n");
}

static void generated_texts_are_shown_not_obeyed(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy model --set "
                                "policy.init=random --phases 1 --set batch.size=4 --out m"),
                     0);
    // A model with random weights writes every possible byte.
    const char *generate = "\"$HOST\" generate --model m/checkpoints/latest --n 8 --threads 1 "
                           "--ignore-eos --prompt \"$(printf 'a\\033[2J\\nb')\"";
    assert_int_equal(e2e_terminal(t, 80, "%s", generate), 0);
    assert_clean(t->out, "\r\n\t");
    e2e_says(t, "a\\x1b[2J\r\nb");
    assert_int_equal(e2e_terminal(t, 80, "%s --json", generate), 0);
    assert_clean(t->out, "\r\n");
    // Output to a file or a pipe has the unchanged text.
    assert_int_equal(
        e2e_shell(t, "%s > text.txt; grep -c \"$(printf 'a\\033')\" text.txt", generate), 0);
    e2e_says(t, "8");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plugins_cannot_write_to_the_terminal, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(a_constructor_answers_for_itself_alone, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(sentences_quote_what_they_found_escaped, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(generated_texts_are_shown_not_obeyed, e2e_setup,
                                        e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_escape", tests, NULL, NULL);
}
