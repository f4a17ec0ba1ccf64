// open.c: rlhf__model_open, rlhf__model_load and rlhf__model_weigh of model.h. They read the
// directory, find the plugin and fill the parameters. With a memory plan, only rlhf__model_load
// fills the parameters.
#include "base/folder.h"
#include "model/adapter.h"
#include "model/free_memory.h"
#include "model/model.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "model/quantised.h"
#include "weights/gguf_weights.h"
#include "weights/safetensors.h"
#include "weights/wrong_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the plugin of a model type ----

// `stem` is a plugin's file name without ".so". Returns 0 if the plugin lists its model types, but
// does not list `stem`. Otherwise returns 1.
static int is_type(struct rlhf__plugins *plugins, const char *stem) {
    const struct rlhf__plugin *p = NULL;
    struct rlhf__error unsaid = {0};
    char name[256];
    rlhf_opt o;
    snprintf(name, sizeof name, "%s.so", stem);
    if (rlhf__plugin_open(plugins, name, RLHF_KIND_MODEL, RLHF__NAME_LOOKED_UP, "config.json", &p,
                          &unsaid) != RLHF_OK)
        return 1;
    const int32_t at = rlhf__opt_find(&p->table, "model_type");
    if (at < 0) return 1;
    rlhf__opt_at(&p->table, (uint32_t)at, &o);
    for (const char *const *c = o.type == RLHF_T_ENUM ? o.choices : NULL; c && *c; c++)
        if (!strcmp(*c, stem)) return 1;
    return o.type != RLHF_T_ENUM;
}

// Append to *out, as "a, b", the model types for which a plugin file exists (the file has the name
// of the type). Set *there to 1 if a plugin file is named `model_type`. The caller has tried to
// open that file, and failed.
static rlhf_status list_types(struct rlhf__plugins *plugins, const char *model_type,
                              struct rlhf__buf *out, int *there) {
    struct rlhf__buf stems = RLHF__BUF_INIT;
    rlhf_status st = rlhf__plugin_stems(plugins, RLHF_KIND_MODEL, model_type, &stems, there);
    char *rest = NULL, *text = st == RLHF_OK ? strdup(rlhf__buf_text(&stems)) : NULL;
    if (st == RLHF_OK && !text) st = RLHF_E_NOMEM;
    for (char *s = text ? strtok_r(text, ", ", &rest) : NULL; s; s = strtok_r(NULL, ", ", &rest))
        if (is_type(plugins, s)) rlhf__buf_printf(out, "%s%s", out->len ? ", " : "", s);
    free(text);
    rlhf__buf_finish(&stems);
    return st == RLHF_OK && out->bad ? RLHF_E_NOMEM : st;
}

// If no plugin has this model_type, replace the message in *err with an explanation.
static rlhf_status explain_type(const struct rlhf__model *m, const char *model_type,
                                struct rlhf__error *err) {
    struct rlhf__buf known = RLHF__BUF_INIT;
    int there = 0;
    rlhf_status st = list_types(m->env->plugins, model_type, &known, &there);
    if (st == RLHF_OK && !there)
        rlhf__fail(
            err, RLHF_E_INVALID,
            "%s/config.json: model_type '%s' is not supported%s; supported: %s", m->dir, model_type,
            json_object_get(m->config, "auto_map") ? ", and its own code (auto_map) is never run"
                                                   : "",
            rlhf__buf_text(&known));
    rlhf__buf_finish(&known);
    return RLHF_E_INVALID;
}

// Open the plugin for the config's model_type, and create an instance. Errors: RLHF_E_INVALID, with
// the type and the supported types.
static rlhf_status open_instance(struct rlhf__model *m, struct rlhf__error *err) {
    char name[256], where[4200];
    const char *model_type = NULL;
    RLHF_TRY(rlhf__hf_model_type(m->config, m->dir, &model_type, err));
    snprintf(name, sizeof name, "%s.so", model_type);
    snprintf(where, sizeof where, "%s%s", m->dir, rlhf__gguf_is(m->dir) ? "" : "/config.json");
    const struct rlhf__plugin *plugin = NULL;
    rlhf_status st = rlhf__plugin_open(m->env->plugins, name, RLHF_KIND_MODEL, RLHF__NAME_LOOKED_UP,
                                       where, &plugin, err);
    if (st == RLHF_E_INVALID) st = explain_type(m, model_type, err);
    if (st != RLHF_OK) return st;
    struct rlhf__origin from = {where, "", NULL, 0, 1};
    char owner[64];
    snprintf(owner, sizeof owner, "models/%s", m->role);
    st = rlhf__instance_open(plugin, m->env->services, owner, m->config, &from, &m->instance, err);
    // The plugin's message names the field; add the file.
    if (st != RLHF_OK)
        return strstr(err->text, m->dir) ? st : rlhf__error_context(err, "%s", m->dir);
    m->ops = &plugin->ops.model;
    m->self = m->instance->self;
    return RLHF_OK;
}

