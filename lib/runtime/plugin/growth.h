// growth.h: the growth rule of the contract (base.h) on the host's side, for structs that the host
// passes to a plugin and for structs that a plugin fills.
//
// The host's own functions pass complete structs to each other. Only where a plugin is called is
// `size` set, to the struct's size in the plugin's minor version (rlhf__plugin.abi_minor).
#ifndef RLHF_HOST_PLUGIN_GROWTH_H
#define RLHF_HOST_PLUGIN_GROWTH_H

#include "base/error.h"
#include "supervise/tail.h"

#include <rlhf/sink.h>
#include <stdalign.h>

// RLHF__STRUCT_rlhf_plan and so on: all structs of the contract that have a size.
enum rlhf__struct {
#define STRUCT(name, ...) RLHF__STRUCT_##name,
#include "growth_table.inc"
#undef STRUCT
    RLHF__STRUCTS
};

// Returns the struct's size for a plugin that was built with this minor version of the contract. If
// it is later than the host's, returns the host's size. [any]
uint32_t rlhf__struct_size(enum rlhf__struct which, uint32_t minor);

const char *rlhf__struct_name(enum rlhf__struct which); // "rlhf_plan" [any]

// Returns the member `reserved` of *p, or 0 if the struct has none. [any]
uint32_t rlhf__struct_reserved(enum rlhf__struct which, const void *p);

// Set the size of *p, a struct of type T, for a plugin that was built with this minor version.
// [any]
#define RLHF__PASS(T, p, minor) rlhf__struct_pass(RLHF__STRUCT_##T, 1 ? (p) : (T *)0, minor)
void rlhf__struct_pass(enum rlhf__struct which, void *p, uint32_t minor);

// Like RLHF__PASS, for a struct that the plugin gets as a pointer to const. After the call,
// rlhf__tails_end restores the struct and finds a plugin that has changed it. [any]
#define RLHF__LEND(T, p, minor, tails)                                                             \
    (RLHF__PASS(T, p, minor), rlhf__tails_lend(tails, #T, p, sizeof(T)))

// RLHF__LEND for the spreads of a phase. The program writes four; more than fit into `tails` are
// passed without a check. [any]
static inline void rlhf__spreads_lend(const rlhf_sink_phase *p, uint32_t minor,
                                      struct rlhf__tails *tails) {
    for (uint32_t i = 0; i < p->n_spreads; i++) {
        rlhf_spread *s = (rlhf_spread *)(uintptr_t)p->spread[i]; // the host's own
        RLHF__PASS(rlhf_spread, s, minor);
        if (tails->n_loans < RLHF__LOANS) rlhf__tails_lend(tails, "rlhf_spread", s, sizeof *s);
    }
}

// Zeroed bytes after a struct that a plugin fills.
enum { RLHF__ROOM = 512, RLHF__FILLED_MAX = 512 };

// A struct that a plugin fills, followed by RLHF__ROOM bytes.
struct rlhf__filled {
    alignas(16) unsigned char bytes[RLHF__FILLED_MAX + RLHF__ROOM];
    enum rlhf__struct which;
    uint32_t size;
};

// Returns a zeroed T with room in *f, for a plugin that was built with this minor version. The
// caller may set members that the plugin reads. [any]
#define RLHF__FILLED(T, f, minor)                                                                  \
    ((T *)rlhf__filled_begin(f, RLHF__STRUCT_##T, (minor) + RLHF__FITS(T)))
// 0; does not compile if a T is longer than RLHF__FILLED_MAX.
#define RLHF__FITS(T) (0 * (uint32_t)sizeof(char[sizeof(T) <= RLHF__FILLED_MAX ? 1 : -1]))
void *rlhf__filled_begin(struct rlhf__filled *f, enum rlhf__struct which, uint32_t minor);

// Copy the struct that the plugin has filled to *out, a complete struct of the host. Fails if the
// plugin has changed `size`, has set a byte after it (a field that this host does not know), or has
// set `reserved`. Errors: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__filled_end(const struct rlhf__filled *f, void *out, struct rlhf__error *err);

// A pointer that the host has set in a struct that a plugin fills.
struct rlhf__lent {
    const char *member; // "advantage"
    const void *was, *is;
};

// Fails if the plugin has replaced one of the n pointers. `name` is the struct's name. Errors:
// RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__lent_kept(const char *name, const struct rlhf__lent *lent, size_t n,
                            struct rlhf__error *err);

#endif
