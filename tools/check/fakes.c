// fakes.c: see fakes.h.
#include "check/fakes.h"

#include "worker/programs.h"

#include <rlhf/draft/iteration.h>
#include <rlhf/service.h>
#include <rlhf/test.h>

struct rlhf__check_fakes {
    struct rlhf_test_classifier classifier;
    struct rlhf_test_tokenizer tokenizer;
    struct rlhf_test_reward_model reward_model;
    struct rlhf_test_language_model language_model;
    rlhf_limits limits;
    rlhf_iteration_service iteration;
    struct rlhf__programs programs;
    char host[RLHF__PATH_CAP];
    atomic_int instances;
};

// How often words of a list occur in a text.
static int32_t count(rlhf_str text, const char *const *words) {
    int32_t n = 0;
    for (; *words; words++) {
        const size_t len = strlen(*words);
        for (uint64_t at = 0; at + len <= text.len; at++)
            n += memcmp(text.ptr + at, *words, len) == 0;
    }
    return n;
}

// A sentiment computed from the words, plus a number computed from the text.
static float logit(const void *context, rlhf_str text, int32_t label) {
    static const char *const good[] = {"good",      "great",     "love", "best",
                                       "wonderful", "excellent", NULL};
    static const char *const bad[] = {"bad",   "terrible", "hate",  "worst",
                                      "awful", "boring",   "waste", NULL};
    uint32_t h = 2166136261u;
    (void)context;
    for (uint64_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.ptr[i]) * 16777619u;
    const float mood =
        (float)(count(text, good) - count(text, bad)) + (float)(h >> 16) / 1048576.0f;
    return label ? 2 * mood : -2 * mood;
}

static float token(const void *context, int32_t id) {
    (void)context;
    return (float)((uint32_t)id * 2654435761u >> 16) / 16384.0f - 2.0f;
}

// Log-probs over 256 tokens that sum to 1: tokens have the weights 1 to 8, by a number computed
// from the last token.
static float logp(const void *context, const int32_t *before, int32_t n, int32_t id) {
    // ln((k + 1) / (32 * 36)) for k = 0 to 7; 32 of the 256 tokens have each k
    static const float of[] = {-7.0492549f, -6.3561077f, -5.9506426f, -5.6629605f,
                               -5.4398170f, -5.2574954f, -5.1033447f, -4.9698133f};
    const uint32_t last = n ? (uint32_t)before[n - 1] : 0;
    (void)context;
    return of[((uint32_t)id + last * 5) % 8];
}

static rlhf_status reference_sync(const rlhf_host *host) {
    (void)host;
    return RLHF_OK;
}

static rlhf_status collect_pairs(const rlhf_host *host, uint32_t *added) {
    (void)host;
    *added = 3;
    return RLHF_OK;
}

static rlhf_status reward_update(const rlhf_host *host, const rlhf_reward_update *how,
                                 rlhf_reward_update_report *out) {
    const rlhf_reward_update_report report = {
        .size = sizeof report, .steps = 2, .fresh = 3, .loss = 0.5, .accuracy = 0.5};
    (void)host;
    (void)how;
    return rlhf_copy_out(out, &report, sizeof report,
                         RLHF_SIZE_TO(rlhf_reward_update_report, fresh_after));
}

rlhf_status rlhf__check_fakes_open(struct rlhf__services *s, const struct rlhf__dirs *dirs,
                                   struct rlhf__check_fakes **out, struct rlhf__error *err) {
    static const char *const labels[] = {"NEGATIVE", "POSITIVE"};
    struct rlhf__check_fakes *f = calloc(1, sizeof *f);
    *out = f;
    if (!f) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    rlhf_test_classifier_init(&f->classifier, labels, 2);
    f->classifier.logit = logit;
    rlhf_test_tokenizer_init(&f->tokenizer);
    rlhf_test_reward_model_init(&f->reward_model);
    f->reward_model.token = token;
    rlhf_test_language_model_init(&f->language_model);
    f->language_model.logp = logp;
    rlhf_test_limits_init(&f->limits);
    f->iteration = (rlhf_iteration_service){.size = sizeof f->iteration,
                                            .reference_sync = reference_sync,
                                            .collect_pairs = collect_pairs,
                                            .reward_update = reward_update};
    rlhf__path_put(f->host, "%s/rlhf-host", dirs->exe);
    rlhf__programs_init(&f->programs, f->host, NULL);
    RLHF_TRY(rlhf__services_offer(s, RLHF_SVC_PROGRAM, RLHF__STRUCT_rlhf_program_service,
                                  &f->programs.table, err));
    RLHF_TRY(rlhf__services_offer(s, RLHF_SVC_ITERATION, RLHF__STRUCT_rlhf_iteration_service,
                                  &f->iteration, err));
    RLHF_TRY(rlhf__services_offer(s, RLHF_SVC_CLASSIFIER, RLHF__STRUCT_rlhf_classifier_service,
                                  &f->classifier.table, err));
    RLHF_TRY(rlhf__services_offer(s, RLHF_SVC_TOKENIZER, RLHF__STRUCT_rlhf_tokenizer_service,
                                  &f->tokenizer.table, err));
    RLHF_TRY(rlhf__services_offer(s, RLHF_SVC_REWARD_MODEL, RLHF__STRUCT_rlhf_reward_model_service,
                                  &f->reward_model.table, err));
    RLHF_TRY(rlhf__services_offer(s, RLHF_SVC_LANGUAGE_MODEL,
                                  RLHF__STRUCT_rlhf_language_model_service,
                                  &f->language_model.table, err));
    return rlhf__services_offer(s, RLHF_SVC_LIMITS, RLHF__STRUCT_rlhf_limits, &f->limits, err);
}

void rlhf__check_fakes_close(struct rlhf__check_fakes *f) { free(f); }

void rlhf__check_fakes_begin(struct rlhf__check_fakes *f) { atomic_fetch_add(&f->instances, 1); }

int32_t rlhf__check_fakes_end(struct rlhf__check_fakes *f) {
    if (atomic_fetch_sub(&f->instances, 1) > 1) return 0;
    return f->classifier.open_count + f->tokenizer.open_count + f->reward_model.open_count +
           f->language_model.open_count;
}
