// old_plugin.c: the data of a plugin file of contract 0.9, written out by hand: a reward or, with
// -DKERNELS, a compute backend. See test_load.c and the golden case cli/plugin-0.9.
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef KERNELS
struct kernels {
    uint32_t size, abi_major, abi_minor, reserved;
    const char *name, *summary;
    int32_t (*create)(const void *options, void **out, char *err, uint64_t err_cap);
    void (*destroy)(void *table);
    int32_t (*describe)(uint32_t gpu, void *out);
};

static int32_t create(const void *options, void **out, char *err, uint64_t err_cap) {
    (void)options;
    if (err_cap) *err = 0;
    *out = NULL;
    return -3;
}

static void destroy(void *table) { (void)table; }

EXPORT const struct kernels *rlhf_kernels_v0(void);
const struct kernels *rlhf_kernels_v0(void) {
    static const struct kernels own = {sizeof own,         0,      9,       0,   "old",
                                       "a backend of 0.9", create, destroy, NULL};
    return &own;
}
#else
struct plugin {
    uint32_t size, kind, host_minor_min, state_version;
    const char *id, *version, *summary;
    const void *opts;
    uint32_t n_opts, opt_stride, config_size, flags;
    int32_t (*create)(const void *host, const void *config, void **self);
    void (*destroy)(void *self);
    int32_t (*save)(void *self, const void *to);
    int32_t (*load)(void *self, const void *from, uint32_t state_version);
    const void *ops;
    const char *(*idle)(const void *config, const char *key);
};
struct bundle {
    uint32_t size, abi_major, abi_minor, n_plugins;
    const struct plugin *const *plugins;
    const char *built_with;
};
struct reward_ops {
    uint32_t size, flags;
    int32_t (*score)(void *self, const void *in, const void *out);
    int32_t (*check_row)(void *self, const char *row, uint64_t len);
};

static int32_t score(void *self, const void *in, const void *out) {
    (void)self;
    (void)in;
    (void)out;
    return 0;
}

EXPORT const struct bundle *rlhf_plugin_v0(void);
const struct bundle *rlhf_plugin_v0(void) {
    static const struct reward_ops ops = {sizeof ops, 0, score, NULL};
    static const struct plugin own = {.size = sizeof own,
                                      .kind = 2,
                                      .id = "org.example.old",
                                      .version = "1.0.0",
                                      .summary = "a reward of 0.9",
                                      .ops = &ops};
    static const struct plugin *const list[] = {&own};
    static const struct bundle bundle = {sizeof bundle, 0, 9, 1, list, "0.9.0"};
    return &bundle;
}
#endif
