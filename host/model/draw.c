// draw.c: see draw.h.
#include "model/draw.h"

#include "base/signals.h"

#include <rlhf/exact.h>
#include <rlhf/rng.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MAX_THREADS = 64, BLOCKS = 64 }; // BLOCKS: Philox blocks at a time
#define PIECE ((size_t)1 << 16)         // numbers that a thread draws at a time; even

#define TWO_PI 6.283185307179586

// ---- normal numbers ----

// Computes two normal numbers from two uniform numbers by the Box-Muller transform. This function
// defines the results.
static void exact_pair(double a, double b, float x[2]) {
    const double angle = TWO_PI * b, radius = sqrt(-2 * rlhf_log(1 - a)); // 1 - a is in (0, 1]
    x[0] = (float)(radius * rlhf_cos(angle));
    x[1] = (float)(radius * rlhf_sin(angle));
}

// log(x) for x in [2^-53, 1], with a relative error below 2^-48: a series in (m - 1) / (m + 1) for
// the mantissa m, which is between sqrt(1/2) and sqrt(2).
static inline double quick_log(double x) {
    const uint64_t u = rlhf_x_bits(x);
    const int32_t high = (int32_t)(u >> 32), up = (high & 0xfffff) > 0x6a09e;
    const double m =
        rlhf_x_double((u & 0x000fffffffffffff) | (uint64_t)(uint32_t)(1023 - up) << 52);
    const double e = (high >> 20) - 1023 + up, s = (m - 1) / (m + 1), q = s * s;
    double p = 1.0 / 17 + q * (1.0 / 19);
    p = 1.0 / 13 + q * (1.0 / 15 + q * p);
    p = 1.0 / 9 + q * (1.0 / 11 + q * p);
    p = 1.0 / 5 + q * (1.0 / 7 + q * p);
    p = 1.0 + q * (1.0 / 3 + q * p);
    return e * 0.6931471805599453 + 2 * s * p;
}

// Computes sine and cosine of an angle from 0 to 2 pi, with errors below 2^-48. First computes the
// sine and cosine of r, the distance to the nearest multiple of pi / 2. Then exchanges or negates
// them as the quadrant requires.
static inline void quick_wave(double angle, double *sine, double *cosine) {
    const int32_t quarter = (int32_t)(angle * 0.6366197723675814 + 0.5);
    const double r = angle - quarter * 1.5707963267948966, q = r * r;
    double s = 1.0 / 6227020800 + q * (-1.0 / 1307674368000);
    s = 1.0 / 362880 + q * (-1.0 / 39916800 + q * s);
    s = 1.0 / 120 + q * (-1.0 / 5040 + q * s);
    s = r + r * q * (-1.0 / 6 + q * s);
    double c = -1.0 / 87178291200 + q * (1.0 / 20922789888000);
    c = -1.0 / 3628800 + q * (1.0 / 479001600 + q * c);
    c = -1.0 / 720 + q * (1.0 / 40320 + q * c);
    c = 1.0 + q * (-1.0 / 2 + q * (1.0 / 24 + q * c));
    const double a = quarter & 1 ? c : s, b = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -a : a;
    *cosine = (quarter + 1) & 2 ? -b : b;
}

// First computes each pair of numbers quickly, with an error below radius * 2^-46. Then checks each
// number: if the number minus radius * 2^-40 and the number plus radius * 2^-40 round to the same
// float, this float is correctly rounded. Otherwise computes the pair exactly, which takes ten
// times as long and is rarely needed.
static void normal_pairs(const double *a, const double *b, size_t blocks, float *x) {
    float other[2 * BLOCKS];
    int unsure = 0;
    for (size_t i = 0; i < blocks; i++) {
        double sine, cosine;
        const double radius = sqrt(-2 * quick_log(1 - a[i])), error = radius * 0x1p-40;
        quick_wave(TWO_PI * b[i], &sine, &cosine);
        const double first = radius * cosine, second = radius * sine;
        x[2 * i] = (float)(first - error);
        x[2 * i + 1] = (float)(second - error);
        other[2 * i] = (float)(first + error);
        other[2 * i + 1] = (float)(second + error);
        // if the radius is 0, only exact_pair() gives the zeros the right signs
        unsure |= x[2 * i] != other[2 * i] || x[2 * i + 1] != other[2 * i + 1] || error == 0;
    }
    for (size_t i = 0; unsure && i < blocks; i++)
        if (x[2 * i] != other[2 * i] || x[2 * i + 1] != other[2 * i + 1] || a[i] == 0)
            exact_pair(a[i], b[i], x + 2 * i);
}

// ---- uniform numbers ----

static void uniform_pairs(const double *a, const double *b, size_t blocks, double bound, float *x) {
    for (size_t i = 0; i < blocks; i++) {
        x[2 * i] = (float)(bound * (2 * a[i] - 1));
        x[2 * i + 1] = (float)(bound * (2 * b[i] - 1));
    }
}

// ---- pieces ----

// Each Philox block gives two numbers. x[n] is part of a parameter.
static void draw_piece(const struct rlhf__draw *d, float *x, uint64_t from, size_t n) {
    double a[BLOCKS], b[BLOCKS];
    float pairs[2 * BLOCKS];
    rlhf_rng r = {d->seed, d->stream, from / 2};
    for (size_t at = 0; at < n; at += 2 * BLOCKS) {
        const size_t left = n - at, take = left < 2 * BLOCKS ? left : 2 * BLOCKS;
        const size_t blocks = (take + 1) / 2;
        for (size_t i = 0; i < blocks; i++, r.counter++) {
            uint32_t w[4];
            rlhf_rng_block(&r, w);
            a[i] = rlhf_rng_f64(w[0], w[1]);
            b[i] = rlhf_rng_f64(w[2], w[3]);
        }
        if (d->uniform)
            uniform_pairs(a, b, blocks, d->bound, pairs);
        else
            normal_pairs(a, b, blocks, pairs);
        memcpy(x + at, pairs, take * sizeof *x);
    }
}

struct job {
    const struct rlhf__draw *draw;
    float *x;
    uint64_t from;
    size_t n;
    atomic_size_t next; // index of the first number that no thread has taken
};

static void *work(void *arg) {
    struct job *j = arg;
    for (;;) {
        const size_t at = atomic_fetch_add(&j->next, PIECE);
        if (at >= j->n) return NULL;
        const size_t left = j->n - at;
        draw_piece(j->draw, j->x + at, j->from + at, left < PIECE ? left : PIECE);
    }
}

void rlhf__draw(const struct rlhf__draw *d, float *x, uint64_t from, size_t n) {
    struct job j = {.draw = d, .x = x, .from = from, .n = n};
    pthread_t thread[MAX_THREADS];
    long wanted = d->threads > 0 ? d->threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted > MAX_THREADS) wanted = MAX_THREADS;
    int started = 0;
    for (long i = 1; i < wanted && (size_t)i * PIECE < n; i++)
        started += rlhf__signals_thread(&thread[started], work, &j);
    work(&j);
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
}
