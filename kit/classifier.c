// classifier.c: a "rlhf.classifier/0" whose logits a test computes. See rlhf/test.h.
#include <rlhf/test.h>

static rlhf_status do_open(void *host, const char *path, rlhf_classifier **out) {
    struct rlhf_test_classifier *c = host;
    c->path = path;
    if (c->open_status < 0) return c->open_status;
    c->open_count++;
    *out = host;
    return RLHF_OK;
}

static void do_close(void *host, rlhf_classifier *model) {
    struct rlhf_test_classifier *c = host;
    if (model) c->open_count--;
}

static int32_t do_n_labels(void *host, const rlhf_classifier *model) {
    const struct rlhf_test_classifier *c = host;
    (void)model;
    return c->n_labels;
}

static const char *do_label(void *host, const rlhf_classifier *model, int32_t i) {
    const struct rlhf_test_classifier *c = host;
    (void)model;
    return i >= 0 && i < c->n_labels ? c->labels[i] : NULL;
}

static rlhf_status do_logits(void *host, rlhf_classifier *model, uint32_t n, const rlhf_str *texts,
                             float *logits) {
    struct rlhf_test_classifier *c = host;
    (void)model;
    if (c->logits_status < 0) return c->logits_status;
    for (uint32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < c->n_labels; k++)
            logits[(size_t)i * (uint32_t)c->n_labels + (uint32_t)k] =
                c->logit(c->context, texts[i], k);
    c->n_texts += n;
    return RLHF_OK;
}

void rlhf_test_classifier_init(struct rlhf_test_classifier *c, const char *const *labels,
                               int32_t n_labels) {
    memset(c, 0, sizeof *c);
    c->table.size = (uint32_t)sizeof c->table;
    c->table.host = c;
    c->table.open = do_open;
    c->table.close = do_close;
    c->table.n_labels = do_n_labels;
    c->table.label = do_label;
    c->table.logits = do_logits;
    c->labels = labels;
    c->n_labels = n_labels;
}
