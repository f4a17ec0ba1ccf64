"""What from_trl returns: settings, and a report on each field."""

import dataclasses
import shlex
import textwrap
from typing import Any, Dict, List

from ._trl_config import shown


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
            words += ["--set", f"{path}={shown(value)}"]
        return " ".join(shlex.quote(word) for word in words)

    def __str__(self) -> str:
        lines = [f"TRL's configuration as a run of {self.algo}.so"]
        for title, wanted in (("not here (the run differs in this from TRL's)", ("not here",)),
                              ("unknown (not a field of TRL 1.16)", ("unknown",)), ("not needed", ("not needed",))):
            rows = [row for row in self.report if row.becomes in wanted and (not row.is_default or wanted == ("not here",))]
            if rows:
                lines += ["", title + ":"] + [f"  {row.field}={shown(row.value)}: {row.why}" for row in rows]
        rows = [row for row in self.report if row.becomes == "ours" and not row.is_default]
        lines += ["", "settings from the fields that differ from TRL's defaults:"]
        for row in rows:
            given = ", ".join(f"{path}={shown(value)}" for path, value in row.settings.items())
            what = f"{given} ({row.why})" if given and row.why else given or row.why or "nothing to set"
            lines.append(f"  {row.field}={shown(row.value)}: {what}")
        given = [f"{path}={shown(value)}" for row in self.report if row.is_default for path, value in row.settings.items()]
        lines += ["", "settings from TRL's defaults:"]
        lines += textwrap.wrap(", ".join(given), 100, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
        rest = sum(row.is_default for row in self.report if row.becomes in ("same", "not needed"))
        lines += ["", f"{rest} further fields have TRL's defaults, which need no setting"]
        return "\n".join(lines)
