// board.h: what a child process that tries a plugin tells the one that waits for it: memory of
// both, so that what was found before a crash is not lost with it.
#ifndef RLHF_HOST_CHECK_BOARD_H
#define RLHF_HOST_CHECK_BOARD_H

#include "base/error.h"

// Rules, in the order of rules.def.
enum rlhf__check_rule {
#define RULE(name, id, header, words) RLHF__CHECK_##name,
#include "check/rules.def"
#undef RULE
    RLHF__CHECK_RULES
};

// What a rule is called and which line of which header says it. [any]
struct rlhf__check_source {
    const char *id, *header, *words;
    int32_t line, reserved;
};
struct rlhf__check_source rlhf__check_source(int32_t rule);

enum { RLHF__BOARD_FOUND = 32, RLHF__BOARD_FACTS = 16, RLHF__BOARD_HUNG = 8 };

struct rlhf__board_found {
    int32_t rule, reserved;
    char saw[504];
};

struct rlhf__board {
    int32_t step; // of the case, which goes on with the next one in another child
    int32_t done; // 1: the case came to its end
    uint32_t n_found, n_facts;
    int32_t fault_rule; // set by the handler of a fault inside guarded memory
    int32_t reserved;
    char fault[248];
    char doing[256]; // "score() of 3 rows"
    // The plugin's function that runs, "": none; and those that did not return before, or waited
    // for what nobody starts, which are not called again (until the board is cleared for another
    // plugin). left: 1 when the child ended so as not to call one.
    char inside[32], hung[RLHF__BOARD_HUNG][32];
    int32_t left, reserved2;
    struct rlhf__board_found found[RLHF__BOARD_FOUND];
    char fact[RLHF__BOARD_FACTS][256];
};

// Memory that a child shares; NULL when there is none. Freed with free. [main]
struct rlhf__board *rlhf__board_new(void);
void rlhf__board_free(struct rlhf__board *);

// What was seen against a rule; the same is kept once, and of one rule three. [any]
__attribute__((format(printf, 3, 4))) void rlhf__board_found(struct rlhf__board *, int32_t rule,
                                                             const char *fmt, ...);
// What is worth knowing. [main]
__attribute__((format(printf, 2, 3))) void rlhf__board_fact(struct rlhf__board *, const char *fmt,
                                                            ...);
// A function of the plugin is about to run, or has returned (NULL). A child ends here in place of
// calling one that is known to hang. [any]
void rlhf__board_inside(struct rlhf__board *, const char *function);
// What is inside did not return, or waits; 1 when that is a function, which is called no more.
// [any]
int rlhf__board_hangs(struct rlhf__board *);

// What is about to be done. [main]
__attribute__((format(printf, 2, 3))) void rlhf__board_doing(struct rlhf__board *, const char *fmt,
                                                             ...);

#endif
