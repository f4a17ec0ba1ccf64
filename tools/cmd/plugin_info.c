// plugin_info.c: `rlhf-host plugin info FILE [--json]`: prints the plugins of a file and their
// options, as text or as JSON Schema (draft 2020-12). A confined child process opens the file.
#include "cmd/plugin.h"
#include "config/schema.h"

#include "base/hash.h"
#include "base/printable.h"
#include "cmd/algo_defaults.h"
#include "cmd/flags.h"
#include "plugin/search.h"
#include "plugin/shared_object.h"
#include "supervise/child.h"
#include "supervise/confine.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct info {
    const struct rlhf__env *env;
    const char *path; // absolute
    int32_t json;
    char sha256[65];
};

// ---- opening a file ----

struct child_work {
    rlhf_status (*work)(void *arg, struct rlhf__buf *out);
    void *arg;
};

static rlhf_status confined_work(void *arg, struct rlhf__buf *out) {
    const struct child_work *w = arg;
    rlhf__confine(0, 0, NULL);
    return w->work(w->arg, out);
}

rlhf_status rlhf__plugin_file_ask(const char *what,
                                  rlhf_status (*work)(void *arg, struct rlhf__buf *out), void *arg,
                                  struct rlhf__buf *out, struct rlhf__error *err) {
    const struct rlhf__child_limits limits = {
        .what = what, .seconds = RLHF__CHILD_SECONDS, .confined = 1};
    struct child_work w = {work, arg};
    return rlhf__child_ask(&limits, confined_work, &w, out, NULL, err);
}

rlhf_status rlhf__plugin_file_open(const struct rlhf__dirs *dirs, const char *path, int with_sum,
                                   struct rlhf__plugin_file *out, struct rlhf__error *err) {
    void *object;
    *out = (struct rlhf__plugin_file){0};
    RLHF_TRY(rlhf__trust_code(path, dirs, err));
    RLHF_TRY(rlhf__shared_object_open(path, &object, err));
    out->other = rlhf__plugin_abi(object) < 0 && !dlsym(object, "rlhf_kernels_v0");
    RLHF_TRY(rlhf__plugins_open(dirs, &out->plugins, err));
    if (!with_sum) rlhf__plugins_leave_sums(out->plugins);
    return rlhf__plugin_open_file(out->plugins, path, &out->plugin, &out->n, err);
}

void rlhf__plugin_file_finish(struct rlhf__plugin_file *f) {
    free(f->plugin);
    rlhf__plugins_close(f->plugins);
    *f = (struct rlhf__plugin_file){0};
}

// ---- text ----

// Write a string from the plugin without line breaks, because it is part of one line of output.
static void put_foreign(struct rlhf__buf *out, const char *text) {
    rlhf__put_printable(out, text ? text : "", text ? strlen(text) : 0, "");
}

static void put_options(struct rlhf__buf *out, const struct rlhf__plugin *p,
                        const struct rlhf__algo_defaults *defaults) {
    size_t wide = 0;
    const char *how = "options, from the model's config.json";
    if (p->desc.kind == RLHF_KIND_ALGO) how = "options, set with --set algo.KEY=VALUE";
    if (p->desc.kind == RLHF_KIND_REWARD) how = "options, set with --set reward.N.KEY=VALUE";
    if (p->desc.kind == RLHF_KIND_SINK) how = "options, set with --set sink.N.KEY=VALUE";
    if (p->desc.kind == RLHF_KIND_ENVIRONMENT)
        how = "options, set with --set environment.KEY=VALUE";
    if (p->table.n == 0) {
        rlhf__buf_puts(out, "no options\n");
        return;
    }
    if (p->desc.kind == RLHF_KIND_KERNELS)
        rlhf__buf_printf(out, "options, set with --set compute.backend=%s:KEY=VALUE:\n", p->file);
    else if (p->desc.kind == RLHF_KIND_MODEL)
        rlhf__buf_printf(out, "%s:\n", how);
    else
        rlhf__buf_printf(out, "%s or %s:KEY=VALUE:\n", how, p->file);
    for (uint32_t i = 0; i < p->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&p->table, i, &o);
        if (strlen(o.key) > wide) wide = strlen(o.key);
    }
    for (uint32_t i = 0; i < p->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&p->table, i, &o);
        size_t from = out->len;
        rlhf__buf_puts(out, "  ");
        put_foreign(out, o.key);
        while (!out->bad && out->len < from + wide + 4)
            rlhf__buf_putc(out, ' ');
        rlhf__opt_allowed(&o, out);
        rlhf__buf_puts(out, "; ");
        rlhf__put_values(out, defaults, &o);
        rlhf__buf_printf(out, "\n  %-*s  ", (int)wide, "");
        put_foreign(out, o.help);
        rlhf__buf_putc(out, '\n');
    }
}

