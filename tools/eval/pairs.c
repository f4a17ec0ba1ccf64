// pairs.c: `rlhf-host pairs`: makes preference rows with a model and a judge. The model responds to
// each prompt several times, and the judge scores the responses. Each row has the best and the
// worst response to a prompt or, with --best-of, all responses and the index of the best one.
// data/preferences.h reads these rows.
#include "cmd/commands.h"

#include "base/clock.h"
#include "cmd/program.h"
#include "data/lines.h"
#include "eval/eval_setup.h"
#include "report/phase_report.h"
#include "sample/decode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SLOTS     128  // responses decoded at once
#define CHUNK_ROWS    1024 // responses sampled before the judge scores them
#define PLAIN_SECONDS 10   // between two progress lines without a bar

struct options {
    const char *model, *prompts, *out, *config;
    struct rlhf__flag_list judge, set;
    int64_t n, k, seed;
    double min_gap;
    int32_t best_of, force;
    struct rlhf__command_setup_flags at;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--model", model, "DIR",
                 "samples responses, or a GGUF file; the default policy when not given"),
    RLHF__FLAG_L(O, "--judge", judge, "X.so[:k=v,..]",
                 "reward that prefers one response; several are summed by weight"),
    RLHF__FLAG_S(O, "--prompts", prompts, "FILE", "rows with prompts; else those of the settings"),
    RLHF__FLAG_S(O, "--out", out, "FILE", "where the rows go: .jsonl or .jsonl.gz"),
    RLHF__FLAG_I(O, "--n", n, "N", 0, (int64_t)1 << 32,
                 "prompts, used in turn; 0: each prompt once [0]"),
    RLHF__FLAG_I(O, "--k", k, "K", 2, CHUNK_ROWS, "responses to each prompt [4]"),
    RLHF__FLAG_SW(O, "--best-of", best_of, "rows of all K responses and the best one's index"),
    RLHF__FLAG_F(O, "--min-gap", min_gap, "G", 0, 1e9,
                 "leave out rows whose best is less than G ahead [0]"),
    RLHF__FLAG_S(O, "--config", config, "FILE",
                 "sampling, prompts and response settings; else ppo.so's"),
    RLHF__FLAG_L(O, "--set", set, "PATH=VALUE", "one setting, e.g. sampling.temperature=0.7"),
    RLHF__FLAG_SW(O, "--force", force, "replace FILE when it exists"),
    RLHF__FLAG_I(O, "--seed", seed, "S", 0, INT64_MAX, "seed of the draws [1]"),
    RLHF__COMMAND_SETUP_FLAGS(O),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

// The state while rows are made.
struct maker {
    const struct options *o;
    struct rlhf__eval_setup with;
    struct rlhf__line_writer *out;
    int64_t *row;                     // [CHUNK_ROWS] prompt of each response
    uint8_t *keep;                    // [CHUNK_ROWS]
    float *raw;                       // [n_reward * CHUNK_ROWS]
    int64_t n, done, written, tokens; // prompts; prompts done; rows written; tokens decoded
    int64_t responses, cut;           // in the rows written; those that were cut off
    double gap;                       // sum of the score margins of the rows written
    double start, last_line;          // seconds
};

// ---- choosing ----

// Indices of the responses chosen among the k responses to one prompt; -1: no such response.
struct choice {
    int32_t best, second, worst;
};

static int same_text(rlhf_str a, rlhf_str b) {
    return a.len == b.len && memcmp(a.ptr, b.ptr, (size_t)a.len) == 0;
}

// Returns 1 if response i may be in a row whose best response is `best` (-1 = not known yet).
// Returns 0 for an empty response, for one that nan_policy dropped, and for one with the text of
// the best response. Equal texts may have different tokens and scores, but a row of texts cannot
// express a preference between them.
static int usable(const struct rlhf__scored *x, const uint8_t *keep, int32_t i, int32_t best) {
    if (!keep[i] || x->response[i].len == 0) return 0;
    return i == best || best < 0 || !same_text(x->response[i], x->response[best]);
}

