"""Runs reward functions with TRL's signature (docs/rewards/python.md).

This file has two users. python.so, which contains its text, runs it as a program:

    python3 -c DRIVER FILE FUNCTION[,FUNCTION...] [POINTER]

With POINTER (grader.so) the file is JSON, and the source of the functions is its string at this JSON Pointer.

The package rlhf_host imports it, to call functions of its own process. Such functions have a FILE that begins with ELSEWHERE. For this
FILE the program only passes bytes on, between python.so and the socket at which the package listens.

A request is "BYTES\\n", followed by that many bytes of JSON:
  {"step": 3, "prompts": [...], "completions": [...], "ids": [[...], ...], "finished": [true, ...], "rows": [{...}, null, ...]}
An answer is "KIND BYTES DOUBLES\\n", followed by that many bytes of text and that many doubles in the machine's format:
  ready    lines "name NAME" for every function, and "needs COLUMN NAME" for a column that NAME requires
  scores   lines "metric VALUE NAME", "note SENTENCE", "unscored SENTENCE" and "invalid SENTENCE"; the doubles are the rewards of the
           first function, of the second, ..., with NaN for None
  failed   an error message
The program reads requests from standard input and writes answers to its original standard output. Output that the functions print goes
to standard error.
"""
import os
import sys

if __name__ == "__main__":
    sys.path[:] = [p for p in sys.path if p]  # no imports from the working directory

import array
import asyncio
import concurrent.futures
import difflib
import functools
import importlib.util
import inspect
import json
import math
import re
import traceback
import types

ELSEWHERE = "# These functions run in the Python process that started the run (docs/python.md); this file is a record of them."
SOCKET = "RLHF_FUNCTIONS"  # the environment variable that has the path of the socket of that process
PASSED = ("prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric")


class Refused(Exception):
    """An error whose text is a sentence for the user."""


class State:
    """The part of transformers' TrainerState that this driver provides."""

    def __init__(self, step):
        self.global_step = step

    def __getattr__(self, name):
        raise AttributeError(f"trainer_state has no {name!r} here; it has only global_step")


def packed(kind: str, lines=(), doubles=()) -> bytes:
    """Returns an answer as bytes."""
    text = "\n".join(lines).encode("utf-8", "replace")
    return b"%s %d %d\n" % (kind.encode(), len(text), len(doubles)) + text + array.array("d", doubles).tobytes()


def row_at_hand(frames, passed):
    """Returns " (c is of row 3 of 8)" for a variable of the user's functions that is a value of exactly one row, in the
    innermost function that has such a variable. Returns "" if none has one, or if two variables are of different rows."""
    for frame in reversed(frames):
        rows = {}
        for name, value in frame.f_locals.items():
            if not isinstance(value, (str, list, dict)) or len(value) < 2 and isinstance(value, str):
                continue  # Python shares short texts and numbers, so they do not identify a row
            for column in passed.values():
                if isinstance(column, list):
                    rows.update({i: name for i, x in enumerate(column) if x is value
                                 and sum(y is value for y in column) == 1})
        if rows:
            return "".join(f" ({name} is of row {i} of {len(passed['prompts'])})" for i, name in rows.items() if len(rows) == 1)
    return ""


def where(error, path, passed=None):
    """Returns "line 3, in f: KeyError: 'answer'": the innermost line of the user's file in the traceback, and its row."""
    said = "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")[-1]
    if isinstance(error, SyntaxError) and error.filename:
        other = "" if error.filename == path else f"{os.path.basename(error.filename)}, "
        return f"{other}line {error.lineno}: {said}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename == path]
    last = frames[-1] if frames else None
    if not own:
        return said
    text = f"line {own[-1].lineno}"
    if own[-1].name != "<module>":
        text += f", in {own[-1].name}"
    if passed:
        walked = [f for f, _ in traceback.walk_tb(error.__traceback__)]
        text += row_at_hand([f for f in walked if f.f_code.co_filename == path], passed)
    if last.filename != path:
        text += f" (at {os.path.basename(last.filename)}, line {last.lineno})"
    return f"{text}: {said}"


# ---- the functions ----