static void put_line(struct rlhf__buf *out, const char *what, const char *text) {
    rlhf__buf_printf(out, "  %-8s ", what);
    put_foreign(out, text);
    rlhf__buf_putc(out, '\n');
}

// Write the settings that the algorithm's file changes.
static void put_settings(struct rlhf__buf *out, const struct rlhf__algo_defaults *defaults) {
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    rlhf__buf_printf(out, "settings that configs/%s.json changes for a run with it:\n",
                     defaults->algo);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s[i].table.n; k++) {
            rlhf_opt o;
            rlhf__opt_at(&s[i].table, k, &o);
            const json_t *v = rlhf__algo_defaults_value(defaults, s[i].name, &o);
            if (!v) continue;
            rlhf__buf_printf(out, "  %s.%s = ", s[i].name, o.key);
            rlhf__put_value(out, &o, v);
            rlhf__buf_puts(out, "; else ");
            rlhf__put_default(out, &o);
            rlhf__buf_putc(out, '\n');
        }
}

static void put_text(struct rlhf__buf *out, const struct rlhf__plugin *p,
                     const struct rlhf__algo_defaults *defaults) {
    put_foreign(out, p->file);
    rlhf__buf_puts(out, ": ");
    put_foreign(out, p->desc.summary);
    rlhf__buf_putc(out, '\n');
    put_line(out, "id", p->desc.id);
    put_line(out, "version", p->desc.version);
    put_line(out, "kind", rlhf__kind_name((int32_t)p->desc.kind));
    if (*p->desc.vendor) put_line(out, "vendor", p->desc.vendor);
    if (*p->desc.url) put_line(out, "url", p->desc.url);
    if (*p->desc.license) put_line(out, "license", p->desc.license);
    rlhf__buf_printf(out, "  contract %d.%d\n", RLHF_ABI_MAJOR, (int)p->abi_minor);
    if (p->desc.state_version)
        rlhf__buf_printf(out, "  state    version %u, kept in checkpoints\n",
                         p->desc.state_version);
    put_line(out, "file", p->path);
    put_line(out, "sha256", p->sha256);
    put_options(out, p, defaults);
    if (defaults) put_settings(out, defaults);
}

// In the schema, "default" is the plugin's default; "x-rlhf-config" is the value in the algorithm's
// settings file.
static void add_algo_defaults(json_t *properties, const struct rlhf__plugin *p,
                              const struct rlhf__algo_defaults *defaults) {
    for (uint32_t i = 0; defaults && i < p->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&p->table, i, &o);
        const json_t *v = rlhf__algo_defaults_value(defaults, "algo", &o);
        if (v)
            json_object_set_new(json_object_get(properties, o.key), "x-rlhf-config",
                                json_deep_copy(v));
    }
}

static json_t *stated(const char *text) { return *text ? rlhf__json_text(text) : json_null(); }

static json_t *schema(const struct rlhf__plugin *p, const struct rlhf__algo_defaults *defaults) {
    json_t *properties = rlhf__opts_schema(&p->table);
    add_algo_defaults(properties, p, defaults);
    json_t *required = json_array();
    for (uint32_t i = 0; i < p->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&p->table, i, &o);
        if (o.flags & RLHF_OPT_REQUIRED) json_array_append_new(required, json_string(o.key));
    }
    json_t *about = json_pack(
        "{ss,so,ss,so,so,so,ss,si,si}", "id", p->desc.id, "version",
        rlhf__json_text(p->desc.version), "kind", rlhf__kind_name((int32_t)p->desc.kind), "vendor",
        stated(p->desc.vendor), "url", stated(p->desc.url), "license", stated(p->desc.license),
        "sha256", p->sha256, "abi_major", RLHF_ABI_MAJOR, "abi_minor", (int)p->abi_minor);
    // A model's options are read from config.json, where unknown keys are allowed.
    return json_pack("{ss,ss,so,ss,so,so,sb,so}", "$schema",
                     "https://json-schema.org/draft/2020-12/schema", "title", p->desc.id,
                     "description", rlhf__json_text(p->desc.summary), "type", "object",
                     "properties", properties, "required", required, "additionalProperties",
                     p->desc.kind == RLHF_KIND_MODEL, "x-rlhf-plugin", about);
}

