// attack.h: runs the hostile probes of probe.h in a run, against a bait, and counts the attacks
// that succeeded.
#ifndef RLHF_TESTS_WORKER_ATTACK_H
#define RLHF_TESTS_WORKER_ATTACK_H

#include "e2e/e2e.h"
#include "worker/probe.h"

enum { ATTACK_SKIPPED = 77, ATTACK_FEWEST = 100, ATTACK_SOCKETS = 4, ATTACK_KERNELS = 4 };

// Targets of the probes: files, sockets, IPC objects and a process, the victim.
struct attacked {
    struct bait bait;
    int socket[ATTACK_SOCKETS], hold; // hold: the victim lives as long as this is open
};

// Makes the bait. If `as_nobody` is 1, the bait belongs to the user `nobody`.
void attack_lay(struct e2e *t, struct attacked *a, int as_nobody);
void attack_take_up(struct attacked *a);

// The flags of a run, without its reward.
#define ATTACK_RUN                                                                                 \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--set batch.size=8 --set sampling.max_new_tokens=2 --set run.phases=1 --set run.dir=r "       \
    "--threads 1 "

// The attacker: a plugin in a worker, or an isolated program.
#define ATTACK_PLUGIN "$RLHF_TEST_PLUGINS/probe_reward.so:dir=$PWD/bait"
#define ATTACK_PROGRAM                                                                             \
    "exec.so:command='$RLHF_TEST_PLUGINS/probe_program' all $PWD/bait,isolate=true"

// Options of walled.c: the user, and the kernel that it simulates. [ATTACK_KERNELS]
extern const char *const attack_kernels[];
// Returns 1 if this user can run with these options.
int attack_can_be(const char *as);

// Run the attacker in a terminal. The bait contains the name of the terminal. `as` contains options
// for walled.c. Returns the exit status.
int attack_by(struct e2e *t, const struct attacked *a, const char *as, const char *reward,
              const char *options);

struct attack_result {
    int n, open;
    char through[4096]; // restrictions in force that did not refuse
};

// Count the results of the probes. `line` lists the protections in force. If `line` is NULL, the
// probes need not be refused.
void attack_count(const struct e2e *t, const char *line, struct attack_result *r);

// Attack, and fail the test unless each protection in force refuses its probes and the bait stays
// unchanged.
void attack_refused(struct e2e *t, const char *as, const char *reward, const char *options);

// Of two rewards, one leaves a child running. The other, a program, delays the run until all such
// children have stopped (if `want` is "T") or ended (if `want` is ""). Fails the test unless the
// output has the text `says`.
void attack_at_rest(struct e2e *t, const char *as, const char *reward, const char *want,
                    const char *says);

#endif
