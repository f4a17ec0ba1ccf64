// http_socket.c: see http_socket.h.
#include "http_socket.h"

#include "http/client.h"
#include "http_handshake.h"
#include "process/utf8.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CONNECT_MS = 10000, POLL_MS = 200, HEAD_MAX = 16384, OP_CONTINUE = 0, OP_TEXT = 1 };
enum { OP_CLOSE = 8, OP_PING = 9, OP_PONG = 10, CONTROL_BYTES = 125 };

// Most frames without text in a message. Pings of a server that wait while the policy is trained
// are among them.
enum { IDLE_FRAMES = 1000 };

#define TOO_LATE "it did not answer within rewards.timeout_s"

static enum rlhf__socket_end fail(char *why, const char *text) {
    snprintf(why, RLHF__SOCKET_WHY, "%s", text);
    return RLHF__SOCKET_FAILED;
}

// Check Ctrl-C and the deadline.
static enum rlhf__socket_end in_time(const struct rlhf__socket *s, double deadline, char *why) {
    if (s->host->cancelled(s->host)) return RLHF__SOCKET_CANCELLED;
    if (deadline > 0 && rlhf__http_now() > deadline) return fail(why, TOO_LATE);
    return RLHF__SOCKET_DONE;
}

static struct pollfd polled(const struct rlhf__socket *s, short events) {
    curl_socket_t fd = CURL_SOCKET_BAD;
    curl_easy_getinfo(s->easy, CURLINFO_ACTIVESOCKET, &fd);
    return (struct pollfd){.fd = fd, .events = events};
}

void rlhf__socket_wait(struct rlhf__socket *const *of, uint32_t n, uint32_t wait_ms) {
    enum { MOST = 512 }; // further sockets are not waited for; the next call asks them
    struct pollfd p[MOST];
    if (n > MOST) n = MOST;
    for (uint32_t i = 0; i < n; i++)
        p[i] = polled(of[i], POLLIN);
    poll(p, n, (int)wait_ms);
}

// Wait until the socket can be read or written.
static enum rlhf__socket_end ready(const struct rlhf__socket *s, short events, double deadline,
                                   char *why) {
    struct pollfd p = polled(s, events);
    if (s->at_once && events == POLLIN) return RLHF__SOCKET_LATER;
    for (;;) {
        const enum rlhf__socket_end end = in_time(s, deadline, why);
        if (end != RLHF__SOCKET_DONE) return end;
        if (poll(&p, 1, POLL_MS) != 0) return RLHF__SOCKET_DONE;
    }
}

static enum rlhf__socket_end send_all(const struct rlhf__socket *s, const char *data, size_t n,
                                      double deadline, char *why) {
    while (n > 0) {
        size_t sent = 0;
        const CURLcode code = curl_easy_send(s->easy, data, n, &sent);
        if (code != CURLE_OK && code != CURLE_AGAIN) return fail(why, curl_easy_strerror(code));
        data += sent;
        n -= sent;
        if (code != CURLE_AGAIN) continue;
        const enum rlhf__socket_end end = ready(s, POLLOUT, deadline, why);
        if (end != RLHF__SOCKET_DONE) return end;
    }
    return RLHF__SOCKET_DONE;
}

// Append what has arrived to s->in, at least one byte, and forget what was read.
static enum rlhf__socket_end more(struct rlhf__socket *s, double deadline, char *why) {
    char part[16384];
    if (s->at) memmove(s->in.data, s->in.data + s->at, s->in.len - s->at);
    s->in.len -= s->at;
    s->at = 0;
    for (;;) {
        size_t n = 0;
        const CURLcode code = curl_easy_recv(s->easy, part, sizeof part, &n);
        if (code == CURLE_OK && n == 0) return fail(why, "it closed the connection");
        if (code == CURLE_OK) {
            rlhf__bytes_add(&s->in, part, n);
            return s->in.full ? RLHF__SOCKET_NO_MEMORY : RLHF__SOCKET_DONE;
        }
        if (code != CURLE_AGAIN) return fail(why, curl_easy_strerror(code));
        const enum rlhf__socket_end end = ready(s, POLLIN, deadline, why);
        if (end != RLHF__SOCKET_DONE) return end;
    }
}

