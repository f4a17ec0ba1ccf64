// again.c: see again.h.
#include "recompute/again.h"

#include "config/config.h"
#include "keep/run_dir.h"
#include "run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the settings ----

static rlhf_status load_config(const struct rlhf__again *a, struct rlhf__config *out,
                               struct rlhf__error *err) {
    char backend[4200], threads[64];
    const char *const set[] = {backend, threads};
    const char *const flag[] = {"--backend", "--threads"};
    snprintf(backend, sizeof backend, "compute.backend=%.4100s", a->backend);
    snprintf(threads, sizeof threads, "run.threads=%lld", (long long)a->threads);
    const struct rlhf__config_request q = {.dirs = a->env->dirs,
                                           .algo = a->algo,
                                           .set = set,
                                           .set_flag = flag,
                                           .n_set = 2,
                                           .resume = a->run,
                                           .trust_run = a->trust_run,
                                           .algo_alone = 1};
    RLHF_TRY(rlhf__config_load(&q, out, err));
    // Turn off settings that do not affect the numbers of a phase.
    out->early_stop.kl = out->early_stop.reward = 0;
    out->checkpoint.best = "";
    out->checkpoint.undo_mib = 0;
    out->log.progress = RLHF__PROGRESS_OFF;
    out->log.tensorboard = out->log.csv = 0;
    out->log.samples = 0;
    return RLHF_OK;
}

// ---- the phase ----

static rlhf_status run_phase(const struct rlhf__run_request *q, const struct rlhf__folder *out,
                             int found, struct rlhf__again_told *told, struct rlhf__error *err) {
    struct rlhf__run *r = NULL;
    RLHF_TRY(rlhf__run_create(q, &r, err));
    told->samples = rlhf__cast_samples(&r->cast);
    told->lacks_rows = told->samples && !found;
    rlhf_status st = RLHF_OK;
    if (!told->lacks_rows)
        st = rlhf__run_again(r, out, told->reads_start ? NULL : RLHF__AGAIN_BEFORE,
                             RLHF__AGAIN_AFTER, err);
    rlhf__run_destroy(r);
    return st;
}

static rlhf_status with_plugins(const struct rlhf__again *a, struct rlhf__run_request *q,
                                struct rlhf__config *config, struct rlhf__error *err) {
    RLHF_TRY(load_config(a, config, err));
    q->config = config;
    RLHF_TRY(rlhf__plugins_create(a->env->dirs, &q->plugins, err));
    return rlhf__config_resolve(config, q->plugins, &q->algo, &q->rewards, &q->judge, err);
}

rlhf_status rlhf__again_phase(const struct rlhf__again *a, int64_t phase,
                              struct rlhf__recorded *rows, const struct rlhf__folder *out,
                              struct rlhf__again_told *told, struct rlhf__error *err) {
    struct rlhf__config config = {0};
    struct rlhf__run_dir dir;
    struct rlhf__run_request q = {.env = a->env,
                                  .dir = &dir,
                                  .resume = phase > 1 ? a->run : NULL,
                                  .allow_changed_plugins = a->changed_plugins,
                                  .allow_changed_inputs = a->changed_inputs,
                                  .recorded = rows};
    *told = (struct rlhf__again_told){.reads_start = phase > 1};
    rlhf__run_dir_begin(&dir, a->run);
    snprintf(dir.checkpoint, sizeof dir.checkpoint, "%.4000s/checkpoints/%06lld", dir.path,
             (long long)(phase - 1));
    rlhf_status st = with_plugins(a, &q, &config, err);
    if (st == RLHF_OK)
        st = run_phase(&q, out, json_array_size(rlhf__recorded_rows(rows)) > 0, told, err);
    free(q.rewards);
    rlhf__plugins_destroy(q.plugins);
    rlhf__config_finish(&config);
    rlhf__run_dir_finish(&dir);
    return st;
}
