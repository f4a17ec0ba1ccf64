#!/usr/bin/env python3
"""Compares answer.so's verdicts on 3,000 generated answers of hard forms with the truth, and counts math-verify's mistakes.

Usage: answer_forms.py ORACLE_REWARDS DIRECTORY_OF_PLUGINS [--show] [--gsm8k FILE.jsonl.gz]

The forms are those that public reports name: several equations, "or", factorials, comparisons, words that change a number, terms in running
text, Markdown, separators. Each answer is generated together with the truth. An answer in a form of NOT_READ may be missed. Any other missed
answer, and any wrong answer that is rewarded, is an error. --show prints the mistakes of both. With --gsm8k, the solutions of that file are
judged in addition: as they are, and with another number at the end.

Exit status 0: no mistake but those of NOT_READ; 1: others; 77: nothing could be run.
"""
import gzip
import json
import random
import re
import sys
from collections import Counter

from answers import ours, theirs

N = 3000
# Forms in which a right answer is missed, as docs/rewards/answer.md says: another order, a calculation, a dozen.
NOT_READ = {"system_order", "calculation", "dozen_value"}


def boxed(rng, content):
    before = rng.choice(["", "So it is ", "First 3 and 4, then ", "The answer: \\[", "2 + 2 = 4. "])
    return before + "\\boxed{" + content + "}" + ("\\]" if before.endswith("[") else rng.choice(["", ".", "\nThat is all."]))


def prose(rng, content):
    """A sentence that ends in the answer."""
    return rng.choice(["The side is {}.", "So we get {}", "Therefore, the answer is {}.", "With 3 of them that is {}!", "It follows: {}"]).format(content)


def maths(rng, content):
    return rng.choice(["${}$", "\\({}\\)", "$${}$$", "\\[{}\\]"]).format(content)


def some(rng):
    return rng.choice([rng.randrange(2, 30), rng.randrange(30, 300)])


# ---- kinds: each gives the row's answer, the response, whether the two are equal, and a form ----


def system(rng):
    x, y = rng.sample(range(2, 60), 2)
    a, b = rng.choice(["xy", "ab", "mn", "pq"])
    join = rng.choice([", ", ",", " \\text{ and } ", ",\\ ", "; "])
    gold = f"{a}={x}, {b}={y}"
    k = rng.randrange(7)
    if k < 2:
        return gold, boxed(rng, f"{a} = {x}, {b} = {y}"), True, ""
    if k == 2:
        return gold, boxed(rng, f"{b}={y}, {a}={x}"), True, "system_order"
    wrong = [f"{a}={x + 1}{join}{b}={y}", f"{b}={y}", f"{y}", f"{a}={x}", f"{a}={x}{join}{b}={y + 1}"]
    say = rng.choice(wrong)
    return gold, boxed(rng, say) if rng.random() < 0.8 else prose(rng, say), False, ""


def roots(rng):
    x, y = rng.sample(range(-20, 60), 2)
    word = rng.choice([" \\text{ or } ", " or ", " \\quad\\text{or}\\quad ", " \\lor "])
    gold = f"x={x}{word}x={y}"
    if rng.random() < 0.4:
        return gold, boxed(rng, f"x = {x}{word}x = {y}"), True, ""
    return gold, boxed(rng, rng.choice([f"x={x + 1}{word}x={y}", f"x={y}", f"{y}", f"x={x}", f"x={x}{word}x={y + 1}"])), False, ""


def several_equations(rng):
    """The row has one number; the response gives more."""
    x, y = rng.sample(range(2, 60), 2)
    return str(y), boxed(rng, rng.choice([
        f"x={x}, y={y}", f"x = {x} \\text{{ or }} x = {y}", f"x = {x} or x = {y}", f"x \\ge {x}, x = {y}", f"a={x}; b={y}", f"x={y}, y={x}",
        f"A=\\{{{x}\\}}, B={y}", f"x={x} \\text{{ and }} y={y}", f"(x, y) = ({x}, {y})", f"x={x}\\\\y={y}", f"x_1={x}, x_2={y}"])), False, ""


