// test_text_services.c: the services "rlhf.classifier", "rlhf.tokenizer" and "rlhf.reward_model" of
// the host, with the default models.
#include "e2e.h"

#include "service_kit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct service_kit kit;
    const rlhf_classifier_service *classifiers;
    const rlhf_tokenizer_service *tokenizers;
    const rlhf_reward_model_service *models;
    rlhf_classifier *c;
    rlhf_tokenizer *t;
    rlhf_reward_model *m;
    char policy[RLHF__PATH_CAP];
};

static struct fixture *f;

static void works(rlhf_status st) { service_works(&f->kit, st); }

static void refused(rlhf_status st, rlhf_status as, const char *why) {
    service_refused(&f->kit, st, as, why);
}

static void open_all(void) {
    const rlhf_classifier_open c = {.size = sizeof c};
    const rlhf_tokenizer_open t = {.size = sizeof t, .path = f->policy};
    const rlhf_reward_model_open m = {.size = sizeof m, .path = "default"};
    works(f->classifiers->open(&f->kit.host, &c, &f->c));
    works(f->tokenizers->open(&f->kit.host, &t, &f->t));
    works(f->models->open(&f->kit.host, &m, &f->m));
}

static int setup(void **state) {
    (void)state;
    f = calloc(1, sizeof *f);
    if (!f || service_kit_init(&f->kit)) return -1;
    rlhf__default_model(&f->kit.dirs, "policy", f->policy);
    f->classifiers = f->kit.host.service(&f->kit.host, RLHF_SVC_CLASSIFIER);
    f->tokenizers = f->kit.host.service(&f->kit.host, RLHF_SVC_TOKENIZER);
    f->models = f->kit.host.service(&f->kit.host, RLHF_SVC_REWARD_MODEL);
    open_all();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    f->classifiers->close(&f->kit.host, f->c);
    f->tokenizers->close(&f->kit.host, f->t);
    f->models->close(&f->kit.host, f->m);
    f->classifiers->close(&f->kit.host, NULL);
    f->tokenizers->close(&f->kit.host, NULL);
    f->models->close(&f->kit.host, NULL);
    const int left = service_kit_finish(&f->kit);
    free(f);
    return left;
}

static rlhf_str str(const char *text) { return (rlhf_str){text, strlen(text)}; }

// ---- classifiers ----

static rlhf_status logits(uint32_t n, const rlhf_str *texts, float *to) {
    const rlhf_classifier_in in = {.size = sizeof in, .n = n, .text = texts};
    const rlhf_classifier_out out = {.size = sizeof out, .logits = to};
    return f->classifiers->logits(&f->kit.host, f->c, &in, &out);
}

static void texts_are_classified(void **state) {
    (void)state;
    rlhf_classifier_info info = {.size = sizeof info};
    works(f->classifiers->info(&f->kit.host, f->c, &info));
    assert_int_equal(info.n_labels, 2);
    assert_string_equal(info.label[0], "NEGATIVE");
    assert_string_equal(info.label[1], "POSITIVE");
    const rlhf_str texts[3] = {str("a good film"), {NULL, 0}, str("\xff bad")};
    float all[6], alone[2];
    works(logits(3, texts, all));
    for (int i = 0; i < 3; i++) {
        works(logits(1, &texts[i], alone));
        assert_memory_equal(alone, all + 2 * i, sizeof alone);
    }
    works(logits(0, NULL, NULL));
    refused(logits(1, NULL, alone), RLHF_E_INVALID, "needs text and logits");
    refused(logits(1, texts, NULL), RLHF_E_INVALID, "needs text and logits");
}

// The last tokens of a long text are left out: more text after them changes nothing.
static void long_texts_are_cut(void **state) {
    (void)state;
    enum { WORDS = 3000 };
    static char text[WORDS * 5 + 16];
    float cut[2], longer[2], other[2];
    for (int i = 0; i < WORDS; i++)
        memcpy(text + 5 * i, "good ", 5);
    const rlhf_str whole = {text, WORDS * 5};
    works(logits(1, &whole, cut));
    memcpy(text + WORDS * 5, "terrible film", 13);
    const rlhf_str more = {text, WORDS * 5 + 13};
    works(logits(1, &more, longer));
    assert_memory_equal(cut, longer, sizeof cut);
    memcpy(text, "bad ", 4);
    works(logits(1, &more, other));
    assert_int_not_equal(memcmp(cut, other, sizeof cut), 0);
}

