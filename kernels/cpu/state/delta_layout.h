// delta_layout.h: the scratch memory of the derivative of the gated delta rule.
#ifndef RLHF_KERNELS_CPU_STATE_DELTA_LAYOUT_H
#define RLHF_KERNELS_CPU_STATE_DELTA_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

// C tokens are computed together; the states are kept every SPAN tokens. C is the number of lanes
// of a vector (vec.h).
enum { C = 16, SPAN = 4 * C };

// The arrays of C tokens. K and V are the widths of keys and values, padded to multiples of 16.
struct chunk {
    float *q, *k;         // [C, K] normalized
    float *kt;            // [K, C]
    float *v, *e, *d;     // [C, V]: values, v - S^T k, b e
    float *grads;         // [2 C, V]: dout, then dv
    float *decay;         // [C, C]: the factor from token i to token t, in row t; 0 for i > t
    float *kk;            // [C, C]: k of token t times k of token i
    float *from;          // [C]: the factor from the state before the chunk to token t
    float *b, *z, *log_g; // [C]
};

// The arrays of a row.
struct work {
    struct chunk chunk[SPAN / C];
    float *s[SPAN / C + 1];      // [K, V]: states between chunks
    float *kept;                 // [spans, K, V]
    float *turned, *grad_turned; // [V, K]
    float *big[2];               // [C, max(K, V)]
    float *wide;                 // [max(K, V), 2 C]
    float *f, *dt;               // [C, V], [V, C]
    float *small[4];             // [C, C]
    size_t keys, values, most;
};

// The number of floats of a work; if p is not NULL, also sets the pointers.
static inline size_t rlhf__delta_lay_out(struct work *w, float *p, uint32_t n, int32_t key_dim,
                                         int32_t value_dim) {
    const size_t nk = ((size_t)key_dim + C - 1) / C * C, nv = ((size_t)value_dim + C - 1) / C * C;
    const size_t most = nk > nv ? nk : nv, state = nk * nv;
    size_t at = 0;
#define PUT(pointer, floats) ((pointer) = p ? p + at : NULL, at += (floats))
    for (size_t i = 0; i < SPAN / C; i++) {
        struct chunk *c = &w->chunk[i];
        PUT(c->q, C * nk), PUT(c->k, C * nk), PUT(c->kt, C * nk);
        PUT(c->v, C * nv), PUT(c->e, C * nv), PUT(c->d, C * nv), PUT(c->grads, 2 * C * nv);
        PUT(c->decay, C * C), PUT(c->kk, C * C);
        PUT(c->from, C), PUT(c->b, C), PUT(c->z, C), PUT(c->log_g, C);
    }
    for (size_t i = 0; i <= SPAN / C; i++)
        PUT(w->s[i], state);
    PUT(w->turned, state), PUT(w->grad_turned, state);
    PUT(w->big[0], C * most), PUT(w->big[1], C * most), PUT(w->wide, 2 * C * most);
    PUT(w->f, C * nv), PUT(w->dt, C * nv);
    for (size_t i = 0; i < 4; i++)
        PUT(w->small[i], C * C);
    PUT(w->kept, (n + SPAN - 1) / SPAN * state);
#undef PUT
    w->keys = nk;
    w->values = nv;
    w->most = most;
    return at;
}

#endif
