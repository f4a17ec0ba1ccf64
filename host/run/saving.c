// saving.c: see saving.h.
#include "run/saving.h"

#include "run/checkpoint.h"
#include "run/run.h"
#include "run/run_dir.h"

void rlhf__saving_begin(struct rlhf__run *t) {
    int64_t phase = t->req->resume ? t->count.phase : -1;
    t->saving = (struct rlhf__saving){phase, phase, rlhf__seconds()};
}

static rlhf_status save(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__saving *s = &t->saving;
    s->tried = t->count.phase;
    rlhf_status st = rlhf__checkpoint_save(t, err);
    s->at = rlhf__seconds();
    if (st == RLHF_OK) s->phase = t->count.phase;
    return st;
}

// Asked by SIGUSR1 since the last call.
static int asked(const struct rlhf__run *t) {
    volatile sig_atomic_t *flag = t->req->env->checkpoint;
    if (!flag || !*flag) return 0;
    *flag = 0;
    return 1;
}

rlhf_status rlhf__saving_phase(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__checkpoint_config *c = &t->config->checkpoint;
    int now = asked(t);
    int due = now || (c->every > 0 && t->count.phase % c->every == 0) ||
              (c->every_s > 0 && rlhf__seconds() - t->saving.at >= (double)c->every_s);
    rlhf_status st = due ? save(t, err) : RLHF_OK;
    if (st == RLHF_OK && now)
        rlhf__logf(t->report.log, RLHF_LOG_INFO, "checkpoint written: %s/checkpoints/%06lld",
                   t->req->dir->name, (long long)t->count.phase);
    return st;
}

rlhf_status rlhf__saving_end(struct rlhf__run *t, struct rlhf__error *err) {
    return t->saving.phase == t->count.phase ? RLHF_OK : save(t, err);
}

void rlhf__saving_rescue(struct rlhf__run *t) {
    const struct rlhf__saving *s = &t->saving;
    struct rlhf__error err = {0, ""};
    int64_t boundary = t->boundary.phase;
    t->session.services.phase = -1;
    rlhf__progress_end(t->report.progress);
    if (boundary > 0 && s->tried != boundary) {
        rlhf_status st = rlhf__boundary_restore(&t->boundary, t, &err);
        if (st == RLHF_OK) st = save(t, &err);
        if (st != RLHF_OK)
            rlhf__logf(t->report.log, RLHF_LOG_WARN, "phase %lld cannot be gone back to: %s",
                       (long long)boundary, err.text);
    }
    t->count.phase = s->phase > 0 ? s->phase : 0;
    if (s->phase > 0)
        rlhf__logf(t->report.log, RLHF_LOG_INFO,
                   "%lld phases are kept; --resume '%s' goes on from there", (long long)s->phase,
                   t->req->dir->name);
    else if (boundary > 0)
        rlhf__logf(t->report.log, RLHF_LOG_WARN, "nothing is kept of %lld phases",
                   (long long)boundary);
}
