// name_range.c: see name_range.h.
#include "runs/name_range.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED = 3, DIGITS_MAX = 9 };

// Returns the length of the beginning that all names share. Digits at its end do not count.
static size_t common_start(const char *const *name, size_t n) {
    size_t len = strlen(name[0]);
    for (size_t i = 1; i < n; i++) {
        size_t k = 0;
        while (k < len && name[i][k] == name[0][k])
            k++;
        len = k;
    }
    while (len > 0 && name[0][len - 1] >= '0' && name[0][len - 1] <= '9')
        len--;
    return len;
}

static int ascending(const void *a, const void *b) {
    const long *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// Each name should have a number, and nothing else, after its first `start` bytes. Returns these
// numbers in ascending order, or NULL if a name has something else there.
static long *numbers_of(const char *const *name, size_t n, size_t start) {
    long *v = calloc(n, sizeof *v);
    for (size_t i = 0; v && i < n; i++) {
        const char *tail = name[i] + start;
        const size_t digits = strspn(tail, "0123456789");
        const int plain =
            digits > 0 && digits <= DIGITS_MAX && !tail[digits] && (tail[0] != '0' || digits == 1);
        if (!plain) {
            free(v);
            return NULL;
        }
        v[i] = strtol(tail, NULL, 10);
    }
    if (v) qsort(v, n, sizeof *v, ascending);
    return v;
}

static void put_numbers(struct rlhf__buf *out, const long *v, size_t n) {
    int whole = 1;
    for (size_t i = 1; i < n; i++)
        whole &= v[i] == v[i - 1] + 1;
    if (whole) {
        rlhf__buf_printf(out, "%ld .. %ld", v[0], v[n - 1]);
        return;
    }
    for (size_t i = 0; i < n; i++)
        rlhf__buf_printf(out, "%s%ld", i ? ", " : "", v[i]);
}

void rlhf__put_name_range(struct rlhf__buf *out, const char *const *name, size_t n) {
    const size_t start = n > 1 ? common_start(name, n) : 0;
    long *number = n > 1 ? numbers_of(name, n, start) : NULL;
    if (number) {
        rlhf__buf_put(out, name[0], start);
        put_numbers(out, number, n);
        free(number);
        return;
    }
    for (size_t i = 0; i < n && (i < LISTED || n == LISTED + 1); i++)
        rlhf__buf_printf(out, "%s%s", i ? ", " : "", name[i]);
    if (n > LISTED + 1) rlhf__buf_printf(out, " and %zu more", n - LISTED);
}
