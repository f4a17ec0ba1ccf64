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

static int exports_bf16(const struct rlhf__trainer *t) {
    return t->config->checkpoint.dtype == RLHF__CHECKPOINT_BF16;
}

static rlhf_status write_files(struct rlhf__trainer *t, const char *dir, struct rlhf__error *err) {
    char path[4400], state[4300];
    snprintf(state, sizeof state, "%s/state", dir);
    rlhf_status st = rlhf__make_dirs(state, err);
    if (st == RLHF_OK) st = rlhf__hf_config_write(dir, t->policy->config, err);
    if (st == RLHF_OK) st = rlhf__hf_copy_tokenizer(t->policy->dir, dir, err);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (st == RLHF_OK)
        st = rlhf__params_write(t->policy, RLHF__PART_MODEL, exports_bf16(t) ? RLHF_BF16 : RLHF_F32,
                                path, err);
    snprintf(path, sizeof path, "%s/master.safetensors", state);
    if (st == RLHF_OK && exports_bf16(t))
        st = rlhf__params_write(t->policy, RLHF__PART_MODEL, RLHF_F32, path, err);
    snprintf(path, sizeof path, "%s/value_head.safetensors", state);
    if (st == RLHF_OK && rlhf__params_has(t->policy, RLHF__PART_VALUE))
        st = rlhf__params_write(t->policy, RLHF__PART_VALUE, RLHF_F32, path, err);
    if (st == RLHF_OK) st = rlhf__state_write_optim(t, state, err);
    if (st == RLHF_OK) st = rlhf__state_write_plugins(t, state, err);
    if (st == RLHF_OK) st = rlhf__state_write_run(t, state, err);
    if (st == RLHF_OK) st = rlhf__sync_dir(state, err);
    return st == RLHF_OK ? rlhf__sync_dir(dir, err) : st;
}

static rlhf_status rename_or_fail(const char *from, const char *to, struct rlhf__error *err) {
    if (rename(from, to) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "cannot rename '%s' to '%s': %s", from, to, strerror(errno));
}

// checkpoints/latest -> name, replaced in one step.
static rlhf_status point_latest(const char *root, const char *name, struct rlhf__error *err) {
    char link[4200], fresh[4200];
    snprintf(link, sizeof link, "%s/latest", root);
    snprintf(fresh, sizeof fresh, "%s/.latest", root);
    unlink(fresh);
    if (symlink(name, fresh) != 0)
        return rlhf__fail(err, RLHF_E_IO, "cannot create the link '%s': %s", fresh,
                          strerror(errno));
    return rename_or_fail(fresh, link, err);
}

// The number of a checkpoint's directory name, -1 when it is none.
static int64_t number_of(const char *name) {
    if (strspn(name, "0123456789") != strlen(name) || strlen(name) < 6) return -1;
    return strtoll(name, NULL, 10);
}

// Remove the oldest checkpoints until `keep` are left; 0 keeps all.
static rlhf_status prune(const char *root, int64_t keep, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    while (keep > 0 && st == RLHF_OK) {
        DIR *d = opendir(root);
        if (!d) return RLHF_OK;
        int64_t count = 0, oldest = INT64_MAX;
        char name[256] = "", path[4500];
        for (struct dirent *e; (e = readdir(d)) != NULL;) {
            int64_t n = number_of(e->d_name);
            if (n < 0) continue;
            count++;
            if (n >= oldest) continue;
            oldest = n;
            snprintf(name, sizeof name, "%s", e->d_name);
        }
        closedir(d);
        if (count <= keep) return RLHF_OK;
        snprintf(path, sizeof path, "%s/%s", root, name);
        st = rlhf__remove_tree(path, err);
    }
    return st;
}

rlhf_status rlhf__checkpoint_save(struct rlhf__trainer *t, struct rlhf__error *err) {
    char root[4120], dir[4200], fresh[4200], name[32];
    snprintf(root, sizeof root, "%s/checkpoints", t->dir);
    snprintf(name, sizeof name, "%06lld", (long long)t->phase);
    snprintf(dir, sizeof dir, "%s/%s", root, name);
    snprintf(fresh, sizeof fresh, "%s/.writing-%s", root, name);
    rlhf_status st = rlhf__make_dirs(root, err);
    if (st == RLHF_OK) st = rlhf__remove_tree(fresh, err); // left by a crash
    if (st == RLHF_OK) st = rlhf__metrics_sync(t->metrics, err);
    if (st == RLHF_OK) st = rlhf__samples_sync(t->samples, err);
    if (st == RLHF_OK) st = write_files(t, fresh, err);
    if (st == RLHF_OK) st = rlhf__remove_tree(dir, err); // of an earlier try, beyond `latest`
    if (st == RLHF_OK) st = rename_or_fail(fresh, dir, err);
    if (st == RLHF_OK) st = point_latest(root, name, err);
    if (st == RLHF_OK) st = rlhf__sync_dir(root, err);
    if (st == RLHF_OK) return prune(root, t->config->checkpoint.keep, err);
    rlhf__remove_tree(fresh, NULL);
    return rlhf__error_context(err, "the checkpoint of phase %lld was not written",
                               (long long)t->phase);
}

static rlhf_status load_weights(struct rlhf__trainer *t, const char *dir, const char *state,
                                struct rlhf__error *err) {
    char path[4300];
    snprintf(path, sizeof path, "%s/master.safetensors", state);
    if (!rlhf__is_file(path)) {
        if (exports_bf16(t))
            rlhf__logf(t->log, RLHF_LOG_INFO,
                       "%s: no master.safetensors, reading model.safetensors", dir);
        snprintf(path, sizeof path, "%s/model.safetensors", dir);
    }
    rlhf_status st = rlhf__params_read_file(t->policy, path, RLHF_PARAM_TRUNK, err);
    if (st == RLHF_OK) st = rlhf__params_read_file(t->policy, path, RLHF_PARAM_SCORE, err);
    snprintf(path, sizeof path, "%s/value_head.safetensors", state);
    if (st == RLHF_OK && rlhf__params_has(t->policy, RLHF__PART_VALUE))
        st = rlhf__params_read_file(t->policy, path, RLHF_PARAM_VALUE, err);
    return st == RLHF_OK ? rlhf__model_refresh(t->policy, err) : st;
}

rlhf_status rlhf__checkpoint_load(struct rlhf__trainer *t, struct rlhf__error *err) {
    char dir[4200], state[4250];
    snprintf(dir, sizeof dir, "%s/checkpoints/latest", t->req->resume);
    snprintf(state, sizeof state, "%s/state", dir);
    if (!rlhf__is_dir(state))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "'%s' has no checkpoint to resume from: %s is missing", t->req->resume,
                          state);
    rlhf_status st = load_weights(t, dir, state, err);
    if (st == RLHF_OK) st = rlhf__state_read_optim(t, state, err);
    if (st == RLHF_OK) st = rlhf__state_read_plugins(t, state, err);
    return st == RLHF_OK ? rlhf__state_read_run(t, state, err) : st;
}
