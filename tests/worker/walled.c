// walled.c: runs a program as another user, or on a simulated kernel that lacks features which
// confine workers:
//   walled [nobody] [no-namespaces] [no-users] [no-landlock] [landlock=N] PROGRAM ARGUMENT...
//
// With landlock=N, the kernel appears to have landlock version N. A helper process answers the
// query for the version instead of the kernel. The helper runs as long as any process can ask.
//
// If a system call is newer than all calls in a worker's filter, it fails with EXDEV, so that a
// probe can distinguish that filter from the kernel. Exit status 77 means that this is not possible
// on this machine.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, SKIPPED = 77, FIRST_NEW = 472, MOST = 32 };

static unsigned short put(struct sock_filter *op, unsigned short n, int number, int why) {
    op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
    op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)why);
    return n;
}

// `no_namespaces` is a mask of CLONE_NEW*.
static int filter(unsigned no_namespaces, int no_landlock) {
    struct sock_filter op[MOST];
    unsigned short n = 0;
    op[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_NEW, 0, 1);
    op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV);
    if (no_landlock) n = put(op, n, 444, EOPNOTSUPP); // landlock_create_ruleset
    if (no_namespaces) {
        op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 4);
        op[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                               offsetof(struct seccomp_data, args));
        op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, no_namespaces, 0, 1);
        op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
        op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        n = put(op, n, 435, ENOSYS); // clone3
        op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
        op[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                               offsetof(struct seccomp_data, args));
        op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, no_namespaces, 0, 1);
        op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog all = {n, op};
    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0);
}

// ---- a different version of landlock ----

static int send_fd(int to, int fd) {
    char byte = 0, room[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec one = {&byte, 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = room};
    m.msg_controllen = sizeof room;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(to, &m, 0) == 1 ? 0 : -1;
}

static int receive_fd(int from) {
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec one = {&byte, 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = room};
    int fd = -1;
    m.msg_controllen = sizeof room;
    if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&m))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

_Noreturn static void answer(int from, long version) {
    struct pollfd p = {receive_fd(from), POLLIN, 0};
    close_range(0, (unsigned)p.fd - 1, 0); // a terminal or a pipe that other processes wait for
    while (p.fd >= 0 && (poll(&p, 1, -1) > 0 || errno == EINTR) && !(p.revents & POLLHUP)) {
        struct seccomp_notif asked = {0};
        if (ioctl(p.fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) continue;
        struct seccomp_notif_resp reply = {.id = asked.id, .val = version};
        ioctl(p.fd, SECCOMP_IOCTL_NOTIF_SEND, &reply);
    }
    _exit(0);
}

static int pretend(long version) {
    struct sock_filter op[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 16),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1), // the query of the version
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog all = {sizeof op / sizeof *op, op};
    int ends[2];
    if (version < 0) return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        if (fork() == 0) answer(ends[1], version);
        _exit(0);
    }
    close(ends[1]);
    if (pid < 0 || waitpid(pid, NULL, 0) != pid) return -1;
    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    const int fd =
        (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &all);
    const int bad = fd < 0 || send_fd(ends[0], fd) != 0;
    if (fd >= 0) close(fd);
    close(ends[0]);
    return bad ? -1 : 0;
}

// ---- all ----

static int become_nobody(void) {
    return setgroups(0, NULL) | setresgid(NOBODY, NOBODY, NOBODY) |
           setresuid(NOBODY, NOBODY, NOBODY);
}

int main(int argc, char **argv) {
    unsigned no_namespaces = 0;
    int no_landlock = 0, i = 1;
    long version = -1;
    for (; i < argc; i++) {
        if (strcmp(argv[i], "nobody") == 0) {
            if (become_nobody() != 0) return SKIPPED;
        } else if (strcmp(argv[i], "no-namespaces") == 0) {
            no_namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS |
                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
        } else if (strcmp(argv[i], "no-users") == 0) {
            no_namespaces = CLONE_NEWUSER;
        } else if (strcmp(argv[i], "no-landlock") == 0) {
            no_landlock = 1;
        } else if (strncmp(argv[i], "landlock=", 9) == 0) {
            version = strtol(argv[i] + 9, NULL, 10);
        } else {
            break;
        }
    }
    if (i == argc || pretend(version) != 0 || filter(no_namespaces, no_landlock) != 0)
        return SKIPPED;
    execvp(argv[i], argv + i);
    fprintf(stderr, "walled: %s: %s\n", argv[i], strerror(errno));
    return errno == EACCES ? SKIPPED : 127;
}
