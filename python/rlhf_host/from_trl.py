"""Turns a configuration of TRL into settings of rlhf-host, field by field. See docs/from-trl.md.

What becomes of each field is in ``trl.tsv``. This file has the fields whose value needs more than a copy. It imports
neither TRL nor transformers.
"""

import dataclasses
import difflib
import enum
import json
import math
import os
import shlex
import textwrap
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ._error import Error

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_ALGOS = {"GRPO": "grpo", "RLOO": "rloo", "SFT": "sft", "DPO": "dpo", "KTO": "kto", "Reward": "bradley_terry",
          "Distillation": "opd"}
_SAMPLES = ("GRPO", "RLOO", "Distillation")  # the policy responds to prompts


# ---- the table ----


class _Entry(NamedTuple):
    field: str
    of: List[str]  # names of configurations, "all" or "word"
    defaults: List[Any]  # the declared one, then those that an object may have instead
    becomes: str  # "ours", "not needed", "not here"
    setting: str
    how: str


def _table() -> List[_Entry]:
    with open(os.path.join(_PACKAGE, "trl.tsv"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return [_Entry(field, of.split(), [] if default == "-" else [json.loads(one) for one in default.split(" or ")],
                   becomes, setting, how) for field, of, default, becomes, setting, how in lines]


def _entries_of(kind: str) -> Dict[str, _Entry]:
    """Returns the entries of the fields of a configuration. Its own take precedence."""
    found: Dict[str, _Entry] = {}
    for entry in _table():
        if kind in entry.of or "all" in entry.of and entry.field not in found:
            found[entry.field] = entry
    return found


# ---- what is returned ----


@dataclasses.dataclass
class Row:
    """What became of one field."""

    field: str
    value: Any
    is_default: bool  #: the value is TRL's default
    becomes: str  #: "ours", "not needed", "not here", "same" (TRL's default is what happens here) or "unknown"
    settings: Dict[str, Any]  #: what it sets here
    why: str  #: how the value maps, or why there is no setting


@dataclasses.dataclass
class FromTRL:
    """A configuration of TRL as a run of rlhf-host. ``print()`` shows what became of each field that was set."""

    algo: str  #: the algorithm, such as "grpo"
    settings: Dict[str, Any]  #: settings for :func:`rlhf_host.train`
    arguments: Dict[str, Any]  #: all arguments for :func:`rlhf_host.train`: algo, settings, and out, sink, reward_weights
    report: List[Row]  #: one row for each field

    def rows(self, becomes: str) -> List[Row]:
        """Returns the rows of the fields that became ``becomes``."""
        return [row for row in self.report if row.becomes == becomes]

    def command(self) -> str:
        """Returns the run as a command, to which policy, rows and rewards are still to be added."""
        words = ["rlhf-host", "--algo", self.algo + ".so"]
        if "out" in self.arguments:
            words += ["--out", self.arguments["out"]]
        for sink in self.arguments.get("sink", ()):
            words += ["--sink", sink]
        for path, value in self.settings.items():
            words += ["--set", f"{path}={_text(value)}"]
        return " ".join(shlex.quote(word) for word in words)

    def __str__(self) -> str:
        lines = [f"TRL's configuration as a run of {self.algo}.so"]
        for title, wanted in (("not here (the run differs in this from TRL's)", ("not here",)),
                              ("unknown (not a field of TRL 1.16)", ("unknown",)), ("not needed", ("not needed",))):
            rows = [row for row in self.report if row.becomes in wanted and (not row.is_default or wanted == ("not here",))]
            if rows:
                lines += ["", title + ":"] + [f"  {row.field}={_text(row.value)}: {row.why}" for row in rows]
        rows = [row for row in self.report if row.becomes == "ours" and not row.is_default]
        lines += ["", "settings from the fields that differ from TRL's defaults:"]
        for row in rows:
            given = ", ".join(f"{path}={_text(value)}" for path, value in row.settings.items())
            what = f"{given} ({row.why})" if given and row.why else given or row.why or "nothing to set"
            lines.append(f"  {row.field}={_text(row.value)}: {what}")
        given = [f"{path}={_text(value)}" for row in self.report if row.is_default for path, value in row.settings.items()]
        lines += ["", "settings from TRL's defaults:"]
        lines += textwrap.wrap(", ".join(given), 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        rest = sum(row.is_default for row in self.report if row.becomes in ("same", "not needed"))
        lines += ["", f"{rest} further fields have TRL's defaults, which need no setting"]
        return "\n".join(lines)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ---- reading the configuration ----


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it. Another object becomes its type's name, such as "<AcceleratorConfig>"."""
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(one) for one in value]
    return f"<{type(value).__name__}>"


def _kind_of(config: Any, kind: Optional[str]) -> str:
    names = [kind] if kind else [t.__name__ for t in type(config).__mro__]
    for name in names:
        short = name[:-len("Config")] if name.endswith("Config") else name
        if short in _ALGOS:
            return short
    known = ", ".join(name + "Config" for name in _ALGOS)
    if kind:
        near = difflib.get_close_matches(kind, [name + "Config" for name in _ALGOS], 1)
        hint = f' (did you mean "{near[0]}"?)' if near else ""
        raise Error(f'from_trl: kind is "{kind}"{hint}; expected one of {known}')
    if isinstance(config, Mapping):
        raise Error(f'from_trl: a dict does not say what it configures; give kind="GRPOConfig" or another of {known}')
    raise Error(f"from_trl: config is of type {type(config).__name__}; expected one of {known}, or a dict with kind=")


def _fields_of(config: Any) -> Dict[str, Any]:
    if isinstance(config, Mapping):
        return {str(name): _plain(value) for name, value in config.items()}
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return {f.name: _plain(getattr(config, f.name)) for f in dataclasses.fields(config) if hasattr(config, f.name)}
    if isinstance(config, type):
        raise Error(f"from_trl: config is the class {config.__name__}; give an object of it")
    return {name: _plain(value) for name, value in vars(config).items() if not name.startswith("_")}


# ---- the values that several fields share ----


class _Config:
    """The values of a configuration, with TRL's defaults where it has none."""

    def __init__(self, kind: str, given: Mapping[str, Any], entries: Mapping[str, _Entry], rows: Optional[int],
                 processes: int):
        self.kind, self.rows, self.processes = kind, rows, processes
        self.values = {name: entry.defaults[0] for name, entry in entries.items()}
        self.values.update(given)
        self.samples = kind in _SAMPLES
        self._batch()
        self.steps = self.epochs * self.minibatches  # optimizer steps of a phase
        self.total = self._total()

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)

    def whole(self, name: str, least: int) -> int:
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value) or value < least:
            raise Error(f"from_trl: {name} is {_text(value)}; expected an integer of at least {least}")
        return int(value)

    def number(self, name: str) -> float:
        value = self[name]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise Error(f"from_trl: {name} is {_text(value)}; expected a number")
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


