// eval_rewards.c: `rlhf-host eval --reward` and `--env`: samples responses or episodes, scores them
// with the settings of the checkpoint's run (eval_setup.h), and prints means with standard errors.
#include "base/json.h"
#include "batch/diversity.h"
#include "eval/eval_episodes.h"
#include "eval/eval_parts.h"
#include "eval/eval_table.h"
#include "eval/impl.h"
#include "eval/stats.h"
#include "learn/pass.h"
#include "sample/decode.h"
#include "sample/mixing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// The responses of one model, with their rewards.
struct side {
    struct rlhf__model *model; // borrowed
    struct rlhf__rows e;
    float *raw;                     // [n_reward * n]
    double *value;                  // [n] scratch: one value per response
    uint8_t *missing;               // [n_reward * n] 1: the reward has no value for the response
    uint8_t *keep;                  // [n] 1: the response was scored
    uint8_t *unpaid;                // [n] 1: no reward has a value for the response
    uint8_t *known, *right;         // [n] 1: a verdict exists; 1: the verdict is "right"
    struct rlhf__metrics *reported; // by the rewards
    struct rlhf__table_side out;    // what the table shows
};

struct measured {
    const struct rlhf__eval_options *o;
    struct rlhf__eval_setup with;
    struct rlhf__model *other; // the model of --compare; NULL: none
    struct side side[2];
    int64_t *task;     // [n] task of each episode, if an environment has no prompts; else NULL
    uint32_t sides, n; // models, responses of each
    int32_t fd;        // evaluations.jsonl for --save; -1: none
    struct rlhf__table table;
};

// ---- sampling and scoring ----

static void side_finish(struct side *s) {
    free(s->raw);
    free(s->missing);
    free(s->unpaid);
    free(s->value);
    free(s->keep);
    free(s->known);
    free(s->right);
    rlhf__rows_finish(&s->e);
    rlhf__metrics_close(s->reported);
    *s = (struct side){.model = s->model};
}

static rlhf_status side_init(const struct measured *m, struct side *s, struct rlhf__error *err) {
    const size_t n = (size_t)m->n + 1;
    s->raw = calloc((m->with.config.n_reward + 1) * n, sizeof *s->raw);
    s->value = calloc(n, sizeof *s->value);
    s->missing = calloc(m->with.config.n_reward + 1, n);
    s->keep = calloc(n, 1);
    s->unpaid = calloc(n, 1);
    s->known = calloc(n, 1);
    s->right = calloc(n, 1);
    if (!s->raw || !s->value || !s->missing || !s->keep || !s->unpaid || !s->known || !s->right)
        return RLHF__NOMEM(err, "out of memory scoring");
    return rlhf__eval_parts_open(m->with.at.env->log, &s->reported, err);
}

static rlhf_status respond(const struct measured *m, struct side *s, struct rlhf__error *err) {
    struct rlhf__eval_setup with = m->with; // borrows everything
    with.model = s->model;
    const uint32_t slots = rlhf__compute_slots(s->model->compute, 0);
    struct rlhf__rollout_request q =
        rlhf__eval_setup_request(&with, m->n, slots, m->o->seed, "eval");
    return rlhf__eval_setup_sample(&with, &q, &s->e, err);
}

// An environment always has a value.
static void find_unpaid(const struct measured *m, struct side *s) {
    const size_t n_reward = m->with.environment ? 0 : m->with.config.n_reward;
    for (uint32_t i = 0; i < m->n; i++) {
        s->unpaid[i] = n_reward > 0;
        for (size_t k = 0; k < n_reward; k++)
            s->unpaid[i] &= s->missing[k * m->n + i];
    }
}

// A response is right if the rewards' verdict is "right" or, with --pass, if its reward is high
// enough.
static void take_verdicts(const struct measured *m, struct side *s, const struct rlhf__scored *x) {
    const int by_reward = !isnan(m->o->pass);
    for (uint32_t i = 0; i < m->n; i++) {
        s->known[i] =
            s->keep[i] && (by_reward ? !s->unpaid[i] : x->verdict[i] != RLHF_VERDICT_NONE);
        s->right[i] =
            by_reward ? (double)s->e.reward[i] >= m->o->pass : x->verdict[i] == RLHF_VERDICT_RIGHT;
    }
}

