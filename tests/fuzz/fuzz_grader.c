// fuzz_grader.c: graders of any JSON, with responses of any bytes. The input is a file, a zero byte
// and a response. A file is read or refused with a reason. If it only compares texts, it grades the
// response: the grade is finite, and the same when it is computed again.
#include "fuzz.h"

#include "grader/grades.h"
#include "plugin/row_service.h"

#include <math.h>
#include <string.h>

static char said[4096];

static const void *service(const rlhf_host *host, const char *id) {
    (void)host;
    return strcmp(id, RLHF_SVC_ROW) == 0 ? rlhf__row_service() : NULL;
}

static void *take(const rlhf_host *host, uint64_t n) {
    (void)host;
    return n ? calloc(1, (size_t)n) : NULL;
}

static void give(const rlhf_host *host, void *p) {
    (void)host;
    free(p);
}

static rlhf_status refuse(const rlhf_host *host, rlhf_status status, const char *why) {
    (void)host;
    snprintf(said, sizeof said, "%s", why);
    return status;
}

static void say(const rlhf_host *host, int32_t level, const char *text) {
    (void)host;
    (void)level;
    FUZZ_CHECK(*text);
}

static const rlhf_host host = {.size = sizeof host,
                               .service = service,
                               .alloc = take,
                               .free = give,
                               .log = say,
                               .fail = refuse};

static double grade(const struct rlhf__grader_spec *s, rlhf_str response) {
    static const int32_t zero[2];
    static const char row[] = "{\"a\": \"the cat\", \"b\": [1, {\"c\": null}]}";
    const rlhf_str item = {row, sizeof row - 1};
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = 1,
                               .prompt = &item,
                               .response = &response,
                               .meta = &item,
                               .ids = zero,
                               .offset = zero,
                               .prompt_len = zero};
    struct rlhf__grades a = {.host = &host, .spec = s, .in = &in};
    int valid;
    FUZZ_CHECK(rlhf__grades_init(&a) == RLHF_OK);
    const double g = rlhf__grades_row(&a, 0, &valid);
    rlhf__grades_finish(&a);
    return g;
}

static int only_texts(const struct rlhf__grader_spec *s) {
    for (uint32_t k = 0; k < s->n; k++)
        if (s->of[k].type > RLHF__GRADER_TEXT_SIMILARITY) return 0;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    const char *text = (const char *)data, *zero = n ? memchr(text, 0, n) : NULL;
    const size_t len = zero ? (size_t)(zero - text) : n;
    const rlhf_str response = zero ? (rlhf_str){zero + 1, n - len - 1} : (rlhf_str){text, n};
    json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, NULL);
    struct rlhf__grader_spec s = {.host = &host, .path = "grader.json"};
    if (!v || n > 65536) {
        json_decref(v);
        return 0;
    }
    *said = 0;
    const rlhf_status st = rlhf__grader_spec_take(&s, v);
    FUZZ_CHECK(st == RLHF_OK || (st == RLHF_E_INVALID && strncmp(said, "grader.json: ", 13) == 0));
    if (st == RLHF_OK && only_texts(&s)) {
        const double g = grade(&s, response);
        FUZZ_CHECK(isfinite(g));
        FUZZ_CHECK(g == grade(&s, response));
    }
    rlhf__grader_spec_finish(&s);
    return 0;
}
