// added_read.c: see added_read.h.
#include "tokenizer/added_read.h"

#include "base/json.h"
#include "text/added.h"
#include "tokenizer/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

// ---- finding the model's token ----

// Stores the bytes of the token s[0..len) in *out, which the caller frees. They are a copy of s,
// unless the model works on bytes and all characters of s are stand-ins for bytes (vocab.h). In
// this case, they are the bytes that the stand-ins represent. Sets *stands to 1 if *out has the
// form of the model's tokens. Errors: RLHF_E_NOMEM.
static rlhf_status added_bytes(const struct rlhf__tokenizer *tok, const char *s, size_t len,
                               char **out, size_t *n, int *stands, struct rlhf__error *err) {
    *out = malloc(len + 1);
    if (!*out) return RLHF__NOMEM(err, "out of memory for the added tokens");
    *n = rlhf__pre_tokenizer_bytes(tok->pre_tokenizer) ? rlhf__bpe_token_bytes(s, len, *out)
                                                       : SIZE_MAX;
    *stands = *n != SIZE_MAX || !rlhf__pre_tokenizer_bytes(tok->pre_tokenizer);
    if (*n != SIZE_MAX) return RLHF_OK;
    memcpy(*out, s, len);
    *n = len;
    return RLHF_OK;
}

// The id of the model's token with the bytes that added_bytes stored; -1 = none.
static int32_t model_id(const struct rlhf__tokenizer *tok, const char *bytes, size_t n,
                        int stands) {
    if (stands) return rlhf__vocab_find(&tok->vocab, bytes, n);
    int32_t other = rlhf__vocab_find(&tok->vocab, bytes, n); // a token in stand-ins
    for (int32_t i = 0; i < tok->vocab.n; i++) {
        rlhf_str b = rlhf__vocab_bytes(&tok->vocab, i);
        if (b.len == n && n && i != other && !memcmp(b.ptr, bytes, n)) return i;
    }
    return -1;
}

int32_t rlhf__added_id(const struct rlhf__tokenizer *tok, const char *content, size_t len) {
    const struct rlhf__added_token *t = rlhf__added_find(&tok->added, content, len);
    struct rlhf__error err;
    char *bytes = NULL;
    size_t n;
    int stands;
    if (t) return t->id;
    int32_t id = -1;
    if (added_bytes(tok, content, len, &bytes, &n, &stands, &err) == RLHF_OK)
        id = model_id(tok, bytes, n, stands);
    free(bytes);
    return id;
}

// ---- reading ----

static const char *const flag_names[] = {"special", "single_word", "lstrip", "rstrip",
                                         "normalized"};
enum { N_FLAGS = sizeof flag_names / sizeof *flag_names };

static uint8_t *flag(struct rlhf__added_token *t, size_t i) {
    uint8_t *const flags[N_FLAGS] = {&t->special, &t->single_word, &t->lstrip, &t->rstrip,
                                     &t->normalized};
    return flags[i];
}

// Reads the flags of a token. A missing flag is false, with one exception: `normalized` is true by
// default for a token that is not special. content[0..len) need not end in a NUL.
static rlhf_status read_flags(const json_t *entry, const char *content, size_t len,
                              struct rlhf__added_token *t, struct rlhf__error *err) {
    for (size_t i = 0; i < N_FLAGS; i++) {
        const json_t *v = json_object_get(entry, flag_names[i]);
        if (v && !json_is_boolean(v) && !json_is_null(v))
            return rlhf__fail(
                err, RLHF_E_INVALID, "the added token '%.*s': %s is %s, expected true or false",
                (int)(len < 60 ? len : 60), content, flag_names[i], rlhf__json_kind(v));
        *flag(t, i) = json_is_boolean(v) ? json_is_true(v) : i == N_FLAGS - 1 && !t->special;
    }
    return RLHF_OK;
}

// Called for an entry whose token `t` is already on the list. The entry's id must be that of `t`.
// If there is a tokenizer.json, the flags in the entry must agree with those of `t`. Otherwise, the
// entry's flags replace those of `t`.
static rlhf_status say_again(struct rlhf__tokenizer *tok, struct rlhf__added_token *t, int64_t id,
                             const json_t *entry, struct rlhf__error *err) {
    const char *content = rlhf__added_text(&tok->added, t);
    struct rlhf__added_token said = *t;
    RLHF_TRY(read_flags(entry, content, t->len, &said, err));
    if (id != t->id)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the added token '%.*s' has the ids %d and %lld: they contradict each "
                          "other",
                          (int)t->len, content, (int)t->id, (long long)id);
    for (size_t i = 0; i < N_FLAGS; i++) {
        if (!json_is_boolean(json_object_get(entry, flag_names[i])) && tok->has_json) continue;
        if (tok->has_json && *flag(t, i) != *flag(&said, i))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "the added token '%.*s' has %s = %s here and %s in tokenizer.json: "
                              "they contradict each other",
                              (int)t->len, content, flag_names[i],
                              *flag(&said, i) ? "true" : "false", *flag(t, i) ? "true" : "false");
        *flag(t, i) = *flag(&said, i);
    }
    return RLHF_OK;
}

