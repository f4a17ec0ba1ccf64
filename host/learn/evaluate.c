// evaluate.c: see evaluate.h.
#include "learn/evaluate.h"
#include "data/completion.h"
#include "data/token_rows.h"
#include "learn/pass_share.h"
#include "tokenizer/conversation.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_TOKENS 65536 // rows of up to this many tokens are scored together

// Rows waiting to be scored, as growing arrays.
struct chunk {
    struct rlhf__ids ids, offset, prompt_len, label;
    struct rlhf__buf skip; // one byte per id, 1 = not scored; empty if all ids are scored
    const struct rlhf__evaluating *how;
};

static void chunk_finish(struct chunk *c) {
    rlhf__ids_finish(&c->ids);
    rlhf__ids_finish(&c->offset);
    rlhf__ids_finish(&c->prompt_len);
    rlhf__ids_finish(&c->label);
    rlhf__buf_finish(&c->skip);
}

static rlhf_status chunk_add(struct chunk *c, const int32_t *ids, size_t n, int32_t prompt_len,
                             int32_t label, struct rlhf__error *err) {
    rlhf_status st = RLHF_OK;
    if (c->offset.n == 0) st = rlhf__ids_push(&c->offset, 0, err);
    for (size_t i = 0; st == RLHF_OK && i < n; i++)
        st = rlhf__ids_push(&c->ids, ids[i], err);
    if (st == RLHF_OK) st = rlhf__ids_push(&c->offset, (int32_t)c->ids.n, err);
    if (st == RLHF_OK) st = rlhf__ids_push(&c->prompt_len, prompt_len, err);
    return st == RLHF_OK ? rlhf__ids_push(&c->label, label, err) : st;
}

// Returns a view of the chunk with only those members that rlhf__pass reads.
static struct rlhf__rows chunk_rows(const struct chunk *c) {
    return (struct rlhf__rows){.n = (uint32_t)c->prompt_len.n,
                               .total = (uint32_t)c->ids.n,
                               .ids = c->ids.data,
                               .offset = c->offset.data,
                               .prompt_len = c->prompt_len.data};
}

static void chunk_clear(struct chunk *c) {
    rlhf__buf_clear(&c->skip);
    c->ids.n = c->offset.n = c->prompt_len.n = c->label.n = 0;
}

// ---- text ----

static rlhf_status score_text(const struct rlhf__model *m, struct chunk *c,
                              struct rlhf__text_quality *out, struct rlhf__error *err) {
    if (c->ids.n == 0) return RLHF_OK;
    struct rlhf__rows e = chunk_rows(c);
    float *logp = calloc(c->ids.n, sizeof *logp);
    if (!logp) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory evaluating");
    rlhf_dist dist = RLHF_DIST_WHOLE;
    struct rlhf__pass_out pass = {.logp = logp, .cancelled = c->how->cancelled};
    rlhf_status st =
        rlhf__pass_share(c->how->team, m, &e, &dist, RLHF__MICROBATCH_TOKENS, &pass, err);
    for (uint32_t i = 0; st == RLHF_OK && i < e.n; i++)
        for (int32_t k = e.offset[i] + e.prompt_len[i]; k < e.offset[i + 1]; k++) {
            if (c->skip.len && c->skip.data[k]) continue;
            out->nats -= (double)logp[k];
            out->tokens++;
        }
    free(logp);
    chunk_clear(c);
    return st;
}

// A row to score. `skip` has a byte for each id, which is 1 if the id is not scored. If `skip` is
// empty, all ids are scored.
struct scored_row {
    struct rlhf__ids ids;
    struct rlhf__buf skip;
    int64_t bytes; // length of the scored text
};