# ---- the rules ----

_Result = Tuple[str, Dict[str, Any], str]  # becomes, settings, why
_Rule = Callable[[_Config, Any], _Result]
_RULES: Dict[Tuple[str, str], _Rule] = {}  # by configuration and field


def _rule(*names: str, of: str = "all") -> Callable[[_Rule], _Rule]:
    def add(rule: _Rule) -> _Rule:
        for name in names:
            for kind in of.split():
                _RULES[kind, name] = rule
        return rule
    return add


def _ours(settings: Mapping[str, Any], why: str = "") -> _Result:
    return "ours", dict(settings), why


def _not_here(why: str, **settings: Any) -> _Result:
    return "not here", {path.replace("__", "."): value for path, value in settings.items()}, why


_UNKNOWN_TOTAL = "it needs the number of steps: give max_steps, or rows= to from_trl"


@_rule("per_device_train_batch_size")
def _size(c: _Config, value: Any) -> _Result:
    if c.kind == "SFT" and c["packing"] and c["max_length"]:
        return _ours({}, "data.batch_tokens has its place, see packing")
    settings: Dict[str, Any] = {"batch.size": c.size}
    if c.kind in ("GRPO", "RLOO"):
        settings["algo.minibatches"] = c.minibatches
    return "not here" if c.inexact else "ours", settings, c.uneven


@_rule("gradient_accumulation_steps", "steps_per_generation", "generation_batch_size")
def _size_part(c: _Config, value: Any) -> _Result:
    return _ours({}, "part of batch.size and algo.minibatches, see per_device_train_batch_size")


