// apart.c: see apart.h.
#include "config/apart.h"

#include "plugin/search.h"
#include "worker/stand_in.h"
#include "worker/walled.h"

#include <rlhf/draft/program.h>

#include <stdlib.h>

static rlhf_status is_shipped(const struct rlhf__plugins *plugins, const struct rlhf__apart *q,
                              int *out, struct rlhf__error *err) {
    char *path, *id;
    RLHF_TRY(
        rlhf__plugins_find(plugins, q->p->plugin, q->kind, q->p->from, q->flag, &path, &id, err));
    *out = rlhf__plugins_shipped(plugins, path);
    free(path);
    free(id);
    return RLHF_OK;
}

// Set *out to 1 if the plugin runs in a worker. `isolate` of its config entry decides; if that is
// 0, the setting rewards.isolate decides. The value `third_party` of this setting isolates only
// plugins whose file did not come with the program.
static rlhf_status isolates(const struct rlhf__plugins *plugins, const struct rlhf__apart *q,
                            int *out, struct rlhf__error *err) {
    const int32_t isolate = q->c->mixing.isolate;
    int shipped;
    *out = q->p->isolate ? q->p->isolate > 0 : isolate == RLHF__ISOLATE_ALWAYS;
    if (q->p->isolate || isolate != RLHF__ISOLATE_THIRD_PARTY) return RLHF_OK;
    RLHF_TRY(is_shipped(plugins, q, &shipped, err));
    *out = !shipped;
    return RLHF_OK;
}

// Reject a run's config.json that weakens a worker's confinement, because another person may have
// written the file. The user must repeat the setting, or give --trust-run.
static rlhf_status check_walls(const struct rlhf__plugins *plugins, const struct rlhf__apart *q,
                               int apart, struct rlhf__error *err) {
    const json_t *given = json_object_get(q->c->given, "rewards.isolate");
    const struct rlhf__plugin_config *p = q->p;
    int shipped;
    if (!p->stored) return RLHF_OK;
    if (p->network && !p->network_typed)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--resume: the run's config.json gives %s the network: %s.network is "
                          "true; give it again (--set %s.network=true) or give --trust-run",
                          p->plugin, q->section, q->section);
    if (apart || p->isolate_typed || (!p->isolate && json_is_true(json_object_get(given, "typed"))))
        return RLHF_OK;
    RLHF_TRY(is_shipped(plugins, q, &shipped, err));
    if (shipped) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "--resume: the run's config.json runs %s without a worker's walls: %s is "
                      "%s; give it again (--set %s%s) or give --trust-run",
                      p->plugin, p->isolate ? q->section : "rewards.isolate",
                      p->isolate ? "isolate=false" : "never", p->isolate ? q->section : "rewards",
                      p->isolate ? ".isolate=false" : ".isolate=never");
}

// Open a plugin in a worker process. A shipped plugin that only starts programs is an exception: it
// is opened in this process, and the programs that it starts are confined.
static rlhf_status open_apart(struct rlhf__plugins *plugins, const struct rlhf__apart *q,
                              const struct rlhf__plugin **out, struct rlhf__error *err) {
    const struct rlhf__mixing_config *m = &q->c->mixing;
    const struct rlhf__plugin_config *p = q->p;
    // An environment gets a single worker, because the states of its episodes are in the worker,
    // and a sink, because it sees all phases.
    const uint32_t workers = q->kind == RLHF_KIND_REWARD ? (uint32_t)m->workers : 1;
    const struct rlhf__worker_rules rules = {.timeout_s = m->timeout_s,
                                             .memory_mib = (uint64_t)m->memory_mib,
                                             .workers = workers,
                                             .network = p->network};
    const struct rlhf__plugin *open = NULL;
    int shipped;
    RLHF_TRY(is_shipped(plugins, q, &shipped, err));
    if (shipped)
        RLHF_TRY(rlhf__plugin_open(plugins, p->plugin, q->kind, p->from, q->flag, &open, err));
    if (open && rlhf__plugin_extension(open, NULL, RLHF_EXT_PROGRAM))
        return rlhf__walled_plugin(plugins, open, p->network, out, err);
    return rlhf__worker_plugin(plugins, &rules, p->plugin, q->kind, p->from, q->flag, out, err);
}

rlhf_status rlhf__apart_open(struct rlhf__plugins *plugins, const struct rlhf__apart *q,
                             const struct rlhf__plugin **out, struct rlhf__error *err) {
    const struct rlhf__plugin_config *p = q->p;
    int apart;
    RLHF_TRY(isolates(plugins, q, &apart, err));
    RLHF_TRY(check_walls(plugins, q, apart, err));
    if (apart) return open_apart(plugins, q, out, err);
    RLHF_TRY(rlhf__plugin_open(plugins, p->plugin, q->kind, p->from, q->flag, out, err));
    if (!p->network) return RLHF_OK;
    const int program = rlhf__plugin_extension(*out, NULL, RLHF_EXT_PROGRAM) != NULL;
    return rlhf__fail(
        err, RLHF_E_INVALID, "%s.network has no effect here: %s %s has the network anyway%s",
        q->section, program ? "the program of" : p->plugin,
        program ? p->plugin : "runs in this process, which",
        program ? "; isolate=true takes it away" : " (isolate=true runs it in a worker)");
}
