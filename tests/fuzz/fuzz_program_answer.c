// fuzz_program_answer.c: answers of a program. The first byte chooses between a line for exec.so
// and a frame of python.so's driver, which arrives in pieces of any size. A refusal has a reason.
// Reading an accepted answer again gives the same result, and the split into pieces does not affect
// it.
#include "fuzz.h"

#include "answer_line.h"
#include "python_frame.h"

#include <rlhf/reward.h>

#include <math.h>
#include <string.h>

static void *take(const rlhf_host *host, uint64_t n) {
    (void)host;
    return calloc(1, (size_t)n);
}

static void give(const rlhf_host *host, void *p) {
    (void)host;
    free(p);
}

static const rlhf_host host = {.size = sizeof host, .alloc = take, .free = give};

static int same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static void check_line(const char *line, size_t n) {
    struct rlhf__line a, b;
    char why[RLHF__LINE_WHY] = "";
    const int ok = rlhf__line_read(line, n, &a, why);
    FUZZ_CHECK(ok || *why);
    FUZZ_CHECK(strlen(why) < sizeof why);
    if (!ok) return;
    FUZZ_CHECK(rlhf__line_read(line, n, &b, why) && same(a.reward, b.reward));
    FUZZ_CHECK(a.verdict >= RLHF_VERDICT_NONE && a.verdict <= RLHF_VERDICT_WRONG);
    FUZZ_CHECK(a.n_metrics <= RLHF__LINE_METRICS && a.n_metrics == b.n_metrics);
    for (uint32_t i = 0; i < a.n_metrics; i++)
        FUZZ_CHECK(isfinite(a.metric[i].value) && *a.metric[i].name &&
                   memchr(a.metric[i].name, 0, RLHF__LINE_NAME));
    char number[64];
    const int len = snprintf(number, sizeof number, "%.17g", a.reward);
    FUZZ_CHECK(rlhf__line_read(number, (size_t)len, &b, why) && same(a.reward, b.reward));
}

// Reads a frame whose bytes arrive in pieces of `step`. Returns 1 if it is complete.
static int read_frame(struct rlhf__frame *f, const char *bytes, size_t n, size_t step) {
    enum rlhf__taken taken = RLHF__TAKEN_MORE;
    *f = (struct rlhf__frame){.data = {.host = &host}};
    for (size_t at = 0; at < n && taken != RLHF__TAKEN_NONE; at += step)
        taken = rlhf__frame_take(f, bytes + at, n - at < step ? n - at : step);
    return taken == RLHF__TAKEN_ALL;
}

static void check_frame(const char *bytes, size_t n, size_t step) {
    struct rlhf__frame f, g;
    const int whole = read_frame(&f, bytes, n, step);
    FUZZ_CHECK(read_frame(&g, bytes, n, 1 + n) == whole);
    if (whole) {
        FUZZ_CHECK(f.head + f.n_text + f.n_doubles * sizeof(double) == n);
        rlhf_str text = rlhf__frame_text(&f), line;
        size_t lines = 0;
        while (rlhf__frame_line(&text, &line))
            lines += (size_t)line.len + 1;
        FUZZ_CHECK(lines == f.n_text || lines == f.n_text + 1);
        for (size_t i = 0; i < f.n_doubles; i++)
            FUZZ_CHECK(same(rlhf__frame_double(&f, i), rlhf__frame_double(&g, i)));
    }
    rlhf__bytes_finish(&f.data);
    rlhf__bytes_finish(&g.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1) return 0;
    const char *rest = (const char *)data + 1;
    if (data[0] & 1)
        check_frame(rest, n - 1, 1 + data[0] / 2u);
    else if (!memchr(rest, '\n', n - 1))
        check_line(rest, n - 1);
    return 0;
}
