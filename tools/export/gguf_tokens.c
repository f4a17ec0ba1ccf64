// gguf_tokens.c: see gguf_tokens.h. gguf_form.c finds a tokenizer's form.
#include "export/gguf_tokens.h"

#include "base/file.h"
#include "base/json.h"
#include "export/gguf_chat.h"
#include "export/gguf_form.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// llama.cpp's types of tokens.
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

struct token {
    const char *text; // NULL = no text for this id; borrowed
    int32_t type;
    float score; // minus the rank of the merge whose result it is
};

struct tokens {
    const char *dir;
    struct token *token; // [n]
    int32_t n;
    json_t *full, *vocab,
        *added;           // tokenizer.json or NULL; {"text": id}; [{"id", "content", ..}]
    json_t *merges;       // ["a b"] or [["a", "b"]]
    json_t *config, *map; // tokenizer_config.json, special_tokens_map.json, or NULL
    struct rlhf__gguf_form form;
    struct rlhf__tokenizer *tokenizer; // opened only to reject files that models reject
};

// ---- reading ----

// merges.txt as a list of "a b".
static rlhf_status read_merges(struct tokens *t, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__path_put(path, "%s/merges.txt", t->dir);
    rlhf_status st = rlhf__file_read(path, (uint64_t)256 << 20, &text, err);
    t->merges = json_array();
    const char *at = rlhf__buf_text(&text);
    while (st == RLHF_OK && *at) {
        size_t len = strcspn(at, "\n"), next = len + (at[len] == '\n');
        if (len && at[len - 1] == '\r') len--;
        if (len && strncmp(at, "#version", 8) != 0 &&
            json_array_append_new(t->merges, json_stringn(at, len)) != 0)
            st = rlhf__fail(err, RLHF_E_INVALID, "%s: a line is not UTF-8", path);
        at += next;
    }
    rlhf__buf_finish(&text);
    return st;
}

// vocab.json with merges.txt, as GPT-2 has them.
static rlhf_status read_classic(struct tokens *t, struct rlhf__error *err) {
    const char *text;
    json_t *id, *more;
    RLHF_TRY(rlhf__json_load_any(t->dir, "vocab.json", &t->vocab, err));
    RLHF_TRY(rlhf__json_load_any(t->dir, "added_tokens.json", &more, err));
    t->added = json_array();
    json_object_foreach(more, text, id) {
        json_array_append_new(
            t->added, json_pack("{s:O, s:s, s:b}", "id", id, "content", text, "special", 1));
    }
    json_decref(more);
    if (!t->vocab)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s has no tokenizer that a GGUF file can hold (tokenizer.json, or "
                          "vocab.json with merges.txt)",
                          t->dir);
    t->form = rlhf__gguf_form_gpt2();
    return read_merges(t, err);
}

static rlhf_status read_all(struct tokens *t, struct rlhf__error *err) {
    RLHF_TRY(rlhf__json_load_any(t->dir, "tokenizer.json", &t->full, err));
    RLHF_TRY(rlhf__json_load_any(t->dir, "tokenizer_config.json", &t->config, err));
    RLHF_TRY(rlhf__json_load_any(t->dir, "special_tokens_map.json", &t->map, err));
    if (!t->full) return read_classic(t, err);
    RLHF_TRY(rlhf__gguf_form_of(t->full, t->dir, &t->form, err));
    const json_t *model = json_object_get(t->full, "model");
    t->vocab = json_incref(json_object_get(model, "vocab"));
    t->merges = json_incref(json_object_get(model, "merges"));
    t->added = json_incref(json_object_get(t->full, "added_tokens"));
    if (json_is_object(t->vocab) && json_is_array(t->merges)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s/tokenizer.json: model has no vocab or no merges",
                      t->dir);
}

// ---- tokens and their types ----

static rlhf_status set(struct tokens *t, const char *text, const json_t *id, int32_t type,
                       struct rlhf__error *err) {
    const json_int_t at = json_is_integer(id) ? json_integer_value(id) : -1;
    if (at < 0 || at >= t->n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: the token '%.60s' has the id %lld, and the model has %d rows",
                          t->dir, text, (long long)at, (int)t->n);
    t->token[at].text = text;
    t->token[at].type = type;
    return RLHF_OK;
}

static int is_byte(const char *text) {
    unsigned v;
    char end;
    return strlen(text) == 6 && sscanf(text, "<0x%2X%c", &v, &end) == 2 && end == '>';
}

