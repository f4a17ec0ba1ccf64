// effect.c: see effect.h.
#include "config/effect.h"

#include <string.h>

// The rule by which path is without effect, NULL when none is.
static const struct rlhf__effect_rule *rule_of(const struct rlhf__effect_rule *rules, size_t n,
                                               const char *path) {
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(rules[i].path);
        int group = strchr("._", rules[i].path[len - 1]) != NULL;
        int same = group ? strncmp(path, rules[i].path, len) == 0 : !strcmp(path, rules[i].path);
        int excepted = rules[i].except && strcmp(path, rules[i].except) == 0;
        if (same && rules[i].idle && !excepted) return &rules[i];
    }
    return NULL;
}

static int has_default(const rlhf_opt *o, const void *config) {
    const char *at = (const char *)config + o->offset, *text;
    int32_t small;
    int64_t integer;
    double number;
    switch (o->type) {
    case RLHF_T_BOOL:
    case RLHF_T_ENUM:
        memcpy(&small, at, sizeof small);
        return small == o->i_def;
    case RLHF_T_I64:
        memcpy(&integer, at, sizeof integer);
        return integer == o->i_def;
    case RLHF_T_F64:
        memcpy(&number, at, sizeof number);
        return number == o->f_def;
    default:
        memcpy(&text, at, sizeof text);
        return strcmp(text ? text : "", o->s_def ? o->s_def : "") == 0;
    }
}

// 1 when the setting "section.key" of c has the value it has when nobody says anything.
static int is_default(const struct rlhf__config *c, const char *path) {
    size_t n, len = strcspn(path, ".");
    const struct rlhf__section *s = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++) {
        if (strlen(s[i].name) != len || strncmp(s[i].name, path, len) != 0) continue;
        int32_t at = rlhf__opt_find(&s[i].table, path + len + 1);
        if (at < 0) return 1;
        rlhf_opt o;
        rlhf__opt_at(&s[i].table, (uint32_t)at, &o);
        return has_default(&o, (const char *)c + s[i].offset);
    }
    return 1;
}

rlhf_status rlhf__effect_check(const struct rlhf__config *c, const struct rlhf__effect_rule *rules,
                               size_t n, struct rlhf__log *log, struct rlhf__error *err) {
    struct rlhf__buf idle = RLHF__BUF_INIT;
    const char *path, *file = "";
    json_t *from;
    rlhf_status st = RLHF_OK;
    json_object_foreach(c->given, path, from) {
        const struct rlhf__effect_rule *r = rule_of(rules, n, path);
        if (!r || is_default(c, path)) continue;
        const char *source = json_string_value(json_object_get(from, "source"));
        const char *who = r->who ? r->who : "", *space = r->who ? " " : "";
        if (json_is_true(json_object_get(from, "typed"))) {
            st = rlhf__fail(err, RLHF_E_INVALID, "%s: %s has no effect here: %s%s%s", source, path,
                            who, space, r->why);
            break;
        }
        file = source;
        rlhf__buf_printf(&idle, "%s%s (%s%s%s)", idle.len ? ", " : "", path, who, space, r->why);
    }
    if (st == RLHF_OK && idle.len)
        rlhf__logf(log, RLHF_LOG_WARN, "%s: without effect here: %s", file, rlhf__buf_text(&idle));
    rlhf__buf_free(&idle);
    return st;
}
