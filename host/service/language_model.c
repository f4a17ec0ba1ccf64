// language_model.c: see language_model.h.
#include "service/language_model.h"

#include "base/json_decode.h"
#include "learn/pass.h"
#include "sample/decode.h"
#include "tokenizer/conversation.h"

#include <stdlib.h>
#include <string.h>

enum { FLAGS_KNOWN = RLHF_LANGUAGE_PAST_ENDS };

// A content must not become special tokens, because a judge's question contains the text of the
// policy.
rlhf_status rlhf__language_messages(const struct rlhf__tokenizer *tok, rlhf_str text,
                                    struct rlhf__ids *out, struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    json_error_t why;
    json_t *list = rlhf__json_decode_digits(text.ptr, (size_t)text.len, 0, &why);
    rlhf_status st = list ? rlhf__messages_read(&m, list, "messages", err)
                          : rlhf__fail(err, RLHF_E_INVALID, "messages is not JSON: %s at byte %d",
                                       why.text, why.position);
    if (st == RLHF_OK) st = rlhf__messages_check_prompt(&m, "messages", err);
    for (size_t i = 0; i < m.n; i++)
        if (m.item[i].written == RLHF__CONTENT_TEXT) m.item[i].written = RLHF__CONTENT_SPELLED;
    if (st == RLHF_OK) st = rlhf__conversation_encode(tok, &m, 1, out, NULL, err);
    rlhf__messages_finish(&m);
    json_decref(list);
    return st;
}

// ---- rows ----

// Check n rows, each with `more` tokens after it.
static rlhf_status check_rows(const rlhf_language_model *lm, uint32_t n, const int32_t *ids,
                              const int32_t *offset, int32_t more, struct rlhf__error *err) {
    for (uint32_t i = 0; i < n; i++) {
        const int32_t len = offset[i + 1] - offset[i];
        if (len > lm->longest - more)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "row %u needs %d tokens; the language model '%s' was opened for %d",
                              i, len + more, lm->of->served.dir, lm->longest);
    }
    return rlhf__served_check_ids(&lm->of->served, n, ids, offset, err);
}

rlhf_status rlhf__language_score(const rlhf_language_model *lm, const rlhf_language_rows *q,
                                 float *logp, struct rlhf__error *err) {
    const struct rlhf__model *m = lm->of->served.model;
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    struct rlhf__rows rows = {0};
    RLHF_TRY(check_rows(lm, q->n, q->ids, q->offset, 0, err));
    const uint32_t total = (uint32_t)q->offset[q->n];
    RLHF_TRY(rlhf__rows_init(&rows, q->n, total, err));
    rows.flags =
        RLHF__SHARE_PROMPTS; // all rows are one group: equal prompts are found by their ids
    memcpy(rows.ids, q->ids, total * sizeof *rows.ids);
    memcpy(rows.offset, q->offset, ((size_t)q->n + 1) * sizeof *rows.offset);
    memcpy(rows.prompt_len, q->prompt_len, q->n * sizeof *rows.prompt_len);
    memset(logp, 0, total * sizeof *logp);
    const struct rlhf__pass_out out = {.logp = logp, .cancelled = m->env->services->cancelled};
    const rlhf_status st = rlhf__pass(m, &rows, &dist, RLHF__MICROBATCH_TOKENS, &out, err);
    rlhf__rows_finish(&rows);
    return st;
}

// ---- responses ----

static rlhf_status generate(int32_t slots, const struct rlhf__model *m, struct rlhf__gen_request *q,
                            uint32_t longest, struct rlhf__gen_result *r, struct rlhf__error *err) {
    rlhf_gen *cache = NULL;
    q->slots = (uint32_t)slots < q->n ? (uint32_t)slots : q->n;
    RLHF_TRY(rlhf__model_gen_open(m, q->slots, longest, &cache, err));
    const rlhf_status st = rlhf__generate(m, cache, q, r, err);
    rlhf__model_gen_close(m, cache);
    return st;
}

