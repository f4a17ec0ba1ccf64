// rlhf/options_check.h: validates a plugin's option table; shared by the host and the test
// kit. option_check.h validates its rows one by one.
//
// Plugins do not need this header. It is not part of the contract and may change in any version.
//
// The functions ..._refused write the reason to out[cap] and return the length of that text if
// something breaks a rule, and otherwise return 0. The text may contain bytes of the table.
#ifndef RLHF_OPTIONS_CHECK_H
#define RLHF_OPTIONS_CHECK_H

#include "option_check.h"
#include "plugin.h"

// ---- names of the host ----

// Returns the keys that the host itself reads in the section of a plugin of that kind, ended by
// NULL. No option may have such a key. The lists do not become longer in version 1 of the contract:
// further keys begin with "host_" (docs/contract.md). [any]
static inline const char *const *rlhf_host_keys(uint32_t kind) {
    static const char *const algo[] = {"plugin", NULL};
    static const char *const sink[] = {"plugin", "isolate", "network", NULL}; // and a judge
    static const char *const reward[] = {"plugin", "name", "weight", "isolate", "network", NULL};
    static const char *const environment[] = {"plugin", "weight", "isolate", "network", NULL};
    static const char *const none[] = {NULL}; // a model, kernels
    return kind == RLHF_KIND_ALGO          ? algo
           : kind == RLHF_KIND_REWARD      ? reward
           : kind == RLHF_KIND_SINK        ? sink
           : kind == RLHF_KIND_ENVIRONMENT ? environment
                                           : none;
}

// Returns 1 if the name begins with "host_" or "host/". Such names are for later hosts, so a plugin
// may not give them to an option, a metric or a model (base.h). [any]
static inline int rlhf_is_name_of_host(const char *name) {
    return strncmp(name, "host", 4) == 0 && (name[4] == '_' || name[4] == '/');
}

// ---- a table that can be read ----

#define RLHF_X_OPT_MOST 4096u
// The size of a row in the contract's first version, and that of the largest row that is accepted.
#define RLHF_X_OPT_FIRST_ROW   RLHF_SIZE_TO(rlhf_opt, n_table)
#define RLHF_X_OPT_LONGEST_ROW 4096u
#define RLHF_X_OPT_STEP        ((uint32_t)sizeof(int64_t))

// Returns 1 if row `i` has a nonzero byte in a field that is newer than this header.
static inline int rlhf_x_opt_is_newer(const rlhf_opt *rows, uint32_t stride, uint64_t i) {
    const char *row = (const char *)rows + stride * i;
    for (uint32_t at = (uint32_t)sizeof(rlhf_opt); at < stride; at++)
        if (row[at]) return 1;
    return 0;
}

// Adds the number of options in row `i` to *n. Returns NULL, or a text about the error in the row.
static inline const char *rlhf_x_opt_count(const rlhf_opt *rows, uint32_t stride, uint32_t i,
                                           uint32_t *n) {
    rlhf_opt o, inner;
    rlhf_opt_row(rows, stride, i, &o);
    if (rlhf_x_opt_is_newer(rows, stride, i)) return "uses a field newer than this host";
    if (o.type != RLHF_T_TABLE) {
        ++*n;
        return NULL;
    }
    if (!o.table || o.n_table == 0) return "includes no table";
    if (o.n_table > RLHF_X_OPT_MOST) return "includes too many options";
    for (uint64_t k = 0; k < o.n_table; k++) {
        rlhf_opt_row(o.table, stride, k, &inner);
        if (rlhf_x_opt_is_newer(o.table, stride, k)) return "includes a field newer than this host";
        if (inner.type == RLHF_T_TABLE) return "includes a table that includes another";
    }
    *n += (uint32_t)o.n_table;
    return NULL;
}

static inline int rlhf_x_opt_many(uint32_t n, char *out, size_t cap) {
    return snprintf(out, cap, "it lists %u options, at most %u are possible", (unsigned)n,
                    (unsigned)RLHF_X_OPT_MOST);
}

// Checks that a table of `n_rows` rows can be read, and sets *n to the number of its options, in
// which each row of an included table counts. [any]
static inline int rlhf_opt_table_refused(const rlhf_opt *rows, uint32_t n_rows, uint32_t stride,
                                         uint32_t *n, char *out, size_t cap) {
    *n = 0;
    if (n_rows == 0) return 0;
    if (n_rows > RLHF_X_OPT_MOST) return rlhf_x_opt_many(n_rows, out, cap);
    if (!rows) return snprintf(out, cap, "its option table is NULL");
    if (stride < RLHF_X_OPT_FIRST_ROW || stride > RLHF_X_OPT_LONGEST_ROW ||
        stride % RLHF_X_OPT_STEP != 0)
        return snprintf(out, cap,
                        "its option table has a stride of %u bytes; %u to %u in steps of %u are "
                        "possible",
                        (unsigned)stride, (unsigned)RLHF_X_OPT_FIRST_ROW,
                        (unsigned)RLHF_X_OPT_LONGEST_ROW, (unsigned)RLHF_X_OPT_STEP);
    for (uint32_t i = 0; i < n_rows; i++) {
        const char *why = rlhf_x_opt_count(rows, stride, i, n);
        if (why) return snprintf(out, cap, "row %u of its option table %s", (unsigned)i, why);
    }
    return *n > RLHF_X_OPT_MOST ? rlhf_x_opt_many(*n, out, cap) : 0;
}

