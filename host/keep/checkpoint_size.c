// checkpoint_size.c: see checkpoint_size.h.
#include "keep/checkpoint_size.h"

#include "base/disk_space.h"
#include "base/size_text.h"
#include "learn/optim.h"
#include "model/parameters.h"

static uint64_t model_bytes(const struct rlhf__config *c, const struct rlhf__model *m,
                            uint64_t each) {
    return each * (uint64_t)rlhf__params_elements(m, RLHF__PART_MODEL) +
           sizeof(float) * (uint64_t)rlhf__params_elements(m, RLHF__PART_VALUE) +
           rlhf__optim_state_bytes(&c->optim, m->params, m->n_tensors);
}

uint64_t rlhf__checkpoint_bytes(const struct rlhf__config *c, const struct rlhf__cast *cast) {
    // in bf16, the checkpoint has the exact weights, too
    const uint64_t each =
        c->checkpoint.dtype == RLHF__CHECKPOINT_BF16 ? 2 + sizeof(float) : sizeof(float);
    return model_bytes(c, cast->policy, each) +
           (cast->critic ? model_bytes(c, cast->critic, sizeof(float)) : 0);
}

int64_t rlhf__checkpoints_at_once(const struct rlhf__checkpoint_config *c, int64_t phases) {
    const int64_t best = c->best[0] != '\0';
    int64_t planned = c->every > 0 ? (phases + c->every - 1) / c->every : 1;
    if (c->keep == 0) return planned > 1 ? planned : 1;
    if (c->every_s > 0 || planned > c->keep + 1 + best) planned = c->keep + 1 + best;
    return planned > 1 ? planned : 1;
}

rlhf_status rlhf__checkpoint_fits(const struct rlhf__config *c, const struct rlhf__cast *cast,
                                  const struct rlhf__folder *in, struct rlhf__error *err) {
    const uint64_t need = rlhf__checkpoint_bytes(c, cast);
    uint64_t free;
    if (!rlhf__disk_space_of(in->fd, &free) || free >= need) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO,
                      "it takes %s, and only %s are free in %s: free some space and resume the run",
                      rlhf__size_text(need).text, rlhf__size_text(free).text, in->path);
}

void rlhf__checkpoint_foresee(const struct rlhf__config *c, const struct rlhf__cast *cast,
                              const struct rlhf__folder *in, struct rlhf__log *log) {
    const uint64_t need = rlhf__checkpoint_bytes(c, cast);
    uint64_t free;
    if (!rlhf__disk_space_of(in->fd, &free) || free >= need) return;
    rlhf__logf(log, RLHF_LOG_WARN,
               "the next checkpoint takes %s, and only %s are free in %s: free some space before "
               "it is due, or the run ends there",
               rlhf__size_text(need).text, rlhf__size_text(free).text, in->path);
}
