// run_dir.c: see run_dir.h.
#include "keep/run_dir.h"

#include "base/file.h"
#include "base/json.h"
#include "config/config_json.h"
#include "keep/checkpoint_dir.h"
#include "keep/leftover.h"
#include "keep/run_lock.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// How long --resume waits for a process that was just killed, in ms.
#define KILLED_MS 2000

void rlhf__run_dir_begin(struct rlhf__run_dir *d, const char *resume) {
    memset(d, 0, sizeof *d);
    d->lock = -1;
    if (rlhf__folder_open(NULL, ".", &d->start, NULL) == RLHF_OK)
        d->start->path[0] = '\0'; // messages then show names as given
    if (!resume || strlen(resume) >= 4000) return;
    char *real = realpath(resume, NULL);
    if (real && strlen(real) < 4000 && rlhf__folder_open(NULL, resume, &d->root, NULL) == RLHF_OK) {
        snprintf(d->name, sizeof d->name, "%s", resume);
        snprintf(d->path, sizeof d->path, "%s", real);
    }
    free(real);
}

void rlhf__run_dir_finish(struct rlhf__run_dir *d) {
    if (d->shipped[0]) rlhf__folder_remove(NULL, d->shipped, NULL);
    if (d->lock >= 0) close(d->lock);
    rlhf__folder_close(d->root);
    rlhf__folder_close(d->start);
    d->root = d->start = NULL;
    d->lock = -1;
}

// ---- a new run ----

enum there {
    NOTHING,
    EMPTY,
    NO_DIRECTORY,
    OTHER,
    MODEL,
    LEFTOVER,      // files of a run that ended before the end of its first phase
    BEGUN,         // files of a run with these settings that ended before its first checkpoint
    NO_CHECKPOINT, // the same, but with other settings or with files of a user
    RUN,
    ALIVE
};

// Returns 1 if the directory is empty.
static int is_empty(const char *path) {
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *e; d && n == 0 && (e = readdir(d)) != NULL;)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d) closedir(d);
    return d && n == 0;
}

// Returns 1 if there is a checkpoint to resume from.
static int has_checkpoint(const struct rlhf__folder *run) {
    char name[64], path[96];
    if (rlhf__folder_has(run, "checkpoints/latest")) return 1;
    // A crash may have left a checkpoint without its link. --resume repairs this.
    if (!rlhf__folder_target(run, "checkpoints/.latest", name, sizeof name)) return 0;
    snprintf(path, sizeof path, "checkpoints/%s", name);
    return rlhf__folder_has(run, path);
}

// Classify the directory of a run, whose config.json is `stored`.
static enum there held_of_run(const struct rlhf__folder *run, const json_t *stored,
                              const struct rlhf__config *config) {
    if (has_checkpoint(run)) return RUN;
    if (rlhf__leftover_is_all(run, 0)) return LEFTOVER;
    return rlhf__leftover_is_all(run, 1) && !rlhf__settings_differ(stored, config, NULL)
               ? BEGUN
               : NO_CHECKPOINT;
}

// Classify a directory that is not empty, using its config.json.
static enum there held(const char *path, const struct rlhf__config *settings) {
    struct rlhf__folder *f = NULL;
    enum there is = OTHER;
    if (rlhf__folder_open(NULL, path, &f, NULL) != RLHF_OK) return OTHER;
    json_t *config = rlhf__stored_settings(f);
    if (json_object_get(config, "model_type"))
        is = MODEL;
    else if (json_object_get(config, "run"))
        is = held_of_run(f, config, settings);
    else if (rlhf__leftover_is_start(f))
        is = LEFTOVER;
    if (is != MODEL && rlhf__run_lock_probe(f, NULL) != RLHF_OK) is = ALIVE;
    json_decref(config);
    rlhf__folder_close(f);
    return is;
}

static enum there what_is(const char *path, const struct rlhf__config *config) {
    struct stat s;
    if (lstat(path, &s) != 0) return NOTHING;
    if (!S_ISDIR(s.st_mode)) return rlhf__is_dir(path) ? held(path, config) : NO_DIRECTORY;
    return is_empty(path) ? EMPTY : held(path, config);
}

// Write why a directory with files that no run writes cannot be used. Example: `files of a run and
// "mine" (1 more), which the run does not write: move them away`.
static void say_others(const struct rlhf__folder *run, char *out, size_t cap) {
    char name[RLHF__LEFTOVER_NAME], more[40] = "";
    const size_t n = rlhf__leftover_others(run, 1, name);
    if (n > 1) snprintf(more, sizeof more, " (%zu more)", n - 1);
    snprintf(out, cap,
             "files of a run and \"%.260s\"%s, which the run does not write: move %s away", name,
             more, n > 1 ? "them" : "it");
}

