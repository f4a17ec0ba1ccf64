// recorded_rows.c: see recorded_rows.h.
#include "feed/recorded_rows.h"

#include "base/json.h"
#include "episode/episode_metrics.h"
#include "sample/mixing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ---- rows ----

// A recorded row, and the prompts and the vocabulary of the run, against which the row is checked.
struct source {
    const struct rlhf__recorded *from;
    const struct rlhf__prompts *prompts;
    const json_t *row;
    uint32_t i;
    int32_t n_vocab;
};

static rlhf_status wrong(const struct source *s, const char *key, struct rlhf__error *err) {
    const json_t *phase = json_object_get(s->row, "phase");
    return rlhf__fail(
        err, RLHF_E_INVALID, "%s: row %u of phase %lld: \"%s\" is missing or does not fit the run",
        rlhf__recorded_path(s->from), s->i, (long long)json_integer_value(phase), key);
}

static int integer(const json_t *row, const char *key, int64_t from, int64_t to, int64_t *out) {
    const json_t *v = json_object_get(row, key);
    *out = json_integer_value(v);
    return json_is_integer(v) && *out >= from && *out < to;
}

// Returns the number in v, or NaN if v is null: numbers that are not finite were written as null.
static float number(const json_t *v) {
    return json_is_number(v) ? (float)json_number_value(v) : NAN;
}

static rlhf_status take_ids(const struct source *s, struct rlhf__rows *e, struct rlhf__error *err) {
    const json_t *ids = json_object_get(s->row, "ids");
    const size_t n = json_array_size(ids);
    int64_t prompt;
    if (!integer(s->row, "prompt_length", 1, (int64_t)n + 1, &prompt))
        return wrong(s, "prompt_length", err);
    e->prompt_len[s->i] = (int32_t)prompt;
    for (size_t k = 0; k < n; k++) {
        const json_t *v = json_array_get(ids, k);
        const json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id >= s->n_vocab) return wrong(s, "ids", err);
        e->ids[e->offset[s->i] + (int32_t)k] = (int32_t)id;
    }
    return RLHF_OK;
}

// Read the numbers of the response tokens.
static rlhf_status take_tokens(const struct source *s, const char *key, struct rlhf__rows *e,
                               float *to, struct rlhf__error *err) {
    const json_t *v = json_object_get(s->row, key);
    const int32_t end = e->offset[s->i + 1];
    size_t k = 0;
    if (!json_is_array(v) ||
        json_array_size(v) != (size_t)rlhf__rows_response_tokens(e, s->i, s->i + 1))
        return wrong(s, key, err);
    for (int32_t t = e->offset[s->i] + e->prompt_len[s->i]; t < end; t++)
        if (rlhf__rows_is_response(e, t)) to[t] = number(json_array_get(v, k++));
    return RLHF_OK;
}

// ---- episodes ----

// Read the authors of the tokens after the prompt, and the environment's reward for each turn.
static rlhf_status take_segments(const struct source *s, struct rlhf__rows *e,
                                 struct rlhf__error *err) {
    const json_t *all = json_object_get(s->row, "segments"), *one;
    const json_t *paid = json_object_get(s->row, "paid");
    int32_t t = e->offset[s->i] + e->prompt_len[s->i];
    int32_t turns = 0;
    size_t k;
    json_array_foreach(all, k, one) {
        const char *by = json_string_value(json_array_get(one, 0));
        const json_int_t n = json_integer_value(json_array_get(one, 1));
        const int policy = by && strcmp(by, "policy") == 0;
        if ((!policy && !(by && strcmp(by, "environment") == 0)) || n < 1 ||
            n > e->offset[s->i + 1] - t)
            return wrong(s, "segments", err);
        for (const int32_t end = t + (int32_t)n; t < end; t++)
            e->turn[t] = policy ? turns : -1;
        if (policy) e->paid[t - 1] = number(json_array_get(paid, (size_t)turns++));
    }
    if (t != e->offset[s->i + 1]) return wrong(s, "segments", err);
    return json_array_size(paid) == (size_t)turns ? RLHF_OK : wrong(s, "paid", err);
}

static rlhf_status take_end(const struct source *s, struct rlhf__rows *e, struct rlhf__error *err) {
    static const char *const verdicts[] = {"none", "right", "wrong"};
    const char *end = json_string_value(json_object_get(s->row, "end"));
    const char *verdict = json_string_value(json_object_get(s->row, "verdict"));
    uint8_t k = RLHF_EPISODE_OPEN, v = RLHF_VERDICT_NONE;
    while (k <= RLHF_EPISODE_LENGTH && (!end || strcmp(end, rlhf__episode_end_name(k)) != 0))
        k++;
    if (k > RLHF_EPISODE_LENGTH) return wrong(s, "end", err);
    while (verdict && v <= RLHF_VERDICT_WRONG && strcmp(verdict, verdicts[v]) != 0)
        v++;
    if (v > RLHF_VERDICT_WRONG) return wrong(s, "verdict", err);
    e->end[s->i] = k;
    e->verdict[s->i] = v;
    return RLHF_OK;
}