// Called when n ids of `row`, from `begin` onward, have been added to the chunk. Extends c->skip to
// cover these ids. While all ids of the chunk are scored, c->skip stays empty.
static rlhf_status put_skip(struct chunk *c, const struct scored_row *row, size_t begin, size_t n,
                            struct rlhf__error *err) {
    if (!c->skip.len && !row->skip.len) return RLHF_OK;
    const size_t before = c->skip.len, missing = c->ids.n - before;
    char *more = rlhf__buf_grow(&c->skip, missing);
    if (!more) return rlhf__buf_ok(&c->skip, err);
    memset(more, 0, missing);
    if (row->skip.len) memcpy(more + missing - n, row->skip.data + begin, n);
    return RLHF_OK;
}

// Cut BOS + text into windows. Window w begins at w * (context / 2).
static rlhf_status add_windows(const struct rlhf__model *m, const struct scored_row *row,
                               struct chunk *c, struct rlhf__error *err) {
    size_t context = (size_t)m->info.n_ctx, half = context / 2 ? context / 2 : 1;
    // The tokens before `scored` have been scored, or are only context.
    size_t scored = 1, n = row->ids.n;
    for (size_t begin = 0; scored < n; begin += half) {
        size_t end = begin + context < n ? begin + context : n;
        if (end <= scored) continue;
        RLHF_TRY(
            chunk_add(c, row->ids.data + begin, end - begin, (int32_t)(scored - begin), 0, err));
        RLHF_TRY(put_skip(c, row, begin, end - begin, err));
        scored = end;
    }
    return RLHF_OK;
}

static rlhf_status read_text(const struct rlhf__model *m, rlhf_str text, struct scored_row *out,
                             struct rlhf__error *err) {
    uint32_t flags = rlhf__tokenizer_has_bos(m->tok) ? RLHF__ENCODE_BOS : 0;
    size_t unscored = 0;
    RLHF_TRY(rlhf__tokenizer_encode(m->tok, text, flags, 0, &out->ids, err));
    if (!flags && out->ids.n)
        unscored = rlhf__tokenizer_decode(m->tok, out->ids.data, 1, 0, NULL, 0);
    // the tokenizer may have added a space that is not in the text
    if (unscored > text.len) unscored = (size_t)text.len;
    out->bytes = (int64_t)(text.len - unscored);
    return RLHF_OK;
}

// Returns the bytes of a token's text, 0 for special tokens.
static int64_t text_bytes(const struct rlhf__model *m, int32_t id) {
    return (int64_t)rlhf__tokenizer_decode(m->tok, &id, 1, RLHF__DECODE_SKIP_SPECIAL, NULL, 0);
}

static rlhf_status read_messages(const struct rlhf__model *m, const struct rlhf__data_row *row,
                                 int assistant_only, struct scored_row *out,
                                 struct rlhf__error *err) {
    struct rlhf__messages list = {0};
    json_t *held = NULL;
    rlhf_status st = rlhf__data_row_messages(row, &held, &list, err);
    if (st == RLHF_OK)
        st = rlhf__conversation_encode(m->tok, &list, 0, &out->ids,
                                       assistant_only ? &out->skip : NULL, err);
    for (size_t i = 0; i < out->skip.len; i++)
        out->skip.data[i] = !out->skip.data[i];
    for (size_t i = 1; st == RLHF_OK && i < out->ids.n; i++)
        if (!out->skip.len || !out->skip.data[i]) out->bytes += text_bytes(m, out->ids.data[i]);
    rlhf__messages_finish(&list);
    json_decref(held);
    return st;
}

// Read a prompt and its completion. Only the completion is scored. A completion that is a string
// gets no end token.
static rlhf_status read_completion(const struct rlhf__model *m, const struct rlhf__data_row *row,
                                   struct scored_row *out, struct rlhf__error *err) {
    const uint32_t flags = rlhf__tokenizer_has_bos(m->tok) ? RLHF__ENCODE_BOS : 0;
    struct rlhf__messages list = {0};
    json_t *held = NULL;
    rlhf_status st = RLHF_OK;
    if (row->asked) st = rlhf__data_row_messages(row, &held, &list, err);
    if (st == RLHF_OK)
        st = row->asked
                 ? rlhf__token_completion_chat(m->tok, &list, (size_t)row->asked, &out->ids, err)
                 : rlhf__token_completion(m->tok, row, flags, &out->ids, err);
    char *skip = st == RLHF_OK && out->ids.n ? rlhf__buf_grow(&out->skip, out->ids.n) : NULL;
    if (st == RLHF_OK) st = rlhf__buf_ok(&out->skip, err);
    for (size_t i = 0; skip && i < out->ids.n; i++) {
        skip[i] = !(out->ids.data[i] & RLHF__TOKEN_SAYS);
        out->ids.data[i] &= ~RLHF__TOKEN_SAYS;
        if (i > 0 && !skip[i]) out->bytes += text_bytes(m, out->ids.data[i]);
    }
    rlhf__messages_finish(&list);
    json_decref(held);
    return st;
}

