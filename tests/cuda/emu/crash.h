// crash.h: reports where a kernel accessed invalid memory.
#ifndef RLHF_TESTS_CUDA_EMU_CRASH_H
#define RLHF_TESTS_CUDA_EMU_CRASH_H

#include "../fake_runtime.h"
#include "shared.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

namespace emu {

inline struct sigaction crash_before[3];
inline const int crash_signals[3] = {SIGSEGV, SIGBUS, SIGILL};
inline char crash_stack[64 * 1024];

// Prints the source line of a machine address if addr2line is available.
inline void crash_line(const void *pc) {
    Dl_info so;
    if (!dladdr(pc, &so) || !so.dli_fname) return;
    char at[32];
    snprintf(at, sizeof at, "%p", (void *)((const char *)pc - (const char *)so.dli_fbase));
    fprintf(stderr, "emu:   at %s, %s\n", so.dli_fname, at);
    const pid_t child = fork();
    if (child == 0) {
        dup2(2, 1);
        execlp("addr2line", "addr2line", "-pfsie", so.dli_fname, at, (char *)NULL);
        _exit(0);
    }
    if (child > 0) waitpid(child, NULL, 0);
}

inline void crash_say(int sig, siginfo_t *info, void *context) {
    for (int i = 0; i < 3; i++)
        sigaction(crash_signals[i], &crash_before[i], NULL);
    if (!self) { // not in a kernel: use the default action
        raise(sig);
        return;
    }
    char what[256] = "an access that is not aligned to its size";
    if (sig != SIGILL && !describe_shared(info->si_addr, what, sizeof what))
        emu_describe_address(info->si_addr, what, sizeof what);
    fprintf(stderr, "emu: kernel %s, block (%u,%u,%u), thread %u, after line %d: %s\n", kernel_name,
            block_idx.x, block_idx.y, block_idx.z, self->linear, self->line, what);
    crash_line((const void *)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
    abort();
}

inline void crash_watch() {
    static bool has_stack;
    if (!has_stack) {
        stack_t s;
        memset(&s, 0, sizeof s);
        s.ss_sp = crash_stack;
        s.ss_size = sizeof crash_stack;
        sigaltstack(&s, NULL);
        has_stack = true;
    }
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = crash_say;
    a.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < 3; i++)
        sigaction(crash_signals[i], &a, &crash_before[i]);
}
inline void crash_unwatch() {
    for (int i = 0; i < 3; i++)
        sigaction(crash_signals[i], &crash_before[i], NULL);
}

} // namespace emu
#endif
