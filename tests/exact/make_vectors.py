#!/usr/bin/env python3
"""Writes vectors.json: arguments of rlhf/exact.h and the correctly rounded results, computed by mpmath.

Usage: make_vectors.py > vectors.json   (needs mpmath)

For each function: random arguments of several ranges, ends of ranges, and hard cases, whose results are close to the
middle between two doubles. For small arguments, where the second term of the series decides, Newton's method finds hard
cases. Other hard cases are in HARD, a list of published ones.
"""
import json
import math
import random
import struct

from mpmath import mp, mpf

mp.prec = 1500
random.seed(30)


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def rounded(v, digits=53):
    """The double nearest to an mpf; ties go to even."""
    if v == 0:
        return 0.0
    sign, man, exp, n = v._mpf_
    top = exp + n - 1
    unit = max(top - (digits - 1), -1074)
    shift = unit - exp
    if shift <= 0:
        q = man << -shift
    else:
        q, rest = man >> shift, man & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        q += rest > half or (rest == half and q & 1)
    try:
        out = math.ldexp(q, unit)
    except OverflowError:
        out = math.inf
    return -out if sign else out


def distance(v, digits=53):
    """The distance of v from the middle between two doubles, in units of the last place."""
    sign, man, exp, n = v._mpf_
    unit = max(exp + n - 1 - (digits - 1), -1074)
    part = abs(v) / mpf(2) ** unit % 1
    return abs(part - mpf(1) / 2)


FUNCTIONS = {
    "exp": (mp.exp, [(-745, 709), (-1, 1), (-1e-3, 1e-3), (-1e-9, 1e-9), (-40, 0), (-744, -708)]),
    "expm1": (mp.expm1, [(-40, 709), (-1, 1), (-1e-3, 1e-3), (-1e-9, 1e-9), (40, 60)]),
    "log": (mp.log, [(0, 1e6), (0.5, 2), (0.999, 1.001), (1e-310, 1e-308), (1e100, 1e300)]),
    "log1p": (mp.log1p, [(-1, 1), (-1e-3, 1e-3), (-1e-9, 1e-9), (0, 1e6), (1e15, 1e30), (1e40, 1e300)]),
    "sin": (mp.sin, [(-7, 7), (0, 2048), (-1e-3, 1e-3), (-1e-6, 1e-6), (1e10, 1e22), (1e100, 1e300)]),
    "cos": (mp.cos, [(-7, 7), (0, 2048), (-1e-3, 1e-3), (-1e-6, 1e-6), (1e10, 1e22), (1e100, 1e300)]),
    "logf": (mp.log, [(0, 1e5), (0.5, 2), (0.99, 1.01), (1e-40, 1e-38)]),
}
HARD = {
    "exp": ["0x1p-53", "0x1.0000000000001p-53", "-0x1p-54", "-0x1.0000000000001p-54", "0x1.83d4bcdebb3f4p+2",
            "-0x1.12d71a3d5a2acp-4", "0x1.62e42fefa39efp+9", "0x1.62e42fefa39f0p+9", "-0x1.74910d52d3051p+9",
            "-0x1.74910d52d3052p+9", "-0x1.6232bdd7abcd2p+9", "0x1.62f71c4656b61p-1"],
    "expm1": ["0x1p-53", "-0x1.0000000000001p-54", "0x1.62e42fefa39efp+9", "-0x1.2b708872320e2p+5", "0x1.8p+5"],
    "log": ["0x1.0000000000001p+0", "0x1.fffffffffffffp-1", "0x1p-1074", "0x1.fffffffffffffp+1023",
            "0x1.62a88613629b6p+678", "0x1.ab50b409c8aeep-520", "0x1.0ffea3878db6bp+0"],
    "log1p": ["0x1p-53", "-0x1.fffffffffffffp-1", "0x1.fffffffffffffp+1023", "0x1p+53", "0x1p+75", "0x1.4p+199"],
    "sin": ["0x1.e0000000001c2p-20", "0x1.598bae9e632f6p-7", "0x1.921fb54442d18p+1", "0x1.921fb54442d18p+0",
            "0x1.6ac5b262ca1ffp+849", "0x1.fffffffffffffp+1023", "0x1p-26"],
    "cos": ["0x1.8000000000009p-23", "0x1.921fb54442d18p+0", "0x1.06b505550e6b2p-9", "0x1.6ac5b262ca1ffp+849",
            "0x1.34ec2f9fc9c00p+1", "0x1.fffffffffffffp+1023", "0x1p-26"],
    "logf": ["0x1.000002p+0", "0x1.fffffep-1", "0x1p-149", "0x1.fffffep+127"],
}


