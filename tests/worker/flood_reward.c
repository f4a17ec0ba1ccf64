// flood_reward.c: a reward that sends its host too many or malformed messages.
#include "support/plugin.h"

#include <rlhf/reward.h>
#include <rlhf/service.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

// The descriptors of a worker, and some kinds of frames (lib/runtime/wire/wire.h).
enum { ASK = 3, CALL = 4, ANSWER = 0, LOG = 1, ENCODE = 8 };

struct self;
typedef rlhf_status flood(struct self *s);

struct config {
    int32_t how, reserved;
};

struct self {
    const rlhf_host *host;
    const struct config *config;
};

TEST_INSTANCE(struct self)

// ---- frames ----

static void put_le(unsigned char *p, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++)
        p[i] = (unsigned char)(v >> (8 * i));
}

// Writes the head of a frame and then the n bytes. Blocks while the host does not read.
static void send_frame(int fd, uint32_t kind, uint64_t says, const void *bytes, size_t n) {
    unsigned char head[16] = {0};
    put_le(head, kind, 4);
    put_le(head + 8, says, 8);
    if (write(fd, head, sizeof head) != (ssize_t)sizeof head) exit(8);
    for (size_t at = 0; at < n;) {
        const ssize_t put = write(fd, (const char *)bytes + at, n - at);
        if (put <= 0) exit(8);
        at += (size_t)put;
    }
}

// Ends the process only after four seconds. If the host saw the error first and then waited for the
// process to end, the test would notice.
static rlhf_status end_later(void) {
    sleep(4);
    exit(9);
}

// ---- attacks ----

static rlhf_status nothing(struct self *s) {
    (void)s;
    return RLHF_OK;
}

// Sends a name of characters that are each displayed as four characters.
static rlhf_status long_name(struct self *s) {
    char name[300];
    memset(name, '\033', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    rlhf_metric_last(s->host, name, 1);
    return RLHF_OK;
}

static rlhf_status many_metrics(struct self *s) {
    char name[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "metric%d", i);
        rlhf_metric_last(s->host, name, i);
    }
    return RLHF_OK;
}

static rlhf_status many_messages(struct self *s) {
    for (int i = 0; i < 1100000; i++)
        s->host->log(s->host, RLHF_LOG_INFO, "");
    return RLHF_OK;
}

static rlhf_status long_lines(struct self *s) {
    char *line = malloc((size_t)1 << 16);
    if (!line) return RLHF_E_NOMEM;
    memset(line, 'x', (size_t)1 << 16);
    line[((size_t)1 << 16) - 1] = '\0';
    for (int i = 0; i < 5000; i++)
        s->host->log(s->host, RLHF_LOG_INFO, line);
    free(line);
    return RLHF_OK;
}

static rlhf_status much_printed(struct self *s) {
    char lines[4096];
    (void)s;
    memset(lines, '\n', sizeof lines);
    for (int i = 0; i < 80000; i++)
        if (write(1, lines, sizeof lines) < 0) return RLHF_E_IO;
    return RLHF_OK;
}

// Logs a line so long that it is cut before it is sent.
static rlhf_status one_long_line(struct self *s) {
    char *line = malloc((size_t)8 << 20);
    if (!line) return RLHF_E_NOMEM;
    memset(line, 'x', (size_t)8 << 20);
    line[((size_t)8 << 20) - 1] = '\0';
    s->host->log(s->host, RLHF_LOG_INFO, line);
    free(line);
    return RLHF_OK;
}

static rlhf_status no_answer(struct self *s) {
    (void)s;
    send_frame(ASK, 77, 4, "soup", 4);
    return end_later();
}

static rlhf_status no_call(struct self *s) {
    (void)s;
    send_frame(CALL, 77, 4, "soup", 4);
    return end_later();
}

static rlhf_status no_frame(struct self *s) {
    (void)s;
    if (write(CALL, "this is not a frame", 19) != 19) return RLHF_E_IO;
    return end_later();
}

static rlhf_status no_text(struct self *s) {
    (void)s;
    send_frame(CALL, LOG, 4, "\0\0\0\0", 4); // a level without text
    return end_later();
}

static rlhf_status long_answer(struct self *s) {
    (void)s;
    send_frame(ASK, ANSWER, (uint64_t)512 << 20, "", 0);
    return end_later();
}

// Sends requests one after the other. The worker never reads their replies.
static rlhf_status unread_replies(struct self *s) {
    enum { TEXT = 1 << 20 };
    const rlhf_tokenizer_service *service = s->host->service(s->host, RLHF_SVC_TOKENIZER);
    rlhf_tokenizer *t = NULL;
    unsigned char *request = calloc(1, 16 + TEXT);
    if (!service || !request) return RLHF_E_NOMEM;
    const rlhf_tokenizer_open how = {.size = sizeof how};
    RLHF_TRY(service->open(s->host, &how, &t));
    put_le(request, 1, 4);            // the handle
    put_le(request + 4, 1u << 30, 4); // room for tokens
    put_le(request + 8, TEXT, 8);
    memset(request + 16, 'a', TEXT);
    for (;;)
        send_frame(CALL, ENCODE, 16 + TEXT, request, 16 + TEXT);
}

