// guard.c: see guard.h.
#include "check/guard.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct guard {
    struct guard *next;
    char *map, *at; // start of all pages; start of the n bytes
    size_t n_map, n;
    int32_t rule, closed;
    const char *what;
};

struct rlhf__guards {
    struct guard *first;
    struct rlhf__child_log *log;
    struct rlhf__guards *next; // next one in the list of all live ones
};

// The log for this child's fault handler, which can use only a global variable.
static struct rlhf__child_log *told;
static struct rlhf__guards *alive;

static const struct guard *guard_of(const char *address) {
    for (const struct rlhf__guards *all = alive; all; all = all->next)
        for (const struct guard *g = all->first; g; g = g->next)
            if (address >= g->map && address < g->map + g->n_map) return g;
    return NULL;
}

static void on_fault(int number, siginfo_t *info, void *context) {
    const char *address = info->si_addr;
    const struct guard *g = guard_of(address);
    (void)context;
    if (g && told) {
        const long off = (long)(address - g->at);
        told->fault_rule = g->rule + 1;
        if (off >= 0 && (size_t)off < g->n)
            snprintf(told->fault, sizeof told->fault, "it wrote to %s, which it may only read",
                     g->what);
        else
            snprintf(told->fault, sizeof told->fault,
                     "it touched %s at byte %ld, of which there are %zu", g->what, off, g->n);
    }
    signal(number, SIG_DFL); // the fault happens again, and ends the process
}

void rlhf__guard_install(struct rlhf__child_log *log) {
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_size = (size_t)1 << 16};
    stack.ss_sp = malloc(stack.ss_size); // for the rest of the process
    told = log;
    if (stack.ss_sp) sigaltstack(&stack, NULL);
    sigemptyset(&act.sa_mask);
    sigaction(SIGSEGV, &act, NULL);
    sigaction(SIGBUS, &act, NULL);
}

struct rlhf__guards *rlhf__guards_open(struct rlhf__child_log *log) {
    struct rlhf__guards *all = calloc(1, sizeof *all);
    if (!all) return NULL;
    all->log = log;
    all->next = alive;
    alive = all;
    return all;
}

void rlhf__guards_close(struct rlhf__guards *all) {
    if (!all) return;
    for (struct rlhf__guards **at = &alive; *at; at = &(*at)->next) {
        if (*at != all) continue;
        *at = all->next;
        break;
    }
    while (all->first) {
        struct guard *g = all->first;
        all->first = g->next;
        munmap(g->map, g->n_map);
        free(g);
    }
    free(all);
}

void *rlhf__guard_take(struct rlhf__guards *all, size_t n, int32_t side, int32_t rule,
                       const char *what) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t inner = (n + page - 1) / page * page;
    struct guard *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->n_map = inner + 2 * page;
    void *map = mmap(NULL, g->n_map, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED ||
        (inner && mprotect((char *)map + page, inner, PROT_READ | PROT_WRITE) != 0)) {
        if (map != MAP_FAILED) munmap(map, g->n_map);
        free(g);
        return NULL;
    }
    g->map = map;
    g->at = g->map + page + (side == RLHF__GUARD_BEGIN ? 0 : inner - n);
    g->n = n;
    g->rule = rule;
    g->what = what;
    g->next = all->first;
    all->first = g;
    return g->at;
}

void rlhf__guards_protect(struct rlhf__guards *all) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (struct guard *g = all->first; g; g = g->next)
        if (!g->closed && g->n_map > 2 * page)
            g->closed = mprotect(g->map + page, g->n_map - 2 * page, PROT_READ) == 0;
}

// ---- structs ----

void *rlhf__guard_struct(struct rlhf__guards *guards, enum rlhf__struct which, uint32_t minor) {
    const uint32_t size = rlhf__struct_size(which, minor);
    void *at = guards ? rlhf__guard_take(guards, size, RLHF__GUARD_END, RLHF__CHECK_ROOM,
                                         rlhf__struct_name(which))
                      : NULL;
    if (at) memcpy(at, &size, sizeof size);
    return at;
}

void rlhf__guard_struct_end(enum rlhf__struct which, const void *at, void *out, uint32_t minor,
                            struct rlhf__child_log *log) {
    const uint32_t size = rlhf__struct_size(which, minor);
    const uint32_t own = rlhf__struct_size(which, RLHF_ABI_MINOR);
    uint32_t found;
    memcpy(&found, at, sizeof found);
    if (found != size)
        rlhf__child_log_found(log, RLHF__CHECK_ROOM, "the size of the host's %s was %u, is %u",
                              rlhf__struct_name(which), size, found);
    const uint32_t reserved = rlhf__struct_reserved(which, at);
    if (reserved)
        rlhf__child_log_found(log, RLHF__CHECK_ROOM, "`reserved` of the host's %s is %u",
                              rlhf__struct_name(which), reserved);
    memset(out, 0, own);
    memcpy(out, at, size);
}

void rlhf__guard_lent(const char *name, const struct rlhf__lent *lent, size_t n,
                      struct rlhf__child_log *log) {
    struct rlhf__error err;
    if (rlhf__lent_kept(name, lent, n, &err) < 0)
        rlhf__child_log_found(log, RLHF__CHECK_ROOM, "%s", err.text);
}

void rlhf__guard_kept(struct rlhf__tails *tails, struct rlhf__child_log *log) {
    char why[192];
    if (rlhf__tails_end(tails, why, sizeof why))
        rlhf__child_log_found(log, RLHF__CHECK_ROOM, "%s", why);
}
