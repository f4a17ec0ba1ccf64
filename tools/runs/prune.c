// prune.c: `rlhf-host runs prune`: removes old checkpoints of runs that are not running.
#include "base/json.h"
#include "base/printable.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "keep/checkpoint_dir.h"
#include "keep/run_lock.h"
#include "runs/figures.h"
#include "runs/old_checkpoints.h"
#include "runs/runs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    int64_t keep;
    int32_t keep_last, yes, json;
};

// The result for one run.
struct pruned {
    const struct rlhf__run_row *run;
    struct rlhf__old_checkpoints old;
    json_t *removed, *kept; // names; [name, why]
    int64_t bytes;          // of those that were, or would be, removed
};

// ---- one run ----

static void keep(struct pruned *p, const char *name, const char *fmt, const char *by) {
    char why[400];
    snprintf(why, sizeof why, fmt, by);
    json_array_append_new(p->kept, json_pack("[s,o]", name, rlhf__json_text(why)));
}

static void plan(struct pruned *p) {
    if (p->run->state == RLHF__RUN_RUNNING)
        keep(p, "", "the run is running; its own checkpoint.keep removes old checkpoints", "");
    for (size_t i = 0; i < p->old.n; i++) {
        const struct rlhf__old_checkpoint *c = &p->old.all[i];
        if (c->needed_by) {
            keep(p, c->name, "%.300s began from it", c->needed_by);
            continue;
        }
        json_array_append_new(p->removed, json_string(c->name));
        p->bytes += c->bytes;
    }
}

static rlhf_status remove_old(struct pruned *p, const struct rlhf__folder *all,
                              struct rlhf__error *err) {
    for (size_t i = 0; i < p->old.n; i++) {
        const struct rlhf__old_checkpoint *c = &p->old.all[i];
        if (c->needed_by) {
            keep(p, c->name, "%.300s began from it", c->needed_by);
            continue;
        }
        RLHF_TRY(rlhf__checkpoint_dir_remove(all, c->name, err));
        if (rlhf__folder_has(all, c->name)) {
            keep(p, c->name, "another process is reading it", "");
            continue;
        }
        json_array_append_new(p->removed, json_string(c->name));
        p->bytes += c->bytes;
    }
    return RLHF_OK;
}

// Hold the run's lock while removing checkpoints, so that no other process can resume the run.
// After taking the lock, check again what `latest` and `best` point at.
static rlhf_status remove_locked(struct pruned *p, int64_t n,
                                 const struct rlhf__needed_list *needed, struct rlhf__log *log,
                                 struct rlhf__error *err) {
    struct rlhf__folder *root = NULL, *all = NULL;
    char real[RLHF__PATH_CAP];
    int lock = -1;
    if (!rlhf__path_real(p->run->path, real))
        return rlhf__fail(err, RLHF_E_IO, "'%s' is gone", p->run->path);
    RLHF_TRY(rlhf__folder_open(NULL, real, &root, err));
    rlhf_status st = rlhf__run_lock(root, 0, log, &lock, err);
    if (st == RLHF_E_INVALID) {
        keep(p, "", "it cannot be locked: %.300s", "it has just been resumed");
        rlhf__folder_close(root);
        return RLHF_OK;
    }
    rlhf__old_checkpoints_finish(&p->old);
    if (st == RLHF_OK) st = rlhf__old_checkpoints_find(p->run, n, needed, &p->old, err);
    if (st == RLHF_OK) st = rlhf__folder_open(root, "checkpoints", &all, err);
    if (st == RLHF_OK) st = remove_old(p, all, err);
    rlhf__folder_close(all);
    if (lock >= 0) close(lock);
    rlhf__folder_close(root);
    return st;
}

static rlhf_status prune(struct pruned *p, const struct options *o,
                         const struct rlhf__needed_list *needed, struct rlhf__log *log,
                         struct rlhf__error *err) {
    const int64_t n = o->keep_last ? 1 : o->keep;
    p->removed = json_array();
    p->kept = json_array();
    if (needed->unknown) {
        keep(p, "", "'%.300s' cannot be read, so it is not known which checkpoints it began from",
             needed->unknown);
        return RLHF_OK;
    }
    if (needed->crowded) {
        keep(p, "", "config.json of %.300s names too many paths", needed->crowded);
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__old_checkpoints_find(p->run, n, needed, &p->old, err));
    if (o->yes && p->old.n_free > 0) return remove_locked(p, n, needed, log, err);
    plan(p);
    return RLHF_OK;
}

