"""Reward functions of this process, for python.so (see _driver.py)."""

import inspect
import os
import shutil
import socket
import sys
import tempfile
import textwrap
from typing import Any, Callable, Dict, List, Sequence

from . import _driver

RewardFunction = Callable[..., Any]


def _code(f: RewardFunction) -> Any:
    """Returns an object that has the source text of a function: the function itself, or the class of a callable."""
    while hasattr(f, "func"):  # functools.partial
        f = f.func
    f = inspect.unwrap(f)
    return f if hasattr(f, "__code__") or inspect.ismethod(f) else type(f)


def _path(f: RewardFunction) -> str:
    """Returns the path of the file that has the function's code, as tracebacks show it."""
    code = _code(f)
    code = getattr(code, "__call__", code) if inspect.isclass(code) else code
    return str(getattr(getattr(code, "__code__", None), "co_filename", ""))


def _shown(path: str) -> str:
    """Returns the name for messages of the file that has a function's code."""
    if os.path.isfile(path):
        return os.path.basename(path)
    return "the notebook" if "ipykernel" in path or "ipython-input" in path else path or "Python"


def _names(functions: Sequence[RewardFunction]) -> List[str]:
    """Returns a name for each function: its own, without characters that no metric's name has, and with a number if
    an earlier one has the same name."""
    taken: Dict[str, int] = {}
    names = []
    for f in functions:
        name = "".join(c for c in _driver.called(f) if c.isalnum() or c in "_-.") or "function"
        taken[name] = taken.get(name, 0) + 1
        names.append(name if taken[name] == 1 else f"{name}_{taken[name]}")
    return names


class Offer:
    """Functions, offered to the program at a socket that only this user can open."""

    def __init__(self, functions: Sequence[RewardFunction]):
        self.names = _names(functions)
        self.record = _record(self.names, functions)
        paths = [_path(f) for f in functions]
        self.answers = _driver.Functions(
            [_driver.Function(n, f, p, _shown(p)) for n, f, p in zip(self.names, functions, paths)])
        self._folder = tempfile.mkdtemp(prefix="rlhf-")
        if len(self._folder) > 80:  # the path of a socket has at most 107 bytes
            os.rmdir(self._folder)
            self._folder = tempfile.mkdtemp(prefix="rlhf-", dir="/tmp")
        self.address = os.path.join(self._folder, "functions")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.address)
        self.listener.listen(8)

    def option_list(self, record: str, weights: Sequence[float] = ()) -> str:
        """Returns the program's words for these functions: ``python.so:file=...,function=...``."""
        text = f"python.so:file={record},function={','.join(self.names)},python={sys.executable or 'python3'}"
        return text + (",weights=" + ",".join(map(repr, weights)) if weights else "")

    def close(self) -> None:
        self.listener.close()
        self.answers.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _record(names: Sequence[str], functions: Sequence[RewardFunction]) -> str:
    """Returns the text of the file that the run names in place of a Python file."""
    parts = [_driver.ELSEWHERE + "\n"]
    for name, f in zip(names, functions):
        try:
            text = textwrap.dedent(inspect.getsource(_code(f)))
        except (OSError, TypeError):
            text = "# its text is not known\n"
        parts.append(f"\n# {name}\n{text}")
    return "".join(part if part.endswith("\n") else part + "\n" for part in parts)
