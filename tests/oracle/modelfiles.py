#!/usr/bin/env python3
"""Checks the Modelfiles of published chat templates, as `modelfile` (modelfile.c) writes them: a strict parser by the
grammar in Ollama's documentation reads them, and TEMPLATE, run by an evaluator of the part of Go's text/template that it
uses, gives the texts of the Jinja template in transformers.

Usage: modelfiles.py MODELFILE WORK DIR...        (each DIR holds *.jinja files, which are never committed)

Prints a line for each template. Exit status 1: a file breaks the grammar, or a text differs.
"""
import collections
import glob
import os
import re
import subprocess
import sys

import transformers as hf

import forms
import texts
from published_templates import directory, render, said

INSTRUCTIONS = ["from", "parameter", "template", "system", "adapter", "license", "message", "requires"]
PARAMETERS = ["mirostat", "num_ctx", "repeat_last_n", "repeat_penalty", "temperature", "seed", "stop", "num_predict", "top_k",
              "top_p", "min_p"]


class Wrong(Exception):
    pass


# ---- the grammar of Modelfiles ----

def value_at(text, at):
    """The value that begins at `at`, and where the next line begins."""
    if text.startswith('"""', at):
        end = text.find('"""', at + 3)
        if end < 0 or text[end + 3:end + 4] != "\n":
            raise Wrong('""" does not end its line')
        return text[at + 3:end], end + 4
    end = text.find("\n", at)
    if end < 0:
        raise Wrong("the last line has no end")
    value = text[at:end].strip(" \t")
    if not value:
        raise Wrong("an instruction without a value")
    if value[0] == '"':
        if len(value) < 2 or value[-1] != '"':
            raise Wrong("a quote without an end")
        value = value[1:-1]
    return value, end + 1


def parse(data):
    """Pairs (instruction, value). A parameter is the pair (name, value) under "parameter"."""
    text, at, found = data.decode("utf-8"), 0, []
    for c in text:
        if not (c in " \n" or c.isprintable()):
            raise Wrong(f"the character U+{ord(c):04X}, which Ollama drops")
    while at < len(text):
        if text[at] in "#\n":
            at = text.index("\n", at) + 1
            continue
        word = re.compile(r"([A-Za-z]+)[ \t]+").match(text, at)
        if not word or word[1].lower() not in INSTRUCTIONS:
            raise Wrong(f"no instruction: {text[at:at + 40]!r}")
        name, at = word[1].lower(), word.end()
        if name == "parameter":
            of = re.compile(r"([A-Za-z0-9_]+)[ \t]+").match(text, at)
            if not of or of[1] not in PARAMETERS:
                raise Wrong(f"no parameter: {text[at:at + 40]!r}")
            value, at = value_at(text, of.end())
            found.append((name, (of[1], value)))
        else:
            value, at = value_at(text, at)
            found.append((name, value))
    for name in ("from", "template", "adapter", "system"):
        if sum(n == name for n, _ in found) > 1:
            raise Wrong(f"{name} twice")
    if not any(n == "from" for n, _ in found):
        raise Wrong("no FROM")
    return found


# ---- Go's text/template, as far as TEMPLATE uses it ----

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|:=|[(),]|[$.]?[A-Za-z_$.][A-Za-z0-9_.]*|\.|\d+|\s+')
ESCAPE = re.compile(rb'\\(?:x([0-9a-f]{2})|(.))')


def constant(word):
    """The bytes of an interpreted string of Go."""
    def one(m):
        return bytes([int(m[1], 16)]) if m[1] else {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}[m[2]]
    return ESCAPE.sub(one, word[1:-1].encode())


def lex(template):
    """Texts (bytes) and actions (lists of words), with the white space trimmed that {{- and -}} name."""
    out, at, trim = [], 0, False
    while True:
        begin = template.find("{{", at)
        text = template[at:] if begin < 0 else template[at:begin]
        if trim:
            text = text.lstrip(" \t\r\n")
        if begin >= 0 and template.startswith("{{- ", begin):
            text = text.rstrip(" \t\r\n")
        if text:
            out.append(text.encode())
        if begin < 0:
            return out
        at, words, trim = begin + (3 if template.startswith("{{- ", begin) else 2), [], False
        while not template.startswith("}}", at):
            if template.startswith(" -}}", at):
                trim, at = True, at + 2
                break
            m = TOKEN.match(template, at)
            if not m:
                raise Wrong(f"no word of an action: {template[at:at + 20]!r}")
            words += [m[0]] if m[0].strip() else []
            at = m.end()
        at += 2
        out.append(words)


def tree(parts):
    """Nested lists: bytes, words, or (words of `if` or `range`, body, rest). The rest is a body."""
    def body():
        nodes = []
        while parts:
            part = parts.pop(0)
            if isinstance(part, bytes) or part[0] not in ("if", "range", "else", "end"):
                nodes.append(part)
            elif part[0] in ("if", "range"):
                nodes.append(branch(part))
            else:
                return nodes, part
        return nodes, None

    def branch(words):
        inside, end = body()
        if end is None:
            raise Wrong("an action without an end")
        if end == ["end"]:
            return words, inside, []
        if len(end) > 1:
            return words, inside, [branch(end[1:])]
        rest, end = body()
        if end != ["end"]:
            raise Wrong("an else without an end")
        return words, inside, rest

    nodes, end = body()
    if end is not None:
        raise Wrong("an end too many")
    return nodes


