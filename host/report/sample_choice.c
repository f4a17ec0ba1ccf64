// sample_choice.c: see sample_choice.h.
#include "report/sample_choice.h"

#include "base/json.h"
#include "episode/said_json.h"
#include "tokenizer/pieces.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rlhf__sample_choice_finish(struct rlhf__sample_choice *s) {
    free(s->rows);
    free(s->paid);
    rlhf__buf_finish(&s->text);
    *s = (struct rlhf__sample_choice){0};
}

// ---- which rows ----

struct ranked {
    float reward;
    uint32_t row;
};

// Sort by reward, the lowest first. Rows with equal rewards keep their order.
static int compare_ranked(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->reward < y->reward) return -1;
    if (x->reward > y->reward) return 1;
    return (x->row > y->row) - (x->row < y->row);
}

// Samples are taken at fixed ranks of the sorted rewards. Returns the share of rows that rank below
// sample i of n. The shares range from 5 to 95 % and are closer together at both ends.
static double share_of(uint32_t i, uint32_t n) {
    static const double at[] = {0.05, 0.25, 0.5, 0.75, 0.95};
    if (n == 1) return at[2];
    const double place = 4.0 * i / (n - 1);
    const int k = place < 3 ? (int)place : 3;
    return at[k] + (place - k) * (at[k + 1] - at[k]);
}

// Returns the rank of sample i of n samples; n is at most `rows`. The rank is higher than `before`,
// the rank of the previous sample.
static uint32_t rank_of(uint32_t i, uint32_t n, uint32_t rows, uint32_t before) {
    const uint32_t last = rows - n + i; // leave ranks for the samples after sample i
    uint32_t rank = (uint32_t)lround(share_of(i, n) * (rows - 1));
    if (i > 0 && rank <= before) rank = before + 1;
    return rank < last ? rank : last;
}

static rlhf_status pick_ranked(const struct rlhf__rows *e, uint32_t n, uint32_t *pick,
                               struct rlhf__error *err) {
    struct ranked *all = calloc(e->n, sizeof *all);
    if (!all) return RLHF__NOMEM(err, "out of memory for samples");
    for (uint32_t i = 0; i < e->n; i++)
        all[i] = (struct ranked){e->reward[i], i};
    qsort(all, e->n, sizeof *all, compare_ranked);
    for (uint32_t i = 0, rank = 0; i < n; i++) {
        rank = rank_of(i, n, e->n, rank);
        pick[i] = all[rank].row;
    }
    free(all);
    return RLHF_OK;
}

uint32_t rlhf__sample_choice_even(uint32_t rows, uint32_t n, uint32_t *pick) {
    if (n > rows) n = rows;
    for (uint32_t i = 0; i < n; i++)
        pick[i] = n == 1 ? 0 : (uint32_t)(((uint64_t)i * (rows - 1) + (n - 1) / 2) / (n - 1));
    return n;
}

// Mismatched completions (label -1) do not come from the file.
static int is_of_file(const struct rlhf__rows *e, uint32_t i) { return e->label[i] >= 0; }

// Pick rows of a file, in whole groups. The first group is always picked. Further groups are picked
// as long as the total does not exceed `most` rows. Returns the number of picked rows. The array
// `pick` has e->n elements.
static uint32_t pick_first(const struct rlhf__rows *e, uint32_t most, uint32_t *pick) {
    uint32_t n = 0;
    for (uint32_t i = 0, end; i < e->n; i = end) {
        uint32_t here = 0;
        end = rlhf__rows_group_end(e, i);
        for (uint32_t k = i; k < end; k++)
            here += (uint32_t)is_of_file(e, k);
        if (n > 0 && n + here > most) break;
        for (uint32_t k = i; k < end; k++)
            if (is_of_file(e, k)) pick[n++] = k;
    }
    return n;
}

// ---- the members of a row ----

static const char *number(double v, char text[32]) {
    if (isfinite(v))
        snprintf(text, 32, "%.4g", v);
    else
        snprintf(text, 32, "null");
    return text;
}