static rlhf_status score_responses(struct measured *m, struct side *s, struct rlhf__error *err) {
    struct rlhf__scored x = {0};
    struct rlhf__pass_out out = {.logp = s->e.token[RLHF__LOGP_REF]};
    rlhf_status st = RLHF_OK;
    if (m->with.reference) // computed before the rewards, which may need it
        st = rlhf__pass(m->with.reference, &s->e, &m->with.logp_dist, RLHF__MICROBATCH_TOKENS, &out,
                        err);
    if (st == RLHF_OK)
        st = rlhf__eval_setup_score(&m->with, &s->e, &x, s->keep, s->raw, s->missing, s->reported,
                                    err);
    if (st == RLHF_OK) find_unpaid(m, s);
    if (st == RLHF_OK) take_verdicts(m, s, &x);
    rlhf__scored_finish(&x);
    return st;
}

static rlhf_status answer(struct measured *m, struct side *s, struct rlhf__error *err) {
    RLHF_TRY(side_init(m, s, err));
    rlhf__progress_note(m->with.at.progress, "sampling the responses");
    RLHF_TRY(respond(m, s, err));
    rlhf__progress_note(m->with.at.progress, "scoring the responses");
    return score_responses(m, s, err);
}

// ---- measures ----

// Returns NaN if the response has no value.
typedef double value_fn(const struct side *s, uint32_t i, size_t k);

static double reward_of(const struct side *s, uint32_t i, size_t k) {
    (void)k;
    return s->unpaid[i] ? (double)NAN : (double)s->e.reward[i];
}

static double raw_of(const struct side *s, uint32_t i, size_t k) {
    return s->missing[k * s->e.n + i] ? (double)NAN : (double)s->raw[k * s->e.n + i];
}

static double right_of(const struct side *s, uint32_t i, size_t k) {
    (void)k;
    return s->right[i];
}

static double length_of(const struct side *s, uint32_t i, size_t k) {
    (void)k;
    return (double)rlhf__rows_response_tokens(&s->e, i, i + 1);
}

// Returns log p - log p_ref, summed over a response. The mean over responses estimates the sequence
// KL.
static double kl_of(const struct side *s, uint32_t i, size_t k) {
    (void)k;
    return rlhf__rows_response_sum(&s->e, i, s->e.token[RLHF__LOGP_OLD],
                                   s->e.token[RLHF__LOGP_REF]);
}

// Without prompts, each episode has a task of its own.
static struct rlhf__answers answers_of(const struct measured *m, const uint8_t *keep) {
    const int64_t n = m->task ? (int64_t)m->n : rlhf__prompts_count(m->with.prompts);
    return (struct rlhf__answers){
        .prompt = m->task ? m->task : m->side[0].e.source, .keep = keep, .n = m->n, .n_prompts = n};
}

static double paid_of(const struct side *s, uint32_t i, size_t k) {
    (void)k;
    return rlhf__episode_paid(&s->e, i);
}

static double turns_of(const struct side *s, uint32_t i, size_t k) {
    (void)k;
    return rlhf__episode_turns(&s->e, i);
}

static double done_of(const struct side *s, uint32_t i, size_t k) {
    (void)k;
    return s->e.end[i] == RLHF_EPISODE_DONE;
}

