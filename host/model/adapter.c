// adapter.c: see adapter.h.
#include "model/adapter.h"

#include "base/json.h"
#include "gguf/model_text.h"
#include "model/compute.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "weights/file_sum.h"
#include "weights/safetensors.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- directories ----

static rlhf_status sum_of(const char *dir, char hex[65], int64_t *bytes, struct rlhf__error *err) {
    struct rlhf__file_sum s;
    RLHF_TRY(rlhf__sum_model(dir, 0, 1, &s, err));
    rlhf__sha256_hex(&s.hash, hex);
    *bytes = s.bytes;
    return RLHF_OK;
}

// Check that `base`, the directory that the user gave, is the one that the adapter names, or has
// the same bytes. If the adapter names a directory that does not exist here (e.g. a name on a hub),
// returns RLHF_OK. In that case only shapes are checked, later.
static rlhf_status check_named(const struct rlhf__peft *p, const char *base,
                               struct rlhf__error *err) {
    char named[RLHF__PATH_CAP], a[65], b[65];
    int64_t bytes;
    struct rlhf__error none;
    if (rlhf__peft_base(p, named, &none) != RLHF_OK || strcmp(named, base) == 0) return RLHF_OK;
    RLHF_TRY(sum_of(base, a, &bytes, err));
    RLHF_TRY(sum_of(named, b, &bytes, err));
    if (strcmp(a, b) == 0) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "the adapter '%s' is of the base '%s' (base_model_name_or_path), not of '%s', "
        "whose config.json or weights are others",
        p->dir, named, base);
}

static rlhf_status no_second(const char *dir, struct rlhf__error *err) {
    if (!rlhf__peft_is(dir) || rlhf__weights_exist(dir)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "'%s' holds an adapter itself (" RLHF__PEFT_CONFIG "): one does not go on "
                      "another; merge it first (rlhf-host export --merge)",
                      dir);
}

// Sets base[RLHF__PATH_CAP] to the base model's directory.
rlhf_status rlhf__adapter_find(const char *dir, const struct rlhf__model_adapter *adapter,
                               struct rlhf__peft *p, char *base, struct rlhf__error *err) {
    const int given = dir && *dir, with = adapter->dir && *adapter->dir;
    if (given && !rlhf__path_real(dir, base)) snprintf(base, RLHF__PATH_CAP, "%s", dir);
    if (given && !with && rlhf__peft_is(base)) {
        if (rlhf__weights_exist(base))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "'%s' holds both an adapter (" RLHF__PEFT_CONFIG ") and weights of "
                              "its own, so it is not clear which of them is meant",
                              base);
        if (adapter->rank > 0) return no_second(base, err);
        RLHF_TRY(rlhf__peft_read(base, p, err));
        return rlhf__peft_base(p, base, err);
    }
    if (with) RLHF_TRY(rlhf__peft_read(adapter->dir, p, err));
    if (with && !given) return rlhf__peft_base(p, base, err);
    if (with) RLHF_TRY(no_second(base, err));
    if (with) return check_named(p, base, err);
    return adapter->rank > 0
               ? rlhf__peft_make(adapter->rank, adapter->alpha, adapter->targets, p, err)
               : RLHF_OK;
}

// Compares with state/base.json, which checkpoints contain.
rlhf_status rlhf__adapter_check_base(const struct rlhf__peft *p, const char *base,
                                     struct rlhf__error *err) {
    char path[RLHF__PATH_CAP], is[65];
    int64_t bytes;
    json_t *v = NULL;
    if (!p->dir) return RLHF_OK;
    rlhf__path_put(path, "%s/state/base.json", p->dir);
    if (!rlhf__is_file(path)) return RLHF_OK;
    RLHF_TRY(sum_of(base, is, &bytes, err));
    RLHF_TRY(rlhf__json_load(path, &v, err));
    const char *was = json_string_value(json_object_get(v, "sha256"));
    rlhf_status st = RLHF_OK;
    if (!was)
        st = rlhf__fail(err, RLHF_E_INVALID, "%s has no string \"sha256\"", path);
    else if (strcmp(was, is) != 0)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "the base '%s' of the adapter '%s' has changed since the adapter was "
                        "trained on it (sha256 %.12s is now %.12s)",
                        base, p->dir, was, is);
    json_decref(v);
    return st;
}

int rlhf__adapter_has_text(const char *dir) {
    static const char *const files[] = {"tokenizer.json", "vocab.json", "vocab.txt",
                                        "tokenizer.model"};
    for (size_t i = 0; dir && i < sizeof files / sizeof *files; i++)
        if (rlhf__model_has(dir, files[i])) return 1;
    return 0;
}

