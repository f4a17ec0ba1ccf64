// test_hash.c: compares SHA-256 and CRC-32C with published vectors (FIPS 180-4 examples; RFC 3720
// B.4). Also tests the digests of files that are computed while they are written.
#include "base/digests.h"
#include "base/hash.h"
#include "base/sha256_blocks.h"
#include "support/scratch.h"

#include <rlhf/rng.h>

// Tests both implementations. On a CPU without the instructions, both are the same.
static void check_sha_by(int hardware, const void *bytes, size_t n, size_t step, const char *want) {
    struct rlhf__sha256 s;
    uint8_t digest[32];
    char hex[65];
    rlhf__sha256_init(&s);
    if (!hardware) s.hardware = 0;
    for (size_t at = 0; at < n; at += step)
        rlhf__sha256_put(&s, (const char *)bytes + at, n - at < step ? n - at : step);
    rlhf__sha256_finish(&s, digest);
    for (size_t i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, want);
}

static void check_sha(const void *bytes, size_t n, size_t step, const char *want) {
    for (int hardware = 0; hardware < 2; hardware++)
        check_sha_by(hardware, bytes, n, step, want);
}

static void sha256_vectors(void **state) {
    (void)state;
    static char million[1000000];
    const char *longer = "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
                         "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu";
    const char *two = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    memset(million, 'a', sizeof million);
    check_sha("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_sha("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_sha(two, 56, 56, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    const char *last = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
    check_sha(longer, 112, 50, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
    check_sha(million, sizeof million, sizeof million, last);
    check_sha(million, sizeof million, 7, last);
}

// Compares the instructions with plain C, on random bytes of random lengths in random pieces.
static void sha256_instructions(void **state) {
    (void)state;
    static uint8_t bytes[5000 + 64];
    struct rlhf__sha256 one, other;
    char hex[65], other_hex[65];
    rlhf_rng r = {.seed = 1, .stream = rlhf_rng_stream("sha256")};
    if (!rlhf__sha256_has_instructions()) skip();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rlhf_rng_below(&r, 256);
    for (int round = 0; round < 1000; round++) {
        const size_t n = rlhf_rng_below(&r, round < 500 ? 200 : 5000);
        const uint8_t *from = bytes + rlhf_rng_below(&r, 64);
        rlhf__sha256_init(&one);
        rlhf__sha256_init(&other);
        assert_int_equal(one.hardware, 1);
        other.hardware = 0;
        rlhf__sha256_put(&other, from, n);
        for (size_t at = 0; at < n;) {
            const size_t left = n - at, most = rlhf_rng_below(&r, 2) ? 300 : 70;
            const size_t take = rlhf_rng_below(&r, most < left ? most : left + 1);
            rlhf__sha256_put(&one, from + at, take);
            at += take;
        }
        rlhf__sha256_hex(&one, hex);
        rlhf__sha256_hex(&other, other_hex);
        assert_string_equal(hex, other_hex);
    }
}

// Several blocks at once, from a state that is not the initial one.
static void sha256_of_blocks(void **state) {
    (void)state;
    static uint8_t bytes[64 * 9];
    rlhf_rng r = {.seed = 2, .stream = rlhf_rng_stream("sha256")};
    if (!rlhf__sha256_has_instructions()) skip();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rlhf_rng_below(&r, 256);
    for (size_t n = 0; n <= 9; n++) {
        uint32_t a[8], b[8];
        for (size_t i = 0; i < 8; i++)
            a[i] = b[i] = (uint32_t)rlhf_rng_below(&r, (uint64_t)1 << 32);
        rlhf__sha256_blocks(a, bytes, n, 1);
        for (size_t i = 0; i < n; i++)
            rlhf__sha256_blocks(b, bytes + 64 * i, 1, 0);
        assert_memory_equal(a, b, sizeof a);
    }
}

static void sha256_of_a_file(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    char hex[65];
    check_ok(rlhf__sha256_file(scratch_text(s, "f", "abc"), hex, &err), &err);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_error(rlhf__sha256_file(scratch_path(s, "g"), hex, &err), RLHF_E_INVALID, &err,
                "cannot open");
}

static void crc32c_vectors(void **state) {
    (void)state;
    uint8_t b[32];
    assert_int_equal(rlhf__crc32c(0, "123456789", 9), 0xe3069283u);
    memset(b, 0, sizeof b);
    assert_int_equal(rlhf__crc32c(0, b, 32), 0x8a9136aau);
    memset(b, 0xff, sizeof b);
    assert_int_equal(rlhf__crc32c(0, b, 32), 0x62a8ab43u);
    for (uint8_t i = 0; i < 32; i++)
        b[i] = i;
    assert_int_equal(rlhf__crc32c(0, b, 32), 0x46dd794eu);
    assert_int_equal(rlhf__crc32c(rlhf__crc32c(0, b, 5), b + 5, 27), 0x46dd794eu);
    // The inverse of the masked form: subtract the constant, then rotate left by 15.
    uint32_t back = rlhf__crc32c_mask(0x46dd794eu) - 0xa282ead8u;
    assert_int_equal((uint32_t)(back << 15 | back >> 17), 0x46dd794eu);
}

// ---- digests ----

enum { BIG = 3500000 };

// Write n bytes in pieces.
static struct rlhf__file_writer *start(const struct rlhf__folder *in, const char *name, size_t n) {
    struct rlhf__error err = {0};
    struct rlhf__file_writer *w;
    static char bytes[BIG];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    check_ok(rlhf__file_writer_open(in, name, &w, &err), &err);
    for (size_t at = 0, step = 1; at < n; at += step, step = step * 3 % 999983)
        check_ok(rlhf__file_writer_put(w, bytes + at, n - at < step ? n - at : step, &err), &err);
    return w;
}

static void check_known(struct rlhf__digests *d, const struct rlhf__folder *in, const char *name) {
    char path[1000], hex[65], want[65];
    struct rlhf__error err = {0};
    snprintf(path, sizeof path, "%s/%s", in->path, name);
    check_ok(rlhf__sha256_file(path, want, &err), &err);
    assert_int_equal(rlhf__digests_get(d, name, hex), 1);
    assert_string_equal(hex, want);
}

static void large_files_are_hashed_while_they_are_written(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__folder *in = scratch_folder(s->dir);
    struct rlhf__digests *d = in->digests = rlhf__digests_open();
    char hex[65];
    check_ok(rlhf__file_writer_commit(start(in, "a", BIG), &err), &err);
    check_ok(rlhf__file_writer_commit(start(in, "b", BIG / 2), &err), &err);
    check_ok(rlhf__file_writer_commit(start(in, "small", 1000), &err), &err);
    check_known(d, in, "b");
    check_known(d, in, "a");
    check_known(d, in, "a");
    assert_int_equal(rlhf__digests_get(d, "small", hex), 0);
    assert_int_equal(rlhf__digests_get(d, "c", hex), 0);
    assert_int_equal(rlhf__digests_get(NULL, "a", hex), 0);
    rlhf__digests_close(d);
    rlhf__digests_close(NULL);
    rlhf__folder_close(in);
}

static void a_file_that_was_not_finished_has_none(void **state) {
    struct scratch *s = *state;
    struct rlhf__folder *in = scratch_folder(s->dir);
    struct rlhf__digests *d = in->digests = rlhf__digests_open();
    char hex[65];
    rlhf__file_writer_abort(start(in, "a", BIG));
    assert_int_equal(rlhf__digests_get(d, "a", hex), 0);
    rlhf__file_writer_abort(start(in, "b", BIG)); // its thread is joined by free
    rlhf__digests_close(d);
    rlhf__folder_close(in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_vectors),
        cmocka_unit_test(sha256_instructions),
        cmocka_unit_test(sha256_of_blocks),
        cmocka_unit_test_setup_teardown(sha256_of_a_file, scratch_setup, scratch_teardown),
        cmocka_unit_test(crc32c_vectors),
        cmocka_unit_test_setup_teardown(large_files_are_hashed_while_they_are_written,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_was_not_finished_has_none, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests_name("base_hash", tests, NULL, NULL);
}
