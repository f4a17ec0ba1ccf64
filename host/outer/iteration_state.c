// iteration_state.c: what an outer loop leaves in a checkpoint; see rlhf__iteration_save.
#include "base/file.h"
#include "base/json.h"
#include "learn/optim_state.h"
#include "model/parameters.h"
#include "outer/iteration.h"
#include "outer/reward_round.h"

#define STATE_FORMAT 1

// ---- writing ----

static rlhf_status write_numbers(const struct rlhf__iteration *it, const struct rlhf__folder *dir,
                                 struct rlhf__error *err) {
    json_t *v = json_pack("{s:i, s:I}", "format", STATE_FORMAT, "syncs", (json_int_t)it->syncs);
    if (v && it->round)
        json_object_set_new(v, "reward_optim", rlhf__optim_count_save(&it->round->optim->count));
    return rlhf__json_save_new(dir, "state/iteration.json", v, 0, err);
}

static rlhf_status write_round(const struct rlhf__iteration *it, const struct rlhf__folder *dir,
                               struct rlhf__error *err) {
    const struct rlhf__reward_round *r = it->round;
    struct rlhf__folder *model = NULL;
    rlhf_status st = rlhf__replay_write(&it->replay, dir, "state/replay.bin", err);
    if (st == RLHF_OK)
        st = rlhf__optim_write(r->optim, dir, "state/reward_optimizer.safetensors", err);
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

static rlhf_status take_numbers(struct rlhf__iteration *it, const json_t *v,
                                struct rlhf__error *err) {
    int64_t format = 0, syncs = 0;
    const struct rlhf__json_count list[] = {{"format", &format}, {"syncs", &syncs}};
    RLHF_TRY(rlhf__json_counts(v, list, 2, err));
    if (format != STATE_FORMAT)
        return rlhf__fail(err, RLHF_E_INVALID, "format is %lld, this host reads %d",
                          (long long)format, STATE_FORMAT);
    it->syncs = (uint64_t)syncs;
    if (!it->round) return RLHF_OK;
    return rlhf__optim_count_load(&it->round->optim->count, json_object_get(v, "reward_optim"),
                                  err);
}

static rlhf_status read_numbers(struct rlhf__iteration *it, const char *path,
                                struct rlhf__error *err) {
    json_t *v = NULL;
    RLHF_TRY(rlhf__json_load(path, &v, err));
    rlhf_status st = take_numbers(it, v, err);
    json_decref(v);
    return st == RLHF_OK ? st : rlhf__error_context(err, "%s", path);
}

static rlhf_status read_reward_model(struct rlhf__reward_model *rm, const char *dir,
                                     struct rlhf__error *err) {
    char path[4500];
    json_t *config = NULL;
    int found = 0;
    rlhf__path_in(path, sizeof path, dir, "config.json");
    rlhf_status st = rlhf__hf_config_read(dir, &config, err);
    if (st == RLHF_OK) st = rlhf__reward_head_read(config, path, &rm->head, &found, err);
    json_decref(config);
    rlhf__path_in(path, sizeof path, dir,
                  rm->model->peft.rank > 0 ? RLHF__PEFT_WEIGHTS : "model.safetensors");
    if (st == RLHF_OK) st = rlhf__params_read_back(rm->model, path, err);
    return st == RLHF_OK ? rlhf__model_refresh(rm->model, err) : st;
}

static rlhf_status read_round(struct rlhf__iteration *it, const char *dir,
                              struct rlhf__error *err) {
    char path[4400];
    rlhf_status st =
        rlhf__replay_read(&it->replay, rlhf__path_in(path, sizeof path, dir, "state/replay.bin"),
                          it->cast->policy->info.n_vocab, err);
    if (st == RLHF_OK)
        st = rlhf__optim_read(
            it->round->optim,
            rlhf__path_in(path, sizeof path, dir, "state/reward_optimizer.safetensors"), err);
    if (st != RLHF_OK) return st;
    return read_reward_model(it->round->rm, rlhf__path_in(path, sizeof path, dir, "reward_model"),
                             err);
}

rlhf_status rlhf__iteration_load(struct rlhf__iteration *it, const char *dir,
                                 struct rlhf__error *err) {
    char path[4400];
    rlhf__path_in(path, sizeof path, dir, "state/iteration.json");
    if (!it->round && !rlhf__is_file(path)) return RLHF_OK;
    rlhf_status st = read_numbers(it, path, err);
    if (st == RLHF_OK && it->syncs > 0 && it->cast->reference) {
        if (!(it->cast->plan.flags & RLHF_PLAN_MOVES_REFERENCE))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the reference of this run was moved, but %s with these options "
                              "leaves it where it is",
                              path, it->cast->algo->plugin->file);
        rlhf__path_in(path, sizeof path, dir, "state/reference.safetensors");
        st = rlhf__params_read_back(it->cast->reference, path, err);
        if (st == RLHF_OK) st = rlhf__model_refresh(it->cast->reference, err);
    }
    return st == RLHF_OK && it->round ? read_round(it, dir, err) : st;
}
