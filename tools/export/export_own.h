// export_own.h: the user's own files in a directory that `export --force` replaces. They stay.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_OWN_H
#define RLHF_TOOLS_EXPORT_EXPORT_OWN_H

#include "base/folder.h"

// The own files of a directory.
struct rlhf__export_own {
    char first[256]; // the name of one of them
    int32_t n;
};

// Give each file of the directory `from` that no export writes a second name in `to` (a hard link),
// so that it exists in both. Files that `to` has already are not the user's. Sets *own. Succeeds if
// `from` is missing. Errors: RLHF_E_IO (also if the file system has no hard links). [main]
rlhf_status rlhf__export_own_link(const char *from, const struct rlhf__folder *to,
                                  struct rlhf__export_own *own, struct rlhf__error *err);

#endif
