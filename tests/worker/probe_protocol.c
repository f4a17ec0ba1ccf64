// probe_protocol.c: a plugin that itself sends messages to the host, as if it were its worker.
#include "worker/probe.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- frames ----

struct frame {
    unsigned char bytes[1024];
    size_t n;
};

static void put(struct frame *f, const void *bytes, size_t n) {
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

static void put_u32(struct frame *f, uint32_t v) { put(f, &v, sizeof v); }
static void put_u64(struct frame *f, uint64_t v) { put(f, &v, sizeof v); }

static void put_text(struct frame *f, const char *text) {
    put_u64(f, strlen(text));
    put(f, text, strlen(text));
}

// Writes a text in the form that descriptions use for texts that may be missing.
static void put_given(struct frame *f, const char *text) {
    put_u32(f, 1);
    put_text(f, text);
}

static long send_frame(int fd, uint32_t kind, const struct frame *body) {
    struct frame f = {.n = 0};
    put_u32(&f, kind);
    put_u32(&f, 0);
    put_u64(&f, body->n);
    put(&f, body->bytes, body->n);
    return (long)write(fd, f.bytes, f.n);
}

// ---- before the first request ----

static void put_answer(struct frame *f) {
    put_u32(f, 0); // RLHF_OK
    put_text(f, "");
}

// Reads one request, which is ignored.
static int take_request(void) {
    unsigned char bytes[4096];
    uint64_t left;
    if (read(ASK_FD, bytes, 16) != 16) return 0;
    memcpy(&left, bytes + 8, sizeof left);
    while (left > 0) {
        const ssize_t n = read(ASK_FD, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes);
        if (n <= 0) return 0;
        left -= (uint64_t)n;
    }
    return 1;
}

// Takes the worker's place while the file is being opened, and answers all requests from then on.
// The answer describes the plugin. If RLHF_PROBE_FORGE is "walls", the answer begins with a list of
// walls, as in earlier versions. Otherwise the answer lacks this list.
__attribute__((constructor)) static void forge(void) {
    const char *how = getenv("RLHF_PROBE_FORGE");
    struct frame f = {.n = 0};
    if (!how) return;
    put_answer(&f);
    if (strcmp(how, "walls") == 0) put_text(&f, "forged walls");
    put_given(&f, "org.rlhf-host.test.probe_reward");
    put_given(&f, "1");
    put_given(&f, "forged");
    for (int i = 0; i < 3; i++) { // vendor, url and license are missing
        put_u32(&f, 0);
        put_text(&f, "");
    }
    for (int i = 0; i < 6; i++) // minor, state, flags, flags of ops, features, options
        put_u32(&f, 0);
    send_frame(ASK_FD, 0, &f);
    while (take_request()) {
        f.n = 0;
        put_answer(&f);
        put_u32(&f, 0);
        put_text(&f, "");
        send_frame(ASK_FD, 0, &f);
    }
    _exit(0);
}

// ---- in score() ----

// Sends an answer with the number of a call that does not exist.
static long unknown_call(const struct bait *b) {
    const struct frame f = {.n = 0};
    (void)b;
    return send_frame(CALL_FD, 77, &f);
}

// Sends a length above the maximum.
static long endless_frame(const struct bait *b) {
    struct frame f = {.n = 0};
    (void)b;
    put_u32(&f, 1);
    put_u32(&f, 0);
    put_u64(&f, UINT64_MAX);
    return (long)write(CALL_FD, f.bytes, f.n);
}

// Sends an answer before the worker does.
static long early_answer(const struct bait *b) {
    struct frame f = {.n = 0};
    (void)b;
    put_u32(&f, 0);
    put_text(&f, "");
    put_u32(&f, 0);
    put_text(&f, "");
    return send_frame(ASK_FD, 0, &f);
}

const struct probe probe_alone[] = {
    {"unknown_call", unknown_call}, {"endless_frame", endless_frame},
    {"early_answer", early_answer}, {"burn", probe_burns},
    {"wake", probe_wakes},          {NULL, NULL},
};
