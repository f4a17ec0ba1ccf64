"""Commands of the program that return a result."""

import json
import os
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence

from ._command import Flag, Model, Path, as_flags, as_path, as_settings, json_of, output_of
from ._rewards import Reward, Rewards
from ._rows import Inputs, Rows, rows_flag


def generate(model: Optional[Model] = None, prompts: Optional[Rows] = None, **flags: Flag) -> List[Dict[str, Any]]:
    """Samples texts and returns a dict for each, with ``prompt``, ``response``, ``logp``, ``finished`` and ``ids``.

    ``prompts`` is a path, or a list of strings, conversations or dicts. To a chat model, a string is a user's turn. The
    keyword arguments are the flags of ``rlhf-host generate``: ``n=4, max_new=30, greedy=True``.
    """
    words = ["generate", "--json", *(["--model", as_path(model)] if model is not None else [])]
    with tempfile.TemporaryDirectory(prefix="rlhf-host-") as folder:
        if prompts is not None and not isinstance(prompts, (str, os.PathLike)):
            prompts = list(prompts)
            texts = [row for row in prompts if isinstance(row, str)]
            if texts and len(texts) == len(prompts):
                words += as_flags({"prompt": texts})
                prompts = None
        words += rows_flag("prompts", prompts, Inputs(os.path.join(folder, "generate")), "prompt")
        return [json.loads(line) for line in output_of(words + as_flags(flags)).split("\n") if line]


def eval(model: Optional[Model] = None, data: Optional[Rows] = None, rewards: Sequence[Reward] = (),
         settings: Optional[Mapping[str, Any]] = None, **flags: Flag) -> Any:
    """Measures a model and returns the object that ``rlhf-host eval --json`` prints.

    With ``rewards`` (as in :func:`train`), the model responds to the prompts in ``data``. The keyword arguments are the
    flags of ``rlhf-host eval``: ``n=200, compare="base"``.
    """
    all_rewards = Rewards(rewards)
    try:
        with tempfile.TemporaryDirectory(prefix="rlhf-host-") as folder:
            inputs = Inputs(os.path.join(folder, "eval"))
            words = ["eval", "--json", *(["--model", as_path(model)] if model is not None else []),
                     *rows_flag("data", data, inputs, "prompt" if rewards else "text"), *all_rewards.flags(inputs)]
            return json_of(words + as_flags(flags) + as_settings(settings), all_rewards.offer)
    finally:
        all_rewards.close()


def runs(folder: Path = "runs") -> List[Dict[str, Any]]:
    """Returns a dict for each run in a directory, the newest first: what ``rlhf-host runs list`` shows."""
    found: List[Dict[str, Any]] = json_of(["runs", "list", os.fspath(folder), "--json"])["runs"]
    return found