def chain(rng):
    x, y = rng.sample(range(2, 60), 2)
    z = x + y
    w = z if rng.random() < 0.6 else z + 1
    say = rng.choice([f"{x}+{y}={w}", f"x = {x} + {y} = {w}", f"\\frac{{{2 * z}}}{{2}} = {w}", f"P(A) = {w}", f"n = {w}", f"x_{{max}} = {w}",
                      f"|AB| = {w}", f"f({x}) = {w}", f"x \\approx {w}", f"S_{{{x}}} = {w}", f"\\angle ABC = {w}^\\circ", f"x = {w} \\text{{ cm}}",
                      f"AB = {w}", f"{x} \\times {y} - {x * y - z} = {w}", f"{x}\\% \\cdot {y} = {w}"])
    return rng.choice([str(z), f"x={z}"]), boxed(rng, say), w == z, ""


def factorial(rng):
    n = rng.choice([rng.randrange(2, 12), rng.randrange(100, 3000)])
    return rng.choice([(f"{n}!", f"\\boxed{{{n}}}", False), (str(n), f"\\boxed{{{n}!}}", False), ("n!", "\\boxed{n}", False),
                       (f"(n-{n})!", f"\\boxed{{n-{n}}}", False), ("2^n n!", "\\boxed{2^n n}", False), (f"{n}!", f"\\boxed{{{n}!}}", True),
                       ("n!", "\\boxed{n!}", True), (f"{n}!", f"\\boxed{{{n + 1}!}}", False), (str(n), f"So there are ${n}!$", False),
                       (str(n), f"That gives {n}! ways.", False), (f"{n}!!", f"\\boxed{{{n}!}}", False),
                       (str(n), f"It is {n}!", True), (str(n), f"**{n}**!", True), ("yes", "\\boxed{yes!}", True)]) + ("",)


def prime(rng):
    v = rng.choice("fghxA")
    return rng.choice([(f"{v}'", f"\\boxed{{{v}}}", False), (v, f"\\boxed{{{v}'}}", False), (f"{v}'", f"\\boxed{{{v}'}}", True),
                       (f"{v}'(2)", f"\\boxed{{{v}(2)}}", False), (f"'{v}'", f"\\boxed{{{v}}}", True), (f"{v}''", f"\\boxed{{{v}'}}", False),
                       (f"\"{v}\"", f"\\boxed{{{v}}}", True)]) + ("",)


def comparison(rng):
    x = some(rng)
    op, tex = rng.choice([(">", "> "), ("<", "< "), ("\\le", "\\leq "), ("\\ge", "\\geq "), ("\\ne", "\\neq ")])
    gold = f"x {op} {x}"
    k = rng.randrange(6)
    if k < 2:
        return gold, boxed(rng, f"x{tex}{x}"), True, ""
    if k == 2:
        return gold, boxed(rng, f"x{tex}{x + 1}"), False, ""
    if k == 3:
        return gold, boxed(rng, str(x)), False, ""
    if k == 4:
        return str(x), boxed(rng, rng.choice([f"x {tex}{x}", f"{x} < x < {x + 4}", f"3 \\le x \\le {x}", f"> {x}", f"x≥{x}", f"x ≤ {x}"])), False, ""
    return gold, boxed(rng, f"x {'<' if op == '>' else '>'} {x}"), False, ""


def changing_words(rng):
    x = rng.randrange(2, 60)
    return str(x), boxed(rng, rng.choice([
        f"{x} \\text{{ and a half}}", f"{x} and a half", f"{x} dozen", f"{x} hundredths", f"{x} squared", f"{x} cubed", f"{x} factorial",
        f"{x} or six", f"{x} \\text{{ or seven}}", f"negative {x}", f"minus {x}", f"\\text{{minus }} {x}", f"{x} tenths", f"{x} thirds",
        f"{x} and a quarter", f"{x} and three quarters", f"{x} million", f"{x} thousandths", f"{x} mod 7", f"{x} to the third",
        f"about half of {x}", f"{x} times ten", f"{x} plus two", f"{x} minus one", f"{x} halves", f"square root of {x}", f"{x} percent of 3",
        f"less than {x}", f"{x} and six", f"{x} over 2", f"{x} lakh"])), False, ""


