// resolve.c: completes a config after its layers are merged: opens plugins, fills in all their
// options and makes paths absolute. See config.h.
#include "config/config.h"

#include "base/file.h"
#include "chat/chat.h"
#include "config/apart.h"
#include "config/layer.h"
#include "config/named.h"
#include "config/spec.h"
#include "plugin/load.h"
#include "plugin/search.h"

#include <rlhf/options_check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- paths ------------------------------------------------------------------------------------
// Relative paths that exist are made absolute, so that the run can be resumed from anywhere.

static const char *absolute(const char *path, char out[RLHF__PATH_CAP]) {
    if (!path || !*path || *path == '/' || access(path, F_OK) != 0) return NULL;
    return rlhf__path_real(path, out);
}

static rlhf_status absolute_fields(const struct rlhf__opt_table *t, void *config,
                                   struct rlhf__strings *strings, struct rlhf__error *err) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (o.type != RLHF_T_PATH) continue;
        const char *path;
        memcpy(&path, (char *)config + o.offset, sizeof path);
        char full[RLHF__PATH_CAP];
        if (!absolute(path, full)) continue;
        path = rlhf__strings_add(strings, full);
        if (!path) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
        memcpy((char *)config + o.offset, &path, sizeof path);
    }
    return RLHF_OK;
}

// compute.backend is a path if its name, without the options, contains a '/'.
static rlhf_status absolute_backend(struct rlhf__config *c, struct rlhf__error *err) {
    char full[RLHF__PATH_CAP], *spec = NULL;
    const char *was = c->compute.backend;
    const size_t n = rlhf__spec_name_len(was);
    char *name = memchr(was, '/', n) ? strndup(was, n) : NULL;
    if (!name || !absolute(name, full)) {
        free(name);
        return RLHF_OK;
    }
    free(name);
    if (asprintf(&spec, "%s%s", full, was + n) < 0)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    c->compute.backend = rlhf__strings_add(&c->strings, spec);
    free(spec);
    return c->compute.backend ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
}

struct rlhf__chat_choice rlhf__config_chat(const struct rlhf__prompts_config *c,
                                           struct rlhf__chat_choice *names) {
    *names =
        (struct rlhf__chat_choice){"prompts.template", "prompts.template_vars", "prompts.date"};
    return (struct rlhf__chat_choice){c->template, c->template_vars, c->date};
}

// Check the template before models are opened. If it is a file, make its path absolute.
static rlhf_status absolute_template(struct rlhf__config *c, struct rlhf__error *err) {
    char full[RLHF__PATH_CAP];
    struct rlhf__chat_choice names;
    const struct rlhf__chat_choice choice = rlhf__config_chat(&c->prompts, &names);
    RLHF_TRY(rlhf__chat_check_choice(&choice, &names, err));
    if (!rlhf__chat_is_file(c->prompts.template) || !absolute(c->prompts.template, full))
        return RLHF_OK;
    c->prompts.template = rlhf__strings_add(&c->strings, full);
    return c->prompts.template ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
}

// ---- plugin options ---------------------------------------------------------------------------

// Write every option of `p` to `config`, with its origin.
static rlhf_status set_options(const struct rlhf__plugin *plugin,
                               const struct rlhf__plugin_config *p, const char *section,
                               void *config, struct rlhf__strings *strings,
                               struct rlhf__error *err) {
    const char *key;
    json_t *v;
    json_object_foreach(p->options, key, v) {
        const json_t *place = json_object_get(p->origin, key);
        const char *source = json_string_value(json_object_get(place, "source"));
        const char *raw = json_string_value(json_object_get(place, "raw"));
        struct rlhf__origin from = {source ? source : plugin->file, section, NULL, 0, 0};
        if (rlhf__opt_find(&plugin->table, key) < 0) {
            const char *const *own = rlhf_host_keys(plugin->desc.kind);
            rlhf_status st = rlhf__opts_unknown(&plugin->table, key, own, &from, err);
            size_t n = strlen(err->text);
            snprintf(err->text + n, sizeof err->text - n, "; see rlhf-host plugin info %s",
                     strchr(p->plugin, '/') ? p->plugin : plugin->file);
            return st;
        }
        rlhf_status st = rlhf__opts_set(&plugin->table, key, v, raw, &from, config, strings, err);
        if (st < 0) return st;
    }
    return RLHF_OK;
}

