// join.c: see join.h.
#include "team/join.h"

#include "base/signals.h"
#include "supervise/last_words.h"
#include "team/agree.h"

#include <stdio.h>
#include <unistd.h>

void rlhf__join_prepare(struct rlhf__log *log) { log->mute = rlhf__launch_read().rank > 0; }

rlhf_status rlhf__join_refuse(const char *command, struct rlhf__error *err) {
    const struct rlhf__launch l = rlhf__launch_read();
    if (l.ranks == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s works in one process, and %s started several (%s): only training can be "
                      "divided among processes",
                      command, l.launcher, l.variable);
}

// Let rank 0 log for all ranks; the others log only errors.
static void be_silent(struct rlhf__log *log, const struct rlhf__team *t) {
    char who[96];
    snprintf(who, sizeof who, "rank %d on %.60s: ", t->rank, t->host[t->rank]);
    rlhf__last_words_prefix(who);
    log->mute = t->rank > 0;
    if (t->rank == 0) return;
    snprintf(log->prefix, sizeof log->prefix, "%s", who);
    log->level = RLHF_LOG_ERROR; // rank 0 logs the set-up's warnings
    rlhf__signals_quiet();
}

// A rank is lost, so the ranks cannot agree on who reports it. Rank r waits r seconds, at most 8.
// So the lowest rank that is left reports it, and the launcher then ends the others.
static void take_turn(struct rlhf__log *log, const struct rlhf__launch *launch) {
    sleep(launch->rank < 0 ? 0 : launch->rank < 8 ? (unsigned)launch->rank : 8);
    log->mute = 0;
}

rlhf_status rlhf__join(const struct rlhf__env *env, const char *backend, double timeout_s,
                       struct rlhf__collective *out, rlhf_status st, struct rlhf__error *err) {
    const struct rlhf__collective_spec spec = {.dirs = env->dirs,
                                               .launch = rlhf__launch_read(),
                                               .backend = backend ? backend : "auto",
                                               .timeout_s = timeout_s,
                                               .log = env->log};
    struct rlhf__error own = {0, ""};
    const rlhf_status opened = rlhf__collective_open(&spec, out, &own);
    rlhf__launch_forget();
    if (opened != RLHF_OK) {
        if (opened == RLHF_E_DEVICE) take_turn(env->log, &spec.launch);
        if (st != RLHF_OK) return st;
        *err = own;
        return opened;
    }
    struct rlhf__team *t = rlhf__joined(out);
    if (!t) env->log->mute = 0; // parallel.backend=none: this is a separate run
    if (!t) return st;
    t->signal = env->cancelled;
    be_silent(env->log, t);
    return rlhf__team_agree(t, RLHF__BARRIER_SETUP, NULL, st, err);
}
