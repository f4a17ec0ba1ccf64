// tokenizer_config.c: see tokenizer_config.h. Reads the options, then the special tokens and their
// roles.
//
// The files may define special tokens in several ways, all of them optional: as added tokens
// (added_tokens.json, tokenizer_config.json); as roles, with the token's text
// (special_tokens_map.json, tokenizer_config.json); or as roles, with the token's id (config.json).
// Each role is taken from the first file that defines it, in this order: special_tokens_map.json,
// tokenizer_config.json, config.json. If none does, the usual names are tried.
#include "tokenizer/tokenizer_config.h"

#include "base/file.h"
#include "base/json.h"
#include "gguf/model_text.h"
#include "text/added.h"
#include "text/tokenizer_part.h"
#include "tokenizer/added_read.h"
#include "tokenizer/special_vars.h"
#include "tokenizer/tokenizer_class.h"
#include "tokenizer/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

// ---- the prefix ----

static int32_t prefix_of(const json_t *part, int depth) {
    static const char *const keys[] = {"pretokenizers", "normalizers"};
    int32_t found = RLHF__PREFIX_NONE;
    size_t i;
    const json_t *item;
    for (size_t k = 0; k < 2 && depth < RLHF__PART_DEPTH_MAX && rlhf__part_is(part, "Sequence");
         k++)
        json_array_foreach(json_object_get(part, keys[k]), i, item) {
            int32_t inner = prefix_of(item, depth + 1);
            if (inner != RLHF__PREFIX_NONE) found = inner;
        }
    if (rlhf__part_is(part, "Prepend")) return RLHF__PREFIX_SPACE;
    if (rlhf__part_is(part, "ByteLevel"))
        return json_is_true(json_object_get(part, "add_prefix_space")) ? RLHF__PREFIX_SPACE
                                                                       : RLHF__PREFIX_NONE;
    if (!rlhf__part_is(part, "Metaspace")) return found;
    const char *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
    if (json_is_false(json_object_get(part, "add_prefix_space")) ||
        (scheme && !strcmp(scheme, "never")))
        return RLHF__PREFIX_NONE;
    return scheme && !strcmp(scheme, "first") ? RLHF__PREFIX_FIRST : RLHF__PREFIX_ALWAYS;
}

int32_t rlhf__tokenizer_prefix(const json_t *file) {
    int32_t normal = prefix_of(json_object_get(file, "normalizer"), 0);
    int32_t cut = prefix_of(json_object_get(file, "pre_tokenizer"), 0);
    return cut != RLHF__PREFIX_NONE ? cut : normal;
}

static rlhf_status contradicts(const char *key, int on, const char *what, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s = %s, but the %s: they contradict each other; make them say the same",
                      key, on ? "true" : "false", what);
}

static rlhf_status check_prefix(const struct rlhf__tokenizer *tok, const json_t *config,
                                struct rlhf__error *err) {
    const json_t *space = json_object_get(config, "add_prefix_space");
    const json_t *legacy = json_object_get(config, "legacy");
    int on = json_is_true(space);
    if (!tok->has_json && on)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "add_prefix_space = true is not supported");
    if (tok->info.kind == RLHF__TOKENIZER_WORDPIECE || !tok->has_json) return RLHF_OK;
    if (json_is_boolean(space) && on != (tok->prefix != RLHF__PREFIX_NONE))
        return contradicts("add_prefix_space", on,
                           on ? "parts of tokenizer.json put no space in front of a text"
                              : "parts of tokenizer.json put a space in front of a text",
                           err);
    if (!json_is_boolean(legacy) || rlhf__tokenizer_family_of(tok, config) != RLHF__FAMILY_LLAMA)
        return RLHF_OK;
    on = json_is_true(legacy);
    if (on ? tok->prefix == RLHF__PREFIX_FIRST : tok->prefix == RLHF__PREFIX_ALWAYS)
        return contradicts("legacy", on,
                           on ? "pre_tokenizer Metaspace of tokenizer.json has prepend_scheme first"
                              : "pre_tokenizer Metaspace of tokenizer.json has prepend_scheme "
                                "always",
                           err);
    return RLHF_OK;
}