// Find the prompt that has the number `row` in its file, and set *out to the prompt's index.
static int find_prompt(const struct rlhf__prompts *set, int64_t row, int64_t *out) {
    const int64_t n = rlhf__prompts_count(set);
    for (int64_t k = 0; k < n; k++) {
        *out = (row + k) % n; // the index is `row` if no row was left out
        if (rlhf__prompts_get(set, *out).row == row) return 1;
    }
    return 0;
}

// Read the tokens of a row, their authors, and the row's prompt.
static rlhf_status take_text(const struct source *s, struct rlhf__rows *e,
                             struct rlhf__error *err) {
    int64_t prompt, group;
    const uint32_t i = s->i;
    const json_t *finished = json_object_get(s->row, "finished");
    RLHF_TRY(take_ids(s, e, err));
    if (!integer(s->row, "prompt", 0, INT64_MAX, &prompt) ||
        !find_prompt(s->prompts, prompt, &e->source[i]))
        return wrong(s, "prompt", err);
    if (!integer(s->row, "group", 0, INT32_MAX, &group)) return wrong(s, "group", err);
    if (!json_is_boolean(finished)) return wrong(s, "finished", err);
    e->group[i] = (int32_t)group;
    e->finished[i] = json_is_true(finished);
    if (!e->turn) return RLHF_OK;
    RLHF_TRY(take_segments(s, e, err));
    return take_end(s, e, err);
}

// Read each reward's own score, if the algorithm uses them. Returns 0 if they do not fit.
static int take_scores(const struct source *s, struct rlhf__rows *e) {
    const json_t *v = json_object_get(s->row, "reward_scores");
    if (!e->reward_score) return 1;
    for (uint32_t k = 0; k < e->n_rewards; k++)
        e->reward_score[s->i * e->n_rewards + k] = number(json_array_get(v, k));
    return json_array_size(v) == e->n_rewards;
}

// Make room for each reward's own score, if the algorithm uses them.
static rlhf_status add_scores(const struct rlhf__feed *feed, struct rlhf__rows *e,
                              struct rlhf__error *err) {
    const struct rlhf__cast *cast = feed->env->cast;
    if (!(cast->plan.flags & RLHF_PLAN_EACH_REWARD) || e->reward_score) return RLHF_OK;
    e->n_rewards = (uint32_t)cast->n_rewards + (cast->paid ? 1 : 0);
    if (e->n_rewards == 0) // without rewards, their weights are not known
        return rlhf__fail(
            err, RLHF_E_UNSUPPORTED,
            "this run trains on each reward's own score, and its record does not hold "
            "the weights of the rewards; verify without --backend computes its phases");
    return RLHF__ROWS_ADD(e, reward_score, err);
}

static rlhf_status take_row(const struct source *s, struct rlhf__rows *e, struct rlhf__error *err) {
    const uint32_t i = s->i;
    const json_t *score = json_object_get(s->row, "score");
    RLHF_TRY(take_text(s, e, err));
    if (!json_is_number(score)) return wrong(s, "score", err);
    e->score[i] = number(score);
    if (!take_scores(s, e)) return wrong(s, "reward_scores", err);
    float *sampled = e->token[RLHF__LOGP_SAMPLED];
    RLHF_TRY(take_tokens(s, "logp_sampled", e, sampled, err));
    memcpy(e->token[RLHF__LOGP_OLD] + e->offset[i], sampled + e->offset[i],
           (size_t)(e->offset[i + 1] - e->offset[i]) * sizeof *sampled);
    return take_tokens(s, "token_reward", e, e->token[RLHF__TOKEN_REWARD], err);
}

static rlhf_status check_support(const struct rlhf__recorded *r, int supports,
                                 struct rlhf__error *err) {
    if (!supports) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s does not hold the tokens that sampling.top_k, top_p or min_p kept, over "
                      "which this run's log-probs are; with algo.logprob_support=full they are not "
                      "needed",
                      rlhf__recorded_path(r));
}

