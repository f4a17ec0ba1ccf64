// test_worker_probes.c: runs hostile probes (probe.h) in a real worker, as this user and as the
// user `nobody`, on this kernel and on simulated kernels without namespaces or landlock (walled.c).
// Each protection that the host lists as in force must refuse its probes, and the bait must be
// unchanged.
#include "e2e/e2e.h"
#include "worker/probe.h"

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

enum { NOBODY = 65534, SKIPPED = 77, FEWEST = 100, HIGH_PID = 500, SOCKETS = 4 };

// ---- the bait ----

struct attacked {
    struct bait bait;
    int socket[SOCKETS], hold; // hold: the victim lives as long as it is open
};

// Forks a process with a number that no process of a worker's PID namespace has.
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

static void lay(struct e2e *t, struct attacked *a, int as_nobody) {
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

static void take_up(struct attacked *a) {
    close(a->hold);
    kill(a->bait.victim, SIGKILL);
    waitpid(a->bait.victim, NULL, 0);
    for (int i = 0; i < SOCKETS; i++)
        close(a->socket[i]);
    shmctl(a->bait.shm, IPC_RMID, NULL);
    msgctl(a->bait.msg, IPC_RMID, NULL);
    semctl(a->bait.sem, 0, IPC_RMID);
    mq_unlink("/rlhf-probe");
}

// ---- a run ----

#define RUN                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--set batch.size=8 --set sampling.max_new_tokens=2 --set run.phases=1 --set run.dir=r "       \
    "--threads 1 "
#define LOOK "find bait ! -name bait | sort | xargs stat -c '%%n %%a %%u %%s %%y %%z' "

// The attacker: a plugin in a worker, or an isolated program.
#define PLUGIN  "$RLHF_TEST_PLUGINS/probe_reward.so:dir=$PWD/bait"
#define PROGRAM "exec.so:command='$RLHF_TEST_PLUGINS/probe_program' all $PWD/bait,isolate=true"

// Runs the attacker in a terminal, whose name is in the bait. `as` are options of walled.c. Returns
// the exit status.
static int attack_by(struct e2e *t, const struct attacked *a, const char *as, const char *reward,
                     const char *options) {
    const struct bait *b = &a->bait;
    return e2e_terminal(t, 80,
                        "export HOME=$PWD; [ $(id -u) != 0 ] || chown %s $(tty); "
                        "echo %ld %d %d %d %d $(tty) >bait/bait; chmod a+r bait/bait; " LOOK
                        ">before; \"$RLHF_TEST_PLUGINS/walled\" %s \"$HOST\" " RUN
                        "--set log.level=debug --reward \"%s%s\" "
                        ">out 2>&1; s=$?; " LOOK ">after; cat out; exit $s",
                        strstr(as, "nobody") ? "65534" : "0", (long)b->victim, b->port, b->shm,
                        b->msg, b->sem, as, reward, options);
}

static int attack(struct e2e *t, const struct attacked *a, const char *as, const char *options) {
    return attack_by(t, a, as, PLUGIN, options);
}

// Returns the line of the protections in force, without the part about missing protections.
static void in_force(const struct e2e *t, char *out, size_t cap) {
    const char *from = strstr(t->out, "runs in a worker process: ");
    if (!from) {
        fail_msg("nothing is said to be in force in:\n%s", t->out);
        return; // never reached
    }
    const char *to = strstr(from, "; not in force"), *end = strchr(from, '\n');
    if (!to || (end && to > end)) to = end ? end : from + strlen(from);
    snprintf(out, cap, "%.*s", (int)(to - from), from);
}

static int stands(const char *line, char wall) {
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

struct result {
    int n, open;
    char through[4096]; // restrictions in force that did not refuse
};

// Counts the results of the probes. `line` lists the protections in force. If `line` is NULL, the
// probes need not be refused.
static void count(const struct e2e *t, const char *line, struct result *r) {
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
#ifdef __SANITIZE_ADDRESS__ // the leak checker's; seccomp.c allows it only there
            if (strcmp(name, "ptrace") == 0) why = EPERM;
#endif
            if (why == 0 && line && stands(line, wall) && strlen(r->through) < 4000)
                snprintf(r->through + strlen(r->through), 96, " %s", name);
            at += 1 + strcspn(at + 1, " \r\n");
        }
    }
}

