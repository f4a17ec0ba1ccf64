// strings.h: the strings that a config struct's fields point to, kept together to be freed at once.
#ifndef RLHF_HOST_STRINGS_H
#define RLHF_HOST_STRINGS_H

#include <stddef.h>

// The strings live until rlhf__strings_finish.
struct rlhf__strings {
    char **item;
    size_t n, cap;
};

void rlhf__strings_finish(struct rlhf__strings *s); // [any]
// A copy owned by s; NULL when text is NULL or memory runs out. [any]
const char *rlhf__strings_add(struct rlhf__strings *s, const char *text);

#endif
