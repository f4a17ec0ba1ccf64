// vector_case.h: the cases of a float64 reference (make_ppo_vectors.py and its siblings), which a
// file of JSON lines holds, and their comparison with any algorithm plugin.
#ifndef RLHF_TESTS_ALGOS_VECTOR_CASE_H
#define RLHF_TESTS_ALGOS_VECTOR_CASE_H

#include "algos/fixture.h"

enum { V_N = 9, V_TOTAL = 45 }; // rows and tokens of batch_vectors.json

struct vector_metric {
    const char *name; // NULL ends the list
    double value;
};
struct vector_case {
    const char *name, *options;
    const char *so; // the plugin; NULL: that of the file
    const double *advantage, *returns, *d_logp, *d_entropy, *d_kl, *d_value; // [total]
    const struct vector_metric *metrics;
};

// The cases of a file. An array that a case lacks is all zeros.
struct vector_file {
    struct vector_case *cases;
    size_t n;
    const int32_t *given, *after; // of turn_vectors.jsonl; otherwise NULL
    struct vector_memory *memory;
};

// Reads tests/algos/NAME_vectors.jsonl. Fails the test on error.
void vector_open(struct vector_file *, const char *name);
void vector_close(struct vector_file *);

// Sets the batch to that of batch_vectors.json, the batch of all cases.
void vector_load(struct batch *);

// Runs one phase of plugin `so` with the case's options and microbatches cut at cuts[] (ascending
// from 0 to n). Compares advantages, derivatives and metrics. The plugin must not report any
// further metrics.
void vector_check(const struct vector_case *, const char *so, const int32_t *cuts);

// Runs vector_check for all cases: in one microbatch, row by row, and cut in the given places.
void vector_check_all(const struct vector_file *, const char *so, const int32_t *uneven);

// Asserts that every choice of every enumeration of the plugin is tested. A choice counts as tested
// if it is the default, if the options of some case contain it, or if its key is in the
// NULL-terminated list `elsewhere`.
void vector_choices(const struct vector_file *, const char *so, const char *const *elsewhere);

// Asserts that docs/metrics.md defines every metric that some case reports.
void vector_documented(const struct vector_file *);

#endif
