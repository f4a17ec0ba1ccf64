// special.c: the special tokens of a tokenizer: which tokens they are and what each is for.
//
// The files say it in several ways, and all of them are optional: added tokens (added_tokens.json,
// tokenizer_config.json), roles by text (tokenizer_config.json, special_tokens_map.json), roles by
// id (config.json). The first that names a role wins; then the usual names are tried.
#include "text/special.h"

#include "base/file.h"
#include "base/json.h"
#include "text/added_id.h"
#include "text/added_read.h"
#include "text/added_ready.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

struct role {
    const char *key, *id_key;
    const char *usual[RLHF__FAMILY_N]; // by enum rlhf__family; bos: rlhf__tokenizer_usual_bos
    size_t at;                         // offset of the id in struct rlhf__tokenizer_info
};

#define ROLE(name, gpt2, qwen2, llama, bert)                                                       \
    {                                                                                              \
#name "_token", #name "_token_id",                                                         \
            {gpt2, qwen2, llama, bert }, offsetof(struct rlhf__tokenizer_info, name)               \
    }
static const struct role roles[] = {
    ROLE(bos, NULL, NULL, NULL, NULL),
    ROLE(eos, "<|endoftext|>", "<|endoftext|>", "</s>", NULL),
    ROLE(unk, NULL, NULL, "<unk>", "[UNK]"),
    ROLE(cls, NULL, NULL, NULL, "[CLS]"),
    ROLE(sep, NULL, NULL, NULL, "[SEP]"),
    ROLE(pad, NULL, NULL, NULL, "[PAD]"),
};
enum { BOS, N_ROLES = sizeof roles / sizeof roles[0] };