FUNCTIONS = {"eq": lambda a, b: a == b, "lt": lambda a, b: a < b, "len": len, "slice": lambda x, i: x[i:], "not": lambda x: not x}


def evaluate(words, dot, names):
    """A pipeline of one command: a value, or a function with arguments."""
    def operand():
        word = words.pop(0)
        if word == "(":
            value = command()
            if words.pop(0) != ")":
                raise Wrong("a parenthesis without an end")
            return value
        if word[0] == '"':
            return constant(word)
        if word.isdigit():
            return int(word)
        path = word.split(".")
        value = names[path[0]] if path[0] else dot
        for key in filter(None, path[1:]):
            value = value[key]
        return value

    def command():
        if words[0] not in FUNCTIONS:
            return operand()
        function, args = FUNCTIONS[words.pop(0)], []
        while words and words[0] != ")":
            args.append(operand())
        return function(*args)

    value = command()
    if words:
        raise Wrong(f"words after a command: {words}")
    return value


def execute(nodes, dot, names):
    out = b""
    for node in nodes:
        if isinstance(node, bytes):
            out += node
        elif isinstance(node, tuple):
            words, inside, rest = node
            if words[0] == "if":
                out += execute(inside if evaluate(words[1:], dot, names) else rest, dot, dict(names))
            else:
                if words[2] != "," or words[4] != ":=":
                    raise Wrong("a range without two variables")
                for i, item in enumerate(evaluate(words[5:], dot, names)):
                    out += execute(inside, item, names | {words[1]: i, words[3]: item})
        elif node[1:2] == [":="]:
            names[node[0]] = evaluate(node[2:], dot, names)
        else:
            out += evaluate(list(node), dot, names)
    return out


def as_ollama(template, messages):
    """Ollama joins the texts of all system messages in .System, and leaves them in .Messages, too."""
    items = [{"Role": m["role"].encode(), "Content": m["content"].encode()} for m in messages]
    root = {"System": b"\n\n".join(m["Content"] for m in items if m["Role"] == b"system"), "Messages": items}
    return execute(tree(lex(template)), root, {"$": root})


# ---- the comparison ----

def conversations():
    """The last message is a user's, so that the model answers it."""
    s, u, a = said("system", "Be brief."), said("user", "What is 7 + 4?"), said("assistant", "It is 11.")
    odd = said("user", 'naïve 中文 "quoted" {{ .System }} {{- end }} \\n\n"""\nPARAMETER stop x')
    return [[u], [s, u], [u, a, u], [s, u, a, u], [odd], [s, odd, a, odd], [u, a, odd, a, u], [s, u, a, u, a, u]]


def check(program, work, path, base, count):
    folder, _ = directory(work, path, base)
    tok = hf.AutoTokenizer.from_pretrained(folder)
    tok.chat_template = tok.chat_template.replace("strftime_now", "no_date")  # TEMPLATE has no date
    out = subprocess.run([program, folder], capture_output=True)
    name = os.path.basename(path)
    try:
        if out.returncode:
            raise Wrong(out.stderr.decode().strip())
        found = parse(out.stdout)
        if dict((n, v) for n, v in found if n in ("from", "adapter")) != {"from": "./m.gguf", "adapter": "./a.gguf"}:
            raise Wrong("FROM or ADAPTER is not what was given")
        if ("parameter", ("stop", "</s>")) not in found:
            raise Wrong("no stop at </s>")
        template = dict(found, parameter=None).get("template")
        if template is None:
            count["without TEMPLATE"] += 1
            print(f"{name}: no TEMPLATE, with a comment" if b"# No TEMPLATE" in out.stdout else f"{name}: NO TEMPLATE")
            return
        same = 0
        for messages in conversations():
            if messages[0]["role"] == "system" and b"refuses system messages" in out.stdout:
                continue
            want, got = render(tok, messages, None, True), as_ollama(template, messages)
            if want is None or want.encode() != got:
                raise Wrong(f"{messages}\n  Jinja    {want!r}\n  TEMPLATE {got.decode()!r}")
            same += 1
        count["equal"] += 1
        print(f"{name}: {same} conversations equal")
    except (Wrong, KeyError, IndexError, TypeError, UnicodeDecodeError) as e:
        count["wrong"] += 1
        print(f"{name}: WRONG: {type(e).__name__} {e}", flush=True)


def main():
    program, work, *dirs = sys.argv[1:]
    base = forms.make("gpt2", list(texts.prose(400)), 1200).to_str()
    count = collections.Counter()
    for path in sorted(p for d in dirs for p in glob.glob(f"{d}/*.jinja")):
        check(program, work, path, base, count)
    print(f"Modelfiles: {dict(count)}")
    sys.exit(count["wrong"] > 0)


if __name__ == "__main__":
    main()