// Returns 1 if a tokenizer has a chat template, usable or not.
static int has_template(const struct rlhf__tokenizer *tok) {
    const struct rlhf__chat *chat = rlhf__tokenizer_chat(tok);
    return rlhf__chat_known(chat) || rlhf__chat_unknown(chat);
}

void rlhf__adapter_note_template(const char *adapter, const char *base,
                                 const struct rlhf__tokenizer *tok, struct rlhf__log *log) {
    struct rlhf__tokenizer *of_base = NULL;
    if (has_template(tok) || !rlhf__adapter_has_text(base) ||
        rlhf__tokenizer_open(base, &of_base, NULL) != RLHF_OK)
        return;
    if (has_template(of_base))
        rlhf__logf(log, RLHF_LOG_WARN,
                   "the chat template of the base '%s' is left out: the adapter '%s' has a "
                   "tokenizer of its own, without a template; to use the base's, copy it there as "
                   "chat_template.jinja",
                   base, adapter);
    rlhf__tokenizer_close(of_base);
}

// A model cannot get its LM head from a classifier, because a classifier lacks an LM head.
static int lacks_head(const struct rlhf__model *base, const struct rlhf__model *m) {
    return base->n_labels > 0 && m->n_labels == 0 && !rlhf__hf_tied(m->config);
}

void rlhf__adapter_share(struct rlhf__model *m) {
    struct rlhf__model *s = m->env->shared;
    const int still = m->peft.rank > 0 || (!m->spec.trainable && m->spec.frozen);
    if (!s || !still || m->spec.start == RLHF__START_RANDOM || strcmp(s->dir, m->dir) != 0 ||
        lacks_head(s, m))
        return;
    m->base = s;
    s->users++;
}

void rlhf__adapter_part(struct rlhf__model *m) {
    rlhf__model_close(m->base);
    m->base = NULL;
}

rlhf_status rlhf__adapter_resolve(struct rlhf__model *m, struct rlhf__error *err) {
    char base[RLHF__PATH_CAP] = "";
    RLHF_TRY(rlhf__adapter_find(m->spec.dir, &m->spec.adapter, &m->peft, base, err));
    m->dir = strdup(base);
    m->text_dir = strdup(rlhf__adapter_has_text(m->peft.dir) ? m->peft.dir : base);
    if (!m->dir || !m->text_dir) return RLHF__NOMEM(err, "out of memory opening a model");
    // With this directory, the spec opens the same model again.
    m->spec.dir = m->dir;
    m->spec.adapter.dir = m->peft.dir;
    if (m->peft.rank > 0) RLHF_TRY(sum_of(m->dir, m->base_sha256, &m->base_bytes, err));
    return rlhf__adapter_check_base(&m->peft, m->dir, err);
}

// ---- config.json ----

// If no config names the labels, the number of labels is the number of rows of the score head in
// the file.
static rlhf_status count_labels(const struct rlhf__peft *p, json_t *config,
                                struct rlhf__error *err) {
    static const char *const names[] = {RLHF__PEFT_PREFIX "score.weight",
                                        RLHF__PEFT_PREFIX "classifier.weight"};
    char path[RLHF__PATH_CAP];
    struct rlhf__weights *w = NULL;
    int64_t n = 0;
    rlhf__path_put(path, "%s/" RLHF__PEFT_WEIGHTS, p->dir);
    RLHF_TRY(rlhf__weights_open(path, &w, err));
    for (size_t i = 0; i < 2; i++) {
        const struct rlhf__tensor *t = rlhf__weights_find(w, names[i]);
        if (t && t->ndim == 2) n = t->shape[0];
    }
    rlhf__weights_close(w);
    if (n == 0) return RLHF_OK;
    if (n > 65536)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: its score head has %lld labels; at most 65536",
                          path, (long long)n);
    json_object_del(config, "id2label");
    if (json_object_set_new(config, "num_labels", json_integer(n)) != 0)
        return RLHF__NOMEM(err, "out of memory for config.json");
    return rlhf__classifier_architecture(config, err);
}

// Copy the members that an adapter's config.json may set itself; all other members come from the
// base's config.json. The order of keys is kept, so that a resumed run writes the same file.
static rlhf_status take_head(json_t *config, json_t *own, struct rlhf__error *err) {
    static const char *const keys[] = {"architectures", "id2label",     "label2id",
                                       "num_labels",    "rlhf_pooling", "rlhf_reward",
                                       "problem_type",  "pad_token_id", RLHF__STOP_AT_EOS_KEY};
    const char *key;
    json_t *v;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!json_object_get(own, keys[i])) json_object_del(config, keys[i]);
    json_object_foreach(own, key, v) {
        int taken = 0;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            taken |= strcmp(key, keys[i]) == 0;
        if (taken && json_object_set(config, key, v) != 0)
            return RLHF__NOMEM(err, "out of memory for config.json");
    }
    return RLHF_OK;
}