// Ties go to the first response.
static struct choice choose(const struct rlhf__scored *x, const float *score, const uint8_t *keep,
                            int32_t k) {
    struct choice c = {-1, -1, -1};
    for (int32_t i = 0; i < k; i++)
        if (usable(x, keep, i, -1) && (c.best < 0 || score[i] > score[c.best])) c.best = i;
    for (int32_t i = 0; i < k; i++) {
        if (i == c.best || !usable(x, keep, i, c.best)) continue;
        if (c.second < 0 || score[i] > score[c.second]) c.second = i;
        if (c.worst < 0 || score[i] < score[c.worst]) c.worst = i;
    }
    return c;
}

// Returns the score margin of a row: best minus worst or, for best-of rows, best minus second.
static double gap_of(const struct options *o, const struct choice *c, const float *score) {
    int32_t other = o->best_of ? c->second : c->worst;
    if (c->best < 0 || other < 0) return 0;
    return (double)score[c->best] - (double)score[other];
}

// ---- writing ----

static json_t *text_json(rlhf_str s) { return json_stringn(s.ptr, (size_t)s.len); }

// Returns the messages of a prompt, read from its row; NULL if the prompt is a text.
static json_t *messages_json(const struct rlhf__prompts *prompts, const struct rlhf__rows *e,
                             uint32_t row) {
    const struct rlhf__prompt p = rlhf__prompts_get(prompts, e->source[row]);
    json_t *all = NULL;
    if (p.is_chat) rlhf__row_line_json(p.meta, "a data row", 1, &all, NULL); // it was valid before
    json_t *list = json_object_get(all, "messages"), *item;
    const char *key;
    if (!json_is_array(list)) // another key may hold the messages
        json_object_foreach(all, key, item) if (json_is_array(item) &&
                                                json_object_get(json_array_get(item, 0), "role"))
            list = item;
    json_incref(list);
    json_decref(all);
    return list;
}

// Returns a prompt and its response in the form of a row: texts or messages.
static json_t *prompt_json(const struct rlhf__scored *x, int32_t i, json_t *messages) {
    return messages ? json_incref(messages) : text_json(x->prompt[i]);
}

static json_t *response_json(const struct rlhf__scored *x, int32_t i, const json_t *messages) {
    json_t *text = text_json(x->response[i]);
    if (!messages) return text;
    return json_pack("[{s:s, s:o}]", "role", "assistant", "content", text);
}

// Adds the key "cut" if one of the n responses of the row was cut off.
static void mark_cut(struct maker *m, json_t *row, const uint8_t *cut, int32_t n) {
    json_t *list = json_array();
    int any = 0;
    for (int32_t i = 0; i < n; i++) {
        json_array_append_new(list, json_boolean(cut[i]));
        any |= cut[i];
        m->cut += cut[i];
    }
    m->responses += n;
    if (any && row) json_object_set(row, "cut", list);
    json_decref(list);
}

static json_t *pair_json(const struct rlhf__scored *x, const float *score, struct choice c,
                         json_t *messages) {
    return json_pack("{s:o, s:o, s:o, s:[f, f]}", "prompt", prompt_json(x, c.best, messages),
                     "chosen", response_json(x, c.best, messages), "rejected",
                     response_json(x, c.worst, messages), "scores", (double)score[c.best],
                     (double)score[c.worst]);
}

static json_t *best_of_json(const struct rlhf__scored *x, const float *score, const uint8_t *keep,
                            int32_t k, struct choice c, json_t *messages) {
    json_t *responses = json_array(), *scores = json_array();
    int32_t best = 0;
    for (int32_t i = 0; i < k; i++) {
        if (!usable(x, keep, i, c.best)) continue;
        if (i == c.best) best = (int32_t)json_array_size(responses);
        json_array_append_new(responses, response_json(x, i, messages));
        json_array_append_new(scores, json_real((double)score[i]));
    }
    return json_pack("{s:o, s:o, s:i, s:o}", "prompt", prompt_json(x, c.best, messages),
                     "responses", responses, "best", (int)best, "scores", scores);
}