// Write the numbers of the tokens after the prompt, with null for tokens that the policy did not
// write.
static void put_numbers(struct rlhf__buf *b, const char *key, const struct rlhf__rows *e,
                        uint32_t i, const float *x) {
    char text[32];
    rlhf__buf_printf(b, ", \"%s\": ", key);
    if (!x) {
        rlhf__buf_puts(b, "null");
        return;
    }
    const int32_t from = e->offset[i] + e->prompt_len[i];
    for (int32_t t = from; t < e->offset[i + 1]; t++)
        rlhf__buf_printf(b, "%s%s", t > from ? "," : "[",
                         number(rlhf__rows_is_response(e, t) ? (double)x[t] : NAN, text));
    rlhf__buf_puts(b, from < e->offset[i + 1] ? "]" : "[]");
}

static rlhf_status put_pieces(struct rlhf__buf *b, const struct rlhf__sample_choice_from *f,
                              uint32_t i, struct rlhf__error *err) {
    const struct rlhf__rows *e = f->rows;
    const int32_t from = e->offset[i] + e->prompt_len[i];
    const size_t n = (size_t)(e->offset[i + 1] - from);
    struct rlhf__buf text = RLHF__BUF_INIT;
    size_t *end = calloc(n + 1, sizeof *end);
    if (!end) return RLHF__NOMEM(err, "out of memory for samples");
    const rlhf_status st = rlhf__pieces(f->tok, e->ids + from, n, &text, end, err);
    rlhf__buf_puts(b, ", \"pieces\": [");
    for (size_t k = 0; st == RLHF_OK && k < n; k++) {
        const size_t at = k ? end[k - 1] : 0;
        if (k) rlhf__buf_putc(b, ',');
        rlhf__json_write_string(b, rlhf__buf_text(&text) + at, end[k] - at);
    }
    rlhf__buf_putc(b, ']');
    rlhf__buf_finish(&text);
    free(end);
    return st;
}

static void put_reward(struct rlhf__buf *b, const char *between, const char *name, double paid) {
    char text[32];
    rlhf__buf_puts(b, between);
    rlhf__json_write_string(b, name, strlen(name));
    rlhf__buf_printf(b, ": %s", number(paid, text));
}

// Write {"NAME": weight times score, ...}, including the rewards from the environment.
static void put_rewards(struct rlhf__buf *b, const struct rlhf__sample_choice_from *f, uint32_t i) {
    const struct rlhf__scored *x = f->scored;
    const struct rlhf__plugin_config *environment = &f->config->environment;
    const int pays = environment->plugin && f->rows->paid;
    const uint32_t n = x->paid ? x->n_rewards : 0;
    const char *between = ", \"rewards\": {";
    if (!(f->flags & RLHF__CHOICE_REWARDS) || !(n || pays)) {
        rlhf__buf_puts(b, ", \"rewards\": null");
        return;
    }
    for (uint32_t k = 0; k < n; k++, between = ", ") {
        const struct rlhf__plugin_config *r = &f->config->reward[k];
        put_reward(b, between, r->name, r->weight * (double)x->paid[i * n + k]);
    }
    if (pays)
        put_reward(b, between, "environment",
                   environment->weight * rlhf__rows_response_sum(f->rows, i, f->rows->paid, NULL));
    rlhf__buf_putc(b, '}');
}

static void put_label(struct rlhf__buf *b, const struct rlhf__sample_choice_from *f, uint32_t i) {
    const int32_t label = f->rows->label[i];
    rlhf__buf_puts(b, ", \"label\": ");
    if (f->source == RLHF_SOURCE_PREFERENCES)
        rlhf__buf_puts(b, label == 1 ? "\"chosen\"" : "\"rejected\"");
    else if (f->source == RLHF_SOURCE_COMPLETIONS)
        rlhf__buf_puts(b, label == 1 ? "true" : "false");
    else if (f->source == RLHF_SOURCE_LABELED && f->labels && label < f->labels->n)
        rlhf__json_write_string(b, f->labels->name[label], strlen(f->labels->name[label]));
    else
        rlhf__buf_puts(b, "null");
}

