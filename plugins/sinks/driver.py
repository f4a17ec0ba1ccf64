# The program that wandb.so and trackio.so start. It reads calls as JSON lines from standard input
# and makes each call with the Python package named by the first argument. It answers each call with
# a line: "ok" or "failed", a space, and a text for the user.
import sys

sys.path[:] = [place for place in sys.path if place]  # no imports from the working directory

import importlib
import json
import os

package = sys.argv[1]
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # so that output of the package does not reach the host as an answer
calls = sys.stdin.buffer


def answer(word, text=""):
    line = word + " " + " ".join(str(text).split())
    answers.write(line.encode("utf-8", "replace")[:900] + b"\n")
    answers.flush()


class Notes:
    """A file in the sink's directory that a resumed run reads: the id that the tracker gave to the
    run, and the last phase that the tracker has."""

    def __init__(self, call):
        self.path = os.path.join(call["own_dir"], "run.json")
        key = "%s/%s" % (call["project"], call["name"])
        self.mine = {"key": key, "id": None, "last": -1}
        if call["resumed"] and os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as f:
                found = json.load(f)
            if found["key"] == key:
                self.mine = found

    def write(self):
        with open(self.path + ".new", "w", encoding="utf-8") as f:
            json.dump(self.mine, f)
        os.replace(self.path + ".new", self.path)


def begin_wandb(lib, call, notes):
    more = {"resume": "allow", "id": notes.mine["id"]} if notes.mine["id"] else {}
    # wandb's files go to ./wandb, as always. In the run's directory, the links that wandb makes
    # would be refused.
    run = lib.init(project=call["project"], name=call["name"], config=call["config"],
                   **call["more"], **more)
    notes.mine["id"] = run.id
    if getattr(run, "offline", False):
        return "offline; send it later with: wandb sync " + os.path.dirname(run.dir)
    return run.url or ""


def begin_trackio(lib, call, notes):
    more = {"resume": "allow"} if notes.mine["id"] else {}
    lib.init(project=call["project"], name=call["name"], config=call["config"], **call["more"],
             **more)
    notes.mine["id"] = call["name"]
    return "look at it with: trackio show --project " + call["project"]


def phase(lib, call, notes):
    values = dict(call["metrics"])
    if call["samples"]:
        columns = ["prompt", "response", "reward"]
        values["samples"] = lib.Table(columns=columns, data=call["samples"])
    lib.log(values, step=call["phase"])
    notes.mine["last"] = call["phase"]
    notes.write()


def end(lib, call):
    if package == "wandb":
        lib.finish(exit_code=1 if call["how"] == "failed" else 0)
    else:
        lib.finish()


def load():
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as e:
        if e.name != package:
            raise
        raise SystemExit("the Python package %s is not installed: %s -m pip install %s"
                         % (package, sys.executable or "python3", package))


def main():
    lib = notes = None
    for line in calls:
        call = json.loads(line)
        said = ""
        try:
            if call["call"] == "begin":
                lib = load()
                notes = Notes(call)
                said = (begin_wandb if package == "wandb" else begin_trackio)(lib, call, notes)
                said = "%d %s" % (notes.mine["last"] + 1, said)  # first the phase that it needs
            elif call["call"] == "phase":
                phase(lib, call, notes)
            else:
                end(lib, call)
        except SystemExit as e:
            return answer("failed", e)
        except Exception as e:
            return answer("failed", "%s: %s" % (type(e).__name__, e))
        answer("ok", said)


main()
