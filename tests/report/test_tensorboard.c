// test_tensorboard.c: the bytes of an event file are decoded by hand. The file is also truncated.
//
// check_tensorboard.py uses TensorBoard's own reader, if it is installed.
#include "support/scratch.h"

#include "base/hash.h"
#include "report/tensorboard.h"

#include <dirent.h>

static uint64_t le(const char *p, int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

// Returns the contents of the only event file below dir.
static struct rlhf__buf read_events(struct scratch *s, char *name, size_t cap) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    int n = 0;
    DIR *d = opendir(scratch_path(s, "tb"));
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.') continue;
        snprintf(name, cap, "tb/%s", e->d_name);
        n++;
    }
    closedir(d);
    assert_int_equal(n, 1);
    assert_non_null(strstr(name, "tfevents"));
    check_ok(rlhf__file_read(scratch_path(s, name), 1 << 20, &b, &err), &err);
    return b;
}

// Checks the framing of the records. Returns the offset and length of record i. For i < 0, returns
// the number of records.
static int record(const struct rlhf__buf *b, int i, const char **data, size_t *n) {
    size_t at = 0;
    int k = 0;
    for (; at < b->len; k++) {
        assert_true(b->len - at >= 16);
        size_t len = (size_t)le(b->data + at, 8);
        assert_true(len <= b->len - at - 16);
        assert_int_equal(le(b->data + at + 8, 4),
                         rlhf__crc32c_mask(rlhf__crc32c(0, b->data + at, 8)));
        assert_int_equal(le(b->data + at + 12 + len, 4),
                         rlhf__crc32c_mask(rlhf__crc32c(0, b->data + at + 12, len)));
        if (k == i) {
            *data = b->data + at + 12;
            *n = len;
        }
        at += 16 + len;
    }
    return k;
}

static void write_phase(struct scratch *s, int64_t keep, int64_t step, double value) {
    struct rlhf__tensorboard e;
    struct rlhf__error err = {0};
    struct rlhf__buf sum = RLHF__BUF_INIT;
    struct rlhf__folder *dir = scratch_folder(s->dir);
    check_ok(rlhf__tensorboard_open(dir, "tb", keep, &e, &err), &err);
    rlhf__folder_close(dir);
    rlhf__tensorboard_scalar(&sum, "a", value);
    check_ok(rlhf__tensorboard_write(&e, step, &sum, &err), &err);
    rlhf__buf_free(&sum);
    rlhf__tensorboard_close(&e);
}

static void the_bytes_of_a_scalar(void **state) {
    struct scratch *s = *state;
    char name[300];
    const char *p = NULL;
    size_t n = 0;
    write_phase(s, -1, 300, 1.5);
    struct rlhf__buf b = read_events(s, name, sizeof name);
    assert_int_equal(record(&b, 0, &p, &n), 2);
    // wall_time (field 1, fixed64), then file_version (field 3, bytes).
    assert_int_equal(p[0], 0x09);
    assert_memory_equal(p + 9,
                        "\x1a\x0d"
                        "brain.Event:2",
                        15);
    assert_int_equal(n, 24);
    record(&b, 1, &p, &n);
    // step 300 = 0xac 0x02; summary of 10 bytes: value of 8: tag "a", simple_value 1.5f.
    const char want[] = "\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01"
                        "a\x15\x00\x00\xc0\x3f";
    assert_int_equal(n, 9 + sizeof want - 1);
    assert_memory_equal(p + 9, want, sizeof want - 1);
    rlhf__buf_free(&b);
}

static void the_bytes_of_a_text(void **state) {
    (void)state;
    struct rlhf__buf sum = RLHF__BUF_INIT;
    rlhf__tensorboard_text(&sum, "t", (rlhf_str){"hi", 2});
    const char want[] = "\x0a\x17"      // value
                        "\x0a\x01t"     // tag
                        "\x42\x08"      // tensor
                        "\x08\x07"      //   dtype string
                        "\x12\x00"      //   shape: scalar
                        "\x42\x02hi"    //   string_val
                        "\x4a\x08"      // metadata
                        "\x0a\x06"      //   plugin_data
                        "\x0a\x04text"; //     plugin_name
    assert_int_equal(sum.len, sizeof want - 1);
    assert_memory_equal(sum.data, want, sizeof want - 1);
    rlhf__buf_free(&sum);
}