static rlhf_status put_response(struct rlhf__buf *b, const struct rlhf__sample_choice_from *f,
                                uint32_t i, struct rlhf__error *err) {
    const struct rlhf__rows *e = f->rows;
    const float *ref = f->flags & RLHF__CHOICE_REFERENCE ? e->token[RLHF__LOGP_REF] : NULL;
    const float *value = f->flags & RLHF__CHOICE_VALUES ? e->token[RLHF__VALUE_OLD] : NULL;
    if (f->flags & RLHF__CHOICE_HELD_OUT) rlhf__buf_puts(b, ", \"eval\": true");
    rlhf__buf_printf(b, ", \"row\": %u, \"prompt_row\": %lld, \"length\": %d", i,
                     (long long)rlhf__prompts_get(f->prompts, e->source[i]).row,
                     e->offset[i + 1] - e->offset[i] - e->prompt_len[i]);
    put_rewards(b, f, i);
    if (e->turn) rlhf__buf_puts(b, ", ");
    if (e->turn) rlhf__said_json(b, f->tok, e, i);
    RLHF_TRY(put_pieces(b, f, i, err));
    put_numbers(b, "logp_tokens", e, i, e->token[RLHF__LOGP_OLD]);
    put_numbers(b, "ref_logp_tokens", e, i, ref);
    put_numbers(b, "value_tokens", e, i, value);
    return RLHF_OK;
}

static void put_data(struct rlhf__buf *b, const struct rlhf__sample_choice_from *f, uint32_t i) {
    const struct rlhf__rows *e = f->rows;
    rlhf__buf_printf(b, ", \"row\": %u, \"prompt_row\": %lld", i, (long long)e->source[i]);
    put_label(b, f, i);
    rlhf__buf_printf(
        b,
        ", \"length\": %d, \"rewards\": null, \"pieces\": null, \"logp_tokens\": null, "
        "\"ref_logp_tokens\": null, \"value_tokens\": null",
        e->offset[i + 1] - e->offset[i]);
}

// ---- copies ----

// Returns the number of tokens before the response in a row of a file. If a text lacks a prompt,
// all of it is the response.
static int32_t data_prompt(const struct rlhf__sample_choice_from *f, uint32_t i) {
    const int texts = f->source == RLHF_SOURCE_TEXT || f->source == RLHF_SOURCE_LABELED;
    return texts && f->rows->prompt_len[i] <= 1 ? 0 : f->rows->prompt_len[i];
}

static void put_tokens(struct rlhf__buf *b, const struct rlhf__tokenizer *tok, const int32_t *ids,
                       size_t n) {
    const size_t bytes = rlhf__tokenizer_decode(tok, ids, n, 0, NULL, 0);
    char *at = rlhf__buf_grow(b, bytes);
    if (at) rlhf__tokenizer_decode(tok, ids, n, 0, at, bytes);
}

// Append prompt, response and details of row i. end[3] receives the length of the buffer after each
// of these parts.
static rlhf_status put_row(struct rlhf__buf *b, const struct rlhf__sample_choice_from *f,
                           uint32_t i, size_t end[3], struct rlhf__error *err) {
    const struct rlhf__rows *e = f->rows;
    if (f->source == RLHF_SOURCE_ROLLOUT) {
        rlhf__buf_put(b, f->scored->prompt[i].ptr, (size_t)f->scored->prompt[i].len);
        end[0] = b->len;
        rlhf__buf_put(b, f->scored->response[i].ptr, (size_t)f->scored->response[i].len);
        end[1] = b->len;
        RLHF_TRY(put_response(b, f, i, err));
    } else {
        const int32_t prompt = data_prompt(f, i), *ids = e->ids + e->offset[i];
        put_tokens(b, f->tok, ids, (size_t)prompt);
        end[0] = b->len;
        put_tokens(b, f->tok, ids + prompt, (size_t)(e->offset[i + 1] - e->offset[i] - prompt));
        end[1] = b->len;
        put_data(b, f, i);
    }
    end[2] = b->len;
    return rlhf__buf_ok(b, err);
}

