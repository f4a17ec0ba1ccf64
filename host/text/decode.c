// decode.c: rlhf__tokenizer_decode and rlhf__tokenizer_text of tokenizer.h: ids to text.
#include "text/decoder.h"
#include "text/tokenizer_impl.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

// Append to out[cap] what fits; returns the new length, which counts everything.
static size_t append(char *out, size_t cap, size_t len, const char *s, size_t n) {
    if (len < cap && n) memcpy(out + len, s, n < cap - len ? n : cap - len);
    return len + n;
}

size_t rlhf__tokenizer_decode(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                              uint32_t flags, char *out, size_t cap) {
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        rlhf_str b = rlhf__vocab_bytes(&tok->vocab, ids[i]);
        if (!b.len) continue;
        if ((flags & RLHF__DECODE_SKIP_SPECIAL) && tok->vocab.token[ids[i]].special) continue;
        if (tok->decoder == RLHF__DECODER_WORDPIECE) {
            int inside = b.len > 2 && b.ptr[0] == '#' && b.ptr[1] == '#';
            if (inside && len) b = (rlhf_str){b.ptr + 2, b.len - 2};
            if (!inside && len) len = append(out, cap, len, " ", 1);
        }
        len = append(out, cap, len, b.ptr, (size_t)b.len);
    }
    return len;
}

char *rlhf__tokenizer_text(const struct rlhf__tokenizer *tok, const int32_t *ids, size_t n,
                           uint32_t flags, size_t *len) {
    size_t raw = rlhf__tokenizer_decode(tok, ids, n, flags, NULL, 0);
    char *bytes = malloc(raw + 1);
    if (!bytes) return NULL;
    rlhf__tokenizer_decode(tok, ids, n, flags, bytes, raw);
    size_t fixed = rlhf__utf8_repair(bytes, raw, NULL, 0);
    char *text = malloc(fixed + 1);
    if (text) {
        rlhf__utf8_repair(bytes, raw, text, fixed);
        text[fixed] = '\0';
        if (len) *len = fixed;
    }
    free(bytes);
    return text;
}
