// spectrum.c: see spectrum.h.
#include "inspect/spectrum.h"

#include <float.h>
#include <math.h>
#include <rlhf/exact.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 128, TILE = 4, STEPS = 60 }; // STEPS: maximum number of QL steps for one eigenvalue

// ---- x^T x ----

// sum[TILE][TILE] += the dot products of TILE rows at `a` with TILE rows at `b`. A row has BLOCK
// elements.
static void add_tile(const double *a, const double *b, double sum[TILE][TILE]) {
    for (size_t r = 0; r < BLOCK; r++)
        for (size_t i = 0; i < TILE; i++)
            for (size_t k = 0; k < TILE; k++)
                sum[i][k] += a[r * TILE + i] * b[r * TILE + k];
}

// Returns element (r, c) of the matrix y, which is x or, if `across` is 1, x transposed. The
// program computes y^T y.
static double at(const float *x, size_t cols, int across, size_t r, size_t c) {
    return (double)(across ? x[c * cols + r] : x[r * cols + c]);
}

// Set `part` [n / TILE][BLOCK][TILE] to the BLOCK rows that begin at row `from`, with zeros past
// the last row.
static void take_block(const float *x, size_t rows, size_t cols, int across, size_t from,
                       double *part) {
    const size_t n = across ? rows : cols, m = across ? cols : rows;
    const size_t tiles = (n + TILE - 1) / TILE;
    memset(part, 0, tiles * BLOCK * TILE * sizeof *part);
    for (size_t r = 0; r < BLOCK && from + r < m; r++)
        for (size_t c = 0; c < n; c++)
            part[(c / TILE * BLOCK + r) * TILE + c % TILE] = at(x, cols, across, from + r, c);
}

// Add the block's products to the lower triangle of `g` [n, n].
static void add_block(const double *part, size_t n, double *g) {
    const size_t tiles = (n + TILE - 1) / TILE;
    for (size_t i = 0; i < tiles; i++)
        for (size_t k = 0; k <= i; k++) {
            double sum[TILE][TILE] = {{0}};
            add_tile(part + i * BLOCK * TILE, part + k * BLOCK * TILE, sum);
            for (size_t p = 0; p < TILE && i * TILE + p < n; p++)
                for (size_t q = 0; q < TILE && k * TILE + q < n; q++)
                    g[(i * TILE + p) * n + k * TILE + q] += sum[p][q];
        }
}

static int is_set(const volatile sig_atomic_t *cancelled) { return cancelled && *cancelled; }

// ---- eigenvalues of a symmetric matrix; only its lower triangle is read ----

// Reduce the matrix `a` [n, n] to a tridiagonal matrix. Sets `d` to the diagonal, and e[i] to the
// element left of d[i]. Returns early if *cancelled is set.
static void tridiagonalise(double *a, size_t n, const volatile sig_atomic_t *cancelled, double *d,
                           double *e, double *p) {
    for (size_t i = n; i-- > 1 && !is_set(cancelled);) {
        double *u = a + i * n, scale = 0, norm = 0;
        for (size_t k = 0; k < i; k++)
            scale += fabs(u[k]);
        d[i] = u[i];
        e[i] = u[i - 1];
        if (i == 1 || scale == 0) continue;
        for (size_t k = 0; k < i; k++) {
            u[k] /= scale;
            norm += u[k] * u[k];
        }
        const double g = u[i - 1] >= 0 ? -sqrt(norm) : sqrt(norm);
        const double half = norm - u[i - 1] * g; // half of |u|^2 after the next line
        double mean = 0;
        e[i] = scale * g;
        u[i - 1] -= g;
        for (size_t k = 0; k < i; k++)
            p[k] = 0;
        for (size_t r = 0; r < i; r++) { // p = A u, from the lower triangle
            const double *row = a + r * n, f = u[r];
            double sum = row[r] * f;
            for (size_t c = 0; c < r; c++) {
                sum += row[c] * u[c];
                p[c] += row[c] * f;
            }
            p[r] += sum;
        }
        for (size_t k = 0; k < i; k++) {
            p[k] /= half;
            mean += p[k] * u[k];
        }
        mean /= 2 * half;
        for (size_t k = 0; k < i; k++)
            p[k] -= mean * u[k];
        for (size_t r = 0; r < i; r++)
            for (size_t c = 0; c <= r; c++)
                a[r * n + c] -= u[r] * p[c] + p[r] * u[c];
    }
    d[0] = a[0];
    e[0] = 0;
}

