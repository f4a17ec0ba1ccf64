// text_part.c: see text_part.h.
#include "weights/text_part.h"

#include "base/json.h"

#include <string.h>

// The classes with a language model inside, and the classes for it alone.
static const char *const classes[][2] = {
    {"Gemma3ForConditionalGeneration", "Gemma3ForCausalLM"},
    {"Gemma3ForSequenceClassification", "Gemma3TextForSequenceClassification"},
    {"Gemma3Model", "Gemma3TextModel"},
    {"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
    {"Qwen3_5ForSequenceClassification", "Qwen3_5TextForSequenceClassification"},
    {"Qwen3_5Model", "Qwen3_5TextModel"},
};

// Models with a language model inside. `defaults` is what the configuration class of transformers
// has if text_config lacks it, of the members that this program's models require.
static const struct whole {
    const char *model_type, *text_type;
    struct {
        const char *key;
        json_int_t value;
    } defaults[8];
} wholes[] = {
    {"gemma3",
     "gemma3_text",
     {{"vocab_size", 262208},
      {"hidden_size", 2304},
      {"intermediate_size", 9216},
      {"num_hidden_layers", 26},
      {"num_attention_heads", 8},
      {"num_key_value_heads", 4},
      {"head_dim", 256},
      {"max_position_embeddings", 131072}}},
    {"qwen3_5",
     "qwen3_5_text",
     {{"vocab_size", 248320},
      {"hidden_size", 4096},
      {"intermediate_size", 12288},
      {"num_hidden_layers", 32},
      {"num_attention_heads", 16},
      {"num_key_value_heads", 4},
      {"head_dim", 256},
      {"max_position_embeddings", 32768}}},
};

static const struct whole *whole_of(const json_t *config) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    for (size_t i = 0; type && i < sizeof wholes / sizeof *wholes; i++)
        if (strcmp(type, wholes[i].model_type) == 0) return &wholes[i];
    return NULL;
}

int rlhf__text_part_is(const json_t *config) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    // A Qwen3.5 for texts alone may have the layers that predict further tokens (mtp).
    return whole_of(config) != NULL || (type && strcmp(type, "qwen3_5_text") == 0);
}

// 1 if the member of the whole model's config is not about its language model.
static int is_outside(const char *key) {
    static const char *const keys[] = {
        "model_type",      "text_config",           "vision_config",       "boi_token_index",
        "eoi_token_index", "image_token_index",     "mm_tokens_per_image", "image_token_id",
        "video_token_id",  "vision_start_token_id", "vision_end_token_id"};
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

static int fill(json_t *text, json_t *whole, const struct whole *of) {
    const char *key;
    json_t *v;
    int bad = json_object_set_new(text, "model_type", json_string(of->text_type));
    for (size_t i = 0; i < sizeof of->defaults / sizeof *of->defaults; i++)
        if (!json_object_get(text, of->defaults[i].key))
            bad |=
                json_object_set_new(text, of->defaults[i].key, json_integer(of->defaults[i].value));
    json_object_foreach(whole, key, v) {
        if (!is_outside(key) && !json_is_null(v)) bad |= json_object_set(text, key, v);
    }
    v = json_object_get(whole, "architectures");
    if (v) bad |= json_object_set_new(text, "architectures", architectures(v));
    return bad;
}

rlhf_status rlhf__text_part_config(json_t **config, const char *dir, struct rlhf__error *err) {
    const struct whole *of = whole_of(*config);
    if (!of) return RLHF_OK;
    const json_t *inner = json_object_get(*config, "text_config");
    if (!json_is_object(inner))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: text_config is %s, expected an object, which describes "
                          "the language model",
                          dir, rlhf__json_kind(inner));
    json_t *text = json_copy((json_t *)(uintptr_t)inner);
    if (!text || fill(text, *config, of) != 0) {
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
                                              {"model.visual.", NULL},
                                              {"model.multi_modal_projector.", NULL},
                                              {"vision_tower.", NULL},
                                              {"visual.", NULL},
                                              {"mtp.", NULL},
                                              {"multi_modal_projector.", NULL},
                                              {"", ""}};
    size_t i = 0;
    while (strncmp(name, prefixes[i][0], strlen(prefixes[i][0])) != 0)
        i++;
    *keep = prefixes[i][1];
    *skip = strlen(prefixes[i][0]);
    return *keep != NULL;
}