static rlhf_status fill(struct tokens *t, struct rlhf__error *err) {
    const char *text;
    json_t *v;
    size_t i;
    const int spm = t->form.spm;
    json_object_foreach(t->vocab, text, v) {
        RLHF_TRY(set(t, text, v, spm && is_byte(text) ? BYTE : NORMAL, err));
    }
    json_array_foreach(t->added, i, v) {
        text = json_string_value(json_object_get(v, "content"));
        if (!text)
            return rlhf__fail(err, RLHF_E_INVALID, "%s: an added token has no content", t->dir);
        const int special = json_is_true(json_object_get(v, "special"));
        RLHF_TRY(set(t, text, json_object_get(v, "id"), special ? CONTROL : USER_DEFINED, err));
    }
    return RLHF_OK;
}

// ---- ids with a role ----

static int32_t id_of(const struct tokens *t, const char *text) {
    for (int32_t i = 0; text && i < t->n; i++)
        if (t->token[i].text && strcmp(t->token[i].text, text) == 0) return i;
    return -1;
}

// Returns the id of a special token. If `name` is "bos", looks for bos_token in the tokenizer's
// files, then for bos_token_id in the model's config. Returns -1 if neither has the token.
static int32_t role(const struct tokens *t, const json_t *config, const char *name) {
    char key[32];
    snprintf(key, sizeof key, "%s_token", name);
    const json_t *v = rlhf__special_said(t->config, t->map, key);
    if (json_is_object(v)) v = json_object_get(v, "content");
    int32_t id = id_of(t, json_string_value(v));
    snprintf(key, sizeof key, "%s_token_id", name);
    v = json_object_get(config, key);
    if (json_is_array(v)) v = json_array_get(v, 0);
    if (id < 0 && json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) < t->n)
        id = (int32_t)json_integer_value(v);
    return id;
}

// Looks at the tokens that the tokenizer puts before a text or, with `behind`, after it. If there
// is exactly one and it is `id`, sets *on to 1. If none exists, sets *on to 0. Otherwise fails. *on
// is the value of add_bos_token or, with `behind`, of add_eos_token.
static rlhf_status puts_around(const struct tokens *t, int32_t id, int behind, int *on,
                               struct rlhf__error *err) {
    const int32_t *list;
    const size_t n = rlhf__tokenizer_around(t->tokenizer, behind, &list);
    *on = n > 0;
    if (n == 0 || (n == 1 && list[0] == id)) return RLHF_OK;
    for (size_t i = 0; i < n; i++)
        if (list[i] != id || n == 1) {
            const char *text = list[i] < t->n ? t->token[list[i]].text : NULL;
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the tokenizer puts '%.60s' %s a text; a GGUF file can name only "
                              "its %s token",
                              t->dir, text ? text : "", behind ? "after" : "in front of",
                              behind ? "EOS" : "BOS");
        }
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: the tokenizer puts %zu %s tokens %s a text; a GGUF file can name one",
                      t->dir, n, behind ? "EOS" : "BOS", behind ? "after" : "in front of");
}

static rlhf_status put_roles(struct rlhf__gguf *g, struct tokens *t, const json_t *config,
                             struct rlhf__error *err) {
    static const char *const names[] = {"bos", "eos", "unk", "pad"};
    static const char *const keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.unknown_token_id",
                                       "tokenizer.ggml.padding_token_id"};
    int32_t id[4];
    for (int i = 0; i < 4; i++) {
        id[i] = role(t, config, names[i]);
        if (id[i] < 0) continue;
        struct token *token = &t->token[id[i]];
        if (token->text && token->type == NORMAL) token->type = CONTROL;
        if (i == 2 && t->form.spm) token->type = UNKNOWN;
        rlhf__gguf_u32(g, keys[i], (uint32_t)id[i]);
    }
    int bos, eos;
    RLHF_TRY(puts_around(t, id[0], 0, &bos, err));
    RLHF_TRY(puts_around(t, id[1], 1, &eos, err));
    rlhf__gguf_bool(g, "tokenizer.ggml.add_bos_token", bos);
    rlhf__gguf_bool(g, "tokenizer.ggml.add_eos_token", eos);
    if (t->form.spm) rlhf__gguf_bool(g, "tokenizer.ggml.add_space_prefix", t->form.space_prefix);
    return RLHF_OK;
}

// ---- lists ----