// Sets cut[i] to 1 for each response of the row that reached the length limit, although responses
// may end before it. Returns the number of responses in the row.
static int32_t cuts_of(const struct maker *m, const struct rlhf__scored *x,
                       const struct rlhf__rows *e, uint32_t at, const struct choice *c,
                       uint8_t *cut) {
    const int may_end = rlhf__responses_may_end(&m->with.config, m->with.model);
    int32_t n = 0;
    if (!m->o->best_of) {
        cut[0] = may_end && !e->finished[at + (uint32_t)c->best];
        cut[1] = may_end && !e->finished[at + (uint32_t)c->worst];
        return 2;
    }
    for (int32_t i = 0; i < m->o->k; i++)
        if (usable(x, m->keep + at, i, c->best))
            cut[n++] = may_end && !e->finished[at + (uint32_t)i];
    return n;
}

// Write the rows of a judged chunk, with k adjacent responses per prompt.
static rlhf_status write_rows(struct maker *m, const struct rlhf__scored *x,
                              const struct rlhf__rows *e, struct rlhf__error *err) {
    int32_t k = (int32_t)m->o->k;
    for (uint32_t at = 0; at < e->n; at += (uint32_t)k) {
        struct rlhf__scored of = {.prompt = x->prompt + at, .response = x->response + at};
        const float *score = e->reward + at;
        struct choice c = choose(&of, score, m->keep + at, k);
        double gap = gap_of(m->o, &c, score);
        if (!(gap > 0) || gap < m->o->min_gap) continue; // equal responses give no preference
        json_t *messages = messages_json(m->with.prompts, e, at);
        json_t *row = m->o->best_of ? best_of_json(&of, score, m->keep + at, k, c, messages)
                                    : pair_json(&of, score, c, messages);
        json_decref(messages);
        uint8_t cut[CHUNK_ROWS];
        mark_cut(m, row, cut, cuts_of(m, &of, e, at, &c, cut));
        rlhf_status st = rlhf__line_writer_put_new(m->out, row, err);
        if (st != RLHF_OK) return st;
        m->written++;
        m->gap += gap;
    }
    return RLHF_OK;
}

// ---- making ----

static void show(struct maker *m) {
    double now = rlhf__seconds() - m->start;
    double wait = isatty(STDOUT_FILENO) ? 0 : PLAIN_SECONDS;
    if (m->done == m->n || now - m->last_line < wait) return;
    m->last_line = now;
    struct rlhf__progress_state s = {.unit = "prompts",
                                     .phase = m->done,
                                     .phases = m->n,
                                     .label = "gap",
                                     .value = m->written ? m->gap / (double)m->written : 0,
                                     .kl = NAN,
                                     .judge = NAN,
                                     .accuracy = NAN,
                                     .tokens_per_s = (double)m->tokens / now,
                                     .seconds = now};
    rlhf__progress_phase(m->with.at.progress, &s);
}

// Process the next prompts: respond, judge, write.
static rlhf_status make_chunk(struct maker *m, struct rlhf__error *err) {
    int64_t k = m->o->k, prompts = CHUNK_ROWS / k, count = rlhf__prompts_count(m->with.prompts);
    if (prompts > m->n - m->done) prompts = m->n - m->done;
    uint32_t rows = (uint32_t)(prompts * k);
    struct rlhf__rollout_request q =
        rlhf__eval_setup_request(&m->with, rows, MAX_SLOTS, m->o->seed, "pairs");
    struct rlhf__rows e = {0};
    struct rlhf__scored x = {0};
    q.first = (uint64_t)(m->done * k);
    q.group = (uint32_t)k;
    q.prefix_slots = rlhf__prefix_slots(q.model, MAX_SLOTS, (uint32_t)k);
    for (uint32_t i = 0; i < rows; i++)
        m->row[i] = (m->done + i / k) % count;
    rlhf_status st = rlhf__rollout(&q, m->row, &e, &m->tokens, err);
    if (st == RLHF_OK)
        st = rlhf__eval_setup_score(&m->with, &e, &x, m->keep, m->raw, NULL, NULL, err);
    if (st == RLHF_OK) st = write_rows(m, &x, &e, err);
    rlhf__scored_finish(&x);
    rlhf__rows_finish(&e);
    m->done += prompts;
    if (st == RLHF_OK) show(m);
    return st;
}

