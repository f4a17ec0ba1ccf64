// rlhf/draft/program.h: DRAFT, not in plugin contract 1.0: it may change in any minor.
// Lets a plugin use programs that the user has named: the host starts and supervises them.
//
// A program runs without a shell, in a separate session, with the user's environment and working
// directory. Its standard input, output and error are pipes, and it has no other open files. The
// program and everything that it has started are terminated when the plugin ends the program, when
// the program's first process exits, or when the host exits.
#ifndef RLHF_DRAFT_PROGRAM_H
#define RLHF_DRAFT_PROGRAM_H

#include "../host.h"

// The extension (rlhf_plugin.extension, with self NULL) of a plugin that starts programs with the
// service below and lets them do its work. If the plugin came with the host, the options `isolate`
// and `network` apply only to its programs; the plugin itself stays in the host's process.
#define RLHF_EXT_PROGRAM "rlhf.program/1"
typedef struct rlhf_program_use {
    uint32_t size;
    // With the instance as self: 1 if its programs promise what RLHF_ENVIRONMENT_FUNCTION says.
    int32_t function;
} rlhf_program_use;

#define RLHF_SVC_PROGRAM "rlhf.program/1"

typedef struct rlhf_program {
    uint32_t size, reserved;
    const char *path;       // absolute path of its file
    char *const *argv;      // ended by NULL
    const char *const *env; // assignments after the user's, ended by NULL; NULL = none
    uint64_t memory_bytes;  // address space of each of its processes; 0 = unlimited
} rlhf_program;

// A program that was started.
typedef struct rlhf_process {
    uint32_t size;
    int32_t in, out, err; // the plugin's non-blocking ends of the program's standard input, output
                          // and error. The plugin may close `in` and set it to -1
    const char *confined; // the program's restrictions, as text; NULL = it may do what the user may
} rlhf_process;

typedef struct rlhf_program_service {
    uint32_t size, reserved;
    void *self; // the host's
    // Starts a program. If this returns RLHF_E_IO, *error is the errno of the failed call. Release
    // the program with `end`. [step]
    rlhf_status (*start)(const rlhf_host *, const rlhf_program *, rlhf_process **out,
                         int32_t *error);
    // Returns 1 if the program's first process has ended; the program's other processes end with
    // it. Sets *how to the wait status of the first process (POSIX). [step]
    int32_t (*ended)(const rlhf_host *, rlhf_process *, int32_t *how);
    // Resumes (on = 1) or suspends (on = 0) an isolated program. Such a program must not run
    // between calls, so pass 1 before a request and 0 after the answer. [step]
    void (*works)(const rlhf_host *, rlhf_process *, int32_t on);
    // Ends the program with everything that it has started. NULL allowed. [step]
    void (*end)(const rlhf_host *, rlhf_process *);
} rlhf_program_service;

#endif
