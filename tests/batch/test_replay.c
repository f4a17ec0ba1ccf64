// test_replay.c: the replay buffer: the pairs that a round uses, conversion to rows, and the file.
#include "base/file.h"
#include "support/scratch.h"

#include "batch/replay_pairs.h"

#include <math.h>

// Pair number i: prompt {i, 1}, chosen {2, i, 3}, rejected {4, i}.
static void add_pairs(struct rlhf__replay *r, int32_t from, int32_t to) {
    struct rlhf__error err = {0};
    for (int32_t i = from; i < to; i++) {
        int32_t prompt[] = {i, 1}, chosen[] = {2, i, 3}, rejected[] = {4, i};
        check_ok(rlhf__replay_add(r, prompt, 2, chosen, 3, rejected, 2, &err), &err);
    }
}

// Makes a round with seed 5, `epochs` and `share`. Counts in `seen` how often the round uses each
// pair, and in *history how often it uses a pair of the history.
static uint32_t count_round(const struct rlhf__replay *r, int32_t epochs, double share,
                            uint32_t *history, uint32_t *seen) {
    struct rlhf__error err = {0};
    uint32_t *pick = NULL, n = 0;
    check_ok(rlhf__replay_round(r, 5, epochs, share, &pick, &n, &err), &err);
    *history = 0;
    memset(seen, 0, r->n * sizeof *seen);
    for (uint32_t k = 0; k < n; k++) {
        assert_true(pick[k] < r->n);
        seen[pick[k]]++;
        *history += pick[k] < r->n_history;
        // At every point of the round, the share of history so far is the requested one.
        if (r->n_history > 0) assert_true(*history == (uint32_t)floor(((double)k + 1) * share));
    }
    free(pick);
    return n;
}

