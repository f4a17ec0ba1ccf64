// checkpoint.c: see checkpoint.h.
#include "train/checkpoint.h"

#include "base/file.h"
#include "model/parameters.h"
#include "train/state_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The model whose value head is trained: the critic, or the policy.
static struct rlhf__model *value_model(const struct rlhf__trainer *t) {
    return t->critic ? t->critic : t->policy;
}

// state/<name> of a checkpoint.
static const char *in_state(char out[4400], const char *dir, const char *name) {
    snprintf(out, 4400, "%s/state/%s", dir, name);
    return out;
}

// Whether a fresh checkpoint needs the exact weights beside the exported ones.
static int needs_master(const struct rlhf__trainer *t) {
    return t->config->checkpoint.dtype == RLHF__CHECKPOINT_BF16;
}

static rlhf_status write_model(struct rlhf__trainer *t, const char *dir, struct rlhf__error *err) {
    char path[4400];
    int32_t dtype = needs_master(t) ? RLHF_BF16 : RLHF_F32;
    rlhf_status st = RLHF_OK;
    if (t->reward_training) st = rlhf__reward_training_fit(t->reward_training, t->phase, err);
    if (st == RLHF_OK) st = rlhf__hf_set_dtype(t->policy->config, dtype, err);
    if (st == RLHF_OK) st = rlhf__hf_config_write(dir, t->policy->config, err);
    // A resumed run opened its policy in a checkpoint, which may be pruned by now.
    snprintf(path, sizeof path, "%s/checkpoints/latest", t->dir);
    if (st == RLHF_OK)
        st = rlhf__hf_copy_tokenizer(t->req->resume ? path : t->policy->dir, dir, err);
    if (st == RLHF_OK) st = rlhf__tokenizer_write_frame(t->policy->tok, dir, err);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    return st == RLHF_OK ? rlhf__params_write(t->policy, RLHF__PART_MODEL, dtype, path, err) : st;
}

static rlhf_status write_state(struct rlhf__trainer *t, const char *dir, struct rlhf__error *err) {
    char path[4400], state[4300];
    snprintf(state, sizeof state, "%s/state", dir);
    rlhf_status st = RLHF_OK;
    if (needs_master(t))
        st = rlhf__params_write(t->policy, RLHF__PART_MODEL, RLHF_F32,
                                in_state(path, dir, "master.safetensors"), err);
    if (st == RLHF_OK && t->critic)
        st = rlhf__params_write(t->critic, RLHF__PART_MODEL, RLHF_F32,
                                in_state(path, dir, "critic.safetensors"), err);
    if (st == RLHF_OK && rlhf__params_has(value_model(t), RLHF__PART_VALUE))
        st = rlhf__params_write(value_model(t), RLHF__PART_VALUE, RLHF_F32,
                                in_state(path, dir, "value_head.safetensors"), err);
    if (st == RLHF_OK)
        st = rlhf__state_write_optim(t->optim, in_state(path, dir, "optimizer.safetensors"), err);
    if (st == RLHF_OK && t->critic)
        st = rlhf__state_write_optim(t->critic_optim,
                                     in_state(path, dir, "critic_optimizer.safetensors"), err);
    if (st == RLHF_OK) st = rlhf__state_write_plugins(t, state, err);
    if (st == RLHF_OK && t->reward_training)
        st = rlhf__reward_training_save(t->reward_training, state, err);
    if (st == RLHF_OK) st = rlhf__state_write_run(t, state, err);
    return st == RLHF_OK ? rlhf__sync_dir(state, err) : st;
}

static rlhf_status write_files(struct rlhf__trainer *t, const char *dir, struct rlhf__error *err) {
    char state[4300];
    snprintf(state, sizeof state, "%s/state", dir);
    rlhf_status st = rlhf__make_dirs(state, err);
    if (st == RLHF_OK) st = write_model(t, dir, err);
    if (st == RLHF_OK) st = write_state(t, dir, err);
    if (st == RLHF_OK) st = rlhf__iteration_save(&t->iteration, dir, err);
    return st == RLHF_OK ? rlhf__sync_dir(dir, err) : st;
}

