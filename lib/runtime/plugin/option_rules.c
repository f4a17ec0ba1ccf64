// option_rules.c: see option_rules.h.
#include "plugin/option_rules.h"

#include "base/printable.h"

#include <rlhf/option_check.h>

#include <math.h>
#include <stdlib.h>
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
    [RLHF_T_ENUM] = {"ENUM", HAS_I_DEF | HAS_CHOICES, 0},
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

// ---- the values of members ----

static rlhf_status check_numbers(const rlhf_opt *o, const char *key, struct rlhf__error *err) {
    if (o->type == RLHF_T_BOOL && (o->i_min != 0 || o->i_max < 0 || o->i_max > 1))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" has i_min %lld and i_max %lld; a BOOL must have i_min "
                          "0, and i_max 1 or 0",
                          key, (long long)o->i_min, (long long)o->i_max);
    if (!isfinite(o->f_def))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" has f_def %g; a default must be finite", key,
                          o->f_def);
    if (isnan(o->f_min) || isnan(o->f_max))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" has %s nan; it must be a finite number or infinite",
                          key, isnan(o->f_min) ? "f_min" : "f_max");
    return RLHF_OK;
}

static rlhf_status check_required(const rlhf_opt *o, const char *key, struct rlhf__error *err) {
    if (!(o->flags & RLHF_OPT_REQUIRED)) return RLHF_OK;
    const char *member = o->i_def != 0      ? "i_def"
                         : is_set(o->f_def) ? "f_def"
                         : o->s_def         ? "s_def"
                         : o->l_def         ? "l_def"
                                            : NULL;
    if (!member) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "its option \"%s\" sets %s and RLHF_OPT_REQUIRED; a required option has no "
                      "default, so %s must be 0",
                      key, member, member);
}

static rlhf_status check_text(const char *text, const char *key, const char *member,
                              struct rlhf__error *err) {
    char shown[72];
    uint32_t c;
    const size_t len = text ? strlen(text) : 0;
    for (size_t at = 0, n; at < len; at += n) {
        n = rlhf__char_at(text + at, len - at, &c);
        if (n > 0) continue;
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" has \"%s\" in %s; it must be UTF-8", key,
                          rlhf__printable(text, shown, sizeof shown), member);
    }
    return RLHF_OK;
}

static rlhf_status check_texts(const rlhf_opt *o, const char *key, struct rlhf__error *err) {
    RLHF_TRY(check_text(o->s_def, key, "s_def", err));
    for (uint32_t i = 0; o->choices && o->choices[i]; i++)
        RLHF_TRY(check_text(o->choices[i], key, "choices", err));
    for (uint32_t i = 0; o->l_def && o->l_def[i]; i++)
        RLHF_TRY(check_text(o->l_def[i], key, "l_def", err));
    return RLHF_OK;
}

// A comma separates the items of a LIST and the options after a plugin's name.
static rlhf_status check_choices(const rlhf_opt *o, const char *key, struct rlhf__error *err) {
    char shown[72];
    for (uint32_t i = 0; o->choices && o->choices[i]; i++) {
        const char *c = o->choices[i];
        uint32_t before = 0;
        while (before < i && strcmp(o->choices[before], c) != 0)
            before++;
        const char *why = !*c              ? "a choice must not be empty"
                          : strchr(c, ',') ? "a choice must not contain a comma"
                          : before < i     ? "an earlier one is the same"
                                           : NULL;
        if (why)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "its option \"%s\" has \"%s\" as item %u of choices; %s", key,
                              rlhf__printable(c, shown, sizeof shown), i, why);
    }
    return RLHF_OK;
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
    if (member)
        return rlhf__fail(
            err, RLHF_E_UNSUPPORTED,
            "its option \"%s\" sets %s, which does not apply to its type %s; it must be 0", key,
            member, t->name);
    RLHF_TRY(check_numbers(o, key, err));
    RLHF_TRY(check_required(o, key, err));
    RLHF_TRY(check_texts(o, key, err));
    return check_choices(o, key, err);
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
        for (uint64_t k = 0; k < o.n_table; k++) {
            rlhf_opt inner;
            rlhf_opt_row(o.table, d->opt_stride, k, &inner);
            if (inner.offset <= UINT32_MAX - o.offset) continue;
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "row %u of its option table has offset %u, so its option \"%s\" lies "
                              "outside the config struct",
                              i, o.offset, inner.key ? inner.key : "");
        }
    }
    return RLHF_OK;
}

// ---- fields ----

struct field {
    uint64_t begin, end; // bytes of the config struct
    uint32_t option;
};

static int by_begin(const void *a, const void *b) {
    const struct field *x = a, *y = b;
    return x->begin != y->begin ? (x->begin > y->begin) - (x->begin < y->begin)
                                : (x->option > y->option) - (x->option < y->option);
}

// No two options share bytes of the config struct. After sorting, it is enough to compare
// neighbours.
static rlhf_status check_fields(const struct rlhf__opt_table *t, struct rlhf__error *err) {
    rlhf_opt o, next;
    struct field *all = calloc((size_t)t->n + 1, sizeof *all);
    if (!all) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf__opt_at(t, i, &o);
        all[i] = (struct field){o.offset, (uint64_t)o.offset + rlhf_opt_value_size(o.type), i};
    }
    qsort(all, t->n, sizeof *all, by_begin);
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 1; i < t->n && st == RLHF_OK; i++) {
        if (all[i - 1].end <= all[i].begin) continue;
        rlhf__opt_at(t, all[i - 1].option, &o);
        rlhf__opt_at(t, all[i].option, &next);
        st = rlhf__fail(err, RLHF_E_UNSUPPORTED,
                        "its options \"%s\" (offset %u) and \"%s\" (offset %u) share bytes of the "
                        "config struct; each option must have a field of its own",
                        o.key, o.offset, next.key, next.offset);
    }
    free(all);
    return st;
}

// ---- keys ----

static rlhf_status check_key(const char *key, struct rlhf__error *err) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    char shown[72];
    if (strspn(key, allowed) != strlen(key))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option \"%s\" has a name that does not consist of letters from a to "
                          "z and A to Z, digits, '_' and '-'",
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
    if (d->n_opts == 0 && (d->opts || d->opt_stride || d->config_size))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "it has no options (n_opts is 0) but sets %s; it must be 0",
                          d->opts         ? "opts"
                          : d->opt_stride ? "opt_stride"
                                          : "config_size");
    RLHF_TRY(rlhf__opt_table_init(out, d->opts, d->n_opts, d->opt_stride, err));
    RLHF_TRY(check_includes(d, err));
    for (uint32_t i = 0; i < out->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(out, i, &o);
        RLHF_TRY(check_row(&o, err));
    }
    RLHF_TRY(rlhf__opts_check(out, d->config_size, err));
    if (host_keys) RLHF_TRY(check_keys(out, host_keys, err));
    return check_fields(out, err);
}
