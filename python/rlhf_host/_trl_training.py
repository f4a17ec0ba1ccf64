"""Rules for the fields of every trainer: batches, length, optimizer, precision, evaluation, checkpoints."""

import math
from typing import Any, Dict, Mapping

from ._error import Error
from ._trl_config import Config, shown
from ._trl_rules import UNKNOWN_TOTAL, Result, Rules, not_here, ours

RULES = Rules()


@RULES.rule("per_device_train_batch_size")
def _size(c: Config, value: Any) -> Result:
    if c.kind == "SFT" and c["packing"] and c["max_length"]:
        return ours({}, "data.batch_tokens has its place, see packing")
    settings: Dict[str, Any] = {"batch.size": c.size}
    if c.kind in ("GRPO", "RLOO"):
        settings["algo.minibatches"] = c.minibatches
    return "not here" if c.inexact else "ours", settings, c.uneven


@RULES.rule("gradient_accumulation_steps", "steps_per_generation", "generation_batch_size")
def _size_part(c: Config, value: Any) -> Result:
    return ours({}, "part of batch.size and algo.minibatches, see per_device_train_batch_size")


@RULES.rule("num_iterations")
def _epochs(c: Config, value: Any) -> Result:
    return ours({"algo.epochs": c.epochs})


@RULES.rule("max_steps")
def _max_steps(c: Config, value: Any) -> Result:
    return ours({"run.phases": c.phases(value)} if c.number("max_steps") > 0 else {})


@RULES.rule("num_train_epochs")
def _passes(c: Config, value: Any) -> Result:
    if c.number("max_steps") > 0:
        return ours({}, "max_steps says when the run ends")
    if not c.samples:
        return ours({"data.epochs": c.number("num_train_epochs")})
    if c.total is None:
        return not_here("the number of phases depends on the number of prompts: give rows= to from_trl, or set run.phases")
    return ours({"run.phases": c.phases(c.total)})


@RULES.rule("output_dir")
def _out(c: Config, value: Any) -> Result:
    return ours({}, "out")


@RULES.rule("reward_weights")
def _weights(c: Config, value: Any) -> Result:
    return ours({}, "reward_weights of rlhf_host.train; with --set reward.0.weight, reward.1.weight, ..." if value else "")


@RULES.rule("report_to")
def _sinks(c: Config, value: Any) -> Result:
    names = [value] if isinstance(value, str) else list(value or [])
    others = [n for n in names if n not in ("none", "wandb", "trackio", "tensorboard", "all")]
    if others:
        return not_here(f"there is no sink for {', '.join(others)} (plugin new sink)")
    return ours({}, " and ".join(f"--sink {n}.so" for n in names if n in ("wandb", "trackio")))


# the optimizer and its schedule


@RULES.rule("optim")
def _optim(c: Config, value: Any) -> Result:
    name = str(value)
    if name.startswith(("adamw_torch", "adamw_hf", "adamw_apex", "adamw_anyprecision", "paged_adamw", "adamw_8bit", "adamw_bnb")):
        exact = name in ("adamw_torch", "adamw_torch_fused", "adamw_torch_xla", "adamw_torch_npu_fused")
        return ours({"optim.kind": "adamw"}, "" if exact else "its state is f32")
    return not_here(f"there is no {name}; the run takes AdamW", optim__kind="adamw")


@RULES.rule("lr_scheduler_type")
def _schedule(c: Config, value: Any) -> Result:
    more = c["lr_scheduler_kwargs"] or {}
    more = more if isinstance(more, Mapping) else {}
    lr = c.number("learning_rate")
    shape, share = str(value), 0.0
    if shape in ("constant", "constant_with_warmup"):
        return ours({"optim.schedule": "constant"})
    if shape in ("cosine_with_min_lr", "polynomial"):
        end = more.get("min_lr", more.get("lr_end", 1e-7 if shape == "polynomial" else None))
        share = more.get("min_lr_rate", end / lr if end is not None and lr else None)
        if share is None:
            raise Error("from_trl: lr_scheduler_kwargs has neither min_lr nor min_lr_rate, which cosine_with_min_lr needs")
    base = {"linear": "linear", "cosine": "cosine", "cosine_with_min_lr": "cosine", "polynomial": "linear"}.get(shape)
    settings = {"optim.schedule": base or "linear", "optim.final_scale": float(f"{share:.12g}"), "optim.schedule_phases": 0}
    if base is None or more.get("num_cycles", 0.5) != 0.5 or more.get("power", 1.0) != 1.0:
        return "not here", settings, f"there is no such schedule; the run takes {base or 'linear'}"
    return ours(settings)


@RULES.rule("lr_scheduler_kwargs")
def _schedule_more(c: Config, value: Any) -> Result:
    known = {"cosine_with_min_lr": {"min_lr", "min_lr_rate", "num_cycles"}, "polynomial": {"lr_end", "power"},
             "cosine": {"num_cycles"}}
    if not value:
        return ours({})
    if not isinstance(value, Mapping):
        raise Error(f"from_trl: lr_scheduler_kwargs is {shown(value)}; expected a dict")
    others = sorted(set(value) - known.get(str(c["lr_scheduler_type"]), set()))
    return not_here(f"not supported: {', '.join(others)}") if others else ours({}, "see lr_scheduler_type")


