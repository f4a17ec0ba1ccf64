// attack.c: see attack.h.
#include "worker/attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, HIGH_PID = 500 };

// ---- the bait ----

// Forks a process with a number that is higher than any number in a worker's PID namespace.
static pid_t fork_high(void) {
    for (;;) {
        const pid_t pid = fork();
        if (pid <= 0 || pid > HIGH_PID) return pid;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

static void start_victim(struct attacked *a, int as_nobody) {
    int fd[2];
    assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
    a->bait.victim = fork_high();
    if (a->bait.victim == 0) {
        dup2(fd[0], 0);
        if (as_nobody && (setresgid(NOBODY, NOBODY, NOBODY) | setresuid(NOBODY, NOBODY, NOBODY)))
            _exit(1);
        execl("/bin/sh", "sh", "-c", "read x", "probe-victim", (char *)NULL);
        _exit(1);
    }
    assert_true(a->bait.victim > 0);
    close(fd[0]);
    a->hold = fd[1];
}

static int bound(const struct sockaddr *to, socklen_t n, int domain, int type) {
    const int fd = socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, to, n), 0);
    if (type == SOCK_STREAM) assert_int_equal(listen(fd, 8), 0);
    return fd;
}

static int bound_at(const struct e2e *t, const char *name, int type) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof to.sun_path, "%.80s/bait/%.20s", t->dir, name);
    return bound((const struct sockaddr *)(const void *)&to, sizeof to, AF_UNIX, type);
}

static int bound_abstract(const struct attacked *a) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int n =
        snprintf(to.sun_path + 1, sizeof to.sun_path - 1, "rlhf-probe-%ld", (long)a->bait.victim);
    return bound((const struct sockaddr *)(const void *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n), AF_UNIX,
                 SOCK_STREAM);
}

static void open_sockets(const struct e2e *t, struct attacked *a) {
    struct sockaddr_in to = {.sin_family = AF_INET};
    socklen_t n = sizeof to;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a->socket[0] =
        bound((const struct sockaddr *)(const void *)&to, sizeof to, AF_INET, SOCK_STREAM);
    assert_int_equal(getsockname(a->socket[0], (struct sockaddr *)(void *)&to, &n), 0);
    a->bait.port = ntohs(to.sin_port);
    a->socket[1] = bound_at(t, "socket.stream", SOCK_STREAM);
    a->socket[2] = bound_at(t, "socket.dgram", SOCK_DGRAM);
    a->socket[3] = bound_abstract(a);
}

void attack_lay(struct e2e *t, struct attacked *a, int as_nobody) {
    memset(a, 0, sizeof *a);
    start_victim(a, as_nobody);
    assert_int_equal(e2e_shell(t, "rm -rf bait r && mkdir -p bait/sub && for f in file file2 file3 "
                                  "file5; do echo bait >bait/$f; done; "
                                  "[ $(id -u) != 0 ] || mknod bait/random c 1 8"),
                     0);
    open_sockets(t, a);
    a->bait.shm = shmget(IPC_PRIVATE, 4096, 0666 | IPC_CREAT);
    a->bait.msg = msgget(IPC_PRIVATE, 0666 | IPC_CREAT);
    a->bait.sem = semget(IPC_PRIVATE, 1, 0666 | IPC_CREAT);
    assert_true(a->bait.shm >= 0 && a->bait.msg >= 0 && a->bait.sem >= 0);
    assert_int_equal(msgsnd(a->bait.msg, "\1\0\0\0\0\0\0\0bait", 4, 0), 0);
    const mqd_t queue = mq_open("/rlhf-probe", O_CREAT | O_RDWR, 0666, NULL);
    if (queue != (mqd_t)-1) mq_close(queue);
    if (as_nobody) assert_int_equal(e2e_shell(t, "chmod 755 . && chown -R %d .", NOBODY), 0);
}

void attack_take_up(struct attacked *a) {
    close(a->hold);
    kill(a->bait.victim, SIGKILL);
    waitpid(a->bait.victim, NULL, 0);
    for (int i = 0; i < ATTACK_SOCKETS; i++)
        close(a->socket[i]);
    shmctl(a->bait.shm, IPC_RMID, NULL);
    msgctl(a->bait.msg, IPC_RMID, NULL);
    semctl(a->bait.sem, 0, IPC_RMID);
    mq_unlink("/rlhf-probe");
}

// ---- a run ----

#define LOOK "find bait ! -name bait | sort | xargs stat -c '%%n %%a %%u %%s %%y %%z' "

int attack_by(struct e2e *t, const struct attacked *a, const char *as, const char *reward,
              const char *options) {
    const struct bait *b = &a->bait;
    return e2e_terminal(t, 80,
                        "export HOME=$PWD; [ $(id -u) != 0 ] || chown %s $(tty); "
                        "echo %ld %d %d %d %d $(tty) >bait/bait; chmod a+r bait/bait; " LOOK
                        ">before; \"$RLHF_TEST_PLUGINS/walled\" %s \"$HOST\" " ATTACK_RUN
                        "--set log.level=debug --reward \"%s%s\" "
                        ">out 2>&1; s=$?; " LOOK ">after; cat out; exit $s",
                        strstr(as, "nobody") ? "65534" : "0", (long)b->victim, b->port, b->shm,
                        b->msg, b->sem, as, reward, options);
}