static int32_t *role_id(struct rlhf__tokenizer *tok, const struct role *role) {
    return (int32_t *)(void *)((char *)&tok->info + role->at);
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

// Id of the token that a file names, as text or {"content": text}; -1 = none.
static int32_t named_id(const struct rlhf__tokenizer *tok, const json_t *v) {
    if (json_is_object(v)) v = json_object_get(v, "content");
    return json_is_string(v) ? rlhf__added_id(tok, json_string_value(v), json_string_length(v))
                             : -1;
}

static int map_counts(const json_t *config) {
    return !json_object_get(config, "added_tokens_decoder");
}

const json_t *rlhf__special_said(const json_t *config, const json_t *map, const char *key) {
    const json_t *v = map_counts(config) ? json_object_get(map, key) : NULL;
    return v ? v : json_object_get(config, key);
}

// The files, and which of them is being read.
enum { ADDED, CONFIG, MAP, MODEL, N_FILES };
struct files {
    json_t *v[N_FILES]; // NULL = there is none
    int at;
};

static rlhf_status read_roles(struct rlhf__tokenizer *tok, struct files *f,
                              struct rlhf__error *err) {
    for (size_t r = 0; r < N_ROLES; r++) {
        const json_t *v = rlhf__special_said(f->v[CONFIG], f->v[MAP], roles[r].key);
        f->at = v && v == json_object_get(f->v[MAP], roles[r].key) ? MAP : CONFIG;
        *role_id(tok, &roles[r]) = named_id(tok, v);
        RLHF_TRY(rlhf__added_mark(tok, v, err));
    }
    return RLHF_OK;
}

// Further special tokens, in a list or each by a name of its own.
static rlhf_status read_more(struct rlhf__tokenizer *tok, struct files *f, int at,
                             struct rlhf__error *err) {
    static const char *const keys[] = {"additional_special_tokens", "extra_special_tokens"};
    const char *name;
    size_t i;
    json_t *v;
    f->at = at;
    for (size_t k = 0; k < 2; k++) {
        json_t *list = json_object_get(f->v[at], keys[k]);
        json_array_foreach(list, i, v) RLHF_TRY(rlhf__added_mark(tok, v, err));
        json_object_foreach(list, name, v) RLHF_TRY(rlhf__added_mark(tok, v, err));
    }
    return RLHF_OK;
}

// Roles given as ids; several eos ids: the first. An id without a token names nothing.
static rlhf_status read_role_ids(struct rlhf__tokenizer *tok, const json_t *file, int skip_bos,
                                 struct rlhf__error *err) {
    for (size_t r = skip_bos ? BOS + 1 : 0; r < N_ROLES; r++) {
        int32_t *id = role_id(tok, &roles[r]);
        const json_t *v = json_object_get(file, roles[r].id_key);
        if (json_is_array(v)) v = json_array_get(v, 0);
        json_int_t value = json_is_integer(v) ? json_integer_value(v) : -1;
        if (*id >= 0 || value < 0 || value >= tok->vocab.n || !tok->vocab.token[value].used)
            continue;
        *id = (int32_t)value;
        RLHF_TRY(rlhf__added_mark_id(tok, *id, err));
    }
    return RLHF_OK;
}

static rlhf_status mark_text(struct rlhf__tokenizer *tok, const char *text, int32_t *id,
                             struct rlhf__error *err) {
    json_t *v = json_string(text);
    if (!v) return RLHF__NOMEM(err, "out of memory for a tokenizer");
    *id = named_id(tok, v);
    rlhf_status st = rlhf__added_mark(tok, v, err);
    json_decref(v);
    return st;
}

static rlhf_status read_usual(struct rlhf__tokenizer *tok, enum rlhf__family family,
                              const char *bos, struct rlhf__error *err) {
    for (size_t r = 0; r < N_ROLES; r++) {
        int32_t *id = role_id(tok, &roles[r]);
        const char *usual = r == BOS ? bos : roles[r].usual[family];
        if (*id < 0 && usual) RLHF_TRY(mark_text(tok, usual, id, err));
    }
    int32_t mask;
    if (family == RLHF__FAMILY_BERT) RLHF_TRY(mark_text(tok, "[MASK]", &mask, err));
    // A vocab.json alone: what is no word of bytes can only be a special token.
    for (int32_t i = 0; i < tok->vocab.n; i++)
        if (tok->vocab.token[i].special) RLHF_TRY(rlhf__added_mark_id(tok, i, err));
    return RLHF_OK;
}

// An explicit null removes the bos token, whatever the default is.
static int says_no_bos(const struct files *f) {
    return json_is_null(rlhf__special_said(f->v[CONFIG], f->v[MAP], "bos_token"));
}

static rlhf_status read_all(struct rlhf__tokenizer *tok, struct files *f, struct rlhf__error *err) {
    json_t *config = f->v[CONFIG];
    f->at = ADDED;
    RLHF_TRY(rlhf__added_read_ids(tok, f->v[ADDED], err));
    f->at = CONFIG;
    RLHF_TRY(rlhf__added_read_decoder(tok, json_object_get(config, "added_tokens_decoder"), err));
    RLHF_TRY(rlhf__tokenizer_read_config(tok, config, err));
    enum rlhf__family family = rlhf__tokenizer_family(tok, config);
    const int null = says_no_bos(f), no_id = null || tok->has_json;
    const char *bos = null ? NULL : rlhf__tokenizer_usual_bos(tok, config, f->v[MODEL]);
    RLHF_TRY(read_roles(tok, f, err));
    f->at = MODEL;
    RLHF_TRY(read_role_ids(tok, f->v[MODEL], no_id, err));
    RLHF_TRY(read_usual(tok, family, bos, err));
    RLHF_TRY(read_more(tok, f, MAP, err));
    RLHF_TRY(read_more(tok, f, CONFIG, err));
    rlhf__frame_default(tok, config);
    RLHF_TRY(rlhf__tokenizer_check_frame(tok, config, err));
    f->at = N_FILES; // from here on it is the tokens of all of them
    return rlhf__added_ready(tok, err);
}

rlhf_status rlhf__tokenizer_load_special(struct rlhf__tokenizer *tok, const char *dir,
                                         struct rlhf__error *err) {
    static const char *const names[N_FILES] = {"added_tokens.json", "tokenizer_config.json",
                                               "special_tokens_map.json", "config.json"};
    struct files f = {.at = N_FILES};
    rlhf_status st = RLHF_OK;
    for (int i = 0; i < N_FILES && st == RLHF_OK; i++)
        if (i != MAP || map_counts(f.v[CONFIG]))
            st = rlhf__tokenizer_json(dir, names[i], &f.v[i], err);
    if (st == RLHF_OK) {
        st = read_all(tok, &f, err);
        const char *name = f.at < N_FILES ? names[f.at] : tok->has_json ? "tokenizer.json" : NULL;
        if (st < 0) rlhf__error_context(err, "%s%s%s", dir, name ? "/" : "", name ? name : "");
    }
    for (int i = 0; i < N_FILES; i++)
        json_decref(f.v[i]);
    return st;
}
