// leftover.c: see leftover.h.
#include "keep/leftover.h"

#include "base/json.h"
#include "config/config_json.h"
#include "keep/checkpoint_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// The files that a run creates before its first checkpoint. Files marked ROWS are empty until a
// phase ends. What sinks write is not marked ROWS, because it only repeats these files.
static const struct made {
    const char *name;
    enum { WRITTEN, ROWS, FOLDER, CHECKPOINTS } is;
} made[] = {{"config.json", WRITTEN}, {"manifest.json", WRITTEN},
            {"lock", WRITTEN},        {"metrics.jsonl", ROWS},
            {"samples.jsonl", ROWS},  {"rollouts.jsonl", ROWS},
            {"spread.jsonl", ROWS},   {"events.jsonl", WRITTEN},
            {"chain.jsonl", WRITTEN}, {"checkpoints", CHECKPOINTS},
            {"tensorboard", FOLDER},  {"metrics.csv", WRITTEN},
            {"sinks", FOLDER}};
enum { MADE = sizeof made / sizeof *made };

// Returns 1 if the folder `name` contains nothing but unfinished checkpoints.
static int unfinished_only(int dir, const char *name) {
    const int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int n = 0;
    if (!d) {
        if (fd >= 0) close(fd);
        return 0;
    }
    for (const struct dirent *e; n == 0 && (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             strcmp(e->d_name, ".latest") != 0 && // link to a checkpoint that lacks its final name
             strncmp(e->d_name, RLHF__CHECKPOINT_WRITING, strlen(RLHF__CHECKPOINT_WRITING)) != 0;
    closedir(d);
    return n == 0;
}

// Returns the length of the name without ".tmp-<pid>", the end of a temporary file's name (file.h).
static size_t stem_of(const char *name) {
    static const char end[] = ".tmp-";
    const char *at = strstr(name, end);
    const size_t digits = at ? strspn(at + sizeof end - 1, "0123456789") : 0;
    return digits && !at[sizeof end - 1 + digits] ? (size_t)(at - name) : strlen(name);
}

// Returns the index in `made` of the file, or of the file that a temporary file would have become.
// Otherwise returns MADE.
static size_t find(const char *name) {
    const size_t n = stem_of(name);
    const int whole = !name[n];
    for (size_t i = 0; i < MADE; i++)
        if (strncmp(made[i].name, name, n) == 0 && !made[i].name[n] &&
            (whole || made[i].is == WRITTEN))
            return i;
    return MADE;
}

static int is_worthless(int dir, const char *name, int rows) {
    struct stat s;
    const size_t i = find(name);
    if (i == MADE || fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) != 0) return 0;
    if (made[i].is == FOLDER) return S_ISDIR(s.st_mode);
    if (made[i].is == CHECKPOINTS) return S_ISDIR(s.st_mode) && unfinished_only(dir, name);
    return S_ISREG(s.st_mode) && (made[i].is == WRITTEN || rows || s.st_size == 0);
}

// Call `visit` with each name in the directory. Returns 0 if the directory cannot be read.
static int each(const struct rlhf__folder *run, void (*visit)(void *arg, const char *name),
                void *arg) {
    const int fd = openat(run->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d && fd >= 0) close(fd);
    if (!d) return 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) visit(arg, e->d_name);
    closedir(d);
    return 1;
}

struct others {
    const struct rlhf__folder *run;
    size_t n;
    char *first; // may be NULL
    int rows;
};

static void count_other(void *arg, const char *name) {
    struct others *o = arg;
    if (is_worthless(o->run->fd, name, o->rows)) return;
    if (o->first && (o->n == 0 || strcmp(name, o->first) < 0))
        snprintf(o->first, RLHF__LEFTOVER_NAME, "%s", name);
    o->n++;
}

size_t rlhf__leftover_others(const struct rlhf__folder *run, int rows,
                             char first[RLHF__LEFTOVER_NAME]) {
    struct others o = {.run = run, .first = first, .rows = rows};
    if (first) *first = '\0';
    return each(run, count_other, &o) ? o.n : 1;
}

int rlhf__leftover_is_all(const struct rlhf__folder *run, int rows) {
    return rlhf__leftover_others(run, rows, NULL) == 0;
}

static void count_later(void *arg, const char *name) {
    const size_t n = stem_of(name);
    *(size_t *)arg +=
        strcmp(name, "lock") != 0 && !(name[n] && (strncmp(name, "config.json", n) == 0));
}

int rlhf__leftover_is_start(const struct rlhf__folder *run) {
    size_t later = 0;
    return each(run, count_later, &later) && later == 0 && rlhf__leftover_is_all(run, 0);
}