// ---- tokenizers ----

static void texts_are_encoded(void **state) {
    (void)state;
    rlhf_tokenizer_info info = {.size = sizeof info};
    int32_t ids[16];
    char text[16] = "???????????????";
    works(f->tokenizers->info(&f->kit.host, f->t, &info));
    assert_true(info.n_vocab > 256);
    const rlhf_encode_in in = {.size = sizeof in, .text = str("It was<|endoftext|>")};
    rlhf_encode_out out = {.size = sizeof out, .ids = ids, .cap = 16};
    works(f->tokenizers->encode(&f->kit.host, f->t, &in, &out));
    const uint32_t n = out.n;
    assert_in_range(n, 4, 16); // the special token is spelled in ordinary ones
    for (uint32_t i = 0; i < n; i++)
        assert_in_range(ids[i], 0, info.n_vocab - 1);
    const int32_t second = ids[1];
    ids[1] = -7;
    out.cap = 1;
    works(f->tokenizers->encode(&f->kit.host, f->t, &in, &out));
    assert_int_equal(out.n, n);
    assert_int_equal(ids[1], -7);
    ids[1] = second;
    out.ids = NULL;
    refused(f->tokenizers->encode(&f->kit.host, f->t, &in, &out), RLHF_E_INVALID, "needs ids");
    out.cap = 0;
    works(f->tokenizers->encode(&f->kit.host, f->t, &in, &out));
    assert_int_equal(out.n, n);
    const rlhf_decode_in back = {.size = sizeof back, .n = n, .ids = ids};
    rlhf_decode_out to = {.size = sizeof to, .utf8 = text, .cap = 6};
    works(f->tokenizers->decode(&f->kit.host, f->t, &back, &to));
    assert_int_equal(to.len, strlen("It was<|endoftext|>"));
    assert_memory_equal(text, "It was?", 7);
    to.utf8 = NULL;
    refused(f->tokenizers->decode(&f->kit.host, f->t, &back, &to), RLHF_E_INVALID,
            "needs ids and utf8");
}

static void the_policys_tokenizer(void **state) {
    (void)state;
    const rlhf_tokenizer_open how = {.size = sizeof how};
    rlhf_tokenizer *t = f->t;
    refused(f->tokenizers->open(&f->kit.host, &how, &t), RLHF_E_INVALID,
            "this command has no policy");
    assert_null(t);
}

// ---- reward models ----

static rlhf_status score(int32_t len, int32_t prompt_len, int32_t first, int32_t pooling,
                         float *seq, float *token) {
    static int32_t ids[8192];
    const int32_t offset[2] = {0, len};
    ids[0] = first;
    const rlhf_reward_model_in in = {.size = sizeof in,
                                     .n = 1,
                                     .ids = ids,
                                     .offset = offset,
                                     .prompt_len = &prompt_len,
                                     .pooling = pooling};
    const rlhf_reward_model_out out = {.size = sizeof out, .seq = seq, .token = token};
    return f->models->score(&f->kit.host, f->m, &in, &out);
}

static void rows_are_scored(void **state) {
    (void)state;
    float seq, token[4] = {9, 9, 9, 9};
    const int32_t n_ctx = rlhf__text_services_at(f->kit.served, 1)->model->info.n_ctx;
    works(score(4, 2, 5, RLHF_POOL_LAST, &seq, token));
    assert_true(token[0] == 0 && token[1] == 0);
    assert_true(seq == token[3]);
    works(score(4, 2, 5, RLHF_POOL_MEAN, &seq, NULL));
    works(score(4, 4, 5, 0, &seq, NULL));
    works(score(n_ctx - 1, 2, 5, 0, &seq, NULL));
    refused(score(n_ctx + 1, 2, 5, 0, &seq, NULL), RLHF_E_INVALID,
            "is longer than the context of the reward model");
    refused(score(4, 5, 5, 0, &seq, NULL), RLHF_E_INVALID, "a prompt of 5");
    refused(score(4, 0, 5, 0, &seq, NULL), RLHF_E_INVALID, "a prompt of 0");
    refused(score(4, -1, 5, 0, &seq, NULL), RLHF_E_INVALID, "a prompt of -1");
    refused(score(0, 0, 5, 0, &seq, NULL), RLHF_E_INVALID, "row 0 has 0 tokens");
    refused(score(4, 2, -1, 0, &seq, NULL), RLHF_E_INVALID, "row 0 has the token -1");
    refused(score(4, 2, 1 << 24, 0, &seq, NULL), RLHF_E_INVALID, "row 0 has the token 16777216");
    refused(score(4, 2, 5, RLHF_POOL_FIRST, &seq, NULL), RLHF_E_INVALID, "not 2");
    refused(score(4, 2, 5, 0, NULL, token), RLHF_E_INVALID, "needs ids, offset");
    const rlhf_reward_model_in none = {.size = sizeof none};
    const rlhf_reward_model_out out = {.size = sizeof out};
    works(f->models->score(&f->kit.host, f->m, &none, &out));
}

