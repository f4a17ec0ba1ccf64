"""Rules: the settings for a field of TRL whose value needs more than a copy."""

from typing import Any, Callable, Dict, Mapping, Tuple

from ._error import Error
from ._trl_config import Config, shown

Result = Tuple[str, Dict[str, Any], str]  # becomes, settings, why
Rule = Callable[[Config, Any], Result]
UNKNOWN_TOTAL = "it needs the number of steps: give max_steps, or rows= to from_trl"


class Rules(Dict[Tuple[str, str], Rule]):
    """Rules by configuration and field. The configuration is "all" for a rule that others do not replace."""

    def rule(self, *names: str, of: str = "all") -> Callable[[Rule], Rule]:
        """Adds a function as the rule of these fields."""
        def add(rule: Rule) -> Rule:
            self.update({(kind, name): rule for name in names for kind in of.split()})
            return rule
        return add


def ours(settings: Mapping[str, Any], why: str = "") -> Result:
    return "ours", dict(settings), why


def not_here(why: str, **settings: Any) -> Result:
    return "not here", {path.replace("__", "."): value for path, value in settings.items()}, why


def one_of(c: Config, name: str, *allowed: str) -> str:
    if c[name] not in allowed:
        raise Error(f"from_trl: {name} is {shown(c[name])}; expected one of {', '.join(allowed)}")
    return str(c[name])
