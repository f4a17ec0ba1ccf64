// recompute_again.c: see recompute_again.h.
#include "verify/recompute_again.h"

#include "config/config.h"
#include "config/layer.h"
#include "keep/run_dir.h"
#include "setup/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the settings ----

enum { MOST_SET = 64 };

static rlhf_status load_config(const struct rlhf__again *a, struct rlhf__config *out,
                               struct rlhf__error *err) {
    char backend[4200], threads[64], dtype[64];
    const char *set[MOST_SET + 3] = {backend, threads};
    const char *flag[MOST_SET + 3] = {"--backend", "--threads"};
    size_t n = 2;
    snprintf(backend, sizeof backend, "compute.backend=%.4100s", a->backend);
    snprintf(threads, sizeof threads, "run.threads=%lld", (long long)a->threads);
    snprintf(dtype, sizeof dtype, "compute.dtype=%.30s", a->dtype ? a->dtype : "");
    for (size_t i = 0; i < a->n_set && i < MOST_SET; i++) {
        set[n] = a->set[i];
        flag[n++] = "--set";
    }
    const struct rlhf__config_request q = {.dirs = a->env->dirs,
                                           .algo = a->algo,
                                           .set = set,
                                           .set_flag = flag,
                                           .n_set = n,
                                           .resume = a->run,
                                           .trust_run = a->trust_run,
                                           .algo_alone = !a->rewards,
                                           .recompute = 1};
    RLHF_TRY(rlhf__config_load(&q, out, err));
    // Turn off settings that do not affect the numbers of a phase.
    out->early_stop.kl = out->early_stop.reward = 0;
    out->parallel.actors = 0;
    out->checkpoint.best = "";
    out->checkpoint.undo_mib = 0;
    out->log.progress = RLHF__PROGRESS_OFF;
    out->log.tensorboard = out->log.csv = 0;
    out->log.samples = 0;
    if (!a->environment) out->environment.stored = 0; // none of its code is run
    if (a->dtype)
        out->compute.dtype = strcmp(a->dtype, "bf16") == 0 ? RLHF__DTYPE_BF16 : RLHF__DTYPE_F32;
    const int keeps = strcmp(a->backend, "cpu") == 0 && a->arithmetic;
    out->compute.arithmetic =
        keeps && strcmp(a->arithmetic, "v1") == 0 ? RLHF__ARITHMETIC_V1 : RLHF__ARITHMETIC_AUTO;
    rlhf__sinks_clear(out);
    return RLHF_OK;
}

// ---- the phases ----

static int lacks_rows(const struct rlhf__again_part *p, const struct rlhf__again_told *told) {
    if (!told->samples || !p->rows || p->samples) return 0;
    return json_array_size(rlhf__recorded_rows(p->rows)) == 0;
}

static rlhf_status run_part(const struct rlhf__run_request *q, const struct rlhf__folder *out,
                            const struct rlhf__again_part *part, struct rlhf__again_told *told,
                            struct rlhf__error *err) {
    struct rlhf__run *r = NULL;
    const struct rlhf__again_wish wish = {
        .phases = part->phases, .start = part->from == 0, .keep = part->keep, .arg = part->arg};
    RLHF_TRY(rlhf__run_open(q, &r, err));
    told->samples = rlhf__cast_samples(&r->cast);
    told->lacks_rows = lacks_rows(part, told);
    if (part->own_logp && told->samples) r->cast.plan.flags |= RLHF_PLAN_RECOMPUTE_LOGP;
    const rlhf_status st = told->lacks_rows ? RLHF_OK : rlhf__run_again(r, out, &wish, err);
    rlhf__run_close(r);
    return st;
}

static rlhf_status with_plugins(const struct rlhf__again *a, struct rlhf__run_request *q,
                                struct rlhf__config *config, struct rlhf__error *err) {
    RLHF_TRY(load_config(a, config, err));
    q->config = config;
    RLHF_TRY(rlhf__plugins_open(a->env->dirs, &q->plugins, err));
    RLHF_TRY(rlhf__config_resolve(config, q->plugins, &q->algo, &q->rewards, &q->judge, err));
    return rlhf__config_resolve_environment(config, q->plugins, &q->environment, err);
}

// Replace "--resume: ", with which messages about a resumed run begin, by "verify: ".
static void name_command(struct rlhf__error *err) {
    static const char flag[] = "--resume: ";
    const size_t n = sizeof flag - 1;
    if (strncmp(err->text, flag, n) != 0) return;
    memmove(err->text, err->text + n, strlen(err->text + n) + 1);
    rlhf__error_context(err, "verify");
}

// Returns what comes from the record if responses are sampled again.
static int32_t trusts(const struct rlhf__again *a, const struct rlhf__again_part *part) {
    if (!part->rows || !part->samples) return 0;
    return (a->rewards ? 0 : RLHF__TRUST_SCORES) | (a->environment ? 0 : RLHF__TRUST_ANSWERS);
}

rlhf_status rlhf__again(const struct rlhf__again *a, const struct rlhf__again_part *part,
                        const struct rlhf__folder *out, struct rlhf__again_told *told,
                        struct rlhf__error *err) {
    struct rlhf__config config = {0};
    struct rlhf__run_dir dir;
    struct rlhf__run_request q = {.env = a->env,
                                  .dir = &dir,
                                  .resume = part->from > 0 ? a->run : NULL,
                                  .allow_changed_plugins = 1,
                                  .allow_changed_inputs = 1,
                                  .recorded = part->rows,
                                  .trusts = trusts(a, part)};
    *told = (struct rlhf__again_told){.reads_start = part->from > 0};
    rlhf__run_dir_begin(&dir, a->run);
    snprintf(dir.checkpoint, sizeof dir.checkpoint, "%.4000s/checkpoints/%06lld", dir.path,
             (long long)part->from);
    rlhf_status st = with_plugins(a, &q, &config, err);
    if (st == RLHF_OK) st = run_part(&q, out, part, told, err);
    free(q.rewards);
    rlhf__plugins_close(q.plugins);
    rlhf__config_finish(&config);
    rlhf__run_dir_finish(&dir);
    if (st != RLHF_OK) name_command(err);
    return st;
}