// Write the reason for keeping the files of a run without a checkpoint, for example "files of a run
// that began with other settings (run.seed was 1 and is now 2)". Returns 1 if the reason is a
// difference of settings, and 0 if the reason is that there are files that no run writes.
static int say_files(const char *path, const struct rlhf__config *settings, char *out, size_t cap) {
    struct rlhf__buf first = RLHF__BUF_INIT;
    struct rlhf__folder *f = NULL;
    size_t n = 0;
    snprintf(out, cap, "files of a run and others that may be worth keeping: move them away");
    if (rlhf__folder_open(NULL, path, &f, NULL) == RLHF_OK) {
        json_t *stored = rlhf__stored_settings(f);
        n = rlhf__settings_differ(stored, settings, &first);
        json_decref(stored);
        say_others(f, out, cap);
        rlhf__folder_close(f);
    }
    if (n > 1) rlhf__buf_printf(&first, "; %zu more differ%s", n - 1, n == 2 ? "s" : "");
    const int differs = first.len && !first.bad;
    if (differs)
        snprintf(out, cap, "files of a run that began with other settings (%.600s)",
                 rlhf__buf_text(&first));
    rlhf__buf_finish(&first);
    return differs;
}

// Write "a run is alive in it (process 123 on HOST)".
static void say_alive(const char *path, char *out, size_t cap) {
    struct rlhf__folder *f = NULL;
    char holder[RLHF__LOCK_HOLDER];
    snprintf(out, cap, "a run was alive in it a moment ago"); // unless the lock is still held
    if (rlhf__folder_open(NULL, path, &f, NULL) == RLHF_OK && rlhf__run_lock_holder(f, holder))
        snprintf(out, cap, "a run is alive in it (%s)", holder);
    rlhf__folder_close(f);
}

static rlhf_status refuse_existing(const char *name, const struct rlhf__config *config,
                                   struct rlhf__error *err) {
    char how[4200] = "; choose another run.dir", files[800];
    switch (what_is(name, config)) {
    case RUN:
        snprintf(how, sizeof how,
                 "; choose another run.dir, or go on with that run by --resume '%s'", name);
        break;
    case NO_CHECKPOINT:
        if (say_files(name, config, files, sizeof files))
            snprintf(how, sizeof how,
                     " and has no checkpoint to resume from, but holds %s; choose another run.dir, "
                     "or remove it: rm -r '%.3000s'",
                     files, name);
        else
            snprintf(how, sizeof how,
                     " and has no checkpoint to resume from, but holds %s, or choose another "
                     "run.dir",
                     files);
        break;
    case ALIVE:
        say_alive(name, files, sizeof files);
        snprintf(how, sizeof how, " and %s; choose another run.dir", files);
        break;
    case MODEL:
        snprintf(how, sizeof how, " and is a model directory; choose another run.dir");
        break;
    case NO_DIRECTORY:
        snprintf(how, sizeof how, " and is not a directory; choose another run.dir");
        break;
    case OTHER:
        snprintf(how, sizeof how, " and holds something else than a run; choose another run.dir");
        break;
    case NOTHING:
    case EMPTY:
    case LEFTOVER:
    case BEGUN: // the directory has changed since it was examined
        break;
    }
    return rlhf__fail(err, RLHF_E_INVALID, "the run directory '%s' exists already%s", name, how);
}

rlhf_status rlhf__run_dir_choose(struct rlhf__run_dir *d, const struct rlhf__config *config,
                                 const char *algo, struct rlhf__error *err) {
    const char *wanted = config->run.dir;
    if (!wanted[0]) {
        char date[32];
        time_t now = time(NULL);
        struct tm local;
        localtime_r(&now, &local);
        strftime(date, sizeof date, "%Y%m%d", &local);
        snprintf(d->name, sizeof d->name, "runs/%.200s-%s-", algo, date);
        d->numbered = 1;
        return rlhf__folder_may_make(d->name, err);
    }
    if (strlen(wanted) >= 4000)
        return rlhf__fail(err, RLHF_E_INVALID, "run.dir is longer than 4,000 bytes");
    snprintf(d->name, sizeof d->name, "%s", wanted);
    const enum there is = what_is(wanted, config);
    d->found = is == EMPTY || is == LEFTOVER || is == BEGUN;
    if (is == NOTHING) return rlhf__folder_may_make(wanted, err);
    return d->found ? RLHF_OK : refuse_existing(wanted, config, err);
}

