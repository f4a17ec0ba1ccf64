// transformer/arch.c: what architecture plugins need to read a config.json.
#include "core.h"

#include <math.h>
#include <string.h>

int32_t rlhf__tf_activation(const char *name) {
    static const struct {
        const char *name;
        int32_t act, reserved;
    } known[] = {{"gelu_new", RLHF_ACT_GELU_TANH, 0},
                 {"gelu_pytorch_tanh", RLHF_ACT_GELU_TANH, 0},
                 {"gelu", RLHF_ACT_GELU_ERF, 0},
                 {"relu", RLHF_ACT_RELU, 0}};
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name)) return known[i].act;
    return 0;
}

double rlhf__tf_attn_scale(const struct rlhf__tf_arch *a) {
    const int32_t head_dim = a->d / a->n_head;
    return 1.0 / sqrt((double)head_dim);
}

rlhf_status rlhf__tf_check(const rlhf_host *host, const struct rlhf__tf_arch *a, const char *d_key,
                           const char *head_key) {
    if (a->d % a->n_head)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: %s (%d) must be a multiple of %s (%d)", d_key, a->d,
                          head_key, a->n_head);
    return RLHF_OK;
}
