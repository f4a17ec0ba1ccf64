// kernel.c: a compute backend based on the reference backend (rlhf/reference.h). The table is
// complete and correct from the start, and you replace its functions one by one. This file replaces
// `act` for f32 and ReLU; all other cases go to the original function.
//
// Things to change: the list of replaced functions (open_table()), the names, and finally the
// location of the memory. The file is kernels_my_kernel.so; --set compute.backend=my_kernel chooses
// it.
#include <rlhf/reference.h>

#include <stdlib.h>

// The plugin's instance. `host` receives the messages of all its tables.
struct plugin_instance {
    const rlhf_host *host;
};

// A table's data, in addition to the reference's ctx.
struct backend {
    rlhf_compute first; // the reference backend's original table
};

// Computes out = max(x, 0). As compute.h requires, out may be x.
static rlhf_status act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype,
                       uint64_t n) {
    const struct backend *b = rlhf_reference_own(ctx);
    if (kind != RLHF_ACT_RELU || dtype != RLHF_F32)
        return b->first.act(ctx, out, x, kind, dtype, n);
    // The reference backend owns the device memory. It returns the addresses and checks the
    // lengths.
    rlhf_reference_use uses[] = {{out, n * sizeof(float), NULL}, {x, n * sizeof(float), NULL}};
    RLHF_TRY(rlhf_reference_enter(ctx, "act", uses, 2));
    float *to = uses[0].host;
    const float *from = uses[1].host;
    for (uint64_t i = 0; i < n; i++)
        to[i] = from[i] > 0 ? from[i] : 0;
    return rlhf_reference_leave(ctx, RLHF_OK);
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *options, rlhf_compute **out) {
    const rlhf_host *host = ((const struct plugin_instance *)self)->host;
    struct backend *b = calloc(1, sizeof *b);
    if (!b) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = rlhf_reference_open(host, options, out);
    if (st < 0) {
        free(b);
        return st;
    }
    rlhf_compute *c = *out;
    b->first = *c;
    rlhf_reference_set_own(c->ctx, b);
    c->name = "my_kernel";
    c->detail = "the reference backend with its own activation";
    c->act = act;
    return RLHF_OK;
}

static void close_table(void *self, rlhf_compute *c) {
    struct backend *b = c ? rlhf_reference_own(c->ctx) : NULL;
    (void)self;
    rlhf_reference_close(c);
    free(b);
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct plugin_instance *p = host->alloc(host, sizeof *p);
    (void)config;
    if (!p) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    p->host = host;
    *self = p;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct plugin_instance *p = self;
    if (p) p->host->free(p->host, p);
}

static const rlhf_kernels_ops ops = {
    .size = sizeof ops,
    .compute_major = RLHF_COMPUTE_MAJOR,
    .compute_minor = RLHF_COMPUTE_MINOR,
    .device = RLHF_DEVICE_CPU,
    .open = open_table,
    .close = close_table,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_KERNELS,
    .id = "org.example.kernels.my_kernel",
    .version = "0.1.0",
    .summary = "the reference backend with its own activation",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

RLHF_DEFINE_PLUGIN(plugin)
