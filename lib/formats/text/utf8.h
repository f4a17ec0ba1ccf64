// utf8.h: checking and repairing UTF-8.
//
// What it is not: a Unicode library (that is utf8proc); only well-formedness is looked at here.
#ifndef RLHF_HOST_TEXT_UTF8_H
#define RLHF_HOST_TEXT_UTF8_H

#include <stddef.h>
#include <stdint.h>

// Length of the longest prefix of s[0..n) that is well-formed UTF-8 (no overlong forms, no
// surrogates, at most U+10FFFF); n when all of it is. [any]
size_t rlhf__utf8_valid(const char *s, size_t n);

// Length of the well-formed character at s (n >= 1 bytes are there), or 0 when s starts an
// ill-formed sequence; then *bad is the length of the maximal subpart to replace by one U+FFFD
// (WHATWG practice). *cp gets the code point. cp and bad may be NULL. [any]
size_t rlhf__utf8_next(const char *s, size_t n, uint32_t *cp, size_t *bad);

// Write code point cp (<= U+10FFFF) as UTF-8 to out[0..4); returns its length. [any]
size_t rlhf__utf8_put(uint32_t cp, char *out);

// Copy s[0..n) to out with every ill-formed subpart replaced by U+FFFD. Writes at most cap bytes
// (whole characters only) and returns the length of the whole result, which may exceed cap; out may
// be NULL when cap is 0. No NUL is added. [any]
size_t rlhf__utf8_repair(const char *s, size_t n, char *out, size_t cap);

#endif