// ---- the handshake ----

static void write_head(const struct rlhf__socket_target *t, const char *key,
                       struct rlhf__bytes *out) {
    rlhf__bytes_text(out, "GET ");
    rlhf__bytes_text(out, t->path);
    rlhf__bytes_text(out, " HTTP/1.1\r\nHost: ");
    rlhf__bytes_text(out, strstr(t->origin, "://") + 3);
    rlhf__bytes_text(out, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
    rlhf__bytes_text(out, key);
    rlhf__bytes_text(out, "\r\n");
    for (const struct curl_slist *h = t->headers; h; h = h->next) {
        if (strncasecmp(h->data, "Content-Type:", 13) == 0 ||
            strncasecmp(h->data, "Expect:", 7) == 0)
            continue; // only for requests with a body
        rlhf__bytes_text(out, h->data);
        rlhf__bytes_text(out, "\r\n");
    }
    rlhf__bytes_text(out, "\r\n");
}

// Returns 1 if the head, which ends in a NUL, accepts the WebSocket.
static int accepts(const char *head, const char *answer) {
    static const char name[] = "\r\nSec-WebSocket-Accept:";
    const char *at = strcasestr(head, name);
    if (strncmp(head, "HTTP/1.1 101", 12) != 0 || !at) return 0;
    at += sizeof name - 1;
    at += strspn(at, " \t");
    return strncmp(at, answer, strlen(answer)) == 0;
}

static enum rlhf__socket_end read_head(struct rlhf__socket *s, const char *answer, double deadline,
                                       char *why) {
    char shown[120];
    for (;;) {
        const char *end = s->in.data ? memmem(s->in.data, s->in.len, "\r\n\r\n", 4) : NULL;
        if (end) {
            const size_t n = (size_t)(end - s->in.data) + 4;
            const int good = accepts(s->in.data, answer);
            if (!good)
                snprintf(
                    why, RLHF__SOCKET_WHY, "it opens no WebSocket: \"%s\"",
                    rlhf__utf8_shown(s->in.data, strcspn(s->in.data, "\r"), shown, sizeof shown));
            s->at = n;
            return good ? RLHF__SOCKET_DONE : RLHF__SOCKET_FAILED;
        }
        if (s->in.len > HEAD_MAX) return fail(why, "its head is too long");
        const enum rlhf__socket_end got = more(s, deadline, why);
        if (got != RLHF__SOCKET_DONE) return got;
        rlhf__bytes_add(&s->in, "", 1); // a NUL, at which the functions above stop
        if (s->in.full) return RLHF__SOCKET_NO_MEMORY;
        s->in.len--;
    }
}

// libcurl calls this about once a second while it connects; 1 ends the attempt.
static int is_cancelled(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    const rlhf_host *host = ctx;
    (void)a, (void)b, (void)c, (void)d;
    return host->cancelled(host) != 0;
}

// Prepares the connection, which must be there in `left` milliseconds and within CONNECT_MS.
static void set_up(const struct rlhf__socket *s, const struct rlhf__socket_target *t, double left) {
    curl_easy_setopt(s->easy, CURLOPT_URL, t->url);
    curl_easy_setopt(s->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(s->easy, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(s->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)fmin(fmax(left, 1), CONNECT_MS));
    curl_easy_setopt(s->easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(s->easy, CURLOPT_XFERINFOFUNCTION, is_cancelled);
    curl_easy_setopt(s->easy, CURLOPT_XFERINFODATA, s->host);
    curl_easy_setopt(s->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (t->ca) curl_easy_setopt(s->easy, CURLOPT_CAINFO, t->ca);
}

enum rlhf__socket_end rlhf__socket_open(struct rlhf__socket *s, const struct rlhf__socket_target *t,
                                        double deadline, char *why) {
    struct rlhf__bytes head = {.host = s->host};
    char key[RLHF__HANDSHAKE_TEXT] = "", answer[RLHF__HANDSHAKE_TEXT] = "";
    s->in = s->message = (struct rlhf__bytes){.host = s->host};
    s->at = 0;
    s->easy = curl_easy_init();
    if (!s->easy) return RLHF__SOCKET_NO_MEMORY;
    const double left = deadline > 0 ? (deadline - rlhf__http_now()) * 1000 : CONNECT_MS;
    set_up(s, t, left);
    const CURLcode code = curl_easy_perform(s->easy);
    enum rlhf__socket_end end = RLHF__SOCKET_DONE;
    if (code == CURLE_ABORTED_BY_CALLBACK)
        end = RLHF__SOCKET_CANCELLED;
    else if (code == CURLE_OPERATION_TIMEDOUT && left < CONNECT_MS)
        end = fail(why, TOO_LATE);
    else if (code != CURLE_OK)
        end = fail(why, curl_easy_strerror(code));
    if (!rlhf__handshake_key(key)) end = fail(why, "the system has no random bytes for a key");
    rlhf__handshake_answer(key, answer);
    write_head(t, key, &head);
    if (head.full) end = RLHF__SOCKET_NO_MEMORY;
    if (end == RLHF__SOCKET_DONE) end = send_all(s, head.data, head.len, deadline, why);
    if (end == RLHF__SOCKET_DONE) end = read_head(s, answer, deadline, why);
    rlhf__bytes_finish(&head);
    s->open = end == RLHF__SOCKET_DONE;
    if (!s->open) rlhf__socket_close(s);
    return end;
}

// ---- frames ----

static enum rlhf__socket_end send_frame(struct rlhf__socket *s, int op, const char *text, size_t n,
                                        double deadline, char *why) {
    struct rlhf__bytes frame = {.host = s->host};
    unsigned char head[14] = {(unsigned char)(0x80 | op)}, mask[4];
    size_t at = 2;
    const int wide = n > 65535 ? 8 : n > 125 ? 2 : 0;
    head[1] = (unsigned char)(0x80 | (wide == 8 ? 127 : wide == 2 ? 126 : (int)n));
    for (int k = wide - 1; k >= 0; k--)
        head[at++] = (unsigned char)((uint64_t)n >> (8 * k));
    if (!rlhf__handshake_random(mask, sizeof mask))
        return fail(why, "the system has no random bytes for a mask");
    memcpy(head + at, mask, 4);
    rlhf__bytes_add(&frame, head, at + 4);
    rlhf__bytes_add(&frame, text, n);
    for (size_t i = 0; !frame.full && i < n; i++)
        frame.data[at + 4 + i] = (char)(frame.data[at + 4 + i] ^ (char)mask[i & 3]);
    const enum rlhf__socket_end end =
        frame.full ? RLHF__SOCKET_NO_MEMORY : send_all(s, frame.data, frame.len, deadline, why);
    rlhf__bytes_finish(&frame);
    return end;
}

enum rlhf__socket_end rlhf__socket_send(struct rlhf__socket *s, const char *text, size_t n,
                                        double deadline, char *why) {
    return send_frame(s, OP_TEXT, text, n, deadline, why);
}

struct frame {
    int op, last;
    uint64_t head, len; // bytes of the head, and of the data after it
};

// Read the head of a frame. Returns 1 if the whole frame has arrived, 0 if bytes are missing, and
// -1 if the frame is invalid. A frame of a server must not be masked or use extensions.
static int read_frame(const struct rlhf__socket *s, struct frame *f) {
    const size_t left = s->in.len - s->at;
    if (left < 2) return 0;
    const unsigned char *b = (const unsigned char *)s->in.data + s->at;
    const int wide = (b[1] & 127) == 127 ? 8 : (b[1] & 127) == 126 ? 2 : 0;
    if (b[1] & 128 || b[0] & 0x70) return -1;
    *f = (struct frame){.op = b[0] & 15, .last = b[0] >> 7, .head = 2 + (uint64_t)wide};
    if (left < f->head) return 0;
    f->len = wide ? 0 : b[1] & 127;
    for (int k = 0; k < wide; k++)
        f->len = f->len << 8 | b[2 + k];
    return f->len > s->longest ? -1 : left - f->head >= f->len;
}

// Why a frame is not allowed here; NULL if it is. `inside`: the message has begun.
static const char *fault_of(const struct frame *f, int inside) {
    if (f->op == OP_CLOSE) return "it closed the WebSocket";
    if (f->op == OP_PING || f->op == OP_PONG)
        return f->last && f->len <= CONTROL_BYTES ? NULL
                                                  : "it sends a ping or pong that is too long";
    if (f->op == OP_CONTINUE) return inside ? NULL : "it continues a message that it did not begin";
    if (f->op == OP_TEXT) return inside ? "it begins a message inside another" : NULL;
    return "it sends a frame that is not text";
}

// Waits until a whole frame has arrived. Takes one that has arrived already even if it is late.
static enum rlhf__socket_end next_frame(struct rlhf__socket *s, struct frame *f, double deadline,
                                        char *why) {
    for (int waited = 0;; waited = 1) {
        const int got = read_frame(s, f);
        if (got < 0) return fail(why, "it sends a frame that is too long or not allowed");
        if (got > 0) return RLHF__SOCKET_DONE;
        enum rlhf__socket_end end = waited ? in_time(s, deadline, why) : RLHF__SOCKET_DONE;
        if (end == RLHF__SOCKET_DONE) end = more(s, deadline, why);
        if (end != RLHF__SOCKET_DONE) return end;
    }
}

static enum rlhf__socket_end take_frames(struct rlhf__socket *s, double deadline, char *why) {
    enum rlhf__socket_end end = RLHF__SOCKET_DONE;
    while (end == RLHF__SOCKET_DONE && s->idle <= IDLE_FRAMES) {
        struct frame f = {0};
        end = next_frame(s, &f, deadline, why);
        if (end != RLHF__SOCKET_DONE) return end;
        const char *fault = fault_of(&f, s->inside), *data = s->in.data + s->at + f.head;
        if (fault) return fail(why, fault);
        if (f.op == OP_PING) end = send_frame(s, OP_PONG, data, (size_t)f.len, deadline, why);
        if (f.op <= OP_TEXT) {
            rlhf__bytes_add(&s->message, data, (size_t)f.len);
            s->inside = 1;
        }
        s->at += (size_t)(f.head + f.len);
        s->idle += f.op > OP_TEXT || !f.len;
        if (end != RLHF__SOCKET_DONE) return end;
        if (s->message.full) return RLHF__SOCKET_NO_MEMORY;
        if (s->message.len > s->longest) return fail(why, "its message is too long");
        if (f.op <= OP_TEXT && f.last) return RLHF__SOCKET_DONE;
        end = in_time(s, deadline, why);
    }
    return end == RLHF__SOCKET_DONE ? fail(why, "it sends too many frames without text") : end;
}

enum rlhf__socket_end rlhf__socket_receive(struct rlhf__socket *s, double deadline, char *why) {
    if (!s->inside) s->message.len = 0;
    if (!s->inside) s->message.full = 0;
    s->at_once = 1;
    const enum rlhf__socket_end end = take_frames(s, deadline, why);
    s->at_once = 0;
    if (end == RLHF__SOCKET_DONE) s->inside = s->idle = 0;
    if (end != RLHF__SOCKET_LATER) return end;
    const enum rlhf__socket_end late = in_time(s, deadline, why);
    return late == RLHF__SOCKET_DONE ? RLHF__SOCKET_LATER : late;
}

void rlhf__socket_close(struct rlhf__socket *s) {
    static const char normal[] = "\x03\xe8"; // status 1000 of RFC 6455, 7.4.1
    char why[RLHF__SOCKET_WHY];
    if (s->open) send_frame(s, OP_CLOSE, normal, 2, rlhf__http_now(), why); // a failure is ignored
    s->open = 0;
    curl_easy_cleanup(s->easy);
    s->easy = NULL;
    rlhf__bytes_finish(&s->in);
    rlhf__bytes_finish(&s->message);
}
