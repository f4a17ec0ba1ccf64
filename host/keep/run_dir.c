// run_dir.c: see run_dir.h. Resuming is in run_dir_resume.c.
#include "keep/run_dir.h"

#include "base/file.h"
#include "keep/run_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void rlhf__run_dir_begin(struct rlhf__run_dir *d, const char *resume) {
    memset(d, 0, sizeof *d);
    d->lock = -1;
    if (rlhf__folder_open(NULL, ".", &d->start, NULL) == RLHF_OK)
        d->start->path[0] = '\0'; // names are shown as they were given
    if (!resume || strlen(resume) >= 4000) return;
    char *real = realpath(resume, NULL);
    if (real && strlen(real) < 4000 && rlhf__folder_open(NULL, resume, &d->root, NULL) == RLHF_OK) {
        snprintf(d->name, sizeof d->name, "%s", resume);
        snprintf(d->path, sizeof d->path, "%s", real);
    }
    free(real);
}

void rlhf__run_dir_finish(struct rlhf__run_dir *d) {
    if (d->lock >= 0) close(d->lock);
    rlhf__folder_close(d->root);
    rlhf__folder_close(d->start);
    d->root = d->start = NULL;
    d->lock = -1;
}

// ---- a new run ----

static int exists(const char *path) {
    struct stat s;
    return lstat(path, &s) == 0;
}

static rlhf_status refuse_existing(const char *name, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the run directory '%s' exists already; choose another run.dir, or go on "
                      "with that run by --resume '%s'",
                      name, name);
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
        return RLHF_OK;
    }
    if (strlen(wanted) >= 4000)
        return rlhf__fail(err, RLHF_E_INVALID, "run.dir is longer than 4,000 bytes");
    snprintf(d->name, sizeof d->name, "%s", wanted);
    return exists(wanted) ? refuse_existing(wanted, err) : RLHF_OK;
}

// Whoever makes the directory has it: another process that chose the same name gets the next one.
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

static rlhf_status make_root(struct rlhf__run_dir *d, struct rlhf__error *err) {
    int taken = 0;
    RLHF_TRY(rlhf__folder_make_above(d->start, d->name, err));
    if (d->numbered) return make_numbered(d, err);
    RLHF_TRY(rlhf__folder_make(d->start, d->name, &taken, &d->root, err));
    return taken ? refuse_existing(d->name, err) : RLHF_OK;
}

static rlhf_status write_start(struct rlhf__run_dir *d, const struct rlhf__config *config,
                               struct rlhf__log *log, struct rlhf__error *err) {
    json_t *v = NULL;
    RLHF_TRY(rlhf__run_lock(d->root, log, &d->lock, err));
    RLHF_TRY(rlhf__config_to_json(config, &v, err));
    return rlhf__json_save_new(d->root, "config.json", v, 2, err);
}

rlhf_status rlhf__run_dir_make(struct rlhf__run_dir *d, const struct rlhf__config *config,
                               struct rlhf__log *log, struct rlhf__error *err) {
    RLHF_TRY(make_root(d, err));
    rlhf_status st = write_start(d, config, log, err);
    // Nothing is in it that could be resumed.
    if (st != RLHF_OK) rlhf__folder_remove(d->start, d->name, NULL);
    return st;
}
