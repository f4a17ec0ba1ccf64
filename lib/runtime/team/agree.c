// agree.c: see agree.h.
#include "team/agree.h"

#include "base/signals.h"

#include <stdio.h>
#include <string.h>

// The header that each rank sends at each barrier (agree.h). All headers have the same form, so a
// failed rank can send its header from any place in the code.
struct header {
    int64_t barriers, same;
    uint64_t bytes;
    int32_t barrier, status, cancel, save;
    int32_t said; // the text names its rank
    char text[976];
};
_Static_assert(sizeof(struct header) == RLHF__TEAM_HEADER, "team.h allocates the headers");

static const char *const names[RLHF__BARRIERS] = {
    [RLHF__BARRIER_SETUP] = "the set-up",
    [RLHF__BARRIER_ROLLOUT] = "sampling",
    [RLHF__BARRIER_REWARDS] = "the rewards",
    [RLHF__BARRIER_PASS] = "a forward pass",
    [RLHF__BARRIER_MINIBATCH] = "a minibatch",
    [RLHF__BARRIER_REDUCE] = "sums of the algorithm",
    [RLHF__BARRIER_PHASE] = "the end of a phase",
    [RLHF__BARRIER_SAVE] = "a checkpoint",
    [RLHF__BARRIER_ORDER] = "the order of a batch",
    [RLHF__BARRIER_WEIGHTS] = "a comparison of the weights",
    [RLHF__BARRIER_END] = "the end of the run",
};

static const char *name_of(int32_t barrier) {
    return barrier >= 0 && barrier < RLHF__BARRIERS ? names[barrier] : "an unknown place";
}

// Returns 1 if all ranks have the same failure, so that the message need not name a rank.
static int is_common(const struct rlhf__team *t, const struct header *all, const struct header *h) {
    for (int32_t k = 0; k < t->ranks; k++)
        if (all[k].status != h->status || strcmp(all[k].text, h->text) != 0) return 0;
    return 1;
}

// Called when this team has failed. From now on its ranks no longer synchronize with each other,
// and all return the same message. The message already names the failed rank. So if the team is
// part of a larger team, the larger team does not add a rank to the message.
static void note_left(struct rlhf__team *t) {
    t->left = 1;
    if (t->parent) t->parent->said = 1;
}

static rlhf_status leave(struct rlhf__team *t, const struct header *all, int32_t rank,
                         struct rlhf__error *err) {
    const struct header *h = &all[rank];
    note_left(t);
    if (h->said || is_common(t, all, h))
        return rlhf__fail(err, h->status, "%.*s", (int)sizeof h->text, h->text);
    return rlhf__fail(err, h->status, "rank %d on %s: %.*s", rank, t->host[rank],
                      (int)sizeof h->text, h->text);
}

// Fail because the ranks are at different barriers, or differ in a number that must be equal. The
// ranks cannot go on.
static rlhf_status out_of_step(struct rlhf__team *t, const struct header *h, int32_t rank,
                               struct rlhf__error *err) {
    note_left(t);
    if (h[0].barrier != h[rank].barrier || h[0].barriers != h[rank].barriers)
        return rlhf__fail(
            err, RLHF_E_INTERNAL,
            "the ranks are out of step: rank 0 on %s is at %s (barrier %lld), rank %d on "
            "%s at %s (barrier %lld)",
            t->host[0], name_of(h[0].barrier), (long long)h[0].barriers, rank, t->host[rank],
            name_of(h[rank].barrier), (long long)h[rank].barriers);
    return rlhf__fail(
        err, RLHF_E_INTERNAL,
        "the ranks are out of step at %s (barrier %lld): rank 0 on %s has %lld, rank %d "
        "on %s has %lld",
        name_of(h[0].barrier), (long long)h[0].barriers, t->host[0], (long long)h[0].same, rank,
        t->host[rank], (long long)h[rank].same);
}

static rlhf_status judge(struct rlhf__team *t, const struct header *h, struct rlhf__error *err) {
    for (int32_t k = 0; k < t->ranks; k++)
        if (h[k].cancel) t->cancelled = h[k].cancel;
    if (t->cancelled) rlhf__signals_adopt(t->cancelled);
    t->saves = h[0].save;
    for (int32_t k = 0; k < t->ranks; k++)
        if (h[k].status != RLHF_OK) return leave(t, h, k, err);
    for (int32_t k = 1; k < t->ranks; k++)
        if (h[k].barrier != h[0].barrier || h[k].barriers != h[0].barriers ||
            h[k].same != h[0].same)
            return out_of_step(t, h, k, err);
    return RLHF_OK;
}

rlhf_status rlhf__team_agree(struct rlhf__team *t, enum rlhf__barrier barrier,
                             const struct rlhf__wish *wish, rlhf_status st,
                             struct rlhf__error *err) {
    struct rlhf__error unsaid;
    struct header own = {.barriers = t ? t->barriers : 0,
                         .barrier = (int32_t)barrier,
                         .status = st,
                         .said = t ? t->said : 0};
    if (!t || t->left || t->broken) return st;
    if (wish) {
        own.save = wish->save;
        own.same = wish->same;
        own.bytes = wish->bytes;
    }
    if (t->signal) own.cancel = (int32_t)*t->signal;
    if (st != RLHF_OK) snprintf(own.text, sizeof own.text, "%.970s", err ? err->text : "");
    const rlhf_status sent = rlhf__team_gather(t, &own, sizeof own, t->headers, &unsaid);
    t->barriers++;
    if (sent == RLHF_OK) return judge(t, t->headers, err);
    if (st != RLHF_OK) return st; // this rank's own failure tells more
    if (err) *err = unsaid;
    return sent;
}

uint64_t rlhf__team_bytes(const struct rlhf__team *t, int32_t k) {
    const struct header *all = t->headers;
    return all[k].bytes;
}

rlhf_status rlhf__team_all_ok(struct rlhf__team *t, rlhf_status st, struct rlhf__error *err) {
    const int32_t own = st;
    struct rlhf__error unsaid;
    if (!t) return st;
    int32_t *all = t->headers;
    const rlhf_status sent =
        rlhf__team_gather(t, &own, sizeof own, all, st == RLHF_OK ? err : &unsaid);
    if (st == RLHF_OK) st = sent;
    for (int32_t k = 0; st == RLHF_OK && k < t->ranks; k++)
        if (all[k] != RLHF_OK)
            st = rlhf__fail(err, RLHF_E_INVALID, "rank %d on %s cannot", k, t->host[k]);
    return st;
}
