// dirs.c: see dirs.h. RLHF_LIBDIR and RLHF_DATADIR are relative to the install prefix.
// RLHF_PREFIX_LIBDIR and RLHF_PREFIX_DATADIR are the absolute paths of the configured install
// prefix.
#include "base/dirs.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

// Resolves links and ".." in `path`, so that messages show a plain path.
static rlhf_status tidy(char *path, size_t cap, struct rlhf__error *err) {
    char real[RLHF__PATH_CAP];
    if (!rlhf__path_real(path, real))
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot resolve the path: %s", path, strerror(errno));
    if (strlen(real) < cap) memcpy(path, real, strlen(real) + 1);
    return RLHF_OK;
}

// Writes to `out` the first of three candidates that is a directory. If none is a directory, writes
// the first candidate. Fails if a candidate that is tried does not fit in cap bytes.
static rlhf_status choose(char *out, size_t cap, const char *exe, const char *const rel[2],
                          const char *installed, const char *tail, struct rlhf__error *err) {
    char first[1100] = "";
    for (int i = 0; i < 3; i++) {
        int n = i < 2 ? snprintf(out, cap, "%s/../%s/rlhf%s", exe, rel[i], tail)
                      : snprintf(out, cap, "%s/rlhf%s", installed, tail);
        if (n < 0 || (size_t)n >= cap)
            return rlhf__fail(err, RLHF_E_INVALID, "%s: the program's path is too long", exe);
        if (i == 0) memcpy(first, out, (size_t)n + 1);
        if (rlhf__is_dir(out)) return tidy(out, cap, err);
    }
    snprintf(out, cap, "%s", first);
    return RLHF_OK;
}

rlhf_status rlhf__dirs_program(const char *link, char *out, size_t cap, struct rlhf__error *err) {
    ssize_t n = readlink(link, out, cap - 1);
    if (n <= 0) {
        // AT_EXECFN is the path that was passed to execve(). If it is relative, it can still be
        // resolved, because the working directory has not changed yet.
        const char *started = (const char *)getauxval(AT_EXECFN);
        char *real = started ? realpath(started, NULL) : NULL;
        if (!real)
            return rlhf__fail(err, RLHF_E_IO, "cannot find the program's directory: %s",
                              strerror(errno));
        n = (ssize_t)strlen(real);
        if ((size_t)n < cap) memcpy(out, real, (size_t)n + 1);
        free(real);
    }
    if ((size_t)n >= cap - 1)
        return rlhf__fail(err, RLHF_E_INVALID, "the path of the program is too long");
    out[n] = '\0';
    return RLHF_OK;
}

static void find_user(char *out, size_t cap) {
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int n = -1;
    if (data && *data == '/')
        n = snprintf(out, cap, "%s/rlhf/plugins", data);
    else if (home && *home == '/')
        n = snprintf(out, cap, "%s/.local/share/rlhf/plugins", home);
    if (n < 0 || (size_t)n >= cap) *out = '\0';
}

rlhf_status rlhf__dirs_find(struct rlhf__dirs *out, struct rlhf__error *err) {
    memset(out, 0, sizeof *out);
    RLHF_TRY(rlhf__dirs_program("/proc/self/exe", out->exe, sizeof out->exe, err));
    char *slash = strrchr(out->exe, '/');
    if (slash) *slash = '\0';
    static const char *const lib[2] = {"lib", RLHF_LIBDIR}, *const share[2] = {"share",
                                                                               RLHF_DATADIR};
    char tail[16];
    snprintf(tail, sizeof tail, "/%d", RLHF_ABI_MAJOR);
    find_user(out->user, sizeof out->user);
    RLHF_TRY(choose(out->lib, sizeof out->lib, out->exe, lib, RLHF_PREFIX_LIBDIR, tail, err));
    return choose(out->share, sizeof out->share, out->exe, share, RLHF_PREFIX_DATADIR, "", err);
}

const char *rlhf__dirs_shared(const struct rlhf__dirs *dirs, const char *path,
                              char room[RLHF__PATH_CAP]) {
    if (*path == '\0' || *path == '/' || access(path, F_OK) == 0) return path;
    rlhf__path_put(room, "%s/%s", dirs->share, path);
    return access(room, F_OK) == 0 ? room : path;
}