def signs(rng):
    x = some(rng)
    neg = rng.random() < 0.5
    say = rng.choice([f"negative {x}", f"minus {x}", f"-{x}", f"−{x}", f"- {x}", f"\\text{{negative }} {x}", f"(-{x})", f"-{x}.0", f"\\text{{-}}{x}"])
    return str(-x if neg else x), boxed(rng, say), neg, ""


def signs_in_prose(rng):
    x = some(rng)
    neg = rng.random() < 0.5
    say = rng.choice([f"negative {x}", f"minus {x}", f"-{x}", f"−{x}", f"(-{x})"])
    return str(-x if neg else x), prose(rng, say), neg, ""


def dozens(rng):
    x = rng.randrange(2, 30)
    return str(12 * x), boxed(rng, f"{x} dozen"), True, "dozen_value"


def term(rng):
    """The last digits of the sentence belong to a term, and are not its value."""
    x = rng.randrange(4, 90)
    return str(x), prose(rng, rng.choice([
        maths(rng, f"\\sqrt{{{x}}}"), f"√{x}", maths(rng, f"\\log {x}"), maths(rng, f"\\binom{{{x + 3}}}{{{x}}}"), maths(rng, f"\\frac{{\\pi}}{{{x}}}"),
        maths(rng, f"0.\\overline{{{x}}}"), maths(rng, f"\\sin({x})"), maths(rng, f"\\sin {x}"), maths(rng, f"x = \\pm {x}"), f"x = ±{x}",
        f"2^{x}", f"{x}²", f"{x} × 10³", f"{x}³", maths(rng, f"\\sqrt[3]{{{x}}}"), maths(rng, f"e^{{{x}}}"), maths(rng, f"\\log_2 {x}"),
        maths(rng, f"\\log_{{{x}}} 8 x"), f"log {x}", f"ln({x})", f"sqrt({x})", f"cos({x})", maths(rng, f"{x}\\sqrt{{3}}"), maths(rng, f"{x}\\pi"),
        maths(rng, f"\\frac{{x}}{{{x}}}"), maths(rng, f"\\frac{{\\sqrt{{3}}}}{{{x}}}"), maths(rng, f"\\frac{{1}}{{2x+{x}}}"), maths(rng, f"{x}!"), f"π/{x}",
        maths(rng, f"\\sqrt{{x+{x}}}"), maths(rng, f"a_{{{x}}}"), maths(rng, f"x^{{{x}}}"), maths(rng, f"x^{x}"), maths(rng, f"\\ln {x}"),
        maths(rng, f"\\tan {x}^\\circ"), maths(rng, f"2^{{-{x}}}"), maths(rng, f"\\frac{{{x}}}{{x}}"), f"√({x})", f"∛{x}", f"x_{x}", f"a{x}",
        maths(rng, f"\\left(\\frac{{3}}{{5}}\\right)^{{{x}}}"), maths(rng, f"\\arctan {x}"), maths(rng, f"{x}^\\pi"), maths(rng, f"\\sqrt{x % 10}"),
        maths(rng, f"{x}i"), maths(rng, f"3+{x}i"), f"{x}√2"])), False, ""


def value(rng):
    """Sentences whose last number is the answer."""
    x = some(rng)
    y = x if rng.random() < 0.6 else x + rng.choice([1, 10, -1])
    say = rng.choice([f"{y}", f"**{y}**", f"__{y}__", f"_{y}_", f"***{y}***", f"`{y}`", maths(rng, f"{y}"), f"{y} cm²", f"{y} m³", f"${y}", f"{y}%",
                      f"3 × 4 = {y}", f"x = {y}", f"{y}°", f"{y} km/h", f"\"{y}\"", f"({y})", f"{y} cm^2", maths(rng, f"{y}\\text{{ cm}}^2"),
                      maths(rng, f"\\frac{{{3 * y}}}{{3}} = {y}"), maths(rng, f"\\sqrt{{{y * y}}} = {y}"), maths(rng, f"\\mathbf{{{y}}}"), f"{y}.0",
                      f"{y} eggs", f"£{y}", f"*{y}*", f"<b>{y}</b>", f"2² × 3 = {y}", f"5! / 2 = {y}", maths(rng, f"\\log_2 8 + 1 = {y}"),
                      maths(rng, f"\\binom{{5}}{{2}} = {y}"), maths(rng, f"\\${y}"), f"US${y}", f"{y} euros", f"2^3 = {y}", f"sqrt(9) = {y}",
                      f"the {y}th", f"{y} x 1 = {y}", f"half of {2 * y}, which is {y}"])
    return str(x), prose(rng, say), x == y, ""


