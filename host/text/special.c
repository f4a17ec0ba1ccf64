// special.c: the special tokens of a tokenizer: which tokens they are and what each is for.
//
// The files say it in several ways, and all of them are optional: added tokens (added_tokens.json,
// tokenizer_config.json), roles by text (special_tokens_map.json, tokenizer_config.json), roles by
// id (config.json). The first that names a role wins; then the usual names are tried.
#include "text/tokenizer_impl.h"

#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

struct role {
    const char *key, *id_key, *usual[2]; // usual: by kind, BPE then WordPiece
    size_t at;                           // offset of the id in struct rlhf__tokenizer_info
};

#define ROLE(name, bpe, piece)                                                                     \
    {                                                                                              \
#name "_token", #name "_token_id",                                                         \
            {bpe, piece }, offsetof(struct rlhf__tokenizer_info, name)                             \
    }
static const struct role roles[] = {
    ROLE(bos, "<|endoftext|>", NULL), ROLE(eos, "<|endoftext|>", NULL), ROLE(unk, NULL, "[UNK]"),
    ROLE(cls, NULL, "[CLS]"),         ROLE(sep, NULL, "[SEP]"),         ROLE(pad, NULL, "[PAD]"),
};
enum { N_ROLES = sizeof roles / sizeof roles[0] };

static int32_t *role_id(struct rlhf__tokenizer *tok, const struct role *role) {
    return (int32_t *)(void *)((char *)&tok->info + role->at);
}

// Id of a token by its text, hashed or not; -1 = none.
static int32_t find_text(const struct rlhf__tokenizer *tok, const char *s) {
    size_t len = strlen(s);
    int32_t id = rlhf__vocab_find(&tok->vocab, s, len);
    for (int32_t i = 0; id < 0 && i < tok->vocab.n; i++) {
        rlhf_str b = rlhf__vocab_bytes(&tok->vocab, i);
        if ((tok->vocab.token[i].special || tok->vocab.token[i].added) && b.len == len && len &&
            !memcmp(b.ptr, s, len))
            id = i;
    }
    return id;
}

rlhf_status rlhf__tokenizer_json(const char *dir, const char *name, json_t **out,
                                 struct rlhf__error *err) {
    *out = NULL;
    char *path = rlhf__path_join(dir, name);
    if (!path) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a path");
    rlhf_status st = RLHF_OK;
    if (rlhf__is_file(path)) {
        st = rlhf__json_load(path, out, err);
        if (st == RLHF_OK && !json_is_object(*out)) {
            st = rlhf__fail(err, RLHF_E_INVALID, "%s: expected an object, found %s", path,
                            rlhf__json_kind(*out));
            json_decref(*out);
            *out = NULL;
        }
    }
    free(path);
    return st;
}

// One added token. A token that the vocabulary has already must have the same text.
static rlhf_status add_token(struct rlhf__tokenizer *tok, int64_t id, const char *text, int special,
                             struct rlhf__error *err) {
    int known = id >= 0 && id < tok->vocab.n && tok->vocab.token[id].used;
    if (!known) RLHF_TRY(rlhf__vocab_add(&tok->vocab, id, text, strlen(text), err));
    struct rlhf__vocab_token *t = &tok->vocab.token[id];
    if (t->len != strlen(text) || memcmp(tok->vocab.bytes + t->at, text, t->len) != 0)
        return rlhf__fail(err, RLHF_E_INVALID, "the added token '%s' has the id %lld of '%.*s'",
                          text, (long long)id, (int)t->len, tok->vocab.bytes + t->at);
    if (special)
        t->special = 1;
    else
        t->added = 1;
    return RLHF_OK;
}

rlhf_status rlhf__tokenizer_add_tokens(struct rlhf__tokenizer *tok, const json_t *added,
                                       struct rlhf__error *err) {
    size_t i;
    json_t *item;
    json_array_foreach(added, i, item) {
        const json_t *id = json_object_get(item, "id");
        const char *text = json_string_value(json_object_get(item, "content"));
        if (!json_is_integer(id) || !text)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "added_tokens: entry %zu has no integer id and string content", i);
        int special = json_is_true(json_object_get(item, "special"));
        RLHF_TRY(add_token(tok, json_integer_value(id), text, special, err));
    }
    return RLHF_OK;
}

