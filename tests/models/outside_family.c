// outside_family.c: a family as a plugin from outside implements it, on the installed headers of
// the transformer core: a Llama with Granite's four factors, of which every second layer rotates
// nothing, or with OLMo 2's norms. test_decoders.c compares it with transformers.
#include <transformer/decoder.h>

struct config {
    struct rlhf_tf_decoder common;
    double token_factor, block_factor, score_factor, logit_divisor;
    int32_t skips; // 1: every second layer does not rotate
    int32_t after; // 1: norms after the blocks, and of all queries and all keys of a token
};

static const rlhf_opt options[] = {
    RLHF_OPT_TABLE(struct config, common, rlhf_tf_decoder_opts, RLHF_TF_N_DECODER_OPTS),
    RLHF_OPT_F64_ABOVE(struct config, token_factor, 1, 0, 1e9, "factor of the embeddings"),
    RLHF_OPT_F64_ABOVE(struct config, block_factor, 1, 0, 1e9, "factor of a block's result"),
    RLHF_OPT_F64_ABOVE(struct config, score_factor, 1, 0, 1e9, "factor of attention scores"),
    RLHF_OPT_F64_ABOVE(struct config, logit_divisor, 1, 0, 1e9, "divisor of the logits"),
    RLHF_OPT_BOOL(struct config, skips, 0, "every second layer does not rotate"),
    RLHF_OPT_BOOL(struct config, after, 0, "OLMo 2's norms"),
};

static rlhf_status skip(const rlhf_host *host, struct rlhf_tf_arch *a) {
    a->rotary.layers = host->alloc(host, (uint64_t)a->n_layer);
    if (!a->rotary.layers) {
        host->free(host, a->rotary.frequency);
        return host->fail(host, RLHF_E_NOMEM, "out of memory for a list of layers");
    }
    for (int32_t i = 0; i < a->n_layer; i++)
        a->rotary.layers[i] = i % 2 == 0;
    return RLHF_OK;
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    static const struct rlhf_tf_family families[] = {{.reads = RLHF_TF_READS_ATTENTION_BIAS},
                                                     {.reads = RLHF_TF_READS_ATTENTION_BIAS,
                                                      .norm_at = RLHF_TF_NORM_AFTER,
                                                      .qk_norm = RLHF_TF_QK_NORM_WIDTH}};
    const struct config *c = config;
    struct rlhf_tf_arch a;
    RLHF_TRY(rlhf_tf_decoder_arch(host, &c->common, &families[c->after], &a));
    if (c->skips) RLHF_TRY(skip(host, &a));
    a.embed_scale = c->token_factor;
    a.residual_scale = c->block_factor;
    a.attn_scale *= c->score_factor;
    a.logit_scale = 1 / c->logit_divisor;
    return rlhf_tf_create(host, &a, self);
}

static const rlhf_plugin descriptor = {
    .id = "org.example.model.outside",
    .version = "1.0.0",
    .summary = "a Llama with four factors and layers that do not rotate",
    RLHF_TF_PLUGIN(struct config, options, create),
};

RLHF_DEFINE_PLUGIN(descriptor)
