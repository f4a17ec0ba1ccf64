// rlhf/base.h: the words every other SDK header is written in: status codes, strings, visibility.
//
// What it is not: it declares no function of the host and no plugin; see plugin.h for those.
//
// Growth rule (contract v0): a struct whose first member is `uint32_t size` only ever grows at its
// end. Who makes it sets size to what it knows; the other side reads it with rlhf_copy_in and
// answers in it with rlhf_copy_out, and never compares a size for equality. An absent field reads
// as 0 and 0 always means "old behaviour"; a longer struct must have a zero tail, else it is
// refused. Such a struct is never embedded by value and never put in an array. Structs without
// `size` are frozen for this major version. No struct has padding holes (-Wpadded).
//
// Reading in place: while v0, host and plugin are of one minor, so every field of that minor is
// there. The first version of v1 is the layout at the freeze. From then on a field that came with a
// later minor is asked for with RLHF_HAS, or required with rlhf_plugin.host_minor_min. A table's
// function that is NULL or beyond its size is not supported.
//
// Thread tags, in the comment of every function:
//   [main]  the host's control thread;
//   [step]  at most one call at a time per instance, any OS thread;
//   [any]   concurrent calls are allowed.
//
// Ownership: arguments are borrowed until return; what a create/open function made, its
// destroy/close twin frees; nobody frees the other side's memory. Strings are UTF-8. [R:leak]
// [R:crash] [R:borrowed]
#ifndef RLHF_BASE_H
#define RLHF_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RLHF_ABI_MAJOR   0       // v0: exact match of major and minor, loud refusal, no promise yet
#define RLHF_ABI_MINOR   9       // sdk/ChangeLog.md says what each minor brought
#define RLHF_SDK_VERSION "0.9.0" // <major>.<minor>.<patch>; the program's own version too

#define RLHF_EXPORT __attribute__((visibility("default")))

// The bytes of a T whose last field is f: how long it was when f was new.
#define RLHF_SIZE_TO(T, f) ((uint32_t)(offsetof(T, f) + sizeof(((T *)0)->f)))

// True when *p, a T, was made by a side that knows field f, and f is set.
#define RLHF_HAS(T, p, f) ((p)->size >= RLHF_SIZE_TO(T, f) && (p)->f)

// 0, or one of the negative codes below; an unknown negative reads as RLHF_E_INTERNAL.
// [R:ends-process] [R:status]
typedef int32_t rlhf_status;

// X(name, value, text): one list gives the enum, the names and the texts.
#define RLHF_STATUS_MAP(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(E_INVALID, -1, "invalid input")                                                              \
    X(E_NOMEM, -2, "out of memory")                                                                \
    X(E_UNSUPPORTED, -3, "not supported")                                                          \
    X(E_IO, -4, "input/output error")                                                              \
    X(E_NUMERIC, -5, "not a finite number")                                                        \
    X(E_DEVICE, -6, "device error")                                                                \
    X(E_CANCELLED, -7, "cancelled")                                                                \
    X(E_INTERNAL, -8, "internal error")

enum rlhf_status_code {
#define RLHF_STATUS_ENUM(name, value, text) RLHF_##name = (value),
    RLHF_STATUS_MAP(RLHF_STATUS_ENUM)
#undef RLHF_STATUS_ENUM
};

// Return from the calling function when a call failed.
#define RLHF_TRY(call)                                                                             \
    do {                                                                                           \
        rlhf_status rlhf_try_status = (call);                                                      \
        if (rlhf_try_status < 0) return rlhf_try_status;                                           \
    } while (0)

// A size beyond this is garbage, not a struct of the future.
#define RLHF_STRUCT_MAX 65536u

// Reads a sized struct of the other side: dst[own] becomes its first min(size, own) bytes and
// zeros. first is the shortest it has ever been, RLHF_SIZE_TO(T, last field of the first version).
// RLHF_E_INVALID: src is shorter than that, or longer than RLHF_STRUCT_MAX. RLHF_E_UNSUPPORTED: a
// field that dst has no room for is set. After an error dst reads 0. [any]
static inline rlhf_status rlhf_copy_in(void *dst, uint32_t own, const void *src, uint32_t first) {
    const unsigned char *bytes = (const unsigned char *)src;
    uint32_t size;
    memset(dst, 0, own);
    memcpy(&size, src, sizeof size);
    if (size < first || size > RLHF_STRUCT_MAX) return RLHF_E_INVALID;
    for (uint32_t i = own; i < size; i++)
        if (bytes[i]) return RLHF_E_UNSUPPORTED;
    memcpy(dst, src, size < own ? size : own);
    return RLHF_OK;
}

// Answers in a sized struct that the other side made: what dst has room for becomes src's own
// bytes, the rest of it 0; its size stays. RLHF_E_INVALID as in rlhf_copy_in. [any]
static inline rlhf_status rlhf_copy_out(void *dst, const void *src, uint32_t own, uint32_t first) {
    uint32_t size;
    memcpy(&size, dst, sizeof size);
    if (size < first || size > RLHF_STRUCT_MAX) return RLHF_E_INVALID;
    memcpy(dst, src, size < own ? size : own);
    if (size > own) memset((char *)dst + own, 0, size - own);
    memcpy(dst, &size, sizeof size);
    return RLHF_OK;
}

// A borrowed byte string, not NUL-ended. ptr may be NULL when len is 0. Frozen. [R:text]
typedef struct rlhf_str {
    const char *ptr;
    uint64_t len;
} rlhf_str;

#endif
