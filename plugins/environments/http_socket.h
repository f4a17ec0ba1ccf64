// http_socket.h: a WebSocket client (RFC 6455). libcurl makes the connection, including TLS and
// proxies. The client supports only text messages, and sends each in one frame. It refuses what the
// RFC does not allow, binary messages, and messages among whose frames too many have no text
// (pings, pongs, empty continuations).
#ifndef RLHF_PLUGINS_ENVIRONMENTS_HTTP_SOCKET_H
#define RLHF_PLUGINS_ENVIRONMENTS_HTTP_SOCKET_H

#include "process/bytes.h"

#include <curl/curl.h>

enum { RLHF__SOCKET_WHY = 400 };

// Zero-initialize, then set `host` and `longest`.
struct rlhf__socket {
    const rlhf_host *host;
    size_t longest;             // maximum number of bytes of a message
    CURL *easy;                 // NULL: closed
    struct rlhf__bytes in;      // bytes that were received
    size_t at;                  // how many of them were read
    struct rlhf__bytes message; // the text message, as far as it has arrived
    int32_t open;               // 1: the handshake has succeeded
    int32_t inside;             // 1: `message` has begun and is not complete
    int32_t idle;               // frames without text since it began
    int32_t at_once;            // 1: do not wait for bytes
};

// Where to connect. All members are borrowed.
struct rlhf__socket_target {
    const char *url;    // http:// or https://
    const char *path;   // path of the WebSocket; begins with a slash
    const char *origin; // "http://host:port"
    const char *ca;     // PEM file of the authorities; NULL: libcurl's default
    const struct curl_slist *headers;
};

enum rlhf__socket_end {
    RLHF__SOCKET_DONE = 0,
    RLHF__SOCKET_FAILED = 1,
    RLHF__SOCKET_CANCELLED = 2,
    RLHF__SOCKET_NO_MEMORY = 3,
    RLHF__SOCKET_LATER = 4 // the message is not complete
};

// Connect and do the WebSocket handshake before `deadline` (seconds of rlhf__http_now, 0 = no
// limit). After a failure, `why` (RLHF__SOCKET_WHY bytes) explains it. [step]
enum rlhf__socket_end rlhf__socket_open(struct rlhf__socket *, const struct rlhf__socket_target *,
                                        double deadline, char *why);
// Send a text of n bytes. [step]
enum rlhf__socket_end rlhf__socket_send(struct rlhf__socket *, const char *text, size_t n,
                                        double deadline, char *why);
// Takes the bytes that have arrived, without waiting for more, until the next text message is
// complete in s->message. Answers pings. [step]
enum rlhf__socket_end rlhf__socket_receive(struct rlhf__socket *s, double deadline, char *why);
// Waits until bytes arrive at one of these sockets, at most wait_ms milliseconds. [step]
void rlhf__socket_wait(struct rlhf__socket *const *, uint32_t n, uint32_t wait_ms);
// Tell the server that the connection ends, and close it without waiting for the server's answer.
// Does nothing if the socket is already closed. [step]
void rlhf__socket_close(struct rlhf__socket *);

#endif
