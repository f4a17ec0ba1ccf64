// tokenizer_config.c: see tokenizer_config.h.
#include "text/tokenizer_config.h"

#include "text/tokenizer_impl.h"
#include "text/tokenizer_part.h"

#include <string.h>

// ---- classes
// ---------------------------------------------------------------------------------------

static const struct {
    const char *name; // "Fast" may follow
    enum rlhf__family family;
    int alone;       // means something without a tokenizer.json
    const char *bos; // where no file names one; NULL = none
} classes[] = {
    {"GPT2Tokenizer", RLHF__FAMILY_GPT2, 1, "<|endoftext|>"},
    {"CodeGenTokenizer", RLHF__FAMILY_GPT2, 1, "<|endoftext|>"},
    {"Qwen2Tokenizer", RLHF__FAMILY_QWEN2, 0, NULL},
    {"LlamaTokenizer", RLHF__FAMILY_LLAMA, 0, "<s>"},
    {"PreTrainedTokenizer", RLHF__FAMILY_GPT2, 0, NULL},
    {"TokenizersBackend", RLHF__FAMILY_GPT2, 0, NULL},
};
enum { N_CLASSES = sizeof classes / sizeof *classes };

static const char *class_name(const json_t *config) {
    return json_string_value(json_object_get(config, "tokenizer_class"));
}

// Place in `classes`, N_CLASSES = not there.
static size_t class_at(const char *name) {
    size_t i = 0;
    for (; name && i < N_CLASSES; i++) {
        size_t len = strlen(classes[i].name);
        if (strncmp(name, classes[i].name, len) != 0) continue;
        if (!name[len] || !strcmp(name + len, "Fast")) break;
    }
    return name ? i : N_CLASSES;
}

enum rlhf__family rlhf__tokenizer_family(const struct rlhf__tokenizer *tok, const json_t *config) {
    size_t at = class_at(class_name(config));
    if (tok->info.kind == RLHF__TOKENIZER_WORDPIECE) return RLHF__FAMILY_BERT;
    return at < N_CLASSES ? classes[at].family : RLHF__FAMILY_GPT2;
}

// The class that transformers loads without a tokenizer_class, or instead of the named one.
static const char *loaded_class(const struct rlhf__tokenizer *tok, const json_t *config,
                                const json_t *model) {
    const char *name = class_name(config);
    const char *type = json_string_value(json_object_get(model, "model_type"));
    size_t at = class_at(name);
    if (!tok->has_json) return name;
    if (type && !strcmp(type, "qwen2")) return "Qwen2Tokenizer"; // whatever is named
    if (name && type && !strcmp(type, "mistral")) return "TokenizersBackend";
    if (!name && type && !strcmp(type, "gpt2")) return "GPT2Tokenizer";
    if (!name) return "TokenizersBackend"; // Qwen2Tokenizer for qwen3: neither has a usual bos
    if (at < N_CLASSES && classes[at].family == RLHF__FAMILY_LLAMA && tok->bpe_opts.bytes)
        return "TokenizersBackend"; // Llama 3: LlamaTokenizer is of SentencePiece's kind
    return name;
}

const char *rlhf__tokenizer_usual_bos(const struct rlhf__tokenizer *tok, const json_t *config,
                                      const json_t *model) {
    size_t at = class_at(loaded_class(tok, config, model));
    if (tok->info.kind == RLHF__TOKENIZER_WORDPIECE) return NULL;
    if (at == N_CLASSES) return tok->has_json ? NULL : "<|endoftext|>";
    return classes[at].bos;
}

static rlhf_status check_class(const struct rlhf__tokenizer *tok, const char *name,
                               struct rlhf__error *err) {
    size_t at = class_at(name);
    if (!name || tok->info.kind == RLHF__TOKENIZER_WORDPIECE) return RLHF_OK;
    if (at < N_CLASSES && (tok->has_json || classes[at].alone)) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_UNSUPPORTED,
        "tokenizer_class '%.60s' is not supported%s; allowed: GPT2Tokenizer, "
        "CodeGenTokenizer and, with a tokenizer.json, Qwen2Tokenizer, LlamaTokenizer, "
        "PreTrainedTokenizerFast and TokenizersBackend",
        name, tok->has_json ? "" : " without a tokenizer.json");
}

// ---- what stands in front
// ------------------------------------------------------------------------------

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
    if (!json_is_boolean(legacy) || rlhf__tokenizer_family(tok, config) != RLHF__FAMILY_LLAMA)
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

rlhf_status rlhf__tokenizer_read_config(struct rlhf__tokenizer *tok, const json_t *config,
                                        struct rlhf__error *err) {
    RLHF_TRY(check_class(tok, class_name(config), err));
    RLHF_TRY(check_prefix(tok, config, err));
    struct rlhf__bert_opts *o = rlhf__normaliser_bert(tok->normaliser);
    if (!o) return RLHF_OK;
    const json_t *lower = json_object_get(config, "do_lower_case");
    const json_t *strip = json_object_get(config, "strip_accents");
    const json_t *cjk = json_object_get(config, "tokenize_chinese_chars");
    if (json_is_boolean(lower)) o->lower = o->strip_accents = json_is_true(lower);
    if (json_is_boolean(strip)) o->strip_accents = json_is_true(strip);
    if (json_is_boolean(cjk)) o->split_cjk = json_is_true(cjk);
    return RLHF_OK;
}

// ---- around a text
// -------------------------------------------------------------------------------------

rlhf_status rlhf__tokenizer_check_frame(const struct rlhf__tokenizer *tok, const json_t *config,
                                        struct rlhf__error *err) {
    const json_t *bos = json_object_get(config, "add_bos_token");
    const json_t *eos = json_object_get(config, "add_eos_token");
    if (rlhf__tokenizer_family(tok, config) != RLHF__FAMILY_LLAMA) return RLHF_OK;
    int has_bos = tok->frame.n_before > 0, has_eos = tok->frame.n_after > 0;
    if (json_is_boolean(bos) && json_is_true(bos) != has_bos)
        return contradicts("add_bos_token", !has_bos,
                           has_bos ? "post_processor of tokenizer.json puts a token in front"
                                   : "post_processor of tokenizer.json puts none in front",
                           err);
    if (json_is_boolean(eos) && json_is_true(eos) != has_eos)
        return contradicts("add_eos_token", !has_eos,
                           has_eos ? "post_processor of tokenizer.json puts a token behind"
                                   : "post_processor of tokenizer.json puts none behind",
                           err);
    return RLHF_OK;
}
