// test_prototypes.cpp: checks at compile time that the fake runtime's declarations match NVIDIA's.
// Skipped without the toolkit.
#include <stdio.h>

#if __has_include(<cuda_runtime_api.h>)
#include "fake_list.h"
#include <cuda_runtime_api.h>
#include <type_traits>

#if CUDART_VERSION < 12080
enum { cudaErrorContained = 226 }; // newer than these headers
#endif

#define SAME_FUNCTION(type, name, parameters)                                                      \
    static_assert(std::is_same<decltype(&name), type(*) parameters>::value, #name);
FAKE_FUNCTIONS(SAME_FUNCTION)

#define SAME_VALUE(name, value) static_assert((int)(name) == (value), #name);
FAKE_ERRORS(SAME_VALUE)
FAKE_MEMCPY_KINDS(SAME_VALUE)
FAKE_CAPTURE_MODES(SAME_VALUE)
FAKE_CAPTURE_STATES(SAME_VALUE)
FAKE_ATTRIBUTES(SAME_VALUE)
FAKE_POOL_ATTRIBUTES(SAME_VALUE)
FAKE_FLAGS(SAME_VALUE)

#define SAME_MEMBER(type, name)                                                                    \
    static_assert(std::is_same<decltype(cudaDeviceProp::name), type>::value, #name);
FAKE_PROPERTIES(SAME_MEMBER)
static_assert(std::is_same<decltype(cudaDeviceProp::name), char[256]>::value, "name");

int main(void) {
    printf("the fake runtime is declared as CUDA %d.%d\n", CUDART_VERSION / 1000,
           CUDART_VERSION % 1000 / 10);
    return 0;
}
#else
int main(void) {
    puts("skipped: no cuda_runtime_api.h on this machine");
    return 77;
}
#endif
