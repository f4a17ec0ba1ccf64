// trust.h: checks that no other user could have written a file of code, or a directory where code
// is looked up.
//
// The rule: a plugin or compute backend is opened only if its file and every directory above it can
// be changed only by the user, root and the owner of the program. The file and each of these
// directories must belong to one of these three. They must not be writable by others, or by a group
// other than the owner's private group. As an exception, a sticky directory (/tmp) may be writable
// by all, because users cannot replace each other's files there. The check stops at a directory
// that contains the program or its installed plugins. The rule does not check what the code does.
#ifndef RLHF_HOST_PLUGIN_TRUST_H
#define RLHF_HOST_PLUGIN_TRUST_H

#include "base/dirs.h"

// Origin of a plugin's name.
enum rlhf__name_from {
    RLHF__NAME_LOOKED_UP = 0, // chosen by the program, or a model_type: only a name
    RLHF__NAME_IN_FILE = 1,   // from a config: a path if it contains a '/', otherwise a name
    RLHF__NAME_TYPED = 2      // from the command line: an existing file, otherwise a name
};

// Reject the file `path` (absolute, links resolved) if it breaks the rule above. The error is
// RLHF_E_INVALID; the message has the file or directory, its mode and its owner. dirs->exe may be
// "" (not known). [main]
rlhf_status rlhf__trust_code(const char *path, const struct rlhf__dirs *dirs,
                             struct rlhf__error *err);

// Check a directory of RLHF_PLUGIN_PATH in which something was found. It is rejected if it breaks
// the rule above, or if it is a sticky directory that all may write to. [main]
rlhf_status rlhf__trust_dir(const char *dir, const struct rlhf__dirs *dirs,
                            struct rlhf__error *err);

#endif
