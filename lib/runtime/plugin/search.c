// search.c: see search.h.
#include "plugin/search.h"

#include "base/file.h"
#include "option/nearest.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int32_t kinds[] = {RLHF_KIND_ALGO,    RLHF_KIND_REWARD, RLHF_KIND_MODEL,
                                RLHF_KIND_KERNELS, RLHF_KIND_SINK,   RLHF_KIND_ENVIRONMENT};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *rlhf__kind_dir(int32_t kind) {
    switch (kind) {
    case RLHF_KIND_ALGO:
        return "algos";
    case RLHF_KIND_REWARD:
        return "rewards";
    case RLHF_KIND_MODEL:
        return "models";
    case RLHF_KIND_SINK:
        return "sinks";
    case RLHF_KIND_ENVIRONMENT:
        return "environments";
    case RLHF__KIND_COLLECTIVE:
        return "collectives";
    default:
        return "kernels";
    }
}

const char *rlhf__kind_name(int32_t kind) {
    switch (kind) {
    case RLHF_KIND_ALGO:
        return "algorithm";
    case RLHF_KIND_REWARD:
        return "reward";
    case RLHF_KIND_MODEL:
        return "model";
    case RLHF_KIND_KERNELS:
        return "kernels";
    case RLHF_KIND_SINK:
        return "sink";
    case RLHF_KIND_ENVIRONMENT:
        return "environment";
    default:
        return "unknown kind";
    }
}

// Call `visit` for each directory that is searched for a kind, until `visit` returns nonzero.
// Entries of RLHF_PLUGIN_PATH that are not absolute are skipped here; a lookup by name rejects
// them.
static int each_dir(const struct rlhf__dirs *dirs, int32_t kind,
                    int (*visit)(void *arg, const char *dir), void *arg) {
    const char *env = getenv("RLHF_PLUGIN_PATH");
    char path[4096];
    int done = 0;
    while (env && *env && !done) {
        int n = (int)strcspn(env, ":");
        if (*env == '/' && snprintf(path, sizeof path, "%.*s/%s", n, env, rlhf__kind_dir(kind)) <
                               (int)sizeof path) {
            path[n] = '\0';
            done = visit(arg, path); // the directory itself ...
            path[n] = '/';
            if (!done) done = visit(arg, path); // ... and <kind>s below it
        }
        env += n;
        if (*env == ':') env++;
    }
    if (!done && *dirs->user) done = visit(arg, dirs->user);
    if (!done && *dirs->user) {
        snprintf(path, sizeof path, "%s/%s", dirs->user, rlhf__kind_dir(kind));
        done = visit(arg, path);
    }
    if (done) return done;
    snprintf(path, sizeof path, "%s/%s", dirs->lib, rlhf__kind_dir(kind));
    return visit(arg, path);
}

rlhf_status rlhf__plugin_path_check(struct rlhf__error *err) {
    const char *env = getenv("RLHF_PLUGIN_PATH");
    while (env && *env) {
        int n = (int)strcspn(env, ":");
        if (n > 0 && *env != '/')
            return rlhf__fail(err, RLHF_E_INVALID,
                              "RLHF_PLUGIN_PATH: '%.*s' is not an absolute path", n, env);
        env += n + (env[n] == ':');
    }
    return RLHF_OK;
}

struct finder {
    const char *file;
    char *found;
    struct rlhf__nearest near;
    struct rlhf__buf *looked; // directories searched, for the message
    char best[256];
    const struct rlhf__dirs *dirs;
    struct rlhf__error *err;
    rlhf_status status;
};

static int look_in(void *arg, const char *dir) {
    struct finder *f = arg;
    if (f->looked) rlhf__buf_printf(f->looked, "%s%s", f->looked->len ? ", " : "", dir);
    char *path = rlhf__path_join(dir, f->file);
    if (!path) {
        f->status = RLHF__NOMEM(f->err, "out of memory for a path");
        return 1;
    }
    if (rlhf__is_file(path)) {
        f->found = path;
        f->status = rlhf__trust_dir(dir, f->dirs, f->err);
        return 1;
    }
    free(path);
    return 0;
}

static int offer_files(void *arg, const char *dir) {
    struct finder *f = arg;
    DIR *d = opendir(dir);
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 3, ".so") != 0) continue;
        f->near.best = f->near.best ? f->best : NULL;
        rlhf__nearest_offer(&f->near, e->d_name);
        if (f->near.best == e->d_name) snprintf(f->best, sizeof f->best, "%s", e->d_name);
    }
    if (f->near.best) f->near.best = f->best;
    if (d) closedir(d);
    return 0;
}

