// confine.c: see confine.h. file_access.c and seccomp.c hold the larger parts.
#include "supervise/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGEST_FILE = 64 << 20, MOST_FILES = 1024 };

// ---- namespaces ----

static int put_file(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const size_t n = strlen(text);
    const int bad = fd < 0 || write(fd, text, n) != (ssize_t)n;
    if (fd >= 0) close(fd);
    return bad ? -1 : 0;
}

// Inside the namespace, the user and group keep their ids. All other ids are unmapped.
static void map_user(uid_t uid, gid_t gid) {
    char text[64];
    put_file("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1\n", (unsigned)uid, (unsigned)uid);
    put_file("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%u %u 1\n", (unsigned)gid, (unsigned)gid);
    put_file("/proc/self/gid_map", text);
}

// A user namespace also takes away root's privileges on the machine. The same call also creates the
// PID namespace and, unless `network` is 1, the network namespace, so a worker never has the user
// namespace but lacks the others.
static unsigned with_users(int network) {
    static const int most[] = {CLONE_NEWIPC, 0};
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    const int base = CLONE_NEWUSER | CLONE_NEWPID | (network ? 0 : CLONE_NEWNET);
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        if (unshare(base | most[i]) != 0) continue;
        map_user(uid, gid);
        return RLHF__CONFINED_USERS | RLHF__CONFINED_PROCESSES |
               (network ? 0 : RLHF__CONFINED_NETWORK) | (most[i] ? RLHF__CONFINED_IPC : 0);
    }
    return 0;
}

unsigned rlhf__confine_spaces(int network) {
    unsigned in_force = with_users(network);
    if (in_force) return in_force;
    // Root can create the namespaces without a user namespace.
    if (unshare(CLONE_NEWPID) == 0) in_force |= RLHF__CONFINED_PROCESSES;
    if (unshare(CLONE_NEWIPC) == 0) in_force |= RLHF__CONFINED_IPC;
    if (!network && unshare(CLONE_NEWNET) == 0) in_force |= RLHF__CONFINED_NETWORK;
    return in_force;
}

// ---- how many processes ----

static int kernel_is(unsigned major, unsigned minor) {
    struct utsname u;
    unsigned has = 0, then = 0;
    return uname(&u) == 0 && sscanf(u.release, "%u.%u", &has, &then) == 2 &&
           (has > major || (has == major && then >= minor));
}

// Since Linux 6.14 each PID namespace has a separate pid_max, which the namespace's root may set.
// On older kernels pid_max applies to the whole machine, so we must not change it.
unsigned rlhf__confine_count(void) {
    char text[16];
    snprintf(text, sizeof text, "%d", RLHF__MOST_PROCESSES);
    if (!kernel_is(6, 14) || put_file("/proc/sys/kernel/pid_max", text) != 0) return 0;
    return RLHF__CONFINED_COUNT;
}

// Limit the number of the user's processes. Since Linux 5.14 the kernel counts only the processes
// in the user namespace. Older kernels count all processes of the user, so no limit is set there.
// The kernel does not apply the limit to root. So test whether the limit is in force: with a limit
// of 0, a fork must fail.
static unsigned count_of_user(void) {
    const struct rlimit none = {0, RLHF__MOST_PROCESSES};
    const struct rlimit most = {RLHF__MOST_PROCESSES, RLHF__MOST_PROCESSES};
    if (!kernel_is(5, 14) || setrlimit(RLIMIT_NPROC, &none) != 0) return 0;
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    const int acts = pid < 0 && errno == EAGAIN;
    if (pid > 0) waitpid(pid, NULL, 0);
    return setrlimit(RLIMIT_NPROC, &most) == 0 && acts ? RLHF__CONFINED_COUNT : 0;
}

// ---- all ----

// Empty all capability sets, so that programs that are started later cannot have capabilities
// either.
static unsigned no_capabilities(void) {
    const struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    int left = 0;
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); // harmless if it fails
        left += prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1;
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (syscall(SYS_capset, &header, none) != 0) return 0;
    // With "no new privileges" set, a process without capabilities cannot gain any from the
    // bounding set.
    return left && geteuid() == 0 ? 0 : RLHF__CONFINED_CAPABILITIES;
}

