// run_state.c: see run_state.h.
#include "run/run_state.h"

#include "base/file.h"
#include "base/json.h"
#include "learn/optim_state.h"

#include <stdlib.h>
#include <string.h>

#define STATE_FORMAT 1

json_t *rlhf__run_state_json(const struct rlhf__run *r) {
    const struct rlhf__order *order = r->feed->ops->order(r->feed);
    json_t *v =
        json_pack("{s:i, s:s, s:I, s:I, s:o, s:{s:I, s:I}, s:o}", "format", STATE_FORMAT, "algo",
                  r->cast.algo->plugin->desc.id, "phase", (json_int_t)r->count.phase, "episodes",
                  (json_int_t)r->count.sequences, "optim", rlhf__optim_count_save(&r->optim->count),
                  "data", "pass", (json_int_t)order->pass, "pos", (json_int_t)order->pos,
                  "early_stop", rlhf__early_stop_save(&r->early_stop));
    if (v && r->count.flat_phases > 0)
        json_object_set_new(v, "flat_phases", json_integer((json_int_t)r->count.flat_phases));
    if (v && r->count.still_phases > 0)
        json_object_set_new(v, "still_phases", json_integer((json_int_t)r->count.still_phases));
    // Record that the chat template was not used in training. Commands that sample from this
    // checkpoint need to know this.
    if (v && r->feed->texts_alone && rlhf__chat_known(rlhf__tokenizer_chat(r->cast.policy->tok)))
        json_object_set_new(v, "texts_alone", json_true());
    if (v && r->critic_optim)
        json_object_set_new(v, "critic_optim", rlhf__optim_count_save(&r->critic_optim->count));
    return v;
}

static rlhf_status check(const struct rlhf__run *r, const json_t *v, struct rlhf__error *err) {
    const char *own = r->cast.algo->plugin->desc.id;
    const char *algo = json_string_value(json_object_get(v, "algo"));
    int64_t format = 0;
    RLHF_TRY(rlhf__json_counts(v, &(struct rlhf__json_count){"format", &format}, 1, err));
    if (format != STATE_FORMAT)
        return rlhf__fail(err, RLHF_E_INVALID, "format is %lld, this host reads %d",
                          (long long)format, STATE_FORMAT);
    if (!algo || strcmp(algo, own) != 0)
        return rlhf__fail(err, RLHF_E_INVALID, "the run was made by %s, not by %s",
                          algo ? algo : "an algorithm without a name", own);
    return RLHF_OK;
}

// Reject impossible counts: someone edited the file, or it belongs to another checkpoint.
static rlhf_status check_counts(const struct rlhf__run *r, const char *dir,
                                struct rlhf__error *err) {
    const int64_t phase = r->count.phase;
    const struct rlhf__optim_count *steps = &r->optim->count;
    const struct {
        const char *name;
        int64_t value, most;
        const char *what;
    } all[] = {
        {"flat_phases", r->count.flat_phases, phase, "phases"},
        {"still_phases", r->count.still_phases, phase, "phases"},
        {"early_stop.kl.seen", r->early_stop.kl.seen, phase, "phases"},
        {"early_stop.reward.seen", r->early_stop.reward.seen, phase, "phases"},
        {"early_stop.kl.beyond", r->early_stop.kl.beyond, r->early_stop.kl.seen, "phases seen"},
        {"early_stop.reward.beyond", r->early_stop.reward.beyond, r->early_stop.reward.seen,
         "phases seen"},
        {"best.phase", r->best.phase, phase, "phases"},
        {"optim.skipped_in_a_row", steps->skipped_row, steps->skipped, "skipped steps"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value > all[i].most)
            return rlhf__fail(err, RLHF_E_INVALID, "%s is %lld, but there are only %lld %s",
                              all[i].name, (long long)all[i].value, (long long)all[i].most,
                              all[i].what);
    const char *name = rlhf__path_base(dir);
    if (strlen(name) == 6 && !name[strspn(name, "0123456789")] && strtoll(name, NULL, 10) != phase)
        return rlhf__fail(err, RLHF_E_INVALID, "phase is %lld, but the checkpoint is that of %s",
                          (long long)phase, name);
    return RLHF_OK;
}

static rlhf_status take(struct rlhf__run *r, const char *dir, const json_t *v,
                        struct rlhf__error *err) {
    const json_t *critic = json_object_get(v, "critic_optim");
    int64_t pass = 0, pos = 0;
    const struct rlhf__json_count own[] = {{"phase", &r->count.phase},
                                           {"episodes", &r->count.sequences}};
    const struct rlhf__json_count maybe[] = {{"flat_phases", &r->count.flat_phases},
                                             {"still_phases", &r->count.still_phases}};
    const struct rlhf__json_count data[] = {{"pass", &pass}, {"pos", &pos}};
    RLHF_TRY(check(r, v, err));
    RLHF_TRY(rlhf__json_counts(v, own, 2, err));
    for (size_t i = 0; i < sizeof maybe / sizeof *maybe; i++)
        if (json_object_get(v, maybe[i].name)) RLHF_TRY(rlhf__json_counts(v, &maybe[i], 1, err));
    RLHF_TRY(rlhf__json_counts(json_object_get(v, "data"), data, 2, err));
    RLHF_TRY(rlhf__optim_count_load(&r->optim->count, json_object_get(v, "optim"), err));
    if (r->critic_optim && critic)
        RLHF_TRY(rlhf__optim_count_load(&r->critic_optim->count, critic, err));
    RLHF_TRY(rlhf__early_stop_load(&r->early_stop, json_object_get(v, "early_stop"), err));
    RLHF_TRY(rlhf__best_load(&r->best, &r->config->checkpoint, json_object_get(v, "best"), err));
    RLHF_TRY(check_counts(r, dir, err));
    r->count.first_phase = r->count.phase;
    return rlhf__order_seek(r->feed->ops->order(r->feed), (uint64_t)pass, pos, err);
}

rlhf_status rlhf__run_state_load(struct rlhf__run *r, const char *dir, struct rlhf__error *err) {
    char path[4400];
    json_t *v = NULL;
    RLHF_TRY(rlhf__json_load(rlhf__path_in(path, sizeof path, dir, "state/run.json"), &v, err));
    rlhf_status st = take(r, dir, v, err);
    json_decref(v);
    return st == RLHF_OK ? st : rlhf__error_context(err, "%s", path);
}