static rlhf_status check_stop(const rlhf_language_model *lm, const rlhf_language_request *q,
                              struct rlhf__error *err) {
    const int32_t n_vocab = lm->of->served.model->info.n_vocab;
    for (uint32_t i = 0; i < q->n_stop; i++)
        if (q->stop[i] < 0 || q->stop[i] >= n_vocab)
            return rlhf__fail(err, RLHF_E_INVALID, "stop has the token %d; 0 to %d are allowed",
                              q->stop[i], n_vocab - 1);
    return RLHF_OK;
}

static rlhf_status check_request(const rlhf_language_model *lm, const rlhf_language_request *q,
                                 struct rlhf__error *err) {
    if (!lm->slots)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "the language model '%s' was opened with 0 slots, so it does not generate",
            lm->of->served.dir);
    if (q->max_new < 1 || q->max_new > RLHF__MAX_NEW_TOKENS)
        return rlhf__fail(err, RLHF_E_INVALID, "max_new is %d; 1 to %d are allowed", q->max_new,
                          RLHF__MAX_NEW_TOKENS);
    if (!(q->temperature >= 0 && q->temperature <= 1e6) || !(q->top_p >= 0 && q->top_p <= 1) ||
        !(q->min_p >= 0 && q->min_p <= 1) || q->top_k < 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "temperature %g, top_p %g, min_p %g, top_k %d: temperature and top_k are "
                          "at least 0, top_p and min_p from 0 to 1",
                          q->temperature, q->top_p, q->min_p, q->top_k);
    if (q->temperature > 0 && !q->rng)
        return rlhf__fail(err, RLHF_E_INVALID, "a temperature of %g needs a generator (rng)",
                          q->temperature);
    if (q->n_stop > RLHF__STOPS_MAX || q->flags & ~(uint32_t)FLAGS_KNOWN)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%u stop tokens, flags %u; at most %d stop tokens, and flags %d",
                          q->n_stop, q->flags, RLHF__STOPS_MAX, FLAGS_KNOWN);
    RLHF_TRY(check_stop(lm, q, err));
    return check_rows(lm, q->n, q->ids, q->offset, q->max_new, err);
}

// Returns the tokens that end a response: the model's own and those of the request.
static struct rlhf__ends ends_of(const rlhf_language_model *lm, const rlhf_language_request *q) {
    struct rlhf__ends ends = lm->of->served.model->ends;
    if (q->flags & RLHF_LANGUAGE_PAST_ENDS) ends.n = 0;
    for (uint32_t i = 0; i < q->n_stop; i++)
        if (!rlhf__ends_has(&ends, q->stop[i])) ends.id[ends.n++] = q->stop[i];
    return ends;
}

static void give(const rlhf_language_request *q, const struct rlhf__gen_result *r,
                 const rlhf_language_responses *out) {
    const size_t stride = (size_t)q->max_new;
    memcpy(out->len, r->len, q->n * sizeof *out->len);
    memcpy(out->stopped, r->stopped, q->n);
    memcpy(out->ids, r->ids, q->n * stride * sizeof *out->ids);
    if (out->logp) memcpy(out->logp, r->logp, q->n * stride * sizeof *out->logp);
}

