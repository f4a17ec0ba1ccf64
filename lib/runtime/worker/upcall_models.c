// upcall_models.c: see upcall_models.h.
#include "worker/upcall_models.h"

#include <rlhf/service.h>

#include <stdlib.h>
#include <string.h>

void rlhf__ear_logits(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_classifier_service *s = rlhf__ear_table(e, RLHF_SVC_CLASSIFIER);
    rlhf_classifier *c = rlhf__ear_object(e, rlhf__wire_get_u32(in), RLHF__HANDLE_CLASSIFIER);
    const uint32_t n = rlhf__wire_get_u32(in);
    const int sound = s && c && !in->bad && n <= RLHF__MOST_TEXTS && n <= (in->end - in->at) / 8;
    rlhf_str *texts = sound ? calloc((size_t)n + 1, sizeof *texts) : NULL;
    rlhf_classifier_info info = {.size = sizeof info};
    if (sound) s->info(e->api, c, &info);
    const size_t labels = info.n_labels;
    const int fits = n * (uint64_t)labels <= RLHF__MOST_REPLY / sizeof(float);
    float *logits = texts && fits ? calloc(n * labels + 1, sizeof *logits) : NULL;
    for (uint32_t i = 0; logits && i < n; i++)
        texts[i] = rlhf__wire_get_text(in);
    rlhf_status st = !sound || in->bad ? RLHF_E_INVALID : !logits ? RLHF_E_NOMEM : RLHF_OK;
    const rlhf_classifier_in q = {.size = sizeof q, .n = n, .text = texts};
    const rlhf_classifier_out to = {.size = sizeof to, .logits = logits};
    if (st == RLHF_OK) st = s->logits(e->api, c, &q, &to);
    if (rlhf__ear_answer(out, st) == RLHF_OK)
        rlhf__wire_text(out, logits, n * labels * sizeof *logits);
    free(texts);
    free(logits);
}

// ---- reward models ----

// Rows of different lengths from the worker. are_rows() checks that they lie within their arrays;
// the services check the ids.
struct rows {
    int32_t *ids, *offset, *prompt_len;
    size_t n, total;
};

static int are_rows(const struct rows *r) {
    if (r->offset[0] != 0 || r->offset[r->n] < 0 || (size_t)r->offset[r->n] != r->total) return 0;
    for (size_t i = 0; i < r->n; i++) {
        const int64_t len = (int64_t)r->offset[i + 1] - r->offset[i];
        if (len < 1 || r->prompt_len[i] < 0 || r->prompt_len[i] > len) return 0;
    }
    return 1;
}

// Read rows and copy them, because frames are not aligned. Returns 0 if they are not valid or if
// memory runs out.
static int get_rows(struct rlhf__wire *in, struct rows *r) {
    size_t offsets, lens;
    const void *ids = rlhf__wire_get_items(in, sizeof(int32_t), &r->total);
    const void *offset = rlhf__wire_get_items(in, sizeof(int32_t), &offsets);
    const void *prompt_len = rlhf__wire_get_items(in, sizeof(int32_t), &lens);
    if (in->bad || offsets != lens + 1 || r->total > RLHF__MOST_REPLY / sizeof(float)) return 0;
    r->n = lens;
    r->ids = calloc(r->total + 1, sizeof(int32_t));
    r->offset = calloc(offsets, sizeof(int32_t));
    r->prompt_len = calloc(lens + 1, sizeof(int32_t));
    if (!r->ids || !r->offset || !r->prompt_len) return 0;
    memcpy(r->ids, ids, r->total * sizeof(int32_t));
    memcpy(r->offset, offset, offsets * sizeof(int32_t));
    memcpy(r->prompt_len, prompt_len, lens * sizeof(int32_t));
    return are_rows(r);
}

static void rows_finish(struct rows *r) {
    free(r->ids);
    free(r->offset);
    free(r->prompt_len);
}

void rlhf__ear_reward_score(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_reward_model_service *s = rlhf__ear_table(e, RLHF_SVC_REWARD_MODEL);
    rlhf_reward_model *m = rlhf__ear_object(e, rlhf__wire_get_u32(in), RLHF__HANDLE_MODEL);
    const int32_t pooling = (int32_t)rlhf__wire_get_u32(in);
    const uint32_t wanted = rlhf__wire_get_u32(in);
    struct rows r = {0};
    const int sound = s && m && get_rows(in, &r);
    float *seq = sound ? calloc(r.n + 1, sizeof *seq) : NULL;
    float *token = sound ? calloc(r.total + 1, sizeof *token) : NULL;
    rlhf_status st = !sound ? RLHF_E_INVALID : !seq || !token ? RLHF_E_NOMEM : RLHF_OK;
    const rlhf_reward_model_in q = {.size = sizeof q,
                                    .n = (uint32_t)r.n,
                                    .ids = r.ids,
                                    .offset = r.offset,
                                    .prompt_len = r.prompt_len,
                                    .pooling = pooling};
    const rlhf_reward_model_out to = {
        .size = sizeof to, .seq = seq, .token = wanted ? token : NULL};
    if (st == RLHF_OK) st = s->score(e->api, m, &q, &to);
    if (rlhf__ear_answer(out, st) == RLHF_OK) {
        rlhf__wire_text(out, seq, r.n * sizeof *seq);
        rlhf__wire_text(out, token, wanted ? r.total * sizeof *token : 0);
    }
    rows_finish(&r);
    free(seq);
    free(token);
}

