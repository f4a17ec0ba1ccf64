// team_open.c: see team_open.h.
#include "team/team_open.h"

#include "base/hash.h"
#include "base/running.h"
#include "plugin/search.h"
#include "plugin/shared_object.h"
#include "plugin/trust.h"
#include "supervise/last_words.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTING "parallel.backend"

// ---- which file ----

static rlhf_status is_missing(const struct rlhf__collective_spec *s, const char *name,
                              const char *path, struct rlhf__error *err) {
    const int chosen = strcmp(s->backend, "auto") == 0 || strcmp(s->backend, "mpi") == 0;
    if (strchr(name, '/'))
        return rlhf__fail(err, RLHF_E_INVALID, SETTING " is %s, but there is no such file", path);
    if (!chosen)
        return rlhf__fail(err, RLHF_E_INVALID,
                          SETTING " is %s; allowed are auto, none, mpi, openmpi and mpich if they "
                                  "were built, nccl, and a path with a '/' (no file '%s')",
                          name, path);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s started this process, but rlhf-host was built without that MPI (no file "
                      "'%s'): build it where lib%s-dev is installed, or set " SETTING
                      "=none if each process should do a separate run",
                      s->launch.launcher, path, name);
}

static rlhf_status find(const struct rlhf__collective_spec *s, const char *name,
                        char out[RLHF__PATH_CAP], struct rlhf__error *err) {
    char file[256], real[RLHF__PATH_CAP], *found = NULL;
    if (strchr(name, '/')) {
        rlhf__path_put(out, "%s", name);
    } else {
        rlhf__path_put(out, "%s/collectives/collective_%s.so", s->dirs->lib, name);
        if (snprintf(file, sizeof file, "collective_%s.so", name) < (int)sizeof file)
            RLHF_TRY(rlhf__plugin_look(s->dirs, file, RLHF__KIND_COLLECTIVE, &found, err));
        if (found) rlhf__path_put(out, "%s", found);
        free(found);
    }
    if (!rlhf__is_file(out) || !rlhf__path_real(out, real)) return is_missing(s, name, out, err);
    memcpy(out, real, strlen(real) + 1);
    return rlhf__trust_code(out, s->dirs, err);
}

// Sets *name to the collective to open, or to NULL if this process works alone.
static rlhf_status choose(const struct rlhf__collective_spec *s, const char **name,
                          struct rlhf__error *err) {
    const struct rlhf__launch *l = &s->launch;
    const int is_auto = strcmp(s->backend, "auto") == 0;
    // NCCL is opened later, on top of MPI.
    const int mpi = strcmp(s->backend, "mpi") == 0 || strcmp(s->backend, RLHF__NCCL) == 0;
    *name = NULL;
    if (strcmp(s->backend, "none") == 0 || (is_auto && l->ranks == 0)) return RLHF_OK;
    if (l->ranks == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          SETTING " is %s, but no launcher has started several processes; begin "
                                  "the command with mpirun or srun, or leave the setting out",
                          s->backend);
    *name = is_auto || mpi ? l->mpi : s->backend;
    if (*name) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s started %d processes (%s), but connects none of them: start them with "
                      "srun --mpi=pmix or srun --mpi=pmi2, or set " SETTING
                      "=none if each process should do a separate run",
                      l->launcher, l->ranks, l->variable);
}

// ---- opening ----

static rlhf_status load(struct rlhf__collective *c, struct rlhf__error *err) {
    void *dl = NULL;
    rlhf_collectives_fn entry = NULL;
    RLHF_TRY(rlhf__sha256_file(c->path, c->sha256, err));
    RLHF_TRY(rlhf__shared_object_open(c->path, &dl, err)); // never closed: MPI has threads
    void *symbol = dlsym(dl, RLHF_COLLECTIVES_SYMBOL);
    memcpy(&entry, &symbol, sizeof entry); // ISO C forbids a cast to a function pointer
    if (!symbol || !entry)
        return rlhf__fail(err, RLHF_E_INVALID,
                          SETTING ": %s is not a collective (it does not export "
                                  "%s)",
                          c->path, RLHF_COLLECTIVES_SYMBOL);
    const rlhf_collectives *p = entry();
    if (!p || p->size < RLHF_SIZE_TO(rlhf_collectives, destroy) ||
        p->major != RLHF_COLLECTIVE_MAJOR || p->minor != RLHF_COLLECTIVE_MINOR)
        return rlhf__fail(err, RLHF_E_INVALID,
                          SETTING ": %s is a collective of another version; this rlhf-host needs "
                                  "%d.%d: rebuild it with SDK " RLHF_SDK_VERSION,
                          c->path, RLHF_COLLECTIVE_MAJOR, RLHF_COLLECTIVE_MINOR);
    c->plugin = p;
    return RLHF_OK;
}

