// metric_names.c: see metric_names.h.
#include "plugin/metric_names.h"

#include <rlhf/host.h>

#include <stdio.h>
#include <string.h>

// Metrics that the host reports. A name that ends in a slash is a prefix.
static const char *const hosts[] = {"phase",
                                    "episode",
                                    "epoch",
                                    "lr",
                                    "objective/scores",
                                    "objective/entropy_per_token",
                                    "objective/verifiable_correct_rate",
                                    "val/sequence_lengths",
                                    "val/num_stop_token_ids",
                                    "reward_model/gain",
                                    "reward_model/bias",
                                    "rewards/",
                                    "judge/",
                                    "episodes/",
                                    "environment/",
                                    "tools/",
                                    "models/",
                                    "completions/",
                                    "sampling/",
                                    "eval/",
                                    "optim/",
                                    "time/",
                                    "trainer/",
                                    "rollouter/",
                                    "perf/"};

static int is_hosts(const char *name) {
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size_t n = strlen(hosts[i]);
        if (hosts[i][n - 1] != '/') n++; // also compare the terminating NUL
        if (strncmp(name, hosts[i], n) == 0) return 1;
    }
    return 0;
}

#define TEXT_OF(x) #x
#define NUMBER(x)  TEXT_OF(x)

const char *rlhf__metric_name_fault(const char *name) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    if (!name || !*name) return "it has no name";
    const size_t n = strlen(name);
    if (strspn(name, allowed) != n)
        return "its name may contain only letters from a to z, digits, '_', '-', '.' and '/'";
    if (n > RLHF_METRIC_NAME_MAX)
        return "its name may have at most " NUMBER(RLHF_METRIC_NAME_MAX) " bytes";
    return NULL;
}

const char *rlhf__metric_name(const char *owner, const char *name, char out[RLHF__METRIC_NAME]) {
    static const char hosts_own[] = "it is the host's own";
    // names that a reward or judge may not use
    static const char *const own[] = {"mean", "std", "time", "failures", "retries"};
    const char *fault = rlhf__metric_name_fault(name);
    if (fault) return fault;
    const int n = snprintf(out, RLHF__METRIC_NAME, "%s%s%s", owner, *owner ? "/" : "", name);
    if (n < 0 || n >= RLHF__METRIC_NAME) return "its name is too long after its owner's";
    if (!*owner) return is_hosts(name) ? hosts_own : NULL;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i]) == 0) return hosts_own;
    return NULL;
}

const char *rlhf__metric_misplaced(const char *where, char out[RLHF__METRIC_WHY]) {
    snprintf(out, RLHF__METRIC_WHY,
             "it was reported %s; metric() may be called only on the thread of a running call",
             where);
    return out;
}
