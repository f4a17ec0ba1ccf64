"""Ctrl-C, time limits and the death of the caller."""
import os
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from support import Case, lengths, rlhf_host


class Stop(Case):
    def test_one_interrupt_leaves_a_checkpoint(self):
        calls = []

        def reward(completions, **kwargs):
            calls.append(1)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return [float(len(c)) for c in completions]

        before = signal.getsignal(signal.SIGINT)
        run = self.train([reward], settings={"run.phases": 100})
        self.assertEqual(signal.getsignal(signal.SIGINT), before)
        self.assertEqual(run.state["state"], "stopped")
        self.assertTrue(run.checkpoint)
        self.assertTrue(1 <= len(run.metrics) < 10, len(run.metrics))

    def test_a_function_that_does_not_end(self):
        """One Ctrl-C ends it: the program does not wait for it, so that it is abandoned."""
        calls = []

        def reward(completions, **kwargs):
            calls.append(1)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(600)
            return [float(len(c)) for c in completions]

        began = time.monotonic()
        run = self.train([reward], settings={"run.phases": 100})
        self.assertLess(time.monotonic() - began, 300)
        self.assertTrue(run.checkpoint.endswith("000001"), run.checkpoint)

    def test_two_interrupts(self):
        calls = []

        def reward(completions, **kwargs):
            calls.append(1)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGINT)
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(600)
            return [float(len(c)) for c in completions]

        began = time.monotonic()
        with self.assertRaises(rlhf_host.Interrupted) as caught:
            self.train([reward], settings={"run.phases": 100})
        self.assertLess(time.monotonic() - began, 300)
        self.assertIsInstance(caught.exception, KeyboardInterrupt)
        self.assertEqual(len(caught.exception.run.metrics), 1)

    def test_a_time_limit(self):
        calls = []

        def reward(completions, **kwargs):
            calls.append(1)
            if len(calls) == 2:
                time.sleep(600)
            return [float(len(c)) for c in completions]

        began = time.monotonic()
        error = self.failure([reward], settings={"rewards.timeout_s": 2})
        self.assertLess(time.monotonic() - began, 300)
        self.assertIn("did not answer within 2 s (rewards.timeout_s) while it scored 8 rows", str(error))
        self.assertEqual(error.status, 1)

    def test_not_in_the_main_thread(self):
        import threading
        found = []
        thread = threading.Thread(target=lambda: found.append(self.train([lengths])))
        thread.start()
        thread.join()
        self.assertEqual(len(found[0].metrics), 2)

    def test_the_death_of_the_caller(self):
        """The program ends too."""
        script = textwrap.dedent(f"""
            import sys
            sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
            from support import SETTINGS, rlhf_host
            rlhf_host.train("grpo", {self.model!r}, ["period_count"], ["It was"], out={self.path('run')!r},
                            settings=dict(SETTINGS, **{{"run.phases": 1000000}}), progress="none")
        """)
        run = rlhf_host.Run(self.path("run"))
        with subprocess.Popen([sys.executable, "-c", script]) as caller:
            until = time.monotonic() + 300
            while not run.metrics and time.monotonic() < until:
                time.sleep(0.05)
            caller.kill()
        while run.state["state"] == "running" and time.monotonic() < until:
            time.sleep(0.05)
        self.assertIn(run.state["state"], ("stopped", "died"))


if __name__ == "__main__":
    unittest.main()