@_rule("num_iterations")
def _epochs(c: _Config, value: Any) -> _Result:
    return _ours({"algo.epochs": c.epochs})


@_rule("max_steps")
def _max_steps(c: _Config, value: Any) -> _Result:
    return _ours({"run.phases": c.phases(value)} if c.number("max_steps") > 0 else {})


@_rule("num_train_epochs")
def _passes(c: _Config, value: Any) -> _Result:
    if c.number("max_steps") > 0:
        return _ours({}, "max_steps says when the run ends")
    if not c.samples:
        return _ours({"data.epochs": c.number("num_train_epochs")})
    if c.total is None:
        return _not_here("the number of phases depends on the number of prompts: give rows= to from_trl, or set run.phases")
    return _ours({"run.phases": c.phases(c.total)})


@_rule("output_dir")
def _out(c: _Config, value: Any) -> _Result:
    return _ours({}, "out")


@_rule("reward_weights")
def _weights(c: _Config, value: Any) -> _Result:
    return _ours({}, "reward_weights of rlhf_host.train; with --set reward.0.weight, reward.1.weight, ..." if value else "")


@_rule("report_to")
def _sinks(c: _Config, value: Any) -> _Result:
    names = [value] if isinstance(value, str) else list(value or [])
    others = [n for n in names if n not in ("none", "wandb", "trackio", "tensorboard", "all")]
    if others:
        return _not_here(f"there is no sink for {', '.join(others)} (plugin new sink)")
    return _ours({}, " and ".join(f"--sink {n}.so" for n in names if n in ("wandb", "trackio")))


# the optimizer and its schedule


@_rule("optim")
def _optim(c: _Config, value: Any) -> _Result:
    name = str(value)
    if name.startswith(("adamw_torch", "adamw_hf", "adamw_apex", "adamw_anyprecision", "paged_adamw", "adamw_8bit", "adamw_bnb")):
        exact = name in ("adamw_torch", "adamw_torch_fused", "adamw_torch_xla", "adamw_torch_npu_fused")
        return _ours({"optim.kind": "adamw"}, "" if exact else "its state is f32")
    return _not_here(f"there is no {name}; the run takes AdamW", optim__kind="adamw")


@_rule("lr_scheduler_type")
def _schedule(c: _Config, value: Any) -> _Result:
    more = c["lr_scheduler_kwargs"] or {}
    more = more if isinstance(more, Mapping) else {}
    lr = c.number("learning_rate")
    shape, share = str(value), 0.0
    if shape in ("constant", "constant_with_warmup"):
        return _ours({"optim.schedule": "constant"})
    if shape in ("cosine_with_min_lr", "polynomial"):
        end = more.get("min_lr", more.get("lr_end", 1e-7 if shape == "polynomial" else None))
        share = more.get("min_lr_rate", end / lr if end is not None and lr else None)
        if share is None:
            raise Error("from_trl: lr_scheduler_kwargs has neither min_lr nor min_lr_rate, which cosine_with_min_lr needs")
    base = {"linear": "linear", "cosine": "cosine", "cosine_with_min_lr": "cosine", "polynomial": "linear"}.get(shape)
    settings = {"optim.schedule": base or "linear", "optim.final_scale": float(f"{share:.12g}"), "optim.schedule_phases": 0}
    if base is None or more.get("num_cycles", 0.5) != 0.5 or more.get("power", 1.0) != 1.0:
        return "not here", settings, f"there is no such schedule; the run takes {base or 'linear'}"
    return _ours(settings)


@_rule("lr_scheduler_kwargs")
def _schedule_more(c: _Config, value: Any) -> _Result:
    known = {"cosine_with_min_lr": {"min_lr", "min_lr_rate", "num_cycles"}, "polynomial": {"lr_end", "power"},
             "cosine": {"num_cycles"}}
    if not value:
        return _ours({})
    if not isinstance(value, Mapping):
        raise Error(f"from_trl: lr_scheduler_kwargs is {_text(value)}; expected a dict")
    others = sorted(set(value) - known.get(str(c["lr_scheduler_type"]), set()))
    return _not_here(f"not supported: {', '.join(others)}") if others else _ours({}, "see lr_scheduler_type")


