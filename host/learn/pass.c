// pass.c: see pass.h.
#include "learn/pass.h"

#include "batch/shared_batch.h"

#include <stdlib.h>
#include <string.h>

// Returns the LM head's floating-point operations per token.
static double lm_head(const struct rlhf__model *m) {
    return m->info.causal ? 2 * (double)m->info.d_model * (double)m->info.n_vocab : 0;
}

double rlhf__lm_head_flops(const struct rlhf__model *model, const rlhf_batch *full) {
    int64_t responses = 0;
    for (uint32_t i = 0; i < full->n; i++) {
        const int32_t first = full->offset[i] + full->prompt_len[i], end = full->offset[i + 1];
        responses += end - first;
        for (int32_t t = first; full->turn && t < end; t++)
            responses -= full->turn[t] < 0;
    }
    return lm_head(model) * (double)responses;
}

double rlhf__train_ways(const struct rlhf__model *model, int32_t train) {
    if (!train) return 1;
    for (uint32_t i = 0; i < model->n_tensors; i++)
        if (model->params[i].group == RLHF_PARAM_ADAPTER) return 2;
    return 3;
}

double rlhf__forward_flops(const struct rlhf__model *model, uint32_t heads, int64_t tokens,
                           const rlhf_batch *full) {
    double layers = ((double)model->info.flops_per_token - lm_head(model)) * (double)tokens;
    uint32_t logits = RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_KL;
    return heads & logits ? layers + rlhf__lm_head_flops(model, full) : layers;
}

int rlhf__can_share_prompts(const struct rlhf__model *m, const struct rlhf__rows *e) {
    return (e->flags & RLHF__SHARE_PROMPTS) && (m->info.caps & RLHF_CAP_PREFIX);
}

uint64_t rlhf__state_bytes(const struct rlhf__model *m) {
    return (uint64_t)m->info.d_model * rlhf_dtype_size(m->env->dtype);
}

// The state of a pass between two microbatches.
struct pass {
    const struct rlhf__model *model;
    const struct rlhf__rows *e;
    rlhf_forward forward;
    struct rlhf__shared_batch batch;
    float *work; // [work_cap] the model's outputs if prompts are shared
    size_t work_cap;
};

static rlhf_status pass_work(struct pass *p, size_t cells, struct rlhf__error *err) {
    if (cells > p->work_cap) {
        free(p->work);
        p->work = malloc(cells * sizeof *p->work);
        p->work_cap = p->work ? cells : 0;
        if (!p->work) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu numbers", cells);
    }
    memset(p->work, 0, cells * sizeof *p->work);
    return RLHF_OK;
}

// Forward a slice with shared prompts. Sets full's logp, value and hidden.
static rlhf_status pass_shared(struct pass *p, const rlhf_heads *full, struct rlhf__error *err) {
    size_t total = p->batch.compact.total, d = (size_t)p->model->info.d_model;
    rlhf_status st = pass_work(p, total * (2 + (full->hidden ? d : 0)), err);
    if (st != RLHF_OK) return st;
    // dev_hidden is the same in both layouts
    rlhf_heads h = {.size = sizeof h, .dev_hidden = full->dev_hidden};
    if (full->logp) h.logp = p->work;
    if (full->value) h.value = p->work + total;
    if (full->hidden) h.hidden = p->work + 2 * total;
    st = rlhf__model_forward(p->model, &p->batch.compact, &p->forward, &h, err);
    if (st != RLHF_OK) return st;
    rlhf__shared_heads_expand(&p->batch, full, &h);
    if (h.hidden)
        rlhf__shared_batch_expand(&p->batch, full->hidden, h.hidden, p->model->info.d_model);
    return RLHF_OK;
}

static rlhf_status pass_slice(struct pass *p, uint32_t from, uint32_t to, int share,
                              const struct rlhf__pass_out *out, struct rlhf__error *err) {
    RLHF_TRY(rlhf__shared_batch_fill(&p->batch, p->e, from, to, share, err));
    size_t base = (size_t)p->e->offset[from];
    rlhf_heads h = {.size = sizeof h};
    p->forward.support = rlhf__rows_support(p->e, from);
    if (out->logp) h.logp = out->logp + base;
    if (out->value) h.value = out->value + base;
    if (out->hidden) h.hidden = out->hidden + base * (size_t)p->model->info.d_model;
    if (out->dev_hidden)
        h.dev_hidden =
            rlhf_dev_at(out->dev_hidden, (uint64_t)rlhf__rows_response_tokens(p->e, 0, from) *
                                             rlhf__state_bytes(p->model));
    if (out->score) h.score = out->score + (size_t)from * (size_t)p->model->n_labels;
    if (out->flops)
        *out->flops +=
            rlhf__forward_flops(p->model, p->forward.heads, p->batch.compact.total, &p->batch.full);
    if (p->batch.is_shared) return pass_shared(p, &h, err);
    return rlhf__model_forward(p->model, &p->batch.full, &p->forward, &h, err);
}

rlhf_status rlhf__pass(const struct rlhf__model *m, const struct rlhf__rows *e,
                       const rlhf_dist *dist, int64_t microbatch_tokens,
                       const struct rlhf__pass_out *out, struct rlhf__error *err) {
    return rlhf__pass_range(m, e, 0, e->n, dist, microbatch_tokens, out, err);
}

rlhf_status rlhf__pass_range(const struct rlhf__model *m, const struct rlhf__rows *e,
                             uint32_t first, uint32_t end, const rlhf_dist *dist,
                             int64_t microbatch_tokens, const struct rlhf__pass_out *out,
                             struct rlhf__error *err) {
    struct pass p = {.model = m, .e = e, .forward = {.size = sizeof p.forward, .dist = dist}};
    p.forward.heads = (out->logp ? (uint32_t)RLHF_HEAD_LOGP : 0) |
                      (out->value ? (uint32_t)RLHF_HEAD_VALUE : 0) |
                      (out->hidden || out->dev_hidden ? (uint32_t)RLHF_HEAD_HIDDEN : 0) |
                      (out->score ? (uint32_t)RLHF_HEAD_SCORE : 0);
    int share = rlhf__can_share_prompts(m, e) && !out->score;
    rlhf_status st = RLHF_OK;
    for (uint32_t from = first, to; st == RLHF_OK && from < end; from = to) {
        to = rlhf__rows_slice_end(e, from, microbatch_tokens, share);
        if (to > end) to = end;
        if (out->cancelled && *out->cancelled) {
            st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped while the rows were measured");
            break;
        }
        st = pass_slice(&p, from, to, share, out, err);
        if (out->watch) rlhf__watch_seen(out->watch, out->doing, to, e->n);
    }
    rlhf__shared_batch_finish(&p.batch);
    free(p.work);
    return st;
}
