"""Training: starts a run, or goes on with one."""

import json
import os
import shutil
import tempfile
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from . import _driver, _show
from ._command import Flag, Model, Path, as_flags, as_path, as_plugin, as_settings, raise_failure
from ._error import Error
from ._functions import Offer, RewardFunction
from ._process import Process
from ._rewards import Reward, Rewards
from ._rows import Inputs, Rows, rows_flag
from ._run import Run


def train(algo: Optional[str] = None, policy: Optional[Model] = None, rewards: Sequence[Reward] = (),
          prompts: Optional[Rows] = None, data: Optional[Rows] = None, out: Optional[Path] = None,
          settings: Optional[Mapping[str, Any]] = None, *, reward_weights: Optional[Sequence[float]] = None,
          progress: str = "auto", **flags: Flag) -> Run:
    """Trains a policy and returns the run.

    Args:
        algo: the algorithm: ``"grpo"``, ``"ppo"``, ``"dpo"``, ``"sft"``, ...
        policy: a model directory, a ``.gguf`` file or a run; the default policy if it is missing.
        rewards: functions with TRL's signature, which are called in this process and this thread, and plugins such as
            ``"imdb.so"`` or ``"length.so:max=50"``. A function gets ``prompts``, ``completions`` and the columns of the
            rows as keyword arguments, and returns a list with a number or None for each completion.
        prompts: prompts for algorithms that sample responses: a path, or a list of strings, conversations (lists of
            messages) or dicts (rows with columns).
        data: rows for algorithms that learn from a dataset, in the same forms.
        out: the directory of the run; a temporary one if it is missing.
        settings: settings by their names, for example ``{"optim.lr": 1e-5, "run.phases": 20}``.
        reward_weights: a weight for each reward.
        progress: ``"auto"`` (a display in a notebook, else lines), ``"lines"`` or ``"none"``.
        flags: further flags of the program: ``preset="chat-grpo"``, ``seed=3``, ``judge="imdb.so"``, ...

    Raises:
        Error: the program refused the input or failed. The text is its sentence.
        Interrupted: Ctrl-C was pressed twice. After one Ctrl-C the run ends with a checkpoint and is returned.
    """
    temporary = None
    if out is None:
        temporary = tempfile.mkdtemp(prefix="rlhf-host-")
        out = os.path.join(temporary, "run")
    where = os.path.abspath(os.fspath(out))
    inputs = Inputs(where)
    all_rewards = None
    try:
        all_rewards = Rewards(rewards, reward_weights)
        words = ["--algo", as_plugin(algo)] if algo else []
        words += ["--policy", as_path(policy)] if policy is not None else []
        words += rows_flag("prompts", prompts, inputs, "prompt") + rows_flag("data", data, inputs, "text")
        words += all_rewards.flags(inputs) + ["--out", where] + as_flags(flags) + as_settings(settings)
        return _run(words, where, inputs, all_rewards.offer, progress, temporary is not None)
    finally:
        if all_rewards:
            all_rewards.close()
        if not os.path.isdir(where):  # the run has not begun
            inputs.remove()
            if temporary:
                shutil.rmtree(temporary, ignore_errors=True)


def resume(run: Model, rewards: Sequence[RewardFunction] = (), prompts: Optional[Rows] = None,
           data: Optional[Rows] = None, settings: Optional[Mapping[str, Any]] = None, *, progress: str = "auto",
           **flags: Flag) -> Run:
    """Goes on with a run and returns it.

    ``rewards`` are the functions of the run, in the same order; plugins are known from the run. If the functions have
    changed, give ``allow_changed_inputs=True``. ``settings={"run.phases": 50}`` makes a run longer. The other arguments
    are as in :func:`train`; the flags are those that ``rlhf-host --resume`` accepts, such as ``trust_run=True``.
    """
    where = os.path.abspath(as_path(run))
    inputs = Inputs(where)
    all_rewards = Rewards(rewards)
    try:
        words = ["--resume", where, *rows_flag("prompts", prompts, inputs, "prompt"),
                 *rows_flag("data", data, inputs, "text")]
        if all_rewards.offer:
            index, python = _place_of_functions(where)
            words += as_settings({f"reward.{index}.file": inputs.file("rewards", ".py", all_rewards.offer.record),
                                  f"reward.{index}.python": python})
        words += as_flags(flags) + as_settings(settings)
        return _run(words, where, inputs, all_rewards.offer, progress, False)
    finally:
        all_rewards.close()


def _place_of_functions(run: str) -> Tuple[int, str]:
    """Returns which reward of a run has the functions, and the interpreter that the run names."""
    try:
        with open(os.path.join(run, "config.json"), encoding="utf-8") as file:
            rewards = json.load(file).get("reward", [])
    except (OSError, ValueError) as error:
        raise Error(f"{run} is not the directory of a run: {error}") from None
    found = [i for i, reward in enumerate(rewards) if os.path.basename(str(reward.get("plugin"))) == "python.so"]
    if not found:
        raise Error(f"{run} has no reward of Python functions; call resume() without rewards")
    i = next((i for i in found if _driver.is_elsewhere(str(rewards[i].get("file")))), found[0])
    return i, str(rewards[i].get("python", "python3"))


def _run(words: List[str], out: str, inputs: Inputs, offer: Optional[Offer], progress: str, temporary: bool) -> Run:
    show = _show.chosen(progress)
    if "log.format" not in " ".join(words):
        words = words + show.settings()
    process = Process(words, offer, one_stream=True)
    run = Run(out, show.lines)
    try:
        if temporary:
            show.note(f"the run is in {out}, a temporary directory; to keep it elsewhere, give out=")
        status = process.run(show)
    finally:
        show.draw()
    stopped = process.interrupts == 1 and status == 130 and os.path.isdir(out)
    if status == 2:
        inputs.remove()  # nothing was written
    if not stopped and status != 3:  # 3: run.stop_on
        raise_failure(process, status, show, run)
    return run
