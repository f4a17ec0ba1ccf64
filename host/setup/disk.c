// disk.c: rlhf__setup_disk of setup.h.
#include "setup/setup.h"

#include "base/disk_space.h"
#include "base/size_text.h"
#include "keep/checkpoint_size.h"

rlhf_status rlhf__setup_disk(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__checkpoint_config *c = &r->config->checkpoint;
    const char *where = r->req->resume ? r->req->resume : r->config->run.dir;
    const uint64_t each = rlhf__checkpoint_bytes(r->config, &r->cast);
    const int64_t left = r->count.phases - r->count.phase;
    const int64_t n = rlhf__checkpoints_at_once(c, left);
    uint64_t free;
    if (!rlhf__run_writes(r) || r->req->recorded || left <= 0) return RLHF_OK;
    if (!where || !*where) where = "runs";
    if (!rlhf__disk_space_at(where, &free)) return RLHF_OK;
    if (r->req->dry_run)
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "checkpoints: %s each, at most %lld at once (checkpoint.keep=%lld); %s are "
                   "free for %s",
                   rlhf__size_text(each).text, (long long)n, (long long)c->keep,
                   rlhf__size_text(free).text, where);
    if (free < each)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "run.dir: a checkpoint of this run takes %s, and only %s are free for "
                          "%s: free some space, or name another directory with --out",
                          rlhf__size_text(each).text, rlhf__size_text(free).text, where);
    if (free / (uint64_t)n < each)
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "%s are free for %s, but the run has up to %lld checkpoints of %s at once; %s",
                   rlhf__size_text(free).text, where, (long long)n, rlhf__size_text(each).text,
                   c->keep == 0 ? "checkpoint.keep=N keeps fewer of them"
                                : "free some space, or lower checkpoint.keep");
    return RLHF_OK;
}