rlhf_status rlhf__adapter_config(const char *dir, const struct rlhf__peft *peft, json_t **out,
                                 struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    json_t *own = NULL;
    RLHF_TRY(rlhf__hf_config_read(dir, out, err));
    if (!peft->dir) return RLHF_OK;
    rlhf__path_put(path, "%s/config.json", peft->dir);
    const int beside = rlhf__is_file(path);
    rlhf_status st = beside ? rlhf__hf_config_read(peft->dir, &own, err) : RLHF_OK;
    if (st == RLHF_OK && beside) st = take_head(*out, own, err);
    if (st == RLHF_OK && peft->scores && !rlhf__model_is_classifier(*out))
        st = count_labels(peft, *out, err);
    json_decref(own);
    if (st == RLHF_OK) return RLHF_OK;
    json_decref(*out);
    *out = NULL;
    return st;
}

rlhf_status rlhf__adapter_config_of(const char *dir, const struct rlhf__model_adapter *adapter,
                                    json_t **out, struct rlhf__error *err) {
    static const struct rlhf__model_adapter none = {.dir = NULL};
    struct rlhf__peft p = {.dir = NULL};
    char base[RLHF__PATH_CAP] = "";
    *out = NULL;
    rlhf_status st = rlhf__adapter_find(dir, adapter ? adapter : &none, &p, base, err);
    if (st == RLHF_OK) st = rlhf__adapter_config(base, &p, out, err);
    rlhf__peft_finish(&p);
    return st;
}

// ---- the plugin ----

rlhf_adapter rlhf__adapter_open(const struct rlhf__peft *peft) {
    return (rlhf_adapter){.size = sizeof(rlhf_adapter),
                          .rank = peft->rank,
                          .scale = rlhf__peft_scale(peft),
                          .target = (const char *const *)peft->target,
                          .n_targets = peft->n_targets};
}

rlhf_status rlhf__adapter_check(const struct rlhf__model *m, struct rlhf__error *err) {
    if ((m->peft.rank == 0 && !m->base) || (m->info.caps & RLHF_CAP_ADAPTER)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "the %s '%s' has an adapter, which its plugin %s does not know", m->role,
                      m->dir, m->instance->plugin->file);
}

rlhf_status rlhf__adapter_context(const struct rlhf__model *m, struct rlhf__error *err) {
    if (m->peft.dir)
        return rlhf__error_context(err, "the adapter '%s' of the %s '%s'", m->peft.dir, m->role,
                                   m->dir);
    return rlhf__error_context(err, "the %s '%s'", m->role, m->dir);
}

// ---- writing ----

static int has(char **name, size_t n, const char *text, size_t len) {
    for (size_t i = 0; i < n; i++)
        if (strlen(name[i]) == len && memcmp(name[i], text, len) == 0) return 1;
    return 0;
}

// Returns the part of a parameter's name that adapter_config.json lists. For a matrix A it is the
// last part of the module's name, for a score head the whole name of the module. Returns NULL for
// other parameters.
static const char *part_of(const rlhf_param *p, int32_t group, size_t *n) {
    static const char tail[] = ".lora_A.weight";
    const size_t all = strlen(p->name);
    if (p->group != group) return NULL;
    if (group == RLHF_PARAM_SCORE) {
        const char *dot = strrchr(p->name, '.');
        *n = dot ? (size_t)(dot - p->name) : all;
        return p->name;
    }
    if (all < sizeof tail || strcmp(p->name + all - sizeof tail + 1, tail) != 0) return NULL;
    const char *from = p->name, *end = p->name + all - sizeof tail + 1;
    for (const char *at = from; at < end; at++)
        if (*at == '.') from = at + 1;
    *n = (size_t)(end - from);
    return from;
}

// Returns the names that adapter_config.json lists for a group of parameters, without duplicates,
// in the order of the parameters. For the group of adapters, takes the last part of the name of
// every module that has an adapter. This also replaces the setting "all-linear" by the names of
// modules. For any other group, takes the names of the score heads. *n is the number of names. The
// list and the names are one block, which the caller frees. Returns NULL if out of memory.
static char **list(const struct rlhf__model *m, int32_t group, size_t *n) {
    size_t bytes = 0, len = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++)
        bytes += strlen(m->params[i].name) + 1;
    char **name = malloc((m->n_tensors + 1) * sizeof *name + bytes);
    char *to = name ? (char *)(name + m->n_tensors + 1) : NULL;
    *n = 0;
    for (uint32_t i = 0; name && i < m->n_tensors; i++) {
        const char *part = part_of(&m->params[i], group, &len);
        if (!part || has(name, *n, part, len)) continue;
        memcpy(to, part, len);
        to[len] = '\0';
        name[(*n)++] = to;
        to += len + 1;
    }
    return name;
}

