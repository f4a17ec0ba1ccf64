// dirs.h: where the program finds its plugins, kernels, models and configs: beside the executable.
#ifndef RLHF_HOST_DIRS_H
#define RLHF_HOST_DIRS_H

#include "base/error.h"
#include "base/file.h"

#include <stddef.h>

struct rlhf__dirs {
    char exe[1024];   // directory of the executable
    char lib[1100];   // <...>/lib/rlhf/0: algos, rewards, models, kernels below it
    char share[1100]; // <...>/share/rlhf: models, configs, prompts below it
    char user[1100];  // the user's own plugins, kinds below it; "": there is no such place
    // The program's file, for processes that are started of it; "" = this is another program, and
    // none can be. Set by main().
    char program[1024];
};

// The program's file, absolute: what `link` (/proc/self/exe) leads to or, where there is no such
// link, the path that it was started by. Errors: RLHF_E_IO, RLHF_E_INVALID (longer than cap).
// [main]
rlhf_status rlhf__dirs_program(const char *link, char *out, size_t cap, struct rlhf__error *err);

// lib is the first existing of <exe>/../lib/rlhf/0, <exe>/../<libdir>/rlhf/0 and the configured
// install prefix; share likewise. Missing ones keep the first spelling. user is
// $XDG_DATA_HOME/rlhf/plugins, else ~/.local/share/rlhf/plugins, whether it is there or not; as the
// XDG base directory specification has it, paths that are not absolute are as if they were not set.
// [main]
rlhf_status rlhf__dirs_find(struct rlhf__dirs *out, struct rlhf__error *err);

// A file or directory as it was named or, where nothing is there, what comes with the program under
// the same relative name (models/arith), as presets name their files; in room then. [any]
const char *rlhf__dirs_shared(const struct rlhf__dirs *, const char *path,
                              char room[RLHF__PATH_CAP]);

#endif
