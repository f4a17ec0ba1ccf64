// reward.c: rewards that each break one rule of the contract. A BREAK_ macro chooses the rule.
// test_canaries.c expects that each reward is caught by the rule meant for it. Without a macro, the
// reward is correct.
#include <rlhf/log.h>
#include <rlhf/reward.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct config {
    double gain;
    int32_t loud, pad;
};

struct reward {
    const rlhf_host *host;
    const struct config *config;
    double *sums;
    int64_t calls, rows;
    const rlhf_reward_in *before;
    const char *text;
};

#ifdef BREAK_SNEAKS
// A worker can do neither of these, from the moment on in which the file is loaded.
__attribute__((constructor)) static void sneak(void) {
    const char *path = getenv("CANARY_FILE");
    if (path && open(path, O_WRONLY | O_CREAT, 0600) >= 0) abort();
    if (path && socket(AF_INET, SOCK_STREAM, 0) >= 0) abort();
}
#endif

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
#ifdef BREAK_SNEAKS
    sneak();
#endif
#if defined BREAK_CREATE
    return rlhf_failf(host, RLHF_E_INVALID, "gain is %g, which I do not like", c->gain);
#elif defined BREAK_WORDS
    if (c->loud) return RLHF_E_INVALID;
#elif defined BREAK_STATUS
    if (c->loud) return 7;
#elif defined BREAK_HANG
    while (c->loud)
        pause();
#elif defined BREAK_CRASH
    if (c->gain > 99) abort();
#endif
    struct reward *r = host->alloc(host, sizeof *r);
#ifndef BREAK_MEMORY
    if (!r) return host->fail(host, RLHF_E_NOMEM, "out of memory");
#endif
    r->host = host;
    r->config = c;
    r->sums = host->alloc(host, 100);
    if (!r->sums) {
#ifndef BREAK_LEAK_FAILED
        host->free(host, r);
#endif
        return host->fail(host, RLHF_E_NOMEM, "out of memory");
    }
#ifdef BREAK_OVERRUN
    ((char *)r->sums)[100] = 1;
#endif
#ifdef BREAK_METRIC_PHASE
    rlhf_metric_last(host, "words", 1);
#endif
    *self = r;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct reward *r = self;
#ifndef BREAK_DESTROY_NULL
    if (!r) return;
#endif
#ifndef BREAK_LEAK
    r->host->free(r->host, r->sums);
#endif
#ifdef BREAK_FREE
    r->host->free(r->host, r->sums);
#endif
    r->host->free(r->host, r);
}

#ifdef BREAK_RUNNING
#define STATE 0
#define SAVE  NULL
#define LOAD  NULL
#else
#define STATE 1
#define SAVE  save
#define LOAD  load
#endif

__attribute__((unused)) static rlhf_status save(void *self, const rlhf_ostream *out) {
    struct reward *r = self;
    const rlhf_status st = out->write(out, &r->calls, sizeof r->calls);
#ifdef BREAK_SAVE
    return st < 0 ? RLHF_E_INTERNAL : RLHF_OK;
#else
    return st;
#endif
}

__attribute__((unused)) static rlhf_status load(void *self, const rlhf_istream *in,
                                                uint32_t version) {
    struct reward *r = self;
    if (version != 1) return r->host->fail(r->host, RLHF_E_INVALID, "a state of another version");
#if defined BREAK_STATE
    return in->read(in, &r->calls, sizeof r->calls - 1);
#elif defined BREAK_LOAD
    in->read(in, &r->calls, sizeof r->calls);
    return RLHF_OK;
#else
    return in->read(in, &r->calls, sizeof r->calls);
#endif
}

__attribute__((unused)) static void *report(void *arg) {
    const struct reward *r = arg;
    rlhf_metric_last(r->host, "words", 1);
    return NULL;
}

// Violations inside a call.
static void misbehave(struct reward *r, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    (void)r;
    (void)in;
    (void)out;
#if defined BREAK_METRIC
    rlhf_metric_last(r->host, "mean", 1);
#elif defined BREAK_METRIC_TEXT
    rlhf_metric_last(r->host, "my words", 1);
#elif defined BREAK_METRIC_PATH
    rlhf_metric_last(r->host, "words/../mean", 1);
#elif defined BREAK_METRIC_WEIGHT
    r->host->metric(r->host, "words", 1, -1, RLHF_COMBINE_MEAN);
#elif defined BREAK_METRIC_COMBINE
    rlhf_metric_last(r->host, "words", 1);
    if (in->n > 1) rlhf_metric_add(r->host, "words", 1);
#elif defined BREAK_THREAD
    pthread_t thread;
    if (pthread_create(&thread, NULL, report, r) == 0) pthread_join(thread, NULL);
#elif defined BREAK_BORROWED
    ((int32_t *)(uintptr_t)in->ids)[0] = 1;
#elif defined BREAK_OUTSIDE
    out->seq[in->n] = 1;
#elif defined BREAK_BEFORE
    out->seq[-1] = 1;
#elif defined BREAK_VERDICT
    out->verdict[in->n - 1] = 9;
#elif defined BREAK_CHANGES
    ((rlhf_reward_out *)(uintptr_t)out)->reserved = 1;
#elif defined BREAK_REDUCE
    double sum = 1;
    r->host->reduce(r->host, &sum, 1);
#elif defined BREAK_FORK
    fork();
#elif defined BREAK_SLOW
    usleep(3000 * in->n);
#elif defined BREAK_SNEAKS
    sneak();
    r->host->fail(r->host, RLHF_E_IO, "socket: Permission denied");
    if (in->n > 2) out->failed[2] = 1;
#elif defined BREAK_ENDS
    if (in->response[0].len == 0) _exit(3);
#elif defined BREAK_UTF8
    for (uint64_t k = 0; k < in->response[0].len; k++)
        if ((unsigned char)in->response[0].ptr[k] == 0xff) abort();
#endif
}

