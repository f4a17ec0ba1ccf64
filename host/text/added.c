// added.c: see added.h.
#include "text/added.h"

#include "text/pipeline.h"

#include <string.h>

static rlhf_status encode_plain(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                                const char *s, size_t n, int at_start, size_t stop_at,
                                struct rlhf__ids *out, struct rlhf__error *err) {
    const char *normal;
    size_t len;
    RLHF_TRY(rlhf__pipeline_normal(tok, work, s, n, &normal, &len, err));
    return rlhf__pipeline_words(tok, work, normal, len, at_start, stop_at, out, err);
}

// The added token that s starts with (the longest), -1 = none; special ones only where wanted.
static int32_t added_at(const struct rlhf__tokenizer *tok, const char *s, size_t n,
                        uint32_t flags) {
    for (size_t i = 0; i < tok->n_special; i++) {
        int wanted = (flags & RLHF__ENCODE_SPECIAL) || !tok->vocab.token[tok->special[i]].special;
        if (!wanted) continue;
        rlhf_str b = rlhf__vocab_bytes(&tok->vocab, tok->special[i]);
        if (b.len <= n && b.ptr[0] == s[0] && !memcmp(b.ptr, s, (size_t)b.len))
            return tok->special[i];
    }
    return -1;
}

rlhf_status rlhf__added_encode(const struct rlhf__tokenizer *tok, struct rlhf__work *work,
                               const char *s, size_t n, uint32_t flags, size_t stop_at,
                               struct rlhf__ids *out, struct rlhf__error *err) {
    int look = (flags & RLHF__ENCODE_SPECIAL) || tok->n_added;
    size_t from = 0;
    for (size_t at = 0; look && at < n && out->n < stop_at;) {
        int32_t id = added_at(tok, s + at, n - at, flags);
        if (id < 0) {
            at++;
            continue;
        }
        RLHF_TRY(encode_plain(tok, work, s + from, at - from, from == 0, stop_at, out, err));
        if (out->n < stop_at) RLHF_TRY(rlhf__ids_push(out, id, err));
        at += tok->vocab.token[id].len;
        from = at;
    }
    return encode_plain(tok, work, s + from, n - from, from == 0, stop_at, out, err);
}
