// gguf_words.c: see gguf_words.h.
#include "gguf/gguf_words.h"

#include "base/buf.h"
#include "text/unicode.h"
#include "text/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const keys[RLHF__GGUF_N_ROLES] = {
    "tokenizer.ggml.bos_token_id",     "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.eot_token_id",     "tokenizer.ggml.eom_token_id"};

const char *rlhf__gguf_role_key(int32_t role) { return keys[role]; }

const char *rlhf__gguf_word(const struct rlhf__gguf_words *w, int32_t i, size_t *len) {
    return rlhf__gguf_item_text(w->token, (size_t)i, len);
}

// Files get the text [PAD<id>] for ids that have no token.
static int is_filler(const struct rlhf__gguf_words *w, int32_t i) {
    char filler[32];
    size_t n;
    const char *text = rlhf__gguf_word(w, i, &n);
    const int m = snprintf(filler, sizeof filler, "[PAD%d]", (int)i);
    return n == (size_t)m && memcmp(text, filler, n) == 0;
}

int32_t rlhf__gguf_word_type(const struct rlhf__gguf_words *w, int32_t i) {
    size_t n;
    rlhf__gguf_word(w, i, &n);
    if (n == 0 || is_filler(w, i)) return RLHF__GGUF_TOKEN_UNUSED;
    const int64_t type = w->type ? rlhf__gguf_item_int(w->type, (size_t)i) : 0;
    return type >= RLHF__GGUF_TOKEN_NORMAL && type <= RLHF__GGUF_TOKEN_BYTE
               ? (int32_t)type
               : RLHF__GGUF_TOKEN_NORMAL;
}

// ---- reading ----

// Sets *text to a string; NULL if the file lacks the key.
static rlhf_status string(const struct rlhf__gguf_file *f, const char *key, const char **text,
                          size_t *len, struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(f, key);
    *text = NULL;
    *len = 0;
    return v ? rlhf__gguf_value_str(v, text, len, err) : RLHF_OK;
}

static rlhf_status flag(const struct rlhf__gguf_file *f, const char *key, int32_t *out,
                        struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(f, key);
    int on = *out;
    if (v) RLHF_TRY(rlhf__gguf_value_bool(v, &on, err));
    *out = on;
    return RLHF_OK;
}

// Sets *out to an array with w->n elements, or NULL if the file lacks it.
static rlhf_status array(const struct rlhf__gguf_file *f, const struct rlhf__gguf_words *w,
                         const char *key, int32_t type, const struct rlhf__gguf_value **out,
                         struct rlhf__error *err) {
    size_t n;
    *out = rlhf__gguf_find(f, key);
    if (!*out) return RLHF_OK;
    RLHF_TRY(rlhf__gguf_value_count(*out, type, &n, err));
    if (n == (size_t)w->n) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: %s has %zu elements, expected one for each of the %d tokens", w->path,
                      key, n, (int)w->n);
}

static rlhf_status read_tokens(const struct rlhf__gguf_file *f, struct rlhf__gguf_words *w,
                               struct rlhf__error *err) {
    size_t n;
    w->token = rlhf__gguf_find(f, "tokenizer.ggml.tokens");
    if (!w->token)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the file has no tokens (tokenizer.ggml.tokens)",
                          w->path);
    RLHF_TRY(rlhf__gguf_value_count(w->token, RLHF__GGUF_STR, &n, err));
    if (n == 0 || n > RLHF__VOCAB_MAX)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tokenizer.ggml.tokens has %zu tokens, expected 1 to %d", w->path, n,
                          RLHF__VOCAB_MAX);
    w->n = (int32_t)n;
    for (int32_t i = 0; i < w->n; i++) {
        size_t len;
        const char *text = rlhf__gguf_word(w, i, &len);
        if (memchr(text, 0, len) || rlhf__utf8_valid(text, len) != len)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: token %d of tokenizer.ggml.tokens is not a text in UTF-8",
                              w->path, (int)i);
    }
    RLHF_TRY(array(f, w, "tokenizer.ggml.token_type", RLHF__GGUF_I64, &w->type, err));
    return array(f, w, "tokenizer.ggml.scores", RLHF__GGUF_F64, &w->score, err);
}

