// http_handshake.h: the key of a WebSocket handshake, and the answer that proves that the server
// has read it (RFC 6455, 4.1 and 4.2.2).
#ifndef RLHF_PLUGINS_ENVIRONMENTS_HTTP_HANDSHAKE_H
#define RLHF_PLUGINS_ENVIRONMENTS_HTTP_HANDSHAKE_H

#include <stddef.h>

enum { RLHF__HANDSHAKE_TEXT = 32 }; // size of a key and of an answer, with the NUL

// Sets *bytes to n (at most 256) unpredictable bytes of the operating system. Returns 0 if it has
// none. [any]
int rlhf__handshake_random(void *bytes, size_t n);

// Chooses a key. Returns 0 if there are no unpredictable bytes. [any]
int rlhf__handshake_key(char key[RLHF__HANDSHAKE_TEXT]);

// The value of Sec-WebSocket-Accept that belongs to a key. [any]
void rlhf__handshake_answer(const char *key, char answer[RLHF__HANDSHAKE_TEXT]);

#endif
