// special_vars.c: see special_vars.h.
#include "tokenizer/special_vars.h"

#include "tokenizer/tokenizer_config.h"

#include <string.h>

static const char *const standard[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};
enum { N_STANDARD = sizeof standard / sizeof *standard };

// What classes imply, in the order of `standard`. "Fast" may follow a name.
static const struct {
    const char *name, *token[N_STANDARD];
} classes[] = {
    {"GPT2Tokenizer", {"<|endoftext|>", "<|endoftext|>", "<|endoftext|>", NULL, NULL, NULL, NULL}},
    {"Qwen2Tokenizer", {NULL, "<|endoftext|>", "<|endoftext|>", NULL, "<|endoftext|>", NULL, NULL}},
    {"Qwen3_5Tokenizer",
     {NULL, "<|endoftext|>", "<|endoftext|>", NULL, "<|endoftext|>", NULL, NULL}},
    {"LlamaTokenizer", {"<s>", "</s>", "<unk>", NULL, NULL, NULL, NULL}},
    {"GemmaTokenizer", {"<bos>", "<eos>", "<unk>", NULL, "<pad>", NULL, "<mask>"}},
    {"BertTokenizer", {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}},
    {"DistilBertTokenizer", {NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"}},
};

static const char *implied(const char *name, size_t at) {
    for (size_t i = 0; name && i < sizeof classes / sizeof *classes; i++) {
        const size_t n = strlen(classes[i].name);
        if (strncmp(name, classes[i].name, n) == 0 && (!name[n] || strcmp(name + n, "Fast") == 0))
            return classes[i].token[at];
    }
    return NULL;
}

// The text of a token that a file gives as a string or as {"content": text}; NULL = none.
static const char *content(const json_t *v) {
    return json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
}

static int put(json_t *out, const char *name, const char *text) {
    return !text || json_object_set_new(out, name, json_string(text)) == 0;
}

// Tokens with other names: {"image_token": "<image>"} next to the standard ones, or in an
// object of extra tokens.
static int put_named(json_t *out, const json_t *config) {
    static const char end[] = "_token";
    const char *key;
    json_t *v, *extra = json_object_get(config, "extra_special_tokens");
    int good = 1;
    json_object_foreach((json_t *)(uintptr_t)config, key, v) {
        const size_t n = strlen(key), k = sizeof end - 1;
        const int named = n > k && strcmp(key + n - k, end) == 0 && !json_object_get(out, key);
        if (named && (json_is_string(v) || json_object_get(v, "content")))
            good = good && put(out, key, content(v));
    }
    json_object_foreach(extra, key, v) good = good && put(out, key, content(v));
    return good;
}

json_t *rlhf__special_vars(const json_t *config, const json_t *map, const char *name) {
    json_t *out = json_object();
    int good = out != NULL;
    for (size_t i = 0; i < N_STANDARD; i++) {
        const json_t *v = rlhf__special_said(config, map, standard[i]);
        good = good && put(out, standard[i], v ? content(v) : implied(name, i));
    }
    if (good && put_named(out, config)) return out;
    json_decref(out);
    return NULL;
}