// Reads the options of BERT's normalizer from `config`, which may be NULL. Refuses an unsupported
// tokenizer_class, and values of add_prefix_space and legacy that contradict tokenizer.json.
// Errors: RLHF_E_UNSUPPORTED, RLHF_E_INVALID.
static rlhf_status read_config(struct rlhf__tokenizer *tok, const json_t *config,
                               struct rlhf__error *err) {
    RLHF_TRY(rlhf__tokenizer_check_class(tok, config, err));
    RLHF_TRY(check_prefix(tok, config, err));
    struct rlhf__bert_opts *o = rlhf__normalizer_bert(tok->normalizer);
    if (!o) return RLHF_OK;
    const json_t *lower = json_object_get(config, "do_lower_case");
    const json_t *strip = json_object_get(config, "strip_accents");
    const json_t *cjk = json_object_get(config, "tokenize_chinese_chars");
    if (json_is_boolean(lower)) o->lower = o->strip_accents = json_is_true(lower);
    if (json_is_boolean(strip)) o->strip_accents = json_is_true(strip);
    if (json_is_boolean(cjk)) o->split_cjk = json_is_true(cjk);
    return RLHF_OK;
}

// ---- around a text ----

// Refuse a value of add_bos_token or add_eos_token that contradicts the post_processor of
// tokenizer.json, because some versions of transformers would use these options, and others the
// post_processor. Call this function after the frame is known. Errors: RLHF_E_INVALID.
static rlhf_status check_frame(const struct rlhf__tokenizer *tok, const json_t *config,
                               struct rlhf__error *err) {
    const json_t *bos = json_object_get(config, "add_bos_token");
    const json_t *eos = json_object_get(config, "add_eos_token");
    if (rlhf__tokenizer_family_of(tok, config) != RLHF__FAMILY_LLAMA) return RLHF_OK;
    int has_bos = tok->frame.n_before > 0, has_eos = tok->frame.n_after > 0;
    if (json_is_boolean(bos) && json_is_true(bos) != has_bos)
        return contradicts("add_bos_token", !has_bos,
                           has_bos ? "post_processor of tokenizer.json puts a token before a text"
                                   : "post_processor of tokenizer.json puts none before a text",
                           err);
    if (json_is_boolean(eos) && json_is_true(eos) != has_eos)
        return contradicts("add_eos_token", !has_eos,
                           has_eos ? "post_processor of tokenizer.json puts a token after a text"
                                   : "post_processor of tokenizer.json puts none after a text",
                           err);
    return RLHF_OK;
}

// ---- special tokens ----

struct role {
    const char *key, *id_key;
    const char *usual[RLHF__FAMILY_N]; // by family; bos: rlhf__tokenizer_usual_bos
    size_t at;                         // offset of the id in struct rlhf__tokenizer_info
};

#define ROLE(name, gpt2, qwen2, llama, gemma, bert)                                                \
    {                                                                                              \
#name "_token", #name "_token_id",                                                         \
            {gpt2, qwen2, llama, gemma, bert }, offsetof(struct rlhf__tokenizer_info, name)        \
    }
static const struct role roles[] = {
    ROLE(bos, NULL, NULL, NULL, NULL, NULL),
    ROLE(eos, "<|endoftext|>", "<|endoftext|>", "</s>", "<eos>", NULL),
    ROLE(unk, NULL, NULL, "<unk>", "<unk>", "[UNK]"),
    ROLE(cls, NULL, NULL, NULL, NULL, "[CLS]"),
    ROLE(sep, NULL, NULL, NULL, NULL, "[SEP]"),
    ROLE(pad, NULL, NULL, NULL, "<pad>", "[PAD]"),
};
enum { BOS, N_ROLES = sizeof roles / sizeof roles[0] };

static int32_t *role_id(struct rlhf__tokenizer *tok, const struct role *role) {
    return (int32_t *)(void *)((char *)&tok->info + role->at);
}

// The id of a token that a file names by its text or as {"content": text}; -1 = none.
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

