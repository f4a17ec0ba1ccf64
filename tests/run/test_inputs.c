// test_inputs.c: the hashes by which a resumed run recognizes its inputs.
#include "support/scratch.h"

#include "keep/inputs.h"

#include <fcntl.h>
#include <unistd.h>

#define BYTES ((int64_t)(64 << 20) + 4096 * 17)

static void put(const char *path, int64_t at, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
    close(fd);
}

// Returns 1 if the directory's hash differs from the first one in the list.
static int differs(const json_t *list, const char *dir) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    json_t *now = json_array();
    check_ok(rlhf__inputs_add_model(now, "m", dir, 1, &err), &err);
    rlhf__inputs_compare(list, now, &text);
    int found = text.len > 0;
    rlhf__buf_finish(&text);
    json_decref(now);
    return found;
}

// A large file is hashed only in part: its first piece, its last piece and 62 pieces in between.
// The gaps are not read.
static void pieces_of_a_large_file(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    const char *weights = scratch_text(s, "model.safetensors", "x");
    assert_int_equal(truncate(weights, BYTES), 0);
    json_t *list = json_array();
    check_ok(rlhf__inputs_add_model(list, "m", s->dir, 1, &err), &err);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "bytes")), BYTES);
    assert_false(differs(list, s->dir));
    const int64_t step = (BYTES - 65536) / 63;
    const int64_t seen[] = {0, 65535, step, 40 * step + 65535, 63 * step + 65535};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        put(weights, seen[i], "!");
        assert_true(differs(list, s->dir));
        assert_int_equal(truncate(weights, 0) || truncate(weights, BYTES), 0);
        put(weights, 0, "x");
        assert_false(differs(list, s->dir));
    }
    put(weights, 65536, "!");
    assert_false(differs(list, s->dir));
    json_decref(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pieces_of_a_large_file, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("inputs", tests, NULL, NULL);
}
