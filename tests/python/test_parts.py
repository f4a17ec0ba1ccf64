"""Parts of the package that need no run of the program."""
import functools
import json
import math
import os
import subprocess
import sys
import types
import unittest
from unittest import mock

from support import ROOT, Case, lengths, rlhf_host

from rlhf_host import _command, _driver, _functions, _program, _rewards, _rows, _show

with open(_driver.__file__) as text:
    DRIVER = text.read()


class Words(unittest.TestCase):
    def test_flags(self):
        self.assertEqual(_command.as_flags({"max_new": 8, "greedy": True, "raw": False, "stop": ["a", "b"], "top_p": 0.5}),
                         ["--max-new", "8", "--greedy", "--stop", "a", "--stop", "b", "--top-p", "0.5"])

    def test_settings(self):
        words = _command.as_settings({"optim": {"lr": 1e-5}, "run.note": "a b", "log.csv": False,
                                      "prompts.template_vars": {"x": 1}})
        self.assertEqual(words[1::2], ["optim.lr=1e-05", 'run.note="a b"', "log.csv=false", 'prompts.template_vars={"x": 1}'])

        for settings, text in (({"a.b": object()}, "settings: a.b cannot be written as JSON"), ({"a": {"b": {1}}}, "settings: a.b ")):
            with self.assertRaisesRegex(rlhf_host.Error, text):
                _command.as_settings(settings)

    def test_plugins(self):
        for given, want in (("grpo", "grpo.so"), ("imdb.so", "imdb.so"), ("length:max=3", "length.so:max=3"),
                            ("./mine", "./mine"), ("exec.so:command=a.b", "exec.so:command=a.b")):
            self.assertEqual(_command.as_plugin(given), want)

    def test_weights(self):
        with self.assertRaises(rlhf_host.Error):
            _rewards.Rewards(["imdb", "length"], [1])
        flags = _rewards.Rewards(["imdb", "length:max=3"], [1, 2]).flags(mock.Mock())
        self.assertEqual(flags, ["--reward", "imdb.so:weight=1.0", "--reward", "length.so:max=3,weight=2.0"])


class Files(Case):
    def test_rows(self):
        text = _rows.as_jsonl("prompts", ["a\n\u00e9", [{"role": "user", "content": "b"}], {"prompt": "c", "n": 1}])
        self.assertEqual([json.loads(line) for line in text.splitlines()],
                         [{"prompt": "a\n\u00e9"}, {"messages": [{"role": "user", "content": "b"}]}, {"prompt": "c", "n": 1}])
        with self.assertRaisesRegex(rlhf_host.Error, r"data\[1\] cannot be written as JSON"):
            _rows.as_jsonl("data", ["a", {"x": math.nan}])

    def test_inputs_are_not_replaced(self):
        inputs = _rows.Inputs(self.path("run"))
        first = inputs.file("rows", ".jsonl", "a")
        self.assertEqual(inputs.file("rows", ".jsonl", "a"), first)
        second = _rows.Inputs(self.path("run")).file("rows", ".jsonl", "b")
        self.assertEqual(os.path.basename(second), "rows-2.jsonl")
        inputs.remove()
        self.assertEqual(os.listdir(self.path("run.inputs")), ["rows-2.jsonl"])

    def test_the_program_is_found(self):
        with mock.patch.dict(os.environ, RLHF_HOST=self.path("none/rlhf-host")):
            with self.assertRaisesRegex(rlhf_host.Error, "RLHF_HOST is "):
                _program.program()
        with mock.patch.dict(os.environ, PATH=self.at, RLHF_HOST=""):
            with self.assertRaisesRegex(rlhf_host.Error, "was not found"):
                _program.program()
            with open(self.path("rlhf-host"), "w"):
                os.chmod(self.path("rlhf-host"), 0o755)
            self.assertEqual(_program.program(), self.path("rlhf-host"))

    def test_a_program_that_cannot_be_started(self):
        with open(self.path("rlhf-host"), "w") as file:
            file.write("no program")
        with mock.patch.dict(os.environ, RLHF_HOST=self.path("rlhf-host")):
            with self.assertRaisesRegex(rlhf_host.Error, "rlhf-host cannot be started: Permission denied"):
                rlhf_host.runs(self.at)

    def test_the_version_is_the_programs(self):
        said = json.loads(subprocess.run([os.environ["RLHF_HOST"], "--version", "--json"], capture_output=True).stdout)
        self.assertEqual(rlhf_host.__version__, said["version"])
        module = [sys.executable, "-m", "rlhf_host", "--version", "--json"]
        environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
        self.assertEqual(json.loads(subprocess.run(module, env=environment, capture_output=True).stdout), said)


