// imdb.c: the sentiment of a text, from any sequence classifier that the host can open.
//
// The label is chosen by its name, never by its index. At load, two plain sentences are scored, so
// that a classifier with swapped labels is refused. The classifier has a separate tokenizer. The
// host's service tokenizes the texts, and never passes padding to the classifier.
#include <rlhf/exact.h>
#include <rlhf/reward.h>
#include <rlhf/service.h>

#include <math.h>
#include <string.h>

enum { DIRECTION_POS = 0, DIRECTION_NEG = 1 };
enum { OUTPUT_PROBABILITY = 0, OUTPUT_LOGIT = 1 };
enum { TEXT_FULL = 0, TEXT_RESPONSE = 1 };

struct imdb_config {
    const char *model, *label;
    int32_t direction, output, text, self_test;
};

struct imdb {
    const rlhf_host *host;
    const struct imdb_config *config;
    const rlhf_classifier_service *svc;
    rlhf_classifier *model;
    rlhf_classifier_info info;
    int32_t n_labels, label;
};

// Returns log(p / (1 - p)) of label k, where p = softmax(z)[k]. This equals z_k - log sum_{j != k}
// exp z_j. If there is only one label, returns z_0.
static double log_odds(const float *z, int32_t n, int32_t k) {
    if (n == 1) return (double)z[0];
    double max = -INFINITY, sum = 0;
    for (int32_t j = 0; j < n; j++)
        if (j != k && (double)z[j] > max) max = (double)z[j];
    for (int32_t j = 0; j < n; j++)
        if (j != k) sum += rlhf_exp((double)z[j] - max);
    return (double)z[k] - max - rlhf_log(sum);
}

static float score_of(const struct imdb *s, const float *z) {
    double odds = log_odds(z, s->n_labels, s->label);
    if (s->config->direction == DIRECTION_NEG) odds = -odds;
    return (float)(s->config->output == OUTPUT_LOGIT ? odds : 1.0 / (1.0 + rlhf_exp(-odds)));
}

// Writes "0 NEGATIVE, 1 POSITIVE" into text[cap]. If there are too many labels, the list is cut.
static void list_labels(const struct imdb *s, char *text, size_t cap) {
    size_t at = 0;
    text[0] = 0;
    for (int32_t i = 0; i < s->n_labels && at < cap; i++) {
        int used =
            snprintf(text + at, cap - at, "%s%d %s", i ? ", " : "", (int)i, s->info.label[i]);
        if (used < 0) return;
        at += (size_t)used;
    }
}

static rlhf_status find_label(struct imdb *s) {
    char names[512];
    s->info.size = sizeof s->info;
    RLHF_TRY(s->svc->info(s->host, s->model, &s->info));
    s->n_labels = (int32_t)s->info.n_labels;
    if (s->n_labels < 1)
        return s->host->fail(s->host, RLHF_E_INVALID,
                             "the model is not a classifier: it has no labels");
    list_labels(s, names, sizeof names);
    for (s->label = 0; s->label < s->n_labels; s->label++)
        if (strcmp(s->info.label[s->label], s->config->label) == 0) break;
    if (s->label == s->n_labels)
        return rlhf_failf(
            s->host, RLHF_E_INVALID,
            "label is \"%s\"; the model's labels are %s; name the positive one with label=NAME",
            s->config->label, names);
    rlhf_logf(s->host, RLHF_LOG_INFO, "labels: %s; the positive one is %s", names,
              s->config->label);
    return RLHF_OK;
}

static rlhf_status classify(const struct imdb *s, uint32_t n, const rlhf_str *texts, float *z) {
    const rlhf_classifier_in in = {.size = sizeof in, .n = n, .text = texts};
    const rlhf_classifier_out out = {.size = sizeof out, .logits = z};
    return s->svc->logits(s->host, s->model, &in, &out);
}

