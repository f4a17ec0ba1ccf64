// tokenizer.c: see tokenizer.h. The common face of the two kinds of tokenizer.
#include "text/tokenizer_impl.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

void rlhf__tokenizer_close(struct rlhf__tokenizer *tok) {
    if (!tok) return;
    rlhf__bpe_destroy(tok->bpe);
    rlhf__merges_finish(&tok->merges);
    rlhf__vocab_finish(&tok->vocab);
    free(tok->special);
    free(tok);
}

const struct rlhf__tokenizer_info *rlhf__tokenizer_info(const struct rlhf__tokenizer *tok) {
    return &tok->info;
}

// ---- encode
// --------------------------------------------------------------------------------------

static rlhf_status encode_plain(const struct rlhf__tokenizer *tok, const char *s, size_t n,
                                size_t stop_at, struct rlhf__ids *out, struct rlhf__error *err) {
    return tok->bpe ? rlhf__bpe_encode(tok->bpe, s, n, stop_at, out, err)
                    : rlhf__wordpiece_encode(&tok->piece, s, n, stop_at, out, err);
}

// The added token that s starts with (the longest), -1 = none; special ones only where wanted.
static int32_t special_at(const struct rlhf__tokenizer *tok, const char *s, size_t n,
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

static rlhf_status encode_special(const struct rlhf__tokenizer *tok, const char *s, size_t n,
                                  uint32_t flags, size_t stop_at, struct rlhf__ids *out,
                                  struct rlhf__error *err) {
    size_t from = 0;
    for (size_t at = 0; at < n && out->n < stop_at;) {
        int32_t id = special_at(tok, s + at, n - at, flags);
        if (id < 0) {
            at++;
            continue;
        }
        RLHF_TRY(encode_plain(tok, s + from, at - from, stop_at, out, err));
        if (out->n < stop_at) RLHF_TRY(rlhf__ids_push(out, id, err));
        at += tok->vocab.token[id].len;
        from = at;
    }
    return encode_plain(tok, s + from, n - from, stop_at, out, err);
}

// The ids that go around the text: what flags ask for outside, the tokenizer's own inside.
struct around {
    int32_t before[1 + RLHF__FRAME_MAX], after[RLHF__FRAME_MAX + 1];
    size_t n_before, n_after;
};

static rlhf_status make_frame(const struct rlhf__tokenizer *tok, uint32_t flags, struct around *f,
                              struct rlhf__error *err) {
    const struct rlhf__tokenizer_info *info = &tok->info;
    const struct rlhf__frame *own = &tok->frame;
    *f = (struct around){0};
    if ((flags & RLHF__ENCODE_BOS) && info->bos < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "the tokenizer has no bos token");
    if ((flags & RLHF__ENCODE_EOS) && info->eos < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "the tokenizer has no eos token");
    int template = (flags & RLHF__ENCODE_TEMPLATE) != 0;
    if (flags & RLHF__ENCODE_BOS) f->before[f->n_before++] = info->bos;
    for (size_t i = 0; template && i < own->n_before; i++)
        f->before[f->n_before++] = own->before[i];
    for (size_t i = 0; template && i < own->n_after; i++)
        f->after[f->n_after++] = own->after[i];
    if (flags & RLHF__ENCODE_EOS) f->after[f->n_after++] = info->eos;
    return RLHF_OK;
}

rlhf_status rlhf__tokenizer_encode(const struct rlhf__tokenizer *tok, rlhf_str text, uint32_t flags,
                                   size_t max_tokens, struct rlhf__ids *out,
                                   struct rlhf__error *err) {
    struct around f;
    RLHF_TRY(make_frame(tok, flags, &f, err));
    if (max_tokens && max_tokens < f.n_before + f.n_after)
        return rlhf__fail(err, RLHF_E_INVALID, "%zu tokens have no room for the special tokens",
                          max_tokens);
    for (size_t i = 0; i < f.n_before; i++)
        RLHF_TRY(rlhf__ids_push(out, f.before[i], err));
    size_t room = max_tokens ? max_tokens - f.n_before - f.n_after : SIZE_MAX;
    size_t stop_at = room > SIZE_MAX - out->n ? SIZE_MAX : out->n + room;
    if (text.len) {
        size_t n = (size_t)text.len;
        rlhf_status st = (flags & RLHF__ENCODE_SPECIAL) || tok->n_added
                             ? encode_special(tok, text.ptr, n, flags, stop_at, out, err)
                             : encode_plain(tok, text.ptr, n, stop_at, out, err);
        RLHF_TRY(st);
    }
    if (out->n > stop_at) out->n = stop_at; // the last word overshot
    for (size_t i = 0; i < f.n_after; i++)
        RLHF_TRY(rlhf__ids_push(out, f.after[i], err));
    return RLHF_OK;
}

// ---- decode
// --------------------------------------------------------------------------------------

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
        if (!tok->bpe) {
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

// ---- questions
// -----------------------------------------------------------------------------------

int32_t rlhf__tokenizer_find(const struct rlhf__tokenizer *tok, rlhf_str token) {
    int32_t id = rlhf__vocab_find(&tok->vocab, token.ptr, (size_t)token.len);
    for (size_t i = 0; id < 0 && i < tok->n_special; i++) {
        rlhf_str b = rlhf__vocab_bytes(&tok->vocab, tok->special[i]);
        if (b.len == token.len && !memcmp(b.ptr, token.ptr, (size_t)b.len)) id = tok->special[i];
    }
    return id;
}

int rlhf__tokenizer_is_special(const struct rlhf__tokenizer *tok, int32_t id) {
    return id >= 0 && id < tok->vocab.n && tok->vocab.token[id].special;
}

rlhf_status rlhf__tokenizer_check_model(const struct rlhf__tokenizer *tok, int32_t n_vocab,
                                        const char *what, struct rlhf__error *err) {
    int32_t tokens = tok->info.n_vocab;
    if (tokens <= n_vocab && n_vocab - tokens < 1024) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "%s: its vocabulary has %d tokens but the model has %d (vocab_size); allowed: "
        "the same number, or up to 1023 rows of padding",
        what, (int)tokens, (int)n_vocab);
}

int rlhf__tokenizer_equal(const struct rlhf__tokenizer *a, const struct rlhf__tokenizer *b) {
    if (a == b) return 1;
    if (a->info.kind != b->info.kind || a->vocab.n != b->vocab.n) return 0;
    for (int32_t i = 0; i < a->vocab.n; i++) {
        rlhf_str x = rlhf__vocab_bytes(&a->vocab, i), y = rlhf__vocab_bytes(&b->vocab, i);
        if (x.len != y.len || (x.len && memcmp(x.ptr, y.ptr, (size_t)x.len) != 0)) return 0;
    }
    return 1;
}
