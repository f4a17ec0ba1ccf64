// option_rules.c: see option_rules.h.
#include "plugin/option_rules.h"

#include "base/printable.h"

#include <math.h>
#include <string.h>

// ---- members that apply to a type ----

enum member {
    HAS_I_DEF = 1,
    HAS_I_RANGE = 2,
    HAS_F_DEF = 4,
    HAS_F_RANGE = 8,
    HAS_S_DEF = 16,
    HAS_CHOICES = 32,
    HAS_L_DEF = 64,
    HAS_TABLE = 128
};

static const struct type {
    const char *name;
    uint32_t members, flags; // flags: besides RLHF_OPT_REQUIRED
} types[] = {
    [RLHF_T_BOOL] = {"BOOL", HAS_I_DEF | HAS_I_RANGE, 0},
    [RLHF_T_I64] = {"I64", HAS_I_DEF | HAS_I_RANGE, RLHF_OPT_NULL_IS_0},
    [RLHF_T_F64] = {"F64", HAS_F_DEF | HAS_F_RANGE, RLHF_OPT_MIN_OPEN | RLHF_OPT_MAX_OPEN},
    [RLHF_T_STR] = {"STR", HAS_S_DEF, RLHF_OPT_TRUSTED},
    [RLHF_T_PATH] = {"PATH", HAS_S_DEF, RLHF_OPT_TRUSTED},
    [RLHF_T_ENUM] = {"ENUM", HAS_I_DEF | HAS_I_RANGE | HAS_CHOICES, 0},
    [RLHF_T_LIST] = {"LIST", HAS_CHOICES | HAS_L_DEF, RLHF_OPT_TRUSTED},
    [RLHF_T_I64_LIST] = {"I64_LIST", HAS_I_RANGE, 0},
    [RLHF_T_F64_LIST] = {"F64_LIST", HAS_F_RANGE, RLHF_OPT_MIN_OPEN | RLHF_OPT_MAX_OPEN},
    [RLHF_T_TABLE] = {"TABLE", HAS_TABLE, 0},
};

static int is_set(double v) { return fpclassify(v) != FP_ZERO; }

// Returns the name of the first member that is set but does not apply to the type, or NULL.
static const char *needless(const rlhf_opt *o, uint32_t members) {
    const struct {
        uint32_t member;
        int set;
        const char *name;
    } all[] = {
        {HAS_I_DEF, o->i_def != 0, "i_def"},      {HAS_I_RANGE, o->i_min != 0, "i_min"},
        {HAS_I_RANGE, o->i_max != 0, "i_max"},    {HAS_F_DEF, is_set(o->f_def), "f_def"},
        {HAS_F_RANGE, is_set(o->f_min), "f_min"}, {HAS_F_RANGE, is_set(o->f_max), "f_max"},
        {HAS_S_DEF, o->s_def != NULL, "s_def"},   {HAS_CHOICES, o->choices != NULL, "choices"},
        {HAS_L_DEF, o->l_def != NULL, "l_def"},   {HAS_TABLE, o->table != NULL, "table"},
        {HAS_TABLE, o->n_table != 0, "n_table"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].set && !(all[i].member & members)) return all[i].name;
    return NULL;
}

static const char *flag_name(uint32_t flag) {
    switch (flag) {
    case RLHF_OPT_REQUIRED:
        return "RLHF_OPT_REQUIRED";
    case RLHF_OPT_MIN_OPEN:
        return "RLHF_OPT_MIN_OPEN";
    case RLHF_OPT_MAX_OPEN:
        return "RLHF_OPT_MAX_OPEN";
    case RLHF_OPT_NULL_IS_0:
        return "RLHF_OPT_NULL_IS_0";
    case RLHF_OPT_TRUSTED:
        return "RLHF_OPT_TRUSTED";
    default:
        return NULL;
    }
}

// rlhf__opts_check reports an unknown type.
static rlhf_status check_row(const rlhf_opt *o, struct rlhf__error *err) {
    if (o->type < RLHF_T_BOOL || o->type > RLHF_T_TABLE) return RLHF_OK;
    const struct type *t = &types[o->type];
    const char *key = o->key ? o->key : "";
    const uint32_t known = RLHF_OPT_REQUIRED | RLHF_OPT_MIN_OPEN | RLHF_OPT_MAX_OPEN |
                           RLHF_OPT_NULL_IS_0 | RLHF_OPT_TRUSTED;
    const uint32_t allowed = t->flags | (o->type == RLHF_T_TABLE ? 0 : RLHF_OPT_REQUIRED);
    if (o->flags & ~known)
        return rlhf__fail(
            err, RLHF_E_UNSUPPORTED,
            "its option \"%s\" sets bit %d of its flags, which this host does not know", key,
            __builtin_ctz(o->flags & ~known));
    if (o->flags & ~allowed)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" sets %s, which does not apply to its type %s", key,
                          flag_name(1u << __builtin_ctz(o->flags & ~allowed)), t->name);
    if (o->reserved)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" sets `reserved` to %u; it must be 0", key,
                          o->reserved);
    const char *member = needless(o, t->members);
    if (!member) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_UNSUPPORTED,
        "its option \"%s\" sets %s, which does not apply to its type %s; it must be 0", key, member,
        t->name);
}

// The rows that include other tables are not options themselves.
static rlhf_status check_includes(const rlhf_plugin *d, struct rlhf__error *err) {
    for (uint32_t i = 0; i < d->n_opts; i++) {
        rlhf_opt o;
        rlhf_opt_row(d->opts, d->opt_stride, i, &o);
        if (o.type != RLHF_T_TABLE) continue;
        if (check_row(&o, err) < 0)
            return rlhf__error_context(err, "row %u of its option table", i);
        if (o.key || o.help)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "row %u of its option table has the type TABLE and a key or a help "
                              "text; both must be NULL",
                              i);
    }
    return RLHF_OK;
}

// ---- keys ----

static rlhf_status check_key(const char *key, struct rlhf__error *err) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    char shown[72];
    if (strspn(key, allowed) != strlen(key))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" has a name with other characters than letters from a "
                          "to z, digits, '_' and '-'",
                          rlhf__printable(key, shown, sizeof shown));
    if (rlhf__is_hosts(key))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" has a name that begins with \"host_\"; such names are "
                          "for options of later hosts",
                          rlhf__printable(key, shown, sizeof shown));
    return RLHF_OK;
}

static rlhf_status check_keys(const struct rlhf__opt_table *t, const char *const *host_keys,
                              struct rlhf__error *err) {
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        RLHF_TRY(check_key(o.key, err));
    }
    for (; *host_keys; host_keys++)
        if (rlhf__opt_find(t, *host_keys) >= 0)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "its option \"%s\" has a name that the host uses itself", *host_keys);
    return RLHF_OK;
}

rlhf_status rlhf__option_rules_read(const rlhf_plugin *d, const char *const *host_keys,
                                    struct rlhf__opt_table *out, struct rlhf__error *err) {
    RLHF_TRY(rlhf__opt_table_init(out, d->opts, d->n_opts, d->opt_stride, err));
    RLHF_TRY(check_includes(d, err));
    for (uint32_t i = 0; i < out->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(out, i, &o);
        RLHF_TRY(check_row(&o, err));
    }
    RLHF_TRY(rlhf__opts_check(out, d->config_size, err));
    return host_keys ? check_keys(out, host_keys, err) : RLHF_OK;
}
