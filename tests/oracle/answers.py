#!/usr/bin/env python3
"""Compares answer.so's verdicts on 2,000 generated answers with the truth and with math-verify.

Usage: answers.py ORACLE_REWARDS DIRECTORY_OF_PLUGINS [--update]

Each answer is generated together with the truth: whether the answer in the response's box equals the row's answer.
answers_judged.tsv has a line for every case in which answer.so differs from the truth or from math-verify, with a
judgment of its kind. A differing case or kind that is not listed is an error, and so is a listed case that agrees.
Without math_verify, only the truth is compared. --update rewrites the file and marks new kinds of differences as
UNJUDGED.

Exit status 0: all cases are as judged; 1: some are not; 77: nothing could be run.
"""
import json
import os
import random
import subprocess
import sys
from fractions import Fraction

PROGRAM, PLUGINS = sys.argv[1:3]
JUDGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers_judged.tsv")
N = 2000


def decimal(x):
    """A fraction whose denominator has only 2 and 5, as digits."""
    k = 0
    while (x * 10**k).denominator != 1:
        k += 1
    digits = str(abs(int(x * 10**k))).rjust(k + 1, "0")
    return ("-" if x < 0 else "") + (digits[:-k] + "." + digits[-k:] if k else digits)


def frac(rng, x, command=None):
    command = command or rng.choice([r"\\frac", r"\\dfrac", r"\\tfrac"]).replace("\\\\", "\\")
    times = rng.choice([1, 1, 2, 3])
    sign = "-" if x < 0 else ""
    return f"{sign}{command}{{{abs(x.numerator) * times}}}{{{x.denominator * times}}}"


def blanks(rng, text):
    """White space where TeX does not need any."""
    out = []
    for i, c in enumerate(text):
        if c in "+-=,()[]" and rng.random() < 0.7 and (i == 0 or text[i - 1] != "\\"):
            c = rng.choice([" " + c + " ", c + " ", " " + c, c + "\\,", "~" + c])
        out.append(c)
    return "".join(out)


def other(rng, x):
    """Returns a number that is not x but similar to it."""
    return rng.choice([x + 1, x - 1, -x if x else x + 2, x * 10 or x + 3, x + Fraction(1, 10)])


# ---- kinds: each gives the row's answer, the content of the box, and whether the two are equal ----


def integer(rng):
    x = rng.choice([rng.randrange(-60, 300), rng.randrange(1000, 10**7)])
    y = x if rng.random() < 0.55 else int(other(rng, Fraction(x)))
    forms = [f"{y}", f"{y}.0", f"+{y}" if y > 0 else f"{y}", f" {y} ", f"{y}."]
    return str(x), rng.choice(forms), x == y


def fraction(rng):
    x = Fraction(rng.randrange(-30, 60), rng.randrange(2, 30))
    y = x if rng.random() < 0.55 else other(rng, x)
    forms = [frac(rng, y), f"{y.numerator}/{y.denominator}",
             frac(rng, y).replace("{", "{ ").replace("}", " }")]
    return rng.choice([frac(rng, x), f"{x.numerator}/{x.denominator}"]), rng.choice(forms), x == y


def decimals(rng):
    x = Fraction(rng.randrange(-5000, 90000), rng.choice([10, 100, 1000, 8, 4]))
    y = x if rng.random() < 0.55 else other(rng, x)
    forms = [decimal(y), decimal(y) + "0" if "." in decimal(y) else decimal(y), frac(rng, y)]
    return decimal(x), rng.choice(forms), x == y


def rounded(rng):
    """A decimal near a fraction does not equal the fraction."""
    x = Fraction(rng.randrange(1, 40), rng.choice([3, 7, 9, 11, 13]))
    if x.denominator == 1:
        x += Fraction(1, 3)
    return frac(rng, x), f"{float(x):.{rng.choice([2, 3, 4])}f}", False


def separators(rng):
    x = rng.randrange(1000, 10**8)
    y = x if rng.random() < 0.6 else int(other(rng, Fraction(x)))
    mark = rng.choice([",", "{,}", "\\,", ",\\!"])
    sign = "-" if y < 0 else ""
    return str(x), sign + f"{abs(y):,}".replace(",", mark), x == y


def percent(rng):
    x = rng.randrange(1, 400)
    y = x if rng.random() < 0.6 else x + rng.choice([1, 5, 10])
    gold = rng.choice([f"{x}", f"{x}\\%", f"{x}%"])
    return gold, rng.choice([f"{y}\\%", f"{y}%", f"{y}\\text{{ percent}}", f"{y} \\%"]), x == y


