// test_deal.c: divides a minibatch into shards: by tokens, in order, and with whole groups if the
// algorithm needs them.
#include "support/scratch.h"

#include "batch/deal.h"

// Makes rows with these lengths and groups. Each row begins with a prompt of 3 tokens, the same for
// its whole group. A length of 0 ends the list.
static void make_rows(struct rlhf__rows *e, const int32_t *len, const int32_t *group) {
    struct rlhf__error err = {0};
    uint32_t n = 0, total = 0;
    while (len[n] > 0)
        total += (uint32_t)len[n++];
    check_ok(rlhf__rows_init(e, n, total, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        e->offset[i + 1] = e->offset[i] + len[i];
        e->prompt_len[i] = 3;
        e->group[i] = group ? group[i] : (int32_t)i;
        for (int32_t t = e->offset[i]; t < e->offset[i + 1]; t++)
            e->ids[t] = t < e->offset[i] + 3 ? e->group[i] : t;
    }
}

static void deals(const struct rlhf__rows *e, uint32_t shards, int share, const uint32_t *want) {
    uint32_t first[16];
    rlhf__deal(e, shards, share, first);
    assert_memory_equal(first, want, (shards + 1) * sizeof *first);
}

static void rows_of_equal_length(void **state) {
    (void)state;
    struct rlhf__rows e;
    make_rows(&e, (int32_t[]){5, 5, 5, 5, 5, 5, 5, 5, 0}, NULL);
    deals(&e, 1, 0, (uint32_t[]){0, 8});
    deals(&e, 2, 0, (uint32_t[]){0, 4, 8});
    deals(&e, 4, 0, (uint32_t[]){0, 2, 4, 6, 8});
    deals(&e, 8, 0, (uint32_t[]){0, 1, 2, 3, 4, 5, 6, 7, 8});
    deals(&e, 3, 0, (uint32_t[]){0, 3, 5, 8}); // middles at 1/16, 3/16, ...; 5/16 < 1/3
    rlhf__rows_finish(&e);
}

static void tokens_count_and_not_rows(void **state) {
    (void)state;
    struct rlhf__rows e;
    make_rows(&e, (int32_t[]){20, 5, 5, 5, 5, 0}, NULL);
    deals(&e, 2, 0, (uint32_t[]){0, 1, 5});
    deals(&e, 4, 0, (uint32_t[]){0, 0, 1, 3, 5}); // the first row's middle is in the second quarter
    rlhf__rows_finish(&e);
    make_rows(&e, (int32_t[]){5, 100, 5, 0}, NULL);
    deals(&e, 4, 0, (uint32_t[]){0, 1, 1, 2, 3}); // the second quarter does not contain a middle
    rlhf__rows_finish(&e);
}

static void groups_stay_whole(void **state) {
    (void)state;
    struct rlhf__rows e;
    const int32_t *group = (int32_t[]){0, 0, 0, 1, 1, 1, 2, 2, 2};
    make_rows(&e, (int32_t[]){6, 6, 6, 6, 6, 6, 6, 6, 6, 0}, group);
    deals(&e, 2, 0, (uint32_t[]){0, 4, 9});
    deals(&e, 2, 1, (uint32_t[]){0, 3, 9}); // 3 groups for 2 shards
    e.flags = RLHF__WHOLE_GROUPS;
    deals(&e, 2, 0, (uint32_t[]){0, 3, 9});
    deals(&e, 4, 0, (uint32_t[]){0, 3, 3, 6, 9});
    rlhf__rows_finish(&e);
}

// If there are fewer groups than shards, groups are split. A prompt that the rows of a group share
// counts only once in the number of tokens.
static void shared_prompts_count_once(void **state) {
    (void)state;
    struct rlhf__rows e;
    make_rows(&e, (int32_t[]){4, 4, 4, 4, 8, 0}, (int32_t[]){0, 0, 0, 0, 1});
    deals(&e, 2, 0, (uint32_t[]){0, 3, 5});    // 4 4 4 | 4 8 of 24
    deals(&e, 2, 1, (uint32_t[]){0, 4, 5});    // 10 | 8 of 18, by groups
    deals(&e, 3, 1, (uint32_t[]){0, 2, 4, 5}); // 4 2 | 2 2 | 8 of 18, by rows
    rlhf__rows_finish(&e);
}

static void nothing_can_be_dealt(void **state) {
    (void)state;
    const struct rlhf__rows none = {0};
    deals(&none, 3, 0, (uint32_t[]){0, 0, 0, 0});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_equal_length), cmocka_unit_test(tokens_count_and_not_rows),
        cmocka_unit_test(groups_stay_whole), cmocka_unit_test(shared_prompts_count_once),
        cmocka_unit_test(nothing_can_be_dealt)};
    return cmocka_run_group_tests_name("batch/deal", tests, NULL, NULL);
}
