// export_tensors.c: see export_tensors.h.
#include "export/export_tensors.h"

#include "weights/hf_dir.h"
#include "weights/rounding.h"
#include "weights/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns the embedding table, for any family and prefix. Returns NULL if the table is missing.
static const struct rlhf__tensor *table_of(const struct rlhf__weights *w) {
    static const char *const names[] = {"model.embed_tokens.weight", "embed_tokens.weight",
                                        "transformer.wte.weight", "wte.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct rlhf__tensor *t = rlhf__weights_find(w, names[i]);
        if (t) return t;
    }
    return NULL;
}

// Set *twin to 1 if the tensor is lm_head.weight and equals the embedding to which it is tied.
static rlhf_status is_twin(const struct rlhf__weights *w, const struct rlhf__tensor *t,
                           const json_t *config, int *twin, struct rlhf__error *err) {
    *twin = 0;
    if (strcmp(t->name, "lm_head.weight") != 0 || !rlhf__hf_tied(config) ||
        !rlhf__tensor_is_float(t->dtype))
        return RLHF_OK;
    const struct rlhf__tensor *e = table_of(w);
    return e ? rlhf__tensor_same(e, t, twin, err) : RLHF_OK;
}

static int has_prefix(const struct rlhf__export_tensors *x, const char *prefix) {
    for (size_t i = 0; i < x->n; i++)
        if (strncmp(x->tensor[i]->name, prefix, strlen(prefix)) == 0) return 1;
    return 0;
}

static int by_name(const void *a, const void *b) {
    const struct rlhf__tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

// If the file of a tied model has the head but not the embedding, gives the head the embedding's
// name.
static void name_lone_head(struct rlhf__export_tensors *x, const json_t *config) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const char *name =
        type && strcmp(type, "gpt2") == 0 ? "transformer.wte.weight" : "model.embed_tokens.weight";
    const size_t prefix = strcspn(name, ".") + 1;
    char above[32];
    snprintf(above, sizeof above, "%.*s", (int)prefix, name);
    if (!rlhf__hf_tied(config) || table_of(x->weights)) return;
    for (size_t i = 0; i < x->n; i++) {
        const struct rlhf__tensor *t = x->tensor[i];
        if (!t || strcmp(t->name, "lm_head.weight") != 0) continue;
        x->table = *t;
        x->table.name = has_prefix(x, above) ? name : name + prefix;
        x->tensor[i] = &x->table;
    }
    qsort(x->tensor, x->n, sizeof *x->tensor, by_name);
}

static rlhf_status choose(struct rlhf__export_tensors *x, const struct rlhf__export_source *s,
                          struct rlhf__log *log, struct rlhf__error *err) {
    const size_t all = rlhf__weights_count(x->weights);
    size_t values = 0, buffers = 0, twins = 0;
    x->dtype = -1;
    x->tensor = calloc(all + 1, sizeof *x->tensor);
    if (!x->tensor) return RLHF__NOMEM(err, "out of memory for the list of tensors");
    for (size_t i = 0; i < all; i++) {
        const struct rlhf__tensor *t = rlhf__weights_at(x->weights, i);
        const int value = rlhf__tensor_is_value_head(t->name);
        const int buffer = !value && rlhf__tensor_is_buffer(t->name);
        int twin = 0;
        if (!value && !buffer) RLHF_TRY(is_twin(x->weights, t, s->config, &twin, err));
        values += (size_t)value;
        buffers += (size_t)buffer;
        twins += (size_t)twin;
        if (!value && !buffer && !twin) x->tensor[x->n++] = t;
    }
    name_lone_head(x, s->config);
    if (rlhf__weights_left_out(x->weights) > 0)
        rlhf__logf(log, RLHF_LOG_INFO,
                   "%zu tensors of the parts for images are left out: the export is the language "
                   "model alone",
                   rlhf__weights_left_out(x->weights));
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/state/value_head.safetensors", s->dir);
    if (values > 0 || rlhf__is_file(path))
        rlhf__logf(log, RLHF_LOG_INFO,
                   "the value head is left out: it is for training only, and transformers has no "
                   "place for it");
    if (buffers > 0)
        rlhf__logf(log, RLHF_LOG_INFO, "%zu buffer%s (masks, angles) left out: models compute them",
                   buffers, buffers == 1 ? " is" : "s are");
    if (twins > 0)
        rlhf__logf(log, RLHF_LOG_INFO, "lm_head.weight is left out: it is tied to the embedding");
    if (x->n > 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "export: the weights in %s contain no tensors", s->dir);
}

static void find_dtype(struct rlhf__export_tensors *x) {
    for (size_t i = 0; i < x->n; i++) {
        const struct rlhf__tensor *t = x->tensor[i];
        if (!t || !rlhf__tensor_is_float(t->dtype)) continue;
        if (x->dtype >= 0 && x->dtype != t->dtype) {
            x->dtype = -1;
            return;
        }
        x->dtype = t->dtype;
    }
}

rlhf_status rlhf__export_tensors_open(struct rlhf__export_tensors *x,
                                      const struct rlhf__export_source *s, int exact,
                                      struct rlhf__log *log, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/state/master.safetensors", s->dir);
    exact = exact && rlhf__is_file(path);
    const char *dir = s->peft.dir ? s->base : s->dir;
    RLHF_TRY(rlhf__weights_open(exact && !s->peft.dir ? path : dir, &x->weights, err));
    RLHF_TRY(choose(x, s, log, err));
    find_dtype(x);
    return RLHF_OK;
}

void rlhf__export_tensors_finish(struct rlhf__export_tensors *x) {
    free(x->tensor);
    rlhf__weights_close(x->weights);
    memset(x, 0, sizeof *x);
}