static void at_most(int what, rlim_t most) {
    struct rlimit limit;
    if (getrlimit(what, &limit) != 0) return;
    if (limit.rlim_max > most) limit.rlim_max = most;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    setrlimit(what, &limit);
}

// The limit on the address space does not cover files in memory (memfd) or the buffers of pipes and
// sockets. So the size and the number of files are limited too. SIGXFSZ is ignored, so that writing
// beyond the size fails with EFBIG. Otherwise, the signal would end a process that exceeds the
// limit by accident.
static void limit_files(int writes) {
    signal(SIGXFSZ, SIG_IGN);
    if (!writes) at_most(RLIMIT_FSIZE, LARGEST_FILE);
    at_most(RLIMIT_NOFILE, MOST_FILES);
}

static unsigned confine(unsigned spaces, int network, const char *writes) {
    const struct rlimit none = {0, 0};
    unsigned in_force = spaces | (network ? (unsigned)RLHF__CONFINED_OPEN : 0) |
                        (writes ? (unsigned)RLHF__CONFINED_WRITES : 0);
    setrlimit(RLIMIT_CORE, &none);
    limit_files(writes != NULL);
    in_force |= no_capabilities();
    const int counted = (spaces & RLHF__CONFINED_COUNT) != 0;
    if (!counted && spaces & RLHF__CONFINED_USERS) in_force |= count_of_user();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return in_force;
    in_force |= RLHF__CONFINED_PRIVILEGES;
    const int own_proc = (spaces & RLHF__CONFINED_SIGHT) != 0;
    const int own_processes = (spaces & RLHF__CONFINED_PROCESSES) != 0;
    if (rlhf__landlock(own_proc, network, writes) == 0)
        in_force |= RLHF__CONFINED_FILES | RLHF__CONFINED_DEVICES | RLHF__CONFINED_SIGHT;
    if (rlhf__seccomp(own_processes, network) == 0) in_force |= RLHF__CONFINED_CALLS;
    return in_force;
}

// A process that can write files could leave its control group or change the group's limits. So the
// bits of the group are reported only if writing is forbidden.
unsigned rlhf__confine(unsigned spaces, int network, const char *writes) {
    const unsigned group = RLHF__CONFINED_GROUP | RLHF__CONFINED_GROUP_COUNT;
    const unsigned in_force = confine(spaces, network, writes);
    return in_force & (RLHF__CONFINED_FILES | RLHF__CONFINED_READ_ONLY) ? in_force
                                                                        : in_force & ~group;
}

unsigned rlhf__confine_memory(uint64_t bytes, int writes) {
    if (!writes) at_most(RLIMIT_FSIZE, 0);
#ifdef RLHF_SANITIZED
    (void)bytes; // the sanitizer's shadow memory is larger than any limit
    return 0;
#else
    unsigned long long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    const int read = f && fscanf(f, "%llu", &pages) == 1;
    if (f) fclose(f);
    const uint64_t all = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) + bytes;
    const struct rlimit limit = {all, all};
    return read && setrlimit(RLIMIT_AS, &limit) == 0 ? RLHF__CONFINED_MEMORY : 0;
#endif
}

unsigned rlhf__confine_time(double seconds) {
    struct rusage used;
    struct rlimit limit;
    cpu_set_t cores;
    if (getrusage(RUSAGE_SELF, &used) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0) return 0;
    const int known = sched_getaffinity(0, sizeof cores, &cores) == 0;
    const double n = known ? CPU_COUNT(&cores) : (double)sysconf(_SC_NPROCESSORS_ONLN);
    const double so_far = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec);
    // The user time and the system time above are both rounded down to whole seconds, so add 2
    // seconds.
    const double most = so_far + 2 + ceil(seconds * n);
    limit.rlim_cur = seconds > 0 && most < 1e15 ? (rlim_t)most : limit.rlim_max;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_CPU, &limit) == 0 && seconds > 0 ? RLHF__CONFINED_TIME : 0;
}