// Checks that a positive sentence has a higher probability of being positive than a negative
// sentence.
static rlhf_status self_test(struct imdb *s) {
    static const char good[] = "A wonderful film, warm and funny, and I loved every minute of it.";
    static const char bad[] = "A terrible film, dull and ugly, and I hated every minute of it.";
    const rlhf_str texts[2] = {{good, sizeof good - 1}, {bad, sizeof bad - 1}};
    const rlhf_host *h = s->host;
    float *z = h->alloc(h, 2 * (uint64_t)s->n_labels * sizeof *z);
    if (!z) return h->fail(h, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = classify(s, 2, texts, z);
    double p[2] = {0, 0};
    for (int i = 0; st >= 0 && i < 2; i++)
        p[i] = 1.0 / (1.0 + rlhf_exp(-log_odds(z + i * s->n_labels, s->n_labels, s->label)));
    h->free(h, z);
    if (st < 0) return st;
    if (!(p[0] > p[1]))
        return rlhf_failf(
            h, RLHF_E_INVALID,
            "self-test failed: P(%s) is %.3f on a positive sentence and %.3f on a "
            "negative one; name the positive label with label=, and use direction=neg "
            "to reward negative text; self_test=false leaves the test out",
            s->config->label, p[0], p[1]);
    rlhf_logf(h, RLHF_LOG_INFO, "self-test: P(%s) %.3f on a positive sentence, %.3f on a negative",
              s->config->label, p[0], p[1]);
    return RLHF_OK;
}

static void imdb_destroy(void *self) {
    struct imdb *s = self;
    if (!s) return;
    if (s->model) s->svc->close(s->host, s->model);
    s->host->free(s->host, s);
}

static rlhf_status imdb_open(struct imdb *s) {
    s->svc = s->host->service(s->host, RLHF_SVC_CLASSIFIER);
    if (!s->svc)
        return s->host->fail(s->host, RLHF_E_UNSUPPORTED,
                             "this host does not offer " RLHF_SVC_CLASSIFIER);
    const rlhf_classifier_open how = {.size = sizeof how, .path = s->config->model};
    RLHF_TRY(s->svc->open(s->host, &how, &s->model));
    RLHF_TRY(find_label(s));
    return s->config->self_test ? self_test(s) : RLHF_OK;
}

static rlhf_status imdb_create(const rlhf_host *host, const void *config, void **self) {
    struct imdb *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = config;
    rlhf_status st = imdb_open(s);
    if (st < 0) {
        imdb_destroy(s);
        return st;
    }
    *self = s;
    return RLHF_OK;
}

static void append(char **at, rlhf_str text) {
    if (text.len) memcpy(*at, text.ptr, (size_t)text.len);
    *at += text.len;
}

// Allocates in one block the texts of a batch (prompt and response joined) and space for the
// logits.
static rlhf_str *join_texts(const struct imdb *s, const rlhf_reward_in *in, float **logits) {
    uint64_t bytes = 0, n = in->n;
    for (uint64_t i = 0; i < n; i++)
        bytes += in->prompt[i].len + in->response[i].len;
    uint64_t head = n * sizeof(rlhf_str) + n * (uint64_t)s->n_labels * sizeof(float);
    rlhf_str *texts = s->host->alloc(s->host, head + bytes + 1);
    if (!texts) return NULL;
    *logits = (float *)(void *)(texts + n);
    char *at = (char *)(*logits + n * (uint64_t)s->n_labels);
    for (uint64_t i = 0; i < n; i++) {
        texts[i].ptr = at;
        if (s->config->text == TEXT_FULL) append(&at, in->prompt[i]);
        append(&at, in->response[i]);
        texts[i].len = (uint64_t)(at - texts[i].ptr);
    }
    return texts;
}

static rlhf_status imdb_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct imdb *s = self;
    float *z;
    if (in->n == 0) return RLHF_OK;
    rlhf_str *texts = join_texts(s, in, &z);
    if (!texts) return s->host->fail(s->host, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = classify(s, in->n, texts, z);
    for (uint32_t i = 0; st >= 0 && i < in->n; i++)
        out->seq[i] = score_of(s, z + (uint64_t)i * (uint64_t)s->n_labels);
    s->host->free(s->host, texts);
    return st;
}

static const char *const direction_names[] = {"pos", "neg", NULL};
static const char *const output_names[] = {"probability", "logit", NULL};
static const char *const text_names[] = {"full", "response", NULL};
static const rlhf_opt options[] = {
    RLHF_OPT_PATH(struct imdb_config, model, "default",
                  "classifier directory; default: the one that comes with rlhf-host"),
    RLHF_OPT_STR(struct imdb_config, label, "POSITIVE", "name of the model's positive label"),
    RLHF_OPT_ENUM(struct imdb_config, direction, DIRECTION_POS, direction_names,
                  "reward positive text, or its opposite (1 - p, or the negated logit)"),
    RLHF_OPT_ENUM(struct imdb_config, output, OUTPUT_PROBABILITY, output_names,
                  "p of the label, or its log-odds log(p / (1 - p))"),
    RLHF_OPT_ENUM(struct imdb_config, text, TEXT_FULL, text_names,
                  "score prompt + response, or the response alone"),
    RLHF_OPT_BOOL(struct imdb_config, self_test, 1,
                  "refuse a model that finds a negative sentence more positive than a positive "
                  "one; turn off for classifiers of something else"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_FUNCTION,
    .score = imdb_score,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.imdb",
    .version = RLHF_SDK_VERSION,
    .summary = "sentiment by a classifier: probability or log-odds of its positive label",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct imdb_config, options),
    .create = imdb_create,
    .destroy = imdb_destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
