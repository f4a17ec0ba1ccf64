// iteration_state.c: what an outer loop leaves in a checkpoint; see rlhf__iteration_save.
#include "base/file.h"
#include "model/parameters.h"
#include "run/iteration.h"
#include "run/reward_round.h"
#include "run/state_file.h"

#include <stdio.h>

#define STATE_FORMAT 1

static const char *in_dir(char out[4400], const char *dir, const char *name) {
    snprintf(out, 4400, "%s/%s", dir, name);
    return out;
}

// ---- writing ----

static rlhf_status write_numbers(const struct rlhf__iteration *it, const struct rlhf__folder *dir,
                                 struct rlhf__error *err) {
    json_t *v = json_pack("{s:i, s:I}", "format", STATE_FORMAT, "syncs", (json_int_t)it->syncs);
    if (v && it->round) {
        const struct rlhf__optim *o = it->round->optim;
        json_object_set_new(v, "reward_optim",
                            json_pack("{s:I, s:I, s:I}", "step", (json_int_t)o->step, "skipped",
                                      (json_int_t)o->skipped, "skipped_in_a_row",
                                      (json_int_t)o->skipped_row));
    }
    return rlhf__json_save_new(dir, "state/iteration.json", v, 0, err);
}

static rlhf_status write_round(const struct rlhf__iteration *it, const struct rlhf__folder *dir,
                               struct rlhf__error *err) {
    const struct rlhf__reward_round *r = it->round;
    struct rlhf__folder *model = NULL;
    rlhf_status st = rlhf__replay_write(&it->replay, dir, "state/replay.bin", err);
    if (st == RLHF_OK)
        st = rlhf__state_write_optim(r->optim, dir, "state/reward_optimizer.safetensors", err);
    if (st == RLHF_OK) st = rlhf__folder_make(dir, "reward_model", NULL, &model, err);
    if (st == RLHF_OK) st = rlhf__reward_model_write(r->rm, model, err);
    rlhf__folder_close(model);
    return st;
}

rlhf_status rlhf__iteration_save(const struct rlhf__iteration *it, const struct rlhf__folder *dir,
                                 struct rlhf__error *err) {
    if (it->syncs == 0 && !it->round) return RLHF_OK;
    rlhf_status st = write_numbers(it, dir, err);
    if (st == RLHF_OK && it->syncs > 0 && it->cast->reference)
        st = rlhf__params_write(it->cast->reference, RLHF__PART_MODEL, RLHF_F32, dir,
                                "state/reference.safetensors", err);
    return st == RLHF_OK && it->round ? write_round(it, dir, err) : st;
}

// ---- reading ----

static rlhf_status read_numbers(struct rlhf__iteration *it, const char *path,
                                struct rlhf__error *err) {
    json_t *v = NULL;
    json_error_t why;
    int format = 0;
    json_int_t syncs = 0, step = 0, skipped = 0, row = 0;
    rlhf_status st = rlhf__json_load(path, &v, err);
    if (st != RLHF_OK) return st;
    if (json_unpack_ex(v, &why, 0, "{s:i, s:I}", "format", &format, "syncs", &syncs) != 0 ||
        (it->round && json_unpack_ex(v, &why, 0, "{s:{s:I, s:I, s:I}}", "reward_optim", "step",
                                     &step, "skipped", &skipped, "skipped_in_a_row", &row) != 0))
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: %s", path, why.text);
    else if (format != STATE_FORMAT)
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: format is %d, this host reads %d", path, format,
                        STATE_FORMAT);
    else if (syncs < 0 || step < 0 || skipped < 0 || row < 0)
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: a counter is negative", path);
    json_decref(v);
    if (st != RLHF_OK) return st;
    it->syncs = (uint64_t)syncs;
    if (!it->round) return RLHF_OK;
    it->round->optim->step = step;
    it->round->optim->skipped = skipped;
    it->round->optim->skipped_row = row;
    return RLHF_OK;
}

static rlhf_status read_reward_model(struct rlhf__reward_model *rm, const char *dir,
                                     struct rlhf__error *err) {
    char path[4500];
    json_t *config = NULL;
    int found = 0;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    rlhf_status st = rlhf__hf_config_read(dir, &config, err);
    if (st == RLHF_OK) st = rlhf__reward_head_read(config, dir, &rm->head, &found, err);
    json_decref(config);
    if (st == RLHF_OK) st = rlhf__params_read_file(rm->model, path, RLHF_PARAM_TRUNK, err);
    if (st == RLHF_OK) st = rlhf__params_read_file(rm->model, path, RLHF_PARAM_SCORE, err);
    return st == RLHF_OK ? rlhf__model_refresh(rm->model, err) : st;
}

static rlhf_status read_round(struct rlhf__iteration *it, const char *dir,
                              struct rlhf__error *err) {
    char path[4400];
    rlhf_status st = rlhf__replay_read(&it->replay, in_dir(path, dir, "state/replay.bin"),
                                       it->cast->policy->info.n_vocab, err);
    if (st == RLHF_OK)
        st = rlhf__state_read_optim(it->round->optim,
                                    in_dir(path, dir, "state/reward_optimizer.safetensors"), err);
    if (st != RLHF_OK) return st;
    return read_reward_model(it->round->rm, in_dir(path, dir, "reward_model"), err);
}

rlhf_status rlhf__iteration_load(struct rlhf__iteration *it, const char *dir,
                                 struct rlhf__error *err) {
    char path[4400];
    in_dir(path, dir, "state/iteration.json");
    if (!it->round && !rlhf__is_file(path)) return RLHF_OK;
    rlhf_status st = read_numbers(it, path, err);
    if (st == RLHF_OK && it->syncs > 0 && it->cast->reference) {
        if (!(it->cast->plan.flags & RLHF_PLAN_MOVES_REFERENCE))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the reference of this run was moved, but %s with these options "
                              "leaves it where it is",
                              path, it->cast->algo->plugin->file);
        in_dir(path, dir, "state/reference.safetensors");
        st = rlhf__params_read_file(it->cast->reference, path, RLHF_PARAM_TRUNK, err);
        if (st == RLHF_OK) st = rlhf__model_refresh(it->cast->reference, err);
    }
    return st == RLHF_OK && it->round ? read_round(it, dir, err) : st;
}
