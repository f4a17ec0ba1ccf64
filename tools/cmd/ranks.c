// ranks.c: see ranks.h.
#include "cmd/ranks.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "config/layer.h"
#include "keep/run_dir.h"
#include "team/agree.h"
#include "team/ship.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- ranks without a common directory ----

struct digest {
    uint8_t sha256[32];
    int32_t there; // there: 0 if nothing was found
};

static void add_file(struct rlhf__sha256 *sum, struct digest *d, const char *dir,
                     const char *name) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error unread;
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/%s", dir, name);
    if (rlhf__file_read(path, 1 << 28, &text, &unread) == RLHF_OK) {
        d->there = 1;
        rlhf__sha256_put(sum, rlhf__buf_text(&text), text.len);
    }
    rlhf__buf_finish(&text);
}

// Compare the ranks' digests with rank 0's. Sets *any to 1 if the digest of any rank differs, and
// *differs to 1 if this rank's digest differs.
static rlhf_status compare(struct rlhf__team *t, const struct digest *own, int *any, int *differs,
                           struct rlhf__error *err) {
    struct digest *all = calloc((size_t)t->ranks, sizeof *all);
    *any = *differs = 0;
    if (!all) return RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    const rlhf_status st = rlhf__team_gather(t, own, sizeof *own, all, err);
    for (int32_t k = 1; st == RLHF_OK && all[0].there && k < t->ranks; k++) {
        const int other = memcmp(&all[k], &all[0], sizeof *all) != 0;
        *any |= other;
        if (k == t->rank) *differs = other;
    }
    free(all);
    return st;
}

// Make a private directory for the files that rank 0 sends.
static rlhf_status make_room(char out[RLHF__PATH_CAP], struct rlhf__error *err) {
    const char *tmp = getenv("TMPDIR");
    if (out[0]) return RLHF_OK;
    rlhf__path_put(out, "%s/rlhf-ranks-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (mkdtemp(out)) return RLHF_OK;
    const int why = errno;
    out[0] = '\0';
    return rlhf__fail(err, RLHF_E_INVALID,
                      "--resume: this rank does not see the run directory, and cannot make a "
                      "directory for its copy in %s (TMPDIR): %s",
                      tmp && *tmp ? tmp : "/tmp", strerror(why));
}

// Receive the run's settings, and the metrics to which the rules are applied. Only rank 0 writes to
// the run.
static rlhf_status share_settings(struct rlhf__ranks *r, struct rlhf__team *t, const char **resume,
                                  struct rlhf__error *err) {
    struct rlhf__sha256 sum;
    struct digest own = {.there = 0};
    struct rlhf__buf list = RLHF__BUF_INIT, all = RLHF__BUF_INIT;
    int any, differs;
    rlhf__sha256_init(&sum);
    add_file(&sum, &own, *resume, "config.json");
    rlhf__sha256_finish(&sum, own.sha256);
    if (!own.there) memset(&own, 0, sizeof own);
    RLHF_TRY(compare(t, &own, &any, &differs, err));
    if (!any) return RLHF_OK;
    rlhf_status st = differs ? make_room(r->shipped, err) : RLHF_OK;
    st = rlhf__team_agree(t, RLHF__BARRIER_SETUP, NULL, st, err);
    if (st == RLHF_OK) rlhf__ship_list(*resume, &all);
    for (const char *at = rlhf__buf_text(&all), *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        const char *name = strchr(at, ' ');
        if (name && (strncmp(name, " config.json\n", 13) == 0 ||
                     strncmp(name, " manifest.json\n", 15) == 0 ||
                     strncmp(name, " metrics.jsonl\n", 15) == 0))
            rlhf__buf_put(&list, at, (size_t)(end - at) + 1);
        if (!end) break;
    }
    if (st == RLHF_OK) st = rlhf__ship_files(t, &list, *resume, differs ? r->shipped : NULL, err);
    if (st == RLHF_OK && differs) *resume = r->shipped;
    rlhf__buf_finish(&list);
    rlhf__buf_finish(&all);
    return st;
}

rlhf_status rlhf__ranks_resume(struct rlhf__ranks *r, const struct rlhf__env *env,
                               const char **resume, const char *backend, double timeout_s,
                               struct rlhf__error *err) {
    if (!*resume || rlhf__launch_read().ranks == 0) return RLHF_OK;
    r->joined = 1;
    RLHF_TRY(rlhf__join(env, backend, timeout_s, &r->collective, RLHF_OK, err));
    struct rlhf__team *t = rlhf__joined(&r->collective);
    return t ? share_settings(r, t, resume, err) : RLHF_OK;
}

// Describe the checkpoint `dir` as this rank sees it. `list` receives the names and sizes of its
// files. *d receives one digest, computed over that list and state/run.json.
static void see_checkpoint(const char *dir, struct rlhf__buf *list, struct digest *d) {
    struct rlhf__sha256 sum;
    rlhf__sha256_init(&sum);
    rlhf__ship_list(dir, list);
    rlhf__sha256_put(&sum, rlhf__buf_text(list), list->len);
    add_file(&sum, d, dir, "state/run.json");
    rlhf__sha256_finish(&sum, d->sha256);
    if (!d->there) memset(d, 0, sizeof *d);
}

// `from` is rank 0's checkpoint. Sets `out` to the path at which this rank reads the checkpoint.
static rlhf_status share_checkpoint(struct rlhf__team *t, struct rlhf__run_dir *dir,
                                    const char *from, char out[RLHF__PATH_CAP],
                                    struct rlhf__error *err) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    struct digest own = {.there = 0};
    int any, differs;
    see_checkpoint(from, &list, &own);
    rlhf__path_put(out, "%s", from);
    rlhf_status st = compare(t, &own, &any, &differs, err);
    if (st == RLHF_OK && any) {
        rlhf_status made = differs ? make_room(dir->shipped, err) : RLHF_OK;
        if (differs) rlhf__path_put(out, "%s/checkpoints/%s", dir->shipped, rlhf__path_base(from));
        st = rlhf__team_agree(t, RLHF__BARRIER_SETUP, NULL, made, err);
        if (st == RLHF_OK) st = rlhf__ship_files(t, &list, from, differs ? out : NULL, err);
    }
    rlhf__buf_finish(&list);
    return st;
}

