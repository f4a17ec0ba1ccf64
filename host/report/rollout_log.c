// rollout_log.c: see rollout_log.h.
#include "report/rollout_log.h"

#include "base/decimal.h"
#include "base/json.h"
#include "episode/episode_metrics.h"
#include "learn/learner.h"
#include "report/jsonl.h"

#include <stdlib.h>

struct rlhf__rollout_log {
    struct rlhf__jsonl file;
    struct rlhf__buf lines; // the lines of the current phase
    int64_t phase;
};

rlhf_status rlhf__rollout_log_open(const struct rlhf__folder *run, int64_t keep_phase,
                                   struct rlhf__log *log, struct rlhf__rollout_log **out,
                                   struct rlhf__error *err) {
    struct rlhf__rollout_log *l = *out = calloc(1, sizeof *l);
    if (!l) return RLHF__NOMEM(err, "out of memory for %s/rollouts.jsonl", run->path);
    rlhf_status st = rlhf__jsonl_open(run, "rollouts.jsonl", keep_phase, log, &l->file, err);
    if (st == RLHF_OK) return st;
    free(l);
    *out = NULL;
    return st;
}

void rlhf__rollout_log_close(struct rlhf__rollout_log *l) {
    if (!l) return;
    rlhf__jsonl_close(&l->file);
    rlhf__buf_finish(&l->lines);
    free(l);
}

// ---- parts of a line ----

// Write the values of row i's response tokens.
static void put_floats(struct rlhf__buf *b, const struct rlhf__rows *e, uint32_t i,
                       const float *token) {
    const char *between = "";
    char text[40];
    rlhf__buf_putc(b, '[');
    for (int32_t t = e->offset[i] + e->prompt_len[i]; t < e->offset[i + 1]; t++) {
        if (!rlhf__rows_is_response(e, t)) continue;
        rlhf__buf_printf(b, "%s%s", between, rlhf__format_float(token[t], text));
        between = ", ";
    }
    rlhf__buf_putc(b, ']');
}

// Write how the episode ended, the environment's verdict, and the environment's reward for each
// turn.
static void put_pay(struct rlhf__buf *b, const struct rlhf__rows *e, uint32_t i) {
    static const char *const verdicts[] = {"null", "\"right\"", "\"wrong\""};
    const char *between = "";
    const int32_t end = e->offset[i + 1];
    char text[40];
    rlhf__buf_printf(b, ", \"end\": \"%s\", \"verdict\": %s, \"paid\": [",
                     rlhf__episode_end_name(e->end[i]),
                     verdicts[e->verdict[i] <= RLHF_VERDICT_WRONG ? e->verdict[i] : 0]);
    for (int32_t t = e->offset[i] + e->prompt_len[i]; t < end; t++) {
        if (e->turn[t] < 0 || (t + 1 < end && e->turn[t + 1] == e->turn[t])) continue;
        rlhf__buf_printf(b, "%s%s", between, rlhf__format_float(e->paid[t], text));
        between = ", ";
    }
    rlhf__buf_putc(b, ']');
}

// Write the authors of the tokens after the prompt, as a list of segments. Either the policy
// sampled all tokens of a segment, or the environment supplied all of them.
static void put_segments(struct rlhf__buf *b, const struct rlhf__rows *e, uint32_t i) {
    const char *between = "";
    if (!e->turn) return;
    rlhf__buf_puts(b, ", \"segments\": [");
    for (int32_t t = e->offset[i] + e->prompt_len[i], from; t < e->offset[i + 1];) {
        for (from = t++; t < e->offset[i + 1] && e->turn[t] == e->turn[from];)
            t++;
        rlhf__buf_printf(b, "%s[\"%s\", %d]", between, e->turn[from] < 0 ? "environment" : "policy",
                         t - from);
        between = ", ";
    }
    rlhf__buf_putc(b, ']');
    put_pay(b, e, i);
}

// Write the values of row i's response tokens, or null if there is nothing to write.
static void put_tokens(struct rlhf__buf *b, const char *key, const struct rlhf__rows *e, uint32_t i,
                       enum rlhf__token_array which, int there) {
    rlhf__buf_printf(b, ", \"%s\": ", key);
    if (there)
        put_floats(b, e, i, e->token[which]);
    else
        rlhf__buf_puts(b, "null");
}

// Write {"teacher": [...], ...}: the log-probs under the plan's named models.
static void put_named(struct rlhf__buf *b, const struct rlhf__rows *e, uint32_t i,
                      const char *const *named) {
    for (uint32_t k = 0; k < e->n_named; k++) {
        rlhf__buf_printf(b, "%s\"%s\": ", k ? ", " : ", \"named\": {", named[k]);
        put_floats(b, e, i, e->named[k]);
    }
    if (e->n_named) rlhf__buf_putc(b, '}');
}

// Write each reward's own score of row i, if the algorithm uses them.
static void put_scores(struct rlhf__buf *b, const struct rlhf__rows *e, uint32_t i) {
    char text[40];
    if (!e->reward_score) return;
    for (uint32_t k = 0; k < e->n_rewards; k++)
        rlhf__buf_printf(b, "%s%s", k ? ", " : ", \"reward_scores\": [",
                         rlhf__format_float(e->reward_score[i * e->n_rewards + k], text));
    rlhf__buf_putc(b, ']');
}

