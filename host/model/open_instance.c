// open_instance.c: the plugin of a model type, found by name, and its instance (open_inner.h).
#include "model/open_inner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A plugin of several model types says which, and its file need not be called as one of them.
static int is_type(struct rlhf__plugins *plugins, const char *stem) {
    const struct rlhf__plugin *p = NULL;
    struct rlhf__error unsaid = {0};
    char name[256];
    rlhf_opt o;
    snprintf(name, sizeof name, "%s.so", stem);
    if (rlhf__plugin_open(plugins, name, RLHF_KIND_MODEL, RLHF__NAME_LOOKED_UP, "config.json", &p,
                          &unsaid) != RLHF_OK)
        return 1;
    const int32_t at = rlhf__opt_find(&p->table, "model_type");
    if (at < 0) return 1;
    rlhf__opt_at(&p->table, (uint32_t)at, &o);
    for (const char *const *c = o.type == RLHF_T_ENUM ? o.choices : NULL; c && *c; c++)
        if (!strcmp(*c, stem)) return 1;
    return o.type != RLHF_T_ENUM;
}

// *out = the model types of all plugins, as "a, b"; *there = 1: model_type has one, which failed.
static rlhf_status list_types(struct rlhf__plugins *plugins, const char *model_type,
                              struct rlhf__buf *out, int *there) {
    struct rlhf__buf stems = RLHF__BUF_INIT;
    rlhf_status st = rlhf__plugin_stems(plugins, RLHF_KIND_MODEL, model_type, &stems, there);
    char *rest = NULL, *text = st == RLHF_OK ? strdup(rlhf__buf_text(&stems)) : NULL;
    if (st == RLHF_OK && !text) st = RLHF_E_NOMEM;
    for (char *s = text ? strtok_r(text, ", ", &rest) : NULL; s; s = strtok_r(NULL, ", ", &rest))
        if (is_type(plugins, s)) rlhf__buf_printf(out, "%s%s", out->len ? ", " : "", s);
    free(text);
    rlhf__buf_free(&stems);
    return st == RLHF_OK && out->bad ? RLHF_E_NOMEM : st;
}

// After a failure to open model_type's plugin: when there is none, that is the thing to say.
static rlhf_status explain_type(const struct rlhf__model *m, const char *model_type,
                                struct rlhf__error *err) {
    struct rlhf__buf known = RLHF__BUF_INIT;
    int there = 0;
    rlhf_status st = list_types(m->env->plugins, model_type, &known, &there);
    if (st == RLHF_OK && !there)
        rlhf__fail(
            err, RLHF_E_INVALID,
            "%s/config.json: model_type '%s' is not supported%s; supported: %s", m->dir, model_type,
            json_object_get(m->config, "auto_map") ? ", and code of its own (auto_map) is never run"
                                                   : "",
            rlhf__buf_text(&known));
    rlhf__buf_free(&known);
    return RLHF_E_INVALID;
}

rlhf_status rlhf__model_open_instance(struct rlhf__model *m, struct rlhf__error *err) {
    char name[256], where[4200];
    const char *model_type = NULL;
    RLHF_TRY(rlhf__hf_model_type(m->config, m->dir, &model_type, err));
    snprintf(name, sizeof name, "%s.so", model_type);
    snprintf(where, sizeof where, "%s/config.json", m->dir);
    const struct rlhf__plugin *plugin = NULL;
    rlhf_status st = rlhf__plugin_open(m->env->plugins, name, RLHF_KIND_MODEL, RLHF__NAME_LOOKED_UP,
                                       where, &plugin, err);
    if (st == RLHF_E_INVALID) st = explain_type(m, model_type, err);
    if (st != RLHF_OK) return st;
    struct rlhf__origin from = {where, "", NULL, 0, 1, 0};
    char owner[64];
    snprintf(owner, sizeof owner, "models/%s", m->role);
    st =
        rlhf__instance_create(plugin, m->env->services, owner, m->config, &from, &m->instance, err);
    // A plugin knows the fields, not where the file lies.
    if (st != RLHF_OK)
        return strstr(err->text, m->dir) ? st : rlhf__error_context(err, "%s", m->dir);
    m->ops = &plugin->ops.model;
    m->self = m->instance->self;
    return RLHF_OK;
}
