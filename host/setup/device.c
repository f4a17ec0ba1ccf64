// device.c: the collective between the GPUs of a run; see setup.h.
#include "setup/setup.h"

#include "base/file.h"
#include "team/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What every rank tells the others.
struct reach {
    int32_t has_gpu, works;
    char name[64];  // name of the compute backend
    char why[1024]; // why NCCL does not work; "" if it works
};

static int is_named(const struct rlhf__run *r) {
    return strcmp(r->config->parallel.backend, RLHF__NCCL) == 0;
}

// Load NCCL. Returns whether this rank can use NCCL and, if not, why. `*stream` receives the stream
// of this rank's GPU.
static struct reach look(struct rlhf__run *r, void **stream) {
    const rlhf_compute *t = r->session.compute->table;
    void *address;
    const struct rlhf__collective_spec spec = {
        .dirs = r->req->env->dirs, .backend = RLHF__NCCL, .log = r->report.log};
    struct reach own = {.has_gpu = t->device == RLHF_DEVICE_CUDA && RLHF_COMPUTE_HAS(t, native)};
    struct rlhf__error err = {0, ""};
    snprintf(own.name, sizeof own.name, "%.63s", t->name);
    if (!own.has_gpu) return own;
    if (t->native(t->ctx, NULL, &address, stream) != RLHF_OK)
        snprintf(own.why, sizeof own.why, "the backend %s gives no stream", own.name);
    else if (rlhf__collective_load(&spec, &r->device, &err) != RLHF_OK)
        snprintf(own.why, sizeof own.why, "%.1023s", err.text);
    else
        own.works = 1;
    return own;
}

// Check whether the learners can use NCCL. All ranks return the same result. RLHF_OK: all learners
// can use NCCL. RLHF_E_UNSUPPORTED: a learner cannot use it; if this learner has a GPU, `why` holds
// the reason. RLHF_E_INVALID: a learner has no GPU, although parallel.backend is nccl.
static rlhf_status compare(struct rlhf__run *r, const struct reach *all, char why[1200],
                           struct rlhf__error *err) {
    struct rlhf__team *t = rlhf__run_learners(r);
    int32_t k = 0;
    why[0] = 0;
    while (k < t->ranks && all[k].works)
        k++;
    if (k == t->ranks) return RLHF_OK;
    if (all[k].has_gpu) {
        snprintf(why, 1200, "rank %d on %s: %s", k, t->host[k], all[k].why);
        return RLHF_E_UNSUPPORTED;
    }
    if (!is_named(r)) return RLHF_E_UNSUPPORTED;
    t->left = 1;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "parallel.backend is nccl, which connects GPUs, and rank %d on %s computes "
                      "with the backend %s; give every rank a GPU (compute.backend=cuda), or leave "
                      "parallel.backend out",
                      k, t->host[k], all[k].name);
}

static rlhf_status join(struct rlhf__run *r, void *stream, char why[1200]) {
    const rlhf_collective_options o = {.size = sizeof o,
                                       .device = (int32_t)r->session.compute->gpu,
                                       .timeout_s = r->config->parallel.timeout_s,
                                       .base = rlhf__run_learners(r)->table,
                                       .stream = stream};
    struct rlhf__error err = {0, ""};
    const rlhf_status st = rlhf__collective_join(&r->device, &o, &err);
    if (st != RLHF_OK) snprintf(why, 1200, "%.1199s", err.text);
    return st;
}

// Continue without NCCL, or fail if parallel.backend is nccl.
static rlhf_status do_without(struct rlhf__run *r, const char *why, struct rlhf__error *err) {
    rlhf__run_device_end(r);
    if (!is_named(r)) {
        if (why[0])
            rlhf__logf(
                r->report.log, RLHF_LOG_WARN,
                "gradients and weights pass through host memory, which takes longer, because "
                "NCCL cannot be used: %s",
                why);
        return RLHF_OK;
    }
    rlhf__run_learners(r)->left = 1;
    return rlhf__fail(err, RLHF_E_INVALID, "parallel.backend is nccl, but %s", why);
}

rlhf_status rlhf__setup_device(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__team *t = rlhf__run_learners(r);
    char why[1200];
    void *stream = NULL;
    if (!rlhf__team_shares(t)) return RLHF_OK;
    if (!is_named(r) && strcmp(r->config->parallel.backend, "auto") != 0) return RLHF_OK;
    struct reach *all = calloc((size_t)t->ranks, sizeof *all);
    if (!all) return RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    struct reach own = look(r, &stream);
    rlhf_status st = rlhf__team_agree(t, RLHF__BARRIER_SETUP, NULL, RLHF_OK, err);
    if (st == RLHF_OK) st = rlhf__team_gather(t, &own, sizeof own, all, err);
    const int reached = st == RLHF_OK;
    if (reached) st = compare(r, all, why, err);
    free(all);
    if (!reached || st == RLHF_E_INVALID) return st;
    if (st == RLHF_OK) st = join(r, stream, why);
    if (st != RLHF_OK) return do_without(r, why, err);
    t->device = &r->device.read;
    rlhf__logf(r->report.log, RLHF_LOG_INFO, "gradients go from GPU to GPU: %s",
               r->device.read.detail ? r->device.read.detail : r->device.read.name);
    return RLHF_OK;
}
