"""A configuration of TRL: its fields as JSON has them, and the values that several fields share."""

import dataclasses
import difflib
import enum
import json
import math
import os
from typing import Any, Dict, Mapping, Optional

from ._error import Error
from ._trl_table import ALGOS, SAMPLES, Entry


def shown(value: Any) -> str:
    """Returns a value as messages show it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain(value: Any) -> Any:
    """Returns a value as JSON has it. Another object becomes its type's name, such as "<AcceleratorConfig>"."""
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    return f"<{type(value).__name__}>"


def kind_of(config: Any, kind: Optional[str]) -> str:
    names = [kind] if kind else [t.__name__ for t in type(config).__mro__]
    for name in names:
        short = name[:-len("Config")] if name.endswith("Config") else name
        if short in ALGOS:
            return short
    known = ", ".join(name + "Config" for name in ALGOS)
    if kind:
        near = difflib.get_close_matches(kind, [name + "Config" for name in ALGOS], 1)
        hint = f' (did you mean "{near[0]}"?)' if near else ""
        raise Error(f'from_trl: kind is "{kind}"{hint}; expected one of {known}')
    if isinstance(config, Mapping):
        raise Error(f'from_trl: a dict does not say what it configures; give kind="GRPOConfig" or another of {known}')
    raise Error(f"from_trl: config is of type {type(config).__name__}; expected one of {known}, or a dict with kind=")


def fields_of(config: Any) -> Dict[str, Any]:
    if isinstance(config, Mapping):
        return {str(name): plain(value) for name, value in config.items()}
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return {f.name: plain(getattr(config, f.name)) for f in dataclasses.fields(config) if hasattr(config, f.name)}
    if isinstance(config, type):
        raise Error(f"from_trl: config is the class {config.__name__}; give an object of it")
    return {name: plain(value) for name, value in vars(config).items() if not name.startswith("_")}


class Config:
    """The values of a configuration, with TRL's defaults where it has none."""

    def __init__(self, kind: str, given: Mapping[str, Any], entries: Mapping[str, Entry], rows: Optional[int],
                 processes: int):
        self.kind, self.rows, self.processes = kind, rows, processes
        self.values = {name: entry.defaults[0] for name, entry in entries.items()}
        self.values.update(given)
        self.samples = kind in SAMPLES
        self._batch()
        self.steps = self.epochs * self.minibatches  # optimizer steps of a phase
        self.total = self._total()

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)

    def whole(self, name: str, least: int) -> int:
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value) or value < least:
            raise Error(f"from_trl: {name} is {shown(value)}; expected an integer of at least {least}")
        return int(value)

    def number(self, name: str) -> float:
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise Error(f"from_trl: {name} is {shown(value)}; expected a number")
        return value

    def _batch(self) -> None:
        """Sets size, minibatches, epochs and group, and notes what does not come out even."""
        at_once = self.whole("per_device_train_batch_size", 1) * self.processes
        accumulated = self.whole("gradient_accumulation_steps", 1)
        self.size, self.minibatches, self.epochs, self.group = at_once * accumulated, 1, 1, 1
        self.uneven, self.inexact = "", False  # what is odd about the batch, and whether the result differs
        if self.kind not in ("GRPO", "RLOO"):
            self.drawn = self.size
            return
        self.group, repeats = self.whole("num_generations", 2), self.whole("num_iterations", 1)
        if self["steps_per_generation"] is not None:
            parts = self.whole("steps_per_generation", 1)
        elif self["generation_batch_size"] is not None:
            drawn = self.whole("generation_batch_size", 1)
            if drawn % at_once:
                raise Error(f"from_trl: generation_batch_size is {drawn}; expected a multiple of "
                            f"per_device_train_batch_size x processes, which is {at_once}")
            parts = drawn // at_once
        else:
            parts = accumulated
        self.drawn = at_once * parts  # responses that TRL samples at once
        self.size, self.epochs = self.drawn, repeats
        if parts % accumulated == 0:
            self.minibatches = parts // accumulated
        elif accumulated % (parts * repeats) == 0:
            self.size, self.epochs = at_once * accumulated // repeats, 1
            self.uneven = "TRL samples it in parts, and takes means over tokens and over the batch within each part"
            self.inexact = self.kind == "GRPO" and (self["loss_type"] not in ("grpo", "dr_grpo", "sapo") or self[
                "scale_rewards"] == "batch" or self["multi_objective_aggregation"] != "sum_then_normalize")
        else:
            self.minibatches = max(1, parts // accumulated)
            self.uneven = (f"TRL's steps have rows of two batches of responses: steps_per_generation {parts} is no "
                           f"multiple of gradient_accumulation_steps {accumulated}")
            self.inexact = True
        if self.size % self.group:
            raise Error(f"from_trl: num_generations is {self.group}, which does not divide the {self.size} responses of "
                        "a batch")

    def _total(self) -> Optional[int]:
        """Returns the number of TRL's optimizer steps, or None if it is not known."""
        most = self.number("max_steps")
        if most > 0:
            return int(most)
        if not self.rows:
            return None
        at_once = self["per_device_train_batch_size"] * self.processes
        accumulated = self["gradient_accumulation_steps"]
        if self.kind in ("GRPO", "RLOO"):
            calls = self.rows // (self.drawn // self.group) * self["num_iterations"] * (self.drawn // at_once)
        elif self.kind == "Distillation":
            calls = self.rows // self.drawn * accumulated
        else:
            calls = math.ceil(self.rows / at_once)
        return math.ceil(self.number("num_train_epochs") * max(1, math.ceil(calls / accumulated)))

    def phases(self, steps: float) -> int:
        """Returns the phases that have so many optimizer steps."""
        return math.ceil(steps / self.steps)

    def phases_of(self, name: str) -> Optional[int]:
        """Returns a number of steps, or a share of all steps, as phases; None if the total is not known."""
        value = self.number(name)
        if value < 1:
            return None if self.total is None and value > 0 else self.phases(math.ceil(value * (self.total or 0)))
        return self.phases(value)
