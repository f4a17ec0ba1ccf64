// iteration.c: see iteration.h.
#include "keep/iteration.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "keep/reward_round.h"
#include "learn/optim_state.h"
#include "model/parameters.h"
#include "model/reward_model.h"
#include "service/reward_service.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the service ----

static struct rlhf__iteration *of(const rlhf_host *host) {
    const rlhf_iteration_service *table = host->service(host, RLHF_SVC_ITERATION);
    return table->self;
}

static rlhf_status tell(const rlhf_host *host, rlhf_status st, const struct rlhf__error *err) {
    return st == RLHF_OK ? st : rlhf__service_failed(host, err);
}

static rlhf_status may_call(const struct rlhf__iteration *it, const char *what,
                            struct rlhf__error *err) {
    if (it->x) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s is allowed in phase_end() of a rollout run only",
                      what);
}

static rlhf_status reference_sync(const rlhf_host *host) {
    struct rlhf__iteration *it = of(host);
    struct rlhf__error err = {0, ""};
    rlhf_status st = may_call(it, "reference_sync()", &err);
    if (st == RLHF_OK && !it->cast->iteration.moves_reference)
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "reference_sync() needs rlhf_iteration.moves_reference");
    if (st != RLHF_OK) return tell(host, st, &err);
    it->syncs++; // count first, because a failed copy may have changed the reference
    // Without a reference there is nothing to update.
    if (it->cast->reference) st = rlhf__params_copy(it->cast->reference, it->cast->policy, &err);
    return tell(host, st, &err);
}

static int same_response(const struct rlhf__iteration *it, uint32_t a, uint32_t b) {
    const struct rlhf__rows *e = &it->x->rows;
    int32_t n = it->x->scored.scored_len[a];
    return n == it->x->scored.scored_len[b] &&
           memcmp(e->ids + e->offset[a] + e->prompt_len[a],
                  e->ids + e->offset[b] + e->prompt_len[b], (size_t)n * sizeof *e->ids) == 0;
}

// Store a pair in the format that the reward model reads. The chosen response follows `prompt` in
// memory.
static rlhf_status add_pair(struct rlhf__iteration *it, const int32_t *prompt, int32_t n,
                            int32_t n_chosen, const int32_t *rejected, int32_t n_rejected,
                            struct rlhf__error *err) {
    const struct rlhf__tokenizer *tok = it->round->rm->model->tok;
    const int32_t offset[] = {0, n};
    struct rlhf__fronted f;
    rlhf_status st = rlhf__reward_rows(tok, 1, prompt, offset, &n, &f, err);
    if (st == RLHF_OK)
        st = rlhf__replay_add(&it->replay, f.ids, f.prompt_len[0], prompt + n, n_chosen, rejected,
                              n_rejected, err);
    rlhf__fronted_finish(&f);
    return st;
}

// Pair the best row with the worst row among rows [from, to) of a group. If the scores of the two
// rows differ, store the pair and increment `*added`. Among rows with the same score, the first one
// is taken. Rows with an empty response or a score that is not finite are skipped.
static rlhf_status collect_group(struct rlhf__iteration *it, uint32_t from, uint32_t to,
                                 uint32_t *added, struct rlhf__error *err) {
    const struct rlhf__rows *e = &it->x->rows;
    const int32_t *len = it->x->scored.scored_len;
    uint32_t best = to, worst = to;
    for (uint32_t i = from; i < to; i++) {
        if (len[i] < 1 || !isfinite(it->x->judged[i])) continue;
        if (best == to || it->x->judged[i] > it->x->judged[best]) best = i;
        if (worst == to || it->x->judged[i] < it->x->judged[worst]) worst = i;
    }
    if (best == to || !(it->x->judged[best] > it->x->judged[worst]) ||
        same_response(it, best, worst))
        return RLHF_OK;
    const int32_t *prompt = e->ids + e->offset[best];
    int32_t n = e->prompt_len[best];
    const int32_t *other = e->ids + e->offset[worst] + e->prompt_len[worst];
    ++*added;
    return add_pair(it, prompt, n, len[best], other, len[worst], err);
}

