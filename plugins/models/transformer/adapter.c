// transformer/adapter.c: low-rank adapters (rlhf_adapter in rlhf/model.h): which matrix products
// have an adapter, the adapter's tensors and packed weights, and its forward and backward
// arithmetic.
//
// One matrix product of the trunk can compute several linear layers of the checkpoint (q_proj,
// k_proj and v_proj). The A matrices of these linear layers are then stacked by rows into one
// matrix, and their B matrices are the blocks of one weight (rlhf_blocks). So every matrix product
// that has an adapter is computed by three products: W x, A x, and B (A x).
#include "internal.h"

#include <math.h>
#include <string.h>

static const int32_t site_slot[TF_N_SITE] = {RLHF_TF_QKV_W, RLHF_TF_PROJ_W, RLHF_TF_FC_W,
                                             RLHF_TF_OUT_W};

int32_t rlhf__tf_site_of(int32_t slot) {
    for (int32_t s = 0; s < TF_N_SITE; s++)
        if (site_slot[s] == slot) return s;
    return -1;
}

int32_t rlhf__tf_site_slot(enum rlhf__tf_site site) { return site_slot[site]; }

int32_t rlhf__tf_site_first(enum rlhf__tf_site site) {
    static const int32_t first[TF_N_SITE + 1] = {RLHF_TF_N1_G, RLHF_TF_PROJ_W, RLHF_TF_N2_G,
                                                 RLHF_TF_OUT_W, RLHF_TF_N_LAYER};
    return first[site];
}

// The input width and the output width of a matrix product.
struct size {
    int32_t in, out;
};

static struct size size_of(const struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site) {
    const struct rlhf_tf_widths n = rlhf_tf_widths(&m->arch);
    const struct rlhf__tf_mix_widths mix = rlhf__tf_mix_widths(&m->arch, layer);
    const struct size all[TF_N_SITE] = {
        {n.d, mix.first}, {mix.mixed, n.d}, {n.d, n.fc}, {n.inner, n.d}};
    return all[site];
}

int32_t rlhf__tf_site_inputs(const struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site) {
    return size_of(m, layer, site).in;
}

int32_t rlhf__tf_site_outputs(const struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site) {
    return size_of(m, layer, site).out;
}

uint64_t rlhf__tf_low_width(const struct rlhf__tf *m, enum rlhf__tf_site site) {
    int32_t blocks = 0;
    for (int32_t l = 0; m->low && l < m->arch.n_layer; l++)
        if (m->low[l].of[site].n_blocks > blocks) blocks = m->low[l].of[site].n_blocks;
    return (uint64_t)blocks * (uint64_t)m->rank;
}

// ---- which matrix products have an adapter ----

// The length of a name without ".weight".
static size_t module_length(const char *name) { return strlen(name) - (sizeof ".weight" - 1); }

// Returns 1 if the target equals the last dot-separated components of the module's name.
static int32_t is_end_of(const char *target, const char *module, size_t length) {
    const size_t n = strlen(target);
    if (!n || n > length || memcmp(module + length - n, target, n) != 0) return 0;
    return n == length || module[length - n - 1] == '.';
}

static int32_t wants_all(const rlhf_adapter *a) {
    return a->n_targets == 1 && !strcmp(a->target[0], "all-linear");
}

// Marks the targets that match the module. Returns 1 if any target does.
static int32_t match(const rlhf_adapter *a, const char *module, size_t length, uint8_t *hit) {
    int32_t any = 0;
    for (uint32_t i = 0; i < a->n_targets; i++) {
        if (!wants_all(a) && !is_end_of(a->target[i], module, length)) continue;
        hit[i] = 1;
        any = 1;
    }
    return any;
}

static void add_block(struct rlhf__tf *m, int32_t layer, const struct rlhf_tf_name *n) {
    const enum rlhf__tf_site site = (enum rlhf__tf_site)rlhf__tf_site_of(n->slot);
    struct rlhf__tf_low *low = &m->low[layer].of[site];
    // Only a matrix stored as [out, in] has pieces. A piece is a range of its rows, and therefore a
    // range of its outputs. A name without a piece covers all outputs, in either storage order.
    low->block[low->n_blocks++] = n->piece == RLHF_TF_ALL
                                      ? (struct rlhf__tf_span){0, size_of(m, layer, site).out}
                                      : rlhf__tf_piece_rows(m, layer, n);
}