// Create a directory with a number. The process that creates the directory owns it. If another
// process has created it first, the next number is tried.
static rlhf_status make_numbered(struct rlhf__run_dir *d, struct rlhf__error *err) {
    const size_t n = strlen(d->name);
    for (int i = 1; i < 100000; i++) {
        int taken;
        snprintf(d->name + n, sizeof d->name - n, "%d", i);
        RLHF_TRY(rlhf__folder_make(d->start, d->name, &taken, &d->root, err));
        if (!taken) return RLHF_OK;
    }
    d->name[n] = '\0';
    return rlhf__fail(err, RLHF_E_INVALID, "%s* is full; give run.dir", d->name);
}

static rlhf_status make_root(struct rlhf__run_dir *d, const struct rlhf__config *config,
                             struct rlhf__error *err) {
    int taken = 0;
    RLHF_TRY(rlhf__folder_make_above(d->start, d->name, err));
    if (d->numbered) return make_numbered(d, err);
    RLHF_TRY(rlhf__folder_make(d->start, d->name, &taken, &d->root, err));
    if (taken && d->found) return rlhf__folder_open(d->start, d->name, &d->root, err);
    return taken ? refuse_existing(d->name, config, err) : RLHF_OK;
}

static rlhf_status write_start(const struct rlhf__run_dir *d, const struct rlhf__config *config,
                               struct rlhf__error *err) {
    json_t *v = NULL;
    RLHF_TRY(rlhf__config_to_json(config, &v, err));
    return rlhf__json_save_new(d->root, "config.json", v, 2, err);
}

// Remove the files of a run that ended before its first checkpoint, so that the run can start over.
static rlhf_status clear(const struct rlhf__run_dir *d, const struct rlhf__config *config,
                         struct rlhf__log *log, struct rlhf__error *err) {
    const int rows = !rlhf__leftover_is_all(d->root, 0);
    if (has_checkpoint(d->root) || !rlhf__leftover_is_all(d->root, 1))
        return refuse_existing(d->name, config, err);
    json_t *stored = rlhf__stored_settings(d->root);
    const int same = !rows || !rlhf__settings_differ(stored, config, NULL);
    json_decref(stored);
    if (!same) return refuse_existing(d->name, config, err);
    rlhf__logf(log, RLHF_LOG_INFO,
               "run directory '%s': the run that was in it ended before its first %s; it starts "
               "over",
               d->name, rows ? "checkpoint" : "phase");
    return rlhf__leftover_remove(d->root, 1, err);
}

rlhf_status rlhf__run_dir_make(struct rlhf__run_dir *d, const struct rlhf__config *config,
                               struct rlhf__log *log, struct rlhf__error *err) {
    RLHF_TRY(make_root(d, config, err));
    // Two processes may have found the same directory, but only one at a time gets the lock. A
    // process that gets the lock later finds the files of the first process.
    rlhf_status st = rlhf__run_lock(d->root, 0, log, &d->lock, err);
    if (st == RLHF_E_INVALID) return refuse_existing(d->name, config, err);
    if (st == RLHF_OK && rlhf__folder_has(d->root, "config.json"))
        st = clear(d, config, log, err);
    else if (st == RLHF_OK && d->found)
        st = rlhf__leftover_remove(d->root, 0, err);
    if (st != RLHF_OK) return st;
    st = write_start(d, config, err);
    // If the directory is new, remove it, because nothing in it can be resumed.
    if (st != RLHF_OK && !d->found) rlhf__folder_remove(d->start, d->name, NULL);
    return st;
}

// ---- a resumed run ----

// Check that none of these entries of the run directory is a link, because the run writes to them.
static rlhf_status check_links(const struct rlhf__folder *root, struct rlhf__error *err) {
    static const char *const names[] = {"lock",          "metrics.jsonl",  "metrics.csv",
                                        "samples.jsonl", "rollouts.jsonl", "tensorboard",
                                        "spread.jsonl",  "events.jsonl",   "chain.jsonl",
                                        "checkpoints",   "sinks"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RLHF_TRY(rlhf__folder_no_link(root, names[i], err));
    return RLHF_OK;
}

// Write the end of a message, which names the available checkpoints.
static void offer(const struct rlhf__folder *root, const char *run, char out[320]) {
    struct rlhf__folder *all = NULL;
    int64_t newest = 0;
    snprintf(out, 320, "and no other checkpoint is there");
    if (rlhf__folder_open(root, "checkpoints", &all, NULL) != RLHF_OK) return;
    if (rlhf__checkpoint_dir_newest(all, &newest) > 0)
        snprintf(out, 320, "ln -sfn %06lld %.200s/checkpoints/latest goes back to the newest one",
                 (long long)newest, run);
    rlhf__folder_close(all);
}

static rlhf_status no_latest(const struct rlhf__run_dir *d, struct rlhf__error *err) {
    char hint[320];
    offer(d->root, d->name, hint);
    if (hint[0] == 'l')
        return rlhf__fail(err, RLHF_E_INVALID, "--resume: %s/checkpoints/latest is missing; %s",
                          d->name, hint);
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "--resume: %s has no checkpoint to resume from: the run ended before the first one "
        "was written; --config %s/config.json --out DIR starts it again",
        d->name, d->name);
}

