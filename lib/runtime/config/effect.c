// effect.c: see effect.h.
#include "config/effect.h"

#include <string.h>

// Returns 1 if `path` is in `list`, whose items are separated by one space.
static int is_one_of(const char *list, const char *path) {
    size_t n = strlen(path);
    for (const char *at = list; at && (at = strstr(at, path)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return 1;
    return 0;
}

// Returns the rule that makes `path` ineffective, or NULL.
static const struct rlhf__effect_rule *rule_of(const struct rlhf__effect_rule *rules, size_t n,
                                               const char *path) {
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(rules[i].path);
        int group = strchr("._", rules[i].path[len - 1]) != NULL;
        int same = group ? strncmp(path, rules[i].path, len) == 0 : !strcmp(path, rules[i].path);
        int excepted = is_one_of(rules[i].except, path);
        if (same && rules[i].unused && !excepted) return &rules[i];
    }
    return NULL;
}

// Returns 1 if the setting `path` ("section.key") of `c` has its default value.
static int is_default(const struct rlhf__config *c, const char *path) {
    size_t n, len = strcspn(path, ".");
    const struct rlhf__section *s = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++) {
        if (strlen(s[i].name) != len || strncmp(s[i].name, path, len) != 0) continue;
        int32_t at = rlhf__opt_find(&s[i].table, path + len + 1);
        if (at < 0) return 1;
        rlhf_opt o;
        rlhf__opt_at(&s[i].table, (uint32_t)at, &o);
        return rlhf__opt_is_default(&o, (const char *)c + s[i].offset);
    }
    return 1;
}

// Settings without effect that were given in files.
struct in_files {
    struct rlhf__buf list;
    const char *last; // the last file with such a setting
};

static int is_typed(const json_t *from) { return json_is_true(json_object_get(from, "typed")); }

// Report that the setting `path` does nothing; `from` says where the setting was given. Returns
// RLHF_E_INVALID if the user typed the setting, or if `files` is NULL. Otherwise adds the setting
// to *files.
static rlhf_status found_unused(const char *path, const json_t *from, const char *who,
                                const char *why, struct in_files *files, struct rlhf__error *err) {
    const char *source = json_string_value(json_object_get(from, "source"));
    const char *space = *who ? " " : "";
    if (is_typed(from) || !files)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: %s has no effect here: %s%s%s", source, path,
                          who, space, why);
    files->last = source;
    rlhf__buf_printf(&files->list, "%s%s (%s%s%s)", files->list.len ? ", " : "", path, who, space,
                     why);
    return RLHF_OK;
}

rlhf_status rlhf__effect_check(const struct rlhf__config *c, const struct rlhf__effect_rule *rules,
                               size_t n, struct rlhf__log *log, struct rlhf__error *err) {
    struct in_files files = {RLHF__BUF_INIT, ""};
    const char *path;
    json_t *from;
    rlhf_status st = RLHF_OK;
    json_object_foreach(c->given, path, from) {
        const struct rlhf__effect_rule *r = rule_of(rules, n, path);
        if (!r || is_default(c, path)) continue;
        st = found_unused(path, from, r->who ? r->who : "", r->why, &files, err);
        if (st != RLHF_OK) break;
    }
    json_object_foreach(c->unused, path, from) {
        if (st != RLHF_OK) break;
        const char *why = json_string_value(json_object_get(from, "why"));
        st = found_unused(path, from, "", why, &files, err);
    }
    if (st == RLHF_OK && files.list.len)
        rlhf__logf(log, RLHF_LOG_WARN, "%s: without effect here: %s", files.last,
                   rlhf__buf_text(&files.list));
    rlhf__buf_finish(&files.list);
    return st;
}

rlhf_status rlhf__effect_refuse_typed(const struct rlhf__config *c, const char *path,
                                      const char *why, struct rlhf__error *err) {
    const json_t *from = json_object_get(c->given, path);
    return is_typed(from) ? found_unused(path, from, "", why, NULL, err) : RLHF_OK;
}
