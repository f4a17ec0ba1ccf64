// probe_memory.c: tries to raise limits, and to change the memory files that the host shares.
#include "worker/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

static long raises(int what) {
    struct rlimit limit;
    if (getrlimit(what, &limit) != 0) return -1;
    if (limit.rlim_max == RLIM_INFINITY) return 0; // unlimited already
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

enum { LARGE = 1 << 30 };

static long grows_input(const struct bait *b) {
    (void)b;
    return ftruncate(INPUT_FD, LARGE);
}

static long grows_output(const struct bait *b) {
    (void)b;
    return ftruncate(OUTPUT_FD, LARGE);
}

static long writes_output(const struct bait *b) {
    (void)b;
    return pwrite(OUTPUT_FD, "x", 1, LARGE);
}

static long places_output(const struct bait *b) {
    (void)b;
    return fallocate(OUTPUT_FD, 0, 0, LARGE);
}

// Tries to let the file grow by one byte, in one of three ways.
static long grows(int fd, int how) {
    struct stat s;
    if (fstat(fd, &s) != 0) return -1;
    if (how == 0) return ftruncate(fd, s.st_size + 1);
    if (how == 1) return pwrite(fd, "x", 1, s.st_size);
    return fallocate(fd, 0, s.st_size, 1);
}

#define GROWS(name, fd, how)                                                                       \
    static long name(const struct bait *b) {                                                       \
        (void)b;                                                                                   \
        return grows(fd, how);                                                                     \
    }
GROWS(extends_input, INPUT_FD, 0)
GROWS(extends_output, OUTPUT_FD, 0)
GROWS(appends_input, INPUT_FD, 1)
GROWS(appends_output, OUTPUT_FD, 1)
GROWS(allocates_input, INPUT_FD, 2)
GROWS(allocates_output, OUTPUT_FD, 2)

static long makes_large_file(const struct bait *b) {
    (void)b;
    const int fd = memfd_create("probe", MFD_CLOEXEC);
    return fd < 0 ? -1 : ftruncate(fd, LARGE);
}

static long makes_shared_memory(const struct bait *b) {
    (void)b;
    const int id = shmget(IPC_PRIVATE, LARGE, 0600 | IPC_CREAT);
    if (id >= 0) shmctl(id, IPC_RMID, NULL);
    return id < 0 ? -1 : 0;
}

static long makes_queue(const struct bait *b) {
    (void)b;
    const int id = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
    if (id >= 0) msgctl(id, IPC_RMID, NULL);
    return id < 0 ? -1 : 0;
}

static long makes_large_pipe(const struct bait *b) {
    int fd[2];
    (void)b;
    return pipe2(fd, O_CLOEXEC) != 0 ? -1 : fcntl(fd[0], F_SETPIPE_SZ, 1 << 20);
}

static long raises_size(const struct bait *b) {
    (void)b;
    return raises(RLIMIT_FSIZE);
}

static const struct probe uncounted[] = {
    {"shared_memory", makes_shared_memory},
    {"message_queue", makes_queue},
    {"large_pipe", makes_large_pipe},
};

static const struct probe growth[] = {
    {"extend_input", extends_input},     {"extend_output", extends_output},
    {"append_input", appends_input},     {"append_output", appends_output},
    {"allocate_input", allocates_input}, {"allocate_output", allocates_output},
};

static const struct probe limits[] = {
    {"grow_input", grows_input},         {"grow_output", grows_output},
    {"write_output", writes_output},     {"place_output", places_output},
    {"large_memfd", makes_large_file},   {"raise_size", raises_size},
    {"raise_core", raises_core},         {"shorten_input", shortens_input},
    {"shorten_output", shortens_output}, {"seal_output", seals},
};

const struct area probe_memory[] = {AREA(WALL_LIMITS, limits),
                                    AREA(WALL_MEMORY, growth),
                                    AREA(WALL_CALLS, uncounted),
                                    {0, NULL, 0}};
