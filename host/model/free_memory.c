// free_memory.c: see free_memory.h.
#include "model/free_memory.h"

#include "base/host_memory.h"
#include "base/size_text.h"

#include <stdio.h>

static double mib(uint64_t bytes) { return (double)bytes / (1 << 20); }

void rlhf__free_memory_get(const struct rlhf__model_env *env, struct rlhf__memory_need *need) {
    need->own_memory = env->device_memory.total > 0;
    need->known = 1;
    need->there = env->compute->bytes_in_use(env->compute->ctx);
    if (need->own_memory) {
        need->memory = env->device_memory;
        need->memory.left =
            env->device_memory.left > need->there ? env->device_memory.left - need->there : 0;
        return;
    }
    const struct rlhf__host_memory m = rlhf__host_memory("");
    need->memory = (struct rlhf__free_memory){m.left, m.total};
}

// Returns 1 if memory for this use is host memory on every device.
static int is_hosts(int32_t use) {
    return use == RLHF__USE_ROWS || use == RLHF__USE_ROLLBACK || use == RLHF__USE_PROGRAM;
}

// Returns how many bytes of the checked memory a role needs. If `role` equals the number of roles,
// returns the bytes that all roles need.
static uint64_t wanted_by(const struct rlhf__memory_need *need, uint32_t role) {
    const struct rlhf__uses *u = &need->uses;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < u->n; i++)
        for (int32_t k = 0; k < RLHF__USE_PROGRAM && (i == role || role == u->n); k++)
            if (!need->own_memory || !is_hosts(k)) sum += u->bytes[i][k];
    return sum;
}

uint64_t rlhf__memory_needed(const struct rlhf__memory_need *need) {
    const uint64_t all = wanted_by(need, need->uses.n);
    return all > need->there ? all - need->there : 0;
}

// Append "policy 1.20 GiB (weights 470.1 MiB, moments 940.2 MiB), reference 470.1 MiB (...)".
static void put_roles(struct rlhf__buf *out, const struct rlhf__memory_need *need) {
    const struct rlhf__uses *u = &need->uses;
    const char *comma = "";
    for (uint32_t i = 0; i < u->n; i++) {
        if (!wanted_by(need, i)) continue;
        rlhf__buf_printf(out, "%s%s %s (", comma, u->name[i],
                         rlhf__size_text(wanted_by(need, i)).text);
        comma = "";
        for (int32_t k = 0; k < RLHF__USE_PROGRAM; k++) {
            if (!u->bytes[i][k] || (need->own_memory && is_hosts(k))) continue;
            rlhf__buf_printf(out, "%s%s %s", comma, rlhf__use_name(k),
                             rlhf__size_text(u->bytes[i][k]).text);
            comma = ", ";
        }
        rlhf__buf_puts(out, ")");
        comma = ", ";
    }
}

rlhf_status rlhf__free_memory_check(const struct rlhf__memory_need *need, struct rlhf__error *err) {
    const uint64_t wanted = rlhf__memory_needed(need);
    if (!need->memory.total || wanted <= need->memory.left) return RLHF_OK;
    struct rlhf__buf roles = RLHF__BUF_INIT;
    put_roles(&roles, need);
    rlhf__fail(err, RLHF_E_INVALID, "%s of memory are needed%s, %s of %s are free: %s; %s",
               rlhf__size_text(wanted).text, need->own_memory ? " on the GPU" : "",
               rlhf__size_text(need->memory.left).text, rlhf__size_text(need->memory.total).text,
               rlhf__buf_text(&roles), need->lower);
    rlhf__buf_finish(&roles);
    return RLHF_E_INVALID;
}

// ---- one model ----

rlhf_status rlhf__free_memory_check_model(const struct rlhf__model *m, struct rlhf__error *err) {
    struct rlhf__memory_need need = {.lower = "take a smaller model"};
    struct rlhf__error unread;
    if (m->env->unchecked) return RLHF_OK;
    if (rlhf__model_weigh(m, &need.uses, &unread) != RLHF_OK) return RLHF_OK;
    uint64_t *own = need.uses.bytes[rlhf__uses_owner(&need.uses, m->role)];
    own[RLHF__USE_MOMENTS] = own[RLHF__USE_GRADIENTS] * (uint64_t)m->spec.moments;
    rlhf__free_memory_get(m->env, &need);
    need.there = 0; // the model is not loaded yet: it needs this memory in addition
    if (need.own_memory)
        need.lower = "take a smaller model, another card (compute.gpu) or compute.backend=cpu";
    if (rlhf__free_memory_check(&need, err) == RLHF_OK) return RLHF_OK;
    return rlhf__error_context(err, "the %s '%s'", m->role, m->dir);
}

rlhf_status rlhf__free_memory_check_spec(const struct rlhf__model_env *env,
                                         const struct rlhf__model_spec *spec,
                                         struct rlhf__error *err) {
    struct rlhf__model_env planned = *env;
    struct rlhf__error unread;
    struct rlhf__model *m = NULL;
    if (!env->device_memory.total) return RLHF_OK;
    rlhf_status st = rlhf__memory_plan_open(env->compute, &planned.memory_plan, &unread);
    if (st == RLHF_OK) st = rlhf__model_open(&planned, spec, &m, &unread);
    if (m) m->env = env;
    st = m && st == RLHF_OK ? rlhf__free_memory_check_model(m, err) : RLHF_OK;
    rlhf__model_close(m);
    rlhf__memory_plan_close(planned.memory_plan);
    return st;
}

// ---- for the user ----

void rlhf__memory_need_table(const struct rlhf__memory_need *need, struct rlhf__buf *out) {
    const struct rlhf__uses *u = &need->uses;
    rlhf__buf_printf(out, "%-16s %-16s %12s\n", "memory of", "for", "MiB");
    for (uint32_t i = 0; i < u->n; i++)
        for (int32_t k = 0; k < RLHF__USES; k++)
            if (u->bytes[i][k])
                rlhf__buf_printf(out, "%-16s %-16s %12.1f\n", u->name[i], rlhf__use_name(k),
                                 mib(u->bytes[i][k]));
    if (need->uncounted)
        rlhf__buf_printf(out, "%-16s %-16s %12s\n", need->uncounted, "workspace", "unknown");
    rlhf__buf_printf(out, "%-16s %-16s %12.1f\n", "all", "", mib(rlhf__uses_total(u)));
    if (need->memory.total)
        rlhf__buf_printf(out, "%-16s %-16s %12.1f\n", need->own_memory ? "free on the GPU" : "free",
                         "", mib(need->memory.left));
}

json_t *rlhf__memory_need_json(const struct rlhf__memory_need *need) {
    const struct rlhf__uses *u = &need->uses;
    json_t *list = json_array();
    for (uint32_t i = 0; i < u->n; i++)
        for (int32_t k = 0; k < RLHF__USES; k++)
            if (u->bytes[i][k])
                json_array_append_new(list, json_pack("{ss ss sI}", "role", u->name[i], "use",
                                                      rlhf__use_name(k), "bytes",
                                                      (json_int_t)u->bytes[i][k]));
    return json_pack("{ss so ss* sI sI}", "event", "memory", "buffers", list, "uncounted",
                     need->uncounted, "total_bytes", (json_int_t)rlhf__uses_total(u), "free_bytes",
                     (json_int_t)need->memory.left);
}