// The id that the tokenizers library assigns to the next added token that is not in the model's
// vocabulary.
static int32_t next_id(const struct rlhf__added *a) {
    return a->largest >= a->n_model ? a->largest + 1 : a->n_model;
}

static rlhf_status check_id(const struct rlhf__tokenizer *tok, int64_t id, const char *content,
                            const char *bytes, size_t n, int stands, struct rlhf__error *err) {
    rlhf_str b = id >= 0 && id < tok->vocab.n ? rlhf__vocab_bytes(&tok->vocab, (int32_t)id)
                                              : (rlhf_str){NULL, 0};
    int other = !stands && rlhf__vocab_find(&tok->vocab, bytes, n) == id;
    if (b.ptr && (other || b.len != n || memcmp(b.ptr, bytes, n) != 0))
        return rlhf__fail(err, RLHF_E_INVALID, "the added token '%s' has the id %lld of '%.*s'",
                          content, (long long)id, (int)b.len, b.ptr);
    if (b.ptr) return RLHF_OK;
    int32_t own = model_id(tok, bytes, n, stands), want = own < 0 ? next_id(&tok->added) : own;
    if (!tok->has_json ? own < 0 : id == want) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the added token '%s' has the id %lld, but the tokenizers library assigns "
                      "%d: %s",
                      content, (long long)id, (int)want,
                      own < 0 ? "it numbers added tokens after the vocabulary"
                              : "the vocabulary already has the token");
}

// Adds one token. `entry` has its flags; NULL means the defaults.
static rlhf_status add(struct rlhf__tokenizer *tok, int64_t id, const char *content,
                       const json_t *entry, struct rlhf__error *err) {
    struct rlhf__added *a = &tok->added;
    size_t len = strlen(content), n;
    int stands;
    char *bytes;
    for (int32_t i = 0; !a->n && i < tok->vocab.n; i++)
        a->n_model += tok->vocab.token[i].used;
    struct rlhf__added_token *there = rlhf__added_find(a, content, len), token = {0};
    if (there) return say_again(tok, there, id, entry, err);
    if (!len) return rlhf__fail(err, RLHF_E_INVALID, "an added token is empty");
    RLHF_TRY(read_flags(entry, content, len, &token, err));
    RLHF_TRY(added_bytes(tok, content, len, &bytes, &n, &stands, err));
    rlhf_status st = check_id(tok, id, content, bytes, n, stands, err);
    int known = id >= 0 && id < tok->vocab.n && tok->vocab.token[id].used;
    if (st == RLHF_OK && !known) st = rlhf__vocab_add(&tok->vocab, id, bytes, n, err);
    free(bytes);
    token.id = (int32_t)id;
    RLHF_TRY(st);
    tok->vocab.token[id].added = 1;
    return rlhf__added_append(a, content, len, &token, err);
}