// Returns 1 if the matrices with adapters are stored as [inputs, outputs].
static int in_out(const struct rlhf__model *m) {
    const struct rlhf__model *trunk = m->base ? m->base : m;
    for (uint32_t i = 0; i < trunk->n_tensors; i++)
        if (trunk->params[i].flags & RLHF_PARAM_IN_OUT) return 1;
    return 0;
}

static rlhf_status write_base(const struct rlhf__model *m, const struct rlhf__folder *dir,
                              struct rlhf__error *err) {
    return rlhf__json_save_new(dir, "state/base.json",
                               json_pack("{s:i, s:s, s:I, s:s}", "format", 1, "path", m->dir,
                                         "bytes", (json_int_t)m->base_bytes, "sha256",
                                         m->base_sha256),
                               2, err);
}

rlhf_status rlhf__adapter_write(const struct rlhf__model *m, int32_t dtype, int state,
                                const struct rlhf__folder *dir, struct rlhf__error *err) {
    struct rlhf__peft_written w = {.base = m->dir, .in_out = in_out(m)};
    char **leaf = list(m, RLHF_PARAM_ADAPTER, &w.n_leaf);
    char **saved = list(m, RLHF_PARAM_SCORE, &w.n_saved);
    w.leaf = (const char *const *)leaf;
    w.saved = (const char *const *)saved;
    rlhf_status st = leaf && saved ? RLHF_OK : RLHF__NOMEM(err, "out of memory for an adapter");
    if (st == RLHF_OK) st = rlhf__peft_write(&m->peft, &w, dir, err);
    free(leaf);
    free(saved);
    if (st == RLHF_OK)
        st = rlhf__params_write(m, RLHF__PART_PEFT, dtype, dir, RLHF__PEFT_WEIGHTS, err);
    return st == RLHF_OK && state ? write_base(m, dir, err) : st;
}

// ---- how far an adapter moved ----

static size_t count_all(const struct rlhf__model *m, size_t *most) {
    size_t n = 0;
    *most = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        if (m->params[i].group != RLHF_PARAM_ADAPTER) continue;
        const size_t own = (size_t)rlhf__param_count(&m->params[i]);
        n += own;
        if (own > *most) *most = own;
    }
    return n;
}

static rlhf_status download(const struct rlhf__model *m, const rlhf_param *p, float *to,
                            struct rlhf__error *err) {
    const rlhf_compute *c = m->compute;
    RLHF_TRY(rlhf__param_check(m, p, err));
    const rlhf_status st =
        c->download(c->ctx, to, p->value, (uint64_t)rlhf__param_count(p) * sizeof *to);
    return st == RLHF_OK ? st : rlhf__compute_fail(rlhf__model_kernels(m), st, p->name, err);
}

uint64_t rlhf__moved_bytes(const struct rlhf__model *m) {
    size_t most;
    const size_t n = count_all(m, &most);
    return (n + most) * sizeof(float);
}

rlhf_status rlhf__moved_begin(struct rlhf__moved *w, const struct rlhf__model *m,
                              struct rlhf__error *err) {
    size_t most, n = count_all(m, &most);
    if (n == 0) return RLHF_OK;
    w->before = malloc((n + most) * sizeof *w->before);
    if (!w->before) return RLHF__NOMEM(err, "out of memory for a copy of the adapter");
    float *to = w->before;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->group != RLHF_PARAM_ADAPTER) continue;
        RLHF_TRY(download(m, p, to, err));
        to += rlhf__param_count(p);
    }
    return RLHF_OK;
}

rlhf_status rlhf__moved_norm(const struct rlhf__moved *w, const struct rlhf__model *m, double *norm,
                             struct rlhf__error *err) {
    size_t most, n = count_all(m, &most);
    const float *was = w->before;
    float *now = w->before + n;
    double sum = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->group != RLHF_PARAM_ADAPTER) continue;
        const int64_t count = rlhf__param_count(p);
        RLHF_TRY(download(m, p, now, err));
        for (int64_t k = 0; k < count; k++) {
            const double d = (double)now[k] - (double)was[k];
            sum += d * d;
        }
        was += count;
    }
    *norm = sqrt(sum);
    return RLHF_OK;
}

void rlhf__moved_finish(struct rlhf__moved *w) {
    free(w->before);
    w->before = NULL;
}
