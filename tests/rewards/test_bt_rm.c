// test_bt_rm.c: bt_rm.so with a fake reward model whose raw score of a token is its id. Tests the
// requests to the service, and token rewards.
#include "rewards/fixture.h"

#include <math.h>
#include <rlhf/service.h>
#include <stdio.h>

// The service rlhf.reward_model/1. The reward of a token is id / 8, trained with mean pooling.
struct model {
    rlhf_reward_model_service table;
    char path[64];
    int32_t open_count, open_status, score_status, pooling, wanted_tokens;
};

// Returns the fake model. Its table is the service of the host that the plugin passes.
static struct model *model_of(const rlhf_host *host) {
    union {
        const void *table;
        struct model *model; // table is its first member
    } u;
    u.table = host->service(host, RLHF_SVC_REWARD_MODEL);
    return u.model;
}

static rlhf_status model_open(const rlhf_host *host, const rlhf_reward_model_open *how,
                              rlhf_reward_model **out) {
    struct model *m = model_of(host);
    if (m->open_status < 0) return m->open_status;
    snprintf(m->path, sizeof m->path, "%s", how->path);
    m->open_count++;
    *out = (rlhf_reward_model *)(void *)m;
    return RLHF_OK;
}

static void model_close(const rlhf_host *host, rlhf_reward_model *model) {
    if (model) model_of(host)->open_count--;
}

static rlhf_status model_score(const rlhf_host *host, rlhf_reward_model *model,
                               const rlhf_reward_model_in *in, const rlhf_reward_model_out *out) {
    struct model *m = model_of(host);
    const int32_t *ids = in->ids, *offset = in->offset, *prompt_len = in->prompt_len;
    float *token = out->token;
    (void)model;
    m->pooling = in->pooling;
    m->wanted_tokens = token != NULL;
    if (m->score_status < 0) return m->score_status;
    for (uint32_t i = 0; i < in->n; i++) {
        int32_t begin = offset[i] + prompt_len[i], end = offset[i + 1];
        double sum = 0;
        if (begin == end || in->pooling == RLHF_POOL_LAST) begin = end - 1;
        for (int32_t k = begin; k < end; k++)
            sum += ids[k] / 8.0;
        out->seq[i] = (float)(sum / (end - begin));
        for (int32_t k = offset[i] + prompt_len[i]; token && k < end; k++)
            token[k] = (float)(ids[k] / 8.0);
    }
    return RLHF_OK;
}

static struct model model;
static struct reward r;
static struct texts t;

static int setup(void **state) {
    (void)state;
    memset(&r, 0, sizeof r);
    memset(&t, 0, sizeof t);
    model = (struct model){.table = {.size = sizeof model.table,
                                     .open = model_open,
                                     .close = model_close,
                                     .score = model_score}};
    r.reward_model = &model.table;
    const char *responses[] = {"abcd", "Z", "", "a longer response than that"};
    for (int i = 0; i < 4; i++)
        texts_add(&t, "It was", 6, responses[i], strlen(responses[i]));
    return 0;
}

static void options_reach_the_model(void **state) {
    (void)state;
    static const char *const options[] = {"", "pooling=mean", "pooling=last", "per_token=true"};
    const int32_t pooling[] = {0, RLHF_POOL_MEAN, RLHF_POOL_LAST, RLHF_POOL_MEAN};
    for (int i = 0; i < 4; i++) {
        reward_open(&r, "bt_rm.so", options[i]);
        assert_string_equal(model.path, "default");
        assert_int_equal(texts_score(&r, &t, 0, t.n), RLHF_OK);
        assert_int_equal(model.pooling, pooling[i]);
        assert_int_equal(model.wanted_tokens, i == 3);
        reward_close(&r);
        assert_int_equal(model.open_count, 0);
    }
    reward_open(&r, "bt_rm.so", "model=some/dir");
    assert_string_equal(model.path, "some/dir");
    reward_close(&r);
}

static void rewards_are_the_models(void **state) {
    (void)state;
    reward_open(&r, "bt_rm.so", "");
    assert_int_equal(texts_score(&r, &t, 0, t.n), RLHF_OK);
    assert_true(t.seq[0] == (97 + 98 + 99 + 100) / 32.0f);
    assert_true(t.seq[1] == 90 / 8.0f);
    assert_true(t.seq[2] == 's' / 8.0f); // empty response: the prompt's last token
    for (int32_t k = 0; k < t.offset[t.n]; k++)
        assert_true(t.token[k] == 0);
    reward_close(&r);
}

// With token rewards, the rewards of a response's tokens add up to the score that mean pooling
// gives the response. The response itself gets 0.
static void shares_add_up_to_the_mean(void **state) {
    (void)state;
    float whole[4];
    reward_open(&r, "bt_rm.so", "pooling=mean");
    assert_int_equal(texts_score(&r, &t, 0, t.n), RLHF_OK);
    memcpy(whole, t.seq, sizeof whole);
    reward_close(&r);
    reward_open(&r, "bt_rm.so", "per_token=true");
    assert_true(r.ops->flags & RLHF_REWARD_PER_TOKEN);
    assert_int_equal(texts_score(&r, &t, 0, t.n), RLHF_OK);
    for (uint32_t i = 0; i < t.n; i++) {
        double sum = (double)t.seq[i];
        int32_t begin = t.offset[i] + t.prompt_len[i], end = t.offset[i + 1];
        for (int32_t k = t.offset[i]; k < begin; k++)
            assert_true(t.token[k] == 0);
        for (int32_t k = begin; k < end; k++)
            sum += (double)t.token[k];
        assert_true(fabs(sum - (double)whole[i]) < 1e-5);
        if (begin < end) assert_true(t.seq[i] == 0);
    }
    assert_true(t.token[t.offset[0] + 6] == 'a' / 32.0f);
    reward_close(&r);
}

static void what_cannot_be(void **state) {
    (void)state;
    assert_int_equal(reward_try(&r, "bt_rm.so", "per_token=true,pooling=last"), RLHF_E_INVALID);
    assert_non_null(strstr(r.host.fail_text, "pooling=last"));
    assert_int_equal(r.host.live, 0);
    model.open_status = RLHF_E_IO;
    assert_int_equal(reward_try(&r, "bt_rm.so", ""), RLHF_E_IO);
    assert_int_equal(r.host.live, 0);
    model.open_status = 0;
    reward_open(&r, "bt_rm.so", "per_token=true");
    model.score_status = RLHF_E_NUMERIC;
    assert_int_equal(texts_score(&r, &t, 0, t.n), RLHF_E_NUMERIC);
    model.score_status = 0;
    assert_int_equal(texts_score(&r, &t, 0, 0), RLHF_OK);
    reward_close(&r);
    r.reward_model = NULL;
    assert_int_equal(reward_try(&r, "bt_rm.so", ""), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(r.host.fail_text, RLHF_SVC_REWARD_MODEL));
    assert_int_equal(r.host.live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(options_reach_the_model, setup),
        cmocka_unit_test_setup(rewards_are_the_models, setup),
        cmocka_unit_test_setup(shares_add_up_to_the_mean, setup),
        cmocka_unit_test_setup(what_cannot_be, setup),
    };
    return cmocka_run_group_tests_name("rewards/bt_rm", tests, NULL, NULL);
}
