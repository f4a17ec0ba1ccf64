// option_table.c: see option_table.h.
#include "option/option_table.h"

#include <rlhf/option_check.h>

#include <string.h>

#define MAX_OPTIONS 4096u
// The size of a row in the first SDK, and the largest possible row, to look for later fields.
#define FIRST_ROW   RLHF_SIZE_TO(rlhf_opt, choices)
#define LONGEST_ROW 4096u

// Whether row i has a byte set in a field that this host does not know.
static int is_newer(const struct rlhf__opt_table *t, uint64_t i) {
    const char *row = (const char *)t->opts + t->stride * i;
    for (uint32_t at = sizeof(rlhf_opt); at < t->stride; at++)
        if (row[at]) return 1;
    return 0;
}

// Adds the options of row i to t->n. Returns what is wrong with it, or NULL.
static const char *count(struct rlhf__opt_table *t, uint32_t i) {
    rlhf_opt o, inner;
    rlhf_opt_row(t->opts, t->stride, i, &o);
    if (is_newer(t, i)) return "uses a field newer than this host";
    if (o.type != RLHF_T_TABLE) {
        t->n++;
        return NULL;
    }
    if (!o.table || o.n_table == 0) return "includes no table";
    if (o.n_table > MAX_OPTIONS) return "includes too many options";
    const struct rlhf__opt_table included = {o.table, 0, t->stride};
    for (uint64_t k = 0; k < o.n_table; k++) {
        rlhf_opt_row(o.table, t->stride, k, &inner);
        if (is_newer(&included, k)) return "includes a field newer than this host";
        if (inner.type == RLHF_T_TABLE) return "includes a table that includes another";
    }
    t->n += (uint32_t)o.n_table;
    return NULL;
}

rlhf_status rlhf__opt_table_init(struct rlhf__opt_table *t, const rlhf_opt *opts, uint32_t rows,
                                 uint32_t stride, struct rlhf__error *err) {
    *t = (struct rlhf__opt_table){opts, 0, stride ? stride : (uint32_t)sizeof *opts};
    if (rows > MAX_OPTIONS)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "it lists %u options, at most %u are possible",
                          rows, MAX_OPTIONS);
    if (rows > 0 && !opts) return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its option table is NULL");
    if (t->stride < FIRST_ROW || t->stride > LONGEST_ROW || t->stride % _Alignof(rlhf_opt) != 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "its option table has a stride of %u bytes; %u to %u in steps of %zu are "
                          "possible",
                          stride, FIRST_ROW, LONGEST_ROW, _Alignof(rlhf_opt));
    for (uint32_t i = 0; i < rows; i++) {
        const char *why = count(t, i);
        if (why)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED, "row %u of its option table %s", i, why);
    }
    if (t->n > MAX_OPTIONS)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "it lists %u options, at most %u are possible",
                          t->n, MAX_OPTIONS);
    return RLHF_OK;
}

void rlhf__opt_at(const struct rlhf__opt_table *t, uint32_t i, rlhf_opt *out) {
    (void)rlhf_opt_at(t->opts, t->n, t->stride, i,
                      out); // at least one option a row: n rows suffice
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
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        if (!o.key || !*o.key)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its option %u has no key", i);
        const char *why = rlhf_opt_fault(&o, config_size);
        if (why) return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its option \"%s\" %s", o.key, why);
        if (rlhf__opt_find(t, o.key) != (int32_t)i)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED, "its option \"%s\" is there twice", o.key);
    }
    return RLHF_OK;
}
