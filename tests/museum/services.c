// services.c: a reward that calls every function of every service (rlhf/service.h). Its score is a
// number computed from everything that they return. scripts/make-museum keeps it as a binary.
//
// Rows of prompts: {"prompt", "answer": "...", "n": 3, "x": 0.5, "ok": true, "steps": [{...}]}.
#include <rlhf/reward.h>
#include <rlhf/service.h>

#include <string.h>

enum { MOST = 128, LABELS = 16, MAX_NEW = 4 };

struct self {
    const rlhf_host *host;
    const rlhf_classifier_service *classifiers;
    const rlhf_tokenizer_service *tokenizers;
    const rlhf_reward_model_service *reward_models;
    const rlhf_language_model_service *language_models;
    const rlhf_row_service *rows;
    const rlhf_limits *limits;
    rlhf_classifier *classifier;
    rlhf_tokenizer *tokenizer;
    rlhf_reward_model *reward_model;
    rlhf_language_model *language_model;
};

static void add(double *sum, double number) { *sum = *sum * 0.99 + number; }

static void add_text(double *sum, rlhf_str text) {
    for (uint64_t i = 0; i < text.len; i++)
        add(sum, (double)(unsigned char)text.ptr[i] * 1e-3);
}

static void destroy(void *self) {
    struct self *s = self;
    if (!s) return;
    if (s->classifiers) s->classifiers->close(s->host, s->classifier);
    if (s->tokenizers) s->tokenizers->close(s->host, s->tokenizer);
    if (s->reward_models) s->reward_models->close(s->host, s->reward_model);
    if (s->language_models) s->language_models->close(s->host, s->language_model);
    s->host->free(s->host, s);
}

static rlhf_status open_all(struct self *s) {
    const rlhf_host *h = s->host;
    s->classifiers = h->service(h, RLHF_SVC_CLASSIFIER);
    s->tokenizers = h->service(h, RLHF_SVC_TOKENIZER);
    s->reward_models = h->service(h, RLHF_SVC_REWARD_MODEL);
    s->language_models = h->service(h, RLHF_SVC_LANGUAGE_MODEL);
    s->rows = h->service(h, RLHF_SVC_ROW);
    s->limits = h->service(h, RLHF_SVC_LIMITS);
    if (!s->classifiers || !s->tokenizers || !s->reward_models || !s->language_models || !s->rows ||
        !s->limits)
        return h->fail(h, RLHF_E_UNSUPPORTED, "this host lacks a service");
    const rlhf_classifier_open classifier = {.size = sizeof classifier};
    const rlhf_tokenizer_open tokenizer = {.size = sizeof tokenizer};
    const rlhf_reward_model_open reward_model = {.size = sizeof reward_model, .path = "default"};
    const rlhf_language_open language_model = {
        .size = sizeof language_model, .longest = MOST, .slots = 2};
    RLHF_TRY(s->classifiers->open(h, &classifier, &s->classifier));
    RLHF_TRY(s->tokenizers->open(h, &tokenizer, &s->tokenizer));
    RLHF_TRY(s->reward_models->open(h, &reward_model, &s->reward_model));
    RLHF_TRY(s->language_models->open(h, &language_model, &s->language_model));
    return RLHF_OK;
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct self *s = host->alloc(host, sizeof *s);
    (void)config;
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    const rlhf_status st = open_all(s);
    if (st < 0)
        destroy(s);
    else
        *self = s;
    return st;
}

// ---- one text ----

static rlhf_status classify(const struct self *s, rlhf_str text, double *sum) {
    const rlhf_str texts[2] = {text, {"A good film", 11}};
    float logits[2 * LABELS];
    rlhf_classifier_info info = {.size = sizeof info};
    RLHF_TRY(s->classifiers->info(s->host, s->classifier, &info));
    if (info.n_labels > LABELS) return s->host->fail(s->host, RLHF_E_INTERNAL, "too many labels");
    const rlhf_classifier_in in = {.size = sizeof in, .n = 2, .text = texts};
    const rlhf_classifier_out out = {.size = sizeof out, .logits = logits};
    RLHF_TRY(s->classifiers->logits(s->host, s->classifier, &in, &out));
    for (uint32_t k = 0; k < 2 * info.n_labels; k++)
        add(sum, (double)logits[k]);
    for (uint32_t k = 0; k < info.n_labels; k++)
        add_text(sum, (rlhf_str){info.label[k], strlen(info.label[k])});
    return RLHF_OK;
}

