// rlhf/elf_note.h: an ELF note that points to a file's plugin bundle (plugin.h) or kernels table
// (compute.h), so that the file can be described without running it. `rlhf-host plugin list` and
// `plugin info` read the note, the descriptors, their texts and their option tables from the file,
// without loading it.
//
// Everything reachable from the note must be constant data that is complete after linking: it is
// read before constructors, in C++ or any other language, have run. A file without a note still
// works, but it must be loaded to be described.
//
// RLHF_DEFINE_PLUGIN and RLHF_DEFINE_KERNELS emit it. In other languages, put an rlhf_elf_note,
// 8-byte aligned, into a section named .note.rlhf (Rust: #[link_section = ".note.rlhf"] #[used]).
// [R:note]
#ifndef RLHF_ELF_NOTE_H
#define RLHF_ELF_NOTE_H

#include "base.h"

#define RLHF_NOTE_PLUGIN "rlhf-plugin" // at: an rlhf_bundle
#define RLHF_NOTE_KERNEL "rlhf-kernel" // at: an rlhf_kernels

// The note in ELF's standard layout, for an owner of 12 bytes. Frozen.
typedef struct rlhf_elf_note {
    uint32_t owner_size, at_size; // 12 and 8
    uint32_t type;                // RLHF_ABI_MAJOR
    char owner[12];               // one of the two above, NUL-terminated
    // An address, filled in by the loader, or the distance in bytes from this field.
    const void *at;
} rlhf_elf_note;

// For use inside a function body: emits the note of that owner, which points to `at`, the address
// of static data. On other ELF targets no note is emitted.
#if defined __x86_64__ && defined __ELF__
#define RLHF_ELF_ADDRESS "i"
#elif defined __aarch64__ && defined __ELF__
#define RLHF_ELF_ADDRESS "S"
#endif
#ifdef RLHF_ELF_ADDRESS
#define RLHF_ELF_NOTE(owner, at)                                                                   \
    __asm__ volatile(".pushsection .note.rlhf, \"a\", %%note\n"                                    \
                     ".balign 8\n"                                                                 \
                     ".long 12, 8, %c1\n"                                                          \
                     ".ascii \"" owner "\\0\"\n"                                                   \
                     ".quad %c0 - .\n"                                                             \
                     ".popsection"                                                                 \
                     :                                                                             \
                     : RLHF_ELF_ADDRESS(at), "i"(RLHF_ABI_MAJOR))
#else
#define RLHF_ELF_NOTE(owner, at) ((void)(at))
#endif

#endif
