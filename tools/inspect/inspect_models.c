// inspect_models.c: see inspect_models.h.
#include "inspect/inspect_models.h"

#include "base/json.h"
#include "base/printable.h"
#include "model/adapter.h"
#include "model/parameters.h"
#include "weights/run_checkpoint.h"

#include <stdio.h>
#include <string.h>

// Set *dir to the directory that a flag names: a model directory, or the checkpoint of a run.
static rlhf_status resolve(const struct rlhf__command_setup *w, const char *flag, const char *given,
                           char room[RLHF__PATH_CAP], const char **dir, struct rlhf__error *err) {
    *dir = rlhf__dirs_shared(w->env->dirs, given, room);
    return rlhf__run_model(flag, dir, room, w->env->log, err);
}

static void put_name(char out[128], const char *given) {
    char path[RLHF__PATH_CAP];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", given);
    if (n >= sizeof path) n = sizeof path - 1;
    while (n > 1 && path[n - 1] == '/')
        path[--n] = 0;
    rlhf__printable(rlhf__path_checkpoint(path), out, 128);
}

static rlhf_status in_flag(const char *flag, rlhf_status st, struct rlhf__error *err) {
    const int bad = st == RLHF_E_INVALID || st == RLHF_E_UNSUPPORTED;
    return bad ? rlhf__error_context(err, "%s", flag) : st;
}

static rlhf_status is_reward(const char *dir, const struct rlhf__model_adapter *adapter, int *yes,
                             struct rlhf__error *err) {
    json_t *config = NULL;
    RLHF_TRY(rlhf__adapter_config_of(dir, adapter, &config, err));
    *yes = rlhf__reward_model_is(config);
    json_decref(config);
    return RLHF_OK;
}

// Open a language model, or a reward model if *reward is set, into slot k.
static rlhf_status open_one(struct rlhf__inspect_models *o, struct rlhf__command_setup *w,
                            uint32_t k, const char *dir, const struct rlhf__model_adapter *adapter,
                            int reward, struct rlhf__subject_model *of, struct rlhf__error *err) {
    of->gain = 1;
    if (reward) {
        const struct rlhf__reward_model_spec spec = {.dir = dir, .adapter = *adapter};
        RLHF_TRY(rlhf__reward_model_open(&w->session.models, &spec, &o->reward[k], err));
        of->model = o->reward[k]->model;
        of->gain = o->reward[k]->head.gain;
        of->bias = o->reward[k]->head.bias;
        return RLHF_OK;
    }
    const struct rlhf__model_spec spec = {.dir = dir,
                                          .adapter = *adapter,
                                          .role = k ? "tuned model" : "base model",
                                          .frozen = 1,
                                          .tokens_only = 1,
                                          .language = 1};
    RLHF_TRY(rlhf__model_open(&w->session.models, &spec, &o->model[k], err));
    of->model = o->model[k];
    return rlhf__model_writes(o->model[k], err);
}

rlhf_status rlhf__inspect_find_base(const struct rlhf__dirs *dirs, const char *tuned,
                                    const char *under, const json_t *config,
                                    char base[RLHF__PATH_CAP], struct rlhf__error *err) {
    const char *path =
        json_string_value(json_object_get(json_object_get(config, "policy"), "path"));
    if (under)
        rlhf__path_put(base, "%s", under);
    else if (path && *path)
        rlhf__path_put(base, "%s", path);
    else if (config)
        rlhf__default_model(dirs, "policy", base);
    else
        return rlhf__fail(err, RLHF_E_INVALID,
                          "inspect: --base is missing, and '%s' is not a run or an adapter "
                          "that says which model it was made from",
                          tuned);
    return RLHF_OK;
}

// Find the base of a model that was opened from `dir`.
static rlhf_status base_of(const struct rlhf__command_setup *w, const struct rlhf__model *tuned,
                           const char *given, const char *dir, char room[RLHF__PATH_CAP],
                           struct rlhf__error *err) {
    const char *under = tuned->peft.rank > 0 ? tuned->dir : NULL;
    json_t *config = NULL;
    if (!under) RLHF_TRY(rlhf__command_setup_run_config(w, dir, &config, err));
    const rlhf_status st = rlhf__inspect_find_base(w->env->dirs, given, under, config, room, err);
    json_decref(config);
    return st;
}

