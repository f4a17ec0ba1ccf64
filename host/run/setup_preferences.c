// setup_preferences.c: rlhf__setup_preferences of setup.h: rows that say which response is better,
// for a reward model (score head) or a policy.
#include "run/setup.h"

static int trains_reward(const struct rlhf__run *t) {
    return (t->cast.plan.heads & RLHF_HEAD_SCORE) != 0;
}

// A reward model's rows begin as its tokenizer says, which the setting only adds to: its directory
// records what it was trained with.
static void set_front(const struct rlhf__run *t) {
    const struct rlhf__tokenizer *tok = t->cast.policy->tok;
    rlhf__tokenizer_set_bos(t->cast.policy->tok,
                            t->config->prompts.prepend_bos || rlhf__tokenizer_has_bos(tok));
}

static struct rlhf__preference_opts row_opts(const struct rlhf__run *t, const char *const *path,
                                             const char *setting) {
    return (struct rlhf__preference_opts){
        .paths = path,
        .n_paths = 1,
        .setting = setting,
        .prepend_bos = t->config->prompts.prepend_bos ||
                       (trains_reward(t) && rlhf__tokenizer_has_bos(t->cast.policy->tok)),
        .max_tokens = t->max_tokens,
        .long_rows = RLHF__PREFERENCE_CUT,
        .loading = &t->loading};
}

static rlhf_status open_rows(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    struct rlhf__preference_opts rows = row_opts(t, &c->data.path, "data.path");
    struct rlhf__batch_opts batches = {.batch_size = c->batch.size,
                                       .batch_tokens = c->data.batch_tokens,
                                       .epochs = c->run.phases > 0 ? 0 : c->data.epochs,
                                       .seed = (uint64_t)c->run.seed,
                                       .shuffle = c->data.shuffle};
    rows.skip = c->data.skip;
    rows.limit = c->data.limit;
    rlhf_status st =
        rlhf__preference_source_open(&t->preferences, &rows, &batches, t->cast.policy->tok, err);
    if (st != RLHF_OK) return st;
    const struct rlhf__preferences *set = t->preferences.set;
    rlhf__logf(t->report.log, RLHF_LOG_INFO,
               "data: %lld rows of %lld responses; %lld were cut, %lld left out (equal tokens)",
               (long long)rlhf__preferences_count(set), (long long)rlhf__preferences_responses(set),
               (long long)rlhf__preferences_truncated(set),
               (long long)rlhf__preferences_dropped(set));
    t->count.phases = c->run.phases;
    return t->count.phases ? RLHF_OK
                           : rlhf__batches_count(&t->preferences.batches, &t->count.phases, err);
}

static rlhf_status open_held_out(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__data_config *c = &t->config->data;
    if (!c->eval_path[0]) return RLHF_OK;
    struct rlhf__preference_opts rows = row_opts(t, &c->eval_path, "data.eval_path");
    rows.limit = c->eval_limit;
    return rlhf__preferences_open(&rows, t->cast.policy->tok, &t->held_out_pairs, err);
}

rlhf_status rlhf__setup_preferences(struct rlhf__run *t, struct rlhf__error *err) {
    int reward = trains_reward(t);
    // The head reads the last token of a row without a response; others are pooled by the host.
    struct rlhf__setup_head head = {0};
    if (reward)
        head = (struct rlhf__setup_head){
            .n_labels = 1, .pooling = RLHF_POOL_LAST, .init = RLHF_SCORE_INIT_REWARD};
    rlhf_status st = rlhf__setup_policy(t, &head, err);
    if (st == RLHF_OK && reward && !(t->cast.policy->info.heads & RLHF_HEAD_TOKEN_SCORE))
        st = rlhf__fail(err, RLHF_E_UNSUPPORTED,
                        "%s trains a reward model; the model '%s' (%s) gives no score a token",
                        t->req->algo->file, t->cast.policy->dir,
                        t->cast.policy->instance->plugin->file);
    if (st == RLHF_OK && reward) set_front(t);
    if (st == RLHF_OK) st = rlhf__setup_max_tokens(t, err);
    if (st == RLHF_OK) st = open_rows(t, err);
    if (st == RLHF_OK) st = open_held_out(t, err); // before samples are drawn: bad rows first
    if (st == RLHF_OK && reward)
        st = rlhf__reward_training_create(t, t->preferences.set, &t->reward_training, err);
    return st == RLHF_OK ? rlhf__setup_check_plan(t, 1, err) : st;
}
