// runs_found.c: see runs_found.h.
#include "runs/runs_found.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LEVELS = 2, RUNS_MAX = 100000 };

void rlhf__runs_found_finish(struct rlhf__runs_found *f) {
    for (size_t i = 0; i < f->n; i++)
        rlhf__run_row_finish(&f->all[i]);
    free(f->all);
    *f = (struct rlhf__runs_found){0};
}

rlhf_status rlhf__runs_default(const char *command, struct rlhf__error *err) {
    if (rlhf__is_dir(RLHF__RUNS_DIR)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: there is no directory '" RLHF__RUNS_DIR
                      "' here; give the directory that "
                      "holds the runs",
                      command);
}

// ---- one directory ----

// Append the run at `path`. Errors: RLHF_E_INVALID if `path` is not a run.
static rlhf_status add(struct rlhf__runs_found *f, const char *path, const char *name,
                       struct rlhf__error *err) {
    if (f->n >= RUNS_MAX) return rlhf__fail(err, RLHF_E_INVALID, "%s: too many runs", path);
    if (f->n == f->cap) {
        const size_t cap = f->cap ? 2 * f->cap : 64;
        struct rlhf__run_row *more = realloc(f->all, cap * sizeof *more);
        if (!more) return RLHF__NOMEM(err, "out of memory for the list of runs");
        f->all = more;
        f->cap = cap;
    }
    const rlhf_status st = rlhf__run_row_read(path, name, &f->all[f->n], err);
    if (st == RLHF_OK)
        f->n++;
    else
        rlhf__run_row_finish(&f->all[f->n]);
    return st;
}

static int is_directory(const char *path, const struct dirent *e) {
    struct stat s;
    if (e->d_type != DT_UNKNOWN) return e->d_type == DT_DIR;
    return lstat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static rlhf_status search(struct rlhf__runs_found *f, const char *dir, const char *prefix,
                          int level, struct rlhf__error *err);

static rlhf_status visit(struct rlhf__runs_found *f, const char *path, const char *name, int level,
                         struct rlhf__error *err) {
    const size_t before = f->n;
    rlhf_status st = add(f, path, name, err);
    if (st != RLHF_E_INVALID && st != RLHF_E_IO) return st;
    if (level < LEVELS && st == RLHF_E_INVALID) {
        st = search(f, path, name, level + 1, err);
        if (st == RLHF_E_NOMEM) return st;
    }
    f->closed += st == RLHF_E_IO;
    f->others += st != RLHF_E_IO && f->n == before;
    return RLHF_OK;
}

static rlhf_status search(struct rlhf__runs_found *f, const char *dir, const char *prefix,
                          int level, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP], name[RLHF__PATH_CAP];
    const struct dirent *e;
    DIR *d = opendir(dir);
    rlhf_status st = RLHF_OK;
    if (!d)
        return rlhf__fail(err, errno == ENOENT || errno == ENOTDIR ? RLHF_E_INVALID : RLHF_E_IO,
                          "'%s' cannot be read: %s", dir, strerror(errno));
    const char *slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
    while (st == RLHF_OK && (e = readdir(d)) != NULL) {
        rlhf__path_put(path, "%s%s%s", dir, slash, e->d_name);
        rlhf__path_put(name, "%s%s%s", prefix, *prefix ? "/" : "", e->d_name);
        if (e->d_name[0] != '.' && *path && is_directory(path, e))
            st = visit(f, path, name, level, err);
    }
    closedir(d);
    return st;
}

rlhf_status rlhf__runs_find(const char *dir, struct rlhf__runs_found *out,
                            struct rlhf__error *err) {
    char real[RLHF__PATH_CAP];
    if (!*dir || !rlhf__path_real(dir, real) || !rlhf__is_dir(real))
        return rlhf__fail(err, RLHF_E_INVALID, "'%s' is not a directory", dir);
    const rlhf_status st = add(out, dir, rlhf__path_base(real), err);
    return st == RLHF_E_INVALID ? search(out, dir, "", 1, err) : st;
}

// ---- order ----

static int newest_first(const void *a, const void *b) {
    const struct rlhf__run_row *x = a, *y = b;
    if (x->started > y->started || x->started < y->started) return x->started < y->started ? 1 : -1;
    return strcmp(x->name, y->name);
}

void rlhf__runs_sort(struct rlhf__runs_found *f) {
    if (f->n) qsort(f->all, f->n, sizeof *f->all, newest_first);
}