static void nothing_of(struct e2e *t, const char *as, const char *reward, const char *options) {
    struct attacked a;
    struct result r;
    char line[2048];
    lay(t, &a, strstr(as, "nobody") != NULL);
    const int status = attack_by(t, &a, as, reward, options);
    const int alive = kill(a.bait.victim, 0) == 0 && waitpid(a.bait.victim, NULL, WNOHANG) == 0;
    take_up(&a);
    if (status == SKIPPED) skip();
    if (status != 0) fail_msg("status %d:\n%s", status, t->out);
    in_force(t, line, sizeof line);
    count(t, line, &r);
    if (r.n < FEWEST) fail_msg("only %d probes in:\n%s", r.n, t->out);
    if (*r.through) fail_msg("%s: these got through:%s\n%s", as, r.through, t->out);
    assert_true(alive);
    if (stands(line, WALL_FILES)) assert_int_equal(e2e_shell(t, "diff before after"), 0);
}

static void nothing_gets_through(struct e2e *t, const char *as, const char *options) {
    nothing_of(t, as, PLUGIN, options);
}

// ---- the tests ----

static void as_this_user(void **state) { nothing_gets_through(*state, "", ""); }
static void without_namespaces(void **state) { nothing_gets_through(*state, "no-namespaces", ""); }
static void without_user_namespaces(void **state) { nothing_gets_through(*state, "no-users", ""); }
static void without_landlock(void **state) { nothing_gets_through(*state, "no-landlock", ""); }

static void without_both(void **state) {
    nothing_gets_through(*state, "no-namespaces no-landlock", "");
}

// Simulates the landlock version of Debian 12's kernel, and then the first version.
static void with_landlock_of_linux_6_1(void **state) {
    nothing_gets_through(*state, "no-namespaces landlock=2", "");
}

static void with_landlock_of_linux_5_13(void **state) {
    nothing_gets_through(*state, "no-namespaces landlock=1", "");
}

static void with_landlock_of_linux_6_7(void **state) {
    nothing_gets_through(*state, "no-namespaces landlock=4", "");
}

// Files must not grow. This includes files that the worker shares with the host.
static void with_a_memory_limit(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {"", "no-namespaces", "nobody", "nobody no-namespaces"};
    for (int k = 0; k < (geteuid() == 0 ? 4 : 2); k++) {
        nothing_gets_through(t, as[k], "\" --set \"rewards.memory_mib=4096");
        assert_int_equal(e2e_shell(t, "grep -q ' G.extend_output=[1-9]' out || "
                                      "grep 'not in force.*memory_mib for each' out"),
                         0);
    }
}

// The network is open; the machine's own services are not.
static void with_a_network(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {"", "no-namespaces"};
    for (int k = 0; k < 2; k++) {
        nothing_gets_through(t, as[k], ",network=true");
        assert_int_equal(e2e_shell(t, "grep 'the network is open to it (network=true)' out && "
                                      "grep ' N.tcp=0 ' out"),
                         0);
    }
}

static void as_nobody(void **state) {
    if (geteuid() != 0) skip();
    nothing_gets_through(*state, "nobody", "");
}

static void as_nobody_without_namespaces(void **state) {
    if (geteuid() != 0) skip();
    nothing_gets_through(*state, "nobody no-namespaces", "");
}

static void as_nobody_without_landlock(void **state) {
    if (geteuid() != 0) skip();
    nothing_gets_through(*state, "nobody no-landlock", "");
}

static void as_nobody_without_both(void **state) {
    if (geteuid() != 0) skip();
    nothing_gets_through(*state, "nobody no-namespaces no-landlock", "");
}

