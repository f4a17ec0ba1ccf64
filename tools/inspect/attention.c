// attention.c: see attention.h.
#include "inspect/attention.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdlib.h>
#include <string.h>

// The addresses of one head's queries, keys and values.
struct head {
    const float *q, *k, *v;
    size_t width, q_stride, kv_stride;
    double scale, softcap;
    size_t window; // 0: none
};

static struct head find(const struct rlhf__reading *r, int32_t layer, int32_t h) {
    const rlhf_tap_info *i = &r->tap.info;
    const size_t width = (size_t)i->head_dim, q = (size_t)rlhf__tap_width(&r->tap);
    const size_t kv = (size_t)i->n_kv_head * width, n = r->n, l = (size_t)layer;
    const size_t shared = (size_t)(h / (i->n_head / i->n_kv_head)) * width;
    return (struct head){r->q + l * n * q + (size_t)h * width,
                         r->k + l * n * kv + shared,
                         r->v + l * n * kv + shared,
                         width,
                         q,
                         kv,
                         (double)r->scale[l],
                         (double)r->softcap[l],
                         (size_t)r->window[l]};
}

static double product(const float *a, const float *b, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

// Set a[s], for s <= t, to the attention weight of token t for token s. It is 0 for the tokens
// before the window.
static void weigh(const struct head *h, size_t t, double *a) {
    const size_t first = h->window && t + 1 > h->window ? t + 1 - h->window : 0;
    double most = -INFINITY, sum = 0;
    memset(a, 0, first * sizeof *a);
    for (size_t s = first; s <= t; s++) {
        a[s] = h->scale * product(h->q + t * h->q_stride, h->k + s * h->kv_stride, h->width);
        a[s] = rlhf__capped(a[s], h->softcap);
        if (a[s] > most) most = a[s];
    }
    for (size_t s = first; s <= t; s++) {
        a[s] = rlhf_exp(a[s] - most);
        sum += a[s];
    }
    for (size_t s = first; s <= t; s++)
        a[s] /= sum;
}

static void take_one(struct rlhf__attention *out, const struct rlhf__reading *r,
                     const struct rlhf__attribution *a, const int32_t *head, size_t k,
                     const float *w, double *pulled, double *g) {
    const struct head h = find(r, head[2 * k], head[2 * k + 1]);
    const size_t n = out->n, d = (size_t)r->tap.info.d_model;
    const float *own = w + (size_t)head[2 * k + 1] * h.width * d; // the head's rows of W
    for (size_t t = 0; t < n; t++) {
        double *weight = out->weight + (k * n + t) * n, *source = out->source + (k * n + t) * n;
        const size_t at = ((size_t)head[2 * k] * n + t) * (size_t)a->heads;
        double sum = 0;
        rlhf__reading_direction(r, head[2 * k], (uint32_t)t, a->g + t * d, g);
        for (size_t c = 0; c < h.width; c++)
            pulled[c] = rlhf__dot(own + c * d, g, d);
        weigh(&h, t, weight);
        for (size_t s = 0; s <= t; s++) {
            source[s] = weight[s] * rlhf__dot(h.v + s * h.kv_stride, pulled, h.width);
            sum += source[s];
        }
        const double wrong = fabs(sum - a->head[at + (size_t)head[2 * k + 1]]);
        if (!(wrong <= out->error)) out->error = wrong;
    }
}

rlhf_status rlhf__attention_take(struct rlhf__attention *out, const struct rlhf__reading *r,
                                 const struct rlhf__attribution *a, const int32_t *head,
                                 uint32_t n_heads, struct rlhf__error *err) {
    const size_t n = r->n, all = n_heads * n * n, d = (size_t)r->tap.info.d_model;
    rlhf_status st = RLHF_OK;
    out->n = r->n;
    out->n_heads = n_heads;
    out->weight = calloc(all ? all : 1, sizeof *out->weight);
    out->source = calloc(all ? all : 1, sizeof *out->source);
    float *w = malloc(rlhf__tap_width(&r->tap) * d * sizeof *w);
    const size_t width = (size_t)r->tap.info.head_dim;
    double *pulled = malloc((width + d) * sizeof *pulled);
    if (!out->weight || !out->source || !w || !pulled)
        st = RLHF__NOMEM(err, "out of memory for the attention of %u heads", n_heads);
    for (uint32_t k = 0; st == RLHF_OK && k < n_heads; k++) {
        if (k == 0 || head[2 * k] != head[2 * k - 2])
            st = rlhf__tap_matrix(&r->tap, head[2 * k], w, err);
        if (st == RLHF_OK) take_one(out, r, a, head, k, w, pulled, pulled + width);
    }
    free(w);
    free(pulled);
    return st;
}

void rlhf__attention_finish(struct rlhf__attention *a) {
    free(a->weight);
    free(a->source);
    memset(a, 0, sizeof *a);
}