def percent_as_share(rng):
    x = rng.randrange(1, 100)
    return decimal(Fraction(x, 100)), f"{x}\\%", False


def money(rng):
    x = Fraction(rng.randrange(1, 90000), rng.choice([1, 100]))
    y = x if rng.random() < 0.6 else other(rng, x)
    y = abs(y)
    return decimal(x), rng.choice(["\\$", "$"]) + decimal(y), x == y


UNITS = ["cm", "\\text{ cm}", "\\text{ km/h}", "\\,\\text{kg}", " apples", "\\text{ square units}",
         "\\mathrm{m}", "^\\circ", "\\text{ cm}^2", " \\text{ days}", "\\text{ m/s}", " m", "kg"]


def unit(rng):
    x = rng.randrange(1, 900)
    y = x if rng.random() < 0.6 else x + rng.choice([1, 10, 100])
    return str(x), f"{y}{rng.choice(UNITS)}", x == y


def variable(rng):
    """A coefficient does not equal the whole term."""
    x = rng.randrange(2, 90)
    v = rng.choice(["x", "y", "n", "a", "xy", "x^2", "\\pi", "\\sqrt{3}", "z_1", " x", " \\pi", "k"])
    return (str(x), f"{x}{v}", False) if rng.random() < 0.7 else (f"{x}{v}", str(x), False)


def bracketed(rng):
    x = Fraction(rng.randrange(-50, 200), rng.choice([1, 1, 2, 3]))
    y = x if rng.random() < 0.6 else other(rng, x)
    text = frac(rng, y) if y.denominator > 1 else str(y)
    a, b = rng.choice([("(", ")"), ("\\left(", "\\right)"), ("[", "]"), ("\\left[", "\\right]"),
                       ("\\{", "\\}"), ("{", "}"), ("\\left\\{", "\\right\\}")])
    gold = frac(rng, x) if x.denominator > 1 else str(x)
    return gold, a + rng.choice(["", " "]) + text + rng.choice(["", " "]) + b, x == y


def mixed(rng):
    whole, part = rng.randrange(1, 30), Fraction(rng.randrange(1, 12), 12)
    part = part if part < 1 else Fraction(1, 2)
    x = whole + part
    y = x if rng.random() < 0.6 else x + 1
    n = int(y)
    say = rng.choice([f"{n}\\frac{{{part.numerator}}}{{{part.denominator}}}",
                      f"{n} \\frac{{{part.numerator}}}{{{part.denominator}}}",
                      f"{n} {part.numerator}/{part.denominator}"])
    return rng.choice([frac(rng, x), say.replace(str(n), str(whole), 1)]), say, x == y


def scientific(rng):
    m, e = rng.randrange(11, 99), rng.randrange(-6, 9)
    x = Fraction(m, 10) * Fraction(10) ** e
    y = x if rng.random() < 0.6 else x * rng.choice([10, Fraction(1, 10), 2])
    f, g = y / Fraction(10) ** e, e
    times = rng.choice(["\\times", "\\cdot", " \\times ", "\\times "])
    return (decimal(x), rng.choice([f"{decimal(f)}{times}10^{{{g}}}", f"{decimal(f)}e{g}",
                                    f"{decimal(f)} {times} 10^{{{g}}}"]), x == y)


def expression(rng):
    a, b, c = rng.randrange(2, 9), rng.randrange(2, 30), rng.randrange(2, 6)
    text = rng.choice([f"x^{c}+{b}", f"{a}x+{b}", f"\\sqrt{{{b}}}", f"{a}\\sqrt{{{b}}}", f"{a}\\pi",
                       f"{a}+{b}i", f"\\frac{{x+{a}}}{{{b}}}", f"e^{{{a}x}}-{b}", f"({a}x-{b})(x+{c})",
                       f"x_{{{a}}}+{b}", f"\\frac{{{a}\\pi}}{{{b}}}", f"-{a}x-{b}y"])
    say = text
    same = rng.random() < 0.6
    if not same:
        say = say.replace(str(b), str(b + 1), 1) if str(b) in say else say.replace(str(a), str(a + 1), 1)
    forms = [say, blanks(rng, say), blanks(rng, say).replace("{", "{ ").replace("}", " }"),
             say.replace("\\sqrt{", "\\sqrt {"), "$" + say + "$" if rng.random() < 0.2 else say]
    return text, rng.choice(forms), same


