// trust.h: who else could have written a file of code, and where code is looked up.
//
// The rule: a plugin or a compute backend is opened when its file and every directory above it, up
// to one that the program or its installed plugins lie below, can be changed by nobody but the
// user, root and the owner of the program. Each must belong to one of these and must not be
// writable by others, nor by a group unless that is its owner's private one; a directory that all
// may write is fine when it is sticky (/tmp), as nobody can put another file in the place of one
// there. It says nothing about what the code does.
#ifndef RLHF_HOST_TRUST_H
#define RLHF_HOST_TRUST_H

#include "base/dirs.h"

// Where the name of a plugin comes from.
enum rlhf__name_from {
    RLHF__NAME_LOOKED_UP = 0, // the program's own choice, or a model_type: a name only
    RLHF__NAME_IN_FILE = 1,   // a config: with a '/' a path, else a name
    RLHF__NAME_TYPED = 2      // the command line: an existing file, else a name
};

// Refuse the file `path` (absolute, links resolved) by the rule above: RLHF_E_INVALID with the file
// or directory, its mode and owner. dirs->exe may be "" (not known). [main]
rlhf_status rlhf__trust_code(const char *path, const struct rlhf__dirs *dirs,
                             struct rlhf__error *err);

// Refuse a directory of RLHF_PLUGIN_PATH in which something was found: as above, and it must not be
// sticky for all either. [main]
rlhf_status rlhf__trust_dir(const char *dir, const struct rlhf__dirs *dirs,
                            struct rlhf__error *err);

#endif
