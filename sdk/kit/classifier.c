// classifier.c: a fake "rlhf.classifier/1" for which the test computes the logits. See rlhf/test.h.
#include <rlhf/test.h>

// Returns the test's classifier, or NULL if the test does not offer one. The offered table is the
// first member of the classifier's struct, so both have the same address.
static struct rlhf_test_classifier *offered(const rlhf_host *host) {
    union {
        const void *table;
        struct rlhf_test_classifier *object;
    } u;
    u.table = host->service(host, RLHF_SVC_CLASSIFIER);
    return u.object;
}

static rlhf_status do_open(const rlhf_host *host, const char *path, rlhf_classifier **out) {
    struct rlhf_test_classifier *c = offered(host);
    c->path = path;
    if (c->open_status < 0)
        return host->fail(host, c->open_status, "the test's classifier does not open");
    c->open_count++;
    *out = (rlhf_classifier *)(void *)c;
    return RLHF_OK;
}

static void do_close(const rlhf_host *host, rlhf_classifier *model) {
    struct rlhf_test_classifier *c = offered(host);
    if (model) c->open_count--;
}

static int32_t do_n_labels(const rlhf_host *host, const rlhf_classifier *model) {
    const struct rlhf_test_classifier *c = offered(host);
    (void)model;
    return c->n_labels;
}

static const char *do_label(const rlhf_host *host, const rlhf_classifier *model, int32_t i) {
    const struct rlhf_test_classifier *c = offered(host);
    (void)model;
    return i >= 0 && i < c->n_labels ? c->labels[i] : NULL;
}

static rlhf_status do_logits(const rlhf_host *host, rlhf_classifier *model, uint32_t n,
                             const rlhf_str *texts, float *logits) {
    struct rlhf_test_classifier *c = offered(host);
    (void)model;
    if (c->logits_status < 0)
        return host->fail(host, c->logits_status, "the test's classifier fails");
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
    c->table.open = do_open;
    c->table.close = do_close;
    c->table.n_labels = do_n_labels;
    c->table.label = do_label;
    c->table.logits = do_logits;
    c->labels = labels;
    c->n_labels = n_labels;
}