def load_json(path, pointer):
    """Returns a module made of the source at `pointer` in a JSON file. In tracebacks its file is the file and the pointer."""
    with open(path, encoding="utf-8") as file:
        source = json.load(file)
    for name in pointer.split("/")[1:]:
        source = source[name.replace("~1", "/").replace("~0", "~")]
    module = types.ModuleType("rlhf_grader")
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, path + pointer, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise Refused(f"{os.path.basename(path)}{pointer} cannot be imported: {where(error, path + pointer)}") from None
    return module


def load(path):
    """Imports the user's file as a module with the file's name, and puts its folder first on the path."""
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem in sys.modules or stem in getattr(sys, "stdlib_module_names", ()):
        stem = "rlhf_rewards_" + stem
    sys.path.insert(0, os.path.dirname(path))
    loader = importlib.machinery.SourceFileLoader(stem, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(stem, loader))
    sys.modules[stem] = module
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise Refused(f"{os.path.basename(path)} cannot be imported: {where(error, path)}") from None
    finally:
        sys.dont_write_bytecode = writes
    return module


def called(f) -> str:
    """Returns the name that TRL gives to a function."""
    while isinstance(f, functools.partial):
        f = f.func
    return getattr(f, "__name__", type(f).__name__)


def is_async(f):
    while isinstance(f, functools.partial):
        f = f.func
    return inspect.iscoroutinefunction(f) or inspect.iscoroutinefunction(f.__call__)


def find(module, name):
    f = getattr(module, name, None)
    if callable(f):
        return f
    if hasattr(module, name):
        raise Refused(f"has {name!r}, which is a {type(f).__name__}, not a function")
    names = [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("__")]
    near = difflib.get_close_matches(name, names, 1)
    hint = f' (did you mean "{near[0]}"?)' if near else ""
    raise Refused(f'has no function "{name}"{hint}')


def is_grader(f):
    """True for a grader of hosted fine-tuning: a function of (sample, item), or one named grade of two arguments."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return False
    if len(parameters) != 2 or any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
        return False
    return called(f) == "grade" or [p.name for p in parameters] == ["sample", "item"]


def needs(f, name):
    """Returns the columns that f requires."""
    if is_grader(f):
        return []
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    rest = any(p.kind == p.VAR_KEYWORD for p in parameters)
    lacks = [n for n in PASSED if n not in names]
    if lacks and not rest:
        raise Refused(f"has {name}(), which is called with {lacks[0]}= and does not take it; "
                      "give it **kwargs")
    wanted = [p.name for p in parameters if p.default is p.empty and p.name not in PASSED
              and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    for n in wanted:
        if n in ("prompt", "completion"):
            raise Refused(f"has {name}(), which takes {n}, but {n}s is passed")
    positional = [p.name for p in parameters
                  if p.kind == p.POSITIONAL_ONLY and p.default is p.empty]
    if positional:
        raise Refused(f"has {name}(), whose {positional[0]} cannot be given by name")
    return wanted


# ---- a batch ----


def is_conversation(value):
    return (isinstance(value, list) and bool(value) and isinstance(value[0], dict)
            and "role" in value[0])


def arguments(request, metrics, notes):
    """Returns the arguments that TRL's GRPO trainer passes."""
    rows = [row if isinstance(row, dict) else {} for row in request["rows"]]
    prompts, completions, hidden = [], [], {"prompt", "completion", "completion_ids"}
    for row, prompt, text in zip(rows, request["prompts"], request["completions"]):
        for key in ("prompt", "messages"):
            if is_conversation(row.get(key)):
                prompts.append(row[key])
                completions.append([{"role": "assistant", "content": text}])
                hidden.add(key)
                break
        else:
            prompts.append(prompt)
            completions.append(text)
    columns = dict.fromkeys(key for row in rows for key in row if key not in hidden)
    passed = {key: [row.get(key) for row in rows] for key in columns}

    def log_extra(column, values):
        str(column), list(values)
        notes.add("log_extra: there is no table of completions here to add columns to")

    def log_metric(name, value):
        name, value = str(name), float(value)
        if not name or len(name.encode()) > 90 or not name.isprintable():
            raise ValueError(f"log_metric: {name!r} is not a metric name")
        if not math.isnan(value):
            metrics.append((name, value))

    passed.update(prompts=prompts, completions=completions, completion_ids=request["ids"],
                  trainer_state=State(request["step"]), log_extra=log_extra, log_metric=log_metric)
    return passed


