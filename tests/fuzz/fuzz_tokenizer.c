// fuzz_tokenizer.c: encodes any bytes with both tokenizers. Decoding the ids of BPE gives the bytes
// back exactly, with and without special tokens. A limit keeps a prefix of the ids, and every id is
// in the vocabulary.
#include "fuzz.h"

#include "text/unicode.h"
#include "tokenizer/tokenizer.h"

#include <string.h>

static struct rlhf__tokenizer *open_tok(const char *name) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    char dir[4096];
    snprintf(dir, sizeof dir, "%s/tests/text/data/%s", FUZZ_SOURCE_DIR, name);
    FUZZ_CHECK(rlhf__tokenizer_open(dir, &tok, &err) == RLHF_OK);
    return tok;
}

static void encode(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags, size_t max,
                   struct rlhf__ids *ids) {
    struct rlhf__error err = {0};
    ids->n = 0;
    FUZZ_CHECK(rlhf__tokenizer_encode(tok, text, flags, max, ids, &err) == RLHF_OK);
    for (size_t i = 0; i < ids->n; i++)
        FUZZ_CHECK(ids->data[i] >= 0 && ids->data[i] < rlhf__tokenizer_info(tok)->n_vocab);
}

static void check_text(const struct rlhf__tokenizer *tok, const struct rlhf__ids *ids) {
    size_t len = 0;
    char *text = rlhf__tokenizer_text(tok, ids->data, ids->n, 0, &len);
    FUZZ_CHECK(text && rlhf__utf8_valid(text, len) == len);
    free(text);
}

static void check_bpe(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags) {
    struct rlhf__ids all = {0}, some = {0};
    encode(tok, text, flags, 0, &all);
    char *back = malloc(text.len + 1);
    FUZZ_CHECK(back);
    FUZZ_CHECK(rlhf__tokenizer_decode(tok, all.data, all.n, 0, back, text.len) == text.len);
    FUZZ_CHECK(!text.len || !memcmp(back, text.ptr, text.len));
    free(back);
    for (size_t i = 0; !flags && i < all.n; i++)
        FUZZ_CHECK(!rlhf__tokenizer_is_special(tok, all.data[i]));
    size_t max = all.n / 2 + 1;
    encode(tok, text, flags, max, &some);
    FUZZ_CHECK(some.n == (all.n < max ? all.n : max));
    FUZZ_CHECK(!some.n || !memcmp(some.data, all.data, some.n * sizeof *some.data));
    check_text(tok, &all);
    rlhf__ids_finish(&all);
    rlhf__ids_finish(&some);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct rlhf__tokenizer *bpe, *piece, *cased; // opened once, for speed
    if (!bpe) {
        bpe = open_tok("bpe");
        piece = open_tok("wordpiece");
        cased = open_tok("cased");
    }
    rlhf_str text = {(const char *)data, n};
    check_bpe(bpe, text, 0);
    check_bpe(bpe, text, RLHF__ENCODE_SPECIAL);
    struct rlhf__ids ids = {0};
    encode(piece, text, RLHF__ENCODE_TEMPLATE, 0, &ids);
    FUZZ_CHECK(ids.n >= 2 && ids.data[0] == rlhf__tokenizer_info(piece)->cls);
    check_text(piece, &ids);
    encode(piece, text, RLHF__ENCODE_TEMPLATE, 5, &ids);
    FUZZ_CHECK(ids.n <= 5 && ids.data[ids.n - 1] == rlhf__tokenizer_info(piece)->sep);
    encode(cased, text, RLHF__ENCODE_SPECIAL, 0, &ids);
    rlhf__ids_finish(&ids);
    return 0;
}