@_rule("warmup_steps")
def _warmup(c: _Config, value: Any) -> _Result:
    if c["lr_scheduler_type"] == "constant":
        return _ours({"optim.warmup": 0}, "the schedule constant has no warm-up in transformers" if value else "")
    phases = c.phases_of("warmup_steps")
    if phases is None:
        return _not_here(_UNKNOWN_TOTAL + "; the run has no warm-up", optim__warmup=0)
    settings: Dict[str, Any] = {"optim.warmup": phases}
    if phases:
        settings["optim.warmup_from"] = "zero"
    steps = value if value >= 1 else math.ceil(value * (c.total or 0))
    even = steps % c.steps == 0
    return _ours(settings, "" if even else f"{steps} steps are not a whole number of phases of {c.steps} steps")


# precision, order, samples


@_rule("bf16")
def _bf16(c: _Config, value: Any) -> _Result:
    plain = value is False and not c["fp16"]
    return _ours({"compute.dtype": "f32"} if plain else {}, "" if plain else "compute.dtype is auto: bf16 where it is fast")


@_rule("max_grad_norm")
def _norm(c: _Config, value: Any) -> _Result:
    return _ours({"optim.max_grad_norm": 0 if value is None else c.number("max_grad_norm")})


@_rule("ddp_timeout")
def _timeout(c: _Config, value: Any) -> _Result:
    return _ours({} if value == 1800 else {"parallel.timeout_s": c.number("ddp_timeout")})


@_rule("use_cpu")
def _cpu(c: _Config, value: Any) -> _Result:
    return _ours({"compute.backend": "cpu"} if value else {})


@_rule("train_sampling_strategy")
def _order(c: _Config, value: Any) -> _Result:
    if c.samples:
        return _ours({}, "see shuffle_dataset") if value == "random" else _not_here("shuffle_dataset decides the order of prompts")
    if value in ("random", "sequential"):
        return _ours({"data.shuffle": value == "random"})
    return _not_here("the order is random; results differ as with another seed", data__shuffle=True)


@_rule("disable_tqdm")
def _tqdm(c: _Config, value: Any) -> _Result:
    return _ours({}, "log.progress=plain writes lines" if value else "")


@_rule("log_level")
def _level(c: _Config, value: Any) -> _Result:
    names = {"debug": "debug", "info": "info", "warning": "warn", "error": "error", "critical": "error"}
    return _ours({"log.level": names[value]} if value in names else {})


@_rule("log_completions", "num_completions_to_print")
def _samples(c: _Config, value: Any) -> _Result:
    n = c["num_completions_to_print"]
    if c["log_completions"] and n is not None and value is n:
        return _ours({"log.samples": min(c.whole("num_completions_to_print", 0), 1000)})
    return _ours({}, "samples are written in each phase (log.samples)" if c["log_completions"] else "")


# evaluation and checkpoints


@_rule("eval_strategy")
def _eval(c: _Config, value: Any) -> _Result:
    if value == "no":
        return _ours({})
    if value == "steps":
        every = c["eval_steps"] if c["eval_steps"] is not None else c["logging_steps"]
        c.values["eval_steps"] = every
        phases = c.phases_of("eval_steps")
    else:
        passes = c.number("num_train_epochs")
        phases = c.phases(c.total / passes) if c.total and c.number("max_steps") <= 0 and passes else None
    if phases is None:
        return _not_here(_UNKNOWN_TOTAL)
    return _ours({"data.eval_every": max(1, phases)}, "needs data.eval_path")


@_rule("eval_steps")
def _eval_steps(c: _Config, value: Any) -> _Result:
    return _ours({}, "see eval_strategy")


@_rule("save_strategy")
def _save(c: _Config, value: Any) -> _Result:
    if value == "no":
        return _ours({"checkpoint.every": 0, "checkpoint.every_s": 0})
    if value == "steps":
        phases = c.phases_of("save_steps")
    elif value == "best":
        return _ours({}, "see load_best_model_at_end") if c["load_best_model_at_end"] else _not_here(
            "set checkpoint.best to the metric, and checkpoint.every")
    else:
        passes = c.number("num_train_epochs")
        phases = c.phases(c.total / passes) if c.total and c.number("max_steps") <= 0 and passes else None
    return _not_here(_UNKNOWN_TOTAL) if phases is None else _ours({"checkpoint.every": max(1, phases)})


