// checkpoint_dir.c: see checkpoint_dir.h.
#include "keep/checkpoint_dir.h"

#include "base/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKING  ".latest" // a link that exists until a new checkpoint has its name and its link
#define WRITING  RLHF__CHECKPOINT_WRITING
#define REMOVING ".removing-"

static const char *name_of(int64_t phase, char out[32]) {
    snprintf(out, 32, "%06lld", (long long)phase);
    return out;
}

// ---- directory contents ----

// Returns the phase for which name_of returns `name`, or -1 if none exists.
static int64_t phase_of(const char *name) {
    char again[32];
    size_t n = strlen(name);
    if (n < 6 || n > 18 || strspn(name, "0123456789") != n) return -1;
    int64_t phase = strtoll(name, NULL, 10);
    return strcmp(name_of(phase, again), name) == 0 ? phase : -1;
}

// Returns 1 if `name` is the run's own checkpoint of that phase. Returns 0 for a copy of another
// checkpoint and for a user's folder.
static int is_checkpoint(const struct rlhf__folder *all, const char *name, int64_t phase) {
    char path[64];
    struct stat st;
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *v = NULL;
    snprintf(path, sizeof path, "%s/state/run.json", name);
    int is_dir =
        fstatat(all->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) && phase >= 0;
    if (is_dir && rlhf__folder_read(all, path, (uint64_t)1 << 24, &text, NULL) == RLHF_OK)
        rlhf__json_parse(path, rlhf__buf_text(&text), text.len, &v, NULL);
    const json_t *says = json_object_get(v, "phase");
    int is = json_is_integer(says) && json_integer_value(says) == phase;
    json_decref(v);
    rlhf__buf_finish(&text);
    return is;
}

static int ascending(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// Call `visit` with each name in the folder. Stops at the first failure.
static rlhf_status each_name(const struct rlhf__folder *all,
                             rlhf_status (*visit)(void *arg, const char *name,
                                                  struct rlhf__error *err),
                             void *arg, struct rlhf__error *err) {
    int fd = openat(all->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        int why = errno;
        if (fd >= 0) close(fd);
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot read the directory: %s", all->path,
                          strerror(why));
    }
    rlhf_status st = RLHF_OK;
    for (struct dirent *e; st == RLHF_OK && (e = readdir(d)) != NULL;)
        st = visit(arg, e->d_name, err);
    closedir(d);
    return st;
}

struct list {
    const struct rlhf__folder *all;
    int64_t *phase; // ascending
    size_t n;
};

static rlhf_status add(void *arg, const char *name, struct rlhf__error *err) {
    struct list *l = arg;
    int64_t phase = phase_of(name);
    if (!is_checkpoint(l->all, name, phase)) return RLHF_OK;
    int64_t *more = realloc(l->phase, (l->n + 1) * sizeof *more);
    if (!more) return RLHF__NOMEM(err, "out of memory for the list of checkpoints");
    l->phase = more;
    more[l->n++] = phase;
    return RLHF_OK;
}

// List the run's checkpoints. Free l->phase, even after a failure.
static rlhf_status list_all(const struct rlhf__folder *all, struct list *l,
                            struct rlhf__error *err) {
    *l = (struct list){all, NULL, 0};
    rlhf_status st = each_name(all, add, l, err);
    if (l->n) qsort(l->phase, l->n, sizeof *l->phase, ascending);
    return st;
}

size_t rlhf__checkpoint_dir_newest(const struct rlhf__folder *all, int64_t *newest) {
    struct list l;
    size_t n = list_all(all, &l, NULL) == RLHF_OK ? l.n : 0;
    *newest = n ? l.phase[n - 1] : 0;
    free(l.phase);
    return n;
}

