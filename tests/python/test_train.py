"""Training runs of the package: the same bytes as the command line, forms of rows, results, failures."""
import contextlib
import io
import os
import subprocess
import threading
import unittest

from support import PROGRAM, ROOT, SETTINGS, Case, lengths, rlhf_host

FUNCTIONS = """
import asyncio

def vowels(completions, **kwargs):
    return [sum(map(c.count, "aeiou")) / 2 for c in completions]

def answers(prompts, completions, completion_ids, answer, log_metric, **kwargs):
    log_metric("ids", len(completion_ids[0]))
    return [None if a is None else float(a in c) for a, c in zip(answer, completions)]

async def later(completions, trainer_state, **kwargs):
    await asyncio.sleep(0)
    return [trainer_state.global_step + len(set(c)) / 8 for c in completions]
"""
ROWS = [{"prompt": "It was", "answer": "e", "level": 1}, {"prompt": "The film", "answer": None}]


def contents(folder):
    """Returns the files of a checkpoint, without those that name paths of the run."""
    found = {}
    for above, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(above, name), "rb") as file:
                found[os.path.relpath(os.path.join(above, name), folder)] = file.read()
    return found


class Same(Case):
    def test_bytes_of_the_command_line(self):
        with open(self.path("rewards.py"), "w") as file:
            file.write(FUNCTIONS)
        space = {}
        exec(FUNCTIONS, space)
        functions = [space["vowels"], space["answers"], space["later"]]
        ours = self.train(functions, prompts=ROWS, reward_weights=[1, 0.5, 0.25])
        rows = os.path.join(ours.out + ".inputs", "prompts.jsonl")
        words = ["--algo", "grpo.so", "--policy", self.model, "--prompts", rows, "--out", self.path("theirs"), "--reward",
                 f"python.so:file={self.path('rewards.py')},function=vowels,answers,later,weights=1,0.5,0.25"]
        for name, value in SETTINGS.items():
            words += ["--set", f"{name}={str(value).lower()}"]
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = rlhf_host.Run(self.path("theirs"))
        a, b = contents(ours.checkpoint), contents(theirs.checkpoint)
        self.assertEqual(sorted(a), sorted(b))
        differ = [name for name in a if a[name] != b[name]]
        self.assertEqual([name for name in differ if not name.endswith(("config.json", "manifest.json"))], [])
        self.assertTrue(any(name.endswith(".safetensors") for name in a))
        timeless = [{k: v for k, v in m.items() if "time" not in k and not k.startswith("perf/")}
                    for m in ours.metrics]
        for ours_, theirs_ in zip(timeless, theirs.metrics):
            self.assertEqual({k: theirs_.get(k) for k in ours_}, ours_)
        self.assertIn("rewards/python/vowels/mean", ours.metrics[0])


class Results(Case):
    def test_results_of_a_run(self):
        threads, closed_over = set(), []

        def reward(completions, **kwargs):
            threads.add(threading.current_thread())
            closed_over.append(len(completions))
            return [float(len(c)) for c in completions]

        run = self.train([reward, "period_count"])
        self.assertEqual(threads, {threading.main_thread()})
        self.assertEqual(closed_over, [2, 8, 8])
        self.assertEqual([m["phase"] for m in run.metrics], [1, 2])
        self.assertTrue(run.samples and "response" in run.samples[0])
        self.assertTrue(os.path.exists(os.path.join(run.checkpoint, "model.safetensors")))
        self.assertEqual(run.state["state"], "done")
        self.assertTrue(any("phase 2/2" in line for line in run.log))
        page = run.report()
        page.save(self.path("page.html"))
        self.assertIn("<iframe", page._repr_html_())
        self.assertGreater(os.path.getsize(self.path("page.html")), 10000)
        run.export(self.path("exported"))
        self.assertTrue(os.path.exists(self.path("exported/config.json")))
        texts = rlhf_host.generate(run, ["a", "b\nc"], n=2, max_new=3)
        self.assertEqual([t["prompt"] for t in texts], ["a", "a", "b\nc", "b\nc"])
        self.assertEqual(len(rlhf_host.generate(run, [{"prompt": "a"}], max_new=3)), 1)
        self.assertEqual(rlhf_host.eval(run, ["It was"], [reward], n=4)["samples"], 4)
        self.assertIn("bits_per_byte", rlhf_host.eval(run, ["It was good."]))
        self.assertEqual([r["run"] for r in rlhf_host.runs(self.at)], ["run"])

    def test_forms_of_rows(self):
        seen = []

        def reward(prompts, completions, **kwargs):
            seen.append((prompts[0], completions[0], kwargs.get("answer", [None])[0]))
            return [0.5] * len(prompts)

        talk = [{"role": "user", "content": "Hi"}]
        self.train([reward], prompts=[talk], settings={"prompts.template": "chatml", "run.phases": 1})
        self.assertEqual(seen[-1][0], talk)
        self.assertEqual(seen[-1][1][0]["role"], "assistant")
        self.train([reward], prompts=[{"messages": talk, "answer": 4}], out="b",
                   settings={"prompts.template": "chatml", "run": {"phases": 1}})
        self.assertEqual((seen[-1][0], seen[-1][2]), (talk, 4))
        with open(self.path("p.txt"), "w") as file:
            file.write("One\n")
        self.train([reward], prompts=self.path("p.txt"), out="c", settings={"run.phases": 1})
        self.assertEqual(seen[-1][0], "One")
        run = rlhf_host.train("sft", self.model, data=["It was good.", "It was bad."], out=self.path("d"), progress="none",
                              settings={"policy.init": "random", "batch.size": 2, "run.phases": 1})
        self.assertEqual(len(run.metrics), 1)

    def test_a_temporary_directory_and_lines(self):
        out = io.StringIO()
        with contextlib.redirect_stderr(out):
            run = self.train([lengths], out=None, settings={"run.phases": 1}, progress="lines")
        self.assertIn(f"the run is in {run.out}, a temporary directory", out.getvalue())
        self.assertIn("phase 1/1", out.getvalue())
        self.assertNotIn("try it:", out.getvalue())
        self.assertTrue(any("try it:" in line for line in run.log))


