"""Cells of a notebook: a function of a cell, a coroutine, the display, the report, an exception, the stop button. Skipped without
the packages nbclient and ipykernel."""
import asyncio
import importlib.util
import os
import sys
import unittest

from support import Case

if not all(map(importlib.util.find_spec, ("ipykernel", "nbclient", "nbformat"))):
    sys.exit(77)
import nbformat  # noqa: E402
from nbclient import NotebookClient  # noqa: E402

FIRST = """
import sys, time
sys.path.insert(0, {here!r})
from support import SETTINGS, rlhf_host
bonus = 0.5
def mine(completions, **kwargs):
    return [len(c) + bonus for c in completions]
async def other(completions, **kwargs):
    return [1.0] * len(completions)
def wrong(completions, **kwargs):
    return [bonus / (len(completions) - 8) for c in completions]
def slow(completions, **kwargs):
    time.sleep(0.2)
    return mine(completions)
def train(rewards, out, **settings):
    return rlhf_host.train("grpo", {model!r}, rewards, ["It was"], out={at!r} + "/" + out, settings=dict(SETTINGS, **settings))
"""
CELLS = ("run = train([mine, other], 'a')", "run.report()", "train([wrong], 'b')",
         "run = train([slow], 'c', **{'run.phases': 100000})\nprint(run.state['state'])")


def text(cell):
    return str([output.get("data", output) for output in cell.outputs])


class Cells(Case):
    async def execute(self, client, notebook):
        async with client.async_setup_kernel():
            for i, cell in enumerate(notebook.cells):
                task = asyncio.ensure_future(client.async_execute_cell(cell, i))
                while i == len(CELLS) and "phase 2/" not in text(cell):
                    await asyncio.sleep(0.1)
                    if task.done():
                        break
                if i == len(CELLS):
                    await client.km.interrupt_kernel()
                await task

    def test_cells(self):
        notebook = nbformat.v4.new_notebook()
        here = os.path.dirname(os.path.abspath(__file__))
        first = FIRST.format(here=here, model=self.model, at=self.at)
        notebook.cells = [nbformat.v4.new_code_cell(code) for code in (first, *CELLS)]
        asyncio.run(self.execute(NotebookClient(notebook, timeout=600, allow_errors=True, kernel_name="python3"), notebook))
        _, trained, report, failed, stopped = notebook.cells
        self.assertIn("phase 2/2", text(trained))
        self.assertIn("<iframe", text(report))
        self.assertIn("ZeroDivisionError", text(failed))
        self.assertIn("the notebook: wrong() failed: line 10, in ", text(failed))
        self.assertIn("direct cause", text(failed))
        self.assertIn("stopped\\n", text(stopped))


if __name__ == "__main__":
    unittest.main()
