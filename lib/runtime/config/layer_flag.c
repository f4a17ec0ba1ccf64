// layer_flag.c: applies --set assignments and "X.so:k=v,..." from the command line to a config.
#include "config/layer.h"

#include "config/named.h"

#include "base/file.h"
#include "config/spec.h"
#include "option/aliases.h"
#include "option/nearest.h"
#include "plugin/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH "; rlhf-host help WORD finds settings"

// Reject a setting that two different flags give, because one would be ignored. The same flag may
// be repeated, e.g. to extend a script's command line.
static rlhf_status given_twice(const char *flag, const char *section, const char *key,
                               const char *before, struct rlhf__error *err) {
    if (strcmp(before, flag) == 0)
        return rlhf__fail(err, RLHF_E_INVALID, "%s.%s is given twice by %s", section, key, flag);
    return rlhf__fail(err, RLHF_E_INVALID, "%s: %s.%s is given twice, by %s and by %s", flag,
                      section, key, before, flag);
}

// Set the weight, which the command line may give only once.
static rlhf_status set_weight(const char *flag, const char *section, const json_t *v,
                              const char *raw, struct rlhf__plugin_config *p,
                              struct rlhf__error *err) {
    if (p->weight_flag) return given_twice(flag, section, "weight", p->weight_flag, err);
    const char *quote = json_is_string(v) && *raw && *raw != '"' ? "\"" : "";
    if (!json_is_number(v))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: %s.weight must be a number, found %s%s%s", flag,
                          section, quote, *raw ? raw : "nothing", quote);
    p->weight = json_number_value(v);
    p->weight_flag = flag;
    return RLHF_OK;
}

static rlhf_status set_switch(const char *flag, const char *section, const char *key,
                              const json_t *v, const char *raw, struct rlhf__plugin_config *p,
                              struct rlhf__error *err) {
    int32_t *typed = strcmp(key, "isolate") == 0 ? &p->isolate_typed : &p->network_typed;
    *typed = 1;
    if (rlhf__layer_switch(p, key, v)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s: %s.%s must be true or false, found %s", flag,
                      section, key, *raw ? raw : "nothing");
}

// Set the member `key` of a plugin entry to the typed value `raw`. `entry` is an enum rlhf__entry.
// `flag` and `section` are for messages.
static rlhf_status set_member(const char *flag, const char *section, const char *key,
                              const char *raw, int entry, struct rlhf__plugin_config *p,
                              struct rlhf__error *err) {
    json_t *v = rlhf__typed_value(raw);
    if (!v) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    if (!p->options) p->options = json_object();
    if (!p->origin) p->origin = json_object();
    const char *const *host = rlhf__host_keys(entry);
    while (*host && strcmp(*host, key) != 0)
        host++;
    rlhf_status st = RLHF_OK;
    if (*host && strcmp(key, "weight") == 0) {
        st = set_weight(flag, section, v, raw, p, err);
    } else if (*host && (strcmp(key, "isolate") == 0 || strcmp(key, "network") == 0)) {
        st = set_switch(flag, section, key, v, raw, p, err);
    } else if (*host) {
        char **field = strcmp(key, "plugin") == 0 ? &p->plugin : &p->name;
        free(*field);
        *field = strdup(raw);
        if (!*field) st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
        if (field == &p->plugin) p->from = RLHF__NAME_TYPED;
    } else if (json_object_set(p->options, key, v) != 0 ||
               json_object_set_new(p->origin, key,
                                   json_pack("{ss,ss}", "source", flag, "raw", raw)) != 0) {
        st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    }
    json_decref(v);
    return st;
}

// ---- X.so:k=v,... -----------------------------------------------------------------------------

// The entry whose members rlhf__spec_pairs sets.
struct member {
    const char *flag, *section;
    struct rlhf__plugin_config *p;
    int32_t entry;
};

static rlhf_status set_pair(void *arg, const char *key, const char *value,
                            struct rlhf__error *err) {
    const struct member *m = arg;
    return set_member(m->flag, m->section, key, value, m->entry, m->p, err);
}

