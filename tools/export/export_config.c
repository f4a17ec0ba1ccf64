// export_config.c: see export_config.h.
#include "export/export_config.h"

#include "base/json.h"
#include "gguf/model_text.h"
#include "tokenizer/tokenizer.h"
#include "weights/hf_dir.h"

#include <string.h>

// ---- config.json ----

// The class in transformers for a model_type with these tensors.
static const struct {
    const char *model_type, *tensor, *architecture; // tensor NULL: any tensors
} classes[] = {
    {"gpt2", "score.weight", "GPT2ForSequenceClassification"},
    {"gpt2", NULL, "GPT2LMHeadModel"},
    {"distilbert", "classifier.weight", "DistilBertForSequenceClassification"},
    {"distilbert", "vocab_transform.weight", "DistilBertForMaskedLM"},
    {"distilbert", NULL, "DistilBertModel"},
    {"llama", "score.weight", "LlamaForSequenceClassification"},
    {"llama", NULL, "LlamaForCausalLM"},
    {"mistral", "score.weight", "MistralForSequenceClassification"},
    {"mistral", NULL, "MistralForCausalLM"},
    {"qwen2", "score.weight", "Qwen2ForSequenceClassification"},
    {"qwen2", NULL, "Qwen2ForCausalLM"},
    {"qwen3", "score.weight", "Qwen3ForSequenceClassification"},
    {"qwen3", NULL, "Qwen3ForCausalLM"},
    {"qwen3_5_text", "score.weight", "Qwen3_5TextForSequenceClassification"},
    {"qwen3_5_text", NULL, "Qwen3_5ForCausalLM"},
    {"lfm2", NULL, "Lfm2ForCausalLM"},
    {"smollm3", "score.weight", "SmolLM3ForSequenceClassification"},
    {"smollm3", NULL, "SmolLM3ForCausalLM"},
    {"gemma2", "score.weight", "Gemma2ForSequenceClassification"},
    {"gemma2", NULL, "Gemma2ForCausalLM"},
    {"vaultgemma", NULL, "VaultGemmaForCausalLM"},
    {"gemma3_text", "score.weight", "Gemma3TextForSequenceClassification"},
    {"gemma3_text", NULL, "Gemma3ForCausalLM"},
    {"olmo2", "score.weight", "Olmo2ForSequenceClassification"},
    {"olmo2", NULL, "Olmo2ForCausalLM"},
    {"olmo3", "score.weight", "Olmo3ForSequenceClassification"},
    {"olmo3", NULL, "Olmo3ForCausalLM"},
    {"granite", NULL, "GraniteForCausalLM"},
    {"granitemoehybrid", NULL, "GraniteMoeHybridForCausalLM"},
    {"phi3", "score.weight", "Phi3ForSequenceClassification"},
    {"phi3", NULL, "Phi3ForCausalLM"},
};

static const char *class_of(const json_t *config, const struct rlhf__weights *w) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    for (size_t i = 0; type && i < sizeof classes / sizeof *classes; i++)
        if (strcmp(type, classes[i].model_type) == 0 &&
            (!classes[i].tensor || rlhf__weights_find(w, classes[i].tensor)))
            return classes[i].architecture;
    return NULL;
}

rlhf_status rlhf__export_config_set(struct rlhf__export_source *s, const struct rlhf__weights *w,
                                    int32_t dtype, struct rlhf__error *err) {
    static const char *const keys[] = {"dtype", "torch_dtype"};
    const char *name = class_of(s->config, w);
    int bad = 0;
    if (name && json_array_size(json_object_get(s->config, "architectures")) == 0)
        bad = json_object_set_new(s->config, "architectures", json_pack("[s]", name));
    const char *text = dtype == RLHF__TENSOR_BF16  ? "bfloat16"
                       : dtype == RLHF__TENSOR_F16 ? "float16"
                                                   : "float32";
    // Older versions of transformers read the second key. It is changed only if it exists.
    for (size_t i = 0; dtype >= 0 && i < 2; i++)
        if (i == 0 || json_object_get(s->config, keys[i]))
            bad |= json_object_set_new(s->config, keys[i], json_string(text));
    return bad ? RLHF__NOMEM(err, "out of memory for config.json") : RLHF_OK;
}

const char *rlhf__export_pooling(const struct rlhf__export_source *s, const char **theirs) {
    const char *type = json_string_value(json_object_get(s->config, "model_type"));
    const json_t *reward = json_object_get(s->config, "rlhf_reward");
    const json_t *v =
        reward ? json_object_get(reward, "pooling") : json_object_get(s->config, "rlhf_pooling");
    const char *same = type && strcmp(type, "distilbert") == 0 ? "first" : "last";
    if (theirs) *theirs = same;
    return json_is_string(v) && strcmp(json_string_value(v), same) != 0 ? json_string_value(v)
                                                                        : NULL;
}

