// nearest.c: see nearest.h.
#include "option/nearest.h"

#include <stdio.h>
#include <string.h>

#define MAX_NAME 63

static size_t min3(size_t a, size_t b, size_t c) {
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

size_t rlhf__edit_distance(const char *a, const char *b) {
    size_t na = strnlen(a, MAX_NAME), nb = strnlen(b, MAX_NAME);
    size_t row[3][MAX_NAME + 1]; // rows i - 2, i - 1, i, rotating
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *cur = row[i % 3];
        const size_t *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        cur[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t swap = a[i - 1] != b[j - 1];
            cur[j] = min3(up[j] + 1, cur[j - 1] + 1, up[j - 1] + swap);
            int crossed = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (crossed && up2[j - 2] + 1 < cur[j]) cur[j] = up2[j - 2] + 1;
        }
    }
    return row[na % 3][nb];
}

// Returns 1 if `part` is one of the parts of `name`. Underscores, dots and dashes separate parts.
static int is_part(const char *name, const char *part) {
    size_t n = strlen(part);
    if (n < 2) return 0;
    for (const char *at = strstr(name, part); at; at = strstr(at + 1, part)) {
        int left = at == name || strchr("_.-", at[-1]) != NULL;
        int right = strchr("_.-", at[n]) != NULL; // matches the NUL too
        if (left && right) return 1;
    }
    return 0;
}

// Returns 1 if the names have a common beginning of at least four bytes, which is at least half as
// long as the longer name.
static int same_start(const char *a, const char *b) {
    size_t n = 0, la = strlen(a), lb = strlen(b);
    while (a[n] && a[n] == b[n])
        n++;
    return n >= 4 && 2 * n >= (la > lb ? la : lb);
}

void rlhf__nearest_offer(struct rlhf__nearest *n, const char *candidate) {
    size_t a = strlen(n->wanted), b = strlen(candidate);
    size_t limit = (a > b ? a : b) / 3;
    if (limit < 1) limit = 1;
    size_t d = rlhf__edit_distance(n->wanted, candidate);
    if (d > limit) {
        if (!is_part(candidate, n->wanted) && !is_part(n->wanted, candidate) &&
            !same_start(candidate, n->wanted))
            return;
        d += MAX_NAME; // so that any close spelling is preferred
    }
    if (n->best && d >= n->distance) return;
    n->best = candidate;
    n->distance = d;
}

const char *rlhf__nearest_hint(const struct rlhf__nearest *n, char *out, size_t cap) {
    if (cap == 0) return "";
    out[0] = '\0';
    if (n->best) snprintf(out, cap, " (did you mean \"%s\"?)", n->best);
    return out;
}
