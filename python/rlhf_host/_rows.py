"""Rows of Python as files for the program."""

import json
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from ._error import Error

Row = Union[str, Sequence[Mapping[str, Any]], Mapping[str, Any]]
Rows = Union[str, "os.PathLike[str]", Iterable[Row]]


def as_row(name: str, i: int, row: Any, text_key: str) -> Dict[str, Any]:
    """Returns a row as an object: a string is a text, a list is a conversation."""
    if isinstance(row, str):
        return {text_key: row}
    if isinstance(row, Mapping):
        return dict(row)
    if isinstance(row, (list, tuple)) and all(isinstance(m, Mapping) for m in row):
        return {"messages": [dict(m) for m in row]}
    raise Error(f"{name}[{i}] is of type {type(row).__name__}; expected a string, a list of messages or a dict")


def as_jsonl(name: str, rows: Iterable[Any], text_key: str = "prompt") -> str:
    """Returns rows as JSON Lines. ``name`` is the argument, for messages."""
    if isinstance(rows, Mapping):
        raise Error(f"{name} is a dict; expected a path or a list of rows")
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):  # a data frame
        rows = rows.to_dict("records")
    lines: List[str] = []
    for i, row in enumerate(rows):
        try:
            lines.append(json.dumps(as_row(name, i, row, text_key), ensure_ascii=False, allow_nan=False) + "\n")
        except (TypeError, ValueError) as error:
            raise Error(f"{name}[{i}] cannot be written as JSON: {error}") from None
    if not lines:
        raise Error(f"{name} is empty; expected at least one row")
    return "".join(lines)


class Inputs:
    """Files that a run reads, made from values of Python. They are in the directory ``OUT.inputs``, next to the run."""

    def __init__(self, out: str):
        self.folder = out + ".inputs"
        self._made: List[str] = []

    def file(self, name: str, ending: str, text: str) -> str:
        """Writes a file, or finds the one with this text, and returns its path. A file with another text stays."""
        data = text.encode("utf-8", "surrogatepass")
        if not os.path.isdir(self.folder):
            os.makedirs(self.folder)
            self._made.append(self.folder)
        number = 1
        while True:
            path = os.path.join(self.folder, name + (f"-{number}" if number > 1 else "") + ending)
            try:
                with open(path, "xb") as new:
                    new.write(data)
                self._made.append(path)
                return path
            except FileExistsError:
                with open(path, "rb") as old:
                    if old.read() == data:
                        return path
            number += 1

    def remove(self) -> None:
        """Removes everything that this object has made."""
        while self._made:
            path = self._made.pop()
            try:
                os.rmdir(path) if os.path.isdir(path) else os.remove(path)
            except OSError:
                pass


def rows_flag(name: str, rows: Optional[Rows], inputs: Inputs, text_key: str) -> List[str]:
    """Returns the flag for rows: ``--prompts FILE``, or nothing if they are None."""
    if rows is None:
        return []
    if isinstance(rows, (str, os.PathLike)):
        return ["--" + name, os.fspath(rows)]
    return ["--" + name, inputs.file(name, ".jsonl", as_jsonl(name, rows, text_key))]
