// chain_log.c: see chain_log.h.
#include "keep/chain_log.h"

#include "history/chain_file.h"
#include "report/jsonl.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct rlhf__chain_log {
    struct rlhf__jsonl file;
    struct rlhf__sha256 bytes; // of the file
    char run[RLHF__PATH_CAP];  // the directory, even if a plugin changes the working directory
    char head[RLHF__HEX];
    int64_t sealed; // phase of the last checkpoint in the file; -1: none
};

// ---- writing ----

static rlhf_status append(struct rlhf__chain_log *l, json_t *line, const char *seal_key,
                          struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    char seal[RLHF__HEX];
    if (!line) return RLHF__NOMEM(err, "out of memory for " RLHF__CHAIN_FILE);
    rlhf__json_write(&text, line, 0);
    json_decref(line);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK && seal_key) {
        rlhf__chain_seal(l->bytes, text.data, text.len - 1, seal);
        text.len--;
        rlhf__buf_printf(&text, ", \"%s\": \"%s\"}", seal_key, seal);
    }
    rlhf__buf_putc(&text, '\n');
    if (st == RLHF_OK) st = rlhf__jsonl_append(&l->file, &text, err);
    if (st == RLHF_OK) rlhf__sha256_put(&l->bytes, text.data, text.len);
    rlhf__buf_finish(&text);
    return st;
}

rlhf_status rlhf__chain_log_phase(struct rlhf__chain_log *l, const struct rlhf__chain_link *link,
                                  const char *unsteady, struct rlhf__error *err) {
    char head[RLHF__HEX];
    rlhf__chain_head(l->head, link, head);
    RLHF_TRY(append(l,
                    json_pack("{s:I, s:s?, s:s?, s:s?, s:s, s:s}", "phase", (json_int_t)link->phase,
                              "rows", link->rows, "rewards", link->rewards, "metrics",
                              link->metrics, "head", head, "unsteady", unsteady),
                    NULL, err));
    memcpy(l->head, head, sizeof head);
    return RLHF_OK;
}

// ---- checkpoints ----

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

// Add the digests of the regular files in dir/below to `files`.
static rlhf_status add_files(json_t *files, const char *dir, const char *below,
                             struct rlhf__digests *known, struct rlhf__error *err) {
    struct dirent **all = NULL;
    char path[RLHF__PATH_CAP], name[300], hex[RLHF__HEX];
    struct stat is;
    rlhf__path_put(path, "%s/%s", dir, below);
    const int n = scandir(path, &all, NULL, by_name);
    rlhf_status st = RLHF_OK;
    if (n < 0)
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot read the directory: %s", path,
                          strerror(errno));
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "%s%.255s", below, all[i]->d_name);
        rlhf__path_put(path, "%s/%s", dir, name);
        if (st == RLHF_OK && lstat(path, &is) == 0 && S_ISREG(is.st_mode)) {
            if (!rlhf__digests_get(known, name, hex)) st = rlhf__sha256_file(path, hex, err);
            if (st == RLHF_OK) json_object_set_new(files, name, json_string(hex));
        }
        free(all[i]);
    }
    free(all);
    return st;
}

rlhf_status rlhf__chain_log_checkpoint(struct rlhf__chain_log *l, int64_t phase,
                                       struct rlhf__digests *known, struct rlhf__error *err) {
    char dir[RLHF__PATH_CAP];
    json_t *files = json_object();
    if (l->sealed == phase) {
        json_decref(files);
        return RLHF_OK;
    }
    rlhf__path_put(dir, "%s/checkpoints/%06lld", l->run, (long long)phase);
    rlhf_status st = files ? add_files(files, dir, "", known, err)
                           : RLHF__NOMEM(err, "out of memory for " RLHF__CHAIN_FILE);
    if (st == RLHF_OK) st = add_files(files, dir, "state/", known, err);
    if (st == RLHF_OK)
        st = append(l, json_pack("{s:I, s:O}", "phase", (json_int_t)phase, "checkpoint", files),
                    "seal", err);
    json_decref(files);
    if (st == RLHF_OK) l->sealed = phase;
    return st;
}

// ---- the beginning ----

// Add to `begin` the inputs that only `before` has. `begin` may lack some inputs, because a resumed
// run does not read all files again.
static void keep_inputs(json_t *begin, const json_t *before) {
    json_t *inputs = json_object_get(begin, "inputs");
    json_t *was = json_object_get(before, "inputs");
    json_t *merged = json_object(), *v;
    const char *key;
    json_object_foreach(was, key, v) json_object_set(merged, key, v);
    json_object_foreach(inputs, key, v) json_object_set(merged, key, v);
    json_object_set_new(begin, "inputs", merged);
}

// Like config.json, keep the values that run.dir and run.stop_after had in the run's first process.
static void keep_settings(json_t *settings, const json_t *before) {
    static const char *const keys[] = {"dir", "stop_after"};
    json_t *was = json_object_get(before, "run"), *is = json_object_get(settings, "run");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(was, keys[i]))
            json_object_set(is, keys[i], json_object_get(was, keys[i]));
}