// The files. `at` is the file that is being read.
enum { ADDED, CONFIG, MAP, MODEL, N_FILES };
struct files {
    json_t *v[N_FILES]; // NULL = missing
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

// Reads additional special tokens from a list or from the members of an object.
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

// Reads roles that are given as ids. If there are several eos ids, the first one is used. An id
// without a token is ignored.
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

static rlhf_status read_usual(struct rlhf__tokenizer *tok, enum rlhf__tokenizer_family family,
                              const char *bos, struct rlhf__error *err) {
    for (size_t r = 0; r < N_ROLES; r++) {
        int32_t *id = role_id(tok, &roles[r]);
        const char *usual = r == BOS ? bos : roles[r].usual[family];
        if (*id < 0 && usual) RLHF_TRY(mark_text(tok, usual, id, err));
    }
    int32_t mask;
    if (family == RLHF__FAMILY_BERT) RLHF_TRY(mark_text(tok, "[MASK]", &mask, err));
    if (family == RLHF__FAMILY_GEMMA) RLHF_TRY(mark_text(tok, "<mask>", &mask, err));
    // If the directory has only vocab.json, a token that is not written in stand-ins for bytes must
    // be a special token.
    for (int32_t i = 0; i < tok->vocab.n; i++)
        if (tok->vocab.token[i].special) RLHF_TRY(rlhf__added_mark_id(tok, i, err));
    return RLHF_OK;
}

// 1 if a file sets the bos token to null, which removes any default.
static int says_no_bos(const struct files *f) {
    return json_is_null(rlhf__special_said(f->v[CONFIG], f->v[MAP], "bos_token"));
}

static rlhf_status read_all(struct rlhf__tokenizer *tok, struct files *f, struct rlhf__error *err) {
    json_t *config = f->v[CONFIG];
    f->at = ADDED;
    RLHF_TRY(rlhf__added_read_ids(tok, f->v[ADDED], err));
    f->at = CONFIG;
    RLHF_TRY(rlhf__added_read_decoder(tok, json_object_get(config, "added_tokens_decoder"), err));
    RLHF_TRY(read_config(tok, config, err));
    enum rlhf__tokenizer_family family = rlhf__tokenizer_family_of(tok, config);
    const int null = says_no_bos(f), no_id = null || tok->has_json;
    const char *bos = null ? NULL : rlhf__tokenizer_usual_bos(tok, config, f->v[MODEL]);
    const char *name = rlhf__tokenizer_loaded_class(tok, config, f->v[MODEL]);
    if (!name)
        name = family == RLHF__FAMILY_BERT ? "BertTokenizer" : "GPT2Tokenizer"; // older files
    tok->vars = rlhf__special_vars(config, f->v[MAP], name);
    if (!tok->vars) return RLHF__NOMEM(err, "out of memory for a tokenizer");
    RLHF_TRY(read_roles(tok, f, err));
    f->at = MODEL;
    RLHF_TRY(read_role_ids(tok, f->v[MODEL], no_id, err));
    RLHF_TRY(read_usual(tok, family, bos, err));
    RLHF_TRY(read_more(tok, f, MAP, err));
    RLHF_TRY(read_more(tok, f, CONFIG, err));
    rlhf__frame_default(tok, config);
    RLHF_TRY(check_frame(tok, config, err));
    f->at = N_FILES; // from here on, an error may concern any of the files
    return rlhf__added_ready(tok, err);
}

rlhf_status rlhf__tokenizer_load_special(struct rlhf__tokenizer *tok, const char *dir,
                                         struct rlhf__error *err) {
    static const char *const names[N_FILES] = {"added_tokens.json", "tokenizer_config.json",
                                               "special_tokens_map.json", "config.json"};
    struct files f = {.at = N_FILES};
    rlhf_status st = RLHF_OK;
    for (int i = 0; i < N_FILES && st == RLHF_OK; i++)
        if (i != MAP || map_counts(f.v[CONFIG])) st = rlhf__model_json(dir, names[i], &f.v[i], err);
    if (st == RLHF_OK) {
        st = read_all(tok, &f, err);
        const char *name = f.at < N_FILES ? names[f.at] : tok->has_json ? "tokenizer.json" : NULL;
        if (st < 0) rlhf__error_context(err, "%s%s%s", dir, name ? "/" : "", name ? name : "");
    }
    for (int i = 0; i < N_FILES; i++)
        json_decref(f.v[i]);
    return st;
}