// Returns the line of the protections in force, without the part about missing protections.
static void in_force(const struct e2e *t, char *out, size_t cap) {
    const char *from = strstr(t->out, "runs in a worker process: ");
    if (!from) {
        fail_msg("nothing is said to be in force in:\n%s", t->out);
        return; // this line is never reached
    }
    const char *to = strstr(from, "; not in force"), *end = strchr(from, '\n');
    if (!to || (end && to > end)) to = end ? end : from + strlen(from);
    snprintf(out, cap, "%.*s", (int)(to - from), from);
}

static int attack_stands(const char *line, char wall) {
    static const struct {
        char wall;
        const char *text;
    } walls[] = {{WALL_FILES, "no writing to files"},
                 {WALL_DEVICES, "no terminals"},
                 {WALL_CALLS, "a list of system calls"},
                 {WALL_PROCESSES, "a list of system"},
                 {WALL_MOUNTS, "read-only mounts"},
                 {WALL_SIGHT, "no sight of other processes"},
                 {WALL_IPC, "no shared memory or"},
                 {WALL_RIGHTS, "no capabilities"},
                 {WALL_MEMORY, "rewards.memory_mib for each process"},
                 {WALL_NETWORK, "no network ("},
                 {WALL_SOCKETS, "a list of system calls"}};
    for (size_t i = 0; i < sizeof walls / sizeof *walls; i++)
        if (walls[i].wall == wall) return strstr(line, walls[i].text) != NULL;
    return 1;
}

void attack_count(const struct e2e *t, const char *line, struct attack_result *r) {
    const char *at = t->out;
    memset(r, 0, sizeof *r);
    while ((at = strstr(at, " probed:")) != NULL) {
        at += 8;
        const char *end = at + strcspn(at, "\r\n");
        while (at < end && *at == ' ') {
            char wall, name[64];
            int why;
            if (sscanf(at, " %c.%63[^=]=%d", &wall, name, &why) != 3) break;
            r->n++;
            r->open += why == 0;
#ifdef __SANITIZE_ADDRESS__ // for the leak checker; seccomp.c allows it only there
            if (strcmp(name, "ptrace") == 0) why = EPERM;
#endif
            if (why == 0 && line && attack_stands(line, wall) && strlen(r->through) < 4000)
                snprintf(r->through + strlen(r->through), 96, " %s", name);
            at += 1 + strcspn(at + 1, " \r\n");
        }
    }
}

void attack_refused(struct e2e *t, const char *as, const char *reward, const char *options) {
    struct attacked a;
    struct attack_result r;
    char line[2048];
    attack_lay(t, &a, strstr(as, "nobody") != NULL);
    const int status = attack_by(t, &a, as, reward, options);
    const int alive = kill(a.bait.victim, 0) == 0 && waitpid(a.bait.victim, NULL, WNOHANG) == 0;
    attack_take_up(&a);
    if (status == ATTACK_SKIPPED) skip();
    if (status != 0) fail_msg("status %d:\n%s", status, t->out);
    in_force(t, line, sizeof line);
    attack_count(t, line, &r);
    if (r.n < ATTACK_FEWEST) fail_msg("only %d probes in:\n%s", r.n, t->out);
    if (*r.through) fail_msg("%s: these got through:%s\n%s", as, r.through, t->out);
    assert_true(alive);
    if (attack_stands(line, WALL_FILES)) assert_int_equal(e2e_shell(t, "diff before after"), 0);
}

void attack_at_rest(struct e2e *t, const char *as, const char *reward, const char *want,
                    const char *says) {
    struct attacked a;
    attack_lay(t, &a, strstr(as, "nobody") != NULL);
    e2e_write(t, "pay",
              "#!/bin/bash\nread row; read want <want; was=; for ((i = 0; i < 300; i++)); do\n"
              "  found=$(cat /proc/[0-9]*/stat 2>/dev/null | sed -n 's/.*(probe-burner) //p' | "
              "cut -c 1 | sort -u | tr -d '\\n')\n"
              "  was=$was$found; [ \"$was\" ] && [ \"$found\" = \"$want\" ] && break; sleep 0.1\n"
              "done\necho \"found:$found:\" >>seen\necho 1; while read row; do echo 1; done\n");
    e2e_write(t, "want", want);
    assert_int_equal(e2e_shell(t, "chmod a+rx pay; chmod a+r want"), 0);
    const int status = attack_by(t, &a, as, reward, "\" --reward \"exec.so:command=./pay");
    attack_take_up(&a);
    if (status == ATTACK_SKIPPED) skip();
    if (status != 0) fail_msg("%s %s: status %d:\n%s", as, reward, status, t->out);
    e2e_shell(t, "cat seen out");
    e2e_says(t, says);
    assert_int_equal(e2e_shell(t, "! cat /proc/[0-9]*/comm 2>/dev/null | grep probe-burner"), 0);
}

const char *const attack_kernels[ATTACK_KERNELS] = {"", "no-namespaces", "nobody",
                                                    "nobody no-namespaces"};

int attack_can_be(const char *as) { return geteuid() == 0 || !strstr(as, "nobody"); }
