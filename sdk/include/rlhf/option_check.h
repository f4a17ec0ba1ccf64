// rlhf/option_check.h: validates one row of an option table; shared by the host and the test kit.
// options_check.h validates a whole table.
//
// Plugins do not need this header. It is not part of the contract and may change in any version.
#ifndef RLHF_OPTION_CHECK_H
#define RLHF_OPTION_CHECK_H

#include "option.h"

#include <math.h>
#include <stdio.h>

// ---- a value and its field ----

// Size in bytes of an option value of that type in the config struct; 0 for an unknown type. [any]
static inline uint32_t rlhf_opt_value_size(int32_t type) {
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
    case RLHF_T_LIST:
        return sizeof(const char *);
    case RLHF_T_I64_LIST:
        return sizeof(rlhf_i64_list);
    case RLHF_T_F64_LIST:
        return sizeof(rlhf_f64_list);
    default:
        return 0;
    }
}

// Returns whether every item of a LIST's default is one of the option's choices.
static inline int rlhf_opt_list_in_choices(const rlhf_opt *o) {
    for (uint32_t i = 0; o->choices && o->l_def && o->l_def[i]; i++) {
        uint32_t k = 0;
        while (o->choices[k] && strcmp(o->choices[k], o->l_def[i]) != 0)
            k++;
        if (!o->choices[k]) return 0;
    }
    return 1;
}

static inline int rlhf_opt_def_in_range(const rlhf_opt *o) {
    int low = o->flags & RLHF_OPT_MIN_OPEN ? o->f_def > o->f_min : o->f_def >= o->f_min;
    int high = o->flags & RLHF_OPT_MAX_OPEN ? o->f_def < o->f_max : o->f_def <= o->f_max;
    return low && high;
}

// Checks an option for a config struct of config_size bytes. Returns NULL if the option is valid,
// or else the error, as text that follows the option's name in a message. [any]
static inline const char *rlhf_opt_fault(const rlhf_opt *o, uint32_t config_size) {
    const uint32_t size = rlhf_opt_value_size(o->type);
    if (size == 0) return "has a type this host does not know";
    if (o->offset % (size < sizeof(void *) ? size : sizeof(void *)) != 0)
        return "has a misaligned offset";
    if (size > config_size || o->offset > config_size - size)
        return "lies outside the config struct";
    int required = (o->flags & RLHF_OPT_REQUIRED) != 0;
    if (o->type == RLHF_T_BOOL && (o->i_def < 0 || o->i_def > 1)) return "has a default not 0 or 1";
    if (o->type == RLHF_T_ENUM) {
        int64_t n = 0;
        while (o->choices && o->choices[n])
            n++;
        if (n == 0) return "has no choices";
        if (o->i_def < 0 || o->i_def >= n) return "has a default that is not a choice";
    }
    if (o->type == RLHF_T_LIST) {
        if (o->choices && !o->choices[0]) return "has no choices";
        if (!rlhf_opt_list_in_choices(o)) return "has a default with an item that is not a choice";
    }
    if (o->type == RLHF_T_I64_LIST && o->i_min > o->i_max) return "has a minimum above its maximum";
    if (o->type == RLHF_T_F64_LIST && !(o->f_min <= o->f_max))
        return "has a minimum above its maximum";
    if (o->type == RLHF_T_I64) {
        if (o->i_min > o->i_max) return "has a minimum above its maximum";
        if (!required && (o->i_def < o->i_min || o->i_def > o->i_max))
            return "has a default outside its range";
    }
    if (o->type == RLHF_T_F64) {
        if (!(o->f_min <= o->f_max)) return "has a minimum above its maximum";
        if (!required && !rlhf_opt_def_in_range(o)) return "has a default outside its range";
    }
    return NULL;
}

// ---- members that apply to a type ----

enum rlhf_x_opt_member {
    RLHF_X_HAS_I_DEF = 1,
    RLHF_X_HAS_I_RANGE = 2,
    RLHF_X_HAS_F_DEF = 4,
    RLHF_X_HAS_F_RANGE = 8,
    RLHF_X_HAS_S_DEF = 16,
    RLHF_X_HAS_CHOICES = 32,
    RLHF_X_HAS_L_DEF = 64,
    RLHF_X_HAS_TABLE = 128
};

struct rlhf_x_opt_type {
    const char *name;
    uint32_t members, flags; // flags: besides RLHF_OPT_REQUIRED
};

