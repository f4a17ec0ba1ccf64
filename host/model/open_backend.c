// open_backend.c: an instance opened on a compute backend, and its answers checked (open_inner.h).
#include "model/open_inner.h"

#include "base/bits.h"
#include "model/adapter.h"
#include "model/parameters.h"

#include <stdlib.h>

// What the plugin must have for this use of it.
static rlhf_status check_functions(const struct rlhf__model *m, struct rlhf__error *err) {
    const char *id = m->instance->plugin->desc.id;
    if (m->trainable && !m->ops->backward)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s lacks the function backward(), which a model that is trained needs",
                          id);
    return RLHF_OK;
}

static rlhf_status check_info(const struct rlhf__model *m, struct rlhf__error *err) {
    const char *id = m->instance->plugin->desc.id;
    const rlhf_model_info *i = &m->info;
    if (i->heads & ~(uint32_t)RLHF_HEAD_KNOWN)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s, info(), sets bit %d of the heads, which this host does not know", id,
                          rlhf__lowest_bit(i->heads & ~(uint32_t)RLHF_HEAD_KNOWN));
    if ((i->heads & RLHF_HEAD_GENERATE) && !m->ops->gen_open)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s offers to generate text, but lacks the function gen_open()", id);
    if (i->n_vocab < 1 || i->n_ctx < 1 || i->d_model < 1 || i->n_tensors < 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s, info(): %d tokens in the vocabulary, a context of %d, a width of %d "
                          "and %d parameters are no model",
                          id, i->n_vocab, i->n_ctx, i->d_model, i->n_tensors);
    return RLHF_OK;
}

// Until the first refresh() every value has a place.
static rlhf_status check_values(const struct rlhf__model *m, struct rlhf__error *err) {
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (!m->params[i].value)
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "%s, param(): its parameter '%s' has no value (NULL) before the first "
                "refresh()",
                m->instance->plugin->desc.id, m->params[i].name);
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
                              m->instance->plugin->desc.id, m->params[i].name);
    }
    return RLHF_OK;
}

rlhf_status rlhf__model_open_backend(struct rlhf__model *m, const struct rlhf__model_spec *spec,
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
    // The LM head is the base's, if there is one.
    const struct rlhf__model_spec *whole = m->base ? &m->base->spec : spec;
    if (whole->tokens_only && m->tok) o.n_tokens = rlhf__tokenizer_info(m->tok)->n_vocab;
    rlhf_status st = check_functions(m, err);
    if (st != RLHF_OK) return st;
    struct rlhf__call call = rlhf__call_begin(m->instance, "open()");
    st = rlhf__call_end(&call, m->ops->open(m->self, &o), err);
    if (st != RLHF_OK) return rlhf__adapter_context(m, err);
    m->info.size = sizeof m->info;
    call = rlhf__call_begin(m->instance, "info()");
    st = rlhf__call_end(&call, m->ops->info(m->self, &m->info), err);
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
