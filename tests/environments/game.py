"""Environments for test_env_python.c."""
import random


class Counter:
    """An environment as TRL's environment_factory expects it."""

    def __init__(self):
        self.made = 1

    def reset(self, start: int = 0, **kwargs) -> str:
        self.count = start + random.randint(0, 5)
        return f"at {self.count}"

    def add(self, by: int) -> int:
        """
        Adds to the count.

        Args:
            by: How much.

        Returns:
            The count.
        """
        if by < 0:
            raise ValueError("not below 0")
        self.count += by + random.randint(0, 1000)
        return self.count

    def get_reward(self) -> float:
        return float(self.count)


class Paid:
    """A class that pays what the row says."""

    def reset(self, pays=None, **kwargs) -> str:
        self.pays = pays
        return "begin"

    def get_reward(self):
        return self.pays


class Text:
    """An environment of gymnasium, with spaces of text."""

    def reset(self, seed=None, options=None):
        self.left = 2
        return f"seed {seed}", {"options": len(options)}

    def step(self, action):
        self.left -= 1
        print("stepped")
        if action == "boom":
            raise KeyError("boom")
        return action.upper(), 0.5, self.left == 0, False, {"left": self.left, "word": "x"}


class Coroutines:
    """An environment of gymnasium with coroutines, whose reward and metric are not finite."""

    async def reset(self, seed=None, options=None):
        return "begin", {"inf": float("inf"), "one": 1}

    async def step(self, action):
        return "end", float("nan"), True, False, {"nan": float("nan"), "two": 2}


async def twice(x: float, how: str = "plain") -> float:
    """Doubles.

    Args:
        x (float): A number.
        how: In which way
            it is done. (choices: ["plain", "fancy"])
    """
    return 2 * x


def silent(x: int):
    return x


# Reward functions like those of TRL's examples.
def messages(completions, environments, start, **kwargs):
    assert environments[0].count >= start[0] and kwargs["prompts"] == ["P"]
    assert completions[0][0]["tool_calls"][0]["function"]["name"] == "add"
    return [1e5 * len(c) for c in completions]


async def elsewhere(environments, **kwargs):
    return [None for _ in environments]


def main():
    class Nested:
        def reset(self):
            return None
    return Nested