static void put_tokens(struct rlhf__gguf *g, const struct tokens *t) {
    char none[32];
    rlhf__gguf_array(g, "tokenizer.ggml.tokens", RLHF__GGUF_STR, (uint64_t)t->n);
    for (int32_t i = 0; i < t->n; i++) {
        const char *text = t->token[i].text;
        snprintf(none, sizeof none, "[PAD%d]", (int)i);
        rlhf__gguf_item_str(g, text ? text : none, strlen(text ? text : none));
    }
    rlhf__gguf_array(g, "tokenizer.ggml.token_type", RLHF__GGUF_I32, (uint64_t)t->n);
    for (int32_t i = 0; i < t->n; i++)
        rlhf__gguf_item_i32(g, t->token[i].text ? t->token[i].type : UNUSED);
    if (!t->form.spm) return;
    rlhf__gguf_array(g, "tokenizer.ggml.scores", RLHF__GGUF_F32, (uint64_t)t->n);
    for (int32_t i = 0; i < t->n; i++)
        rlhf__gguf_item_f32(g, t->token[i].score);
}

static rlhf_status put_merges(struct rlhf__gguf *g, const struct tokens *t,
                              struct rlhf__error *err) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    size_t i;
    const json_t *v;
    rlhf_status st = RLHF_OK;
    rlhf__gguf_array(g, "tokenizer.ggml.merges", RLHF__GGUF_STR, json_array_size(t->merges));
    json_array_foreach(t->merges, i, v) {
        struct rlhf__gguf_merge m;
        if (!rlhf__gguf_merge_of(v, &m)) {
            st = rlhf__fail(err, RLHF_E_INVALID, "%s: merge %zu is not two tokens", t->dir, i);
            break;
        }
        rlhf__buf_clear(&line);
        rlhf__buf_put(&line, m.left, m.n_left);
        rlhf__buf_putc(&line, ' ');
        rlhf__buf_put(&line, m.right, m.n_right);
        rlhf__gguf_item_str(g, rlhf__buf_text(&line), line.len);
    }
    if (st == RLHF_OK) st = rlhf__buf_ok(&line, err);
    rlhf__buf_finish(&line);
    return st;
}

// In a SentencePiece vocabulary, scores order the merges: a piece with a higher score is merged
// earlier.
static rlhf_status score(struct tokens *t, struct rlhf__error *err) {
    RLHF_TRY(rlhf__gguf_form_spm(t->vocab, t->merges, t->added, t->dir, err));
    size_t i;
    const json_t *v;
    json_array_foreach(t->merges, i, v) {
        struct rlhf__gguf_merge m;
        char piece[1024];
        if (!rlhf__gguf_merge_of(v, &m) || m.n_left + m.n_right >= sizeof piece) continue;
        snprintf(piece, sizeof piece, "%.*s%.*s", (int)m.n_left, m.left, (int)m.n_right, m.right);
        const json_t *id = json_object_get(t->vocab, piece);
        struct token *token = id ? &t->token[json_integer_value(id)] : NULL;
        if (token && token->score == 0) token->score = -(float)(i + 1);
    }
    return RLHF_OK;
}

// ---- all of it ----

static rlhf_status put(struct rlhf__gguf *g, struct tokens *t, const json_t *config,
                       struct rlhf__error *err) {
    RLHF_TRY(read_all(t, err));
    RLHF_TRY(fill(t, err));
    if (t->form.spm) RLHF_TRY(score(t, err));
    RLHF_TRY(rlhf__tokenizer_open(t->dir, &t->tokenizer, err));
    rlhf__gguf_str(g, "tokenizer.ggml.model", t->form.spm ? "llama" : "gpt2");
    rlhf__gguf_str(g, "tokenizer.ggml.pre", t->form.pre);
    RLHF_TRY(put_roles(g, t, config, err)); // sets the types of special tokens
    put_tokens(g, t);
    if (!t->form.spm) RLHF_TRY(put_merges(g, t, err));
    return rlhf__gguf_chat_put(g, t->dir, t->config, err);
}

rlhf_status rlhf__gguf_tokens_put(struct rlhf__gguf *g, const char *dir, const json_t *config,
                                  int32_t n_vocab, struct rlhf__error *err) {
    struct tokens t = {.dir = dir, .n = n_vocab};
    t.token = calloc((size_t)n_vocab, sizeof *t.token);
    rlhf_status st = t.token ? put(g, &t, config, err)
                             : RLHF__NOMEM(err, "out of memory for %d tokens", (int)n_vocab);
    free(t.token);
    json_decref(t.full);
    json_decref(t.vocab);
    json_decref(t.added);
    json_decref(t.merges);
    json_decref(t.config);
    json_decref(t.map);
    rlhf__tokenizer_close(t.tokenizer);
    return st;
}
