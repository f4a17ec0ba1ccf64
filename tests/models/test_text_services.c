// test_text_services.c: the services "rlhf.classifier", "rlhf.tokenizer" and "rlhf.reward_model" of
// the host, with the default models.
#include "e2e.h"

#include "model/session.h"
#include "service/text_services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__session session;
    struct rlhf__text_services *served;
    const rlhf_classifier_service *classifiers;
    const rlhf_tokenizer_service *tokenizers;
    const rlhf_reward_model_service *models;
    rlhf_classifier *c;
    rlhf_tokenizer *t;
    rlhf_reward_model *m;
    char policy[RLHF__PATH_CAP];
    struct rlhf__error said; // what the service reported
};

static struct fixture *f;

static rlhf_status take(const rlhf_host *host, rlhf_status code, const char *msg) {
    (void)host;
    f->said = (struct rlhf__error){0, ""};
    rlhf__fail(&f->said, code, "%s", msg);
    return code;
}

static const void *find(const rlhf_host *host, const char *id) {
    (void)host;
    return rlhf__services_find(&f->session.services, id);
}

static const rlhf_host host = {.size = sizeof host, .fail = take, .service = find};

static void works(rlhf_status st) {
    if (st != RLHF_OK) fail_msg("%s", f->said.text);
}

// Asserts that a call failed with this message.
static void refused(rlhf_status st, rlhf_status as, const char *why) {
    assert_int_equal(st, as);
    assert_int_equal(f->said.code, as);
    if (!strstr(f->said.text, why)) fail_msg("\"%s\" is not in \"%s\"", why, f->said.text);
}

static void open_all(void) {
    const rlhf_classifier_open c = {.size = sizeof c};
    const rlhf_tokenizer_open t = {.size = sizeof t, .path = f->policy};
    const rlhf_reward_model_open m = {.size = sizeof m, .path = "default"};
    works(f->classifiers->open(&host, &c, &f->c));
    works(f->tokenizers->open(&host, &t, &f->t));
    works(f->models->open(&host, &m, &f->m));
}

static int setup(void **state) {
    (void)state;
    f = calloc(1, sizeof *f);
    if (!f || rlhf__dirs_find(&f->dirs, NULL) != RLHF_OK) return -1;
    if (rlhf__plugins_open(&f->dirs, &f->plugins, NULL) != RLHF_OK) return -1;
    const struct rlhf__compute_config compute = {.backend = "cpu", .dtype = RLHF__DTYPE_F32};
    const struct rlhf__run_config run = {.seed = 1, .threads = 1};
    if (rlhf__session_init(&f->session, &f->dirs, NULL, NULL, f->plugins, &compute, &run, NULL))
        return -1;
    if (rlhf__text_services_open(&f->session.models, &f->dirs, &f->served, NULL)) return -1;
    rlhf__default_model(&f->dirs, "policy", f->policy);
    f->classifiers = find(&host, RLHF_SVC_CLASSIFIER);
    f->tokenizers = find(&host, RLHF_SVC_TOKENIZER);
    f->models = find(&host, RLHF_SVC_REWARD_MODEL);
    open_all();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    f->classifiers->close(&host, f->c);
    f->tokenizers->close(&host, f->t);
    f->models->close(&host, f->m);
    f->classifiers->close(&host, NULL);
    f->tokenizers->close(&host, NULL);
    f->models->close(&host, NULL);
    const int left = rlhf__text_services_at(f->served, 0) != NULL;
    rlhf__text_services_close(f->served);
    rlhf__session_finish(&f->session);
    rlhf__plugins_close(f->plugins);
    free(f);
    return left;
}

static rlhf_str str(const char *text) { return (rlhf_str){text, strlen(text)}; }

// ---- classifiers ----

static rlhf_status logits(uint32_t n, const rlhf_str *texts, float *to) {
    const rlhf_classifier_in in = {.size = sizeof in, .n = n, .texts = texts};
    const rlhf_classifier_out out = {.size = sizeof out, .logits = to};
    return f->classifiers->logits(&host, f->c, &in, &out);
}

