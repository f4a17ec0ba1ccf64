// rlhf/test.h: a fake host for unit-testing a plugin without rlhf-host.
//
// The fake host records a plugin's log lines, failures and metrics. It counts allocations, can make
// the n-th allocation fail, and offers the services that a test provides. The kit also computes
// finite differences and has a compute table for models. Link librlhf-test.a (rlhf::test,
// pkg-config rlhf-test). No test framework is needed: RLHF_TEST_CHECK counts and prints failed
// checks. With CMocka, assert only after the plugin has returned, never inside a callback, because
// a failed assert jumps over the plugin's frames. This header is not for production code and not
// thread-safe. It is not part of the plugin contract: it may change in any version.
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
#include <rlhf/environment.h>
#include <rlhf/model.h>
#include <rlhf/plugin.h>
#include <rlhf/reward.h>
#include <rlhf/service.h>
#include <rlhf/sink.h>

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

// A metric: the reports since rlhf_test_phase, combined into one value.
struct rlhf_test_reading {
    double value;       // what the host would report
    double weight, sum; // sums of weight, and of weight * value
    uint32_t n;         // reports
    int32_t combine;    // enum rlhf_combine
    char name[120];
};

struct rlhf_test_service {
    const char *id;
    const void *table;
};

struct rlhf_test_host {
    rlhf_host table; // pass &host.table to the plugin; must stay the first member
    uint64_t seed;
    // live: number of allocations that are not freed. allocs: number of calls of alloc(). fail_at:
    // the number of the call that fails, counted from 1 (0 = all calls succeed). fail_on: 1 = all
    // later calls fail too.
    int64_t live, allocs, fail_at;
    int32_t fail_on, cancel; // cancel: the result of cancelled()
    // The last failure and the number of failures.
    int32_t fail_code, n_fails;
    char fail_text[RLHF_TEST_TEXT];
    uint32_t n_logs, n_metrics, n_services; // n_logs keeps counting when log[] is full
    uint32_t n_checks, n_bad, reserved;     // checks by RLHF_TEST_CHECK: all, and failed ones
    struct rlhf_test_log log[RLHF_TEST_LOGS];
    struct rlhf_test_reading metric[RLHF_TEST_METRICS];
    struct rlhf_test_service service[RLHF_TEST_SERVICES];
    // Offered as RLHF_SVC_LIMITS; unlimited until the test sets limits.
    rlhf_limits limits;
};

// ---- setup and queries ----

// Initialize a host without records, services or planned failures. [any]
void rlhf_test_init(struct rlhf_test_host *t, uint64_t seed);

// Offer a service; both pointers are borrowed. Returns 0 if the table of services is full. [any]
int rlhf_test_offer(struct rlhf_test_host *t, const char *id, const void *table);

// Make the n-th allocation from now (1 = the next) fail. If `on` is not 0, all later allocations
// fail too. If n is 0, no further allocation fails. [any]
void rlhf_test_fail_alloc(struct rlhf_test_host *t, int64_t n, int32_t on);

// Sets *value to a metric's value, which combines the reports of this phase as the host does.
// Returns 0 if the metric was not reported. A report that disagrees with the first one about
// `combine` is ignored, and counts as a failed check. [any]
int rlhf_test_metric(const struct rlhf_test_host *t, const char *name, double *value);

// Begin a phase: metrics reported so far are forgotten. [any]
void rlhf_test_phase(struct rlhf_test_host *t);

// Returns the text of the last failure that the plugin, or a service that it called, reported.
// Returns "" if none was reported. [any]
const char *rlhf_test_failure(const struct rlhf_test_host *t);

// Returns whether a recorded log line contains `text`. [any]
int rlhf_test_logged(const struct rlhf_test_host *t, const char *text);

// ---- checks ----

// Counts a check. If the check failed, prints file, line and expression. Returns the result, so
// that a test can skip dependent steps. [any]
#define RLHF_TEST_CHECK(t, what) rlhf_test_check((t), (what) ? 1 : 0, __FILE__, __LINE__, #what)
int rlhf_test_check(struct rlhf_test_host *t, int holds, const char *file, int line,
                    const char *what);

