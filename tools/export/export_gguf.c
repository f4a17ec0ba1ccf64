// export_gguf.c: see export_gguf.h.
#include "export/export_gguf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rlhf_status check_name(const char *file, int force, struct rlhf__error *err) {
    const char *base = rlhf__path_base(file);
    struct stat st;
    const int there = *base && lstat(file, &st) == 0;
    if (there && !S_ISREG(st.st_mode))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --gguf '%s' exists already and is not a regular file", file);
    if (there && !force)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --gguf '%s' exists already; --force replaces it", file);
    if (*base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "export: --gguf '%s' is not a valid file name", file);
}

// The part of `path` below dir; NULL: path is not below it.
static const char *rest_below(const char *path, const char *dir) {
    size_t n = strlen(dir);
    if (n == 1) n = 0; // the root
    return strlen(dir) > 0 && strncmp(path, dir, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

// Check FILE against the directory of --to: neither may be in the way of the other.
static rlhf_status check_beside(struct rlhf__export_gguf *g, const char *real, const char *to,
                                struct rlhf__error *err) {
    const char *rest = rest_below(real, to), *base = rlhf__path_base(g->file);
    if (strcmp(real, to) == 0 || rest_below(to, real))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --gguf '%s' is where --to '%s' makes a directory; choose "
                          "another name",
                          g->file, g->with->to);
    if (!rest) return RLHF_OK;
    const size_t n = strlen(base), m = strlen(".gguf");
    if (strchr(rest, '/'))
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "export: --gguf '%s' is in a folder of --to '%s', which has no folders; it "
            "may be in '%s' itself or outside of it",
            g->file, g->with->to, g->with->to);
    if (n <= m || strcmp(base + n - m, ".gguf") != 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --gguf '%s' is in --to '%s', where its name must end in "
                          ".gguf, as no other file of an export's does",
                          g->file, g->with->to);
    g->inside = base;
    return RLHF_OK;
}

rlhf_status rlhf__export_gguf_choose(struct rlhf__export_gguf *g, const char *file,
                                     const struct rlhf__export_place *place, int force,
                                     struct rlhf__error *err) {
    char real[RLHF__PATH_CAP], to[RLHF__PATH_CAP] = "";
    g->file = file;
    g->with = place;
    RLHF_TRY(check_name(file, force, err));
    rlhf__export_place_real(file, real);
    if (place) rlhf__export_place_real(place->to, to);
    if (place) RLHF_TRY(check_beside(g, real, to, err));
    char *end = strrchr(real, '/');
    if (end) end[end == real] = '\0'; // the parent directory
    if (g->inside || (*real && rlhf__is_dir(real)) || (*real && rest_below(to, real)))
        return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "export: --gguf '%s': there is no directory of that name to put it into; "
                      "make it first",
                      file);
}

rlhf_status rlhf__export_gguf_write(struct rlhf__export_gguf *g, const struct rlhf__gguf_model *m,
                                    struct rlhf__error *err) {
    if (g->inside) return rlhf__gguf_write(m, g->with->dir, g->inside, err);
    if (!g->with) return rlhf__gguf_write(m, NULL, g->file, err);
    rlhf__path_put(g->fresh, "%s.new-%ld", g->file, (long)getpid());
    if (!g->fresh[0])
        return rlhf__fail(err, RLHF_E_INVALID, "export: --gguf is longer than a path may be");
    return rlhf__gguf_write(m, NULL, g->fresh, err);
}

rlhf_status rlhf__export_gguf_commit(struct rlhf__export_gguf *g, struct rlhf__error *err) {
    char above[RLHF__PATH_CAP];
    if (!g->fresh[0]) return RLHF_OK;
    if (rename(g->fresh, g->file) != 0)
        return rlhf__fail(err, RLHF_E_IO, "cannot give '%s' its name: %s", g->file,
                          strerror(errno));
    g->fresh[0] = '\0';
    const int n = (int)(rlhf__path_base(g->file) - g->file);
    rlhf__path_put(above, "%.*s", n, g->file);
    return rlhf__folder_sync(NULL, n ? above : ".", err);
}

void rlhf__export_gguf_finish(struct rlhf__export_gguf *g) {
    if (g->fresh[0]) rlhf__folder_remove(NULL, g->fresh, NULL);
    memset(g, 0, sizeof *g);
}
