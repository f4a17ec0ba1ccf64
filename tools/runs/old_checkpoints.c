// old_checkpoints.c: see old_checkpoints.h.
#include "runs/old_checkpoints.h"

#include "keep/checkpoint_dir.h"
#include "runs/tree_size.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHECKPOINTS "/checkpoints/"

// ---- what other runs need ----

static rlhf_status append(struct rlhf__needed_list *l, const struct rlhf__needed *one,
                          struct rlhf__error *err) {
    struct rlhf__needed *more = realloc(l->all, (l->n + 1) * sizeof *more);
    if (!more) return RLHF__NOMEM(err, "out of memory");
    l->all = more;
    l->all[l->n++] = *one;
    return RLHF_OK;
}

// If a checkpoint's path does not exist, the run may have been moved. Then only the end of the
// path, RUN/checkpoints/NUMBER, identifies the checkpoint. `at` points to the slash after RUN in
// `path`.
static rlhf_status append_moved(struct rlhf__needed_list *l, char *path, char *at,
                                const struct rlhf__run_row *by, struct rlhf__error *err) {
    *at = '\0';
    const char *slash = strrchr(path, '/');
    *at = '/';
    struct rlhf__needed one = {.moved = strdup(slash ? slash + 1 : path), .by = by};
    if (!one.moved) return RLHF__NOMEM(err, "out of memory");
    const rlhf_status st = append(l, &one, err);
    if (st != RLHF_OK) free(one.moved);
    return st;
}

// A path may contain "/checkpoints/" several times, and a checkpoint may follow each of them.
static rlhf_status collect(struct rlhf__needed_list *l, char *path, const struct rlhf__run_row *by,
                           struct rlhf__error *err) {
    struct stat s;
    for (char *at = path; (at = strstr(at, CHECKPOINTS)) != NULL; at++) {
        char *end = strchr(at + strlen(CHECKPOINTS), '/');
        if (end) *end = '\0';
        rlhf_status st = RLHF_OK;
        if (stat(path, &s) == 0) {
            const struct rlhf__needed one = {
                .device = (uint64_t)s.st_dev, .inode = (uint64_t)s.st_ino, .by = by};
            st = append(l, &one, err);
        } else {
            st = append_moved(l, path, at, by, err);
        }
        if (end) *end = '/';
        RLHF_TRY(st);
    }
    return RLHF_OK;
}

rlhf_status rlhf__needed_collect(const struct rlhf__runs_found *f, struct rlhf__needed_list *out,
                                 struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    for (size_t i = 0; i < f->n; i++) {
        const struct rlhf__run_row *r = &f->all[i];
        if (!r->paths) out->unknown = r->path;
        if (r->paths_left_out) out->crowded = r->name;
        for (size_t k = 0; k < json_array_size(r->paths); k++) {
            rlhf__path_put(path, "%s", json_string_value(json_array_get(r->paths, k)));
            RLHF_TRY(collect(out, path, r, err));
        }
    }
    return RLHF_OK;
}

void rlhf__needed_finish(struct rlhf__needed_list *l) {
    for (size_t i = 0; i < l->n; i++)
        free(l->all[i].moved);
    free(l->all);
    *l = (struct rlhf__needed_list){0};
}

// ---- one run ----

struct search {
    const struct rlhf__folder *all;
    const struct rlhf__run_row *run;
    const struct rlhf__needed_list *needed;
    struct rlhf__old_checkpoints *out;
};

// Returns 1 if *n was named by a path that no longer exists, and this path ends like that of the
// checkpoint `name` of a run called `run`.
static int is_moved(const struct rlhf__needed *n, const char *run, const char *name) {
    const size_t a = strlen(run), b = strlen(CHECKPOINTS);
    return n->moved && strncmp(n->moved, run, a) == 0 &&
           strncmp(n->moved + a, CHECKPOINTS, b) == 0 && strcmp(n->moved + a + b, name) == 0;
}

static const char *needed_by(const struct search *s, const char *name) {
    struct stat st;
    char real[RLHF__PATH_CAP];
    const char *run = rlhf__path_real(s->run->path, real) ? rlhf__path_base(real) : "";
    if (fstatat(s->all->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return NULL;
    for (size_t i = 0; i < s->needed->n; i++) {
        const struct rlhf__needed *n = &s->needed->all[i];
        const int same = n->moved
                             ? is_moved(n, run, name)
                             : n->device == (uint64_t)st.st_dev && n->inode == (uint64_t)st.st_ino;
        if (same && (n->by->device != s->run->device || n->by->inode != s->run->inode))
            return n->by->name;
    }
    return NULL;
}

static rlhf_status visit(void *arg, const char *name, struct rlhf__error *err) {
    struct search *s = arg;
    struct rlhf__old_checkpoints *out = s->out;
    struct rlhf__old_checkpoint *more = realloc(out->all, (out->n + 1) * sizeof *more);
    if (!more) return RLHF__NOMEM(err, "out of memory");
    out->all = more;
    struct rlhf__old_checkpoint *one = &out->all[out->n++];
    *one = (struct rlhf__old_checkpoint){.bytes = rlhf__tree_bytes(s->all, name),
                                         .needed_by = needed_by(s, name)};
    snprintf(one->name, sizeof one->name, "%s", name);
    if (one->needed_by) return RLHF_OK;
    out->bytes += one->bytes;
    out->n_free++;
    return RLHF_OK;
}

rlhf_status rlhf__old_checkpoints_find(const struct rlhf__run_row *run, int64_t keep,
                                       const struct rlhf__needed_list *needed,
                                       struct rlhf__old_checkpoints *out, struct rlhf__error *err) {
    struct rlhf__folder *root = NULL, *all = NULL;
    char real[RLHF__PATH_CAP];
    *out = (struct rlhf__old_checkpoints){0};
    if (run->state == RLHF__RUN_RUNNING || !rlhf__path_real(run->path, real)) return RLHF_OK;
    RLHF_TRY(rlhf__folder_open(NULL, real, &root, err));
    rlhf_status st = RLHF_OK;
    if (rlhf__folder_has(root, "checkpoints"))
        st = rlhf__folder_open(root, "checkpoints", &all, err);
    struct search s = {all, run, needed, out};
    if (st == RLHF_OK && all)
        st = rlhf__checkpoint_dir_each_old(all, INT64_MAX, keep, visit, &s, err);
    rlhf__folder_close(all);
    rlhf__folder_close(root);
    return st;
}

void rlhf__old_checkpoints_finish(struct rlhf__old_checkpoints *o) {
    free(o->all);
    *o = (struct rlhf__old_checkpoints){0};
}