// Without a worker, most probes succeed. This shows that the probes are real attacks.
static void without_walls_most_get_through(void **state) {
    struct e2e *t = *state;
    struct attacked a;
    struct result r;
    const char *as = geteuid() == 0 ? "nobody" : "";
    lay(t, &a, geteuid() == 0);
    const int status = attack(t, &a, as, ",isolate=false");
    take_up(&a);
    if (status == SKIPPED) skip();
    assert_int_equal(status, 0);
    count(t, NULL, &r);
    if (r.open < r.n / 2) fail_msg("only %d of %d got through:\n%s", r.open, r.n, t->out);
}

// A report that the plugin's constructor forges is ignored, even if the constructor takes the
// worker's place.
static void a_constructor_cannot_forge_it(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"walls", "none"};
    for (int k = 0; k < 2; k++) {
        e2e_shell(t,
                  "rm -rf r; RLHF_PROBE_FORGE=%s \"$HOST\" " RUN
                  "--reward \"$RLHF_TEST_PLUGINS/probe_reward.so\"",
                  how[k]);
        if (strstr(t->out, "forged walls")) fail_msg("believed:\n%s", t->out);
        assert_int_equal(e2e_shell(t, "! grep -s 'forged walls' r/manifest.json"), 0);
    }
    assert_int_equal(e2e_shell(t, "grep '\"worker\": \"no new privileges' r/manifest.json"), 0);
}

static void alone(struct e2e *t, const char *probe, int fails) {
    struct attacked a;
    lay(t, &a, 0);
    char options[64];
    snprintf(options, sizeof options, ",probe=%s", probe);
    const int status = attack(t, &a, "", options);
    take_up(&a);
    if (status != fails) fail_msg("%s: status %d:\n%s", probe, status, t->out);
}

static void nonsense_ends_the_worker(void **state) {
    struct e2e *t = *state;
    alone(t, "unknown_call", 1);
    e2e_says(t, "sent what no worker sends");
    alone(t, "endless_frame", 1);
    e2e_says(t, "sent what no worker sends");
}

// One reward leaves a child running. The other reward, a program, delays the run until all such
// children have stopped (want "T") or ended (want "").
static void at_rest_by(struct e2e *t, const char *as, const char *reward, const char *want,
                       const char *says) {
    struct attacked a;
    lay(t, &a, strstr(as, "nobody") != NULL);
    e2e_write(t, "pay",
              "#!/bin/bash\nread row; read want <want; was=; for ((i = 0; i < 300; i++)); do\n"
              "  found=$(cat /proc/[0-9]*/stat 2>/dev/null | sed -n 's/.*(probe-burner) //p' | "
              "cut -c 1 | sort -u | tr -d '\\n')\n"
              "  was=$was$found; [ \"$was\" ] && [ \"$found\" = \"$want\" ] && break; sleep 0.1\n"
              "done\necho \"found:$found:\" >>seen\necho 1; while read row; do echo 1; done\n");
    e2e_write(t, "want", want);
    assert_int_equal(e2e_shell(t, "chmod a+rx pay; chmod a+r want"), 0);
    const int status = attack_by(t, &a, as, reward, "\" --reward \"exec.so:command=./pay");
    take_up(&a);
    if (status == SKIPPED) skip();
    if (status != 0) fail_msg("%s %s: status %d:\n%s", as, reward, status, t->out);
    e2e_shell(t, "cat seen out");
    e2e_says(t, says);
    assert_int_equal(e2e_shell(t, "! cat /proc/[0-9]*/comm 2>/dev/null | grep probe-burner"), 0);
}

static void at_rest(struct e2e *t, const char *as, const char *probe, const char *want,
                    const char *says) {
    char reward[512];
    snprintf(reward, sizeof reward, PLUGIN ",probe=%s", probe);
    at_rest_by(t, as, reward, want, says);
}

static const char *const kernels[] = {"", "no-namespaces", "nobody", "nobody no-namespaces"};
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

static int can_be(const char *as) { return geteuid() == 0 || !strstr(as, "nobody"); }

// Between calls a child does not run, whatever signal it ignores.
static void a_child_rests_between_calls(void **state) {
    for (int k = 0; k < N_KERNELS; k++)
        if (can_be(kernels[k])) at_rest(*state, kernels[k], "burn", "T", "found:T:");
}

