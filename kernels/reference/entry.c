// entry.c: the plugin of kernels_reference.so.
#include "context.h"
#include "instance.h"

#include <rlhf/reference.h>

#include <unistd.h>

struct config {
    int64_t rounding, rounding_scale;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, rounding, 0, 0, INT64_MAX,
                 "seed of rounding errors that the outputs of norms and log-probs get; 0 = none"),
    RLHF_OPT_I64(struct config, rounding_scale, 1, 1, 1024,
                 "how many times larger these errors are than those of f32"),
};

struct self {
    struct rlhf__backend common; // first member: the functions of instance.h use it
    struct config config;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct self *s = host->alloc(host, sizeof *s);
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->common.host = host;
    s->config = *(const struct config *)config;
    *self = s;
    return RLHF_OK;
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *open, rlhf_compute **out) {
    const struct self *s = self;
    const rlhf_status st = rlhf_reference_open(s->common.host, open, out);
    if (st != RLHF_OK) return st;
    struct rlhf__ref *r = (*out)->ctx;
    r->rounding = (uint64_t)s->config.rounding;
    r->rounding_size = (double)s->config.rounding_scale * 0x1p-20;
    return RLHF_OK;
}

static void close_table(void *self, rlhf_compute *c) {
    (void)self;
    rlhf_reference_close(c);
}

// The backend runs on the host.
static rlhf_status describe(void *self, uint32_t gpu, const char **json) {
    struct rlhf__backend *b = self;
    const long page = sysconf(_SC_PAGESIZE), all = sysconf(_SC_PHYS_PAGES);
    rlhf__json_start(&b->json);
    rlhf__json_number(&b->json, "devices", 1);
    rlhf__json_text(&b->json, "name", "naive C, for checking other backends");
    if (page > 0 && all > 0) rlhf__json_number(&b->json, "memory", (uint64_t)page * (uint64_t)all);
    if (gpu) rlhf__json_text(&b->json, "missing", "there is one device, 0");
    return rlhf__backend_described(b, json);
}

static const rlhf_kernels_ops ops = {
    .size = sizeof ops,
    .compute_major = RLHF_COMPUTE_MAJOR,
    .compute_minor = RLHF_COMPUTE_MINOR,
    .device = RLHF_DEVICE_CPU,
    .open = open_table,
    .close = close_table,
    .describe = describe,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_KERNELS,
    .id = "org.rlhf-host.kernels.reference",
    .version = RLHF_SDK_VERSION,
    .summary = "naive plain C; what the other backends are checked against",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, opts),
    .create = create,
    .destroy = rlhf__backend_destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
