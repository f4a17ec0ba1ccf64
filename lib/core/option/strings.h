// strings.h: owns the strings and lists of strings to which a config struct's fields point.
#ifndef RLHF_CORE_OPTION_STRINGS_H
#define RLHF_CORE_OPTION_STRINGS_H

#include <jansson.h>

#include <stddef.h>

// The memory lives until rlhf__strings_finish.
struct rlhf__strings {
    char **item;
    size_t n, cap;
};

void rlhf__strings_finish(struct rlhf__strings *s); // [any]
// Returns a copy of `text`, owned by `s`, or NULL if `text` is NULL or memory runs out. [any]
const char *rlhf__strings_add(struct rlhf__strings *s, const char *text);
// Returns zeroed memory of n bytes, owned by `s`, or NULL if memory runs out. [any]
void *rlhf__strings_room(struct rlhf__strings *s, size_t n);
// Returns a NULL-terminated copy of a JSON list of strings, owned by `s`, or NULL if memory runs
// out. [any]
const char *const *rlhf__strings_add_list(struct rlhf__strings *s, const json_t *list);

#endif