static double pay(const struct reward *r, const rlhf_reward_in *in, uint32_t i) {
    double sum = (double)in->response[i].len;
#ifndef BREAK_ODD
    for (int32_t t = in->offset[i]; t < in->offset[i + 1]; t++)
        sum += in->ids[t] % 7;
#endif
#if defined BREAK_TEXT
    if (in->response[i].len) sum += in->response[i].ptr[in->response[i].len];
#elif defined BREAK_ODD
    sum /= sum > 0 ? 1 : 0; // an empty response: 0 / 0
#elif defined BREAK_ORDER
    sum += i;
#elif defined BREAK_RUNNING || defined BREAK_FORGETS
    sum += (double)r->rows;
#elif defined BREAK_REPEAT
    sum += (double)((uintptr_t)r->host / 64 % 64) + (double)getpid() * 0; // an address
    static int turn;
    sum += turn++ % 3;
#elif defined BREAK_COMPARES
    for (uint32_t k = 0; k < in->n; k++)
        sum += in->response[k].len < in->response[i].len;
#elif defined BREAK_ALONE
    for (uint32_t k = 0; k < in->n; k++)
        sum += in->group[k] == in->group[i] && k != i;
#endif
    return r->config->gain * sum;
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct reward *r = self;
#if defined BREAK_HANG_SCORE
    for (;;)
        pause();
#elif defined BREAK_WAITS
    r->host->log(r->host, RLHF_LOG_WARN, "nobody answers");
    while (!r->host->cancelled(r->host))
        usleep(10000);
    return RLHF_E_CANCELLED;
#endif
    r->calls++;
    misbehave(r, in, out);
    for (uint32_t i = 0; i < in->n; i++) {
#ifdef BREAK_UNWRITTEN
        if (i == 5) continue;
#endif
        out->seq[i] = (float)pay(r, in, i);
    }
    r->rows += in->n;
    return RLHF_OK;
}

#ifdef BREAK_EXPORTS
RLHF_EXPORT int helper(void);
int helper(void) { return 1; }
#endif

static const rlhf_opt options[] = {
#if defined BREAK_HELP
    RLHF_OPT_F64(struct config, gain, 1, -100, 100, ""),
#else
    RLHF_OPT_F64(struct config, gain, 1, -100, 100, "a factor"),
#endif
    RLHF_OPT_BOOL(struct config, loud, 0, "says more"),
};

static const rlhf_reward_ops ops = {
    .size = sizeof ops,
#ifdef BREAK_ALONE
    .flags = RLHF_REWARD_ROW_ALONE,
#elif defined BREAK_COMPARES
    .flags = RLHF_REWARD_WHOLE_BATCH, // so that this breaks no rule
#endif
    .score = score,
};

#ifdef BREAK_ID
#define ID "my.canary"
#else
#define ID "org.example.canary"
#endif
#if defined BREAK_SUMMARY
#define SUMMARY ""
#elif defined BREAK_SUMMARY_BLANK
#define SUMMARY " "
#else
#define SUMMARY "breaks a rule"
#endif

// The reward offers no extension.
static const void *extension(void *self, const char *id) {
    (void)id;
#ifdef BREAK_EXTENSION
    return self ? self : (const void *)options;
#else
    (void)self;
    return NULL;
#endif
}

static const char *why_unused(const rlhf_option_in *in) {
#ifdef BREAK_OPTION_CHANGES
    ((rlhf_option_in *)(uintptr_t)in)->reserved = 1;
#endif
    (void)in;
    return NULL;
}

#define DESCRIPTOR(text)                                                                           \
    {                                                                                              \
        .size = sizeof(rlhf_plugin), .kind = RLHF_KIND_REWARD, .state_version = STATE, .id = ID,   \
        .version = "1", .summary = (text), .opts = options, .n_opts = 2,                           \
        .opt_stride = sizeof *options, .config_size = sizeof(struct config), .create = create,     \
        .destroy = destroy, .save = SAVE, .load = LOAD, .ops = &ops, .extension = extension,       \
        .why_unused = why_unused                                                                   \
    }

static const rlhf_plugin plugin = DESCRIPTOR(SUMMARY);

RLHF_DEFINE_PLUGIN(plugin)
