// option_list.h: values of options that are lists of strings (RLHF_T_LIST), of integers
// (RLHF_T_I64_LIST) or of numbers (RLHF_T_F64_LIST).
//
// A list is read from a JSON list, or from a string that is split at commas: a,b,c.
#ifndef RLHF_CORE_OPTION_OPTION_LIST_H
#define RLHF_CORE_OPTION_OPTION_LIST_H

#include "option/options.h"

// Read `v` as a list. If `v` is a number or a boolean, read the typed text `raw` (may be NULL)
// instead. *out and its items live as long as `strings`. Returns 1 if the list was read, 0 if `v`
// is not a list or has an item that is not allowed, and -1 if memory runs out. [any]
int rlhf__list_read(const rlhf_opt *o, const json_t *v, const char *raw,
                    struct rlhf__strings *strings, const char *const **out);

// If the option has choices, append "a list of any of " and the choices. Otherwise, append "a list
// of strings, as a,b or [\"a\", \"b\"]". [any]
void rlhf__list_allowed(const rlhf_opt *o, struct rlhf__buf *out);

// The same for a list of integers or numbers, which is stored at `at`. [any]
int rlhf__numbers_read(const rlhf_opt *o, const json_t *v, const char *raw,
                       struct rlhf__strings *strings, char *at);

// Returns the list of integers or numbers at `at` as JSON: a new reference, or NULL if memory runs
// out. [any]
json_t *rlhf__numbers_json(const rlhf_opt *o, const char *at);

// If rlhf__list_read or rlhf__numbers_read refused `v` because of one item, appends that item and
// the nearest allowed item to `out`, and returns 1. Returns 0 if `v` is not a list. [any]
int rlhf__list_put_wrong(const rlhf_opt *o, const json_t *v, const char *raw,
                         struct rlhf__buf *out);

// rlhf__list_default returns an option's default, never NULL. rlhf__list_json returns a list as
// JSON: a new reference, or NULL if memory runs out. A NULL list becomes the empty list. [any]
const char *const *rlhf__list_default(const rlhf_opt *o);
json_t *rlhf__list_json(const char *const *list);
int rlhf__list_equal(const char *const *a, const char *const *b); // [any]

// If `v` is an integer, or a real number without a fraction, sets *out and returns 1. [any]
int rlhf__opt_integral(const json_t *v, int64_t *out);

// Returns 1 if a number is in the range of a F64 or F64_LIST. [any]
int rlhf__opt_in_range(const rlhf_opt *o, double v);

#endif
