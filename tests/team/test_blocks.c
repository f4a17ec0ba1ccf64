// test_blocks.c: parameters in blocks.
#include "support/scratch.h"

#include "team/blocks.h"

#define AT(bytes) ((rlhf_dev)(void *)(uintptr_t)(bytes))

static void add(struct rlhf__blocks *b, uint32_t tensor, uint64_t len, int one_piece) {
    struct rlhf__error err = {0};
    const struct rlhf__piece p = {.grad = AT(1000),
                                  .value = AT(2000),
                                  .len = len,
                                  .at = 4096 * (uint64_t)tensor,
                                  .tensor = tensor};
    check_ok(rlhf__blocks_add(b, &p, one_piece, &err), &err);
}

static void tensors_are_cut_and_joined(void **state) {
    (void)state;
    struct rlhf__blocks b = {0};
    add(&b, 0, 7, 0);
    add(&b, 1, 0, 0);
    add(&b, 2, RLHF__BLOCK - 7, 0);     // fills the first block
    add(&b, 3, 2 * RLHF__BLOCK + 5, 0); // two whole blocks and a rest
    add(&b, 4, 3, 0);                   // shares the block of the rest
    add(&b, 5, 2 * RLHF__BLOCK, 1);     // stays in one piece
    add(&b, 6, 1, 0);
    static const uint64_t len[] = {RLHF__BLOCK, RLHF__BLOCK, RLHF__BLOCK, 8, 2 * RLHF__BLOCK, 1};
    static const uint32_t pieces[] = {2, 1, 1, 2, 1, 1};
    assert_int_equal(b.n, 6);
    assert_true(b.longest == 2 * RLHF__BLOCK);
    for (uint32_t i = 0, at = 0; i < b.n; i++) {
        assert_true(b.block[i].len == len[i]);
        assert_int_equal(b.block[i].first, at);
        at += pieces[i];
        assert_int_equal(b.block[i].end, at);
    }
    const struct rlhf__piece *p = &b.piece[4]; // the rest of tensor 3
    assert_true(p->tensor == 3 && p->len == 5 && p->from == 2 * RLHF__BLOCK);
    assert_true(p->grad == AT(1000 + 8 * RLHF__BLOCK) && p->value == AT(2000 + 8 * RLHF__BLOCK));
    assert_true(p->at == 3 * 4096 + 8 * RLHF__BLOCK);
    rlhf__blocks_finish(&b);
}

// More pieces than the first arrays hold.
static void many(void **state) {
    (void)state;
    struct rlhf__blocks b = {0};
    for (uint32_t i = 0; i < 1000; i++)
        add(&b, i, RLHF__BLOCK, 0);
    assert_int_equal(b.n, 1000);
    assert_int_equal(b.piece[999].tensor, 999);
    rlhf__blocks_finish(&b);
}

// Of two blocks in a window, the longer one goes to the rank that owns less. So the ranks own about
// the same number of elements, even if every second block is short.
static void owners_are_balanced(void **state) {
    (void)state;
    struct rlhf__blocks b = {0};
    struct rlhf__error err = {0};
    uint64_t owned[2] = {0};
    for (uint32_t i = 0; i < 20; i++)
        add(&b, i, i % 2 ? 600 : RLHF__BLOCK, 0);
    assert_int_equal(b.n, 20);
    for (uint32_t i = 0; i < b.n; i++)
        assert_int_equal(b.block[i].owner, 0);
    check_ok(rlhf__blocks_deal(&b, 2, &err), &err);
    for (uint32_t i = 0; i < b.n; i++) {
        const uint32_t owner = b.block[i].owner;
        assert_int_equal(owner, i / 2 % 2 ? 1 - i % 2 : i % 2);
        assert_int_equal(b.dealt[i / 2 * 2 + owner], i);
        owned[owner] += b.block[i].len;
    }
    assert_true(owned[0] == owned[1]);
    rlhf__blocks_finish(&b);
}

// The last window has fewer blocks than ranks. They go to the ranks that own the least.
static void last_window_is_dealt(void **state) {
    (void)state;
    struct rlhf__blocks b = {0};
    struct rlhf__error err = {0};
    static const uint64_t len[] = {9, 5, 7, 4};
    static const uint32_t owner[] = {0, 2, 1, 2};
    static const uint32_t dealt[] = {0, 2, 1, RLHF__NO_BLOCK, RLHF__NO_BLOCK, 3};
    b.limit = 9;
    for (uint32_t i = 0; i < 4; i++)
        add(&b, i, len[i], 0);
    assert_int_equal(b.n, 4);
    check_ok(rlhf__blocks_deal(&b, 3, &err), &err);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(b.block[i].owner, owner[i]);
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(b.dealt[i], dealt[i]);
    rlhf__blocks_finish(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_cut_and_joined), cmocka_unit_test(many),
        cmocka_unit_test(owners_are_balanced), cmocka_unit_test(last_window_is_dealt)};
    return cmocka_run_group_tests_name("team/blocks", tests, NULL, NULL);
}
