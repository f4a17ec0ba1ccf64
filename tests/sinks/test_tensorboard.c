// test_tensorboard.c: tensorboard.so: the bytes of an event file are decoded by hand. The file is
// also truncated.
//
// check_tensorboard.py uses TensorBoard's own reader, if it is installed.
#include "sinks/fixture.h"

#include "base/hash.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct sink k;

static uint64_t le(const char *p, int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

// Returns the contents of the only event file.
static struct rlhf__buf read_events(struct scratch *s, char *name, size_t cap) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    int n = 0;
    DIR *d = opendir(scratch_path(s, "tensorboard"));
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.') continue;
        snprintf(name, cap, "tensorboard/%s", e->d_name);
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
    int count = 0;
    for (; at < b->len; count++) {
        assert_true(b->len - at >= 16);
        size_t len = (size_t)le(b->data + at, 8);
        assert_true(len <= b->len - at - 16);
        assert_int_equal(le(b->data + at + 8, 4),
                         rlhf__crc32c_mask(rlhf__crc32c(0, b->data + at, 8)));
        assert_int_equal(le(b->data + at + 12 + len, 4),
                         rlhf__crc32c_mask(rlhf__crc32c(0, b->data + at + 12, len)));
        if (count == i) {
            *data = b->data + at + 12;
            *n = len;
        }
        at += 16 + len;
    }
    return count;
}

// Writes one phase. Returns the first phase that the sink needs.
static int64_t write_phase(struct scratch *s, int64_t done, rlhf_sink_phase *in) {
    sink_load(&k, "tensorboard.so");
    assert_int_equal(sink_begin(&k, s->dir, done), RLHF_OK);
    in->size = sizeof *in;
    assert_int_equal(k.ops->phase(k.self, in), RLHF_OK);
    sink_end(&k);
    return k.from;
}

static int64_t write_scalar(struct scratch *s, int64_t done, int64_t step, double value) {
    const char *const name = "a";
    return write_phase(
        s, done,
        &(rlhf_sink_phase){.n_metrics = 1, .phases_done = step, .name = &name, .value = &value});
}

static void the_bytes_of_a_scalar(void **state) {
    struct scratch *s = *state;
    char name[300];
    const char *p = NULL;
    size_t n = 0;
    write_scalar(s, -1, 300, 1.5);
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
    rlhf__buf_finish(&b);
}

// The summary of an event of one of the first 127 phases.
static struct rlhf__buf summary_of(struct scratch *s, rlhf_sink_phase *in) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    char name[300];
    const char *p = NULL;
    size_t n = 0;
    write_phase(s, -1, in);
    struct rlhf__buf b = read_events(s, name, sizeof name);
    record(&b, 1, &p, &n);
    const size_t head = n - 13 < 128 ? 13 : 14; // time, step, key and length of the summary
    rlhf__buf_put(&out, p + head, n - head);
    rlhf__buf_finish(&b);
    return out;
}

static void the_bytes_of_a_text(void **state) {
    struct scratch *s = *state;
    const rlhf_str prompt = {"a|\n", 3}, response = {"\xff", 1};
    const double score = 0.5, logp = NAN;
    const uint8_t held_out = 1;
    struct rlhf__buf sum = summary_of(s, &(rlhf_sink_phase){.n_samples = 1,
                                                            .phases_done = 1,
                                                            .prompt = &prompt,
                                                            .response = &response,
                                                            .score = &score,
                                                            .ref_logp = &logp,
                                                            .held_out = &held_out});
#define TABLE "| reward | ref logp | text |\n|---|---|---|\n| 0.5 | nan | a\\| **\xef\xbf\xbd** |\n"
    const char want[] = "\x0a\x67"             // value
                        "\x0a\x0csamples/eval" // tag
                        "\x42\x4d"             // tensor
                        "\x08\x07"             //   dtype string
                        "\x12\x00"             //   shape: scalar
                        "\x42\x47" TABLE       //   string_val
                        "\x4a\x08"             // metadata
                        "\x0a\x06"             //   plugin_data
                        "\x0a\x04text";        //     plugin_name
    assert_int_equal(sizeof TABLE - 1, 0x47);
    assert_int_equal(sum.len, sizeof want - 1);
    assert_memory_equal(sum.data, want, sizeof want - 1);
    rlhf__buf_finish(&sum);
}

static double real(const char *p) {
    double v;
    memcpy(&v, p, sizeof v);
    return v;
}

// Three values with counts: min, max, number, sum and sum of squares, then limits and buckets.
static void the_bytes_of_a_histogram(void **state) {
    struct scratch *s = *state;
    static const double limits[] = {0, 1, 2}, counts[] = {1, 1, 3};
    static const int64_t count[] = {1, 1, 3};
    const rlhf_spread h = {.size = sizeof h,
                           .n = 3,
                           .numbers = 5,
                           .mean = 1.4,
                           .name = "h",
                           .value = limits,
                           .count = count};
    const rlhf_spread *const all = &h;
    struct rlhf__buf sum =
        summary_of(s, &(rlhf_sink_phase){.n_spreads = 1, .phases_done = 1, .spread = &all});
    const char *p = sum.data;
    assert_int_equal(sum.len, 2 + 10 + 2 + 45 + 2 * 26);
    assert_memory_equal(p, "\x0a\x6d\x0a\x08spread/h\x2a\x61", 14);
    static const double numbers[] = {0, 2, 5, 7, 13};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(p[14 + 9 * i], (i + 1) << 3 | 1);
        assert_true(real(p + 15 + 9 * i) == numbers[i]);
    }
    assert_memory_equal(p + 59, "\x32\x18", 2);
    assert_memory_equal(p + 85, "\x3a\x18", 2);
    for (int i = 0; i < 3; i++) {
        assert_true(real(p + 61 + 8 * i) == limits[i]);
        assert_true(real(p + 87 + 8 * i) == counts[i]);
    }
    rlhf__buf_finish(&sum);
}