def powers_of_ten(rng):
    a, e = rng.randrange(2, 99), rng.randrange(2, 7)
    up = str(e).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    kind = rng.randrange(4)
    if kind == 0:
        gold, say = str(10 ** e), rng.choice([f"10{up}", f"10^{e}", f"10^{{{e}}}"])
    elif kind == 1:
        gold, say = str(a * 10 ** e), rng.choice([f"{a} × 10{up}", f"{a}×10{up}", f"{a} \\times 10^{{{e}}}", f"{a} \\cdot 10^{e}", f"{a} * 10^{e}"])
    elif kind == 2:
        gold, say = f"{a}e-{e}", rng.choice([f"{a} × 10⁻{up}", f"{a}\\times10^{{-{e}}}", f"{a} \\times 10^{{−{e}}}"])
    else:
        return str(rng.choice([10, a])), boxed(rng, rng.choice([f"{a} × 10{up}", f"{a}{up}"])), False, ""
    return gold, boxed(rng, say) if rng.random() < 0.6 else prose(rng, say if "\\" not in say else f"${say}$"), True, ""


def groups(rng):
    x = rng.randrange(1000, 10 ** 7)
    y = x if rng.random() < 0.6 else x + rng.choice([1, 100, -1])
    mark = rng.choice([",\\! ", ",\\!", ",\\,", ", \\!", "\\;", "~", "\\ ", "\\,", "{,}", ",", "\\!,", "{,}\\!", "\u202f", "\u2009", "\\:"])
    plain = all(ord(c) > 127 or c == "," for c in mark)
    text = f"{y:,}".replace(",", mark)
    return str(x), boxed(rng, text) if not plain or rng.random() < 0.5 else prose(rng, text), x == y, ""


def groups_of_rows(rng):
    """As MATH writes its answers."""
    x = rng.randrange(1000, 10 ** 6)
    y = x if rng.random() < 0.6 else x + 1
    return f"{x:,}".replace(",", rng.choice([",\\!", ",\\! ", "{,}", ","])), boxed(rng, f"{y}"), x == y, ""


def braces(rng):
    v, k = rng.choice("pxyn"), rng.randrange(2, 9)
    gold, say, same = rng.choice([(f"{{{v}^{{*}}}}", f"{v}^*", True), (f"{v}^*", f"{{{v}^{{*}}}}", True), (f"{v}_{{{k}}}", f"{{{v}}}_{k}", True),
                                  (f"{v}^{{{k}}}", f"{v}^{k}", True), (f"{{{v}}}", v, True), (f"{{{v}+{k}}}", f"{v}+{k}", True),
                                  (f"{{{v}^{{*}}}}", f"{v}_*", False), (f"{v}^{{{k}}}", f"{v}{k}", False), (f"{v}^{{{k}1}}", f"{v}^{k}1", False)])
    return gold, boxed(rng, say), same, ""


def repeating(rng):
    k = rng.randrange(1, 9)
    if rng.random() < 0.4:
        return f"\\frac{{{k}}}{{9}}", boxed(rng, f"0.\\overline{{{k}}}"), True, ""
    return rng.choice([f"0.{k}", f"{k}"]), boxed(rng, f"0.\\overline{{{k}}}") if rng.random() < 0.5 else prose(rng, f"$0.\\overline{{{k}}}$"), False, ""


def mixed(rng):
    n, (text, num, den) = rng.randrange(1, 40), rng.choice([("½", 1, 2), ("¼", 1, 4), ("¾", 3, 4)])
    m = n if rng.random() < 0.6 else n + 1
    say = rng.choice([f"{m}{text}", f"{m} {text}", f"{m} {num}/{den}", f"{m}\\frac{{{num}}}{{{den}}}", f"{m} {num}⁄{den}", f"{m}\\tfrac{num}{den}"])
    gold = rng.choice([f"\\frac{{{n * den + num}}}{{{den}}}", f"{(n * den + num) / den}"])
    return gold, boxed(rng, say) if rng.random() < 0.6 else prose(rng, say if "\\" not in say else f"${say}$"), n == m, ""


