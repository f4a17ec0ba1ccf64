// actor.c: see actor.h.
#include "run/actor.h"

#include "feed/feed.h"
#include "sample/actors.h"

static rlhf_status batch(struct rlhf__run *r, const struct rlhf__actor_order *o, rlhf_status st,
                         struct rlhf__error *err) {
    struct rlhf__sampled s = {.tokens = 0};
    if (st == RLHF_OK) st = rlhf__prompt_feed_act(r->feed, o, &s, err);
    st = rlhf__actors_give(r->actors, &s, st, err);
    rlhf__rows_finish(&s.rows);
    return st;
}

// Returns 1 if a signal has asked the run to stop. The learners may then end before they are done.
static int is_cancelled(const struct rlhf__run *r) {
    return r->req->env->cancelled && *r->req->env->cancelled;
}

rlhf_status rlhf__actor_run(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__actor_order o;
    r->report.began = rlhf__seconds();
    for (;;) {
        rlhf_status st = rlhf__actors_receive(r->actors, &o, err);
        if (st == RLHF_OK && o.n == 0) return RLHF_OK;
        st = batch(r, &o, st, err);
        if (st == RLHF_E_CANCELLED && is_cancelled(r)) return RLHF_OK;
        if (st != RLHF_OK) return st;
    }
}
