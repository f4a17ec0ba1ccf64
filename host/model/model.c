// model.c: see model.h.
#include "model/model.h"

#include "base/file.h"
#include "base/json.h"
#include "gguf/model_text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rlhf__model_is_classifier(const json_t *config) {
    const char *suffix = "ForSequenceClassification";
    const char *name =
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
    size_t n = name ? strlen(name) : 0, m = strlen(suffix);
    return n >= m && strcmp(name + n - m, suffix) == 0;
}

rlhf_status rlhf__model_has_language(const struct rlhf__model *m, struct rlhf__error *err) {
    if (!rlhf__model_is_classifier(m->config)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the %s '%s' is a classifier or a reward model: it scores texts and cannot "
                      "write them",
                      m->role, m->dir);
}

rlhf_status rlhf__model_writes(const struct rlhf__model *m, struct rlhf__error *err) {
    RLHF_TRY(rlhf__model_has_language(m, err));
    if (m->info.caps & RLHF_CAP_GENERATE) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the %s '%s' is an encoder (model_type %s): it reads whole texts and cannot "
                      "write them; give a language model that writes from left to right, such as "
                      "GPT-2",
                      m->role, m->dir, json_string_value(json_object_get(m->config, "model_type")));
}

rlhf_status rlhf__model_knows_turns(const struct rlhf__model *m, struct rlhf__error *err) {
    if (m->info.caps & RLHF_CAP_TURNS) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_UNSUPPORTED,
        "the %s '%s' cannot learn from rows of several turns: %s lacks RLHF_CAP_TURNS", m->role,
        m->dir, rlhf__plugin_name(m->instance->plugin));
}

// On a memory plan, attribute later allocations to this model. Weights of a shared base that are
// packed on first use, such as its LM head, are attributed to the base instead.
static void account(const struct rlhf__model *m, int32_t use) {
    if (!m->planned) return;
    rlhf__memory_plan_account(m->env->memory_plan, m->role, use);
    if (m->base) rlhf__memory_plan_packs(m->env->memory_plan, m->base->role);
}

const struct rlhf__instance *rlhf__model_kernels(const struct rlhf__model *m) {
    return m->planned || !m->env->services ? NULL : m->env->services->kernels;
}

// Call forward(). `tails` are the marked ends of the arrays in `out`, if they have room for marks.
static rlhf_status forward(const struct rlhf__model *m, const rlhf_batch *b, const rlhf_forward *f,
                           const rlhf_heads *out, struct rlhf__tails *tails,
                           struct rlhf__error *err) {
    account(m, RLHF__USE_ACTIVATIONS);
    struct rlhf__call call = rlhf__call_begin(m->instance, "forward()");
    return rlhf__call_wrote(&call, tails, m->ops->forward(m->self, b, f, out), err);
}

rlhf_status rlhf__model_forward(const struct rlhf__model *m, const rlhf_batch *b,
                                const rlhf_forward *f, const rlhf_heads *out,
                                struct rlhf__error *err) {
    struct rlhf__tails none = {.n = 0};
    if (b->turn) RLHF_TRY(rlhf__model_knows_turns(m, err));
    return forward(m, b, f, out, &none, err);
}

rlhf_status rlhf__model_forward_kept(const struct rlhf__model *m, const rlhf_batch *b,
                                     const rlhf_forward *f, const rlhf_heads *out,
                                     struct rlhf__error *err) {
    const size_t tokens = b->total * sizeof(float);
    struct rlhf__tails tails = {.n = 0};
    if (b->turn) RLHF_TRY(rlhf__model_knows_turns(m, err));
    rlhf__tails_mark(&tails, "out->logp", out->logp, tokens);
    rlhf__tails_mark(&tails, "out->entropy", out->entropy, tokens);
    rlhf__tails_mark(&tails, "out->kl", out->kl, tokens);
    rlhf__tails_mark(&tails, "out->value", out->value, tokens);
    rlhf__tails_mark(&tails, "out->token_score", out->token_score, tokens);
    rlhf__tails_mark(&tails, "out->score", out->score,
                     (size_t)b->n * (size_t)m->n_labels * sizeof(float));
    return forward(m, b, f, out, &tails, err);
}

rlhf_status rlhf__model_backward(const struct rlhf__model *m, const rlhf_batch *b,
                                 const rlhf_forward *f, const rlhf_heads *grad,
                                 struct rlhf__error *err) {
    account(m, RLHF__USE_ACTIVATIONS);
    struct rlhf__call call = rlhf__call_begin(m->instance, "backward()");
    return rlhf__call_end(&call, m->ops->backward(m->self, b, f, grad), err);
}

