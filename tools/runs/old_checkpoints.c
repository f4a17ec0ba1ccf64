// old_checkpoints.c: see old_checkpoints.h.
#include "runs/old_checkpoints.h"

#include "keep/checkpoint_dir.h"
#include "runs/tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHECKPOINTS "/checkpoints/"

// ---- what other runs need ----

// Cut a path after the name that follows "/checkpoints/".
static void cut(char *path) {
    char *at = strstr(path, CHECKPOINTS), *end = at ? strchr(at + strlen(CHECKPOINTS), '/') : NULL;
    if (end) *end = '\0';
}

rlhf_status rlhf__needed_collect(const struct rlhf__runs_found *f, struct rlhf__needed_list *out,
                                 struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct stat s;
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < json_array_size(f->all[i].paths); k++) {
            rlhf__path_put(path, "%s", json_string_value(json_array_get(f->all[i].paths, k)));
            cut(path);
            if (!*path || stat(path, &s) != 0) continue; // it is gone
            struct rlhf__needed *more = realloc(out->all, (out->n + 1) * sizeof *more);
            if (!more) return RLHF__NOMEM(err, "out of memory");
            out->all = more;
            out->all[out->n++] = (struct rlhf__needed){
                .device = (uint64_t)s.st_dev, .inode = (uint64_t)s.st_ino, .by = &f->all[i]};
        }
    return RLHF_OK;
}

void rlhf__needed_finish(struct rlhf__needed_list *l) {
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

static const char *needed_by(const struct search *s, const char *name) {
    struct stat st;
    if (fstatat(s->all->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return NULL;
    for (size_t i = 0; i < s->needed->n; i++) {
        const struct rlhf__needed *n = &s->needed->all[i];
        if (n->device == (uint64_t)st.st_dev && n->inode == (uint64_t)st.st_ino &&
            (n->by->device != s->run->device || n->by->inode != s->run->inode))
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
