#!/usr/bin/env python3
"""Writes sdk/include/rlhf/exact/tables.h, the constants of rlhf/exact.h.

Usage: make_tables.py > sdk/include/rlhf/exact/tables.h   (needs mpmath)
"""
from mpmath import mp, mpf, floor, log, pi, nint, sin, cos, exp

mp.prec = 3000


def bits(x, scale):
    return int(floor(x * mpf(2) ** scale))


def pair(n):
    return "{0x%016x, 0x%016x}" % (n >> 64, n & (2**64 - 1))


def rows(items, per):
    return ",\n".join("    " + ", ".join(items[i : i + per]) for i in range(0, len(items), per))


def log_row(i):
    """c and |log(c / 256)| for interval i of the 128 of [1, 2). c is 256 / m, rounded; m is the interval's middle or, from i = 53 on, half of it."""
    middle = (mpf(1) + (mpf(i) + mpf(1) / 2) / 128) / (2 if i >= 53 else 1)
    c = 256 if i in (0, 127) else int(nint(256 / middle))
    return c, bits(abs(log(mpf(c) / 256)), 117)


def words(x, n):
    """The first n words of 64 bits after the binary point, the highest first."""
    v = bits(x, 64 * n)
    return ["0x%016x" % ((v >> (64 * (n - 1 - i))) & (2**64 - 1)) for i in range(n)]


print("""// rlhf/exact/tables.h: the constants of rlhf/exact.h. Written by tests/exact/make_tables.py.
#ifndef RLHF_EXACT_TABLES_H
#define RLHF_EXACT_TABLES_H

#include <stdint.h>

// An unsigned number of 128 bits; hi holds the upper half.
struct rlhf_x_pair {
    uint64_t hi, lo;
};
""")
print("// 2^(i/32) times 2^127, rounded down.\nstatic const struct rlhf_x_pair rlhf_x_exp2[32] = {")
print(rows([pair(bits(exp(log(mpf(2)) * i / 32), 127)) for i in range(32)], 2) + "};\n")
f, items = 1, []
for n in range(1, 17):
    f *= n
    if n >= 8:
        items.append("0x%016x" % bits(mpf(1) / f, 78))
print("// 1/n! times 2^78, n = 8 to 16.\nstatic const uint64_t rlhf_x_factorial[9] = {")
print(rows(items, 4) + "};\n")
print("// c for each of the 128 intervals of [1, 2): 256 / m, rounded. m is the middle of interval i or,\n// for i >= 53, half of it. The first c and the last are exactly 256.")
print("static const uint16_t rlhf_x_inverse[128] = {")
print(rows(["%d" % log_row(i)[0] for i in range(128)], 16) + "};\n")
print("// |log(rlhf_x_inverse[i] / 256)| times 2^117.\nstatic const struct rlhf_x_pair rlhf_x_log[128] = {")
print(rows([pair(log_row(i)[1]) for i in range(128)], 2) + "};\n")
print("// The sine and the cosine of i pi / 128, times 2^127, rounded down.")
print("static const struct rlhf_x_pair rlhf_x_sin[33] = {")
print(rows([pair(bits(sin(pi * i / 128), 127)) for i in range(33)], 2) + "};\n")
print("static const struct rlhf_x_pair rlhf_x_cos[33] = {")
print(rows([pair(bits(cos(pi * i / 128), 127)) for i in range(33)], 2) + "};\n")
print("// The fraction of 2 / pi, the highest word first.\nstatic const uint64_t rlhf_x_two_over_pi[26] = {")
print(rows(words(2 / pi, 26), 4) + "};\n")
print("// log 2, and a quarter of pi: six words below the binary point, the highest first.")
print("static const uint64_t rlhf_x_log2[6] = {")
print(rows(words(log(mpf(2)), 6), 3) + "};\n")
print("static const uint64_t rlhf_x_quarter_pi[6] = {")
print(rows(words(pi / 4, 6), 3) + "};\n")
print("// (log 2) / 32 times 2^132, 32 / (log 2) times 2^57, (log 2) times 2^127, (pi / 2) times 2^127.")
print("static const struct rlhf_x_pair rlhf_x_step = %s;" % pair(bits(log(mpf(2)) / 32, 132)))
print("static const int64_t rlhf_x_steps = 0x%016x;" % bits(32 / log(mpf(2)), 57))
print("static const struct rlhf_x_pair rlhf_x_log2_pair = %s;" % pair(bits(log(mpf(2)), 127)))
print("static const struct rlhf_x_pair rlhf_x_half_pi = %s;" % pair(bits(pi / 2, 127)))
print("\n#endif")
