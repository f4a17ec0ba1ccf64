// rlhf/test.h: a host made of paper, so that a plugin can be unit-tested without rlhf-host.
//
// It records what a plugin logs, fails with and reports, counts allocations, can make the n-th of
// them fail, and offers the services a test gives it; it takes derivatives by finite differences,
// and has a compute table for models. Link librlhf-test.a (rlhf::test, pkg-config rlhf-test). No
// test framework is needed (RLHF_TEST_CHECK); with CMocka, assert on the recorded values after the
// plugin returned, never inside a callback (a failed assert jumps over the plugin's frames). Not
// for production code, not thread-safe, and no part of the contract: it may change in any version.
//
//   static struct rlhf_test_host host;            // large: static or malloc, not the stack
//   rlhf_test_init(&host, 1);
//   const rlhf_plugin *p = rlhf_test_open("./my.so", 0);
//   rlhf_test_config(p, &config); rlhf_test_set(p, &config, "cap", "3");
//   p->create(&host.table, config, &self);
//   RLHF_TEST_CHECK(&host, host.n_fails == 0);
//   return rlhf_test_end(&host);
#ifndef RLHF_TEST_H
#define RLHF_TEST_H

#include <rlhf/algo.h>
#include <rlhf/compute.h>
#include <rlhf/model.h>
#include <rlhf/plugin.h>
#include <rlhf/reward.h>
#include <rlhf/service.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RLHF_TEST_LOGS = 64,
    RLHF_TEST_METRICS = 256,
    RLHF_TEST_SERVICES = 8,
    RLHF_TEST_TEXT = 1016
};

struct rlhf_test_log {
    int32_t level, reserved;
    char text[RLHF_TEST_TEXT];
};

struct rlhf_test_reading {
    double value;
    char name[120];
};

struct rlhf_test_service {
    const char *id;
    const void *table;
};

struct rlhf_test_host {
    rlhf_host table; // pass &host.table to the plugin; must stay the first member
    uint64_t seed;
    // Allocations: alive now, asked for so far; the call number fail_at (1 = first) fails, and with
    // fail_on every later one too. 0 = none fails.
    int64_t live, allocs, fail_at;
    int32_t fail_on, cancel; // cancel: what cancelled() returns
    // The last failure and how many there were.
    int32_t fail_code, n_fails;
    char fail_text[RLHF_TEST_TEXT];
    uint32_t n_logs, n_metrics, n_services; // n_logs counts on when log[] is full
    uint32_t n_checks, n_bad, reserved;     // of RLHF_TEST_CHECK: made, and that did not hold
    struct rlhf_test_log log[RLHF_TEST_LOGS];
    struct rlhf_test_reading metric[RLHF_TEST_METRICS];
    struct rlhf_test_service service[RLHF_TEST_SERVICES];
    // Offered as RLHF_SVC_LIMITS; no limits until the test sets some.
    rlhf_limits limits;
};

// ---- setting up and looking ----

// A fresh host: nothing recorded, no services, no failures planned. [any]
void rlhf_test_init(struct rlhf_test_host *t, uint64_t seed);

// Offer a service; both pointers are borrowed. Returns 0 when there is no room. [any]
int rlhf_test_offer(struct rlhf_test_host *t, const char *id, const void *table);

// Let the n-th allocation from now fail (1 = the next); on != 0: all later ones too. 0 = none.
// [any]
void rlhf_test_fail_alloc(struct rlhf_test_host *t, int64_t n, int32_t on);

// The latest value of a metric; 0 when it was never reported. [any]
int rlhf_test_metric(const struct rlhf_test_host *t, const char *name, double *value);

// Whether a recorded log line contains text. [any]
int rlhf_test_logged(const struct rlhf_test_host *t, const char *text);

// ---- checks ----

// Counts whether something holds and, where it does not, prints file, line and what. Returns it, so
// that what follows can be left out. [any]
#define RLHF_TEST_CHECK(t, what) rlhf_test_check((t), (what) ? 1 : 0, __FILE__, __LINE__, #what)
int rlhf_test_check(struct rlhf_test_host *t, int holds, const char *file, int line,
                    const char *what);