// `type` is one of enum rlhf_opt_type.
static inline struct rlhf_x_opt_type rlhf_x_opt_type_of(int32_t type) {
    static const struct rlhf_x_opt_type types[] = {
        {"BOOL", RLHF_X_HAS_I_DEF | RLHF_X_HAS_I_RANGE, 0},
        {"I64", RLHF_X_HAS_I_DEF | RLHF_X_HAS_I_RANGE, RLHF_OPT_NULL_IS_0},
        {"F64", RLHF_X_HAS_F_DEF | RLHF_X_HAS_F_RANGE, RLHF_OPT_MIN_OPEN | RLHF_OPT_MAX_OPEN},
        {"STR", RLHF_X_HAS_S_DEF, RLHF_OPT_TRUSTED},
        {"PATH", RLHF_X_HAS_S_DEF, RLHF_OPT_TRUSTED},
        {"ENUM", RLHF_X_HAS_I_DEF | RLHF_X_HAS_CHOICES, 0},
        {"LIST", RLHF_X_HAS_CHOICES | RLHF_X_HAS_L_DEF, RLHF_OPT_TRUSTED},
        {"I64_LIST", RLHF_X_HAS_I_RANGE, 0},
        {"F64_LIST", RLHF_X_HAS_F_RANGE, RLHF_OPT_MIN_OPEN | RLHF_OPT_MAX_OPEN},
        {"TABLE", RLHF_X_HAS_TABLE, 0}};
    return types[type - RLHF_T_BOOL];
}

static inline int rlhf_x_is_set(double v) { return fpclassify(v) != FP_ZERO; }

// Returns the name of the first member that is set but does not apply to the type, or NULL.
static inline const char *rlhf_x_opt_needless(const rlhf_opt *o, uint32_t members) {
    const struct {
        uint32_t member;
        int set;
        const char *name;
    } all[] = {{RLHF_X_HAS_I_DEF, o->i_def != 0, "i_def"},
               {RLHF_X_HAS_I_RANGE, o->i_min != 0, "i_min"},
               {RLHF_X_HAS_I_RANGE, o->i_max != 0, "i_max"},
               {RLHF_X_HAS_F_DEF, rlhf_x_is_set(o->f_def), "f_def"},
               {RLHF_X_HAS_F_RANGE, rlhf_x_is_set(o->f_min), "f_min"},
               {RLHF_X_HAS_F_RANGE, rlhf_x_is_set(o->f_max), "f_max"},
               {RLHF_X_HAS_S_DEF, o->s_def != NULL, "s_def"},
               {RLHF_X_HAS_CHOICES, o->choices != NULL, "choices"},
               {RLHF_X_HAS_L_DEF, o->l_def != NULL, "l_def"},
               {RLHF_X_HAS_TABLE, o->table != NULL, "table"},
               {RLHF_X_HAS_TABLE, o->n_table != 0, "n_table"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].set && !(all[i].member & members)) return all[i].name;
    return NULL;
}

static inline int rlhf_x_lowest_bit(uint32_t bits) {
    int at = 0;
    while (!(bits >> at & 1))
        at++;
    return at;
}

static inline int rlhf_x_opt_flags_refused(const rlhf_opt *o, const char *key, char *out,
                                           size_t cap) {
    static const char *const names[] = {"RLHF_OPT_REQUIRED", "RLHF_OPT_MIN_OPEN",
                                        "RLHF_OPT_MAX_OPEN", "RLHF_OPT_NULL_IS_0",
                                        "RLHF_OPT_TRUSTED"};
    const struct rlhf_x_opt_type t = rlhf_x_opt_type_of(o->type);
    const uint32_t known = 2 * RLHF_OPT_TRUSTED - 1;
    const uint32_t allowed = t.flags | (o->type == RLHF_T_TABLE ? 0 : (uint32_t)RLHF_OPT_REQUIRED);
    if (o->flags & ~known)
        return snprintf(out, cap,
                        "its option \"%s\" sets bit %d of its flags, which this host does not know",
                        key, rlhf_x_lowest_bit(o->flags & ~known));
    if (o->flags & ~allowed)
        return snprintf(out, cap, "its option \"%s\" sets %s, which does not apply to its type %s",
                        key, names[rlhf_x_lowest_bit(o->flags & ~allowed)], t.name);
    return 0;
}

// ---- the values of members ----

static inline int rlhf_x_opt_numbers_refused(const rlhf_opt *o, const char *key, char *out,
                                             size_t cap) {
    if (o->type == RLHF_T_BOOL && (o->i_min != 0 || o->i_max < 0 || o->i_max > 1))
        return snprintf(out, cap,
                        "its option \"%s\" has i_min %lld and i_max %lld; a BOOL must have i_min "
                        "0, and i_max 1 or 0",
                        key, (long long)o->i_min, (long long)o->i_max);
    if (!isfinite(o->f_def))
        return snprintf(out, cap, "its option \"%s\" has f_def %g; a default must be finite", key,
                        o->f_def);
    if (isnan(o->f_min) || isnan(o->f_max))
        return snprintf(out, cap,
                        "its option \"%s\" has %s nan; it must be a finite number or infinite", key,
                        isnan(o->f_min) ? "f_min" : "f_max");
    return 0;
}