// Parameter names are keys in weight files. In the optimizer's files the keys have a prefix, so a
// name must be shorter than the longest possible key.
static rlhf_status check_name(const char *plugin, uint32_t i, const rlhf_param *p,
                              struct rlhf__error *err) {
    if (!p->name || !*p->name)
        return rlhf__fail(err, RLHF_E_INVALID, "%s, param(): its parameter %u has no name", plugin,
                          i);
    size_t n = strlen(p->name);
    if (n <= RLHF_PARAM_NAME_MAX) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s, param(): the name of its parameter %u, '%.40s...', has %zu bytes; at "
                      "most %d",
                      plugin, i, p->name, n, RLHF_PARAM_NAME_MAX);
}

static rlhf_status check_shape(const char *plugin, const rlhf_param *p, struct rlhf__error *err) {
    int64_t most = INT64_MAX / (int64_t)sizeof(float); // maximum whose bytes int64_t can count
    if (p->ndim < 1 || p->ndim > 4)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s, param(): its parameter '%s' has %d dimensions; 1 to 4", plugin,
                          p->name, p->ndim);
    for (int32_t d = 0; d < p->ndim; d++) {
        if (p->shape[d] < 1)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s, param(): dimension %d of its parameter '%s' is %lld; at least 1",
                              plugin, d, p->name, (long long)p->shape[d]);
        most /= p->shape[d];
    }
    if (most > 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s, param(): the shape of its parameter '%s' has more elements than memory "
                      "can hold",
                      plugin, p->name);
}

// The host must know every flag, group and init to handle a parameter correctly.
static rlhf_status check_param(const struct rlhf__model *m, uint32_t i, const rlhf_param *p,
                               struct rlhf__error *err) {
    const char *plugin = rlhf__plugin_name(m->instance->plugin), *name = p->name;
    RLHF_TRY(check_name(plugin, i, p, err));
    RLHF_TRY(check_shape(plugin, p, err));
    if (p->flags & ~(uint32_t)RLHF_PARAM_KNOWN)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s sets bit %d of the flags of its parameter '%s', which this host does "
                          "not know",
                          plugin, __builtin_ctz(p->flags & ~(uint32_t)RLHF_PARAM_KNOWN), name);
    if (p->group < RLHF_PARAM_TRUNK || p->group > RLHF_PARAM_ADAPTER ||
        p->init > RLHF_INIT_LOG_UNIFORM)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: its parameter '%s' is of group %d and init %u; 0 to %d and 0 to %d "
                          "are known to this host",
                          plugin, name, p->group, p->init, RLHF_PARAM_ADAPTER,
                          RLHF_INIT_LOG_UNIFORM);
    const int32_t elements = rlhf_format_elements(p->format);
    const int kept = p->format != RLHF_FORMAT_F32;
    if (elements < 1 ||
        (kept && (p->ndim != 2 || p->value || !m->ops->fill_blocks || p->shape[1] % elements)))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s, param(): its parameter '%s' cannot have format %d", plugin, name,
                          p->format);
    return RLHF_OK;
}

rlhf_status rlhf__model_list_params(const struct rlhf__model *m, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && i < m->n_tensors; i++) {
        struct rlhf__call call = rlhf__call_begin(m->instance, "param()");
        struct rlhf__filled filled;
        rlhf_param *param = RLHF__FILLED(rlhf_param, &filled, m->instance->plugin->abi_minor);
        st = m->ops->param(m->self, i, param);
        st = rlhf__call_end_filled(&call, st, &filled, &m->params[i], err);
        if (st == RLHF_OK) st = check_param(m, i, &m->params[i], err);
    }
    return st;
}

rlhf_status rlhf__model_refresh(const struct rlhf__model *m, struct rlhf__error *err) {
    struct rlhf__call call = rlhf__call_begin(m->instance, "refresh()");
    return rlhf__call_end(&call, m->ops->refresh(m->self), err);
}

rlhf_status rlhf__model_gen_open(const struct rlhf__model *m, uint32_t n_slots, uint32_t max_len,
                                 rlhf_gen **out, struct rlhf__error *err) {
    if (!m->ops->gen_open || !(m->info.caps & RLHF_CAP_GENERATE))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "the %s '%s' cannot generate text", m->role,
                          m->dir);
    account(m, RLHF__USE_CACHE);
    struct rlhf__call call = rlhf__call_begin(m->instance, "gen_open()");
    return rlhf__call_end(&call, m->ops->gen_open(m->self, n_slots, max_len, out), err);
}

rlhf_status rlhf__model_gen_step(const struct rlhf__model *m, rlhf_gen *g, const rlhf_gen_step *s,
                                 struct rlhf__error *err) {
    account(m, RLHF__USE_ACTIVATIONS);
    struct rlhf__call call = rlhf__call_begin(m->instance, "gen_step()");
    struct rlhf__tails tails = {.n = 0};
    rlhf__tails_mark(&tails, "step->next", s->next, s->n * sizeof *s->next);
    rlhf__tails_mark(&tails, "step->logp", s->logp, s->n * sizeof *s->logp);
    rlhf__tails_mark(&tails, "step->support", s->support,
                     s->n * rlhf_support_words(m->info.n_vocab) * sizeof *s->support);
    rlhf_status st = rlhf__call_wrote(&call, &tails, m->ops->gen_step(m->self, g, s), err);
    // Weights that are not finite cause their first error here, so the error names the model.
    return st == RLHF_OK ? st : rlhf__error_context(err, "the %s '%s'", m->role, m->dir);
}

