// http_server.c: see http_server.h.
#include "rewards/http_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 256, MAX_REQUEST = 64 << 20 };

struct connection {
    struct http_server *server;
    pthread_t thread;
    int fd;
    atomic_int over; // 1: its thread has finished
};

struct http_server {
    http_serve serve;
    void *context;
    pthread_t thread;
    pthread_mutex_t lock;
    struct connection connection[MAX_CONNECTIONS]; // [n_kept], protected by lock, as is `accepted`
    int n_kept, accepted, fd, port;
    int held, reserved;                // a socket that reserves the port while nothing listens
    atomic_int requests, stop, refuse; // refuse: milliseconds without listening
};

// ---- bytes ----

static int send_all(int fd, const char *bytes, size_t n) {
    while (n) {
        const ssize_t k = send(fd, bytes, n, MSG_NOSIGNAL);
        if (k <= 0) return 0;
        bytes += k;
        n -= (size_t)k;
    }
    return 1;
}

struct inbox {
    char *at;
    size_t len, cap;
};

// Reads more bytes of the connection. Returns 0 at the end of the connection.
static int receive(int fd, struct inbox *in) {
    if (in->len + 65536 + 1 > in->cap) {
        char *more = realloc(in->at, in->cap = 2 * in->cap + 2 * 65536);
        if (!more || in->cap > MAX_REQUEST) return 0;
        in->at = more;
    }
    const ssize_t k = recv(fd, in->at + in->len, 65536, 0);
    if (k <= 0) return 0;
    in->len += (size_t)k;
    in->at[in->len] = 0;
    return 1;
}

static size_t content_length(const char *head) {
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, "Content-Length:", 15) == 0)
            return (size_t)strtoull(line + 17, NULL, 10);
    return 0;
}

// ---- one connection ----

// Waits until the peer or the server closes the connection.
static void stay_silent(const struct http_server *s, int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char byte;
    while (!s->stop)
        if (poll(&p, 1, 50) > 0 && recv(fd, &byte, 1, 0) <= 0) return;
}

// Sends the answer. Returns 1 if the connection stays open.
static int answer(struct http_server *s, int fd, const struct http_reply *r) {
    const char *body = r->body ? r->body : "";
    const size_t len = strlen(body);
    char head[1024];
    if (r->how == HTTP_SILENT) stay_silent(s, fd);
    if (r->how == HTTP_SILENT || r->how == HTTP_DROPPED) return 0;
    const int n =
        r->how == HTTP_ENDLESS
            ? snprintf(head, sizeof head, "HTTP/1.1 %d X\r\n%s\r\n", r->status, r->headers)
            : snprintf(head, sizeof head, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n",
                       r->status, len, r->headers);
    if (!send_all(fd, head, (size_t)n)) return 0;
    if (r->how == HTTP_HALF) return send_all(fd, body, len / 2) && 0;
    while (r->how == HTTP_ENDLESS && !s->stop)
        if (!send_all(fd, body, len)) return 0;
    return send_all(fd, body, len);
}

// Takes one request from the inbox and answers it. Returns 0 if the connection must end.
static int serve_one(struct http_server *s, int fd, struct inbox *in) {
    struct http_request q = {.number = 0};
    struct http_reply r = {.status = 200};
    char *end = NULL;
    while (!in->at || !(end = strstr(in->at, "\r\n\r\n")))
        if (!receive(fd, in)) return 0;
    const size_t head = (size_t)(end - in->at) + 4, len = content_length(in->at);
    while (in->len < head + len)
        if (!receive(fd, in)) return 0;
    char *copy = malloc(head + len + 2);
    if (!copy) return 0;
    memcpy(copy, in->at, head);
    copy[head] = 0;
    memcpy(copy + head + 1, in->at + head, len);
    copy[head + 1 + len] = 0;
    in->len -= head + len;
    memmove(in->at, in->at + head + len, in->len + 1);
    q.number = atomic_fetch_add(&s->requests, 1);
    q.head = copy;
    q.body = copy + head + 1;
    q.len = len;
    snprintf(q.line, sizeof q.line, "%.*s", (int)strcspn(copy, "\r"), copy);
    s->serve(s->context, &q, &r);
    const int go_on = answer(s, fd, &r);
    free(r.body);
    free(copy);
    return go_on;
}

static void *serve_connection(void *context) {
    struct connection *c = context;
    struct inbox in = {0};
    while (!c->server->stop && serve_one(c->server, c->fd, &in)) {
    }
    shutdown(c->fd, SHUT_RDWR);
    free(in.at);
    c->over = 1;
    return NULL;
}

