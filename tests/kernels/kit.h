// kit.h: the harness of the kernel tests: backends loaded as the host loads them, calls with their
// buffers, and outputs that can be compared.
//
// An op is a function that creates its inputs from a shape (the same numbers on every backend),
// calls a function of the backend's table and stores the results. Three checks use the same op.
// They test whether the backend agrees with the reference, whether its bits depend on the other
// rows of the call, and whether they depend on the threads.
#ifndef RLHF_TESTS_KERNELS_KIT_H
#define RLHF_TESTS_KERNELS_KIT_H

#include "support/check.h"
#include <rlhf/compute.h>
#include <rlhf/test.h>

// ---- backends ----

enum { KIT_MORE = 3 };

struct kit {
    void *so_ref, *so_cpu;
    const rlhf_plugin *kernels_ref, *kernels_cpu;
    rlhf_compute *ref, *cpu1, *cpu2; // reference; cpu with 1 and with 2 threads
    rlhf_compute *more[KIT_MORE];    // cpu with 4, 8 and 16 threads; NULL for other backends
    uint32_t turn, reserved;
};

// Loads RLHF_BUILD_DIR/lib/rlhf/1/kernels/kernels_<name>.so; fails the test on error.
const rlhf_plugin *kit_load(const char *name, void **so);
// Creates an instance and opens its table. Fails the test on error. If `workspace` is 0, the
// backend chooses its own budget.
rlhf_compute *kit_create(const rlhf_plugin *p, uint32_t threads, uint32_t guard,
                         uint64_t workspace);
void kit_destroy(rlhf_compute *c); // NULL allowed
// The reference (0) or the backend under test, with 2 threads (1).
rlhf_compute *kit_backend(const struct kit *, int i);
// The last error text of a table that kit_create opened, or "".
const char *kit_said(const rlhf_compute *c);

// CMocka group fixtures: *state becomes a struct kit with both backends.
int kit_setup(void **state);
int kit_teardown(void **state);

// Fails the test with the backend's error text unless st is RLHF_OK.
void kit_ok(rlhf_compute *c, rlhf_status st, const char *expr, int line);
#define KIT_OK(c, call) kit_ok((c), (call), #call, __LINE__)
// Fails the test unless the call was refused with status `want` and an error text. If `want` is
// RLHF_E_INVALID, a backend may also return RLHF_E_UNSUPPORTED.
void kit_refused(rlhf_compute *c, rlhf_status got, rlhf_status want, const char *what);

// ---- one call ----

#define CALL_MAX 48

struct call {
    rlhf_compute *c;
    uint32_t n_dev, n_weight, n_host;
    rlhf_dev dev[CALL_MAX];
    rlhf_weight *weight[CALL_MAX];
    void *host[CALL_MAX];
    const uint32_t *rows; // selection, as indices into the shape's rows
    uint32_t n_rows;
};

// Releases all memory of the call.
void call_finish(struct call *k);

// Returns n zeroed bytes, or n * width numbers of N(0, scale) that are derived from `tag`. They are
// in host memory of the call.
void *call_host(struct call *k, uint64_t bytes);
float *call_normal(struct call *k, uint64_t tag, uint64_t n, double scale);
// Returns the rows `k->rows` of a [.., width] tensor derived from `tag`. Each row has the same
// numbers, whichever other rows are selected.
float *call_normal_rows(struct call *k, uint64_t tag, uint64_t width, double scale);

// Return device buffers that hold zeros, host floats (rounded to `dtype`), or host integers.
rlhf_dev call_zeros(struct call *k, uint64_t n, int32_t dtype);
rlhf_dev call_floats(struct call *k, const float *x, uint64_t n, int32_t dtype);
rlhf_dev call_ints(struct call *k, const int32_t *x, uint64_t n);
// Returns a packed weight from f32 [k, n] or, with RLHF_WEIGHT_OUT_IN, from f32 [n, k].
rlhf_weight *call_weight(struct call *k, const float *x, int32_t rows, int32_t cols, int32_t dtype,
                         uint32_t flags);

// Rounds to bf16 and back; the tests' own implementation.
float kit_bf16(float x);
// Reads n elements of an f32 or bf16 device buffer.
void kit_read(rlhf_compute *c, float *to, rlhf_dev p, uint64_t n, int32_t dtype);

// ---- outputs ----

struct output {
    const char *name;
    int32_t dtype;
    uint64_t n, width; // rows, and numbers per row
    uint32_t *key;     // [n] row index in the whole shape; NULL: not made of rows
    double *v;         // [n, width]
};

struct outputs {
    char label[112]; // op and shape
    uint32_t n;
    struct output o[6];
};

typedef void (*op_fn)(struct call *k, const void *shape, struct outputs *out);

// Stores n * width numbers that are at `p`. `key` is copied and may be NULL.
void outputs_add(struct outputs *out, struct call *k, const char *name, rlhf_dev p, int32_t dtype,
                 uint64_t n, uint64_t width, const uint32_t *key);
// Does the same with host doubles.
void outputs_add_host(struct outputs *out, const char *name, const double *v, uint64_t n,
                      uint64_t width, const uint32_t *key);
void outputs_finish(struct outputs *out);

// Runs `op` on backend `c` for rows 0 .. n_rows-1, or for the given selection.
void op_run(rlhf_compute *c, op_fn op, const void *shape, uint32_t n_rows, struct outputs *out);
void op_run_rows(rlhf_compute *c, op_fn op, const void *shape, const uint32_t *rows,
                 uint32_t n_rows, struct outputs *out);

// ---- the three checks ----

// How much an output may differ from the reference. The first number bounds the normalized mean
// squared error. The second bounds the largest difference, divided by the root mean square of the
// reference.
struct bound {
    double nmse, max;
};

// Compares cpu (1 thread) with the reference, using the bound for the dtype of each output. Prints
// one line.
void check_match(struct kit *k, op_fn op, const void *shape, uint32_t n_rows, struct bound f32,
                 struct bound bf16);
// Calls `op` with many selections of rows, and checks that each selected row has the same bits as
// in the call with all rows. Outputs whose `key` is NULL are ignored.
void check_rows(rlhf_compute *c, op_fn op, const void *shape, uint32_t n_rows);
// Checks that the bits are the same with 1 and 2 threads, and in a second call of the same
// instance.
void check_threads(struct kit *k, op_fn op, const void *shape, uint32_t n_rows);

#endif
