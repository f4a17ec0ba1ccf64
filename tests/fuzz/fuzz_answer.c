// fuzz_answer.c: gold answers and responses of any bytes. Two bytes of the input choose the
// options. The gold answer, a zero byte, and the response follow. An answer that counts as right
// occurs in the response. Verdicts are repeatable. If a gold answer is accepted, it counts as right
// when it is itself the response.
#include "fuzz.h"

#include "answer/checker.h"

#include <string.h>

static rlhf_str gold; // the row's answer

static rlhf_status row_open(const rlhf_host *host, rlhf_str json, rlhf_row **out) {
    (void)host;
    (void)json;
    *out = NULL;
    return RLHF_OK;
}

static void row_close(const rlhf_host *host, rlhf_row *row) {
    (void)host;
    (void)row;
}

static int32_t row_type(const rlhf_host *host, const rlhf_row *row, const char *path) {
    (void)host;
    (void)row;
    (void)path;
    return RLHF_JSON_STRING;
}

static rlhf_status row_string(const rlhf_host *host, const rlhf_row *row, const char *path,
                              rlhf_str *out) {
    (void)host;
    (void)row;
    (void)path;
    *out = gold;
    return RLHF_OK;
}

static const rlhf_row_service rows = {.size = sizeof rows,
                                      .open = row_open,
                                      .close = row_close,
                                      .type = row_type,
                                      .string = row_string};

static const void *service(const rlhf_host *host, const char *id) {
    (void)host;
    return strcmp(id, RLHF_SVC_ROW) == 0 ? &rows : NULL;
}

static void *take(const rlhf_host *host, uint64_t n) {
    (void)host;
    return calloc(1, (size_t)n);
}

static void give(const rlhf_host *host, void *p) {
    (void)host;
    free(p);
}

static rlhf_status refuse(const rlhf_host *host, rlhf_status status, const char *why) {
    (void)host;
    FUZZ_CHECK(status == RLHF_E_INVALID && *why);
    return status;
}

static const rlhf_host host = {
    .size = sizeof host, .service = service, .alloc = take, .free = give, .fail = refuse};

static struct rlhf__answer_options options(const uint8_t *data) {
    return (struct rlhf__answer_options){.field = "answer",
                                         .marker = data[0] & 1 ? "is" : NULL,
                                         .after = data[0] & 2 ? "##" : NULL,
                                         .tolerance = data[0] & 4 ? 0.5 : 0,
                                         .relative = data[0] & 8 ? 0.01 : 0,
                                         .where = (data[0] >> 4) % 7,
                                         .compare = data[1] % 3,
                                         .percent = data[1] / 3 % 3,
                                         .units = data[1] >> 6 & 1,
                                         .ignore_case = data[1] >> 7};
}

static int holds(rlhf_str text, const char *part) {
    const size_t n = strlen(part);
    for (uint64_t i = 0; i + n <= text.len; i++)
        if (memcmp(text.ptr + i, part, n) == 0) return 1;
    return 0;
}

// Passes the gold answer itself as the whole response.
static void check_itself(const struct rlhf__answer_options *with, rlhf_str row) {
    struct rlhf__answer_options o = *with;
    struct rlhf__checker c;
    struct rlhf__answer_verdict v;
    if (holds(gold, "####") || holds(gold, "box") || o.marker) return;
    o.where = RLHF__WHERE_WHOLE;
    o.after = NULL;
    FUZZ_CHECK(rlhf__checker_init(&c, &host, &o) == RLHF_OK);
    if (rlhf__checker_gold(&c, row) == RLHF_OK) {
        FUZZ_CHECK(rlhf__checker_judge(&c, row, gold, &v) == RLHF_OK);
        FUZZ_CHECK(v.correct && v.found && !v.marked);
    }
    rlhf__checker_finish(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 3) return 0;
    const struct rlhf__answer_options o = options(data);
    const char *text = (const char *)data + 2, *end = (const char *)data + n;
    const char *zero = memchr(text, 0, (size_t)(end - text));
    gold = (rlhf_str){text, (uint64_t)((zero ? zero : end) - text)};
    const rlhf_str response = zero ? (rlhf_str){zero + 1, (uint64_t)(end - zero - 1)} : gold;
    const rlhf_str row = {"{}", 2};
    struct rlhf__checker c;
    struct rlhf__answer_verdict first, again;
    if (rlhf__checker_init(&c, &host, &o) == RLHF_OK &&
        rlhf__checker_judge(&c, row, response, &first) == RLHF_OK) {
        FUZZ_CHECK(first.correct <= first.found && first.marked <= first.found);
        rlhf__checker_forget(&c);
        FUZZ_CHECK(rlhf__checker_judge(&c, row, response, &again) == RLHF_OK);
        FUZZ_CHECK(memcmp(&first, &again, sizeof first) == 0);
    }
    rlhf__checker_finish(&c);
    check_itself(&o, row);
    return 0;
}
