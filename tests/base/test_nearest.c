// test_nearest.c: which misspellings get a hint, and which name the hint suggests.
#include "support/check.h"

#include "option/nearest.h"

#include <string.h>

static void distances(void **state) {
    (void)state;
    assert_int_equal(rlhf__edit_distance("", ""), 0);
    assert_int_equal(rlhf__edit_distance("", "abc"), 3);
    assert_int_equal(rlhf__edit_distance("abc", ""), 3);
    assert_int_equal(rlhf__edit_distance("kitten", "sitting"), 3);
    assert_int_equal(rlhf__edit_distance("lr", "rl"), 1);  // a swap is one step
    assert_int_equal(rlhf__edit_distance("ca", "abc"), 3); // optimal string alignment, not Damerau
    char a[100], b[100];
    memset(a, 'a', 99);
    memset(b, 'b', 99);
    a[99] = b[99] = '\0';
    assert_int_equal(rlhf__edit_distance(a, b), 63);
}

static const char *hint(const char *wanted, char *out, size_t cap) {
    static const char *const names[] = {"lr", "warmup", "max_grad_norm", "clip_range", "kl_coef"};
    struct rlhf__nearest n = {wanted, NULL, 0};
    for (size_t i = 0; i < CHECK_COUNT(names); i++)
        rlhf__nearest_offer(&n, names[i]);
    return rlhf__nearest_hint(&n, out, cap);
}

static void hints(void **state) {
    (void)state;
    char out[64];
    assert_string_equal(hint("lrr", out, sizeof out), " (did you mean \"lr\"?)");
    assert_string_equal(hint("warm_up", out, sizeof out), " (did you mean \"warmup\"?)");
    assert_string_equal(hint("cliprange", out, sizeof out), " (did you mean \"clip_range\"?)");
    assert_string_equal(hint("grad_norm", out, sizeof out), " (did you mean \"max_grad_norm\"?)");
    assert_string_equal(hint("kl", out, sizeof out), " (did you mean \"kl_coef\"?)");
    assert_string_equal(hint("clipping", out, sizeof out), ""); // only four of ten bytes agree
    assert_string_equal(hint("warmth", out, sizeof out), " (did you mean \"warmup\"?)");
    assert_string_equal(hint("temperature", out, sizeof out), "");
    assert_string_equal(hint("", out, sizeof out), "");
    assert_string_equal(hint("lrr", out, 10), " (did you"); // truncated, never longer
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(distances), cmocka_unit_test(hints)};
    return cmocka_run_group_tests_name("base_nearest", tests, NULL, NULL);
}
