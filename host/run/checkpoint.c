// checkpoint.c: see checkpoint.h.
#include "run/checkpoint.h"

#include "base/file.h"
#include "keep/checkpoint_dir.h"
#include "keep/run_dir.h"
#include "learn/optim_state.h"
#include "model/adapter.h"
#include "model/parameters.h"
#include "run/run_state.h"
#include "sample/rollout.h"

#include <stdio.h>

// The model whose value head is trained: the critic, or the policy.
static struct rlhf__model *value_model(const struct rlhf__run *r) {
    return r->cast.critic ? r->cast.critic : r->cast.policy;
}

// Whether a fresh checkpoint needs the exact weights beside the exported ones.
static int needs_master(const struct rlhf__run *r) {
    return r->config->checkpoint.dtype == RLHF__CHECKPOINT_BF16;
}

// Where the tokenizer's files come from. A resumed run opened its policy in a checkpoint, which may
// be pruned by now.
static rlhf_status open_tokenizer(const struct rlhf__run *r, const struct rlhf__folder *all,
                                  struct rlhf__folder **out, struct rlhf__error *err) {
    char latest[256];
    if (r->req->resume && rlhf__folder_target(all, "latest", latest, sizeof latest))
        return rlhf__folder_open(all, latest, out, err);
    return rlhf__folder_open(NULL, r->cast.policy->text_dir, out, err);
}

// From now on the policy's responses end if it was trained on texts with an end token, or if its
// responses stopped at end tokens.
static void note_ends(struct rlhf__run *r) {
    const struct rlhf__cast *c = &r->cast;
    if (!rlhf__cast_pays(c) || rlhf__rollout_stops(&r->config->sampling, c->policy))
        json_object_del(c->policy->config, RLHF__STOP_AT_EOS_KEY);
}

static rlhf_status write_model(struct rlhf__run *r, const struct rlhf__folder *all,
                               const struct rlhf__folder *dir, struct rlhf__error *err) {
    struct rlhf__folder *tokenizer = NULL;
    int32_t dtype = needs_master(r) ? RLHF_BF16 : RLHF_F32;
    rlhf_status st = RLHF_OK;
    if (r->reward_training)
        st = rlhf__reward_training_calibrate(r->reward_training, r->count.phase, err);
    note_ends(r);
    if (st == RLHF_OK) st = rlhf__hf_set_dtype(r->cast.policy->config, dtype, err);
    if (st == RLHF_OK) st = rlhf__hf_config_write(dir, r->cast.policy->config, err);
    if (st == RLHF_OK) st = open_tokenizer(r, all, &tokenizer, err);
    if (st == RLHF_OK) st = rlhf__hf_copy_tokenizer(tokenizer, dir, err);
    rlhf__folder_close(tokenizer);
    if (st == RLHF_OK) st = rlhf__tokenizer_write_frame(r->cast.policy->tok, dir, err);
    if (st == RLHF_OK) st = rlhf__tokenizer_write_chat(r->cast.policy->tok, dir, err);
    if (st != RLHF_OK) return st;
    if (r->cast.policy->peft.rank > 0)
        return rlhf__adapter_write(r->cast.policy, dtype, 1, dir, err);
    return rlhf__params_write(r->cast.policy, RLHF__PART_MODEL, dtype, dir, "model.safetensors",
                              err);
}