static rlhf_status read_row(const struct rlhf__model *m, const struct rlhf__dataset *ds, int64_t i,
                            int assistant_only, struct scored_row *out, struct rlhf__error *err) {
    const struct rlhf__data_row row = rlhf__dataset_row(ds, i);
    out->ids.n = 0;
    out->bytes = 0;
    rlhf__buf_clear(&out->skip);
    rlhf_status st;
    if (row.asked > 0 || rlhf__data_row_is_pair(&row))
        st = read_completion(m, &row, out, err);
    else if (row.messages.ptr)
        st = read_messages(m, &row, assistant_only, out, err);
    else if (assistant_only)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "the row is a text, and data.assistant_only is for rows with messages");
    else
        st = read_text(m, row.text[RLHF__FIELD_TEXT], out, err);
    if (st == RLHF_OK) return st;
    char where[512];
    rlhf__dataset_where(ds, i, where, sizeof where);
    return rlhf__error_context(err, "%s", where);
}

static int is_stopped(const struct rlhf__evaluating *how) {
    return how->cancelled && *how->cancelled;
}

static rlhf_status stopped(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_CANCELLED, "stopped while the rows were measured");
}

rlhf_status rlhf__evaluate_text(const struct rlhf__model *m, const struct rlhf__dataset *ds,
                                int assistant_only, const struct rlhf__evaluating *how,
                                struct rlhf__text_quality *out, struct rlhf__error *err) {
    *out = (struct rlhf__text_quality){0};
    struct chunk c = {.how = how};
    struct scored_row row = {0};
    rlhf_status st = RLHF_OK;
    const int64_t rows = rlhf__evaluating_rows(how, rlhf__dataset_rows(ds));
    for (int64_t i = 0; st == RLHF_OK && i < rows; i++) {
        if (is_stopped(how)) st = stopped(err);
        if (st == RLHF_OK) st = read_row(m, ds, i, assistant_only, &row, err);
        if (st != RLHF_OK) break;
        out->rows++;
        out->bytes += row.bytes;
        st = add_windows(m, &row, &c, err);
        if (st == RLHF_OK && c.ids.n >= CHUNK_TOKENS) st = score_text(m, &c, out, err);
    }
    if (st == RLHF_OK) st = score_text(m, &c, out, err);
    rlhf__ids_finish(&row.ids);
    rlhf__buf_finish(&row.skip);
    chunk_finish(&c);
    if (st == RLHF_OK && (out->tokens == 0 || out->bytes == 0))
        return rlhf__fail(err, RLHF_E_INVALID, "the texts have no token that can be scored");
    return st;
}

double rlhf__bits_per_byte(const struct rlhf__text_quality *q) {
    return q->nats / 0.69314718055994530942 / (double)q->bytes;
}

// ---- labels ----

struct rlhf__peak rlhf__peak_of(const float *x, int32_t n) {
    struct rlhf__peak p = {0};
    for (int32_t k = 1; k < n; k++)
        if (x[k] > x[p.at]) p.at = k;
    for (int32_t k = 0; k < n; k++)
        p.sum += rlhf_exp((double)x[k] - (double)x[p.at]);
    return p;
}