// One implicit QL step on rows l to m of the tridiagonal matrix.
static void ql_step(double *d, double *e, size_t l, size_t m) {
    double g = (d[l + 1] - d[l]) / (2 * e[l]), r = hypot(g, 1), s = 1, c = 1, p = 0;
    g = d[m] - d[l] + e[l] / (g + copysign(r, g));
    for (size_t i = m; i-- > l;) {
        double f = s * e[i];
        const double b = c * e[i];
        r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {
            d[i + 1] -= p;
            e[m] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
}

// Returns the first of the rows `l`, `l` + 1, ... whose element of `e` is negligible, or the last
// row.
static size_t split(const double *d, const double *e, size_t n, size_t l) {
    while (l + 1 < n && fabs(e[l]) > DBL_EPSILON * (fabs(d[l]) + fabs(d[l + 1])))
        l++;
    return l;
}

static rlhf_status ql(double *d, double *e, size_t n, const volatile sig_atomic_t *cancelled,
                      struct rlhf__error *err) {
    for (size_t i = 1; i < n; i++)
        e[i - 1] = e[i];
    e[n - 1] = 0;
    for (size_t l = 0; l < n && !is_set(cancelled); l++) {
        size_t m;
        for (int step = 0; (m = split(d, e, n, l)) != l; step++) {
            if (step == STEPS)
                return rlhf__fail(err, RLHF_E_INTERNAL,
                                  "singular value %zu of %zu did not converge in %d steps", l + 1,
                                  n, STEPS);
            ql_step(d, e, l, m);
        }
    }
    return is_set(cancelled) ? rlhf__fail(err, RLHF_E_CANCELLED, "stopped") : RLHF_OK;
}

static int falling(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

// ---- all ----

rlhf_status rlhf__singular_values(const float *x, size_t rows, size_t cols,
                                  const volatile sig_atomic_t *cancelled, double *value,
                                  struct rlhf__error *err) {
    const int across = rows < cols;
    const size_t n = across ? rows : cols, m = across ? cols : rows;
    double *g = calloc(n * n + 2 * n, sizeof *g);
    double *part = malloc((n + TILE) * BLOCK * sizeof *part);
    rlhf_status st = RLHF_OK;
    if (!g || !part) st = RLHF__NOMEM(err, "out of memory for a matrix of %zu by %zu", n, n);
    for (size_t from = 0; st == RLHF_OK && from < m; from += BLOCK) {
        if (is_set(cancelled)) st = rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        take_block(x, rows, cols, across, from, part);
        add_block(part, n, g);
    }
    if (st == RLHF_OK) {
        double *e = g + n * n, *scratch = e + n;
        tridiagonalise(g, n, cancelled, value, e, scratch);
        st = ql(value, e, n, cancelled, err);
    }
    if (st == RLHF_OK) {
        for (size_t i = 0; i < n; i++)
            value[i] = value[i] > 0 ? sqrt(value[i]) : 0;
        qsort(value, n, sizeof *value, falling);
    }
    free(g);
    free(part);
    return st;
}

double rlhf__effective_rank(const double *value, size_t n) {
    double sum = 0, entropy = 0;
    for (size_t i = 0; i < n; i++)
        sum += value[i];
    for (size_t i = 0; sum > 0 && i < n; i++)
        if (value[i] > 0) entropy -= value[i] / sum * rlhf_log(value[i] / sum);
    return sum > 0 ? rlhf_exp(entropy) : 0;
}

size_t rlhf__rank_above(const double *value, size_t n, double floor) {
    size_t rank = 0;
    while (rank < n && value[rank] > floor)
        rank++;
    return rank;
}