static rlhf_status find_checkpoint(struct rlhf__run_dir *d, struct rlhf__error *err) {
    char path[4200], target[256], hint[320];
    if (!rlhf__folder_has(d->root, "checkpoints/latest")) return no_latest(d, err);
    if (!rlhf__folder_target(d->root, "checkpoints/latest", target, sizeof target))
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "--resume: %s/checkpoints/latest must be a link to a checkpoint in the same directory",
            d->name);
    snprintf(path, sizeof path, "%s/checkpoints/latest", d->path);
    char *real = realpath(path, NULL);
    if (!real) {
        offer(d->root, d->name, hint);
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--resume: %s/checkpoints/latest points to %s, which is not there; %s",
                          d->name, target, hint);
    }
    snprintf(d->checkpoint, sizeof d->checkpoint, "%s", real);
    free(real);
    snprintf(path, sizeof path, "%.4090s/state/run.json", d->checkpoint);
    if (rlhf__is_file(path)) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "--resume: %s/checkpoints/latest is not a checkpoint of a run: %s/state/run.json "
        "is missing",
        d->name, target);
}

rlhf_status rlhf__run_dir_can_go_on(const struct rlhf__run_dir *d, struct rlhf__error *err) {
    if (!d->root || has_checkpoint(d->root)) return RLHF_OK;
    RLHF_TRY(rlhf__run_lock_probe(d->root, err));
    return no_latest(d, err);
}

rlhf_status rlhf__run_dir_attach(struct rlhf__run_dir *d, const char *resume, int dry,
                                 struct rlhf__log *log, struct rlhf__error *err) {
    if (!d->root)
        return rlhf__fail(err, RLHF_E_INVALID, "--resume: cannot open the directory %.200s",
                          resume);
    RLHF_TRY(check_links(d->root, err));
    RLHF_TRY(dry ? rlhf__run_lock_probe(d->root, err)
                 : rlhf__run_lock(d->root, KILLED_MS, log, &d->lock, err));
    if (!dry) RLHF_TRY(rlhf__leftover_remove(d->root, 0, err));
    if (!dry) RLHF_TRY(rlhf__checkpoint_dir_recover(d->root, err));
    return find_checkpoint(d, err);
}

rlhf_status rlhf__run_dir_follow(struct rlhf__run_dir *d, const char *checkpoint,
                                 struct rlhf__error *err) {
    char path[4200];
    snprintf(d->checkpoint, sizeof d->checkpoint, "%s", checkpoint);
    snprintf(path, sizeof path, "%.4090s/state/run.json", d->checkpoint);
    if (d->root && rlhf__is_file(path)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "--resume: %s is not there: all processes must see the run directory under "
                      "the same path",
                      checkpoint);
}

// ---- config.json ----

// Keep the stored values of two settings: run.dir, because the run may have been moved, and
// run.stop_after, because a new value applies only to the process that is started with it.
static void keep_stored(json_t *now, const json_t *stored) {
    static const char *const keys[] = {"dir", "stop_after"};
    json_t *run = json_object_get(now, "run");
    const json_t *was = json_object_get(stored, "run");
    for (size_t i = 0; i < 2; i++)
        if (json_object_get(was, keys[i]))
            json_object_set(run, keys[i], json_object_get(was, keys[i]));
}

rlhf_status rlhf__run_dir_store(const struct rlhf__run_dir *d, const struct rlhf__config *config,
                                struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *stored = NULL, *now = NULL;
    rlhf_status st = rlhf__folder_read(d->root, "config.json", (uint64_t)64 << 20, &text, err);
    if (st == RLHF_OK)
        st = rlhf__json_parse("config.json", rlhf__buf_text(&text), text.len, &stored, err);
    if (st == RLHF_OK) st = rlhf__config_to_json(config, &now, err);
    if (st == RLHF_OK) {
        keep_stored(now, stored);
        if (!json_equal(now, stored))
            st = rlhf__json_save_new(d->root, "config.json", json_incref(now), 2, err);
    }
    json_decref(now);
    json_decref(stored);
    rlhf__buf_finish(&text);
    return st;
}
