// dnnl_shim.c: see dnnl_shim.h. The two versions of oneDNN create descriptors in different ways:
// 2.x uses structs passed by value and an operation descriptor; 3.x uses opaque handles.
#include "product/dnnl_shim.h"
#include "hot/hot.h"

#include <dnnl.h>

#include <stdlib.h>

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t md_own;      // the form that we store
typedef const_dnnl_memory_desc_t md_in; // the form in which the library passes descriptors
#define MD_IN(l) ((md_in)(l)->md)
#else
typedef dnnl_memory_desc_t md_own;
typedef const dnnl_memory_desc_t *md_in;
#define MD_IN(l) ((md_in) & (l)->md)
#endif

_Static_assert(dnnl_out_of_memory == RLHF__DNNL_NOMEM, "as dnnl_shim.h says");

struct rlhf__dnnl {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

struct rlhf__dnnl_layout {
    md_own md;
};

struct rlhf__dnnl_mem {
    dnnl_memory_t mem;
};

struct rlhf__dnnl_op {
    dnnl_primitive_t prim;
    dnnl_memory_t src, wei, bias, dst, scratch; // wei only if it is a plain operand
    uint64_t scratch_bytes;
    char name[48];
};

int rlhf__dnnl_create(struct rlhf__dnnl **out) {
    struct rlhf__dnnl *d = calloc(1, sizeof *d);
    if (!d) return dnnl_out_of_memory;
    int st = dnnl_engine_create(&d->engine, dnnl_cpu, 0);
    if (!st) st = dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags);
    if (st) {
        rlhf__dnnl_destroy(d);
        return st;
    }
    *out = d;
    return 0;
}

void rlhf__dnnl_destroy(struct rlhf__dnnl *d) {
    if (!d) return;
    if (d->stream) dnnl_stream_destroy(d->stream);
    if (d->engine) dnnl_engine_destroy(d->engine);
    free(d);
}

void rlhf__dnnl_version(int out[3]) {
    const dnnl_version_t *v = dnnl_version();
    out[0] = v->major;
    out[1] = v->minor;
    out[2] = v->patch;
}

int rlhf__dnnl_cap(int isa) {
    static const dnnl_cpu_isa_t most[RLHF__ISA_COUNT] = {
        dnnl_cpu_isa_sse41, dnnl_cpu_isa_avx2, dnnl_cpu_isa_avx512_core,
        dnnl_cpu_isa_avx512_core_bf16, dnnl_cpu_isa_all};
    const int st = dnnl_set_max_cpu_isa(most[isa]);
    if (!st || most[isa] == dnnl_cpu_isa_all) return 0;
    return ((unsigned)dnnl_get_effective_cpu_isa() & ~(unsigned)most[isa]) != 0 ? st : 0;
}

static dnnl_data_type_t data_type(int32_t dtype) {
    return dtype == RLHF_BF16 ? dnnl_bf16 : dnnl_f32;
}

static int layout_tag(int64_t rows, int64_t cols, dnnl_data_type_t dt, dnnl_format_tag_t tag,
                      struct rlhf__dnnl_layout **out) {
    struct rlhf__dnnl_layout *l = calloc(1, sizeof *l);
    if (!l) return dnnl_out_of_memory;
    const dnnl_dims_t dims = {rows, cols};
#if DNNL_VERSION_MAJOR >= 3
    int st = dnnl_memory_desc_create_with_tag(&l->md, 2, dims, dt, tag);
#else
    int st = dnnl_memory_desc_init_by_tag(&l->md, 2, dims, dt, tag);
#endif
    if (st) {
        free(l);
        return st;
    }
    *out = l;
    return 0;
}

int rlhf__dnnl_layout_plain(int64_t rows, int64_t cols, int32_t dtype, int transposed,
                            struct rlhf__dnnl_layout **out) {
    return layout_tag(rows, cols, data_type(dtype), transposed ? dnnl_ba : dnnl_ab, out);
}

static int layout_copy(md_in md, struct rlhf__dnnl_layout **out) {
    struct rlhf__dnnl_layout *l = calloc(1, sizeof *l);
    if (!l) return dnnl_out_of_memory;
#if DNNL_VERSION_MAJOR >= 3
    int st = dnnl_memory_desc_clone(&l->md, md);
    if (st) {
        free(l);
        return st;
    }
#else
    l->md = *md;
#endif
    *out = l;
    return 0;
}

void rlhf__dnnl_layout_destroy(struct rlhf__dnnl_layout *l) {
    if (!l) return;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_memory_desc_destroy(l->md);
#endif
    free(l);
}

uint64_t rlhf__dnnl_layout_bytes(const struct rlhf__dnnl_layout *l) {
    return dnnl_memory_desc_get_size(MD_IN(l));
}

int rlhf__dnnl_mem_create(struct rlhf__dnnl *d, const struct rlhf__dnnl_layout *l, void *ptr,
                          struct rlhf__dnnl_mem **out) {
    struct rlhf__dnnl_mem *m = calloc(1, sizeof *m);
    if (!m) return dnnl_out_of_memory;
    int st = dnnl_memory_create(&m->mem, MD_IN(l), d->engine, ptr);
    if (st) {
        free(m);
        return st;
    }
    *out = m;
    return 0;
}