def algebra(rng):
    """The same expression in another form, which only a computer algebra system recognizes."""
    a, b = rng.randrange(2, 9), rng.randrange(2, 9)
    return rng.choice([(f"x+{a}", f"{a}+x"), (f"{a}x+{a * b}", f"{a}(x+{b})"),
                       (str(a), f"\\sqrt{{{a * a}}}"), (str(a + b), f"{a}+{b}"),
                       (str(a**2), f"{a}^2"), (f"\\frac{{1}}{{\\sqrt{{{a}}}}}", f"\\frac{{\\sqrt{{{a}}}}}{{{a}}}"),
                       (f"{a}\\cdot x", f"{a}x"), (f"(x+{a})^2", f"x^2+{2 * a}x+{a * a}")]) + (True,)


def pair(rng):
    """Tuples and intervals: order and kind of bracket count."""
    a, b = sorted(rng.sample(range(-20, 40), 2))
    left, right = rng.choice([("(", ")"), ("[", "]"), ("(", "]"), ("[", ")")])
    gold = f"{left}{a},{b}{right}"
    same = rng.random() < 0.6
    kind = rng.randrange(3)
    if same:
        say = gold
    elif kind == 0:
        say = f"{left}{b},{a}{right}"
    elif kind == 1:
        say = f"{left}{a},{b + 1}{right}"
    else:
        say = f"{'[' if left == '(' else '('}{a},{b}{right}"
    if rng.random() < 0.5:
        say = "\\left" + say[0] + blanks(rng, say[1:-1]) + "\\right" + say[-1]
    else:
        say = blanks(rng, say)
    return gold, say, same


def sets(rng):
    xs = rng.sample(range(-9, 30), rng.randrange(2, 5))
    ys = list(xs)
    if rng.random() < 0.4:
        ys[rng.randrange(len(ys))] += 50
    join = rng.choice([",", ", ", ",\\ "])
    return ("\\{" + ",".join(map(str, xs)) + "\\}", "\\{" + join.join(map(str, ys)) + "\\}", xs == ys)


def set_order(rng):
    xs = rng.sample(range(-9, 30), rng.randrange(2, 4))
    return ("\\{" + ",".join(map(str, xs)) + "\\}",
            "\\{" + ",".join(map(str, reversed(xs))) + "\\}", True)


def other_equation(rng):
    x = rng.randrange(-40, 90)
    return (rng.choice([str(x), f"x={x}"]), f"{rng.randrange(2, 9)}x - 2 = {x}", False)


def equation(rng):
    x = rng.randrange(-40, 90)
    y = x if rng.random() < 0.6 else x + 1
    return (rng.choice([str(x), f"x={x}"]),
            rng.choice([f"x = {y}", f"x={y}", f"y = {y}", f"n \\approx {y}"]), x == y)


def word(rng):
    x = rng.choice("ABCDE")
    y = x if rng.random() < 0.6 else rng.choice([c for c in "ABCDE" if c != x])
    gold = rng.choice([x, f"\\text{{{x}}}", f"({x})"])
    return gold, rng.choice([y, f"({y})", f"\\text{{({y})}}", f"\\textbf{{{y}}}", f"\\mathrm{{{y}}}"]), x == y


def several(rng):
    """A box with two numbers does not equal one of them."""
    x = rng.randrange(2, 90)
    y = x + rng.randrange(1, 9)
    return str(x), rng.choice([f"{y} \\text{{ or }} {x}", f"{y}, {x}", f"{x} \\text{{ and }} {y}", f"{x}, {y}",
                               f"{x}\\pm{y}", f"{x}-{y}", f"{x}^{y}", f"{x}:{y}"]), False


def inequality(rng):
    x = rng.randrange(2, 90)
    return str(x), rng.choice([f"x > {x}", f"x \\leq {x}", f"x \\neq {x}", f"> {x}", f"x \\ge {x}"]), False


KINDS = [(integer, 10), (fraction, 10), (decimals, 8), (rounded, 3), (separators, 6), (percent, 5),
         (percent_as_share, 2), (money, 4), (unit, 7), (variable, 7), (bracketed, 8), (mixed, 5),
         (scientific, 5), (expression, 12), (algebra, 3), (pair, 8), (sets, 4), (set_order, 1),
         (equation, 5), (other_equation, 1), (word, 4), (several, 3), (inequality, 2)]


