// stray.c: a reward and an algorithm that misbehave once. The environment variable
// STRAY="<function>:<phase>:<how>" says where and how, for example "score:3:fail". Both have a
// state that affects their next results, so that a checkpoint from the wrong moment leads to
// different weights.
//
// If STRAY_OUTER is set, the algorithm moves the reference and trains the reward model before
// phase_end() misbehaves. If STRAY_VALUE is set, it also trains values.
#include <rlhf/algo.h>
#include <rlhf/draft/iteration.h>
#include <rlhf/plugin.h>
#include <rlhf/reward.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct self {
    const rlhf_host *host;
    uint64_t calls;
    int64_t phase; // calls is the state
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    (void)config;
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return RLHF_E_NOMEM;
    s->host = host;
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct self *s = self;
    if (s) s->host->free(s->host, s);
}

static rlhf_status save(void *self, const rlhf_ostream *out) {
    struct self *s = self;
    return out->write(out, &s->calls, sizeof s->calls);
}

static rlhf_status load(void *self, const rlhf_istream *in, uint32_t version) {
    struct self *s = self;
    (void)version;
    return in->read(in, &s->calls, sizeof s->calls);
}

static int deep(volatile char *p, int n) {
    volatile char more[4096];
    more[0] = p[0];
    return n > 0 ? deep(more, n + 1) + more[0] : 0;
}

static void *crash(void *arg) {
    (void)arg;
    volatile int *p = mmap(NULL, sizeof *p, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                           0); // must not be accessed
    *p = 1;
    return NULL;
}

// Phases are counted from 1, as in messages.
static rlhf_status stray(const struct self *s, const char *function) {
    const char *plan = getenv("STRAY");
    char here[64];
    snprintf(here, sizeof here, "%s:%lld:", function, (long long)s->phase + 1);
    if (!plan || strncmp(plan, here, strlen(here)) != 0) return RLHF_OK;
    const char *how = plan + strlen(here);
    if (strcmp(how, "fail") == 0) return s->host->fail(s->host, RLHF_E_INVALID, "no way on");
    if (strcmp(how, "cancelled") == 0) return RLHF_E_CANCELLED;
    if (strcmp(how, "stop") == 0) { // Ctrl-C during its work, which the function notices
        raise(SIGINT);
        return s->host->cancelled(s->host) ? RLHF_E_CANCELLED : RLHF_OK;
    }
    if (strcmp(how, "exit") == 0) exit(0);
    if (strcmp(how, "thread_exit") == 0) pthread_exit(NULL);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "crash") == 0) crash(NULL);
    if (strcmp(how, "deep") == 0) return deep((volatile char *)here, 1) ? RLHF_OK : RLHF_E_INTERNAL;
    if (strcmp(how, "raise") == 0) raise(SIGFPE);
    if (strcmp(how, "fork") == 0) fork();
    if (strcmp(how, "thread") == 0) {
        pthread_t t;
        if (pthread_create(&t, NULL, crash, NULL) == 0) pthread_join(t, NULL);
    }
    return RLHF_OK;
}

// ---- the reward: longer is better, by a measure that changes with every call ----

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    s->phase = in->phase;
    s->calls++;
    for (uint32_t i = 0; i < in->n; i++) {
        int32_t last = in->ids[in->offset[i + 1] - 1];
        out->seq[i] = (float)((uint64_t)last * (s->calls + 3) % 7);
    }
    return stray(s, "score");
}

static const rlhf_reward_ops reward_ops = {.size = sizeof reward_ops, .score = score};

// ---- the algorithm: REINFORCE against the batch mean, two epochs of two minibatches ----

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    (void)self;
    (void)info;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    if (getenv("STRAY_VALUE")) out->heads |= RLHF_HEAD_VALUE;
    out->epochs = out->minibatches = 2;
    out->group_size = getenv("STRAY_OUTER") ? 2 : 1;
    if (getenv("STRAY_OUTER")) out->flags = RLHF_PLAN_REFERENCE;
    return RLHF_OK;
}

static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct self *s = self;
    float mean = 0;
    s->phase = in->phase;
    s->calls++;
    for (uint32_t i = 0; i < in->n; i++)
        mean += in->score[i] / (float)in->n;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t k = in->offset[i] + in->prompt_len[i]; k < in->offset[i + 1]; k++)
            out->advantage[k] = (in->score[i] - mean) * (1 + (float)(s->calls % 5));
    return stray(s, "advantages");
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct self *s = self;
    for (uint32_t k = 0; k < in->total; k++) {
        out->d_heads->logp[k] = -in->advantage[k] / (float)in->batch_tokens;
        out->loss -= (double)in->advantage[k] * (double)in->heads->logp[k];
        if (in->heads->value)
            out->d_heads->value[k] = (in->heads->value[k] - 1) / (float)in->batch_tokens;
    }
    return stray(s, in->epoch ? "late_loss" : in->minibatch ? "second_loss" : "loss");
}

static rlhf_status minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *out) {
    struct self *s = self;
    (void)step;
    (void)out;
    s->calls += 2;
    return stray(s, "minibatch_end");
}

static rlhf_status outer_loop(const struct self *s) {
    const rlhf_iteration_service *it = s->host->service(s->host, RLHF_SVC_ITERATION);
    rlhf_reward_update u = {.size = sizeof u,
                            .epochs = 1,
                            .batch_pairs = 1,
                            .lr = 0.01,
                            .replay_share = 0.3,
                            .refit = 1};
    rlhf_reward_update_report report = {.size = sizeof report};
    uint32_t added;
    RLHF_TRY(it->reference_sync(s->host));
    RLHF_TRY(it->collect_pairs(s->host, &added));
    return it->reward_update(s->host, &u, &report);
}

static const void *extension(void *self, const char *id) {
    static const rlhf_iteration outer = {
        .size = sizeof outer, .reward_model = 1, .moves_reference = 1};
    (void)self;
    return getenv("STRAY_OUTER") && strcmp(id, RLHF_EXT_ITERATION) == 0 ? &outer : NULL;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    (void)info;
    if (getenv("STRAY_OUTER")) RLHF_TRY(outer_loop(self));
    return stray(self, "phase_end");
}

static const rlhf_algo_ops algo_ops = {
    .size = sizeof algo_ops,
    .plan = plan,
    .advantages = advantages,
    .loss = loss,
    .minibatch_end = minibatch_end,
    .phase_end = phase_end,
};

static const rlhf_plugin reward = {
    .size = sizeof reward,
    .kind = RLHF_KIND_REWARD,
    .state_version = 1,
    .id = "org.rlhf-host.test.stray_reward",
    .version = "1",
    .summary = "leaves the path on purpose",
    .create = create,
    .destroy = destroy,
    .save = save,
    .load = load,
    .ops = &reward_ops,
};

static const rlhf_plugin algo = {
    .size = sizeof algo,
    .kind = RLHF_KIND_ALGO,
    .state_version = 1,
    .id = "org.rlhf-host.test.stray_algo",
    .version = "1",
    .summary = "leaves the path on purpose",
    .create = create,
    .destroy = destroy,
    .save = save,
    .load = load,
    .ops = &algo_ops,
    .extension = extension,
};

RLHF_EXPORT const rlhf_bundle *rlhf_plugin_v1(void) {
    static const rlhf_plugin *const list[] = {&reward, &algo};
    static const rlhf_bundle bundle = {sizeof(rlhf_bundle), RLHF_ABI_MAJOR, RLHF_ABI_MINOR, 2, list,
                                       RLHF_SDK_VERSION};
    return &bundle;
}
