#!/usr/bin/env python3
"""Grades of grader.so and those of the libraries that define them: rapidfuzz (fuzzy_match), sacrebleu (bleu, and the words of
gleu and meteor), nltk (gleu, meteor), rouge-score. The rules of checks, templates, formulas and functions are written here a
second time, from the hosted service's guide.

Usage: graders.py make                                            prints the cases of tests/rewards/grader_cases.jsonl
       graders.py ORACLE_REWARDS DIRECTORY_OF_PLUGINS CASES        checks that file, and compares grades of random texts

METEOR has no synonyms here, as in grader.so: nltk's WordNet is replaced by an empty one.

Exit status 0: equal, up to 1e-6; 1: some grades differ, with the first of them.
"""
import json
import math
import os
import random
import re
import subprocess
import sys
import types

import sacrebleu
from nltk.translate.gleu_score import sentence_gleu
from nltk.translate.meteor_score import meteor_score
from rapidfuzz import fuzz, utils
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

NO_WORDNET = types.SimpleNamespace(synsets=lambda word: [])
words = Tokenizer13a()


# ---- the definitions ----


def similarity(metric, text, reference):
    if metric == "fuzzy_match":
        return fuzz.WRatio(text, reference, processor=utils.default_process) / 100
    if metric == "bleu":
        return sacrebleu.sentence_bleu(text, [reference]).score / 100
    if metric.startswith("rouge"):
        name = metric.replace("_l", "L").replace("_", "")
        return RougeScorer([name]).score(reference, text)[name].fmeasure
    a, b = words(text.rstrip()).split(), words(reference.rstrip()).split()
    if metric == "gleu":
        return sentence_gleu([b], a)
    return meteor_score([b], a, wordnet=NO_WORDNET)


def sample_of(response, item, finished=True):
    calls, text = [], response
    if isinstance(item.get("tools"), list):
        for call in re.findall(r"<tool_call>(.*?)</tool_call>", response, re.S):
            call = json.loads(call)
            calls.append({"id": f"call_{len(calls)}", "type": "function", "function": {
                "name": call["name"], "arguments": json.dumps(call["arguments"])}})
        if calls:
            text = re.sub(r"<tool_call>.*?</tool_call>", "", response, flags=re.S).strip()
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    message = {"role": "assistant", "content": text}
    return {"output_text": text, "output_json": value if isinstance(value, (dict, list)) else None, "output_tools": calls,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop" if finished else "length"}]}


def value_of(path, item, sample):
    value = {"item": item, "sample": sample}
    for name, number in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path.replace('["', ".").replace('"]', "")):
        value = value[int(number)] if number else value[name]
    if value is None:
        raise KeyError(path)
    return value if isinstance(value, str) else json.dumps(value)


def fill(template, item, sample):
    return re.sub(r"\{\{\s*(.*?)\s*\}\}", lambda m: value_of(m[1], item, sample), template)


def grade(grader, item, response):
    sample = sample_of(response, item)
    kind = grader["type"]
    if kind == "multi":
        names = {k: grade(g, item, response) for k, g in grader["graders"].items()}
        functions = {"min": min, "max": max, "abs": abs, "floor": math.floor, "ceil": math.ceil, "exp": math.exp,
                     "sqrt": math.sqrt, "log": math.log}
        try:
            return float(eval(grader["calculate_output"].replace("^", "**"), {"__builtins__": {}, **functions}, names))
        except (ValueError, ArithmeticError):
            return 0.0
    try:
        if kind == "python":
            space = {}
            exec(grader["source"], space)
            value = space["grade"](sample, item)
            return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 0.0
        a, b = fill(grader["input"], item, sample), fill(grader["reference"], item, sample)
    except Exception:
        return 0.0
    if kind == "text_similarity":
        return similarity(grader["evaluation_metric"], a, b)
    return float({"eq": a == b, "ne": a != b, "like": b in a, "ilike": b.lower() in a.lower()}[grader["operation"]])


# ---- cases ----

OUT, ANSWER = "{{sample.output_text}}", "{{ item.reference_answer }}"
BEAR = ("fuzzy wuzzy was a bear", "fuzzy wuzzy had no hair")
MAT = ("The cat sat on the mat, didn't it?", "A cat is sitting on the mat; is it not?")
RULES = ("It is a guide to action which ensures that the military always obeys the commands of the party.",
         "It is a guide to action that ensures that the military will forever heed Party commands.")
