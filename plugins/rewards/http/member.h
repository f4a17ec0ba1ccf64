// member.h: a member of a data row as JSON text. Integers beyond 64 bits, which Jansson
// refuses, keep their digits.
#ifndef RLHF_PLUGINS_HTTP_MEMBER_H
#define RLHF_PLUGINS_HTTP_MEMBER_H

#include <rlhf/base.h>

// Returns the text of the row's member `key`, which the caller frees; NULL if the row lacks it or
// memory runs out. If `plain` is 1, the text of a string is its content. [any]
char *rlhf__row_member(rlhf_str row, const char *key, int plain);

#endif
