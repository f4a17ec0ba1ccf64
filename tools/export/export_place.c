// export_place.c: see export_place.h.
#include "export/export_place.h"

#include "base/json.h"
#include "weights/peft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// ---- the name ----

// The only folder that an export makes.
static const char templates[] = "additional_chat_templates";

static int is_template(const char *name) {
    const size_t n = strlen(name), m = strlen(".jinja");
    return n > m && strcmp(name + n - m, ".jinja") == 0;
}

// Counts the entries of a directory and of its folder of templates. Adds to *all the number of
// entries, and to *other the number of entries that no export creates.
static void count(const char *path, int inner, int *all, int *other) {
    DIR *d = opendir(path);
    if (!d) ++*other; // its contents are unknown
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        ++*all;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            if (S_ISREG(st.st_mode) && (!inner || is_template(e->d_name))) continue;
            if (S_ISDIR(st.st_mode) && !inner && strcmp(e->d_name, templates) == 0) {
                char folder[RLHF__PATH_CAP];
                count(rlhf__path_put(folder, "%s/%s", path, templates), 1, all, other);
                continue;
            }
        }
        ++*other;
    }
    if (d) closedir(d);
}

static int is_model(const char *dir) {
    char path[RLHF__PATH_CAP];
    json_t *config = NULL;
    rlhf__path_put(path, "%s/config.json", dir);
    if (rlhf__is_file(path) && rlhf__json_load(path, &config, NULL) != RLHF_OK) config = NULL;
    const int is = json_object_get(config, "model_type") != NULL;
    json_decref(config);
    return is || rlhf__peft_is(dir);
}

// --force replaces a whole directory and keeps only the files of it that no export writes. So the
// directory must hold a model, and no folders or links, which could not be kept.
static rlhf_status check_taken(struct rlhf__export_place *p, int force, struct rlhf__error *err) {
    struct stat st;
    int all = 0, other = 0;
    p->replaces = 0;
    if (lstat(p->to, &st) != 0) return RLHF_OK;
    if (!S_ISDIR(st.st_mode))
        return rlhf__fail(err, RLHF_E_INVALID, "export: --to '%s' exists already and is %s", p->to,
                          S_ISLNK(st.st_mode) ? "a link" : "no directory");
    count(p->to, 0, &all, &other);
    if (all + other == 0) return RLHF_OK;
    if (other > 0 || !is_model(p->to))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --to '%s' exists already and holds something else than an "
                          "exported model; choose another name",
                          p->to);
    if (!force)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --to '%s' exists already and holds a model; --force replaces it",
                          p->to);
    p->replaces = 1;
    p->seen = st.st_mtim;
    return RLHF_OK;
}

// Call this just before replacing the directory. Fails if entries were added to the old directory
// or removed from it after the first check, because new entries might be lost.
static rlhf_status look_again(struct rlhf__export_place *p, struct rlhf__error *err) {
    const struct timespec seen = p->seen;
    RLHF_TRY(check_taken(p, p->replaces, err));
    if (!p->replaces || (seen.tv_sec == p->seen.tv_sec && seen.tv_nsec == p->seen.tv_nsec))
        return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "export: files came to --to '%s' or went from it since the export began; it "
                      "was not replaced",
                      p->to);
}

// Append `rest`, the part of a path that does not exist yet, to `real`. Resolves "." and ".." as if
// all directories of `rest` existed. If the result is too long, `real` becomes empty.
static void put_rest(char real[RLHF__PATH_CAP], const char *rest) {
    while (*rest && *real) {
        const size_t n = strcspn(rest, "/"), at = strlen(real);
        if (n == 2 && strncmp(rest, "..", n) == 0) {
            char *last = strrchr(real, '/');
            if (last) last[last == real] = '\0';
        } else if (n > 1 || (n == 1 && *rest != '.')) {
            const int fits = snprintf(real + at, RLHF__PATH_CAP - at, "%s%.*s",
                                      real[at - 1] == '/' ? "" : "/", (int)n, rest);
            if (fits < 0 || (size_t)fits >= RLHF__PATH_CAP - at) *real = '\0';
        }
        rest += n;
        rest += strspn(rest, "/");
    }
}

// Writes the longest existing part of `path`, with links resolved, then the other names of `path`.
void rlhf__export_place_real(const char *path, char real[RLHF__PATH_CAP]) {
    char part[RLHF__PATH_CAP], found[RLHF__PATH_CAP];
    size_t n = strlen(path);
    rlhf__path_put(part, "%s", path);
    while (n > 0 && !rlhf__path_real(part, found)) {
        while (n > 0 && path[n - 1] != '/')
            n--;
        while (n > 0 && path[n - 1] == '/')
            n--;
        rlhf__path_put(part, "%.*s", (int)n, path);
    }
    if (n == 0 && !rlhf__path_real(path[0] == '/' ? "/" : ".", found)) found[0] = '\0';
    rlhf__path_put(real, "%s", found);
    put_rest(real, path + n);
}