static rlhf_status make_rows(const struct rlhf__recorded *r, struct rlhf__rows *e,
                             struct rlhf__error *err) {
    const json_t *all = rlhf__recorded_rows(r), *row;
    const size_t n = json_array_size(all);
    size_t total = 0, i, turns = 0;
    json_array_foreach(all, i, row) {
        total += json_array_size(json_object_get(row, "ids"));
        turns += json_object_get(row, "segments") != NULL;
    }
    if (total > INT32_MAX || n > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: a phase of %zu tokens is too large",
                          rlhf__recorded_path(r), total);
    RLHF_TRY(rlhf__rows_init(e, (uint32_t)n, (uint32_t)total, err));
    json_array_foreach(all, i, row) e->offset[i + 1] =
        e->offset[i] + (int32_t)json_array_size(json_object_get(row, "ids"));
    return turns ? rlhf__rows_add_turns(e, err) : RLHF_OK;
}

rlhf_status rlhf__recorded_take(const struct rlhf__recorded *r, const struct rlhf__feed *feed,
                                int supports, int64_t version, struct rlhf__experience *x,
                                struct rlhf__error *err) {
    const struct rlhf__feed_env *env = feed->env;
    struct rlhf__rows *e = &x->rows;
    struct source s = {
        .from = r, .prompts = feed->prompts, .n_vocab = env->cast->policy->info.n_vocab};
    RLHF_TRY(check_support(r, supports, err));
    RLHF_TRY(make_rows(r, e, err));
    RLHF_TRY(add_scores(feed, e, err));
    for (s.i = 0; s.i < e->n; s.i++) {
        s.row = json_array_get(rlhf__recorded_rows(r), s.i);
        e->version[s.i] = version;
        RLHF_TRY(take_row(&s, e, err));
    }
    e->flags |= RLHF__DRAWN;
    if (env->config->batch.share_prompts && env->cast->plan.group_size > 1)
        e->flags |= RLHF__SHARE_PROMPTS;
    rlhf__rows_sum_rewards(e);
    x->sampled = rlhf__rows_response_tokens(e, 0, e->n);
    x->drawn = e->n;
    return RLHF_OK;
}

rlhf_status rlhf__recorded_episodes(const struct rlhf__recorded *r,
                                    const struct rlhf__prompts *prompts, int32_t n_vocab,
                                    struct rlhf__rows *e, struct rlhf__error *err) {
    struct source s = {.from = r, .prompts = prompts, .n_vocab = n_vocab};
    RLHF_TRY(make_rows(r, e, err));
    for (s.i = 0; s.i < e->n; s.i++) {
        s.row = json_array_get(rlhf__recorded_rows(r), s.i);
        if (!e->turn) return wrong(&s, "segments", err);
        RLHF_TRY(take_text(&s, e, err));
    }
    return RLHF_OK;
}

// ---- scores of rows that were sampled again ----

static int same_ids(const struct source *s, const struct rlhf__rows *e) {
    const json_t *ids = json_object_get(s->row, "ids");
    const int32_t from = e->offset[s->i], n = e->offset[s->i + 1] - from;
    int same = json_array_size(ids) == (size_t)n;
    for (int32_t k = 0; same && k < n; k++)
        same = json_integer_value(json_array_get(ids, (size_t)k)) == e->ids[from + k];
    return same;
}

static rlhf_status score_row(const struct source *s, struct rlhf__rows *e,
                             struct rlhf__error *err) {
    const json_t *score = json_object_get(s->row, "score");
    if (!json_is_number(score)) return wrong(s, "score", err);
    e->score[s->i] = number(score);
    if (!take_scores(s, e)) return wrong(s, "reward_scores", err);
    if (!same_ids(s, e)) return RLHF_OK; // the comparison reports the difference
    return take_tokens(s, "token_reward", e, e->token[RLHF__TOKEN_REWARD], err);
}

rlhf_status rlhf__recorded_score(const struct rlhf__recorded *r, const struct rlhf__feed *feed,
                                 struct rlhf__experience *x, struct rlhf__error *err) {
    struct rlhf__rows *e = &x->rows;
    struct source s = {.from = r, .prompts = feed->prompts};
    const size_t n = json_array_size(rlhf__recorded_rows(r));
    uint8_t *keep = calloc((size_t)e->n + 1, 1);
    if (!keep) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    rlhf_status st = add_scores(feed, e, err);
    size_t next = 0;
    for (s.i = 0; st == RLHF_OK && s.i < e->n && next < n; s.i++) {
        s.row = json_array_get(rlhf__recorded_rows(r), next);
        keep[s.i] = n == e->n || same_ids(&s, e);
        if (!keep[s.i]) continue;
        next++;
        st = score_row(&s, e, err);
    }
    if (st == RLHF_OK) st = rlhf__experience_keep(x, keep, err);
    if (st == RLHF_OK) rlhf__rows_sum_rewards(&x->rows);
    free(keep);
    return st;
}
