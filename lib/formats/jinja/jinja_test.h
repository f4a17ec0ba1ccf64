// jinja_test.h: the tests of a chat template, `v is name(arguments)`.
//
// A template may name an unknown test, as long as it does not evaluate that test.
#ifndef RLHF_FORMATS_JINJA_JINJA_TEST_H
#define RLHF_FORMATS_JINJA_JINJA_TEST_H

#include "values/jinja_args.h"

// The test of this name; 0 = unknown. [any]
int32_t rlhf__jinja_test_find(rlhf_str name);

// Returns 1 if v passes test `which`, and 0 if v fails it. After an error, also returns 0, and sets
// the state of the work to the error. `name` is the test's name for messages. [any]
int rlhf__jinja_test(struct rlhf__jinja_work *, int32_t which, rlhf_str name, rlhf__value v,
                     const struct rlhf__jinja_args *args);

#endif
