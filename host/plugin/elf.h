// elf.h: a shared object as a file: its notes, what it exports and needs, and its constant data
// with the addresses that the loader would fill in. Nothing of it is run, and nothing in it is
// trusted.
//
// 64-bit little-endian objects of x86-64 and aarch64. Addresses are those of the file before it is
// loaded. Errors are sentences without the path: RLHF_E_INVALID for a file that is damaged or none
// of these.
#ifndef RLHF_HOST_PLUGIN_ELF_H
#define RLHF_HOST_PLUGIN_ELF_H

#include "base/error.h"

struct rlhf__elf_load;  // a part of the file and where it is loaded
struct rlhf__elf_moved; // an address that the loader fills in

struct rlhf__elf {
    const uint8_t *bytes; // borrowed, [n]
    uint64_t n;
    struct rlhf__elf_load *load;   // [n_load]
    struct rlhf__elf_moved *moved; // [n_moved], ascending
    uint64_t n_load, n_moved;
    uint64_t symbols, strings, n_strings; // dynamic symbols and their names; 0: there are none
    uint64_t gnu_hash, hash;              // of the symbols; 0 = none
    uint64_t dynamic, n_dynamic;          // offset and number of entries
    uint32_t machine, reserved;           // EM_X86_64, EM_AARCH64
};

// Read the tables of a file of n bytes, which stay where they are until finish. *e needs finish
// also after a failure. RLHF_E_NOMEM, or as above. [any]
rlhf_status rlhf__elf_init(struct rlhf__elf *e, const void *bytes, uint64_t n,
                           struct rlhf__error *err);
void rlhf__elf_finish(struct rlhf__elf *e); // accepts a zeroed one [any]

// Copy n bytes that are loaded at address `at`, as the file has them; what it leaves to be zeroed
// is zero. [any]
rlhf_status rlhf__elf_read(const struct rlhf__elf *e, uint64_t at, void *out, uint64_t n,
                           struct rlhf__error *err);

enum { RLHF__ELF_NULL = 0, RLHF__ELF_HERE = 1, RLHF__ELF_ELSEWHERE = 2 };

// What the 8 bytes at address `at` are once loaded: NULL, an address of this file (*to), or
// something else: an address that only the loader knows (*to 0), or a number (*to). [any]
int rlhf__elf_pointer(const struct rlhf__elf *e, uint64_t at, uint64_t *to);

// The NUL-ended text at address `at`, at most cap - 1 bytes, into out[cap]. [any]
rlhf_status rlhf__elf_text(const struct rlhf__elf *e, uint64_t at, char *out, uint64_t cap,
                           struct rlhf__error *err);

// The first note of that owner: 1, its type, the address and the bytes of what it holds; 0 when
// there is none. [any]
int rlhf__elf_note(const struct rlhf__elf *e, const char *owner, uint32_t *type, uint64_t *at,
                   uint64_t *n);

// Calls visit with the name of every symbol that the object offers to others, or of every object
// that it needs, until visit returns non-zero, which is returned; else 0. Names are cut to 255
// bytes. [any]
int rlhf__elf_exports(const struct rlhf__elf *e, int (*visit)(void *arg, const char *name),
                      void *arg);
int rlhf__elf_needs(const struct rlhf__elf *e, int (*visit)(void *arg, const char *name),
                    void *arg);

#endif
