// dirs.h: where the program finds its plugins, kernels, models and configs, relative to its
// executable.
#ifndef RLHF_CORE_BASE_DIRS_H
#define RLHF_CORE_BASE_DIRS_H

#include "base/error.h"
#include "base/file.h"

#include <stddef.h>

struct rlhf__dirs {
    char exe[1024];   // directory of the executable
    char lib[1100];   // <...>/lib/rlhf/1: algos, rewards, models, kernels below it
    char share[1100]; // <...>/share/rlhf: models, configs, prompts below it
    char user[1100];  // the user's own plugins, a directory for each kind; "" = none
    // The program's executable file. To supervise foreign code, the program runs this file again as
    // a warden. main() sets the path. If it is "", the program cannot start wardens.
    char program[1024];
};

// Set `out` to the absolute path of the program's file. This path is the target of `link`
// (/proc/self/exe). If that link does not exist, sets `out` to the path that the program was
// started with. Errors: RLHF_E_IO, RLHF_E_INVALID (the path does not fit in cap bytes). [main]
rlhf_status rlhf__dirs_program(const char *link, char *out, size_t cap, struct rlhf__error *err);

// Find the program's directories:
//   lib    the first of these that exists: <exe>/../lib/rlhf/1, <exe>/../<libdir>/rlhf/1, and the
//          directory under the configured install prefix; if none exists, the first of the three
//   share  found in the same way, as <...>/share/rlhf
//   user   $XDG_DATA_HOME/rlhf/plugins, or ~/.local/share/rlhf/plugins if the variable is unset or
//          not absolute (XDG base directory specification); set even if the directory is missing,
//          but "" if HOME is needed and is not an absolute path
// [main]
rlhf_status rlhf__dirs_find(struct rlhf__dirs *out, struct rlhf__error *err);

// Returns `path` if that file or directory exists. Otherwise looks for the same relative name, such
// as models/arith, among the files that ship with the program. If it exists there, writes its path
// to `room` and returns `room`; if not, returns `path`. [any]
const char *rlhf__dirs_shared(const struct rlhf__dirs *, const char *path,
                              char room[RLHF__PATH_CAP]);

#endif
