// option_table.h: reads and validates the rows of any option table.
#ifndef RLHF_HOST_OPTION_TABLE_H
#define RLHF_HOST_OPTION_TABLE_H

#include "base/error.h"

#include <rlhf/option.h>

// A flag of the host's own tables, for RLHF_T_STR: a list of texts that are not empty and of token
// ids. In JSON an array of strings and integers, or one of either; in the struct the array as JSON
// text, "[]" when it is empty.
#define RLHF__OPT_LIST 0x10000u

// A table and the struct it describes; n counts its options, those of included tables too.
struct rlhf__opt_table {
    const rlhf_opt *opts;
    uint32_t n, stride; // stride 0 = sizeof(rlhf_opt)
};

// The table of a plugin's `rows` rows: RLHF_E_UNSUPPORTED when they cannot be read (a stride
// shorter than the first SDK's, no rows, a row or a table included by another that is of a later
// SDK and uses it). Borrows opts. [any]
rlhf_status rlhf__opt_table_init(struct rlhf__opt_table *t, const rlhf_opt *opts, uint32_t rows,
                                 uint32_t stride, struct rlhf__error *err);

// Option i < n, copied through the stride: fields the table does not have read 0. [any]
void rlhf__opt_at(const struct rlhf__opt_table *t, uint32_t i, rlhf_opt *out);

// Index of the option called key, or -1. [any]
int32_t rlhf__opt_find(const struct rlhf__opt_table *t, const char *key);

// Refuse an unsafe table: offsets outside config_size or misaligned, unknown type, no key,
// duplicate keys, no choices, default outside the range: RLHF_E_UNSUPPORTED. [any]
rlhf_status rlhf__opts_check(const struct rlhf__opt_table *t, uint32_t config_size,
                             struct rlhf__error *err);

#endif
