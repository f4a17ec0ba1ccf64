// session.c: see session.h.
#include "model/session.h"

#include "worker/walled.h"

#include <sched.h>
#include <string.h>

void rlhf__default_model(const struct rlhf__dirs *dirs, const char *name,
                         char out[RLHF__PATH_CAP]) {
    rlhf__path_put(out, "%s/models/%s", dirs->share, name);
}

static const char *dtype_name(int32_t choice) {
    return choice == RLHF__DTYPE_F32 ? "f32" : choice == RLHF__DTYPE_BF16 ? "bf16" : "auto";
}

rlhf_status rlhf__dtype_choice(const char *text, const char *flag, int32_t *out,
                               struct rlhf__error *err) {
    for (int32_t i = RLHF__DTYPE_AUTO; i <= RLHF__DTYPE_BF16; i++) {
        *out = i;
        if (strcmp(text, dtype_name(i)) == 0) return RLHF_OK;
    }
    return rlhf__fail(err, RLHF_E_INVALID, "%s is \"%s\"; auto, f32 and bf16 are allowed", flag,
                      text);
}

// Warn if there are more threads than processors, because the threads would wait for each other.
static void say_threads(int64_t threads, struct rlhf__log *log) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    if (threads > CPU_COUNT(&allowed))
        rlhf__logf(log, RLHF_LOG_WARN,
                   "run.threads is %lld, but this process may use only %d processor%s; more "
                   "threads than that make it slower",
                   (long long)threads, CPU_COUNT(&allowed), CPU_COUNT(&allowed) == 1 ? "" : "s");
}

struct rlhf__compute_spec rlhf__session_compute(const struct rlhf__dirs *dirs,
                                                const struct rlhf__compute_config *compute,
                                                int64_t threads, struct rlhf__log *log) {
    // If a card is set but not used, nothing is reported here, because the caller warns about it
    // (setup/effect_rules.c).
    const int host =
        strcmp(compute->backend, "cpu") == 0 || strcmp(compute->backend, "reference") == 0;
    return (struct rlhf__compute_spec){.dirs = dirs,
                                       .backend = compute->backend,
                                       .threads = (uint32_t)threads,
                                       .guard = (uint32_t)compute->guard,
                                       .gpu = host ? 0 : (uint32_t)compute->gpu,
                                       .workspace_bytes = (uint64_t)compute->workspace_mib << 20,
                                       .arithmetic = compute->arithmetic ? "v1" : NULL,
                                       .log = log};
}

rlhf_status rlhf__session_init(struct rlhf__session *s, const struct rlhf__dirs *dirs,
                               struct rlhf__log *log, const volatile sig_atomic_t *cancelled,
                               struct rlhf__plugins *plugins,
                               const struct rlhf__compute_config *compute,
                               const struct rlhf__run_config *run, struct rlhf__error *err) {
    memset(s, 0, sizeof *s);
    say_threads(run->threads, log);
    s->plugins = plugins;
    const struct rlhf__compute_spec spec = rlhf__session_compute(dirs, compute, run->threads, log);
    RLHF_TRY(rlhf__compute_open(&spec, &s->compute, err));
    const rlhf_compute *table = s->compute->table;
    int32_t dtype = rlhf__compute_dtype(table, dtype_name(compute->dtype));
    s->services = (struct rlhf__services){.log = log,
                                          .cancelled = cancelled,
                                          .seed = (uint64_t)run->seed,
                                          .phase = -1,
                                          .kernels = s->compute->kernels.instance};
    s->models = (struct rlhf__model_env){.compute = table,
                                         .plugins = plugins,
                                         .services = &s->services,
                                         .dtype = dtype,
                                         .recompute = compute->recompute,
                                         .seed = (uint64_t)run->seed,
                                         .device_memory = s->compute->device_memory,
                                         .unchecked = !compute->memory_check,
                                         .threads = (int32_t)run->threads};
    RLHF_TRY(rlhf__services_offer(&s->services, RLHF_SVC_ROW, RLHF__STRUCT_rlhf_row_service,
                                  rlhf__row_service(), err));
    rlhf__programs_init(&s->programs, dirs->program, rlhf__walls_of);
    return rlhf__services_offer(&s->services, RLHF_SVC_PROGRAM, RLHF__STRUCT_rlhf_program_service,
                                &s->programs.table, err);
}

void rlhf__session_finish(struct rlhf__session *s) {
    rlhf__compute_close(s->compute);
    memset(s, 0, sizeof *s);
}
