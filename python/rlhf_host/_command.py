"""One command of the program: its words, its output and its failure."""

import json
import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _show
from ._error import Error, Interrupted
from ._functions import Offer
from ._process import Process

if TYPE_CHECKING:
    from ._run import Run

Path = Union[str, "os.PathLike[str]"]
Model = Union[Path, "Run"]
Flag = Union[str, int, float, bool, "os.PathLike[str]", Sequence[Union[str, int, float]]]


def as_flags(flags: Mapping[str, Flag]) -> List[str]:
    """Returns keyword arguments as flags: ``max_new=8, greedy=True, stop=["a", "b"]`` becomes
    ``--max-new 8 --greedy --stop a --stop b``."""
    words: List[str] = []
    for name, value in flags.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(flag)
            elif one is not False and one is not None:
                words += [flag, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return words


def as_settings(settings: Optional[Mapping[str, Any]]) -> List[str]:
    """Returns settings as flags. Sections may be dicts: ``{"optim": {"lr": 1e-5}}`` is ``{"optim.lr": 1e-5}``."""
    words: List[str] = []
    for path, value in _flat(settings or {}).items():
        try:
            words += ["--set", f"{path}={json.dumps(value, ensure_ascii=False)}"]
        except (TypeError, ValueError) as error:
            raise Error(f"settings: {path} cannot be written as JSON: {error}") from None
    return words


def _flat(settings: Mapping[str, Any], above: str = "") -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for key, value in settings.items():
        path = f"{above}{key}"
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, Mapping) and path != "prompts.template_vars":
            found.update(_flat(value, path + "."))
        else:
            found[path] = value
    return found


def as_plugin(text: str) -> str:
    """Returns a plugin as the program takes it: ``"grpo"`` becomes ``"grpo.so"``."""
    name, colon, options = text.partition(":")
    if "/" in name or name.endswith(".so"):
        return text
    return name + ".so" + colon + options


def as_path(model: "Model") -> str:
    """Returns the path of a model or a run."""
    return str(getattr(model, "out", model))


def output_of(arguments: Sequence[str], offer: Optional[Offer] = None) -> str:
    """Runs a command and returns its standard output."""
    show = _show.Warnings()
    process = Process(arguments, offer)
    status = process.run(show)
    raise_failure(process, status, show)
    return b"".join(process.output).decode("utf-8", "replace")


def json_of(arguments: Sequence[str], offer: Optional[Offer] = None) -> Any:
    """Runs a command with --json and returns the object that it prints."""
    return json.loads(output_of(arguments, offer))


def raise_failure(process: Process, status: int, show: _show.Silent, run: Optional["Run"] = None) -> None:
    """Raises an exception if the command failed."""
    if status == 0:
        process.show_function_error()
        return
    if process.interrupts:
        raise Interrupted(run)
    if status < 0:
        text = f"rlhf-host was ended by signal {-status}"
    else:
        text = show.error or "; ".join(show.lines[-1:]) or f"rlhf-host ended with status {status}"
    raise Error(text, status, run) from process.function_error