// ---- language models ----

// Read the rows of a call for a language model. Returns 0 if they are not valid.
static int get_language_rows(struct rlhf__ear *e, struct rlhf__wire *in,
                             const rlhf_language_model_service **s, rlhf_language_model **lm,
                             struct rows *r) {
    *s = rlhf__ear_table(e, RLHF_SVC_LANGUAGE_MODEL);
    *lm = rlhf__ear_object(e, rlhf__wire_get_u32(in), RLHF__HANDLE_LANGUAGE);
    return *s && *lm && get_rows(in, r);
}

void rlhf__ear_language_score(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_language_model_service *s;
    rlhf_language_model *lm;
    struct rows r = {0};
    const int sound = get_language_rows(e, in, &s, &lm, &r);
    float *logp = sound ? calloc(r.total + 1, sizeof *logp) : NULL;
    rlhf_status st = !sound ? RLHF_E_INVALID : !logp ? RLHF_E_NOMEM : RLHF_OK;
    const rlhf_language_rows rows = {.size = sizeof rows,
                                     .n = (uint32_t)r.n,
                                     .ids = r.ids,
                                     .offset = r.offset,
                                     .prompt_len = r.prompt_len};
    const rlhf_language_scores to = {.size = sizeof to, .logp = logp};
    if (st == RLHF_OK) st = s->score(e->api, lm, &rows, &to);
    if (rlhf__ear_answer(out, st) == RLHF_OK) rlhf__wire_text(out, logp, r.total * sizeof *logp);
    rows_finish(&r);
    free(logp);
}

// The arrays of a reply to generate().
struct responses {
    int32_t *ids, *len;
    uint8_t *stopped;
    float *logp;
};

static rlhf_status make_responses(struct responses *to, size_t n, int32_t max_new, int logp) {
    const uint64_t cells = max_new > 0 ? n * (uint64_t)max_new : 0;
    if (cells > RLHF__MOST_REPLY / (2 * sizeof(float))) return RLHF_E_NOMEM;
    to->ids = calloc((size_t)cells + 1, sizeof *to->ids);
    to->len = calloc(n + 1, sizeof *to->len);
    to->stopped = calloc(n + 1, 1);
    if (logp) to->logp = calloc((size_t)cells + 1, sizeof *to->logp);
    return to->ids && to->len && to->stopped && (to->logp || !logp) ? RLHF_OK : RLHF_E_NOMEM;
}

// Read the members of a request that follow its rows. The stop tokens are copied to *stop, which
// the caller frees, and the generator to *rng. Returns 0 if they are not valid.
static int get_request(struct rlhf__wire *in, rlhf_language_request *q, rlhf_rng *rng,
                       int32_t **stop, int *logp) {
    size_t n;
    q->max_new = (int32_t)rlhf__wire_get_u32(in);
    q->top_k = (int32_t)rlhf__wire_get_u32(in);
    q->temperature = rlhf__wire_get_f64(in);
    q->top_p = rlhf__wire_get_f64(in);
    q->min_p = rlhf__wire_get_f64(in);
    q->flags = rlhf__wire_get_u32(in);
    const uint32_t drawn = rlhf__wire_get_u32(in);
    rng->seed = rlhf__wire_get_u64(in);
    rng->stream = rlhf__wire_get_u64(in);
    rng->counter = rlhf__wire_get_u64(in);
    const void *items = rlhf__wire_get_items(in, sizeof **stop, &n);
    *logp = rlhf__wire_get_u32(in) != 0;
    if (in->bad || (*stop = calloc(n + 1, sizeof **stop)) == NULL) return 0;
    if (n) memcpy(*stop, items, n * sizeof **stop);
    q->rng = drawn ? rng : NULL;
    q->stop = *stop;
    q->n_stop = (uint32_t)n;
    return 1;
}

void rlhf__ear_language_generate(struct rlhf__ear *e, struct rlhf__wire *in,
                                 struct rlhf__buf *out) {
    const rlhf_language_model_service *s;
    rlhf_language_model *lm;
    struct rows r = {0};
    struct responses to = {0};
    int32_t *stop = NULL;
    rlhf_rng rng;
    int logp = 0;
    rlhf_language_request q = {.size = sizeof q};
    const int sound =
        get_language_rows(e, in, &s, &lm, &r) && get_request(in, &q, &rng, &stop, &logp);
    q.n = (uint32_t)r.n;
    q.ids = r.ids;
    q.offset = r.offset;
    rlhf_status st = sound ? make_responses(&to, r.n, q.max_new, logp) : RLHF_E_INVALID;
    const rlhf_language_responses responses = {.size = sizeof responses,
                                               .ids = to.ids,
                                               .len = to.len,
                                               .stopped = to.stopped,
                                               .logp = to.logp};
    if (st == RLHF_OK) st = s->generate(e->api, lm, &q, &responses);
    if (rlhf__ear_answer(out, st) == RLHF_OK) {
        const size_t cells = r.n * (size_t)q.max_new;
        rlhf__wire_text(out, to.ids, cells * sizeof *to.ids);
        rlhf__wire_text(out, to.len, r.n * sizeof *to.len);
        rlhf__wire_text(out, to.stopped, r.n);
        rlhf__wire_text(out, to.logp, logp ? cells * sizeof *to.logp : 0);
    }
    rows_finish(&r);
    free(stop);
    free(to.ids);
    free(to.len);
    free(to.stopped);
    free(to.logp);
}
