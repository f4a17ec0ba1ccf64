// plugin.h: parts that the tests' plugins share: an instance that stores its host and its options,
// and the descriptor. Not part of the SDK; plugin authors start from sdk/templates.
#ifndef RLHF_TESTS_SUPPORT_PLUGIN_H
#define RLHF_TESTS_SUPPORT_PLUGIN_H

#include <rlhf/plugin.h>

// create() and destroy() of a zeroed instance of type T, which begins with
//   const rlhf_host *host;
//   const struct config *config; // both outlive the instance
#define TEST_INSTANCE(T)                                                                           \
    static rlhf_status create(const rlhf_host *host, const void *config, void **self) {            \
        T *s = host->alloc(host, sizeof *s);                                                       \
        if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");                            \
        s->host = host;                                                                            \
        s->config = config;                                                                        \
        *self = s;                                                                                 \
        return RLHF_OK;                                                                            \
    }                                                                                              \
    static void destroy(void *self) {                                                              \
        T *s = self;                                                                               \
        if (s) s->host->free(s->host, s);                                                          \
    }

// The entry of a .so that contains one plugin of this kind. Its id is org.rlhf-host.test.<name>,
// and its table is `ops`. Further arguments are initializers of rlhf_plugin, such as the two below.
#define TEST_PLUGIN(kind_, name_, ...)                                                             \
    static const rlhf_plugin plugin = {.size = sizeof plugin,                                      \
                                       .kind = (kind_),                                            \
                                                                                                   \
                                       .id = "org.rlhf-host.test." name_,                          \
                                       .version = "1",                                             \
                                       .ops = &ops,                                                \
                                       __VA_ARGS__};                                               \
    RLHF_DEFINE_PLUGIN(plugin)

// The option table of struct config, an array.
#define TEST_OPTIONS(table)                                                                        \
    .opts = (table), .n_opts = sizeof(table) / sizeof *(table), .opt_stride = sizeof *(table),     \
    .config_size = sizeof(struct config)

// The functions that TEST_INSTANCE defines.
#define TEST_INSTANCES .create = create, .destroy = destroy

#endif
