// test_filled.c: the sizes of structs that the host passes, and the room after structs that a
// plugin fills (plugin/growth.h).
#include "support/check.h"

#include "plugin/growth.h"

#define STRUCT_HEADERS
#include "growth_table.inc"
#undef STRUCT_HEADERS

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t size;
} structs[RLHF__STRUCTS] = {
#define STRUCT(T, ...) {#T, sizeof(T)},
#include "growth_table.inc"
#undef STRUCT
};

static void sizes_only_grow(void **state) {
    (void)state;
    for (int i = 0; i < RLHF__STRUCTS; i++) {
        const enum rlhf__struct which = (enum rlhf__struct)i;
        assert_string_equal(rlhf__struct_name(which), structs[i].name);
        assert_int_equal(rlhf__struct_size(which, RLHF_ABI_MINOR), structs[i].size);
        assert_int_equal(rlhf__struct_size(which, RLHF_ABI_MINOR + 7), structs[i].size);
        for (uint32_t minor = 0; minor + 1 < RLHF_ABI_MINOR + 1; minor++) {
            assert_true(rlhf__struct_size(which, minor) >= 8);
            assert_true(rlhf__struct_size(which, minor) <= rlhf__struct_size(which, minor + 1));
        }
    }
}

static void pass_sets_only_the_size(void **state) {
    (void)state;
    rlhf_sink_run run = {.resumed = 1, .phases_done = 2, .phases = 3, .config = "c"}, want = run;
    want.size = sizeof run;
    RLHF__PASS(rlhf_sink_run, &run, RLHF_ABI_MINOR);
    assert_memory_equal(&run, &want, sizeof run);
}

// Structs that a plugin fills (tests/abi/sides.txt).
static const enum rlhf__struct filled[] = {
#define FILLED(T) RLHF__STRUCT_##T
#include "filled.inc"
#undef FILLED
};

// The offset of `reserved`; 0: the struct has none.
static const uint32_t reserved_at[RLHF__STRUCTS] = {
#define RESERVED(T) [RLHF__STRUCT_##T] = offsetof(T, reserved),
#include "growth_table.inc"
#undef RESERVED
};

static void reserved_is_0(void **state) {
    (void)state;
    unsigned char out[RLHF__FILLED_MAX];
    int found = 0;
    for (size_t k = 0; k < sizeof filled / sizeof *filled; k++) {
        const uint32_t at = reserved_at[filled[k]], set = 0x1000000;
        const char *name = rlhf__struct_name(filled[k]);
        struct rlhf__filled f;
        struct rlhf__error err;
        char want[128];
        if (!at) continue;
        found++;
        unsigned char *bytes = rlhf__filled_begin(&f, filled[k], RLHF_ABI_MINOR);
        assert_int_equal(rlhf__filled_end(&f, out, &err), RLHF_OK);
        memcpy(bytes + at, &set, sizeof set);
        assert_int_equal(rlhf__filled_end(&f, out, &err), RLHF_E_UNSUPPORTED);
        snprintf(want, sizeof want, "it sets `reserved` of the host's %s to 16777216; it must be 0",
                 name);
        assert_string_equal(err.text, want);
    }
    assert_true(found >= 2); // rlhf_loss_out, rlhf_sink_answer
}

static void pointers_stay(void **state) {
    (void)state;
    static const double a[2], b[2];
    struct rlhf__error err;
    struct rlhf__lent lent[] = {{"one", a, a}, {"two", NULL, NULL}, {"three", b, b}};
    assert_int_equal(rlhf__lent_kept("rlhf_x", lent, 3, &err), RLHF_OK);
    lent[1].is = b;
    lent[2].is = a;
    assert_int_equal(rlhf__lent_kept("rlhf_x", lent, 3, &err), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "it replaces the pointer `two` of the host's rlhf_x; "));
    lent[1].is = NULL;
    assert_int_equal(rlhf__lent_kept("rlhf_x", lent, 3, &err), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "the pointer `three` of"));
    lent[2].is = b;
    lent[0].is = NULL;
    assert_int_equal(rlhf__lent_kept("rlhf_x", lent, 3, &err), RLHF_E_UNSUPPORTED);
}

static void room_is_guarded(void **state) {
    (void)state;
    unsigned char out[RLHF__FILLED_MAX];
    for (size_t k = 0; k < sizeof filled / sizeof *filled; k++) {
        const uint32_t size = rlhf__struct_size(filled[k], RLHF_ABI_MINOR);
        const char *name = rlhf__struct_name(filled[k]);
        struct rlhf__filled f;
        struct rlhf__error err;
        unsigned char *bytes = rlhf__filled_begin(&f, filled[k], RLHF_ABI_MINOR);
        uint32_t found;
        memcpy(&found, bytes, sizeof found);
        assert_int_equal(found, size);
        for (uint32_t i = sizeof found; i < size + RLHF__ROOM; i++)
            assert_int_equal(bytes[i], 0);
        memset(bytes + sizeof found, 3, size - sizeof found); // everything that the host knows
        if (reserved_at[filled[k]]) memset(bytes + reserved_at[filled[k]], 0, sizeof(uint32_t));
        memset(out, 9, sizeof out);
        assert_int_equal(rlhf__filled_end(&f, out, &err), RLHF_OK);
        assert_memory_equal(out, bytes, size);
        for (uint32_t i = size; i < sizeof out; i++)
            assert_int_equal(out[i], 9);
        for (uint32_t i = size; i < size + RLHF__ROOM; i++) { // each byte that it does not know
            char want[128];
            snprintf(want, sizeof want, "it sets byte %u of the host's %s, which has %u bytes", i,
                     name, size);
            bytes[i] = 1;
            assert_int_equal(rlhf__filled_end(&f, out, &err), RLHF_E_UNSUPPORTED);
            bytes[i] = 0;
            if (!strstr(err.text, want)) fail_msg("%s", err.text);
        }
        const uint32_t wrong[] = {0, size - 8, size + 8, 4096};
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            char want[128];
            snprintf(want, sizeof want, "it changes the size of the host's %s from %u to %u", name,
                     size, wrong[w]);
            memcpy(bytes, &wrong[w], sizeof wrong[w]);
            assert_int_equal(rlhf__filled_end(&f, out, &err), RLHF_E_UNSUPPORTED);
            if (!strstr(err.text, want)) fail_msg("%s", err.text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_only_grow), cmocka_unit_test(pass_sets_only_the_size),
        cmocka_unit_test(room_is_guarded), cmocka_unit_test(reserved_is_0),
        cmocka_unit_test(pointers_stay)};
    return cmocka_run_group_tests_name("plugin/filled", tests, NULL, NULL);
}
