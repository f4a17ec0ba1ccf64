// wrapped_gpt2.c: gpt2.so with one change, built several times:
//
// plain_gpt2.so   can neither compute log-probs over a given support nor keep hidden states on the
//                 device
// device_gpt2.so  refuses hidden states through the host
// spying_gpt2.so  appends "stream counter" of every draw to the file $DRAWS
// frozen_gpt2.so  does not train wpe or, with $FREEZE_ALL, any parameter; with $NARROW, it
//                 declares a gradient range that is too short
// bad_gpt2.so     makes a false declaration about wpe or about itself; $BAD chooses which one
// ctrl_c_gpt2.so  gets Ctrl-C (SIGINT) when it begins to work, or in its $PRESS_AT-th call; calls
//                 are counted from the first on, or while there is a file $PRESS_AFTER
// tap_gpt2.so     has the tap of gpt2.so with an error; $BAD chooses which one
#include <rlhf/draft/tap.h>
#include <rlhf/model.h>
#include <rlhf/plugin.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
#elif defined PRESSES
#define NAME "ctrl_c_gpt2"

static void press(void) {
    static int calls;
    const char *at = getenv("PRESS_AT"), *after = getenv("PRESS_AFTER");
    if (after && access(after, F_OK) != 0) return;
    if (++calls == (at ? atoi(at) : 1)) raise(SIGINT);
}

static rlhf_status gen_step(void *self, rlhf_gen *gen, const rlhf_gen_step *step) {
    press();
    return real->gen_step(self, gen, step);
}

static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                           const rlhf_heads *out) {
    press();
    return real->forward(self, b, f, out);
}

static void change(rlhf_model_ops *ops) {
    ops->gen_step = gen_step;
    ops->forward = forward;
}
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

// With BAD=counting, the first call fails. This simulates a model that depends on the values of its
// arrays. While memory is estimated, these values do not exist.
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
#elif defined TAP
#define NAME "tap_gpt2"

static const rlhf_tap_ops *tap;
static const void *(*real_extension)(void *self, const char *id);

static int is(const char *what) {
    const char *bad = getenv("BAD");
    return bad && strcmp(bad, what) == 0;
}

static rlhf_status tap_info(void *self, rlhf_tap_info *out) {
    const rlhf_status st = tap->info(self, out);
    if (is("layers")) out->n_layer++;
    if (is("heads")) out->n_head *= 2;
    if (is("wide")) out->n_head = out->head_dim = 1 << 15;
    if (is("none")) out->n_kv_head = 0;
    if (is("negative")) out->head_dim = -out->head_dim;
    if (is("vocabulary")) out->n_vocab = 1 << 30;
    if (is("eps")) out->norm_eps = -1e9;
    return st;
}

static rlhf_status tap_run(void *self, const rlhf_batch *b, const rlhf_tap_run *r) {
    if (is("status")) return 77;
    return is("forgets") ? RLHF_OK : tap->run(self, b, r);
}

static rlhf_status tap_read(void *self, int32_t point, int32_t layer, float *out, uint64_t count) {
    if (is("silent")) return RLHF_OK;
    const rlhf_status st = tap->read(self, point, layer, out, count);
    if (is("nan") && point == RLHF_TAP_MID) out[count / 2] = 0.0f / 0.0f;
    if (is("few") && point == RLHF_TAP_END) memset(out + count / 2, 0xff, count / 2 * sizeof *out);
    if (is("wrong") && point == RLHF_TAP_HEADS)
        for (uint64_t i = 0; i < count; i++)
            out[i] *= 3;
    return st;
}

static rlhf_status tap_head(void *self, int32_t head, const int32_t *row, uint32_t n, float *out,
                            float *bias) {
    return is("headless") ? RLHF_E_UNSUPPORTED : tap->head(self, head, row, n, out, bias);
}

static rlhf_status tap_logits(void *self, uint32_t first, uint32_t n, float *out) {
    return tap->logits(self, first, is("logits") && n > 1 ? n - 1 : n, out);
}

static const void *extension(void *self, const char *id) {
    static rlhf_tap_ops ops;
    if (strcmp(id, RLHF_EXT_TAP) != 0) return NULL;
    tap = real_extension(self, id);
    if (!tap) return NULL;
    ops = *tap;
    ops.info = tap_info;
    ops.run = tap_run;
    ops.read = tap_read;
    ops.head = tap_head;
    ops.logits = is("lacks") ? NULL : tap_logits;
    if (is("version")) ops.size = 8;
    return &ops;
}

static void change(rlhf_model_ops *ops) { (void)ops; }
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

const rlhf_bundle *rlhf_plugin_v1(void) {
    static rlhf_model_ops ops;
    static rlhf_plugin plugin;
    static const rlhf_plugin *const list[] = {&plugin};
    static const rlhf_bundle bundle = {sizeof bundle, RLHF_ABI_MAJOR,  RLHF_ABI_MINOR, 1,
                                       list,          RLHF_SDK_VERSION};
    const rlhf_bundle *(*entry)(void) = NULL;
    void *so = dlopen(GPT2_SO, RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!so || !(symbol = dlsym(so, "rlhf_plugin_v1"))) return NULL;
    memcpy(&entry, &symbol, sizeof entry); // ISO C has no cast to a function pointer
    plugin = *entry()->plugins[0];
#ifdef TAP
    real_extension = plugin.extension;
    plugin.extension = extension;
#else
    plugin.extension = NULL; // it would bypass the changes
#endif
    real = plugin.ops;
    ops = *real;
    change(&ops);
    plugin.ops = &ops;
    plugin.id = "org.rlhf-host.test." NAME;
    return &bundle;
}
