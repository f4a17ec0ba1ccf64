// metric_names.c: see metric_names.h.
#include "plugin/metric_names.h"

#include "option/options.h"

#include <rlhf/host.h>

#include <stdio.h>
#include <string.h>

const char *const *rlhf__metrics_of_host(void) {
    static const char *const hosts[] = {"phase",
                                        "episode",
                                        "epoch",
                                        "lr",
                                        "objective/scores",
                                        "objective/scores_error",
                                        "objective/scores_noise",
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
                                        "perf/",
                                        NULL};
    return hosts;
}

const char *const *rlhf__metrics_of_owner(void) {
    static const char *const own[] = {"mean", "std", "time", "failures", "retries", NULL};
    return own;
}

// Returns 1 if the list has the name or, as a prefix, its beginning.
static int is_taken(const char *const *list, const char *name) {
    for (; *list; list++) {
        size_t n = strlen(*list);
        if ((*list)[n - 1] != '/') n++; // also compare the terminating NUL
        if (strncmp(name, *list, n) == 0) return 1;
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
        return "its name may contain only letters from a to z and A to Z, digits, '_', '-', '.' "
               "and '/'";
    if (n > RLHF_METRIC_NAME_MAX)
        return "its name may have at most " NUMBER(RLHF_METRIC_NAME_MAX) " bytes";
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += part > name;
        const size_t length = strcspn(part, "/");
        if (length == 0) return "a part of its name before or after a '/' is empty";
        if (strspn(part, ".") == length && length <= 2)
            return "a part of its name is \".\" or \"..\"";
    }
    return NULL;
}

const char *rlhf__metric_name(const char *owner, const char *name, char out[RLHF__METRIC_NAME]) {
    const char *fault = rlhf__metric_name_fault(name);
    if (fault) return fault;
    if (rlhf__is_hosts(name)) return "a name that begins with \"host_\" or \"host/\" is the host's";
    const int n = snprintf(out, RLHF__METRIC_NAME, "%s%s%s", owner, *owner ? "/" : "", name);
    if (n < 0 || n >= RLHF__METRIC_NAME) return "its name is too long after its owner's";
    const int taken = is_taken(*owner ? rlhf__metrics_of_owner() : rlhf__metrics_of_host(), name);
    return taken ? "it is the host's own" : NULL;
}

const char *rlhf__metric_not_in(const char *function) {
    static const char *const others[] = {
        "create()",     "destroy()", "plan()", "check_row()", "save()",  "load()",    "tools()",
        "why_unused()", "close()",   "open()", "info()",      "param()", "describe()"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(function, others[i]) == 0)
            return "it was not reported in a function of a phase, such as score(), loss() or "
                   "phase_end()";
    return NULL;
}

int rlhf__metric_first(struct rlhf__metrics_named *m, const char *name) {
    const uint64_t hash = rlhf_rng_stream(name ? name : "") | 1;
    for (size_t i = 0; i < sizeof m->hash / sizeof *m->hash; i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&m->hash[i], &there, hash)) return 1;
        if (there == hash) return 0;
    }
    return 0;
}

const char *rlhf__metric_misplaced(const char *where, char out[RLHF__METRIC_WHY]) {
    snprintf(out, RLHF__METRIC_WHY,
             "it was reported %s; metric() may be called only on the thread of a running call",
             where);
    return out;
}
