// peft_read.c: rlhf__peft_read of peft.h. It reads the fields of a config that the program uses,
// and ignores fields that do not change what the adapter computes. It refuses every other field
// unless its value turns a feature off. The names of the tensors show which modules have an
// adapter.
#include "weights/peft.h"

#include "base/json.h"
#include "tensors/gguf_file.h"
#include "weights/run_checkpoint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Fields that are ignored because they do not change what the adapter computes. Most of them say
// how the adapter was initialized, trained or saved. PEFT itself sets fan_in_fan_out from the kind
// of layer. Fields such as layers_to_transform are not needed, because the tensors show which
// layers are adapted.
static const char *const told[] = {"auto_mapping",   "exclude_modules", "fan_in_fan_out",
                                   "inference_mode", "layers_pattern",  "layers_to_transform",
                                   "megatron_core",  "peft_version",    "qalora_group_size",
                                   "revision",       "runtime_config"};

// Fields that are read below.
static const char *const read_here[] = {"base_model_name_or_path",
                                        "bias",
                                        "init_lora_weights",
                                        "lora_alpha",
                                        "lora_dropout",
                                        "modules_to_save",
                                        "peft_type",
                                        "r",
                                        "task_type",
                                        "use_rslora",
                                        "target_modules"};

// 1 if a field is off: null, false, {}, [] or "".
static int is_off(const json_t *v) {
    return !v || json_is_null(v) || json_is_false(v) ||
           (json_is_object(v) && json_object_size(v) == 0) ||
           (json_is_array(v) && json_array_size(v) == 0) ||
           (json_is_string(v) && json_string_length(v) == 0);
}

static int is_one_of(const char *key, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, list[i]) == 0) return 1;
    return 0;
}

// Fails with "DIR/adapter_config.json: FIELD VALUE is not supported: WHY".
static rlhf_status refuse(const struct rlhf__peft *p, const char *key, const json_t *v,
                          const char *why, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT, name = RLHF__BUF_INIT;
    rlhf__json_write(&text, v, 0);
    rlhf__json_write_string(&name, key, strlen(key));
    rlhf__fail(err, RLHF_E_UNSUPPORTED,
               "%s/" RLHF__PEFT_CONFIG ": %.80s %.120s is not supported: %s", p->dir,
               rlhf__buf_text(&name), rlhf__buf_text(&text), why);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&name);
    return RLHF_E_UNSUPPORTED;
}

static rlhf_status wrong(const struct rlhf__peft *p, const char *key, const json_t *v,
                         const char *allowed, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (v) rlhf__json_write(&text, v, 0);
    rlhf__fail(err, RLHF_E_INVALID, "%s/" RLHF__PEFT_CONFIG ": %s must be %s, found %.120s", p->dir,
               key, allowed, v ? rlhf__buf_text(&text) : "nothing");
    rlhf__buf_finish(&text);
    return RLHF_E_INVALID;
}

// ---- fields ----

static const char lora_only[] = "W x + scale * B (A x) of one rank is what an adapter is here";

static rlhf_status check_others(const struct rlhf__peft *p, const json_t *config,
                                struct rlhf__error *err) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)config, key, v) {
        if (is_one_of(key, told, sizeof told / sizeof *told) ||
            is_one_of(key, read_here, sizeof read_here / sizeof *read_here) || is_off(v))
            continue;
        return refuse(p, key, v, lora_only, err);
    }
    return RLHF_OK;
}

static rlhf_status check_kind(const struct rlhf__peft *p, const json_t *config,
                              struct rlhf__error *err) {
    const json_t *type = json_object_get(config, "peft_type");
    const json_t *bias = json_object_get(config, "bias");
    if (!json_is_string(type)) return wrong(p, "peft_type", type, "\"LORA\"", err);
    if (strcmp(json_string_value(type), "LORA") != 0)
        return refuse(p, "peft_type", type, "LORA is", err);
    if (is_off(bias)) return RLHF_OK;
    if (!json_is_string(bias) || strcmp(json_string_value(bias), "none") != 0)
        return refuse(p, "bias", bias, "biases stay the base's (\"none\")", err);
    return RLHF_OK;
}

// Allows only initializations that leave the base unchanged. The others move a part of the base's
// weights into the adapter.
static rlhf_status check_start(const struct rlhf__peft *p, const json_t *config,
                               struct rlhf__error *err) {
    static const char *const plain[] = {"gaussian", "eva", "orthogonal"};
    const json_t *v = json_object_get(config, "init_lora_weights");
    if (is_off(v) || json_is_true(v)) return RLHF_OK;
    if (json_is_string(v) && is_one_of(json_string_value(v), plain, sizeof plain / sizeof *plain))
        return RLHF_OK;
    return refuse(p, "init_lora_weights", v,
                  "it changes the base, which the adapter then does not fit; PEFT saves such an "
                  "adapter as a plain one with path_initial_model_for_weight_conversion",
                  err);
}

