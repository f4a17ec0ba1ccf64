// rlhf/option.h: a plugin's options as one static table.
//
// Plugin contract 1.0, frozen: it only grows.
//
// The host parses the JSON, validates every value against the table, suggests the nearest key for a
// misspelled one and fills the plugin's config struct. A plugin never sees JSON. `rlhf-host plugin
// info` prints the table or, with `--json`, a JSON Schema of it. Model plugins use the same kind of
// table to read a checkpoint's config.json. There, unknown keys are allowed, a key "a.b" means
// member b of object a, and "a[]" means each item of list a.
//
// The plugin defines the config struct. The host owns the strings and lists in the struct. Types of
// fields:
//   BOOL, ENUM  int32_t;
//   I64         int64_t;
//   F64         double;
//   STR, PATH   const char *, NULL if the default is NULL and the user set nothing;
//   LIST        const char *const *, ended by NULL; never NULL itself;
//   I64_LIST    rlhf_i64_list;
//   F64_LIST    rlhf_f64_list.
//
// The macros below do not compile for a field of another type.
#ifndef RLHF_OPTION_H
#define RLHF_OPTION_H

#include "base.h"

enum rlhf_opt_type {
    RLHF_T_BOOL = 1, // int32_t 0 or 1
    RLHF_T_I64 = 2,
    RLHF_T_F64 = 3,
    RLHF_T_STR = 4,
    RLHF_T_PATH = 5, // a STR that names a file or directory
    RLHF_T_ENUM = 6, // int32_t index into choices
    RLHF_T_LIST = 7, // const char *const *, a NULL-terminated list of strings; users write a,b
    // Lists of integers and of numbers; users write 1,2. Each item must be in the option's range.
    // The default is the empty list.
    RLHF_T_I64_LIST = 8,
    RLHF_T_F64_LIST = 9,
    RLHF_T_TABLE = 10 // not an option: includes the rows of another table, see RLHF_OPT_TABLE
};

// The fields of I64_LIST and F64_LIST. `ptr` may be NULL if len is 0. Frozen.
typedef struct rlhf_i64_list {
    const int64_t *ptr;
    uint64_t len;
} rlhf_i64_list;

typedef struct rlhf_f64_list {
    const double *ptr;
    uint64_t len;
} rlhf_f64_list;

enum rlhf_opt_flag {
    RLHF_OPT_REQUIRED = 1, // without a default: the user must set it
    RLHF_OPT_MIN_OPEN = 2, // the value must be > min
    RLHF_OPT_MAX_OPEN = 4, // the value must be < max
    // An I64 in a model's config.json: null means 0, and a missing key means the default. Without
    // this flag, null is treated as a missing key.
    RLHF_OPT_NULL_IS_0 = 8,
    // The option (STR, PATH or LIST) names code that the plugin runs, a destination for data that
    // the plugin sends, or a secret that it sends. A resumed run takes the value from its run
    // directory only if the user allows it (--trust-run). Kernels plugins must not have such an
    // option.
    RLHF_OPT_TRUSTED = 16
};

// One row. Tables are read with the descriptor's opt_stride, so that rows can grow. A member that
// does not apply to the row's type is 0. Defaults and choices are UTF-8, and a help text also has
// no control characters. The host refuses a plugin with a row that breaks a rule below.
typedef struct rlhf_opt rlhf_opt;
struct rlhf_opt {
    // key: letters from a to z and A to Z, digits, '_' and '-', and not a name of the host
    // (base.h). In the table of a model, it is a key of config.json, and may have any other bytes.
    const char *key, *help; // [R:help]
    int32_t type;           // enum rlhf_opt_type
    uint32_t flags;         // bits of enum rlhf_opt_flag that apply to the type
    // offset: into the config struct, bytes. The fields of two options must not overlap, not even
    // if their rows are in different tables.
    uint32_t offset, reserved;
    // i_def, f_def, s_def, l_def: the default; 0 with RLHF_OPT_REQUIRED. f_def is finite.
    // i_def: BOOL, I64, ENUM. i_min, i_max: I64; I64_LIST: the range of its items. For a BOOL,
    // i_min is 0, and i_max is 1 or 0.
    int64_t i_def, i_min, i_max;
    // f_def: F64. f_min, f_max: F64; F64_LIST: the range of its items. The two may be infinite, but
    // not NaN.
    double f_def, f_min, f_max;
    const char *s_def; // STR, PATH
    // ENUM: the choices; LIST: the allowed items. An array that ends with NULL, with one entry or
    // more before that. All are different, none is empty, and none contains a comma. For a LIST
    // that allows any item, `choices` itself is NULL.
    const char *const *choices;
    const char *const *l_def; // LIST: its default, ended by NULL; NULL = empty
    const rlhf_opt *table;    // TABLE: its rows, which must not be TABLEs; same stride
    uint64_t n_table;
};

