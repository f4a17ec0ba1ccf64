// saving.c: see saving.h.
#include "run/saving.h"

#include "keep/run_dir.h"
#include "run/checkpoint.h"
#include "run/run.h"

void rlhf__saving_begin(struct rlhf__run *r) {
    int64_t phase = r->req->resume ? r->count.phase : -1;
    r->saving = (struct rlhf__saving){phase, phase, rlhf__seconds()};
}

static rlhf_status save(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__saving *s = &r->saving;
    s->tried = r->count.phase;
    rlhf_status st = rlhf__checkpoint_save(r, err);
    s->at = rlhf__seconds();
    if (st == RLHF_OK) s->phase = r->count.phase;
    return st;
}

// Asked by SIGUSR1 since the last call.
static int asked(const struct rlhf__run *r) {
    volatile sig_atomic_t *flag = r->req->env->checkpoint;
    if (!flag || !*flag) return 0;
    *flag = 0;
    return 1;
}

rlhf_status rlhf__saving_phase(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__checkpoint_config *c = &r->config->checkpoint;
    int now = asked(r);
    int due = now || (c->every > 0 && r->count.phase % c->every == 0) ||
              (c->every_s > 0 && rlhf__seconds() - r->saving.at >= (double)c->every_s);
    rlhf_status st = due ? save(r, err) : RLHF_OK;
    if (st == RLHF_OK && now)
        rlhf__logf(r->report.log, RLHF_LOG_INFO, "checkpoint written: %s/checkpoints/%06lld",
                   r->req->dir->name, (long long)r->count.phase);
    return st;
}

rlhf_status rlhf__saving_end(struct rlhf__run *r, struct rlhf__error *err) {
    return r->saving.phase == r->count.phase ? RLHF_OK : save(r, err);
}

void rlhf__saving_rescue(struct rlhf__run *r) {
    const struct rlhf__saving *s = &r->saving;
    struct rlhf__error err = {0, ""};
    int64_t boundary = r->boundary.phase;
    r->session.services.phase = -1;
    rlhf__progress_end(r->report.progress);
    if (boundary > 0 && s->tried != boundary) {
        rlhf_status st = rlhf__boundary_restore(&r->boundary, r, &err);
        if (st == RLHF_OK) st = save(r, &err);
        if (st != RLHF_OK)
            rlhf__logf(r->report.log, RLHF_LOG_WARN, "phase %lld cannot be gone back to: %s",
                       (long long)boundary, err.text);
    }
    r->count.phase = s->phase > 0 ? s->phase : 0;
    if (s->phase > 0)
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "%lld phases are kept; --resume '%s' goes on from there", (long long)s->phase,
                   r->req->dir->name);
    else if (boundary > 0)
        rlhf__logf(r->report.log, RLHF_LOG_WARN, "nothing is kept of %lld phases",
                   (long long)boundary);
}
