// options.c: reads and checks option tables, fills config structs with defaults, and writes them as
// JSON; see options.h. option_value.c reads the values.
#include "option/option_list.h"

#include <rlhf/options_check.h>

#include <stdlib.h>
#include <string.h>

// ---- the rows of a table ----

rlhf_status rlhf__opt_table_init(struct rlhf__opt_table *t, const rlhf_opt *opts, uint32_t rows,
                                 uint32_t stride, struct rlhf__error *err) {
    char why[512];
    *t = (struct rlhf__opt_table){opts, 0, stride};
    return rlhf_opt_table_refused(opts, rows, stride, &t->n, why, sizeof why)
               ? rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s", why)
               : RLHF_OK;
}

void rlhf__opt_at(const struct rlhf__opt_table *t, uint32_t i, rlhf_opt *out) {
    (void)rlhf_opt_at(t->opts, t->n, t->stride, i,
                      out); // at most t->n rows exist, because each row has at least one option
}

int32_t rlhf__opt_find(const struct rlhf__opt_table *t, const char *key) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (strcmp(o.key, key) == 0) return (int32_t)i;
    }
    return -1;
}

rlhf_status rlhf__opts_check(const struct rlhf__opt_table *t, uint32_t config_size,
                             struct rlhf__error *err) {
    char why[512];
    return rlhf_opts_refused(t->opts, t->n, t->stride, config_size, why, sizeof why)
               ? rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s", why)
               : RLHF_OK;
}

// ---- a whole struct ----

rlhf_status rlhf__opts_defaults(const struct rlhf__opt_table *t, void *config,
                                struct rlhf__strings *strings, struct rlhf__error *err) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        char *at = (char *)config + o.offset;
        int32_t small = (int32_t)o.i_def;
        const char *text = NULL;
        const char *const *list = rlhf__list_default(&o);
        switch (o.type) {
        case RLHF_T_BOOL:
        case RLHF_T_ENUM:
            memcpy(at, &small, sizeof small);
            break;
        case RLHF_T_I64:
            memcpy(at, &o.i_def, sizeof o.i_def);
            break;
        case RLHF_T_F64:
            memcpy(at, &o.f_def, sizeof o.f_def);
            break;
        case RLHF_T_LIST:
            memcpy(at, &list, sizeof list);
            break;
        case RLHF_T_I64_LIST:
        case RLHF_T_F64_LIST:
            memset(at, 0, rlhf_opt_value_size(o.type));
            break;
        default:
            text = rlhf__strings_add(strings, o.s_def);
            if (o.s_def && !text) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
            memcpy(at, &text, sizeof text);
        }
    }
    return RLHF_OK;
}

rlhf_status rlhf__opts_required(const struct rlhf__opt_table *t, const json_t *object,
                                const struct rlhf__origin *from, struct rlhf__error *err) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (!(o.flags & RLHF_OPT_REQUIRED) || (object && json_object_get(object, o.key))) continue;
        struct rlhf__buf allowed = RLHF__BUF_INIT;
        rlhf__opt_allowed(&o, &allowed);
        rlhf__fail(err, RLHF_E_INVALID, "%s: %s%s%s is missing; it must be %s", from->source,
                   from->section, *from->section ? "." : "", o.key, rlhf__buf_text(&allowed));
        rlhf__buf_finish(&allowed);
        return RLHF_E_INVALID;
    }
    return RLHF_OK;
}

rlhf_status rlhf__opts_new(const struct rlhf__opt_table *t, uint32_t config_size,
                           const json_t *object, const struct rlhf__origin *from,
                           struct rlhf__strings *strings, void **out, struct rlhf__error *err) {
    void *config = calloc(1, config_size ? config_size : 1);
    *out = NULL;
    if (!config) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory (%u bytes)", config_size);
    rlhf_status st = rlhf__opts_defaults(t, config, strings, err);
    if (st == RLHF_OK && object) st = rlhf__opts_apply(t, object, NULL, from, config, strings, err);
    if (st == RLHF_OK) st = rlhf__opts_required(t, object, from, err);
    if (st == RLHF_OK)
        *out = config;
    else
        free(config);
    return st;
}

// ---- as JSON, and as JSON Schema (draft 2020-12) ----

static json_t *text_or_null(const char *s) { return s ? json_string(s) : json_null(); }

// Returns the value of a string field, or of its default, as JSON. With RLHF__OPT_ENDS or
// RLHF__OPT_OBJECT, the string is itself the text of a JSON value, and the result is that value.
static json_t *text_json(const rlhf_opt *o, const char *s) {
    return o->flags & (RLHF__OPT_ENDS | RLHF__OPT_OBJECT) ? json_loads(s, 0, NULL)
                                                          : text_or_null(s);
}

