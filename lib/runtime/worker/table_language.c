// table_language.c: see table_language.h.
#include "worker/table_language.h"

#include <stdlib.h>
#include <string.h>

struct rlhf_language_model {
    uint32_t handle;
    rlhf_language_info info; // of this process; `end` points to `ends`
    int32_t *ends;
};

static void language_free(struct rlhf_language_model *lm) {
    if (lm) free(lm->ends);
    free(lm);
}

// Reads the reply to open().
static rlhf_status take_info(struct rlhf_language_model *lm, struct rlhf__wire *in) {
    size_t n;
    lm->handle = rlhf__wire_get_u32(in);
    lm->info = (rlhf_language_info){.size = sizeof lm->info};
    lm->info.n_vocab = (int32_t)rlhf__wire_get_u32(in);
    lm->info.longest = (int32_t)rlhf__wire_get_u32(in);
    lm->info.templated = (int32_t)rlhf__wire_get_u32(in);
    lm->info.bos = (int32_t)rlhf__wire_get_u32(in);
    const void *ends = rlhf__wire_get_items(in, sizeof *lm->ends, &n);
    if (in->bad) return RLHF_E_INTERNAL;
    lm->ends = calloc(n + 1, sizeof *lm->ends);
    if (!lm->ends) return RLHF_E_NOMEM;
    if (n) memcpy(lm->ends, ends, n * sizeof *lm->ends);
    lm->info.n_ends = (uint32_t)n;
    lm->info.end = lm->ends;
    return RLHF_OK;
}

static rlhf_status language_open(const rlhf_host *host, const rlhf_language_open *how,
                                 rlhf_language_model **out) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_language_open q;
    *out = NULL;
    RLHF_TRY(rlhf__table_here(t));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_open, &q, how, path));
    struct rlhf_language_model *lm = calloc(1, sizeof *lm);
    if (!lm) return RLHF_E_NOMEM;
    rlhf__table_begin_open(t, RLHF__CALL_LANGUAGE_OPEN, q.path);
    rlhf__wire_u32(&t->frame, (uint32_t)q.longest);
    rlhf__wire_u32(&t->frame, (uint32_t)q.slots);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) st = take_info(lm, &in);
    rlhf__table_end(t);
    if (st == RLHF_OK)
        *out = lm;
    else
        language_free(lm);
    return st;
}

static void language_close(const rlhf_host *host, rlhf_language_model *lm) {
    if (!lm) return;
    rlhf__table_close(rlhf__table_behind(host), lm->handle);
    language_free(lm);
}

static rlhf_status language_info(const rlhf_host *host, const rlhf_language_model *lm,
                                 rlhf_language_info *out) {
    return RLHF__GIVE(host, rlhf_language_info, out, &lm->info, end);
}

static rlhf_status language_prompt(const rlhf_host *host, const rlhf_language_model *lm,
                                   const rlhf_language_prompt *how, rlhf_encode_out *to) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    rlhf_language_prompt q;
    rlhf_encode_out out;
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_prompt, &q, how, messages));
    RLHF_TRY(rlhf__table_take_ids(host, &out, to));
    rlhf__table_begin(t, RLHF__CALL_LANGUAGE_PROMPT, lm->handle);
    rlhf__wire_u32(&t->frame, out.cap);
    rlhf__wire_text(&t->frame, q.text.ptr, q.text.len);
    rlhf__wire_text(&t->frame, q.messages.ptr, q.messages.len);
    const rlhf_status st = rlhf__table_ids(t, &out, to);
    rlhf__table_end(t);
    return st;
}

static rlhf_status language_encode(const rlhf_host *host, const rlhf_language_model *lm,
                                   const rlhf_encode_in *how, rlhf_encode_out *to) {
    return rlhf__table_encode(host, lm->handle, how, to);
}

static rlhf_status language_decode(const rlhf_host *host, const rlhf_language_model *lm,
                                   const rlhf_decode_in *how, rlhf_decode_out *to) {
    return rlhf__table_decode(host, lm->handle, how, to);
}