// added_tokens.json: {"text": id}. Which of them are special, other files say.
static rlhf_status read_added(struct rlhf__tokenizer *tok, json_t *file, struct rlhf__error *err) {
    const char *text;
    json_t *id;
    json_object_foreach(file, text, id) {
        if (!json_is_integer(id))
            return rlhf__fail(err, RLHF_E_INVALID, "'%s': expected an integer id, found %s", text,
                              rlhf__json_kind(id));
        RLHF_TRY(add_token(tok, json_integer_value(id), text, 0, err));
    }
    return RLHF_OK;
}

// tokenizer_config.json's added_tokens_decoder: {"id": {"content": text, "special": bool}}.
static rlhf_status read_decoder(struct rlhf__tokenizer *tok, json_t *file,
                                struct rlhf__error *err) {
    const char *key;
    json_t *item;
    json_object_foreach(json_object_get(file, "added_tokens_decoder"), key, item) {
        char *end = NULL;
        long long id = strtoll(key, &end, 10);
        const char *text = json_string_value(json_object_get(item, "content"));
        if (end == key || *end || !text)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "added_tokens_decoder: '%.60s' is no id with a string content", key);
        RLHF_TRY(add_token(tok, id, text, json_is_true(json_object_get(item, "special")), err));
    }
    return RLHF_OK;
}

// Roles given as "text" or {"content": "text"}.
static void read_roles(struct rlhf__tokenizer *tok, const json_t *file) {
    for (size_t r = 0; r < N_ROLES; r++) {
        int32_t *id = role_id(tok, &roles[r]);
        const json_t *v = json_object_get(file, roles[r].key);
        if (json_is_object(v)) v = json_object_get(v, "content");
        if (*id < 0 && json_is_string(v)) *id = find_text(tok, json_string_value(v));
    }
}

static void mark_special(struct rlhf__tokenizer *tok, const json_t *v) {
    if (json_is_object(v)) v = json_object_get(v, "content");
    int32_t id = json_is_string(v) ? find_text(tok, json_string_value(v)) : -1;
    if (id >= 0) tok->vocab.token[id].special = 1;
}

// Further special tokens, in a list or each by a name of its own.
static void read_more(struct rlhf__tokenizer *tok, json_t *file) {
    static const char *const keys[] = {"additional_special_tokens", "extra_special_tokens"};
    const char *name;
    size_t i;
    json_t *v;
    for (size_t k = 0; k < 2; k++) {
        json_t *list = json_object_get(file, keys[k]);
        json_array_foreach(list, i, v) mark_special(tok, v);
        json_object_foreach(list, name, v) mark_special(tok, v);
    }
}

// Roles given as ids; several eos ids: the first. An id without a token names nothing.
static void read_role_ids(struct rlhf__tokenizer *tok, const json_t *file) {
    for (size_t r = 0; r < N_ROLES; r++) {
        int32_t *id = role_id(tok, &roles[r]);
        const json_t *v = json_object_get(file, roles[r].id_key);
        if (json_is_array(v)) v = json_array_get(v, 0);
        json_int_t value = json_is_integer(v) ? json_integer_value(v) : -1;
        if (*id < 0 && value >= 0 && value < tok->vocab.n && tok->vocab.token[value].used)
            *id = (int32_t)value;
    }
}

static void read_usual(struct rlhf__tokenizer *tok) {
    for (size_t r = 0; r < N_ROLES; r++) {
        int32_t *id = role_id(tok, &roles[r]);
        const char *usual = roles[r].usual[tok->info.kind == RLHF__TOKENIZER_WORDPIECE];
        if (*id < 0 && usual) *id = find_text(tok, usual);
        if (*id >= 0) tok->vocab.token[*id].special = 1;
    }
    int32_t mask = tok->info.kind == RLHF__TOKENIZER_WORDPIECE ? find_text(tok, "[MASK]") : -1;
    if (mask >= 0) tok->vocab.token[mask].special = 1;
}

