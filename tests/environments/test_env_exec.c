// test_env_exec.c: tests env_exec.so with programs that are its environment. Plays whole episodes,
// and injects every kind of fault at every call. After a fault, env_exec.so replays the episodes,
// which must be the same.
#include "environments/play.h"

#include <rlhf/draft/program.h>

#include <math.h>

#include <unistd.h>

static struct play p;
static const uint64_t both[] = {0, 1};
static const char *const row = "{\"x\": \"!\"}";

// The system's interpreter starts faster than a wrapper that comes first on PATH.
static const char *python(void) {
    return access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
}

static const char *command(const char *fault, int call, const char *mark) {
    static char text[900];
    snprintf(text, sizeof text, "command=%s %s/playing.py %s %d %s", python(), PLAY_SOURCE_DIR,
             fault, call, mark);
    return text;
}

static void open_it(const char *options) {
    if (play_open(&p, "env_exec.so", options) < 0) fail_msg("%s", p.host.fail_text);
}

static void episodes(void **state) {
    (void)state;
    char options[900];
    snprintf(options, sizeof options, "command=%s %s/playing.py", python(), PLAY_SOURCE_DIR);
    open_it(options);
    assert_non_null(strstr(p.ops->tools(p.self), "\"name\":\"add\""));
    assert_int_equal(play_reset(&p, 2, both, row), RLHF_OK);
    assert_string_equal(p.said[0], "user: from 0, P!|");
    assert_string_equal(p.said[1], "user: from 2, P!|"); // 2^29 % 3
    const char *const first[] = {"3", "9"};
    assert_int_equal(play_step(&p, 2, both, first, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: 3|");
    assert_string_equal(p.said[1], "");
    assert_int_equal(p.end[0], RLHF_EPISODE_OPEN);
    assert_int_equal(p.end[1], RLHF_EPISODE_DONE);
    assert_int_equal(p.verdict[1], RLHF_VERDICT_RIGHT);
    assert_true(p.reward[0] == 1.5f && p.reward[1] == 5.5f);
    assert_true(p.metric[0] == 3 && p.metric[1] == 11);
    const char *const tool[] = {"{\"by\":2}"};
    assert_int_equal(play_step(&p, 1, both, tool, "add"), RLHF_OK);
    assert_string_equal(p.said[0], "tool: {\"by\": 2}|");
    assert_int_equal(play_finish(&p, 1, both, RLHF_EPISODE_TURNS), RLHF_OK);
    assert_true(p.reward[0] == 100);
    play_end(&p, 2, both);
    assert_int_equal(play_reset(&p, 1, both, NULL), RLHF_OK); // the episode's number is free again
    assert_string_equal(p.said[0], "user: from 0, P|");
    const char *const up[] = {"up"};
    assert_int_equal(play_step(&p, 1, both, up, NULL), RLHF_OK);
    assert_int_equal(p.failed[0], 1);
    play_close(&p);
}

static void kinds_of_rewards(void **state) {
    (void)state;
    static const struct {
        const char *turn;
        double reward;
    } all[] = {{"pay true", 1}, {"pay false", 0}, {"pay null", NAN}, {"pay -0.5", -0.5}};
    static const char *const bad[] = {"pay \"1\"", "pay [1]"};
    char options[900];
    snprintf(options, sizeof options, "command=%s %s/playing.py", python(), PLAY_SOURCE_DIR);
    open_it(options);
    assert_int_equal(play_reset(&p, 1, both, row), RLHF_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(play_step(&p, 1, both, &all[i].turn, NULL), RLHF_OK);
        const double paid = (double)p.reward[0];
        if (paid != all[i].reward && !(isnan(paid) && isnan(all[i].reward)))
            fail_msg("%s: %g", all[i].turn, paid);
    }
    play_close(&p);
    for (int i = 0; i < 2; i++) {
        open_it(options);
        assert_int_equal(play_reset(&p, 1, both, row), RLHF_OK);
        assert_int_equal(play_step(&p, 1, both, &bad[i], NULL), RLHF_E_IO);
        assert_non_null(
            strstr(p.host.fail_text, "\"reward\" is not a number, true, false or null"));
        play_close(&p);
    }
}

// Plays both episodes to their end, as the host does: a failed episode is closed and replayed from
// its reset. Returns the number of failures, and writes the answers and rewards to `out`.
static int play_all(char out[400]) {
    static const char *const turns[] = {"4", "1", "9"};
    int at[] = {-1, -1}, failures = 0; // turns taken; -1: to be reset
    char log[2][200];
    while (at[0] < 3 || at[1] < 3) {
        for (int k = 0; k < 2; k++) { // in separate calls, while the other episode is open
            const uint64_t which[] = {(uint64_t)k};
            if (at[k] == 3) continue;
            if (at[k] < 0) log[k][0] = 0;
            const rlhf_status st = at[k] < 0 ? play_reset(&p, 1, which, row)
                                             : play_step(&p, 1, which, &turns[at[k]], NULL);
            if (st < 0 || p.failed[k]) {
                assert_true(st < 0 || p.failed[k]);
                play_end(&p, 1, which);
                assert_true(++failures < 20);
                at[k] = -1;
                continue;
            }
            const size_t n = strlen(log[k]);
            snprintf(log[k] + n, sizeof log[k] - n, "%s%g/%d ", p.said[k], (double)p.reward[k],
                     (int)p.end[k]);
            at[k]++;
        }
    }
    play_end(&p, 2, both);
    snprintf(out, 400, "%s\n%s", log[0], log[1]);
    return failures;
}

static void faults(void **state) {
    (void)state;
    static const struct {
        const char *name, *why;
    } all[] = {{"hang", "did not answer within 3 s"},
               {"crash", "was ended by signal 11"},
               {"exit", "ended with status 1"},
               {"nonsense", "\"}{\": it is not a JSON object"},
               {"huge", "the line is longer than 4 MiB"},
               {"late", "did not answer within"},
               {"twice", "episode"},
               {"other", "it is of an episode that was not asked"},
               {"unknown", "\"score\" is not a member of an answer to"},
               {"close", "closed its standard output"}};
    char good[400], mark[64] = "/tmp/rlhf-play-XXXXXX", options[900];
    snprintf(options, sizeof options, "command=%s %s/playing.py", python(), PLAY_SOURCE_DIR);
    open_it(options);
    assert_int_equal(play_all(good), 0);
    play_close(&p);
    assert_non_null(mkdtemp(mark));
    strcat(mark, "/m");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int slow = strcmp(all[i].name, "hang") == 0 || strcmp(all[i].name, "late") == 0 ||
                         strcmp(all[i].name, "close") == 0;
        for (int call = slow ? 3 : 1; call <= 8; call += slow ? 8 : 3) {
            char got[400];
            unlink(mark);
            open_it(command(all[i].name, call, mark));
            p.host.limits.timeout_s = slow ? 3 : 60;
            rlhf_test_offer(&p.host, RLHF_SVC_LIMITS, &p.host.limits);
            const int failures = play_all(got);
            // A second answer may come too late for its call. After the last call it does no harm.
            if (!failures && strcmp(all[i].name, "twice") == 0 && call == 8) {
                play_close(&p);
                continue;
            }
            if (!failures) fail_msg("%s at call %d: no failure", all[i].name, call);
            if (!strstr(p.host.fail_text, all[i].why))
                fail_msg("%s at call %d: \"%s\"", all[i].name, call, p.host.fail_text);
            assert_string_equal(got, good);
            play_close(&p);
        }
    }
    unlink(mark);
    mark[strlen(mark) - 2] = 0;
    rmdir(mark);
}

// Numbers of an answer are doubles, also if they are integers beyond 64 bits.
static void large_numbers(void **state) {
    (void)state;
    static const uint64_t one[] = {0};
    static const struct {
        const char *reward;
        double is;
    } all[] = {{"123456789012345678901234567890", 123456789012345678901234567890.0},
               {"-18446744073709551616", -0x1p64},
               {"1e309", NAN}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char options[600];
        snprintf(
            options, sizeof options,
            "command=sh -c 'echo {} && read -r a && echo '\\''{\"episode\":0,\"say\":\"x\"}'\\'' "
            "&& read -r a && echo '\\''{\"episode\":0,\"reward\":%s,\"metrics\":{\"big\":%s},"
            "\"done\":true}'\\'' && read -r a'",
            all[i].reward, all[i].reward);
        open_it(options);
        assert_int_equal(play_reset(&p, 1, one, row), RLHF_OK);
        const rlhf_status st = play_step(&p, 1, one, NULL, NULL);
        if (isnan(all[i].is)) {
            assert_true(st < 0 || p.failed[0]);
            assert_non_null(strstr(p.host.fail_text, "it has a number beyond 1e308"));
        } else {
            assert_int_equal(st, RLHF_OK);
            assert_true(p.reward[0] == (float)all[i].is && p.metric[0] == all[i].is);
        }
        play_close(&p);
    }
}

// The options of a program whose first line is `first`. It answers a reset with `reset`, and a turn
// with `step`; all three are formats of printf.
static const char *script(const char *first, const char *reset, const char *step) {
    static char text[900];
    snprintf(text, sizeof text,
             "command=sh -c 'printf '\\''%s'\\'' && read -r a && printf '\\''%s'\\'' && read -r a "
             "&& printf '\\''%s'\\'' && cat'",
             first, reset, step);
    return text;
}

// An end or a verdict that an episode cannot have is refused where the line is read. The message
// names the program, the member and what is allowed.
static void ends_and_verdicts(void **state) {
    (void)state;
    static const char said[] = "{\"episode\":0,\"say\":\"x\"}\\n";
    static const struct {
        const char *reset, *step, *why; // why: NULL if the answer is allowed
    } all[] = {
        {said, "{\"episode\":0,\"say\":\"y\",\"verdict\":\"right\"}\\n",
         "\"verdict\" is only allowed with \"done\": true or \"truncated\": true, or in an answer "
         "to finish"},
        {said, "{\"episode\":0,\"say\":\"y\",\"verdict\":false,\"done\":false}\\n",
         "\"verdict\" is only allowed with"},
        {"{\"episode\":0,\"verdict\":\"wrong\"}\\n", "", "\"verdict\" is only allowed with"},
        {"{\"episode\":0,\"done\":true}\\n", "",
         "\"done\" is true in an answer to reset, but an episode cannot end before its first turn"},
        {"{\"episode\":0,\"truncated\":true}\\n", "",
         "\"truncated\" is true in an answer to reset"},
        {said, "{\"episode\":0,\"verdict\":\"wrong\",\"truncated\":true}\\n", NULL},
        {said, "{\"episode\":0,\"say\":\"y\",\"verdict\":null}\\n", NULL},
        {said, "{\"episode\":0,\"failed\":\"no\",\"verdict\":\"right\"}\\n", NULL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        open_it(script("{}\\n", all[i].reset, all[i].step));
        rlhf_status st = play_reset(&p, 1, both, NULL);
        if (*all[i].step) {
            assert_int_equal(st, RLHF_OK);
            st = play_step(&p, 1, both, NULL, NULL);
        }
        assert_int_equal(st, all[i].why ? RLHF_E_IO : RLHF_OK);
        if (all[i].why && (strncmp(p.host.fail_text, "sh answered to ", 15) != 0 ||
                           !strstr(p.host.fail_text, all[i].why)))
            fail_msg("case %zu: \"%s\"", i, p.host.fail_text);
        play_close(&p);
    }
}

// Bytes after the last line of an answer may be a line whose end never comes. The call does not
// wait for it.
static void bytes_after_the_answer(void **state) {
    (void)state;
    static const char said[] = "{\"episode\":0,\"say\":\"x\"}\\n";
    char more[64];
    snprintf(more, sizeof more, "%smore", said);
    open_it(script("{}\\n", said, more));
    p.host.limits.timeout_s = 20;
    rlhf_test_offer(&p.host, RLHF_SVC_LIMITS, &p.host.limits);
    assert_int_equal(play_reset(&p, 1, both, NULL), RLHF_OK);
    assert_int_equal(play_step(&p, 1, both, NULL, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: x|"); // the answer itself is whole
    assert_non_null(strstr(p.host.fail_text, "\"more\": all episodes were answered already"));
    play_close(&p);
    assert_int_equal(play_open(&p, "env_exec.so", script("{}\\nmore", "", "")), RLHF_E_INVALID);
    assert_non_null(strstr(p.host.fail_text, "\"more\": after its first line, the program must "
                                             "wait for a request"));
    play_close(&p);
}

static void first_lines(void **state) {
    (void)state;
    static const struct {
        const char *line, *why;
    } all[] = {{"x", "the first line is not a JSON object"},
               {"{\"tools\":[12345678901234567890]}", "the first line has an integer beyond 64"},
               {"{\"tool\":[]}", "the first line has \"tool\"; allowed: \"tools\""},
               {"{\"tools\":[3]}", "tool 0 is not {\"type\""},
               {"{\"tools\":3}", "\"tools\" is not a list"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char options[200];
        snprintf(options, sizeof options, "command=echo '%s'", all[i].line);
        assert_int_equal(play_open(&p, "env_exec.so", options), RLHF_E_INVALID);
        if (!strstr(p.host.fail_text, all[i].why))
            fail_msg("\"%s\" is not in \"%s\"", all[i].why, p.host.fail_text);
        play_close(&p);
    }
}

// A program may promise that its answers depend only on the episode.
static void promises(void **state) {
    (void)state;
    static const char *const lines[] = {"{}", "{\"function\":false}", "{\"function\":true}"};
    for (size_t i = 0; i < 3; i++) {
        char options[200];
        snprintf(options, sizeof options, "command=sh -c 'echo '\\''%s'\\'' && cat'", lines[i]);
        assert_int_equal(play_open(&p, "env_exec.so", options), RLHF_OK);
        assert_int_equal(p.ops->flags & RLHF_ENVIRONMENT_FUNCTION, 0);
        const rlhf_program_use *use = p.plugin->extension(p.self, RLHF_EXT_PROGRAM);
        assert_int_equal(use->function, i == 2);
        play_close(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(episodes),          cmocka_unit_test(kinds_of_rewards),
        cmocka_unit_test(large_numbers),     cmocka_unit_test(first_lines),
        cmocka_unit_test(promises),          cmocka_unit_test(faults),
        cmocka_unit_test(ends_and_verdicts), cmocka_unit_test(bytes_after_the_answer)};
    return cmocka_run_group_tests_name("env_exec", tests, NULL, NULL);
}