@_rule("save_steps")
def _save_steps(c: _Config, value: Any) -> _Result:
    return _ours({}, "see save_strategy")


@_rule("save_total_limit")
def _keep(c: _Config, value: Any) -> _Result:
    return _ours({"checkpoint.keep": c.whole("save_total_limit", 1)} if value is not None else {},
                 "" if value is not None else "TRL keeps all; checkpoint.keep=0 does")


@_rule("load_best_model_at_end")
def _best(c: _Config, value: Any) -> _Result:
    if not value:
        return _ours({})
    name = str(c["metric_for_best_model"] or "loss")
    name = name[len("eval_"):] if name.startswith("eval_") else name
    known = {"loss": "eval/loss"} if c.kind in ("SFT", "Reward") else {"reward": "eval/reward"} if c.samples else {
        "rewards/accuracies": "eval/accuracy", "rewards/margins": "eval/margin"}
    ours = known.get(name) if (c.kind, name) != ("KTO", "rewards/accuracies") else None
    if ours is None or c["save_strategy"] == "no":
        return _not_here(f"set checkpoint.best to a metric of docs/metrics.md; {name} is not measured on held-out rows, or no "
                         "checkpoints are written")
    high = c["greater_is_better"]
    high = not name.endswith("loss") if high is None else high
    return _ours({"checkpoint.best": ours, "checkpoint.best_mode": "max" if high else "min"},
                 "the best model is in checkpoints/best")


@_rule("metric_for_best_model", "greater_is_better")
def _best_part(c: _Config, value: Any) -> _Result:
    return _ours({}, "see load_best_model_at_end")


# sampling


@_rule("top_k")
def _top_k(c: _Config, value: Any) -> _Result:
    return _ours({"sampling.top_k": max(0, c.whole("top_k", -1)) if value is not None else 0})


@_rule("min_p")
def _min_p(c: _Config, value: Any) -> _Result:
    return _ours({"sampling.min_p": 0 if value is None else c.number("min_p")})


@_rule("max_completion_length")
def _longest(c: _Config, value: Any) -> _Result:
    if value is None:
        return _not_here("a response needs a limit; set sampling.max_new_tokens")
    return _ours({"sampling.max_new_tokens": c.whole("max_completion_length", 1)})


@_rule("generation_kwargs")
def _generation(c: _Config, value: Any) -> _Result:
    names = {"temperature": "sampling.temperature", "top_p": "sampling.top_p", "top_k": "sampling.top_k",
             "min_p": "sampling.min_p", "max_new_tokens": "sampling.max_new_tokens", "stop": "sampling.stop",
             "stop_strings": "sampling.stop"}
    given = dict(value) if isinstance(value, Mapping) else {}
    settings = {names[name]: one for name, one in given.items() if name in names}
    if isinstance(settings.get("sampling.stop"), str):
        settings["sampling.stop"] = [settings["sampling.stop"]]
    others = [name for name in given if name not in names and not (name == "do_sample" and given[name])]
    if others or value and not given:
        return "not here", settings, f"not supported: {', '.join(others) or _text(value)}"
    return _ours(settings)


@_rule("chat_template_kwargs")
def _template_vars(c: _Config, value: Any) -> _Result:
    return _ours({"prompts.template_vars": value} if value else {})


@_rule("chat_template_path")
def _template(c: _Config, value: Any) -> _Result:
    if value is None or str(value).endswith((".jinja", ".j2")):
        return _ours({"prompts.template": value} if value else {})
    return _not_here("the template of another tokenizer is not read from its directory; save it as a .jinja file")


@_rule("max_tool_calling_iterations")
def _turns(c: _Config, value: Any) -> _Result:
    if value is None:
        return _ours({}, "with an environment, the default of episodes.turns is 8")
    return _ours({"episodes.turns": c.whole("max_tool_calling_iterations", 0) + 1})


# GRPO and RLOO


@_rule("beta", of="GRPO RLOO")
def _kl(c: _Config, value: Any) -> _Result:
    return _ours({"algo.kl_coef": c.number("beta")})