def sample_of(text, row, finished):
    """Returns the sample that a grader gets. plugins/rewards/grader/sample.c makes the same for graders of other types."""
    calls = []

    def take(match):
        try:
            call = json.loads(match[1])
            name, arguments = call["name"], call["arguments"]
        except (ValueError, KeyError, TypeError):
            return match[0]
        if not isinstance(name, str) or not isinstance(arguments, (str, dict)):
            return match[0]
        arguments = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append({"id": f"call_{len(calls)}", "type": "function", "function": {"name": name, "arguments": arguments}})
        return ""

    if isinstance(row.get("tools"), list):
        rest = re.sub(r"<tool_call>(.*?)</tool_call>", take, text, flags=re.S)
        text = rest.strip() if calls else text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    reason = "tool_calls" if calls else "stop" if finished else "length"
    return {"output_text": text, "output_json": value if isinstance(value, (dict, list)) else None, "output_tools": calls,
            "output_audio": None, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def grades(f, request, bad, invalid):
    """The grades of all rows by a grader; `invalid` for an exception and for a value that is not a number. Adds a reason for each to bad."""
    result = []
    for i, (text, row, finished) in enumerate(zip(request["completions"], request["rows"], request["finished"])):
        row = row if isinstance(row, dict) else {}
        try:
            value = f.call(sample_of(text, row, finished), dict(row))
        except (Exception, SystemExit) as error:
            why = where(error, f.path)
        else:
            why = None
            try:
                if isinstance(value, (str, bytes)) or not math.isfinite(value):
                    raise TypeError
                value = float(value)
            except (TypeError, ValueError, OverflowError):
                shown = repr(value)
                why = f"it returned {shown if len(shown) <= 60 else shown[:57] + '...'}, not a number"
        if why:
            bad.append(f"{f.file}: {f.name}() has no grade for row {i} of {len(request['rows'])}, which counts as 0: {why}")
        result.append(invalid if why else value)
    return result


def doubles(f, output, n, blank):
    """The rewards that a function returned, NaN for None; blank: row -> function that returned None."""
    name = f.name
    if output is None:
        raise Refused(f"{name}() returned None, not a list of rewards")
    try:
        values = list(output)
    except TypeError:
        raise Refused(f"{name}() returned a {type(output).__name__}, not a list of rewards") from None
    if len(values) != n:
        raise Refused(f"{name}() returned {len(values)} rewards for {n} rows")
    result = []
    for i, value in enumerate(values):
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError
            if value is None:
                blank.setdefault(i, f)
            result.append(math.nan if value is None else float(value))
        except (TypeError, ValueError, OverflowError):
            shown = repr(value)
            shown = shown if len(shown) <= 60 else shown[:57] + "..."
            raise Refused(f"{name}() returned {shown} for row {i} of {n}; "
                          "expected a number or None") from None
    return result


class Function:
    """A reward function: its name; the path of the file that defines it, as in tracebacks; the file's name for messages."""

    def __init__(self, name: str, call, path: str, file: str):
        self.name, self.call, self.path, self.file = name, call, path, file


class Functions:
    """Reward functions, which answer the requests of python.so. The reward for an invalid grade (see grades) is `invalid`."""

    def __init__(self, functions: list, invalid: float = 0.0):
        self.functions = functions
        self.invalid = invalid
        self.loop = asyncio.new_event_loop()
        self.error = None  # the exception of the last request

    def close(self) -> None:
        self.loop.close()

    def ready(self) -> bytes:
        """Returns the first answer."""
        wanted = {}
        for f in self.functions:
            try:
                for column in needs(f.call, f.name):
                    wanted.setdefault(column, f.name)
            except Refused as error:
                raise Refused(f"{f.file} {error}") from None
        return packed("ready", [f"name {f.name}" for f in self.functions] + [f"needs {c} {name}" for c, name in wanted.items()])

    def answer(self, request: bytes) -> bytes:
        """Returns the answer to a request, which is given without its head."""
        self.error = None
        try:
            return packed("scores", *self.score(json.loads(request.decode("utf-8", "replace"))))
        except Refused as error:
            self.error = error.__cause__
            return packed("failed", [str(error)])

    def wait_for(self, coroutine):
        """Runs a coroutine in the functions' event loop. A notebook has an event loop of its own, which is running in this thread."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self.loop.run_until_complete(coroutine)
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            return thread.submit(self.loop.run_until_complete, coroutine).result()

    def score(self, request):
        n, blank, bad = len(request["completions"]), {}, []
        metrics, notes = [], set()
        passed = arguments(request, metrics, notes)
        results = [None] * len(self.functions)

        async def wait(i, f):
            try:
                results[i] = doubles(f, await f.call(**passed), n, blank)
            except (Exception, SystemExit) as error:
                return f, error

        async def all_of(those):
            return await asyncio.gather(*(wait(*one) for one in those))

        later, failed = [], []
        for i, f in enumerate(self.functions):
            if is_grader(f.call):
                results[i] = grades(f, request, bad, self.invalid)
                continue
            if is_async(f.call):
                later.append((i, f))
                continue
            try:
                results[i] = doubles(f, f.call(**passed), n, blank)
            except (Exception, SystemExit) as error:
                failed = [(f, error)]
                break
        if later and not failed:
            failed = [one for one in self.wait_for(all_of(later)) if one]
        if failed:
            f, error = failed[0]
            said = error if isinstance(error, Refused) else f"{f.name}() failed: {where(error, f.path, passed)}"
            raise Refused(f"{f.file}: {said}") from (error.__cause__ if isinstance(error, Refused) else error)
        lines = [f"metric {value!r} {name}" for name, value in metrics]
        lines += [f"note {note}" for note in sorted(notes)]
        if bad:
            lines.append(f"invalid {bad[0]}")
        graders = sum(is_grader(f.call) for f in self.functions)
        if graders and self.invalid == 0:
            lines.append(f"metric {len(bad) / (graders * n)!r} invalid")
        sentence = unscored(blank, results, n)
        if sentence:
            lines.append(f"unscored {sentence}")
        return lines, [x for result in results for x in result]


def unscored(blank, results, n):
    """A sentence about rows that no function scores, because one returned None; or None."""
    rows = [i for i in sorted(blank) if all(math.isnan(result[i]) for result in results)]
    if not rows:
        return None
    others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    f = blank[rows[0]]
    return (f"{f.file}: {f.name}() returned None for row {rows[0]}{others} of {n}, "
            "so that no function scores it; return a number for every row, or set rewards.nan_policy "
            "to zero or drop")


# ---- the program ----


def opened(path, names, pointer):
    """Returns the functions of the user's file."""
    base = os.path.basename(path) + pointer
    module = load_json(path, pointer) if pointer else load(path)
    functions = []
    for name in names:
        try:
            call = find(module, name)
        except Refused as error:
            raise Refused(f"{base} {error}") from None
        functions.append(Function(called(call), call, path + pointer, base))
    return functions


def serve(functions, requests, send):
    """Answers requests until there are none."""
    asyncio.set_event_loop(functions.loop)
    send(functions.ready())
    while True:
        size = int(requests.readline() or -1)
        data = requests.read(max(size, 0))
        if len(data) != size:
            break
        send(functions.answer(data))


def is_elsewhere(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.readline().rstrip() == ELSEWHERE.encode()
    except OSError:
        return False


def relay(base, requests, answers):
    """Passes requests on to the process that has the functions, and its answers back."""
    import socket
    import threading

    def forward():
        while True:
            data = os.read(requests, 1 << 16)
            if not data:
                break
            there.sendall(data)
        there.shutdown(socket.SHUT_WR)

    at = os.environ.get(SOCKET)
    if not at:
        raise Refused(f"{base} is a record of functions that ran in a Python process; go on with rlhf_host.resume() and these "
                      "functions, or name a Python file that has them")
    there = socket.socket(socket.AF_UNIX)
    try:
        there.connect(at)
    except OSError as error:
        raise Refused(f"{base}: the Python process that has the functions cannot be reached: {error}") from None
    threading.Thread(target=forward, daemon=True).start()
    while True:
        data = there.recv(1 << 16)
        if not data:
            return
        while data:
            data = data[os.write(answers, data):]


def main(path, names, pointer=""):
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout.reconfigure(errors="backslashreplace", line_buffering=True)
    path = os.path.abspath(path)

    def send(answer):
        while answer:
            answer = answer[os.write(answers, answer):]

    try:
        if is_elsewhere(path):
            relay(os.path.basename(path), requests, answers)
        else:
            invalid = math.nan if pointer else 0.0  # grader.so counts invalid grades itself
            serve(Functions(opened(path, names, pointer), invalid), os.fdopen(requests, "rb"), send)
    except Refused as error:
        send(packed("failed", [str(error)]))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2].split(","), *sys.argv[3:])