// Returns 1 if `link` leads to the entry `name`, no matter how the link's target is written.
static int leads_to(const struct rlhf__folder *all, const char *link, const char *name) {
    struct stat a, b;
    return fstatat(all->fd, link, &a, 0) == 0 &&
           fstatat(all->fd, name, &b, AT_SYMLINK_NOFOLLOW) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

int rlhf__checkpoint_dir_is_latest(const struct rlhf__folder *all, int64_t phase) {
    char name[32];
    name_of(phase, name);
    return leads_to(all, "latest", name) && is_checkpoint(all, name, phase);
}

// ---- links ----

static rlhf_status point_best(const struct rlhf__folder *all, const char *target,
                              struct rlhf__error *err) {
    RLHF_TRY(rlhf__folder_link(all, target, ".best", err));
    RLHF_TRY(rlhf__folder_rename(all, ".best", "best", err));
    return rlhf__folder_sync(all, ".", err);
}

rlhf_status rlhf__checkpoint_dir_best(const struct rlhf__folder *all, int64_t phase,
                                      struct rlhf__error *err) {
    char name[32];
    name_of(phase, name);
    if (leads_to(all, "best", name) || !is_checkpoint(all, name, phase)) return RLHF_OK;
    return point_best(all, name, err);
}

// ---- setting aside ----

static rlhf_status new_aside(const struct rlhf__folder *all, char name[32],
                             struct rlhf__error *err) {
    for (int n = 1; n < 100000; n++) {
        struct rlhf__folder *made;
        int taken;
        snprintf(name, 32, "aside-%d", n);
        RLHF_TRY(rlhf__folder_make(all, name, &taken, &made, err));
        rlhf__folder_close(made);
        if (!taken) return RLHF_OK;
    }
    return rlhf__fail(err, RLHF_E_IO, "%s has too many folders aside-*; remove some", all->path);
}

static rlhf_status move_aside(const struct rlhf__folder *all, const char *aside, const char *name,
                              struct rlhf__error *err) {
    char to[80];
    int best = leads_to(all, "best", name);
    snprintf(to, sizeof to, "%s/%s", aside, name);
    RLHF_TRY(rlhf__folder_rename(all, name, to, err));
    return best ? point_best(all, to, err) : RLHF_OK;
}

rlhf_status rlhf__checkpoint_dir_set_aside(const struct rlhf__folder *all, int64_t phase,
                                           struct rlhf__log *log, struct rlhf__error *err) {
    struct list l;
    char aside[32], name[32], last[32];
    rlhf_status st = list_all(all, &l, err);
    size_t from = 0;
    while (from < l.n && l.phase[from] <= phase)
        from++;
    if (st == RLHF_OK && from < l.n) {
        st = new_aside(all, aside, err);
        for (size_t i = from; st == RLHF_OK && i < l.n; i++)
            st = move_aside(all, aside, name_of(l.phase[i], name), err);
        if (st == RLHF_OK) st = rlhf__folder_sync(all, aside, err);
        if (st == RLHF_OK) st = rlhf__folder_sync(all, ".", err);
        if (st == RLHF_OK)
            rlhf__logf(log, RLHF_LOG_WARN,
                       "the run goes on from phase %lld and leaves %zu later checkpoint%s, %s to "
                       "%s, aside: in %s/%s; their rows of metrics and samples go",
                       (long long)phase, l.n - from, l.n - from == 1 ? "" : "s",
                       name_of(l.phase[from], name), name_of(l.phase[l.n - 1], last), all->path,
                       aside);
    }
    free(l.phase);
    return st;
}

static rlhf_status clear_name(const struct rlhf__folder *all, const char *name,
                              struct rlhf__log *log, struct rlhf__error *err) {
    char aside[32];
    if (!rlhf__folder_has(all, name)) return RLHF_OK;
    RLHF_TRY(new_aside(all, aside, err));
    RLHF_TRY(move_aside(all, aside, name, err));
    rlhf__logf(log, RLHF_LOG_WARN,
               "%s/%s was in the way of a checkpoint and is not one of this run; it was moved to "
               "%s/%s",
               all->path, name, all->path, aside);
    return RLHF_OK;
}

// ---- a new checkpoint ----

rlhf_status rlhf__checkpoint_dir_commit(const struct rlhf__folder *all, const char *fresh,
                                        int64_t phase, struct rlhf__log *log,
                                        struct rlhf__error *err) {
    char name[32];
    name_of(phase, name);
    RLHF_TRY(clear_name(all, name, log, err));
    rlhf_status st = rlhf__folder_link(all, name, LINKING, err);
    if (st == RLHF_OK) st = rlhf__folder_rename(all, fresh, name, err);
    int named = st == RLHF_OK;
    if (st == RLHF_OK) st = rlhf__folder_sync(all, ".", err);
    if (st == RLHF_OK) st = rlhf__folder_rename(all, LINKING, "latest", err);
    if (st == RLHF_OK) return rlhf__folder_sync(all, ".", err);
    unlinkat(all->fd, LINKING, 0);
    if (named) rlhf__folder_rename(all, name, fresh, NULL); // the caller then removes `fresh`
    return st;
}

// ---- after a crash ----

// Returns 1 if link `a` exists and is newer than link `b`. A `latest` that is newer than `.latest`
// was made by a user and must be kept.
static int newer(const struct rlhf__folder *all, const char *a, const char *b) {
    struct stat x, y;
    if (fstatat(all->fd, a, &x, AT_SYMLINK_NOFOLLOW) != 0 ||
        fstatat(all->fd, b, &y, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    if (x.st_mtim.tv_sec != y.st_mtim.tv_sec) return x.st_mtim.tv_sec > y.st_mtim.tv_sec;
    return x.st_mtim.tv_nsec > y.st_mtim.tv_nsec;
}

static rlhf_status clear_left(void *arg, const char *name, struct rlhf__error *err) {
    const struct rlhf__folder *all = arg;
    int left = strncmp(name, WRITING, strlen(WRITING)) == 0 ||
               strncmp(name, REMOVING, strlen(REMOVING)) == 0 || strcmp(name, ".best") == 0;
    return left ? rlhf__folder_remove(all, name, err) : RLHF_OK;
}

rlhf_status rlhf__checkpoint_dir_recover(const struct rlhf__folder *run, struct rlhf__error *err) {
    struct rlhf__folder *all = NULL;
    char target[64];
    if (!rlhf__folder_has(run, "checkpoints")) return RLHF_OK;
    RLHF_TRY(rlhf__folder_open(run, "checkpoints", &all, err));
    rlhf_status st = RLHF_OK;
    if (rlhf__folder_target(all, LINKING, target, sizeof target)) {
        if (is_checkpoint(all, target, phase_of(target)) && !newer(all, "latest", LINKING))
            st = rlhf__folder_rename(all, LINKING, "latest", err);
        else
            unlinkat(all->fd, LINKING, 0);
    }
    if (st == RLHF_OK) st = each_name(all, clear_left, (void *)(uintptr_t)all, err);
    if (st == RLHF_OK) st = rlhf__folder_sync(all, ".", err);
    rlhf__folder_close(all);
    return st;
}

// ---- pruning ----

// Rename the checkpoint before removing it, so that a crash cannot leave a partial checkpoint. A
// checkpoint that a process is reading is kept until the next pruning.
rlhf_status rlhf__checkpoint_dir_remove(const struct rlhf__folder *all, const char *name,
                                        struct rlhf__error *err) {
    char going[64];
    struct rlhf__folder *checkpoint = NULL;
    snprintf(going, sizeof going, REMOVING "%s", name);
    RLHF_TRY(rlhf__folder_remove(all, going, err));
    RLHF_TRY(rlhf__folder_open(all, name, &checkpoint, err));
    rlhf_status st = RLHF_OK;
    if (!rlhf__folder_is_held(checkpoint)) st = rlhf__folder_rename(all, name, going, err);
    rlhf__folder_close(checkpoint); // after the renaming, processes can no longer open it
    return st == RLHF_OK ? rlhf__folder_remove(all, going, err) : st;
}

// Visit the checkpoints of a list that are not kept.
static rlhf_status each_old(const struct list *l, int64_t phase, int64_t keep,
                            rlhf_status (*visit)(void *arg, const char *name,
                                                 struct rlhf__error *err),
                            void *arg, struct rlhf__error *err) {
    char name[32];
    size_t n = l->n;
    while (n > 0 && l->phase[n - 1] > phase)
        n--;
    for (size_t i = 0; i + (size_t)keep < n; i++) {
        name_of(l->phase[i], name);
        if (leads_to(l->all, "latest", name) || leads_to(l->all, "best", name)) continue;
        RLHF_TRY(visit(arg, name, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__checkpoint_dir_each_old(const struct rlhf__folder *all, int64_t phase,
                                          int64_t keep,
                                          rlhf_status (*visit)(void *arg, const char *name,
                                                               struct rlhf__error *err),
                                          void *arg, struct rlhf__error *err) {
    struct list l;
    if (keep <= 0) return RLHF_OK;
    rlhf_status st = list_all(all, &l, err); // list first: `visit` may remove checkpoints
    if (st == RLHF_OK) st = each_old(&l, phase, keep, visit, arg, err);
    free(l.phase);
    return st;
}

static rlhf_status visit_remove(void *arg, const char *name, struct rlhf__error *err) {
    return rlhf__checkpoint_dir_remove(arg, name, err);
}

void rlhf__checkpoint_dir_prune(const struct rlhf__folder *all, int64_t phase, int64_t keep,
                                struct rlhf__log *log) {
    struct rlhf__error err = {0, ""};
    if (rlhf__checkpoint_dir_each_old(all, phase, keep, visit_remove, (void *)(uintptr_t)all,
                                      &err) != RLHF_OK)
        rlhf__logf(log, RLHF_LOG_WARN, "old checkpoints stay: %s", err.text);
}
