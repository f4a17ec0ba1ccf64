// rlhf/option.h: a plugin's options as one static table.
//
// The host parses JSON, validates every value against the table, names the nearest key on a typo
// and fills the plugin's config struct. A plugin never sees JSON. `rlhf-host plugin info` prints
// the table, `--json` turns it into a JSON Schema. Model plugins use the same table to read a
// checkpoint's config.json (there, keys that the table does not know are allowed).
//
// The config struct is laid out by the plugin: int32_t for BOOL and ENUM, int64_t for I64, double
// for F64, const char * for STR and PATH (owned by the host, NULL when the default is NULL).
#ifndef RLHF_OPTION_H
#define RLHF_OPTION_H

#include "base.h"

enum rlhf_opt_type {
    RLHF_T_BOOL = 1, // int32_t 0 or 1
    RLHF_T_I64 = 2,
    RLHF_T_F64 = 3,
    RLHF_T_STR = 4,
    RLHF_T_PATH = 5, // a STR that names a file or directory
    RLHF_T_ENUM = 6  // int32_t index into choices
};

enum rlhf_opt_flag {
    RLHF_OPT_REQUIRED = 1, // no default: the user must give it
    RLHF_OPT_MIN_OPEN = 2, // the value must be > min
    RLHF_OPT_MAX_OPEN = 4  // the value must be < max
};

// One option. Read with the descriptor's opt_stride, so the table can grow although it is an array.
typedef struct rlhf_opt {
    const char *key, *help;
    int32_t type;
    uint32_t flags, offset, reserved; // offset into the config struct, bytes
    int64_t i_def, i_min, i_max;      // BOOL, I64, ENUM
    double f_def, f_min, f_max;       // F64
    const char *s_def;                // STR, PATH
    const char *const *choices;       // ENUM: NULL-ended list
} rlhf_opt;

#define RLHF_OPT_BOOL(T, f, def, text)                                                             \
    { #f, text, RLHF_T_BOOL, 0, offsetof(T, f), 0, def, 0, 1, 0, 0, 0, NULL, NULL }
#define RLHF_OPT_I64(T, f, def, lo, hi, text)                                                      \
    { #f, text, RLHF_T_I64, 0, offsetof(T, f), 0, def, lo, hi, 0, 0, 0, NULL, NULL }
#define RLHF_OPT_F64(T, f, def, lo, hi, text)                                                      \
    { #f, text, RLHF_T_F64, 0, offsetof(T, f), 0, 0, 0, 0, def, lo, hi, NULL, NULL }
#define RLHF_OPT_STR(T, f, def, text)                                                              \
    { #f, text, RLHF_T_STR, 0, offsetof(T, f), 0, 0, 0, 0, 0, 0, 0, def, NULL }
#define RLHF_OPT_PATH(T, f, def, text)                                                             \
    { #f, text, RLHF_T_PATH, 0, offsetof(T, f), 0, 0, 0, 0, 0, 0, 0, def, NULL }
#define RLHF_OPT_ENUM(T, f, def, names, text)                                                      \
    { #f, text, RLHF_T_ENUM, 0, offsetof(T, f), 0, def, 0, 0, 0, 0, 0, NULL, names }

#endif