// Returns the JSON form of a choice. It is a string, or a boolean if the choice is named "true" or
// "false". So if a later version turns a boolean option into a choice, the option's JSON stays the
// same.
static json_t *choice_json(const char *name) {
    if (strcmp(name, "true") == 0) return json_true();
    return strcmp(name, "false") == 0 ? json_false() : json_string(name);
}

json_t *rlhf__opt_json(const rlhf_opt *o, const void *config) {
    const char *at = (const char *)config + o->offset, *text;
    const char *const *list;
    int32_t small;
    int64_t big;
    double real;
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
    case RLHF_T_LIST:
        memcpy(&list, at, sizeof list);
        return rlhf__list_json(list);
    case RLHF_T_I64_LIST:
    case RLHF_T_F64_LIST:
        return rlhf__numbers_json(o, at);
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
        json_t *v = rlhf__opt_json(&o, config);
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
    case RLHF_T_LIST:
        return rlhf__list_json(rlhf__list_default(o));
    case RLHF_T_I64_LIST:
    case RLHF_T_F64_LIST:
        return json_array();
    default:
        return text_json(o, o->s_def);
    }
}

static void add_range(json_t *s, const rlhf_opt *o) {
    if (o->type == RLHF_T_I64 || o->type == RLHF_T_I64_LIST) {
        if (o->i_min != INT64_MIN) json_object_set_new(s, "minimum", json_integer(o->i_min));
        if (o->i_max != INT64_MAX) json_object_set_new(s, "maximum", json_integer(o->i_max));
        return;
    }
    const char *low = o->flags & RLHF_OPT_MIN_OPEN ? "exclusiveMinimum" : "minimum";
    const char *high = o->flags & RLHF_OPT_MAX_OPEN ? "exclusiveMaximum" : "maximum";
    if (o->f_min > -1e30) json_object_set_new(s, low, json_real(o->f_min));
    if (o->f_max < 1e30) json_object_set_new(s, high, json_real(o->f_max));
}

static json_t *choices_json(const rlhf_opt *o) {
    json_t *list = json_array();
    for (size_t i = 0; o->choices[i]; i++)
        json_array_append_new(list, o->type == RLHF_T_LIST ? json_string(o->choices[i])
                                                           : choice_json(o->choices[i]));
    return list;
}

json_t *rlhf__opt_schema(const rlhf_opt *o) {
    static const char *const types[] = {"", "boolean", "integer", "number", "string", "string", ""};
    json_t *s = json_object();
    if (!s) return NULL;
    if (o->help) json_object_set_new(s, "description", rlhf__json_text(o->help));
    if (o->type == RLHF_T_ENUM) {
        json_object_set_new(s, "enum", choices_json(o));
    } else if (o->type == RLHF_T_LIST) {
        json_object_set_new(s, "type", json_string("array"));
        json_object_set_new(s, "items",
                            o->choices ? json_pack("{so}", "enum", choices_json(o))
                                       : json_pack("{ss}", "type", "string"));
    } else if (o->type == RLHF_T_I64_LIST || o->type == RLHF_T_F64_LIST) {
        json_t *item = json_pack("{ss}", "type", o->type == RLHF_T_I64_LIST ? "integer" : "number");
        add_range(item, o);
        json_object_set_new(s, "type", json_string("array"));
        json_object_set_new(s, "items", item);
    } else if (o->flags & RLHF__OPT_ENDS) {
        json_object_set_new(s, "type", json_pack("[sss]", "array", "string", "integer"));
    } else if (o->flags & RLHF__OPT_OBJECT) {
        json_object_set_new(s, "type", json_string("object"));
    } else if (o->type >= RLHF_T_STR && !o->s_def && !(o->flags & RLHF_OPT_REQUIRED)) {
        json_object_set_new(s, "type", json_pack("[ss]", "string", "null"));
    } else {
        const size_t known = sizeof types / sizeof *types;
        json_object_set_new(s, "type", json_string((size_t)o->type < known ? types[o->type] : ""));
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

// ---- members that belong to the host ----

const char *const *rlhf__host_keys(int entry) {
    return rlhf_host_keys(entry == RLHF__ENTRY_REWARD        ? RLHF_KIND_REWARD
                          : entry == RLHF__ENTRY_JUDGE       ? RLHF_KIND_SINK
                          : entry == RLHF__ENTRY_SINK        ? RLHF_KIND_SINK
                          : entry == RLHF__ENTRY_ENVIRONMENT ? RLHF_KIND_ENVIRONMENT
                                                             : RLHF_KIND_ALGO);
}

int rlhf__is_hosts(const char *name) { return rlhf_is_name_of_host(name); }
