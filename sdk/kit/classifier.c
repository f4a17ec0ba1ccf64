// classifier.c: a fake "rlhf.classifier/1" for which the test computes the logits. See rlhf/test.h.
#include <rlhf/test.h>

// Returns the test's classifier, or NULL if the test does not offer one.
static struct rlhf_test_classifier *offered(const rlhf_host *host) {
    const rlhf_classifier_service *table =
        (const rlhf_classifier_service *)host->service(host, RLHF_SVC_CLASSIFIER);
    return (struct rlhf_test_classifier *)(table ? table->self : NULL);
}

static rlhf_status do_open(const rlhf_host *host, const rlhf_classifier_open *how,
                           rlhf_classifier **out) {
    struct rlhf_test_classifier *c = offered(host);
    c->path = how->path;
    *out = NULL;
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

static rlhf_status do_info(const rlhf_host *host, const rlhf_classifier *model,
                           rlhf_classifier_info *out) {
    const struct rlhf_test_classifier *c = offered(host);
    const uint32_t own = (uint32_t)sizeof *out, cut = out->size < own ? out->size : own;
    rlhf_classifier_info info;
    (void)model;
    memset(&info, 0, sizeof info);
    info.n_labels = (uint32_t)c->n_labels;
    info.label = c->labels;
    return rlhf_copy_out(out, &info, cut, RLHF_SIZE_TO(rlhf_classifier_info, label));
}

static rlhf_status do_logits(const rlhf_host *host, rlhf_classifier *model,
                             const rlhf_classifier_in *in, const rlhf_classifier_out *out) {
    struct rlhf_test_classifier *c = offered(host);
    (void)model;
    if (c->logits_status < 0)
        return host->fail(host, c->logits_status, "the test's classifier fails");
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t k = 0; k < c->n_labels; k++)
            out->logits[(size_t)i * (uint32_t)c->n_labels + (uint32_t)k] =
                c->logit(c->context, in->text[i], k);
    c->n_texts += in->n;
    return RLHF_OK;
}

void rlhf_test_classifier_init(struct rlhf_test_classifier *c, const char *const *labels,
                               int32_t n_labels) {
    memset(c, 0, sizeof *c);
    c->table.size = (uint32_t)sizeof c->table;
    c->table.self = c;
    c->table.open = do_open;
    c->table.close = do_close;
    c->table.info = do_info;
    c->table.logits = do_logits;
    c->labels = labels;
    c->n_labels = n_labels;
}
