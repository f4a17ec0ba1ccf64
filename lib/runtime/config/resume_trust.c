// resume_trust.c: decides which code the config.json of a run may name, and which code the user
// must name again (rlhf__resume_trust and rlhf__resume_words of resume.h).
#include "config/resume.h"

#include "base/file.h"
#include "config/command_text.h"
#include "config/spec.h"
#include "plugin/load.h"
#include "plugin/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns 1 if compute.backend names a file that did not come with the program. The backends that
// came with the program are all in one directory.
static int kernels_foreign(const struct rlhf__dirs *dirs, const char *backend) {
    char real[RLHF__PATH_CAP], home[RLHF__PATH_CAP], own[RLHF__PATH_CAP], path[RLHF__PATH_CAP];
    const size_t len = rlhf__spec_name_len(backend);
    if (!memchr(backend, '/', len)) return 0;
    const int n = snprintf(own, sizeof own, "%s/kernels", dirs->lib);
    if (n < 0 || (size_t)n >= sizeof own || !rlhf__path_real(own, home)) return 1;
    snprintf(path, sizeof path, "%.*s", (int)(len < sizeof path ? len : 0), backend);
    char *slash = rlhf__path_real(path, real) ? strrchr(real, '/') : NULL;
    if (slash) *slash = '\0';
    return !slash || strcmp(real, home) != 0;
}

static void add(struct rlhf__buf *list, const char *setting, const char *path) {
    rlhf__buf_printf(list, "%s%s (%s)", list->len ? ", " : "", setting, path);
}

static void look_at(const struct rlhf__dirs *dirs, const struct rlhf__plugin_config *p,
                    const char *section, struct rlhf__buf *list) {
    char file[1024], setting[48];
    snprintf(setting, sizeof setting, "%s.plugin", section);
    if (!p->plugin || !rlhf__plugin_is_path(p->plugin, p->from, file)) return;
    if (!rlhf__plugin_is_installed(dirs, file)) add(list, setting, p->plugin);
}

static void look_at_stored(const struct rlhf__config_request *req,
                           const struct rlhf__plugin_config *p, const char *section,
                           struct rlhf__buf *list) {
    if (p->from != RLHF__NAME_TYPED) look_at(req->dirs, p, section, list);
}

static int is_set(const struct rlhf__config_request *req, const char *assignment) {
    for (size_t i = 0; i < req->n_set; i++)
        if (strncmp(req->set[i], assignment, strlen(assignment)) == 0) return 1;
    return 0;
}

rlhf_status rlhf__resume_trust(const struct rlhf__config_request *req, const struct rlhf__config *c,
                               struct rlhf__error *err) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    if (req->trust_run) return RLHF_OK;
    look_at_stored(req, &c->algo, "algo", &list);
    for (size_t i = 0; i < c->n_reward; i++) {
        char section[32];
        snprintf(section, sizeof section, "reward.%zu", i);
        look_at_stored(req, &c->reward[i], section, &list);
    }
    look_at_stored(req, &c->judge, "judge", &list);
    look_at_stored(req, &c->environment, "environment", &list);
    for (size_t i = 0; i < c->n_sink; i++) {
        char section[32];
        snprintf(section, sizeof section, "sink.%zu", i);
        look_at_stored(req, &c->sink[i], section, &list);
    }
    if (!is_set(req, "compute.backend=") && kernels_foreign(req->dirs, c->compute.backend))
        add(&list, "compute.backend", c->compute.backend);
    rlhf_status st = rlhf__buf_ok(&list, err);
    if (st == RLHF_OK && list.len)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "--resume: %s/config.json names code that lies elsewhere than the "
                        "installed plugins and RLHF_PLUGIN_PATH: %s; it is opened when you name it "
                        "again (--algo, --reward, --judge, --env, --sink, --set "
                        "compute.backend=) or give "
                        "--trust-run",
                        req->resume, rlhf__buf_text(&list));
    rlhf__buf_finish(&list);
    return st;
}

// ---- the flags that name code again ----

// Append " --set SETTING=VALUE", unless the request sets it already.
static void add_set(const struct rlhf__config_request *req, const char *section, const char *key,
                    const char *value, struct rlhf__buf *words) {
    char setting[512], assignment[520];
    const int n = snprintf(setting, sizeof setting, "%s.%s", section, key);
    snprintf(assignment, sizeof assignment, "%s=", setting);
    if (n < 0 || (size_t)n >= sizeof setting)
        words->bad = 1;
    else if (!is_set(req, assignment))
        rlhf__command_set(words, setting, value);
}

