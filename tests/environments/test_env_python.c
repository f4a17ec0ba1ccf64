// test_env_python.c: env_python.so with TRL's classes, functions as tools, and Gymnasium's
// environments.
#include "environments/play.h"

#include <math.h>

static struct play p;
static const uint64_t both[] = {0, 1};

static const char *options(const char *more) {
    static char text[900];
    snprintf(text, sizeof text, "file=%s/game.py;%s", PLAY_SOURCE_DIR, more);
    return text;
}

static void open_it(const char *more) {
    if (play_open(&p, "env_python.so", options(more)) < 0) fail_msg("%s", p.host.fail_text);
}

static void trl(void **state) {
    (void)state;
    char first[2][PLAY_SAID];
    const char *const calls[] = {"{\"by\":2}", "{\"by\":-1}"}, *const nothing[] = {"ok", "ok"};
    open_it("class=Counter");
    assert_string_equal(
        p.ops->tools(p.self),
        "[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"description\":\"Adds to the "
        "count.\",\"parameters\":{\"type\":\"object\",\"properties\":{\"by\":{\"type\":\"integer\","
        "\"description\":\"How much.\"}},\"required\":[\"by\"]},\"return\":{\"type\":\"integer\","
        "\"description\":\"The count.\"}}}]");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(play_reset(&p, 2, both, "{\"start\": 100, \"other\": null}"), RLHF_OK);
        assert_memory_equal(p.said[0], "user: at 10", 11);
        // The random numbers are the same in both rounds, whatever the other episode has done.
        if (round) assert_int_equal(play_step(&p, 1, both + 1, calls, "add"), RLHF_OK);
        assert_int_equal(play_step(&p, 1, both, calls, "add"), RLHF_OK);
        assert_memory_equal(p.said[0], "tool: ", 6);
        if (round) assert_string_equal(p.said[0], first[0]);
        strcpy(first[0], p.said[0]);
        assert_int_equal(play_step(&p, 1, both, calls + 1, "add"), RLHF_OK);
        assert_string_equal(p.said[0], "tool: {'error': 'not below 0'}|");
        assert_int_equal(play_step(&p, 1, both, nothing, NULL), RLHF_OK);
        assert_int_equal(p.end[0], RLHF_EPISODE_DONE);
        assert_int_equal(play_finish(&p, 1, both, RLHF_EPISODE_DONE), RLHF_OK);
        assert_true(p.reward[0] > 101);
        play_end(&p, 2, both);
    }
    play_close(&p);
}

// Reward functions that read the environment, in addition to its get_reward().
static void rewards(void **state) {
    (void)state;
    const char *const calls[] = {"{\"by\":2}"}, *const nothing[] = {"ok"};
    open_it("class=Counter;rewards=messages+elsewhere");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(play_reset(&p, 1, both, "{\"start\": 100}"), RLHF_OK);
        assert_int_equal(play_step(&p, 1, both, calls, "add"), RLHF_OK);
        assert_int_equal(play_step(&p, 1, both, nothing, NULL), RLHF_OK);
        assert_int_equal(play_finish(&p, 1, both, RLHF_EPISODE_DONE), RLHF_OK);
        // a call, its result, and the last turn
        if (!(p.reward[0] > 300100 && p.reward[0] < 301200)) fail_msg("%g", (double)p.reward[0]);
        play_end(&p, 1, both);
    }
    play_close(&p);
}

