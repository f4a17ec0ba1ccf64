"""The table of TRL's fields, ``trl.tsv``: what becomes of each."""

import json
import os
from typing import Any, Dict, List, NamedTuple

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
ALGOS = {"GRPO": "grpo", "RLOO": "rloo", "SFT": "sft", "DPO": "dpo", "KTO": "kto", "Reward": "bradley_terry",
         "Distillation": "opd"}
SAMPLES = ("GRPO", "RLOO", "Distillation")  # the policy responds to prompts


class Entry(NamedTuple):
    field: str
    of: List[str]  # names of configurations, "all" or "word"
    defaults: List[Any]  # the declared one, then those that an object may have instead
    becomes: str  # "ours", "not needed", "not here"
    setting: str
    how: str


def table() -> List[Entry]:
    with open(os.path.join(_PACKAGE, "trl.tsv"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [Entry(field, of.split(), [] if default == "-" else [json.loads(one) for one in default.split(" or ")],
                  becomes, setting, how) for field, of, default, becomes, setting, how in lines]


def entries_of(kind: str) -> Dict[str, Entry]:
    """Returns the entries of the fields of a configuration. Its own take precedence."""
    found: Dict[str, Entry] = {}
    for entry in table():
        if kind in entry.of or "all" in entry.of and entry.field not in found:
            found[entry.field] = entry
    return found