SHORT = ("yes", "Yes, it does: 3.50 of 1,000 (0.35%) passed.")


def check(operation, input=OUT, reference=ANSWER):
    return {"type": "string_check", "name": "check", "input": input, "reference": reference, "operation": operation}


def alike(metric, input=OUT, reference=ANSWER, **more):
    return {"type": "text_similarity", "name": "alike", "input": input, "reference": reference, "evaluation_metric": metric, **more}


def multi(formula, **graders):
    return {"type": "multi", "name": "all", "graders": graders, "calculate_output": formula}


def python(source):
    return {"type": "python", "name": "own", "source": source, "image_tag": "2025-05-08"}


def cases():
    def row(grader, response, item):
        item = item if isinstance(item, dict) else {"reference_answer": item}
        return {"grader": grader, "item": item, "response": response, "grade": grade(grader, item, response)}

    for operation in ("eq", "ne", "like", "ilike"):
        yield row(check(operation), "Paris", "Paris")
        yield row(check(operation), "It is PARIS, of course", "Paris")
        yield row(check(operation), "\u00c4RGER", "\u00e4rger")
    yield row(check("like"), "", "")
    yield row(check("eq"), "7", {"reference_answer": 7})
    yield row(check("eq"), "7.0", {"reference_answer": 7.0})
    yield row(check("eq"), "true", {"reference_answer": True})
    yield row(check("eq", reference="{{item.a.b[1].c}}"), "x y", {"a": {"b": [0, {"c": "x y"}]}})
    yield row(check("eq", reference='{{ item["a key"][0] }}'), "1", {"a key": ["1"]})
    yield row(check("eq", input="{{sample.output_json.name}}!", reference="{{item.name}}!"), '{"name": "Ann", "n": 1}',
              {"name": "Ann"})
    yield row(check("eq", input="{{sample.output_json.name}}", reference="{{item.name}}"), "Ann", {"name": "Ann"})
    yield row(check("ne", input="{{sample.output_json.nam}}", reference="{{item.name}}"), '{"name": "Bob"}', {"name": "Ann"})
    yield row(check("eq", input="{{sample.output_json[1].k}}", reference="2"), '[{"k": 1}, {"k": 2}]', {})
    yield row(check("eq", input="get_acceptors", reference="{{sample.output_tools[0].function.name}}"),
              'Let me see. <tool_call>\n{"name": "get_acceptors", "arguments": {"smiles": "CCO"}}\n</tool_call>', {"tools": []})
    yield row(check("eq", input='{"smiles": "{{item.smiles}}"}', reference="{{sample.output_tools[0].function.arguments}}"),
              '<tool_call>{"name": "get_acceptors", "arguments": {"smiles": "CCO"}}</tool_call>', {"tools": [], "smiles": "CCO"})
    yield row(check("eq", input="{{sample.choices[0].message.content}}"), "a\nb", "a\nb")
    for a, b in (BEAR, MAT, ("new york mets vs atlanta braves", "atlanta braves vs new york mets"), ("", "x"),
                 ("a certain string", "cetain"), ("Caf\u00e9 \u00dcber", "caf\u00e9  \u00fcber!"),
                 ("the quick brown fox " * 6 + "jumps", "quick brown foxes jump"), ("yes", "no")):
        yield row(alike("fuzzy_match"), a, b)
    for metric in ("bleu", "gleu", "meteor"):
        for a, b in (RULES, MAT, SHORT, (BEAR[0], "")):
            yield row(alike(metric), a, b)
    for metric in ("rouge_1", "rouge_2", "rouge_3", "rouge_4", "rouge_5", "rouge_l"):
        yield row(alike(metric), *RULES)
    yield row(alike("rouge_1"), "...", "...")
    both = {"name": alike("fuzzy_match", "{{sample.output_json.name}}", "{{item.name}}", pass_threshold=0.9),
            "email": check("eq", "{{sample.output_json.email}}", "{{item.email}}")}
    person = {"name": "John Doe", "email": "john.doe@example.com"}
    yield row(multi("(name + email) / 2", **both), '{"name": "Jon Doe", "email": "john.doe@example.com"}', person)
    yield row(multi("(name + email) / 2", **both), "John Doe, john.doe@example.com", person)
    one = {"a": check("eq"), "b": alike("rouge_1")}
    for formula in ("-2^2 + 2^3^0.5", "min(a, b, 0.5) + max(a, b) - abs(-b)", "floor(2.7) - ceil(-1.2) * exp(0) + sqrt(4)",
                    "log(0.5 + b)", "1 / (a - a)", "b ^ 2 - 2 * b * -a", "max(0, 1 - abs(a - 3) / 2)"):
        yield row(multi(formula, **one), "Paris in France", "Paris")
    yield row(python("def grade(sample, item):\n    return 0.25 if sample['output_text'] in item['reference_answer'] else 2\n"),
              "a", "abc")
    yield row(python("def grade(sample, item):\n    return sample['output_json']['x'] / item['reference_answer']\n"),
              '{"x": 1}', {"reference_answer": 0})
    yield row(multi("0.5 * a + c", a=check("eq"), c=python("import json\ndef grade(sample: dict, item: dict) -> float:\n"
                                                           "    return json.loads(sample['output_text'])['x'] == 1\n")),
              '{"x": 1}', "x")