static double real(const char *p) {
    double v;
    memcpy(&v, p, sizeof v);
    return v;
}

// Three values with counts: min, max, number, sum and sum of squares, then limits and buckets.
static void the_bytes_of_a_histogram(void **state) {
    (void)state;
    double x[] = {2, 0, 1, 2, 2};
    struct rlhf__distribution d;
    struct rlhf__buf sum = RLHF__BUF_INIT;
    rlhf__distribution_of(x, 5, &d);
    rlhf__tensorboard_histogram(&sum, "h", &d);
    const char *p = sum.data;
    assert_int_equal(sum.len, 2 + 3 + 2 + 45 + 2 * 26);
    assert_memory_equal(p, "\x0a\x66\x0a\x01h\x2a\x61", 7);
    static const double numbers[] = {0, 2, 5, 7, 13};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(p[7 + 9 * i], (i + 1) << 3 | 1);
        assert_true(real(p + 8 + 9 * i) == numbers[i]);
    }
    assert_memory_equal(p + 52, "\x32\x18", 2);
    assert_memory_equal(p + 78, "\x3a\x18", 2);
    static const double limits[] = {0, 1, 2}, counts[] = {1, 1, 3};
    for (int i = 0; i < 3; i++) {
        assert_true(real(p + 54 + 8 * i) == limits[i]);
        assert_true(real(p + 80 + 8 * i) == counts[i]);
    }
    rlhf__buf_free(&sum);
}

static void a_resumed_run_cuts_later_events(void **state) {
    struct scratch *s = *state;
    char name[300];
    const char *p = NULL;
    size_t n = 0;
    write_phase(s, -1, 1, 1);
    write_phase(s, 1, 2, 2);
    write_phase(s, 2, 3, 3);
    struct rlhf__buf b = read_events(s, name, sizeof name);
    assert_int_equal(record(&b, -1, &p, &n), 4);
    size_t whole = b.len;
    rlhf__buf_free(&b);
    write_phase(s, 2, 3, 4); // writes the third phase again
    b = read_events(s, name, sizeof name);
    assert_int_equal(b.len, whole);
    assert_int_equal(record(&b, 3, &p, &n), 4);
    assert_memory_equal(p + n - 4, "\x00\x00\x80\x40", 4);
    rlhf__buf_free(&b);
    write_phase(s, 0, 1, 5);
    b = read_events(s, name, sizeof name);
    assert_int_equal(record(&b, -1, &p, &n), 2);
    rlhf__buf_free(&b);
}

static void damage_ends_what_is_kept(void **state) {
    struct scratch *s = *state;
    char name[300];
    const char *p = NULL;
    size_t n = 0;
    write_phase(s, -1, 1, 1);
    write_phase(s, 1, 2, 2);
    struct rlhf__buf b = read_events(s, name, sizeof name);
    size_t whole = b.len;
    for (size_t cut = 0; cut < whole; cut++) { // as after a crash
        scratch_bytes(s, name, b.data, cut);
        write_phase(s, 5, 6, 6);
        struct rlhf__buf c = read_events(s, name, sizeof name);
        int got = record(&c, -1, &p, &n); // checks every CRC
        rlhf__buf_free(&c);
        assert_in_range(got, 2, 3);
    }
    b.data[whole - 6] = (char)(b.data[whole - 6] ^ 1);
    scratch_bytes(s, name, b.data, whole);
    write_phase(s, 5, 6, 6);
    struct rlhf__buf c = read_events(s, name, sizeof name);
    assert_int_equal(record(&c, -1, &p, &n), 3);
    rlhf__buf_free(&c);
    rlhf__buf_free(&b);
}

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_bytes_of_a_scalar),    T(the_bytes_of_a_text),
        T(the_bytes_of_a_histogram), T(a_resumed_run_cuts_later_events),
        T(damage_ends_what_is_kept),
    };
    return cmocka_run_group_tests_name("report_tensorboard", tests, NULL, NULL);
}