rlhf_status rlhf__export_place_choose(struct rlhf__export_place *p, const char *to, int force,
                                      struct rlhf__error *err) {
    rlhf__path_put(p->to, "%s", to);
    size_t n = strlen(p->to);
    while (n > 1 && p->to[n - 1] == '/')
        p->to[--n] = '\0';
    const char *base = rlhf__path_base(p->to);
    if (n > RLHF__PATH_CAP - 64 || (n == 0 && *to))
        return rlhf__fail(err, RLHF_E_INVALID, "export: --to is longer than a path may be");
    if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --to '%s' is not a valid name for a new directory", to);
    return check_taken(p, force, err);
}

// ---- filling it ----

// A name next to `to` that only this process uses.
static void beside(const struct rlhf__export_place *p, const char *what, char out[RLHF__PATH_CAP]) {
    const size_t above = (size_t)(rlhf__path_base(p->to) - p->to);
    rlhf__path_put(out, "%.*s.rlhf-export-%s-%ld", (int)above, p->to, what, (long)getpid());
}

// ---- leftovers of killed exports ----

#define FRESH ".rlhf-export-new-"

// While an export runs, it locks its directory. So a directory without a lock belongs to a process
// that has exited, or to a process that has just created it. In the second case the directory is
// empty and at most a minute old.
static int is_left(const struct rlhf__folder *dir) {
    struct stat st;
    int all = 0, other = 0;
    if (flock(dir->fd, LOCK_EX | LOCK_NB) != 0) return 0;
    count(dir->path, 0, &all, &other);
    return all > 0 || (fstat(dir->fd, &st) == 0 && time(NULL) - st.st_mtime > 60);
}

// Removes the directories that killed exports left in `above`. If one cannot be removed, the next
// export tries again.
static void remove_left(const char *above) {
    DIR *d = opendir(above);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char path[RLHF__PATH_CAP];
        struct rlhf__folder *dir = NULL;
        if (strncmp(e->d_name, FRESH, sizeof FRESH - 1) != 0) continue;
        rlhf__path_put(path, "%s/%s", above, e->d_name);
        if (rlhf__folder_open(NULL, path, &dir, NULL) != RLHF_OK) continue;
        if (is_left(dir)) rlhf__folder_remove(NULL, path, NULL);
        rlhf__folder_close(dir);
    }
    if (d) closedir(d);
}

// The parent directory of `to`.
static void above_of(const struct rlhf__export_place *p, char out[RLHF__PATH_CAP]) {
    const size_t n = (size_t)(rlhf__path_base(p->to) - p->to);
    rlhf__path_put(out, "%.*s", n ? (int)n : 1, n ? p->to : ".");
}

rlhf_status rlhf__export_place_open(struct rlhf__export_place *p, struct rlhf__error *err) {
    char fresh[RLHF__PATH_CAP], above[RLHF__PATH_CAP];
    int taken = 0;
    beside(p, "new", fresh);
    above_of(p, above);
    rlhf_status st = rlhf__folder_make_above(NULL, p->to, err);
    if (st == RLHF_OK) remove_left(above);
    if (st == RLHF_OK)
        st = rlhf__folder_remove(NULL, fresh, err);           // left by a killed process with
                                                              // this pid
    if (st == RLHF_OK) memcpy(p->fresh, fresh, sizeof fresh); // from now on, a failure removes it
    if (st == RLHF_OK) st = rlhf__folder_make(NULL, fresh, &taken, &p->dir, err);
    if (st == RLHF_OK && taken)
        st = rlhf__fail(err, RLHF_E_IO, "%s: cannot create the directory: it exists", fresh);
    if (st != RLHF_OK) return rlhf__error_context(err, "export: --to");
    (void)flock(p->dir->fd, LOCK_EX); // if locks do not work, no export removes leftovers
    char *shown = strdup(p->to);      // messages name the final directory
    if (!shown) return RLHF__NOMEM(err, "out of memory for a path");
    free(p->dir->path);
    p->dir->path = shown;
    return RLHF_OK;
}

static rlhf_status no_name(const struct rlhf__export_place *p, int why, struct rlhf__error *err) {
    const int taken = why == EEXIST || why == ENOTEMPTY || why == ENOTDIR;
    return rlhf__fail(err, taken ? RLHF_E_INVALID : RLHF_E_IO,
                      "export: cannot give '%s' its name: %s", p->to, strerror(why));
}

