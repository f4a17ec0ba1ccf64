// confine.h: confines a worker as far as the kernel allows. The worker lacks root privileges and
// cannot gain privileges. It cannot write to the file system, except in one directory if the host
// allows that, or read from devices (landlock, mounts). It cannot make system calls that administer
// the machine or send signals to others (seccomp). It cannot use the network, unless the user
// allows that. Its processes, queues and shared memory are separate from those of the machine
// (namespaces). Its number of processes, memory and processor time are limited.
#ifndef RLHF_CORE_SUPERVISE_CONFINE_H
#define RLHF_CORE_SUPERVISE_CONFINE_H

#include "base/buf.h"

enum rlhf__confined {
    RLHF__CONFINED_PROCESSES = 1 << 0,  // PID namespace: outside processes are invisible
    RLHF__CONFINED_NETWORK = 1 << 1,    // a private network namespace
    RLHF__CONFINED_PRIVILEGES = 1 << 2, // no new privileges
    RLHF__CONFINED_FILES = 1 << 3,      // landlock: no writes to files
    RLHF__CONFINED_CALLS = 1 << 4,      // seccomp
    RLHF__CONFINED_MEMORY = 1 << 5,     // an address space of limited size
    RLHF__CONFINED_OPEN = 1 << 6,       // network access was allowed
    RLHF__CONFINED_USERS = 1 << 7,      // a user namespace, which counts its processes separately
    RLHF__CONFINED_COUNT = 1 << 8,      // at most RLHF__MOST_PROCESSES processes
    RLHF__CONFINED_TIME = 1 << 9,       // limited processor time
    RLHF__CONFINED_IPC = 1 << 10,       // an IPC namespace
    RLHF__CONFINED_CAPABILITIES = 1 << 11, // no capabilities, and no way to gain any
    RLHF__CONFINED_READ_ONLY = 1 << 12,    // all mounts are read-only
    RLHF__CONFINED_DEVICES = 1 << 13,      // no access to terminals or disks
    RLHF__CONFINED_SIGHT = 1 << 14,        // /proc does not show outside processes
    RLHF__CONFINED_GROUP = 1 << 15,        // a control group limits the total memory
    RLHF__CONFINED_GROUP_COUNT = 1 << 16,  // and the number of processes, as _COUNT does
    RLHF__CONFINED_WRITES = 1 << 17        // it may write in one directory
};

// The greatest number of processes and threads of a worker, including all that it starts.
enum { RLHF__MOST_PROCESSES = 1024 };

// Create namespaces for the processes that are forked afterwards, but no network namespace if
// `network` is 1. Returns the protections in force, as bits of enum rlhf__confined. [main]
unsigned rlhf__confine_spaces(int network);

// Give the calling process's PID namespace a private view of the file system. Call this function in
// the first process of the namespace, before that process forks. Returns the bits of the
// protections in force: RLHF__CONFINED_READ_ONLY, _DEVICES and _SIGHT. Files can be written only in
// the directory `writes`; NULL: nowhere. [main]
unsigned rlhf__mounts(const char *writes);

// Limit the calling process's PID namespace to RLHF__MOST_PROCESSES processes. Call this function
// in the first process of the namespace, before that process forks. Returns the bit of this
// protection, or 0 if the kernel counts the processes of all namespaces together. [main]
unsigned rlhf__confine_count(void);

// Apply the remaining protections to the calling process, permanently. If `network` is 1, the
// process may use sockets. If `writes` is not NULL, it may make, write and remove files and
// directories in this directory. `spaces` combines the bits that the functions above and
// rlhf__cgroup_enter returned. Returns the bits of all protections in force. [main]
unsigned rlhf__confine(unsigned spaces, int network, const char *writes);

// Limit the memory of the calling process to its present use plus `bytes`. Unless `writes` is 1,
// forbid the process to enlarge files. Returns the bit of the memory limit, or 0 if the limit
// cannot be set, as in a build with a sanitizer. [main]
unsigned rlhf__confine_memory(uint64_t bytes, int writes);

// Limit the processor time that the calling process may use from now on. The limit is `seconds`
// times the number of cores that the process may run on. If `seconds` is 0, the time is unlimited.
// Each process that the calling process starts gets the same limit. A process that reaches the
// limit gets SIGXCPU. Returns the bit of this protection, or 0. [main]
unsigned rlhf__confine_time(double seconds);

// Append a list of the protections that are in force ("no new privileges, no writing to files,
// ..."), then a list of the missing ones. [any]
void rlhf__confined_text(unsigned in_force, uint64_t memory_mib, struct rlhf__buf *out);

// In file_access.c: forbids writing to files, and reading from devices and from the /proc entries
// of other processes. `own_proc` is 1 if /proc shows only the worker's own processes. `writes` is
// as in rlhf__confine. Returns 0, or -1 if the kernel lacks landlock. [main]
int rlhf__landlock(int own_proc, int network, const char *writes);

// In seccomp.c: installs the filter of system calls. `own_processes` is 1 if a PID namespace
// already keeps the worker from signalling other processes. Returns 0 or -1. [main]
int rlhf__seccomp(int own_processes, int network);

#endif