// ---- a target without a match ----

// The last component of a module's name.
static const char *last_of(const char *name) {
    const char *last = name;
    const char *end = name + module_length(name);
    for (const char *p = name; p < end; p++)
        if (*p == '.') last = p + 1;
    return last;
}

// Edit distance (Levenshtein 1966) between a and the first n bytes of b.
static size_t distance(const char *a, const char *b, size_t n) {
    size_t row[64], m = strlen(a);
    if (n >= sizeof row / sizeof *row) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            const size_t change = corner + (a[i - 1] != b[j - 1]);
            const size_t other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            corner = row[j];
            row[j] = change < other ? change : other;
        }
    }
    return row[n];
}

static rlhf_status refuse_target(struct rlhf__tf *m, const char *target) {
    char list[256] = "";
    size_t used = 0, best = SIZE_MAX;
    const char *nearest = "";
    int near_length = 0;
    const struct rlhf_tf_name *n = m->arch.layers, *others = m->arch.state_layers;
    for (; n->name || others; n++) {
        if (!n->name) { // the names of the other layers follow
            n = others;
            others = NULL;
        }
        if (rlhf__tf_site_of(n->slot) < 0) continue;
        const char *last = last_of(n->name);
        const size_t length = module_length(last), far = distance(target, last, length);
        if (far < best) {
            best = far;
            nearest = last;
            near_length = (int)length;
        }
        if (used + length + 3 > sizeof list) continue;
        if (used) {
            list[used++] = ',';
            list[used++] = ' ';
        }
        memcpy(list + used, last, length);
        used += length;
    }
    return rlhf__tf_fail(
        m, RLHF_E_INVALID,
        "adapter: no linear layer of the trunk is called \"%.64s\"; the nearest is "
        "%.*s. There are %.*s; all-linear alone means all of them",
        target, near_length, nearest, (int)used, list);
}

// ---- opening ----

static rlhf_status check(struct rlhf__tf *m, const rlhf_adapter *a) {
    if (a->rank < 1 || a->rank > 1 << 16)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "adapter: rank %d is outside 1 .. %d", a->rank,
                             1 << 16);
    if (!(a->scale > 0) || !isfinite((float)a->scale))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "adapter: scale %g is not a number above 0",
                             a->scale);
    if (!a->n_targets || !a->target)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "adapter: no target is given");
    return RLHF_OK;
}

static rlhf_status match_all(struct rlhf__tf *m, const rlhf_adapter *a, uint8_t *hit) {
    char name[RLHF_PARAM_NAME_MAX + 1];
    for (int32_t layer = 0; layer < m->arch.n_layer; layer++)
        for (const struct rlhf_tf_name *n = rlhf__tf_names(&m->arch, layer); n->name; n++) {
            if (rlhf__tf_site_of(n->slot) < 0) continue;
            rlhf__tf_full_name(m, n, layer, name, sizeof name);
            if (match(a, name, module_length(name), hit)) add_block(m, layer, n);
        }
    for (uint32_t i = 0; i < a->n_targets; i++)
        if (!hit[i]) return refuse_target(m, a->target[i]);
    return RLHF_OK;
}

rlhf_status rlhf__tf_adapter_open(struct rlhf__tf *m, const rlhf_adapter *from) {
    rlhf_adapter a;
    if (!from) return RLHF_OK;
    RLHF_TRY(rlhf__tf_copy_in(m, "rlhf_adapter", &a, sizeof a, from,
                              RLHF_SIZE_TO(rlhf_adapter, reserved)));
    RLHF_TRY(check(m, &a));
    m->rank = a.rank;
    m->scale = a.scale;
    m->low = m->host->alloc(m->host, (uint64_t)m->arch.n_layer * sizeof *m->low);
    uint8_t *hit = m->host->alloc(m->host, a.n_targets);
    if (!m->low || !hit) {
        m->host->free(m->host, hit);
        return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for an adapter");
    }
    const rlhf_status st = match_all(m, &a, hit);
    m->host->free(m->host, hit);
    return st;
}

uint64_t rlhf__tf_low_outputs(const struct rlhf__tf_low *low, int32_t blocks) {
    uint64_t n = 0;
    for (int32_t i = 0; i < blocks; i++)
        n += (uint64_t)low->block[i].count;
    return n;
}