static rlhf_status language_score(const rlhf_host *host, rlhf_language_model *lm,
                                  const rlhf_language_rows *how, const rlhf_language_scores *to) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_language_rows q;
    rlhf_language_scores out;
    RLHF_TRY(rlhf__table_here(t));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_rows, &q, how, prompt_len));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_scores, &out, to, logp));
    if (q.n == 0) return RLHF_OK;
    RLHF_TRY(rlhf__service_needs(host, q.ids && q.offset && q.prompt_len && out.logp, "score()",
                                 "ids, offset, prompt_len and logp"));
    RLHF_TRY(rlhf__service_rows(host, q.n, q.offset, q.prompt_len));
    rlhf__table_begin(t, RLHF__CALL_LANGUAGE_SCORE, lm->handle);
    rlhf__table_rows(t, q.n, q.ids, q.offset, q.prompt_len);
    rlhf_status st = rlhf__table_call(t, &in);
    if (st == RLHF_OK)
        st = rlhf__table_items(&in, sizeof *out.logp, (size_t)q.offset[q.n], out.logp);
    rlhf__table_end(t);
    return st;
}

// Appends the prompts of a request as rows that are prompts alone.
static rlhf_status put_prompts(struct rlhf__worker_host *t, const rlhf_language_request *q) {
    int32_t *len = calloc((size_t)q->n + 1, sizeof *len);
    if (!len) return RLHF_E_NOMEM;
    for (uint32_t i = 0; i < q->n; i++)
        len[i] = q->offset[i + 1] - q->offset[i];
    rlhf__table_rows(t, q->n, q->ids, q->offset, len);
    free(len);
    return RLHF_OK;
}

static void put_request(struct rlhf__worker_host *t, const rlhf_language_request *q, int logp) {
    static const rlhf_rng none;
    const rlhf_rng *rng = q->rng ? q->rng : &none;
    rlhf__wire_u32(&t->frame, (uint32_t)q->max_new);
    rlhf__wire_u32(&t->frame, (uint32_t)q->top_k);
    rlhf__wire_f64(&t->frame, q->temperature);
    rlhf__wire_f64(&t->frame, q->top_p);
    rlhf__wire_f64(&t->frame, q->min_p);
    rlhf__wire_u32(&t->frame, q->flags);
    rlhf__wire_u32(&t->frame, q->rng != NULL);
    rlhf__wire_u64(&t->frame, rng->seed);
    rlhf__wire_u64(&t->frame, rng->stream);
    rlhf__wire_u64(&t->frame, rng->counter);
    rlhf__wire_text(&t->frame, q->stop, (uint64_t)q->n_stop * sizeof *q->stop);
    rlhf__wire_u32(&t->frame, (uint32_t)logp);
}

static rlhf_status take_responses(struct rlhf__wire *in, const rlhf_language_request *q,
                                  const rlhf_language_responses *out) {
    const size_t n = q->n, cells = n * (size_t)q->max_new;
    rlhf_status st = rlhf__table_items(in, sizeof *out->ids, cells, out->ids);
    if (st == RLHF_OK) st = rlhf__table_items(in, sizeof *out->len, n, out->len);
    if (st == RLHF_OK) st = rlhf__table_items(in, 1, n, out->stopped);
    if (st == RLHF_OK)
        st = rlhf__table_items(in, sizeof *out->logp, out->logp ? cells : 0, out->logp);
    return st;
}

static rlhf_status language_generate(const rlhf_host *host, rlhf_language_model *lm,
                                     const rlhf_language_request *how,
                                     const rlhf_language_responses *to) {
    struct rlhf__worker_host *t = rlhf__table_behind(host);
    struct rlhf__wire in;
    rlhf_language_request q;
    rlhf_language_responses out;
    RLHF_TRY(rlhf__table_here(t));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_request, &q, how, flags));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_responses, &out, to, logp));
    if (q.n == 0) return RLHF_OK;
    RLHF_TRY(rlhf__service_needs(
        host, q.ids && q.offset && (q.stop || !q.n_stop) && out.ids && out.len && out.stopped,
        "generate()", "ids, offset, stop, len and stopped"));
    RLHF_TRY(rlhf__service_rows(host, q.n, q.offset, NULL));
    rlhf__table_begin(t, RLHF__CALL_LANGUAGE_GENERATE, lm->handle);
    rlhf_status st = put_prompts(t, &q);
    if (st == RLHF_OK) put_request(t, &q, out.logp != NULL);
    if (st == RLHF_OK) st = rlhf__table_call(t, &in);
    if (st == RLHF_OK) st = take_responses(&in, &q, &out);
    rlhf__table_end(t);
    return st;
}

void rlhf__table_language(rlhf_language_model_service *out) {
    *out = (rlhf_language_model_service){.size = sizeof *out,
                                         .open = language_open,
                                         .close = language_close,
                                         .info = language_info,
                                         .prompt = language_prompt,
                                         .encode = language_encode,
                                         .decode = language_decode,
                                         .score = language_score,
                                         .generate = language_generate};
}