// A child that wakes itself between calls is ended together with its worker. The next call would
// report this, but here the current call already ends the run.
static void a_child_that_will_not_rest_is_ended(void **state) {
    for (int k = 0; k < N_KERNELS; k++)
        if (can_be(kernels[k])) at_rest(*state, kernels[k], "wake", "", "signal 24 (CPU");
}

// The children of `plugin check` have separate sessions too.
static void a_check_has_no_terminal(void **state) {
    struct e2e *t = *state;
    e2e_terminal(t, 80,
                 "RLHF_PROBE_TERMINAL=1 \"$HOST\" plugin check "
                 "\"$RLHF_TEST_PLUGINS/probe_reward.so\"");
    e2e_says(t, "no terminal");
    if (strstr(t->out, "has a terminal")) fail_msg("opened:\n%s", t->out);
}

// ---- programs that the user named, isolated ----

// An isolated program meets the same restrictions.
static void a_program_in_isolation(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {
        "",       "no-namespaces",       "no-landlock", "no-namespaces no-landlock",
        "nobody", "nobody no-namespaces"};
    for (size_t k = 0; k < sizeof as / sizeof *as; k++)
        if (can_be(as[k])) nothing_of(t, as[k], PROGRAM, "");
    assert_int_equal(e2e_shell(t, "grep '\"worker\": \"no new privileges' r/manifest.json"), 0);
    nothing_of(t, "", PROGRAM, "\" --set \"rewards.memory_mib=4096");
    nothing_of(t, "", PROGRAM, ",network=true");
    assert_int_equal(e2e_shell(t, "grep 'the network is open to it (network=true)' out && "
                                  "grep ' N.tcp=0 ' out"),
                     0);
}

// Without isolation, a program may do whatever the user may. The run reports this at its start.
static void a_program_with_the_users_rights(void **state) {
    struct e2e *t = *state;
    struct attacked a;
    struct result r;
    lay(t, &a, 0);
    const int status = attack_by(t, &a, "",
                                 "exec.so:command='$RLHF_TEST_PLUGINS/probe_program' all "
                                 "$PWD/bait",
                                 "");
    take_up(&a);
    assert_int_equal(status, 0);
    e2e_says(t, "probe_program runs with your rights: your files and the network are open to it "
                "(isolate=true closes them)");
    count(t, NULL, &r);
    if (r.n < FEWEST) fail_msg("only %d probes in:\n%s", r.n, t->out);
    assert_int_equal(e2e_shell(t, "grep ' N.tcp=0 ' out && grep ' F.write=0 ' out"), 0);
    assert_int_equal(e2e_shell(t, "! grep '\"worker\"' r/manifest.json"), 0);
}

// A program may start many processes. At its end, none is left. If there is a process limit, it can
// start only a few.
static void a_program_that_forks(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"", ",isolate=true"};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf r; (ulimit -u 4000 2>/dev/null; \"$HOST\" " RUN
                                   "--set log.level=debug --reward \"exec.so:command="
                                   "'$RLHF_TEST_PLUGINS/probe_program' forks%s\") 2>&1",
                                   how[k]),
                         0);
        const char *line = strstr(t->out, "forked: ");
        const char *counted = strstr(t->out, "at most 1024 processes");
        const char *missing = strstr(t->out, "not in force");
        assert_non_null(line);
        if (atoi(line + 8) < 500) fail_msg("%s", t->out);
        if (counted && (!missing || counted < missing)) assert_true(atoi(line + 8) <= 1024);
        assert_int_equal(e2e_shell(t, "! cat /proc/[0-9]*/comm 2>/dev/null | grep probe-forked"),
                         0);
    }
}

