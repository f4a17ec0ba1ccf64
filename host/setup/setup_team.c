// setup_team.c: what the set-up of a run does if several processes work on it; see setup.h.
#include "setup/setup.h"

#include "base/file.h"
#include "config/config_json.h"
#include "config/layer.h"
#include "keep/manifest.h"
#include "keep/run_dir.h"
#include "model/compute_load.h"
#include "team/identity.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

// ---- threads ----

// Returns the number of physical cores to which the processors in `mask` belong. A processor whose
// core is not known counts as one core.
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

// If several processes may use the same cores, each gets an equal share of these cores. If the
// launcher binds each process to its own cores, there is nothing to share.
int64_t rlhf__setup_threads(const struct rlhf__run *r) {
    const struct rlhf__team *t = r->req->team;
    const int64_t threads = r->config->run.threads;
    cpu_set_t mask;
    if (!t || t->same < 2 || threads != 0) return threads;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return threads;
    const int32_t cores = cores_of(&mask);
    return cores > t->same ? cores / t->same : 1;
}

// ---- cards ----

// Returns 1 if the user chose a card. In a resumed run, config.json always has the setting, so its
// presence does not mean that the user chose a card.
static int names_gpu(const struct rlhf__run *r) {
    const struct rlhf__config *c = r->config;
    if (c->compute.gpu > 0 || rlhf__layer_typed_by(c, "compute", "gpu")) return 1;
    return !r->req->resume && json_object_get(c->given, "compute.gpu") != NULL;
}

// Returns how many cards the backend finds. Does not use any card, because a process that uses a
// card takes some of the card's memory.
static uint32_t count_gpus(const struct rlhf__run *r) {
    const struct rlhf__dirs *dirs = r->req->env->dirs;
    const char *backend = r->config->compute.backend;
    const int is_auto = strcmp(backend, "auto") == 0;
    struct rlhf__kernels kernels = {0};
    struct rlhf__device_info d = {0};
    struct rlhf__error unread; // opening the backend reports the error
    uint32_t n = 0;
    if (strcmp(backend, "cpu") == 0 || strcmp(backend, "reference") == 0) return 0;
    if (is_auto && !rlhf__nvidia_signs("")) return 0;
    if (rlhf__kernels_load(dirs, is_auto ? "cuda" : backend, NULL, &kernels, &unread) == RLHF_OK &&
        kernels.plugin->ops.kernels.device == RLHF_DEVICE_CUDA &&
        rlhf__kernels_describe(&kernels, UINT32_MAX, &d, &unread) == RLHF_OK)
        n = d.devices;
    rlhf__device_info_finish(&d);
    rlhf__kernels_finish(&kernels);
    return n;
}

int64_t rlhf__setup_gpu(struct rlhf__run *r) {
    const struct rlhf__team *t = r->req->team;
    r->gpus = 0;
    if (!t || t->locals < 2 || names_gpu(r)) return r->config->compute.gpu;
    r->gpus = count_gpus(r);
    return r->gpus > 0 ? (int64_t)((uint32_t)t->local % r->gpus) : 0;
}

void rlhf__setup_say_gpus(const struct rlhf__run *r) {
    const struct rlhf__team *t = r->req->team;
    if (!t || r->gpus == 0 || r->session.compute->table->device != RLHF_DEVICE_CUDA) return;
    if ((uint32_t)t->locals > r->gpus)
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "the %d processes of this machine share %u GPU%s: each of them needs its own "
                   "memory on the card, and they wait for each other; start at most one process "
                   "per GPU",
                   t->locals, r->gpus, r->gpus == 1 ? "" : "s");
    else
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "each of the %d processes of this machine uses its own GPU (there are %u)",
                   t->locals, r->gpus);
}

// ---- the same run ----

// Remove the number of threads and the number of the card, which may differ between processes.
static void forget_place(json_t *compute) {
    const char *detail = json_string_value(json_object_get(compute, "detail"));
    const char *end = detail ? strstr(detail, " thread") : NULL;
    unsigned gpu;
    int name = 0;
    char kept[256];
    if (detail && sscanf(detail, "GPU %u, %n", &gpu, &name) == 1 && name > 0) {
        json_object_set_new(compute, "detail", json_string(detail + name));
        return;
    }
    if (!end) return;
    while (end > detail && *end != ',')
        end--;
    snprintf(kept, sizeof kept, "%.*s", (int)(end - detail), detail);
    json_object_set_new(compute, "detail", json_string(kept));
}

// Remove the paths of a resumed run, because a rank may read a copy of the run.
static void forget_copies(const struct rlhf__run *r, json_t *own) {
    json_t *policy = json_object_get(json_object_get(own, "program"), "policy");
    if (r->req->resume)
        json_object_del(json_object_get(json_object_get(own, "settings"), "run"), "dir");
    const char *path = json_string_value(json_object_get(policy, "path"));
    if (r->req->resume && path && strcmp(path, r->req->dir->checkpoint) == 0)
        json_object_set_new(policy, "path", json_string("the checkpoint"));
}

// Compare the values that must be equal on learners and actors.
static rlhf_status same_as_actors(const struct rlhf__run *r, struct rlhf__error *err) {
    json_t *own = NULL;
    if (!r->req->split) return RLHF_OK;
    rlhf_status st = rlhf__setup_actor_same(r, &own, err);
    forget_place(own);
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
                        (json_int_t)rlhf__model_microbatch(r->cast.policy, b->microbatch_tokens),
                        "phases of the run", (json_int_t)r->count.phases, "phases done",
                        (json_int_t)r->count.phase);
    if (st == RLHF_OK && !own) st = RLHF__NOMEM(err, "out of memory comparing processes");
    forget_place(json_object_get(json_object_get(own, "program"), "compute"));
    forget_copies(r, own);
    if (st == RLHF_OK) st = rlhf__team_same(rlhf__run_learners(r), own, err);
    json_decref(own);
    return st;
}
