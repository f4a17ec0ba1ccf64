// peft.c: see peft.h. peft_read.c reads a config.
#include "weights/peft.h"

#include "base/json.h"
#include "tensors/gguf_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rlhf__peft_is(const char *dir) {
    char path[RLHF__PATH_CAP];
    return rlhf__is_file(rlhf__path_put(path, "%s/" RLHF__PEFT_CONFIG, dir));
}

double rlhf__peft_scale(const struct rlhf__peft *p) {
    return p->rank > 0 ? p->alpha / (p->rslora ? sqrt(p->rank) : p->rank) : 0;
}

void rlhf__peft_finish(struct rlhf__peft *p) {
    for (uint32_t i = 0; i < p->n_targets; i++)
        free(p->target[i]);
    free(p->target);
    free(p->dir);
    free(p->base);
    json_decref(p->named);
    memset(p, 0, sizeof *p);
}

// ---- a new adapter ----

static rlhf_status add_name(struct rlhf__peft *p, const char *text, size_t n,
                            struct rlhf__error *err) {
    char **more = realloc(p->target, ((size_t)p->n_targets + 1) * sizeof *more);
    if (more) p->target = more;
    char *name = more ? strndup(text, n) : NULL;
    if (!name || json_array_append_new(p->named, json_string(name)) != 0) {
        free(name);
        return RLHF__NOMEM(err, "out of memory for an adapter");
    }
    p->target[p->n_targets++] = name;
    return RLHF_OK;
}

rlhf_status rlhf__peft_make(int32_t rank, double alpha, const char *targets, struct rlhf__peft *out,
                            struct rlhf__error *err) {
    out->rank = rank;
    out->alpha = alpha > 0 ? alpha : 2.0 * rank;
    out->named = json_array();
    for (const char *at = targets;; at++) {
        const size_t n = strcspn(at, ",");
        if (n == 0)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "policy.adapter.targets must be names of linear layers with commas "
                              "between, as q_proj,v_proj, or all-linear; found \"%s\"",
                              targets);
        RLHF_TRY(add_name(out, at, n, err));
        at += n;
        if (!*at) break;
    }
    if (out->n_targets == 1 && strcmp(out->target[0], "all-linear") == 0) {
        json_decref(out->named);
        out->named = json_string("all-linear");
    }
    return out->named ? RLHF_OK : RLHF__NOMEM(err, "out of memory for an adapter");
}

// ---- the base of an adapter ----

#define GIVE_BOTH                                                                                  \
    "give both: --policy BASE --adapter DIR (a run), --model BASE --adapter DIR, or export BASE "  \
    "--adapter DIR"

static int is_model(const char *path, char real[RLHF__PATH_CAP]) {
    char config[RLHF__PATH_CAP];
    if (!rlhf__path_real(path, real)) return 0;
    return rlhf__gguf_is(real) || rlhf__is_file(rlhf__path_put(config, "%s/config.json", real));
}

rlhf_status rlhf__peft_base(const struct rlhf__peft *p, char out[RLHF__PATH_CAP],
                            struct rlhf__error *err) {
    char beside[RLHF__PATH_CAP];
    if (!p->base)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s/" RLHF__PEFT_CONFIG " names no base (base_model_name_or_path); " GIVE_BOTH, p->dir);
    // A directory that is itself an adapter is not the base, even if it has a config.json (the
    // adapter of a classifier has one).
    if (p->base[0] != '/' && is_model(rlhf__path_put(beside, "%s/%s", p->dir, p->base), out) &&
        !rlhf__peft_is(out))
        return RLHF_OK;
    if (is_model(p->base, out)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the base of the adapter '%s', '%s' (base_model_name_or_path), is not a "
                      "model directory here, and nothing is downloaded; " GIVE_BOTH,
                      p->dir, p->base);
}

// ---- names of tensors ----

static int ends(const char *name, size_t n, const char *with) {
    const size_t m = strlen(with);
    return n > m && memcmp(name + n - m, with, m) == 0;
}

// 1 for "score.weight", "classifier.bias", "pre_classifier.weight".
static int is_head(const char *name) {
    static const char *const heads[] = {"score.", "classifier.", "pre_classifier."};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const size_t n = strlen(heads[i]);
        if (strncmp(name, heads[i], n) == 0)
            return !strcmp(name + n, "weight") || !strcmp(name + n, "bias");
    }
    return 0;
}

rlhf_status rlhf__peft_tensor_name(const char *file, const char *name, const char **module,
                                   size_t *n, int32_t *part, struct rlhf__error *err) {
    static const char *const parts[] = {".lora_A.weight", ".lora_B.weight"};
    const size_t prefix = strlen(RLHF__PEFT_PREFIX);
    if (strncmp(name, RLHF__PEFT_PREFIX, prefix) == 0) {
        *module = name + prefix;
        *n = strlen(*module);
        for (*part = RLHF__PEFT_A; *part < RLHF__PEFT_HEAD; ++*part)
            if (ends(*module, *n, parts[*part])) {
                *n -= strlen(parts[*part]);
                return RLHF_OK;
            }
        if (is_head(*module)) return RLHF_OK;
    }
    return rlhf__fail(
        err, RLHF_E_UNSUPPORTED,
        "%s holds the tensor %s, which is neither A nor B of a linear layer (" RLHF__PEFT_PREFIX
        "LAYER.lora_A.weight) nor a score head",
        file, name);
}

// ---- writing ----

static json_t *names(const char *const *name, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_string(name[i]));
    return list;
}

rlhf_status rlhf__peft_write(const struct rlhf__peft *p, const struct rlhf__peft_written *w,
                             const struct rlhf__folder *dir, struct rlhf__error *err) {
    const int all = json_is_string(p->named) && !strcmp(json_string_value(p->named), "all-linear");
    json_t *targets = all ? names(w->leaf, w->n_leaf) : json_deep_copy(p->named);
    json_t *alpha = p->alpha == floor(p->alpha) && p->alpha < 1e15
                        ? json_integer((json_int_t)p->alpha)
                        : json_real(p->alpha);
    json_t *saved = w->n_saved ? names(w->saved, w->n_saved) : json_null();
    json_t *v = json_pack(
        "{s:s, s:s, s:s, s:{}, s:b, s:b, s:b, s:n, s:n, s:o, s:f, s:o, s:s, s:i, s:{}, s:o, s:b, "
        "s:b}",
        "peft_type", "LORA", "base_model_name_or_path", w->base, "bias", "none", "alpha_pattern",
        "fan_in_fan_out", w->in_out, "inference_mode", 1, "init_lora_weights", 1, "layers_pattern",
        "layers_to_transform", "lora_alpha", alpha, "lora_dropout", 0.0, "modules_to_save", saved,
        "task_type", w->n_saved ? "SEQ_CLS" : "CAUSAL_LM", "r", (int)p->rank, "rank_pattern",
        "target_modules", targets, "use_dora", 0, "use_rslora", (int)p->rslora);
    return rlhf__json_save_new(dir, RLHF__PEFT_CONFIG, v, 2, err);
}
