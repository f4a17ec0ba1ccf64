// test_service_structs.c: the structs of the services' calls in the sizes of other versions, and
// with `reserved` set.
#include "support/check.h"

#include "service_kit.h"

#include <stdlib.h>
#include <string.h>

enum { LONGEST = 160 };

struct fixture {
    struct service_kit kit;
    const rlhf_classifier_service *classifiers;
    const rlhf_tokenizer_service *tokenizers;
    const rlhf_reward_model_service *models;
    const rlhf_language_model_service *languages;
    rlhf_classifier *c;
    rlhf_tokenizer *t;
    rlhf_reward_model *m;
    rlhf_language_model *lm;
    char policy[RLHF__PATH_CAP], calc[RLHF__PATH_CAP];
};

static struct fixture *f;

static void works(rlhf_status st) { service_works(&f->kit, st); }

static void refused(rlhf_status st, rlhf_status as, const char *why) {
    service_refused(&f->kit, st, as, why);
}

static int setup(void **state) {
    (void)state;
    f = calloc(1, sizeof *f);
    if (!f || service_kit_init(&f->kit)) return -1;
    const rlhf_host *host = &f->kit.host;
    rlhf__default_model(&f->kit.dirs, "policy", f->policy);
    rlhf__default_model(&f->kit.dirs, "calc", f->calc);
    f->classifiers = host->service(host, RLHF_SVC_CLASSIFIER);
    f->tokenizers = host->service(host, RLHF_SVC_TOKENIZER);
    f->models = host->service(host, RLHF_SVC_REWARD_MODEL);
    f->languages = host->service(host, RLHF_SVC_LANGUAGE_MODEL);
    const rlhf_classifier_open c = {.size = sizeof c};
    const rlhf_tokenizer_open t = {.size = sizeof t, .path = f->policy};
    const rlhf_reward_model_open m = {.size = sizeof m};
    const rlhf_language_open lm = {.size = sizeof lm, .path = f->calc, .slots = 1};
    works(f->classifiers->open(host, &c, &f->c));
    works(f->tokenizers->open(host, &t, &f->t));
    works(f->models->open(host, &m, &f->m));
    works(f->languages->open(host, &lm, &f->lm));
    return 0;
}

static int teardown(void **state) {
    (void)state;
    const rlhf_host *host = &f->kit.host;
    f->classifiers->close(host, f->c);
    f->tokenizers->close(host, f->t);
    f->models->close(host, f->m);
    f->languages->close(host, f->lm);
    const int left = service_kit_finish(&f->kit);
    free(f);
    return left;
}

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
        rlhf_language_open language_open;
        rlhf_language_info language_info;
        rlhf_language_prompt language_prompt;
        rlhf_language_rows language_rows;
        rlhf_language_scores language_scores;
        rlhf_language_request language_request;
        rlhf_language_responses language_responses;
        unsigned char bytes[256];
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
        const rlhf_status st = f->classifiers->open(&f->kit.host, &l[0].u.classifier_open, &c);
        f->classifiers->close(&f->kit.host, c);
        return st;
    }
    if (which == 1) {
        FORM(0, classifier_info, .label = NULL);
        change(0, as, next);
        return f->classifiers->info(&f->kit.host, f->c, &l[0].u.classifier_info);
    }
    FORM(0, classifier_in, .n = 1, .text = &text);
    FORM(1, classifier_out, .logits = numbers);
    change(which - 2, as, next);
    return f->classifiers->logits(&f->kit.host, f->c, &l[0].u.classifier_in,
                                  &l[1].u.classifier_out);
}

static rlhf_status pass_tokenizer(int which, uint32_t as, unsigned char next) {
    static const int32_t ids[2] = {1, 2};
    int32_t to[8];
    char utf8[8];
    rlhf_tokenizer *t = NULL;
    if (which == 4) {
        FORM(0, tokenizer_open, .path = f->policy);
        change(0, as, next);
        const rlhf_status st = f->tokenizers->open(&f->kit.host, &l[0].u.tokenizer_open, &t);
        f->tokenizers->close(&f->kit.host, t);
        return st;
    }
    if (which == 5) {
        FORM(0, tokenizer_info, .n_vocab = 0);
        change(0, as, next);
        return f->tokenizers->info(&f->kit.host, f->t, &l[0].u.tokenizer_info);
    }
    if (which <= 7) {
        FORM(0, encode_in, .text = {"good", 4});
        FORM(1, encode_out, .cap = 8, .ids = to);
        change(which - 6, as, next);
        return f->tokenizers->encode(&f->kit.host, f->t, &l[0].u.encode_in, &l[1].u.encode_out);
    }
    FORM(0, decode_in, .n = 2, .ids = ids);
    FORM(1, decode_out, .utf8 = utf8, .cap = 8);
    change(which - 8, as, next);
    return f->tokenizers->decode(&f->kit.host, f->t, &l[0].u.decode_in, &l[1].u.decode_out);
}