// Exchange the names of the two directories in one step, or in two steps if the file system cannot
// do that.
static int swap(const struct rlhf__export_place *p, char old[RLHF__PATH_CAP]) {
    rlhf__path_put(old, "%s", p->fresh);
    if (renameat2(AT_FDCWD, p->fresh, AT_FDCWD, p->to, RENAME_EXCHANGE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    beside(p, "old", old);
    if (rename(p->to, old) != 0) return -1;
    if (rename(p->fresh, p->to) == 0) return 0;
    const int why = errno;
    rename(old, p->to);
    errno = why;
    return -1;
}

rlhf_status rlhf__export_place_commit(struct rlhf__export_place *p, struct rlhf__error *err) {
    char old[RLHF__PATH_CAP], above[RLHF__PATH_CAP];
    if (p->replaces) RLHF_TRY(rlhf__export_own_link(p->to, p->dir, &p->own, err));
    RLHF_TRY(rlhf__folder_sync(p->dir, ".", err));
    RLHF_TRY(look_again(p, err));
    if ((p->replaces ? swap(p, old) : rename(p->fresh, p->to)) != 0) return no_name(p, errno, err);
    p->fresh[0] = '\0';
    above_of(p, above);
    RLHF_TRY(rlhf__folder_sync(NULL, above, err));
    return p->replaces ? rlhf__folder_remove(NULL, old, err) : RLHF_OK;
}

void rlhf__export_place_finish(struct rlhf__export_place *p) {
    rlhf__folder_close(p->dir);
    if (p->fresh[0]) rlhf__folder_remove(NULL, p->fresh, NULL);
    memset(p, 0, sizeof *p);
}

// ---- the file of --gguf ----

// `what` is the file, for messages.
static rlhf_status check_name(const char *what, const char *file, int force,
                              struct rlhf__error *err) {
    const char *base = rlhf__path_base(file);
    struct stat st;
    const int there = *base && lstat(file, &st) == 0;
    if (there && !S_ISREG(st.st_mode))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: %s '%s' exists already and is not a regular file", what, file);
    if (there && !force)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: %s '%s' exists already; --force replaces it", what, file);
    if (*base && strcmp(base, ".") != 0 && strcmp(base, "..") != 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "export: %s '%s' is not a valid file name", what, file);
}

// Returns the part of `path` below `dir`; NULL if `path` is elsewhere.
static const char *rest_below(const char *path, const char *dir) {
    size_t n = strlen(dir);
    if (n == 1) n = 0; // the root
    return strlen(dir) > 0 && strncmp(path, dir, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

// Check that the file of --gguf and the directory of --to do not have the same path, and that
// neither replaces a part of the other.
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

// Sets g->about, the name of the Modelfile, and checks it.
static rlhf_status choose_about(struct rlhf__export_gguf *g, int force, struct rlhf__error *err) {
    const size_t n = strlen(g->file), m = strlen(".gguf");
    const int ends = n > m && strcmp(g->file + n - m, ".gguf") == 0;
    if (g->inside) return RLHF_OK;
    rlhf__path_put(g->about, "%.*s.Modelfile", (int)(ends ? n - m : n), g->file);
    if (!g->about[0])
        return rlhf__fail(err, RLHF_E_INVALID, "export: --gguf is longer than a path may be");
    return check_name("the Modelfile of --gguf,", g->about, force, err);
}

rlhf_status rlhf__export_gguf_choose(struct rlhf__export_gguf *g, const char *file,
                                     const struct rlhf__export_place *place, int force,
                                     struct rlhf__error *err) {
    char real[RLHF__PATH_CAP], to[RLHF__PATH_CAP] = "";
    g->file = file;
    g->with = place;
    RLHF_TRY(check_name("--gguf", file, force, err));
    rlhf__export_place_real(file, real);
    if (place) rlhf__export_place_real(place->to, to);
    if (place) RLHF_TRY(check_beside(g, real, to, err));
    RLHF_TRY(choose_about(g, force, err));
    char *end = strrchr(real, '/');
    if (end) end[end == real] = '\0'; // the parent directory
    if (g->inside || (*real && rlhf__is_dir(real)) || (*real && rest_below(to, real)))
        return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "export: --gguf '%s': there is no directory to put it into; create it "
                      "first",
                      file);
}

rlhf_status rlhf__export_gguf_where(struct rlhf__export_gguf *g, const struct rlhf__folder **in,
                                    const char **name, struct rlhf__error *err) {
    *in = g->inside ? g->with->dir : NULL;
    *name = g->inside ? g->inside : g->file;
    if (g->inside || !g->with) return RLHF_OK;
    rlhf__path_put(g->fresh, "%s.new-%ld", g->file, (long)getpid());
    *name = g->fresh;
    return g->fresh[0]
               ? RLHF_OK
               : rlhf__fail(err, RLHF_E_INVALID, "export: --gguf is longer than a path may be");
}

rlhf_status rlhf__export_gguf_about(const struct rlhf__export_gguf *g,
                                    const struct rlhf__buf *modelfile, struct rlhf__error *err) {
    if (!g->inside) return RLHF_OK;
    return rlhf__file_write(g->with->dir, "Modelfile", rlhf__buf_text(modelfile), modelfile->len,
                            err);
}

// Renames the temporary file.
static rlhf_status rename_fresh(struct rlhf__export_gguf *g, struct rlhf__error *err) {
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

rlhf_status rlhf__export_gguf_commit(struct rlhf__export_gguf *g, const struct rlhf__buf *modelfile,
                                     struct rlhf__error *err) {
    RLHF_TRY(rename_fresh(g, err));
    if (g->inside) return RLHF_OK;
    return rlhf__file_write(NULL, g->about, rlhf__buf_text(modelfile), modelfile->len, err);
}

void rlhf__export_gguf_finish(struct rlhf__export_gguf *g) {
    if (g->fresh[0]) rlhf__folder_remove(NULL, g->fresh, NULL);
    memset(g, 0, sizeof *g);
}
