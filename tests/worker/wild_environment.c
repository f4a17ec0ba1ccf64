// wild_environment.c: an environment that uses every function of its kind. The option `fault`
// chooses a fault. Most faults occur in each call of phase 2 that has several episodes. A replayed
// episode is alone in its call, so its replay succeeds. With `later`, each process ends in its 29th
// call. With `slow`, step() answers later.
#include "support/plugin.h"

#include <rlhf/environment.h>
#include <rlhf/service.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum fault { NONE, CRASH, EXIT, HANG, REFUSE, LATER, ROLE, PAST, THREAD, SLOW };
static const char *const faults[] = {"none", "crash", "exit",   "hang", "refuse", "later",
                                     "role", "past",  "thread", "slow", NULL};

struct config {
    int32_t fault, reserved;
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    int64_t open, calls;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = config;
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct self *s = self;
    if (!s) return;
    char line[64];
    snprintf(line, sizeof line, "wild: %lld states are open", (long long)s->open);
    s->host->log(s->host, RLHF_LOG_INFO, line);
    s->host->free(s->host, s);
}

static const rlhf_opt opts[] = {
    RLHF_OPT_ENUM(struct config, fault, NONE, faults, "what goes wrong"),
};

struct state {
    int64_t sum, len, polls; // len: of the turn; polls: until the answer comes
    char *held;
};

static rlhf_status go_wrong(struct self *s, const rlhf_episode_in *in) {
    if (s->config->fault == LATER && ++s->calls == 29) raise(SIGSEGV);
    if (in->phase != 1 || in->n < 2) return RLHF_OK;
    if (s->config->fault == CRASH) raise(SIGSEGV);
    if (s->config->fault == EXIT) _exit(3);
    if (s->config->fault == HANG) sleep(600);
    if (s->config->fault == REFUSE) return s->host->fail(s->host, RLHF_E_IO, "no luck today");
    return RLHF_OK;
}

static const char *tools(void *self) {
    (void)self;
    return "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]";
}

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    struct self *s = self;
    RLHF_TRY(go_wrong(s, in));
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *e = in->state[i];
        e->sum = (int64_t)(in->seed[i] % 7) + (int64_t)in->meta[i].len + (int64_t)in->text[i].len;
        e->held = malloc(8);
        s->open++;
        RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_USER, "%d?", (int)e->sum));
    }
    return RLHF_OK;
}

// Reports a metric of episode 0 from a thread.
static void *report(void *arg) {
    const rlhf_episode_out *out = arg;
    out->metric(out, 0, "from_a_thread", 1, 1, RLHF_COMBINE_MEAN);
    return NULL;
}

static void report_on_thread(const rlhf_episode_out *out) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, report, (void *)(uintptr_t)out) == 0)
        pthread_join(thread, NULL);
}

// Answers the turn of episode i.
static rlhf_status answer(const struct self *s, const rlhf_episode_in *in,
                          const rlhf_episode_out *out, uint32_t i) {
    struct state *e = in->state[i];
    e->sum += e->len;
    out->reward[i] = (float)(e->sum % 4) / 3;
    out->metric(out, i, "sum", (double)e->sum, 1, RLHF_COMBINE_MEAN);
    if (in->turn[i] == 3) out->end[i] = RLHF_EPISODE_DONE;
    if (out->end[i]) out->verdict[i] = e->sum % 2 ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG;
    const int32_t role = s->config->fault == ROLE ? RLHF_ROLE_SYSTEM : RLHF_ROLE_USER;
    return rlhf_sayf(out, i, role, "%d.", (int)e->sum);
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    struct self *s = self;
    RLHF_TRY(go_wrong(s, in));
    float *reward = out->reward;
    if (s->config->fault == THREAD) report_on_thread(out);
    if (s->config->fault == PAST && in->phase == 1 && in->n > 1) reward[in->n] = 1;
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *e = in->state[i];
        e->len = (int64_t)in->text[i].len;
        e->polls = (int64_t)(in->episode[i] % 4);
        if (s->config->fault == SLOW)
            out->later[i] = 1;
        else
            RLHF_TRY(answer(s, in, out, i));
    }
    return RLHF_OK;
}

static rlhf_status answer_later(void *self, const rlhf_episode_in *in,
                                const rlhf_episode_out *out) {
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *e = in->state[i];
        if (e->polls-- > 0)
            out->later[i] = 1;
        else
            RLHF_TRY(answer(self, in, out, i));
    }
    return RLHF_OK;
}

static rlhf_status finish(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    RLHF_TRY(go_wrong(self, in));
    for (uint32_t i = 0; i < in->n; i++)
        out->reward[i] = in->end[i] == RLHF_EPISODE_DONE ? 0.25f : -0.25f;
    return RLHF_OK;
}

static void close_all(void *self, const rlhf_episode_close *in) {
    struct self *s = self;
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *e = in->state[i];
        s->open -= e->held != NULL;
        free(e->held);
    }
}

static rlhf_status check_row(void *self, const rlhf_row_in *in) {
    const struct self *s = self;
    const rlhf_row_service *rows = s->host->service(s->host, RLHF_SVC_ROW);
    if (!rows || !in->meta.len) return RLHF_OK;
    return strstr(in->meta.ptr, "\"bad\"") ? s->host->fail(s->host, RLHF_E_INVALID, "a bad row")
                                           : RLHF_OK;
}

static const rlhf_environment_ops ops = {.size = sizeof ops,
                                         .flags = RLHF_ENVIRONMENT_PAYS,
                                         .state_size = sizeof(struct state),
                                         .tools = tools,
                                         .reset = reset,
                                         .step = step,
                                         .poll = answer_later,
                                         .finish = finish,
                                         .close = close_all,
                                         .check_row = check_row};

TEST_PLUGIN(RLHF_KIND_ENVIRONMENT, "wild_environment", .summary = "goes wrong on request",
            TEST_OPTIONS(opts), TEST_INSTANCES)
