// child_log.h: the report of a child process that tests a plugin. It is in memory shared with the
// parent, so that findings before a crash are not lost.
#ifndef RLHF_TOOLS_CHECK_CHILD_LOG_H
#define RLHF_TOOLS_CHECK_CHILD_LOG_H

#include "base/error.h"

// Rules, in the order of rules.def.
enum rlhf__check_rule {
#define RULE(name, id, header, words) RLHF__CHECK_##name,
#include "check/rules.def"
#undef RULE
    RLHF__CHECK_RULES
};

// A rule's id, and the header line that states it. [any]
struct rlhf__check_source {
    const char *id, *header, *words;
    int32_t line;
};
struct rlhf__check_source rlhf__check_source(int32_t rule);

enum { RLHF__CHILD_LOG_FOUND = 32, RLHF__CHILD_LOG_FACTS = 16, RLHF__CHILD_LOG_HUNG = 8 };

struct rlhf__child_log_found {
    int32_t rule;
    char saw[504];
};

struct rlhf__child_log {
    int32_t step; // of the case; after a crash, another child continues with the next step
    int32_t done; // 1: the case is complete
    uint32_t n_found, n_facts;
    int32_t fault_rule; // set by the handler of a fault in guarded memory
    uint32_t refused;   // bits of enum rlhf__row_texts: rows whose refusal was reported
    char fault[248];
    char doing[256]; // "score() of 3 rows"
    // `inside` is the plugin's function that is running, or "". `hung` lists functions that did not
    // return, or that waited for something that never comes. The child does not call them again
    // until its log is cleared for another plugin. `left` is 1 if the child exited to avoid such a
    // call.
    char inside[32], hung[RLHF__CHILD_LOG_HUNG][32];
    int32_t left;
    struct rlhf__child_log_found found[RLHF__CHILD_LOG_FOUND];
    char fact[RLHF__CHILD_LOG_FACTS][512];
};

// Memory shared with a child; NULL if out of memory. Free with rlhf__child_log_close. [main]
struct rlhf__child_log *rlhf__child_log_open(void);
void rlhf__child_log_close(struct rlhf__child_log *);

// Report a violation of a rule. Drops duplicates, and keeps only three reports for each rule. [any]
__attribute__((format(printf, 3, 4))) void
rlhf__child_log_found(struct rlhf__child_log *, int32_t rule, const char *fmt, ...);
// Report a fact worth knowing. [main]
__attribute__((format(printf, 2, 3))) void rlhf__child_log_fact(struct rlhf__child_log *,
                                                                const char *fmt, ...);
// Record that `function`, a function of the plugin, is about to run. If `function` is known to
// hang, the child exits instead of calling it. With function = NULL, record that the running
// function has returned. [any]
void rlhf__child_log_inside(struct rlhf__child_log *, const char *function);
// Record that the plugin's running function hangs: it does not return, or it waits. Until the log
// is cleared, the child does not call it again. Returns 1 if a function was running. [any]
int rlhf__child_log_hangs(struct rlhf__child_log *);

// Describe the next action. [main]
__attribute__((format(printf, 2, 3))) void rlhf__child_log_doing(struct rlhf__child_log *,
                                                                 const char *fmt, ...);

#endif
