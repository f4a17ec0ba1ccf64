// setup_team.c: what the set-up of a run does if several processes work on it; see setup.h.
#include "run/setup.h"

#include "base/file.h"
#include "keep/manifest.h"
#include "keep/run_dir.h"
#include "team/identity.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

// ---- threads ----

// Returns the number of physical cores among the processors of a mask. A processor whose core is
// not known counts as one.
static int32_t cores_of(const cpu_set_t *mask) {
    char path[128];
    int32_t cores = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        int first = cpu;
        if (!CPU_ISSET((size_t)cpu, mask)) continue;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%d", &first) != 1) first = cpu;
        if (f) fclose(f);
        cores +=
            first == cpu || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET((size_t)first, mask);
    }
    return cores;
}

// Processes that may use the same cores share them evenly. If the launcher binds each process to
// different cores, it has divided them already.
int64_t rlhf__setup_threads(const struct rlhf__run *r) {
    const struct rlhf__team *t = r->req->team;
    const int64_t threads = r->config->run.threads;
    cpu_set_t mask;
    if (!t || t->same < 2 || threads != 0) return threads;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return threads;
    const int32_t cores = cores_of(&mask);
    return cores > t->same ? cores / t->same : 1;
}

// ---- the same run ----

// Remove the number of threads, which may differ between processes.
static void forget_threads(json_t *compute) {
    const char *detail = json_string_value(json_object_get(compute, "detail"));
    const char *end = detail ? strstr(detail, " thread") : NULL;
    char kept[256];
    if (!end) return;
    while (end > detail && *end != ',')
        end--;
    snprintf(kept, sizeof kept, "%.*s", (int)(end - detail), detail);
    json_object_set_new(compute, "detail", json_string(kept));
}

// Remove the paths of a resumed run, because a rank may read a copy of it.
static void forget_copies(const struct rlhf__run *r, json_t *own) {
    json_t *policy = json_object_get(json_object_get(own, "program"), "policy");
    if (r->req->resume)
        json_object_del(json_object_get(json_object_get(own, "settings"), "run"), "dir");
    const char *path = json_string_value(json_object_get(policy, "path"));
    if (r->req->resume && path && strcmp(path, r->req->dir->checkpoint) == 0)
        json_object_set_new(policy, "path", json_string("the checkpoint"));
}

// Compare learners and actors in what both need.
static rlhf_status same_as_actors(const struct rlhf__run *r, struct rlhf__error *err) {
    json_t *own = NULL;
    if (!r->req->split) return RLHF_OK;
    rlhf_status st = rlhf__setup_actor_same(r, &own, err);
    forget_threads(own);
    forget_copies(r, own);
    if (st == RLHF_OK) st = rlhf__team_same(r->req->team, own, err);
    json_decref(own);
    return st;
}

rlhf_status rlhf__setup_same(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__manifest code = rlhf__run_manifest(r);
    const struct rlhf__batch_config *b = &r->config->batch;
    const rlhf_compute *table = r->session.compute->table;
    json_t *settings = NULL, *own = NULL;
    RLHF_TRY(same_as_actors(r, err));
    if (!rlhf__run_learners(r)) return RLHF_OK;
    rlhf_status st = rlhf__config_to_json(r->config, &settings, err);
    if (st == RLHF_OK)
        own = json_pack("{s:o, s:o, s:{s:I, s:I}, s:I, s:I}", "program", rlhf__manifest_json(&code),
                        "settings", settings, "sizes", "sampling.slots",
                        (json_int_t)rlhf__compute_slots(table, r->config->sampling.slots),
                        "batch.microbatch_tokens",
                        (json_int_t)rlhf__compute_microbatch(table, b->microbatch_tokens),
                        "phases of the run", (json_int_t)r->count.phases, "phases done",
                        (json_int_t)r->count.phase);
    if (st == RLHF_OK && !own) st = RLHF__NOMEM(err, "out of memory comparing processes");
    forget_threads(json_object_get(json_object_get(own, "program"), "compute"));
    forget_copies(r, own);
    if (st == RLHF_OK) st = rlhf__team_same(rlhf__run_learners(r), own, err);
    json_decref(own);
    return st;
}
