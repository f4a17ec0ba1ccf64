// member.h: JSON with integers beyond 64 bits, which Jansson refuses. They keep their digits.
#ifndef RLHF_PLUGINS_HTTP_MEMBER_H
#define RLHF_PLUGINS_HTTP_MEMBER_H

#include <jansson.h>
#include <rlhf/base.h>

// Parses s[0..n). A long integer becomes a string that only the functions below tell from others.
// Returns a new reference; NULL if the text is not JSON or memory runs out. [any]
json_t *rlhf__long_read(const char *s, size_t n);

// Returns the digits of a long integer, or NULL if the value is not one. [any]
const char *rlhf__long_digits(const json_t *v);

// Returns the value as JSON text, which the caller frees; NULL if memory runs out. `flags` are
// those of json_dumps. [any]
char *rlhf__long_text(const json_t *v, size_t flags);

// Returns the text of the row's member `key`, which the caller frees; NULL if the row lacks it or
// memory runs out. If `plain` is 1, the text of a string is its content. [any]
char *rlhf__row_member(rlhf_str row, const char *key, int plain);

#endif