rlhf_status rlhf__inspect_open_pair(struct rlhf__inspect_models *o, struct rlhf__command_setup *w,
                                    const char *base, const char *tuned,
                                    struct rlhf__subject_model of[2], int32_t *explained,
                                    struct rlhf__error *err) {
    static const struct rlhf__model_adapter none;
    char room[2][RLHF__PATH_CAP];
    const char *dir, *from = room[0];
    int reward[2];
    RLHF_TRY(resolve(w, "--tuned", tuned, room[1], &dir, err));
    rlhf_status st = is_reward(dir, &w->adapter, &reward[1], err);
    if (st == RLHF_OK) st = open_one(o, w, 1, dir, &w->adapter, reward[1], &of[1], err);
    if (st != RLHF_OK) return in_flag("--tuned", st, err);
    if (of[1].model->peft.rank > 0 && !reward[1]) w->session.models.shared = o->model[1];
    if (base)
        RLHF_TRY(resolve(w, "--base", base, room[0], &from, err));
    else
        RLHF_TRY(base_of(w, of[1].model, tuned, dir, room[0], err));
    st = is_reward(from, &none, &reward[0], err);
    if (st == RLHF_OK && reward[0] != reward[1])
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "'%s' is a %s model, and --tuned '%s' is a %s model; both must be of one "
                        "kind",
                        from, reward[0] ? "reward" : "language", tuned,
                        reward[1] ? "reward" : "language");
    if (st == RLHF_OK) st = open_one(o, w, 0, from, &none, reward[0], &of[0], err);
    if (st != RLHF_OK) return in_flag("--base", st, err);
    put_name(o->name[0], base ? base : from);
    put_name(o->name[1], tuned);
    of[0].name = o->name[0];
    of[1].name = o->name[1];
    *explained = reward[1] ? RLHF__EXPLAINED_REWARD : RLHF__EXPLAINED_WORDS;
    return RLHF_OK;
}

rlhf_status rlhf__inspect_open_reward(struct rlhf__inspect_models *o, struct rlhf__command_setup *w,
                                      const char *given, struct rlhf__subject_model *of,
                                      struct rlhf__error *err) {
    char room[RLHF__PATH_CAP];
    const char *dir;
    RLHF_TRY(resolve(w, "--reward-model", given, room, &dir, err));
    const struct rlhf__reward_model_spec spec = {.dir = dir};
    struct rlhf__reward_model **rm = &o->reward[2];
    const rlhf_status st = rlhf__reward_model_open(&w->session.models, &spec, rm, err);
    if (st != RLHF_OK) return in_flag("--reward-model", st, err);
    put_name(o->name[2], given);
    *of =
        (struct rlhf__subject_model){(*rm)->model, (*rm)->head.gain, (*rm)->head.bias, o->name[2]};
    return RLHF_OK;
}

// ---- critics ----

rlhf_status rlhf__inspect_open_critic(struct rlhf__inspect_models *o, struct rlhf__command_setup *w,
                                      const char *given, struct rlhf__subject_model *of,
                                      struct rlhf__error *err) {
    char room[RLHF__PATH_CAP];
    const char *dir;
    RLHF_TRY(resolve(w, "--critic", given, room, &dir, err));
    rlhf_status st = rlhf__command_setup_critic(w, dir, &o->critic, err);
    if (st == RLHF_OK && !o->critic)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "'%s' has no value head (state/value_head.safetensors); checkpoints of "
                        "ppo.so have one",
                        dir);
    if (st != RLHF_OK) return in_flag("--critic", st, err);
    put_name(o->name[3], given);
    *of = (struct rlhf__subject_model){o->critic, 1, 0, o->name[3]};
    return RLHF_OK;
}

void rlhf__inspect_models_finish(struct rlhf__inspect_models *o) {
    rlhf__model_close(o->model[0]);
    rlhf__model_close(o->model[1]);
    rlhf__model_close(o->critic);
    for (int k = 0; k < 3; k++)
        rlhf__reward_model_close(o->reward[k]);
    memset(o, 0, sizeof *o);
}