// A Python function is restricted in the same way as its interpreter.
static void a_function_in_isolation(void **state) {
    struct e2e *t = *state;
    if (system("python3 -c 'import sys' >/dev/null 2>&1") != 0) skip();
    e2e_write(t, "tries.py",
              "import os, socket\n"
              "def tried(what):\n"
              "    try:\n"
              "        what()\n"
              "        return 1\n"
              "    except OSError:\n"
              "        return 0\n"
              "def pays(prompts, log_metric, **kw):\n"
              "    log_metric('write', tried(lambda: open('written', 'w')))\n"
              "    log_metric('net', tried(lambda: socket.socket()))\n"
              "    log_metric('tty', tried(lambda: open('/dev/tty')))\n"
              "    log_metric('read', tried(lambda: open('tries.py')))\n"
              "    return [1.0] * len(prompts)\n");
    static const struct {
        const char *how;
        double write, net;
    } all[] = {{"", 1, 1}, {",isolate=true", 0, 0}, {",isolate=true,network=true", 0, 1}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf r written; \"$HOST\" " RUN
                                   "--reward python.so:file=tries.py,function=pays%s 2>&1",
                                   all[i].how),
                         0);
        const int held = !strstr(t->out, "not in force: no writing");
        json_t *rows = e2e_metrics(t, "r");
        if (held) assert_true(e2e_metric(rows, 0, "rewards/python/write") == all[i].write);
        assert_true(e2e_metric(rows, 0, "rewards/python/net") == all[i].net);
        assert_true(e2e_metric(rows, 0, "rewards/python/tty") == 0);
        assert_true(e2e_metric(rows, 0, "rewards/python/read") == 1);
        json_decref(rows);
        if (held) assert_int_equal(e2e_exists(t, "written"), all[i].write == 1);
    }
}

// A class of env_python.so too.
static void a_class_in_isolation(void **state) {
    struct e2e *t = *state;
    if (system("python3 -c 'import sys' >/dev/null 2>&1") != 0) skip();
    e2e_write(t, "game.py",
              "import socket\n"
              "def tried(what):\n"
              "    try:\n"
              "        what()\n"
              "        return 1\n"
              "    except OSError:\n"
              "        return 0\n"
              "class Game:\n"
              "    def reset(self, **row):\n"
              "        return None\n"
              "    def get_reward(self):\n"
              "        return 100 * tried(lambda: open('written', 'w')) + 10 * tried(socket.socket)"
              " + tried(lambda: open('game.py'))\n");
    static const struct {
        const char *how;
        double pays;
    } all[] = {{"", 111}, {",isolate=true", 1}, {",isolate=true,network=true", 11}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf r written; \"$HOST\" " RUN
                                   "--env env_python.so:file=game.py,class=Game%s 2>&1",
                                   all[i].how),
                         0);
        const int held = !strstr(t->out, "not in force: no writing");
        json_t *rows = e2e_metrics(t, "r");
        if (held) assert_float_equal(e2e_metric(rows, 0, "objective/scores"), all[i].pays, 0);
        json_decref(rows);
        if (held) assert_int_equal(e2e_exists(t, "written"), all[i].pays > 100);
    }
}

// An isolated program does not run between calls. If it wakes itself, it is ended.
static void a_program_rests_between_calls(void **state) {
#define LEAVES "exec.so:command='$RLHF_TEST_PLUGINS/probe_program' "
    for (int k = 0; k < N_KERNELS; k++)
        if (can_be(kernels[k]))
            at_rest_by(*state, kernels[k], LEAVES "burn,isolate=true", "T", "found:T:");
    at_rest_by(*state, "", LEAVES "wake,isolate=true", "", "found::");
    at_rest_by(*state, "", LEAVES "burn", "R", "found:R:");
}