rlhf_status rlhf__ranks_share(const struct rlhf__run_request *req, struct rlhf__error *err) {
    struct rlhf__team *t = req->team;
    char(*all)[sizeof req->dir->checkpoint], path[RLHF__PATH_CAP];
    if (!t || !req->resume) return RLHF_OK;
    all = calloc((size_t)t->ranks, sizeof *all);
    if (!all) return RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    rlhf_status st = rlhf__team_gather(t, req->dir->checkpoint, sizeof *all, all, err);
    if (st == RLHF_OK) st = share_checkpoint(t, req->dir, all[0], path, err);
    if (st == RLHF_OK && t->rank > 0) st = rlhf__run_dir_follow(req->dir, path, err);
    free(all);
    return st;
}

// ---- joining and leaving ----

// Choose the actors, i.e. the processes that only sample. A run with actors may be resumed in one
// process. That process then samples the next phase's responses itself.
static rlhf_status choose_actors(struct rlhf__ranks *r, struct rlhf__run_request *run,
                                 struct rlhf__error *err) {
    struct rlhf__parallel_config *c = &run->config->parallel;
    const int typed = rlhf__layer_typed_by(run->config, "parallel", "actors") != NULL;
    if (!run->team && run->resume && !typed) c->actors = 0;
    if (!run->team && c->actors > 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "parallel.actors is %lld, but the run has one process; begin the command "
                          "with mpirun or srun, or leave the setting out: with rollout.ahead=1 a "
                          "part of the threads samples",
                          (long long)c->actors);
    if (!run->team) return RLHF_OK;
    RLHF_TRY(rlhf__split_init(&r->split, run->team, c->actors, err));
    if (c->actors > 0) run->split = &r->split;
    return RLHF_OK;
}

// A resumed run queries its launcher again, because the number of processes may have changed.
rlhf_status rlhf__ranks_join(struct rlhf__ranks *r, struct rlhf__run_request *run, rlhf_status st,
                             struct rlhf__error *err) {
    struct rlhf__parallel_config *c = &run->config->parallel;
    if (st == RLHF_OK && run->resume && !rlhf__layer_typed_by(run->config, "parallel", "backend"))
        c->backend = "auto";
    if (r->joined)
        st = rlhf__team_agree(rlhf__joined(&r->collective), RLHF__BARRIER_SETUP, NULL, st, err);
    else
        st = rlhf__join(run->env, c->backend, c->timeout_s, &r->collective, st, err);
    run->team = rlhf__joined(&r->collective);
    run->collective = run->team ? &r->collective : NULL;
    return st == RLHF_OK ? choose_actors(r, run, err) : st;
}

void rlhf__ranks_leave(struct rlhf__ranks *r, int status) {
    rlhf__split_finish(&r->split);
    rlhf__collective_close(&r->collective, status);
}
