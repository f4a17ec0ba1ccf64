// probe_network.c: tries to use the network, and the machine's own services at socket paths and
// abstract names. These services would act with the user's rights.
#include "worker/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// ---- the network ----

static struct sockaddr_in server(const struct bait *b) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)b->port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static long connects(const struct bait *b) {
    const struct sockaddr_in to = server(b);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)(const void *)&to, sizeof to);
}

static long sends_datagram(const struct bait *b) {
    const struct sockaddr_in to = server(b);
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0) return -1;
    return sendto(fd, "x", 1, 0, (const struct sockaddr *)(const void *)&to, sizeof to);
}

static long listens(const struct bait *b) {
    (void)b;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? -1 : listen(fd, 1);
}

static long opens_6(const struct bait *b) {
    (void)b;
    return socket(AF_INET6, SOCK_DGRAM, 0);
}

static long asks_kernel(const struct bait *b) {
    (void)b;
    return socket(AF_NETLINK, SOCK_RAW, 0);
}

static const struct probe network[] = {
    {"tcp", connects},  {"udp", sends_datagram},  {"listen", listens},
    {"inet6", opens_6}, {"netlink", asks_kernel},
};

// ---- other sockets ----

static socklen_t address(const struct bait *b, const char *name, struct sockaddr_un *to) {
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (!name) { // an abstract name
        const int n =
            snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "rlhf-probe-%ld", (long)b->victim);
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    }
    snprintf(to->sun_path, sizeof to->sun_path, "%.80s/%.20s", b->dir, name);
    return (socklen_t)sizeof *to;
}

static long to_path(const struct bait *b, int fd, const char *name) {
    struct sockaddr_un to;
    const socklen_t n = address(b, name, &to);
    return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)(const void *)&to, n);
}

static long connects_path(const struct bait *b) {
    return to_path(b, socket(AF_UNIX, SOCK_STREAM, 0), "socket.stream");
}

static long connects_abstract(const struct bait *b) {
    return to_path(b, socket(AF_UNIX, SOCK_STREAM, 0), NULL);
}

static long sends_path(const struct bait *b) {
    return to_path(b, socket(AF_UNIX, SOCK_DGRAM, 0), "socket.dgram");
}

static int pair(int type) {
    int fd[2];
    return socketpair(AF_UNIX, type, 0, fd) == 0 ? fd[0] : -1;
}

// One end of a datagram pair can be connected to another address.
static long sends_path_pair(const struct bait *b) {
    return to_path(b, pair(SOCK_DGRAM), "socket.dgram");
}

static long sends_path_raw(const struct bait *b) {
    return to_path(b, pair(SOCK_RAW), "socket.dgram");
}

static long sends_to_pair(const struct bait *b) {
    struct sockaddr_un to;
    const socklen_t n = address(b, "socket.dgram", &to);
    const int fd = pair(SOCK_DGRAM | SOCK_CLOEXEC);
    if (fd < 0) return -1;
    return sendto(fd, "x", 1, 0, (const struct sockaddr *)(const void *)&to, n);
}

static long reconnects_host(const struct bait *b) { return to_path(b, 4, "socket.stream"); }

static long is_packet(const struct bait *b) {
    (void)b;
    return socket(AF_PACKET, SOCK_RAW, 0);
}

static long is_crypto(const struct bait *b) {
    (void)b;
    return socket(38, SOCK_SEQPACKET, 0); // AF_ALG
}

static long is_vsock(const struct bait *b) {
    (void)b;
    return socket(40, SOCK_STREAM, 0);
}

static long is_audit(const struct bait *b) {
    (void)b;
    return socket(AF_NETLINK, SOCK_RAW, 15); // events of the kernel's devices
}

static const struct probe sockets[] = {
    {"unix_stream", connects_path},
    {"unix_abstract", connects_abstract},
    {"unix_dgram", sends_path},
    {"pair_dgram", sends_path_pair},
    {"pair_raw", sends_path_raw},
    {"pair_sendto", sends_to_pair},
    {"host_socket", reconnects_host},
    {"packet", is_packet},
    {"alg", is_crypto},
    {"vsock", is_vsock},
    {"uevent", is_audit},
};

const struct area probe_network[] = {
    AREA(WALL_NETWORK, network), AREA(WALL_SOCKETS, sockets), {0, NULL, 0}};