// Append the flag that names the plugin on the command line, or --set if the section lacks a flag.
static void add_plugin(const struct rlhf__config_request *req, const struct rlhf__plugin_config *p,
                       const char *section, const char *flag, struct rlhf__buf *words) {
    struct rlhf__buf list = RLHF__BUF_INIT;
    look_at(req->dirs, p, section, &list);
    if (list.len && flag) {
        rlhf__command_flag(words, flag, p->plugin);
    } else if (list.len) {
        add_set(req, section, "plugin", p->plugin, words);
    }
    rlhf__buf_finish(&list);
}

// Returns 1 if `v` is the default value of option i.
static int is_default(const struct rlhf__plugin *plugin, uint32_t i, const json_t *v) {
    struct rlhf__strings strings = {0};
    struct rlhf__error unsaid;
    const uint32_t size = plugin->desc.config_size;
    void *config = calloc(1, size ? size : 1);
    json_t *usual = NULL;
    rlhf_opt o;
    rlhf__opt_at(&plugin->table, i, &o);
    if (config && rlhf__opts_defaults(&plugin->table, config, &strings, &unsaid) == RLHF_OK)
        usual = rlhf__opt_json(&o, config);
    const int same = usual && json_equal(usual, v);
    json_decref(usual);
    rlhf__strings_finish(&strings);
    free(config);
    return same;
}

// Append the flags that the user must give again to resume a run with the plugin `p`: for its
// options with RLHF_OPT_TRUSTED that differ from their defaults, for access to the network, and for
// running outside a worker. If the plugin has not been opened, `plugin` is NULL, and only the flag
// for the network is appended.
static void add_code(const struct rlhf__config_request *req, const struct rlhf__plugin_config *p,
                     const struct rlhf__plugin *plugin, const char *section,
                     struct rlhf__buf *words) {
    for (uint32_t i = 0; plugin && i < plugin->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&plugin->table, i, &o);
        const json_t *v = json_object_get(p->options, o.key);
        if (!(o.flags & RLHF_OPT_TRUSTED) || !v || !json_object_get(p->origin, o.key)) continue;
        if (is_default(plugin, i, v)) continue;
        struct rlhf__buf text = RLHF__BUF_INIT;
        if (!json_is_string(v)) rlhf__json_write(&text, v, 0);
        add_set(req, section, o.key,
                json_is_string(v) ? json_string_value(v) : rlhf__buf_text(&text), words);
        rlhf__buf_finish(&text);
    }
    if (p->network) add_set(req, section, "network", "true", words);
    const uint32_t kind = plugin ? plugin->desc.kind : RLHF_KIND_REWARD;
    if (kind != RLHF_KIND_REWARD && kind != RLHF_KIND_ENVIRONMENT && kind != RLHF_KIND_SINK)
        return; // never in a worker
    if (!plugin || plugin->outside || rlhf__plugin_is_shipped(req->dirs, plugin->path)) return;
    add_set(req, p->isolate ? section : "rewards", "isolate", p->isolate ? "false" : "never",
            words);
}

void rlhf__resume_words(const struct rlhf__config_request *req, const struct rlhf__config *c,
                        const struct rlhf__resume_code *code, struct rlhf__buf *words) {
    char section[32];
    if (!req->algo) add_plugin(req, &c->algo, "algo", "--algo", words);
    for (size_t i = 0; i < c->n_reward; i++) {
        const char *flag = c->n_reward == 1 ? "--reward" : NULL;
        snprintf(section, sizeof section, "reward.%zu", i);
        if (!req->n_reward) add_plugin(req, &c->reward[i], section, flag, words);
        add_code(req, &c->reward[i], code->reward ? code->reward[i] : NULL, section, words);
    }
    if (!req->judge) add_plugin(req, &c->judge, "judge", "--judge", words);
    add_code(req, &c->judge, code->judge, "judge", words);
    if (!req->environment) add_plugin(req, &c->environment, "environment", "--env", words);
    add_code(req, &c->environment, code->environment, "environment", words);
    for (size_t i = 0; i < c->n_sink; i++) {
        const char *flag = c->n_sink == 1 ? "--sink" : NULL;
        snprintf(section, sizeof section, "sink.%zu", i);
        if (!req->n_sink) add_plugin(req, &c->sink[i], section, flag, words);
        add_code(req, &c->sink[i], code->sink ? code->sink[i] : NULL, section, words);
    }
    if (kernels_foreign(req->dirs, c->compute.backend))
        add_set(req, "compute", "backend", c->compute.backend, words);
}
