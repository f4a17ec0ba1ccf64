// grown_model.c: gpt2.so wrapped in older or newer structs. The host's arguments are copied into
// structs of this file's version. So the host sees a model of that version, and gpt2.so sees a host
// of that version. See test_growth.c.
#include <rlhf/model.h>

#include "grown.h"

#include <dlfcn.h>

static const rlhf_model_ops *real; // current; this file may know fewer or more of its fields

// Copies a struct of the host and sets its size to that of this version.
#define TAKE(mine, from, last)                                                                     \
    do {                                                                                           \
        RLHF_TRY(rlhf_copy_in(mine, sizeof *(mine), from, last));                                  \
        (mine)->size = sizeof *(mine);                                                             \
    } while (0)

static rlhf_status model_open(void *self, const rlhf_model_open *from) {
    rlhf_model_open o;
    rlhf_adapter adapter;
    TAKE(&o, from, RLHF_SIZE_TO(rlhf_model_open, compute));
    GROWN_TAIL(&o, "open");
    if (o.adapter) {
        TAKE(&adapter, o.adapter, RLHF_SIZE_TO(rlhf_adapter, n_targets));
        GROWN_TAIL(&adapter, "adapter");
        o.adapter = &adapter;
    }
    return real->open(self, &o);
}

static rlhf_status info(void *self, rlhf_model_info *out) {
    rlhf_model_info i = {.size = sizeof i};
    RLHF_TRY(real->info(self, &i));
#ifdef LONGER // with a field that the host does not know
    if (grown_sets("info")) out->later_number = 1;
    if (grown_sets("info")) return RLHF_OK;
    if (grown_sets("info_copied")) i.later_number = 1;
#endif
    return rlhf_copy_out(out, &i, sizeof i, RLHF_SIZE_TO(rlhf_model_info, base_prefix));
}

static rlhf_status param(void *self, uint32_t i, rlhf_param *out) {
    rlhf_param mine = {.size = sizeof mine};
    RLHF_TRY(real->param(self, i, &mine));
#ifdef LONGER
    if (grown_sets("flag")) mine.flags |= 1u << 20;
    if (grown_sets("param")) out->later_number = 1;
    if (grown_sets("param")) return RLHF_OK;
    if (grown_sets("group")) mine.group = 7;
#endif
    return rlhf_copy_out(out, &mine, sizeof mine, RLHF_SIZE_TO(rlhf_param, grad));
}

static rlhf_status take_dist(rlhf_dist *mine, const rlhf_dist **dist) {
    if (!*dist) return RLHF_OK;
    TAKE(mine, *dist, RLHF_SIZE_TO(rlhf_dist, top_k));
    GROWN_TAIL(mine, "dist");
    *dist = mine;
    return RLHF_OK;
}

typedef rlhf_status pass_fn(void *, const rlhf_batch *, const rlhf_forward *, const rlhf_heads *);

static rlhf_status pass(pass_fn *fn, void *self, const rlhf_batch *rows, const rlhf_forward *from,
                        const rlhf_heads *arrays) {
    rlhf_batch b;
    rlhf_forward f;
    rlhf_heads h;
    rlhf_dist dist;
    TAKE(&b, rows, RLHF_SIZE_TO(rlhf_batch, prefix));
    TAKE(&f, from, RLHF_SIZE_TO(rlhf_forward, kl_hidden));
    TAKE(&h, arrays, RLHF_SIZE_TO(rlhf_heads, hidden));
    RLHF_TRY(take_dist(&dist, &f.dist));
    GROWN_TAIL(&b, "batch");
    GROWN_TAIL(&f, "forward");
    GROWN_TAIL(&h, "heads");
    return fn(self, &b, &f, &h);
}

static rlhf_status forward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                           const rlhf_heads *out) {
    return pass(real->forward, self, b, f, out);
}

static rlhf_status backward(void *self, const rlhf_batch *b, const rlhf_forward *f,
                            const rlhf_heads *grad) {
    return pass(real->backward, self, b, f, grad);
}

static rlhf_status gen_step(void *self, rlhf_gen *gen, const rlhf_gen_step *from) {
    rlhf_gen_step s;
    rlhf_dist dist, logp_dist;
    TAKE(&s, from, RLHF_SIZE_TO(rlhf_gen_step, logp));
    RLHF_TRY(take_dist(&dist, &s.dist));
    RLHF_TRY(take_dist(&logp_dist, &s.logp_dist));
    GROWN_TAIL(&s, "step");
    return real->gen_step(self, gen, &s);
}

// gpt2.so's descriptor and table in this version.
static int load(rlhf_plugin *plugin, rlhf_model_ops *ops) {
    const rlhf_bundle *(*entry)(void) = NULL;
    void *so = dlopen(GPT2_SO, RTLD_NOW | RTLD_LOCAL), *symbol;
    if (!so || !(symbol = dlsym(so, RLHF_ENTRY_SYMBOL))) return 0;
    memcpy(&entry, &symbol, sizeof entry); // ISO C has no cast to a function pointer
    // Members that this version does not know, such as the extension, are left out of both tables.
    const rlhf_plugin *from = entry()->plugins[0];
    *plugin = (rlhf_plugin){0};
    memcpy(plugin, from, from->size < sizeof *plugin ? from->size : sizeof *plugin);
    real = plugin->ops;
    *ops = (rlhf_model_ops){0};
    memcpy(ops, real, real->size < sizeof *ops ? real->size : sizeof *ops);
    ops->size = sizeof *ops;
    ops->open = model_open;
    ops->info = info;
    ops->param = param;
    ops->forward = forward;
    ops->backward = backward;
    ops->gen_step = gen_step;
    plugin->size = sizeof *plugin;
    plugin->id = "org.rlhf-host.test.grown_model";
    return 1;
}

const rlhf_bundle *rlhf_plugin_v1(void) {
    static rlhf_plugin plugin;
    static rlhf_model_ops ops;
    if (!load(&plugin, &ops)) return NULL;
    GROWN_TAIL(&ops, "ops");
    return grown_bundle(&plugin, &ops);
}