// Offset of field f in T. Compiles only if the field has the type that the row's macro requires; an
// enum counts as an int32_t.
#ifdef __cplusplus
extern "C++" {
template <class Field> struct rlhf_x_opt_field {
    enum { holds = __is_enum(Field) && sizeof(Field) == 4 ? RLHF_T_ENUM : 0 };
};
template <> struct rlhf_x_opt_field<int> {
    enum { holds = RLHF_T_ENUM };
};
template <> struct rlhf_x_opt_field<long> {
    enum { holds = sizeof(long) == 8 ? RLHF_T_I64 : 0 };
};
template <> struct rlhf_x_opt_field<long long> {
    enum { holds = RLHF_T_I64 };
};
template <> struct rlhf_x_opt_field<double> {
    enum { holds = RLHF_T_F64 };
};
template <> struct rlhf_x_opt_field<const char *> {
    enum { holds = RLHF_T_STR };
};
template <> struct rlhf_x_opt_field<const char *const *> {
    enum { holds = RLHF_T_LIST };
};
template <> struct rlhf_x_opt_field<rlhf_i64_list> {
    enum { holds = RLHF_T_I64_LIST };
};
template <> struct rlhf_x_opt_field<rlhf_f64_list> {
    enum { holds = RLHF_T_F64_LIST };
};
template <class Field> struct rlhf_x_opt_i32 {
    static_assert(+rlhf_x_opt_field<Field>::holds == RLHF_T_ENUM,
                  "the field of an option that is BOOL or ENUM must be an int32_t");
    enum { right = 0 };
};
template <class Field> struct rlhf_x_opt_i64 {
    static_assert(+rlhf_x_opt_field<Field>::holds == RLHF_T_I64,
                  "the field of an option that is I64 must be an int64_t");
    enum { right = 0 };
};
template <class Field> struct rlhf_x_opt_f64 {
    static_assert(+rlhf_x_opt_field<Field>::holds == RLHF_T_F64,
                  "the field of an option that is F64 must be a double");
    enum { right = 0 };
};
template <class Field> struct rlhf_x_opt_list {
    static_assert(+rlhf_x_opt_field<Field>::holds == RLHF_T_LIST,
                  "the field of an option that is LIST must be a const char *const *");
    enum { right = 0 };
};
template <class Field> struct rlhf_x_opt_i64_list {
    static_assert(+rlhf_x_opt_field<Field>::holds == RLHF_T_I64_LIST,
                  "the field of an option that is I64_LIST must be an rlhf_i64_list");
    enum { right = 0 };
};
template <class Field> struct rlhf_x_opt_f64_list {
    static_assert(+rlhf_x_opt_field<Field>::holds == RLHF_T_F64_LIST,
                  "the field of an option that is F64_LIST must be an rlhf_f64_list");
    enum { right = 0 };
};
template <class Field> struct rlhf_x_opt_text {
    static_assert(+rlhf_x_opt_field<Field>::holds == RLHF_T_STR,
                  "the field of an option that is STR or PATH must be a const char *");
    enum { right = 0 };
};
}
#define RLHF_X_OPT_RIGHT(T, f, what)                                                               \
    rlhf_x_opt_##what<decltype(static_cast<T *>(nullptr)->f)>::right
