// tokenizer_class.c: see tokenizer_class.h.
#include "tokenizer/tokenizer_class.h"

#include "tokenizer/tokenizer_impl.h"

#include <string.h>

static const struct {
    const char *name; // the class name; "Fast" may follow it
    enum rlhf__tokenizer_family family;
    int alone;       // 1: also supported if tokenizer.json is missing
    const char *bos; // used if no file names one; NULL = none
} classes[] = {
    {"GPT2Tokenizer", RLHF__FAMILY_GPT2, 1, "<|endoftext|>"},
    {"CodeGenTokenizer", RLHF__FAMILY_GPT2, 1, "<|endoftext|>"},
    {"Qwen2Tokenizer", RLHF__FAMILY_QWEN2, 0, NULL},
    {"Qwen3_5Tokenizer", RLHF__FAMILY_QWEN2, 0, NULL},
    {"LlamaTokenizer", RLHF__FAMILY_LLAMA, 0, "<s>"},
    {"GemmaTokenizer", RLHF__FAMILY_GEMMA, 0, "<bos>"},
    {"PreTrainedTokenizer", RLHF__FAMILY_GPT2, 0, NULL},
    {"TokenizersBackend", RLHF__FAMILY_GPT2, 0, NULL},
};
enum { N_CLASSES = sizeof classes / sizeof *classes };

static const char *class_name(const json_t *config) {
    return json_string_value(json_object_get(config, "tokenizer_class"));
}

// The index in `classes`; N_CLASSES if the name is not in that list.
static size_t class_at(const char *name) {
    size_t i = 0;
    for (; name && i < N_CLASSES; i++) {
        size_t len = strlen(classes[i].name);
        if (strncmp(name, classes[i].name, len) != 0) continue;
        if (!name[len] || !strcmp(name + len, "Fast")) break;
    }
    return name ? i : N_CLASSES;
}

enum rlhf__tokenizer_family rlhf__tokenizer_family_of(const struct rlhf__tokenizer *tok,
                                                      const json_t *config) {
    size_t at = class_at(class_name(config));
    if (tok->info.kind == RLHF__TOKENIZER_WORDPIECE) return RLHF__FAMILY_BERT;
    return at < N_CLASSES ? classes[at].family : RLHF__FAMILY_GPT2;
}

const char *rlhf__tokenizer_loaded_class(const struct rlhf__tokenizer *tok, const json_t *config,
                                         const json_t *model) {
    const char *name = class_name(config);
    const char *type = json_string_value(json_object_get(model, "model_type"));
    size_t at = class_at(name);
    if (!tok->has_json) return name;
    if (type && !strcmp(type, "qwen2")) return "Qwen2Tokenizer"; // whatever tokenizer_class says
    if (type && !strcmp(type, "qwen3_5")) return "Qwen3_5Tokenizer"; // likewise
    if (!name && type && !strcmp(type, "qwen3_5_text")) return "Qwen3_5Tokenizer";
    if (name && type && !strcmp(type, "mistral")) return "TokenizersBackend";
    if (!name && type && !strcmp(type, "gpt2")) return "GPT2Tokenizer";
    if (!name) return "TokenizersBackend"; // or Qwen2Tokenizer (qwen3): both lack a usual bos
    if (at < N_CLASSES && classes[at].family == RLHF__FAMILY_LLAMA && tok->bpe_opts.bytes)
        return "TokenizersBackend"; // Llama 3: LlamaTokenizer would be for SentencePiece
    return name;
}

const char *rlhf__tokenizer_usual_bos(const struct rlhf__tokenizer *tok, const json_t *config,
                                      const json_t *model) {
    size_t at = class_at(rlhf__tokenizer_loaded_class(tok, config, model));
    if (tok->info.kind == RLHF__TOKENIZER_WORDPIECE) return NULL;
    if (at == N_CLASSES) return tok->has_json ? NULL : "<|endoftext|>";
    return classes[at].bos;
}

rlhf_status rlhf__tokenizer_check_class(const struct rlhf__tokenizer *tok, const json_t *config,
                                        struct rlhf__error *err) {
    const char *name = class_name(config);
    size_t at = class_at(name);
    if (!name || tok->info.kind == RLHF__TOKENIZER_WORDPIECE) return RLHF_OK;
    if (at < N_CLASSES && (tok->has_json || classes[at].alone)) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_UNSUPPORTED,
        "tokenizer_class '%.60s' is not supported%s; allowed: GPT2Tokenizer, "
        "CodeGenTokenizer and, with a tokenizer.json, Qwen2Tokenizer, Qwen3_5Tokenizer, "
        "LlamaTokenizer, GemmaTokenizer, PreTrainedTokenizerFast and TokenizersBackend",
        name, tok->has_json ? "" : " without a tokenizer.json");
}
