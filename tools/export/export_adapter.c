// export_adapter.c: see export_adapter.h.
#include "export/export_adapter.h"

#include "base/json.h"
#include "gguf/model_text.h"
#include "gguf_write/gguf_adapter.h"
#include "model/model.h"
#include "option/nearest.h"
#include "tensors/low_rank.h"
#include "weights/hf_dir.h"
#include "weights/rounding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Opens the adapter's file. If `exact` is set and the checkpoint's state has the exact weights,
// opens their file instead.
static rlhf_status open_weights(const struct rlhf__export_source *s, int exact,
                                struct rlhf__weights **out, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/state/master.safetensors", s->dir);
    if (!exact || !rlhf__is_file(path)) rlhf__path_put(path, "%s/" RLHF__PEFT_WEIGHTS, s->dir);
    return rlhf__weights_open(path, out, err);
}

// Returns a tensor's name without PEFT's prefix. The prefix may be missing.
static const char *plain(const char *name) {
    const size_t n = strlen(RLHF__PEFT_PREFIX);
    return strncmp(name, RLHF__PEFT_PREFIX, n) == 0 ? name + n : name;
}

static const struct rlhf__tensor *find(const struct rlhf__weights *w, const char *module,
                                       const char *tail) {
    char name[1024];
    snprintf(name, sizeof name, RLHF__PEFT_PREFIX "%s%s", module, tail);
    const struct rlhf__tensor *t = rlhf__weights_find(w, name);
    return t ? t : rlhf__weights_find(w, plain(name));
}

// ---- merging ----

// Returns 1 if the names are equal, or differ only in a prefix that ends with a dot, because one of
// them may lack the model's prefix.
static int same_end(const char *a, size_t n, const char *b, size_t m) {
    if (n < m) return same_end(b, m, a, n);
    return memcmp(a + n - m, b, m) == 0 && (n == m || a[n - m - 1] == '.');
}

// Returns the index of a module's matrix among the tensors, or x->n if the matrix is missing.
static size_t place_of(const struct rlhf__export_tensors *x, const char *module) {
    static const char tail[] = ".weight";
    for (size_t i = 0; i < x->n; i++) {
        const char *name = x->tensor[i]->name;
        const size_t n = strlen(name), m = sizeof tail - 1;
        if (n > m && strcmp(name + n - m, tail) == 0 &&
            same_end(name, n - m, module, strlen(module)))
            return i;
    }
    return x->n;
}

static rlhf_status no_layer(const struct rlhf__export_source *s,
                            const struct rlhf__export_tensors *x, const char *module,
                            struct rlhf__error *err) {
    struct rlhf__nearest near = {module, NULL, 0};
    char hint[400];
    for (size_t i = 0; i < x->n; i++)
        rlhf__nearest_offer(&near, x->tensor[i]->name);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "export: the adapter '%s' belongs to another base: '%s' has no layer %s%s",
                      s->dir, s->base, module, rlhf__nearest_hint(&near, hint, sizeof hint));
}

// Replace the model's tensor i with a copy that can be changed.
static struct rlhf__tensor *own(struct rlhf__export_adapter *a, struct rlhf__export_tensors *x,
                                size_t i) {
    struct rlhf__tensor *t = &a->made[a->n_made++];
    *t = *x->tensor[i];
    x->tensor[i] = t;
    return t;
}

static rlhf_status merge_layers(struct rlhf__export_adapter *a, struct rlhf__export_tensors *x,
                                const struct rlhf__export_source *s, struct rlhf__error *err) {
    const char *type = json_string_value(json_object_get(s->config, "model_type"));
    const int in_out = type && strcmp(type, "gpt2") == 0; // Conv1D
    for (uint32_t i = 0; i < s->peft.n_targets; i++) {
        const char *module = s->peft.target[i];
        const size_t at = place_of(x, module);
        const struct rlhf__tensor *low = find(a->weights, module, ".lora_A.weight");
        const struct rlhf__tensor *up = find(a->weights, module, ".lora_B.weight");
        if (at == x->n) return no_layer(s, x, module, err);
        if (!low || !up)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "export: the exact weights in %s/state lack the layer %s", s->dir,
                              module);
        if (x->tensor[at]->plus)
            return rlhf__fail(err, RLHF_E_INVALID, "export: '%s' names the layer %s twice", s->dir,
                              x->tensor[at]->name);
        RLHF_TRY(rlhf__low_rank_open(x->tensor[at], low, up, rlhf__peft_scale(&s->peft), in_out,
                                     &a->plus[a->n_plus], err));
        own(a, x, at)->plus = a->plus[a->n_plus++];
    }
    return RLHF_OK;
}

static size_t named(const struct rlhf__export_tensors *x, const char *name) {
    size_t i = 0;
    while (i < x->n && strcmp(x->tensor[i]->name, name) != 0)
        i++;
    return i;
}

static void drop(struct rlhf__export_tensors *x, size_t i) {
    memmove(x->tensor + i, x->tensor + i + 1, (x->n - i - 1) * sizeof *x->tensor);
    x->n--;
}

// The score head is stored with the adapter, under its own name in the model.
static rlhf_status merge_head(struct rlhf__export_adapter *a, struct rlhf__export_tensors *x,
                              const struct rlhf__export_source *s, struct rlhf__error *err) {
    const size_t count = rlhf__weights_count(a->weights), lm = named(x, "lm_head.weight");
    const struct rlhf__tensor **more = realloc(x->tensor, (x->n + count + 1) * sizeof *more);
    if (!more) return RLHF__NOMEM(err, "out of memory for the list of tensors");
    x->tensor = more;
    for (size_t i = 0; i < count; i++) {
        const struct rlhf__tensor *t = rlhf__weights_at(a->weights, i);
        const char *name = plain(t->name);
        if (strstr(name, ".lora_A.") || strstr(name, ".lora_B.")) continue;
        const size_t at = named(x, name);
        if (at == x->n) x->n++;
        x->tensor[at] = t;
        own(a, x, at)->name = name;
    }
    if (rlhf__model_is_classifier(s->config) && lm < x->n) drop(x, lm);
    return RLHF_OK;
}

