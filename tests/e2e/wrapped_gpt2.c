// wrapped_gpt2.c: gpt2.so with one change, built several times:
//
// plain_gpt2.so   can neither compute log-probs over a given support nor keep hidden states on the
//                 device
// device_gpt2.so  refuses hidden states through the host
// spying_gpt2.so  appends "stream counter" of every draw to the file $DRAWS
// frozen_gpt2.so  does not train wpe (with $FREEZE_ALL, nothing); with $NARROW, it declares a
//                 gradient range that is too short
// bad_gpt2.so     makes the false declaration that $BAD names, about wpe or about itself
#include <rlhf/model.h>
#include <rlhf/plugin.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const rlhf_model_ops *real;

#ifdef SPY
#define NAME "spying_gpt2"

static rlhf_status gen_step(void *self, rlhf_gen *gen, const rlhf_gen_step *step) {
    FILE *f = fopen(getenv("DRAWS"), "a");
    if (!f) return RLHF_E_IO;
    for (uint32_t i = 0; i < step->n; i++)
        if (!step->silent || !step->silent[i])
            fprintf(f, "%016llx %016llx\n", (unsigned long long)step->stream,
                    (unsigned long long)step->counter[i]);
    fclose(f);
    return real->gen_step(self, gen, step);
}

static void change(rlhf_model_ops *ops) { ops->gen_step = gen_step; }
#elif defined FREEZE
#define NAME "frozen_gpt2"

static rlhf_status param(void *self, uint32_t i, rlhf_param *out) {
    rlhf_status st = real->param(self, i, out);
    if (st < 0 || (!getenv("FREEZE_ALL") && !strstr(out->name, "wpe"))) return st;
    out->flags |= RLHF_PARAM_FROZEN;
    out->grad = NULL;
    return st;
}

static rlhf_status info(void *self, rlhf_model_info *out) {
    rlhf_status st = real->info(self, out);
    if (getenv("NARROW")) out->grad_bytes /= 2;
    return st;
}

static void change(rlhf_model_ops *ops) {
    ops->param = param;
    ops->info = info;
}
#elif defined BAD
#define NAME "bad_gpt2"

static int is(const char *what) {
    const char *bad = getenv("BAD");
    return bad && strcmp(bad, what) == 0;
}

static rlhf_status param(void *self, uint32_t i, rlhf_param *out) {
    static char longest[RLHF_PARAM_NAME_MAX + 2];
    rlhf_status st = real->param(self, i, out);
    if (st < 0 || !strstr(out->name, "wpe")) return st;
    memset(longest, 'x', sizeof longest - 1);
    if (is("nameless")) out->name = NULL;
    if (is("empty")) out->name = "";
    if (is("long")) out->name = longest;
    if (is("flat")) out->ndim = 0;
    if (is("deep")) out->ndim = 5;
    if (is("negative")) out->shape[1] = -32;
    if (is("huge")) out->shape[1] = INT64_MAX / 8;
    if (is("nowhere")) out->value = NULL;
    if (is("flag")) out->flags |= 1u << 30;
    return st;
}

static rlhf_status info(void *self, rlhf_model_info *out) {
    rlhf_status st = real->info(self, out);
    if (is("head")) out->heads |= 1u << 30;
    return st;
}

// With "counting" the first call fails, as in a model that needs the numbers that it reads. While
// memory is estimated, these numbers do not exist.
static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                           const rlhf_heads *out) {
    static int calls;
    return is("counting") && calls++ == 0 ? RLHF_E_INVALID : real->forward(self, b, f, out);
}

static void change(rlhf_model_ops *ops) {
    ops->param = param;
    ops->info = info;
    ops->forward = forward;
}
#elif defined ON_DEVICE
#define NAME "device_gpt2"

static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                           const rlhf_heads *out) {
    return f->kl_hidden || out->hidden ? RLHF_E_INVALID : real->forward(self, b, f, out);
}

static void change(rlhf_model_ops *ops) { ops->forward = forward; }
#else
#define NAME "plain_gpt2"

static rlhf_status info(void *self, rlhf_model_info *out) {
    rlhf_status st = real->info(self, out);
    out->caps &= ~(uint32_t)(RLHF_CAP_SUPPORT | RLHF_CAP_DEV_HIDDEN);
    return st;
}

static void change(rlhf_model_ops *ops) { ops->info = info; }
#endif

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
    plugin.extension = NULL; // it would bypass the changes
    real = plugin.ops;
    ops = *real;
    change(&ops);
    plugin.ops = &ops;
    plugin.id = "org.rlhf-host.test." NAME;
    return &bundle;
}