static void count_row(const float *logits, int32_t n, int32_t label,
                      struct rlhf__label_quality *out) {
    const struct rlhf__peak p = rlhf__peak_of(logits, n);
    out->rows++;
    out->correct += p.at == label;
    out->nats += (double)logits[p.at] + rlhf_log(p.sum) - (double)logits[label];
}

static rlhf_status score_labels(const struct rlhf__model *m, struct chunk *c,
                                struct rlhf__label_quality *out, struct rlhf__error *err) {
    if (c->ids.n == 0) return RLHF_OK;
    struct rlhf__rows e = chunk_rows(c);
    size_t width = (size_t)m->n_labels;
    float *logits = calloc((size_t)e.n * width, sizeof *logits);
    if (!logits) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory evaluating");
    rlhf_dist dist = RLHF_DIST_WHOLE;
    struct rlhf__pass_out pass = {.score = logits, .cancelled = c->how->cancelled};
    rlhf_status st =
        rlhf__pass_share(c->how->team, m, &e, &dist, RLHF__MICROBATCH_TOKENS, &pass, err);
    for (uint32_t i = 0; st == RLHF_OK && i < e.n; i++)
        count_row(logits + i * width, m->n_labels, c->label.data[i], out);
    free(logits);
    chunk_clear(c);
    return st;
}

// Encode a row for the classifier, cut to `longest` tokens.
static rlhf_status labeled_ids(const struct rlhf__model *m, const struct rlhf__data_row *row,
                               size_t longest, struct rlhf__ids *ids, struct rlhf__error *err) {
    struct rlhf__messages list = {0};
    json_t *held = NULL;
    ids->n = 0;
    if (!row->messages.ptr)
        return rlhf__tokenizer_encode(m->tok, row->text[RLHF__FIELD_TEXT], RLHF__ENCODE_TEMPLATE,
                                      longest, ids, err);
    rlhf_status st = rlhf__data_row_messages(row, &held, &list, err);
    if (st == RLHF_OK) st = rlhf__conversation_encode(m->tok, &list, 0, ids, NULL, err);
    if (ids->n > longest) ids->n = longest;
    rlhf__messages_finish(&list);
    json_decref(held);
    return st;
}

rlhf_status rlhf__evaluate_labels(const struct rlhf__model *m, const struct rlhf__dataset *ds,
                                  int32_t max_tokens, const struct rlhf__evaluating *how,
                                  struct rlhf__label_quality *out, struct rlhf__error *err) {
    *out = (struct rlhf__label_quality){0};
    size_t longest = (size_t)(max_tokens > 0 ? max_tokens : m->info.n_ctx);
    struct chunk c = {.how = how};
    struct rlhf__ids ids = {0};
    rlhf_status st = RLHF_OK;
    const int64_t rows = rlhf__evaluating_rows(how, rlhf__dataset_rows(ds));
    for (int64_t i = 0; st == RLHF_OK && i < rows; i++) {
        struct rlhf__data_row row = rlhf__dataset_row(ds, i);
        char where[512];
        rlhf__dataset_where(ds, i, where, sizeof where);
        if (row.label < 0 || row.label >= m->n_labels)
            st = rlhf__fail(err, RLHF_E_INVALID, "%s: label %d is outside 0..%d, what '%s' knows",
                            where, row.label, m->n_labels - 1, m->dir);
        if (st == RLHF_OK && is_stopped(how)) st = stopped(err);
        if (st == RLHF_OK) {
            st = labeled_ids(m, &row, longest, &ids, err);
            if (st != RLHF_OK) rlhf__error_context(err, "%s", where);
        }
        if (st == RLHF_OK && ids.n == 0)
            st = rlhf__fail(err, RLHF_E_INVALID, "%s: the text has no tokens", where);
        if (st == RLHF_OK) st = chunk_add(&c, ids.data, ids.n, 1, row.label, err);
        if (st == RLHF_OK && c.ids.n >= CHUNK_TOKENS) st = score_labels(m, &c, out, err);
    }
    if (st == RLHF_OK) st = score_labels(m, &c, out, err);
    rlhf__ids_finish(&ids);
    chunk_finish(&c);
    return st;
}
