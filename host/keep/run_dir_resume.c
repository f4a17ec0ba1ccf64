// run_dir_resume.c: the directory of a resumed run; see run_dir.h.
#include "base/file.h"
#include "keep/checkpoint_dir.h"
#include "keep/run_dir.h"
#include "keep/run_lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Check the entries of a run directory that will be written to.
static rlhf_status check_links(const struct rlhf__folder *root, struct rlhf__error *err) {
    static const char *const names[] = {"lock",          "metrics.jsonl",  "metrics.csv",
                                        "samples.jsonl", "rollouts.jsonl", "tensorboard",
                                        "checkpoints"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RLHF_TRY(rlhf__folder_no_link(root, names[i], err));
    return RLHF_OK;
}

// Describe the available checkpoints, as the end of a message.
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
        "--resume: %s has no checkpoint to resume from: it ended before the first one "
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
    if (!d->root || rlhf__run_dir_has_checkpoint(d->root)) return RLHF_OK;
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
                 : rlhf__run_lock(d->root, log, &d->lock, err));
    if (!dry) RLHF_TRY(rlhf__checkpoint_dir_recover(d->root, err));
    return find_checkpoint(d, err);
}

// ---- config.json ----

// The run may have been moved, and run.stop_after is for one process only.
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
    rlhf__buf_free(&text);
    return st;
}
