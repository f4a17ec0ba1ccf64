// option_json.c: a config struct as JSON, and a table as JSON Schema (draft 2020-12).
#include "option/options.h"

#include <string.h>

static json_t *text_or_null(const char *s) { return s ? json_string(s) : json_null(); }

// A text field or default; the list that it holds for an RLHF__OPT_LIST.
static json_t *text_json(const rlhf_opt *o, const char *s) {
    return o->flags & RLHF__OPT_LIST ? json_loads(s, 0, NULL) : text_or_null(s);
}

// A choice by its name; "true" and "false" become JSON booleans, so that a switch that becomes a
// choice still reads and writes the same values.
static json_t *choice_json(const char *name) {
    if (strcmp(name, "true") == 0) return json_true();
    return strcmp(name, "false") == 0 ? json_false() : json_string(name);
}

// The field at `at` as a new JSON value, NULL when out of memory.
static json_t *field_json(const rlhf_opt *o, const char *at) {
    int32_t small;
    int64_t big;
    double real;
    const char *text;
    switch (o->type) {
    case RLHF_T_BOOL:
        memcpy(&small, at, sizeof small);
        return json_boolean(small);
    case RLHF_T_ENUM:
        memcpy(&small, at, sizeof small);
        return choice_json(o->choices[small]);
    case RLHF_T_I64:
        memcpy(&big, at, sizeof big);
        return json_integer(big);
    case RLHF_T_F64:
        memcpy(&real, at, sizeof real);
        return json_real(real);
    default:
        memcpy(&text, at, sizeof text);
        return text_json(o, text);
    }
}

rlhf_status rlhf__opts_to_json(const struct rlhf__opt_table *t, const void *config, json_t *object,
                               struct rlhf__error *err) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        json_t *v = field_json(&o, (const char *)config + o.offset);
        if (!v || json_object_set_new(object, o.key, v) != 0)
            return rlhf__fail(err, RLHF_E_NOMEM,
                              "cannot store \"%s\": out of memory, or its text "
                              "is not UTF-8",
                              o.key);
    }
    return RLHF_OK;
}

json_t *rlhf__opt_default(const rlhf_opt *o) {
    switch (o->type) {
    case RLHF_T_BOOL:
        return json_boolean(o->i_def);
    case RLHF_T_ENUM:
        return choice_json(o->choices[o->i_def]);
    case RLHF_T_I64:
        return json_integer(o->i_def);
    case RLHF_T_F64:
        return json_real(o->f_def);
    default:
        return text_json(o, o->s_def);
    }
}

static void add_range(json_t *s, const rlhf_opt *o) {
    if (o->type == RLHF_T_I64) {
        if (o->i_min != INT64_MIN) json_object_set_new(s, "minimum", json_integer(o->i_min));
        if (o->i_max != INT64_MAX) json_object_set_new(s, "maximum", json_integer(o->i_max));
        return;
    }
    const char *low = o->flags & RLHF_OPT_MIN_OPEN ? "exclusiveMinimum" : "minimum";
    const char *high = o->flags & RLHF_OPT_MAX_OPEN ? "exclusiveMaximum" : "maximum";
    if (o->f_min > -1e30) json_object_set_new(s, low, json_real(o->f_min));
    if (o->f_max < 1e30) json_object_set_new(s, high, json_real(o->f_max));
}

json_t *rlhf__opt_schema(const rlhf_opt *o) {
    static const char *const types[] = {"", "boolean", "integer", "number", "string", "string", ""};
    json_t *s = json_object();
    if (!s) return NULL;
    if (o->help) json_object_set_new(s, "description", rlhf__json_text(o->help));
    if (o->type == RLHF_T_ENUM) {
        json_t *list = json_array();
        for (size_t i = 0; o->choices[i]; i++)
            json_array_append_new(list, choice_json(o->choices[i]));
        json_object_set_new(s, "enum", list);
    } else if (o->flags & RLHF__OPT_LIST) {
        json_object_set_new(s, "type", json_pack("[sss]", "array", "string", "integer"));
    } else if (o->type >= RLHF_T_STR && !o->s_def && !(o->flags & RLHF_OPT_REQUIRED)) {
        json_object_set_new(s, "type", json_pack("[ss]", "string", "null"));
    } else {
        json_object_set_new(s, "type", json_string(types[o->type]));
    }
    if (o->type == RLHF_T_I64 || o->type == RLHF_T_F64) add_range(s, o);
    if (!(o->flags & RLHF_OPT_REQUIRED)) json_object_set_new(s, "default", rlhf__opt_default(o));
    return s;
}

json_t *rlhf__opts_schema(const struct rlhf__opt_table *t) {
    json_t *properties = json_object();
    for (uint32_t i = 0; properties && i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        json_object_set_new(properties, o.key, rlhf__opt_schema(&o));
    }
    return properties;
}
