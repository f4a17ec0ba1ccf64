// test_tree.c: the tree in which the shards of a minibatch are added. It gives the same sums for
// any number of processes.
#include "support/scratch.h"

#include "team/tree.h"

// A sum in text form: each addition is a pair of brackets, and each shard is a letter, so shard 7
// is h.
struct sum {
    char text[400];
};

// Stores the sum of `left` and `right` in `right`.
static void join(struct sum *right, const struct sum *left) {
    struct sum s;
    assert_true(snprintf(s.text, sizeof s.text, "(%s%s)", left->text, right->text) <
                (int)sizeof s.text);
    *right = s;
}

static void push(struct rlhf__tree *t, struct sum *at, struct rlhf__tree_node node,
                 const struct sum *own) {
    const uint32_t was = t->n, adds = rlhf__tree_push(t, node);
    struct sum s = *own;
    for (uint32_t i = 0; i < adds; i++)
        join(&s, &at[was - 1 - i]);
    at[t->n - 1] = s;
}

// Computes the whole sum with `ranks` processes. Their nodes are then pushed in order.
static struct sum sum_of(uint32_t shards, uint32_t ranks) {
    struct rlhf__tree all = {.shards = shards};
    struct sum at[RLHF__TREE_DEPTH];
    for (uint32_t r = 0; r < ranks; r++) {
        const uint32_t from = r * (shards / ranks), to = from + shards / ranks;
        struct rlhf__tree own = {.shards = shards};
        struct sum has[RLHF__TREE_DEPTH];
        for (uint32_t i = from; i < to; i++) {
            const struct sum one = {{(char)('a' + i), 0}};
            push(&own, has, (struct rlhf__tree_node){0, i}, &one);
        }
        const struct rlhf__tree same = rlhf__tree_of(shards, from, to);
        assert_memory_equal(&same, &own, 8 + own.n * sizeof *own.at);
        for (uint32_t i = 0; i < own.n; i++)
            push(&all, at, own.at[i], &has[i]);
    }
    assert_int_equal(all.n, 1);
    return at[0];
}

static void the_brackets(void **state) {
    (void)state;
    assert_string_equal(sum_of(1, 1).text, "a");
    assert_string_equal(sum_of(2, 1).text, "(ab)");
    assert_string_equal(sum_of(3, 1).text, "((ab)c)");
    assert_string_equal(sum_of(4, 1).text, "((ab)(cd))");
    assert_string_equal(sum_of(6, 1).text, "(((ab)(cd))(ef))");
    assert_string_equal(sum_of(8, 1).text, "(((ab)(cd))((ef)(gh)))");
}

static void processes_do_not_matter(void **state) {
    (void)state;
    for (uint32_t shards = 1; shards <= 60; shards++) {
        const struct sum want = sum_of(shards, 1);
        for (uint32_t ranks = 2; ranks <= shards; ranks++)
            if (shards % ranks == 0) assert_string_equal(sum_of(shards, ranks).text, want.text);
    }
}

// One buffer for each level of the tree.
static void buffers(void **state) {
    (void)state;
    static const uint32_t want[] = {0, 1, 1, 2, 2, 2, 2, 3};
    for (uint32_t n = 1; n <= 8; n++)
        assert_int_equal(rlhf__tree_asides(n, 0, n), want[n - 1]);
    assert_int_equal(rlhf__tree_asides(8, 4, 8), 2);
    assert_int_equal(rlhf__tree_asides(8, 7, 8), 0);
    assert_int_equal(rlhf__tree_asides(4096, 0, 4096), 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_brackets),
                                       cmocka_unit_test(processes_do_not_matter),
                                       cmocka_unit_test(buffers)};
    return cmocka_run_group_tests_name("team/tree", tests, NULL, NULL);
}
