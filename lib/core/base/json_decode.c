// json_decode.c: see json.h. Jansson keeps integers in 64 bits and refuses longer ones; JSON does
// not, and other writers use that (a tokenizer without a limit has a length of 10^30).
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// An integer literal s[0..n), followed by what ends a number, that 64 bits do not hold is
// written as the nearest double in the same n bytes, so that what follows keeps its place:
// 17 digits, an exponent, spaces. 1 when it was.
static int widen(char *s, size_t n) {
    size_t sign = *s == '-';
    if (n < sign + 19 || s[sign] == '0' || strspn(s + sign, "0123456789") < n - sign) return 0;
    errno = 0;
    (void)strtoll(s, NULL, 10);
    double v = strtod(s, NULL);
    if (errno != ERANGE || !isfinite(v)) return 0;
    char digits[40], fresh[40];
    snprintf(digits, sizeof digits, "%.16e", fabs(v)); // d.dddddddddddddddde+NN
    int len = snprintf(fresh, sizeof fresh, "%s%c%.16se%ld", sign ? "-" : "", digits[0], digits + 2,
                       strtol(digits + 19, NULL, 10) - 16);
    memset(s, ' ', n);
    memcpy(s, fresh, (size_t)len);
    return 1;
}

// Every such literal outside strings in the NUL-ended text[len]; how many there were.
static size_t widen_all(char *text, size_t len) {
    size_t found = 0;
    for (size_t i = 0; i < len;) {
        if (text[i] == '"') {
            for (i++; i < len && text[i] != '"'; i++)
                i += text[i] == '\\';
            i++;
        } else if (text[i] == '-' || (text[i] >= '0' && text[i] <= '9')) {
            size_t n = strspn(text + i, "0123456789+-.eE");
            found += (size_t)widen(text + i, n);
            i += n;
        } else {
            i++;
        }
    }
    return found;
}

json_t *rlhf__json_decode(const char *text, size_t len, size_t flags, json_error_t *why) {
    json_error_t own;
    if (!why) why = &own;
    json_t *v = json_loadb(text, len, flags, why);
    if (v || json_error_code(why) != json_error_numeric_overflow) return v;
    char *copy = malloc(len + 1);
    if (!copy) {
        snprintf(why->text, sizeof why->text, "out of memory");
        why->text[sizeof why->text - 1] = json_error_out_of_memory;
        return NULL;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (widen_all(copy, len)) v = json_loadb(copy, len, flags, why);
    free(copy);
    return v;
}