@_rule("use_bias_correction_kl")
def _kl_estimator(c: _Config, value: Any) -> _Result:
    if not c.number("beta"):
        return _ours({}, "beta is 0")
    if not value:
        return _ours({"algo.kl_estimator": "k3"})
    if c.steps == 1 and c["importance_sampling_level"] == "token":
        return _ours({"algo.kl_estimator": "k2"}, "the same gradient; the reported KL is another estimate")
    return _not_here("the KL term has no ratio, which TRL's has in the second and later steps of a phase and with sequence "
                     "ratios", algo__kl_estimator="k2")


@_rule("epsilon")
def _clip(c: _Config, value: Any) -> _Result:
    if c["loss_type"] in ("sapo", "cispo"):
        return _ours({}, f"loss_type {c['loss_type']} does not clip below")
    return _ours({"algo.clip_range": c.number("epsilon")})


@_rule("epsilon_high", of="GRPO")
def _clip_high(c: _Config, value: Any) -> _Result:
    loss = c["loss_type"]
    if loss == "sapo":
        return _ours({}, "loss_type sapo does not clip")
    if loss == "cispo":
        bound = c.number("epsilon_high" if value is not None else "epsilon")
        if bound < 1:
            return _not_here(f"TRL bounds the ratio of cispo at {bound}, below 1, where the lowest bound here is 1",
                             algo__clip_range_high=0)
        return _ours({"algo.clip_range_high": bound - 1}, "of cispo, TRL's number is the bound itself")
    return _ours({} if value is None else {"algo.clip_range_high": c.number("epsilon_high")})


@_rule("epsilon_high", of="RLOO")
def _clip_high_rloo(c: _Config, value: Any) -> _Result:
    if value is None or value == c["epsilon"]:
        return _ours({})
    return _not_here("rloo.so has one bound, algo.clip_range")


@_rule("delta")
def _dual_clip(c: _Config, value: Any) -> _Result:
    if value is None or c["loss_type"] not in ("grpo", "bnpo", "dr_grpo", "dapo"):
        return _ours({}, "" if value is None else f"TRL ignores it with loss_type {c['loss_type']}")
    high = c["epsilon_high"] if c["epsilon_high"] is not None else c["epsilon"]
    if c.number("delta") <= 1 + high:
        return _not_here(f"algo.dual_clip must be above 1 + epsilon_high, which is {1 + high:g}")
    return _ours({"algo.dual_clip": value})


@_rule("sapo_temperature_neg", "sapo_temperature_pos")
def _sapo(c: _Config, value: Any) -> _Result:
    if c["loss_type"] != "sapo":
        return _ours({}, "loss_type is not sapo")
    return _ours({f"algo.{name}": c.number(name) for name in ("sapo_temperature_neg", "sapo_temperature_pos")})


@_rule("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg")
def _vespo(c: _Config, value: Any) -> _Result:
    return _not_here("there is no loss vespo") if c["loss_type"] == "vespo" else ("same", {}, "loss_type is not vespo")


@_rule("importance_sampling_level")
def _ratio(c: _Config, value: Any) -> _Result:
    return _ours({"algo.ratio": {"token": "token", "sequence": "sequence_mean"}[_one_of(c, "importance_sampling_level",
                                                                                     "token", "sequence")]})


def _one_of(c: _Config, name: str, *allowed: str) -> str:
    if c[name] not in allowed:
        raise Error(f"from_trl: {name} is {_text(c[name])}; expected one of {', '.join(allowed)}")
    return str(c[name])


@_rule("multi_objective_aggregation")
def _each(c: _Config, value: Any) -> _Result:
    one = _one_of(c, "multi_objective_aggregation", "sum_then_normalize", "normalize_then_sum")
    return _ours({"algo.advantage_rewards": "sum" if one == "sum_then_normalize" else "each"})


@_rule("scale_rewards")
def _scale(c: _Config, value: Any) -> _Result:
    if c["multi_objective_aggregation"] == "normalize_then_sum":
        return _ours({"algo.advantage_scale": "group"}, "TRL ignores it with normalize_then_sum")
    c.values["scale_rewards"] = {True: "group", False: "none"}.get(value, value)
    return _ours({"algo.advantage_scale": _one_of(c, "scale_rewards", "group", "batch", "none")})


