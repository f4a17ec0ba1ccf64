// diff.c: finite differences. See diff.h.
#include "diff.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void diff_init(struct call *k, struct diff *d, double scale) {
    for (uint32_t i = 0; i < d->n_in; i++) {
        d->in[i] = call_normal(k, 10 + i, d->in_n[i], scale);
        d->grad[i] = call_host(k, d->in_n[i] * sizeof(float));
    }
    for (uint32_t i = 0; i < d->n_out; i++) {
        d->r[i] = call_normal(k, 20 + i, d->out_n[i], 1.0);
        d->out[i] = call_host(k, d->out_n[i] * sizeof(float));
    }
}

// Sets *noise to the largest effect that rounding the outputs to f32 can have.
static double loss(rlhf_compute *c, struct diff *d, double *noise) {
    struct call k = {.c = c};
    double sum = 0.0, squares = 0.0;
    d->forward(&k, d);
    call_finish(&k);
    for (uint32_t o = 0; o < d->n_out; o++) {
        for (uint64_t i = 0; i < d->out_n[o]; i++) {
            if (d->r[o][i] == 0.0f) continue; // also where the output is -inf
            const double term = (double)d->r[o][i] * (double)d->out[o][i];
            sum += term;
            squares += term * term;
        }
    }
    *noise = 1e-7 * sqrt(squares);
    return sum;
}

// Computes the difference quotient of input `in` along `u`. Sets *along to <gradient, u> for the
// step that was really taken, which is h u rounded to f32. Sets *noise to the possible rounding
// error of the quotient.
static double quotient(rlhf_compute *c, struct diff *d, uint32_t in, const float *u, double h,
                       double *along, double *noise) {
    const uint64_t n = d->in_n[in];
    float *x = d->in[in], *plus = malloc(n * sizeof *x), *minus = malloc(n * sizeof *x);
    *along = 0.0;
    for (uint64_t i = 0; i < n; i++) {
        plus[i] = (float)((double)x[i] + h * (double)u[i]);
        minus[i] = (float)((double)x[i] - h * (double)u[i]);
        *along += (double)d->grad[in][i] * ((double)plus[i] - (double)minus[i]) / (2.0 * h);
    }
    d->in[in] = plus;
    const double up = loss(c, d, noise);
    d->in[in] = minus;
    const double down = loss(c, d, noise);
    d->in[in] = x;
    *noise /= h;
    free(plus);
    free(minus);
    return (up - down) / (2.0 * h);
}

// Fills direction j over n elements. Directions 0 and 1 move all elements. Each of the others moves
// one element.
static double direction(float *u, uint32_t j, uint64_t n) {
    memset(u, 0, n * sizeof *u);
    if (j >= 2) {
        u[(j * 2654435761u + 12345u) % n] = 1.0f;
        return 1.0;
    }
    struct call k = {0};
    const float *x = call_normal(&k, 30 + j, n, 1.0);
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++) {
        u[i] = x[i];
        sum += (double)x[i] * (double)x[i];
    }
    call_finish(&k);
    return sqrt(sum);
}

void diff_check(rlhf_compute *c, struct diff *d, double h, double rtol) {
    struct call k = {.c = c};
    d->forward(&k, d);
    d->backward(&k, d);
    call_finish(&k);
    for (uint32_t in = 0; in < d->n_in; in++) {
        const uint64_t n = d->in_n[in];
        float *u = malloc(n * sizeof *u);
        double norm = 0.0, worst = 0.0;
        for (uint64_t i = 0; i < n; i++)
            norm += (double)d->grad[in][i] * (double)d->grad[in][i];
        norm = sqrt(norm);
        assert_true(norm > 0.0 && isfinite(norm));
        for (uint32_t j = 0; j < 6; j++) {
            double along, noise;
            const double length = direction(u, j, n);
            const double got = quotient(c, d, in, u, h, &along, &noise);
            const double typical = norm * length / sqrt((double)n);
            const double err = fabs(got - along) / typical;
            if (err > worst) worst = err;
            if (!(err <= rtol + noise / typical))
                fail_msg("%s, input %u, direction %u: difference quotient %.9g, gradient %.9g "
                         "(typical size %.3g)",
                         d->name, in, j, got, along, typical);
        }
        printf("  %s, input %u: relative difference at most %.1e\n", d->name, in, worst);
        free(u);
    }
}
