// run.c: see run.h.
#include "run/run.h"

#include "keep/chain_log.h"
#include "learn/shards.h"
#include "sample/actors.h"
#include "sample/rewards.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rlhf__manifest rlhf__run_manifest(const struct rlhf__run *r) {
    return (struct rlhf__manifest){.compute = r->session.compute,
                                   .policy = r->cast.policy,
                                   .algo = r->req->algo,
                                   .judge = r->req->judge,
                                   .environment = r->req->environment,
                                   .rewards = r->req->rewards,
                                   .n_rewards = r->cast.n_rewards,
                                   .sinks = r->req->sinks,
                                   .n_sinks = r->config->n_sink,
                                   .plugins = r->req->plugins,
                                   .collective = r->req->collective,
                                   .device = r->device.made ? &r->device : NULL,
                                   .inputs = r->inputs};
}

void rlhf__run_say_compute(struct rlhf__run *r) {
    const rlhf_compute *table = r->session.compute->table;
    if (strncmp(r->said_compute, table->detail, sizeof r->said_compute - 1) == 0) return;
    if (r->said_compute[0])
        rlhf__logf(r->report.log, RLHF_LOG_INFO, "compute: %s, now %s", table->name, table->detail);
    snprintf(r->said_compute, sizeof r->said_compute, "%s", table->detail);
}

rlhf_status rlhf__run_advise(const struct rlhf__run *r, rlhf_status st, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const rlhf_compute *t = r->session.compute ? r->session.compute->table : NULL;
    if (st != RLHF_E_NOMEM || !t || t->device == RLHF_DEVICE_CPU) return st;
    char said[512];
    rlhf__compute_said(r->session.compute, st, said, sizeof said);
    if (!*said || !strstr(err->text, said)) return st; // host memory ran out, not device memory
    const size_t n = strlen(err->text);
    snprintf(err->text + n, sizeof err->text - n,
             "; less is taken with a lower batch.microbatch_tokens (now %lld), sampling.slots, "
             "sampling.max_new_tokens (now %lld) or compute.workspace_mib%s",
             (long long)rlhf__compute_microbatch(t, c->batch.microbatch_tokens, 0),
             (long long)c->sampling.max_new_tokens,
             c->compute.recompute ? "" : ", or with compute.recompute=layer");
    return st;
}

// ---- the end ----

static void finish_report(struct rlhf__report *p) {
    rlhf__sinks_close(p->sinks);
    rlhf__progress_close(p->progress);
    rlhf__sample_choice_finish(&p->chosen);
    rlhf__reward_tallies_finish(&p->rewards);
}

void rlhf__run_close_records(struct rlhf__run *r) {
    struct rlhf__report *p = &r->report;
    rlhf__samples_close(p->samples);
    rlhf__spread_close(p->spread);
    rlhf__events_close(p->events);
    rlhf__rollout_log_close(p->rollout_log);
    rlhf__metrics_close(p->metrics);
    rlhf__chain_log_close(r->chain);
    p->samples = NULL;
    p->spread = NULL;
    p->events = NULL;
    p->rollout_log = NULL;
    p->metrics = NULL;
    r->chain = NULL;
    r->session.services.metric = NULL;
    r->session.services.metric_ctx = NULL;
}

// Does not destroy the algorithm, which must be destroyed last, because it owns the names in the
// plan.
static void finish_plugins(struct rlhf__cast *c) {
    rlhf__instance_close(c->judge);
    rlhf__instance_close(c->environment);
    rlhf__rewards_close(c->rewards, c->n_rewards);
}

static void finish_models(struct rlhf__cast *c) {
    rlhf__response_rules_close(c->rules);
    for (uint32_t i = 0; i < c->plan.n_named; i++)
        if (!rlhf__cast_is_shared(c, i)) rlhf__model_close(c->named[i]);
    rlhf__model_close(c->reference);
    rlhf__model_close(c->critic);
    rlhf__model_close(c->policy);
}

void rlhf__run_device_end(struct rlhf__run *r) {
    struct rlhf__team *t = rlhf__run_learners(r);
    if (t) t->device = NULL;
    if (t && t->broken) return; // the ranks end without each other
    rlhf__collective_close(&r->device, 0);
}

void rlhf__run_close(struct rlhf__run *r) {
    if (!r) return;
    finish_report(&r->report);
    rlhf__run_close_records(r);
    rlhf__run_history_finish(&r->history);
    rlhf__early_stop_finish(&r->early_stop);
    rlhf__boundary_finish(&r->boundary);
    rlhf__shards_close(&r->learner);
    rlhf__learner_finish(&r->learner);
    rlhf__optim_close(r->optim);
    rlhf__optim_close(r->critic_optim);
    rlhf__iteration_finish(&r->iteration);
    finish_plugins(&r->cast);
    rlhf__feed_close(r->feed);
    rlhf__actors_close(r->actors);
    rlhf__reward_training_close(r->reward_training);
    finish_models(&r->cast);
    rlhf__instance_close(r->cast.algo);
    json_decref(r->inputs);
    rlhf__run_device_end(r);
    rlhf__text_services_close(r->served);
    rlhf__session_finish(&r->session);
    rlhf__memory_plan_close(r->memory_plan);
    free(r);
}
