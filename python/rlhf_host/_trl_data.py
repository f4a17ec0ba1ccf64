"""Rules for the fields of trainers that learn from rows or from a teacher: distillation, SFT, preferences, reward models."""

from typing import Any

from ._trl_config import Config
from ._trl_rules import Result, Rules, not_here, one_of, ours

RULES = Rules()


@RULES.rule("beta", of="Distillation")
def _divergence(c: Config, value: Any) -> Result:
    beta = c.number("beta")
    if 0 < beta < 1:
        return ours({"algo.divergence": "js", "algo.beta": beta})
    return ours({"algo.divergence": "reverse" if beta else "forward"})


@RULES.rule("teacher_model_name_or_path")
def _teacher(c: Config, value: Any) -> Result:
    return ours({"models.teacher": value} if value else {}, "" if value else "set models.teacher to the teacher's directory")


@RULES.rule("max_length")
def _max_length(c: Config, value: Any) -> Result:
    cut = {"SFT": "", "Reward": "a longer row loses the beginning of its prompt, where TRL leaves it out"}.get(
        c.kind, "a longer row loses the beginning of its prompt, in TRL the end of its completion")
    return ours({"data.max_tokens": 0 if value is None else c.whole("max_length", 1)}, cut if value else "")


@RULES.rule("packing")
def _packing(c: Config, value: Any) -> Result:
    if not value or not c["max_length"]:
        return ours({})
    return ours({"data.batch_tokens": c.size * c.whole("max_length", 1)}, "as many tokens as a packed batch of TRL's has")


@RULES.rule("packing_strategy")
def _packing_strategy(c: Config, value: Any) -> Result:
    if not c["packing"]:
        return ours({})
    if value == "wrapped":
        return not_here("rows that fit are not cut; longer ones are split", data__long_rows="split")
    return ours({"data.long_rows": "truncate" if value == "bfd" else "split"})


@RULES.rule("completion_only_loss")
def _completion_only(c: Config, value: Any) -> Result:
    return not_here("rows with a completion are trained on the completion; write both as one text") if value is False else (
        "same", {}, "rows with a completion are trained on the completion")


@RULES.rule("assistant_only_loss")
def _assistant(c: Config, value: Any) -> Result:
    return ours({"data.assistant_only": bool(value)})


@RULES.rule("loss_type", of="SFT")
def _loss_sft(c: Config, value: Any) -> Result:
    if value == "dft":
        return not_here("there is no loss dft; the run takes nll", algo__aggregation="token")
    one_of(c, "loss_type", "nll", "chunked_nll")
    return ours({"algo.aggregation": "token"}, "the first token of a text, which is not trained, does not count in the mean")


@RULES.rule("loss_type", of="DPO")
def _loss_dpo(c: Config, value: Any) -> Result:
    losses = value if isinstance(value, list) else [value]
    known = ("sigmoid", "hinge", "ipo", "robust", "sppo_hard", "apo_zero", "apo_down", "nca_pair")
    if len(losses) != 1 or losses[0] not in known:
        first = next((loss for loss in losses if loss in known), "sigmoid")
        return not_here(f"a run has one loss, of {', '.join(known)}; the run takes {first}", algo__loss=first)
    if losses[0] == "robust" and not c["label_smoothing"]:
        return ours({"algo.loss": "sigmoid"}, "robust without label_smoothing is sigmoid")
    return ours({"algo.loss": losses[0]})


@RULES.rule("loss_weights")
def _loss_weights(c: Config, value: Any) -> Result:
    return ("same", {}, "") if value in (None, [1], [1.0]) else not_here("a run has one loss, with weight 1")


@RULES.rule("label_smoothing")
def _smoothing(c: Config, value: Any) -> Result:
    losses = c["loss_type"] if isinstance(c["loss_type"], list) else [c["loss_type"]]
    if losses == ["robust"] and value:
        return ours({"algo.label_smoothing": c.number("label_smoothing")})
    return ours({}, "TRL reads it only with robust, exo_pair, aot and aot_unpaired" if value else "")


@RULES.rule("loss_type", of="KTO")
def _loss_kto(c: Config, value: Any) -> Result:
    return ours({"algo.loss": one_of(c, "loss_type", "kto", "apo_zero_unpaired")},
                "" if c["gradient_accumulation_steps"] * c.processes == 1 or value != "kto" else
                "the KL is estimated over the rows of the step, TRL's over those of a microbatch")


@RULES.rule("center_rewards_coefficient")
def _center(c: Config, value: Any) -> Result:
    return ours({"algo.center_coef": 0 if value is None else c.number("center_rewards_coefficient")})