def plus_minus(rng):
    x, y = some(rng), rng.randrange(2, 20)
    gold, say, same = rng.choice([(str(x), f"\\pm {x}", False), (str(x), f"±{x}", False), (str(x), f"{y} \\pm {x}", False), (str(x), f"{x} ± {y}", False),
                                  (f"\\pm {x}", f"\\pm{x}", True), (f"\\pm {x}", f"{x}", False), (f"{y} \\pm \\sqrt{{{x}}}", f"{y}\\pm\\sqrt{{{x}}}", True),
                                  (str(-x), f"x = \\pm {x}", False)])
    return gold, boxed(rng, say), same, ""


def times_and_ratios(rng):
    h, m = rng.randrange(1, 12), rng.randrange(10, 59)
    gold, say, same = rng.choice([(f"{h}:{m}", f"{h}:{m}", True), (f"{h}:{m}", f"{h}:{m + 1}", False), (f"{h}:{m}", f"{m}", False), (str(m), f"{h}:{m}", False),
                                  (f"{h}:{m}", f"{h} : {m}", True), (str(h), f"{h}:{m}", False)])
    return gold, boxed(rng, say), same, ""


def calculation(rng):
    a, b = rng.randrange(2, 12), rng.randrange(2, 12)
    gold, say = rng.choice([(a + b, f"{a}+{b}"), (a * b, f"{a} \\cdot {b}"), (a * a, f"{a}^2"), (a, f"\\sqrt{{{a * a}}}"), (2 ** a, f"2^{{{a}}}")])
    return str(gold), boxed(rng, say), True, "calculation"


def not_calculated(rng):
    a, b = rng.randrange(2, 12), rng.randrange(13, 30)
    return str(rng.choice([a, b])), boxed(rng, rng.choice([f"{a}+{b}", f"{a} \\cdot {b}", f"{a}^{b}", f"{a} × {b}", f"{a} - {b}", f"{a}\\times {b}", f"{a} \\div {b}",
                                                          f"{a}**{b}", f"{a}·{b}", f"{a} * {b}", f"{b} \\bmod {a}", f"{a}|{b}", f"{a} // {b}"])), False, ""


def tuples(rng):
    x, y = rng.sample(range(2, 60), 2)
    gold, say, same = rng.choice([(f"({x},{y})", f"({x}, {y})", True), (f"({x},{y})", f"({y}, {x})", False), (f"({x},{y})", f"{y}", False), (str(y), f"({x}, {y})", False),
                                  (str(y), f"\\{{{x}, {y}\\}}", False), (f"[{x},{y})", f"[{x}, {y})", True), (f"[{x},{y})", f"[{x}, {y}]", False),
                                  (f"{x}, {y}", f"{x},{y}", True), (f"{x}, {y}", f"{y}", False), (f"({x},{y})", f"({x},{y + 1})", False),
                                  (f"{x},{y}", f"{x}{y}", False), (f"{x} \\text{{ and }} {y}", f"{x} \\text{{ and }} {y}", True), (f"{x} \\text{{ and }} {y}", f"{y}", False)])
    return gold, boxed(rng, say), same, ""


def hashes(rng):
    """GSM8K's form."""
    x = some(rng)
    y = x if rng.random() < 0.6 else x + 1
    say = rng.choice([f"{y}", f"{y} eggs", f"${y}", f"{y:,}", f"**{y}**", f"{y}.", f"= {y}", f"x = {y}", f"{y} or {y + 3}", f"{y} dozen", f"{y}!!", f"{y} and a half"])
    wrong = any(w in say for w in ("or", "dozen", "half"))
    return str(x), f"She has 3 * 4 = 12.\n#### {say}", x == y and not wrong, ""


def letters(rng):
    x, y = rng.choice("ABCDE"), rng.choice("ABCDE")
    say = rng.choice([y, f"({y})", f"\\text{{({y})}}", f"{y}.", f"\\textbf{{{y}}}", f"**{y}**"])
    return x, boxed(rng, say), x == y, ""