struct removal {
    const struct rlhf__folder *run;
    struct rlhf__error *err;
    rlhf_status st;
};

// 1 if the first `n` bytes of the name are those of the report, which a run writes at its end.
static int is_page(const char *name, size_t n) {
    static const char page[] = "report.html";
    return n == sizeof page - 1 && memcmp(name, page, n) == 0;
}

static void remove_temporary(void *arg, const char *name) {
    struct removal *r = arg;
    const size_t n = stem_of(name);
    if (r->st == RLHF_OK && name[n] && (find(name) < MADE || is_page(name, n)))
        r->st = rlhf__folder_remove(r->run, name, r->err);
}

rlhf_status rlhf__leftover_remove(const struct rlhf__folder *run, int all,
                                  struct rlhf__error *err) {
    struct removal r = {.run = run, .err = err, .st = RLHF_OK};
    each(run, remove_temporary, &r);
    // config.json, the first name, is removed last: if the removal is interrupted, the rest is
    // still known as a run.
    for (size_t i = all ? MADE : 0; r.st == RLHF_OK && i-- > 0;)
        if (strcmp(made[i].name, "lock") != 0) r.st = rlhf__folder_remove(run, made[i].name, err);
    return r.st;
}

// ---- the settings that a run began with ----

json_t *rlhf__stored_settings(const struct rlhf__folder *run) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *config = NULL;
    if (rlhf__folder_read(run, "config.json", (uint64_t)64 << 20, &text, NULL) == RLHF_OK)
        rlhf__json_parse("config.json", rlhf__buf_text(&text), text.len, &config, NULL);
    rlhf__buf_finish(&text);
    return config;
}

// ---- what differs ----

static void say(const char *path, const json_t *was, const json_t *now, struct rlhf__buf *out) {
    struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
    if (was) rlhf__json_write(&a, was, 0);
    if (now) rlhf__json_write(&b, now, 0);
    rlhf__buf_printf(out, "%s was %.100s and is now %.100s", path,
                     a.len ? rlhf__buf_text(&a) : "not given",
                     b.len ? rlhf__buf_text(&b) : "not given");
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
}

// Returns 1 if `given` names a run directory and `stored` names a checkpoint in it. In that case
// the setting has not changed, because the run stored the checkpoint that it found in that
// directory (setup/setup_inputs.c).
static int is_checkpoint_of(const json_t *stored, const json_t *given) {
    static const char below[] = "/checkpoints/";
    const char *was = json_string_value(stored), *now = json_string_value(given);
    char run[PATH_MAX];
    if (!was || !now || !*now || !realpath(now, run)) return 0;
    const size_t n = strlen(run);
    return strncmp(was, run, n) == 0 && strncmp(was + n, below, sizeof below - 1) == 0 &&
           !strchr(was + n + sizeof below - 1, '/');
}

struct differing {
    size_t n;
    struct rlhf__buf *first;
};

static rlhf_status count_leaf(void *arg, const char *path, const json_t *was, const json_t *now,
                              struct rlhf__error *err) {
    struct differing *d = arg;
    (void)err;
    if (was && now && (json_equal(was, now) || is_checkpoint_of(was, now))) return RLHF_OK;
    if (d->first && d->n == 0) say(path, was, now, d->first);
    d->n++;
    return RLHF_OK;
}

size_t rlhf__settings_differ(const json_t *stored, const struct rlhf__config *config,
                             struct rlhf__buf *first) {
    json_t *now = NULL, *was = json_deep_copy(stored);
    struct differing d = {.n = 1, .first = first};
    if (was && rlhf__config_to_json(config, &now, NULL) == RLHF_OK) {
        json_object_del(json_object_get(was, "run"), "dir");
        json_object_del(json_object_get(now, "run"), "dir");
        // The run has replaced "auto" by the backend that it found (setup/setup.c).
        if (strcmp(config->compute.backend, "auto") == 0) {
            json_object_del(json_object_get(was, "compute"), "backend");
            json_object_del(json_object_get(now, "compute"), "backend");
        }
        // The run has replaced 0 by the number of processes (setup/setup_shards.c).
        if (config->parallel.shards == 0) {
            json_object_del(json_object_get(was, "parallel"), "shards");
            json_object_del(json_object_get(now, "parallel"), "shards");
        }
        d.n = 0;
        rlhf__config_leaves("", was, now, count_leaf, &d, NULL);
    }
    json_decref(was);
    json_decref(now);
    return d.n;
}