// Returns the kind of the entry `p` of `c` (enum rlhf__entry).
static int entry_of(const struct rlhf__config *c, const struct rlhf__plugin_config *p) {
    if (p == &c->algo) return RLHF__ENTRY_ALGO;
    if (p == &c->judge) return RLHF__ENTRY_JUDGE;
    if (p == &c->environment) return RLHF__ENTRY_ENVIRONMENT;
    for (size_t i = 0; i < c->n_sink; i++)
        if (p == &c->sink[i]) return RLHF__ENTRY_SINK;
    return RLHF__ENTRY_REWARD;
}

rlhf_status rlhf__spec_apply(const char *spec, const char *flag, struct rlhf__plugin_config *p,
                             struct rlhf__config *c, struct rlhf__error *err) {
    RLHF_TRY(rlhf__typed_utf8(flag, spec, err));
    char section[32];
    const int entry = entry_of(c, p);
    snprintf(section, sizeof section, "%s",
             entry == RLHF__ENTRY_JUDGE         ? "judge"
             : entry == RLHF__ENTRY_ENVIRONMENT ? "environment"
                                                : "algo");
    if (entry == RLHF__ENTRY_SINK)
        snprintf(section, sizeof section, "sink.%zu", (size_t)(p - c->sink));
    if (entry == RLHF__ENTRY_REWARD) rlhf__reward_section(p, (size_t)(p - c->reward), section);
    const struct member m = {flag, section, p, entry};
    const size_t n = rlhf__spec_name_len(spec);
    if (n == 0) return rlhf__fail(err, RLHF_E_INVALID, "%s: the plugin's name is empty", flag);
    char *name = strndup(spec, n);
    if (!name) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    if (entry == RLHF__ENTRY_JUDGE || entry == RLHF__ENTRY_ENVIRONMENT) rlhf__layer_name(p, name);
    free(p->plugin);
    p->plugin = name;
    p->from = RLHF__NAME_TYPED;
    return spec[n] ? rlhf__spec_pairs(spec + n + 1, flag, set_pair, (void *)(uintptr_t)&m, err)
                   : RLHF_OK;
}

// ---- --set ------------------------------------------------------------------------------------

// Set a member of an entry of the list `of`, "reward" or "sink".
static rlhf_status set_entry(const char *of, const char *path, const char *raw,
                             struct rlhf__config *c, struct rlhf__error *err) {
    const int entry = strcmp(of, "reward") == 0 ? RLHF__ENTRY_REWARD : RLHF__ENTRY_SINK;
    struct rlhf__plugin_config *list = entry == RLHF__ENTRY_REWARD ? c->reward : c->sink;
    const size_t n = entry == RLHF__ENTRY_REWARD ? c->n_reward : c->n_sink;
    char *end, section[32];
    unsigned long i = strtoul(path, &end, 10);
    if (end == path || *end != '.' || !end[1])
        return rlhf__fail(err, RLHF_E_INVALID, "--set: %s.%s: write %s.<number>.<key>", of, path,
                          of);
    if (i >= n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--set: %s.%s: there %s %zu %s%s, numbered "
                          "from 0",
                          of, path, n == 1 ? "is" : "are", n, of, n == 1 ? "" : "s");
    snprintf(section, sizeof section, "%s.%lu", of, i);
    return set_member("--set", section, end + 1, raw, entry, &list[i], err);
}

