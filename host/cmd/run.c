// run.c: the training command: set up, run, say how it ended.
#include "cmd/commands.h"

#include "keep/run_dir.h"
#include "run/run.h"

#include <string.h>

static rlhf_status find_dir(const struct rlhf__run_request *req, struct rlhf__error *err) {
    if (!req->resume) return rlhf__run_dir_choose(req->dir, req->config, req->algo->stem, err);
    if (strlen(req->resume) >= 4000)
        return rlhf__fail(err, RLHF_E_INVALID, "--resume: the path is longer than 4,000 bytes");
    return rlhf__run_dir_attach(req->dir, req->resume, req->dry_run, req->env->log, err);
}

int rlhf__cmd_run(const struct rlhf__run_request *req) {
    struct rlhf__error err = {0, ""};
    struct rlhf__run *t = NULL;
    rlhf_status st = find_dir(req, &err);
    if (st == RLHF_OK) st = rlhf__run_create(req, &t, &err);
    if (st == RLHF_OK && !req->dry_run) st = rlhf__run_phases(t, &err);
    if (st == RLHF_OK && req->dry_run) {
        const int64_t left = t->count.phases - t->count.phase;
        rlhf__logf(req->env->log, RLHF_LOG_INFO,
                   "dry run: all is set up for %lld phase%s; nothing was run or written",
                   (long long)left, left == 1 ? "" : "s");
    }
    int ran = t && t->report.began > 0 && !t->bad_input;
    rlhf__run_destroy(t);
    if (st != RLHF_OK) {
        int status = rlhf__cmd_end(req->env, st, &err);
        return ran && status == 2 ? 1 : status; // it failed while running, whatever the reason
    }
    int asked = req->env->cancelled ? *req->env->cancelled : 0;
    return asked ? 128 + asked : 0;
}