// Returns the settings file of an algorithm, or NULL.
static const struct rlhf__algo_defaults *of(const struct rlhf__plugin *p,
                                            const struct rlhf__algo_defaults *all, size_t n) {
    return p->desc.kind == RLHF_KIND_ALGO ? rlhf__algo_defaults_of(p->stem, all, n) : NULL;
}

static void put_json(struct rlhf__buf *out, const struct rlhf__plugin_file *f,
                     const struct rlhf__algo_defaults *defaults, size_t n_defaults) {
    json_t *all = json_array();
    for (size_t i = 0; i < f->n; i++)
        json_array_append_new(all, schema(f->plugin[i], of(f->plugin[i], defaults, n_defaults)));
    rlhf__json_write(out, json_array_size(all) == 1 ? json_array_get(all, 0) : all, 2);
    rlhf__buf_putc(out, '\n');
    json_decref(all);
}

static void put_found(struct rlhf__buf *out, const struct info *in,
                      const struct rlhf__plugin_file *f) {
    size_t n_defaults;
    struct rlhf__algo_defaults *defaults = rlhf__algo_defaults_all(in->env->dirs, &n_defaults);
    if (in->json) put_json(out, f, defaults, n_defaults);
    for (size_t i = 0; !in->json && i < f->n; i++) {
        if (i) rlhf__buf_putc(out, '\n');
        put_text(out, f->plugin[i], of(f->plugin[i], defaults, n_defaults));
    }
    rlhf__algo_defaults_finish(defaults, n_defaults);
}

// Runs in the child.
static rlhf_status describe(void *arg, struct rlhf__buf *out) {
    const struct info *in = arg;
    struct rlhf__plugin_file f;
    struct rlhf__error err;
    const rlhf_status st = rlhf__plugin_file_open(in->env->dirs, in->path, 1, &f, &err);
    if (st == RLHF_OK)
        put_found(out, in, &f);
    else
        rlhf__buf_puts(out, err.text);
    rlhf__plugin_file_finish(&f);
    return st;
}

// Do not trust the text, because the process that wrote it also ran code of the plugin.
static rlhf_status print_checked(const struct info *in, const struct rlhf__buf *text,
                                 struct rlhf__error *err) {
    struct rlhf__buf shown = RLHF__BUF_INIT;
    json_t *schema = NULL;
    if (in->json) {
        RLHF_TRY(rlhf__json_parse(in->path, rlhf__buf_text(text), text->len, &schema, err));
        rlhf__json_write(&shown, schema, 2);
        rlhf__buf_putc(&shown, '\n');
    } else {
        struct rlhf__buf safe = RLHF__BUF_INIT;
        rlhf__put_printable(&safe, rlhf__buf_text(text), text->len, "\n");
        rlhf__put_page(&shown, (rlhf_str){rlhf__buf_text(&safe), safe.len},
                       rlhf__page_width(stdout));
        if (safe.bad) shown.bad = 1;
        rlhf__buf_finish(&safe);
    }
    const rlhf_status st = rlhf__buf_ok(&shown, err);
    if (st == RLHF_OK) fputs(rlhf__buf_text(&shown), stdout);
    rlhf__buf_finish(&shown);
    json_decref(schema);
    return st;
}

int rlhf__plugin_info(const struct rlhf__env *env, int argc, char **argv) {
    static const struct rlhf__flag flags[] = {
        RLHF__FLAG_SW(struct info, "--json", json, "print a JSON Schema of the options"),
    };
    struct info in = {.env = env};
    struct rlhf__flag_list rest = {NULL, 0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err;
    char *path = NULL;
    rlhf_status st = rlhf__flags_parse(flags, 1, argc, argv, &in, &rest, &err);
    if (st == RLHF_OK && rest.n != 1)
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "plugin info: name one plugin file, e.g. "
                        "rlhf-host plugin info ppo.so");
    if (st == RLHF_OK)
        st = rlhf__plugin_find(env->dirs, rest.item[0], 0, RLHF__NAME_TYPED, "plugin info", &path,
                               &err);
    in.path = path;
    if (st == RLHF_OK) st = rlhf__sha256_file(path, in.sha256, &err);
    if (st == RLHF_OK) st = rlhf__plugin_file_ask(path, describe, &in, &text, &err);
    if (st == RLHF_OK) st = print_checked(&in, &text, &err);
    if (st < 0) rlhf__log_error(env->log, err.text);
    rlhf__buf_finish(&text);
    free(path);
    free(rest.item);
    return rlhf__exit_status(st);
}