static rlhf_status set_section(const char *flag, const struct rlhf__section *s, const char *key,
                               const char *raw, struct rlhf__config *c, struct rlhf__error *err) {
    const char *before = rlhf__layer_typed_by(c, s->name, key);
    if (before && strcmp(before, flag) != 0) return given_twice(flag, s->name, key, before, err);
    json_t *v = rlhf__typed_value(raw);
    if (!v) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    struct rlhf__origin from = {flag, s->name, NULL, 0, 0};
    rlhf_status st =
        rlhf__opts_set(&s->table, key, v, raw, &from, (char *)c + s->offset, &c->strings, err);
    json_decref(v);
    if (rlhf__opt_find(&s->table, key) < 0) {
        const size_t n = strlen(err->text);
        if (n == 0 || err->text[n - 1] != ')') // no other name was suggested
            snprintf(err->text + n, sizeof err->text - n, SEARCH);
    }
    return st == RLHF_OK ? rlhf__layer_given(c, s->name, key, flag, 1, err) : st;
}

static rlhf_status set_named(const char *flag, const char *name, const char *raw,
                             struct rlhf__config *c, struct rlhf__error *err) {
    const char *before = rlhf__layer_typed_by(c, RLHF__NAMED_SECTION, name);
    if (before && strcmp(before, flag) != 0)
        return given_twice(flag, RLHF__NAMED_SECTION, name, before, err);
    json_t *v = json_string(raw); // never a number: a directory may be named "1"
    if (!v) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = rlhf__named_set(c, name, v, flag, err);
    json_decref(v);
    return st == RLHF_OK ? rlhf__layer_given(c, RLHF__NAMED_SECTION, name, flag, 1, err) : st;
}

static rlhf_status set_path(const char *flag, const char *section, const char *key, const char *raw,
                            struct rlhf__config *c, struct rlhf__error *err) {
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    struct rlhf__nearest near = {section, NULL, 0};
    if (strcmp(section, "algo") == 0)
        return set_member("--set", "algo", key, raw, RLHF__ENTRY_ALGO, &c->algo, err);
    if (strcmp(section, "reward") == 0 || strcmp(section, "sink") == 0)
        return set_entry(section, key, raw, c, err);
    if (strcmp(section, RLHF__NAMED_SECTION) == 0) return set_named(flag, key, raw, c, err);
    if (strcmp(section, "judge") == 0) {
        if (strcmp(key, "plugin") == 0) rlhf__layer_name(&c->judge, raw);
        return set_member("--set", "judge", key, raw, RLHF__ENTRY_JUDGE, &c->judge, err);
    }
    if (strcmp(section, "environment") == 0) {
        if (strcmp(key, "plugin") == 0) rlhf__layer_name(&c->environment, raw);
        return set_member("--set", section, key, raw, RLHF__ENTRY_ENVIRONMENT, &c->environment,
                          err);
    }
    for (size_t i = 0; i < n; i++)
        if (strcmp(s[i].name, section) == 0) return set_section(flag, &s[i], key, raw, c, err);
    rlhf__layer_offer_sections(&near);
    struct rlhf__buf theirs = RLHF__BUF_INIT;
    rlhf__alias_hint(key, 0, &theirs);
    rlhf__fail(err, RLHF_E_INVALID, "--set: unknown key \"%s.%s\"%s", section, key,
               theirs.len ? rlhf__buf_text(&theirs) : SEARCH);
    rlhf__buf_finish(&theirs);
    if (near.best)
        rlhf__fail(err, RLHF_E_INVALID, "--set: unknown key \"%s.%s\" (did you mean \"%s.%s\"?)",
                   section, key, near.best, key);
    return RLHF_E_INVALID;
}

rlhf_status rlhf__layer_set(const char *flag, const char *assignment, struct rlhf__config *c,
                            struct rlhf__error *err) {
    RLHF_TRY(rlhf__typed_utf8(flag, assignment, err));
    char *copy = strdup(assignment);
    if (!copy) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    char *value = strchr(copy, '=');
    if (value) *value++ = '\0';
    char *key = strchr(copy, '.');
    rlhf_status st;
    if (!value || !key || key == copy || !key[1]) {
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "--set: \"%s\" is not of the form "
                        "section.key=value, e.g. optim.lr=1e-5",
                        assignment);
    } else {
        *key++ = '\0';
        st = set_path(flag, copy, key, value, c, err);
    }
    free(copy);
    return st;
}