// Some options name code to run, or a destination for data (RLHF_OPT_TRUSTED). Reject them if they
// come only from a run directory, because whoever wrote that directory would choose the code or the
// destination.
static rlhf_status check_code(const struct rlhf__plugin *plugin,
                              const struct rlhf__plugin_config *p, const char *section,
                              const void *config, struct rlhf__error *err) {
    for (uint32_t i = 0; p->stored && i < plugin->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&plugin->table, i, &o);
        if (!(o.flags & RLHF_OPT_TRUSTED) || rlhf__opt_is_default(&o, config)) continue;
        const json_t *from = json_object_get(p->origin, o.key);
        if (json_object_get(from, "raw") || json_object_get(from, "file")) continue;
        json_t *v = rlhf__opt_json(&o, config);
        struct rlhf__buf value = RLHF__BUF_INIT;
        if (json_is_string(v))
            rlhf__buf_puts(&value, json_string_value(v));
        else
            rlhf__json_write(&value, v, 0);
        rlhf__fail(err, RLHF_E_INVALID,
                   "--resume: the run's config.json says what %s runs, or what it sends and where "
                   "to: %s.%s is %s; it is used only if you give it again (--set %s.%s=) or give "
                   "--trust-run",
                   plugin->file, section, o.key, rlhf__buf_text(&value), section, o.key);
        rlhf__buf_finish(&value);
        json_decref(v);
        return RLHF_E_INVALID;
    }
    return RLHF_OK;
}

// Record in c->unused those options of `p` that the user set, but that other values in `config`
// disable.
static rlhf_status note_unused(const struct rlhf__plugin *plugin,
                               const struct rlhf__plugin_config *p, const char *section,
                               const void *config, struct rlhf__config *c,
                               struct rlhf__error *err) {
    const char *key;
    json_t *from;
    json_object_foreach(p->origin, key, from) {
        const char *file = json_string_value(json_object_get(from, "file"));
        const int typed = json_object_get(from, "raw") != NULL;
        const char *source = typed ? json_string_value(json_object_get(from, "source")) : file;
        rlhf_opt o;
        rlhf__opt_at(&plugin->table, (uint32_t)rlhf__opt_find(&plugin->table, key), &o);
        if (!source || rlhf__opt_is_default(&o, config)) continue;
        const char *why = rlhf__plugin_why_unused(plugin, config, key);
        if (!why) continue;
        char path[512];
        snprintf(path, sizeof path, "%s.%s", section, key);
        json_t *entry = json_pack("{ss,sb,ss}", "source", source, "typed", typed, "why", why);
        if (json_object_set_new(c->unused, path, entry) != 0)
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "%s: its why_unused() reason for \"%s\" is not valid UTF-8, or memory ran "
                "out",
                plugin->path, key);
    }
    return RLHF_OK;
}

// Complete p->options, so that it has all options of the plugin, in the order of its table.
static rlhf_status complete(const struct rlhf__plugin *plugin, struct rlhf__plugin_config *p,
                            const char *section, struct rlhf__config *c, struct rlhf__error *err) {
    struct rlhf__strings strings = {0};
    uint32_t size = plugin->desc.config_size;
    void *config = calloc(1, size ? size : 1);
    json_t *full = json_object();
    struct rlhf__origin from = {plugin->file, section, NULL, 0, 0};
    rlhf_status st = RLHF_OK;
    if (!config || !full) st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    if (st == RLHF_OK) st = rlhf__opts_defaults(&plugin->table, config, &strings, err);
    if (st == RLHF_OK) st = set_options(plugin, p, section, config, &strings, err);
    if (st == RLHF_OK) st = rlhf__opts_required(&plugin->table, p->options, &from, err);
    if (st == RLHF_OK) st = check_code(plugin, p, section, config, err);
    if (st == RLHF_OK) st = note_unused(plugin, p, section, config, c, err);
    if (st == RLHF_OK) st = absolute_fields(&plugin->table, config, &strings, err);
    if (st == RLHF_OK) st = rlhf__opts_to_json(&plugin->table, config, full, err);
    if (st == RLHF_OK) {
        json_decref(p->options);
        p->options = json_incref(full);
    }
    json_decref(full);
    free(config);
    rlhf__strings_finish(&strings);
    return st;
}

