// text_source.c: see text_source.h.
#include "train/text_source.h"

#include "model/classifier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t text_encode_flags(const struct rlhf__tokenizer *tok) {
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    return (info->bos >= 0 ? (uint32_t)RLHF__ENCODE_BOS : 0) |
           (info->eos >= 0 ? (uint32_t)RLHF__ENCODE_EOS : 0);
}

static rlhf_status take_labels(struct rlhf__text_source *s, int32_t n_labels,
                               struct rlhf__error *err) {
    s->n_labels = n_labels > 0 ? n_labels : rlhf__dataset_labels(s->data);
    s->label = calloc((size_t)s->n_data, sizeof *s->label);
    if (!s->label) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for labels");
    for (int64_t i = 0; i < s->n_data; i++)
        s->label[i] = rlhf__dataset_row(s->data, i).label;
    if (s->n_labels >= 2) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "all rows have label 0: a classifier needs at least two labels");
}

rlhf_status rlhf__text_source_open(struct rlhf__text_source *s, const struct rlhf__text_opts *o,
                                   struct rlhf__error *err) {
    memset(s, 0, sizeof *s);
    struct rlhf__dataset_opts d = {.paths = &o->path,
                                   .n_paths = 1,
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .labels = o->label_names,
                                   .n_labels = o->n_labels,
                                   .skip = o->skip,
                                   .limit = o->limit};
    if (o->labelled) d.need |= RLHF__FIELD_BIT(RLHF__FIELD_LABEL);
    rlhf_status st = rlhf__dataset_open(&d, &s->data, err);
    if (st != RLHF_OK) return st;
    s->n_data = rlhf__dataset_rows(s->data);
    s->batch_size = o->batch_size;
    s->batch_tokens = o->batch_tokens;
    return o->labelled ? take_labels(s, o->n_labels, err) : RLHF_OK;
}

rlhf_status rlhf__text_source_tokenise(struct rlhf__text_source *s, const struct rlhf__text_opts *o,
                                       const struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    struct rlhf__token_opts t = {.field = RLHF__FIELD_TEXT,
                                 .encode_flags = o->labelled ? rlhf__classifier_encode_flags(tok)
                                                             : text_encode_flags(tok),
                                 .max_len = o->max_len,
                                 .long_rows = o->split ? RLHF__LONG_SPLIT : RLHF__LONG_TRUNCATE,
                                 .min_len = o->labelled ? 1 : 2,
                                 .threads = o->threads};
    rlhf_status st = rlhf__token_rows_init(&s->rows, s->data, tok, &t, err);
    if (st != RLHF_OK) return st;
    rlhf__dataset_close(s->data);
    s->data = NULL;
    double end = o->epochs * (double)s->rows.n;
    s->end = o->epochs > 0 && end < 1e15 ? llround(end) : INT64_MAX;
    if (s->end < 1) s->end = 1;
    return rlhf__order_init(&s->order, s->rows.n, o->seed, "data", o->shuffle, err);
}

void rlhf__text_source_finish(struct rlhf__text_source *s) {
    rlhf__dataset_close(s->data);
    rlhf__token_rows_finish(&s->rows);
    rlhf__order_finish(&s->order);
    free(s->label);
    memset(s, 0, sizeof *s);
}

static int64_t visited(const struct rlhf__text_source *s) {
    return (int64_t)s->order.pass * s->rows.n + s->order.pos;
}

// The rows of the next batch, appended to *pick (heap, grown; caller frees). The row that no longer
// fits is given back to the order.
static rlhf_status choose(struct rlhf__text_source *s, int64_t **pick, int64_t *n, int64_t *total,
                          struct rlhf__error *err) {
    int64_t cap = 0;
    *n = *total = 0;
    while (visited(s) < s->end) {
        uint64_t pass = s->order.pass;
        int64_t pos = s->order.pos, row = rlhf__order_next(&s->order);
        int64_t len = rlhf__token_rows_len(&s->rows, row);
        if (s->batch_tokens > 0 && *n > 0 && *total + len > s->batch_tokens)
            return rlhf__order_seek(&s->order, pass, pos, err);
        if (*n == cap) {
            cap = cap ? cap * 2 : 64;
            int64_t *more = realloc(*pick, (size_t)cap * sizeof *more);
            if (!more) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a batch");
            *pick = more;
        }
        (*pick)[(*n)++] = row;
        *total += len;
        if (s->batch_tokens <= 0 && *n == s->batch_size) break;
    }
    return RLHF_OK;
}

rlhf_status rlhf__text_source_batches(struct rlhf__text_source *s, int64_t *out,
                                      struct rlhf__error *err) {
    *out = 0;
    if (s->end == INT64_MAX) return RLHF_OK;
    uint64_t pass = s->order.pass;
    int64_t pos = s->order.pos, *pick = NULL, n, total;
    rlhf_status st = rlhf__order_seek(&s->order, 0, 0, err);
    while (st == RLHF_OK && visited(s) < s->end) {
        st = choose(s, &pick, &n, &total, err);
        free(pick);
        pick = NULL;
        ++*out;
    }
    return st == RLHF_OK ? rlhf__order_seek(&s->order, pass, pos, err) : st;
}

rlhf_status rlhf__text_source_next(struct rlhf__text_source *s, struct rlhf__episodes *e,
                                   struct rlhf__error *err) {
    int64_t *pick = NULL, n, total;
    rlhf_status st = choose(s, &pick, &n, &total, err);
    if (st == RLHF_OK && total > INT32_MAX)
        st = rlhf__fail(err, RLHF_E_INVALID, "a batch of %lld tokens is too large",
                        (long long)total);
    if (st == RLHF_OK) st = rlhf__episodes_init(e, (uint32_t)n, (uint32_t)total, err);
    for (int64_t i = 0; st == RLHF_OK && i < n; i++) {
        int32_t len = rlhf__token_rows_len(&s->rows, pick[i]);
        rlhf__token_rows_copy(&s->rows, pick[i], e->ids + e->offset[i]);
        e->offset[i + 1] = e->offset[i] + len;
        e->prompt_len[i] = 1;
        e->source[i] = s->rows.source[pick[i]];
        e->group[i] = (int32_t)i;
        if (s->label) e->label[i] = s->label[e->source[i]];
    }
    free(pick);
    return st;
}

double rlhf__text_source_epoch(const struct rlhf__text_source *s) {
    return rlhf__order_epoch(&s->order);
}
