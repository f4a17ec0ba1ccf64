// checkpoint.c: see checkpoint.h.
#include "keep/checkpoint.h"

#include "base/file.h"
#include "base/json.h"
#include "feed/ahead.h"
#include "gguf/model_text.h"
#include "keep/reward_round.h"
#include "learn/optim_state.h"
#include "model/adapter.h"
#include "model/parameters.h"
#include "sample/response_rules.h"
#include "sample/rollout.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES ((uint64_t)1 << 30) // limit of a plugin's state

static struct rlhf__plugin_state *add(struct rlhf__plugin_states *s,
                                      const struct rlhf__instance *plugin) {
    struct rlhf__plugin_state *p = &s->item[s->n++];
    *p = (struct rlhf__plugin_state){.plugin = plugin, .bytes = RLHF__BUF_INIT};
    return p;
}

// List the plugins and their files. Does not call the plugins yet.
static rlhf_status list(struct rlhf__plugin_states *s, const struct rlhf__cast *cast,
                        struct rlhf__error *err) {
    *s = (struct rlhf__plugin_states){.item = calloc(cast->n_rewards + 2, sizeof *s->item)};
    if (!s->item) return RLHF__NOMEM(err, "out of memory for the state of plugins");
    snprintf(add(s, cast->algo)->name, sizeof s->item->name, "state/algo.bin");
    for (size_t i = 0; i < cast->n_rewards; i++)
        snprintf(add(s, cast->rewards[i])->name, sizeof s->item->name, "state/reward_%zu.bin", i);
    if (cast->judge) snprintf(add(s, cast->judge)->name, sizeof s->item->name, "state/judge.bin");
    return RLHF_OK;
}

rlhf_status rlhf__plugin_states_save(struct rlhf__plugin_states *s, const struct rlhf__cast *cast,
                                     struct rlhf__error *err) {
    RLHF_TRY(list(s, cast, err));
    for (size_t i = 0; i < s->n; i++) {
        RLHF_TRY(rlhf__instance_save(s->item[i].plugin, &s->item[i].bytes, err));
        RLHF_TRY(rlhf__buf_ok(&s->item[i].bytes, err));
    }
    return RLHF_OK;
}

void rlhf__plugin_states_finish(struct rlhf__plugin_states *s) {
    for (size_t i = 0; i < s->n; i++)
        rlhf__buf_finish(&s->item[i].bytes);
    free(s->item);
    *s = (struct rlhf__plugin_states){0};
}

// Write the states to the folder of a checkpoint.
static rlhf_status write_states(const struct rlhf__plugin_states *s,
                                const struct rlhf__folder *checkpoint, struct rlhf__error *err) {
    for (size_t i = 0; i < s->n; i++) {
        const struct rlhf__plugin_state *p = &s->item[i];
        if (p->bytes.len > 0)
            RLHF_TRY(rlhf__file_write(checkpoint, p->name, p->bytes.data, p->bytes.len, err));
    }
    return RLHF_OK;
}

static rlhf_status load(const struct rlhf__plugin_state *p, const char *dir,
                        struct rlhf__error *err) {
    char path[4400];
    struct rlhf__buf bytes = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    if (rlhf__is_file(rlhf__path_in(path, sizeof path, dir, p->name)))
        st = rlhf__file_read(path, MAX_BYTES, &bytes, err);
    if (st == RLHF_OK) st = rlhf__instance_load(p->plugin, bytes.data, bytes.len, err);
    rlhf__buf_finish(&bytes);
    return st;
}

// Restore every plugin of the cast from the checkpoint in the directory `dir`.
static rlhf_status load_states(const struct rlhf__cast *cast, const char *dir,
                               struct rlhf__error *err) {
    struct rlhf__plugin_states s = {0};
    rlhf_status st = list(&s, cast, err);
    for (size_t i = 0; st == RLHF_OK && i < s.n; i++)
        st = load(&s.item[i], dir, err);
    rlhf__plugin_states_finish(&s);
    return st;
}

// Returns the model whose value head is trained: the critic, or else the policy.
static struct rlhf__model *value_model(const struct rlhf__kept *k) {
    return k->cast->critic ? k->cast->critic : k->cast->policy;
}

