// layer.c: applies JSON layers to a config; see layer.h. layer_flag.c handles flags.
#include "config/layer.h"

#include "config/named.h"

#include "base/file.h"
#include "option/aliases.h"
#include "option/nearest.h"
#include "plugin/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONFIG_BYTES ((uint64_t)16 << 20)

int rlhf__layer_switch(struct rlhf__plugin_config *p, const char *key, const json_t *v) {
    if (!json_is_boolean(v)) return 0;
    const int on = json_is_true(v);
    if (strcmp(key, "isolate") == 0)
        p->isolate = on ? 1 : -1;
    else
        p->network = on;
    return 1;
}

rlhf_status rlhf__layer_load(const char *path, struct rlhf__layer *out, struct rlhf__error *err) {
    memset(out, 0, sizeof *out);
    out->source = path;
    RLHF_TRY(rlhf__file_read_stream(path, MAX_CONFIG_BYTES, &out->text, err));
    RLHF_TRY(rlhf__json_parse(path, rlhf__buf_text(&out->text), out->text.len, &out->json, err));
    if (!json_is_object(out->json))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the top level must be an object, found %s",
                          path, rlhf__json_kind(out->json));
    return RLHF_OK;
}

void rlhf__layer_finish(struct rlhf__layer *l) {
    rlhf__buf_finish(&l->text);
    json_decref(l->json);
    memset(l, 0, sizeof *l);
}

void rlhf__plugin_stem(const char *name, char *out, size_t cap) {
    char head[1024];
    const char *so = strstr(name, ".so:");
    snprintf(head, sizeof head, "%.*s", (int)(so ? so - name : 1000), name);
    const char *base = rlhf__path_base(head);
    size_t n = strcspn(base, "#");
    if (n > 3 && strncmp(base + n - 3, ".so", 3) == 0) n -= 3;
    snprintf(out, cap, "%.*s", (int)n, base);
}

void rlhf__plugin_config_clear(struct rlhf__plugin_config *p) {
    free(p->plugin);
    free(p->name);
    json_decref(p->options);
    json_decref(p->origin);
    memset(p, 0, sizeof *p);
}

void rlhf__reward_section(const struct rlhf__plugin_config *p, size_t i, char out[32]) {
    const int judges = p->flag && strcmp(p->flag, "--judge") == 0;
    snprintf(out, 32, "%s.%zu", judges ? "judge" : "reward", i);
}

static struct rlhf__plugin_config *add_entry(struct rlhf__plugin_config **list, size_t *n) {
    struct rlhf__plugin_config *all = realloc(*list, (*n + 1) * sizeof *all);
    if (!all) return NULL;
    *list = all;
    struct rlhf__plugin_config *p = &all[(*n)++];
    memset(p, 0, sizeof *p);
    p->weight = 1;
    return p;
}

struct rlhf__plugin_config *rlhf__reward_add(struct rlhf__config *c) {
    return add_entry(&c->reward, &c->n_reward);
}

struct rlhf__plugin_config *rlhf__sink_add(struct rlhf__config *c) {
    return add_entry(&c->sink, &c->n_sink);
}

static void clear_entries(struct rlhf__plugin_config *list, size_t *n) {
    for (size_t i = 0; i < *n; i++)
        rlhf__plugin_config_clear(&list[i]);
    *n = 0;
}

void rlhf__rewards_clear(struct rlhf__config *c) { clear_entries(c->reward, &c->n_reward); }

void rlhf__sinks_clear(struct rlhf__config *c) { clear_entries(c->sink, &c->n_sink); }

// Write the "source:line" of a path in the layer.
static void place(const struct rlhf__layer *l, const char *path, char *out, size_t cap) {
    int64_t line = rlhf__json_line_of(rlhf__buf_text(&l->text), l->text.len, path);
    if (line > 0)
        snprintf(out, cap, "%s:%lld", l->source, (long long)line);
    else
        snprintf(out, cap, "%s", l->source);
}

static rlhf_status wrong_kind(const struct rlhf__layer *l, const char *path, const char *allowed,
                              const json_t *found, struct rlhf__error *err) {
    char where[1200];
    place(l, path, where, sizeof where);
    return rlhf__fail(err, RLHF_E_INVALID, "%s: %s must be %s, found %s", where, path, allowed,
                      rlhf__json_kind(found));
}

void rlhf__layer_offer_sections(struct rlhf__nearest *near) {
    static const char *const others[] = {
        "algo", "reward", "judge", "environment", RLHF__NAMED_SECTION, "sink"};
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++)
        rlhf__nearest_offer(near, s[i].name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        rlhf__nearest_offer(near, others[i]);
}

