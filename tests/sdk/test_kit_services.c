// test_kit_services.c: the fake services of rlhf/test.h write where the caller's structs say, and
// have the limits of the host's services.
#include "support/check.h"

#include <rlhf/test.h>

#include <string.h>

static struct rlhf_test_host host;

static float logp(const void *context, const int32_t *before, int32_t n, int32_t id) {
    (void)context;
    return n && before[n - 1] % 8 == id % 8 ? -1.0f : -8.0f;
}

static void language_models_have_limits(void **state) {
    (void)state;
    static struct rlhf_test_language_model m;
    const rlhf_host *h = &host.table;
    rlhf_language_model *lm;
    int32_t ids[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, offset[2] = {0, 9}, prompt_len = 1;
    int32_t made[4], len;
    uint8_t stopped;
    float scores[16];
    rlhf_test_init(&host, 1);
    rlhf_test_language_model_init(&m);
    m.logp = logp;
    rlhf_test_offer(&host, RLHF_SVC_LANGUAGE_MODEL, &m.table);
    const rlhf_language_model_service *s = h->service(h, RLHF_SVC_LANGUAGE_MODEL);
    rlhf_language_open how = {.size = sizeof how, .longest = 8};
    assert_int_equal(s->open(h, &how, &lm), RLHF_OK);
    const rlhf_language_rows rows = {
        .size = sizeof rows, .n = 1, .ids = ids, .offset = offset, .prompt_len = &prompt_len};
    const rlhf_language_scores to = {.size = sizeof to, .logp = scores};
    assert_int_equal(s->score(h, lm, &rows, &to), RLHF_E_INVALID);
    assert_non_null(strstr(host.fail_text, "longer"));
    offset[1] = 8;
    assert_int_equal(s->score(h, lm, &rows, &to), RLHF_OK);
    offset[1] = 4;
    rlhf_language_request q = {
        .size = sizeof q, .n = 1, .ids = ids, .offset = offset, .max_new = 4};
    const rlhf_language_responses out = {
        .size = sizeof out, .ids = made, .len = &len, .stopped = &stopped};
    assert_int_equal(s->generate(h, lm, &q, &out), RLHF_E_INVALID);
    assert_non_null(strstr(host.fail_text, "0 slots"));
    s->close(h, lm);
    how.slots = 1;
    assert_int_equal(s->open(h, &how, &lm), RLHF_OK);
    assert_int_equal(s->generate(h, lm, &q, &out), RLHF_OK);
    assert_int_equal(len, 4);
    q.max_new = 5;
    assert_int_equal(s->generate(h, lm, &q, &out), RLHF_E_INVALID);
    s->close(h, lm);
    assert_int_equal(m.open_count, 0);
}

static void texts_have_a_room(void **state) {
    (void)state;
    static struct rlhf_test_tokenizer t;
    const rlhf_host *h = &host.table;
    rlhf_tokenizer *k;
    int32_t ids[4] = {-1, -1, -1, -1};
    char text[4] = "...";
    rlhf_test_init(&host, 1);
    rlhf_test_tokenizer_init(&t);
    rlhf_test_offer(&host, RLHF_SVC_TOKENIZER, &t.table);
    const rlhf_tokenizer_service *s = h->service(h, RLHF_SVC_TOKENIZER);
    const rlhf_tokenizer_open how = {.size = sizeof how, .path = "dir"};
    assert_int_equal(s->open(h, &how, &k), RLHF_OK);
    assert_string_equal(t.path, "dir");
    rlhf_tokenizer_info info = {.size = sizeof info};
    assert_int_equal(s->info(h, k, &info), RLHF_OK);
    assert_int_equal(info.n_vocab, 256);
    const rlhf_encode_in in = {.size = sizeof in, .text = {"abc", 3}};
    rlhf_encode_out out = {.size = sizeof out, .cap = 2, .ids = ids};
    assert_int_equal(s->encode(h, k, &in, &out), RLHF_OK);
    assert_int_equal(out.n, 3);
    assert_int_equal(ids[1], 'b');
    assert_int_equal(ids[2], -1);
    const rlhf_decode_in back = {.size = sizeof back, .n = 2, .ids = ids};
    rlhf_decode_out to = {.size = sizeof to, .utf8 = text, .cap = 1};
    assert_int_equal(s->decode(h, k, &back, &to), RLHF_OK);
    assert_int_equal(to.len, 2);
    assert_string_equal(text, "a..");
    s->close(h, k);
    t.open_status = RLHF_E_IO;
    assert_int_equal(s->open(h, &how, &k), RLHF_E_IO);
    assert_null(k);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(language_models_have_limits),
                                       cmocka_unit_test(texts_have_a_room)};
    return cmocka_run_group_tests_name("sdk/kit_services", tests, NULL, NULL);
}