void rlhf__dnnl_mem_destroy(struct rlhf__dnnl_mem *m) {
    if (!m) return;
    dnnl_memory_destroy(m->mem);
    free(m);
}

int rlhf__dnnl_mem_point(struct rlhf__dnnl_mem *m, void *ptr) {
    return dnnl_memory_set_data_handle(m->mem, ptr);
}

// ---- primitives ----

// The library compiles code when it creates a primitive. It crashes if one of its own allocations
// fails. So check first that much more memory is free than a primitive needs (measured: under 1
// MiB).
static int memory_to_spare(void) {
    void *volatile spare = malloc((size_t)16 << 20); // volatile: else GCC removes the pair
    if (!spare) return 0;
    free(spare);
    return 1;
}

static int attr_create(int accumulate, dnnl_primitive_attr_t *out) {
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    int st = dnnl_primitive_attr_create(&attr);
    if (st) return st;
    st = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (!st && accumulate) {
        st = dnnl_post_ops_create(&ops);
#if DNNL_VERSION_MAJOR >= 3
        if (!st) st = dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_f32);
#else
        if (!st) st = dnnl_post_ops_append_sum(ops, 1.0f);
#endif
        if (!st) st = dnnl_primitive_attr_set_post_ops(attr, ops);
        if (ops) dnnl_post_ops_destroy(ops);
    }
    if (st) {
        dnnl_primitive_attr_destroy(attr);
        return st;
    }
    *out = attr;
    return 0;
}

// Creates op->prim from pd. Also creates the memory objects; each execution sets their addresses.
static int op_finish(struct rlhf__dnnl *d, struct rlhf__dnnl_op *op, dnnl_primitive_desc_t pd) {
    const char *name = "";
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    for (size_t i = 0; i + 1 < sizeof op->name && name[i]; i++)
        op->name[i] = name[i];
    int st = dnnl_primitive_create(&op->prim, pd);
    if (st) return st;
    md_in scratch = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    op->scratch_bytes = scratch ? dnnl_memory_desc_get_size(scratch) : 0;
    if (op->scratch_bytes)
        st = dnnl_memory_create(&op->scratch, scratch, d->engine, DNNL_MEMORY_NONE);
    return st;
}

int rlhf__dnnl_reorder_create(struct rlhf__dnnl *d, const struct rlhf__dnnl_layout *src,
                              const struct rlhf__dnnl_layout *dst, struct rlhf__dnnl_op **out) {
    if (!memory_to_spare()) return dnnl_out_of_memory;
    struct rlhf__dnnl_op *op = calloc(1, sizeof *op);
    if (!op) return dnnl_out_of_memory;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    int st = attr_create(0, &attr);
    if (!st)
        st = dnnl_reorder_primitive_desc_create(&pd, MD_IN(src), d->engine, MD_IN(dst), d->engine,
                                                attr);
    if (!st) st = op_finish(d, op, pd);
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    if (st) {
        rlhf__dnnl_op_destroy(op);
        return st;
    }
    *out = op;
    return 0;
}

static int matmul_desc(struct rlhf__dnnl *d, const struct rlhf__dnnl_layout *src,
                       const struct rlhf__dnnl_layout *wei, const struct rlhf__dnnl_layout *bias,
                       const struct rlhf__dnnl_layout *dst, dnnl_primitive_attr_t attr,
                       dnnl_primitive_desc_t *pd) {
    md_in bias_md = bias ? MD_IN(bias) : NULL;
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_matmul_primitive_desc_create(pd, d->engine, MD_IN(src), MD_IN(wei), bias_md,
                                             MD_IN(dst), attr);
#else
    dnnl_matmul_desc_t desc;
    int st = dnnl_matmul_desc_init(&desc, MD_IN(src), MD_IN(wei), bias_md, MD_IN(dst));
    if (st) return st;
    return dnnl_primitive_desc_create(pd, &desc, attr, d->engine, NULL);
#endif
}

