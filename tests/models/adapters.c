// adapters.c: see adapters.h.
#include "adapters.h"

#include "decoders.h"

#include <string.h>

static const struct setting post_norm[] = {{"vocab_size", "61"}, {"max_position_embeddings", "24"},
                                           {"dim", "32"},        {"n_layers", "2"},
                                           {"n_heads", "2"},     {"hidden_dim", "64"},
                                           {NULL, NULL}};
const struct setting adapted_untied_qwen2[] = {{"vocab_size", "61"},
                                               {"hidden_size", "16"},
                                               {"intermediate_size", "20"},
                                               {"num_hidden_layers", "2"},
                                               {"num_attention_heads", "2"},
                                               {"num_key_value_heads", "1"},
                                               {"max_position_embeddings", "24"},
                                               {NULL, NULL}};

const struct adapted adapted_kinds[N_ADAPTED] = {
    {"gpt2",
     tiny_gpt2,
     {"all-linear"},
     3,
     0,
     RLHF_VALUE_MLP,
     1,
     RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY | RLHF_HEAD_VALUE},
    {"gpt2", tiny_gpt2, {"c_attn"}, 4, 0, RLHF_VALUE_NONE, 1, RLHF_HEAD_LOGP},
    {"gpt2", tiny_gpt2, {"mlp.c_proj"}, 2, 0, RLHF_VALUE_NONE, 1, RLHF_HEAD_LOGP},
    {"qwen2",
     tiny_qwen2,
     {"q_proj", "v_proj"},
     4,
     1,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_TOKEN_SCORE},
    {"qwen2",
     tiny_qwen2,
     {"self_attn.k_proj", "up_proj", "1.mlp.down_proj"},
     5,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP},
    {"qwen3",
     tiny_qwen3,
     {"all-linear"},
     2,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY},
    {"qwen2",
     adapted_untied_qwen2,
     {"all-linear"},
     1,
     0,
     RLHF_VALUE_LINEAR,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_VALUE},
    {"olmo2",
     tiny_olmo2,
     {"k_proj", "o_proj", "gate_proj"},
     2,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY},
    {"lfm2",
     biased_lfm2,
     {"all-linear"},
     2,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY},
    {"lfm2",
     tiny_lfm2,
     {"in_proj", "q_proj", "w2"},
     2,
     1,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_TOKEN_SCORE},
    {"qwen3_5_text",
     tiny_qwen3_5,
     {"all-linear"},
     2,
     0,
     RLHF_VALUE_LINEAR,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_VALUE},
    {"qwen3_5_text",
     biased_qwen3_5,
     {"in_proj_z", "in_proj_a", "q_proj"},
     3,
     0,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_LOGP | RLHF_HEAD_ENTROPY},
    {"distilbert", post_norm, {"all-linear"}, 3, VEC_LABELS, RLHF_VALUE_NONE, 0, RLHF_HEAD_SCORE},
    {"distilbert",
     post_norm,
     {"q_lin", "lin2"},
     3,
     VEC_LABELS,
     RLHF_VALUE_NONE,
     0,
     RLHF_HEAD_SCORE},
};

rlhf_adapter adapter_of(const struct adapted *k) {
    rlhf_adapter a = {.size = sizeof a,
                      .rank = k->rank,
                      .scale = ADAPTED_SCALE,
                      .target = k->target,
                      .n_targets = 0};
    while (a.n_targets < 3 && k->target[a.n_targets])
        a.n_targets++;
    return a;
}

void adapted_zero_ups(struct model *m) {
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++)
        if (p.group == RLHF_PARAM_ADAPTER && strstr(p.name, "lora_B"))
            must(m, m->c->zero(m->c->ctx, p.value, param_count(&p) * sizeof(float)));
    must(m, m->ops->refresh(m->self));
}