static inline int rlhf_x_opt_required_refused(const rlhf_opt *o, const char *key, char *out,
                                              size_t cap) {
    if (!(o->flags & RLHF_OPT_REQUIRED)) return 0;
    const char *member = o->i_def != 0             ? "i_def"
                         : rlhf_x_is_set(o->f_def) ? "f_def"
                         : o->s_def                ? "s_def"
                         : o->l_def                ? "l_def"
                                                   : NULL;
    if (!member) return 0;
    return snprintf(out, cap,
                    "its option \"%s\" sets %s and RLHF_OPT_REQUIRED; a required option has no "
                    "default, so %s must be 0",
                    key, member, member);
}

// Returns the length of the UTF-8 character at s, which ends with NUL, or 0 if it is not valid.
static inline size_t rlhf_x_utf8_len(const char *s) {
    const unsigned char *p = (const unsigned char *)s;
    if (p[0] < 0x80) return 1;
    const size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    const int too_long = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    const int surrogate = p[0] == 0xed && p[1] > 0x9f, beyond = p[0] == 0xf4 && p[1] > 0x8f;
    return too_long || surrogate || beyond ? 0 : len;
}

// Returns whether a text is UTF-8 without control characters (C0, DEL and C1); NULL is.
static inline int rlhf_x_text_is_plain(const char *text) {
    for (size_t n, at = 0; text && text[at]; at += n) {
        const unsigned char *p = (const unsigned char *)text + at;
        n = rlhf_x_utf8_len(text + at);
        if (n == 0 || p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0)) return 0;
    }
    return 1;
}

static inline int rlhf_x_opt_text_refused(const char *text, const char *key, const char *member,
                                          char *out, size_t cap) {
    for (size_t n, at = 0; text && text[at]; at += n) {
        n = rlhf_x_utf8_len(text + at);
        if (n) continue;
        return snprintf(out, cap, "its option \"%s\" has \"%.60s\" in %s; it must be UTF-8", key,
                        text, member);
    }
    return 0;
}

static inline int rlhf_x_opt_texts_refused(const rlhf_opt *o, const char *key, char *out,
                                           size_t cap) {
    if (!rlhf_x_text_is_plain(o->help))
        return snprintf(out, cap,
                        "its option \"%s\" has the help \"%.60s\"; it must be UTF-8 without "
                        "control characters",
                        key, o->help);
    int bad = rlhf_x_opt_text_refused(o->s_def, key, "s_def", out, cap);
    for (uint32_t i = 0; !bad && o->choices && o->choices[i]; i++)
        bad = rlhf_x_opt_text_refused(o->choices[i], key, "choices", out, cap);
    for (uint32_t i = 0; !bad && o->l_def && o->l_def[i]; i++)
        bad = rlhf_x_opt_text_refused(o->l_def[i], key, "l_def", out, cap);
    return bad;
}

// A comma separates the items of a LIST and the options after a plugin's name.
static inline int rlhf_x_opt_choices_refused(const rlhf_opt *o, const char *key, char *out,
                                             size_t cap) {
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
            return snprintf(out, cap, "its option \"%s\" has \"%.60s\" as item %u of choices; %s",
                            key, c, (unsigned)i, why);
    }
    return 0;
}

// Checks the members and flags of one row. If it breaks a rule of option.h, writes the reason to
// out[cap] and returns the length of that text; otherwise returns 0. The text may contain bytes of
// the row. An unknown type is not refused here, but by rlhf_opt_fault. [any]
static inline int rlhf_opt_row_refused(const rlhf_opt *o, char *out, size_t cap) {
    if (o->type < RLHF_T_BOOL || o->type > RLHF_T_TABLE) return 0;
    const char *key = o->key ? o->key : "";
    const struct rlhf_x_opt_type t = rlhf_x_opt_type_of(o->type);
    int bad = rlhf_x_opt_flags_refused(o, key, out, cap);
    if (bad) return bad;
    if (o->reserved)
        return snprintf(out, cap, "its option \"%s\" sets `reserved` to %u; it must be 0", key,
                        (unsigned)o->reserved);
    const char *member = rlhf_x_opt_needless(o, t.members);
    if (member)
        return snprintf(out, cap,
                        "its option \"%s\" sets %s, which does not apply to its type %s; it must "
                        "be 0",
                        key, member, t.name);
    bad = rlhf_x_opt_numbers_refused(o, key, out, cap);
    if (!bad) bad = rlhf_x_opt_required_refused(o, key, out, cap);
    if (!bad) bad = rlhf_x_opt_texts_refused(o, key, out, cap);
    return bad ? bad : rlhf_x_opt_choices_refused(o, key, out, cap);
}

#endif
