// tests/models/support.h: loads a compute backend and a model plugin with dlopen, for a fake host.
// The host's own loader (lib/runtime/plugin) has separate tests.
#ifndef TESTS_MODELS_SUPPORT_H
#define TESTS_MODELS_SUPPORT_H

#include <rlhf/compute.h>
#include <rlhf/model.h>
#include <rlhf/plugin.h>
#include <rlhf/test.h>

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>
#include <string.h>

// Opens a backend of RLHF_BUILD_DIR. `compute` is NULL if the build lacks it. If RLHF_TEST_BACKEND
// is set, its value replaces the name "cpu" (cuda_emu, or cuda on a machine with a card).
struct backend {
    const rlhf_plugin *plugin;
    void *self;
    rlhf_compute *compute;
    void *config; // the defaults of its options
};

struct backend backend_of(const char *path, uint32_t threads, uint32_t guard);
struct backend backend_open(const char *name, uint32_t threads, uint32_t guard);
void backend_close(struct backend *b);

// Returns 1 if "cpu" is the emulation, which is a thousand times slower and single-threaded. Tests
// then skip wide shapes and other numbers of threads.
int backend_is_slow(void);

// 1 if the table has the operations that the plugin needs. On a GPU it may lack those of layers
// with a state.
int plugin_fits(const rlhf_compute *c, const char *plugin);

// One field of config.json.
struct setting {
    const char *key, *text;
};

struct model {
    void *dl;
    const rlhf_plugin *plugin;
    const rlhf_model_ops *ops;
    const rlhf_compute *c;
    void *config, *self;
    rlhf_model_info info;
};

// The last text that a model or a backend passed to host->fail, or "".
const char *host_failure(void);
void host_failure_clear(void);
const rlhf_host *fake_host(void);
// host_alloc_fail makes an allocation of host memory fail after `left` more have succeeded. With
// `forever`, all later ones fail, too. If left < 0, none fails. host_blocks returns the number of
// blocks in use.
void host_alloc_fail(int64_t left, int32_t forever);
int64_t host_blocks(void);

// Fails the test if the plugin is refused. The list `settings` ends with an entry whose key is
// NULL.
struct model model_open(const char *plugin, const struct setting *settings,
                        const rlhf_model_open *open);
// Does the same as model_open up to create(). Returns the status of create().
rlhf_status model_create(const char *plugin, const struct setting *settings, struct model *out);
void model_close(struct model *m);

// Writes the values of parameter i. If the model does not keep them, fills the parameter.
void model_write(struct model *m, uint32_t i, const float *x);
// Fills the parameters whose values the model does not keep, with anything.
rlhf_status model_pass(struct model *m);
// Fills every parameter with Philox numbers (stream = name), uniform in +-scale, as in
// make_vectors.py. Norm gains (1-d "weight"s) are 1 plus such a number. Then calls refresh().
void model_fill(struct model *m, double scale);
void model_zero_grad(struct model *m);
// Returns the index of the parameter with this name. Fails the test if it is missing.
uint32_t model_find(struct model *m, const char *name);
uint64_t param_count(const rlhf_param *p);
// Return freshly allocated copies of a device tensor (test_malloc; free with test_free).
float *device_read(const rlhf_compute *c, rlhf_dev src, uint64_t n);
void device_write(const rlhf_compute *c, rlhf_dev dst, const float *src, uint64_t n);

// Asserts |got - want| <= rtol * max|want| + atol for all numbers. Prints the first five
// violations.
void tensor_close_at(const float *got, const float *want, uint64_t n, double rtol, double atol,
                     const char *label, const char *file, int line);
#define assert_tensor_close(got, want, n, rtol, atol, label)                                       \
    tensor_close_at(got, want, n, rtol, atol, label, __FILE__, __LINE__)

// Make calls that must succeed. If one fails, its message is printed.
void must_at(const struct model *m, rlhf_status st, const char *what, const char *file, int line);
#define must(m, call) must_at(m, call, #call, __FILE__, __LINE__)

// Asserts that the call returns `code` and that its message contains `text`.
#define assert_refused(call, code, text)                                                           \
    do {                                                                                           \
        host_failure_clear();                                                                      \
        assert_int_equal(call, code);                                                              \
        if (!strstr(host_failure(), text))                                                         \
            fail_msg("\"%s\" does not say \"%s\"", host_failure(), text);                          \
    } while (0)

// Returns arguments of open() with sizes set: dtype, trainable, the given backend.
rlhf_model_open open_args(const struct backend *b, int32_t dtype, int32_t trainable);

// The tiny GPT-2 of make_vectors.py.
extern const struct setting tiny_gpt2[];
// A tiny DistilBERT of the same width, with 3 layers.
extern const struct setting tiny_post_norm[];

// Draws three tokens, each sampled after the one before, and their log-probs.
void draw_three(struct model *m, int32_t next[3], float logp[3]);

#endif