def units(rng):
    x = some(rng)
    y = x if rng.random() < 0.6 else x + 1
    say = rng.choice([f"{y} cm²", f"{y} m³", f"{y}\\text{{ cm}}^3", f"{y} square feet", f"{y}\\text{{ minutes}}", f"{y} years old", f"\\${y}", f"{y}°", f"{y}°C", f"{y} kg",
                      f"{y} apples and oranges", f"{y} mph", f"{y} per day", f"{y} km/h", f"{y} Euro", f"{y}\\,\\mathrm{{m/s^2}}", f"{y} ways",
                      f"{y} pairs of shoes", f"{y} times" , f"{y} half-hours", f"{y} quarter notes"])
    return str(x), boxed(rng, say), x == y, ""


KINDS = [(system, 8), (roots, 5), (several_equations, 7), (chain, 7), (factorial, 6), (prime, 3), (comparison, 6), (changing_words, 8),
         (signs, 4), (signs_in_prose, 3), (dozens, 1), (term, 14), (value, 14), (powers_of_ten, 7), (groups, 7), (groups_of_rows, 2),
         (braces, 3), (repeating, 2), (mixed, 5), (plus_minus, 3), (times_and_ratios, 2), (calculation, 1), (not_calculated, 4),
         (tuples, 5), (hashes, 5), (letters, 1), (units, 5)]


def cases():
    rng = random.Random(50)
    kinds = [kind for kind, weight in KINDS for _ in range(weight)]
    out = {}
    while len(out) < N:
        kind = rng.choice(kinds)
        gold, response, same, form = kind(rng)
        out.setdefault((kind.__name__, gold, response), (same, form))
    return [(*key, *rest) for key, rest in out.items()]


def solutions(path):
    """GSM8K's solutions as responses: as they are, without the marked answer, and with another number."""
    rng = random.Random(8)
    out = []
    for line in list(gzip.open(path, "rt", encoding="utf-8"))[:500]:
        text, _, gold = json.loads(line)["answer"].rpartition("####")
        text, gold = re.sub(r"<<.*?>>", "", text).strip(), gold.strip()
        x = int(gold.replace(",", ""))
        out.append(("gsm8k_marked", gold, f"{text}\n#### {x}", True, ""))
        out.append(("gsm8k_other", gold, f"{text}\n\\boxed{{{x + rng.choice([1, 10, -1])}}}", False, ""))
        out.append(("gsm8k_prose", gold, f"{text}\nSo the answer is {rng.choice(['', '**', '$'])}{x}".replace("$", "\\$") + ".", True, ""))
        out.append(("gsm8k_wrong", gold, f"{text}\nSo the answer is {x + 1}.", False, ""))
    return out


def main():
    all_cases = cases()
    if "--gsm8k" in sys.argv:
        all_cases += solutions(sys.argv[sys.argv.index("--gsm8k") + 1])
    pairs = [c[:4] for c in all_cases]
    verdicts = {"answer.so": ours(pairs, []), "math-verify": theirs(pairs, 2)}
    bad = 0
    for name, said in verdicts.items():
        if said is None:
            print(f"{name} is not installed")
            continue
        paid = [c for c, v in zip(all_cases, said) if v and not c[3]]
        missed = [c for c, v in zip(all_cases, said) if not v and c[3]]
        known = [c for c in missed if c[4] in NOT_READ]
        print(f"{name}: of {sum(not c[3] for c in all_cases)} wrong answers, {len(paid)} are rewarded; of {sum(c[3] for c in all_cases)} right "
              f"answers, {len(missed)} are missed ({len(known)} of a form that is not read)")
        print("  rewarded:", dict(Counter(c[0] for c in paid)), "\n  missed:", dict(Counter(c[0] for c in missed)))
        if name == "answer.so":
            bad = len(paid) + len(missed) - len(known)
        if "--show" in sys.argv:
            for what, them in (("rewarded", paid), ("missed", missed)):
                for c in them:
                    print(f"{name} {what}: {c[0]}: {json.dumps(c[1])} {json.dumps(c[2], ensure_ascii=False)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