// Returns 1 if a checkpoint must store the exact weights in addition to model.safetensors.
static int needs_master(const struct rlhf__kept *k) {
    return k->config->checkpoint.dtype == RLHF__CHECKPOINT_BF16;
}

// Copy the tokenizer's files to the directory `to`. A resumed run takes them from its newest
// checkpoint, because the checkpoint from which the policy was opened may have been pruned.
static rlhf_status copy_text(const struct rlhf__kept *k, const struct rlhf__folder *all,
                             const struct rlhf__folder *to, struct rlhf__error *err) {
    struct rlhf__folder *from = NULL;
    char latest[256];
    if (!k->resumed || !rlhf__folder_target(all, "latest", latest, sizeof latest))
        return rlhf__model_copy_text(k->cast->policy->text_dir, to, err);
    rlhf_status st = rlhf__folder_open(all, latest, &from, err);
    if (st == RLHF_OK) st = rlhf__hf_copy_tokenizer(from, to, err);
    rlhf__folder_close(from);
    return st;
}

// If the policy has learned to end its responses, delete RLHF__STOP_AT_EOS_KEY from the policy's
// config, so that its responses stop at end tokens. A policy has learned this if it was trained on
// texts with an end token, or if its responses stopped at end tokens.
static void note_ends(const struct rlhf__kept *k) {
    const struct rlhf__cast *c = k->cast;
    if (!rlhf__cast_samples(c) || rlhf__response_stops_at_eos(&k->config->sampling, c->policy))
        json_object_del(c->policy->config, RLHF__STOP_AT_EOS_KEY);
}

static rlhf_status write_model(const struct rlhf__kept *k, const struct rlhf__folder *all,
                               const struct rlhf__folder *dir, struct rlhf__error *err) {
    int32_t dtype = needs_master(k) ? RLHF_BF16 : RLHF_F32;
    note_ends(k);
    rlhf_status st = rlhf__hf_set_dtype(k->cast->policy->config, dtype, err);
    if (st == RLHF_OK) st = rlhf__hf_config_write(dir, k->cast->policy->config, err);
    if (st == RLHF_OK) st = copy_text(k, all, dir, err);
    if (st == RLHF_OK) st = rlhf__tokenizer_write_frame(k->cast->policy->tok, dir, err);
    if (st == RLHF_OK) st = rlhf__tokenizer_write_chat(k->cast->policy->tok, dir, err);
    if (st != RLHF_OK) return st;
    if (k->cast->policy->peft.rank > 0)
        return rlhf__adapter_write(k->cast->policy, dtype, 1, dir, err);
    return rlhf__params_write(k->cast->policy, RLHF__PART_MODEL, dtype, dir, "model.safetensors",
                              err);
}

// Write an optimizer's state. If st is a failure, writes nothing and returns st, but first receives
// the parts that the other processes send, so that these processes do not wait. Otherwise returns
// the result of writing.
static rlhf_status write_optim(const struct rlhf__optim *o, const struct rlhf__folder *dir,
                               const char *name, rlhf_status st, struct rlhf__error *err) {
    struct rlhf__error unsaid;
    if (st == RLHF_OK) return rlhf__optim_write(o, dir, name, err);
    rlhf__optim_give(o, &unsaid);
    return st;
}

static const struct rlhf__optim *round_optim(const struct rlhf__kept *k) {
    return k->iteration && k->iteration->round ? k->iteration->round->optim : NULL;
}

