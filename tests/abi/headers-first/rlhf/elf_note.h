// rlhf/elf_note.h: what a file says of itself to a reader that does not run it: an ELF note that
// leads to its bundle (plugin.h) or to its table of kernels (compute.h). `rlhf-host plugin list`
// and `plugin info` read the note, the descriptors, their texts and their option tables out of the
// file, and open nothing.
//
// What the note leads to must be constant data that the linker finishes: no constructor, of C++ or
// of any other language, has run when it is read. A file without a note works as before; only
// looking at it means opening it.
//
// RLHF_DEFINE_PLUGIN and RLHF_DEFINE_KERNELS write it. In other languages an rlhf_elf_note, 8-byte
// aligned, goes into a section called .note.rlhf (Rust: #[link_section = ".note.rlhf"] #[used]).
// [R:note]
#ifndef RLHF_ELF_NOTE_H
#define RLHF_ELF_NOTE_H

#include "base.h"

#define RLHF_NOTE_PLUGIN "rlhf-plugin" // at: an rlhf_bundle
#define RLHF_NOTE_KERNEL "rlhf-kernel" // at: an rlhf_kernels

// The note in the system's form, for owners of 12 bytes. Frozen.
typedef struct rlhf_elf_note {
    uint32_t owner_size, at_size; // 12 and 8
    uint32_t type;                // RLHF_ABI_MAJOR
    char owner[12];               // one of the two above, NUL-ended
    // An address, which the loader fills in, or how many bytes behind this field it is.
    const void *at;
} rlhf_elf_note;

// In the body of a function: the note of that owner, which leads to `at`, the address of static
// data. Where ELF is another one, none.
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
