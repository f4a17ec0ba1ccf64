// language_model.c: a fake "rlhf.language_model/1" in which every byte is a token, and for which
// the test computes the log-probs. See rlhf/test.h.
#include <rlhf/test.h>

static const int32_t ends[1] = {0};

// Returns the test's model, or NULL if the test does not offer one.
static struct rlhf_test_language_model *offered(const rlhf_host *host) {
    const rlhf_language_model_service *table =
        (const rlhf_language_model_service *)host->service(host, RLHF_SVC_LANGUAGE_MODEL);
    return (struct rlhf_test_language_model *)(table ? table->self : NULL);
}

static rlhf_status do_open(const rlhf_host *host, const rlhf_language_open *how,
                           rlhf_language_model **out) {
    struct rlhf_test_language_model *m = offered(host);
    m->path = how->path;
    *out = NULL;
    if (how->longest) m->longest = how->longest;
    m->slots = how->slots;
    if (m->open_status < 0)
        return host->fail(host, m->open_status, "the test's language model does not open");
    m->open_count++;
    *out = (rlhf_language_model *)(void *)m;
    return RLHF_OK;
}

static void do_close(const rlhf_host *host, rlhf_language_model *model) {
    if (model) offered(host)->open_count--;
}

static rlhf_status do_info(const rlhf_host *host, const rlhf_language_model *model,
                           rlhf_language_info *out) {
    const struct rlhf_test_language_model *m = offered(host);
    const rlhf_language_info info = {.size = sizeof info,
                                     .n_vocab = 256,
                                     .longest = m->longest,
                                     .templated = m->templated,
                                     .bos = -1,
                                     .n_ends = 1,
                                     .end = ends};
    const uint32_t own = (uint32_t)sizeof info, cut = out->size < own ? out->size : own;
    (void)model;
    return rlhf_copy_out(out, &info, cut, RLHF_SIZE_TO(rlhf_language_info, end));
}

static void encode(rlhf_str text, rlhf_encode_out *out) {
    out->n = (uint32_t)text.len;
    for (uint32_t i = 0; i < out->n && i < out->cap; i++)
        out->ids[i] = (unsigned char)text.ptr[i];
}

static rlhf_status do_encode(const rlhf_host *host, const rlhf_language_model *model,
                             const rlhf_encode_in *in, rlhf_encode_out *out) {
    (void)host;
    (void)model;
    encode(in->text, out);
    return RLHF_OK;
}

static rlhf_status do_prompt(const rlhf_host *host, const rlhf_language_model *model,
                             const rlhf_language_prompt *how, rlhf_encode_out *out) {
    (void)host;
    (void)model;
    encode(how->messages.len ? how->messages : how->text, out);
    return RLHF_OK;
}

static rlhf_status do_decode(const rlhf_host *host, const rlhf_language_model *model,
                             const rlhf_decode_in *in, rlhf_decode_out *out) {
    (void)host;
    (void)model;
    out->len = in->n;
    for (uint32_t i = 0; i < in->n && i < out->cap; i++)
        out->utf8[i] = (char)(in->ids[i] & 255);
    return RLHF_OK;
}

// Checks the rows of a call, each with `more` tokens after it.
static rlhf_status check_rows(const rlhf_host *host, const struct rlhf_test_language_model *m,
                              uint32_t n, const int32_t *offset, int32_t more) {
    for (uint32_t i = 0; i < n; i++)
        if (offset[i + 1] - offset[i] > m->longest - more)
            return host->fail(host, RLHF_E_INVALID,
                              "a row is longer than the test's language model was opened for");
    return RLHF_OK;
}

static rlhf_status do_score(const rlhf_host *host, rlhf_language_model *model,
                            const rlhf_language_rows *q, const rlhf_language_scores *out) {
    struct rlhf_test_language_model *m = offered(host);
    (void)model;
    if (m->score_status < 0)
        return host->fail(host, m->score_status, "the test's language model fails");
    RLHF_TRY(check_rows(host, m, q->n, q->offset, 0));
    for (uint32_t i = 0; i < q->n; i++) {
        const int32_t *row = q->ids + q->offset[i];
        for (int32_t t = 0; t < q->offset[i + 1] - q->offset[i]; t++)
            out->logp[q->offset[i] + t] =
                t < q->prompt_len[i] ? 0 : m->logp(m->context, row, t, row[t]);
    }
    m->n_rows += q->n;
    return RLHF_OK;
}

static int32_t most_probable(const struct rlhf_test_language_model *m, const int32_t *before,
                             int32_t n, float *logp) {
    int32_t best = 0;
    *logp = m->logp(m->context, before, n, 0);
    for (int32_t id = 1; id < 256; id++) {
        const float p = m->logp(m->context, before, n, id);
        if (p > *logp) best = id;
        if (p > *logp) *logp = p;
    }
    return best;
}

// Writes the response to the prompt row[0..n), to which `row` has room to be continued.
static void respond(const struct rlhf_test_language_model *m, const rlhf_language_request *q,
                    int32_t *row, int32_t n, uint32_t i, const rlhf_language_responses *out) {
    int ended = 0;
    for (out->len[i] = 0; out->len[i] < q->max_new && !ended;) {
        float logp;
        const int32_t id = most_probable(m, row, n + out->len[i], &logp);
        const size_t at = (size_t)i * (size_t)q->max_new + (size_t)out->len[i];
        row[n + out->len[i]++] = id;
        out->ids[at] = id;
        if (out->logp) out->logp[at] = logp;
        ended = id == ends[0] && !(q->flags & RLHF_LANGUAGE_PAST_ENDS);
        for (uint32_t k = 0; k < q->n_stop; k++)
            ended |= id == q->stop[k];
    }
    out->stopped[i] = (uint8_t)ended;
}

static rlhf_status do_generate(const rlhf_host *host, rlhf_language_model *model,
                               const rlhf_language_request *q, const rlhf_language_responses *out) {
    struct rlhf_test_language_model *m = offered(host);
    (void)model;
    if (m->score_status < 0)
        return host->fail(host, m->score_status, "the test's language model fails");
    if (q->n == 0) return RLHF_OK;
    if (m->slots < 1)
        return host->fail(host, RLHF_E_INVALID,
                          "the test's language model was opened with 0 slots, so it does not "
                          "generate");
    RLHF_TRY(check_rows(host, m, q->n, q->offset, q->max_new));
    const uint64_t cap = (uint64_t)q->offset[q->n] + (uint64_t)q->max_new;
    int32_t *row = host->alloc(host, cap * sizeof *row);
    if (!row) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < q->n; i++) {
        const int32_t n = q->offset[i + 1] - q->offset[i];
        memcpy(row, q->ids + q->offset[i], (size_t)n * sizeof *row);
        respond(m, q, row, n, i, out);
    }
    host->free(host, row);
    m->n_responses += q->n;
    return RLHF_OK;
}

void rlhf_test_language_model_init(struct rlhf_test_language_model *m) {
    memset(m, 0, sizeof *m);
    m->table = (rlhf_language_model_service){.size = sizeof m->table,
                                             .self = m,
                                             .open = do_open,
                                             .close = do_close,
                                             .info = do_info,
                                             .prompt = do_prompt,
                                             .encode = do_encode,
                                             .decode = do_decode,
                                             .score = do_score,
                                             .generate = do_generate};
    m->templated = 1;
    m->longest = 4096;
}
