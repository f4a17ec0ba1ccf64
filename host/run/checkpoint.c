// checkpoint.c: see checkpoint.h.
#include "run/checkpoint.h"

#include "base/file.h"
#include "model/parameters.h"
#include "run/checkpoint_dir.h"
#include "run/run_dir.h"
#include "run/state_file.h"

#include <stdio.h>

// The model whose value head is trained: the critic, or the policy.
static struct rlhf__model *value_model(const struct rlhf__run *t) {
    return t->cast.critic ? t->cast.critic : t->cast.policy;
}

// state/<name> of a checkpoint.
static const char *in_state(char out[4400], const char *dir, const char *name) {
    snprintf(out, 4400, "%s/state/%s", dir, name);
    return out;
}

// Whether a fresh checkpoint needs the exact weights beside the exported ones.
static int needs_master(const struct rlhf__run *t) {
    return t->config->checkpoint.dtype == RLHF__CHECKPOINT_BF16;
}

// Where the tokenizer's files come from. A resumed run opened its policy in a checkpoint, which may
// be pruned by now.
static rlhf_status open_tokenizer(const struct rlhf__run *t, const struct rlhf__folder *all,
                                  struct rlhf__folder **out, struct rlhf__error *err) {
    char latest[256];
    if (t->req->resume && rlhf__folder_target(all, "latest", latest, sizeof latest))
        return rlhf__folder_open(all, latest, out, err);
    return rlhf__folder_open(NULL, t->cast.policy->dir, out, err);
}

static rlhf_status write_model(struct rlhf__run *t, const struct rlhf__folder *all,
                               const struct rlhf__folder *dir, struct rlhf__error *err) {
    struct rlhf__folder *tokenizer = NULL;
    int32_t dtype = needs_master(t) ? RLHF_BF16 : RLHF_F32;
    rlhf_status st = RLHF_OK;
    if (t->reward_training) st = rlhf__reward_training_fit(t->reward_training, t->count.phase, err);
    if (st == RLHF_OK) st = rlhf__hf_set_dtype(t->cast.policy->config, dtype, err);
    if (st == RLHF_OK) st = rlhf__hf_config_write(dir, t->cast.policy->config, err);
    if (st == RLHF_OK) st = open_tokenizer(t, all, &tokenizer, err);
    if (st == RLHF_OK) st = rlhf__hf_copy_tokenizer(tokenizer, dir, err);
    rlhf__folder_close(tokenizer);
    if (st == RLHF_OK) st = rlhf__tokenizer_write_frame(t->cast.policy->tok, dir, err);
    if (st != RLHF_OK) return st;
    return rlhf__params_write(t->cast.policy, RLHF__PART_MODEL, dtype, dir, "model.safetensors",
                              err);
}

static rlhf_status write_state(struct rlhf__run *t, const struct rlhf__folder *dir,
                               struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (needs_master(t))
        st = rlhf__params_write(t->cast.policy, RLHF__PART_MODEL, RLHF_F32, dir,
                                "state/master.safetensors", err);
    if (st == RLHF_OK && t->cast.critic)
        st = rlhf__params_write(t->cast.critic, RLHF__PART_MODEL, RLHF_F32, dir,
                                "state/critic.safetensors", err);
    if (st == RLHF_OK && rlhf__params_has(value_model(t), RLHF__PART_VALUE))
        st = rlhf__params_write(value_model(t), RLHF__PART_VALUE, RLHF_F32, dir,
                                "state/value_head.safetensors", err);
    if (st == RLHF_OK)
        st = rlhf__state_write_optim(t->optim, dir, "state/optimizer.safetensors", err);
    if (st == RLHF_OK && t->cast.critic)
        st = rlhf__state_write_optim(t->critic_optim, dir, "state/critic_optimizer.safetensors",
                                     err);
    if (st == RLHF_OK) st = rlhf__state_write_plugins(t, t->boundary.plugin, dir, err);
    if (st == RLHF_OK && t->reward_training)
        st = rlhf__reward_training_save(t->reward_training, dir, err);
    if (st == RLHF_OK) st = rlhf__state_write_run(t, t->boundary.run, dir, err);
    return st == RLHF_OK ? rlhf__folder_sync(dir, "state", err) : st;
}

// All files of the checkpoint, as the new directory `fresh`.
static rlhf_status write_files(struct rlhf__run *t, const struct rlhf__folder *all,
                               const char *fresh, struct rlhf__error *err) {
    struct rlhf__folder *dir = NULL, *state = NULL;
    rlhf_status st = rlhf__folder_remove(all, fresh, err); // left by a failure
    if (st == RLHF_OK) st = rlhf__folder_make(all, fresh, NULL, &dir, err);
    if (st == RLHF_OK) st = rlhf__folder_make(dir, "state", NULL, &state, err);
    if (st == RLHF_OK) st = write_model(t, all, dir, err);
    if (st == RLHF_OK) st = write_state(t, dir, err);
    if (st == RLHF_OK) st = rlhf__iteration_save(&t->iteration, dir, err);
    if (st == RLHF_OK) st = rlhf__folder_sync(dir, ".", err);
    rlhf__folder_close(state);
    rlhf__folder_close(dir);
    return st;
}