static rlhf_status unknown_section(const struct rlhf__layer *l, const char *key,
                                   struct rlhf__error *err) {
    struct rlhf__nearest near = {key, NULL, 0};
    char where[1200], hint[128];
    rlhf__layer_offer_sections(&near);
    place(l, key, where, sizeof where);
    struct rlhf__buf theirs = RLHF__BUF_INIT;
    const int alias = rlhf__alias_hint(key, 0, &theirs);
    rlhf__fail(err, RLHF_E_INVALID, "%s: unknown key \"%s\"%s", where, key,
               alias ? rlhf__buf_text(&theirs) : rlhf__nearest_hint(&near, hint, sizeof hint));
    rlhf__buf_finish(&theirs);
    return RLHF_E_INVALID;
}

// Set a member that the host itself reads, such as `weight` or `isolate`, in a plugin entry.
static rlhf_status host_member(const struct rlhf__layer *l, const char *path, const char *key,
                               const json_t *v, struct rlhf__plugin_config *p,
                               struct rlhf__error *err) {
    if (strcmp(key, "weight") == 0) {
        if (!json_is_number(v)) return wrong_kind(l, path, "a number", v, err);
        p->weight = json_number_value(v);
        return RLHF_OK;
    }
    if (strcmp(key, "isolate") == 0 || strcmp(key, "network") == 0)
        return rlhf__layer_switch(p, key, v) ? RLHF_OK
                                             : wrong_kind(l, path, "true or false", v, err);
    if (!json_is_string(v)) return wrong_kind(l, path, "a string", v, err);
    char **field = strcmp(key, "plugin") == 0 ? &p->plugin : &p->name;
    char *copy = strdup(json_string_value(v));
    if (!copy) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    free(*field);
    *field = copy;
    if (field == &p->plugin) p->from = RLHF__NAME_IN_FILE;
    return RLHF_OK;
}