static void functions(void **state) {
    (void)state;
    const char *const calls[] = {"{\"x\":2.5}", "{\"x\":2.5,\"y\":1}"};
    open_it("tools=twice");
    assert_non_null(strstr(p.ops->tools(p.self), "\"how\":{\"type\":\"string\",\"enum\":[\"plain\","
                                                 "\"fancy\"],\"description\":\"In which way it is "
                                                 "done.\"}"));
    assert_int_equal(play_reset(&p, 2, both, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "");
    assert_int_equal(play_step(&p, 2, both, calls, "twice"), RLHF_OK);
    assert_string_equal(p.said[0], "tool: 5.0|");
    assert_non_null(strstr(p.said[1], "unexpected keyword argument"));
    play_close(&p);
}

static void gymnasium(void **state) {
    (void)state;
    const char *const a[] = {"go", "boom"};
    open_it("class=Text;api=gymnasium");
    assert_null(p.ops->tools(p.self));
    assert_int_equal(play_reset(&p, 2, both, "{\"x\": 1}"), RLHF_OK);
    assert_string_equal(p.said[1], "user: seed 536870912|");
    assert_true(p.metric[0] == 1);
    assert_int_equal(play_step(&p, 2, both, a, NULL), RLHF_OK);
    assert_string_equal(p.said[0], "user: GO|");
    assert_true(p.reward[0] == 0.5f && p.end[0] == RLHF_EPISODE_OPEN && p.metric[0] == 1);
    assert_true(p.failed[1] && !p.failed[0]);
    assert_int_equal(play_step(&p, 1, both, a, NULL), RLHF_OK);
    assert_int_equal(p.end[0], RLHF_EPISODE_DONE);
    play_close(&p);
}

static void not_finite(void **state) {
    (void)state;
    const char *const a[] = {"go", "go"};
    open_it("class=Coroutines;api=gymnasium");
    assert_int_equal(play_reset(&p, 2, both, NULL), RLHF_OK);
    assert_string_equal(p.said[1], "user: begin|");
    assert_true(p.metric[1] == 1);
    assert_int_equal(play_step(&p, 2, both, a, NULL), RLHF_OK);
    assert_true(isnan(p.reward[0]) && isnan(p.reward[1]) && p.metric[1] == 2);
    assert_int_equal(p.end[0], RLHF_EPISODE_DONE);
    play_close(&p);
}

// What get_reward() may return: what float() accepts, None, and no text.
static void kinds_of_rewards(void **state) {
    static const struct {
        const char *row;
        double reward;
        int failed;
    } all[] = {{"{\"pays\": true}", 1, 0},  {"{\"pays\": 2}", 2, 0},   {"{\"pays\": null}", NAN, 0},
               {"{\"pays\": \"1\"}", 0, 1}, {"{\"pays\": [1]}", 0, 1}, {"{\"pays\": {}}", 0, 1}};
    const char *const nothing[] = {"ok"};
    (void)state;
    open_it("class=Paid");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(play_reset(&p, 1, both, all[i].row), RLHF_OK);
        assert_int_equal(play_step(&p, 1, both, nothing, NULL), RLHF_OK);
        assert_int_equal(play_finish(&p, 1, both, RLHF_EPISODE_DONE), RLHF_OK);
        const double paid = (double)p.reward[0];
        if (p.failed[0] != all[i].failed) fail_msg("%s: failed %d", all[i].row, p.failed[0]);
        if (paid != all[i].reward && !(isnan(paid) && isnan(all[i].reward)))
            fail_msg("%s: %g", all[i].row, paid);
        play_end(&p, 1, both);
    }
    play_close(&p);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *more, *why;
    } all[] = {
        {"class=Missing", "game.py has no 'Missing' that can be called"},
        {"class=Contuer", "game.py has no 'Contuer' that can be called (did you mean 'Counter'?)"},
        {"class=Nested",
         "game.py has 'Nested' only inside the function main(), where it cannot be"},
        {"tools=silent", "game.py has the tool silent() without a docstring"},
        {"python=python3", "class=NAME or tools=NAME,NAME is needed"},
        {"class=Counter;rewards=missing", "game.py has no 'missing' that can be called"},
        {"api=gymnasium;tools=twice", "api=gymnasium is for class=NAME"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(play_open(&p, "env_python.so", options(all[i].more)), RLHF_E_INVALID);
        if (!strstr(p.host.fail_text, all[i].why))
            fail_msg("\"%s\" is not in \"%s\"", all[i].why, p.host.fail_text);
        play_close(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trl),        cmocka_unit_test(functions),
        cmocka_unit_test(rewards),    cmocka_unit_test(gymnasium),
        cmocka_unit_test(not_finite), cmocka_unit_test(kinds_of_rewards),
        cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("env_python", tests, NULL, NULL);
}
