// run_models.c: see run_models.h.
#include "run/run_models.h"

#include "base/file.h"
#include "weights/run_checkpoint.h"

#include <string.h>

rlhf_status rlhf__run_models_settings(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__config *c = r->req->config;
    const struct {
        const char *name;
        const char **path;
    } settings[] = {{"policy.path", &c->policy.path},
                    {"policy.adapter.path", &c->policy.adapter_path},
                    {"reference.path", &c->reference.path},
                    {"value.path", &c->value.path}};
    char room[RLHF__PATH_CAP];
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const char *path = *settings[i].path;
        if (!path || !*path) continue;
        RLHF_TRY(rlhf__run_model(settings[i].name, &path, room, r->report.log, err));
        if (path != room) continue;
        *settings[i].path = rlhf__strings_add(&c->strings, room);
        if (!*settings[i].path) return RLHF__NOMEM(err, "out of memory for settings");
    }
    return RLHF_OK;
}

static int is_of(const struct rlhf__model *m, const char *dir) {
    return strcmp(m->dir, dir) == 0 || (m->peft.dir && strcmp(m->peft.dir, dir) == 0);
}

// Whether a plugin has the model of this directory open.
static int is_open(const struct rlhf__run *r, const char *dir) {
    const struct rlhf__text_services *text = r->session.text;
    const struct rlhf__reward_model *reward;
    const struct rlhf__model *m;
    for (size_t i = 0; (m = rlhf__text_services_classifier(text, i)); i++)
        if (is_of(m, dir)) return 1;
    for (size_t i = 0;
         (reward = rlhf__reward_service_at(rlhf__text_services_reward(text), i, NULL)); i++)
        if (is_of(reward->model, dir)) return 1;
    return 0;
}

static rlhf_status take_options(const struct rlhf__run *r, const struct rlhf__plugin *plugin,
                                json_t *options, struct rlhf__error *err) {
    char room[RLHF__PATH_CAP];
    for (uint32_t i = 0; i < plugin->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&plugin->table, i, &o);
        const char *path = json_string_value(json_object_get(options, o.key));
        if (o.type != RLHF_T_PATH || !path) continue;
        if (rlhf__run_model(o.key, &path, room, NULL, err) != RLHF_OK || path != room ||
            !is_open(r, room))
            continue; // the plugin uses the directory for something else
        if (json_object_set_new(options, o.key, json_string(room)) != 0)
            return RLHF__NOMEM(err, "out of memory for settings");
    }
    return RLHF_OK;
}

rlhf_status rlhf__run_models_rewards(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__config *c = r->req->config;
    for (size_t i = 0; i < r->cast.n_rewards; i++)
        RLHF_TRY(take_options(r, r->req->rewards[i], c->reward[i].options, err));
    return r->cast.judge ? take_options(r, r->req->judge, c->judge.options, err) : RLHF_OK;
}
