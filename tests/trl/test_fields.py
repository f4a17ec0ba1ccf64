#!/usr/bin/env python3
"""Compares python/rlhf_host/trl.tsv with the fields and defaults of an installed TRL.

Usage: test_fields.py PACKAGES PYTHON

PACKAGES is the folder with rlhf_host. PYTHON, or the environment variable RLHF_PYTHON, is an interpreter that has trl and
transformers; without them the test is skipped (77). Their sources are parsed, not imported, which takes seconds less.
Fails for a field without a row, a row without a field, and a default in the table that is not TRL's.
"""
import ast
import os
import subprocess
import sys

sys.path.insert(0, sys.argv[1])
from rlhf_host._trl_table import ALGOS, entries_of, table  # noqa: E402

MADE = {"default_optim": "adamw_torch_fused", "list": []}  # defaults that are names in the sources


def sources(python):
    """Returns the version of trl and the folders of trl and transformers, or None."""
    code = ("import importlib.util as u, importlib.metadata as m\nprint(m.version('trl'))\n"
            "for n in ('trl', 'transformers'): print(u.find_spec(n).submodule_search_locations[0])")
    ran = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return ran.stdout.splitlines() if ran.returncode == 0 else None


def fields(path, name):
    """Returns {field: default} of a dataclass, without those that it inherits."""
    with open(path, encoding="utf-8") as file:
        classes = {node.name: node for node in ast.parse(file.read()).body if isinstance(node, ast.ClassDef)}
    found = {}
    for node in classes[name].body:
        if not isinstance(node, ast.AnnAssign):
            continue
        default = node.value
        if isinstance(default, ast.Call):
            given = {k.arg: k.value for k in default.keywords}
            default = given.get("default", given.get("default_factory"))
        if isinstance(default, ast.Lambda):
            default = default.body
        found[node.target.id] = MADE[default.id] if isinstance(default, ast.Name) else ast.literal_eval(default)
    return found


def main():
    python = os.environ.get("RLHF_PYTHON") or sys.argv[2]
    found = sources(python)
    if not found:
        print(f"skipped: {python} has no trl (configure with -DRLHF_PYTHON=PATH)")
        return 77
    version, *folders = found
    trainers = os.path.join(folders[0], "trainer")
    inherited = fields(os.path.join(folders[1], "training_args.py"), "TrainingArguments")
    inherited.update(fields(os.path.join(trainers, "base_config.py"), "_BaseConfig"))
    wrong, known = [], set(inherited)
    for kind in ALGOS:
        own = fields(os.path.join(trainers, kind.lower() + "_config.py"), kind + "Config")
        known |= {(kind, name) for name in own}
        entries = entries_of(kind)
        for name, default in {**inherited, **own}.items():
            entry = entries.get(name)
            if not entry:
                wrong.append(f"{name} of {kind}Config has no row")
            elif entry.defaults[0] != default or isinstance(entry.defaults[0], bool) != isinstance(default, bool):
                wrong.append(f"{name} of {kind}Config: the default is {default!r} and not {entry.defaults[0]!r}")
            elif name in own and kind not in entry.of and "all" not in entry.of:
                wrong.append(f"{name} of {kind}Config has no row of its own")
        print(f"{kind}Config: {len(own)} fields of its own, {len(set(inherited) | set(own))} in all")
    seen = set()
    for entry in table():
        for kind in entry.of:
            if (entry.field, kind) in seen:
                wrong.append(f"{entry.field} of {kind} has two rows")
            seen.add((entry.field, kind))
            if kind == "word" and entry.field in inherited:
                wrong.append(f"{entry.field} is a word in the table, but a field of TrainingArguments")
            gone = entry.field not in inherited if kind == "all" else kind != "word" and (kind, entry.field) not in known
            if gone:
                wrong.append(f"{entry.field} of {kind} is a row, but not a field")
    for line in wrong:
        print(line)
    print(f"TRL {version}: {len(wrong)} differences")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