static rlhf_status rename_or_fail(const char *from, const char *to, struct rlhf__error *err) {
    if (rename(from, to) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "cannot rename '%s' to '%s': %s", from, to, strerror(errno));
}

// checkpoints/<link> -> name, replaced in one step.
static rlhf_status point(const char *root, const char *link, const char *name,
                         struct rlhf__error *err) {
    char path[4200], fresh[4200];
    snprintf(path, sizeof path, "%s/%s", root, link);
    snprintf(fresh, sizeof fresh, "%s/.%s", root, link);
    unlink(fresh);
    if (symlink(name, fresh) != 0)
        return rlhf__fail(err, RLHF_E_IO, "cannot create the link '%s': %s", fresh,
                          strerror(errno));
    return rename_or_fail(fresh, path, err);
}

// The two links. The best one is set again each time, as a crash may have come between.
static rlhf_status point_links(const struct rlhf__trainer *t, const char *root, const char *name,
                               struct rlhf__error *err) {
    char best[32];
    snprintf(best, sizeof best, "%06lld", (long long)t->best.phase);
    rlhf_status st = point(root, "latest", name, err);
    if (st == RLHF_OK && t->config->checkpoint.best[0] && t->best.phase > 0)
        st = point(root, "best", best, err);
    return st == RLHF_OK ? rlhf__sync_dir(root, err) : st;
}

// The number of a checkpoint's directory name, -1 when it is none.
static int64_t number_of(const char *name) {
    if (strspn(name, "0123456789") != strlen(name) || strlen(name) < 6) return -1;
    return strtoll(name, NULL, 10);
}

// The number of the checkpoint that checkpoints/best names, -1 when there is none.
static int64_t best_of(const char *root) {
    char path[4200], name[256];
    snprintf(path, sizeof path, "%s/best", root);
    ssize_t n = readlink(path, name, sizeof name - 1);
    if (n <= 0) return -1;
    name[n] = '\0';
    return number_of(name);
}

// Remove the oldest checkpoints until `keep` are left, besides the best one; 0 keeps all.
static rlhf_status prune(const char *root, int64_t keep, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    int64_t best = best_of(root);
    while (keep > 0 && st == RLHF_OK) {
        DIR *d = opendir(root);
        if (!d) return RLHF_OK;
        int64_t count = 0, oldest = INT64_MAX, newer = 0;
        int best_here = 0;
        char name[256] = "", path[4500];
        for (struct dirent *e; (e = readdir(d)) != NULL;) {
            int64_t n = number_of(e->d_name);
            if (n < 0) continue;
            count += n != best;
            best_here |= n == best;
            newer += n > best;
            if (n == best || n >= oldest) continue;
            oldest = n;
            snprintf(name, sizeof name, "%s", e->d_name);
        }
        closedir(d);
        // The best one is one of the newest when fewer than `keep` are newer.
        if (count + (best_here && newer < keep) <= keep) return RLHF_OK;
        snprintf(path, sizeof path, "%s/%s", root, name);
        st = rlhf__remove_tree(path, err);
    }
    return st;
}

// Whether this checkpoint is the best so far goes into its own state.
static void choose_best(struct rlhf__trainer *t) {
    const struct rlhf__checkpoint_config *c = &t->config->checkpoint;
    if (!rlhf__best_offer(&t->best, c, t->phase))
        rlhf__logf(
            t->log, RLHF_LOG_WARN,
            "checkpoint.best: the metric '%s' has no value in phase %lld, so this checkpoint "
            "cannot be the best",
            c->best, (long long)t->phase);
}