// Make a plugin file's path absolute, so that the run can be resumed from another directory.
static rlhf_status keep_path(const struct rlhf__plugin *plugin, struct rlhf__plugin_config *p,
                             struct rlhf__error *err) {
    char file[1024], *copy = NULL;
    if (!rlhf__plugin_is_path(p->plugin, p->from, file)) return RLHF_OK;
    const char *id = p->plugin + rlhf__plugin_name_len(p->plugin, p->from);
    if (asprintf(&copy, "%s%s", plugin->path, id) < 0)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    free(p->plugin);
    p->plugin = copy;
    return RLHF_OK;
}

// Choose the metric name of reward i: the name that the user gave, which must be unique, or else
// the file's name. If an earlier reward has the file's name, append "-2", "-3", ... The rewards of
// an environment have the name "environment".
static rlhf_status name_reward(struct rlhf__config *c, size_t i, const struct rlhf__plugin *plugin,
                               struct rlhf__error *err) {
    struct rlhf__plugin_config *p = &c->reward[i];
    int given = p->name && *p->name;
    for (unsigned number = 1;; number++) {
        char name[256];
        const char *stem = given ? p->name : plugin->stem;
        snprintf(name, sizeof name, number > 1 ? "%.200s-%u" : "%.200s", stem, number);
        const int environments = strcmp(name, "environment") == 0;
        size_t k = 0;
        if (environments && given)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "reward.%zu.name: \"environment\" is the name of the rewards of an "
                              "environment; choose another name",
                              i);
        if (environments) continue;
        while (k < i && strcmp(c->reward[k].name, name) != 0)
            k++;
        if (k < i && given)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "reward.%zu.name: \"%s\" is the name of reward.%zu "
                              "too",
                              i, p->name, k);
        if (k < i) continue;
        if (given) return RLHF_OK;
        free(p->name);
        p->name = strdup(name);
        return p->name ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    }
}

// ---- processes --------------------------------------------------------------------------------

// 1 if the plugin itself runs in a worker. If only its programs are isolated, it runs in this
// process.
static int in_worker(const struct rlhf__plugin *p) { return p && p->outside && p->outside->worker; }

// Record rewards.workers in c->unused if the user set it and neither a reward nor the judge runs in
// a worker.
static rlhf_status note_workers(struct rlhf__config *c, const struct rlhf__plugin *const *rewards,
                                const struct rlhf__plugin *judge, struct rlhf__error *err) {
    const json_t *given = json_object_get(c->given, "rewards.workers");
    int any = in_worker(judge);
    for (size_t i = 0; i < c->n_reward; i++)
        any |= in_worker(rewards[i]);
    if (any || !given || c->mixing.workers == 1) return RLHF_OK;
    json_t *entry = json_deep_copy(given);
    if (!entry ||
        json_object_set_new(entry, "why", json_string("no reward runs in a worker")) != 0 ||
        json_object_set(c->unused, "rewards.workers", entry) != 0) {
        json_decref(entry);
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    }
    json_decref(entry);
    return RLHF_OK;
}

static rlhf_status resolve_rewards(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                   const struct rlhf__plugin **rewards, struct rlhf__error *err) {
    for (size_t i = 0; i < c->n_reward; i++) {
        struct rlhf__plugin_config *p = &c->reward[i];
        char section[32];
        rlhf__reward_section(p, i, section);
        if (!p->options) p->options = json_object();
        const struct rlhf__apart q = {c, p, section, p->flag ? p->flag : "--reward",
                                      RLHF_KIND_REWARD};
        RLHF_TRY(rlhf__apart_open(plugins, &q, &rewards[i], err));
        RLHF_TRY(complete(rewards[i], p, section, c, err));
        RLHF_TRY(name_reward(c, i, rewards[i], err));
        RLHF_TRY(keep_path(rewards[i], p, err));
    }
    return RLHF_OK;
}

static rlhf_status resolve_judge(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                 const struct rlhf__plugin **judge, struct rlhf__error *err) {
    struct rlhf__plugin_config *p = &c->judge;
    if (!p->plugin && json_object_size(p->options) == 0) return RLHF_OK;
    if (!p->plugin)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "judge.plugin is missing: name a reward, e.g. --judge imdb.so");
    if (!p->options) p->options = json_object();
    const struct rlhf__apart q = {c, p, "judge", "--judge", RLHF_KIND_REWARD};
    RLHF_TRY(rlhf__apart_open(plugins, &q, judge, err));
    RLHF_TRY(complete(*judge, p, "judge", c, err));
    return keep_path(*judge, p, err);
}