// ---- output ----

struct total {
    size_t checkpoints;
    int64_t bytes;
};

static void put_names(struct rlhf__buf *out, const json_t *names) {
    for (size_t i = 0; i < json_array_size(names); i++)
        rlhf__buf_printf(out, "%s%s", i ? ", " : "", json_string_value(json_array_get(names, i)));
}

static void put_run(struct rlhf__buf *out, const struct pruned *p, int done) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    if (json_array_size(p->removed)) {
        rlhf__buf_printf(&line, "%s: %s ", p->run->path, done ? "removed" : "would remove");
        put_names(&line, p->removed);
        rlhf__buf_puts(&line, ", ");
        rlhf__put_bytes(&line, p->bytes);
        rlhf__buf_putc(&line, '\n');
    }
    for (size_t i = 0; i < json_array_size(p->kept); i++) {
        const json_t *one = json_array_get(p->kept, i);
        const char *name = json_string_value(json_array_get(one, 0));
        rlhf__buf_printf(&line, "%s: keeps %s: %s\n", p->run->path,
                         *name ? name : "its checkpoints",
                         json_string_value(json_array_get(one, 1)));
    }
    rlhf__put_printable(out, rlhf__buf_text(&line), line.len, "\n");
    if (line.bad) out->bad = 1;
    rlhf__buf_finish(&line);
}

static void put_total(struct rlhf__buf *out, const struct total *t, int done) {
    const char *s = t->checkpoints == 1 ? "" : "s";
    if (t->checkpoints == 0) {
        rlhf__buf_puts(out, done ? "nothing was removed\n" : "nothing to remove\n");
        return;
    }
    if (done)
        rlhf__buf_printf(out, "removed %zu checkpoint%s, ", t->checkpoints, s);
    else
        rlhf__buf_printf(out, "nothing was removed; with --yes it removes %zu checkpoint%s, ",
                         t->checkpoints, s);
    rlhf__put_bytes(out, t->bytes);
    rlhf__buf_putc(out, '\n');
}

static json_t *object_of(const struct pruned *p) {
    json_t *kept = json_array();
    for (size_t i = 0; i < json_array_size(p->kept); i++) {
        json_t *one = json_array_get(p->kept, i);
        json_array_append_new(kept, json_pack("{sO,sO}", "checkpoint", json_array_get(one, 0),
                                              "why", json_array_get(one, 1)));
    }
    return json_pack("{so,so,sO,sI,so}", "run", rlhf__json_text(p->run->name), "path",
                     rlhf__json_text(p->run->path), "checkpoints", p->removed, "bytes",
                     (json_int_t)p->bytes, "kept", kept);
}

// ---- all runs ----

// Returns 1 if run i is also an earlier entry of the list, because the user named it twice.
static int is_repeated(const struct rlhf__runs_found *f, size_t i) {
    const struct rlhf__run_row *all = f->all;
    for (size_t k = 0; k < i; k++)
        if (all[k].device == all[i].device && all[k].inode == all[i].inode) return 1;
    return 0;
}