class Answers(Case):
    """The driver answers for a file as the package answers for functions of its process."""

    TEXT = ("import math\n"
            "def good(completions, log_metric, **kw):\n    log_metric('m', 3)\n    return [len(c) for c in completions]\n"
            "def half(completions, a, **kw):\n    return [None if x is None else 0.5 for x in a]\n"
            "async def later(completions, trainer_state, **kw):\n    return [trainer_state.global_step] * len(completions)\n"
            "def wrong(completions, a, **kw):\n    for x, c in zip(a, completions):\n        {}[x]\n"
            "def few(completions, **kw):\n    return [1]\n")

    def by_driver(self, names, requests):
        data = b"".join(b"%d\n" % len(r) + r for r in requests)
        return subprocess.run([sys.executable, "-c", DRIVER, self.path("rewards.py"), ",".join(names)], input=data,
                              capture_output=True, check=True).stdout

    def test_same_answers(self):
        with open(self.path("rewards.py"), "w") as file:
            file.write(self.TEXT)
        space = {}
        exec(compile(self.TEXT, self.path("rewards.py"), "exec"), space)
        request = {"step": 3, "prompts": ["p", "p"], "completions": ["", "Yes."], "ids": [[], [1]],
                   "rows": [{"a": "value"}, {"a": None}]}
        requests = [json.dumps(request).encode(), json.dumps(dict(request, rows=[None, None])).encode()]
        for names in (["good"], ["half"], ["good", "half", "later"], ["wrong"], ["few"], ["later", "wrong"]):
            offer = _functions.Offer([space[name] for name in names])
            try:
                ours = offer.answers.ready() + b"".join(map(offer.answers.answer, requests))
            finally:
                offer.close()
            self.assertEqual(ours, self.by_driver(names, requests), names)
            if names == ["wrong"]:
                self.assertIn(b"rewards.py: wrong() failed: line 11, in wrong", ours)

    def test_names(self):
        f = functools.partial(lengths)
        self.assertEqual(_functions._names([lengths, f, lambda **kw: [], _show.Lines]),
                         ["lengths", "lengths_2", "lambda", "Lines"])

    def test_the_record(self):
        offer = _functions.Offer([lengths, functools.partial(lengths)])
        offer.close()
        self.assertTrue(offer.record.startswith(_driver.ELSEWHERE + "\n"))
        self.assertEqual(offer.record.count("def lengths(completions, **kwargs):"), 2)

    def test_a_loop_is_running(self):
        """In a notebook, asyncio's loop is running while a cell is executed."""
        import asyncio

        async def later(**kwargs):
            await asyncio.sleep(0)
            return [1.0]

        async def cell():
            return offer.answers.answer(json.dumps({"step": 0, "prompts": [""], "completions": [""], "ids": [[]],
                                                    "rows": [None]}).encode())

        offer = _functions.Offer([later])
        self.assertTrue(asyncio.run(cell()).startswith(b"scores"))
        offer.close()


class Notebook(unittest.TestCase):
    def test_display(self):
        shown = []

        class Handle:
            update = staticmethod(lambda page: shown.append(page))

        def display(page, display_id):
            shown.append(page)
            return Handle()

        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda: types.SimpleNamespace(kernel=1)
        ipython.display = types.ModuleType("IPython.display")
        ipython.display.HTML, ipython.display.display = str, display
        with mock.patch.dict(sys.modules, {"IPython": ipython, "IPython.display": ipython.display}):
            show = _show.chosen("auto")
            self.assertIsInstance(show, _show.Notebook)
            for event in ({"event": "log", "level": "warn", "message": "a <b>"},
                          {"event": "phase", "phase": 1, "phases": 3, "reward": 0.25, "kl": 0.5, "elapsed_s": 1, "eta_s": 2},
                          {"event": "phase", "phase": 2, "phases": 3, "reward": 0.75, "kl": 0.5, "elapsed_s": 1, "eta_s": 1},
                          {"event": "sample", "phase": 2, "prompt": "p" * 99, "response": "<i>", "reward": 1.0},
                          {"event": "log", "level": "error", "message": "bad"}):
                show.line(json.dumps(event))
            show.line(json.dumps({"event": "log", "level": "info", "message": "try it: rlhf-host generate"}))
            show.line("plain")
            show.note("of Python")
            self.assertTrue(show.waits)
            show.draw()
        for text in ("warning: a &lt;b&gt;", "phase 2/3 · reward 0.75 · kl 0.5 · 1 s left", "<polyline", "&lt;i&gt;", "of Python\nwarning: a", "plain"):
            self.assertIn(text, shown[-1])
        self.assertNotIn("try it", shown[-1])
        self.assertEqual(show.error, "bad")
        self.assertIsInstance(_show.chosen("auto"), _show.Lines)
        with self.assertRaisesRegex(rlhf_host.Error, 'progress is "bar"; expected auto, lines or none'):
            _show.chosen("bar")


if __name__ == "__main__":
    unittest.main()
