// setup_shards.c: divides a run between processes; see setup.h.
#include "setup/setup.h"

#include "keep/leftover.h"
#include "keep/run_dir.h"

#include <stdio.h>

// Writes the numbers that divide `shards`, separated by commas.
static const char *divisors(uint32_t shards, char *out, size_t cap) {
    size_t at = 0;
    out[0] = 0;
    for (uint32_t d = 1; d <= shards && at + 1 < cap; d++) {
        if (shards % d) continue;
        const char *between = d == 1 ? "" : d == shards ? " or " : ", ";
        const int n = snprintf(out + at, cap - at, "%s%u", between, d);
        if (n > 0) at += (size_t)n;
    }
    return out;
}

static rlhf_status check_ranks(uint32_t shards, uint32_t ranks, int split,
                               struct rlhf__error *err) {
    char list[256];
    if (shards % ranks == 0) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "parallel.shards is %u, and the run has %u processes%s: with %u shards it can "
        "have %s; start another number of processes, or change parallel.shards",
        shards, ranks, split ? " that train" : "", shards, divisors(shards, list, sizeof list));
}

// Returns the number of shards that the run in the directory has had, or -1 if it is not known.
static int64_t shards_before(const struct rlhf__run *r) {
    json_t *config = rlhf__stored_settings(r->req->dir->root);
    const json_t *n = json_object_get(json_object_get(config, "parallel"), "shards");
    const int64_t shards = json_is_integer(n) ? json_integer_value(n) : -1;
    json_decref(config);
    return shards;
}

// If a resumed run has another number of shards than before, warn.
static void warn_if_changed(const struct rlhf__run *r) {
    const uint32_t now = r->cast.share.shards;
    const int64_t before = r->req->resume ? shards_before(r) : -1;
    if (before <= 0 || before == now) return;
    rlhf__logf(r->report.log, RLHF_LOG_WARN,
               "parallel.shards was %lld and is now %u: from here on, sums are rounded "
               "differently than in an unchanged run",
               (long long)before, now);
}

rlhf_status rlhf__setup_shards(struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__team *team = rlhf__run_learners(r);
    const struct rlhf__split *split = r->req->split;
    const uint32_t ranks = (uint32_t)(split ? rlhf__split_learners(split) : rlhf__team_ranks(team));
    struct rlhf__parallel_config *c = &r->req->config->parallel;
    if (c->shards == 0) c->shards = ranks;
    RLHF_TRY(check_ranks((uint32_t)c->shards, ranks, split != NULL, err));
    r->cast.share = (struct rlhf__share){
        .shards = (uint32_t)c->shards, .rank = (uint32_t)rlhf__team_rank(team), .ranks = ranks};
    warn_if_changed(r);
    return RLHF_OK;
}

rlhf_status rlhf__setup_check_batch(const struct rlhf__run *r, struct rlhf__error *err) {
    const rlhf_plan *plan = &r->cast.plan;
    const int64_t rows = r->config->batch.size;
    const uint32_t ranks = r->cast.share.ranks;
    const int64_t of = plan->group_size > 1 ? plan->group_size : 1;
    // If there is only one process, learn/plan.c checks the batch.
    if (ranks <= 1 || rows <= 0 || rows / of >= ranks) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "batch.size is %lld, which is %lld %s%s%s: too few for %u processes, each of "
                      "which needs one of its own",
                      (long long)rows, (long long)(rows / of), of > 1 ? "group" : "row",
                      rows / of == 1 ? "" : "s", of > 1 ? " of responses" : "", ranks);
}
