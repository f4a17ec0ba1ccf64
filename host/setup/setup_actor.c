// setup_actor.c: the set-up of a process that only samples (parallel.actors); see setup.h.
#include "setup/setup.h"

#include "config/config_json.h"
#include "feed/feed.h"
#include "keep/manifest.h"
#include "model/compute.h"
#include "sample/actors.h"
#include "sample/rollout.h"

rlhf_status rlhf__setup_actor_rows(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__cast *cast = &r->cast;
    RLHF_TRY(rlhf__setup_policy(r, &(struct rlhf__setup_head){.draws = 1}, err));
    RLHF_TRY(rlhf__model_writes(cast->policy, err));
    RLHF_TRY(rlhf__response_rules_open(&r->config->sampling, &r->config->response,
                                       cast->policy->tok, &cast->rules, err));
    return rlhf__prompt_feed_open(&r->feed_env, 0, &r->feed, err);
}

// ---- the same run ----

// Returns the plugins that learners and actors both use. Learners may have further models.
static json_t *plugins_json(const struct rlhf__run *r) {
    return json_pack("{s:s, s:s}", "algorithm", r->req->algo->sha256, "model",
                     r->cast.policy->instance->plugin->sha256);
}

static rlhf_status add_rows(const struct rlhf__run *r, json_t *own, struct rlhf__error *err) {
    json_t *rows = json_array();
    const rlhf_status st = rows ? rlhf__setup_row_inputs(r, rows, err) : RLHF_OK;
    if (json_object_set_new(own, "rows", rows) != 0 && st == RLHF_OK)
        return RLHF__NOMEM(err, "out of memory comparing processes");
    return st;
}

rlhf_status rlhf__setup_actor_same(const struct rlhf__run *r, json_t **out,
                                   struct rlhf__error *err) {
    const rlhf_compute *table = r->session.compute->table;
    struct rlhf__buf weights = RLHF__BUF_INIT;
    json_t *settings = NULL, *own = NULL;
    rlhf__ship_describe(rlhf__actors_ship(r->actors), &weights);
    rlhf_status st = rlhf__config_to_json(r->config, &settings, err);
    if (st == RLHF_OK) {
        own = json_pack("{s:s, s:o, s:s, s:s, s:o*, s:I, s:s}", "version", RLHF_SDK_VERSION,
                        "settings", settings, "kernels", r->session.compute->sha256, "detail",
                        table->detail, "plugins", plugins_json(r), "sampling.slots",
                        (json_int_t)rlhf__compute_slots(table, r->config->sampling.slots),
                        "weights", rlhf__buf_text(&weights));
        if (!own) st = RLHF__NOMEM(err, "out of memory comparing processes");
    }
    rlhf__buf_finish(&weights);
    if (st == RLHF_OK) st = add_rows(r, own, err);
    *out = own;
    return st;
}