static rlhf_status put_begin(struct rlhf__chain_log *l, int64_t phase, json_t *begin,
                             struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    char head[RLHF__HEX];
    rlhf__json_write(&text, begin, 0);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) rlhf__chain_begin(l->head, phase, rlhf__buf_text(&text), head);
    rlhf__buf_finish(&text);
    if (st != RLHF_OK) return st;
    RLHF_TRY(append(
        l, json_pack("{s:I, s:O, s:s}", "phase", (json_int_t)phase, "begin", begin, "head", head),
        NULL, err));
    memcpy(l->head, head, sizeof head);
    return RLHF_OK;
}

static rlhf_status put_start(struct rlhf__chain_log *l, int64_t phase,
                             const struct rlhf__chain_start *start, const json_t *begin,
                             const json_t *settings, struct rlhf__error *err) {
    if (!json_equal(begin, start->begin)) RLHF_TRY(put_begin(l, phase, start->begin, err));
    if (json_equal(settings, start->settings)) return RLHF_OK;
    return append(l,
                  json_pack("{s:I, s:O}", "phase", (json_int_t)phase, "settings", start->settings),
                  NULL, err);
}

static const json_t *last_of(const struct rlhf__chain_file *f, enum rlhf__chain_kind kind,
                             const char *key) {
    const struct rlhf__chain_line *l = rlhf__chain_file_last(f, kind, INT64_MAX);
    return l ? json_object_get(l->value, key) : NULL;
}

// Remove everything from the first line of a later phase on. Earlier versions could write the
// line of an earlier checkpoint after it. That line must go, too, because its seal covers all lines
// before it. The caller writes a new line for the checkpoint.
static rlhf_status cut(const struct rlhf__chain_log *l, struct rlhf__chain_file *f, int64_t keep,
                       struct rlhf__error *err) {
    size_t n = 0;
    while (n < f->n && f->line[n].phase <= keep)
        n++;
    if (n == f->n) return RLHF_OK;
    rlhf__chain_file_cut(f, n);
    if (ftruncate(l->file.fd, (off_t)f->text.len) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "%s: cannot cut the file: %s", l->file.path, strerror(errno));
}

// Continue the file of a resumed run.
static rlhf_status go_on(struct rlhf__chain_log *l, int64_t keep,
                         const struct rlhf__chain_start *start, struct rlhf__error *err) {
    struct rlhf__chain_file f = {.n = 0};
    rlhf_status st = rlhf__chain_file_read(l->run, &f, err);
    if (st == RLHF_OK) st = cut(l, &f, keep, err);
    const struct rlhf__chain_line *sealed =
        rlhf__chain_file_last(&f, RLHF__CHAIN_CHECKPOINT, INT64_MAX);
    if (st == RLHF_OK) {
        const json_t *begin = last_of(&f, RLHF__CHAIN_BEGIN, "begin");
        const json_t *settings = last_of(&f, RLHF__CHAIN_SETTINGS, "settings");
        snprintf(l->head, sizeof l->head, "%s", rlhf__chain_file_head(&f, f.n));
        rlhf__sha256_put(&l->bytes, f.text.data, f.text.len);
        if (sealed) l->sealed = sealed->phase;
        if (begin) keep_inputs(start->begin, begin);
        if (settings) keep_settings(start->settings, settings);
        st = put_start(l, keep, start, begin, settings, err);
    }
    rlhf__chain_file_finish(&f);
    return st;
}

rlhf_status rlhf__chain_log_open(const struct rlhf__folder *run, int64_t keep,
                                 struct rlhf__chain_start start, struct rlhf__log *log,
                                 struct rlhf__chain_log **out, struct rlhf__error *err) {
    struct rlhf__chain_log *l = *out = calloc(1, sizeof *l);
    char held[64];
    rlhf_status st = l && start.begin && start.settings
                         ? RLHF_OK
                         : RLHF__NOMEM(err, "out of memory for " RLHF__CHAIN_FILE);
    if (st == RLHF_OK) {
        l->sealed = -1;
        l->file.fd = -1;
        rlhf__sha256_init(&l->bytes);
        snprintf(held, sizeof held, "/proc/self/fd/%d", run->fd);
        if (!rlhf__path_real(held, l->run)) rlhf__path_put(l->run, "%s", run->path);
    }
    // go_on() removes the lines of later phases.
    const int64_t all = keep < 0 ? keep : INT64_MAX;
    if (st == RLHF_OK) st = rlhf__jsonl_open(run, RLHF__CHAIN_FILE, all, log, &l->file, err);
    if (st == RLHF_OK)
        st = keep < 0 ? put_start(l, 0, &start, NULL, NULL, err) : go_on(l, keep, &start, err);
    json_decref(start.begin);
    json_decref(start.settings);
    return st;
}

void rlhf__chain_log_close(struct rlhf__chain_log *l) {
    struct rlhf__error ignored; // a resumed run adds the line of a checkpoint if it is lost
    if (!l) return;
    rlhf__jsonl_sync(&l->file, &ignored);
    rlhf__jsonl_close(&l->file);
    free(l);
}

rlhf_status rlhf__chain_log_sync(struct rlhf__chain_log *l, struct rlhf__error *err) {
    return rlhf__jsonl_sync(&l->file, err);
}
