#!/usr/bin/env python3
"""Compares random fragments of chat templates (fragment_maker.py) by `fragments` (fragments.c) with jinja2 as
transformers sets it up.

Usage: fragments.py FRAGMENTS [N [SEED]] [--show WORD] [--letters]

Prints the fragments by result. Exit status 0: each fragment gives the same text, or both refuse it, or only this program
refuses it and DECISIONS names the reason; 1: some do not.
"""
import collections
import copy
import json
import re
import subprocess
import sys
import tempfile
import unicodedata

from transformers.utils.chat_template_utils import _compile_jinja_template

from fragment_maker import VARS, fragments

# What this program refuses although jinja2 renders it: docs/chat.md lists these decisions.
DECISIONS = {
    "a filter or function that is left out": r"the filter '(pprint|urlize|striptags|wordwrap|random)'|the function '(lipsum|strftime_now)'|the function 'self'",
    "a method that is left out": r"the method '(append|update|encode|isnumeric|isidentifier)' of |the member '__\w+' of |the method '\w+' of a (function|method)",
    "printing an address": r"printing (a|an) (function|macro|method|iterator|cycler|joiner)",
    "a generation block in another block": r"a generation block in",
    "a complex number": r"a complex number",
    "a slice of a range": r"such a slice of a range",
    "a constant of the wrong type": r"a slice of (a|an|null|true)",
    "an error in an iterator that nobody reads": r"a list as a key",
    "a tag that is left out": r"the tag '(include|import|extends|block|autoescape|do)'",
}
ADDRESS = re.compile(r"(&lt;|<)(generator|function|built-in|bound|list_reverseiterator|reversed|dict_|str_|tuple|range_|class|Macro|.* object)|at 0x|object at|<method|wrapper", re.I)


def theirs(template):
    try:
        text = _compile_jinja_template(template).render(**copy.deepcopy(VARS))  # its filter `indent` changes lists
    except RecursionError:
        return {"raised": "recursion"}
    except Exception as e:
        return {"raised": f"{type(e).__name__}: {e}"[:150]}
    try:
        text.encode()
    except UnicodeEncodeError:
        return {"raised": "a surrogate"}
    return {"address": text} if "0x" in text and " at 0x" in text else {"text": text}


def ours(program, templates):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(VARS, f)
        f.flush()
        lines = "".join(json.dumps({"template": t}) + "\n" for t in templates)
        out = subprocess.run([program, f.name], input=lines, capture_output=True, text=True)
    if out.returncode:
        sys.exit(f"{program}: {out.returncode} {out.stderr[-500:]}")
    return [json.loads(line) for line in out.stdout.splitlines()]


def judge(mine, want):
    refused = "text" not in mine
    if re.match("NameError: name '(inf|nan)'", want.get("raised", "")):
        return "decided: jinja2 cannot compile an infinite constant"
    if "text" in mine and "No filter named" in want.get("raised", ""):
        return "decided: an unknown filter that is not reached"
    if "address" in want:
        return "both refuse" if refused else "text here, an address there"
    if "text" in want:
        if refused:
            why = mine.get("refused", mine.get("raised"))
            for name, pattern in DECISIONS.items():
                if re.search(pattern, why):
                    return "decided: " + name
            return "refused here: " + re.sub(r"'[^']*'|\d+", "..", why.split(": ", 1)[-1])
        return "equal" if mine["text"] == want["text"] else "other text"
    return "both refuse" if refused else "text here, refused there"


def main():
    args = [a for a in sys.argv[1:] if not a.startswith("--")]
    show = sys.argv[sys.argv.index("--show") + 1] if "--show" in sys.argv else ""
    if show:
        args.remove(show)
    program, n, seed = args[0], int(args[1]) if len(args) > 1 else 10000, int(args[2]) if len(args) > 2 else 1
    templates = list(fragments(seed, n))
    mine, want = ours(program, templates), [theirs(t) for t in templates]
    results = collections.defaultdict(list)
    for t, a, b in zip(templates, mine, want):
        results[judge(a, b)].append((t, a, b))
    for name, cases in sorted(results.items(), key=lambda r: -len(r[1])):
        print(f"{len(cases):6} {name}")
        if show and re.search(show, name):
            for t, a, b in cases[:40]:
                print(f"    {t!r}\n        here  {str(a)[:300]}\n        there {str(b)[:300]}")
    bad = sum(len(c) for name, c in results.items() if name not in ("equal", "both refuse") and not name.startswith("decided: "))
    print(f"{bad} of {len(templates)} fragments differ without a decision (seed {seed})")
    sys.exit(bad > 0 or len(mine) != len(templates))


if __name__ == "__main__":
    main()