// ---- on a compute backend ----

// Check that the plugin has the functions that this model needs.
static rlhf_status check_functions(const struct rlhf__model *m, struct rlhf__error *err) {
    const char *plugin = rlhf__plugin_name(m->instance->plugin);
    if (m->trainable && !m->ops->backward)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s lacks the function backward(), which a model that is trained needs",
                          plugin);
    return RLHF_OK;
}

static rlhf_status check_info(const struct rlhf__model *m, struct rlhf__error *err) {
    const char *plugin = rlhf__plugin_name(m->instance->plugin);
    const rlhf_model_info *i = &m->info;
    if (i->heads & ~(uint32_t)RLHF_HEAD_KNOWN)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s, info(), sets bit %d of the heads, which this host does not know",
                          plugin, __builtin_ctz(i->heads & ~(uint32_t)RLHF_HEAD_KNOWN));
    if (i->caps & ~(uint32_t)RLHF_CAP_KNOWN)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s, info(), sets bit %d of the caps, which this host does not know",
                          plugin, __builtin_ctz(i->caps & ~(uint32_t)RLHF_CAP_KNOWN));
    if ((i->caps & RLHF_CAP_GENERATE) && !m->ops->gen_open)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s offers to generate text, but lacks the function gen_open()", plugin);
    if (i->n_vocab < 1 || i->n_ctx < 1 || i->d_model < 1 || i->n_tensors < 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s, info(): %d tokens in the vocabulary, a context of %d, a width of %d "
                          "and %d parameters do not make a model",
                          plugin, i->n_vocab, i->n_ctx, i->d_model, i->n_tensors);
    return RLHF_OK;
}

// All parameters must have values, except frozen ones of a model that has fill_begin().
static rlhf_status check_values(const struct rlhf__model *m, struct rlhf__error *err) {
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->value || (m->ops->fill_begin && (m->frozen || p->flags & RLHF_PARAM_FROZEN)))
            continue;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s, param(): its parameter '%s' has no value (NULL); only frozen "
                          "parameters of a plugin with fill_begin() may have none",
                          rlhf__plugin_name(m->instance->plugin), p->name);
    }
    return RLHF_OK;
}

static rlhf_status check_gradients(const struct rlhf__model *m, struct rlhf__error *err) {
    uintptr_t base = (uintptr_t)m->info.grad_base;
    for (uint32_t i = 0; base && i < m->n_tensors; i++) {
        uintptr_t at = (uintptr_t)m->params[i].grad;
        uint64_t bytes = (uint64_t)rlhf__param_count(&m->params[i]) * sizeof(float);
        if (at &&
            (at < base || bytes > m->info.grad_bytes || at - base > m->info.grad_bytes - bytes))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s, info(): the gradient of %s lies outside of the range that it "
                              "names",
                              rlhf__plugin_name(m->instance->plugin), m->params[i].name);
    }
    return RLHF_OK;
}

// Call open(), info() and param() of the instance on m->compute and check their results. Errors:
// those of the calls; RLHF_E_INVALID and RLHF_E_UNSUPPORTED for wrong results.
static rlhf_status open_backend(struct rlhf__model *m, const struct rlhf__model_spec *spec,
                                struct rlhf__error *err) {
    rlhf_model_open o = {.size = sizeof o,
                         .dtype = m->env->dtype,
                         .trainable = spec->trainable,
                         .n_labels = m->n_labels,
                         .pooling = m->pooling,
                         .value_kind = spec->value_kind,
                         .value_init = spec->value_init,
                         .value_detach = spec->value_detach,
                         .compute = m->compute,
                         .score_init = spec->score_init,
                         .frozen = spec->frozen,
                         .recompute = spec->trainable ? m->env->recompute : 0};
    const rlhf_adapter adapter = rlhf__adapter_open(&m->peft);
    if (m->peft.rank > 0) o.adapter = &adapter;
    if (m->base) o.base = m->base->self;
    struct rlhf__weights *weights = NULL;
    // If there is a base, the LM head is shared with it, so the base's spec applies.
    const struct rlhf__model_spec *whole = m->base ? &m->base->spec : spec;
    if (whole->tokens_only && m->tok) o.n_tokens = rlhf__tokenizer_info(m->tok)->n_vocab;
    rlhf_status st = check_functions(m, err);
    if (st == RLHF_OK) st = rlhf__quantised_open(m, &weights, err);
    if (st != RLHF_OK) return st;
    if (weights) o.format_of = rlhf__quantised_format;
    o.format_ctx = weights;
    struct rlhf__call call = rlhf__call_begin(m->instance, "open()");
    st = rlhf__call_end(&call, m->ops->open(m->self, &o), err);
    rlhf__weights_close(weights);
    if (st != RLHF_OK) return rlhf__adapter_context(m, err);
    struct rlhf__filled filled;
    rlhf_model_info *info = RLHF__FILLED(rlhf_model_info, &filled, m->instance->plugin->abi_minor);
    call = rlhf__call_begin(m->instance, "info()");
    st = m->ops->info(m->self, info);
    st = rlhf__call_end_filled(&call, st, &filled, &m->info, err);
    if (st == RLHF_OK) st = check_info(m, err);
    if (st == RLHF_OK) st = rlhf__adapter_check(m, err);
    if (st != RLHF_OK) return st;
    m->n_tensors = (uint32_t)m->info.n_tensors;
    m->params = calloc(m->n_tensors ? m->n_tensors : 1, sizeof *m->params);
    if (!m->params) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory opening a model");
    st = rlhf__model_list_params(m, err);
    if (st == RLHF_OK) st = check_values(m, err);
    return st == RLHF_OK ? check_gradients(m, err) : st;
}