// Checks |got - want| <= tolerance, which fails for NaN. Prints both values on failure. [any]
#define RLHF_TEST_NEAR(t, got, want, tolerance)                                                    \
    rlhf_test_near((t), (got), (want), (tolerance), __FILE__, __LINE__, #got)
int rlhf_test_near(struct rlhf_test_host *t, double got, double want, double tolerance,
                   const char *file, int line, const char *what);

// Prints how many checks were made and how many of them failed. Memory that the plugin did not free
// counts as a failed check. Returns the exit status of the test, 0 or 1. A test without any check
// returns 1. [any]
int rlhf_test_end(struct rlhf_test_host *t);

// ---- plugins and their options ----

// Checks a plugin, including its options (rlhf/options_check.h), as rlhf-host does. If the
// host would reject the plugin, writes the reason to out[cap] and returns the length of that text.
// Otherwise writes "" and returns 0. `rlhf-host plugin check` tests a file more thoroughly. [any]
int rlhf_test_refused(const rlhf_plugin *p, char *out, size_t cap);

// Loads a .so and returns plugin `i` of those that it contains, counted from 0. If loading fails,
// or if rlhf-host would reject the plugin, returns NULL with the reason on stderr. The .so is never
// unloaded. [any]
const rlhf_plugin *rlhf_test_open(const char *path, uint32_t i);

// Copies option number i of a plugin to *out. Returns 0 if i is past the last option. [any]
int rlhf_test_opt(const rlhf_plugin *p, uint32_t i, rlhf_opt *out);

// Fill config (p->config_size bytes) with the defaults of p's options. [any]
void rlhf_test_config(const rlhf_plugin *p, void *config);

// Sets one option from `value`, the string that a user would type: "true", "3", "0.5", a choice, or
// any text. `value` is borrowed. If the key or the value is invalid, or the value is out of range,
// returns 0 with the reason on stderr. [any]
int rlhf_test_set(const rlhf_plugin *p, void *config, const char *key, const char *value);

// Like rlhf_test_set, for a list (RLHF_T_LIST). `items` ends with NULL and is borrowed. [any]
int rlhf_test_set_list(const rlhf_plugin *p, void *config, const char *key,
                       const char *const *items);

// ---- failure injection ----

// Tests that a scenario survives every failed allocation. `scenario` creates an object, uses it and
// destroys it; it returns the first negative status. For each allocation in the scenario, this
// function calls `scenario` twice. In the first call, only that allocation fails. In the second
// call, all later allocations fail too. Each call must return RLHF_E_NOMEM with a message and free
// all its memory. This function returns the number of allocations in the scenario, or -1 with the
// reason on stderr. [any]
int64_t rlhf_test_alloc_sweep(struct rlhf_test_host *t,
                              rlhf_status (*scenario)(struct rlhf_test_host *t, void *arg),
                              void *arg);

// ---- finite differences ----

// Compares d, the derivatives of f by x[0 .. n-1], with central differences. The error of d[i] is
// |(f(x + h e_i) - f(x - h e_i)) / 2h - d[i]| / max(1, |d[i]|), where 2h is the difference of the
// two points after they were rounded to float. Returns the largest error, or NaN if any value is
// NaN. Sets *worst (may be NULL) to the index of the largest error. Restores x. [any]
double rlhf_test_derivative(double (*f)(void *arg), void *arg, float *x, const float *d, uint64_t n,
                            double h, uint64_t *worst);

// Compares the gradients that an algorithm's loss() writes to d_heads with central differences of
// out->loss. Tests every entry of every head in in->heads that is not NULL. An h of about 1e-3
// suits heads in float. Returns the largest error, as defined for rlhf_test_derivative, or NaN if
// loss() or an allocation fails. [any]
double rlhf_test_loss_derivative(const rlhf_algo_ops *ops, void *self, const rlhf_loss_in *in,
                                 double h);

// ---- batches, for algorithms and rewards ----

enum {
    RLHF_TEST_ROWS = 64,
    RLHF_TEST_TOKENS = 16 * RLHF_TEST_ROWS,
    RLHF_TEST_VOCAB = 50,
    RLHF_TEST_LEN = 8 // most response tokens of a row
};

// A batch of finished rows with random numbers. Every array is filled, and the structs are those
// that the host would pass. A test may change numbers in the arrays. To test a plugin without an
// array, set its pointer in the struct to NULL. The batch is too large for the stack: make it
// static or use malloc.
struct rlhf_test_batch {
    rlhf_rollout rollout; // for advantages(): one reward, whose score is `score`
    rlhf_advantages advantages;
    rlhf_loss_in loss_in;     // for loss(): all rows as one minibatch and microbatch
    rlhf_reward_in reward_in; // for score(); set prompt, response and meta as needed
    rlhf_head_values heads;
    rlhf_head_gradients d_heads;
    // log-probs of the models that a plan names; NULL past the last
    const float *logp_named[RLHF_NAMED_MAX];
    // ---- rows ----
    int64_t source[RLHF_TEST_ROWS], version[RLHF_TEST_ROWS];
    rlhf_str prompt[RLHF_TEST_ROWS], response[RLHF_TEST_ROWS], meta[RLHF_TEST_ROWS];
    rlhf_str messages[RLHF_TEST_ROWS];
    int32_t offset[RLHF_TEST_ROWS + 1], reserved;
    uint32_t row[RLHF_TEST_ROWS];
    int32_t prompt_len[RLHF_TEST_ROWS], group[RLHF_TEST_ROWS], label[RLHF_TEST_ROWS];
    float score[RLHF_TEST_ROWS], seq[RLHF_TEST_ROWS]; // seq: of the last rlhf_test_score
    uint8_t finished[RLHF_TEST_ROWS], use[RLHF_TEST_ROWS], end[RLHF_TEST_ROWS];
    uint8_t verdict[RLHF_TEST_ROWS], failed[RLHF_TEST_ROWS];
    double carry_row[RLHF_TEST_ROWS * RLHF_CARRY_MAX]; // as the plan divides it
    // ---- tokens ----
    double carry_token[RLHF_TEST_TOKENS * RLHF_CARRY_MAX];
    int32_t ids[RLHF_TEST_TOKENS], turn[RLHF_TEST_TOKENS];
    float token_reward[RLHF_TEST_TOKENS], token[RLHF_TEST_TOKENS];
    float logp_old[RLHF_TEST_TOKENS], logp_sampled[RLHF_TEST_TOKENS], logp_ref[RLHF_TEST_TOKENS];
    float value_old[RLHF_TEST_TOKENS], advantage[RLHF_TEST_TOKENS], returns[RLHF_TEST_TOKENS];
    float named[RLHF_NAMED_MAX][RLHF_TEST_TOKENS];
    // heads, and their gradients from the last rlhf_test_loss
    float logp[RLHF_TEST_TOKENS], entropy[RLHF_TEST_TOKENS], kl[RLHF_TEST_TOKENS];
    float value[RLHF_TEST_TOKENS], d_logp[RLHF_TEST_TOKENS], d_entropy[RLHF_TEST_TOKENS];
    float d_kl[RLHF_TEST_TOKENS], d_value[RLHF_TEST_TOKENS];
};

// Fills *b with n rows (at most RLHF_TEST_ROWS) in groups of group_size. Row i of the batch comes
// from data row i / group_size. Each row is a single response: all its tokens have turn 0. `named`
// is the number of models that the plan names (rlhf_plan.named); the batch contains their
// log-probs. [any]
void rlhf_test_batch_init(struct rlhf_test_batch *b, uint32_t n, uint32_t group_size,
                          uint32_t named, uint64_t seed);

// Cuts the response of each row with at least two tokens into two turns. [any]
void rlhf_test_batch_turns(struct rlhf_test_batch *b);

// Calls advantages() for the whole batch. [any]
rlhf_status rlhf_test_advantages(const rlhf_algo_ops *ops, void *self, struct rlhf_test_batch *b);

// Calls loss() for the whole batch. Returns the loss, or NaN if the call fails. Afterwards, the
// gradients of the heads are in b->d_heads. [any]
double rlhf_test_loss(const rlhf_algo_ops *ops, void *self, struct rlhf_test_batch *b);

// Calls score() for the batch. The reward gets the optional arrays that its flags request
// (log-probs, turns). Afterwards the rewards are in b->seq, and the rewards of tokens in b->token.
// [any]
rlhf_status rlhf_test_score(const rlhf_reward_ops *ops, void *self, struct rlhf_test_batch *b);

// ---- the choice of prompts ----

// The prompts of a run, all unused at first. To test with used prompts, set last_score and seen.
struct rlhf_test_prompts {
    rlhf_prompts table;
    float last_score[RLHF_TEST_ROWS];
    int64_t seen[RLHF_TEST_ROWS];
    rlhf_str meta[RLHF_TEST_ROWS];
};

// Fill *p with n prompts (at most RLHF_TEST_ROWS). Each phase must choose n_choose of them. [any]
void rlhf_test_prompts_init(struct rlhf_test_prompts *p, uint32_t n, uint32_t n_choose);

// Calls choose_prompts() for the next phase and counts the chosen prompts as seen. Returns
// RLHF_E_INTERNAL if an entry of chosen[n_choose] was not written or is not the index of a prompt.
// [any]
rlhf_status rlhf_test_choose(const rlhf_algo_ops *ops, void *self, struct rlhf_test_prompts *p,
                             int64_t *chosen);

// ---- runs, for sinks ----

// A run that rlhf_test_sink simulates for a sink. Each phase reports one sample and all metrics. In
// phase k, counted from 1, a metric has k times the value that this struct gives it.
struct rlhf_test_run {
    const char *dir; // directory of the run, and the sink's own; its last part is the run's name
    const char *why; // with STOPPED and FAILED; NULL: ""
    int64_t done;    // phases done before a resume; 0: a new run
    int64_t phases;  // planned
    uint32_t n_metrics;
    int32_t how;              // enum rlhf_run_end
    const char *const *names; // [n_metrics]
    const double *values;     // [n_metrics]
};

// Simulates the run: calls begin(), then phase() for each phase that the answer of begin() asks
// for, also those before `done`, then end(). If begin() or phase() fails, calls only end() after
// it, and returns the status of the call that failed. [any]
rlhf_status rlhf_test_sink(const rlhf_sink_ops *ops, void *self, const struct rlhf_test_run *run);

// ---- a compute table, for models ----

// Returns the compute table of the reference backend (plain C, double accumulation;
// rlhf/reference.h), or NULL when out of memory. If `guard` is 1, only the functions of the table
// can access device memory, and each only the memory that is passed to it. So a model that accesses
// device memory by itself crashes. The table writes its messages to `t`, which must outlive the
// table. [any]
rlhf_compute *rlhf_test_compute(struct rlhf_test_host *t, uint32_t guard);
void rlhf_test_compute_end(rlhf_compute *c); // NULL allowed [any]

// Counts the calls of those functions of c that allocate or compute. Makes the n-th call from now
// (1 = the next) fail with RLHF_E_DEVICE. If `on` is not 0, all later calls fail too. If n is 0, no
// further call fails. [any]
void rlhf_test_fail_op(rlhf_compute *c, int64_t n, int32_t on);
int64_t rlhf_test_ops(const rlhf_compute *c); // calls counted since rlhf_test_fail_op [any]

// ---- compute backends ----

// An instance of a backend, with its host and its table.
struct rlhf_test_backend {
    rlhf_host host; // must stay the first member
    const rlhf_plugin *plugin;
    const rlhf_kernels_ops *ops;
    void *self;
    rlhf_compute *c;           // NULL: not opened
    char said[RLHF_TEST_TEXT]; // the last failure of the instance or its table, "" if none
    void *config;              // the defaults of its options; NULL: it has none
};

// Loads a compute backend's .so. If this fails, returns NULL with the reason on stderr. The .so is
// never unloaded. [any]
const rlhf_plugin *rlhf_test_backend_load(const char *path);

// Create an instance of a backend, with the defaults of its options. If `open` is not NULL, also
// open the instance's table. On failure b->said has the reason, and b must still be closed. [any]
rlhf_status rlhf_test_backend_open(struct rlhf_test_backend *b, const rlhf_plugin *p,
                                   const rlhf_kernels_open *open);
void rlhf_test_backend_close(struct rlhf_test_backend *b); // b may be closed or zeroed [any]

// ---- models ----

// Fills every parameter of an open model with random numbers, uniform in +-scale. The numbers of a
// parameter depend on `seed` and on the parameter's name. Adds 1 to parameters with RLHF_INIT_ONE,
// such as the gains of norms. Then calls refresh(). [any]
rlhf_status rlhf_test_model_fill(const rlhf_model_ops *ops, void *self, const rlhf_compute *c,
                                 uint64_t seed, double scale);

// Compares the model's backward() with finite differences. The loss is a sum of all entries of
// `heads` (bits of LOGP, ENTROPY, VALUE, SCORE, TOKEN_SCORE), each with a random weight; the weight
// is 0 for prompt tokens. Tests `some` random entries of each parameter that has a gradient.
// Returns the largest |difference - gradient| / max(|gradient|, 0.01), or NaN if a call failed.
// Restores the parameters. f32 models only; an h of about 1e-2 is suitable. [any]
double rlhf_test_model_derivative(const rlhf_model_ops *ops, void *self, const rlhf_compute *c,
                                  const rlhf_batch *batch, uint32_t heads, uint32_t some, double h);

// ---- saved state ----

// A byte buffer for save() and load(): pass &s.out, then &s.in.
struct rlhf_test_stream {
    rlhf_ostream out; // must stay the first member
    rlhf_istream in;
    uint64_t len, at, limit; // bytes written; bytes read; write fails with RLHF_E_IO beyond `limit`
    uint8_t bytes[4096];
};

// An empty stream. [any]
void rlhf_test_stream_init(struct rlhf_test_stream *s);

// ---- a fake "rlhf.classifier/1" ----

// A fake classifier. The test provides the function `logit`, which computes the logit of one label
// for a text. open() always returns this object and records its path. open_status < 0 makes open()
// fail, and logits_status < 0 makes logits() fail.
struct rlhf_test_classifier {
    rlhf_classifier_service table; // offer &c.table as RLHF_SVC_CLASSIFIER
    const char *const *labels;     // [n_labels]
    float (*logit)(const void *context, rlhf_str text, int32_t label);
    const void *context;
    const char *path; // the last path given to open, borrowed
    int32_t n_labels, open_count, open_status, logits_status;
    uint64_t n_texts; // scored so far
};

// Makes a classifier with these label names. Afterwards, set `logit` and, if needed, `context`.
// [any]
void rlhf_test_classifier_init(struct rlhf_test_classifier *c, const char *const *labels,
                               int32_t n_labels);

// ---- a fake "rlhf.tokenizer/1" ----

// A fake tokenizer. For any path, every byte is a token. open_status < 0 makes open() fail.
struct rlhf_test_tokenizer {
    rlhf_tokenizer_service table; // offer &t.table as RLHF_SVC_TOKENIZER
    const char *path;             // the last path given to open, borrowed
    int32_t open_count, open_status;
};

// Initialize a tokenizer; its open() has not been called yet. [any]
void rlhf_test_tokenizer_init(struct rlhf_test_tokenizer *t);

// ---- a fake "rlhf.reward_model/1" ----

// A fake reward model. The test provides the function `token`, which computes the reward of a token
// from its id. open_status < 0 makes open() fail, and score_status < 0 makes score() fail.
struct rlhf_test_reward_model {
    rlhf_reward_model_service table; // offer &m.table as RLHF_SVC_REWARD_MODEL
    float (*token)(const void *context, int32_t id);
    const void *context;
    const char *path; // the last path given to open, borrowed
    int32_t open_count, open_status, score_status, reserved;
    uint64_t n_rows; // scored so far
};

// Makes a reward model. Afterwards, set `token` and, if needed, `context`. [any]
void rlhf_test_reward_model_init(struct rlhf_test_reward_model *m);

// ---- a fake "rlhf.language_model/1" ----

// A fake language model. For any path, every byte is a token, and the vocabulary has 256 tokens.
// The test provides the function `logp`, which computes the log-prob of token `id` after the n
// tokens `before`. generate() takes the most probable token, also at a temperature above 0; the
// token 0 ends a response. Prompts of messages are encoded as their JSON text. Rows longer than
// `longest` fail, and so does generate() without slots. open_status < 0 makes open() fail, and
// score_status < 0 makes score() and generate() fail.
struct rlhf_test_language_model {
    rlhf_language_model_service table; // offer &m.table as RLHF_SVC_LANGUAGE_MODEL
    float (*logp)(const void *context, const int32_t *before, int32_t n, int32_t id);
    const void *context;
    const char *path; // the last path given to open, borrowed
    int32_t open_count, open_status, score_status;
    int32_t templated, longest;   // for info(); at first 1 and 4096
    int32_t slots;                // of the last open()
    uint64_t n_rows, n_responses; // scored and generated so far
};

// Makes a language model. Afterwards, set `logp` and, if needed, `context`. [any]
void rlhf_test_language_model_init(struct rlhf_test_language_model *m);

// ---- a fake "rlhf.row/1" ----

// The value that all fake rows have at `path`. Paths without such a value are absent. The JSON text
// of a row is ignored.
struct rlhf_test_row_value {
    const char *path;
    int32_t type, reserved; // enum rlhf_json_type
    const char *string;
    double number; // a number, a boolean, or the length of a list
};

struct rlhf_test_rows {
    rlhf_row_service table; // offer &r.table as RLHF_SVC_ROW
    const struct rlhf_test_row_value *values;
    uint32_t n_values;
    int32_t open_count;
};

// Makes rows with these values. `values` is borrowed. [any]
void rlhf_test_rows_init(struct rlhf_test_rows *r, const struct rlhf_test_row_value *values,
                         uint32_t n_values);

// ---- environments ----

// An episode that a test plays. The test only reads this struct.
struct rlhf_test_episode {
    const rlhf_environment_ops *ops;
    void *self, *state;
    const char *row; // the data row; NULL: none
    uint64_t seed;
    float reward; // the sum so far
    int32_t turn; // turns taken
    uint8_t end;  // enum rlhf_episode_end
    uint8_t verdict, failed, reserved[5];
    char said[4096]; // what the last function said: lines "user: 1 to 63?\n", "tool: 408\n"
};

// Begins an episode: zeroes its state and calls reset(). `self` is the environment's instance.
// `row` is the episode's data row, which is borrowed, or NULL if the episode has none. Returns the
// status of reset(), or RLHF_E_NOMEM. Call rlhf_test_close afterwards, even on failure. [step]
rlhf_status rlhf_test_begin(struct rlhf_test_episode *e, const rlhf_environment_ops *ops,
                            void *self, uint64_t seed, const char *row, const char *prompt);
// Play a turn of the policy, by passing it to step(). In rlhf_test_turn, the turn is a text without
// tool calls. In rlhf_test_call, it is one tool call, and `arguments` is a JSON object. Both return
// the status of step(). [step]
rlhf_status rlhf_test_turn(struct rlhf_test_episode *e, const char *text);
rlhf_status rlhf_test_call(struct rlhf_test_episode *e, const char *tool, const char *arguments);
// Ends the episode as the host would, for the reason `end` (enum rlhf_episode_end). Calls finish()
// and returns its status. [step]
rlhf_status rlhf_test_finish(struct rlhf_test_episode *e, int32_t end);
void rlhf_test_close(struct rlhf_test_episode *e); // close() [step]

// ---- "rlhf.limits/1" ----

// Initializes *l without limits. Set the limits that the test needs, and offer *l as
// RLHF_SVC_LIMITS. [any]
void rlhf_test_limits_init(rlhf_limits *l);

#ifdef __cplusplus
}
#endif

#endif