// ---- generation_config.json ----

const json_t *rlhf__export_sampling(const struct rlhf__export_source *s) {
    const json_t *sampling = json_object_get(s->settings, "sampling");
    return json_array_size(json_object_get(s->settings, "reward")) > 0 ? sampling : NULL;
}

// Returns the id or list of ids that `first` has under `key` or, if `first` has none, that `second`
// has. New reference.
static json_t *id_of(const json_t *first, const json_t *second, const char *key) {
    json_t *v = json_object_get(first, key);
    if (!json_is_integer(v) && !json_is_array(v)) v = json_object_get(second, key);
    return json_is_integer(v) || json_is_array(v) ? json_deep_copy(v) : NULL;
}

// As a run does, converts a stop text that is one special token to the token's id. Returns -1 for
// other texts.
static int32_t special_id(const struct rlhf__tokenizer *tok, const json_t *stop) {
    const rlhf_str text = {json_string_value(stop), json_string_length(stop)};
    const int32_t id = text.len ? rlhf__tokenizer_find(tok, text) : -1;
    return id >= 0 && rlhf__tokenizer_is_special(tok, id) ? id : -1;
}

static void add_end(json_t *out, json_int_t id) {
    json_t *all = json_object_get(out, "eos_token_id");
    if (!json_is_array(all)) {
        json_t *list = json_array();
        if (json_is_integer(all)) json_array_append(list, all);
        json_object_set_new(out, "eos_token_id", list);
        all = list;
    }
    size_t i;
    json_t *v;
    json_array_foreach(all, i, v) if (json_integer_value(v) == id) return;
    json_array_append_new(all, json_integer(id));
}

// Makes the run's stop tokens end responses in transformers too. Does not write stop texts of
// sampling.stop, because they would become stop_strings, with which generate() fails unless it
// receives the tokenizer.
static rlhf_status add_stops(const struct rlhf__export_source *s, json_t *out, const json_t *stop,
                             struct rlhf__error *err) {
    struct rlhf__tokenizer *tok = NULL;
    size_t i;
    json_t *v;
    if (json_array_size(stop) == 0) return RLHF_OK;
    RLHF_TRY(rlhf__tokenizer_open(rlhf__export_source_text(s), &tok, err));
    json_array_foreach(stop, i, v) {
        const json_int_t id = json_is_integer(v) ? json_integer_value(v) : special_id(tok, v);
        if (id >= 0) add_end(out, id);
    }
    rlhf__tokenizer_close(tok);
    return RLHF_OK;
}

// Sets *made to the contents of generation_config.json. For a run that sampled, the contents are
// the run's sampling settings. Settings with default values are included, because the defaults of
// transformers differ (e.g. top_k 50). For any other source, the contents are a copy of `own`, the
// model's settings, if there are any. In both cases, ids of special tokens that `own` lacks are
// added from config.json.
static rlhf_status generation_config(const struct rlhf__export_source *s, json_t *own,
                                     json_t **made, struct rlhf__error *err) {
    static const char *const ids[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    static const char *const drawn[] = {"temperature", "top_k", "top_p", "max_new_tokens"};
    const json_t *sampling = rlhf__export_sampling(s);
    json_t *out = *made = !sampling && own ? json_copy(own) : json_object();
    for (size_t i = 0; i < 3; i++) {
        json_t *id = id_of(own, s->config, ids[i]);
        if (id) json_object_set_new(out, ids[i], id);
    }
    if (sampling) json_object_set_new(out, "do_sample", json_true());
    for (size_t i = 0; sampling && i < sizeof drawn / sizeof *drawn; i++)
        if (json_is_number(json_object_get(sampling, drawn[i])))
            json_object_set(out, drawn[i], json_object_get(sampling, drawn[i]));
    json_t *min_p = json_object_get(sampling, "min_p");
    if (json_number_value(min_p) > 0) json_object_set(out, "min_p", min_p);
    return add_stops(s, out, json_object_get(sampling, "stop"), err);
}

// ---- all of them ----

rlhf_status rlhf__export_config_write(const struct rlhf__export_source *s,
                                      const struct rlhf__folder *to, struct rlhf__error *err) {
    static const char name[] = "generation_config.json";
    json_t *own = NULL;
    RLHF_TRY(rlhf__hf_config_write(to, s->config, err));
    RLHF_TRY(rlhf__model_copy_text(rlhf__export_source_text(s), to, err));
    if (!rlhf__export_source_writes(s)) return RLHF_OK;
    RLHF_TRY(rlhf__export_source_json(s, name, &own, err));
    json_t *made = NULL;
    rlhf_status st = generation_config(s, own, &made, err);
    if (st == RLHF_OK)
        st = rlhf__json_save_new(to, name, made, 2, err);
    else
        json_decref(made);
    json_decref(own);
    return st;
}