static int is_host_key(const char *const *keys, const char *key) {
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

static rlhf_status need_objects(struct rlhf__plugin_config *p, struct rlhf__error *err) {
    if (!p->options) p->options = json_object();
    if (!p->origin) p->origin = json_object();
    return p->options && p->origin ? RLHF_OK : rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
}

// Merge an object {"plugin", ..., options} into `p`. `section` is "algo", "judge", "reward.0" or
// "sink.0".
static rlhf_status apply_plugin(const struct rlhf__layer *l, const char *section, int entry,
                                json_t *object, int skip_options, struct rlhf__plugin_config *p,
                                struct rlhf__error *err) {
    const char *key;
    json_t *v;
    RLHF_TRY(need_objects(p, err));
    json_object_foreach(object, key, v) {
        char path[512], where[1200];
        snprintf(path, sizeof path, "%s.%s", section, key);
        if (is_host_key(rlhf__host_keys(entry), key)) {
            RLHF_TRY(host_member(l, path, key, v, p, err));
            continue;
        }
        if (skip_options) continue;
        place(l, path, where, sizeof where);
        json_t *from = json_pack("{ss}", "source", where);
        if (l->users) json_object_set_new(from, "file", json_string(l->source));
        if (json_object_set(p->options, key, v) != 0 ||
            json_object_set_new(p->origin, key, from) != 0)
            return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    }
    return RLHF_OK;
}

static rlhf_status apply_algo(const struct rlhf__layer *l, json_t *v, const char *algo_stem,
                              struct rlhf__config *c, struct rlhf__error *err) {
    if (!json_is_object(v)) return wrong_kind(l, "algo", "an object with a \"plugin\"", v, err);
    const char *named = json_string_value(json_object_get(v, "plugin"));
    char stem[256] = "";
    if (named) rlhf__plugin_stem(named, stem, sizeof stem);
    int other = named && algo_stem && strcmp(stem, algo_stem) != 0;
    return apply_plugin(l, "algo", RLHF__ENTRY_ALGO, v, other, &c->algo, err);
}

void rlhf__layer_name(struct rlhf__plugin_config *p, const char *name) {
    char was[256], is[256];
    if (!p->plugin) return;
    rlhf__plugin_stem(p->plugin, was, sizeof was);
    rlhf__plugin_stem(name, is, sizeof is);
    if (strcmp(was, is) == 0) return;
    rlhf__plugin_config_clear(p);
    p->weight = 1;
}

// Apply "judge" or "environment".
static rlhf_status apply_one(const struct rlhf__layer *l, const char *key, int entry, json_t *v,
                             struct rlhf__plugin_config *p, struct rlhf__error *err) {
    if (!json_is_object(v)) return wrong_kind(l, key, "an object with a \"plugin\"", v, err);
    const char *named = json_string_value(json_object_get(v, "plugin"));
    if (named) rlhf__layer_name(p, named);
    return apply_plugin(l, key, entry, v, 0, p, err);
}

// Apply the list "reward" or "sink", which replaces the earlier list.
static rlhf_status apply_list(const struct rlhf__layer *l, const char *key, int entry, json_t *v,
                              struct rlhf__config *c, struct rlhf__error *err) {
    const int rewards = entry == RLHF__ENTRY_REWARD;
    if (!json_is_array(v)) return wrong_kind(l, key, "a list of objects", v, err);
    if (rewards)
        rlhf__rewards_clear(c);
    else
        rlhf__sinks_clear(c);
    for (size_t i = 0; i < json_array_size(v); i++) {
        json_t *item = json_array_get(v, i);
        char section[32];
        snprintf(section, sizeof section, "%s.%zu", key, i);
        if (!json_is_object(item) || !json_is_string(json_object_get(item, "plugin")))
            return wrong_kind(l, section, "an object with a \"plugin\"", item, err);
        struct rlhf__plugin_config *p = rewards ? rlhf__reward_add(c) : rlhf__sink_add(c);
        if (!p) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
        RLHF_TRY(apply_plugin(l, section, entry, item, 0, p, err));
    }
    return RLHF_OK;
}

static rlhf_status all_given(const struct rlhf__layer *l, const char *section, json_t *v,
                             struct rlhf__config *c, struct rlhf__error *err);

static rlhf_status apply_named(const struct rlhf__layer *l, json_t *v, struct rlhf__config *c,
                               struct rlhf__error *err) {
    const char *name;
    json_t *path;
    if (!json_is_object(v))
        return wrong_kind(l, RLHF__NAMED_SECTION, "an object of model directories", v, err);
    json_object_foreach(v, name, path) {
        char at[512], where[1200];
        snprintf(at, sizeof at, RLHF__NAMED_SECTION ".%s", name);
        place(l, at, where, sizeof where);
        RLHF_TRY(rlhf__named_set(c, name, path, where, err));
    }
    return l->users ? all_given(l, RLHF__NAMED_SECTION, v, c, err) : RLHF_OK;
}

rlhf_status rlhf__layer_given(struct rlhf__config *c, const char *section, const char *key,
                              const char *source, int typed, struct rlhf__error *err) {
    char path[512];
    snprintf(path, sizeof path, "%s.%s", section, key);
    json_t *from = json_pack("{ss,sb}", "source", source, "typed", typed);
    if (json_object_set_new(c->given, path, from) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
}

const char *rlhf__layer_typed_by(const struct rlhf__config *c, const char *section,
                                 const char *key) {
    char path[512];
    snprintf(path, sizeof path, "%s.%s", section, key);
    const json_t *from = json_object_get(c->given, path);
    return json_is_true(json_object_get(from, "typed"))
               ? json_string_value(json_object_get(from, "source"))
               : NULL;
}

static rlhf_status all_given(const struct rlhf__layer *l, const char *section, json_t *v,
                             struct rlhf__config *c, struct rlhf__error *err) {
    const char *key;
    json_t *item;
    json_object_foreach(v, key, item)
        RLHF_TRY(rlhf__layer_given(c, section, key, l->source, 0, err));
    return RLHF_OK;
}

rlhf_status rlhf__layer_apply(const struct rlhf__layer *l, const char *algo_stem,
                              struct rlhf__config *c, struct rlhf__error *err) {
    size_t n;
    const struct rlhf__section *sections = rlhf__sections(&n);
    const char *key;
    json_t *v;
    json_object_foreach(l->json, key, v) {
        size_t i = 0;
        while (i < n && strcmp(sections[i].name, key) != 0)
            i++;
        if (strcmp(key, "algo") == 0) {
            RLHF_TRY(apply_algo(l, v, algo_stem, c, err));
        } else if (strcmp(key, "reward") == 0) {
            RLHF_TRY(apply_list(l, key, RLHF__ENTRY_REWARD, v, c, err));
        } else if (strcmp(key, "sink") == 0) {
            RLHF_TRY(apply_list(l, key, RLHF__ENTRY_SINK, v, c, err));
        } else if (strcmp(key, "judge") == 0) {
            RLHF_TRY(apply_one(l, key, RLHF__ENTRY_JUDGE, v, &c->judge, err));
        } else if (strcmp(key, "environment") == 0) {
            RLHF_TRY(apply_one(l, key, RLHF__ENTRY_ENVIRONMENT, v, &c->environment, err));
        } else if (strcmp(key, RLHF__NAMED_SECTION) == 0) {
            RLHF_TRY(apply_named(l, v, c, err));
        } else if (i == n) {
            return unknown_section(l, key, err);
        } else if (!json_is_object(v)) {
            return wrong_kind(l, key, "an object", v, err);
        } else {
            struct rlhf__origin from = {l->source, key, rlhf__buf_text(&l->text), l->text.len, 0};
            RLHF_TRY(rlhf__opts_apply(&sections[i].table, v, NULL, &from,
                                      (char *)c + sections[i].offset, &c->strings, err));
            if (l->users) RLHF_TRY(all_given(l, key, v, c, err));
        }
    }
    return RLHF_OK;
}
