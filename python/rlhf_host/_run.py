"""The directory of a run, and the page about it."""

import html
import json
import os
import tempfile
from typing import Any, Dict, List, Optional

from ._command import Flag, Path, as_flags, json_of, output_of


class Report:
    """A page about runs. A notebook shows it; ``html`` is its text."""

    def __init__(self, text: str):
        self.html = text

    def save(self, path: Path) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        return ('<iframe sandbox="allow-scripts" style="width:100%;height:800px;border:0" '
                f'srcdoc="{html.escape(self.html)}"></iframe>')


class Run:
    """A run: a view of its directory, whose files are read whenever an attribute is used.

    ``Run("runs/mine")`` opens a run that was made in another way. ``out`` is the directory, and ``log`` has the last
    lines that the program printed, if this process trained.
    """

    def __init__(self, out: Path, log: Optional[List[str]] = None):
        self.out = os.path.abspath(out)
        self.log = [] if log is None else log

    def __repr__(self) -> str:
        return f"Run({self.out!r})"

    def _lines(self, name: str) -> List[Dict[str, Any]]:
        try:
            with open(os.path.join(self.out, name), encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    @property
    def metrics(self) -> List[Dict[str, Any]]:
        """One dict for each phase: the lines of ``metrics.jsonl`` (docs/metrics.md)."""
        return self._lines("metrics.jsonl")

    @property
    def samples(self) -> List[Dict[str, Any]]:
        """Responses of some phases: the lines of ``samples.jsonl`` (docs/run-files.md)."""
        return self._lines("samples.jsonl")

    @property
    def settings(self) -> Dict[str, Any]:
        """All settings of the run: its ``config.json``."""
        with open(os.path.join(self.out, "config.json"), encoding="utf-8") as file:
            found: Dict[str, Any] = json.load(file)
        return found

    @property
    def checkpoint(self) -> Optional[str]:
        """The path of the newest checkpoint, or None if there is none. It is a model directory of ``transformers``."""
        latest = os.path.join(self.out, "checkpoints", "latest")
        return os.path.realpath(latest) if os.path.isdir(latest) else None

    @property
    def state(self) -> Dict[str, Any]:
        """What ``rlhf-host runs show`` says: state, first and last value, and the verdict."""
        found: Dict[str, Any] = json_of(["runs", "show", self.out, "--json"])
        return found

    def report(self) -> Report:
        """Returns the page about the run. In a notebook, the last value of a cell is shown."""
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "report.html")
            output_of(["report", self.out, "--out", page])
            with open(page, encoding="utf-8") as file:
                return Report(file.read())

    def export(self, to: Optional[Path] = None, **flags: Flag) -> None:
        """Writes the policy to a directory for ``transformers`` or PEFT, and with ``gguf="my.gguf"`` to a file for
        llama.cpp. The keyword arguments are the flags of ``rlhf-host export``."""
        output_of(["export", self.out, *(["--to", os.fspath(to)] if to is not None else []), *as_flags(flags)])