static rlhf_status make_all(struct maker *m, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    m->n = m->o->n ? m->o->n : rlhf__prompts_count(m->with.prompts);
    m->row = calloc(CHUNK_ROWS, sizeof *m->row);
    m->keep = calloc(CHUNK_ROWS, sizeof *m->keep);
    m->raw = calloc(m->with.config.n_reward * CHUNK_ROWS, sizeof *m->raw);
    if (!m->row || !m->keep || !m->raw) st = RLHF__NOMEM(err, "out of memory for responses");
    m->start = rlhf__seconds();
    while (st == RLHF_OK && m->done < m->n)
        st = make_chunk(m, err);
    if (st == RLHF_OK && m->written == 0)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "pairs: no rows are left from %lld prompts: the judge never preferred one "
                        "response%s",
                        (long long)m->n, m->o->min_gap > 0 ? " by --min-gap" : "");
    return st;
}

static rlhf_status check(const struct options *o, struct rlhf__error *err) {
    if (!o->judge.n || !o->out)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "pairs: give the judge with --judge X.so and the result's name with "
                          "--out FILE");
    return rlhf__line_writer_free_target("pairs", o->out, o->force, err);
}

static void warn_cut(const struct maker *m) {
    if (10 * m->cut <= m->responses) return; // a tenth
    rlhf__logf(m->with.at.env->log, RLHF_LOG_WARN,
               "%lld of the %lld responses in the rows were cut off after "
               "sampling.max_new_tokens=%lld tokens, before an end token; the rows mark them "
               "(\"cut\"), so that no algorithm teaches to end there; --set "
               "sampling.max_new_tokens=N lets them end",
               (long long)m->cut, (long long)m->responses,
               (long long)m->with.config.sampling.max_new_tokens);
}

static rlhf_status say_done(const struct maker *m, struct rlhf__error *err) {
    double seconds = rlhf__seconds() - m->start;
    warn_cut(m);
    printf("%lld row%s of %lld prompt%s: %s (mean gap %.4f, %.0f tokens/s, %.0f s)\n",
           (long long)m->written, m->written == 1 ? "" : "s", (long long)m->n, m->n == 1 ? "" : "s",
           m->o->out, m->gap / (double)m->written, (double)m->tokens / seconds, seconds);
    return rlhf__print_flush(err);
}

static rlhf_status run(const struct rlhf__env *env, const struct options *o,
                       struct rlhf__error *err) {
    struct maker m = {.o = o};
    struct rlhf__eval_setup_options with = {.model = o->model,
                                            .config = o->config,
                                            .prompts = o->prompts,
                                            .at = &o->at,
                                            .reward_flag = "--judge",
                                            .command = "pairs",
                                            .reward = &o->judge,
                                            .set = &o->set,
                                            .seed = o->seed};
    rlhf_status st = check(o, err);
    if (st == RLHF_OK) st = rlhf__eval_setup_open(&m.with, env, &with, err);
    if (st == RLHF_OK) st = rlhf__line_writer_open(o->out, &m.out, err);
    if (st == RLHF_OK) st = make_all(&m, err);
    if (st == RLHF_OK) {
        st = rlhf__line_writer_commit(m.out, err);
        m.out = NULL;
    }
    if (m.with.at.progress) rlhf__progress_hide(m.with.at.progress);
    if (st == RLHF_OK) st = say_done(&m, err);
    if (st == RLHF_E_CANCELLED)
        rlhf__logf(env->log, RLHF_LOG_INFO, "stopped; '%s' was not written", o->out);
    rlhf__line_writer_abort(m.out);
    rlhf__eval_setup_finish(&m.with);
    free(m.row);
    free(m.keep);
    free(m.raw);
    return st;
}

int rlhf__cmd_pairs(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.at = RLHF__COMMAND_SETUP_DEFAULTS, .k = 4, .seed = 1};
    if (rlhf__flags_helped(flags, N_FLAGS, "rlhf-host pairs --judge X.so --out FILE [flags]", argc,
                           argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK) st = run(env, &o, &err);
    free(o.judge.item);
    free(o.set.item);
    return rlhf__cmd_end(env, st, &err);
}
