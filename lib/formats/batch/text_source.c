// text_source.c: see text_source.h.
#include "batch/text_source.h"

#include <stdlib.h>
#include <string.h>

static uint32_t text_encode_flags(const struct rlhf__tokenizer *tok) {
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    return (rlhf__tokenizer_has_bos(tok) ? (uint32_t)RLHF__ENCODE_BOS : 0) |
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
                                   .setting = "data.path",
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES),
                                   .labels = o->label_names,
                                   .n_labels = o->n_labels,
                                   .skip = o->skip,
                                   .limit = o->limit,
                                   .loading = o->loading};
    if (o->labeled) d.need |= RLHF__FIELD_BIT(RLHF__FIELD_LABEL);
    if (!o->labeled) d.want |= RLHF__FIELD_BIT(RLHF__FIELD_COMPLETION);
    RLHF_TRY(rlhf__dataset_open(&d, &s->data, err));
    s->skip = o->skip;
    s->n_data = rlhf__dataset_rows(s->data);
    return o->labeled ? take_labels(s, o->n_labels, err) : RLHF_OK;
}

static int64_t row_length(const void *rows, int64_t i) { return rlhf__token_rows_len(rows, i); }

rlhf_status rlhf__text_source_tokenize(struct rlhf__text_source *s, const struct rlhf__text_opts *o,
                                       const struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    s->encode_flags = o->labeled ? (uint32_t)RLHF__ENCODE_TEMPLATE : text_encode_flags(tok);
    struct rlhf__token_opts t = {.field = RLHF__FIELD_TEXT,
                                 .encode_flags = s->encode_flags,
                                 .max_len = o->max_len,
                                 .long_rows = o->split ? RLHF__LONG_SPLIT : RLHF__LONG_TRUNCATE,
                                 .min_len = o->labeled ? 1 : 2,
                                 .threads = o->threads,
                                 .says = o->assistant_only ? RLHF__SAYS_ASSISTANT
                                         : rlhf__dataset_completions(s->data)
                                             ? RLHF__SAYS_COMPLETION
                                             : RLHF__SAYS_NOTHING,
                                 .loading = o->loading};
    RLHF_TRY(rlhf__token_rows_init(&s->rows, s->data, tok, &t, err));
    rlhf__dataset_close(s->data);
    s->data = NULL;
    struct rlhf__batch_opts b = {.batch_size = o->batch_size,
                                 .batch_tokens = o->batch_tokens,
                                 .epochs = o->epochs,
                                 .seed = o->seed,
                                 .shuffle = o->shuffle};
    return rlhf__batches_init(&s->batches, s->rows.n, &b, row_length, &s->rows, err);
}

void rlhf__text_source_finish(struct rlhf__text_source *s) {
    rlhf__dataset_close(s->data);
    rlhf__token_rows_finish(&s->rows);
    rlhf__batches_finish(&s->batches);
    free(s->label);
    memset(s, 0, sizeof *s);
}

rlhf_status rlhf__text_source_batches(struct rlhf__text_source *s, int64_t *out,
                                      struct rlhf__error *err) {
    return rlhf__batches_count(&s->batches, out, err);
}

// Set prompt_len and left_out of row i of e. This row is a copy of the token row `from`. rows->says
// is 1 for the tokens to train on: those of the assistant, or of a completion.
static void put_says(const struct rlhf__token_rows *rows, int64_t from, struct rlhf__rows *e,
                     uint32_t i) {
    const uint8_t *says = rows->says + rows->offset[from];
    int32_t len = rlhf__token_rows_len(rows, from), first = 1;
    while (first < len - 1 && !says[first]) // there always is such a token
        first++;
    e->prompt_len[i] = first;
    for (int32_t k = first; k < len; k++)
        e->left_out[e->offset[i] + k] = !says[k];
}

rlhf_status rlhf__text_source_next(struct rlhf__text_source *s, struct rlhf__rows *e,
                                   struct rlhf__error *err) {
    int64_t *pick = NULL;
    uint32_t n, total;
    rlhf_status st = rlhf__batches_next(&s->batches, &pick, &n, &total, err);
    if (st == RLHF_OK) st = rlhf__rows_init(e, n, total, err);
    if (st == RLHF_OK && s->rows.says) st = RLHF__ROWS_ADD(e, left_out, err);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        int32_t len = rlhf__token_rows_len(&s->rows, pick[i]);
        rlhf__token_rows_copy(&s->rows, pick[i], e->ids + e->offset[i]);
        e->offset[i + 1] = e->offset[i] + len;
        e->prompt_len[i] = 1;
        if (s->rows.says) put_says(&s->rows, pick[i], e, i);
        const int64_t row = s->rows.source[pick[i]];
        e->source[i] = s->skip + row;
        e->group[i] = (int32_t)i;
        if (s->label) e->label[i] = s->label[row];
    }
    free(pick);
    return st;
}
