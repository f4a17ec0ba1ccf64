// gguf_roles.c: see gguf_roles.h.
#include "gguf_write/gguf_roles.h"

#include "base/json.h"
#include "gguf/model_text.h"
#include "tokenizer/tokenizer_config.h"

#include <stdio.h>
#include <string.h>

static int32_t id_of(const struct rlhf__gguf_token_list *t, const char *text) {
    for (int32_t i = 0; text && i < t->n; i++)
        if (t->token[i].text && strcmp(t->token[i].text, text) == 0) return i;
    return -1;
}

// Returns the id of a special token. If `name` is "bos", looks for bos_token in the tokenizer's
// files, then for bos_token_id in the model's config. Returns -1 if neither has the token.
static int32_t role(const struct rlhf__gguf_token_list *t, const json_t *config, const char *name) {
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

// Looks at the tokens that the tokenizer puts before a text or, with `after`, after it. If there
// is exactly one and it is `id`, sets *on to 1. If none exists, sets *on to 0. Otherwise fails. *on
// is the value of add_bos_token or, with `after`, of add_eos_token.
static rlhf_status puts_around(const struct rlhf__gguf_token_list *t, int32_t id, int after,
                               int *on, struct rlhf__error *err) {
    const int32_t *list;
    const size_t n = rlhf__tokenizer_around(t->tokenizer, after, &list);
    *on = n > 0;
    if (n == 0 || (n == 1 && list[0] == id)) return RLHF_OK;
    for (size_t i = 0; i < n; i++)
        if (list[i] != id || n == 1) {
            const char *text = list[i] < t->n ? t->token[list[i]].text : NULL;
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the tokenizer puts '%.60s' %s a text; a GGUF file can name only "
                              "its %s token",
                              t->dir, text ? text : "", after ? "after" : "before",
                              after ? "EOS" : "BOS");
        }
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: the tokenizer puts %zu %s tokens %s a text; a GGUF file can name one",
                      t->dir, n, after ? "EOS" : "BOS", after ? "after" : "before");
}

static int is_end(const json_t *list, int32_t id) {
    if (json_is_integer(list)) return json_integer_value(list) == id;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (is_end(json_array_get(list, i), id)) return 1;
    return 0;
}

// The end tokens besides EOS (eos_token_id of config.json and generation_config.json). A file has
// two keys for such tokens: the end of a turn, and the end of a message.
static rlhf_status put_ends(struct rlhf__gguf *g, struct rlhf__gguf_token_list *t,
                            const json_t *config, int32_t eos, struct rlhf__error *err) {
    static const char *const keys[] = {"tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    json_t *sampling = NULL;
    RLHF_TRY(rlhf__model_json(t->dir, "generation_config.json", &sampling, err));
    const json_t *a = json_object_get(config, "eos_token_id");
    const json_t *b = json_object_get(sampling, "eos_token_id");
    for (int32_t i = 0, n = 0; i < t->n && n < 2; i++) {
        if (i == eos || !t->token[i].text || !(is_end(a, i) || is_end(b, i))) continue;
        if (t->token[i].type == RLHF__GGUF_TOKEN_NORMAL)
            t->token[i].type = RLHF__GGUF_TOKEN_CONTROL;
        rlhf__gguf_u32(g, keys[n++], (uint32_t)i);
    }
    json_decref(sampling);
    return RLHF_OK;
}

rlhf_status rlhf__gguf_roles_put(struct rlhf__gguf *g, struct rlhf__gguf_token_list *t,
                                 const json_t *config, struct rlhf__error *err) {
    static const char *const names[] = {"bos", "eos", "unk", "pad"};
    static const char *const keys[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.unknown_token_id",
                                       "tokenizer.ggml.padding_token_id"};
    int32_t id[4];
    for (int i = 0; i < 4; i++) {
        id[i] = role(t, config, names[i]);
        if (id[i] < 0) continue;
        struct rlhf__gguf_token *token = &t->token[id[i]];
        if (token->text && token->type == RLHF__GGUF_TOKEN_NORMAL)
            token->type = RLHF__GGUF_TOKEN_CONTROL;
        if (i == 2 && t->form.spm) token->type = RLHF__GGUF_TOKEN_UNKNOWN;
        rlhf__gguf_u32(g, keys[i], (uint32_t)id[i]);
    }
    RLHF_TRY(put_ends(g, t, config, id[1], err));
    int bos, eos;
    RLHF_TRY(puts_around(t, id[0], 0, &bos, err));
    RLHF_TRY(puts_around(t, id[1], 1, &eos, err));
    rlhf__gguf_bool(g, "tokenizer.ggml.add_bos_token", bos);
    rlhf__gguf_bool(g, "tokenizer.ggml.add_eos_token", eos);
    if (t->form.spm) rlhf__gguf_bool(g, "tokenizer.ggml.add_space_prefix", t->form.space_prefix);
    return RLHF_OK;
}
