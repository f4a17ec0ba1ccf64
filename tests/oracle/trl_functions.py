"""Reward functions for trl_rewards.py, imported by both sides: TRL's own, and others of every kind.

If math_verify is not installed, both sides use a replacement in TRL's module that compares the contents of boxes.
"""
import asyncio
import functools
import re

from trl.rewards import (accuracy_reward, accuracy_rewards, get_cosine_scaled_reward,
                         get_repetition_penalty_reward, get_soft_overlong_punishment,
                         reasoning_accuracy_reward, think_format_reward)

if not accuracy_rewards.is_math_verify_available():
    accuracy_rewards.is_math_verify_available = lambda: True
    accuracy_rewards.parse = lambda text, **kwargs: re.findall(r"\\boxed\{([^{}]*)\}", text)
    accuracy_rewards.verify = lambda gold, said, **kwargs: bool(said) and said[-1] in gold
    accuracy_rewards.LatexExtractionConfig = accuracy_rewards.NormalizationConfig = dict

overlong = get_soft_overlong_punishment(40, 15)
repetition = get_repetition_penalty_reward(2, -0.7)
cosine = get_cosine_scaled_reward(48)


def some(prompts, completions, level, **kwargs):
    """Applies to some of the rows, and depends on the others."""
    return [None if x is None else x / len(completions) for x in level]


async def later(completions, log_metric, **kwargs):
    await asyncio.sleep(0)
    log_metric("rows", len(completions))
    return [len(str(c)) / 3 if i % 3 else None for i, c in enumerate(completions)]


class Shouts:
    async def __call__(self, prompts, completions, trainer_state, **kwargs):
        return [str(p).count("a") + 0.1 * trainer_state.global_step for p in prompts]


shouts = functools.partial(Shouts())