def cases():
    rng = random.Random(19)
    kinds = [kind for kind, weight in KINDS for _ in range(weight)]
    out = {}
    while len(out) < N:
        kind = rng.choice(kinds)
        gold, box, same = kind(rng)
        before = rng.choice(["", "So it is ", "First 3 and 4, then $", "The answer: \\[", "2 + 2 = 4. "])
        after = {"$": "$.", "[": "\\]"}.get(before[-1:], rng.choice(["", ".", "\nThat is all."]))
        response = f"{before}\\boxed{{{box}}}{after}"
        out.setdefault((kind.__name__, gold, response), same)
    return [(*key, same) for key, same in out.items()]


def ours(all_cases, options):
    rows = "".join(json.dumps({"response": r, "row": {"answer": g}}) + "\n" for _, g, r, _ in all_cases)
    out = subprocess.run([PROGRAM, f"{PLUGINS}/answer.so", *options], input=rows, text=True,
                         capture_output=True)
    if out.returncode:
        raise SystemExit(f"answer.so: {out.stderr}")
    return [float(line) == 1 for line in out.stdout.split()]


def theirs(all_cases, timeout=None):
    try:
        from math_verify import parse, verify
    except ImportError:
        return None
    import logging

    logging.disable(logging.CRITICAL)
    out = []
    for _, gold, response, _ in all_cases:
        want, said = (parse(t, parsing_timeout=timeout) for t in (f"\\boxed{{{gold}}}", response))
        out.append(bool(verify(want, said, timeout_seconds=timeout)))
    return out


def judgments():
    """{(kind, gold, response): (difference, judgment)} of the file, and its judgments by kind."""
    lines, kinds = {}, {}
    for line in open(JUDGED, encoding="utf-8") if os.path.exists(JUDGED) else ():
        if line.startswith("#") or not line.strip():
            continue
        differs, kind, gold, response, why = line.rstrip("\n").split("\t")
        lines[kind, json.loads(gold), json.loads(response)] = differs
        kinds[kind, differs] = why
    return lines, kinds


def main():
    all_cases = cases()
    mine, other_side = ours(all_cases, ["where=boxed"]), theirs(all_cases)
    lines, kinds = judgments()
    found = {}
    for i, (kind, gold, response, same) in enumerate(all_cases):
        was = lines.get((kind, gold, response), "")
        verdict = other_side[i] if other_side else ("math-verify" in was) != mine[i]
        differs = f"truth {same}, answer.so {mine[i]}, math-verify {verdict}"
        if not other_side and "math-verify" in was:
            differs = was if was.startswith(f"truth {same}, answer.so {mine[i]},") else differs
        elif not other_side:
            differs = f"truth {same}, answer.so {mine[i]}, math-verify {mine[i]}"
        if mine[i] != same or differs.split("math-verify ")[1] != str(mine[i]):
            found[kind, gold, response] = differs
    if "--update" in sys.argv:
        with open(JUDGED, "w", encoding="utf-8") as f:
            f.write("# what differs, kind, answer of the row, response, judgment. Written by answers.py --update;\n"
                    "# the judgment of a kind and difference is kept.\n")
            for (kind, gold, response), differs in sorted(found.items()):
                why = kinds.get((kind, differs), "UNJUDGED")
                f.write("\t".join([differs, kind, json.dumps(gold), json.dumps(response), why]) + "\n")
        return 0
    new = {k: v for k, v in found.items() if lines.get(k) != v}
    gone = [k for k in lines if k not in found]
    wrong = sum(mine[i] != c[3] for i, c in enumerate(all_cases))
    print(f"{len(all_cases)} answers; answer.so does not say the truth of {wrong}; "
          + (f"math-verify of {sum(t != c[3] for t, c in zip(other_side, all_cases))}; "
             if other_side else "math_verify is not installed and not asked; ")
          + f"{len(found)} lines judged")
    for k, v in list(new.items())[:10]:
        print(f"  not judged: {v}: {k}")
    for k in gone[:10]:
        print(f"  judged, but differs no more: {k}")
    unjudged = [k for k, v in kinds.items() if v == "UNJUDGED"]
    for k in unjudged:
        print(f"  without a judgment: {k}")
    return 1 if new or gone or unjudged else 0


if __name__ == "__main__":
    sys.exit(main())