int64_t rlhf__tf_adapter_size(const struct rlhf__tf *m) {
    uint64_t n = 0;
    for (int32_t l = 0; m->low && l < m->arch.n_layer; l++)
        for (int32_t s = 0; s < TF_N_SITE; s++)
            n += m->low[l].of[s].a.n + m->low[l].of[s].b.n;
    return (int64_t)n;
}

// ---- packed weights ----

static rlhf_status make(struct rlhf__tf *m, int32_t layer, enum rlhf__tf_site site) {
    struct rlhf__tf_low *low = &m->low[layer].of[site];
    const uint32_t back = m->open.trainable ? (uint32_t)RLHF_WEIGHT_BACKWARD : 0u;
    const struct size size = size_of(m, layer, site);
    int32_t from[TF_MAX_PIECES], count[TF_MAX_PIECES];
    for (int32_t i = 0; i < low->n_blocks; i++) {
        from[i] = low->block[i].from;
        count[i] = low->block[i].count;
    }
    const rlhf_blocks b = {.size = sizeof b,
                           .n = size.out,
                           .rank = m->rank,
                           .dtype = m->dtype,
                           .flags = back,
                           .n_blocks = (uint32_t)low->n_blocks,
                           .from = from,
                           .count = count,
                           .scale = m->scale};
    RLHF_TRY(m->c->weight_create(m->c->ctx, size.in, low->n_blocks * m->rank, m->dtype,
                                 back | RLHF_WEIGHT_OUT_IN, &low->down));
    return m->c->weight_create_blocks(m->c->ctx, &b, &low->up);
}

rlhf_status rlhf__tf_adapter_weights(struct rlhf__tf *m) {
    for (int32_t l = 0; m->low && l < m->arch.n_layer; l++)
        for (int32_t s = 0; s < TF_N_SITE; s++)
            if (m->low[l].of[s].n_blocks) RLHF_TRY(make(m, l, (enum rlhf__tf_site)s));
    return RLHF_OK;
}

rlhf_status rlhf__tf_adapter_pack(struct rlhf__tf *m) {
    for (int32_t l = 0; m->low && l < m->arch.n_layer; l++)
        for (int32_t s = 0; s < TF_N_SITE; s++) {
            const struct rlhf__tf_low *low = &m->low[l].of[s];
            if (!low->n_blocks) continue;
            RLHF_TRY(m->c->weight_pack(m->c->ctx, low->down, low->a.value));
            RLHF_TRY(m->c->weight_pack(m->c->ctx, low->up, low->b.value));
        }
    return RLHF_OK;
}

void rlhf__tf_adapter_close(struct rlhf__tf *m) {
    for (int32_t l = 0; m->low && l < m->arch.n_layer; l++)
        for (int32_t s = 0; s < TF_N_SITE; s++) {
            m->c->weight_destroy(m->c->ctx, m->low[l].of[s].down);
            m->c->weight_destroy(m->c->ctx, m->low[l].of[s].up);
        }
    m->host->free(m->host, m->low);
}

// ---- arithmetic ----

const struct rlhf__tf_low *rlhf__tf_low_of(const struct rlhf__tf *m, int32_t layer,
                                           enum rlhf__tf_site site) {
    return m->low && m->low[layer].of[site].n_blocks ? &m->low[layer].of[site] : NULL;
}

rlhf_status rlhf__tf_low_in(const struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev u,
                            rlhf_dev x, uint32_t rows) {
    return m->c->linear(m->c->ctx, u, m->dtype, 0, x, low->down, NULL, rows);
}

rlhf_status rlhf__tf_low_bwd(struct rlhf__tf *m, const struct rlhf__tf_low *low, rlhf_dev x,
                             rlhf_dev u, rlhf_dev dy, uint32_t rows) {
    const rlhf_compute *c = m->c;
    rlhf_dev du = m->bwd.dlow.p;
    RLHF_TRY(c->linear_dw(c->ctx, low->b.grad, NULL, u, dy, low->up, rows));
    RLHF_TRY(c->linear_dx(c->ctx, du, m->dtype, 0, dy, low->up, rows));
    return c->linear_dw(c->ctx, low->a.grad, NULL, x, du, low->down, rows);
}
