// table.c: the plugin of kernels_cpu.so, and opening its table.
#include "table.h"

#include "context.h"
#include "cores.h"
#include "isa.h"
#include "reference/instance.h"
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS_MAX 1024u

#ifdef __aarch64__
#define SUMMARY "CPU backend: own kernels for NEON"
#else
#define SUMMARY "CPU backend: own kernels for AMX, AVX-512, AVX2 and plain x86-64"
#endif

static void context_free(struct rlhf__cpu *cpu) {
    if (!cpu) return;
    rlhf__threads_destroy(cpu->workers);
    rlhf__cpu_mem_free_all(cpu);
    free(cpu);
}

static void workspace_bytes(void *ctx, const rlhf_call *from, uint64_t *bytes) {
    static void (*const of_files[])(struct rlhf__cpu *, const rlhf_call *,
                                    struct rlhf__cpu_needs *) = {
        rlhf__cpu_needs_weight,    rlhf__cpu_needs_linear,    rlhf__cpu_needs_norm,
        rlhf__cpu_needs_rope,      rlhf__cpu_needs_attention, rlhf__cpu_needs_conv,
        rlhf__cpu_needs_delta,     rlhf__cpu_needs_gated,     rlhf__cpu_needs_lm_head,
        rlhf__cpu_needs_lm_sample, rlhf__cpu_needs_optim,     rlhf__cpu_needs_muon};
    struct rlhf__cpu_needs n = {{0}};
    rlhf_call c;
    if (rlhf_copy_in(&c, sizeof c, from, RLHF_SIZE_TO(rlhf_call, tensors)) == RLHF_OK)
        for (size_t i = 0; i < sizeof of_files / sizeof *of_files; i++)
            of_files[i](ctx, &c, &n);
    memset(bytes, 0, RLHF_WORKSPACES * sizeof *bytes);
    memcpy(bytes, n.bytes, sizeof n.bytes);
}

static rlhf_status supports(void *ctx, const rlhf_call *from) {
    struct rlhf__cpu *cpu = ctx;
    rlhf_call c;
    RLHF_TRY(
        rlhf__cpu_copy_in(cpu, "supports", &c, sizeof c, from, RLHF_SIZE_TO(rlhf_call, tensors)));
    if (c.op == RLHF_COMPUTE_OP(attention))
        return rlhf__cpu_supports_attention(cpu, "attention", c.attn);
    if (c.op == RLHF_COMPUTE_OP(attention_bwd))
        return rlhf__cpu_supports_attention(cpu, "attention_bwd", c.attn);
    if (c.op == RLHF_COMPUTE_OP(conv)) return rlhf__cpu_supports_conv(cpu, "conv", c.conv);
    if (c.op == RLHF_COMPUTE_OP(conv_bwd)) return rlhf__cpu_supports_conv(cpu, "conv_bwd", c.conv);
    if (c.op == RLHF_COMPUTE_OP(delta)) return rlhf__cpu_supports_delta(cpu, "delta", c.delta);
    if (c.op == RLHF_COMPUTE_OP(delta_bwd))
        return rlhf__cpu_supports_delta(cpu, "delta_bwd", c.delta);
    if (c.op == RLHF_COMPUTE_OP(gated_norm) || c.op == RLHF_COMPUTE_OP(gated_norm_bwd))
        return rlhf__cpu_supports_gated(cpu, "gated_norm", &c);
    if (c.op == RLHF_COMPUTE_OP(multiply) || c.op == RLHF_COMPUTE_OP(multiply_bwd))
        return rlhf__cpu_supports_gated(cpu, "multiply", &c);
    return RLHF_OK;
}

static void fill(rlhf_compute *t) {
    rlhf__cpu_fill_memory(t);
    rlhf__cpu_fill_weight(t);
    rlhf__cpu_fill_quantised(t);
    rlhf__cpu_fill_linear(t);
    rlhf__cpu_fill_elementwise(t);
    rlhf__cpu_fill_embed(t);
    rlhf__cpu_fill_norm(t);
    rlhf__cpu_fill_rope(t);
    rlhf__cpu_fill_move(t);
    rlhf__cpu_fill_attention(t);
    rlhf__cpu_fill_conv(t);
    rlhf__cpu_fill_delta(t);
    rlhf__cpu_fill_gated(t);
    rlhf__cpu_fill_lm_head(t);
    rlhf__cpu_fill_lm_sample(t);
    rlhf__cpu_fill_optim(t);
    rlhf__cpu_fill_muon(t);
}

static rlhf_status options_read(const rlhf_kernels_open *in, rlhf_kernels_open *out,
                                struct rlhf__cpu *cpu) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, "open", out, sizeof *out, in,
                               RLHF_SIZE_TO(rlhf_kernels_open, workspace_bytes)));
    if (out->threads > THREADS_MAX)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "threads is %u, allowed are 0 to %u",
                              out->threads, THREADS_MAX);
    if (out->gpu)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "gpu is %u, but the CPU backend has no GPU: only "
                              "0 is allowed",
                              out->gpu);
    if (out->guard)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED,
                              "guard mode exists in the reference backend only");
    return RLHF_OK;
}

