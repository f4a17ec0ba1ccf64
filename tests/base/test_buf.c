// test_buf.c: the growable buffer.
#include "support/check.h"

#include "base/buf.h"

#include <string.h>

static void appends_and_stays_a_string(void **state) {
    (void)state;
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    assert_string_equal(rlhf__buf_text(&b), "");
    rlhf__buf_puts(&b, "ab");
    rlhf__buf_putc(&b, 'c');
    rlhf__buf_printf(&b, "-%d-%s", 42, "x");
    assert_string_equal(rlhf__buf_text(&b), "abc-42-x");
    assert_int_equal(b.len, 8);
    rlhf__buf_put(&b, NULL, 0);
    assert_int_equal(b.len, 8);
    for (int i = 0; i < 1000; i++)
        rlhf__buf_put(&b, "0123456789", 10);
    assert_int_equal(b.len, 10008);
    assert_int_equal(b.data[b.len], 0);
    assert_int_equal(rlhf__buf_ok(&b, &err), RLHF_OK);
    rlhf__buf_clear(&b);
    assert_string_equal(rlhf__buf_text(&b), "");
    rlhf__buf_finish(&b);
}

static void integers_are_little_endian(void **state) {
    (void)state;
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__buf_u32le(&b, 0x04030201u);
    rlhf__buf_u64le(&b, 0x0c0b0a0908070605u);
    assert_memory_equal(b.data, "\1\2\3\4\5\6\7\10\11\12\13\14", 12);
    rlhf__buf_finish(&b);
}

// The examples of RFC 4648, and bytes that are not text.
static void base64(void **state) {
    (void)state;
    static const char *const want[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                       "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    struct rlhf__buf b = RLHF__BUF_INIT;
    for (size_t n = 0; n < sizeof want / sizeof *want; n++) {
        rlhf__buf_clear(&b);
        rlhf__put_base64(&b, "foobar", n);
        assert_string_equal(rlhf__buf_text(&b), want[n]);
    }
    rlhf__buf_clear(&b);
    rlhf__put_base64(&b, "\xff\xfe\x00\xfb", 4);
    assert_string_equal(rlhf__buf_text(&b), "//4A+w==");
    rlhf__buf_finish(&b);
}

static void an_impossible_size_is_sticky(void **state) {
    (void)state;
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    rlhf__buf_puts(&b, "kept");
    assert_null(rlhf__buf_grow(&b, SIZE_MAX - 2));
    rlhf__buf_puts(&b, "dropped");
    assert_string_equal(rlhf__buf_text(&b), "kept");
    assert_int_equal(rlhf__buf_ok(&b, &err), RLHF_E_NOMEM);
    rlhf__buf_finish(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_and_stays_a_string),
        cmocka_unit_test(integers_are_little_endian),
        cmocka_unit_test(base64),
        cmocka_unit_test(an_impossible_size_is_sticky),
    };
    return cmocka_run_group_tests_name("base_buf", tests, NULL, NULL);
}
