// hello.h: the first line that a program says: what it offers.
#ifndef RLHF_PLUGINS_ENVIRONMENTS_LINES_HELLO_H
#define RLHF_PLUGINS_ENVIRONMENTS_LINES_HELLO_H

#include <rlhf/host.h>

#include <jansson.h>

struct rlhf__hello {
    char *tools;      // the list as JSON text, in Jansson's memory; NULL = none
    int32_t finish;   // 1: it wants to know how episodes end, and answers
    int32_t function; // 1: it promises RLHF_ENVIRONMENT_FUNCTION
};

enum { RLHF__HELLO_WHY = 200 };

// Parses the line, which is an object. Three members are allowed: "tools" (a list of tools as chat
// templates take them), "finish" and "function" (true or false). All are optional. Returns 1, or 0
// with the reason in why[RLHF__HELLO_WHY], which may quote bytes of the line. [any]
int rlhf__hello_read(const char *line, size_t n, struct rlhf__hello *out, char *why);

void rlhf__hello_finish(struct rlhf__hello *); // [any]

#endif