static rlhf_status tokenize(const struct self *s, rlhf_str text, double *sum) {
    int32_t ids[MOST];
    char utf8[MOST];
    rlhf_tokenizer_info info = {.size = sizeof info};
    RLHF_TRY(s->tokenizers->info(s->host, s->tokenizer, &info));
    const rlhf_encode_in in = {.size = sizeof in, .text = text};
    rlhf_encode_out to = {.size = sizeof to, .cap = MOST, .ids = ids};
    RLHF_TRY(s->tokenizers->encode(s->host, s->tokenizer, &in, &to));
    const rlhf_decode_in back = {.size = sizeof back, .n = to.n < MOST ? to.n : MOST, .ids = ids};
    rlhf_decode_out out = {.size = sizeof out, .utf8 = utf8, .cap = sizeof utf8};
    RLHF_TRY(s->tokenizers->decode(s->host, s->tokenizer, &back, &out));
    add(sum, info.n_vocab);
    for (uint32_t t = 0; t < back.n; t++)
        add(sum, ids[t] * 1e-4);
    add_text(sum, (rlhf_str){utf8, out.len < sizeof utf8 ? out.len : sizeof utf8});
    return RLHF_OK;
}

// ---- one row ----

static rlhf_status judge(const struct self *s, const int32_t *ids, int32_t n, int32_t prompt_len,
                         double *sum) {
    const int32_t offset[2] = {0, n};
    float seq, token[MOST];
    const rlhf_reward_model_in in = {.size = sizeof in,
                                     .n = 1,
                                     .ids = ids,
                                     .offset = offset,
                                     .prompt_len = &prompt_len,
                                     .pooling = RLHF_POOL_MEAN};
    const rlhf_reward_model_out out = {.size = sizeof out, .seq = &seq, .token = token};
    RLHF_TRY(s->reward_models->score(s->host, s->reward_model, &in, &out));
    add(sum, (double)seq);
    for (int32_t t = 0; t < n; t++)
        add(sum, (double)token[t]);
    return RLHF_OK;
}

static rlhf_status speak(const struct self *s, rlhf_str prompt, rlhf_str response, double *sum) {
    const rlhf_language_model_service *l = s->language_models;
    const rlhf_host *h = s->host;
    int32_t ids[2 * MOST], made[MAX_NEW], len;
    float logp[2 * MOST];
    uint8_t stopped;
    char utf8[64];
    rlhf_rng rng;
    rlhf_language_info info = {.size = sizeof info};
    RLHF_TRY(l->info(h, s->language_model, &info));
    const rlhf_language_prompt q = {.size = sizeof q, .text = prompt};
    rlhf_encode_out to = {.size = sizeof to, .cap = MOST / 2, .ids = ids};
    RLHF_TRY(l->prompt(h, s->language_model, &q, &to));
    const int32_t prompt_len = (int32_t)to.n;
    const rlhf_encode_in text = {.size = sizeof text, .text = response};
    to.ids = ids + prompt_len;
    RLHF_TRY(l->encode(h, s->language_model, &text, &to));
    const int32_t n = prompt_len + (int32_t)to.n, offset[2] = {0, n};
    if (n > MOST / 2) return h->fail(h, RLHF_E_INTERNAL, "a long row");
    const rlhf_language_rows rows = {
        .size = sizeof rows, .n = 1, .ids = ids, .offset = offset, .prompt_len = &prompt_len};
    const rlhf_language_scores scores = {.size = sizeof scores, .logp = logp};
    RLHF_TRY(l->score(h, s->language_model, &rows, &scores));
    for (int32_t t = prompt_len; t < n; t++)
        add(sum, (double)logp[t]);
    h->rng(h, "museum", &rng);
    const rlhf_language_request request = {.size = sizeof request,
                                           .n = 1,
                                           .ids = ids,
                                           .offset = offset,
                                           .max_new = MAX_NEW,
                                           .top_k = 50,
                                           .temperature = 0.9,
                                           .top_p = 0.95,
                                           .rng = &rng,
                                           .stop = ids,
                                           .n_stop = 1,
                                           .flags = RLHF_LANGUAGE_PAST_ENDS};
    const rlhf_language_responses out = {
        .size = sizeof out, .ids = made, .len = &len, .stopped = &stopped, .logp = logp};
    RLHF_TRY(l->generate(h, s->language_model, &request, &out));
    const rlhf_decode_in back = {.size = sizeof back, .n = (uint32_t)len, .ids = made};
    rlhf_decode_out said = {.size = sizeof said, .utf8 = utf8, .cap = sizeof utf8};
    RLHF_TRY(l->decode(h, s->language_model, &back, &said));
    add_text(sum, (rlhf_str){utf8, said.len < sizeof utf8 ? said.len : sizeof utf8});
    for (int32_t t = 0; t < len; t++)
        add(sum, (double)logp[t]);
    add(sum, info.n_vocab + info.longest + info.templated + info.bos + (int32_t)info.n_ends);
    add(sum, stopped);
    return RLHF_OK;
}