// Creates the descriptors of a matmul's operands, then the primitive. l[0..3] = src, wei, dst,
// bias.
static int matmul_build(struct rlhf__dnnl *d, const struct rlhf__matmul *s,
                        const struct rlhf__dnnl_layout *packed, struct rlhf__dnnl_layout *l[4],
                        struct rlhf__dnnl_layout **out_wei, struct rlhf__dnnl_op *op) {
    int st = rlhf__dnnl_layout_plain(s->m, s->k, s->in_dtype, s->src_transposed, &l[0]);
    if (!st && s->wei_packed)
        st = packed ? layout_copy(MD_IN(packed), &l[1])
                    : layout_tag(s->k, s->n, data_type(s->in_dtype), dnnl_format_tag_any, &l[1]);
    else if (!st)
        st = rlhf__dnnl_layout_plain(s->k, s->n, s->in_dtype, s->wei_transposed, &l[1]);
    if (!st) st = rlhf__dnnl_layout_plain(s->m, s->n, s->out_dtype, 0, &l[2]);
    if (!st && s->bias) st = rlhf__dnnl_layout_plain(1, s->n, RLHF_F32, 0, &l[3]);
    if (st) return st;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    st = attr_create(s->accumulate, &attr);
    if (!st) st = matmul_desc(d, l[0], l[1], l[3], l[2], attr, &pd);
    if (!st) st = op_finish(d, op, pd);
    if (!st && out_wei)
        st = layout_copy(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), out_wei);
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    if (!st) st = dnnl_memory_create(&op->src, MD_IN(l[0]), d->engine, DNNL_MEMORY_NONE);
    if (!st && !s->wei_packed)
        st = dnnl_memory_create(&op->wei, MD_IN(l[1]), d->engine, DNNL_MEMORY_NONE);
    if (!st) st = dnnl_memory_create(&op->dst, MD_IN(l[2]), d->engine, DNNL_MEMORY_NONE);
    if (!st && s->bias)
        st = dnnl_memory_create(&op->bias, MD_IN(l[3]), d->engine, DNNL_MEMORY_NONE);
    return st;
}

int rlhf__dnnl_matmul_create(struct rlhf__dnnl *d, const struct rlhf__matmul *shape,
                             const struct rlhf__dnnl_layout *packed,
                             struct rlhf__dnnl_layout **out_wei, struct rlhf__dnnl_op **out) {
    if (!memory_to_spare()) return dnnl_out_of_memory;
    struct rlhf__dnnl_op *op = calloc(1, sizeof *op);
    if (!op) return dnnl_out_of_memory;
    struct rlhf__dnnl_layout *l[4] = {NULL, NULL, NULL, NULL};
    int st = matmul_build(d, shape, packed, l, out_wei, op);
    for (int i = 0; i < 4; i++)
        rlhf__dnnl_layout_destroy(l[i]);
    if (st) {
        rlhf__dnnl_op_destroy(op);
        return st;
    }
    *out = op;
    return 0;
}

void rlhf__dnnl_op_destroy(struct rlhf__dnnl_op *op) {
    if (!op) return;
    dnnl_memory_t mems[] = {op->src, op->wei, op->bias, op->dst, op->scratch};
    for (size_t i = 0; i < sizeof mems / sizeof mems[0]; i++)
        if (mems[i]) dnnl_memory_destroy(mems[i]);
    if (op->prim) dnnl_primitive_destroy(op->prim);
    free(op);
}

uint64_t rlhf__dnnl_op_scratch(const struct rlhf__dnnl_op *op) { return op->scratch_bytes; }

const char *rlhf__dnnl_op_name(const struct rlhf__dnnl_op *op) { return op->name; }

// ---- execution ----

// Point mem at ptr and add mem to the argument list. The library's functions take pointers without
// const, even for operands that are only read.
static int arg_add(dnnl_exec_arg_t *args, int *n, int id, dnnl_memory_t mem, const void *ptr) {
    int st = dnnl_memory_set_data_handle(mem, (void *)(uintptr_t)ptr);
    args[*n].arg = id;
    args[*n].memory = mem;
    (*n)++;
    return st;
}

int rlhf__dnnl_reorder(struct rlhf__dnnl *d, struct rlhf__dnnl_op *op, struct rlhf__dnnl_mem *src,
                       struct rlhf__dnnl_mem *dst, void *scratch) {
    dnnl_exec_arg_t args[3] = {{DNNL_ARG_FROM, src->mem}, {DNNL_ARG_TO, dst->mem}};
    int n = 2, st = 0;
    if (op->scratch) st = arg_add(args, &n, DNNL_ARG_SCRATCHPAD, op->scratch, scratch);
    if (!st) st = dnnl_primitive_execute(op->prim, d->stream, n, args);
    if (!st) st = dnnl_stream_wait(d->stream);
    return st;
}

int rlhf__dnnl_matmul(struct rlhf__dnnl *d, struct rlhf__dnnl_op *op, const void *src,
                      const struct rlhf__dnnl_mem *wei, const void *plain_wei, const float *bias,
                      void *dst, void *scratch) {
    dnnl_exec_arg_t args[5];
    int n = 0;
    int st = arg_add(args, &n, DNNL_ARG_SRC, op->src, src);
    if (!st) st = arg_add(args, &n, DNNL_ARG_DST, op->dst, dst);
    if (!st && op->wei) st = arg_add(args, &n, DNNL_ARG_WEIGHTS, op->wei, plain_wei);
    if (!st && op->bias) st = arg_add(args, &n, DNNL_ARG_BIAS, op->bias, bias);
    if (!st && op->scratch) st = arg_add(args, &n, DNNL_ARG_SCRATCHPAD, op->scratch, scratch);
    if (st) return st;
    if (!op->wei) {
        args[n].arg = DNNL_ARG_WEIGHTS;
        args[n].memory = wei->mem;
        n++;
    }
    st = dnnl_primitive_execute(op->prim, d->stream, n, args);
    if (!st) st = dnnl_stream_wait(d->stream);
    return st;
}