// ---- where services may be called ----

static void *logits_there(void *st) {
    const rlhf_str text = str("a film");
    float out[2];
    *(rlhf_status *)st = logits(1, &text, out);
    return NULL;
}

static void *encode_there(void *st) {
    rlhf_encode_out out = {.size = sizeof out};
    const rlhf_encode_in in = {.size = sizeof in, .text = str("a film")};
    *(rlhf_status *)st = f->tokenizers->encode(&f->kit.host, f->t, &in, &out);
    return NULL;
}

static rlhf_status on_a_thread(void *(*call)(void *)) {
    pthread_t thread;
    rlhf_status st = RLHF_E_INTERNAL;
    assert_int_equal(pthread_create(&thread, NULL, call, &st), 0);
    pthread_join(thread, NULL);
    return st;
}

// Objects are opened and closed in functions that are [main]. Models compute on the thread of a
// call; any thread may encode.
static void services_are_called_in_their_place(void **state) {
    (void)state;
    rlhf_classifier *c = NULL;
    rlhf_tokenizer *t = NULL;
    rlhf_reward_model *m = NULL;
    const rlhf_classifier_open open_c = {.size = sizeof open_c};
    const rlhf_tokenizer_open open_t = {.size = sizeof open_t, .path = f->policy};
    const rlhf_reward_model_open open_m = {.size = sizeof open_m};
    rlhf_status st;
    service_kit_calls(&f->kit, "score()");
    refused(f->classifiers->open(&f->kit.host, &open_c, &c), RLHF_E_INVALID,
            "it called open() of a service in score(); objects are opened and closed in functions "
            "that are [main], such as create()");
    works(f->tokenizers->open(&f->kit.host, &open_t, &t));
    f->tokenizers->close(&f->kit.host, t);
    refused(f->models->open(&f->kit.host, &open_m, &m), RLHF_E_INVALID, "in score()");
    assert_true(!c && !m);
    assert_int_equal(f->kit.whole.broke, 0);
    f->classifiers->close(&f->kit.host, f->c);
    assert_int_not_equal(f->kit.whole.broke, 0);
    f->kit.whole.broke = 0;
    works(on_a_thread(encode_there)); // it is still open
    logits_there(&st);
    works(st);
    refused(on_a_thread(logits_there), RLHF_E_INVALID,
            "it called a service from another thread than the one that called score(); only "
            "encode, decode, and functions of rows may be called there");
    service_kit_calls(&f->kit, NULL);
    logits_there(&st);
    refused(st, RLHF_E_INVALID, "it called a service after score() had returned");
    for (int k = 0; k < 3; k++) {
        static const char *const all[] = {"check_row()", "plan()", "begin()"};
        service_kit_calls(&f->kit, all[k]);
        works(f->tokenizers->open(&f->kit.host, &open_t, &t));
        f->tokenizers->close(&f->kit.host, t);
        assert_int_equal(f->kit.whole.broke, 0);
    }
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(texts_are_classified), TEST(long_texts_are_cut),
        TEST(texts_are_encoded),    TEST(the_policys_tokenizer),
        TEST(rows_are_scored),      TEST(services_are_called_in_their_place),
    };
    return cmocka_run_group_tests_name("text_services", tests, NULL, NULL);
}
