// lines_hello.h: the first line of a program, which lists what the program offers.
#ifndef RLHF_PLUGINS_ENVIRONMENTS_LINES_HELLO_H
#define RLHF_PLUGINS_ENVIRONMENTS_LINES_HELLO_H

#include <rlhf/host.h>

#include <jansson.h>

struct rlhf__hello {
    char *tools;      // the list as JSON text, in Jansson's memory; NULL = none
    int32_t finish;   // 1: it answers "finish" lines, which say how episodes end
    int32_t function; // 1: it promises what RLHF_ENVIRONMENT_FUNCTION says
};

enum { RLHF__HELLO_WHY = 200 };

// Parses the program's first line, which must be a JSON object. Three members are allowed: "tools"
// (a list of tools in the format of chat templates), "finish" and "function" (true or false). All
// are optional. Returns 1, or 0 with the reason in why[RLHF__HELLO_WHY], which may quote bytes of
// the line. [any]
int rlhf__hello_read(const char *line, size_t n, struct rlhf__hello *out, char *why);

void rlhf__hello_finish(struct rlhf__hello *); // [any]

#endif
