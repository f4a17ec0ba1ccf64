// rlhf/base.h: definitions shared by all SDK headers: status codes, strings, visibility.
//
// Plugin contract 1.0, frozen: it only grows.
//
// It declares neither host functions (host.h) nor plugins (plugin.h).
//
// The rules below hold for two contracts, each with a separate version: the plugin contract
// (base.h, host.h, log.h, rng.h, option.h, plugin.h, heads.h, reward.h, algo.h, environment.h,
// sink.h, shards.h, service.h, exact.h) and the compute contract (compute.h, model.h). So a new
// operation of the compute table does not affect a reward.
//
// Growth rule: a struct whose first member is `uint32_t size` only ever grows at its end. An absent
// field reads as 0, and 0 always means "old behavior". A struct with `size` is never embedded by
// value or put in an array, and no side compares its size for equality. Structs without `size` are
// frozen for this major version, except rlhf_opt, whose rows grow by the stride of their table. A
// member `reserved` fills a gap: it is 0, and no later version gives it a meaning. No struct has
// padding (-Wpadded).
//
// Enums and flags grow, too. The host passes a plugin only values and bits of the minor version
// that the plugin was built with, unless the comment says that more may come. Lists of names
// (metrics, spreads, warnings, findings) may always have further entries. The host refuses a plugin
// that sets a bit which no enum of the host's version has; a member `flags` for which no enum
// exists must be 0. Constants keep their values in all of 1.x, except limits whose comment says
// that they may become larger. A limit that only a comment has may become larger.
//
//   The plugin makes a struct (a table, its descriptor): it sets `size` to the length that it
//   knows. If the struct is longer than the host's version, its extra bytes must be 0; otherwise
//   the host rejects it.
//   The host passes a struct: its `size` is at most the struct's size in the minor version that the
//   plugin was built with (rlhf_bundle.abi_minor). So a plugin that reads it with rlhf_copy_in, or
//   in place, works on every later host.
//   The plugin fills a struct of the host (a plan, a loss), which it gets as a pointer that is not
//   const: it leaves `size` as it is, and writes no byte at or after `size`, for example with
//   rlhf_copy_out. Zeroed bytes follow the struct. The host rejects a plugin that has set one of
//   them, or changed `size`, or changed a pointer that the host had set. [R:room]
//   The plugin gets a struct of the host as a pointer to const: the struct stays as it is, and only
//   arrays that it points to may be for results (rlhf_reward_out). No zeroed bytes follow it. In
//   save() and load() and in all functions of algorithms, rewards, environments and sinks, the host
//   restores the struct and rejects a plugin that has changed it. (A sink then fails, and the run
//   goes on without it.) Not compared: the structs of why_unused() and close(), which are copies
//   that the host never reads again; rlhf_host; the tables of services; the structs of model and
//   kernels plugins. [R:room]
//   Arrays and texts of the host that the plugin gets as pointers to const stay as they are, too;
//   the host need not notice a write to them. [R:borrowed]
//   The plugin makes a struct that the host fills (rlhf_language_info), or of which the host sets a
//   member (rlhf_encode_out): the plugin sets `size` and zeros what it does not set, and the host
//   writes at most `size` bytes.
//
// All names that begin with rlhf_ or RLHF_ belong to these headers. A later version may add any of
// them, so a plugin defines none for itself, except RLHF_ENTRY and its entry function.
//
// Names that begin with rlhf_x_ or RLHF_X_ are the inside of these headers, and so are all names of
// the headers in rlhf/exact/. Plugins must not use them, because they may change in any version.
// The bodies of inline functions and of macros with arguments may change, too; what they do may
// not.
//
// A plugin gives the host only values of its headers. The host refuses any other value of an enum,
// a number that should be 0 or 1 and is not, and a `reserved` that is not 0.
//
// Plugins choose names: of options (rlhf_opt.key), metrics (rlhf_host.metric) and models
// (rlhf_plan.named). Names that begin with "host_" or "host/" belong to the host, and so do the
// names and prefixes that docs/contract.md lists. The host refuses them. Later versions take no
// other names, so they run with every name that this version accepts.
//
// Number types: uint32_t for counts and indices within one call (rows, tokens, labels, epochs,
// minibatches); int64_t for numbers that grow with a run (phases, optimizer steps, data rows,
// tokens of a batch); int32_t for token ids, enums and arrays per row, among them the offsets of
// ragged arrays: a call has at most 2^31 - 1 tokens. A switch (0 or 1) is of either 32-bit type.
// Enums and switches per row may be uint8_t. In
// service.h, sizes of models and limits are int32_t, too; the host refuses negative ones.
//
// Reading in place, without rlhf_copy_in: a plugin runs on hosts of the minor version that it was
// built with and of later ones, so every field in its headers is present. Only a plugin that
// promises to run on older hosts (rlhf_plugin.host_minor_min) must test for later fields, with
// RLHF_HAS. If a function's pointer in a table is NULL, or lies beyond the table's size, the
// function is not supported. A function whose first argument is the struct that has it (rlhf_host,
// rlhf_ostream, rlhf_istream, rlhf_episode_out) needs the host's own struct there, not a copy.
//
// Thread tags, in the comment of every function:
//   [main]   the host's control thread;
//   [step]   at most one call at a time per instance, any OS thread;
//   [call]   a function of the host that a plugin may call only while one of its own [main] or
//            [step] functions runs, and only on the thread on which it runs;
//   [alone]  a function of a service that computes with a model: like [call], so at most one runs
//            at a time;
//   [any]    concurrent calls are allowed.
// A plugin may start threads. But if it runs in a worker process, the host suspends this process
// between two calls. So threads make no progress then, and a system call of theirs may return
// EINTR.
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
// The release of the program that these headers come from: <major>.<minor>.<patch>, with -rc<n> if
// it is a candidate. It does not depend on the contract's version.
#define RLHF_SDK_VERSION "1.0.0-rc1"