static void every_fresh_pair_is_used_once_an_epoch(void **state) {
    (void)state;
    struct rlhf__replay r = {0};
    uint32_t seen[64], history;
    add_pairs(&r, 10, 30);
    assert_int_equal(count_round(&r, 3, 0.5, &history, seen), 60); // no history yet
    assert_int_equal(history, 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(seen[i], 3);
    rlhf__replay_retire(&r, 0);
    assert_int_equal(count_round(&r, 3, 0.5, &history, seen), 0); // without fresh pairs
    add_pairs(&r, 30, 48);
    assert_int_equal(count_round(&r, 1, 0.1, &history, seen), 19);
    assert_int_equal(history, 1);
    assert_int_equal(count_round(&r, 2, 0.25, &history, seen), 47); // the 36th fresh pair ends it
    assert_int_equal(history, 11);
    for (int i = 20; i < 38; i++)
        assert_int_equal(seen[i], 2);
    rlhf__replay_finish(&r);
}

static void the_share_may_be_none_or_all(void **state) {
    (void)state;
    struct rlhf__replay r = {0};
    uint32_t seen[64], history;
    add_pairs(&r, 10, 20);
    rlhf__replay_retire(&r, 0);
    add_pairs(&r, 20, 32);
    assert_int_equal(count_round(&r, 2, 0, &history, seen), 24);
    assert_int_equal(history, 0);
    assert_int_equal(count_round(&r, 2, 1, &history, seen), 24);
    assert_int_equal(history, 24);
    uint32_t kinds = 0;
    for (int i = 0; i < 10; i++)
        kinds += seen[i] > 0;
    assert_true(kinds > 5); // the pairs come from the whole history
    rlhf__replay_finish(&r);
}

static void rounds_differ_and_repeat(void **state) {
    (void)state;
    struct rlhf__replay r = {0};
    struct rlhf__error err = {0};
    uint32_t *a, *b, *c, *d, n;
    add_pairs(&r, 10, 30);
    rlhf__replay_retire(&r, 0);
    add_pairs(&r, 30, 50);
    check_ok(rlhf__replay_round(&r, 5, 2, 0.3, &a, &n, &err), &err);
    check_ok(rlhf__replay_round(&r, 5, 2, 0.3, &b, &n, &err), &err);
    check_ok(rlhf__replay_round(&r, 6, 2, 0.3, &c, &n, &err), &err);
    r.rounds++;
    check_ok(rlhf__replay_round(&r, 5, 2, 0.3, &d, &n, &err), &err);
    assert_memory_equal(a, b, n * sizeof *a);
    assert_memory_not_equal(a, c, n * sizeof *a);
    assert_memory_not_equal(a, d, n * sizeof *a);
    assert_memory_not_equal(a, a + n / 2, n / 2 * sizeof *a); // and the two epochs differ
    free(a);
    free(b);
    free(c);
    free(d);
    rlhf__replay_finish(&r);
}

// If there is a limit, the oldest pairs are removed and the others stay unchanged.
static void history_keeps_the_newest(void **state) {
    (void)state;
    struct rlhf__replay r = {0};
    struct rlhf__error err = {0};
    struct rlhf__rows e = {0};
    add_pairs(&r, 10, 20);
    rlhf__replay_retire(&r, 12);
    assert_int_equal(r.n_history, 10);
    add_pairs(&r, 20, 25);
    rlhf__replay_retire(&r, 12);
    assert_int_equal(r.n, 12);
    assert_int_equal(r.n_history, 12);
    assert_int_equal(r.ids.n, 12 * 7);
    add_pairs(&r, 25, 26);
    check_ok(rlhf__replay_rows(&r, (uint32_t[]){0, 11, 12}, 3, &e, &err), &err);
    const int32_t ids[] = {13, 1, 2, 13, 3,  13, 1, 4,  13, 24, 1, 2, 24, 3,
                           24, 1, 4, 24, 25, 1,  2, 25, 3,  25, 1, 4, 25};
    assert_int_equal(e.total, sizeof ids / sizeof *ids);
    assert_memory_equal(e.ids, ids, sizeof ids);
    rlhf__rows_finish(&e);
    rlhf__replay_finish(&r);
}

static void bad_rounds_are_refused(void **state) {
    (void)state;
    struct rlhf__replay r = {0};
    uint32_t *pick, n;
    const double shares[] = {-0.01, 1.01, NAN};
    add_pairs(&r, 10, 12);
    for (int i = 0; i < 3; i++) {
        struct rlhf__error err = {0};
        check_error(rlhf__replay_round(&r, 5, 1, shares[i], &pick, &n, &err), RLHF_E_INVALID, &err,
                    "it must be from 0 to 1");
    }
    struct rlhf__error err = {0};
    check_error(rlhf__replay_round(&r, 5, 0, 0, &pick, &n, &err), RLHF_E_INVALID, &err, "0 epochs");
    check_error(rlhf__replay_add(&r, (int32_t[]){1}, 1, NULL, 0, (int32_t[]){1}, 1, &err),
                RLHF_E_INVALID, &err, "each needs one");
    rlhf__replay_finish(&r);
}

static void rows_are_chosen_then_rejected(void **state) {
    (void)state;
    struct rlhf__replay r = {0};
    struct rlhf__error err = {0};
    struct rlhf__rows e = {0};
    add_pairs(&r, 10, 20);
    check_ok(rlhf__replay_rows(&r, (uint32_t[]){7, 2}, 2, &e, &err), &err);
    const int32_t ids[] = {17, 1, 2, 17, 3, 17, 1, 4, 17, 12, 1, 2, 12, 3, 12, 1, 4, 12};
    const int32_t offset[] = {0, 5, 9, 14, 18}, label[] = {1, 0, 1, 0}, group[] = {0, 0, 1, 1};
    assert_int_equal(e.n, 4);
    assert_int_equal(e.total, 18);
    assert_true(e.flags & RLHF__WHOLE_GROUPS);
    assert_memory_equal(e.ids, ids, sizeof ids);
    assert_memory_equal(e.offset, offset, sizeof offset);
    assert_memory_equal(e.label, label, sizeof label);
    assert_memory_equal(e.group, group, sizeof group);
    for (int i = 0; i < 4; i++)
        assert_int_equal(e.prompt_len[i], 2);
    rlhf__rows_finish(&e);
    rlhf__replay_finish(&r);
}

static void the_file_holds_everything(void **state) {
    struct scratch *s = *state;
    struct rlhf__replay r = {0}, again = {0};
    struct rlhf__error err = {0};
    const char *path = scratch_path(s, "replay.bin");
    check_ok(rlhf__replay_write(&r, NULL, path, &err), &err); // an empty buffer, too
    check_ok(rlhf__replay_read(&again, path, 100, &err), &err);
    assert_int_equal(again.n, 0);
    add_pairs(&r, 10, 30);
    rlhf__replay_retire(&r, 0);
    rlhf__replay_retire(&r, 0);
    add_pairs(&r, 30, 33);
    check_ok(rlhf__replay_write(&r, NULL, path, &err), &err);
    check_ok(rlhf__replay_read(&again, path, 100, &err), &err);
    assert_int_equal(again.rounds, 2);
    assert_int_equal(again.n_history, 20);
    assert_int_equal(again.n, 23);
    for (size_t i = 0; i < r.n; i++) {
        assert_int_equal(again.pair[i].at, r.pair[i].at);
        assert_int_equal(again.pair[i].prompt, r.pair[i].prompt);
        assert_int_equal(again.pair[i].chosen, r.pair[i].chosen);
        assert_int_equal(again.pair[i].rejected, r.pair[i].rejected);
    }
    assert_int_equal(again.ids.n, r.ids.n);
    assert_memory_equal(again.ids.data, r.ids.data, r.ids.n * sizeof *r.ids.data);
    rlhf__replay_finish(&again);
    check_error(rlhf__replay_read(&again, path, 20, &err), RLHF_E_INVALID, &err,
                "a token is not of the vocabulary");
    rlhf__replay_finish(&r);
}

// Every damaged byte and every truncation is detected.
static void damage_is_refused(void **state) {
    struct scratch *s = *state;
    struct rlhf__replay r = {0}, again = {0};
    struct rlhf__error err = {0};
    struct rlhf__buf b = RLHF__BUF_INIT;
    const char *path = scratch_path(s, "replay.bin");
    add_pairs(&r, 10, 13);
    check_ok(rlhf__replay_write(&r, NULL, path, &err), &err);
    check_ok(rlhf__file_read(path, 1 << 20, &b, &err), &err);
    for (size_t i = 0; i < b.len; i++) {
        b.data[i] ^= 0x41;
        check_ok(rlhf__file_write(NULL, path, b.data, b.len, &err), &err);
        check_error(rlhf__replay_read(&again, path, 100, &err), RLHF_E_INVALID, &err,
                    "replay.bin is damaged");
        b.data[i] ^= 0x41;
        check_ok(rlhf__file_write(NULL, path, b.data, i, &err), &err);
        check_error(rlhf__replay_read(&again, path, 100, &err), RLHF_E_INVALID, &err,
                    "replay.bin is damaged");
    }
    rlhf__buf_finish(&b);
    rlhf__replay_finish(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fresh_pair_is_used_once_an_epoch),
        cmocka_unit_test(the_share_may_be_none_or_all),
        cmocka_unit_test(rounds_differ_and_repeat),
        cmocka_unit_test(history_keeps_the_newest),
        cmocka_unit_test(bad_rounds_are_refused),
        cmocka_unit_test(rows_are_chosen_then_rejected),
        cmocka_unit_test_setup_teardown(the_file_holds_everything, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(damage_is_refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