// `around` lists all runs that may have begun from a checkpoint of a run in `f`.
static rlhf_status prune_all(const struct rlhf__runs_found *f,
                             const struct rlhf__runs_found *around, const struct options *o,
                             struct rlhf__log *log, struct rlhf__error *err) {
    struct rlhf__needed_list needed = {0};
    struct rlhf__buf out = RLHF__BUF_INIT;
    struct total total = {0};
    json_t *all = json_array();
    rlhf_status st = rlhf__needed_collect(around, &needed, err), first = RLHF_OK;
    if (around->closed > 0 && !needed.unknown) needed.unknown = "a directory next to these runs";
    for (size_t i = 0; st == RLHF_OK && i < f->n; i++) {
        if (is_repeated(f, i)) continue;
        struct pruned p = {.run = &f->all[i]};
        struct rlhf__error failed = {0, ""};
        const rlhf_status one = prune(&p, o, &needed, log, &failed);
        total.checkpoints += json_array_size(p.removed);
        total.bytes += p.bytes;
        put_run(&out, &p, o->yes);
        if (json_array_size(p.removed) || json_array_size(p.kept))
            json_array_append_new(all, object_of(&p));
        if (one != RLHF_OK && first != RLHF_OK)
            rlhf__log_error(log, failed.text);
        else if (one != RLHF_OK)
            *err = failed;
        if (one != RLHF_OK) first = one;
        rlhf__old_checkpoints_finish(&p.old);
        json_decref(p.removed);
        json_decref(p.kept);
    }
    put_total(&out, &total, o->yes);
    if (st == RLHF_OK && o->json)
        st = rlhf__print_json_new(json_pack("{sb,sI,sI,sO}", "removed", o->yes, "checkpoints",
                                            (json_int_t)total.checkpoints, "bytes",
                                            (json_int_t)total.bytes, "runs", all),
                                  err);
    else if (st == RLHF_OK && (st = rlhf__buf_ok(&out, err)) == RLHF_OK)
        fputs(rlhf__buf_text(&out), stdout);
    json_decref(all);
    rlhf__buf_finish(&out);
    rlhf__needed_finish(&needed);
    return st == RLHF_OK ? first : st;
}

// Adds the runs in the directory `path` and the runs next to this directory. If `path` is a run,
// also adds the runs one level above, because the run may be in a group.
static rlhf_status find_around(const char *path, struct rlhf__runs_found *around,
                               struct rlhf__error *err) {
    char real[RLHF__PATH_CAP];
    const size_t before = around->n;
    RLHF_TRY(rlhf__runs_find(path, around, err));
    const int64_t closed = around->closed; // of directories that the user did not name: ignored
    const int is_run = around->n == before + 1 && strcmp(around->all[before].path, path) == 0;
    if (!rlhf__path_real(path, real)) return RLHF_OK;
    for (int level = 0; level < 1 + is_run; level++) {
        char *slash = strrchr(real, '/');
        if (!slash || slash == real) break;
        *slash = '\0';
        RLHF_TRY(rlhf__runs_find(real, around, err));
    }
    around->closed = closed;
    return RLHF_OK;
}

int rlhf__runs_prune(const struct rlhf__env *env, int argc, char **argv) {
    static const struct rlhf__flag flags[] = {
        RLHF__FLAG_SW(struct options, "--keep-last", keep_last,
                      "keep the newest checkpoint of each run"),
        RLHF__FLAG_I(struct options, "--keep", keep, "N", 1, 1000000,
                     "keep the newest N checkpoints of each run"),
        RLHF__FLAG_SW(struct options, "--yes", yes, "remove them"),
        RLHF__FLAG_SW(struct options, "--json", json, "print one JSON object"),
    };
    static const char *const runs_dir = RLHF__RUNS_DIR;
    struct options o = {0};
    struct rlhf__flag_list rest = {0};
    struct rlhf__runs_found found = {0}, around = {0};
    struct rlhf__error err = {0, ""};
    rlhf_status st = rlhf__flags_parse(flags, 4, argc, argv, &o, &rest, &err);
    if (st == RLHF_OK && (o.keep > 0) == (o.keep_last != 0))
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "runs prune: say which checkpoints stay, by --keep-last or --keep N");
    if (st == RLHF_OK && !rest.n) st = rlhf__runs_default(argv[0], &err);
    for (size_t i = 0; st == RLHF_OK && i < (rest.n ? rest.n : 1); i++) {
        const char *path = rest.n ? rest.item[i] : runs_dir;
        st = rlhf__runs_find(path, &found, &err);
        if (st == RLHF_OK) st = find_around(path, &around, &err);
    }
    rlhf__runs_sort(&found);
    if (st == RLHF_OK) st = prune_all(&found, &around, &o, env->log, &err);
    rlhf__runs_found_finish(&found);
    rlhf__runs_found_finish(&around);
    free(rest.item);
    return rlhf__cmd_end(env, st, &err);
}
