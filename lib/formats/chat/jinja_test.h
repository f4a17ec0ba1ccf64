// jinja_test.h: the tests of a chat template, `v is name(arguments)`.
//
// Names are checked only on evaluation: a template may contain the name of an unknown test if it
// never evaluates that test. Internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_TEST_H
#define RLHF_HOST_CHAT_JINJA_TEST_H

#include "chat/jinja_text.h"

// The test of this name; 0 = unknown. [any]
int32_t rlhf__jinja_test_find(rlhf_str name);

// Returns 1 if v passes test `which`. Returns 0 if v fails it, or with an error set in the state.
// name is for messages. The test's arguments are those of args from index `first` on. [any]
int rlhf__jinja_test(struct rlhf__jinja_work *, int32_t which, rlhf_str name, rlhf__value v,
                     const struct rlhf__jinja_args *args, size_t first);

#endif