static rlhf_status read_row(const struct self *s, const rlhf_row *row, double *sum) {
    const rlhf_host *h = s->host;
    rlhf_str text;
    double x;
    int64_t whole;
    int32_t ok;
    char json[256];
    uint64_t len, n;
    rlhf_row *item = NULL;
    RLHF_TRY(s->rows->string(h, row, "answer", &text));
    add_text(sum, text);
    RLHF_TRY(s->rows->number(h, row, "x", &x));
    RLHF_TRY(s->rows->integer(h, row, "n", &whole));
    RLHF_TRY(s->rows->boolean(h, row, "ok", &ok));
    RLHF_TRY(s->rows->json(h, row, "", json, sizeof json, &len));
    add_text(sum, (rlhf_str){json, len < sizeof json ? len : sizeof json});
    RLHF_TRY(s->rows->length(h, row, "steps", &n));
    RLHF_TRY(s->rows->key(h, row, "/steps/0", 0, &text));
    add_text(sum, text);
    RLHF_TRY(s->rows->item(h, row, "steps", n - 1, &item));
    add(sum, x + (double)whole + ok + s->rows->type(h, item, "") + s->rows->type(h, row, "none"));
    s->rows->close(h, item);
    return RLHF_OK;
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct self *s = self;
    for (uint32_t i = 0; i < in->n; i++) {
        const int32_t at = in->offset[i], n = in->offset[i + 1] - at;
        double sum = s->limits->retries + s->limits->timeout_s;
        rlhf_row *row = NULL;
        RLHF_TRY(classify(s, in->response[i], &sum));
        RLHF_TRY(tokenize(s, in->response[i], &sum));
        if (n > MOST) return s->host->fail(s->host, RLHF_E_INTERNAL, "a long row");
        RLHF_TRY(judge(s, in->ids + at, n, in->prompt_len[i], &sum));
        RLHF_TRY(speak(s, in->prompt[i], in->response[i], &sum));
        RLHF_TRY(s->rows->open(s->host, in->meta[i], &row));
        const rlhf_status st = read_row(s, row, &sum);
        s->rows->close(s->host, row);
        RLHF_TRY(st);
        out->seq[i] = (float)(sum * 1e-4);
    }
    return RLHF_OK;
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

static const rlhf_plugin plugin = {.size = sizeof plugin,
                                   .kind = RLHF_KIND_REWARD,
                                   .id = "org.rlhf-host.museum.services",
                                   .version = "1",
                                   .summary = "calls every function of every service",
                                   .create = create,
                                   .destroy = destroy,
                                   .ops = &ops};

RLHF_DEFINE_PLUGIN(plugin)
