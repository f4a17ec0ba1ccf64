# rlhf-host env_python.so: plays episodes with Python classes and functions (docs/environments.md).
#
#   python3 -c DRIVER FILE API CLASS TOOLS REWARDS
#
# API is "trl" (a class that TRL's environment_factory accepts) or "gymnasium" (an environment whose spaces are text). TOOLS and REWARDS are
# names of functions, separated by + or commas. CLASS, TOOLS and REWARDS may be empty. Standard input and output have the lines of env_exec.so.
# Output that the user's code prints goes to standard error.
import os
import sys

sys.path[:] = [p for p in sys.path if p]  # no imports from the working directory
REQUESTS = os.fdopen(os.dup(0), "rb")
ANSWERS = os.fdopen(os.dup(1), "wb")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
sys.stdout.reconfigure(errors="backslashreplace", line_buffering=True)

import ast
import asyncio
import difflib
import enum
import importlib.util
import inspect
import json
import math
import numbers
import random
import re
import traceback
import types
import typing


class Refused(Exception):
    """An error whose text is a sentence for the user."""


def send(**line):
    ANSWERS.write(json.dumps(line).encode() + b"\n")


def where(error, path):
    """Returns "line 3, in f: KeyError: 'answer'": the innermost line of the user's file in the traceback."""
    said = "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")[-1]
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return f"line {own[-1].lineno}, in {own[-1].name}: {said}" if own else said


def load(path):
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem in sys.modules or stem in getattr(sys, "stdlib_module_names", ()):
        stem = "rlhf_environment_" + stem
    sys.path.insert(0, os.path.dirname(path))
    loader = importlib.machinery.SourceFileLoader(stem, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(stem, loader))
    sys.modules[stem] = module
    sys.dont_write_bytecode = True
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise Refused(f"cannot be imported: {where(error, path)}") from None
    return module


