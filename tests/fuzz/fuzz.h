// fuzz.h: the entry point of a fuzz target, and the function by which it reports a violated
// property.
//
// A target checks properties, not only the absence of crashes. A violated property aborts, which
// libFuzzer and replay.c detect. CMocka is not used.
#ifndef RLHF_TESTS_FUZZ_H
#define RLHF_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define FUZZ_CHECK(condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
