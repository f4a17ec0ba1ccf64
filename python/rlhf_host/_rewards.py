"""The rewards of a command: functions of this process, and plugins."""

from typing import List, Optional, Sequence, Tuple, Union

from ._command import as_plugin
from ._error import Error
from ._functions import Offer, RewardFunction
from ._rows import Inputs

Reward = Union[str, RewardFunction]


class Rewards:
    """The rewards of a command. All functions form one reward, at the place of the first, as in TRL."""

    def __init__(self, rewards: Sequence[Reward], weights: Optional[Sequence[float]] = None):
        if isinstance(rewards, str) or callable(rewards):
            rewards = [rewards]
        if weights is not None and len(weights) != len(rewards):
            raise Error(f"reward_weights has {len(weights)} numbers for {len(rewards)} rewards")
        self.offer: Optional[Offer] = None
        self._rewards: List[Tuple[Optional[str], Optional[float]]] = []  # None: the functions
        functions: List[RewardFunction] = []
        of_functions: List[float] = []
        for i, reward in enumerate(rewards):
            weight = None if weights is None else float(weights[i])
            if callable(reward):
                if not functions:
                    self._rewards.append((None, None))
                functions.append(reward)
                of_functions.append(1.0 if weight is None else weight)
            elif isinstance(reward, str):
                self._rewards.append((as_plugin(reward), weight))
            else:
                raise Error(f"rewards[{i}] is of type {type(reward).__name__}; expected a function or a plugin, such as "
                            '"imdb.so"')
        self._weights = of_functions if weights is not None else []
        if functions:
            self.offer = Offer(functions)

    def flags(self, inputs: Inputs) -> List[str]:
        words: List[str] = []
        for plugin, weight in self._rewards:
            if plugin is None:
                assert self.offer
                record = inputs.file("rewards", ".py", self.offer.record)
                weights = self._weights
                plugin = self.offer.option_list(record, weights if len(weights) > 1 else ())
                weight = weights[0] if len(weights) == 1 else None
            if weight is not None:
                plugin += ("," if ":" in plugin else ":") + f"weight={weight!r}"
            words += ["--reward", plugin]
        return words

    def close(self) -> None:
        if self.offer:
            self.offer.close()
