// options.c: the strings pool, reading tables, and checking that a table is sound; see options.h.
// Values are read in option_value.c and written in option_json.c.
#include "config/options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rlhf__strings_free(struct rlhf__strings *s) {
    for (size_t i = 0; i < s->n; i++)
        free(s->item[i]);
    free(s->item);
    *s = (struct rlhf__strings){0};
}

const char *rlhf__strings_add(struct rlhf__strings *s, const char *text) {
    if (!text) return NULL;
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        char **item = realloc(s->item, cap * sizeof *item);
        if (!item) return NULL;
        s->item = item;
        s->cap = cap;
    }
    char *copy = strdup(text);
    if (copy) s->item[s->n++] = copy;
    return copy;
}

void rlhf__opt_at(const struct rlhf__opt_table *t, uint32_t i, rlhf_opt *out) {
    size_t stride = t->stride ? t->stride : sizeof(rlhf_opt);
    memset(out, 0, sizeof *out);
    memcpy(out, (const char *)t->opts + stride * i, stride < sizeof *out ? stride : sizeof *out);
}

int32_t rlhf__opt_find(const struct rlhf__opt_table *t, const char *key) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (strcmp(o.key, key) == 0) return (int32_t)i;
    }
    return -1;
}

static uint32_t value_size(int32_t type) {
    switch (type) {
    case RLHF_T_BOOL:
    case RLHF_T_ENUM:
        return sizeof(int32_t);
    case RLHF_T_I64:
        return sizeof(int64_t);
    case RLHF_T_F64:
        return sizeof(double);
    case RLHF_T_STR:
    case RLHF_T_PATH:
        return sizeof(const char *);
    default:
        return 0;
    }
}

// What is wrong with one option, NULL when nothing.
static const char *fault(const rlhf_opt *o, uint32_t config_size) {
    uint32_t size = value_size(o->type);
    if (size == 0) return "has a type this host does not know";
    if (o->offset % size != 0) return "has a misaligned offset";
    if (size > config_size || o->offset > config_size - size)
        return "lies outside the config struct";
    int required = (o->flags & RLHF_OPT_REQUIRED) != 0;
    if (o->type == RLHF_T_BOOL && (o->i_def < 0 || o->i_def > 1)) return "has a default not 0 or 1";
    if (o->type == RLHF_T_ENUM) {
        int64_t n = 0;
        while (o->choices && o->choices[n])
            n++;
        if (n == 0) return "has no choices";
        if (o->i_def < 0 || o->i_def >= n) return "has a default that is no choice";
    }
    if (o->type == RLHF_T_I64) {
        if (o->i_min > o->i_max) return "has a minimum above its maximum";
        if (!required && (o->i_def < o->i_min || o->i_def > o->i_max))
            return "has a default outside its range";
    }
    if (o->type == RLHF_T_F64) {
        if (!(o->f_min <= o->f_max)) return "has a minimum above its maximum";
        if (!required && !(o->f_def >= o->f_min && o->f_def <= o->f_max))
            return "has a default outside its range";
    }
    return NULL;
}

rlhf_status rlhf__opts_check(const struct rlhf__opt_table *t, uint32_t config_size,
                             struct rlhf__error *err) {
    if (t->n > 0 && !t->opts)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its option table is NULL");
    if (t->stride && (t->stride < sizeof(rlhf_opt) || t->stride % _Alignof(rlhf_opt) != 0))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option table has a stride of %u bytes, at least "
                          "%zu are needed",
                          t->stride, sizeof(rlhf_opt));
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (!o.key || !*o.key)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its option %u has no key", i);
        const char *why = fault(&o, config_size);
        if (why) return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its option \"%s\" %s", o.key, why);
        if (rlhf__opt_find(t, o.key) != (int32_t)i)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its option \"%s\" is there twice", o.key);
    }
    return RLHF_OK;
}

rlhf_status rlhf__opts_defaults(const struct rlhf__opt_table *t, void *config,
                                struct rlhf__strings *strings, struct rlhf__error *err) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        char *at = (char *)config + o.offset;
        int32_t small = (int32_t)o.i_def;
        const char *text = NULL;
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
        rlhf__buf_free(&allowed);
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
    rlhf_status status = rlhf__opts_defaults(t, config, strings, err);
    if (status == RLHF_OK && object)
        status = rlhf__opts_apply(t, object, NULL, from, config, strings, err);
    if (status == RLHF_OK) status = rlhf__opts_required(t, object, from, err);
    if (status == RLHF_OK)
        *out = config;
    else
        free(config);
    return status;
}
