// pieces.c: see pieces.h.
#include "tokenizer/pieces.h"

#include "text/unicode.h"

#include <stdlib.h>

// How many bytes at the end of s[0..n) are the beginning of an incomplete character.
static size_t unfinished(const char *s, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char c = (unsigned char)s[n - back];
        if ((c & 0xc0) == 0x80) continue; // inside a character
        const size_t whole = c >= 0xf8 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return back < whole ? back : 0;
    }
    return 0;
}

static rlhf_status put_repaired(struct rlhf__buf *text, const char *s, size_t n,
                                struct rlhf__error *err) {
    const size_t size = rlhf__utf8_repair(s, n, NULL, 0);
    char *repaired = malloc(size + 1);
    if (!repaired) return RLHF__NOMEM(err, "out of memory for the text of a token");
    rlhf__utf8_repair(s, n, repaired, size);
    rlhf__buf_put(text, repaired, size);
    free(repaired);
    return rlhf__buf_ok(text, err);
}

rlhf_status rlhf__pieces(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                         struct rlhf__buf *text, size_t *end, struct rlhf__error *err) {
    const size_t bytes = rlhf__tokenizer_decode(tok, ids, n, 0, NULL, 0);
    char *s = malloc(bytes + 1);
    rlhf_status st = s ? RLHF_OK : RLHF__NOMEM(err, "out of memory for the texts of tokens");
    if (s) rlhf__tokenizer_decode(tok, ids, n, 0, s, bytes);
    size_t from = 0, to = 0; // number of bytes written, and of bytes decoded so far
    for (size_t i = 0; st == RLHF_OK && i < n; i++) {
        to += rlhf__tokenizer_decode(tok, ids + i, 1, 0, NULL, 0);
        const size_t whole = i + 1 < n ? to - unfinished(s + from, to - from) : to;
        if (whole > from) st = put_repaired(text, s + from, whole - from, err);
        from = whole;
        end[i] = text->len;
    }
    free(s);
    return st;
}
