// plain_gpt2.c: gpt2.so as a model plugin that cannot take log-probs over a given support.
#include <rlhf/model.h>
#include <rlhf/plugin.h>

#include <dlfcn.h>
#include <string.h>

static const rlhf_model_ops *real;

static rlhf_status info(void *self, rlhf_model_info *out) {
    rlhf_status st = real->info(self, out);
    out->heads &= ~(uint32_t)RLHF_HEAD_SUPPORT;
    return st;
}

const rlhf_bundle *rlhf_plugin_v0(void) {
    static rlhf_model_ops ops;
    static rlhf_plugin plugin;
    static const rlhf_plugin *const list[] = {&plugin};
    static const rlhf_bundle bundle = {sizeof bundle, RLHF_ABI_MAJOR,  RLHF_ABI_MINOR, 1,
                                       list,          RLHF_SDK_VERSION};
    const rlhf_bundle *(*entry)(void) = NULL;
    void *so = dlopen(GPT2_SO, RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!so || !(symbol = dlsym(so, "rlhf_plugin_v0"))) return NULL;
    memcpy(&entry, &symbol, sizeof entry); // ISO C has no cast to a function pointer
    plugin = *entry()->plugins[0];
    real = plugin.ops;
    ops = *real;
    ops.info = info;
    plugin.ops = &ops;
    plugin.id = "org.rlhf-host.test.plain_gpt2";
    return &bundle;
}