// Add a row to the table. It has, for each model, the mean of value(i) over the model's scored
// responses that have a value and, for two models, the mean difference over the responses that
// count for both.
static rlhf_status add_mean(struct measured *m, const char *name, int decimals, value_fn *value,
                            size_t k, int verdicts, struct rlhf__error *err) {
    struct rlhf__table_row *r = rlhf__table_add(&m->table, name, decimals);
    double *const x[2] = {m->side[0].value, m->side[1].value};
    if (!r || !x[0]) return RLHF__NOMEM(err, "out of memory for the table");
    uint8_t *use = calloc((size_t)m->n + 1, 1), *both = calloc((size_t)m->n + 1, 1);
    rlhf_status st = use && both ? RLHF_OK : RLHF__NOMEM(err, "out of memory for the table");
    if (st == RLHF_OK) memset(both, 1, m->n);
    for (uint32_t j = 0; st == RLHF_OK && j < 2 && j < m->sides; j++) {
        struct side *s = &m->side[j];
        const struct rlhf__answers a = answers_of(m, use);
        for (uint32_t i = 0; i < m->n; i++) {
            x[j][i] = value(s, i, k);
            use[i] = (verdicts ? s->known : s->keep)[i] && !isnan(x[j][i]);
            both[i] &= use[i];
        }
        st = rlhf__estimate_mean(&a, x[j], &r->side[j], err);
    }
    for (uint32_t i = 0; x[1] && st == RLHF_OK && i < m->n; i++)
        x[1][i] = x[0][i] - x[1][i];
    const struct rlhf__answers a = answers_of(m, both);
    if (x[1] && st == RLHF_OK) st = rlhf__estimate_mean(&a, x[1], &r->difference, err);
    free(use);
    free(both);
    return st;
}

static rlhf_status add_pass(struct measured *m, uint32_t k, struct rlhf__error *err) {
    const int64_t n = rlhf__prompts_count(m->with.prompts);
    double *pass = calloc(2 * (size_t)n + 1, sizeof *pass);
    char name[32];
    snprintf(name, sizeof name, "pass@%u", k);
    struct rlhf__table_row *r = rlhf__table_add(&m->table, name, 4);
    rlhf_status st = r && pass ? RLHF_OK : RLHF__NOMEM(err, "out of memory for pass@k");
    for (uint32_t j = 0; st == RLHF_OK && j < m->sides; j++) {
        const struct rlhf__answers a = answers_of(m, m->side[j].known);
        st = rlhf__pass_by_prompt(&a, m->side[j].right, k, pass + (int64_t)j * n, err);
    }
    double *other = pass ? pass + n : NULL, *difference = NULL;
    if (st == RLHF_OK && m->sides == 2) {
        difference = calloc((size_t)n + 1, sizeof *difference);
        if (!difference) st = RLHF__NOMEM(err, "out of memory for pass@k");
        for (int64_t p = 0; difference && p < n; p++)
            difference[p] = pass[p] - other[p];
    }
    if (st == RLHF_OK) st = rlhf__estimate_prompts(pass, n, &r->side[0], err);
    if (st == RLHF_OK && difference) st = rlhf__estimate_prompts(other, n, &r->side[1], err);
    if (st == RLHF_OK && difference)
        st = rlhf__estimate_prompts(difference, n, &r->difference, err);
    free(difference);
    free(pass);
    return st;
}

static rlhf_status add_verdicts(struct measured *m, struct rlhf__error *err) {
    int known = 0;
    for (uint32_t i = 0; i < m->n; i++)
        known |= m->side[0].known[i];
    if (!known) {
        if (m->o->per_prompt > 1)
            rlhf__logf(m->with.at.env->log, RLHF_LOG_INFO,
                       "eval: no pass@k: no reward of this command says whether a response is "
                       "right; --pass X counts responses with a reward of at least X");
        return RLHF_OK;
    }
    RLHF_TRY(add_mean(m, "correct", 4, right_of, 0, 1, err));
    for (int64_t k = 1; k <= m->o->per_prompt && m->o->per_prompt > 1; k *= 2) {
        RLHF_TRY(add_pass(m, (uint32_t)k, err));
        if (k < m->o->per_prompt && 2 * k > m->o->per_prompt)
            RLHF_TRY(add_pass(m, (uint32_t)m->o->per_prompt, err));
    }
    return RLHF_OK;
}

static rlhf_status add_distinct(struct measured *m, struct rlhf__error *err) {
    struct rlhf__table_row *r = rlhf__table_add(&m->table, "distinct-3", 4);
    if (!r) return RLHF__NOMEM(err, "out of memory for the table");
    for (uint32_t j = 0; j < m->sides; j++) {
        RLHF_TRY(rlhf__rows_distinct3(&m->side[j].e, &r->side[j].mean, err));
        r->side[j].error = NAN;
    }
    r->difference =
        (struct rlhf__estimate){m->sides == 2 ? r->side[0].mean - r->side[1].mean : NAN, NAN};
    return RLHF_OK;
}