// ---- parameters ----

// Returns the number of rows of the embedding, some of which may lack a logit. The tokenizer must
// not have more ids than this.
static int32_t embedded(const struct rlhf__model *m) {
    if (m->base) return embedded(m->base);
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (m->params[i].flags & RLHF_PARAM_EMBED && m->params[i].shape[0] <= INT32_MAX)
            return (int32_t)m->params[i].shape[0];
    return m->info.n_vocab;
}

static rlhf_status check_text(struct rlhf__model *m, struct rlhf__error *err) {
    char what[4200];
    snprintf(what, sizeof what, "%s '%s'", m->role, m->dir);
    RLHF_TRY(rlhf__tokenizer_fit(m->tok, embedded(m), what, err));
    // The policy of reward-model training needs end tokens, too, because it generates the samples
    // to which gain and bias are fitted.
    const int writes = m->info.caps & RLHF_CAP_GENERATE;
    return writes ? rlhf__ends_read(m->text_dir, m->config, m->tok, &m->ends, err) : RLHF_OK;
}

static rlhf_status fill(struct rlhf__model *m, int32_t start, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (start == RLHF__START_RANDOM)
        st = rlhf__params_draw(m, -1, err);
    else if (start != RLHF__START_EMPTY)
        st = rlhf__params_read(m, start == RLHF__START_HEADS, err);
    rlhf__model_let_go(m);
    return st == RLHF_OK && start != RLHF__START_EMPTY ? rlhf__model_refresh(m, err) : st;
}

// ---- on a memory plan ----

// open() allocates values and gradients. Packed weights are allocated by open(), fill_end() or the
// first refresh().
static rlhf_status open_on_plan(struct rlhf__model *m, struct rlhf__memory_plan *plan,
                                struct rlhf__error *err) {
    m->compute = rlhf__memory_plan_table(plan);
    rlhf__memory_plan_account(plan, m->role, RLHF__USE_WEIGHTS);
    RLHF_TRY(open_backend(m, &m->spec, err));
    rlhf__memory_plan_set_use(plan, m->info.grad_base, RLHF__USE_GRADIENTS);
    for (uint32_t i = 0; !m->info.grad_base && i < m->n_tensors; i++)
        rlhf__memory_plan_set_use(plan, m->params[i].grad, RLHF__USE_GRADIENTS);
    rlhf_status st = rlhf__params_pass(m, err);
    if (st == RLHF_OK) st = rlhf__model_refresh(m, err);
    rlhf__memory_plan_account(plan, m->role, RLHF__USE_ACTIVATIONS);
    return st;
}

// Destroy the instance. If other models share it, keep it until they are closed.
static void drop_instance(struct rlhf__model *m) {
    if (m->users > 1)
        m->was = m->instance;
    else
        rlhf__instance_close(m->instance);
    free(m->params);
    m->instance = NULL;
    m->params = NULL;
    m->n_tensors = 0;
}

rlhf_status rlhf__model_weigh(const struct rlhf__model *m, struct rlhf__uses *out,
                              struct rlhf__error *err) {
    struct rlhf__model other = *m;
    struct rlhf__memory_plan *plan = NULL;
    other.instance = NULL;
    other.was = NULL;
    other.users = 1;
    other.params = NULL;
    rlhf_status st = rlhf__memory_plan_open(m->env->compute, &plan, err);
    if (st == RLHF_OK) st = open_instance(&other, err);
    if (st == RLHF_OK) st = open_on_plan(&other, plan, err);
    if (st == RLHF_OK) *out = *rlhf__memory_plan_peak(plan);
    drop_instance(&other);
    rlhf__memory_plan_close(plan);
    return st;
}