static void texts_are_classified(void **state) {
    (void)state;
    rlhf_classifier_info info = {.size = sizeof info};
    works(f->classifiers->info(&host, f->c, &info));
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
    refused(logits(1, NULL, alone), RLHF_E_INVALID, "needs texts and logits");
    refused(logits(1, texts, NULL), RLHF_E_INVALID, "needs texts and logits");
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
    works(f->tokenizers->info(&host, f->t, &info));
    assert_true(info.n_vocab > 256);
    const rlhf_encode_in in = {.size = sizeof in, .text = str("It was<|endoftext|>")};
    rlhf_encode_out out = {.size = sizeof out, .ids = ids, .cap = 16};
    works(f->tokenizers->encode(&host, f->t, &in, &out));
    const uint32_t n = out.n;
    assert_in_range(n, 4, 16); // the special token is spelled in ordinary ones
    for (uint32_t i = 0; i < n; i++)
        assert_in_range(ids[i], 0, info.n_vocab - 1);
    const int32_t second = ids[1];
    ids[1] = -7;
    out.cap = 1;
    works(f->tokenizers->encode(&host, f->t, &in, &out));
    assert_int_equal(out.n, n);
    assert_int_equal(ids[1], -7);
    ids[1] = second;
    out.ids = NULL;
    refused(f->tokenizers->encode(&host, f->t, &in, &out), RLHF_E_INVALID, "needs ids");
    out.cap = 0;
    works(f->tokenizers->encode(&host, f->t, &in, &out));
    assert_int_equal(out.n, n);
    const rlhf_decode_in back = {.size = sizeof back, .n = n, .ids = ids};
    rlhf_decode_out to = {.size = sizeof to, .utf8 = text, .cap = 6};
    works(f->tokenizers->decode(&host, f->t, &back, &to));
    assert_int_equal(to.len, strlen("It was<|endoftext|>"));
    assert_memory_equal(text, "It was?", 7);
    to.utf8 = NULL;
    refused(f->tokenizers->decode(&host, f->t, &back, &to), RLHF_E_INVALID, "needs ids and utf8");
}

static void the_policys_tokenizer(void **state) {
    (void)state;
    const rlhf_tokenizer_open how = {.size = sizeof how};
    rlhf_tokenizer *t = f->t;
    refused(f->tokenizers->open(&host, &how, &t), RLHF_E_INVALID, "this command has no policy");
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
    return f->models->score(&host, f->m, &in, &out);
}

static void rows_are_scored(void **state) {
    (void)state;
    float seq, token[4] = {9, 9, 9, 9};
    const int32_t n_ctx = rlhf__text_services_at(f->served, 1)->model->info.n_ctx;
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
    works(f->models->score(&host, f->m, &none, &out));
}

// ---- structs of other versions ----

struct longer {
    union {
        uint32_t size;
        rlhf_classifier_open classifier_open;
        rlhf_classifier_info classifier_info;
        rlhf_classifier_in classifier_in;
        rlhf_classifier_out classifier_out;
        rlhf_tokenizer_open tokenizer_open;
        rlhf_tokenizer_info tokenizer_info;
        rlhf_encode_in encode_in;
        rlhf_encode_out encode_out;
        rlhf_decode_in decode_in;
        rlhf_decode_out decode_out;
        rlhf_reward_model_open reward_model_open;
        rlhf_reward_model_in reward_model_in;
        rlhf_reward_model_out reward_model_out;
        unsigned char bytes[128];
    } u;
};

// The structs of a call. The one that a test changes is shorter (as > 0) or longer, with `next` in
// its first further byte.
static struct longer l[2];
static uint32_t size[2];