rlhf_status rlhf__added_read(struct rlhf__tokenizer *tok, const json_t *list,
                             struct rlhf__error *err) {
    size_t i;
    json_t *item;
    if (list && !json_is_array(list))
        return rlhf__fail(err, RLHF_E_INVALID, "added_tokens: expected an array, found %s",
                          rlhf__json_kind(list));
    json_array_foreach(list, i, item) {
        const json_t *id = json_object_get(item, "id");
        const char *text = json_string_value(json_object_get(item, "content"));
        if (!json_is_integer(id) || !text)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "added_tokens: entry %zu needs an integer id and a string content",
                              i);
        if (rlhf__added_find(&tok->added, text, strlen(text)))
            return rlhf__fail(err, RLHF_E_INVALID, "added_tokens: '%.60s' is listed twice", text);
        RLHF_TRY(add(tok, json_integer_value(id), text, item, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__added_read_ids(struct rlhf__tokenizer *tok, json_t *file,
                                 struct rlhf__error *err) {
    const char *text;
    json_t *id;
    json_object_foreach(file, text, id) {
        if (!json_is_integer(id))
            return rlhf__fail(err, RLHF_E_INVALID, "'%s': expected an integer id, found %s", text,
                              rlhf__json_kind(id));
        RLHF_TRY(add(tok, json_integer_value(id), text, NULL, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__added_read_decoder(struct rlhf__tokenizer *tok, json_t *decoder,
                                     struct rlhf__error *err) {
    const char *key;
    json_t *item;
    if (decoder && !json_is_object(decoder))
        return rlhf__fail(err, RLHF_E_INVALID, "added_tokens_decoder: expected an object, found %s",
                          rlhf__json_kind(decoder));
    json_object_foreach(decoder, key, item) {
        char *end = NULL;
        long long id = strtoll(key, &end, 10);
        const char *text = json_string_value(json_object_get(item, "content"));
        if (end == key || *end || !text)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "added_tokens_decoder: '%.60s' is not an id with a string content",
                              key);
        RLHF_TRY(add(tok, id, text, item, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__added_mark(struct rlhf__tokenizer *tok, const json_t *named,
                             struct rlhf__error *err) {
    const json_t *text = json_is_object(named) ? json_object_get(named, "content") : named;
    const char *content = json_string_value(text);
    if (!content || !*content) return RLHF_OK;
    struct rlhf__added_token *t = rlhf__added_find(&tok->added, content, strlen(content));
    int32_t id = rlhf__added_id(tok, content, strlen(content));
    if (id < 0) return RLHF_OK;
    if (!t) {
        struct rlhf__added_token token = {.id = id};
        if (json_is_object(named))
            RLHF_TRY(read_flags(named, content, strlen(content), &token, err));
        token.special = 1;
        token.normalized = json_is_true(json_object_get(named, "normalized"));
        return rlhf__added_append(&tok->added, content, strlen(content), &token, err);
    }
    t->special = 1;
    return RLHF_OK;
}

rlhf_status rlhf__added_mark_id(struct rlhf__tokenizer *tok, int32_t id, struct rlhf__error *err) {
    struct rlhf__added *a = &tok->added;
    rlhf_str b = rlhf__vocab_bytes(&tok->vocab, id);
    struct rlhf__added_token token = {.id = id, .special = 1};
    for (size_t i = 0; i < a->n; i++) {
        if (a->item[i].id != id) continue;
        a->item[i].special = 1;
        return RLHF_OK;
    }
    return b.len ? rlhf__added_append(a, b.ptr, (size_t)b.len, &token, err) : RLHF_OK;
}

// ---- preparing the search ----

// Set the token's decoded text to its normal form, which is s[0..n).
static rlhf_status show(struct rlhf__tokenizer *tok, struct rlhf__added_token *t, const char *s,
                        size_t n, struct rlhf__error *err) {
    struct rlhf__buf *text = &tok->added.text;
    char *bytes;
    int stands;
    RLHF_TRY(added_bytes(tok, s, n, &bytes, &n, &stands, err));
    t->shown_at = (uint32_t)text->len;
    t->shown_len = (uint32_t)n;
    rlhf_status st = RLHF_OK;
    if (n > UINT32_MAX - text->len)
        st = rlhf__fail(err, RLHF_E_INVALID, "the added tokens are larger than 4 GiB");
    else
        rlhf__buf_put(text, bytes, n);
    tok->vocab.token[t->id].shown = 1;
    free(bytes);
    return st == RLHF_OK ? rlhf__buf_ok(text, err) : st;
}

static rlhf_status add_needle(struct rlhf__tokenizer *tok, size_t i, struct rlhf__search *match,
                              struct rlhf__buf *normal, struct rlhf__buf *spare,
                              struct rlhf__error *err) {
    struct rlhf__added *a = &tok->added;
    struct rlhf__added_token *t = &a->item[i];
    if (!t->normalized || !tok->normalizer)
        return rlhf__matcher_add(t->normalized ? &a->normal : &a->plain, rlhf__added_text(a, t),
                                 t->len, (uint32_t)i, err);
    RLHF_TRY(rlhf__normalizer_apply(tok->normalizer, rlhf__added_text(a, t), t->len, match, normal,
                                    spare, err));
    RLHF_TRY(show(tok, t, rlhf__buf_text(normal), normal->len, err));
    // A token whose normal form is the text of a special token is skipped in decoding, like that
    // token. The library does the same.
    const struct rlhf__added_token *like = rlhf__added_find(a, rlhf__buf_text(normal), normal->len);
    tok->vocab.token[t->id].special |= like && like->special;
    return rlhf__matcher_add(&a->normal, rlhf__buf_text(normal), normal->len, (uint32_t)i, err);
}

rlhf_status rlhf__added_ready(struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    struct rlhf__added *a = &tok->added;
    struct rlhf__buf normal = RLHF__BUF_INIT, spare = RLHF__BUF_INIT;
    struct rlhf__search match = {0}; // one budget for all tokens
    rlhf_status st = RLHF_OK;
    // If two tokens have the same normal form, the first one is found. (The library may find
    // either.)
    for (size_t i = 0; i < a->n && st == RLHF_OK; i++)
        st = add_needle(tok, i, &match, &normal, &spare, err);
    for (size_t i = 0; i < a->n; i++) {
        const struct rlhf__added_token *t = &a->item[i];
        struct rlhf__vocab_token *v = &tok->vocab.token[t->id];
        if (!v->shown) v->special |= t->special;
        *(t->normalized ? &a->normal_ordinary : &a->plain_ordinary) |= !t->special;
    }
    if (st == RLHF_OK) { // after a failure, the text of a needle may be empty
        rlhf__matcher_sort(&a->plain);
        rlhf__matcher_sort(&a->normal);
    }
    rlhf__buf_finish(&normal);
    rlhf__buf_finish(&spare);
    rlhf__search_finish(&match);
    return st;
}