static rlhf_status pass_reward_model(int which, uint32_t as, unsigned char next) {
    static const int32_t ids[2] = {1, 2}, offset[2] = {0, 2}, prompt_len[1] = {1};
    float numbers[8];
    rlhf_reward_model *m = NULL;
    if (which == 10) {
        FORM(0, reward_model_open, .path = NULL);
        change(0, as, next);
        const rlhf_status st = f->models->open(&f->kit.host, &l[0].u.reward_model_open, &m);
        f->models->close(&f->kit.host, m);
        return st;
    }
    FORM(0, reward_model_in, .n = 1, .ids = ids, .offset = offset, .prompt_len = prompt_len);
    FORM(1, reward_model_out, .seq = numbers);
    change(which - 11, as, next);
    return f->models->score(&f->kit.host, f->m, &l[0].u.reward_model_in, &l[1].u.reward_model_out);
}

// The language model's own structs, and those of encode() and decode(), which it shares.
static rlhf_status pass_language_model(int which, uint32_t as, unsigned char next) {
    static const int32_t ids[2] = {1, 2}, offset[2] = {0, 2}, prompt_len[1] = {1};
    int32_t to[LONGEST], len[1];
    uint8_t stopped[1];
    float logp[2];
    char utf8[8];
    rlhf_language_model *lm = NULL;
    if (which == 13) {
        FORM(0, language_open, .path = f->calc, .slots = 1);
        change(0, as, next);
        const rlhf_status st = f->languages->open(&f->kit.host, &l[0].u.language_open, &lm);
        f->languages->close(&f->kit.host, lm);
        return st;
    }
    if (which == 14) {
        FORM(0, language_info, .n_vocab = 0);
        change(0, as, next);
        return f->languages->info(&f->kit.host, f->lm, &l[0].u.language_info);
    }
    if (which <= 16) {
        FORM(0, language_prompt, .text = {"1+1", 3});
        FORM(1, encode_out, .cap = LONGEST, .ids = to);
        change(which - 15, as, next);
        return f->languages->prompt(&f->kit.host, f->lm, &l[0].u.language_prompt,
                                    &l[1].u.encode_out);
    }
    if (which <= 18) {
        FORM(0, language_rows, .n = 1, .ids = ids, .offset = offset, .prompt_len = prompt_len);
        FORM(1, language_scores, .logp = logp);
        change(which - 17, as, next);
        return f->languages->score(&f->kit.host, f->lm, &l[0].u.language_rows,
                                   &l[1].u.language_scores);
    }
    if (which <= 20) {
        FORM(0, language_request, .n = 1, .ids = ids, .offset = offset, .max_new = 2);
        FORM(1, language_responses, .ids = to, .len = len, .stopped = stopped);
        change(which - 19, as, next);
        return f->languages->generate(&f->kit.host, f->lm, &l[0].u.language_request,
                                      &l[1].u.language_responses);
    }
    if (which <= 22) {
        FORM(0, encode_in, .text = {"1+1", 3});
        FORM(1, encode_out, .cap = LONGEST, .ids = to);
        change(which - 21, as, next);
        return f->languages->encode(&f->kit.host, f->lm, &l[0].u.encode_in, &l[1].u.encode_out);
    }
    FORM(0, decode_in, .n = 2, .ids = ids);
    FORM(1, decode_out, .utf8 = utf8, .cap = 8);
    change(which - 23, as, next);
    return f->languages->decode(&f->kit.host, f->lm, &l[0].u.decode_in, &l[1].u.decode_out);
}

// Calls the function that reads or fills struct `which`.
static rlhf_status pass(int which, uint32_t as, unsigned char next) {
    memset(l, 0, sizeof l);
    return which < 4    ? pass_classifier(which, as, next)
           : which < 10 ? pass_tokenizer(which, as, next)
           : which < 13 ? pass_reward_model(which, as, next)
                        : pass_language_model(which, as, next);
}

// A longer struct is read if its further bytes are 0, and else refused. A shorter one is refused.
// The further bytes of an info are filled with zeros.
static void structs_of_other_sizes(void **state) {
    (void)state;
    for (int which = 0; which < 25; which++) {
        works(pass(which, 0, 0));
        if (which == 1 || which == 5 || which == 14) {
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
               {12, offsetof(rlhf_reward_model_out, reserved)},
               {13, offsetof(rlhf_language_open, reserved)},
               {15, offsetof(rlhf_language_prompt, reserved)},
               {16, offsetof(rlhf_encode_out, reserved)},
               {18, offsetof(rlhf_language_scores, reserved)},
               {20, offsetof(rlhf_language_responses, reserved)}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        reserved_at = all[i].at;
        refused(pass(all[i].which, 0, 0), RLHF_E_UNSUPPORTED, " is 1; it must be 0");
    }
    reserved_at = 0;
}

int main(void) {
#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, setup, teardown)
    const struct CMUnitTest tests[] = {TEST(structs_of_other_sizes), TEST(reserved_is_refused)};
    return cmocka_run_group_tests_name("service_structs", tests, NULL, NULL);
}