static rlhf_status fill_table(struct measured *m, struct rlhf__error *err) {
    const struct rlhf__config *c = &m->with.config;
    struct rlhf__metrics *const reported[2] = {m->side[0].reported, m->side[1].reported};
    RLHF_TRY(add_mean(m, "reward", 4, reward_of, 0, 0, err));
    m->table.rewards = (uint32_t)c->n_reward + (m->with.environment ? 1 : 0);
    for (size_t k = 0; k < c->n_reward; k++)
        RLHF_TRY(add_mean(m, c->reward[k].name, 4, raw_of, k, 0, err));
    if (m->with.environment) RLHF_TRY(add_mean(m, "environment", 4, paid_of, 0, 0, err));
    RLHF_TRY(rlhf__eval_parts_add(&m->table, reported, err));
    RLHF_TRY(add_verdicts(m, err));
    if (m->with.environment) RLHF_TRY(add_mean(m, "done", 4, done_of, 0, 0, err));
    if (m->with.environment) RLHF_TRY(add_mean(m, "turns", 2, turns_of, 0, 0, err));
    if (m->with.reference) RLHF_TRY(add_mean(m, "kl", 4, kl_of, 0, 0, err));
    RLHF_TRY(add_distinct(m, err));
    RLHF_TRY(add_mean(m, "length", 1, length_of, 0, 0, err));
    for (uint32_t j = 0; j < m->sides; j++) {
        struct side *s = &m->side[j];
        double mean;
        s->out.scored =
            rlhf__mean_std(s->e.reward, s->keep, s->unpaid, m->n, &mean, &s->out.reward_std);
        for (size_t k = 0; k < c->n_reward && k < RLHF__TABLE_REWARDS; k++)
            rlhf__mean_std(s->raw + k * m->n, s->keep, s->missing + k * m->n, m->n, &mean,
                           &s->out.std[k]);
        if (m->with.environment && c->n_reward < RLHF__TABLE_REWARDS) {
            float *paid = s->raw + c->n_reward * m->n; // the last part of raw
            for (uint32_t i = 0; i < m->n; i++)
                paid[i] = (float)paid_of(s, i, 0);
            rlhf__mean_std(paid, s->keep, NULL, m->n, &mean, &s->out.std[c->n_reward]);
        }
        s->out.model = s->model->peft.dir ? s->model->peft.dir : s->model->dir;
        m->table.side[j] = s->out;
    }
    return RLHF_OK;
}

// ---- one file of prompts ----

static uint32_t responses(const struct measured *m) {
    const int64_t prompts = rlhf__prompts_count(m->with.prompts);
    return (uint32_t)(m->o->per_prompt ? m->o->per_prompt * prompts : m->o->n);
}

// Measure the open file of prompts. *out receives the table.
static rlhf_status measure(struct measured *m, const char *file, struct rlhf__error *err) {
    const int64_t prompts = rlhf__prompts_count(m->with.prompts);
    if (m->o->per_prompt * prompts > (int64_t)1 << 24)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "eval: --per-prompt %lld for %lld prompts are more than 2^24 responses; "
                          "--limit N uses the first N prompts",
                          (long long)m->o->per_prompt, (long long)prompts);
    m->n = responses(m);
    RLHF_TRY(rlhf__episode_tasks(&m->with, m->n, m->o->per_prompt > 0, &m->task, err));
    m->side[0].model = m->with.model;
    m->side[1].model = m->other;
    m->sides = m->other ? 2 : 1;
    m->table = (struct rlhf__table){.data = file,
                                    .responses = m->n,
                                    .sides = m->sides,
                                    .seed = m->o->seed,
                                    .prompts = m->task || prompts >= m->n ? m->n : prompts,
                                    .pass = m->o->pass,
                                    .per_prompt = (uint32_t)m->o->per_prompt};
    rlhf_status st = RLHF_OK;
    for (uint32_t j = 0; st == RLHF_OK && j < m->sides; j++)
        st = answer(m, &m->side[j], err);
    if (st == RLHF_OK) st = fill_table(m, err);
    if (m->with.at.progress) rlhf__progress_hide(m->with.at.progress);
    for (uint32_t j = 0; j < 2; j++)
        side_finish(&m->side[j]);
    return st;
}