static rlhf_status collect_pairs(const rlhf_host *host, uint32_t *added) {
    struct rlhf__iteration *it = of(host);
    struct rlhf__error err = {0, ""};
    rlhf_status st = may_call(it, "collect_pairs()", &err);
    *added = 0;
    if (st != RLHF_OK) return tell(host, st, &err);
    if (it->recorded) return RLHF_OK;
    if (!it->x->judged || !it->round)
        return tell(host,
                    rlhf__fail(&err, RLHF_E_INVALID,
                               "collect_pairs() needs a judge and rlhf_iteration.reward_model"),
                    &err);
    const struct rlhf__rows *e = &it->x->rows;
    if (e->turn)
        st =
            rlhf__fail(&err, RLHF_E_UNSUPPORTED,
                       "collect_pairs() cannot pair rows of several turns: a pair is two responses "
                       "to one prompt");
    for (uint32_t from = 0, to; st == RLHF_OK && from < e->n; from = to) {
        for (to = from + 1; to < e->n && e->group[to] == e->group[from];)
            to++;
        st = collect_group(it, from, to, added, &err);
    }
    return tell(host, st, &err);
}

// Report the metrics that the algorithm cannot compute itself.
static void report_round(const struct rlhf__iteration *it, const rlhf_reward_update_report *r,
                         double seconds) {
    const struct rlhf__reward_head *head = &it->round->rm->head;
    rlhf__metrics_set(it->report->metrics, "time/reward_model", seconds);
    rlhf__metrics_set(it->report->metrics, "reward_model/gain", head->gain);
    rlhf__metrics_set(it->report->metrics, "reward_model/bias", head->bias);
    if (r->steps > 0)
        rlhf__logf(it->report->log, RLHF_LOG_INFO,
                   "reward model: %lld new and %lld earlier pairs in %u steps; accuracy on the new "
                   "ones %.3f, now %.3f",
                   (long long)r->fresh, (long long)r->replayed, r->steps, r->fresh_before,
                   r->fresh_after);
}

static rlhf_status reward_update(const rlhf_host *host, const rlhf_reward_update *in,
                                 rlhf_reward_update_report *out) {
    struct rlhf__iteration *it = of(host);
    struct rlhf__error err = {0, ""};
    rlhf_reward_update u = {0};
    rlhf_reward_update_report report = {.size = sizeof report};
    rlhf_status st = may_call(it, "reward_update()", &err);
    if (st == RLHF_OK && !it->round && !it->recorded)
        st = rlhf__fail(&err, RLHF_E_INVALID, "reward_update() needs rlhf_iteration.reward_model");
    if (st == RLHF_OK)
        st = rlhf__copy_in(&u, sizeof u, in, RLHF_SIZE_TO(rlhf_reward_update, history_max),
                           "rlhf_reward_update", &err);
    double from = rlhf__seconds();
    rlhf__progress_note(it->report->progress, "reward model");
    if (st == RLHF_OK && !it->recorded)
        st = rlhf__reward_round_run(it->round, &it->replay, it->syncs, &u, &report, &err);
    // An algorithm of an earlier version gets the first members.
    const uint32_t cut = st == RLHF_OK ? out->size : 0;
    if (st == RLHF_OK && rlhf_copy_out(out, &report, cut < sizeof report ? cut : sizeof report,
                                       RLHF_SIZE_TO(rlhf_reward_update_report, fresh_after)) < 0)
        st =
            rlhf__fail(&err, RLHF_E_UNSUPPORTED,
                       "its rlhf_reward_update_report says it has %u bytes, at least %u are needed",
                       out->size, RLHF_SIZE_TO(rlhf_reward_update_report, fresh_after));
    if (st == RLHF_OK && !it->recorded) report_round(it, &report, rlhf__seconds() - from);
    return tell(host, st, &err);
}

// ---- life ----

rlhf_status rlhf__iteration_init(struct rlhf__iteration *it, const struct rlhf__config *config,
                                 const struct rlhf__cast *cast, struct rlhf__report *report,
                                 struct rlhf__services *services, struct rlhf__error *err) {
    *it = (struct rlhf__iteration){
        .config = config, .cast = cast, .report = report, .services = services};
    it->table = (rlhf_iteration_service){.size = sizeof it->table,
                                         .self = it,
                                         .reference_sync = reference_sync,
                                         .collect_pairs = collect_pairs,
                                         .reward_update = reward_update};
    return rlhf__services_offer(services, RLHF_SVC_ITERATION, RLHF__STRUCT_rlhf_iteration_service,
                                &it->table, err);
}