static rlhf_status resolve_sinks(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                 const struct rlhf__plugin **sinks, struct rlhf__error *err) {
    for (size_t i = 0; i < c->n_sink; i++) {
        struct rlhf__plugin_config *p = &c->sink[i];
        char section[32];
        snprintf(section, sizeof section, "sink.%zu", i);
        if (!p->options) p->options = json_object();
        const struct rlhf__apart q = {c, p, section, "--sink", RLHF_KIND_SINK};
        RLHF_TRY(rlhf__apart_open(plugins, &q, &sinks[i], err));
        RLHF_TRY(complete(sinks[i], p, section, c, err));
        RLHF_TRY(keep_path(sinks[i], p, err));
    }
    return RLHF_OK;
}

// Open the sinks that the settings log.tensorboard and log.csv ask for.
static rlhf_status open_own_sinks(const struct rlhf__config *c, struct rlhf__plugins *plugins,
                                  const struct rlhf__plugin **out, struct rlhf__error *err) {
    char tensorboard[] = "tensorboard.so", csv[] = "csv.so";
    const struct {
        int32_t wanted;
        char *plugin;
        const char *setting;
    } own[] = {{c->log.tensorboard, tensorboard, "log.tensorboard"}, {c->log.csv, csv, "log.csv"}};
    for (size_t i = 0, n = 0; i < sizeof own / sizeof *own; i++) {
        const struct rlhf__plugin_config p = {.plugin = own[i].plugin,
                                              .from = RLHF__NAME_LOOKED_UP};
        const struct rlhf__apart q = {c, &p, own[i].setting, own[i].setting, RLHF_KIND_SINK};
        if (own[i].wanted) RLHF_TRY(rlhf__apart_open(plugins, &q, &out[n++], err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__config_resolve_sinks(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                       const struct rlhf__plugin ***out, struct rlhf__error *err) {
    *out = calloc(c->n_sink + RLHF__OWN_SINKS + 1, sizeof(const struct rlhf__plugin *));
    if (!*out) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = resolve_sinks(c, plugins, *out, err);
    if (st == RLHF_OK) st = open_own_sinks(c, plugins, *out + c->n_sink, err);
    if (st == RLHF_OK) return RLHF_OK;
    free(*out);
    *out = NULL;
    return st;
}

rlhf_status rlhf__config_resolve_environment(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                             const struct rlhf__plugin **out,
                                             struct rlhf__error *err) {
    struct rlhf__plugin_config *p = &c->environment;
    *out = NULL;
    if (!p->plugin && json_object_size(p->options) == 0) return RLHF_OK;
    if (!p->plugin)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "environment.plugin is missing: name an environment, e.g. --env guess.so");
    if (!p->options) p->options = json_object();
    const struct rlhf__apart q = {c, p, "environment", "--env", RLHF_KIND_ENVIRONMENT};
    RLHF_TRY(rlhf__apart_open(plugins, &q, out, err));
    RLHF_TRY(complete(*out, p, "environment", c, err));
    return keep_path(*out, p, err);
}

rlhf_status rlhf__config_resolve(struct rlhf__config *c, struct rlhf__plugins *plugins,
                                 const struct rlhf__plugin **algo,
                                 const struct rlhf__plugin ***rewards,
                                 const struct rlhf__plugin **judge, struct rlhf__error *err) {
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    *rewards = NULL;
    *judge = NULL;
    if (!c->algo.plugin)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "no algorithm is given; name one, e.g. --algo ppo.so "
                          "(rlhf-host plugin list shows them)");
    for (size_t i = 0; i < n; i++)
        RLHF_TRY(absolute_fields(&s[i].table, (char *)c + s[i].offset, &c->strings, err));
    RLHF_TRY(rlhf__named_absolute(c, err));
    RLHF_TRY(absolute_backend(c, err));
    RLHF_TRY(absolute_template(c, err));
    RLHF_TRY(rlhf__plugin_open(plugins, c->algo.plugin, RLHF_KIND_ALGO, c->algo.from, "--algo",
                               algo, err));
    RLHF_TRY(complete(*algo, &c->algo, "algo", c, err));
    RLHF_TRY(keep_path(*algo, &c->algo, err));
    RLHF_TRY(resolve_judge(c, plugins, judge, err));
    *rewards = calloc(c->n_reward + 1, sizeof(const struct rlhf__plugin *));
    if (!*rewards) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = resolve_rewards(c, plugins, *rewards, err);
    if (st == RLHF_OK) st = note_workers(c, *rewards, *judge, err);
    if (st < 0) {
        free(*rewards);
        *rewards = NULL;
    }
    return st;
}