// ---- words ----

static void add(struct rlhf__buf *list, const char *text) {
    rlhf__buf_printf(list, "%s%s", list->len ? ", " : "", text);
}

// Append the name of a protection, followed in parentheses by the one or two mechanisms that
// provide it.
static void add_with(struct rlhf__buf *list, const char *text, const char *one, const char *two) {
    rlhf__buf_printf(list, "%s%s (%s%s%s)", list->len ? ", " : "", text, one,
                     *one && *two ? ", " : "", two);
}

// A protection that either of two mechanisms provides.
struct wall {
    unsigned one, two;
    int wanted; // 0: do not list it if it is missing
    const char *text, *by_one, *by_two;
};

static void add_wall(const struct wall *w, unsigned in, struct rlhf__buf *has,
                     struct rlhf__buf *lacks) {
    const int one = (in & w->one) != 0, two = (in & w->two) != 0;
    if (!one && !two) {
        if (w->wanted) add(lacks, w->text);
    } else if (!w->by_one) {
        add(has, w->text);
    } else {
        add_with(has, w->text, one ? w->by_one : "", two ? w->by_two : "");
    }
}

void rlhf__confined_text(unsigned in, uint64_t memory_mib, struct rlhf__buf *out) {
    struct rlhf__buf has = RLHF__BUF_INIT, lacks = RLHF__BUF_INIT;
    char count[64];
    snprintf(count, sizeof count, "at most %d processes and threads", RLHF__MOST_PROCESSES);
    const int closed = !(in & RLHF__CONFINED_OPEN);
    const unsigned calls = RLHF__CONFINED_CALLS;
    const struct wall walls[] = {
        {RLHF__CONFINED_PRIVILEGES, 0, 1, "no new privileges", NULL, NULL},
        {RLHF__CONFINED_CAPABILITIES, 0, 1, "no capabilities", NULL, NULL},
        {RLHF__CONFINED_FILES, RLHF__CONFINED_READ_ONLY, 1,
         in & RLHF__CONFINED_WRITES ? "writing to files only in its own directory"
                                    : "no writing to files",
         "landlock", "read-only mounts"},
        {RLHF__CONFINED_DEVICES, 0, 1, "no terminals or other devices", NULL, NULL},
        {calls, 0, 1, "a list of system calls", "seccomp", ""},
        {RLHF__CONFINED_PROCESSES, 0, 1, "processes of its own", "PID namespace", ""},
        {RLHF__CONFINED_SIGHT, 0, 1, "no sight of other processes in /proc", NULL, NULL},
        {RLHF__CONFINED_IPC, calls, 1, "no shared memory or queues of others", "IPC namespace",
         "seccomp"},
        {closed ? RLHF__CONFINED_NETWORK : 0, closed ? calls : 0, closed, "no network",
         "network namespace", "seccomp"},
        {RLHF__CONFINED_COUNT, RLHF__CONFINED_GROUP_COUNT, 1, count, NULL, NULL},
        {RLHF__CONFINED_TIME, 0, 0, "processor time (rewards.timeout_s a core)", NULL, NULL},
        {RLHF__CONFINED_MEMORY, 0, memory_mib > 0, "rewards.memory_mib for each process", NULL,
         NULL},
        {RLHF__CONFINED_GROUP, 0, memory_mib > 0, "rewards.memory_mib for all of them (cgroup)",
         NULL, NULL}};
    for (size_t i = 0; i < sizeof walls / sizeof *walls; i++)
        add_wall(&walls[i], in, &has, &lacks);
    rlhf__buf_puts(out, has.len ? rlhf__buf_text(&has) : "nothing");
    if (lacks.len) rlhf__buf_printf(out, "; not in force: %s", rlhf__buf_text(&lacks));
    if (!closed) rlhf__buf_puts(out, "; the network is open to it (network=true)");
    if (has.bad || lacks.bad) out->bad = 1;
    rlhf__buf_finish(&has);
    rlhf__buf_finish(&lacks);
}
