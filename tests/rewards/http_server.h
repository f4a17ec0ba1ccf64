// http_server.h: a small HTTP/1.1 server on the loopback interface, on threads of the test, that
// does what a test wants: also what no server should.
#ifndef RLHF_TESTS_REWARDS_HTTP_SERVER_H
#define RLHF_TESTS_REWARDS_HTTP_SERVER_H

#include <stddef.h>
#include <stdint.h>

struct http_request {
    char line[1024];  // "POST /score HTTP/1.1"
    const char *head; // header lines, NUL-ended
    const char *body; // [len], NUL behind
    size_t len;
    int number; // of those that came before it
};

// What becomes of the answer.
enum http_how {
    HTTP_WHOLE = 0,
    HTTP_HALF = 1,    // the connection is closed after half of the body
    HTTP_ENDLESS = 2, // the body is sent again and again
    HTTP_SILENT = 3,  // nothing comes until the server is closed
    HTTP_DROPPED = 4  // the connection is closed without a word
};

struct http_reply {
    int status;        // 200 unless said
    int how;           // enum http_how
    char *body;        // malloc'd, the server frees it
    char headers[512]; // lines that end in \r\n
};

// Called on a thread of its connection, several at once.
typedef void (*http_serve)(void *context, const struct http_request *, struct http_reply *);

struct http_server;
// An ephemeral port of 127.0.0.1; NULL with a line on stderr when there is none.
struct http_server *http_server_open(http_serve serve, void *context);
// Serve one more connection, fd, which is the server's from now on. 0: no room.
int http_server_adopt(struct http_server *, int fd);
// Nobody is listening for so many milliseconds from now on; waits until that is so.
void http_server_refuse(struct http_server *, int ms);
int http_server_port(const struct http_server *);
int http_server_requests(struct http_server *);    // answered and under way
int http_server_connections(struct http_server *); // accepted so far
void http_server_close(struct http_server *);      // NULL allowed

// A port of 127.0.0.1 on which nobody listens (now).
int http_free_port(void);

#endif