# ---- checks ----


def differ(got, want):
    return not abs(got - want) <= 1e-6


def ask(program, plugins, grader, rows):
    with open("grader.json", "w") as f:
        json.dump(grader, f)
    text = "".join(json.dumps({"response": response, "row": item}) + "\n" for response, item in rows)
    out = subprocess.run([program, f"{plugins}/grader.so", "file=grader.json"], input=text, text=True, capture_output=True)
    if out.returncode:
        raise SystemExit(f"{grader}: {out.stderr}")
    return [float(line) for line in out.stdout.split()]


def random_texts(rng):
    stock = ("the a cat cats sat sitting on mat hat flies flying fly happily national relational theology conditional "
             "Party party's commands commanded U.S. 3.50 1,000 10-20 e-mail x. y, (z) \u00c9t\u00e9 \u00e9t\u00e9 na\u00efve "
             "\u6f22\u5b57 \u041c\u043e\u0441\u043a\u0432\u0430 &amp; &lt;b&gt; \"quoted\" didn't - -- ... \n \t dying news").split(" ")
    a = rng.choices(stock, k=rng.choice((0, 1, 2, 3, 5, 8, 13, 40)))
    b = [w for w in a if rng.random() < 0.8] if rng.random() < 0.7 else rng.choices(stock, k=rng.randrange(12))
    for _ in range(rng.randrange(4)):
        b.insert(rng.randrange(len(b) + 1), rng.choice(stock))
    if rng.random() < 0.3:
        rng.shuffle(b)
    a, b = " ".join(a), " ".join(b)
    if rng.random() < 0.3 and b:
        b = "".join(c for c in b if rng.random() < 0.95)
    return (a, b) if rng.random() < 0.5 else (b, a)


def main(program, plugins, file):
    failed = 0
    want = [json.dumps(case) for case in cases()]
    with open(file) as f:
        got = f.read().splitlines()
    if len(got) != len(want):
        print(f"{file} has {len(got)} cases, and this script makes {len(want)}")
        failed = 1
    for a, b in zip(got, want):
        a, b = json.loads(a), json.loads(b)
        if {**a, "grade": 0} != {**b, "grade": 0} or differ(a["grade"], b["grade"]):
            print(f"the file has {a}, the libraries say {b}")
            failed = 1
    rng = random.Random(1)
    rows = [random_texts(rng) for _ in range(int(os.environ.get("RLHF_TEXTS", 500)))]
    for metric in ("fuzzy_match", "bleu", "gleu", "meteor", "rouge_1", "rouge_2", "rouge_5", "rouge_l"):
        got = ask(program, plugins, alike(metric), [(a, {"reference_answer": b}) for a, b in rows])
        bad = [i for i, (a, b) in enumerate(rows) if differ(got[i], similarity(metric, a, b))]
        print(f"{metric}: {len(rows)} pairs of texts, {len(bad)} differences, mean {sum(got) / len(got):.3f}")
        for i in bad[:5]:
            print(f"  {rows[i]}: {got[i]} here, {similarity(metric, *rows[i])} there")
        failed |= bool(bad)
    return failed


if __name__ == "__main__":
    if sys.argv[1:] == ["make"]:
        for case in cases():
            print(json.dumps(case))
        sys.exit(0)
    sys.exit(main(*sys.argv[1:]))