@_rule("loss_type", of="GRPO")
def _loss_grpo(c: _Config, value: Any) -> _Result:
    if value in ("luspo", "vespo"):
        return _not_here(f"there is no loss {value}; the run takes grpo", algo__loss="grpo")
    loss = _one_of(c, "loss_type", "grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo")
    parts = c["gradient_accumulation_steps"] * c.processes
    if loss == "bnpo" and parts > 1:
        return _not_here(f"TRL takes the mean over the tokens of each of {parts} microbatches, and then their mean; here it is "
                         "the mean over the tokens of the step", algo__loss=loss)
    return _ours({"algo.loss": loss})


@_rule("mask_truncated_completions")
def _mask(c: _Config, value: Any) -> _Result:
    kl = c.kind == "RLOO" and value and c["beta"]
    return _ours({"algo.mask_truncated": bool(value)}, "the KL of such a response stays in its reward, in TRL it is 0" if kl else "")


@_rule("sync_ref_model", of="GRPO")
def _sync(c: _Config, value: Any) -> _Result:
    if not value:
        return _ours({})
    if c["ref_model_mixup_alpha"] != 1:
        return _not_here("the reference is replaced (grpo_iterative.so, with ref_model_mixup_alpha 1), but not mixed")
    return _ours({"algo.iteration_phases": c.phases(c.whole("ref_model_sync_steps", 1))}, "grpo_iterative.so")


@_rule("ref_model_mixup_alpha", "ref_model_sync_steps")
def _sync_part(c: _Config, value: Any) -> _Result:
    return _ours({}, "see sync_ref_model") if c["sync_ref_model"] else ("same", {}, "sync_ref_model is false")


@_rule("entropy_coef")
def _entropy(c: _Config, value: Any) -> _Result:
    if c["use_adaptive_entropy"]:
        return _not_here("entropy_coef does not adapt")
    if not c.number("entropy_coef"):
        return _ours({})
    if c["loss_type"] not in ("dapo", "bnpo", "cispo") or value < 0:
        return _not_here(f"with loss_type {c['loss_type']} the entropy would have other weights than TRL's mean over tokens"
                         if value > 0 else "a negative coefficient is refused")
    return _ours({"algo.entropy_coef": value})


@_rule("entropy_coef_min", "entropy_coef_max", "entropy_coef_delta", "entropy_target")
def _entropy_part(c: _Config, value: Any) -> _Result:
    return _not_here("entropy_coef does not adapt") if c["use_adaptive_entropy"] else ("same", {}, "use_adaptive_entropy is false")


@_rule("off_policy_mask_threshold")
def _off_policy(c: _Config, value: Any) -> _Result:
    if value is None or c.steps == 1:
        return "same", {}, "without effect while a phase takes one step" if value is not None else ""
    return _not_here("rows of an older policy are not left out")


@_rule("reward_clip_range")
def _reward_clip(c: _Config, value: Any) -> _Result:
    if not value:
        return _ours({})
    low, high = value
    if low != -high or high <= 0:
        return _not_here(f"rewards.clip has one bound for both signs; ({low}, {high}) is not symmetric")
    return _ours({"rewards.clip": high})


# distillation, SFT, preferences, reward models


@_rule("beta", of="Distillation")
def _divergence(c: _Config, value: Any) -> _Result:
    beta = c.number("beta")
    if 0 < beta < 1:
        return _ours({"algo.divergence": "js", "algo.beta": beta})
    return _ours({"algo.divergence": "reverse" if beta else "forward"})


@_rule("teacher_model_name_or_path")
def _teacher(c: _Config, value: Any) -> _Result:
    return _ours({"models.teacher": value} if value else {}, "" if value else "set models.teacher to the teacher's directory")


@_rule("max_length")
def _max_length(c: _Config, value: Any) -> _Result:
    cut = {"SFT": "", "Reward": "a longer row loses the beginning of its prompt, where TRL leaves it out"}.get(
        c.kind, "a longer row loses the beginning of its prompt, in TRL the end of its completion")
    return _ours({"data.max_tokens": 0 if value is None else c.whole("max_length", 1)}, cut if value else "")


@_rule("packing")
def _packing(c: _Config, value: Any) -> _Result:
    if not value or not c["max_length"]:
        return _ours({})
    return _ours({"data.batch_tokens": c.size * c.whole("max_length", 1)}, "as many tokens as a packed batch of TRL's has")


