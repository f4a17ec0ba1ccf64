// room.c: see room.h.
#include "model/room.h"

// The first of two names that the config has as a number; 0 = neither.
static uint64_t number(const json_t *config, const char *a, const char *b) {
    const json_t *v = json_object_get(config, a);
    if (!json_is_integer(v)) v = json_object_get(config, b);
    const json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;
    return n > 0 && n < 1 << 24 ? (uint64_t)n : 0;
}

uint64_t rlhf__room_parameters(const json_t *config) {
    const uint64_t d = number(config, "n_embd", "dim"),
                   blocks = number(config, "n_layer", "n_layers");
    const uint64_t vocab = number(config, "vocab_size", "");
    const uint64_t positions = number(config, "n_positions", "max_position_embeddings");
    uint64_t inner = number(config, "n_inner", "hidden_dim");
    if (!d || !blocks || !vocab || !positions) return 0;
    if (!inner) inner = 4 * d;
    // Two norms, four products of the attention and two of the feed-forward part, with biases.
    const uint64_t block = 2 * 2 * d + 4 * (d * d + d) + 2 * d * inner + inner + d;
    return (vocab + positions) * d + blocks * block + 2 * d;
}

rlhf_status rlhf__room_check(const struct rlhf__model_env *env, const struct rlhf__model_spec *spec,
                             const json_t *config, struct rlhf__error *err) {
    if (!env->room.total) return RLHF_OK;
    const uint64_t n = rlhf__room_parameters(config);
    const uint64_t used = env->compute->bytes_in_use(env->compute->ctx);
    const uint64_t left = env->room.left > used ? env->room.left - used : 0;
    uint64_t each = sizeof(float); // values
    if (spec->trainable) each += sizeof(float) + (uint64_t)spec->moments * sizeof(float);
    if (!spec->frozen) each += rlhf_dtype_size(env->dtype); // the products' own copy
    if (n * each <= left) return RLHF_OK;
    const double gib = 1 << 30;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the %s '%s' has about %.1f million parameters and needs at least %.2f GiB "
                      "on the GPU, %llu bytes each%s, but %.2f GiB of %.2f are free; take a "
                      "smaller model, another card (compute.gpu) or compute.backend=cpu",
                      spec->role, spec->dir, (double)n / 1e6, (double)(n * each) / gib,
                      (unsigned long long)each,
                      spec->trainable ? " for value, gradient, optimiser and products" : "",
                      (double)left / gib, (double)env->room.total / gib);
}

rlhf_status rlhf__room_check_dir(const struct rlhf__model_env *env, const char *dir,
                                 int32_t moments, struct rlhf__error *err) {
    const struct rlhf__model_spec spec = {
        .dir = dir, .role = "policy", .trainable = 1, .moments = moments};
    struct rlhf__error unread;
    json_t *config = NULL;
    if (!env->room.total || rlhf__hf_config_read(dir, &config, &unread) != RLHF_OK) return RLHF_OK;
    const rlhf_status st = rlhf__room_check(env, &spec, config, err);
    json_decref(config);
    return st;
}