// Whether this checkpoint is the best so far goes into its own state. Only those that every run of
// this configuration writes take part, not those by time, signal or failure: else where a run was
// stopped would show in its state.
static void choose_best(struct rlhf__run *t) {
    const struct rlhf__checkpoint_config *c = &t->config->checkpoint;
    int planned = (c->every > 0 && t->count.phase % c->every == 0) ||
                  t->count.phase >= t->count.phases || t->count.stop;
    if (planned && !rlhf__best_offer(&t->best, c, t->count.phase))
        rlhf__logf(
            t->report.log, RLHF_LOG_WARN,
            "checkpoint.best: the metric '%s' has no value in phase %lld, so this checkpoint "
            "cannot be the best",
            c->best, (long long)t->count.phase);
}

// The best link is set again each time, as a crash may have come between.
static rlhf_status point_best(const struct rlhf__run *t, const struct rlhf__folder *all,
                              struct rlhf__error *err) {
    if (!t->config->checkpoint.best[0] || t->best.phase <= 0) return RLHF_OK;
    return rlhf__checkpoint_dir_best(all, t->best.phase, err);
}

static rlhf_status save(struct rlhf__run *t, const struct rlhf__folder *all,
                        struct rlhf__error *err) {
    char fresh[64];
    snprintf(fresh, sizeof fresh, ".writing-%06lld", (long long)t->count.phase);
    if (rlhf__checkpoint_dir_is_latest(all, t->count.phase)) return RLHF_OK; // written already
    choose_best(t);
    rlhf_status st = rlhf__metrics_sync(t->report.metrics, err);
    if (st == RLHF_OK) st = rlhf__samples_sync(t->report.samples, err);
    if (st == RLHF_OK && t->report.rollout_log)
        st = rlhf__rollout_log_sync(t->report.rollout_log, err);
    if (st == RLHF_OK) st = write_files(t, all, fresh, err);
    if (st == RLHF_OK)
        st = rlhf__checkpoint_dir_commit(all, fresh, t->count.phase, t->report.log, err);
    if (st != RLHF_OK) rlhf__folder_remove(all, fresh, NULL);
    if (st == RLHF_OK) st = point_best(t, all, err);
    if (st == RLHF_OK)
        rlhf__checkpoint_dir_prune(all, t->count.phase, t->config->checkpoint.keep, t->report.log);
    return st;
}

rlhf_status rlhf__checkpoint_save(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__folder *all = NULL;
    rlhf_status st = rlhf__folder_make(t->req->dir->root, "checkpoints", NULL, &all, err);
    if (st == RLHF_OK) st = save(t, all, err);
    rlhf__folder_close(all);
    if (st == RLHF_OK) return RLHF_OK;
    return rlhf__error_context(err, "the checkpoint of phase %lld was not written",
                               (long long)t->count.phase);
}

rlhf_status rlhf__checkpoint_mend(const struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__folder *all = NULL;
    rlhf_status st = rlhf__folder_open(t->req->dir->root, "checkpoints", &all, err);
    if (st == RLHF_OK) st = point_best(t, all, err);
    if (st == RLHF_OK && t->count.phase < t->count.phases)
        st = rlhf__checkpoint_dir_roll_back(all, t->count.phase, t->report.log, err);
    rlhf__folder_close(all);
    return st;
}

static rlhf_status load_weights(struct rlhf__run *t, const char *dir, struct rlhf__error *err) {
    char path[4400];
    struct rlhf__model *value = value_model(t);
    in_state(path, dir, "master.safetensors");
    if (!rlhf__is_file(path)) snprintf(path, sizeof path, "%s/model.safetensors", dir);
    rlhf_status st = rlhf__params_read_file(t->cast.policy, path, RLHF_PARAM_TRUNK, err);
    if (st == RLHF_OK) st = rlhf__params_read_file(t->cast.policy, path, RLHF_PARAM_SCORE, err);
    if (st == RLHF_OK && t->cast.critic)
        st = rlhf__params_read_file(t->cast.critic, in_state(path, dir, "critic.safetensors"),
                                    RLHF_PARAM_TRUNK, err);
    if (st == RLHF_OK && rlhf__params_has(value, RLHF__PART_VALUE))
        st = rlhf__params_read_file(value, in_state(path, dir, "value_head.safetensors"),
                                    RLHF_PARAM_VALUE, err);
    if (st == RLHF_OK) st = rlhf__model_refresh(t->cast.policy, err);
    return st == RLHF_OK && t->cast.critic ? rlhf__model_refresh(t->cast.critic, err) : st;
}

rlhf_status rlhf__checkpoint_load(struct rlhf__run *t, struct rlhf__error *err) {
    char state[4300], path[4400];
    const char *dir = t->req->dir->checkpoint;
    snprintf(state, sizeof state, "%s/state", dir);
    rlhf_status st = load_weights(t, dir, err);
    if (st == RLHF_OK)
        st = rlhf__state_read_optim(t->optim, in_state(path, dir, "optimizer.safetensors"), err);
    if (st == RLHF_OK && t->cast.critic)
        st = rlhf__state_read_optim(t->critic_optim,
                                    in_state(path, dir, "critic_optimizer.safetensors"), err);
    if (st == RLHF_OK) st = rlhf__state_read_plugins(t, state, err);
    if (st == RLHF_OK && t->reward_training)
        st = rlhf__reward_training_load(t->reward_training, state, err);
    if (st == RLHF_OK) st = rlhf__iteration_load(&t->iteration, dir, err);
    return st == RLHF_OK ? rlhf__state_read_run(t, state, err) : st;
}