// What tokenizer_config.json says beyond roles.
static rlhf_status read_config(struct rlhf__tokenizer *tok, const json_t *file,
                               struct rlhf__error *err) {
    if (json_is_true(json_object_get(file, "add_prefix_space")))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "add_prefix_space = true is not supported");
    const char *class = json_string_value(json_object_get(file, "tokenizer_class"));
    // The last two are whatever tokenizer.json says.
    static const char *const bpe[] = {"GPT2Tokenizer",           "GPT2TokenizerFast",
                                      "CodeGenTokenizer",        "CodeGenTokenizerFast",
                                      "PreTrainedTokenizerFast", "TokenizersBackend"};
    int known = !class || tok->info.kind != RLHF__TOKENIZER_BPE;
    for (size_t i = 0; !known && i < (tok->has_json ? 6 : 4); i++)
        known = !strcmp(class, bpe[i]);
    if (!known)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "tokenizer_class '%.60s' is not supported%s; allowed: GPT2Tokenizer, "
                          "CodeGenTokenizer and, with a tokenizer.json that cuts words by GPT-2's "
                          "pattern, PreTrainedTokenizerFast and TokenizersBackend",
                          class, tok->has_json ? "" : " without a tokenizer.json");
    struct rlhf__bert_opts *o = rlhf__normaliser_bert(tok->normaliser);
    if (!o) return RLHF_OK;
    const json_t *lower = json_object_get(file, "do_lower_case");
    const json_t *strip = json_object_get(file, "strip_accents");
    const json_t *cjk = json_object_get(file, "tokenize_chinese_chars");
    if (json_is_boolean(lower)) o->lower = o->strip_accents = json_is_true(lower);
    if (json_is_boolean(strip)) o->strip_accents = json_is_true(strip);
    if (json_is_boolean(cjk)) o->split_cjk = json_is_true(cjk);
    return RLHF_OK;
}

static int longer_first(const void *a, const void *b, void *tok_) {
    const struct rlhf__vocab *v = tok_;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (v->token[x].len != v->token[y].len) return v->token[x].len > v->token[y].len ? -1 : 1;
    return x < y ? -1 : x > y;
}

static rlhf_status list_special(struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    size_t n = 0;
    for (int32_t i = 0; i < tok->vocab.n; i++) {
        const struct rlhf__vocab_token *t = &tok->vocab.token[i];
        n += t->special || t->added;
        tok->n_added += t->added && !t->special && t->len;
    }
    tok->special = malloc((n ? n : 1) * sizeof *tok->special);
    if (!tok->special) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a tokenizer");
    for (int32_t i = 0; i < tok->vocab.n; i++)
        if ((tok->vocab.token[i].special || tok->vocab.token[i].added) && tok->vocab.token[i].len)
            tok->special[tok->n_special++] = i;
    qsort_r(tok->special, tok->n_special, sizeof *tok->special, longer_first, &tok->vocab);
    return RLHF_OK;
}

rlhf_status rlhf__tokenizer_load_special(struct rlhf__tokenizer *tok, const char *dir,
                                         struct rlhf__error *err) {
    static const char *const names[] = {"added_tokens.json", "special_tokens_map.json",
                                        "tokenizer_config.json", "config.json"};
    enum { ADDED, MAP, CONFIG, MODEL, N };
    json_t *file[N] = {NULL};
    rlhf_status st = RLHF_OK;
    for (int i = 0; i < N && st == RLHF_OK; i++)
        st = rlhf__tokenizer_json(dir, names[i], &file[i], err);
    int at = ADDED;
    if (st == RLHF_OK) {
        st = read_added(tok, file[ADDED], err);
        if (st == RLHF_OK) {
            at = CONFIG;
            st = read_decoder(tok, file[CONFIG], err);
        }
        if (st == RLHF_OK) st = read_config(tok, file[CONFIG], err);
        if (st < 0) rlhf__error_context(err, "%s/%s", dir, names[at]);
    }
    if (st == RLHF_OK) {
        read_roles(tok, file[MAP]);
        read_roles(tok, file[CONFIG]);
        read_role_ids(tok, file[MODEL]);
        read_usual(tok);
        read_more(tok, file[MAP]);
        read_more(tok, file[CONFIG]);
        rlhf__frame_default(tok, file[CONFIG]);
        st = list_special(tok, err);
    }
    for (int i = 0; i < N; i++)
        json_decref(file[i]);
    return st;
}
