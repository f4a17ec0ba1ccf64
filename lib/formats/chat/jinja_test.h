// jinja_test.h: the tests of a chat template, `v is name(arguments)`.
//
// What it is not: the name of a test that is not known is kept until the template runs into it;
// internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_TEST_H
#define RLHF_HOST_CHAT_JINJA_TEST_H

#include "chat/jinja_text.h"

// The test of this name; 0 = not known. [any]
int32_t rlhf__jinja_test_find(rlhf_str name);

// 1 when v passes test `which`, 0 when it does not or the state is set. name: for messages. args
// from place `first` on are the test's. [any]
int rlhf__jinja_test(struct rlhf__jinja_work *, int32_t which, rlhf_str name, rlhf__value v,
                     const struct rlhf__jinja_args *args, size_t first);

#endif
