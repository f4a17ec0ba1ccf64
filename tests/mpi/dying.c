// dying.c: a collective that passes every call on to a real collective, and kills its process
// before one of the calls. Environment:
//
//   DYING_OVER   the real collective's shared object
//   DYING_RANK   the rank that dies
//   DYING_AT     the number of the call of exchange() or gather(), from 1, before which it dies;
//                0: never
//   DYING_COUNT  a file that receives the number of rank 0's calls at the end
#include <rlhf/draft/collective.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct dying {
    const rlhf_collectives *real;
    rlhf_collective *over;
    rlhf_collective table;
    long at, calls;
} self;

static long number(const char *variable) {
    const char *text = getenv(variable);
    return text ? strtol(text, NULL, 10) : 0;
}

static const rlhf_collectives *real(void) {
    const char *path = getenv("DYING_OVER");
    void *lib = path && !self.real ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = lib ? dlsym(lib, RLHF_COLLECTIVES_SYMBOL) : NULL;
    if (symbol) self.real = ((rlhf_collectives_fn)(uintptr_t)symbol)();
    return self.real;
}

static int32_t started(void) { return real() ? real()->started() : 0; }

static void count(void) {
    if (++self.calls == self.at) raise(SIGKILL);
}

static rlhf_status exchange(void *ctx, const rlhf_block *send, const rlhf_block *recv,
                            uint64_t *ticket) {
    count();
    return self.over->exchange(ctx, send, recv, ticket);
}

static rlhf_status gather(void *ctx, const void *own, uint64_t bytes, void *all) {
    count();
    return self.over->gather(ctx, own, bytes, all);
}

static rlhf_status create(const rlhf_collective_options *o, rlhf_collective **out, char *err,
                          uint64_t err_cap) {
    if (!real()) {
        snprintf(err, err_cap, "DYING_OVER names no collective");
        return RLHF_E_INVALID;
    }
    const rlhf_status st = real()->create(o, &self.over, err, err_cap);
    if (st != RLHF_OK) return st;
    self.table = *self.over;
    self.table.exchange = exchange;
    self.table.gather = gather;
    if (self.over->rank == number("DYING_RANK")) self.at = number("DYING_AT");
    *out = &self.table;
    return RLHF_OK;
}

static void destroy(rlhf_collective *c) {
    const char *path = getenv("DYING_COUNT");
    FILE *f = c && path && c->rank == 0 ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", self.calls);
        fclose(f);
    }
    if (c) real()->destroy(self.over);
}

static const rlhf_collectives dying = {.size = sizeof dying,
                                       .major = RLHF_COLLECTIVE_MAJOR,
                                       .minor = RLHF_COLLECTIVE_MINOR,
                                       .name = "dying",
                                       .summary = "kills its process, for a test",
                                       .started = started,
                                       .create = create,
                                       .destroy = destroy};

const rlhf_collectives *rlhf_collective_v0(void) { return &dying; }
