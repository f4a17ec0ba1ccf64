// kernel.cc: a compute backend in C++20, based on the reference backend (rlhf/reference.h): its
// table is complete and correct from the start, and you replace its functions one by one. This file
// replaces `act` for f32 and ReLU; all other cases go to the original function.
//
// Things to change: the list of replaced functions (open_table()), the names, and finally the
// location of the memory. The file is kernels_my_kernel.so; --set compute.backend=my_kernel chooses
// it.
#include <rlhf/reference.h>

#include <algorithm>
#include <new>

namespace {

// The plugin's instance. Its host gets the messages of all its tables.
struct plugin_instance {
    const rlhf_host *host;
};

// A table's data, in addition to the reference's ctx.
struct backend {
    rlhf_compute first; // the reference backend's original table
};

// Computes out = max(x, 0). As compute.h requires, out may be x.
rlhf_status act(void *ctx, rlhf_dev out, rlhf_dev x, int32_t kind, int32_t dtype, uint64_t n) {
    const auto *b = static_cast<const backend *>(rlhf_reference_own(ctx));
    if (kind != RLHF_ACT_RELU || dtype != RLHF_F32)
        return b->first.act(ctx, out, x, kind, dtype, n);
    // The reference backend owns the device memory. It returns the addresses and checks the
    // lengths.
    rlhf_reference_use uses[] = {{out, n * sizeof(float), nullptr},
                                 {x, n * sizeof(float), nullptr}};
    RLHF_TRY(rlhf_reference_enter(ctx, "act", uses, 2));
    const auto *from = static_cast<const float *>(uses[1].host);
    std::transform(from, from + n, static_cast<float *>(uses[0].host),
                   [](float v) { return v > 0 ? v : 0.0F; });
    return rlhf_reference_leave(ctx, RLHF_OK);
}

rlhf_status open_table(void *self, const rlhf_kernels_open *options, rlhf_compute **out) {
    const rlhf_host *host = static_cast<const plugin_instance *>(self)->host;
    auto *b = new (std::nothrow) backend();
    if (!b) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    rlhf_status st = rlhf_reference_open(host, options, out);
    if (st < 0) {
        delete b;
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

void close_table(void *, rlhf_compute *c) {
    auto *b = c ? static_cast<backend *>(rlhf_reference_own(c->ctx)) : nullptr;
    rlhf_reference_close(c);
    delete b;
}

rlhf_status create(const rlhf_host *host, const void *, void **self) {
    auto *p = new (std::nothrow) plugin_instance{host};
    if (!p) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    *self = p;
    return RLHF_OK;
}

void destroy(void *self) { delete static_cast<plugin_instance *>(self); }

const rlhf_kernels_ops ops = {
    .size = sizeof ops,
    .compute_major = RLHF_COMPUTE_MAJOR,
    .compute_minor = RLHF_COMPUTE_MINOR,
    .device = RLHF_DEVICE_CPU,
    .open = open_table,
    .close = close_table,
};
const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_KERNELS,
    .id = "org.example.kernels.my_kernel",
    .version = "0.1.0",
    .summary = "the reference backend with its own activation",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

} // namespace

RLHF_DEFINE_PLUGIN(plugin)