static rlhf_status write_state(struct rlhf__run *r, const struct rlhf__folder *dir,
                               struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (needs_master(r))
        st = rlhf__params_write(r->cast.policy, RLHF__PART_MODEL, RLHF_F32, dir,
                                "state/master.safetensors", err);
    if (st == RLHF_OK && r->cast.critic)
        st = rlhf__params_write(r->cast.critic, RLHF__PART_MODEL, RLHF_F32, dir,
                                "state/critic.safetensors", err);
    if (st == RLHF_OK && rlhf__params_has(value_model(r), RLHF__PART_VALUE))
        st = rlhf__params_write(value_model(r), RLHF__PART_VALUE, RLHF_F32, dir,
                                "state/value_head.safetensors", err);
    if (st == RLHF_OK) st = rlhf__optim_write(r->optim, dir, "state/optimizer.safetensors", err);
    if (st == RLHF_OK && r->cast.critic)
        st = rlhf__optim_write(r->critic_optim, dir, "state/critic_optimizer.safetensors", err);
    if (st == RLHF_OK) st = rlhf__plugin_states_write(&r->boundary.plugins, dir, err);
    if (st == RLHF_OK && r->reward_training)
        st = rlhf__reward_training_save(r->reward_training, dir, err);
    if (st == RLHF_OK) st = rlhf__run_state_write(r, r->boundary.run, dir, err);
    return st == RLHF_OK ? rlhf__folder_sync(dir, "state", err) : st;
}

// All files of the checkpoint, as the new directory `fresh`.
static rlhf_status write_files(struct rlhf__run *r, const struct rlhf__folder *all,
                               const char *fresh, struct rlhf__error *err) {
    struct rlhf__folder *dir = NULL, *state = NULL;
    rlhf_status st = rlhf__folder_remove(all, fresh, err); // left by a failure
    if (st == RLHF_OK) st = rlhf__folder_make(all, fresh, NULL, &dir, err);
    if (st == RLHF_OK) st = rlhf__folder_make(dir, "state", NULL, &state, err);
    if (st == RLHF_OK) st = write_model(r, all, dir, err);
    if (st == RLHF_OK) st = write_state(r, dir, err);
    if (st == RLHF_OK) st = rlhf__iteration_save(&r->iteration, dir, err);
    if (st == RLHF_OK) st = rlhf__folder_sync(dir, ".", err);
    rlhf__folder_close(state);
    rlhf__folder_close(dir);
    return st;
}

// Whether this checkpoint is the best so far goes into its own state. Only those that every run of
// this configuration writes take part, not those by time, signal or failure: else where a run was
// stopped would show in its state.
static void choose_best(struct rlhf__run *r) {
    const struct rlhf__checkpoint_config *c = &r->config->checkpoint;
    int planned = (c->every > 0 && r->count.phase % c->every == 0) ||
                  r->count.phase >= r->count.phases || r->count.stop;
    if (planned && !rlhf__best_offer(&r->best, c, r->count.phase))
        rlhf__logf(
            r->report.log, RLHF_LOG_WARN,
            "checkpoint.best: the metric '%s' has no value in phase %lld, so this checkpoint "
            "cannot be the best",
            c->best, (long long)r->count.phase);
}

// The best link is set again each time, as a crash may have come between.
static rlhf_status point_best(const struct rlhf__run *r, const struct rlhf__folder *all,
                              struct rlhf__error *err) {
    if (!r->config->checkpoint.best[0] || r->best.phase <= 0) return RLHF_OK;
    return rlhf__checkpoint_dir_best(all, r->best.phase, err);
}

static rlhf_status save(struct rlhf__run *r, const struct rlhf__folder *all,
                        struct rlhf__error *err) {
    char fresh[64];
    snprintf(fresh, sizeof fresh, RLHF__CHECKPOINT_WRITING "%06lld", (long long)r->count.phase);
    if (rlhf__checkpoint_dir_is_latest(all, r->count.phase)) return RLHF_OK; // written already
    choose_best(r);
    rlhf_status st = rlhf__metrics_sync(r->report.metrics, err);
    if (st == RLHF_OK) st = rlhf__samples_sync(r->report.samples, err);
    if (st == RLHF_OK && r->report.rollout_log)
        st = rlhf__rollout_log_sync(r->report.rollout_log, err);
    if (st == RLHF_OK) st = write_files(r, all, fresh, err);
    if (st == RLHF_OK)
        st = rlhf__checkpoint_dir_commit(all, fresh, r->count.phase, r->report.log, err);
    if (st != RLHF_OK) rlhf__folder_remove(all, fresh, NULL);
    if (st == RLHF_OK) st = point_best(r, all, err);
    // Keep the previous one until the next is written: a process that found it by `latest` may be
    // reading it.
    const int64_t keep = r->config->checkpoint.keep;
    if (st == RLHF_OK)
        rlhf__checkpoint_dir_prune(all, r->count.phase, keep == 1 ? 2 : keep, r->report.log);
    return st;
}

