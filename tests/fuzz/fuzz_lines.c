// fuzz_lines.c: lines of a program that plays an environment. The first byte chooses between the
// program's first line and an answer to reset, step or finish, and the number of tool calls in the
// turn. A refusal has a reason. An accepted answer writes only its own entry, says only what is
// allowed, and is put the same way twice. The tools of an accepted first line are accepted again.
#include "fuzz.h"

#include "lines_hello.h"
#include "lines_reply.h"

#include <rlhf/reward.h>

#include <math.h>
#include <string.h>

enum { ENTRIES = 3, OWN = 1 };

struct output {
    rlhf_episode_out api; // first member: say() and metric() cast it back
    float reward[ENTRIES];
    uint8_t end[ENTRIES], verdict[ENTRIES], failed[ENTRIES], later[ENTRIES];
    uint32_t said, metrics;
    uint64_t hash; // of what was said and measured
    enum rlhf__asked what;
};

static void mix(struct output *o, const void *data, size_t n) {
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        o->hash = (o->hash ^ at[i]) * 0x100000001b3u;
}

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, const rlhf_message *m) {
    struct output *o = (struct output *)(uintptr_t)out;
    FUZZ_CHECK(i == OWN && o->what != RLHF__ASKED_FINISH && m->text.ptr);
    FUZZ_CHECK(m->role == RLHF_ROLE_SYSTEM || m->role == RLHF_ROLE_USER ||
               m->role == RLHF_ROLE_TOOL);
    o->said++;
    mix(o, &m->role, sizeof m->role);
    mix(o, m->text.ptr, (size_t)m->text.len);
    return o->said > 32 ? RLHF_E_INVALID : RLHF_OK;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value,
                   double weight, int32_t combine) {
    struct output *o = (struct output *)(uintptr_t)out;
    FUZZ_CHECK(i == OWN && name && isfinite(value) && weight == 1 && combine == RLHF_COMBINE_MEAN);
    o->metrics++;
    mix(o, name, strlen(name));
    mix(o, &value, sizeof value);
}

static void output_init(struct output *o, enum rlhf__asked what) {
    memset(o, 0, sizeof *o);
    o->what = what;
    o->api = (rlhf_episode_out){.size = sizeof o->api,
                                .reward = o->reward,
                                .end = o->end,
                                .verdict = o->verdict,
                                .failed = o->failed,
                                .later = o->later,
                                .say = say,
                                .metric = metric};
}

static void check_output(const struct output *o) {
    for (int i = 0; i < ENTRIES; i++)
        FUZZ_CHECK(!o->later[i] && (i == OWN || (o->reward[i] == 0 && !o->end[i] &&
                                                 !o->verdict[i] && !o->failed[i])));
    FUZZ_CHECK(o->end[OWN] == RLHF_EPISODE_OPEN || o->end[OWN] == RLHF_EPISODE_DONE ||
               o->end[OWN] == RLHF_EPISODE_TRUNCATED);
    FUZZ_CHECK(o->what != RLHF__ASKED_FINISH || o->end[OWN] == RLHF_EPISODE_OPEN);
    FUZZ_CHECK(o->verdict[OWN] <= RLHF_VERDICT_WRONG && o->metrics <= RLHF__REPLY_METRICS);
    FUZZ_CHECK(!o->failed[OWN] || (o->reward[OWN] == 0 && !o->end[OWN] && !o->verdict[OWN] &&
                                   !o->said && !o->metrics));
}

static void check_reply(const char *line, size_t n, enum rlhf__asked what, int32_t calls) {
    struct rlhf__line_reply r = {0};
    struct output first, again;
    char why[RLHF__REPLY_WHY] = "";
    const int good = rlhf__line_reply_read(line, n, what, &r, why);
    FUZZ_CHECK(good || (*why && !r.line));
    FUZZ_CHECK(strlen(why) < sizeof why);
    if (!good) return;
    output_init(&first, what);
    output_init(&again, what);
    const rlhf_status st = rlhf__line_reply_put(&r, &first.api, OWN, what, calls, why);
    FUZZ_CHECK(st == RLHF_OK || (st == RLHF_E_INVALID && (*why || first.said > 32)));
    FUZZ_CHECK(rlhf__line_reply_put(&r, &again.api, OWN, what, calls, why) == st);
    FUZZ_CHECK(first.hash == again.hash && first.said == again.said);
    FUZZ_CHECK(memcmp(first.reward, again.reward, sizeof first.reward) == 0);
    FUZZ_CHECK(first.end[OWN] == again.end[OWN] && first.verdict[OWN] == again.verdict[OWN]);
    check_output(&first);
    rlhf__line_reply_finish(&r);
}

static void check_hello(const char *line, size_t n) {
    struct rlhf__hello h = {0}, again = {0};
    char why[RLHF__HELLO_WHY] = "", *text;
    const int good = rlhf__hello_read(line, n, &h, why);
    FUZZ_CHECK(good || *why);
    FUZZ_CHECK(strlen(why) < sizeof why);
    if (good && h.tools) {
        const size_t cap = strlen(h.tools) + 32;
        text = malloc(cap);
        FUZZ_CHECK(text);
        const int len = snprintf(text, cap, "{\"tools\":%s}", h.tools);
        FUZZ_CHECK(rlhf__hello_read(text, (size_t)len, &again, why) && again.tools);
        FUZZ_CHECK(strcmp(h.tools, again.tools) == 0);
        free(text);
    }
    rlhf__hello_finish(&h);
    rlhf__hello_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 1 || memchr(data + 1, '\n', n - 1)) return 0;
    const char *line = (const char *)data + 1;
    if (data[0] % 4 == 0)
        check_hello(line, n - 1);
    else
        check_reply(line, n - 1, (enum rlhf__asked)(data[0] % 4 - 1), data[0] / 4 % 3);
    return 0;
}