void rlhf__model_gen_close(const struct rlhf__model *m, rlhf_gen *g) {
    if (!g) return;
    struct rlhf__call call = rlhf__call_begin(m->instance, "gen_close()");
    m->ops->gen_close(m->self, g);
    rlhf__call_end(&call, RLHF_OK, NULL);
}

void rlhf__model_trim(const struct rlhf__model *m) {
    if (!m || !m->ops->trim || RLHF_COMPUTE_HAS(m->compute, record)) return;
    struct rlhf__call call = rlhf__call_begin(m->instance, "trim()");
    m->ops->trim(m->self);
    rlhf__call_end(&call, RLHF_OK, NULL);
}

int64_t rlhf__model_microbatch(const struct rlhf__model *m, int64_t configured) {
    const int has_logits = (m->info.heads & RLHF_HEAD_LOGP) != 0;
    return rlhf__compute_microbatch(m->compute, configured, has_logits ? m->info.n_vocab : 0);
}

void rlhf__model_let_go(struct rlhf__model *m) {
    for (int i = 0; i < 2; i++) {
        if (m->held[i] >= 0) close(m->held[i]);
        m->held[i] = -1;
    }
}

void rlhf__model_close(struct rlhf__model *m) {
    if (!m || --m->users > 0) return;
    struct rlhf__model *base = m->base;
    rlhf__instance_close(m->instance);
    rlhf__instance_close(m->was);
    rlhf__tokenizer_close(m->tok);
    rlhf__labels_finish(&m->labels);
    json_decref(m->config);
    free(m->params);
    rlhf__peft_finish(&m->peft);
    free(m->text_dir);
    free(m->dir);
    rlhf__model_let_go(m);
    free(m);
    rlhf__model_close(base);
}

// ---- end tokens ----

int rlhf__ends_has(const struct rlhf__ends *ends, int32_t id) {
    for (int32_t i = 0; ends && i < ends->n; i++)
        if (ends->id[i] == id) return 1;
    return 0;
}

static rlhf_status add(struct rlhf__ends *out, json_int_t id, int32_t n_vocab, const char *dir,
                       struct rlhf__error *err) {
    if (id < 0 || id >= n_vocab || rlhf__ends_has(out, (int32_t)id)) return RLHF_OK;
    if (out->n == RLHF__ENDS_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: more than %d tokens in eos_token_id", dir,
                          RLHF__ENDS_MAX);
    out->id[out->n++] = (int32_t)id;
    return RLHF_OK;
}

static rlhf_status read_ids(const json_t *config, const char *dir, const char *file,
                            int32_t n_vocab, struct rlhf__ends *out, struct rlhf__error *err) {
    const json_t *v = json_object_get(config, "eos_token_id");
    const int list = json_is_array(v);
    if (!v || json_is_null(v)) return RLHF_OK;
    for (size_t i = 0; i < (list ? json_array_size(v) : 1); i++) {
        const json_t *id = list ? json_array_get(v, i) : v;
        if (!json_is_integer(id))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s/%s: eos_token_id %s %s, expected an integer or a list of them",
                              dir, file, list ? "holds" : "is", rlhf__json_kind(id));
        RLHF_TRY(add(out, json_integer_value(id), n_vocab, dir, err));
    }
    return RLHF_OK;
}

static rlhf_status read_goes_on(const json_t *config, const char *dir, struct rlhf__ends *out,
                                struct rlhf__error *err) {
    const json_t *v = json_object_get(config, RLHF__STOP_AT_EOS_KEY);
    if (v && !json_is_boolean(v))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: " RLHF__STOP_AT_EOS_KEY " is %s; true or false is "
                          "allowed",
                          dir, rlhf__json_kind(v));
    out->goes_on = json_is_false(v);
    return RLHF_OK;
}

rlhf_status rlhf__ends_read(const char *dir, const json_t *config,
                            const struct rlhf__tokenizer *tok, struct rlhf__ends *out,
                            struct rlhf__error *err) {
    static const char generation[] = "generation_config.json";
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    *out = (struct rlhf__ends){0};
    RLHF_TRY(add(out, info->eos, info->n_vocab, dir, err));
    RLHF_TRY(read_ids(config, dir, "config.json", info->n_vocab, out, err));
    RLHF_TRY(read_goes_on(config, dir, out, err));
    json_t *own = NULL;
    RLHF_TRY(rlhf__model_json(dir, generation, &own, err));
    const rlhf_status st = read_ids(own, dir, generation, info->n_vocab, out, err);
    json_decref(own);
    return st;
}