class Failures(Case):
    def test_bad_input(self):
        error = self.failure([lengths], settings={"optim.lrr": 1})
        self.assertEqual(error.status, 2)
        self.assertIn('"optim.lrr"', str(error))
        self.assertNotIn("rlhf-host", str(error))
        self.assertEqual(sorted(os.listdir(self.at)), ["model"])
        self.assertIn("is empty", str(self.failure([lengths], prompts=[])))
        self.assertIn("prompts[0] is of type int", str(self.failure([lengths], prompts=[3])))
        self.assertIn("rewards[0] is of type int", str(self.failure([3])))
        with self.assertRaises(rlhf_host.Error) as caught:
            rlhf_host.generate(self.path("none"), ["a"])
        self.assertEqual(caught.exception.status, 2)

    def test_a_function_that_does_not_fit(self):
        def narrow(completions):
            return [0.0] * len(completions)

        error = self.failure([narrow])
        self.assertEqual(str(error), "reward python.so: test_train.py has narrow(), which is called with prompts= and does not take "
                                     "it; give it **kwargs")

        def needs(completions, answer, **kwargs):
            return [0.0] * len(completions)

        self.assertIn('no "answer", which needs of rewards.py is called with', str(self.failure([needs])))

        def one(completions, **kwargs):
            return [0.0]

        self.assertIn("test_train.py: one() returned 1 rewards for 2 rows", str(self.failure([one])))
        self.assertEqual(sorted(os.listdir(self.at)), ["model"])

    def test_an_exception_before_the_run(self):
        def wrong(completions, **kwargs):
            return [{}[c] for c in completions]

        error = self.failure([wrong])
        self.assertEqual(error.status, 2)
        self.assertIn("test_train.py: wrong() failed: line ", str(error))
        self.assertIn("KeyError: ''", str(error))
        self.assertIsInstance(error.__cause__, KeyError)
        self.assertEqual(error.__cause__.__traceback__.tb_frame.f_code.co_name, "wrong")

    def test_an_exception_in_a_phase(self):
        calls = []

        def third(completions, **kwargs):
            calls.append(1)
            if len(calls) == 3:
                raise ZeroDivisionError("third")
            return [float(len(c)) for c in completions]

        error = self.failure([third])
        self.assertEqual(error.status, 1)
        self.assertIn("ZeroDivisionError: third", str(error))
        self.assertIsInstance(error.__cause__, ZeroDivisionError)
        self.assertEqual(len(error.run.metrics), 1)
        self.assertTrue(error.run.checkpoint.endswith("000001"))
        run = rlhf_host.resume(error.run, [third], progress="none")
        self.assertEqual(len(run.metrics), 2)

        calls.clear()
        out = io.StringIO()
        with contextlib.redirect_stderr(out):
            run = self.train([third], out="goes-on", settings={"rewards.on_failure": "zero", "run.phases": 3})
        self.assertEqual(len(run.metrics), 3)
        self.assertIn("Traceback", out.getvalue())
        self.assertIn("ZeroDivisionError: third", out.getvalue())

    def test_none_is_not_a_verdict(self):
        def absent(completions, **kwargs):
            return [None] * len(completions)

        def fallback(completions, **kwargs):
            return [1.0] * len(completions)

        self.assertIn("reward", str(self.failure([absent])))
        self.assertEqual(len(self.train([absent, fallback], out="b").metrics), 2)

    def test_resume(self):
        run = self.train([lengths], settings={"run.phases": 1})
        run = rlhf_host.resume(run, [lengths], settings={"run.phases": 2}, progress="none")
        self.assertEqual(len(run.metrics), 2)

        def other(completions, **kwargs):
            return [0.0] * len(completions)

        with self.assertRaises(rlhf_host.Error) as caught:
            rlhf_host.resume(run, [other], settings={"run.phases": 3}, progress="none")
        self.assertEqual(caught.exception.status, 2)
        done = subprocess.run([PROGRAM, "--resume", run.out, "--phases", "3", "--trust-run"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is a record of functions that ran in a Python process", done.stderr)
        self.assertEqual(len(run.metrics), 2)


if __name__ == "__main__":
    assert PROGRAM and ROOT
    unittest.main()
