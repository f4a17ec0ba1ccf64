// setup_inputs.c: the files and models that settings name; see setup.h.
#include "setup/setup.h"

#include "base/file.h"
#include "chat/chat.h"
#include "config/named.h"
#include "keep/inputs.h"
#include "keep/run_dir.h"
#include "model/reward_model.h"
#include "weights/run_checkpoint.h"

#include <stdio.h>
#include <string.h>

// ---- files that a resumed run reads again ----

rlhf_status rlhf__setup_row_inputs(const struct rlhf__run *r, json_t *list,
                                   struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const int prompts = r->cast.plan.source == RLHF_SOURCE_ROLLOUT;
    const struct {
        const char *setting, *path;
        int read;
    } files[] = {
        {"data.path", c->data.path, !prompts},
        {"data.eval_path", c->data.eval_path, 1},
        {"prompts.path", c->prompts.path, prompts},
        {"prompts.template", c->prompts.template, rlhf__chat_is_file(c->prompts.template)}};
    char room[RLHF__PATH_CAP];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i].read && files[i].path[0])
            RLHF_TRY(rlhf__inputs_add_file(
                list, files[i].setting, rlhf__dirs_shared(r->req->env->dirs, files[i].path, room),
                err));
    return RLHF_OK;
}

// List the adapter, in addition to its base, which may be in the same directory.
static rlhf_status add_adapter(const struct rlhf__run *r, const char *setting,
                               const struct rlhf__model *m, struct rlhf__error *err) {
    if (!m->peft.dir) return RLHF_OK;
    return rlhf__inputs_add_model(r->inputs, setting, m->peft.dir, 1, err);
}

// List the reference. A reference that was updated is not listed, because the checkpoint contains
// it.
static rlhf_status add_reference(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    char moved[4400];
    if (!r->cast.reference) return RLHF_OK;
    if (r->req->resume && rlhf__is_file(rlhf__path_in(moved, sizeof moved, r->req->dir->checkpoint,
                                                      "state/reference.safetensors")))
        return RLHF_OK;
    int own = c->reference.path[0] != '\0', drawn = c->policy.init == RLHF__INIT_RANDOM && !own;
    const struct rlhf__model *ref = r->cast.reference;
    RLHF_TRY(rlhf__inputs_add_model(
        r->inputs, own ? "reference.path" : "policy.path (the reference)", ref->dir, !drawn, err));
    return add_adapter(r, "the reference's adapter", ref, err);
}

static rlhf_status add_named(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__cast *c = &r->cast;
    for (uint32_t i = 0; i < c->plan.n_named; i++) {
        char setting[64], adapter[64];
        snprintf(setting, sizeof setting, RLHF__NAMED_SECTION ".%s", c->plan.named[i]);
        snprintf(adapter, sizeof adapter, "the adapter of " RLHF__NAMED_SECTION ".%s",
                 c->plan.named[i]);
        RLHF_TRY(rlhf__inputs_add_model(r->inputs, setting, c->named[i]->dir, 1, err));
        RLHF_TRY(add_adapter(r, adapter, c->named[i], err));
    }
    return RLHF_OK;
}

static rlhf_status add_opened(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__served *o;
    for (size_t i = 0; (o = rlhf__text_services_at(r->served, i)); i++) {
        char what[64];
        if (o->model->trainable) continue;
        snprintf(what, sizeof what, "a reward's %s", o->list->kind->name);
        RLHF_TRY(rlhf__inputs_add_model(r->inputs, what, o->model->dir, 1, err));
        RLHF_TRY(add_adapter(r, "a reward's adapter", o->model, err));
    }
    return RLHF_OK;
}

// List the files that a plugin's options name. `section` is for example "reward.0", "judge" or
// "environment".
static rlhf_status add_options(const struct rlhf__run *r, const struct rlhf__plugin *plugin,
                               const json_t *options, const char *section,
                               struct rlhf__error *err) {
    for (uint32_t i = 0; i < plugin->table.n; i++) {
        rlhf_opt o;
        char setting[300];
        rlhf__opt_at(&plugin->table, i, &o);
        const char *path = json_string_value(json_object_get(options, o.key));
        if (o.type != RLHF_T_PATH || !path || !rlhf__is_file(path)) continue;
        snprintf(setting, sizeof setting, "%s.%s", section, o.key);
        RLHF_TRY(rlhf__inputs_add_file(r->inputs, setting, path, err));
    }
    return RLHF_OK;
}

static rlhf_status add_files(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    for (size_t i = 0; i < r->cast.n_rewards; i++) {
        char section[32];
        snprintf(section, sizeof section, "reward.%zu", i);
        RLHF_TRY(add_options(r, r->req->rewards[i], c->reward[i].options, section, err));
    }
    if (r->cast.judge) RLHF_TRY(add_options(r, r->req->judge, c->judge.options, "judge", err));
    if (!r->cast.environment) return RLHF_OK;
    return add_options(r, r->req->environment, c->environment.options, "environment", err);
}

