// run.c: the training command: set up, run, say how it ended.
#include "cmd/commands.h"

#include "cmd/print.h"
#include "keep/run_dir.h"
#include "model/room.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

static rlhf_status find_dir(const struct rlhf__run_request *req, struct rlhf__error *err) {
    if (!req->resume) return rlhf__run_dir_choose(req->dir, req->config, req->algo->stem, err);
    if (strlen(req->resume) >= 4000)
        return rlhf__fail(err, RLHF_E_INVALID, "--resume: the path is longer than 4,000 bytes");
    return rlhf__run_dir_attach(req->dir, req->resume, req->dry_run, req->env->log, err);
}

// What the run will take, on standard output.
static rlhf_status print_memory(const struct rlhf__room_need *need, int json,
                                struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (!need->known) return RLHF_OK;
    if (json) return rlhf__print_json_new(rlhf__room_json(need), err);
    rlhf__room_table(need, &text);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) fputs(rlhf__buf_text(&text), stdout);
    rlhf__buf_free(&text);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

int rlhf__cmd_run(const struct rlhf__run_request *asked_for) {
    struct rlhf__error err = {0, ""}, unprinted = {0, ""};
    struct rlhf__run *t = NULL;
    struct rlhf__room_need need = {0};
    struct rlhf__run_request with_need = *asked_for;
    const struct rlhf__run_request *req = &with_need;
    with_need.need = &need;
    rlhf_status st = find_dir(req, &err);
    if (st == RLHF_OK) st = rlhf__run_create(req, &t, &err);
    if (t && req->dry_run) rlhf__progress_end(t->report.progress); // no rest of a bar is left
    if (req->dry_run && print_memory(&need, req->env->log->json, &unprinted) != RLHF_OK &&
        st == RLHF_OK) {
        err = unprinted;
        st = err.code;
    }
    if (st == RLHF_OK && !req->dry_run) st = rlhf__run_phases(t, &err);
    if (t && st == RLHF_OK && req->dry_run) {
        const int64_t left = t->count.phases - t->count.phase;
        rlhf__logf(req->env->log, RLHF_LOG_INFO,
                   "dry run: all is set up for %lld phase%s; nothing was run or written",
                   (long long)left, left == 1 ? "" : "s");
    }
    const int collapsed = t && t->collapsed;
    int ran = t && t->report.began > 0 && !t->bad_input;
    rlhf__run_destroy(t);
    if (st != RLHF_OK) {
        int status = rlhf__cmd_end(req->env, st, &err);
        return ran && status == 2 ? 1 : status; // it failed while running, whatever the reason
    }
    int asked = req->env->cancelled ? *req->env->cancelled : 0;
    if (asked) return 128 + asked;
    return collapsed ? RLHF__EXIT_COLLAPSED : 0;
}
