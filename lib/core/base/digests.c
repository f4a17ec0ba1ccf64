// digests.c: see digests.h.
#include "base/digests.h"

#include "base/signals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHUNK ((size_t)1 << 17)

struct rlhf__digest {
    struct rlhf__digest *next;
    char *name;
    pthread_t thread;
    int fd;
    int joined;
    pthread_mutex_t lock; // protects size, ended, whole
    pthread_cond_t changed;
    uint64_t size; // bytes that can be read
    int32_t ended, whole;
    // Written by the thread, and read after the thread has ended.
    int32_t failed;
    char hex[65];
};

struct rlhf__digests {
    struct rlhf__digest *newest;
};

struct rlhf__digests *rlhf__digests_open(void) {
    return calloc(1, sizeof(struct rlhf__digests));
}

// ---- the thread ----

// Wait until the file has more than `done` bytes, or until its writing has ended. Returns its size.
static uint64_t wait_for_more(struct rlhf__digest *g, uint64_t done, int *ended, int *whole) {
    pthread_mutex_lock(&g->lock);
    while (g->size == done && !g->ended)
        pthread_cond_wait(&g->changed, &g->lock);
    const uint64_t size = g->size;
    *ended = g->ended;
    *whole = g->whole;
    pthread_mutex_unlock(&g->lock);
    return size;
}

static int hash_to(struct rlhf__digest *g, struct rlhf__sha256 *s, char *chunk, uint64_t from,
                   uint64_t to) {
    while (from < to) {
        const size_t want = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
        const ssize_t got = pread(g->fd, chunk, want, (off_t)from);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        rlhf__sha256_put(s, chunk, (size_t)got);
        from += (uint64_t)got;
    }
    return 1;
}

static void *work(void *arg) {
    struct rlhf__digest *g = arg;
    struct rlhf__sha256 s;
    char *chunk = malloc(CHUNK);
    int ended = 0, whole = 1, ok = chunk != NULL;
    rlhf__sha256_init(&s);
    for (uint64_t done = 0; ok && !ended && whole;) {
        const uint64_t size = wait_for_more(g, done, &ended, &whole);
        if (whole) ok = hash_to(g, &s, chunk, done, size);
        done = size;
    }
    g->failed = !ok || !whole;
    if (ok && whole) rlhf__sha256_hex(&s, g->hex);
    free(chunk);
    close(g->fd);
    return NULL;
}

// ---- the writer ----

struct rlhf__digest *rlhf__digest_start(struct rlhf__digests *d, const char *name, int fd) {
    struct rlhf__digest *g = calloc(1, sizeof *g);
    if (g) g->name = strdup(name);
    if (g && g->name) {
        g->fd = fd;
        g->whole = 1;
        pthread_mutex_init(&g->lock, NULL);
        pthread_cond_init(&g->changed, NULL);
        if (rlhf__signals_thread(&g->thread, work, g)) {
            g->next = d->newest;
            d->newest = g;
            return g;
        }
        pthread_cond_destroy(&g->changed);
        pthread_mutex_destroy(&g->lock);
    }
    close(fd);
    if (g) free(g->name);
    free(g);
    return NULL;
}

void rlhf__digest_grown(struct rlhf__digest *g, uint64_t size) {
    pthread_mutex_lock(&g->lock);
    g->size = size;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

void rlhf__digest_end(struct rlhf__digest *g, int whole) {
    if (!g) return;
    pthread_mutex_lock(&g->lock);
    g->ended = 1;
    g->whole = whole;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

// ---- the owner ----

static void join(struct rlhf__digest *g) {
    if (!g->joined) pthread_join(g->thread, NULL);
    g->joined = 1;
}

int rlhf__digests_get(struct rlhf__digests *d, const char *name, char hex[65]) {
    for (struct rlhf__digest *g = d ? d->newest : NULL; g; g = g->next) {
        if (strcmp(g->name, name) != 0) continue;
        join(g);
        if (g->failed) continue;
        memcpy(hex, g->hex, sizeof g->hex);
        return 1;
    }
    return 0;
}

void rlhf__digests_close(struct rlhf__digests *d) {
    while (d && d->newest) {
        struct rlhf__digest *g = d->newest;
        d->newest = g->next;
        join(g);
        pthread_cond_destroy(&g->changed);
        pthread_mutex_destroy(&g->lock);
        free(g->name);
        free(g);
    }
    free(d);
}