def inside(path, name):
    """Returns the function in which the file defines `name`, or None."""
    with open(path, "rb") as f:
        functions = [n for n in ast.walk(ast.parse(f.read())) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return next((f.name for f in functions for n in f.body if getattr(n, "name", None) == name), None)


def find(module, name):
    found = getattr(module, name, None)
    if not callable(found):
        function = inside(module.__file__, name)
        if function:
            raise Refused(f"has {name!r} only inside the function {function}(), where it cannot be reached; move it to the top level")
        names = [n for n in dir(module) if callable(getattr(module, n)) and not n.startswith("__")]
        near = difflib.get_close_matches(name, names, 1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise Refused(f"has no {name!r} that can be called{hint}")
    return found


# ---- schemas of tools, equal to those of transformers.utils.get_json_schema ----

BASIC = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null", list: "array", tuple: "array",
         dict: "object"}


def values_schema(values):
    kinds = list(dict.fromkeys(BASIC[type(v)] for v in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def union_schema(parts):
    some = [hint_schema(p) for p in parts if p is not type(None)]
    if len(some) == 1:
        out = some[0]
    elif all(s.keys() == {"type"} and isinstance(s["type"], str) for s in some):
        kinds = sorted({s["type"] for s in some})
        out = {"type": kinds[0] if len(kinds) == 1 else kinds}
    else:
        out = {"anyOf": some}
    if type(None) in parts:
        out["nullable"] = True
    return out


def hint_schema(hint):
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is None and isinstance(hint, type) and issubclass(hint, enum.Enum):
        return values_schema([m.value for m in hint])
    if hint is typing.Any:
        return {}
    if origin is None and hint in BASIC:
        return {"type": BASIC[hint]}
    if origin is typing.Union or origin is getattr(types, "UnionType", None):
        return union_schema(parts)
    if origin is typing.Literal:
        return values_schema(list(parts))
    if origin is list:
        return {"type": "array", "items": hint_schema(parts[0])}
    if origin is tuple and ... not in parts and len(parts) > 1:
        return {"type": "array", "prefixItems": [hint_schema(p) for p in parts]}
    if origin is dict:
        return {"type": "object", "additionalProperties": hint_schema(parts[1])}
    raise Refused(f"has the type hint {hint!r}, which is not a JSON type")


ARGUMENT = re.compile(r"(?:^|\n)([ \t]*)(\w+)(?:[ \t]*\([^()\n]*\))?:\s*(.*?)\s*"
                      r"(?=\n(?!\1[ \t])[ \t]*\w+(?:[ \t]*\([^()\n]*\))?:|\Z)", re.DOTALL)


def docstring(f, name):
    doc = (inspect.getdoc(f) or "").strip()
    if not doc:
        raise Refused(f"has the tool {name}() without a docstring, which the policy would read")
    described = re.search(r"^(.*?)[\n\s]*(Args:|Returns:|Raises:|\Z)", doc, re.DOTALL).group(1).strip()
    block = re.search(r"\n\s*Args:\n(.*?)[\n\s]*(Returns:|Raises:|\Z)", doc, re.DOTALL)
    lines = "\n".join(line for line in block.group(1).split("\n") if line.strip()) if block else ""
    returned = re.search(r"\n\s*Returns:\n\s*(.*?)[\n\s]*(Raises:|\Z)", doc, re.DOTALL)
    return (described, {m[1]: re.sub(r"\s*\n+\s*", " ", m[2].strip()) for m in ARGUMENT.findall(lines)},
            returned.group(1).strip() if returned else None)


def schema(f):
    name = getattr(f, "__name__", "operation")
    described, arguments, returned = docstring(f, name)
    hints, properties, required, back = typing.get_type_hints(f), {}, [], None
    for key, parameter in inspect.signature(f).parameters.items():
        if parameter.annotation is parameter.empty:
            raise Refused(f"has the tool {name}() without a type hint for {key}")
        if key not in arguments:
            raise Refused(f"has the tool {name}(), whose docstring does not describe {key}")
        if parameter.default is parameter.empty:
            required.append(key)
        properties[key] = hint_schema(hints[key])
        said, choices = arguments[key], re.search(r"\(choices:\s*(.*?)\)\s*$", arguments[key], re.IGNORECASE)
        if choices:
            properties[key]["enum"] = [c.strip() if isinstance(c, str) else c for c in json.loads(choices.group(1))]
            said = said[:choices.start()].strip()
        properties[key]["description"] = said
    if "return" in hints:
        try:
            back = hint_schema(hints["return"])
        except Refused:
            pass
        if back is not None and returned is not None:
            back["description"] = returned
    parameters = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    function = {"name": name, "description": described, "parameters": parameters}
    if back is not None:
        function["return"] = back
    return {"type": "function", "function": function}


# ---- episodes ----


class Luck:
    """The states of Python's and numpy's random numbers: each episode has its own, which its seed begins."""

    def __init__(self, seed):
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed % 2**32)
        self.keep()

    def keep(self):
        self.python = random.getstate()
        self.numpy = sys.modules["numpy"].random.get_state() if "numpy" in sys.modules else None

    def use(self):
        random.setstate(self.python)
        if self.numpy:
            sys.modules["numpy"].random.set_state(self.numpy)


class Player:
    """What both kinds of environments share: instances are used again after their episode."""

    def __init__(self, make, loop):
        self.make, self.loop, self.free = make, loop, []

    def instance(self):
        return self.free.pop() if self.free else self.make()

    def run(self, value):
        return self.loop.run_until_complete(value) if inspect.isawaitable(value) else value

    def finish(self, env):
        return {}


class Tools(Player):
    """A class as TRL's environment_factory takes it, and functions."""

    def __init__(self, make, functions, rewards, loop):
        super().__init__(make, loop)
        self.functions, self.rewards = {f.__name__: f for f in functions}, rewards
        self.told = {}  # what reward functions get about the episode of an instance: its row, and its messages after the prompt
        self.methods = []
        probe = make()
        self.free.append(probe)
        for name, _ in inspect.getmembers(type(probe), predicate=inspect.isfunction):
            if name not in ("reset", "get_reward") and not name.startswith("_"):
                self.methods.append(name)
        self.pays = hasattr(type(probe), "get_reward") or bool(rewards)
        self.tools = [schema(f) for f in functions] + [schema(getattr(probe, m)) for m in self.methods]

    def reset(self, env, row, seed, prompt):
        if self.rewards:
            self.told[id(env)] = ({"prompt": prompt} | row, [])
        if not hasattr(env, "reset"):
            return {}
        said = self.run(env.reset(**({"prompt": prompt} | row)))
        return {} if said is None else {"say": str(said)}

    def step(self, env, text, calls):
        said = [self.call(env, c["name"], c["arguments"]) for c in calls]
        if self.rewards:
            functions = [{"type": "function", "function": c} for c in calls]
            self.told[id(env)][1].append({"role": "assistant", "content": text} | ({"tool_calls": functions} if calls else {}))
            self.told[id(env)][1].extend({"role": "tool", "name": c["name"], "content": s} for c, s in zip(calls, said))
        return {"say": said} if calls else {"done": True}

    def call(self, env, name, arguments):
        f = self.functions.get(name) or getattr(env, name)
        try:
            return str(self.run(f(**arguments)))
        except Exception as error:
            return str({"error": str(error)})

    def finish(self, env):
        if not self.rewards:
            return {"reward": number(self.run(env.get_reward()))} if self.pays else {}
        row, messages = self.told.pop(id(env))
        columns = {f"{k}s" if k == "prompt" else k: [v] for k, v in row.items()}
        paid = [self.run(f(completions=[messages], environments=[env], **columns))[0] for f in self.rewards]
        if hasattr(env, "get_reward"):
            paid.append(self.run(env.get_reward()))
        return {"reward": number(sum(real(x) for x in paid if x is not None))}  # None: the function is not for this task


class Gymnasium(Player):
    tools = []
    pays = True

    def reset(self, env, row, seed, prompt):
        said, info = self.run(env.reset(seed=seed % 2**31, options=row))
        return {"say": str(said), "metrics": metrics(info)}

    def step(self, env, text, calls):
        said, reward, terminated, truncated, info = self.run(env.step(text))
        return {"say": str(said), "reward": number(reward), "done": bool(terminated), "truncated": bool(truncated and not terminated),
                "metrics": metrics(info)}


def real(value):
    """A reward as a float: whatever float() accepts, True and False among it, except texts."""
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"the reward is {repr(value)[:60]}; expected a number, True, False or None") from None


def number(value):
    """Returns None for a number that JSON cannot write: null counts as NaN (rewards.nan_policy)."""
    value = None if value is None else real(value)
    return value if value is not None and math.isfinite(value) else None


def metrics(info):
    return {str(k)[:90]: float(v) for k, v in list((info or {}).items())[:32] if isinstance(v, numbers.Real) and math.isfinite(v)}


def open_player(path, api, name, tools, rewards, loop):
    module = load(path)
    functions, rewards = ([find(module, t) for t in re.split("[+, ]", names) if t] for names in (tools, rewards))
    make = find(module, name) if name else type("Nothing", (), {})
    if api == "gymnasium":
        return Gymnasium(make, loop)
    try:
        return Tools(make, functions, rewards, loop)
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"has {name}, which cannot be created: {where(error, path)}") from None