rlhf_status rlhf__language_respond(const rlhf_language_model *lm, const rlhf_language_request *q,
                                   const rlhf_language_responses *out, struct rlhf__error *err) {
    RLHF_TRY(check_request(lm, q, err));
    const struct rlhf__model *m = lm->of->served.model;
    const rlhf_dist whole = RLHF_DIST_WHOLE;
    const rlhf_dist dist = {.size = sizeof dist,
                            .greedy = !(q->temperature > 0),
                            .inv_temperature = q->temperature > 0 ? 1 / q->temperature : 1,
                            .top_p = q->top_p > 0 ? q->top_p : 1,
                            .top_k = q->top_k,
                            .min_p = q->min_p};
    const struct rlhf__ends ends = ends_of(lm, q);
    const int32_t **prompt = calloc(q->n, sizeof *prompt);
    int32_t *len = calloc(q->n, sizeof *len), longest = 0;
    struct rlhf__gen_result r = {0};
    struct rlhf__gen_request g = {.n = q->n,
                                  .prompt = prompt,
                                  .prompt_len = len,
                                  .max_new = q->max_new,
                                  .ends = &ends,
                                  .dist = &dist,
                                  .logp_dist = &whole,
                                  .seed = q->rng ? q->rng->seed : 0,
                                  .stream = q->rng ? q->rng->stream : 0,
                                  .first = q->rng ? q->rng->counter : 0,
                                  .cancelled = m->env->services->cancelled};
    rlhf_status st = RLHF_OK;
    if (!prompt || !len) st = RLHF__NOMEM(err, "out of memory for %u prompts", q->n);
    for (uint32_t i = 0; st == RLHF_OK && i < q->n; i++) {
        prompt[i] = q->ids + q->offset[i];
        len[i] = q->offset[i + 1] - q->offset[i];
        if (len[i] > longest) longest = len[i];
    }
    if (st == RLHF_OK) st = generate(lm->slots, m, &g, (uint32_t)(longest + q->max_new), &r, err);
    if (st == RLHF_OK) give(q, &r, out);
    rlhf__gen_result_finish(&r);
    free(prompt);
    free(len);
    return st;
}

// ---- the memory estimate ----

// Count the cache of generate(), and two steps: one reads prompts, and one continues them.
static rlhf_status generate_longest(int32_t slots, const struct rlhf__model *m, int32_t longest,
                                    struct rlhf__error *err) {
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    const size_t n = (size_t)slots;
    const int32_t **prompt = calloc(n, sizeof *prompt);
    int32_t *ids = calloc((size_t)longest, sizeof *ids), *len = calloc(n, sizeof *len);
    struct rlhf__gen_result r = {0};
    struct rlhf__gen_request q = {.n = (uint32_t)n,
                                  .prompt = prompt,
                                  .prompt_len = len,
                                  .max_new = 2,
                                  .dist = &dist,
                                  .logp_dist = &dist};
    rlhf_status st = RLHF_OK;
    if (!prompt || !ids || !len) st = RLHF__NOMEM(err, "out of memory for %zu prompts", n);
    for (size_t i = 0; st == RLHF_OK && i < n; i++) {
        prompt[i] = ids;
        len[i] = longest > 2 ? longest - 2 : 1;
    }
    if (st == RLHF_OK) st = generate(slots, m, &q, (uint32_t)longest, &r, err);
    rlhf__gen_result_finish(&r);
    free(prompt);
    free(ids);
    free(len);
    return st;
}

// A question about a row of the run is longer than the row by its own text, for which this many
// tokens are counted. Rows fill a microbatch, as in score().
enum { QUESTION_TOKENS = 1024 };

rlhf_status rlhf__language_largest(const struct rlhf__served *o, const struct rlhf__model *m,
                                   const struct rlhf__rows *e, struct rlhf__error *err) {
    const struct rlhf__language *lm = (const void *)o;
    const rlhf_dist dist = RLHF_DIST_WHOLE;
    struct rlhf__rows rows = {0};
    int32_t len = 0;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->offset[i + 1] - e->offset[i] > len) len = e->offset[i + 1] - e->offset[i];
    len += QUESTION_TOKENS;
    if (len > lm->longest) len = lm->longest;
    const int32_t n = len < RLHF__MICROBATCH_TOKENS ? RLHF__MICROBATCH_TOKENS / len : 1;
    RLHF_TRY(rlhf__rows_init(&rows, (uint32_t)n, (uint32_t)(n * len), err));
    for (int32_t i = 0; i < n; i++) {
        rows.prompt_len[i] = 1;
        rows.offset[i + 1] = (i + 1) * len;
    }
    const struct rlhf__pass_out out = {.logp = rows.token[RLHF__LOGP_OLD]};
    rlhf_status st = rlhf__pass(m, &rows, &dist, RLHF__MICROBATCH_TOKENS, &out, err);
    rlhf__model_trim(m);
    rlhf__rows_finish(&rows);
    if (st == RLHF_OK && lm->slots) st = generate_longest(lm->slots, m, len, err);
    rlhf__model_trim(m);
    return st;
}