static rlhf_status read_numbers(struct rlhf__peft *p, const json_t *config,
                                struct rlhf__error *err) {
    const json_t *r = json_object_get(config, "r"), *a = json_object_get(config, "lora_alpha");
    const json_t *rs = json_object_get(config, "use_rslora");
    const json_t *drop = json_object_get(config, "lora_dropout");
    if (!json_is_integer(r) || json_integer_value(r) < 1 ||
        json_integer_value(r) > RLHF__PEFT_RANK_MAX)
        return wrong(p, "r", r, "a whole number from 1 to 65536", err);
    if (!json_is_number(a) || !(json_number_value(a) > 0 && json_number_value(a) <= 1e9))
        return wrong(p, "lora_alpha", a, "a number above 0, up to 1e9", err);
    if (rs && !json_is_null(rs) && !json_is_boolean(rs))
        return wrong(p, "use_rslora", rs, "true or false", err);
    if (!is_off(drop) &&
        !(json_is_number(drop) && json_number_value(drop) >= 0 && json_number_value(drop) < 1))
        return wrong(p, "lora_dropout", drop, "a number from 0 to below 1", err);
    p->rank = (int32_t)json_integer_value(r);
    p->alpha = json_number_value(a);
    p->rslora = json_is_true(rs);
    p->dropout = json_is_number(drop) ? json_number_value(drop) : 0;
    return RLHF_OK;
}

static rlhf_status read_task(struct rlhf__peft *p, const json_t *config, struct rlhf__error *err) {
    static const char *const heads[] = {"score", "classifier", "pre_classifier"};
    const json_t *task = json_object_get(config, "task_type");
    const json_t *saved = json_object_get(config, "modules_to_save"), *v;
    size_t i;
    if (!is_off(task)) {
        const char *name = json_string_value(task);
        p->scores = name && !strcmp(name, "SEQ_CLS");
        if (!p->scores && !(name && !strcmp(name, "CAUSAL_LM")))
            return refuse(p, "task_type", task, "CAUSAL_LM, SEQ_CLS and null are", err);
    }
    if (is_off(saved)) return RLHF_OK;
    if (!json_is_array(saved)) return wrong(p, "modules_to_save", saved, "a list or null", err);
    json_array_foreach((json_t *)(uintptr_t)saved, i, v) {
        if (!json_is_string(v) || !is_one_of(json_string_value(v), heads, 3))
            return refuse(p, "modules_to_save", v,
                          "of whole modules the score head is trained (score, classifier, "
                          "pre_classifier)",
                          err);
    }
    return RLHF_OK;
}

static rlhf_status read_names(struct rlhf__peft *p, const json_t *config, struct rlhf__error *err) {
    const json_t *base = json_object_get(config, "base_model_name_or_path");
    json_t *targets = json_object_get(config, "target_modules"), *v;
    size_t i;
    if (!is_off(base) && !json_is_string(base))
        return wrong(p, "base_model_name_or_path", base, "a name or null", err);
    if (!json_is_array(targets) && !json_is_string(targets))
        return wrong(p, "target_modules", targets, "a list of names, or a string", err);
    json_array_foreach(targets, i, v) {
        if (!json_is_string(v) || json_string_length(v) == 0)
            return wrong(p, "target_modules", targets, "a list of names", err);
    }
    p->named = json_incref(targets);
    if (is_off(base)) return RLHF_OK;
    p->base = strdup(json_string_value(base));
    return p->base ? RLHF_OK : RLHF__NOMEM(err, "out of memory for an adapter");
}

static rlhf_status read_config(struct rlhf__peft *p, const json_t *config,
                               struct rlhf__error *err) {
    if (!json_is_object(config))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/" RLHF__PEFT_CONFIG ": expected an object, found %s", p->dir,
                          rlhf__json_kind(config));
    RLHF_TRY(check_kind(p, config, err));
    RLHF_TRY(read_numbers(p, config, err));
    RLHF_TRY(read_task(p, config, err));
    RLHF_TRY(read_names(p, config, err));
    RLHF_TRY(check_start(p, config, err));
    return check_others(p, config, err);
}

// ---- tensors ----