static void a_resumed_run_cuts_later_events(void **state) {
    struct scratch *s = *state;
    char name[300];
    const char *p = NULL;
    size_t n = 0;
    assert_int_equal(write_scalar(s, -1, 1, 1), 0);
    assert_int_equal(write_scalar(s, 1, 2, 2), 2);
    assert_int_equal(write_scalar(s, 2, 3, 3), 3);
    struct rlhf__buf b = read_events(s, name, sizeof name);
    assert_int_equal(record(&b, -1, &p, &n), 4);
    size_t whole = b.len;
    rlhf__buf_finish(&b);
    assert_int_equal(write_scalar(s, 2, 3, 4), 3); // writes the third phase again
    b = read_events(s, name, sizeof name);
    assert_int_equal(b.len, whole);
    assert_int_equal(record(&b, 3, &p, &n), 4);
    assert_memory_equal(p + n - 4, "\x00\x00\x80\x40", 4);
    rlhf__buf_finish(&b);
    // The process died before phases 4 and 5 arrived: the sink asks for them.
    assert_int_equal(write_scalar(s, 5, 4, 4), 4);
    assert_int_equal(write_scalar(s, 0, 1, 5), 0);
    b = read_events(s, name, sizeof name);
    assert_int_equal(record(&b, -1, &p, &n), 2);
    rlhf__buf_finish(&b);
}

static void damage_ends_what_is_kept(void **state) {
    struct scratch *s = *state;
    char name[300];
    const char *p = NULL;
    size_t n = 0;
    write_scalar(s, -1, 1, 1);
    write_scalar(s, 1, 2, 2);
    struct rlhf__buf b = read_events(s, name, sizeof name);
    size_t whole = b.len;
    for (size_t cut = 0; cut < whole; cut++) { // as after a crash
        scratch_bytes(s, name, b.data, cut);
        const int64_t from = write_scalar(s, 5, 6, 6);
        struct rlhf__buf c = read_events(s, name, sizeof name);
        int got = record(&c, -1, &p, &n); // checks every CRC
        rlhf__buf_finish(&c);
        assert_in_range(got, 2, 3);
        assert_int_equal(from, got == 3 ? 2 : 0);
    }
    b.data[whole - 6] = (char)(b.data[whole - 6] ^ 1);
    scratch_bytes(s, name, b.data, whole);
    assert_int_equal(write_scalar(s, 5, 6, 6), 2);
    struct rlhf__buf c = read_events(s, name, sizeof name);
    assert_int_equal(record(&c, -1, &p, &n), 3);
    rlhf__buf_finish(&c);
    rlhf__buf_finish(&b);
}

// A record that claims to be huge, and a file with a hole, are read in constant memory.
static void a_huge_file_is_read_in_constant_memory(void **state) {
    struct scratch *s = *state;
    char name[300];
    const char *p = NULL;
    size_t n = 0;
    write_scalar(s, -1, 1, 1);
    struct rlhf__buf b = read_events(s, name, sizeof name);
    struct rlimit old, most;
    assert_int_equal(truncate(scratch_path(s, name), (off_t)4 << 30), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    most = old;
#ifndef RLHF_SANITIZED // the address sanitizer reserves terabytes
    most.rlim_cur = (rlim_t)1 << 30;
#endif
    assert_int_equal(setrlimit(RLIMIT_AS, &most), 0);
    assert_int_equal(write_scalar(s, 3, 3, 3), 2);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    struct rlhf__buf c = read_events(s, name, sizeof name);
    assert_int_equal(record(&c, -1, &p, &n), 3);
    rlhf__buf_finish(&b);
    rlhf__buf_finish(&c);
}

static void no_link_is_followed(void **state) {
    struct scratch *s = *state;
    assert_int_equal(mkdir(scratch_path(s, "else"), 0777), 0);
    assert_int_equal(symlink("else", scratch_path(s, "tensorboard")), 0);
    sink_load(&k, "tensorboard.so");
    assert_int_equal(sink_begin(&k, s->dir, -1), RLHF_E_IO);
    sink_end(&k);
}

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(the_bytes_of_a_scalar),    T(the_bytes_of_a_text),
        T(the_bytes_of_a_histogram), T(a_resumed_run_cuts_later_events),
        T(damage_ends_what_is_kept), T(a_huge_file_is_read_in_constant_memory),
        T(no_link_is_followed),
    };
    return cmocka_run_group_tests_name("test_sink_tensorboard", tests, NULL, NULL);
}
