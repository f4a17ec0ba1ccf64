// gguf_tokens.c: see gguf_tokens.h. gguf_form.c finds a tokenizer's form.
#include "gguf_write/gguf_tokens.h"

#include "base/file.h"
#include "base/json.h"
#include "gguf/model_text.h"
#include "gguf_write/gguf_chat.h"
#include "gguf_write/gguf_roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- reading ----

// merges.txt as a list of "a b".
static rlhf_status read_merges(struct rlhf__gguf_token_list *t, struct rlhf__error *err) {
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
static rlhf_status read_classic(struct rlhf__gguf_token_list *t, struct rlhf__error *err) {
    const char *text;
    json_t *id, *more;
    RLHF_TRY(rlhf__model_json(t->dir, "vocab.json", &t->vocab, err));
    RLHF_TRY(rlhf__model_json(t->dir, "added_tokens.json", &more, err));
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

static rlhf_status read_all(struct rlhf__gguf_token_list *t, struct rlhf__error *err) {
    RLHF_TRY(rlhf__model_json(t->dir, "tokenizer.json", &t->full, err));
    RLHF_TRY(rlhf__model_json(t->dir, "tokenizer_config.json", &t->config, err));
    RLHF_TRY(rlhf__model_json(t->dir, "special_tokens_map.json", &t->map, err));
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

static rlhf_status set(struct rlhf__gguf_token_list *t, const char *text, const json_t *id,
                       int32_t type, struct rlhf__error *err) {
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

static rlhf_status fill(struct rlhf__gguf_token_list *t, struct rlhf__error *err) {
    const char *text;
    json_t *v;
    size_t i;
    const int spm = t->form.spm;
    json_object_foreach(t->vocab, text, v) {
        RLHF_TRY(set(t, text, v,
                     spm && is_byte(text) ? RLHF__GGUF_TOKEN_BYTE : RLHF__GGUF_TOKEN_NORMAL, err));
    }
    json_array_foreach(t->added, i, v) {
        text = json_string_value(json_object_get(v, "content"));
        if (!text)
            return rlhf__fail(err, RLHF_E_INVALID, "%s: an added token has no content", t->dir);
        const int special = json_is_true(json_object_get(v, "special"));
        RLHF_TRY(set(t, text, json_object_get(v, "id"),
                     special ? RLHF__GGUF_TOKEN_CONTROL : RLHF__GGUF_TOKEN_USER_DEFINED, err));
    }
    return RLHF_OK;
}

// ---- lists ----

// llama.cpp looks for added tokens before it replaces spaces, so they must have spaces.
static void put_text(struct rlhf__gguf *g, const struct rlhf__gguf_token *k, int32_t id, int spm,
                     struct rlhf__buf *text) {
    static const size_t n = sizeof RLHF__GGUF_SPACE - 1;
    rlhf__buf_clear(text);
    if (!k->text) rlhf__buf_printf(text, "[PAD%d]", (int)id);
    for (const char *at = k->text; at && *at;) {
        const int space =
            spm && k->type == RLHF__GGUF_TOKEN_USER_DEFINED && !strncmp(at, RLHF__GGUF_SPACE, n);
        rlhf__buf_putc(text, space ? ' ' : *at);
        at += space ? n : 1;
    }
    rlhf__gguf_item_str(g, rlhf__buf_text(text), text->len);
}

static rlhf_status put_tokens(struct rlhf__gguf *g, const struct rlhf__gguf_token_list *t,
                              struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__gguf_array(g, "tokenizer.ggml.tokens", RLHF__GGUF_STR, (uint64_t)t->n);
    for (int32_t i = 0; i < t->n; i++)
        put_text(g, &t->token[i], i, t->form.spm, &text);
    const rlhf_status st = rlhf__buf_ok(&text, err);
    rlhf__buf_finish(&text);
    if (st != RLHF_OK) return st;
    rlhf__gguf_array(g, "tokenizer.ggml.token_type", RLHF__GGUF_I32, (uint64_t)t->n);
    for (int32_t i = 0; i < t->n; i++)
        rlhf__gguf_item_i32(g, t->token[i].text ? t->token[i].type : RLHF__GGUF_TOKEN_UNUSED);
    if (!t->form.spm) return RLHF_OK;
    rlhf__gguf_array(g, "tokenizer.ggml.scores", RLHF__GGUF_F32, (uint64_t)t->n);
    for (int32_t i = 0; i < t->n; i++) {
        const struct rlhf__gguf_token *k = &t->token[i];
        const int scored =
            k->text && (k->type == RLHF__GGUF_TOKEN_NORMAL || k->type == RLHF__GGUF_TOKEN_BYTE);
        rlhf__gguf_item_f32(g, scored ? k->score : -1000); // as llama.cpp's converter
    }
    return RLHF_OK;
}

static rlhf_status put_merges(struct rlhf__gguf *g, const struct rlhf__gguf_token_list *t,
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
static rlhf_status score(struct rlhf__gguf_token_list *t, struct rlhf__error *err) {
    RLHF_TRY(rlhf__gguf_form_spm(t->vocab, t->merges, t->added, t->dir, err));
    size_t i, rank = 0;
    const json_t *v;
    json_array_foreach(t->merges, i, v) {
        struct rlhf__gguf_merge m;
        char piece[1024];
        if (!rlhf__gguf_merge_of(v, &m) || m.n_left + m.n_right >= sizeof piece) continue;
        snprintf(piece, sizeof piece, "%.*s%.*s", (int)m.n_left, m.left, (int)m.n_right, m.right);
        const json_t *id = json_object_get(t->vocab, piece);
        struct rlhf__gguf_token *token = id ? &t->token[json_integer_value(id)] : NULL;
        if (!token || token->type != RLHF__GGUF_TOKEN_NORMAL || token->ranked) continue;
        token->ranked = 1;
        token->score = -(float)rank++;
    }
    return RLHF_OK;
}

// ---- all of it ----

static rlhf_status put(struct rlhf__gguf *g, struct rlhf__gguf_token_list *t, const json_t *config,
                       struct rlhf__error *err) {
    RLHF_TRY(read_all(t, err));
    RLHF_TRY(fill(t, err));
    if (t->form.spm) RLHF_TRY(score(t, err));
    RLHF_TRY(rlhf__tokenizer_open(t->dir, &t->tokenizer, err));
    rlhf__gguf_str(g, "tokenizer.ggml.model", t->form.spm ? "llama" : "gpt2");
    rlhf__gguf_str(g, "tokenizer.ggml.pre", t->form.pre);
    RLHF_TRY(rlhf__gguf_roles_put(g, t, config, err)); // sets the types of special tokens
    RLHF_TRY(put_tokens(g, t, err));
    if (!t->form.spm) RLHF_TRY(put_merges(g, t, err));
    return rlhf__gguf_chat_put(g, t->dir, t->config, err);
}

rlhf_status rlhf__gguf_tokens_put(struct rlhf__gguf *g, const char *dir, const json_t *config,
                                  int32_t n_vocab, struct rlhf__error *err) {
    struct rlhf__gguf_token_list t = {.dir = dir, .n = n_vocab};
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