// Requests work from the host again and again. The time that the host works does not count as the
// worker's time, but it is limited, too.
static rlhf_status calls_for_ever(struct self *s) {
    const rlhf_tokenizer_service *service = s->host->service(s->host, RLHF_SVC_TOKENIZER);
    rlhf_tokenizer *t = NULL;
    int32_t ids[8];
    const rlhf_encode_in q = {.size = sizeof q, .text = {"It was", 6}};
    rlhf_encode_out to = {.size = sizeof to, .cap = 8, .ids = ids};
    if (!service) return RLHF_E_INTERNAL;
    const rlhf_tokenizer_open how = {.size = sizeof how};
    RLHF_TRY(service->open(s->host, &how, &t));
    for (;;)
        service->encode(s->host, t, &q, &to);
}

// Opens tokenizers until it may not. The host closes them.
static rlhf_status many_objects(struct self *s) {
    const rlhf_tokenizer_service *service = s->host->service(s->host, RLHF_SVC_TOKENIZER);
    const rlhf_tokenizer_open how = {.size = sizeof how};
    rlhf_tokenizer *t = NULL;
    if (!service) return RLHF_E_INTERNAL;
    for (int i = 0; i < 64; i++)
        if (service->open(s->host, &how, &t) != RLHF_OK) return RLHF_E_INTERNAL;
    const rlhf_status st = service->open(s->host, &how, &t);
    return st == RLHF_E_UNSUPPORTED && !t ? st : RLHF_E_INTERNAL;
}

// Passes no array for the ids that it asks for.
static rlhf_status no_array(struct self *s) {
    const rlhf_tokenizer_service *service = s->host->service(s->host, RLHF_SVC_TOKENIZER);
    const rlhf_tokenizer_open how = {.size = sizeof how};
    const rlhf_encode_in q = {.size = sizeof q, .text = {"It was", 6}};
    rlhf_encode_out to = {.size = sizeof to, .cap = 8};
    rlhf_tokenizer *t = NULL;
    if (!service) return RLHF_E_INTERNAL;
    RLHF_TRY(service->open(s->host, &how, &t));
    const rlhf_status st = service->encode(s->host, t, &q, &to);
    service->close(s->host, t);
    return st;
}

// Allocates files in memory, which do not count as address space.
static rlhf_status memory_files(struct self *s) {
    for (int i = 0; i < 100; i++) {
        const int fd = memfd_create("flood", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, 1 << 20) != 0)
            return s->host->fail(s->host, RLHF_E_NOMEM, "there is no memory for a file");
    }
    return RLHF_OK;
}

// Starts processes in separate sessions that only compute.
static rlhf_status fork_bomb(struct self *s) {
    (void)s;
    for (int i = 0; i < 1000 && fork() != 0; i++)
        continue;
    setsid();
    signal(SIGXCPU, SIG_IGN);
    for (volatile unsigned k = 0;;)
        k++;
    return RLHF_OK;
}

// Starts processes that leave the worker's group and session, if that is allowed, and hold its
// sockets open.
static rlhf_status children(struct self *s) {
    char line[64];
    for (int i = 0; i < 4; i++) {
        if (fork() != 0) continue;
        setsid();
        setpgid(0, 0);
        alarm(60);
        for (;;)
            pause();
    }
    snprintf(line, sizeof line, "its parent is %ld.", (long)getppid());
    s->host->log(s->host, RLHF_LOG_INFO, line);
    pause();
    return RLHF_OK;
}

static const struct {
    const char *name;
    flood *flood;
} all[] = {{"nothing", nothing},
           {"long_name", long_name},
           {"many_metrics", many_metrics},
           {"many_messages", many_messages},
           {"long_lines", long_lines},
           {"much_printed", much_printed},
           {"one_long_line", one_long_line},
           {"no_answer", no_answer},
           {"no_call", no_call},
           {"no_frame", no_frame},
           {"no_text", no_text},
           {"long_answer", long_answer},
           {"unread_replies", unread_replies},
           {"calls_for_ever", calls_for_ever},
           {"many_objects", many_objects},
           {"no_array", no_array},
           {"memory_files", memory_files},
           {"fork_bomb", fork_bomb},
           {"children", children}};

static const char *const ways[] = {
    "nothing",      "long_name",     "many_metrics",   "many_messages",  "long_lines",
    "much_printed", "one_long_line", "no_answer",      "no_call",        "no_frame",
    "no_text",      "long_answer",   "unread_replies", "calls_for_ever", "many_objects",
    "no_array",     "memory_files",  "fork_bomb",      "children",       NULL};

static const rlhf_opt opts[] = {RLHF_OPT_ENUM(struct config, how, 0, ways, "what it sends")};

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    for (uint32_t i = 0; i < in->n; i++)
        out->seq[i] = (float)in->response[i].len;
    return all[s->config->how].flood(s);
}

static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, "flood_reward", .summary = "sends too much", TEST_OPTIONS(opts),
            .create = create, .destroy = destroy)