@RULES.rule("warmup_steps")
def _warmup(c: Config, value: Any) -> Result:
    if c["lr_scheduler_type"] == "constant":
        return ours({"optim.warmup": 0}, "the schedule constant has no warm-up in transformers" if value else "")
    phases = c.phases_of("warmup_steps")
    if phases is None:
        return not_here(UNKNOWN_TOTAL + "; the run has no warm-up", optim__warmup=0)
    settings: Dict[str, Any] = {"optim.warmup": phases}
    if phases:
        settings["optim.warmup_from"] = "zero"
    steps = value if value >= 1 else math.ceil(value * (c.total or 0))
    even = steps % c.steps == 0
    return ours(settings, "" if even else f"{steps} steps are not a whole number of phases of {c.steps} steps")


# precision, order, samples


@RULES.rule("bf16")
def _bf16(c: Config, value: Any) -> Result:
    plain = value is False and not c["fp16"]
    return ours({"compute.dtype": "f32"} if plain else {}, "" if plain else "compute.dtype is auto: bf16 where it is fast")


@RULES.rule("max_grad_norm")
def _norm(c: Config, value: Any) -> Result:
    return ours({"optim.max_grad_norm": 0 if value is None else c.number("max_grad_norm")})


@RULES.rule("ddp_timeout")
def _timeout(c: Config, value: Any) -> Result:
    return ours({} if value == 1800 else {"parallel.timeout_s": c.number("ddp_timeout")})


@RULES.rule("use_cpu")
def _cpu(c: Config, value: Any) -> Result:
    return ours({"compute.backend": "cpu"} if value else {})


@RULES.rule("train_sampling_strategy")
def _order(c: Config, value: Any) -> Result:
    if c.samples:
        return ours({}, "see shuffle_dataset") if value == "random" else not_here("shuffle_dataset decides the order of prompts")
    if value in ("random", "sequential"):
        return ours({"data.shuffle": value == "random"})
    return not_here("the order is random; results differ as with another seed", data__shuffle=True)


@RULES.rule("disable_tqdm")
def _tqdm(c: Config, value: Any) -> Result:
    return ours({}, "log.progress=plain writes lines" if value else "")


@RULES.rule("log_level")
def _level(c: Config, value: Any) -> Result:
    names = {"debug": "debug", "info": "info", "warning": "warn", "error": "error", "critical": "error"}
    return ours({"log.level": names[value]} if value in names else {})


@RULES.rule("log_completions", "num_completions_to_print")
def _samples(c: Config, value: Any) -> Result:
    n = c["num_completions_to_print"]
    if c["log_completions"] and n is not None and value is n:
        return ours({"log.samples": min(c.whole("num_completions_to_print", 0), 1000)})
    return ours({}, "samples are written in each phase (log.samples)" if c["log_completions"] else "")


# evaluation and checkpoints


@RULES.rule("eval_strategy")
def _eval(c: Config, value: Any) -> Result:
    if value == "no":
        return ours({})
    if value == "steps":
        every = c["eval_steps"] if c["eval_steps"] is not None else c["logging_steps"]
        c.values["eval_steps"] = every
        phases = c.phases_of("eval_steps")
    else:
        passes = c.number("num_train_epochs")
        phases = c.phases(c.total / passes) if c.total and c.number("max_steps") <= 0 and passes else None
    if phases is None:
        return not_here(UNKNOWN_TOTAL)
    return ours({"data.eval_every": max(1, phases)}, "needs data.eval_path")


@RULES.rule("eval_steps")
def _eval_steps(c: Config, value: Any) -> Result:
    return ours({}, "see eval_strategy")


@RULES.rule("save_strategy")
def _save(c: Config, value: Any) -> Result:
    if value == "no":
        return ours({"checkpoint.every": 0, "checkpoint.every_s": 0})
    if value == "steps":
        phases = c.phases_of("save_steps")
    elif value == "best":
        return ours({}, "see load_best_model_at_end") if c["load_best_model_at_end"] else not_here(
            "set checkpoint.best to the metric, and checkpoint.every")
    else:
        passes = c.number("num_train_epochs")
        phases = c.phases(c.total / passes) if c.total and c.number("max_steps") <= 0 and passes else None
    return not_here(UNKNOWN_TOTAL) if phases is None else ours({"checkpoint.every": max(1, phases)})


@RULES.rule("save_steps")
def _save_steps(c: Config, value: Any) -> Result:
    return ours({}, "see save_strategy")


@RULES.rule("save_total_limit")
def _keep(c: Config, value: Any) -> Result:
    return ours({"checkpoint.keep": c.whole("save_total_limit", 1)} if value is not None else {},
                "" if value is not None else "TRL keeps all; checkpoint.keep=0 does")


@RULES.rule("load_best_model_at_end")
def _best(c: Config, value: Any) -> Result:
    if not value:
        return ours({})
    name = str(c["metric_for_best_model"] or "loss")
    name = name[len("eval_"):] if name.startswith("eval_") else name
    known = {"loss": "eval/loss"} if c.kind in ("SFT", "Reward") else {"reward": "eval/reward"} if c.samples else {
        "rewards/accuracies": "eval/accuracy", "rewards/margins": "eval/margin"}
    metric = known.get(name) if (c.kind, name) != ("KTO", "rewards/accuracies") else None
    if metric is None or c["save_strategy"] == "no":
        return not_here(f"set checkpoint.best to a metric of docs/metrics.md; {name} is not measured on held-out rows, or no "
                        "checkpoints are written")
    high = c["greater_is_better"]
    high = not name.endswith("loss") if high is None else high
    return ours({"checkpoint.best": metric, "checkpoint.best_mode": "max" if high else "min"},
                "the best model is in checkpoints/best")


@RULES.rule("metric_for_best_model", "greater_is_better")
def _best_part(c: Config, value: Any) -> Result:
    return ours({}, "see load_best_model_at_end")
