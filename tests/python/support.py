"""A tiny model and its settings for tests of the package. usage of a test: test_x.py (with RLHF_HOST set)"""
import json
import os
import shutil
import sys
import tempfile
import unittest

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "python"))

import rlhf_host  # noqa: E402

PROGRAM = os.environ.get("RLHF_HOST", "")

SETTINGS = {"policy.init": "random", "batch.size": 8, "algo.group_size": 4, "sampling.max_new_tokens": 4, "run.phases": 2,
            "run.threads": 1, "log.tensorboard": False}


def bytes_to_unicode():
    """The spelling of bytes in the vocabulary of GPT-2."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelling, n = {b: chr(b) for b in plain}, 0
    for b in range(256):
        if b not in spelling:
            spelling[b] = chr(256 + n)
            n += 1
    return spelling


def write_model(folder):
    """Writes a GPT-2 of two layers of width 32, without weights."""
    os.makedirs(folder)
    vocabulary = {c: b for b, c in bytes_to_unicode().items()}
    vocabulary.update({"th": 256, "the": 257, "in": 258, "<|endoftext|>": 259})
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 260, "n_positions": 64, "n_embd": 32,
              "n_layer": 2, "n_head": 2, "layer_norm_epsilon": 1e-05, "initializer_range": 0.02,
              "activation_function": "gelu_new", "bos_token_id": 259, "eos_token_id": 259}
    for name, text in (("vocab.json", json.dumps(vocabulary)), ("merges.txt", "#version: 0.2\nt h\nth e\ni n\n"),
                       ("config.json", json.dumps(config))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


class Case(unittest.TestCase):
    """A test in a folder of its own, self.at, with the model self.model."""

    def setUp(self):
        self.at = tempfile.mkdtemp(prefix="rlhf-test-")
        self.addCleanup(shutil.rmtree, self.at, ignore_errors=True)
        self.model = os.path.join(self.at, "model")
        write_model(self.model)

    def path(self, name):
        return os.path.join(self.at, name)

    def train(self, rewards, out="run", settings={}, **more):
        """Trains for two phases by grpo."""
        arguments = dict(algo="grpo", policy=self.model, prompts=["It was", "The film"], out=out and self.path(out), progress="none")
        arguments.update(more)
        return rlhf_host.train(rewards=rewards, settings={**SETTINGS, **settings}, **arguments)

    def failure(self, *arguments, **more):
        """Returns the exception of a training run."""
        with self.assertRaises(rlhf_host.Error) as caught:
            self.train(*arguments, **more)
        return caught.exception


def lengths(completions, **kwargs):
    return [float(len(c)) for c in completions]