static int is_input(const struct rlhf__run *r, const char *path) {
    size_t i;
    json_t *e;
    json_array_foreach(r->inputs, i, e) {
        const char *setting = json_string_value(json_object_get(e, "setting"));
        if (setting && strncmp(setting, path, strlen(path)) == 0) return 1;
    }
    return 0;
}

// Check those options of a plugin that the user changed on resume. Only an option that names a file
// may change, because the content of the file is compared.
static rlhf_status check_option(const struct rlhf__run *r, const struct rlhf__plugin_config *p,
                                const char *section, struct rlhf__error *err) {
    const char *key;
    json_t *from;
    json_object_foreach(p->origin, key, from) {
        char path[300];
        snprintf(path, sizeof path, "%s.%s", section, key);
        if (json_is_true(json_object_get(from, "moved")) && !is_input(r, path))
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "--resume: %s cannot be another file in a run that goes on: only a file of "
                "an option that names one may lie elsewhere, and is compared",
                path);
    }
    return RLHF_OK;
}

// Check that the resumed run reads every file whose path the user changed. r->inputs lists only
// files that the run reads, each with a checksum that is compared. The base of an adapter need not
// be listed, because the checkpoint holds the base's checksum.
static rlhf_status check_moved(const struct rlhf__run *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const char *path;
    json_t *from;
    json_object_foreach(c->given, path, from) {
        const int base = strcmp(path, "policy.path") == 0 && r->cast.policy->peft.rank > 0;
        if (!json_is_true(json_object_get(from, "moved")) || base || is_input(r, path)) continue;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--resume: another %s has no effect: a resumed run does not read it",
                          path);
    }
    for (size_t i = 0; i < c->n_reward; i++) {
        char section[32];
        snprintf(section, sizeof section, "reward.%zu", i);
        RLHF_TRY(check_option(r, &c->reward[i], section, err));
    }
    RLHF_TRY(check_option(r, &c->environment, "environment", err));
    return check_option(r, &c->judge, "judge", err);
}

rlhf_status rlhf__setup_inputs(struct rlhf__run *r, struct rlhf__error *err) {
    r->inputs = json_array();
    if (!r->inputs) return RLHF__NOMEM(err, "out of memory for the list of inputs");
    RLHF_TRY(rlhf__setup_row_inputs(r, r->inputs, err));
    if (rlhf__run_acts(r)) return RLHF_OK;
    RLHF_TRY(add_reference(r, err));
    RLHF_TRY(add_named(r, err));
    RLHF_TRY(add_opened(r, err));
    RLHF_TRY(add_files(r, err));
    return check_moved(r, err);
}

// ---- run directories in place of models ----

static rlhf_status take_checkpoint(const struct rlhf__run *r, const char *setting,
                                   const char **path, struct rlhf__error *err) {
    const char *found = *path;
    char room[RLHF__PATH_CAP];
    if (!found || !*found) return RLHF_OK;
    RLHF_TRY(rlhf__run_model(setting, &found, room, r->report.log, err));
    if (found != room) return RLHF_OK;
    *path = rlhf__strings_add(&r->req->config->strings, room);
    return *path ? RLHF_OK : RLHF__NOMEM(err, "out of memory for settings");
}

rlhf_status rlhf__setup_checkpoints(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__config *c = r->req->config;
    const struct {
        const char *name;
        const char **path;
    } settings[] = {{"policy.path", &c->policy.path},
                    {"policy.adapter.path", &c->policy.adapter_path},
                    {"reference.path", &c->reference.path},
                    {"value.path", &c->value.path}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        RLHF_TRY(take_checkpoint(r, settings[i].name, settings[i].path, err));
    for (uint32_t i = 0; i < c->models.n; i++) {
        char setting[64];
        snprintf(setting, sizeof setting, RLHF__NAMED_SECTION ".%s", c->models.of[i].name);
        RLHF_TRY(take_checkpoint(r, setting, &c->models.of[i].path, err));
    }
    return RLHF_OK;
}

static int is_of(const struct rlhf__model *m, const char *dir) {
    return strcmp(m->dir, dir) == 0 || (m->peft.dir && strcmp(m->peft.dir, dir) == 0);
}

// Returns 1 if a plugin has opened the model in this directory.
static int is_open(const struct rlhf__run *r, const char *dir) {
    const struct rlhf__served *o;
    for (size_t i = 0; (o = rlhf__text_services_at(r->served, i)); i++)
        if (is_of(o->model, dir)) return 1;
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
            continue; // the plugin did not open it as a model
        if (json_object_set_new(options, o.key, json_string(room)) != 0)
            return RLHF__NOMEM(err, "out of memory for settings");
    }
    return RLHF_OK;
}

rlhf_status rlhf__setup_reward_checkpoints(struct rlhf__run *r, struct rlhf__error *err) {
    struct rlhf__config *c = r->req->config;
    for (size_t i = 0; i < r->cast.n_rewards; i++)
        RLHF_TRY(take_options(r, r->req->rewards[i], c->reward[i].options, err));
    return r->cast.judge ? take_options(r, r->req->judge, c->judge.options, err) : RLHF_OK;
}