static void put_row(struct rlhf__rollout_log *l, const struct rlhf__rows *e, uint32_t i,
                    int64_t prompt, const char *const *named, uint32_t flags) {
    struct rlhf__buf *b = &l->lines;
    char text[40];
    rlhf__buf_printf(b,
                     "{\"phase\": %lld, \"row\": %u, \"prompt\": %lld, \"group\": %d, "
                     "\"finished\": %s, \"prompt_length\": %d, \"ids\": [",
                     (long long)l->phase, i, (long long)prompt, e->group[i],
                     e->finished[i] ? "true" : "false", e->prompt_len[i]);
    for (int32_t k = e->offset[i]; k < e->offset[i + 1]; k++)
        rlhf__buf_printf(b, "%s%d", k > e->offset[i] ? ", " : "", e->ids[k]);
    rlhf__buf_putc(b, ']');
    put_segments(b, e, i);
    rlhf__buf_printf(b, ", \"score\": %s", rlhf__format_float(e->score[i], text));
    put_scores(b, e, i);
    int advantages = (flags & RLHF__LOG_ADVANTAGES) != 0;
    put_tokens(b, "logp_sampled", e, i, RLHF__LOGP_SAMPLED, 1);
    put_tokens(b, "logp_old", e, i, RLHF__LOGP_OLD, 1);
    put_tokens(b, "logp_ref", e, i, RLHF__LOGP_REF, (flags & RLHF__LOG_REFERENCE) != 0);
    put_named(b, e, i, named);
    put_tokens(b, "value", e, i, RLHF__VALUE_OLD, (flags & RLHF__LOG_VALUE) != 0);
    put_tokens(b, "token_reward", e, i, RLHF__TOKEN_REWARD, 1);
    put_tokens(b, "advantage", e, i, RLHF__ADVANTAGE, advantages);
    put_tokens(b, "returns", e, i, RLHF__RETURNS, advantages);
    rlhf__buf_puts(b, "}\n");
}

void rlhf__rollout_log_rows(struct rlhf__rollout_log *l, int64_t phase, const struct rlhf__rows *e,
                            const int64_t *prompt, const char *const *named, uint32_t flags) {
    rlhf__buf_clear(&l->lines);
    l->phase = phase;
    for (uint32_t i = 0; i < e->n; i++)
        put_row(l, e, i, prompt[i], named, flags);
}

// Write [[...], ...]: one array per row.
static void put_rows(struct rlhf__buf *b, const char *key, const struct rlhf__rows *e,
                     enum rlhf__token_array which) {
    rlhf__buf_printf(b, ", \"%s\": [", key);
    for (uint32_t i = 0; i < e->n; i++) {
        if (i) rlhf__buf_puts(b, ", ");
        put_floats(b, e, i, e->token[which]);
    }
    rlhf__buf_putc(b, ']');
}

static void put_masked(struct rlhf__buf *b, const struct rlhf__rollout_log_update *u) {
    const char *between = "";
    rlhf__buf_puts(b, ", \"masked\": [");
    for (uint32_t i = 0; i < u->n; i++) {
        if (u->part->use[i] != RLHF_USE_EXCLUDED) continue;
        rlhf__buf_printf(b, "%s%u", between, u->row[i]);
        between = ", ";
    }
    rlhf__buf_putc(b, ']');
}

void rlhf__rollout_log_update(struct rlhf__rollout_log *l,
                              const struct rlhf__rollout_log_update *u) {
    struct rlhf__buf *b = &l->lines;
    char loss[40], norm[40], clipped[40];
    rlhf__buf_printf(b, "{\"phase\": %lld, \"epoch\": %u, \"minibatch\": %u, \"rows\": [",
                     (long long)l->phase, u->epoch, u->minibatch);
    for (uint32_t i = 0; i < u->n; i++)
        rlhf__buf_printf(b, "%s%u", i ? ", " : "", u->row[i]);
    rlhf__buf_printf(b, "], \"loss\": %s, \"grad_norm\": %s, \"grad_norm_clipped\": %s",
                     rlhf__format_double(u->loss, 0, loss),
                     rlhf__format_double(u->grad_norm, 0, norm),
                     rlhf__format_double(u->grad_norm_clipped, 0, clipped));
    rlhf__buf_printf(b, ", \"skipped\": %s", u->skipped ? "true" : "false");
    if (rlhf__row_use_count(u->part, RLHF_USE_EXCLUDED)) put_masked(b, u);
    if (u->own) {
        put_rows(b, "advantage", u->part, RLHF__ADVANTAGE);
        put_rows(b, "returns", u->part, RLHF__RETURNS);
    }
    rlhf__buf_puts(b, "}\n");
}

rlhf_status rlhf__rollout_log_write(struct rlhf__rollout_log *l, struct rlhf__error *err) {
    rlhf_status st = rlhf__jsonl_append(&l->file, &l->lines, err);
    rlhf__buf_finish(&l->lines);
    return st;
}

rlhf_status rlhf__rollout_log_sync(struct rlhf__rollout_log *l, struct rlhf__error *err) {
    return rlhf__jsonl_sync(&l->file, err);
}
