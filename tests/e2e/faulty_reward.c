// faulty_reward.c: a reward that depends only on the response's text and on the number of calls
// that it has answered. This number is its state. A seed chooses rows and phases, and the reward
// fails at each of them a given number of times. Built with OUTSIDE, it is stateless and reports
// the thread of each call. It also reads the limits of a call, like rewards that work outside the
// process.
#include "support/plugin.h"

#include <rlhf/reward.h>

#ifdef OUTSIDE
#include <rlhf/service.h>

#include <pthread.h>
#endif

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum how { NOTHING, STATUS, ROWS, NOT_A_NUMBER, NO_MEMORY, CANCELLED };

struct config {
    int64_t every, phase, times, seed, pause;
    int32_t how, calls, tokens, reserved;
};

static const char *const ways[] = {"none", "status", "rows", "nan", "nomem", "cancelled", NULL};

static const rlhf_opt opts[] = {
    RLHF_OPT_ENUM(struct config, how, 0, ways, "what goes wrong"),
    RLHF_OPT_I64(struct config, every, 4, 1, 1 << 20, "about every so many-th row is at fault"),
    RLHF_OPT_I64(struct config, phase, 0, 0, 1 << 20, "the only phase with faults, from 1; 0: all"),
    RLHF_OPT_I64(struct config, times, 1, 0, 1 << 20, "how often a row is at fault"),
    RLHF_OPT_I64(struct config, seed, 1, 0, 1 << 20, "which rows and phases"),
    RLHF_OPT_I64(struct config, pause, 0, 0, 900, "milliseconds that a row takes at least"),
    RLHF_OPT_BOOL(struct config, calls, 0, "pay by the number of the call too"),
    RLHF_OPT_BOOL(struct config, tokens, 0, "pay the first token of a response too"),
};

// A row that failed. The message identifies the row.
struct fault {
    uint64_t key;
    int64_t times;
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    uint64_t calls; // that were answered
    struct fault fault[512];
    size_t n_faults;
#ifdef OUTSIDE
    const rlhf_limits *limits;
    pthread_t home;
#endif
};

#ifdef OUTSIDE
static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = config;
    s->limits = host->service(host, RLHF_SVC_LIMITS);
    s->home = pthread_self();
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct self *s = self;
    if (s) s->host->free(s->host, s);
}

static void tell(const struct self *s) {
    rlhf_metric_last(s->host, "other_thread", !pthread_equal(s->home, pthread_self()));
    rlhf_metric_last(s->host, "timeout", s->limits->timeout_s);
    rlhf_metric_last(s->host, "memory", (double)s->limits->memory_bytes);
    rlhf_metric_last(s->host, "tries", s->limits->retries);
}
#else
TEST_INSTANCE(struct self)

static void tell(const struct self *s) { (void)s; }
#endif

// FNV-1a.
static uint64_t mix(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(1099511628211);
    return h;
}

static uint64_t key_of(const rlhf_reward_in *in, uint32_t i) {
    uint64_t h = UINT64_C(14695981039346656037);
    h = mix(h, &in->phase, sizeof in->phase);
    h = mix(h, &in->group[i], sizeof in->group[i]);
    h = mix(h, in->prompt[i].ptr, (size_t)in->prompt[i].len);
    return mix(h, in->response[i].ptr, (size_t)in->response[i].len);
}

// Returns whether row i fails this time.
static int at_fault(struct self *s, const rlhf_reward_in *in, uint32_t i) {
    const struct config *c = s->config;
    const uint64_t key = key_of(in, i), draw = mix(key, &c->seed, sizeof c->seed) >> 17;
    if (c->how == NOTHING || (c->phase > 0 && (int64_t)in->phase + 1 != c->phase)) return 0;
    if (draw % (uint64_t)c->every != 0) return 0;
    for (size_t k = 0; k < s->n_faults; k++)
        if (s->fault[k].key == key) return s->fault[k].times++ < c->times;
    if (s->n_faults == sizeof s->fault / sizeof *s->fault) return 0;
    s->fault[s->n_faults++] = (struct fault){key, 1};
    return c->times > 0;
}

static float worth(const struct self *s, const rlhf_reward_in *in, uint32_t i) {
    const uint64_t h = mix(7, in->response[i].ptr, (size_t)in->response[i].len);
    return (float)((h >> 20 & 15) + 1) / 4 + (s->config->calls ? (float)(s->calls % 5) / 8 : 0);
}

static void pay(const struct self *s, const rlhf_reward_in *in, const rlhf_reward_out *out,
                uint32_t i) {
    const int32_t first = in->offset[i] + in->prompt_len[i];
    out->seq[i] = worth(s, in, i);
    out->verdict[i] = out->seq[i] > 2 ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
    if (s->config->tokens && first < in->offset[i + 1]) out->token[first] = 0.5f;
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    uint32_t bad = 0;
    double sum = 0;
    s->calls++;
    for (uint32_t i = 0; i < in->n; i++) {
        const int fault = at_fault(s, in, i);
        const struct timespec pause = {0, s->config->pause * 1000000};
        if (s->config->pause) nanosleep(&pause, NULL);
        pay(s, in, out, i);
        sum += (double)out->seq[i];
        bad += fault != 0;
        if (fault && s->config->how == ROWS) out->failed[i] = 1;
        if (fault && s->config->how == ROWS) out->seq[i] = 1e6f; // the host ignores this score
        if (fault && s->config->how == NOT_A_NUMBER) out->seq[i] = NAN;
    }
    rlhf_metric_mean(s->host, "worth", sum / in->n, in->n);
    tell(s);
    if (!bad) return RLHF_OK;
    switch (s->config->how) {
    case STATUS:
        return s->host->fail(s->host, RLHF_E_INVALID, "the line is dead\x1b[2J");
    case ROWS:
        s->host->fail(s->host, RLHF_E_IO, "nobody answers");
        return RLHF_OK;
    case NO_MEMORY:
        return s->host->fail(s->host, RLHF_E_NOMEM, "no room here");
    case CANCELLED:
        return s->host->fail(s->host, RLHF_E_CANCELLED, "left alone");
    default:
        return RLHF_OK;
    }
}

#ifndef OUTSIDE
static rlhf_status save(void *self, const rlhf_ostream *out) {
    const struct self *s = self;
    return out->write(out, &s->calls, sizeof s->calls);
}

static rlhf_status load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct self *s = self;
    (void)state_version;
    return in->read(in, &s->calls, sizeof s->calls);
}

#endif

#ifdef OUTSIDE
#ifdef ALONE
enum { FLAGS = RLHF_REWARD_PER_TOKEN | RLHF_REWARD_ROW_ALONE | RLHF_REWARD_EXTERNAL };
#define ID "alone_reward"
#else
enum { FLAGS = RLHF_REWARD_PER_TOKEN | RLHF_REWARD_EXTERNAL };
#define ID "outside_reward"
#endif
static const rlhf_reward_ops ops = {.size = sizeof ops, .flags = FLAGS, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, ID, .summary = "fails as it is told to, outside", TEST_OPTIONS(opts),
            TEST_INSTANCES)
#else
static const rlhf_reward_ops ops = {
    .size = sizeof ops, .flags = RLHF_REWARD_PER_TOKEN, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "faulty_reward", .summary = "fails as it is told to",
            .state_version = 1, .save = save, .load = load, TEST_OPTIONS(opts), TEST_INSTANCES)
#endif
