// probe.h: hostile probes. Each one tries a thing that a reward plugin must not be able to do. Each
// area has a table of probes in probe_files.c, probe_terminal.c, ... The plugin probe_reward.c runs
// them, and attack.c judges its reports.
#ifndef RLHF_TESTS_WORKER_PROBE_H
#define RLHF_TESTS_WORKER_PROBE_H

#include <stddef.h>
#include <sys/types.h>

// Objects that the test sets up to be attacked.
struct bait {
    const char *dir;    // absolute; has file, file2, file3, sub/, socket.stream, socket.dgram
    char file[512];     // dir/file
    char terminal[128]; // terminal of the host; "" = none
    pid_t victim; // a process of the same user, outside, with "probe-victim" in its command line
    int port;     // port of a server on the loopback interface
    int shm, msg, sem; // System V objects
};

// The descriptors that a worker has open (lib/runtime/wire/wire.h).
enum { ASK_FD = 3, CALL_FD = 4, INPUT_FD = 5, OUTPUT_FD = 6 };

struct probe {
    const char *name;
    // Makes the attack, in a separate process. If the attack was refused, returns -1 with errno.
    // Otherwise returns its result, such as a descriptor.
    long (*run)(const struct bait *b);
};

// The protections. Each area of probes tests one of them. If the host lists a protection as in
// force, the protection must refuse all probes of its area.
enum wall {
    WALL_FILES = 'F',     // no writing to files
    WALL_DEVICES = 'D',   // no terminals or other devices
    WALL_CALLS = 'C',     // a list of system calls
    WALL_PROCESSES = 'P', // a list of system calls; in a PID namespace signals are harmless
    WALL_MOUNTS = 'M',    // read-only mounts
    WALL_SIGHT = 'S',     // no sight of other processes
    WALL_IPC = 'I',       // no shared memory or queues of others
    WALL_RIGHTS = 'R',    // no capabilities
    WALL_NETWORK = 'N',   // no network
    WALL_SOCKETS = 'U',   // a list of system calls: sockets other than the network's
    WALL_MEMORY = 'G',    // rewards.memory_mib
    WALL_LIMITS = 'L'     // always
};

// Reads dir/bait, which the test wrote. Returns -1 if it is missing. [probe_try.c]
int probe_bait(const char *dir, struct bait *b);
// Tries all probes except those of probe_alone. tell() receives the outcomes as lines.
// [probe_try.c]
void probe_all(const struct bait *b, void (*tell)(void *ctx, const char *line), void *ctx);

struct area {
    char wall;
    const struct probe *probes;
    size_t n;
};

// Tables of areas, each ended by an entry with n = 0.
extern const struct area probe_files[], probe_terminal[], probe_processes[], probe_machine[],
    probe_network[], probe_memory[];

// Probes that end the worker or keep it busy. So each is tried alone (probe=NAME), in score() of
// the worker itself. For each, the test knows how the run must end. The last entry has a NULL name.
extern const struct probe probe_alone[];

// Start children named probe-burner that continue after score() has returned. These are probes of
// probe_alone. [probe_processes.c]
long probe_burns(const struct bait *b), probe_wakes(const struct bait *b);

#define AREA(wall, table)                                                                          \
    { wall, table, sizeof(table) / sizeof *(table) }

#endif
