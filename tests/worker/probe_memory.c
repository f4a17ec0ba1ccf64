// probe_memory.c: limits that are raised again, and the files in memory that the host shares.
#include "worker/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static long raises(int what) {
    struct rlimit limit;
    if (getrlimit(what, &limit) != 0) return -1;
    if (limit.rlim_max == RLIM_INFINITY) return 0; // there is none
    limit.rlim_max += 1;
    return setrlimit(what, &limit);
}

static long raises_core(const struct bait *b) {
    (void)b;
    return raises(RLIMIT_CORE);
}

static long shortens_input(const struct bait *b) {
    (void)b;
    return ftruncate(INPUT_FD, 0);
}

static long shortens_output(const struct bait *b) {
    (void)b;
    return ftruncate(OUTPUT_FD, 0);
}

static long seals(const struct bait *b) {
    (void)b;
    return fcntl(OUTPUT_FD, F_ADD_SEALS, F_SEAL_WRITE);
}

static const struct probe limits[] = {
    {"raise_core", raises_core},
    {"shorten_input", shortens_input},
    {"shorten_output", shortens_output},
    {"seal_output", seals},
};

const struct area probe_memory[] = {AREA(WALL_LIMITS, limits), {0, NULL, 0}};
