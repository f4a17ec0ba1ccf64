// lines_hello.c: see lines_hello.h.
#include "lines_hello.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(char *why, const char *text) {
    snprintf(why, RLHF__HELLO_WHY, "%s", text);
    return 0;
}

// Whether a tool is {"type": "function", "function": {"name": ...}}.
static int is_tool(const json_t *tool) {
    return json_is_string(json_object_get(json_object_get(tool, "function"), "name"));
}

static int read_tools(json_t *v, struct rlhf__hello *out, char *why) {
    if (!v || json_is_null(v)) return 1;
    if (!json_is_array(v)) return refuse(why, "\"tools\" is not a list");
    for (size_t i = 0; i < json_array_size(v); i++)
        if (!is_tool(json_array_get(v, i))) {
            snprintf(why, RLHF__HELLO_WHY,
                     "tool %zu is not {\"type\": \"function\", \"function\": {\"name\": ...}}", i);
            return 0;
        }
    if (json_array_size(v)) out->tools = json_dumps(v, JSON_COMPACT);
    return 1;
}

int rlhf__hello_read(const char *line, size_t n, struct rlhf__hello *out, char *why) {
    json_error_t error;
    json_t *v = json_loadb(line, n, JSON_REJECT_DUPLICATES, &error), *member;
    const char *key;
    int good = json_is_object(v);
    if (!v && json_error_code(&error) == json_error_numeric_overflow)
        refuse(why, "the first line has an integer beyond 64 bits or a number beyond 1e308");
    else if (!good)
        refuse(why, "the first line is not a JSON object, such as {\"tools\": []} or {}");
    json_object_foreach(v, key, member) {
        if (!good) break;
        if (strcmp(key, "tools") == 0) {
            good = read_tools(member, out, why);
        } else if (strcmp(key, "finish") == 0 && json_is_boolean(member)) {
            out->finish = json_is_true(member);
        } else if (strcmp(key, "function") == 0 && json_is_boolean(member)) {
            out->function = json_is_true(member);
        } else {
            snprintf(why, RLHF__HELLO_WHY,
                     "the first line has \"%.60s\"; allowed: \"tools\", a list, \"finish\" and "
                     "\"function\", true or false",
                     key);
            good = 0;
        }
    }
    json_decref(v);
    return good;
}

void rlhf__hello_finish(struct rlhf__hello *h) {
    free(h->tools);
    *h = (struct rlhf__hello){0};
}
