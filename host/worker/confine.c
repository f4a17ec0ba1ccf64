// confine.c: see confine.h. Landlock by its numbers: Debian 12's libc has no functions of it, and
// its kernel headers do not know the later rights.
#include "worker/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- namespaces ----

static int put_file(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const size_t n = strlen(text);
    const int bad = fd < 0 || write(fd, text, n) != (ssize_t)n;
    if (fd >= 0) close(fd);
    return bad ? -1 : 0;
}

// The user is in there who they are outside, and nobody else is anybody.
static void map_user(uid_t uid, gid_t gid) {
    char text[64];
    put_file("/proc/self/setgroups", "deny");
    snprintf(text, sizeof text, "%u %u 1\n", (unsigned)uid, (unsigned)uid);
    put_file("/proc/self/uid_map", text);
    snprintf(text, sizeof text, "%u %u 1\n", (unsigned)gid, (unsigned)gid);
    put_file("/proc/self/gid_map", text);
}

unsigned rlhf__confine_spaces(int network) {
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    const int net = network ? 0 : CLONE_NEWNET;
    unsigned users = RLHF__CONFINED_USERS;
    // A user namespace takes root's rights over the machine from root too.
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID | net) == 0)
        map_user(uid, gid);
    else if (users = 0, unshare(CLONE_NEWPID | net) != 0)
        return 0;
    return users | RLHF__CONFINED_PROCESSES | (network ? 0 : RLHF__CONFINED_NETWORK);
}

// ---- how many processes ----

static int kernel_is(unsigned major, unsigned minor) {
    struct utsname u;
    unsigned has = 0, then = 0;
    return uname(&u) == 0 && sscanf(u.release, "%u.%u", &has, &then) == 2 &&
           (has > major || (has == major && then >= minor));
}

// From Linux 6.14 on a PID namespace has a largest number of its own, which its root may set.
// Before that it is the machine's, which is not ours to change.
unsigned rlhf__confine_count(void) {
    char text[16];
    snprintf(text, sizeof text, "%d", RLHF__MOST_PROCESSES);
    if (!kernel_is(6, 14) || put_file("/proc/sys/kernel/pid_max", text) != 0) return 0;
    return RLHF__CONFINED_COUNT;
}

// The limit of a user's processes, which from Linux 5.14 on are those of the user namespace; before
// that it would count all that the user has. Whether it acts is tried: it does not for root.
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

// ---- landlock ----

struct ruleset {
    uint64_t files, network, scoped;
};

struct __attribute__((packed)) rule_beneath {
    uint64_t allowed;
    int32_t fd;
};

enum {
    CREATE_RULESET = 444,
    ADD_RULE = 445,
    RESTRICT_SELF = 446,
    VERSION = 1,
    PATH_BENEATH = 1,
    WRITE_FILE = 1 << 1,
    REFER = 1 << 13,
    TRUNCATE = 1 << 14
};

// All rights that change something: files written, removed, made; from version 2 on moved, 3 cut. 6
// keeps signals and abstract sockets in.
static int no_writing(void) {
    const long version = syscall(CREATE_RULESET, NULL, 0, VERSION);
    struct ruleset rules = {.files = WRITE_FILE | 0x1ff0};
    if (version < 1) return -1;
    if (version >= 2) rules.files |= REFER;
    if (version >= 3) rules.files |= TRUNCATE;
    if (version >= 6) rules.scoped = 3;
    const size_t known = version >= 6 ? sizeof rules : version >= 4 ? 16 : 8;
    const int fd = (int)syscall(CREATE_RULESET, &rules, known, 0);
    if (fd < 0) return -1;
    struct rule_beneath null = {rules.files & (WRITE_FILE | TRUNCATE), -1};
    null.fd = open("/dev/null", O_PATH | O_CLOEXEC); // where programs send what nobody wants
    if (null.fd >= 0) {
        syscall(ADD_RULE, fd, PATH_BENEATH, &null, 0);
        close(null.fd);
    }
    const int bad = syscall(RESTRICT_SELF, fd, 0) != 0;
    close(fd);
    return bad ? -1 : 0;
}

// ---- all ----

unsigned rlhf__confine(unsigned spaces, int network) {
    const struct rlimit none = {0, 0};
    unsigned in_force = spaces | (network ? (unsigned)RLHF__CONFINED_OPEN : 0);
    setrlimit(RLIMIT_CORE, &none);
    const int counted = (spaces & RLHF__CONFINED_COUNT) != 0;
    if (!counted && spaces & RLHF__CONFINED_USERS) in_force |= count_of_user();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return in_force;
    in_force |= RLHF__CONFINED_PRIVILEGES;
    if (no_writing() == 0) in_force |= RLHF__CONFINED_FILES;
    const int apart = (spaces & RLHF__CONFINED_PROCESSES) != 0;
    if (rlhf__seccomp(apart, network) == 0) in_force |= RLHF__CONFINED_CALLS;
    return in_force;
}

unsigned rlhf__confine_memory(uint64_t bytes) {
#ifdef RLHF_SANITIZED
    (void)bytes; // its shadow is larger than any limit
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
    // The two parts of a second that were cut off, and one that is not whole.
    const double most = so_far + 2 + ceil(seconds * n);
    limit.rlim_cur = seconds > 0 && most < 1e15 ? (rlim_t)most : limit.rlim_max;
    if (limit.rlim_cur > limit.rlim_max) limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_CPU, &limit) == 0 && seconds > 0 ? RLHF__CONFINED_TIME : 0;
}

static void add(struct rlhf__buf *list, const char *text) {
    rlhf__buf_printf(list, "%s%s", list->len ? ", " : "", text);
}

void rlhf__confined_text(unsigned in, uint64_t memory_mib, struct rlhf__buf *out) {
    struct rlhf__buf has = RLHF__BUF_INIT, lacks = RLHF__BUF_INIT;
    char count[64];
    snprintf(count, sizeof count, "at most %d processes and threads", RLHF__MOST_PROCESSES);
    const struct {
        unsigned bit;
        int wanted;
        const char *text;
    } all[] = {
        {RLHF__CONFINED_PRIVILEGES, 1, "no new privileges"},
        {RLHF__CONFINED_FILES, 1, "no writing to files (landlock)"},
        {RLHF__CONFINED_CALLS, 1, "a list of system calls (seccomp)"},
        {RLHF__CONFINED_PROCESSES, 1, "processes of its own (PID namespace)"},
        {RLHF__CONFINED_NETWORK, !(in & RLHF__CONFINED_OPEN), "no network (network namespace)"},
        {RLHF__CONFINED_COUNT, 1, count},
        {RLHF__CONFINED_TIME, 0, "processor time (rewards.timeout_s a core)"},
        {RLHF__CONFINED_MEMORY, memory_mib > 0, "rewards.memory_mib"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (in & all[i].bit || all[i].wanted) add(in & all[i].bit ? &has : &lacks, all[i].text);
    if (in & RLHF__CONFINED_OPEN) add(&lacks, "no network (network=true)");
    rlhf__buf_puts(out, has.len ? rlhf__buf_text(&has) : "nothing");
    if (lacks.len) rlhf__buf_printf(out, "; not in force: %s", rlhf__buf_text(&lacks));
    if (has.bad || lacks.bad) out->bad = 1;
    rlhf__buf_free(&has);
    rlhf__buf_free(&lacks);
}
