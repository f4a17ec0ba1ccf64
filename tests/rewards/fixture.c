// fixture.c: see fixture.h.
#include "rewards/fixture.h"

#include <rlhf/draft/program.h>

static const char *const sentiment_labels[] = {"NEGATIVE", "POSITIVE"};

static int count(rlhf_str text, const char *word) {
    int found = 0;
    uint64_t len = strlen(word);
    for (uint64_t i = 0; i + len <= text.len; i++)
        found += memcmp(text.ptr + i, word, (size_t)len) == 0;
    return found;
}

static float sentiment(const void *context, rlhf_str text, int32_t label) {
    (void)context;
    int m = count(text, "good") + count(text, "wonderful") + count(text, "loved") -
            count(text, "bad") - count(text, "terrible") - count(text, "hated");
    return (float)(label ? m : -m);
}

rlhf_status reward_try(struct reward *r, const char *file, const char *options) {
    char path[4096];
    static char list[1024]; // string options point into it until the next call
    const char *build = getenv("RLHF_BUILD_DIR");
    snprintf(path, sizeof path, "%s/lib/rlhf/1/rewards/%s", build ? build : ".", file);
    r->plugin = rlhf_test_open(path, 0);
    assert_non_null(r->plugin);
    assert_true(r->plugin->config_size <= sizeof r->config);
    r->ops = r->plugin->ops;
    r->self = NULL;
    rlhf_test_init(&r->host, 1);
    if (!r->classifier.logit) {
        rlhf_test_classifier_init(&r->classifier, sentiment_labels, 2);
        r->classifier.logit = sentiment;
    }
    rlhf_test_offer(&r->host, RLHF_SVC_CLASSIFIER, &r->classifier.table);
    if (r->reward_model) rlhf_test_offer(&r->host, RLHF_SVC_REWARD_MODEL, r->reward_model);
    if (r->language_model) rlhf_test_offer(&r->host, RLHF_SVC_LANGUAGE_MODEL, r->language_model);
    if (r->rows) rlhf_test_offer(&r->host, RLHF_SVC_ROW, r->rows);
    if (r->programs) rlhf_test_offer(&r->host, RLHF_SVC_PROGRAM, r->programs);
    if (r->limits) rlhf_test_offer(&r->host, RLHF_SVC_LIMITS, r->limits);
    rlhf_test_config(r->plugin, r->config.bytes);
    snprintf(list, sizeof list, "%s", options);
    for (char *item = list, *next; *item; item = next) {
        next = item + strcspn(item, ",");
        if (*next) *next++ = 0;
        char *equals = strchr(item, '=');
        assert_non_null(equals);
        *equals = 0;
        if (!rlhf_test_set(r->plugin, r->config.bytes, item, equals + 1))
            fail_msg("%s refuses %s=%s", file, item, equals + 1);
    }
    if (!r->plugin->create) {
        r->self = r->config.bytes;
        return RLHF_OK;
    }
    return r->plugin->create(&r->host.table, r->config.bytes, &r->self);
}

void reward_open(struct reward *r, const char *file, const char *options) {
    rlhf_status st = reward_try(r, file, options);
    if (st < 0) fail_msg("%s: %s", file, r->host.fail_text);
}

void reward_close(struct reward *r) {
    if (r->plugin->destroy) r->plugin->destroy(r->self);
    assert_int_equal(r->host.live, 0);
    assert_int_equal(r->classifier.open_count, 0);
}

void texts_add(struct texts *t, const void *prompt, size_t prompt_len, const void *response,
               size_t response_len) {
    uint32_t i = t->n;
    int32_t at = t->offset[i];
    assert_true(i < MAX_TEXTS && (size_t)at + prompt_len + response_len <= MAX_IDS);
    t->prompt[i] = (rlhf_str){prompt, prompt_len};
    t->response[i] = (rlhf_str){response_len ? response : NULL, response_len};
    for (size_t k = 0; k < prompt_len; k++)
        t->ids[at++] = ((const uint8_t *)prompt)[k];
    for (size_t k = 0; k < response_len; k++)
        t->ids[at++] = ((const uint8_t *)response)[k];
    t->prompt_len[i] = (int32_t)prompt_len;
    t->offset[++t->n] = at;
}

rlhf_status texts_score(struct reward *r, struct texts *t, uint32_t from, uint32_t to) {
    int32_t offset[MAX_TEXTS + 1], base = t->offset[from];
    for (uint32_t i = from; i <= to; i++)
        offset[i - from] = t->offset[i] - base;
    rlhf_reward_in in = {.size = sizeof in,
                         .n = to - from,
                         .prompt = t->prompt + from,
                         .response = t->response + from,
                         .meta = t->meta + from,
                         .ids = t->ids + base,
                         .offset = offset,
                         .prompt_len = t->prompt_len + from,
                         .finished = t->finished + from};
    rlhf_reward_out out = {.size = sizeof out,
                           .seq = t->seq + from,
                           .verdict = t->verdict + from,
                           .failed = t->failed + from};
    if (r->ops->flags & RLHF_REWARD_PER_TOKEN) out.token = t->token + base;
    memset(t->verdict + from, 0, to - from);
    memset(t->failed + from, 0, to - from);
    if (out.token) memset(out.token, 0, (size_t)(t->offset[to] - base) * sizeof *out.token);
    return r->ops->score(r->self, &in, &out);
}

double score_text(struct reward *r, const char *response) {
    static struct texts t;
    memset(&t, 0, sizeof t);
    texts_add(&t, "It was ", 7, response, strlen(response));
    t.seq[0] = -99;
    assert_int_equal(texts_score(r, &t, 0, 1), RLHF_OK);
    return (double)t.seq[0];
}

rlhf_status reward_check_row(struct reward *r, rlhf_str row) {
    const rlhf_row_in in = {.size = sizeof in, .meta = row};
    return r->ops->check_row(r->self, &in);
}

const char *reward_why_unused(struct reward *r, const char *key) {
    const rlhf_option_in in = {.size = sizeof in, .config = r->config.bytes, .key = key};
    return r->plugin->why_unused(&in);
}