static rlhf_status not_found(const struct rlhf__dirs *dirs, struct finder *f, int32_t kind,
                             int32_t from, const char *name, const char *asker,
                             struct rlhf__error *err) {
    char hint[300], here[1100] = "";
    f->near.wanted = f->file;
    for (size_t i = 0; i < KINDS; i++)
        if (kind == kinds[i] || kind == 0) each_dir(dirs, kinds[i], offer_files, f);
    if (from == RLHF__NAME_IN_FILE && rlhf__is_file(f->file))
        snprintf(here, sizeof here, " (for the one in the working directory write ./%s)", f->file);
    return rlhf__fail(err, RLHF_E_INVALID, "%s: no %s%splugin \"%s\"%s; looked %s%s%s", asker,
                      kind ? rlhf__kind_name(kind) : "", kind ? " " : "", name,
                      rlhf__nearest_hint(&f->near, hint, sizeof hint),
                      from == RLHF__NAME_TYPED ? "for a file of that name and in " : "in ",
                      rlhf__buf_text(f->looked), here);
}

rlhf_status rlhf__plugin_look(const struct rlhf__dirs *dirs, const char *file, int32_t kind,
                              char **path, struct rlhf__error *err) {
    struct finder f = {file, NULL, {file, NULL, 0}, NULL, "", dirs, err, RLHF_OK};
    *path = NULL;
    RLHF_TRY(rlhf__plugin_path_check(err));
    each_dir(dirs, kind, look_in, &f);
    if (f.status == RLHF_OK)
        *path = f.found;
    else
        free(f.found);
    return f.status;
}

// Look up a plugin by a name without '/': first in the directories of its kind, then in those of
// other kinds.
static rlhf_status find_by_name(const struct rlhf__dirs *dirs, const char *file, int32_t kind,
                                int32_t from, const char *name, const char *asker, char **path,
                                struct rlhf__error *err) {
    struct rlhf__buf looked = RLHF__BUF_INIT;
    struct finder f = {file, NULL, {file, NULL, 0}, &looked, "", dirs, err, RLHF_OK};
    for (size_t i = 0; i < KINDS && !f.found && f.status == RLHF_OK; i++)
        if (kind == kinds[i] || kind == 0) each_dir(dirs, kinds[i], look_in, &f);
    f.looked = NULL;
    for (size_t i = 0; i < KINDS && !f.found && f.status == RLHF_OK; i++)
        if (kind != kinds[i] && kind != 0) each_dir(dirs, kinds[i], look_in, &f);
    f.looked = &looked;
    *path = f.found;
    if (!f.found && f.status == RLHF_OK)
        f.status = not_found(dirs, &f, kind, from, name, asker, err);
    if (f.status < 0) {
        free(f.found);
        *path = NULL;
    }
    rlhf__buf_finish(&looked);
    return f.status;
}

// Returns 1 if `name` may be the path of a file. `from` is the origin of the name. A name without
// '/' may be a path only if the user typed it.
static int may_be_file(const char *name, int32_t from) {
    return from == RLHF__NAME_TYPED || (from == RLHF__NAME_IN_FILE && strchr(name, '/'));
}

size_t rlhf__plugin_name_len(const char *name, int32_t from) {
    const char *id = may_be_file(name, from) && rlhf__is_file(name) ? NULL : strrchr(name, '#');
    return id ? (size_t)(id - name) : strlen(name);
}

int rlhf__plugin_is_path(const char *name, int32_t from, char file[1024]) {
    int n = (int)rlhf__plugin_name_len(name, from);
    snprintf(file, 1024, "%.*s", n, name);
    int whole = may_be_file(file, from) && rlhf__is_file(file);
    if (!whole && (n < 4 || strncmp(name + n - 3, ".so", 3) != 0))
        snprintf(file, 1024, "%.*s.so", n, name);
    return may_be_file(file, from) && (strchr(file, '/') || rlhf__is_file(file));
}

static rlhf_status resolve(char **path, const char *asker, const char *name,
                           struct rlhf__error *err) {
    char real[RLHF__PATH_CAP];
    const int found = *path && rlhf__path_real(*path, real);
    const int memory = !*path;
    free(*path);
    *path = found ? strdup(real) : NULL;
    if (*path) return RLHF_OK;
    if (memory || found) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", asker);
    return rlhf__fail(err, RLHF_E_IO, "%s: cannot resolve the path of %s: %s", asker, name,
                      strerror(errno));
}

// Reject a Python file here, because the loader's message would be about ELF headers.
static rlhf_status refuse_python(const char *file, int32_t kind, const char *asker,
                                 struct rlhf__error *err) {
    const size_t n = strlen(file);
    if (n < 3 || strcmp(file + n - 3, ".py") != 0) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        kind == RLHF_KIND_ENVIRONMENT
            ? "%s: %s is a Python file, and a plugin is a shared object; environments "
              "in Python are named as env_python.so:file=%s,class=NAME"
            : "%s: %s is a Python file, and a plugin is a shared object; reward "
              "functions in Python are named as python.so:file=%s,function=NAME",
        asker, file, file);
}

