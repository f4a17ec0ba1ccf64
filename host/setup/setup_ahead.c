// setup_ahead.c: what rollout.ahead needs from the set-up; see setup.h.
#include "setup/setup.h"

#include "feed/ahead.h"

// Returns how many of the run's `all` threads may sample ahead: all but one, which must train. With
// a single thread, returns 1.
static int64_t most_threads(int64_t all) { return all > 1 ? all - 1 : 1; }

static rlhf_status check_actors(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const int64_t each = r->cast.plan.group_size > 1 ? r->cast.plan.group_size : 1;
    const int64_t groups = c->batch.size / each;
    if (c->parallel.actors == 0) return RLHF_OK;
    if (c->rollout.ahead == 0)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "parallel.actors is %lld, but rollout.ahead is 0: actors sample while the "
            "others train, which needs rollout.ahead=1",
            (long long)c->parallel.actors);
    if (groups >= c->parallel.actors) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "batch.size is %lld, which is %lld %s%s%s: too few for parallel.actors=%lld, each "
        "of which needs one of its own",
        (long long)c->batch.size, (long long)groups, each > 1 ? "group" : "row",
        groups == 1 ? "" : "s", each > 1 ? " of responses" : "", (long long)c->parallel.actors);
}

rlhf_status rlhf__setup_check_ahead(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    if (c->rollout.ahead > 0 && !rlhf__cast_samples(&r->cast))
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "rollout.ahead is 1, but %s draws no responses; rollout.ahead=0 is allowed",
            r->req->algo->file);
    RLHF_TRY(check_actors(r, err));
    if (!rlhf__setup_is_ahead(r)) return RLHF_OK;
    if (!(r->cast.plan.flags & RLHF_PLAN_STALE))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "rollout.ahead is 1, but %s does not correct for rows that an older "
                          "policy sampled (RLHF_PLAN_STALE); rollout.ahead=0 is allowed",
                          r->req->algo->file);
    if (r->req->team && !r->req->split)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "rollout.ahead is 1, and the run has %d processes, but none of them "
                          "samples ahead; set how many do so with parallel.actors (up to %d), or "
                          "rollout.ahead=0",
                          r->req->team->ranks, r->req->team->ranks - 1);
    if (!c->mixing.overlap) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "rewards.overlap is true, but with rollout.ahead=1 responses are sampled in "
                      "the phase before the one that asks the rewards; rewards.overlap=false is "
                      "allowed");
}

int rlhf__setup_is_ahead(const struct rlhf__run *r) {
    return r->config->rollout.ahead > 0 && rlhf__cast_samples(&r->cast);
}

rlhf_status rlhf__setup_split_threads(struct rlhf__run *r, int64_t all, struct rlhf__error *err) {
    const int64_t asked = r->config->rollout.threads, most = most_threads(all);
    if (asked > most)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "rollout.threads is %lld, but the run has %lld thread%s (run.threads), "
                          "and training needs one; at most %lld is allowed",
                          (long long)asked, (long long)all, all == 1 ? "" : "s", (long long)most);
    r->ahead_threads = asked > 0 ? asked : all / 3 > 1 ? all / 3 : 1;
    return RLHF_OK;
}

rlhf_status rlhf__setup_ahead(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__sampler_request q = {.session = &r->session,
                                            .config = r->config,
                                            .dirs = r->req->env->dirs,
                                            .policy = r->cast.policy,
                                            .threads = r->ahead_threads};
    struct rlhf__sampler *sampler = NULL;
    if (!rlhf__setup_is_ahead(r)) return RLHF_OK;
    if (r->req->split) return rlhf__ahead_open(NULL, &r->feed->ahead, err);
    rlhf__progress_note(r->report.progress, "loading the sampler");
    RLHF_TRY(rlhf__sampler_open(&q, &sampler, err));
    return rlhf__ahead_open(sampler, &r->feed->ahead, err);
}

// Connect learners and actors.
static rlhf_status meet_actors(struct rlhf__run *r, struct rlhf__error *err) {
    RLHF_TRY(rlhf__actors_open(r->req->split, r->cast.policy, &r->actors, err));
    if (r->feed->ahead) rlhf__ahead_act(r->feed->ahead, r->actors);
    const int32_t actors = r->req->split->actors;
    rlhf__logf(
        r->report.log, RLHF_LOG_INFO,
        "rollout.ahead: %d process%s sample%s the next phase's responses while %d train%s on "
        "this phase's",
        actors, actors == 1 ? "" : "es", actors == 1 ? "s" : "",
        rlhf__split_learners(r->req->split), rlhf__split_learners(r->req->split) == 1 ? "s" : "");
    return RLHF_OK;
}

static rlhf_status load_sampler(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__ahead *a = r->feed->ahead;
    RLHF_TRY(rlhf__sampler_load(rlhf__ahead_sampler(a), err));
    const rlhf_compute *own = rlhf__sampler_model(rlhf__ahead_sampler(a))->compute;
    const rlhf_compute *table = r->session.compute->table;
    if (table->device == RLHF_DEVICE_CPU)
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "rollout.ahead: %u thread%s sample%s the next phase's responses while %u "
                   "train%s on this phase's",
                   own->threads, own->threads == 1 ? "" : "s", own->threads == 1 ? "s" : "",
                   table->threads, table->threads == 1 ? "s" : "");
    return RLHF_OK;
}

rlhf_status rlhf__setup_ahead_ready(struct rlhf__run *r, struct rlhf__error *err) {
    if (r->req->split)
        RLHF_TRY(meet_actors(r, err));
    else if (r->feed->ahead)
        RLHF_TRY(load_sampler(r, err));
    else
        return RLHF_OK;
    if (r->cast.iteration.moves_reference)
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "rollout.ahead: when the reference moves, the next phase's responses were "
                   "sampled before; their rewards and KL are those of the new reference");
    return RLHF_OK;
}