static rlhf_status write_state(const struct rlhf__kept *k,
                               const struct rlhf__plugin_states *plugins, json_t *state,
                               const struct rlhf__folder *dir, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (needs_master(k))
        st = rlhf__params_write(k->cast->policy, RLHF__PART_MODEL, RLHF_F32, dir,
                                "state/master.safetensors", err);
    if (st == RLHF_OK && k->cast->critic)
        st = rlhf__params_write(k->cast->critic, RLHF__PART_MODEL, RLHF_F32, dir,
                                "state/critic.safetensors", err);
    if (st == RLHF_OK && rlhf__params_has(value_model(k), RLHF__PART_VALUE))
        st = rlhf__params_write(value_model(k), RLHF__PART_VALUE, RLHF_F32, dir,
                                "state/value_head.safetensors", err);
    st = write_optim(k->optim, dir, "state/optimizer.safetensors", st, err);
    if (k->cast->critic)
        st = write_optim(k->critic_optim, dir, "state/critic_optimizer.safetensors", st, err);
    if (st == RLHF_OK) st = write_states(plugins, dir, err);
    if (st == RLHF_OK && k->reward_training)
        st = rlhf__reward_training_save(k->reward_training, dir, err);
    if (st == RLHF_OK && k->feed->choice) st = rlhf__prompt_choice_save(k->feed->choice, dir, err);
    if (st == RLHF_OK && k->feed->ahead) st = rlhf__ahead_save(k->feed->ahead, dir, err);
    if (st == RLHF_OK) st = rlhf__json_save_new(dir, "state/run.json", json_incref(state), 0, err);
    return st == RLHF_OK ? rlhf__folder_sync(dir, "state", err) : st;
}

rlhf_status rlhf__checkpoint_write(const struct rlhf__kept *k,
                                   const struct rlhf__plugin_states *plugins, json_t *state,
                                   const struct rlhf__folder *all, const char *fresh,
                                   struct rlhf__error *err) {
    struct rlhf__folder *dir = NULL, *folder = NULL;
    struct rlhf__error unsaid;
    rlhf_status st = rlhf__folder_remove(all, fresh, err); // left by an earlier failure
    if (st == RLHF_OK) st = rlhf__folder_make(all, fresh, NULL, &dir, err);
    if (st == RLHF_OK) st = rlhf__folder_make(dir, "state", NULL, &folder, err);
    if (st == RLHF_OK) dir->digests = k->digests;
    if (st == RLHF_OK) st = write_model(k, all, dir, err);
    const int writes = st == RLHF_OK;
    if (writes)
        st = write_state(k, plugins, state, dir, err);
    else
        rlhf__checkpoint_give(k, &unsaid);
    if (st == RLHF_OK)
        st = rlhf__iteration_save(k->iteration, dir, err);
    else if (writes)
        rlhf__optim_give(round_optim(k), &unsaid);
    if (st == RLHF_OK) st = rlhf__folder_sync(dir, ".", err);
    rlhf__folder_close(folder);
    rlhf__folder_close(dir);
    return st;
}

rlhf_status rlhf__checkpoint_give(const struct rlhf__kept *k, struct rlhf__error *err) {
    rlhf_status st = rlhf__optim_give(k->optim, err);
    if (st == RLHF_OK) st = rlhf__optim_give(k->critic_optim, err);
    return st == RLHF_OK ? rlhf__optim_give(round_optim(k), err) : st;
}

// Write the path of a file in the checkpoint to `path`.
#define IN(name) rlhf__path_in(path, sizeof path, dir, name)

static rlhf_status load_weights(const struct rlhf__kept *k, const char *dir,
                                struct rlhf__error *err) {
    char path[4400];
    const struct rlhf__cast *c = k->cast;
    struct rlhf__model *value = value_model(k);
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

rlhf_status rlhf__checkpoint_read(const struct rlhf__kept *k, const char *dir,
                                  struct rlhf__error *err) {
    char path[4400];
    RLHF_TRY(load_weights(k, dir, err));
    RLHF_TRY(rlhf__optim_read(k->optim, IN("state/optimizer.safetensors"), err));
    if (k->critic_optim)
        RLHF_TRY(rlhf__optim_read(k->critic_optim, IN("state/critic_optimizer.safetensors"), err));
    RLHF_TRY(load_states(k->cast, dir, err));
    if (k->reward_training) RLHF_TRY(rlhf__reward_training_load(k->reward_training, dir, err));
    if (k->feed->choice) RLHF_TRY(rlhf__prompt_choice_load(k->feed->choice, dir, err));
    if (k->feed->ahead) RLHF_TRY(rlhf__prompt_feed_ahead_load(k->feed, dir, err));
    return rlhf__iteration_load(k->iteration, dir, err);
}