// If both the tokenizer and the weights are missing (GGUF holds both), the message names the
// weights.
static rlhf_status open_text(struct rlhf__model *m, struct rlhf__error *err) {
    const int reads = m->spec.start == RLHF__START_WEIGHTS || m->spec.start == RLHF__START_HEADS;
    const rlhf_status st = rlhf__tokenizer_open(m->text_dir, &m->tok, err);
    if (st != RLHF_OK && reads && !rlhf__weights_exist(m->dir))
        return rlhf__wrong_weights(m->dir, err);
    RLHF_TRY(st);
    rlhf__tokenizer_set_log(m->tok, m->env->services->log);
    if (m->peft.dir && strcmp(m->text_dir, m->dir) != 0)
        rlhf__adapter_note_template(m->peft.dir, m->dir, m->tok, m->env->services->log);
    return RLHF_OK;
}

static rlhf_status open_for_good(struct rlhf__model *m, struct rlhf__error *err) {
    m->compute = m->env->compute;
    RLHF_TRY(open_instance(m, err));
    if (!m->tok) RLHF_TRY(open_text(m, err));
    return open_backend(m, &m->spec, err);
}

rlhf_status rlhf__model_load(struct rlhf__model *m, struct rlhf__error *err) {
    if (!m->planned) return RLHF_OK;
    // Other models may still be on the plan, so only this model is checked.
    if (m->env->memory_plan) RLHF_TRY(rlhf__free_memory_check_model(m, err));
    drop_instance(m);
    m->planned = 0;
    if (m->base && m->base->planned) rlhf__adapter_part(m); // m is used before its base is loaded
    RLHF_TRY(open_for_good(m, err));
    return fill(m, m->spec.start, err);
}

// Find the directories of the model and its adapter. Lock both until the model is filled, so that a
// run does not prune them.
static rlhf_status find(struct rlhf__model *m, struct rlhf__error *err) {
    char real[2][RLHF__PATH_CAP];
    const char **dir[2] = {&m->spec.dir, &m->spec.adapter.dir};
    for (int i = 0; i < 2; i++) {
        if (*dir[i] && **dir[i]) m->held[i] = rlhf__folder_hold(*dir[i], real[i]);
        if (m->held[i] >= 0) *dir[i] = real[i];
    }
    return rlhf__adapter_resolve(m, err);
}

// If the weights are read from a GGUF file, log what the file holds.
static rlhf_status say_gguf(const struct rlhf__model *m, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const int reads = m->spec.start == RLHF__START_WEIGHTS || m->spec.start == RLHF__START_HEADS;
    if (m->base || !reads || !rlhf__gguf_is(m->dir)) return RLHF_OK;
    const rlhf_status st = rlhf__gguf_describe(m->dir, &text, err);
    if (st == RLHF_OK)
        rlhf__logf(m->env->services->log, RLHF_LOG_INFO, "%s: %s (%s)", m->role,
                   rlhf__path_base(m->dir), rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    return st;
}

static rlhf_status open_into(struct rlhf__model *m, struct rlhf__error *err) {
    const struct rlhf__model_env *env = m->env;
    RLHF_TRY(find(m, err));
    RLHF_TRY(rlhf__model_read_config(m, &m->spec, err));
    rlhf__adapter_share(m);
    RLHF_TRY(say_gguf(m, err));
    RLHF_TRY(rlhf__quantised_check(m, err));
    if (env->memory_plan) {
        m->planned = 1;
        RLHF_TRY(open_instance(m, err));
        RLHF_TRY(open_text(m, err));
        RLHF_TRY(open_on_plan(m, env->memory_plan, err));
        return check_text(m, err);
    }
    RLHF_TRY(rlhf__free_memory_check_model(m, err));
    RLHF_TRY(open_for_good(m, err));
    RLHF_TRY(check_text(m, err));
    return fill(m, m->spec.start, err);
}

rlhf_status rlhf__model_open(const struct rlhf__model_env *env, const struct rlhf__model_spec *spec,
                             struct rlhf__model **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__model *m = calloc(1, sizeof *m);
    if (!m) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory opening a model");
    m->env = env;
    m->compute = env->compute;
    m->role = spec->role;
    m->trainable = spec->trainable;
    m->frozen = spec->frozen;
    m->spec = *spec;
    m->users = 1;
    m->held[0] = m->held[1] = -1;
    rlhf_status st = open_into(m, err);
    if (st != RLHF_OK) {
        rlhf__model_close(m);
        return st;
    }
    *out = m;
    return RLHF_OK;
}