// |got - want| <= tolerance; NaN is not. Prints both. [any]
#define RLHF_TEST_NEAR(t, got, want, tolerance)                                                    \
    rlhf_test_near((t), (got), (want), (tolerance), __FILE__, __LINE__, #got)
int rlhf_test_near(struct rlhf_test_host *t, double got, double want, double tolerance,
                   const char *file, int line, const char *what);

// Prints how many checks there were and how many did not hold; what the plugin allocated and did
// not free is one that does not. Returns the exit status of the test: 0, or 1. No check at all is
// 1. [any]
int rlhf_test_end(struct rlhf_test_host *t);

// ---- plugins and their options ----

// Why rlhf-host would refuse the plugin, into out[cap], with the length of that; 0 and "" when it
// would not. Options are judged as the host does (rlhf/option_check.h); of a file, `rlhf-host
// plugin check` tries more. [any]
int rlhf_test_refused(const rlhf_plugin *p, char *out, size_t cap);

// Load a .so and return its plugin number i, or NULL with the reason on stderr: what rlhf-host
// would refuse is refused. Never unloaded. [any]
const rlhf_plugin *rlhf_test_open(const char *path, uint32_t i);

// Option number i of a plugin; 0 past the last. [any]
int rlhf_test_opt(const rlhf_plugin *p, uint32_t i, rlhf_opt *out);

// Fill config (p->config_size bytes) with the defaults of p's options. [any]
void rlhf_test_config(const rlhf_plugin *p, void *config);

// Set one option from text ("true", "3", "0.5", a choice, any string, which is borrowed). 0 when
// the key or value is refused, which is then said on stderr; ranges are checked as the host does.
// [any]
int rlhf_test_set(const rlhf_plugin *p, void *config, const char *key, const char *value);

// ---- failure injection ----

// Calls scenario (create, use, destroy; returns the first negative status) once for each allocation
// that it makes, with that one failing, and again with all later ones failing too, until it
// succeeds. Each failing call must return RLHF_E_NOMEM with a sentence, and free what it took.
// Returns the allocations of the scenario, or -1 with the reason on stderr. [any]
int64_t rlhf_test_alloc_sweep(struct rlhf_test_host *t,
                              rlhf_status (*scenario)(struct rlhf_test_host *t, void *arg),
                              void *arg);

// ---- finite differences ----

// The largest of |(f(x + h e_i) - f(x - h e_i)) / 2h - d[i]| / max(1, |d[i]|) over x[0 .. n-1],
// with 2h as f32 has it. x is what it was afterwards; *worst (NULL: not wanted) = its i. NaN where
// a value is none. [any]
double rlhf_test_derivative(double (*f)(void *arg), void *arg, float *x, const float *d, uint64_t n,
                            double h, uint64_t *worst);

// The same for an algorithm's loss(): its d_heads against the differences of out->loss, for each
// entry of every head of in->heads that is not NULL but hidden. h: 1e-3 is about right, as heads
// are floats. NaN when loss() fails or memory does. [any]
double rlhf_test_loss_derivative(const rlhf_algo_ops *ops, void *self, const rlhf_loss_in *in,
                                 double h);

// ---- a compute table, for models ----

// The reference backend (plain C, double accumulation; rlhf/reference.h) as a table, linked in.
// guard 1: device memory is unreadable but while a table function that was given it runs, so that a
// model which dereferences it crashes. NULL when there is no memory. [any]
rlhf_compute *rlhf_test_compute(uint32_t guard);
void rlhf_test_compute_end(rlhf_compute *c); // NULL allowed [any]

// Let the n-th call from now of a function that allocates or computes fail (1 = the next) with
// RLHF_E_DEVICE; on != 0: all later ones too. 0 = none. Of a table of rlhf_test_compute. [any]
void rlhf_test_fail_op(rlhf_compute *c, int64_t n, int32_t on);
int64_t rlhf_test_ops(const rlhf_compute *c); // such calls since rlhf_test_fail_op [any]

// Every parameter of an open model from a generator of its name: uniform in +-scale, and 1 + that
// for vectors called "...weight" (gains of norms); then refresh(). [any]
rlhf_status rlhf_test_model_fill(const rlhf_model_ops *ops, void *self, const rlhf_compute *c,
                                 uint64_t seed, double scale);

// The model's backward() against finite differences: the loss is the sum over the batch of every
// planned head (bits of LOGP, ENTROPY, VALUE, SCORE, TOKEN_SCORE) times a number that differs from
// entry to entry. Of each parameter with a gradient `some` entries are tried. Returns the largest
// |difference - gradient| / max(|gradient|, 0.01), NaN when a call failed. Weights are what they
// were afterwards. f32 models only; h: 1e-2 is about right. [any]
double rlhf_test_model_derivative(const rlhf_model_ops *ops, void *self, const rlhf_compute *c,
                                  const rlhf_batch *batch, uint32_t heads, uint32_t some, double h);

// ---- saved state ----

// A byte buffer that is both ends of save() and load(): pass &s.out, then &s.in.
struct rlhf_test_stream {
    rlhf_ostream out; // must stay the first member
    rlhf_istream in;
    uint64_t len, at, limit; // written, read so far; write fails with RLHF_E_IO beyond limit
    uint8_t bytes[4096];
};

// An empty stream. [any]
void rlhf_test_stream_init(struct rlhf_test_stream *s);

// ---- a fake "rlhf.classifier/0" ----

// logit(context, text, label) is the test's. open() hands out this one object and records its path;
// open_status < 0 makes open() fail, logits_status < 0 makes logits() fail.
struct rlhf_test_classifier {
    rlhf_classifier_service table; // offer &c.table as RLHF_SVC_CLASSIFIER
    const char *const *labels;     // [n_labels]
    float (*logit)(const void *context, rlhf_str text, int32_t label);
    const void *context;
    const char *path; // the last path given to open, borrowed
    int32_t n_labels, open_count, open_status, logits_status;
    uint64_t n_texts; // scored so far
};

// A classifier with the given label names; fill in logit (and context) afterwards. [any]
void rlhf_test_classifier_init(struct rlhf_test_classifier *c, const char *const *labels,
                               int32_t n_labels);

// ---- a fake "rlhf.tokenizer/0" ----

// A byte is a token, whatever the path. open_status < 0 makes open() fail.
struct rlhf_test_tokenizer {
    rlhf_tokenizer_service table; // offer &t.table as RLHF_SVC_TOKENIZER
    const char *path;             // the last path given to open, borrowed
    int32_t open_count, open_status;
};

// One whose open() has not been called. [any]
void rlhf_test_tokenizer_init(struct rlhf_test_tokenizer *t);

// ---- a fake "rlhf.reward_model/0" ----

// A token's reward is token(context, id). open_status < 0 makes open() fail, score_status < 0
// score().
struct rlhf_test_reward_model {
    rlhf_reward_model_service table; // offer &m.table as RLHF_SVC_REWARD_MODEL
    float (*token)(const void *context, int32_t id);
    const void *context;
    const char *path; // the last path given to open, borrowed
    int32_t open_count, open_status, score_status, reserved;
    uint64_t n_rows; // scored so far
};

// Fill in token (and context) afterwards. [any]
void rlhf_test_reward_model_init(struct rlhf_test_reward_model *m);

// ---- a fake "rlhf.row/0" ----

// Every row has these values, whatever its text says: no JSON is read. A path that is not listed is
// absent.
struct rlhf_test_row_value {
    const char *path;
    int32_t type, reserved; // enum rlhf_row_type
    const char *string;
    double number; // of a number; a boolean; the length of a list
};

struct rlhf_test_rows {
    rlhf_row_service table; // offer &r.table as RLHF_SVC_ROW
    const struct rlhf_test_row_value *values;
    uint32_t n_values;
    int32_t open_count;
};

// values are borrowed. [any]
void rlhf_test_rows_init(struct rlhf_test_rows *r, const struct rlhf_test_row_value *values,
                         uint32_t n_values);

// ---- "rlhf.limits/0" ----

// No limits: offer l as RLHF_SVC_LIMITS, and set what a test wants. [any]
void rlhf_test_limits_init(rlhf_limits *l);

#ifdef __cplusplus
}
#endif

#endif
