// metadata.h: what a plugin file says of itself, read from its ELF note (rlhf/elf_note.h) without
// running any of it: descriptors, option tables and texts, checked as an opened file's are.
//
// What it is not: proof of what the file does. An opened file may answer something else, which
// `plugin check` looks for.
#ifndef RLHF_HOST_PLUGIN_METADATA_H
#define RLHF_HOST_PLUGIN_METADATA_H

#include "plugin/load.h"

#include <rlhf/compute.h>

struct rlhf__metadata_room;

struct rlhf__metadata {
    // [n] as an opened file's, but for functions, which end the program when they are called.
    struct rlhf__plugin *plugin;
    size_t n;
    rlhf_kernels kernels; // size 0: the file holds no compute backend; functions as above
    int32_t found;        // enum rlhf__metadata_found
    int32_t backend;      // 1: its symbols are a compute backend's, noted or not
    char sha256[65];      // of the file
    char reserved[7];
    struct rlhf__metadata_room *room; // what the above point to
};

enum rlhf__metadata_found {
    RLHF__METADATA_OTHER = 0,   // no plugin, as far as its symbols say
    RLHF__METADATA_NO_NOTE = 1, // a plugin or a backend that has to be opened to be described
    RLHF__METADATA_READ = 2     // plugin and kernels are set
};

// Read the file `path` (absolute). *out needs finish also after a failure, which is one sentence
// that begins with path: RLHF_E_IO, RLHF_E_NOMEM, RLHF_E_INVALID (damaged, or no shared object of
// this machine), RLHF_E_UNSUPPORTED (refused as an opened file would be). [main]
rlhf_status rlhf__metadata_read(const char *path, struct rlhf__metadata *out,
                                struct rlhf__error *err);
// The same of a file's bytes, which are not needed afterwards. [main]
rlhf_status rlhf__metadata_of(const char *path, const void *bytes, uint64_t n,
                              struct rlhf__metadata *out, struct rlhf__error *err);
void rlhf__metadata_finish(struct rlhf__metadata *); // accepts a zeroed one [main]

#endif
