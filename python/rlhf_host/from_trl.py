"""Turns a configuration of TRL into settings of rlhf-host, field by field. See docs/from-trl.md.

Imports neither TRL nor transformers.
"""

import difflib
from typing import Any, Dict, Mapping, Optional

from . import _trl_data, _trl_sampling, _trl_training
from ._error import Error
from ._trl_config import Config, fields_of, kind_of
from ._trl_result import FromTRL, Row
from ._trl_table import ALGOS, Entry, entries_of, table

_RULES = {**_trl_training.RULES, **_trl_sampling.RULES, **_trl_data.RULES}
_OLD = {"max_prompt_length": ("prompts.max_tokens",), "max_seq_length": ("data.max_tokens",)}  # the value is the same



def _row(c: Config, entry: Entry, name: str, value: Any) -> Row:
    is_default = any(type(value) is type(one) and value == one or
                     isinstance(value, (int, float)) and isinstance(one, (int, float)) and not isinstance(value, bool) and
                     not isinstance(one, bool) and value == one for one in entry.defaults)
    rule = _RULES.get((c.kind, name)) or _RULES.get(("all", name))
    if rule:
        becomes, settings, why = rule(c, value)
    elif entry.becomes == "ours":
        becomes, settings, why = "ours", {entry.setting: value} if entry.setting[:2] != "--" else {}, entry.how
    else:
        becomes, settings, why = "same" if is_default and entry.becomes == "not here" else entry.becomes, {}, entry.how
    return Row(name, value, is_default, becomes, settings, why)


def _unknown(name: str, value: Any, words: Mapping[str, Entry], fields: Mapping[str, Entry]) -> Row:
    """Returns the row of a name that is no field of the configuration."""
    entry = words.get(name)
    if entry and entry.setting in _OLD.get(name, ()) and value is not None:
        return Row(name, value, False, "ours", {entry.setting: value}, "a field of earlier versions of TRL")
    if entry:
        return Row(name, value, False, "not here", {}, f"no field of this configuration in TRL 1.16; {entry.setting or 'here'}: {entry.how}"
                   if entry.how else f"no field of this configuration in TRL 1.16; set {entry.setting}")
    near = difflib.get_close_matches(name, list(fields), 1)
    return Row(name, value, False, "unknown", {}, f'did you mean "{near[0]}"?' if near else "")


def from_trl(config: Any, kind: Optional[str] = None, *, rows: Optional[int] = None, processes: int = 1) -> FromTRL:
    """Turns a configuration of TRL into arguments of :func:`rlhf_host.train`, and reports on each field.

    ::

        found = rlhf_host.from_trl(GRPOConfig(output_dir="out", learning_rate=1e-5), rows=len(dataset))
        print(found)
        rlhf_host.train(policy="Qwen3-0.6B", rewards=[fn], prompts="rows.jsonl", **found.arguments)

    Args:
        config: an object of GRPOConfig, RLOOConfig, SFTConfig, DPOConfig, KTOConfig, RewardConfig or DistillationConfig,
            or a dict of its fields. Fields that a dict lacks have TRL's defaults.
        kind: the name of the class, for a dict.
        rows: the number of rows that the run trains on, from which the steps of an epoch follow.
        processes: how many processes trained with TRL (``WORLD_SIZE``). per_device_train_batch_size is of one of them.

    Raises:
        Error: the configuration is not one of TRL's, or has a value that TRL refuses as well.
    """
    kind = kind_of(config, kind)
    for name, number in (("rows", rows), ("processes", processes)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise Error(f"from_trl: {name} is {number!r}; expected an integer of at least 1")
    entries = entries_of(kind)
    words = {entry.field: entry for entry in reversed(table()) if entry.field not in entries}
    given = fields_of(config)
    c = Config(kind, {name: value for name, value in given.items() if name in entries}, entries, rows, processes)
    report = [_row(c, entries[name], name, c.values[name]) for name in entries]
    report += [_unknown(name, value, words, entries) for name, value in given.items() if name not in entries]
    algo = ALGOS[kind]
    settings: Dict[str, Any] = {}
    for row in report:
        settings.update(row.settings)
    if kind == "GRPO":
        algo = "grpo_iterative" if "algo.iteration_phases" in settings else algo
    if kind == "Reward":  # RewardTrainer scores the last token and does not scale rewards
        settings.update({"score.pooling": "last", "score.calibrate": 0})
    arguments: Dict[str, Any] = {"algo": algo, "settings": settings}
    if c["output_dir"] not in entries["output_dir"].defaults:
        arguments["out"] = c["output_dir"]
    sinks = [n + ".so" for n in (c["report_to"] or []) if n in ("wandb", "trackio")] if isinstance(c["report_to"], list) else [
        c["report_to"] + ".so"] if c["report_to"] in ("wandb", "trackio") else []
    if sinks:
        arguments["sink"] = sinks
    if c["reward_weights"]:
        arguments["reward_weights"] = c["reward_weights"]
    return FromTRL(algo, settings, arguments, report)