@_rule("packing_strategy")
def _packing_strategy(c: _Config, value: Any) -> _Result:
    if not c["packing"]:
        return _ours({})
    if value == "wrapped":
        return _not_here("rows that fit are not cut; longer ones are split", data__long_rows="split")
    return _ours({"data.long_rows": "truncate" if value == "bfd" else "split"})


@_rule("completion_only_loss")
def _completion_only(c: _Config, value: Any) -> _Result:
    return _not_here("rows with a completion are trained on the completion; write both as one text") if value is False else (
        "same", {}, "rows with a completion are trained on the completion")


@_rule("assistant_only_loss")
def _assistant(c: _Config, value: Any) -> _Result:
    return _ours({"data.assistant_only": bool(value)})


@_rule("loss_type", of="SFT")
def _loss_sft(c: _Config, value: Any) -> _Result:
    if value == "dft":
        return _not_here("there is no loss dft; the run takes nll", algo__aggregation="token")
    _one_of(c, "loss_type", "nll", "chunked_nll")
    return _ours({"algo.aggregation": "token"}, "the first token of a text, which is not trained, does not count in the mean")


@_rule("loss_type", of="DPO")
def _loss_dpo(c: _Config, value: Any) -> _Result:
    losses = value if isinstance(value, list) else [value]
    known = ("sigmoid", "hinge", "ipo", "robust", "sppo_hard", "apo_zero", "apo_down", "nca_pair")
    if len(losses) != 1 or losses[0] not in known:
        first = next((loss for loss in losses if loss in known), "sigmoid")
        return _not_here(f"a run has one loss, of {', '.join(known)}; the run takes {first}", algo__loss=first)
    if losses[0] == "robust" and not c["label_smoothing"]:
        return _ours({"algo.loss": "sigmoid"}, "robust without label_smoothing is sigmoid")
    return _ours({"algo.loss": losses[0]})


@_rule("loss_weights")
def _loss_weights(c: _Config, value: Any) -> _Result:
    return ("same", {}, "") if value in (None, [1], [1.0]) else _not_here("a run has one loss, with weight 1")


@_rule("label_smoothing")
def _smoothing(c: _Config, value: Any) -> _Result:
    losses = c["loss_type"] if isinstance(c["loss_type"], list) else [c["loss_type"]]
    if losses == ["robust"] and value:
        return _ours({"algo.label_smoothing": c.number("label_smoothing")})
    return _ours({}, "TRL reads it only with robust, exo_pair, aot and aot_unpaired" if value else "")


@_rule("loss_type", of="KTO")
def _loss_kto(c: _Config, value: Any) -> _Result:
    return _ours({"algo.loss": _one_of(c, "loss_type", "kto", "apo_zero_unpaired")},
                 "" if c["gradient_accumulation_steps"] * c.processes == 1 or value != "kto" else
                 "the KL is estimated over the rows of the step, TRL's over those of a microbatch")


@_rule("center_rewards_coefficient")
def _center(c: _Config, value: Any) -> _Result:
    return _ours({"algo.center_coef": 0 if value is None else c.number("center_rewards_coefficient")})


# ---- all of it ----

_OLD = {"max_prompt_length": ("prompts.max_tokens",), "max_seq_length": ("data.max_tokens",)}  # the value is the same



def _row(c: _Config, entry: _Entry, name: str, value: Any) -> Row:
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


def _unknown(name: str, value: Any, words: Mapping[str, _Entry], fields: Mapping[str, _Entry]) -> Row:
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
    kind = _kind_of(config, kind)
    for name, number in (("rows", rows), ("processes", processes)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise Error(f"from_trl: {name} is {number!r}; expected an integer of at least 1")
    entries = _entries_of(kind)
    words = {entry.field: entry for entry in reversed(_table()) if entry.field not in entries}
    given = _fields_of(config)
    c = _Config(kind, {name: value for name, value in given.items() if name in entries}, entries, rows, processes)
    report = [_row(c, entries[name], name, c.values[name]) for name in entries]
    report += [_unknown(name, value, words, entries) for name, value in given.items() if name not in entries]
    algo = _ALGOS[kind]
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
