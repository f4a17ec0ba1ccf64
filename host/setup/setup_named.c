// setup_named.c: the frozen models that a plan names, besides the reference; see setup.h.
#include "setup/setup.h"

#include "base/file.h"
#include "config/named.h"

#include <stdio.h>
#include <string.h>

// Report that the model `name` is missing. If the settings specify a model OTHER (models.OTHER)
// that the plan does not use, mention OTHER, because it may be a misspelling of `name`.
static rlhf_status missing(const struct rlhf__run *r, const char *name, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    char other[2 * RLHF__NAME_MAX + 80] = "";
    for (uint32_t i = 0; i < c->models.n && !*other; i++)
        if (c->models.of[i].path[0] && rlhf__plan_named(&r->cast.plan, c->models.of[i].name) < 0)
            snprintf(other, sizeof other, "; it asks for none named %s (models.%s)",
                     c->models.of[i].name, c->models.of[i].name);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s needs a model named %s: give its directory (--set models.%s=DIR)%s",
                      r->req->algo->file, name, name, other);
}

rlhf_status rlhf__setup_names(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const rlhf_plan *p = &r->cast.plan;
    struct rlhf__buf names = RLHF__BUF_INIT;
    for (uint32_t i = 0; i < p->n_named; i++)
        if (!rlhf__named_path(c, p->named[i])) return missing(r, p->named[i], err);
    for (uint32_t i = 0; i < p->n_named; i++)
        rlhf__buf_printf(&names, "%smodels.%s", i ? ", " : "", p->named[i]);
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && i < c->models.n; i++) {
        const struct rlhf__named_model *m = &c->models.of[i];
        if (m->path[0] && rlhf__plan_named(p, m->name) < 0)
            st = rlhf__fail(err, RLHF_E_INVALID, "models.%s: %s asks for no model of that name%s%s",
                            m->name, r->req->algo->file, names.len ? "; it has " : "",
                            rlhf__buf_text(&names));
    }
    rlhf__buf_finish(&names);
    return st;
}

// Returns an open frozen model with the weights in this directory, or NULL.
static struct rlhf__model *same_weights(const struct rlhf__cast *c, uint32_t n, const char *dir) {
    char real[RLHF__PATH_CAP];
    if (!rlhf__path_real(dir, real)) return NULL;
    for (uint32_t i = 0; i <= n; i++) {
        struct rlhf__model *m = i < n ? c->named[i] : c->reference;
        if (!m || !m->frozen || m->spec.start == RLHF__START_RANDOM) continue;
        if (strcmp(m->peft.dir ? m->peft.dir : m->dir, real) == 0) return m;
    }
    return NULL;
}

static rlhf_status open_named(struct rlhf__run *r, uint32_t i, struct rlhf__error *err) {
    struct rlhf__cast *cast = &r->cast;
    const char *name = cast->plan.named[i];
    char room[RLHF__PATH_CAP], doing[64];
    const struct rlhf__model_spec spec = {
        .role = name,
        .dir = rlhf__dirs_shared(r->req->env->dirs, rlhf__named_path(r->config, name), room),
        .start = RLHF__START_WEIGHTS,
        .tokens_only = cast->policy->spec.tokens_only,
        .language = cast->policy->spec.language,
        .frozen = 1};
    cast->named[i] = same_weights(cast, i, spec.dir);
    if (cast->named[i]) {
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "the %s has the weights of the %s; no second copy "
                   "is held",
                   name, cast->named[i]->role);
        return rlhf__setup_check_frozen(cast, cast->named[i], name, err);
    }
    snprintf(doing, sizeof doing, "loading the %s", name);
    rlhf__progress_note(r->report.progress, doing);
    rlhf_status st = rlhf__model_open(&r->session.models, &spec, &cast->named[i], err);
    if (st != RLHF_OK)
        return rlhf__is_dir(spec.dir) ? st : rlhf__error_context(err, "models.%s", name);
    if (cast->named[i] && cast->named[i]->base)
        rlhf__logf(r->report.log, RLHF_LOG_INFO,
                   "the %s is the policy's base%s; no second copy is held", name,
                   cast->named[i]->peft.rank ? " with a separate adapter" : " without an adapter");
    return rlhf__setup_check_frozen(cast, cast->named[i], name, err);
}

rlhf_status rlhf__setup_named(struct rlhf__run *r, struct rlhf__error *err) {
    for (uint32_t i = 0; i < r->cast.plan.n_named; i++)
        RLHF_TRY(open_named(r, i, err));
    return RLHF_OK;
}