static void end_connection(struct connection *c) {
    shutdown(c->fd, SHUT_RDWR);
    pthread_join(c->thread, NULL);
    close(c->fd);
}

// Returns a free place for a connection: a new place, or the place of a finished connection.
// Returns NULL if all places are in use. Call with the lock held.
static struct connection *place(struct http_server *s) {
    for (int i = 0; i < s->n_kept; i++)
        if (s->connection[i].over) {
            end_connection(&s->connection[i]);
            return &s->connection[i];
        }
    return s->n_kept < MAX_CONNECTIONS ? &s->connection[s->n_kept++] : NULL;
}

int http_server_adopt(struct http_server *s, int fd) {
    pthread_mutex_lock(&s->lock);
    struct connection *c = place(s);
    if (c) *c = (struct connection){.server = s, .fd = fd};
    if (c && pthread_create(&c->thread, NULL, serve_connection, c) != 0) abort();
    s->accepted += c != NULL;
    pthread_mutex_unlock(&s->lock);
    return c != NULL;
}

// ---- the server ----

// Returns a socket of the loopback interface at `port` (0: any port), or -1 on failure. Other
// sockets that do not listen may share the port.
static int socket_at(int port) {
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    union {
        struct sockaddr_in *in;
        struct sockaddr *any;
    } u = {&a};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, u.any, sizeof a) == 0)
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

// Stops listening for s->refuse milliseconds. Returns the new listening socket, or -1.
static int be_deaf(struct http_server *s) {
    const struct timespec ms = {s->refuse / 1000, s->refuse % 1000 * 1000000L};
    shutdown(s->fd, SHUT_RDWR);
    close(s->fd);
    s->fd = -1;
    s->refuse = 0;
    nanosleep(&ms, NULL);
    const int fd = socket_at(s->port);
    if (fd >= 0 && listen(fd, 128) == 0) return s->fd = fd;
    perror("http_server_refuse");
    if (fd >= 0) close(fd);
    return -1;
}

void http_server_refuse(struct http_server *s, int ms) {
    const struct timespec tick = {0, 1000000};
    s->refuse = ms;
    while (s->refuse && !s->stop)
        nanosleep(&tick, NULL);
}

static void *accept_all(void *context) {
    struct http_server *s = context;
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    while (!s->stop) {
        if (s->refuse) p.fd = be_deaf(s);
        if (p.fd < 0) return NULL;
        if (poll(&p, 1, 20) <= 0) continue;
        const int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC), now = 1;
        // Head and body are two writes. Without TCP_NODELAY, the second write would wait 40 ms for
        // the ACK of the first.
        if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
        if (fd >= 0 && !http_server_adopt(s, fd)) close(fd);
    }
    return NULL;
}

// If `held` is not NULL, sets *held to a second socket at the same port, which does not listen. So
// the port stays reserved.
static int listen_somewhere(int *port, int *held) {
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    union {
        struct sockaddr_in *in;
        struct sockaddr *any;
    } u = {&a};
    const int fd = socket_at(0);
    if (fd < 0) return -1;
    if (getsockname(fd, u.any, &len) == 0 &&
        (!held || (*held = socket_at(ntohs(a.sin_port))) >= 0) && listen(fd, 128) == 0) {
        *port = ntohs(a.sin_port);
        return fd;
    }
    close(fd);
    return -1;
}

int http_free_port(void) {
    int port = 0;
    const int fd = listen_somewhere(&port, NULL);
    if (fd >= 0) close(fd);
    return port;
}

struct http_server *http_server_open(http_serve serve, void *context) {
    struct http_server *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->serve = serve;
    s->context = context;
    pthread_mutex_init(&s->lock, NULL);
    s->fd = listen_somewhere(&s->port, &s->held);
    if (s->fd < 0 || pthread_create(&s->thread, NULL, accept_all, s) != 0) {
        perror("http_server_open");
        free(s);
        return NULL;
    }
    return s;
}

int http_server_port(const struct http_server *s) { return s->port; }
int http_server_requests(struct http_server *s) { return s->requests; }

int http_server_connections(struct http_server *s) {
    pthread_mutex_lock(&s->lock);
    const int n = s->accepted;
    pthread_mutex_unlock(&s->lock);
    return n;
}

void http_server_close(struct http_server *s) {
    if (!s) return;
    s->stop = 1;
    pthread_join(s->thread, NULL);
    for (int i = 0; i < s->n_kept; i++)
        end_connection(&s->connection[i]);
    if (s->fd >= 0) close(s->fd);
    close(s->held);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
