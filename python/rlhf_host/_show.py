"""Shows the progress of a run: lines in a terminal, a display that changes in a notebook."""

import html
import importlib
import json
import re
import sys
import time
from typing import Any, Dict, List, Optional

from ._error import Error

ERROR = "rlhf-host: error: "  # begins the last line of a command that failed
HINT = re.compile(r"([\d: -]+ )?(go on|look closer|try it): rlhf-host ")  # a line that is of use at a command line


def in_notebook() -> bool:
    """Returns True in a notebook: IPython is there, and its shell is not one of a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


class Silent:
    """Keeps the last lines of a command and its error, and shows nothing."""

    KEPT = 10000  # lines
    SECONDS = 0.2  # between two drawings

    def __init__(self) -> None:
        self.lines: List[str] = []
        self.error: Optional[str] = None
        self.waits = False  # something is not drawn yet: draw() shall be called if no line follows in SECONDS

    def settings(self) -> List[str]:
        """Returns flags that the command needs for this display."""
        return []

    def line(self, line: str) -> None:
        """Takes a line of the command."""
        self.lines.append(line)
        del self.lines[:-self.KEPT]
        if line.startswith(ERROR):
            self.error = line[len(ERROR):]
        elif not HINT.match(line):
            self.show(line)

    def note(self, text: str) -> None:
        """Takes a sentence of this package."""
        self.show(text)

    def show(self, line: str) -> None:
        pass

    def draw(self) -> None:
        pass


class Warnings(Silent):
    """Prints only warnings, to standard error."""

    def show(self, line: str) -> None:
        if " warning: " in line:
            print(line, file=sys.stderr, flush=True)


class Lines(Silent):
    """Prints the lines to standard error."""

    def show(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class Notebook(Silent):
    """A display of IPython: the phase, a curve, the last lines and some texts."""

    LINES, SAMPLES, POINTS = 6, 3, 240

    def __init__(self) -> None:
        super().__init__()
        self.phase: Dict[str, Any] = {}
        self.values: List[float] = []
        self.samples: List[Dict[str, Any]] = []
        self.recent: List[str] = []
        self.notes: List[str] = []
        self._handle: Any = None
        self._shown = 0.0

    def settings(self) -> List[str]:
        return ["--set", "log.format=json"]

    def note(self, text: str) -> None:
        self.notes.append(text)

    def show(self, line: str) -> None:
        try:
            event = json.loads(line)
            kind = event["event"]
        except (ValueError, TypeError, KeyError):
            event, kind = {"message": line, "level": "info"}, "log"
        if kind == "log" and event.get("level") == "error":
            self.error = str(event.get("message"))
            return
        if kind == "log" and HINT.match(str(event.get("message"))):
            return
        if kind == "log":
            level = event.get("level")
            self.recent.append(("warning: " if level == "warn" else "") + str(event.get("message")))
            del self.recent[:-self.LINES]
        elif kind == "phase":
            self.phase = event
            self.values.append(float(event.get(self._measure(), "nan")))
        elif kind == "sample":
            if self.samples and self.samples[0].get("phase") != event.get("phase"):
                self.samples = []
            self.samples.append(event)
        elif kind == "summary":
            self.recent.append(str(event.get("verdict")))
            del self.recent[:-self.LINES]
        self.waits = True
        if time.monotonic() - self._shown >= self.SECONDS:
            self.draw()

    def _measure(self) -> str:
        known = ("time", "event", "phase", "phases", "parts")
        return next((key for key in self.phase if key not in known), "value")

    def draw(self) -> None:
        self.waits = False
        self._shown = time.monotonic()
        ipython: Any = importlib.import_module("IPython.display")
        page = ipython.HTML(self.page())
        if self._handle:
            self._handle.update(page)
        else:
            self._handle = ipython.display(page, display_id=True)

    def page(self) -> str:
        """Returns the display as HTML."""
        parts = ["<div style='font-family:sans-serif;font-size:90%;max-width:60em'>"]
        if self.phase:
            done, of = self.phase.get("phase", 0), self.phase.get("phases", 0)
            words = [f"phase {done}/{of}"]
            for key in (self._measure(), "kl", "accuracy", "judge"):
                if isinstance(self.phase.get(key), (int, float)):
                    words.append(f"{key} {self.phase[key]:.4g}")
            if "eta_s" in self.phase:
                words.append(f"{self.phase['eta_s']:.0f} s left")
            parts.append(f"<progress value='{done}' max='{of}' style='width:12em'></progress> "
                         f"{html.escape(' · '.join(dict.fromkeys(words)))} {curve(self.values[::len(self.values) // self.POINTS + 1])}")
        if self.notes or self.recent:
            parts.append("<pre style='white-space:pre-wrap;opacity:.75;margin:.5em 0'>"
                         + html.escape("\n".join(self.notes + self.recent)) + "</pre>")
        if self.samples:
            rows = [f"<tr><td>{s['reward']:.3f}</td><td style='text-align:left'>{html.escape(shortened(s))}</td></tr>"
                    for s in self.samples[-self.SAMPLES:] if isinstance(s.get("reward"), (int, float))]
            parts.append(f"<table>{''.join(rows)}</table>")
        return "".join(parts) + "</div>"


def shortened(sample: Dict[str, Any]) -> str:
    """Returns the end of a sample's prompt and the beginning of its response."""
    prompt, response = str(sample.get("prompt", "")), str(sample.get("response", ""))
    return (("…" + prompt[-60:]) if len(prompt) > 60 else prompt) + " » " + response[:200]


def curve(values: List[float], width: int = 120, height: int = 20) -> str:
    """Returns a small curve as SVG; values that are not finite are left out."""
    known = [v for v in values if v - v == 0]
    if len(known) < 2:
        return ""
    low, high = min(known), max(known)
    scale = (height - 2) / (high - low) if high > low else 0
    points = " ".join(f"{i * (width - 2) / (len(known) - 1) + 1:.1f},{height - 1 - (v - low) * scale:.1f}"
                      for i, v in enumerate(known))
    return (f"<svg width='{width}' height='{height}' style='vertical-align:middle'>"
            f"<polyline points='{points}' fill='none' stroke='currentColor'/></svg>")


def chosen(progress: str) -> Silent:
    """Returns the display for the argument ``progress``: auto, lines or none."""
    if progress not in ("auto", "lines", "none"):
        raise Error(f'progress is "{progress}"; expected auto, lines or none')
    if progress == "none":
        return Silent()
    if progress == "auto" and in_notebook():
        return Notebook()
    return Lines()