rlhf_status rlhf__export_adapter_merge(struct rlhf__export_adapter *a,
                                       struct rlhf__export_tensors *x,
                                       const struct rlhf__export_source *s, int exact,
                                       struct rlhf__error *err) {
    RLHF_TRY(open_weights(s, exact, &a->weights, err));
    const size_t most = s->peft.n_targets + rlhf__weights_count(a->weights) + 1;
    a->made = calloc(most, sizeof *a->made);
    a->plus = calloc(most, sizeof(struct rlhf__low_rank *));
    if (!a->made || !a->plus) return RLHF__NOMEM(err, "out of memory merging an adapter");
    RLHF_TRY(merge_layers(a, x, s, err));
    return merge_head(a, x, s, err);
}

void rlhf__export_adapter_finish(struct rlhf__export_adapter *a) {
    for (size_t i = 0; i < a->n_plus; i++)
        rlhf__low_rank_close(a->plus[i]);
    free(a->plus);
    free(a->made);
    rlhf__weights_close(a->weights);
    memset(a, 0, sizeof *a);
}

// ---- its directory ----

static rlhf_status write_config(const struct rlhf__export_source *s, const char *base_model,
                                const struct rlhf__folder *to, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    json_t *v = NULL;
    rlhf__path_put(path, "%s/" RLHF__PEFT_CONFIG, s->dir);
    RLHF_TRY(rlhf__json_load(path, &v, err));
    if (base_model) json_object_set_new(v, "base_model_name_or_path", json_string(base_model));
    return rlhf__json_save_new(to, RLHF__PEFT_CONFIG, v, 2, err);
}

// Writes the tensors under names with PEFT's prefix, even if the names in the file lack the prefix.
static rlhf_status write_named(const struct rlhf__tensor **tensor, char **name, size_t n,
                               int32_t dtype, const struct rlhf__folder *to,
                               struct rlhf__error *err) {
    for (size_t i = 0; i < n; i++) {
        const char *own = plain(tensor[i]->name);
        const size_t room = sizeof RLHF__PEFT_PREFIX + strlen(own);
        if (!(name[i] = malloc(room))) return RLHF__NOMEM(err, "out of memory for an adapter");
        snprintf(name[i], room, RLHF__PEFT_PREFIX "%s", own);
    }
    const struct rlhf__rounded_file file = {
        .tensor = tensor, .name = (const char *const *)name, .n = n, .dtype = dtype};
    return rlhf__rounded_write(&file, to, RLHF__PEFT_WEIGHTS, err);
}

static rlhf_status write_tensors(const struct rlhf__weights *from, int32_t dtype,
                                 const struct rlhf__folder *to, int64_t *n_parameters,
                                 struct rlhf__error *err) {
    const size_t n = rlhf__weights_count(from);
    const struct rlhf__tensor **tensor = calloc(n + 1, sizeof *tensor);
    char **name = calloc(n + 1, sizeof *name);
    rlhf_status st = tensor && name ? RLHF_OK : RLHF__NOMEM(err, "out of memory for an adapter");
    for (size_t i = 0; st == RLHF_OK && i < n; i++) {
        tensor[i] = rlhf__weights_at(from, i);
        *n_parameters += tensor[i]->count;
        st = rlhf__tensor_check_float(tensor[i], err);
    }
    if (st == RLHF_OK) st = write_named(tensor, name, n, dtype, to, err);
    for (size_t i = 0; name && i < n; i++)
        free(name[i]);
    free(name);
    free(tensor);
    return st;
}

rlhf_status rlhf__export_adapter_write(const struct rlhf__export_source *s, int32_t dtype,
                                       const char *base_model, const struct rlhf__folder *to,
                                       int64_t *n_parameters, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__weights *w = NULL;
    *n_parameters = 0;
    RLHF_TRY(write_config(s, base_model, to, err));
    rlhf__path_put(path, "%s/config.json", s->dir);
    if (rlhf__is_file(path)) RLHF_TRY(rlhf__hf_config_write(to, s->config, err));
    RLHF_TRY(open_weights(s, dtype == RLHF__TENSOR_F32 || dtype == RLHF__TENSOR_F16, &w, err));
    rlhf_status st = write_tensors(w, dtype, to, n_parameters, err);
    rlhf__weights_close(w);
    return st == RLHF_OK ? rlhf__model_copy_text(rlhf__export_source_text(s), to, err) : st;
}

// ---- a file of llama.cpp ----

rlhf_status rlhf__export_adapter_gguf(const struct rlhf__export_source *s, int32_t dtype,
                                      const char *title, const volatile sig_atomic_t *cancelled,
                                      const struct rlhf__folder *in, const char *name,
                                      struct rlhf__error *err) {
    struct rlhf__weights *w = NULL;
    RLHF_TRY(open_weights(s, dtype != RLHF__TENSOR_BF16, &w, err));
    const struct rlhf__gguf_adapter a = {.dir = s->dir,
                                         .name = title,
                                         .config = s->config,
                                         .peft = &s->peft,
                                         .weights = w,
                                         .dtype = dtype < 0 ? RLHF__TENSOR_F32 : dtype,
                                         .cancelled = cancelled};
    const rlhf_status st = rlhf__gguf_adapter_write(&a, in, name, err);
    rlhf__weights_close(w);
    return st;
}
