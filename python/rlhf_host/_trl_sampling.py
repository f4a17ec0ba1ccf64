"""Rules for the fields of trainers that sample, GRPO and RLOO, and of their losses."""

from typing import Any, Mapping

from ._trl_config import Config, shown
from ._trl_rules import Result, Rules, not_here, one_of, ours

RULES = Rules()


# sampling


@RULES.rule("top_k")
def _top_k(c: Config, value: Any) -> Result:
    return ours({"sampling.top_k": max(0, c.whole("top_k", -1)) if value is not None else 0})


@RULES.rule("min_p")
def _min_p(c: Config, value: Any) -> Result:
    return ours({"sampling.min_p": 0 if value is None else c.number("min_p")})


@RULES.rule("max_completion_length")
def _longest(c: Config, value: Any) -> Result:
    if value is None:
        return not_here("a response needs a limit; set sampling.max_new_tokens")
    return ours({"sampling.max_new_tokens": c.whole("max_completion_length", 1)})


@RULES.rule("generation_kwargs")
def _generation(c: Config, value: Any) -> Result:
    names = {"temperature": "sampling.temperature", "top_p": "sampling.top_p", "top_k": "sampling.top_k",
             "min_p": "sampling.min_p", "max_new_tokens": "sampling.max_new_tokens", "stop": "sampling.stop",
             "stop_strings": "sampling.stop"}
    given = dict(value) if isinstance(value, Mapping) else {}
    settings = {names[name]: one for name, one in given.items() if name in names}
    if isinstance(settings.get("sampling.stop"), str):
        settings["sampling.stop"] = [settings["sampling.stop"]]
    others = [name for name in given if name not in names and not (name == "do_sample" and given[name])]
    if others or value and not given:
        return "not here", settings, f"not supported: {', '.join(others) or shown(value)}"
    return ours(settings)


@RULES.rule("chat_template_kwargs")
def _template_vars(c: Config, value: Any) -> Result:
    return ours({"prompts.template_vars": value} if value else {})


@RULES.rule("chat_template_path")
def _template(c: Config, value: Any) -> Result:
    if value is None or str(value).endswith((".jinja", ".j2")):
        return ours({"prompts.template": value} if value else {})
    return not_here("the template of another tokenizer is not read from its directory; save it as a .jinja file")


@RULES.rule("max_tool_calling_iterations")
def _turns(c: Config, value: Any) -> Result:
    if value is None:
        return ours({}, "with an environment, the default of episodes.turns is 8")
    return ours({"episodes.turns": c.whole("max_tool_calling_iterations", 0) + 1})


# GRPO and RLOO


@RULES.rule("beta", of="GRPO RLOO")
def _kl(c: Config, value: Any) -> Result:
    return ours({"algo.kl_coef": c.number("beta")})


@RULES.rule("use_bias_correction_kl")
def _kl_estimator(c: Config, value: Any) -> Result:
    if not c.number("beta"):
        return ours({}, "beta is 0")
    if not value:
        return ours({"algo.kl_estimator": "k3"})
    if c.steps == 1 and c["importance_sampling_level"] == "token":
        return ours({"algo.kl_estimator": "k2"}, "the same gradient; the reported KL is another estimate")
    return not_here("the KL term has no ratio, which TRL's has in the second and later steps of a phase and with sequence "
                    "ratios", algo__kl_estimator="k2")


@RULES.rule("epsilon")
def _clip(c: Config, value: Any) -> Result:
    if c["loss_type"] in ("sapo", "cispo"):
        return ours({}, f"loss_type {c['loss_type']} does not clip below")
    return ours({"algo.clip_range": c.number("epsilon")})


@RULES.rule("epsilon_high", of="GRPO")
def _clip_high(c: Config, value: Any) -> Result:
    loss = c["loss_type"]
    if loss == "sapo":
        return ours({}, "loss_type sapo does not clip")
    if loss == "cispo":
        bound = c.number("epsilon_high" if value is not None else "epsilon")
        if bound < 1:
            return not_here(f"TRL bounds the ratio of cispo at {bound}, below 1, where the lowest bound here is 1",
                            algo__clip_range_high=0)
        return ours({"algo.clip_range_high": bound - 1}, "of cispo, TRL's number is the bound itself")
    return ours({} if value is None else {"algo.clip_range_high": c.number("epsilon_high")})


@RULES.rule("epsilon_high", of="RLOO")
def _clip_high_rloo(c: Config, value: Any) -> Result:
    if value is None or value == c["epsilon"]:
        return ours({})
    return not_here("rloo.so has one bound, algo.clip_range")


@RULES.rule("delta")
def _dual_clip(c: Config, value: Any) -> Result:
    if value is None or c["loss_type"] not in ("grpo", "bnpo", "dr_grpo", "dapo"):
        return ours({}, "" if value is None else f"TRL ignores it with loss_type {c['loss_type']}")
    high = c["epsilon_high"] if c["epsilon_high"] is not None else c["epsilon"]
    if c.number("delta") <= 1 + high:
        return not_here(f"algo.dual_clip must be above 1 + epsilon_high, which is {1 + high:g}")
    return ours({"algo.dual_clip": value})


