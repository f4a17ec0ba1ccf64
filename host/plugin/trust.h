// trust.h: checks that no other user could have written a file of code, and where code is looked
// up.
//
// The rule: a plugin or compute backend is opened only if its file and every directory above it can
// be changed only by the user, root and the owner of the program. The check stops at a directory
// that has the program or its installed plugins below it. Each must belong to one of these users
// and must not be writable by others, or by a group unless it is the owner's private group. A
// directory that all may write to is accepted if it is sticky (/tmp), because other users cannot
// replace a file there. The rule does not check what the code does.
#ifndef RLHF_HOST_TRUST_H
#define RLHF_HOST_TRUST_H

#include "base/dirs.h"

// Origin of a plugin's name.
enum rlhf__name_from {
    RLHF__NAME_LOOKED_UP = 0, // the program's own choice, or a model_type: a name only
    RLHF__NAME_IN_FILE = 1,   // a config: a path if it contains a '/', else a name
    RLHF__NAME_TYPED = 2      // the command line: an existing file, else a name
};

// Refuse the file `path` (absolute, links resolved) by the rule above: RLHF_E_INVALID with the file
// or directory, its mode and owner. dirs->exe may be "" (not known). [main]
rlhf_status rlhf__trust_code(const char *path, const struct rlhf__dirs *dirs,
                             struct rlhf__error *err);

// Refuse a directory of RLHF_PLUGIN_PATH in which something was found: by the rule above, and it
// must not be sticky for all users. [main]
rlhf_status rlhf__trust_dir(const char *dir, const struct rlhf__dirs *dirs,
                            struct rlhf__error *err);

#endif