static rlhf_status read_pre(const struct rlhf__gguf_file *f, struct rlhf__gguf_words *w,
                            struct rlhf__error *err) {
    const char *name;
    size_t n;
    RLHF_TRY(string(f, "tokenizer.ggml.pre", &name, &n, err));
    w->pre = name ? rlhf__gguf_pre_named(name, n) : NULL;
    if (w->pre) return RLHF_OK;
    struct rlhf__buf all = RLHF__BUF_INIT;
    for (size_t i = 0; rlhf__gguf_pre_at(i); i++)
        rlhf__buf_printf(&all, "%s%s", i ? ", " : "", rlhf__gguf_pre_at(i)->name);
    rlhf__fail(err, RLHF_E_UNSUPPORTED,
               "%s: tokenizer.ggml.pre %s%.*s%s; it says how texts are split into words, and the "
               "supported ways are %s",
               w->path, name ? "is '" : "is missing", name ? (int)(n < 60 ? n : 60) : 0,
               name ? name : "", name ? "'" : "", rlhf__buf_text(&all));
    rlhf__buf_finish(&all);
    return RLHF_E_UNSUPPORTED;
}

static rlhf_status read_kind(const struct rlhf__gguf_file *f, struct rlhf__gguf_words *w,
                             struct rlhf__error *err) {
    const char *kind, *arch;
    size_t n, m;
    RLHF_TRY(string(f, "tokenizer.ggml.model", &kind, &n, err));
    RLHF_TRY(string(f, "general.architecture", &arch, &m, err));
    w->spm = kind && n == 5 && memcmp(kind, "llama", 5) == 0;
    if (!w->spm && !(kind && n == 4 && memcmp(kind, "gpt2", 4) == 0))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: tokenizer.ggml.model is %s%.*s; supported are gpt2 (byte-level BPE) "
                          "and llama (SentencePiece)",
                          w->path, kind ? "" : "missing", (int)(n < 60 ? n : 60), kind ? kind : "");
    // The user-defined pieces of Gemma, such as runs of spaces, have no scores. The pieces are in
    // the order of their merges.
    w->by_place = w->spm && m >= 5 && memcmp(arch, "gemma", 5) == 0;
    w->space_prefix = w->spm;
    w->adds_bos = w->spm;
    if (!w->spm) RLHF_TRY(read_pre(f, w, err));
    if (w->pre) w->adds_bos = w->pre->adds_bos;
    return flag(f, "tokenizer.ggml.add_space_prefix", &w->space_prefix, err);
}

static rlhf_status read_role(const struct rlhf__gguf_file *f, struct rlhf__gguf_words *w, int32_t r,
                             struct rlhf__error *err) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(f, keys[r]);
    int64_t id = -1;
    w->id[r] = -1;
    // Some files have 2^32 - 1 for "none".
    if (v) RLHF_TRY(rlhf__gguf_value_int(v, -1, UINT32_MAX, &id, err));
    if (id < 0 || id == UINT32_MAX) return RLHF_OK;
    if (id >= w->n)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: %s is %lld, and the file has %d tokens",
                          w->path, keys[r], (long long)id, (int)w->n);
    w->id[r] = (int32_t)id;
    return RLHF_OK;
}

// A token is put around texts only if the file names it.
static rlhf_status read_around(const struct rlhf__gguf_file *f, struct rlhf__gguf_words *w,
                               struct rlhf__error *err) {
    RLHF_TRY(flag(f, "tokenizer.ggml.add_bos_token", &w->adds_bos, err));
    RLHF_TRY(flag(f, "tokenizer.ggml.add_eos_token", &w->adds_eos, err));
    const int lacks_bos = w->adds_bos && w->id[RLHF__GGUF_BOS] < 0;
    const int lacks_eos = w->adds_eos && w->id[RLHF__GGUF_EOS] < 0;
    if (!lacks_bos && !lacks_eos) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s: %s is put around texts, but the file lacks %s",
                      w->path, lacks_bos ? "bos" : "eos",
                      keys[lacks_bos ? RLHF__GGUF_BOS : RLHF__GGUF_EOS]);
}

rlhf_status rlhf__gguf_words_read(const struct rlhf__gguf_file *f, const char *path,
                                  struct rlhf__gguf_words *w, struct rlhf__error *err) {
    *w = (struct rlhf__gguf_words){.path = path};
    RLHF_TRY(read_kind(f, w, err));
    RLHF_TRY(read_tokens(f, w, err));
    w->merge = rlhf__gguf_find(f, "tokenizer.ggml.merges");
    for (int32_t r = 0; r < RLHF__GGUF_N_ROLES; r++)
        RLHF_TRY(read_role(f, w, r, err));
    return read_around(f, w, err);
}