@RULES.rule("sapo_temperature_neg", "sapo_temperature_pos")
def _sapo(c: Config, value: Any) -> Result:
    if c["loss_type"] != "sapo":
        return ours({}, "loss_type is not sapo")
    return ours({f"algo.{name}": c.number(name) for name in ("sapo_temperature_neg", "sapo_temperature_pos")})


@RULES.rule("vespo_k_pos", "vespo_lambda_pos", "vespo_k_neg", "vespo_lambda_neg")
def _vespo(c: Config, value: Any) -> Result:
    return not_here("there is no loss vespo") if c["loss_type"] == "vespo" else ("same", {}, "loss_type is not vespo")


@RULES.rule("importance_sampling_level")
def _ratio(c: Config, value: Any) -> Result:
    return ours({"algo.ratio": {"token": "token", "sequence": "sequence_mean"}[one_of(c, "importance_sampling_level",
                                                                                     "token", "sequence")]})


@RULES.rule("multi_objective_aggregation")
def _each(c: Config, value: Any) -> Result:
    one = one_of(c, "multi_objective_aggregation", "sum_then_normalize", "normalize_then_sum")
    return ours({"algo.advantage_rewards": "sum" if one == "sum_then_normalize" else "each"})


@RULES.rule("scale_rewards")
def _scale(c: Config, value: Any) -> Result:
    if c["multi_objective_aggregation"] == "normalize_then_sum":
        return ours({"algo.advantage_scale": "group"}, "TRL ignores it with normalize_then_sum")
    c.values["scale_rewards"] = {True: "group", False: "none"}.get(value, value)
    return ours({"algo.advantage_scale": one_of(c, "scale_rewards", "group", "batch", "none")})


@RULES.rule("loss_type", of="GRPO")
def _loss_grpo(c: Config, value: Any) -> Result:
    if value in ("luspo", "vespo"):
        return not_here(f"there is no loss {value}; the run takes grpo", algo__loss="grpo")
    loss = one_of(c, "loss_type", "grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo")
    parts = c["gradient_accumulation_steps"] * c.processes
    if loss == "bnpo" and parts > 1:
        return not_here(f"TRL takes the mean over the tokens of each of {parts} microbatches, and then their mean; here it is "
                        "the mean over the tokens of the step", algo__loss=loss)
    return ours({"algo.loss": loss})


@RULES.rule("mask_truncated_completions")
def _mask(c: Config, value: Any) -> Result:
    kl = c.kind == "RLOO" and value and c["beta"]
    return ours({"algo.mask_truncated": bool(value)}, "the KL of such a response stays in its reward, in TRL it is 0" if kl else "")


@RULES.rule("sync_ref_model", of="GRPO")
def _sync(c: Config, value: Any) -> Result:
    if not value:
        return ours({})
    if c["ref_model_mixup_alpha"] != 1:
        return not_here("the reference is replaced (grpo_iterative.so, with ref_model_mixup_alpha 1), but not mixed")
    return ours({"algo.iteration_phases": c.phases(c.whole("ref_model_sync_steps", 1))}, "grpo_iterative.so")


@RULES.rule("ref_model_mixup_alpha", "ref_model_sync_steps")
def _sync_part(c: Config, value: Any) -> Result:
    return ours({}, "see sync_ref_model") if c["sync_ref_model"] else ("same", {}, "sync_ref_model is false")


@RULES.rule("entropy_coef")
def _entropy(c: Config, value: Any) -> Result:
    if c["use_adaptive_entropy"]:
        return not_here("entropy_coef does not adapt")
    if not c.number("entropy_coef"):
        return ours({})
    if c["loss_type"] not in ("dapo", "bnpo", "cispo") or value < 0:
        return not_here(f"with loss_type {c['loss_type']} the entropy would have other weights than TRL's mean over tokens"
                        if value > 0 else "a negative coefficient is refused")
    return ours({"algo.entropy_coef": value})


@RULES.rule("entropy_coef_min", "entropy_coef_max", "entropy_coef_delta", "entropy_target")
def _entropy_part(c: Config, value: Any) -> Result:
    return not_here("entropy_coef does not adapt") if c["use_adaptive_entropy"] else ("same", {}, "use_adaptive_entropy is false")


@RULES.rule("off_policy_mask_threshold")
def _off_policy(c: Config, value: Any) -> Result:
    if value is None or c.steps == 1:
        return "same", {}, "without effect while a phase takes one step" if value is not None else ""
    return not_here("rows of an older policy are not left out")


@RULES.rule("reward_clip_range")
def _reward_clip(c: Config, value: Any) -> Result:
    if not value:
        return ours({})
    low, high = value
    if low != -high or high <= 0:
        return not_here(f"rewards.clip has one bound for both signs; ({low}, {high}) is not symmetric")
    return ours({"rewards.clip": high})