// A rank is lost, so the ranks can no longer agree on anything. Terminate all ranks. (`why` names
// the lost rank and its machine.)
static void lost(void *ctx, const char *why) {
    struct rlhf__collective *c = ctx;
    c->log->mute = 0;
    rlhf__log_error(c->log, why);
    c->made->abort(c->made->ctx, 1);
}

static rlhf_status make(struct rlhf__collective *c, const rlhf_collective_options *o,
                        struct rlhf__error *err) {
    char why[512] = "";
    struct rlhf__running before = rlhf__running_begin("collective", c->path, "create()");
    const rlhf_status st = c->plugin->create(o, &c->made, why, sizeof why);
    rlhf__running_end(&before);
    rlhf__last_words_renew(); // a library may have replaced the signal handlers
    if (st == RLHF_OK && c->made)
        return rlhf_copy_in(&c->read, sizeof c->read, c->made,
                            RLHF_SIZE_TO(rlhf_collective, last_error)) == RLHF_OK
                   ? RLHF_OK
                   : rlhf__fail(err, RLHF_E_INVALID,
                                "it made a table of a size that this host does not know");
    return rlhf__fail(err, st < 0 ? st : (rlhf_status)RLHF_E_INTERNAL, "%s",
                      why[0] ? why : "it made no table");
}

// Rejects a launcher that belongs to another MPI than the collective. With such a launcher, each
// process finds only itself.
static rlhf_status check_ranks(const struct rlhf__collective *c,
                               const struct rlhf__collective_spec *s, struct rlhf__error *err) {
    const struct rlhf__launch *l = &s->launch;
    const int32_t found = c->read.ranks;
    if (l->ranks > 0 ? found == l->ranks : found > 1 || l->rank == 0) return RLHF_OK;
    char n[32] = "several";
    if (l->ranks > 0) snprintf(n, sizeof n, "%d", l->ranks);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s started %s processes (%s), but %s (%s) finds %d: it belongs to another "
                      "MPI; start the command with the launcher of that MPI, or set " SETTING
                      " to the MPI of this launcher",
                      l->launcher, n, l->variable, c->path, c->read.detail ? c->read.detail : "",
                      found);
}

rlhf_status rlhf__collective_open(const struct rlhf__collective_spec *s, struct rlhf__collective *c,
                                  struct rlhf__error *err) {
    const char *name;
    *c = (struct rlhf__collective){.log = s->log};
    RLHF_TRY(choose(s, &name, err));
    if (!name) return RLHF_OK;
    RLHF_TRY(find(s, name, c->path, err));
    RLHF_TRY(load(c, err));
    const rlhf_collective_options o = {
        .size = sizeof o, .device = -1, .timeout_s = s->timeout_s, .lost = lost, .lost_ctx = c};
    const rlhf_status st = make(c, &o, err);
    if (st != RLHF_OK) return rlhf__error_context(err, SETTING ": %s", c->path);
    RLHF_TRY(check_ranks(c, s, err));
    if (c->read.ranks < 2) return RLHF_OK;
    return rlhf__team_init(&c->team, &c->read, err);
}

rlhf_status rlhf__collective_load(const struct rlhf__collective_spec *s, struct rlhf__collective *c,
                                  struct rlhf__error *err) {
    *c = (struct rlhf__collective){.log = s->log};
    RLHF_TRY(find(s, s->backend, c->path, err));
    return load(c, err);
}

rlhf_status rlhf__collective_join(struct rlhf__collective *c, const rlhf_collective_options *o,
                                  struct rlhf__error *err) {
    RLHF_TRY(make(c, o, err));
    if (c->read.flags & RLHF_COLLECTIVE_DEVICE) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s does not exchange device memory", c->path);
}

void rlhf__collective_close(struct rlhf__collective *c, int status) {
    if (c->made && c->team.broken) c->made->abort(c->made->ctx, status ? status : 1);
    rlhf__team_finish(&c->team);
    if (c->made) c->plugin->destroy(c->made);
    *c = (struct rlhf__collective){0};
}
