// text_part.c: see text_part.h.
#include "weights/text_part.h"

#include "base/json.h"

#include <string.h>

// The classes with a language model inside, and the classes for it alone.
static const char *const classes[][2] = {
    {"Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"},
    {"Gemma3ForSequenceClassification", "Gemma3TextForSequenceClassification"},
    {"Gemma3Model", "Gemma3TextModel"},
};

// What Gemma3TextConfig of transformers has if text_config lacks it, of the members that this
// program's models require.
static const struct {
    const char *key;
    json_int_t value;
} defaults[] = {{"vocab_size", 262208},      {"hidden_size", 2304},
                {"intermediate_size", 9216}, {"num_hidden_layers", 26},
                {"num_attention_heads", 8},  {"num_key_value_heads", 4},
                {"head_dim", 256},           {"max_position_embeddings", 131072}};

int rlhf__text_part_is(const json_t *config) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    return type && strcmp(type, "gemma3") == 0;
}

// 1 if the member of the whole model's config is not about its language model.
static int is_outside(const char *key) {
    static const char *const keys[] = {"model_type",         "text_config",     "vision_config",
                                       "boi_token_index",    "eoi_token_index", "image_token_index",
                                       "mm_tokens_per_image"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return 1;
    return 0;
}

// A copy of the list of architectures with the classes of the language model.
static json_t *architectures(const json_t *whole) {
    json_t *list = json_deep_copy(whole);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        for (size_t k = 0; name && k < sizeof classes / sizeof *classes; k++)
            if (strcmp(name, classes[k][0]) == 0) {
                json_array_set_new(list, i, json_string(classes[k][1]));
                break;
            }
    }
    return list;
}

static int fill(json_t *text, json_t *whole) {
    const char *key;
    json_t *v;
    int bad = json_object_set_new(text, "model_type", json_string("gemma3_text"));
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        if (!json_object_get(text, defaults[i].key))
            bad |= json_object_set_new(text, defaults[i].key, json_integer(defaults[i].value));
    json_object_foreach(whole, key, v) {
        if (!is_outside(key) && !json_is_null(v)) bad |= json_object_set(text, key, v);
    }
    v = json_object_get(whole, "architectures");
    if (v) bad |= json_object_set_new(text, "architectures", architectures(v));
    return bad;
}

rlhf_status rlhf__text_part_config(json_t **config, const char *dir, struct rlhf__error *err) {
    if (!rlhf__text_part_is(*config)) return RLHF_OK;
    const json_t *inner = json_object_get(*config, "text_config");
    if (!json_is_object(inner))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: text_config is %s, expected an object, which describes "
                          "the language model",
                          dir, rlhf__json_kind(inner));
    json_t *text = json_copy((json_t *)(uintptr_t)inner);
    if (!text || fill(text, *config) != 0) {
        json_decref(text);
        return RLHF__NOMEM(err, "out of memory for config.json");
    }
    json_decref(*config);
    *config = text;
    return RLHF_OK;
}

int rlhf__text_part_name(const char *name, const char **keep, size_t *skip) {
    // "the whole model's prefix", "the language model's"; an empty one is in front of every name.
    static const char *const prefixes[][2] = {{"model.language_model.", "model."},
                                              {"language_model.", ""},
                                              {"model.vision_tower.", NULL},
                                              {"model.multi_modal_projector.", NULL},
                                              {"vision_tower.", NULL},
                                              {"multi_modal_projector.", NULL},
                                              {"", ""}};
    size_t i = 0;
    while (strncmp(name, prefixes[i][0], strlen(prefixes[i][0])) != 0)
        i++;
    *keep = prefixes[i][1];
    *skip = strlen(prefixes[i][0]);
    return *keep != NULL;
}