// ---- all of them ----

static rlhf_status open_other(struct measured *m, struct rlhf__error *err) {
    char base[RLHF__PATH_CAP];
    const char *given = m->o->compare;
    if (!given) return RLHF_OK;
    if (strcmp(given, "base") == 0) {
        RLHF_TRY(rlhf__eval_setup_base(&m->with, base, err));
        given = base;
    }
    RLHF_TRY(
        rlhf__command_setup_second(&m->with.at, "compare", given, m->with.model, &m->other, err));
    return rlhf__rollout_check_model(&m->with.config, m->other, m->with.at.env->log, err);
}

static rlhf_status each_file(struct measured *m, json_t *results, struct rlhf__error *err) {
    const size_t files = m->o->data.n ? m->o->data.n : 1;
    for (size_t i = 0; i < files; i++) {
        const char *file = m->o->data.n ? m->o->data.item[i] : NULL;
        if (i > 0) RLHF_TRY(rlhf__eval_setup_prompts(&m->with, file, err));
        rlhf_status st = measure(m, file, err);
        json_t *v = st == RLHF_OK ? rlhf__table_json(&m->table) : NULL;
        if (v && (files > 1 || m->o->save) && file)
            json_object_set_new(v, "data", rlhf__json_text(file));
        if (v && m->o->save) {
            json_object_set_new(v, "time", json_integer((json_int_t)time(NULL)));
            json_object_set_new(v, "version", json_string(RLHF_SDK_VERSION));
        }
        if (v) json_array_append_new(results, v);
        if (st == RLHF_OK && !m->o->json) rlhf__table_print(&m->table, files > 1);
        rlhf__table_finish(&m->table);
        RLHF_TRY(st);
    }
    return RLHF_OK;
}

static rlhf_status finish_results(struct measured *m, json_t *results, struct rlhf__error *err) {
    if (m->fd >= 0) RLHF_TRY(rlhf__table_save(m->fd, results, m->with.at.env->log, err));
    if (!m->o->json) return rlhf__print_flush(err);
    if (json_array_size(results) == 1)
        return rlhf__print_json_new(json_incref(json_array_get(results, 0)), err);
    return rlhf__print_json_new(json_pack("{s:O}", "sets", results), err);
}

rlhf_status rlhf__eval_rewards(const struct rlhf__env *env, const struct rlhf__eval_options *o,
                               struct rlhf__error *err) {
    struct measured m = {.o = o, .fd = -1};
    struct rlhf__given_settings given = {.n = 0};
    const struct rlhf__eval_setup_options with = {.model = o->model,
                                                  .reference = o->reference,
                                                  .config = o->config,
                                                  .prompts = o->data.n ? o->data.item[0] : NULL,
                                                  .at = &o->at,
                                                  .environment = o->environment,
                                                  .reward_flag = "--reward",
                                                  .command = "eval",
                                                  .reward = &o->reward,
                                                  .set = &given.all,
                                                  .limit = o->limit,
                                                  .max_mib = o->max_mib,
                                                  .seed = o->seed,
                                                  .as_the_run = 1,
                                                  .has_set = 1};
    json_t *results = json_array();
    rlhf_status st = results ? RLHF_OK : RLHF__NOMEM(err, "out of memory");
    if (st == RLHF_OK) st = rlhf__give_decoding(&given, &o->decoding, "eval", err);
    if (st == RLHF_OK) st = rlhf__given_join(&given, &o->set, err);
    if (st == RLHF_OK) st = rlhf__eval_setup_open(&m.with, env, &with, err);
    if (st == RLHF_OK) st = open_other(&m, err);
    if (st == RLHF_OK && o->save) st = rlhf__table_open(m.with.model, &m.fd, err);
    if (st == RLHF_OK) st = each_file(&m, results, err);
    if (st == RLHF_OK) st = finish_results(&m, results, err);
    if (m.other && m.with.at.progress) rlhf__progress_hide(m.with.at.progress);
    if (m.fd >= 0) close(m.fd);
    rlhf__model_close(m.other);
    json_decref(results);
    free(m.task);
    rlhf__eval_setup_finish(&m.with);
    rlhf__given_finish(&given);
    return st;
}