// ---- a table that can be used ----

// Checks that the `n` options of a readable table have keys, all different, and fields and defaults
// as rlhf_opt_fault requires. [any]
static inline int rlhf_opts_refused(const rlhf_opt *rows, uint32_t n, uint32_t stride,
                                    uint32_t config_size, char *out, size_t cap) {
    rlhf_opt o, earlier;
    for (uint32_t i = 0; i < n; i++) {
        (void)rlhf_opt_at(rows, n, stride, i, &o); // at most n rows: each has an option or more
        if (!o.key || !*o.key) return snprintf(out, cap, "its option %u has no key", (unsigned)i);
        const char *why = rlhf_opt_fault(&o, config_size);
        for (uint32_t k = 0; k < i && !why; k++) {
            (void)rlhf_opt_at(rows, n, stride, k, &earlier);
            if (strcmp(earlier.key, o.key) == 0) why = "is defined twice";
        }
        if (why) return snprintf(out, cap, "its option \"%s\" %s", o.key, why);
    }
    return 0;
}

// The rows that include other tables are not options themselves.
static inline int rlhf_x_opt_includes_refused(const rlhf_plugin *d, char *out, size_t cap) {
    char why[256];
    for (uint32_t i = 0; i < d->n_opts; i++) {
        rlhf_opt o, inner;
        rlhf_opt_row(d->opts, d->opt_stride, i, &o);
        if (o.type != RLHF_T_TABLE) continue;
        if (rlhf_opt_row_refused(&o, why, sizeof why))
            return snprintf(out, cap, "row %u of its option table: %s", (unsigned)i, why);
        if (o.key || o.help)
            return snprintf(out, cap,
                            "row %u of its option table has the type TABLE and a key or a help "
                            "text; both must be NULL",
                            (unsigned)i);
        for (uint64_t k = 0; k < o.n_table; k++) {
            rlhf_opt_row(o.table, d->opt_stride, k, &inner);
            if (inner.offset <= UINT32_MAX - o.offset) continue;
            return snprintf(out, cap,
                            "row %u of its option table has offset %u, so its option \"%s\" lies "
                            "outside the config struct",
                            (unsigned)i, (unsigned)o.offset, inner.key ? inner.key : "");
        }
    }
    return 0;
}

static inline int rlhf_x_opt_key_refused(const char *key, uint32_t kind, char *out, size_t cap) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (kind == RLHF_KIND_MODEL) return 0; // a key of config.json
    if (strspn(key, allowed) != strlen(key))
        return snprintf(
            out, cap,
            "its option \"%.60s\" has a name that does not consist of letters from a to "
            "z and A to Z, digits, '_' and '-'",
            key);
    if (rlhf_is_name_of_host(key))
        return snprintf(
            out, cap,
            "its option \"%.60s\" has a name that begins with \"host_\"; such names are "
            "for options of later hosts",
            key);
    for (const char *const *hosts = rlhf_host_keys(kind); *hosts; hosts++)
        if (strcmp(*hosts, key) == 0)
            return snprintf(out, cap, "its option \"%s\" has a name that the host uses itself",
                            key);
    return 0;
}

// Fails if two options share bytes of the config struct. Names the two in the order of their
// fields.
static inline int rlhf_x_opt_overlap_refused(const rlhf_opt *a, const rlhf_opt *b, char *out,
                                             size_t cap) {
    const rlhf_opt *first = b->offset < a->offset ? b : a, *second = first == a ? b : a;
    if (first->offset + rlhf_opt_value_size(first->type) <= second->offset) return 0;
    return snprintf(out, cap,
                    "its options \"%s\" (offset %u) and \"%s\" (offset %u) share bytes of the "
                    "config struct; each option must have a field of its own",
                    first->key, (unsigned)first->offset, second->key, (unsigned)second->offset);
}

// Checks everything that option.h requires of the options of a descriptor. [any]
static inline int rlhf_plugin_opts_refused(const rlhf_plugin *d, char *out, size_t cap) {
    rlhf_opt o, earlier;
    uint32_t n;
    if (d->n_opts == 0 && (d->opts || d->opt_stride || d->config_size))
        return snprintf(out, cap, "it has no options (n_opts is 0) but sets %s; it must be 0",
                        d->opts         ? "opts"
                        : d->opt_stride ? "opt_stride"
                                        : "config_size");
    int bad = rlhf_opt_table_refused(d->opts, d->n_opts, d->opt_stride, &n, out, cap);
    if (!bad) bad = rlhf_x_opt_includes_refused(d, out, cap);
    for (uint32_t i = 0; i < n && !bad; i++) {
        (void)rlhf_opt_at(d->opts, d->n_opts, d->opt_stride, i, &o);
        bad = rlhf_opt_row_refused(&o, out, cap);
    }
    if (!bad) bad = rlhf_opts_refused(d->opts, n, d->opt_stride, d->config_size, out, cap);
    for (uint32_t i = 0; i < n && !bad; i++) {
        (void)rlhf_opt_at(d->opts, d->n_opts, d->opt_stride, i, &o);
        bad = rlhf_x_opt_key_refused(o.key, d->kind, out, cap);
        for (uint32_t k = 0; k < i && !bad; k++) {
            (void)rlhf_opt_at(d->opts, d->n_opts, d->opt_stride, k, &earlier);
            bad = rlhf_x_opt_overlap_refused(&earlier, &o, out, cap);
        }
    }
    return bad;
}

#endif