#define FORM(I, X, ...)                                                                            \
    (l[I].u.X = (rlhf_##X){.size = sizeof(rlhf_##X), __VA_ARGS__}, size[I] = sizeof(rlhf_##X))

static size_t reserved_at; // not 0: the offset of `reserved`, which is then set

static void change(int i, uint32_t as, unsigned char next) {
    l[i].u.size = as ? as : size[i] + 8;
    if (!as) l[i].u.bytes[size[i]] = next;
    if (reserved_at) l[i].u.bytes[reserved_at] = 1;
}

static rlhf_status pass_classifier(int which, uint32_t as, unsigned char next) {
    static const rlhf_str text = {"good", 4};
    float numbers[8];
    rlhf_classifier *c = NULL;
    if (which == 0) {
        FORM(0, classifier_open, .path = NULL);
        change(0, as, next);
        const rlhf_status st = f->classifiers->open(&host, &l[0].u.classifier_open, &c);
        f->classifiers->close(&host, c);
        return st;
    }
    if (which == 1) {
        FORM(0, classifier_info, .label = NULL);
        change(0, as, next);
        return f->classifiers->info(&host, f->c, &l[0].u.classifier_info);
    }
    FORM(0, classifier_in, .n = 1, .texts = &text);
    FORM(1, classifier_out, .logits = numbers);
    change(which - 2, as, next);
    return f->classifiers->logits(&host, f->c, &l[0].u.classifier_in, &l[1].u.classifier_out);
}

static rlhf_status pass_tokenizer(int which, uint32_t as, unsigned char next) {
    static const int32_t ids[2] = {1, 2};
    int32_t to[8];
    char utf8[8];
    rlhf_tokenizer *t = NULL;
    if (which == 4) {
        FORM(0, tokenizer_open, .path = f->policy);
        change(0, as, next);
        const rlhf_status st = f->tokenizers->open(&host, &l[0].u.tokenizer_open, &t);
        f->tokenizers->close(&host, t);
        return st;
    }
    if (which == 5) {
        FORM(0, tokenizer_info, .n_vocab = 0);
        change(0, as, next);
        return f->tokenizers->info(&host, f->t, &l[0].u.tokenizer_info);
    }
    if (which <= 7) {
        FORM(0, encode_in, .text = {"good", 4});
        FORM(1, encode_out, .cap = 8, .ids = to);
        change(which - 6, as, next);
        return f->tokenizers->encode(&host, f->t, &l[0].u.encode_in, &l[1].u.encode_out);
    }
    FORM(0, decode_in, .n = 2, .ids = ids);
    FORM(1, decode_out, .utf8 = utf8, .cap = 8);
    change(which - 8, as, next);
    return f->tokenizers->decode(&host, f->t, &l[0].u.decode_in, &l[1].u.decode_out);
}

static rlhf_status pass_reward_model(int which, uint32_t as, unsigned char next) {
    static const int32_t ids[2] = {1, 2}, offset[2] = {0, 2}, prompt_len[1] = {1};
    float numbers[8];
    rlhf_reward_model *m = NULL;
    if (which == 10) {
        FORM(0, reward_model_open, .path = NULL);
        change(0, as, next);
        const rlhf_status st = f->models->open(&host, &l[0].u.reward_model_open, &m);
        f->models->close(&host, m);
        return st;
    }
    FORM(0, reward_model_in, .n = 1, .ids = ids, .offset = offset, .prompt_len = prompt_len);
    FORM(1, reward_model_out, .seq = numbers);
    change(which - 11, as, next);
    return f->models->score(&host, f->m, &l[0].u.reward_model_in, &l[1].u.reward_model_out);
}

// Calls the function that reads or fills struct `which`.
static rlhf_status pass(int which, uint32_t as, unsigned char next) {
    memset(l, 0, sizeof l);
    return which < 4    ? pass_classifier(which, as, next)
           : which < 10 ? pass_tokenizer(which, as, next)
                        : pass_reward_model(which, as, next);
}

// A longer struct is read if its further bytes are 0, and else refused. A shorter one is refused.
// The further bytes of an info are filled with zeros.
static void structs_of_other_sizes(void **state) {
    (void)state;
    for (int which = 0; which < 13; which++) {
        works(pass(which, 0, 0));
        if (which == 1 || which == 5) {
            works(pass(which, 0, 1));
            assert_int_equal(l[0].u.bytes[size[0]], 0);
        } else
            refused(pass(which, 0, 1), RLHF_E_UNSUPPORTED, "a member that this host does not");
        refused(pass(which, 4, 0), RLHF_E_INVALID, "has a size that it never had");
    }
}

static void reserved_is_refused(void **state) {
    (void)state;
    static const struct {
        int which;
        size_t at;
    } all[] = {{0, offsetof(rlhf_classifier_open, reserved)},
               {3, offsetof(rlhf_classifier_out, reserved)},
               {4, offsetof(rlhf_tokenizer_open, reserved)},
               {6, offsetof(rlhf_encode_in, reserved)},
               {7, offsetof(rlhf_encode_out, reserved)},
               {9, offsetof(rlhf_decode_out, reserved)},
               {10, offsetof(rlhf_reward_model_open, reserved)},
               {11, offsetof(rlhf_reward_model_in, reserved)},
               {12, offsetof(rlhf_reward_model_out, reserved)}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        reserved_at = all[i].at;
        refused(pass(all[i].which, 0, 0), RLHF_E_UNSUPPORTED, " is 1; it must be 0");
    }
    reserved_at = 0;
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(texts_are_classified),  TEST(long_texts_are_cut), TEST(texts_are_encoded),
        TEST(the_policys_tokenizer), TEST(rows_are_scored),    TEST(structs_of_other_sizes),
        TEST(reserved_is_refused),
    };
    return cmocka_run_group_tests_name("text_services", tests, NULL, NULL);
}
