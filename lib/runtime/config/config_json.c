// config_json.c: see config_json.h.
#include "config/config_json.h"

#include "base/json.h"
#include "config/named.h"

#include <stdio.h>
#include <stdlib.h>

// `pays` is 1 for a reward or an environment, because these have a weight.
static json_t *plugin_json(const struct rlhf__plugin_config *p, int pays) {
    json_t *o = json_object();
    if (p->plugin) json_object_set_new(o, "plugin", json_string(p->plugin));
    if (pays && p->name) json_object_set_new(o, "name", json_string(p->name));
    if (pays) json_object_set_new(o, "weight", json_real(p->weight));
    if (p->isolate) json_object_set_new(o, "isolate", json_boolean(p->isolate > 0));
    if (p->network) json_object_set_new(o, "network", json_true());
    if (p->options) json_object_update(o, p->options);
    return o;
}

rlhf_status rlhf__config_to_json(const struct rlhf__config *c, json_t **out,
                                 struct rlhf__error *err) {
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    json_t *all = json_object(), *rewards = json_array(), *sinks = json_array();
    json_t *named = rlhf__named_json(c);
    rlhf_status st = RLHF_OK;
    const size_t more = (size_t)(c->judge.plugin != NULL) + (size_t)(c->n_sink > 0) +
                        (named != NULL) + (c->environment.plugin != NULL);
    for (size_t i = 0; i < c->n_reward; i++)
        json_array_append_new(rewards, plugin_json(&c->reward[i], 1));
    for (size_t i = 0; i < c->n_sink; i++)
        json_array_append_new(sinks, plugin_json(&c->sink[i], 0));
    for (size_t i = 0; i < n && st == RLHF_OK; i++) {
        json_t *section = json_object();
        st = rlhf__opts_to_json(&s[i].table, (const char *)c + s[i].offset, section, err);
        json_object_set_new(all, s[i].name, section);
        if (i > 0) continue; // the plugins come right after "run"
        json_object_set_new(all, "algo", plugin_json(&c->algo, 0));
        json_object_set(all, "reward", rewards);
        if (c->judge.plugin) json_object_set_new(all, "judge", plugin_json(&c->judge, 0));
        if (c->environment.plugin)
            json_object_set_new(all, "environment", plugin_json(&c->environment, 1));
        if (c->n_sink) json_object_set(all, "sink", sinks);
        if (named) json_object_set_new(all, RLHF__NAMED_SECTION, named);
    }
    json_decref(rewards);
    json_decref(sinks);
    if (st == RLHF_OK && json_object_size(all) != n + 2 + more)
        st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    if (st < 0) {
        json_decref(all);
        all = NULL;
    }
    *out = all;
    return st;
}

rlhf_status rlhf__config_leaves(const char *path, json_t *was, json_t *is,
                                rlhf_status (*visit)(void *arg, const char *path, const json_t *was,
                                                     const json_t *is, struct rlhf__error *err),
                                void *arg, struct rlhf__error *err) {
    const char *dot = *path ? "." : "", *key;
    char full[512];
    json_t *v;
    if (json_is_object(was) && json_is_object(is)) {
        json_object_foreach(is, key, v) {
            snprintf(full, sizeof full, "%s%s%s", path, dot, key);
            RLHF_TRY(rlhf__config_leaves(full, json_object_get(was, key), v, visit, arg, err));
        }
        json_object_foreach(was, key, v) {
            snprintf(full, sizeof full, "%s%s%s", path, dot, key);
            if (!json_object_get(is, key)) RLHF_TRY(visit(arg, full, v, NULL, err));
        }
        return RLHF_OK;
    }
    const size_t n = json_array_size(is);
    if (!json_is_array(was) || !json_is_array(is) || json_array_size(was) != n)
        return visit(arg, path, was, is, err);
    for (size_t i = 0; i < n; i++) {
        snprintf(full, sizeof full, "%s%s%zu", path, dot, i);
        RLHF_TRY(rlhf__config_leaves(full, json_array_get(was, i), json_array_get(is, i), visit,
                                     arg, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__config_print(const struct rlhf__config *c, struct rlhf__buf *out,
                               struct rlhf__error *err) {
    json_t *all;
    RLHF_TRY(rlhf__config_to_json(c, &all, err));
    rlhf__json_write(out, all, 2);
    rlhf__buf_putc(out, '\n');
    json_decref(all);
    return rlhf__buf_ok(out, err);
}