void rlhf__iteration_finish(struct rlhf__iteration *it) {
    rlhf__replay_finish(&it->replay);
    rlhf__reward_round_close(it->round);
    it->round = NULL;
}

static rlhf_status check_plan(const struct rlhf__cast *c, const struct rlhf__plugin *judge,
                              struct rlhf__error *err) {
    const char *algo = c->algo->plugin->file;
    if (!judge)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s trains the reward model on pairs that a judge chooses: name one, "
                          "e.g. --judge imdb.so",
                          algo);
    if (c->plan.group_size >= 2) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s trains the reward model on pairs from groups of responses to a prompt, "
                      "but the group size is %d; at least 2",
                      algo, c->plan.group_size);
}

// Set *out to the reward model that the run's rewards use, and `*users` to the number of rewards
// that use it. Fails unless the rewards use exactly one reward model.
static rlhf_status find_model(const struct rlhf__cast *c, const struct rlhf__reward_service *s,
                              struct rlhf__reward_model **out, int64_t *users,
                              struct rlhf__error *err) {
    size_t n = 0;
    *out = rlhf__reward_service_at(s, 0, users);
    while (rlhf__reward_service_at(s, n, NULL))
        n++;
    if (n == 1) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s trains the run's reward model on, so the rewards must ask exactly one "
                      "(--reward bt_rm.so:model=DIR); they ask %zu",
                      c->algo->plugin->file, n);
}

static rlhf_status open_judge(const struct rlhf__iteration *it, const struct rlhf__plugin *judge,
                              struct rlhf__instance **out, struct rlhf__error *err) {
    struct rlhf__origin from = {"the config", "judge", NULL, 0, 0};
    if (!judge) return RLHF_OK;
    return rlhf__instance_open(judge, it->services, "judge", it->config->judge.options, &from, out,
                               err);
}

rlhf_status rlhf__iteration_open(struct rlhf__iteration *it, struct rlhf__reward_service *models,
                                 const struct rlhf__plugin *judge,
                                 struct rlhf__instance **out_judge, struct rlhf__error *err) {
    struct rlhf__reward_model *rm = NULL;
    int64_t before = 0, after = 0;
    int trains = it->cast->iteration.reward_model;
    if (trains) RLHF_TRY(check_plan(it->cast, judge, err));
    if (trains) RLHF_TRY(find_model(it->cast, models, &rm, &before, err));
    rlhf__reward_service_trainable(models, 0); // the judge's reward model is not trained
    RLHF_TRY(open_judge(it, judge, out_judge, err));
    if (!trains) return RLHF_OK;
    rlhf__reward_service_at(models, 0, &after);
    if (after != before)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the judge %s is the reward being trained: it asks the model '%s' too; "
                          "choose another",
                          judge->file, rm->model->dir);
    it->trained = rm;
    return RLHF_OK;
}

rlhf_status rlhf__iteration_ready(struct rlhf__iteration *it, const struct rlhf__feed *feed,
                                  struct rlhf__error *err) {
    if (!it->trained) return RLHF_OK;
    return rlhf__reward_round_open(it->config, it->cast, feed, it->report->log, it->trained,
                                   &it->round, err);
}

// ---- the current phase ----

void rlhf__iteration_begin(struct rlhf__iteration *it, const struct rlhf__experience *x) {
    it->x = x->scored.n > 0 ? x : NULL;
}

void rlhf__iteration_end(struct rlhf__iteration *it) { it->x = NULL; }

// ---- in a checkpoint ----

#define STATE_FORMAT 1

// Writing.

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

// Reading.

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
        if (!it->cast->iteration.moves_reference)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the reference of this run was moved, but %s with these options "
                              "does not update it",
                              path, it->cast->algo->plugin->file);
        rlhf__path_in(path, sizeof path, dir, "state/reference.safetensors");
        st = rlhf__params_read_back(it->cast->reference, path, err);
        if (st == RLHF_OK) st = rlhf__model_refresh(it->cast->reference, err);
    }
    return st == RLHF_OK && it->round ? read_round(it, dir, err) : st;
}
