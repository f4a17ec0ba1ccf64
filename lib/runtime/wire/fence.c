// fence.c: see fence.h. The state is static, because signal handlers can reach only static data.
#include "wire/fence.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GAP = 65536, MARK = 0xc5, PROBE = 16 << 20 };

static struct rlhf__fence *volatile watched;

int rlhf__fence_open(struct rlhf__fence *f, int input_fd, int output_fd) {
    memset(f, 0, sizeof *f);
    f->input_fd = input_fd;
    f->output_fd = output_fd;
    void *note = mmap(NULL, sizeof *f->note, PROT_READ | PROT_WRITE, MAP_SHARED, output_fd, 0);
    if (note == MAP_FAILED) return -1;
    f->note = note;
    return 0;
}

int rlhf__fence_input(struct rlhf__fence *f, uint64_t bytes) {
    if (bytes <= f->input_bytes) return 0;
    if (f->input) munmap(f->input, (size_t)f->input_bytes);
    f->input_bytes = 0;
    f->input = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, f->input_fd, 0);
    if (f->input == MAP_FAILED) {
        f->input = NULL;
        return -1;
    }
    f->input_bytes = bytes;
    return 0;
}

// Map the blocks one after another, with a gap before each and after the last.
static int map_blocks(struct rlhf__fence *f) {
    const struct rlhf__out_places *p = &f->places;
    if (f->base) munmap(f->base, (size_t)f->room);
    f->room = p->block[RLHF__OUTS] - p->block[0] + (RLHF__OUTS + 1) * (uint64_t)GAP;
    void *base =
        mmap(NULL, (size_t)f->room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    f->base = base == MAP_FAILED ? NULL : base;
    if (!f->base) return -1;
    char *at = f->base + GAP;
    for (int i = 0; i < RLHF__OUTS; i++) {
        const size_t bytes = (size_t)(p->block[i + 1] - p->block[i]);
        f->block[i] = at;
        if (bytes && mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, f->output_fd,
                          (off_t)p->block[i]) == MAP_FAILED)
            return -1;
        at += bytes + GAP;
    }
    return 0;
}

static size_t slack(const struct rlhf__fence *f, int i) {
    return (size_t)(f->places.at[i] - f->places.block[i]);
}

static char *array_of(const struct rlhf__fence *f, int i) { return f->block[i] + slack(f, i); }

int rlhf__fence_output(struct rlhf__fence *f, uint32_t n, uint64_t total, int has_token,
                       rlhf_reward_out *out) {
    struct rlhf__out_places p;
    rlhf__out_places(n, total, has_token, &p);
    const int same = f->base && memcmp(p.block, f->places.block, sizeof p.block) == 0;
    f->places = p;
    if (!same && map_blocks(f) != 0) return -1;
    for (int i = 0; i < RLHF__OUTS; i++)
        if (p.bytes[i]) memset(f->block[i], MARK, slack(f, i) < 256 ? slack(f, i) : 256);
    for (int i = 0; i < RLHF__OUTS; i++)
        if (p.bytes[i] && slack(f, i) > 256) memset(array_of(f, i) - 256, MARK, 256);
    *out = (rlhf_reward_out){.seq = (float *)(void *)array_of(f, RLHF__OUT_SEQ),
                             .verdict = (uint8_t *)array_of(f, RLHF__OUT_VERDICT),
                             .failed = (uint8_t *)array_of(f, RLHF__OUT_FAILED)};
    if (has_token) out->token = (float *)(void *)array_of(f, RLHF__OUT_TOKEN);
    return 0;
}

unsigned rlhf__fence_before(const struct rlhf__fence *f) {
    for (int i = 0; i < RLHF__OUTS; i++) {
        const size_t front = slack(f, i) < 256 ? slack(f, i) : 256;
        const char *at = array_of(f, i) - front;
        for (size_t k = 0; f->places.bytes[i] && k < front; k++)
            if ((unsigned char)at[k] != MARK) return (unsigned)i + 1;
    }
    return 0;
}

// ---- the end ----

static void note_fence(const struct rlhf__fence *f, const char *at) {
    const char *input = f->input;
    if (input && at >= input && at < input + f->input_bytes)
        atomic_store(&f->note->fence, RLHF__FENCE_INPUT);
    if (!f->base || at < f->base || at >= f->base + f->room) return;
    for (int i = 0; i < RLHF__OUTS; i++) {
        const char *end = array_of(f, i) + f->places.bytes[i];
        const int behind = at >= end && at < end + GAP / 2;
        const int before = at < f->block[i] && at >= f->block[i] - GAP / 2;
        if (!behind && !before) continue;
        atomic_store(&f->note->before, (unsigned)before);
        atomic_store(&f->note->fence, (unsigned)i + 1);
    }
}

static void on_fatal(int number, siginfo_t *info, void *context) {
    (void)context;
    const struct rlhf__fence *f = watched;
    if ((number == SIGSEGV || number == SIGBUS) && info->si_code > 0) note_fence(f, info->si_addr);
    atomic_store(&f->note->signal, (unsigned)number);
    if (f->limited &&
        mmap(NULL, PROBE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        atomic_store(&f->note->no_memory, 1);
    // After this handler returns, the instruction that faulted runs again, and its fault terminates
    // the process. If the signal was sent, not caused by a fault, raise it again.
    signal(number, SIG_DFL);
    if (info->si_code <= 0) raise(number);
}

void rlhf__fence_watch(struct rlhf__fence *f) {
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction act;
    memset(&act, 0, sizeof act);
    watched = f;
    act.sa_sigaction = on_fatal;
    act.sa_flags = SA_SIGINFO | SA_ONSTACK; // alternate stack set up by last_words.c
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        sigaction(fatal[i], &act, NULL);
}

const char *rlhf__fence_name(unsigned fence) {
    static const char *const name[] = {
        "", "out->seq", "out->token", "out->verdict", "out->failed", "its input"};
    return fence < sizeof name / sizeof *name ? name[fence] : "";
}