rlhf_status rlhf__checkpoint_save(struct rlhf__trainer *t, struct rlhf__error *err) {
    char root[4120], dir[4200], fresh[4200], name[32];
    snprintf(root, sizeof root, "%s/checkpoints", t->dir);
    snprintf(name, sizeof name, "%06lld", (long long)t->phase);
    snprintf(dir, sizeof dir, "%s/%s", root, name);
    snprintf(fresh, sizeof fresh, "%s/.writing-%s", root, name);
    choose_best(t);
    rlhf_status st = rlhf__make_dirs(root, err);
    if (st == RLHF_OK) st = rlhf__remove_tree(fresh, err); // left by a crash
    if (st == RLHF_OK) st = rlhf__metrics_sync(t->metrics, err);
    if (st == RLHF_OK) st = rlhf__samples_sync(t->samples, err);
    if (st == RLHF_OK && t->rollout_log) st = rlhf__rollout_log_sync(t->rollout_log, err);
    if (st == RLHF_OK) st = write_files(t, fresh, err);
    if (st == RLHF_OK) st = rlhf__remove_tree(dir, err); // of an earlier try, beyond `latest`
    if (st == RLHF_OK) st = rename_or_fail(fresh, dir, err);
    if (st == RLHF_OK) st = point_links(t, root, name, err);
    if (st == RLHF_OK) return prune(root, t->config->checkpoint.keep, err);
    rlhf__remove_tree(fresh, NULL);
    return rlhf__error_context(err, "the checkpoint of phase %lld was not written",
                               (long long)t->phase);
}

static rlhf_status load_weights(struct rlhf__trainer *t, const char *dir, struct rlhf__error *err) {
    char path[4400];
    struct rlhf__model *value = value_model(t);
    in_state(path, dir, "master.safetensors");
    if (!rlhf__is_file(path)) snprintf(path, sizeof path, "%s/model.safetensors", dir);
    rlhf_status st = rlhf__params_read_file(t->policy, path, RLHF_PARAM_TRUNK, err);
    if (st == RLHF_OK) st = rlhf__params_read_file(t->policy, path, RLHF_PARAM_SCORE, err);
    if (st == RLHF_OK && t->critic)
        st = rlhf__params_read_file(t->critic, in_state(path, dir, "critic.safetensors"),
                                    RLHF_PARAM_TRUNK, err);
    if (st == RLHF_OK && rlhf__params_has(value, RLHF__PART_VALUE))
        st = rlhf__params_read_file(value, in_state(path, dir, "value_head.safetensors"),
                                    RLHF_PARAM_VALUE, err);
    if (st == RLHF_OK) st = rlhf__model_refresh(t->policy, err);
    return st == RLHF_OK && t->critic ? rlhf__model_refresh(t->critic, err) : st;
}

rlhf_status rlhf__checkpoint_load(struct rlhf__trainer *t, struct rlhf__error *err) {
    char dir[4200], state[4300], path[4400];
    snprintf(dir, sizeof dir, "%s/checkpoints/latest", t->req->resume);
    snprintf(state, sizeof state, "%s/state", dir);
    if (!rlhf__is_dir(state))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "'%s' has no checkpoint to resume from: %s is missing", t->req->resume,
                          state);
    rlhf_status st = load_weights(t, dir, err);
    if (st == RLHF_OK)
        st = rlhf__state_read_optim(t->optim, in_state(path, dir, "optimizer.safetensors"), err);
    if (st == RLHF_OK && t->critic)
        st = rlhf__state_read_optim(t->critic_optim,
                                    in_state(path, dir, "critic_optimizer.safetensors"), err);
    if (st == RLHF_OK) st = rlhf__state_read_plugins(t, state, err);
    if (st == RLHF_OK && t->reward_training)
        st = rlhf__reward_training_load(t->reward_training, state, err);
    if (st == RLHF_OK) st = rlhf__iteration_load(&t->iteration, dir, err);
    return st == RLHF_OK ? rlhf__state_read_run(t, state, err) : st;
}
