// space.h: what Python's str.strip() takes for white space, since that is what templates trim by.
#ifndef RLHF_HOST_CHAT_SPACE_H
#define RLHF_HOST_CHAT_SPACE_H

#include "base/error.h"

// s without white space at its beginning (left) and end (right). Ill-formed bytes are none. [any]
rlhf_str rlhf__space_trim(rlhf_str s, int left, int right);

#endif
