// test_vectors.c: compares both tokenizers with the results of the Python `tokenizers` library for
// the texts of data/vectors.jsonl (made by make_vectors.py).
#include "support/scratch.h"

#include "base/json.h"
#include "tokenizer/tokenizer.h"

struct fixture {
    struct rlhf__tokenizer *bpe, *piece, *cased;
    json_t *row[256];
    size_t n;
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err = {0};
    char *line = NULL;
    size_t cap = 0;
    FILE *file = fopen("data/vectors.jsonl", "r");
    if (!f || !file) return -1;
    *state = f;
    while (f->n < 256 && getline(&line, &cap, file) > 0) {
        f->row[f->n] = json_loads(line, JSON_ALLOW_NUL, NULL);
        if (!f->row[f->n++]) return -1;
    }
    free(line);
    fclose(file);
    return rlhf__tokenizer_open("data/bpe", &f->bpe, &err) |
           rlhf__tokenizer_open("data/wordpiece", &f->piece, &err) |
           rlhf__tokenizer_open("data/cased", &f->cased, &err);
}

static int teardown(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < f->n; i++)
        json_decref(f->row[i]);
    rlhf__tokenizer_close(f->bpe);
    rlhf__tokenizer_close(f->piece);
    rlhf__tokenizer_close(f->cased);
    free(f);
    return 0;
}

static rlhf_str text_of(const json_t *row) {
    const json_t *v = json_object_get(row, "text");
    return (rlhf_str){json_string_value(v), json_string_length(v)};
}

static void compare(const json_t *row, const char *key, const struct rlhf__ids *got) {
    const json_t *want = json_object_get(row, key);
    size_t n = json_array_size(want), same = 0;
    while (same < n && same < got->n &&
           json_integer_value(json_array_get(want, same)) == got->data[same])
        same++;
    if (same < n || same < got->n)
        fail_msg("%s of \"%.60s\": %zu ids, expected %zu; first difference at %zu", key,
                 text_of(row).ptr, got->n, n, same);
}

static void check_all(const struct fixture *f, const struct rlhf__tokenizer *tok, uint32_t flags,
                      const char *key) {
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    assert_true(f->n > 70);
    for (size_t i = 0; i < f->n; i++) {
        ids.n = 0;
        check_ok(rlhf__tokenizer_encode(tok, text_of(f->row[i]), flags, 0, &ids, &err), &err);
        compare(f->row[i], key, &ids);
    }
    rlhf__ids_finish(&ids);
}

static void bpe(void **state) {
    struct fixture *f = *state;
    check_all(f, f->bpe, 0, "bpe");
}

static void bpe_special(void **state) {
    struct fixture *f = *state;
    check_all(f, f->bpe, RLHF__ENCODE_SPECIAL, "bpe_special");
}

static void wordpiece(void **state) {
    struct fixture *f = *state;
    check_all(f, f->piece, RLHF__ENCODE_TEMPLATE, "wordpiece");
}

static void cased(void **state) {
    struct fixture *f = *state;
    check_all(f, f->cased, RLHF__ENCODE_TEMPLATE, "cased");
}

static void bpe_decodes_to_the_text(void **state) {
    struct fixture *f = *state;
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    for (size_t i = 0; i < f->n; i++) {
        rlhf_str text = text_of(f->row[i]);
        ids.n = 0;
        check_ok(rlhf__tokenizer_encode(f->bpe, text, 0, 0, &ids, &err), &err);
        size_t len = 0;
        char *back = rlhf__tokenizer_text(f->bpe, ids.data, ids.n, 0, &len);
        assert_int_equal(len, text.len);
        assert_memory_equal(back, text.ptr, len);
        free(back);
    }
    rlhf__ids_finish(&ids);
}

// If there is a limit, the first ids are kept. Tokens that are added around them are kept, too.
static void limits_keep_the_beginning(void **state) {
    struct fixture *f = *state;
    struct rlhf__ids all = {0}, some = {0};
    struct rlhf__error err = {0};
    for (size_t i = 0; i < f->n; i++) {
        rlhf_str text = text_of(f->row[i]);
        all.n = 0;
        check_ok(rlhf__tokenizer_encode(f->piece, text, RLHF__ENCODE_TEMPLATE, 0, &all, &err),
                 &err);
        for (size_t max = 2; max < 9; max++) {
            some.n = 0;
            check_ok(
                rlhf__tokenizer_encode(f->piece, text, RLHF__ENCODE_TEMPLATE, max, &some, &err),
                &err);
            assert_int_equal(some.n, all.n < max ? all.n : max);
            assert_memory_equal(some.data, all.data, (some.n - 1) * sizeof *some.data);
            assert_int_equal(some.data[some.n - 1], rlhf__tokenizer_info(f->piece)->sep);
        }
    }
    rlhf__ids_finish(&all);
    rlhf__ids_finish(&some);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bpe),
        cmocka_unit_test(bpe_special),
        cmocka_unit_test(wordpiece),
        cmocka_unit_test(cased),
        cmocka_unit_test(bpe_decodes_to_the_text),
        cmocka_unit_test(limits_keep_the_beginning),
    };
    return cmocka_run_group_tests_name("tokenizer vectors", tests, setup, teardown);
}
