// rlhf/draft/program.h: DRAFT, not part of the stable contract: it may change or disappear in any
// minor. Programs that the user named and that work for a plugin: the host starts them and
// supervises them.
//
// A program runs without a shell in a session of its own, with the user's environment and working
// directory, its standard input, output and error on pipes, and no other file. It ends, with
// everything that it has started, when the plugin ends it, when its first process ends, and when
// the host does.
#ifndef RLHF_DRAFT_PROGRAM_H
#define RLHF_DRAFT_PROGRAM_H

#include "../host.h"

// The extension (rlhf_plugin.extension, with self NULL) of a plugin whose work is done by programs
// that it starts with the service below: if it came with the host, `isolate` and `network` are
// about the programs, and the plugin stays in the host's process.
#define RLHF_EXT_PROGRAM "rlhf.draft.program/0"
typedef struct rlhf_program_use {
    uint32_t size, reserved;
} rlhf_program_use;

#define RLHF_SVC_PROGRAM "rlhf.draft.program/0"

typedef struct rlhf_program {
    uint32_t size, reserved;
    const char *path;       // of its file, absolute
    char *const *argv;      // ended by NULL
    const char *const *env; // assignments after the user's, ended by NULL; NULL = none
    uint64_t memory_bytes;  // address space of each of its processes; 0 = unlimited
} rlhf_program;

// A program that was started.
typedef struct rlhf_process {
    uint32_t size;
    int32_t in, out, err; // our ends of its standard input, output and error, which do not block.
                          // The plugin may close `in` and set it to -1
    const char *confined; // what it may not do, in words; NULL = it may do what the user may
} rlhf_process;

typedef struct rlhf_program_service {
    uint32_t size, reserved;
    // Start a program. On RLHF_E_IO *error is the errno of what failed.
    // Release with end. [step]
    rlhf_status (*start)(const rlhf_host *, const rlhf_program *, rlhf_process **out,
                         int32_t *error);
    // 1 when its first process has ended, and with it the others: *how = its wait status (POSIX).
    // [step]
    int32_t (*ended)(const rlhf_host *, rlhf_process *, int32_t *how);
    // Between calls a program that is isolated does not run: 1 before it is asked, 0 after its
    // answer. [step]
    void (*works)(const rlhf_host *, rlhf_process *, int32_t on);
    // End it with everything that it has started. NULL allowed. [step]
    void (*end)(const rlhf_host *, rlhf_process *);
} rlhf_program_service;

#endif
