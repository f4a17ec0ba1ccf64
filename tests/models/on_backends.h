// on_backends.h: runs a group of tests on one backend after the other.
#ifndef TESTS_MODELS_ON_BACKENDS_H
#define TESTS_MODELS_ON_BACKENDS_H

#include "support.h"

enum { ON_REFERENCE = 1, ON_GUARD = 2, ON_CPU = 4, ON_ALL = 7 }; // ON_GUARD: the guard mode

extern struct backend backend;  // the one on which the group runs
const char *backend_name(void); // "reference" or "cpu"

// Runs the group on the backends of `which`. Returns main()'s status.
int on_backends(const char *title, uint32_t which, uint32_t threads, const struct CMUnitTest *tests,
                size_t n);

// Opens the current backend once more.
struct backend backend_again(uint32_t threads);

#endif