static rlhf_status check_pair(const struct rlhf__peft *p, const struct rlhf__weights *w,
                              const struct rlhf__tensor *a, struct rlhf__error *err) {
    char name[512], shape[128];
    const size_t n = strlen(a->name), tail = strlen("A.weight");
    if (n + 1 > sizeof name)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the name of the tensor %.60s... is too long",
                          a->file, a->name);
    memcpy(name, a->name, n + 1);
    name[n - tail] = 'B';
    const struct rlhf__tensor *b = rlhf__weights_find(w, name);
    if (!b)
        return rlhf__fail(err, RLHF_E_INVALID, "%s holds the tensor %s without %s", a->file,
                          a->name, name);
    const struct rlhf__tensor *const both[] = {a, b};
    for (int i = 0; i < 2; i++)
        if (both[i]->ndim != 2 || both[i]->shape[i] != p->rank)
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "%s: tensor %s has shape %s, which does not have the rank %d "
                "that " RLHF__PEFT_CONFIG " gives (r)",
                a->file, both[i]->name,
                rlhf__tensor_shape_text(both[i]->shape, both[i]->ndim, shape, sizeof shape),
                p->rank);
    return RLHF_OK;
}

// Checks that the B tensor `b` has an A tensor.
static rlhf_status check_alone(const struct rlhf__weights *w, const struct rlhf__tensor *b,
                               struct rlhf__error *err) {
    char name[512];
    const size_t n = strlen(b->name), tail = strlen("B.weight");
    if (n < sizeof name) {
        memcpy(name, b->name, n + 1);
        name[n - tail] = 'A';
        if (rlhf__weights_find(w, name)) return RLHF_OK;
    }
    return rlhf__fail(err, RLHF_E_INVALID, "%s holds the tensor %s without its lora_A", b->file,
                      b->name);
}

static rlhf_status list_modules(struct rlhf__peft *p, const struct rlhf__weights *w,
                                struct rlhf__error *err) {
    p->target = calloc(rlhf__weights_count(w) + 1, sizeof *p->target);
    if (!p->target) return RLHF__NOMEM(err, "out of memory for an adapter");
    for (size_t i = 0; i < rlhf__weights_count(w); i++) {
        const struct rlhf__tensor *t = rlhf__weights_at(w, i);
        const char *module;
        size_t n;
        int32_t part;
        RLHF_TRY(rlhf__peft_tensor_name(t->file, t->name, &module, &n, &part, err));
        if (part == RLHF__PEFT_B) RLHF_TRY(check_alone(w, t, err));
        if (part != RLHF__PEFT_A) continue;
        RLHF_TRY(check_pair(p, w, t, err));
        p->target[p->n_targets] = strndup(module, n);
        if (!p->target[p->n_targets++]) return RLHF__NOMEM(err, "out of memory for an adapter");
    }
    if (p->n_targets > 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s/" RLHF__PEFT_WEIGHTS " holds no A and B of a linear layer", p->dir);
}

rlhf_status rlhf__peft_read(const char *dir, struct rlhf__peft *out, struct rlhf__error *err) {
    char real[RLHF__PATH_CAP], path[RLHF__PATH_CAP];
    json_t *config = NULL;
    struct rlhf__weights *w = NULL;
    out->dir = strdup(rlhf__path_real(dir, real) ? real : dir);
    if (!out->dir) return RLHF__NOMEM(err, "out of memory for an adapter");
    if (rlhf__gguf_is(out->dir))
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s is a GGUF file; an adapter is read only as PEFT or a run writes it, a "
            "directory with " RLHF__PEFT_CONFIG
            " (of a run, its checkpoints/latest), and not from llama.cpp's file",
            dir);
    if (!rlhf__peft_is(out->dir))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s is not an adapter: it is not a directory with " RLHF__PEFT_CONFIG,
                          dir);
    rlhf__path_put(path, "%s/" RLHF__PEFT_CONFIG, out->dir);
    rlhf_status st = rlhf__checkpoint_links(out->dir, err);
    if (st == RLHF_OK) st = rlhf__json_load(path, &config, err);
    if (st == RLHF_OK) st = read_config(out, config, err);
    json_decref(config);
    rlhf__path_put(path, "%s/" RLHF__PEFT_WEIGHTS, out->dir);
    if (st == RLHF_OK && !rlhf__is_file(path))
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "%s has " RLHF__PEFT_CONFIG " but no " RLHF__PEFT_WEIGHTS "%s", out->dir,
                        "; the older adapter_model.bin runs code when it is read, and is not");
    if (st == RLHF_OK) st = rlhf__weights_open(path, &w, err);
    if (st == RLHF_OK) st = list_modules(out, w, err);
    rlhf__weights_close(w);
    return st;
}