def single(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


SLOPE = {"expm1": mp.expm1, "log1p": lambda x: -x / (1 + x), "sin": lambda x: mp.cos(x) - 1}  # of f(x) - x


def near_middle(name, low, high, n):
    """Arguments around 2^-k for which f(x) - x is within 2^-k units of a whole number of units plus a half."""
    f, found = FUNCTIONS[name][0], []
    for _ in range(n):
        k = random.randint(low, high)
        x = mpf(math.ldexp(1 + 0.9 * random.random(), -k)) * random.choice((1, -1))
        unit = mpf(2) ** -(k + 52)
        target = (mp.floor((f(x) - x) / unit) + mpf(1) / 2) * unit
        for _ in range(12):
            x -= (f(x) - x - target) / SLOPE[name](x)
        found.append(rounded(x))
    return found


def arguments(name):
    f, ranges = FUNCTIONS[name]
    out = [float.fromhex(h) for h in HARD[name]]
    for low, high in ranges:
        out += [low + (high - low) * random.random() for _ in range(12)]
    if name == "logf":
        return [single(x) for x in out]
    if name in ("expm1", "log1p"):
        out += near_middle(name, 30, 50, 20)
    if name == "sin":
        out += near_middle(name, 10, 24, 12)
    return out


def powers():
    pairs = [(10.0, float(n)) for n in (1, 2, 15, 22, 23, 30, 100, 308, -1, -5, -22, -308, -323)]
    pairs += [(0.999, float(n)) for n in (1, 2, 3, 1000, 99999)] + [(0.9, 7.0), (0.95, 3.0), (0.999, 2.0**31 + 1)]
    pairs += [(2.0, -1074.0), (2.0, -1075.0), (2.0, 1023.0), (0.5, 0.5), (4.0, -0.5), (9.0, 0.5), (2.25, 1.5),
              (16.0, 0.25), (6.25e-2, 0.75), (81.0, 1.25), (2.0, 0.5), (1e6, -0.5), (3.0, 33.0), (3.0, 34.0), (5.0, 23.0),
              (1.5, -1.0), (7.0, 19.0), (134217729.0, 2.0), (9007199254740991.0, 2.0), (4503599761588224.0, 1.5)]
    pairs += [(1 + 2.0**-52, float(n)) for n in (2, 3, 2**20, 2**52)] + [(1 - 2.0**-53, 2.0**62), (1 + 2.0**-52, -3.0)]
    pairs += [(t, -2.0 * c / d) for t in (1e4, 1e6, 5e5) for c, d in ((1, 64), (5, 64), (31, 64), (17, 128), (3, 12))]
    pairs += [(random.uniform(0, 10), random.uniform(-300, 300)) for _ in range(30)]
    pairs += [(math.exp(random.uniform(-600, 600)), random.uniform(-1, 1)) for _ in range(20)]
    pairs += [(random.uniform(0, 2), float(random.randint(-400, 400))) for _ in range(20)]
    pairs += [(-1.5, 3.0), (-1.5, 4.0), (-2.0, -3.0), (5e-324, 0.5), (5e-324, 0.25), (1.7e308, 0.99)]
    return pairs


def main():
    out = {}
    words = lambda *xs: " ".join("%016x" % bits(x) for x in xs)
    for name in FUNCTIONS:
        f = FUNCTIONS[name][0]
        digits = 24 if name == "logf" else 53
        out[name] = [words(x, rounded(f(mpf(x)), digits)) for x in arguments(name)]
    out["pow"] = []
    for x, y in powers():
        if abs(y) * abs(math.log(abs(x))) < 745.2:
            v = mpf(x) ** mpf(y)
        else:
            v = mpf(0) if (abs(x) < 1) == (y > 0) else mpf(2) ** 2000
        out["pow"].append(words(x, y, rounded(v)))
    print("{" + ",\n ".join(f'"{k}": {json.dumps(v)}' for k, v in out.items()) + "}")


main()