#define RLHF_X_OPT_I32_AT(T, f)      (offsetof(T, f) + RLHF_X_OPT_RIGHT(T, f, i32))
#define RLHF_X_OPT_I64_AT(T, f)      (offsetof(T, f) + RLHF_X_OPT_RIGHT(T, f, i64))
#define RLHF_X_OPT_F64_AT(T, f)      (offsetof(T, f) + RLHF_X_OPT_RIGHT(T, f, f64))
#define RLHF_X_OPT_TEXT_AT(T, f)     (offsetof(T, f) + RLHF_X_OPT_RIGHT(T, f, text))
#define RLHF_X_OPT_LIST_AT(T, f)     (offsetof(T, f) + RLHF_X_OPT_RIGHT(T, f, list))
#define RLHF_X_OPT_I64_LIST_AT(T, f) (offsetof(T, f) + RLHF_X_OPT_RIGHT(T, f, i64_list))
#define RLHF_X_OPT_F64_LIST_AT(T, f) (offsetof(T, f) + RLHF_X_OPT_RIGHT(T, f, f64_list))
#else
// clang-format off
#define RLHF_X_OPT_AT(T, f, right, text)                                                           \
    (offsetof(T, f) + 0 * sizeof(struct {                                                          \
        char none;                                                                                 \
        _Static_assert(right, "the field of option " #f " must be " text);                         \
    }))
#define RLHF_X_OPT_I32_AT(T, f)                                                                    \
    RLHF_X_OPT_AT(T, f, _Generic(((T *)0)->f, int: 1, unsigned: 1, default: 0),                    \
                  "an int32_t (BOOL, ENUM)")
#define RLHF_X_OPT_I64_AT(T, f)                                                                    \
    RLHF_X_OPT_AT(T, f, _Generic(((T *)0)->f, long: sizeof(long) == 8, long long: 1, default: 0),  \
                  "an int64_t (I64)")
#define RLHF_X_OPT_F64_AT(T, f)                                                                    \
    RLHF_X_OPT_AT(T, f, _Generic(((T *)0)->f, double: 1, default: 0), "a double (F64)")
#define RLHF_X_OPT_TEXT_AT(T, f)                                                                   \
    RLHF_X_OPT_AT(T, f, _Generic(((T *)0)->f, const char *: 1, default: 0),                        \
                  "a const char * (STR, PATH)")
#define RLHF_X_OPT_LIST_AT(T, f)                                                                   \
    RLHF_X_OPT_AT(T, f, _Generic(((T *)0)->f, const char *const *: 1, default: 0),                 \
                  "a const char *const * (LIST)")
#define RLHF_X_OPT_I64_LIST_AT(T, f)                                                               \
    RLHF_X_OPT_AT(T, f, _Generic(((T *)0)->f, rlhf_i64_list: 1, default: 0),                       \
                  "an rlhf_i64_list (I64_LIST)")
#define RLHF_X_OPT_F64_LIST_AT(T, f)                                                               \
    RLHF_X_OPT_AT(T, f, _Generic(((T *)0)->f, rlhf_f64_list: 1, default: 0),                       \
                  "an rlhf_f64_list (F64_LIST)")
// clang-format on
#endif

// Table rows for field f of config struct T. The option's key is the field's name.
#define RLHF_OPT_BOOL(T, f, def, text)                                                             \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_BOOL, .offset = RLHF_X_OPT_I32_AT(T, f),         \
        .i_def = (def), .i_max = 1                                                                 \
    }
#define RLHF_OPT_I64(T, f, def, lo, hi, text)                                                      \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_I64, .offset = RLHF_X_OPT_I64_AT(T, f),          \
        .i_def = (def), .i_min = (lo), .i_max = (hi)                                               \
    }
#define RLHF_OPT_I64_OR_NULL(T, f, def, lo, hi, text)                                              \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_I64, .flags = RLHF_OPT_NULL_IS_0,                \
        .offset = RLHF_X_OPT_I64_AT(T, f), .i_def = (def), .i_min = (lo), .i_max = (hi)            \
    }
// `bits` is a set of bits of enum rlhf_opt_flag.
#define RLHF_OPT_F64_FLAGS(T, f, bits, def, lo, hi, text)                                          \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_F64, .flags = (bits),                            \
        .offset = RLHF_X_OPT_F64_AT(T, f), .f_def = (def), .f_min = (lo), .f_max = (hi)            \
    }