// If h.plain is set, the model is opened without an adapter.
struct model adapted_open_on(const struct backend *b, const struct adapted *k,
                             struct adapted_how h) {
    const rlhf_adapter a = adapter_of(k);
    rlhf_model_open o = open_args(b, h.dtype, h.trainable);
    o.n_labels = k->n_labels;
    o.value_kind = k->value_kind;
    o.recompute = h.recompute;
    o.adapter = h.plain ? NULL : &a;
    o.base = h.base;
    struct model m = model_open(k->plugin, k->settings, &o);
    model_fill(&m, 0.3);
    if (h.zero) adapted_zero_ups(&m);
    return m;
}

struct model adapted_open(const struct adapted *k, struct adapted_how h) {
    return adapted_open_on(&backend, k, h);
}

uint64_t adapted_per_head(const rlhf_batch *b) { return b->total + VEC_ROWS * VEC_LABELS; }
float *adapted_heads(struct model *m, const struct adapted *k, const rlhf_batch *b, int32_t train,
                     uint32_t flags) {
    const uint64_t n = adapted_per_head(b);
    float *all = test_calloc(ADAPTED_HEADS * n, sizeof *all);
    const rlhf_forward f = {.size = sizeof f, .heads = k->heads, .train = train, .flags = flags};
    const rlhf_heads h = {.size = sizeof h,
                          .logp = all,
                          .entropy = all + n,
                          .value = all + 2 * n,
                          .token_score = all + 3 * n,
                          .score = all + 4 * n};
    must(m, m->ops->forward(m->self, b, &f, &h));
    return all;
}

void adapted_backward(struct model *m, const struct adapted *k, const rlhf_batch *b) {
    const uint64_t n = adapted_per_head(b);
    float *d = test_calloc(n, sizeof *d);
    const rlhf_forward f = {.size = sizeof f, .heads = k->heads, .train = 1};
    const rlhf_heads g = {
        .size = sizeof g, .logp = d, .entropy = d, .value = d, .token_score = d, .score = d};
    for (uint64_t i = 0; i < n; i++)
        d[i] = vec_weight(i);
    must(m, m->ops->backward(m->self, b, &f, &g));
    test_free(d);
}

// Does one step. Returns the heads, then the gradients of all trained parameters: *n numbers in
// all, to be released with test_free.
static float *step(struct model *m, const struct adapted *k, const rlhf_batch *b, uint64_t *n) {
    const uint64_t heads = ADAPTED_HEADS * adapted_per_head(b);
    float *all = test_calloc(heads + (uint64_t)m->info.n_params, sizeof *all);
    float *h = adapted_heads(m, k, b, 1, 0);
    memcpy(all, h, heads * sizeof *h);
    test_free(h);
    adapted_backward(m, k, b);
    *n = heads;
    rlhf_param p = {.size = sizeof p};
    for (uint32_t i = 0; m->ops->param(m->self, i, &p) == RLHF_OK; i++) {
        if (!p.grad) continue;
        float *x = device_read(m->c, p.grad, param_count(&p));
        memcpy(all + *n, x, param_count(&p) * sizeof *x);
        *n += param_count(&p);
        test_free(x);
    }
    return all;
}

rlhf_param adapted_param(struct model *m, const char *name) {
    rlhf_param p = {.size = sizeof p};
    must(m, m->ops->param(m->self, model_find(m, name), &p));
    return p;
}

void adapted_same(const float *a, const float *b, uint64_t n, const char *what) {
    for (uint64_t i = 0; i < n; i++)
        if (a[i] != b[i])
            fail_msg("%s: number %u is %.9g, not %.9g", what, (unsigned)i, (double)a[i],
                     (double)b[i]);
}

void adapted_same_step(const struct adapted *k, struct model *x, struct model *y,
                       const rlhf_batch *b) {
    uint64_t n = 0, other = 0;
    float *p = step(x, k, b, &n), *q = step(y, k, b, &other);
    assert_int_equal(n, other);
    adapted_same(p, q, n, k->plugin);
    test_free(p);
    test_free(q);
}
