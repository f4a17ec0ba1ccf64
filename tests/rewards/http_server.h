// http_server.h: a small HTTP/1.1 server on the loopback interface, which runs on threads of the
// test. It behaves, and misbehaves, as a test requests.
#ifndef RLHF_TESTS_REWARDS_HTTP_SERVER_H
#define RLHF_TESTS_REWARDS_HTTP_SERVER_H

#include <stddef.h>
#include <stdint.h>

struct http_request {
    char line[1024];  // "POST /score HTTP/1.1"
    const char *head; // header lines, NUL-ended
    const char *body; // [len], followed by NUL
    size_t len;
    int number; // number of earlier requests
};

// What happens to the answer.
enum http_how {
    HTTP_WHOLE = 0,
    HTTP_HALF = 1,    // the connection is closed after half of the body
    HTTP_ENDLESS = 2, // the body is sent repeatedly
    HTTP_SILENT = 3,  // nothing is sent until the server is closed
    HTTP_DROPPED = 4  // the connection is closed without an answer
};

struct http_reply {
    int status;        // default 200
    int how;           // enum http_how
    char *body;        // malloc'd, the server frees it
    char headers[512]; // lines that end in \r\n
};

// Called on the thread of its connection. Several calls may run at once.
typedef void (*http_serve)(void *context, const struct http_request *, struct http_reply *);

struct http_server;
// Opens a server at an ephemeral port of 127.0.0.1. On failure, returns NULL and prints a line on
// stderr.
struct http_server *http_server_open(http_serve serve, void *context);
// Serve one more connection, `fd`, which the server now owns. Returns 0 if there are too many
// connections.
int http_server_adopt(struct http_server *, int fd);
// Stops listening for that many milliseconds. Returns once it has stopped.
void http_server_refuse(struct http_server *, int ms);
int http_server_port(const struct http_server *);
int http_server_requests(struct http_server *);    // answered and under way
int http_server_connections(struct http_server *); // accepted so far
void http_server_close(struct http_server *);      // NULL allowed

// Returns a port of 127.0.0.1 on which no process listens (now).
int http_free_port(void);

#endif