// Chooses the level, and sets the members that depend on them.
static rlhf_status choose(struct rlhf__cpu *cpu, const char *arithmetic) {
    const char *cap = getenv("RLHF_CPU_ISA");
    const int best = rlhf__isa_choose(cap);
    if (best < 0)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "RLHF_CPU_ISA is \"%s\", allowed %s", cap,
                              RLHF__ISA_NAMES);
    cpu->isa = rlhf__isa_keeping(best, arithmetic);
    if (cpu->isa < 0)
        return rlhf__cpu_fail(cpu, RLHF_E_UNSUPPORTED, "it cannot keep to the arithmetic %s",
                              arithmetic);
    cpu->hot = *rlhf__isa_level(cpu->isa)->hot;
    cpu->bf16 = rlhf__isa_level(cpu->isa)->bf16_gemms;
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE); // 0: unknown
    cpu->half_l2 = (l2 > 0 ? l2 : 1 << 20) / 2;
    snprintf(cpu->detail, sizeof cpu->detail, "%s%s, %d thread%s", rlhf__isa_level(cpu->isa)->name,
             cpu->bf16 ? ", bf16 products" : "", cpu->threads, cpu->threads == 1 ? "" : "s");
    return RLHF_OK;
}

static rlhf_status context_init(struct rlhf__cpu *cpu, const rlhf_kernels_open *options) {
    rlhf_kernels_open opt;
    RLHF_TRY(options_read(options, &opt, cpu));
    cpu->threads = opt.threads ? (int)opt.threads : rlhf__cores_auto();
    cpu->workspace_bytes = opt.workspace_bytes;
    RLHF_TRY(choose(cpu, opt.arithmetic));
    rlhf_compute *t = &cpu->table;
    t->size = sizeof *t;
    t->device = RLHF_DEVICE_CPU;
    t->dtypes = 1u << RLHF_F32 | (cpu->bf16 ? 1u << RLHF_BF16 : 0u);
    t->threads = (uint32_t)cpu->threads;
    t->flags = RLHF_COMPUTE_MIN_P | RLHF_COMPUTE_DIVERGENCE | RLHF_COMPUTE_HOST_MEMORY |
               RLHF_COMPUTE_ROW_EXACT;
    t->name = "cpu";
    t->detail = cpu->detail;
    t->ctx = cpu;
    t->workspace_bytes = workspace_bytes;
    t->supports = supports;
    t->arithmetic_f32 = "v1";
    t->arithmetic_bf16 = rlhf__isa_arithmetic(cpu->isa);
    fill(t);
    return RLHF_OK;
}

static rlhf_status start_threads(struct rlhf__cpu *cpu) {
    const int failed = cpu->threads > 1 ? rlhf__threads_create(cpu->threads, &cpu->workers) : 0;
    if (!failed) return RLHF_OK;
    return rlhf__cpu_fail(cpu, RLHF_E_NOMEM,
                          "cannot start %d threads: %s; a lower --threads (run.threads), a higher "
                          "limit on processes (ulimit -u) or more memory lets it run",
                          cpu->threads, strerror(failed));
}

static rlhf_status open_table(void *self, const rlhf_kernels_open *options, rlhf_compute **out) {
    const rlhf_host *host = ((struct rlhf__backend *)self)->host;
    struct rlhf__cpu *cpu = calloc(1, sizeof *cpu);
    if (!cpu) return host->fail(host, RLHF_E_NOMEM, "out of memory for the CPU backend");
    cpu->host = host;
    rlhf_status st = context_init(cpu, options);
    if (st == RLHF_OK) st = start_threads(cpu);
    if (st < 0) {
        context_free(cpu);
        return st;
    }
    *out = &cpu->table;
    return RLHF_OK;
}

static void close_table(void *self, rlhf_compute *c) {
    (void)self;
    if (c) context_free(c->ctx);
}

void rlhf__cpu_try(char *detail, char *missing, size_t cap) {
    const rlhf_kernels_open options = {.size = sizeof options};
    struct rlhf__cpu *cpu = calloc(1, sizeof *cpu);
    detail[0] = missing[0] = 0;
    if (!cpu)
        snprintf(missing, cap, "out of memory for the CPU backend");
    else if (context_init(cpu, &options) < 0)
        snprintf(missing, cap, "%s", cpu->error);
    else
        snprintf(detail, cap, "%s", cpu->detail);
    context_free(cpu);
}

static const rlhf_kernels_ops ops = {
    .size = sizeof ops,
    .compute_major = RLHF_COMPUTE_MAJOR,
    .compute_minor = RLHF_COMPUTE_MINOR,
    .device = RLHF_DEVICE_CPU,
    .open = open_table,
    .close = close_table,
    .describe = rlhf__cpu_describe,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_KERNELS,
    .id = "org.rlhf-host.kernels.cpu",
    .version = RLHF_SDK_VERSION,
    .summary = SUMMARY,
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    .create = rlhf__backend_create,
    .destroy = rlhf__backend_destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
