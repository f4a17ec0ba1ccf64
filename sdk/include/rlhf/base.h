// rlhf/base.h: definitions shared by all SDK headers: status codes, strings, visibility.
//
// Plugin contract 1.0, frozen: it only grows.
//
// It declares neither host functions (host.h) nor plugins (plugin.h).
//
// The rules below hold for two contracts, each with a separate version: the plugin contract
// (base.h, host.h, log.h, rng.h, option.h, plugin.h, heads.h, reward.h, algo.h, environment.h,
// sink.h, shards.h, service.h) and the compute contract (compute.h, model.h). So a new operation of
// the compute table does not affect a reward.
//
// Growth rule (contract v0): a struct whose first member is `uint32_t size` only ever grows at its
// end. The side that creates the struct sets `size` to the length it knows. The other side reads
// the struct with rlhf_copy_in, writes results into it with rlhf_copy_out, and never compares sizes
// for equality. An absent field reads as 0, and 0 always means "old behavior". If a struct is
// longer than the reader's version, its extra bytes must be 0; otherwise the reader rejects it. A
// struct with `size` is never embedded by value or put in an array. Structs without `size` are
// frozen for this major version. No struct has padding (-Wpadded).
//
// Number types: uint32_t for counts and indices within one call (rows, tokens, labels, epochs,
// minibatches); int64_t for numbers that grow with a run (phases, optimizer steps, data rows,
// tokens of a batch); int32_t for token ids, enums and arrays per row.
//
// Reading in place, without rlhf_copy_in: in v0, host and plugin have the same minor version, so
// every field of that version is present. v1 will begin with the layout that the structs have when
// v1 is frozen. From then on, test for a field of a later minor version with RLHF_HAS, or require
// that version with rlhf_plugin.host_minor_min. If a function's pointer in a table is NULL, or lies
// beyond the table's size, the function is not supported.
//
// Thread tags, in the comment of every function:
//   [main]   the host's control thread;
//   [step]   at most one call at a time per instance, any OS thread;
//   [call]   a function of the host that a plugin may call only while one of its own [main] or
//            [step] functions runs, and only on the thread on which it runs;
//   [alone]  a function of a service that computes with a model: at most one call at a time,
//            whichever plugin or thread calls it (service.h);
//   [any]    concurrent calls are allowed.
//
// Tags of rules: [R:leak] marks a sentence that `rlhf-host plugin check` tests under the id "leak".
// Its messages and docs/checking-a-plugin.md name rules by these ids.
//
// Ownership: arguments are borrowed until return. An object made by a create/open function is freed
// by the matching destroy/close. Neither side frees the other's memory. Strings are UTF-8. [R:leak]
// [R:crash] [R:borrowed]
//
// A call begins with rounding to nearest and without flush-to-zero, and must return so. After each
// call and after loading a plugin, the host restores both. [R:floats]
#ifndef RLHF_BASE_H
#define RLHF_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The version of the plugin contract. Each addition has a new minor (sdk/ChangeLog.md).
#define RLHF_ABI_MAJOR 1
#define RLHF_ABI_MINOR 0
// The release of the program that these headers come from, <major>.<minor>.<patch>. It does not
// depend on the contract's version.
#define RLHF_SDK_VERSION "0.11.0"

#define RLHF_EXPORT __attribute__((visibility("default")))

// The size in bytes of a T in the version in which `f` was the last field.
#define RLHF_SIZE_TO(T, f) ((uint32_t)(offsetof(T, f) + sizeof(((T *)0)->f)))

// True if *p, which is a T, is long enough to have the field `f`, and this field is not 0.
#define RLHF_HAS(T, p, f) ((p)->size >= RLHF_SIZE_TO(T, f) && (p)->f)

// 0, or one of the negative codes below; an unknown negative code is treated as RLHF_E_INTERNAL.
// [R:ends-process] [R:status]
typedef int32_t rlhf_status;

// X(name, value, text): one list that defines the enum, the names and the texts.
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

// Returns from the calling function if `call` failed.
#define RLHF_TRY(call)                                                                             \
    do {                                                                                           \
        rlhf_status rlhf_try_status = (call);                                                      \
        if (rlhf_try_status < 0) return rlhf_try_status;                                           \
    } while (0)

// A larger size is garbage, not a struct of a future version.
#define RLHF_STRUCT_MAX 65536u

// Reads a sized struct from the other side: copies its first min(size, own) bytes to `dst`, which
// has `own` bytes, and zeroes the rest of `dst`. `first` is the struct's size in its first version,
// RLHF_SIZE_TO(T, last field of the first version). Returns RLHF_E_INVALID if src is shorter than
// `first` or longer than RLHF_STRUCT_MAX, and RLHF_E_UNSUPPORTED if a byte of src after its first
// `own` bytes is not 0. After an error, dst is all zeros. [any]
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

// Writes results into a sized struct of the other side: copies min(size, own) bytes of src to dst
// and zeroes the rest of dst. dst keeps its size field. Returns RLHF_E_INVALID in the same cases as
// rlhf_copy_in. [any]
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
