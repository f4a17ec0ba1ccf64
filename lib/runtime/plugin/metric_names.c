// metric_names.c: see metric_names.h.
#include "plugin/metric_names.h"

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

int rlhf__metric_name(const char *owner, const char *name, char out[RLHF__METRIC_NAME]) {
    const int n = snprintf(out, RLHF__METRIC_NAME, "%s%s%s", owner, *owner ? "/" : "", name);
    if (n < 0 || n >= RLHF__METRIC_NAME) return -1;
    if (!*owner) return !is_hosts(name);
    static const char *const own[] = {"mean", "std", "time", "failures", "retries"};
    // names that a reward or judge may not use
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(name, own[i]) == 0) return 0;
    return 1;
}
