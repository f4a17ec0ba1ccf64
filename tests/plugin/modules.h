// modules.h: the test modules of this directory, and directories for plugin lookup.
#ifndef RLHF_TESTS_PLUGIN_MODULES_H
#define RLHF_TESTS_PLUGIN_MODULES_H

#include "support/scratch.h"

#include "plugin/load.h"

// Writes the path of <build>/tests/plugins/<name> to `out`, and returns it.
static inline const char *module_path(const char *name, char out[1024]) {
    const char *build = getenv("RLHF_BUILD_DIR");
    assert_non_null(build);
    snprintf(out, 1024, "%s/tests/plugins/%s", build, name);
    return out;
}

// Returns a loader whose library directory is `dir`.
static inline struct rlhf__plugins *loader(struct rlhf__dirs *dirs, const char *dir) {
    struct rlhf__error err = {0};
    struct rlhf__plugins *p;
    memset(dirs, 0, sizeof *dirs);
    snprintf(dirs->lib, sizeof dirs->lib, "%s", dir);
    snprintf(dirs->share, sizeof dirs->share, "%s", dir);
    snprintf(dirs->exe, sizeof dirs->exe, "%s/bin", getenv("RLHF_BUILD_DIR"));
    snprintf(dirs->program, sizeof dirs->program, "%s/bin/rlhf-host", getenv("RLHF_BUILD_DIR"));
    check_ok(rlhf__plugins_open(dirs, &p, &err), &err);
    return p;
}

#endif