void rlhf__checkpoint_end(const struct rlhf__run *r) {
    struct rlhf__folder *all = NULL;
    if (rlhf__folder_open(r->req->dir->root, "checkpoints", &all, NULL) != RLHF_OK) return;
    rlhf__checkpoint_dir_prune(all, r->count.phase, r->config->checkpoint.keep, r->report.log);
    rlhf__folder_close(all);
}

rlhf_status rlhf__checkpoint_save(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__folder *all = NULL;
    rlhf_status st = rlhf__folder_make(r->req->dir->root, "checkpoints", NULL, &all, err);
    if (st == RLHF_OK) st = save(r, all, err);
    rlhf__folder_close(all);
    if (st == RLHF_OK) return RLHF_OK;
    return rlhf__error_context(err, "the checkpoint of phase %lld was not written",
                               (long long)r->count.phase);
}

rlhf_status rlhf__checkpoint_mend(const struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__folder *all = NULL;
    rlhf_status st = rlhf__folder_open(r->req->dir->root, "checkpoints", &all, err);
    if (st == RLHF_OK) st = point_best(r, all, err);
    if (st == RLHF_OK && r->count.phase < r->count.phases)
        st = rlhf__checkpoint_dir_roll_back(all, r->count.phase, r->report.log, err);
    rlhf__folder_close(all);
    return st;
}

// NAME in the checkpoint that is gone on from, into `path`.
#define IN(name) rlhf__path_in(path, sizeof path, dir, name)

static rlhf_status load_weights(struct rlhf__run *r, const char *dir, struct rlhf__error *err) {
    char path[4400];
    const struct rlhf__cast *c = &r->cast;
    struct rlhf__model *value = value_model(r);
    if (!rlhf__is_file(IN("state/master.safetensors")))
        IN(c->policy->peft.rank > 0 ? RLHF__PEFT_WEIGHTS : "model.safetensors");
    RLHF_TRY(rlhf__params_read_back(c->policy, path, err));
    if (c->critic) RLHF_TRY(rlhf__params_read_back(c->critic, IN("state/critic.safetensors"), err));
    if (rlhf__params_has(value, RLHF__PART_VALUE))
        RLHF_TRY(rlhf__params_read_file(value, IN("state/value_head.safetensors"), RLHF_PARAM_VALUE,
                                        err));
    RLHF_TRY(rlhf__model_refresh(c->policy, err));
    return c->critic ? rlhf__model_refresh(c->critic, err) : RLHF_OK;
}

rlhf_status rlhf__checkpoint_load(struct rlhf__run *r, struct rlhf__error *err) {
    char path[4400];
    const char *dir = r->req->dir->checkpoint;
    RLHF_TRY(load_weights(r, dir, err));
    RLHF_TRY(rlhf__optim_read(r->optim, IN("state/optimizer.safetensors"), err));
    if (r->critic_optim)
        RLHF_TRY(rlhf__optim_read(r->critic_optim, IN("state/critic_optimizer.safetensors"), err));
    RLHF_TRY(rlhf__plugin_states_load(&r->cast, dir, err));
    if (r->reward_training) RLHF_TRY(rlhf__reward_training_load(r->reward_training, dir, err));
    RLHF_TRY(rlhf__iteration_load(&r->iteration, dir, err));
    return rlhf__run_state_load(r, dir, err);
}
