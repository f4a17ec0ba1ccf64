// test_rollout_log.c: lines of rollouts.jsonl for rows of one turn and for rows of several turns.
#include "../support/scratch.h"
#include "report/rollout_log.h"

#include "base/json.h"

#include <rlhf/reward.h>

enum { ROWS = 2, LEN = 6 };

static struct rlhf__rows make_rows(int turns) {
    // p: a token of the prompt; .: a given token; a digit: the turn of a token of the policy
    static const char *const who[ROWS] = {"p00..1", "pp0.11"};
    struct rlhf__rows e = {0};
    assert_int_equal(rlhf__rows_init(&e, ROWS, ROWS * LEN, NULL), RLHF_OK);
    if (turns) assert_int_equal(rlhf__rows_add_turns(&e, NULL), RLHF_OK);
    for (int i = 0; i < ROWS; i++) {
        e.offset[i + 1] = (i + 1) * LEN;
        e.prompt_len[i] = i + 1;
        for (int k = 0; k < LEN; k++) {
            const int t = i * LEN + k, own = who[i][k] >= '0' && who[i][k] <= '9';
            e.ids[t] = t;
            if (turns && own) e.turn[t] = who[i][k] - '0';
            e.token[RLHF__LOGP_OLD][t] = own ? (float)-t : 0;
        }
        if (!turns) continue;
        e.end[i] = RLHF_EPISODE_TURNS;
        e.verdict[i] = i ? RLHF_VERDICT_WRONG : RLHF_VERDICT_NONE;
        e.paid[i * LEN + 2] = 0.5f;
        e.paid[i * LEN + LEN - 1] = 2;
    }
    return e;
}

static json_t *line_of(const char *text, int number) {
    for (; number > 0; number--)
        text = strchr(text, '\n') + 1;
    json_error_t why;
    json_t *v = json_loadb(text, (size_t)(strchr(text, '\n') - text), 0, &why);
    if (!v) fail_msg("%s: %s", why.text, text);
    return v;
}

static void is(const json_t *line, const char *key, const char *want) {
    char *got = json_dumps(json_object_get(line, key), JSON_ENCODE_ANY | JSON_COMPACT);
    if (!got || strcmp(got, want) != 0) fail_msg("%s: %s instead of %s", key, got, want);
    free(got);
}

// Write the lines of two rows, and of an update that has its own advantages.
static char *write_log(struct scratch *s, int turns) {
    static const int64_t prompt[ROWS] = {4, 5};
    static const uint32_t row[ROWS] = {0, 1};
    struct rlhf__error err = {0};
    struct rlhf__rows e = make_rows(turns);
    struct rlhf__folder *folder = scratch_folder(s->dir);
    struct rlhf__rollout_log *log = NULL;
    struct rlhf__log messages;
    rlhf__log_init(&messages);
    check_ok(rlhf__rollout_log_open(folder, 0, &messages, &log, &err), &err);
    rlhf__rollout_log_rows(log, 1, &e, prompt, NULL, 0);
    for (int t = 0; t < ROWS * LEN; t++)
        e.token[RLHF__ADVANTAGE][t] = (float)t;
    rlhf__rollout_log_update(
        log, &(struct rlhf__rollout_log_update){.n = ROWS, .row = row, .part = &e, .own = 1});
    check_ok(rlhf__rollout_log_write(log, &err), &err);
    rlhf__rollout_log_close(log);
    rlhf__log_finish(&messages);
    rlhf__folder_close(folder);
    rlhf__rows_finish(&e);
    struct rlhf__buf b = RLHF__BUF_INIT;
    check_ok(rlhf__file_read(scratch_path(s, "rollouts.jsonl"), 1 << 20, &b, &err), &err);
    assert_true(b.len > 0);
    return b.data;
}

static void rows_of_one_turn(void **state) {
    char *text = write_log(*state, 0);
    json_t *first = line_of(text, 0), *update = line_of(text, 2);
    is(first, "ids", "[0,1,2,3,4,5]");
    assert_null(json_object_get(first, "segments"));
    assert_null(json_object_get(first, "paid"));
    is(first, "logp_old", "[-1,-2,0,0,-5]");
    is(update, "advantage", "[[1,2,3,4,5],[8,9,10,11]]");
    json_decref(first);
    json_decref(update);
    free(text);
}

// Arrays have an entry for each of the policy's tokens.
static void rows_of_several_turns(void **state) {
    char *text = write_log(*state, 1);
    json_t *first = line_of(text, 0), *second = line_of(text, 1), *update = line_of(text, 2);
    is(first, "ids", "[0,1,2,3,4,5]");
    is(first, "segments", "[[\"policy\",2],[\"environment\",2],[\"policy\",1]]");
    is(first, "end", "\"turns\"");
    is(first, "paid", "[0.5,2]");
    assert_true(json_is_null(json_object_get(first, "verdict")));
    is(second, "verdict", "\"wrong\"");
    is(first, "logp_old", "[-1,-2,-5]");
    is(second, "segments", "[[\"policy\",1],[\"environment\",1],[\"policy\",2]]");
    is(second, "logp_old", "[-8,-10,-11]");
    is(update, "advantage", "[[1,2,5],[8,10,11]]");
    json_decref(first);
    json_decref(second);
    json_decref(update);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_of_one_turn, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(rows_of_several_turns, scratch_setup, scratch_teardown)};
    return cmocka_run_group_tests_name("rollout_log", tests, NULL, NULL);
}