// Point the samples to their texts.
static void point(struct rlhf__sample_choice *s, const size_t *end) {
    const char *text = rlhf__buf_text(&s->text);
    size_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        rlhf_str *to[] = {&s->rows[i].prompt, &s->rows[i].response, &s->rows[i].details};
        for (size_t k = 0; k < 3; k++) {
            *to[k] = (rlhf_str){text + at, end[3 * i + k] - at};
            at = end[3 * i + k];
        }
    }
}

// Returns 1 if the prompt of row i of a file has special tokens.
static int is_marked(const struct rlhf__sample_choice_from *f, uint32_t i) {
    const int32_t *ids = f->rows->ids + f->rows->offset[i], n = data_prompt(f, i);
    for (int32_t k = 0; k < n; k++)
        if (rlhf__tokenizer_is_special(f->tok, ids[k])) return 1;
    return 0;
}

static void set_numbers(struct rlhf__sample_choice *s, const struct rlhf__sample_choice_from *f,
                        const uint32_t *pick) {
    const struct rlhf__rows *e = f->rows;
    const size_t each = s->paid ? f->scored->n_rewards : 0;
    for (size_t k = 0; k < s->n; k++) {
        struct rlhf__sample *one = &s->rows[k];
        const uint32_t i = pick[k];
        one->reward = f->flags & RLHF__CHOICE_REWARDS ? (double)e->reward[i] : NAN;
        one->is_marked = s->is_data && is_marked(f, i);
        one->is_chat = !s->is_data && rlhf__prompts_get(f->prompts, e->source[i]).is_chat;
        one->prompt_tokens = e->prompt_len[i];
        one->logp =
            s->is_data ? NAN : rlhf__rows_response_sum(e, i, e->token[RLHF__LOGP_OLD], NULL);
        one->ref_logp = f->flags & RLHF__CHOICE_REFERENCE
                            ? rlhf__rows_response_sum(e, i, e->token[RLHF__LOGP_REF], NULL)
                            : NAN;
        if (!each || !s->paid || !f->scored->paid) continue;
        one->paid = s->paid + k * each;
        memcpy(s->paid + k * each, f->scored->paid + i * each, each * sizeof *s->paid);
    }
}

static rlhf_status copy(struct rlhf__sample_choice *s, const struct rlhf__sample_choice_from *f,
                        const uint32_t *pick, uint32_t n, struct rlhf__error *err) {
    const int several = !s->is_data && f->scored->paid && f->scored->n_rewards > 1;
    size_t *end = calloc(3 * (size_t)n + 1, sizeof *end);
    s->rows = calloc(n, sizeof *s->rows);
    s->paid = several ? calloc((size_t)n * f->scored->n_rewards, sizeof *s->paid) : NULL;
    rlhf_status st = end && s->rows && (!several || s->paid)
                         ? RLHF_OK
                         : RLHF__NOMEM(err, "out of memory for samples");
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        st = put_row(&s->text, f, pick[i], end + 3 * (size_t)i, err);
    if (st == RLHF_OK) {
        s->n = n;
        point(s, end);
        set_numbers(s, f, pick);
    }
    free(end);
    return st;
}

rlhf_status rlhf__sample_choice_take(struct rlhf__sample_choice *s,
                                     const struct rlhf__sample_choice_from *f,
                                     struct rlhf__error *err) {
    const struct rlhf__log_config *c = &f->config->log;
    const uint32_t rows = f->rows->n;
    uint32_t n = c->samples < rows ? (uint32_t)c->samples : rows;
    rlhf__sample_choice_finish(s);
    s->is_data = f->source != RLHF_SOURCE_ROLLOUT;
    if (c->samples_every == 0 || n == 0) return RLHF_OK;
    uint32_t *pick = calloc(rows, sizeof *pick);
    if (!pick) return RLHF__NOMEM(err, "out of memory for samples");
    rlhf_status st = RLHF_OK;
    if (s->is_data)
        n = pick_first(f->rows, n, pick);
    else if (f->flags & RLHF__CHOICE_HELD_OUT)
        n = rlhf__sample_choice_even(rows, n, pick);
    else
        st = pick_ranked(f->rows, n, pick, err);
    if (st == RLHF_OK && n > 0) st = copy(s, f, pick, n, err);
    free(pick);
    return st;
}
