// rlhf/base.h: the words every other SDK header is written in: status codes, strings, visibility.
//
// What it is not: it declares no function of the host and no plugin; see plugin.h for those.
//
// Growth rule (contract v0): a struct whose first member is `uint32_t size` only ever grows at its
// end. The writer sets size; the reader copies min(size, its own) into a zeroed copy. An absent
// field reads as 0 and 0 always means "old behaviour"; a longer input must have a zero tail, else
// it is refused. Such a struct is never embedded by value and never put in an array. Structs
// without `size` are frozen for this major version. No struct has padding holes (-Wpadded).
//
// Thread tags, in the comment of every function:
//   [main]  the host's control thread;
//   [step]  at most one call at a time per instance, any OS thread;
//   [any]   concurrent calls are allowed.
//
// Ownership: arguments are borrowed until return; what a create/open function made, its
// destroy/close twin frees; nobody frees the other side's memory. Strings are UTF-8.
#ifndef RLHF_BASE_H
#define RLHF_BASE_H

#include <stddef.h>
#include <stdint.h>

#define RLHF_ABI_MAJOR   0       // v0: exact match of major and minor, loud refusal, no promise yet
#define RLHF_ABI_MINOR   4       // sdk/ChangeLog.md says what each minor brought
#define RLHF_SDK_VERSION "0.4.0" // <major>.<minor>.<patch>; the program's own version too

#define RLHF_EXPORT __attribute__((visibility("default")))

// True when struct *p was written by a side that knows field f, and f is set.
#define RLHF_HAS(T, p, f) ((p)->size >= offsetof(T, f) + sizeof((p)->f) && (p)->f)

// 0, or one of the negative codes below; an unknown negative reads as RLHF_E_INTERNAL.
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
#define RLHF__STATUS_ENUM(name, value, text) RLHF_##name = (value),
    RLHF_STATUS_MAP(RLHF__STATUS_ENUM)
#undef RLHF__STATUS_ENUM
};

// Return from the calling function when a call failed.
#define RLHF_TRY(call)                                                                             \
    do {                                                                                           \
        rlhf_status rlhf__st = (call);                                                             \
        if (rlhf__st < 0) return rlhf__st;                                                         \
    } while (0)

// A borrowed byte string, not NUL-ended. ptr may be NULL when len is 0. Frozen.
typedef struct rlhf_str {
    const char *ptr;
    uint64_t len;
} rlhf_str;

#endif