// A number x with lo <= x <= hi (F64), lo < x <= hi (F64_ABOVE) or lo <= x < hi (F64_BELOW).
#define RLHF_OPT_F64(T, f, def, lo, hi, text) RLHF_OPT_F64_FLAGS(T, f, 0, def, lo, hi, text)
#define RLHF_OPT_F64_ABOVE(T, f, def, lo, hi, text)                                                \
    RLHF_OPT_F64_FLAGS(T, f, RLHF_OPT_MIN_OPEN, def, lo, hi, text)
#define RLHF_OPT_F64_BELOW(T, f, def, lo, hi, text)                                                \
    RLHF_OPT_F64_FLAGS(T, f, RLHF_OPT_MAX_OPEN, def, lo, hi, text)
#define RLHF_OPT_STR(T, f, def, text)                                                              \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_STR, .offset = RLHF_X_OPT_TEXT_AT(T, f),         \
        .s_def = (def)                                                                             \
    }
#define RLHF_OPT_PATH(T, f, def, text)                                                             \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_PATH, .offset = RLHF_X_OPT_TEXT_AT(T, f),        \
        .s_def = (def)                                                                             \
    }
#define RLHF_OPT_ENUM(T, f, def, names, text)                                                      \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_ENUM, .offset = RLHF_X_OPT_I32_AT(T, f),         \
        .i_def = (def), .choices = (names)                                                         \
    }
// A list of strings. `items` lists the allowed strings, or is NULL if any string is allowed. `def`
// is the default, or NULL for an empty list. Both lists are ended by NULL.
#define RLHF_OPT_LIST(T, f, def, items, text)                                                      \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_LIST, .offset = RLHF_X_OPT_LIST_AT(T, f),        \
        .choices = (items), .l_def = (def)                                                         \
    }
// A list of integers or numbers, each from lo to hi.
#define RLHF_OPT_I64_LIST(T, f, lo, hi, text)                                                      \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_I64_LIST,                                        \
        .offset = RLHF_X_OPT_I64_LIST_AT(T, f), .i_min = (lo), .i_max = (hi)                       \
    }
#define RLHF_OPT_F64_LIST(T, f, lo, hi, text)                                                      \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_F64_LIST,                                        \
        .offset = RLHF_X_OPT_F64_LIST_AT(T, f), .f_min = (lo), .f_max = (hi)                       \
    }
// Includes the n rows of another table, so that plugins can share options. The config struct of the
// other table is the member f of T. Users set an included option like any other option.
#define RLHF_OPT_TABLE(T, f, rows, n)                                                              \
    { .type = RLHF_T_TABLE, .offset = offsetof(T, f), .table = (rows), .n_table = (n) }

// Copies row i of a table with rows of `stride` bytes (rlhf_plugin.opt_stride). Fields that an
// older table lacks are 0. [any]
static inline void rlhf_opt_row(const rlhf_opt *rows, uint32_t stride, uint64_t i, rlhf_opt *out) {
    memset(out, 0, sizeof *out);
    memcpy(out, (const char *)rows + stride * i, stride < sizeof *out ? stride : sizeof *out);
}

// Finds option i of a table of n rows, where each row of an included table counts as one option.
// Sets *out to the option, with its offset in the outer config, and returns 1. Returns 0 if the
// table has fewer options. [any]
static inline int rlhf_opt_at(const rlhf_opt *rows, uint32_t n, uint32_t stride, uint32_t i,
                              rlhf_opt *out) {
    uint64_t left = i;
    for (uint32_t row = 0; row < n; row++) {
        rlhf_opt_row(rows, stride, row, out);
        const uint64_t here = out->type == RLHF_T_TABLE ? out->n_table : 1;
        if (left >= here) {
            left -= here;
            continue;
        }
        if (out->type != RLHF_T_TABLE) return 1;
        const uint32_t base = out->offset;
        rlhf_opt_row(out->table, stride, left, out);
        out->offset += base;
        return 1;
    }
    return 0;
}

#endif