// Environments and their programs meet the same restrictions, in a worker and when isolated.
static void environments(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {"", "no-namespaces no-landlock", "nobody"};
    static const char *const by[] = {
        "$RLHF_TEST_PLUGINS/probe_environment.so:dir=$PWD/bait",
        "env_exec.so:command='$RLHF_TEST_PLUGINS/probe_program' plays $PWD/bait,isolate=true"};
    for (int i = 0; i < 2; i++) {
        char env[256];
        snprintf(env, sizeof env, "period_count.so\" --env \"%s", by[i]);
        for (size_t k = 0; k < sizeof as / sizeof *as; k++)
            if (can_be(as[k])) nothing_of(t, as[k], env, "");
        assert_int_equal(e2e_shell(t, "grep '\"worker\": \"no new privileges' r/manifest.json"), 0);
        nothing_of(t, "", env, ",network=true");
        assert_int_equal(e2e_shell(t, "grep 'the network is open to it (network=true)' out && "
                                      "grep ' N.tcp=0 ' out"),
                         0);
        struct attacked a;
        struct result r;
        lay(t, &a, 0);
        char open[256];
        snprintf(open, sizeof open, "%s", env);
        char *isolate = strstr(open, ",isolate=true");
        if (isolate) *isolate = 0;
        const int status = attack_by(t, &a, "", open, ",isolate=false");
        take_up(&a);
        if (status != 0) fail_msg("%s", t->out);
        count(t, NULL, &r);
        assert_true(r.n >= FEWEST);
        assert_int_equal(e2e_shell(t, "grep ' N.tcp=0 ' out && grep ' F.write=0 ' out"), 0);
    }
}

// Programs cannot open the terminal either. A row scores 1 if its program could open it.
static void a_program_has_no_terminal(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pay",
              "#!/bin/sh\nif (: </dev/tty) 2>/dev/null; then r=1; else r=0; fi\n"
              "while read row; do echo $r; done\n");
    assert_int_equal(e2e_terminal(t, 80,
                                  "chmod +x pay; (: </dev/tty) || exit 3; \"$HOST\" " RUN
                                  "--reward exec.so:command=./pay >out 2>&1"),
                     0);
    json_t *rows = e2e_metrics(t, "r");
    assert_true(e2e_metric(rows, 0, "objective/scores") == 0);
    json_decref(rows);
}

// Ctrl-C does not reach isolated programs. So the host ends these programs, without waiting for
// their time limit.
static void an_inspection_can_be_interrupted(void **state) {
    struct e2e *t = *state;
    e2e_shell(t, "RLHF_PROBE_HANG=1 \"$HOST\" plugin info "
                 "\"$RLHF_TEST_PLUGINS/probe_reward.so\" >out 2>&1 & p=$!; "
                 "for i in 1 2 3 4 5 6 7 8 9; do grep -qs . /proc/$p/task/$p/children && break; "
                 "sleep 0.2; done; sleep 0.5; "
                 "kill -INT $p; wait $p; cat out");
    e2e_says(t, "(signal 2, Interrupt)");
}

// With an argument only the tests run whose names match it: "a_program*".
int main(int argc, char **argv) {
#define PROBE_TEST(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        PROBE_TEST(as_this_user),
        PROBE_TEST(without_namespaces),
        PROBE_TEST(without_user_namespaces),
        PROBE_TEST(without_landlock),
        PROBE_TEST(without_both),
        PROBE_TEST(with_landlock_of_linux_5_13),
        PROBE_TEST(with_landlock_of_linux_6_1),
        PROBE_TEST(with_landlock_of_linux_6_7),
        PROBE_TEST(with_a_memory_limit),
        PROBE_TEST(with_a_network),
        PROBE_TEST(as_nobody),
        PROBE_TEST(as_nobody_without_namespaces),
        PROBE_TEST(as_nobody_without_landlock),
        PROBE_TEST(as_nobody_without_both),
        PROBE_TEST(without_walls_most_get_through),
        PROBE_TEST(a_constructor_cannot_forge_it),
        PROBE_TEST(nonsense_ends_the_worker),
        PROBE_TEST(a_child_rests_between_calls),
        PROBE_TEST(a_child_that_will_not_rest_is_ended),
        PROBE_TEST(a_check_has_no_terminal),
        PROBE_TEST(a_program_in_isolation),
        PROBE_TEST(a_program_with_the_users_rights),
        PROBE_TEST(a_program_that_forks),
        PROBE_TEST(a_function_in_isolation),
        PROBE_TEST(environments),
        PROBE_TEST(a_class_in_isolation),
        PROBE_TEST(a_program_rests_between_calls),
        PROBE_TEST(a_program_has_no_terminal),
        PROBE_TEST(an_inspection_can_be_interrupted),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("worker probes", tests, NULL, NULL);
}