def answer(player, path, open_now, line):
    what = next(k for k in ("reset", "step", "finish", "close") if k in line)
    episode = line[what]
    if what == "close":
        env = open_now.pop(episode, (None,))[0]
        if env is not None:
            player.free.append(env)
        return
    try:
        if what == "reset":
            luck = Luck(line["seed"])
            env = player.instance()
            open_now[episode] = (env, luck)
            reply = player.reset(env, line["row"] or {}, line["seed"], line["prompt"])
        else:
            env, luck = open_now[episode]
            luck.use()
            reply = player.step(env, line["text"], line["calls"]) if what == "step" else player.finish(env)
        luck.keep()
    except (Exception, SystemExit) as error:
        open_now.pop(episode, None)  # its instance is not used again
        reply = {"failed": where(error, path)}
    send(episode=episode, **reply)


def main(path, api, name, tools, rewards):
    path = os.path.abspath(path)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        player = open_player(path, api, name, tools, rewards, loop)
    except Refused as error:
        sys.exit(f"{os.path.basename(path)} {error}")
    send(tools=player.tools, finish=player.pays and api == "trl")
    ANSWERS.flush()
    open_now = {}
    for line in REQUESTS:
        answer(player, path, open_now, json.loads(line.decode("utf-8", "replace")))
        ANSWERS.flush()


main(*sys.argv[1:6])
