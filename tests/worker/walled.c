// walled.c: run a program as another user, or on a kernel that seems to lack what walls are made
// of: walled [nobody] [no-namespaces] [no-landlock] PROGRAM ARGUMENT...
//
// System calls newer than any that the filter of a worker names fail with EXDEV, so that a probe
// can tell that filter from the kernel. Exit status 77: it could not be done.
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NOBODY = 65534, SKIPPED = 77, FIRST_NEW = 472, MOST = 32 };

static unsigned short put(struct sock_filter *op, unsigned short n, int number, int why) {
    op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1);
    op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)why);
    return n;
}

static int filter(int no_namespaces, int no_landlock) {
    const unsigned spaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS |
                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    struct sock_filter op[MOST];
    unsigned short n = 0;
    op[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FIRST_NEW, 0, 1);
    op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV);
    if (no_landlock) n = put(op, n, 444, EOPNOTSUPP); // landlock_create_ruleset
    if (no_namespaces) {
        n = put(op, n, SYS_unshare, EPERM);
        n = put(op, n, 435, ENOSYS); // clone3
        op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
        op[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                               offsetof(struct seccomp_data, args));
        op[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, spaces, 0, 1);
        op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
    op[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog all = {n, op};
    if (geteuid() != 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0);
}

static int become_nobody(void) {
    return setgroups(0, NULL) | setresgid(NOBODY, NOBODY, NOBODY) |
           setresuid(NOBODY, NOBODY, NOBODY);
}

int main(int argc, char **argv) {
    int no_namespaces = 0, no_landlock = 0, i = 1;
    for (; i < argc; i++) {
        if (strcmp(argv[i], "nobody") == 0) {
            if (become_nobody() != 0) return SKIPPED;
        } else if (strcmp(argv[i], "no-namespaces") == 0) {
            no_namespaces = 1;
        } else if (strcmp(argv[i], "no-landlock") == 0) {
            no_landlock = 1;
        } else {
            break;
        }
    }
    if (i == argc || filter(no_namespaces, no_landlock) != 0) return SKIPPED;
    execvp(argv[i], argv + i);
    fprintf(stderr, "walled: %s: %s\n", argv[i], strerror(errno));
    return errno == EACCES ? SKIPPED : 127;
}