// Reject a script: a file that starts with an interpreter line or has a script's extension.
static rlhf_status refuse_script(const char *file, const char *asker, struct rlhf__error *err) {
    static const char *const ends[] = {".sh", ".bash", ".pl", ".rb", ".js", ".lua", ".R"};
    const size_t n = strlen(file);
    char first[2] = "";
    FILE *f = fopen(file, "rb");
    int script = f && fread(first, 1, 2, f) == 2 && memcmp(first, "#!", 2) == 0;
    if (f) fclose(f);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t k = strlen(ends[i]);
        script |= n > k && strcmp(file + n - k, ends[i]) == 0;
    }
    if (!script) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: %s is a program, and a plugin is a shared object; a program that scores "
                      "is named as exec.so:command=%s",
                      asker, file, file);
}

rlhf_status rlhf__plugin_find(const struct rlhf__dirs *dirs, const char *name, int32_t kind,
                              int32_t from, const char *asker, char **path,
                              struct rlhf__error *err) {
    char file[1024];
    *path = NULL;
    if (!*name) return rlhf__fail(err, RLHF_E_INVALID, "%s: the plugin's name is empty", asker);
    if (strlen(name) + 4 > sizeof file)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the plugin's name is too long", asker);
    if (from == RLHF__NAME_LOOKED_UP && strchr(name, '/'))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: \"%s\" is not a plugin's name", asker, name);
    if (rlhf__plugin_is_path(name, from, file)) {
        if (!rlhf__is_file(file))
            return rlhf__fail(err, RLHF_E_INVALID, "%s: there is no plugin file %s", asker, name);
        RLHF_TRY(refuse_python(file, kind, asker, err));
        RLHF_TRY(refuse_script(file, asker, err));
        *path = strdup(file);
    } else {
        RLHF_TRY(rlhf__plugin_path_check(err));
        RLHF_TRY(find_by_name(dirs, file, kind, from, name, asker, path, err));
    }
    return resolve(path, asker, name, err);
}

// ---- file locations -----------------------------------------------------------------------------

static int same_dir(void *arg, const char *dir) {
    char real[RLHF__PATH_CAP];
    return rlhf__path_real(dir, real) && strcmp(real, arg) == 0;
}

int rlhf__plugin_is_installed(const struct rlhf__dirs *dirs, const char *path) {
    char real[RLHF__PATH_CAP];
    char *slash = rlhf__path_real(path, real) ? strrchr(real, '/') : NULL;
    int found = 0;
    if (slash) *slash = '\0';
    for (size_t i = 0; slash && i < KINDS && !found; i++)
        found = each_dir(dirs, kinds[i], same_dir, real);
    return found;
}

int rlhf__plugin_is_shipped(const struct rlhf__dirs *dirs, const char *path) {
    char real[RLHF__PATH_CAP], lib[RLHF__PATH_CAP];
    if (!rlhf__path_real(path, real) || !rlhf__path_real(dirs->lib, lib)) return 0;
    const size_t n = strlen(lib);
    return strncmp(real, lib, n) == 0 && real[n] == '/';
}

struct hidden {
    const char *path, *file; // the first match, and its file name
    int32_t passed;
    char *out; // [RLHF__PATH_CAP]
};

static int same_name(void *arg, const char *dir) {
    struct hidden *h = arg;
    char *path = rlhf__path_join(dir, h->file);
    const int there = path && rlhf__path_real(path, h->out);
    free(path);
    if (there && strcmp(h->out, h->path) == 0) h->passed = 1;
    return there && h->passed && strcmp(h->out, h->path) != 0;
}

int rlhf__plugin_hidden(const struct rlhf__dirs *dirs, const char *path, char out[RLHF__PATH_CAP]) {
    char real[RLHF__PATH_CAP];
    struct hidden h = {real, rlhf__path_base(path), 0, out};
    if (!rlhf__path_real(path, real)) return 0;
    for (size_t i = 0; i < KINDS; i++) {
        h.passed = 0;
        if (each_dir(dirs, kinds[i], same_name, &h)) return 1;
    }
    return 0;
}

struct visitor {
    rlhf_status (*visit)(void *arg, int32_t kind, const char *path);
    void *arg;
    int32_t kind;
    rlhf_status status;
};

static int is_so(const struct dirent *e) {
    size_t n = strlen(e->d_name);
    return n > 3 && strcmp(e->d_name + n - 3, ".so") == 0;
}

static int visit_dir(void *arg, const char *dir) {
    struct visitor *v = arg;
    struct dirent **list = NULL;
    int n = scandir(dir, &list, is_so, alphasort);
    for (int i = 0; i < n; i++) {
        char *path = rlhf__path_join(dir, list[i]->d_name);
        if (v->status >= 0)
            v->status = path ? v->visit(v->arg, v->kind, path) : (rlhf_status)RLHF_E_NOMEM;
        free(path);
        free(list[i]);
    }
    if (n >= 0) free(list);
    return v->status < 0;
}

rlhf_status rlhf__plugin_each_file(const struct rlhf__dirs *dirs,
                                   rlhf_status (*visit)(void *arg, int32_t kind, const char *path),
                                   void *arg) {
    struct visitor v = {visit, arg, 0, RLHF_OK};
    for (size_t i = 0; i < KINDS && v.status >= 0; i++) {
        v.kind = kinds[i];
        each_dir(dirs, v.kind, visit_dir, &v);
    }
    return v.status;
}
