// run_checkpoint.c: see run_checkpoint.h.
#include "weights/run_checkpoint.h"

#include "base/json.h"
#include "weights/links.h"

#include <string.h>
#include <sys/stat.h>

#define THE_RUN "the run directory"

// Returns 1 if dir/name is a regular file. The program writes regular files. In a cache of
// downloaded models, all files are links, even those of an uploaded checkpoint.
static int has_file(const char *dir, const char *name) {
    char path[RLHF__PATH_CAP];
    struct stat s;
    return lstat(rlhf__path_put(path, "%s/%s", dir, name), &s) == 0 && S_ISREG(s.st_mode);
}

static int looks_like_run(const char *dir) {
    char path[RLHF__PATH_CAP];
    return rlhf__is_dir(rlhf__path_put(path, "%s/checkpoints", dir)) &&
           (has_file(dir, "manifest.json") || has_file(dir, "metrics.jsonl") ||
            has_file(dir, "chain.jsonl"));
}

rlhf_status rlhf__checkpoint_links(const char *dir, struct rlhf__error *err) {
    if (looks_like_run(dir)) return rlhf__links_stay(dir, THE_RUN, err);
    return has_file(dir, "state/run.json") ? rlhf__links_stay(dir, "the checkpoint", err) : RLHF_OK;
}

rlhf_status rlhf__run_is(const char *dir, int *run, struct rlhf__error *err) {
    json_t *config = NULL;
    RLHF_TRY(rlhf__checkpoint_links(dir, err));
    RLHF_TRY(rlhf__json_load_any(dir, "config.json", &config, err));
    *run = json_object_get(config, "run") != NULL && !json_object_get(config, "model_type");
    json_decref(config);
    return RLHF_OK;
}

rlhf_status rlhf__run_above(const char *dir, char run[RLHF__PATH_CAP], struct rlhf__error *err) {
    char path[RLHF__PATH_CAP], above[RLHF__PATH_CAP], real[RLHF__PATH_CAP];
    int is = 0;
    run[0] = '\0';
    if (!rlhf__path_real(dir, real)) return RLHF_OK;
    if (!has_file(real, "state/run.json")) return RLHF_OK;
    rlhf__path_put(path, "%s/../..", real);
    if (rlhf__path_real(path, above) && (has_file(above, "config.json") || looks_like_run(above))) {
        RLHF_TRY(rlhf__links_stay(above, THE_RUN, err));
        RLHF_TRY(rlhf__run_is(above, &is, err));
    }
    if (is) memcpy(run, above, sizeof above);
    return RLHF_OK;
}

static rlhf_status no_checkpoint(const char *command, const char *given, const char *name,
                                 struct rlhf__error *err) {
    if (strcmp(name, "latest") == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: the run '%s' has no checkpoint: it ended before the first one was "
                          "written",
                          command, given);
    if (strcmp(name, "best") == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: the run '%s' keeps no best checkpoint (its checkpoint.best names no "
                          "metric); --checkpoint last is the newest",
                          command, given);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: the run '%s' has no checkpoint '%s'; --checkpoint is best, last or a "
                      "name in %s/checkpoints",
                      command, given, name, given);
}

static int has_checkpoint(const char *run, const char *name, char real[RLHF__PATH_CAP]) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/checkpoints/%s", run, name);
    return *name && !strchr(name, '/') && name[0] != '.' && rlhf__path_real(path, real) &&
           rlhf__is_dir(real);
}

rlhf_status rlhf__run_checkpoint_find(const char *command, const char *given, const char *run,
                                      const char *choice, const char *newest, struct rlhf__log *log,
                                      struct rlhf__run_checkpoint *out, struct rlhf__error *err) {
    char best[RLHF__PATH_CAP];
    const int keeps_best = has_checkpoint(run, "best", best);
    const char *name = choice ? choice : keeps_best ? "best" : "latest";
    if (strcmp(name, "last") == 0) name = "latest";
    if (!has_checkpoint(run, name, out->dir)) return no_checkpoint(command, given, name, err);
    out->is_best = keeps_best && strcmp(best, out->dir) == 0;
    const char *base = rlhf__path_base(out->dir);
    if (out->is_best && !choice)
        rlhf__logf(log, RLHF_LOG_INFO, "%s: checkpoint %s of %s: its best; %s takes the newest",
                   command, base, given, newest);
    else
        rlhf__logf(log, RLHF_LOG_INFO, "%s: checkpoint %s of %s", command, base, given);
    return RLHF_OK;
}

rlhf_status rlhf__run_model(const char *what, const char **path, char room[RLHF__PATH_CAP],
                            struct rlhf__log *log, struct rlhf__error *err) {
    struct rlhf__run_checkpoint found = {.is_best = 0};
    char run[RLHF__PATH_CAP], newest[RLHF__PATH_CAP];
    int is = 0;
    if (!rlhf__path_real(*path, run)) return RLHF_OK;
    if (rlhf__run_is(*path, &is, err) != RLHF_OK) return rlhf__error_context(err, "%s", what);
    if (!is) return RLHF_OK;
    rlhf__path_put(newest, "%s/checkpoints/latest", *path);
    RLHF_TRY(rlhf__run_checkpoint_find(what, *path, run, NULL, newest, log, &found, err));
    memcpy(room, found.dir, sizeof found.dir);
    *path = room;
    return RLHF_OK;
}