#ifdef __cplusplus
static_assert(sizeof(void *) == 8, "the plugin contract is for 64-bit machines");
#else
_Static_assert(sizeof(void *) == 8, "the plugin contract is for 64-bit machines");
#endif

#ifdef __GNUC__
#define RLHF_EXPORT __attribute__((visibility("default")))
// A printf-like function: the positions of its format and of its first argument.
#define RLHF_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define RLHF_EXPORT
#define RLHF_PRINTF(format_at, args_at)
#endif

// The size in bytes of a T in the version in which `f` was the last field.
#define RLHF_SIZE_TO(T, f) ((uint32_t)(offsetof(T, f) + sizeof(((T *)0)->f)))

// True if *p, which is a T, is long enough to have the field `f`, and this field is not 0.
#define RLHF_HAS(T, p, f) ((p)->size >= RLHF_SIZE_TO(T, f) && (p)->f)

// 0, or one of the negative codes below; an unknown negative code is treated as RLHF_E_INTERNAL.
// [R:ends-process] [R:status]
typedef int32_t rlhf_status;

enum rlhf_status_code {
    RLHF_OK = 0,
    RLHF_E_INVALID = -1,     // invalid input
    RLHF_E_NOMEM = -2,       // out of memory
    RLHF_E_UNSUPPORTED = -3, // not supported
    RLHF_E_IO = -4,          // input/output error
    RLHF_E_NUMERIC = -5,     // not a finite number
    RLHF_E_DEVICE = -6,      // device error
    RLHF_E_CANCELLED = -7,   // cancelled
    RLHF_E_INTERNAL = -8     // internal error
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
// rlhf_copy_in, and RLHF_E_UNSUPPORTED if dst is too short for a byte of src that is not 0. After
// an error, dst is unchanged. [any]
static inline rlhf_status rlhf_copy_out(void *dst, const void *src, uint32_t own, uint32_t first) {
    const unsigned char *bytes = (const unsigned char *)src;
    uint32_t size;
    memcpy(&size, dst, sizeof size);
    if (size < first || size > RLHF_STRUCT_MAX) return RLHF_E_INVALID;
    for (uint32_t i = size; i < own; i++)
        if (bytes[i]) return RLHF_E_UNSUPPORTED;
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
