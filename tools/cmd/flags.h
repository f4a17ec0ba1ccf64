// flags.h: parses, checks and prints the flags of a subcommand, all from one table.
//
// A value is given as "--name value" or "--name=value"; "--" ends the flags. The error for an
// unknown flag suggests the nearest flag.
#ifndef RLHF_HOST_CMD_FLAGS_H
#define RLHF_HOST_CMD_FLAGS_H

#include "base/error.h"

#include <stdio.h>

enum rlhf__flag_kind {
    RLHF__FLAG_SWITCH = 1, // int32_t, set to 1
    RLHF__FLAG_STR = 2,    // const char *, borrowed from argv
    RLHF__FLAG_I64 = 3,    // int64_t in [i_min, i_max]
    RLHF__FLAG_F64 = 4,    // double in [f_min, f_max]
    RLHF__FLAG_LIST = 5    // struct rlhf__flag_list: repeatable
};

struct rlhf__flag {
    const char *name; // with the dashes: "--model"
    const char *arg;  // name of its value in help: "DIR"; NULL for a switch
    const char *help;
    int32_t kind;
    uint32_t offset; // into the struct to fill
    int64_t i_min, i_max;
    double f_min, f_max;
};

struct rlhf__flag_list {
    const char **item; // [n], owned (the strings belong to argv)
    size_t n;
};

#define RLHF__FLAG_SW(T, name, field, help)                                                        \
    { name, NULL, help, RLHF__FLAG_SWITCH, offsetof(T, field), 0, 0, 0, 0 }
#define RLHF__FLAG_S(T, name, field, arg, help)                                                    \
    { name, arg, help, RLHF__FLAG_STR, offsetof(T, field), 0, 0, 0, 0 }
#define RLHF__FLAG_I(T, name, field, arg, lo, hi, help)                                            \
    { name, arg, help, RLHF__FLAG_I64, offsetof(T, field), lo, hi, 0, 0 }
#define RLHF__FLAG_F(T, name, field, arg, lo, hi, help)                                            \
    { name, arg, help, RLHF__FLAG_F64, offsetof(T, field), 0, 0, lo, hi }
#define RLHF__FLAG_L(T, name, field, arg, help)                                                    \
    { name, arg, help, RLHF__FLAG_LIST, offsetof(T, field), 0, 0, 0, 0 }

// Parse argv[1..argc) into *out, which the caller has filled with defaults. argv[0] is the
// subcommand's name, for messages. Arguments that are not flags go to *rest; the caller frees
// rest->item. If rest is NULL, such arguments are errors. Errors: RLHF_E_INVALID with one sentence.
// [main]
rlhf_status rlhf__flags_parse(const struct rlhf__flag *flags, size_t n, int argc, char **argv,
                              void *out, struct rlhf__flag_list *rest, struct rlhf__error *err);

// Returns 1 and sets *out if the text is a decimal integer and nothing else. [any]
int rlhf__typed_integer(const char *text, int64_t *out);

// A flag that has no effect in this command, and whether the user gave it.
struct rlhf__flag_idle {
    const char *name;
    int32_t given;
};

// Reject the first of these flags that was given. `why` completes the message "FLAG has no effect".
// [main]
rlhf_status rlhf__flags_idle(const struct rlhf__flag_idle *flags, size_t n, const char *command,
                             const char *why, struct rlhf__error *err);

// 1 if --help or -h is among the arguments. [any]
int rlhf__flags_want_help(int argc, char **argv);

// Print one aligned line per flag. [main]
void rlhf__flags_help(FILE *out, const struct rlhf__flag *flags, size_t n);

// If help was asked for, print "usage: USAGE" and the flags to standard output. Returns 1 if so.
// [main]
int rlhf__flags_helped(const struct rlhf__flag *flags, size_t n, const char *usage, int argc,
                       char **argv);

#endif
