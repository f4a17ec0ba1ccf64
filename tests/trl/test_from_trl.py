#!/usr/bin/env python3
"""Checks from_trl: what becomes of values, and that the program accepts the settings.

Usage: test_from_trl.py PACKAGES PROGRAM
"""
import dataclasses
import enum
import os
import shlex
import subprocess
import sys
import tempfile
import unittest

PACKAGES, PROGRAM = sys.argv[1], sys.argv[2]
sys.path.insert(0, PACKAGES)
from rlhf_host._error import Error  # noqa: E402
from rlhf_host.from_trl import from_trl  # noqa: E402


def row(found, field):
    return next(r for r in found.report if r.field == field)


def grpo(rows=None, processes=1, **fields):
    return from_trl(fields, "GRPOConfig", rows=rows, processes=processes)


class Values(unittest.TestCase):
    def sets(self, found, **expected):
        got = {path: found.settings.get(path, "nothing") for path in (key.replace("__", ".") for key in expected)}
        self.assertEqual(got, {key.replace("__", "."): value for key, value in expected.items()})

    def test_batches(self):
        # one step: the batch is what TRL accumulates
        self.sets(grpo(per_device_train_batch_size=4, gradient_accumulation_steps=6),
                  batch__size=24, algo__minibatches=1, algo__epochs=1, algo__group_size=8)
        # four microbatches are sampled, and a step takes two of them
        self.sets(grpo(per_device_train_batch_size=4, gradient_accumulation_steps=2, steps_per_generation=4, num_iterations=3),
                  batch__size=16, algo__minibatches=2, algo__epochs=3)
        self.sets(grpo(per_device_train_batch_size=4, generation_batch_size=64, processes=2), batch__size=64, algo__minibatches=8)
        # a step takes two batches of responses
        found = grpo(per_device_train_batch_size=8, gradient_accumulation_steps=2, steps_per_generation=1)
        self.sets(found, batch__size=16, algo__minibatches=1)
        self.assertEqual(row(found, "per_device_train_batch_size").becomes, "not here")  # the mean over tokens is of a part
        found = grpo(per_device_train_batch_size=8, gradient_accumulation_steps=2, steps_per_generation=1, loss_type="grpo")
        self.assertEqual(row(found, "per_device_train_batch_size").becomes, "ours")
        # the same responses twice in one step are one pass over them
        self.sets(grpo(per_device_train_batch_size=8, gradient_accumulation_steps=2, steps_per_generation=1, num_iterations=2),
                  batch__size=8, algo__minibatches=1, algo__epochs=1)
        # not a multiple: told, not guessed
        found = grpo(per_device_train_batch_size=8, gradient_accumulation_steps=2, steps_per_generation=3, num_iterations=2)
        self.assertEqual(row(found, "per_device_train_batch_size").becomes, "not here")
        for kind in ("SFT", "DPO", "KTO", "Reward", "Distillation"):
            self.sets(from_trl({"gradient_accumulation_steps": 4}, kind + "Config", processes=2), batch__size=64)

    def test_how_long(self):
        self.sets(grpo(max_steps=100), run__phases=100)
        # six steps a phase: 100 steps are 16 phases and two thirds
        found = grpo(max_steps=100, steps_per_generation=3, num_iterations=2, warmup_steps=12, save_steps=60, num_generations=8)
        self.sets(found, run__phases=17, optim__warmup=2, optim__warmup_from="zero", checkpoint__every=10)
        # 1,000 prompts, 1 prompt per phase of 8 responses, 3 passes
        self.sets(grpo(rows=1000), run__phases=3000)
        self.sets(grpo(rows=1000, gradient_accumulation_steps=16, warmup_steps=0.1), run__phases=186, optim__warmup=19)
        self.assertNotIn("run.phases", grpo().settings)
        self.assertEqual(row(grpo(), "num_train_epochs").becomes, "not here")
        self.assertEqual(row(grpo(warmup_steps=0.1), "warmup_steps").becomes, "not here")
        sft = from_trl({"num_train_epochs": 2, "warmup_steps": 0.1}, "SFTConfig", rows=100)
        self.sets(sft, data__epochs=2, optim__warmup=3)  # 13 steps a pass
        self.assertNotIn("run.phases", sft.settings)

    def test_schedules(self):
        self.sets(grpo(), optim__schedule="linear", optim__final_scale=0, optim__schedule_phases=0, optim__warmup=0)
        self.sets(grpo(lr_scheduler_type="cosine"), optim__schedule="cosine", optim__final_scale=0)
        found = grpo(lr_scheduler_type="cosine_with_min_lr", learning_rate=1e-5, lr_scheduler_kwargs={"min_lr": 1e-6})
        self.sets(found, optim__schedule="cosine", optim__final_scale=0.1)
        self.sets(grpo(lr_scheduler_type="cosine_with_min_lr", lr_scheduler_kwargs={"min_lr_rate": 0.3}), optim__final_scale=0.3)
        self.sets(grpo(lr_scheduler_type="polynomial", learning_rate=1e-5), optim__schedule="linear", optim__final_scale=0.01)
        # the schedule constant has no warm-up in transformers
        self.sets(grpo(lr_scheduler_type="constant", warmup_steps=5), optim__schedule="constant", optim__warmup=0)
        self.sets(grpo(lr_scheduler_type="constant_with_warmup", warmup_steps=5), optim__schedule="constant", optim__warmup=5)
        for shape in ("inverse_sqrt", "cosine_with_restarts", "warmup_stable_decay"):
            self.assertEqual(row(grpo(lr_scheduler_type=shape), "lr_scheduler_type").becomes, "not here")
        self.assertEqual(row(grpo(lr_scheduler_type="cosine", lr_scheduler_kwargs={"num_cycles": 2}), "lr_scheduler_type").becomes,
                         "not here")

    def test_loss_of_grpo(self):
        self.sets(grpo(), algo__loss="dapo", algo__ratio="token", algo__kl_coef=0, algo__clip_range=0.2,
                  algo__advantage_scale="group", algo__kl_estimator="nothing", algo__clip_range_high="nothing")
        self.sets(grpo(scale_rewards=False), algo__advantage_scale="none")
        self.sets(grpo(scale_rewards="batch", importance_sampling_level="sequence", loss_type="grpo"),
                  algo__advantage_scale="batch", algo__ratio="sequence_mean")
        self.sets(grpo(multi_objective_aggregation="normalize_then_sum", scale_rewards="none"),
                  algo__advantage_rewards="each", algo__advantage_scale="group")
        self.sets(grpo(epsilon_high=0.28), algo__clip_range_high=0.28)
        self.sets(grpo(loss_type="cispo", epsilon_high=5.0), algo__clip_range_high=4, algo__clip_range="nothing")
        self.assertEqual(row(grpo(loss_type="cispo"), "epsilon_high").becomes, "not here")  # TRL's bound is 0.2 then
        self.sets(grpo(loss_type="sapo", sapo_temperature_neg=2.0), algo__sapo_temperature_neg=2, algo__clip_range="nothing")
        self.sets(grpo(delta=4.0), algo__dual_clip=4)
        self.assertEqual(row(grpo(delta=1.1), "delta").becomes, "not here")
        self.assertNotIn("algo.dual_clip", grpo(delta=4.0, loss_type="cispo", epsilon_high=5.0).settings)
        self.assertEqual(row(grpo(loss_type="bnpo", gradient_accumulation_steps=2), "loss_type").becomes, "not here")
        self.assertEqual(row(grpo(loss_type="bnpo"), "loss_type").becomes, "ours")
        for loss in ("luspo", "vespo"):
            self.assertEqual(row(grpo(loss_type=loss), "loss_type").becomes, "not here")
        self.assertEqual(row(grpo(vespo_k_pos=1.0), "vespo_k_pos").becomes, "same")

    def test_kl(self):
        # TRL multiplies its KL by the ratio: with one step, the gradient is that of k2
        self.sets(grpo(beta=0.04), algo__kl_coef=0.04, algo__kl_estimator="k2")
        self.sets(grpo(beta=0.04, use_bias_correction_kl=False), algo__kl_estimator="k3")
        for other in ({"num_iterations": 2}, {"importance_sampling_level": "sequence"}):
            self.assertEqual(row(grpo(beta=0.04, **other), "use_bias_correction_kl").becomes, "not here")
        self.assertEqual(row(grpo(num_iterations=2), "use_bias_correction_kl").becomes, "ours")
        found = grpo(beta=0.04, sync_ref_model=True, ref_model_mixup_alpha=1.0, ref_model_sync_steps=64)
        self.assertEqual((found.algo, found.settings["algo.iteration_phases"]), ("grpo_iterative", 64))
        self.assertEqual(row(grpo(beta=0.04, sync_ref_model=True), "sync_ref_model").becomes, "not here")

    def test_changed_and_not_supported(self):
        changed = {"repetition_penalty": 1.1, "top_entropy_quantile": 0.2, "vllm_structured_outputs_regex": "a+", "fp16": True,
                   "use_adaptive_entropy": True, "off_policy_mask_threshold": 0.5, "num_generations_eval": 4, "data_seed": 3,
                   "generation_kwargs": {"num_beams": 4}, "neftune_noise_alpha": 5.0, "optim": "lion_32bit", "push_to_hub": True,
                   "deepspeed": "ds.json", "model_init_kwargs": {"load_in_4bit": True}, "report_to": ["mlflow"]}
        found = grpo(num_iterations=2, **changed)
        self.assertEqual({name for name in changed if row(found, name).becomes != "not here"}, set())
        for name in changed:
            self.assertTrue(row(found, name).why, name)
            self.assertIn(f"  {name}=", str(found))
        # without effect in TRL, too
        self.assertEqual(row(grpo(off_policy_mask_threshold=0.5), "off_policy_mask_threshold").becomes, "same")
        for name in ("use_vllm", "vllm_mode", "gradient_checkpointing", "torch_compile"):
            self.assertEqual(row(grpo(**{name: True}), name).becomes, "not needed")

    def test_entropy(self):
        self.sets(grpo(entropy_coef=0.01), algo__entropy_coef=0.01)
        for loss in ("grpo", "dr_grpo", "sapo"):
            self.assertEqual(row(grpo(entropy_coef=0.01, loss_type=loss), "entropy_coef").becomes, "not here")

    def test_sampling(self):
        self.sets(grpo(temperature=0.7, top_p=0.9, top_k=20, min_p=0.1, max_completion_length=64, max_tool_calling_iterations=3),
                  sampling__temperature=0.7, sampling__top_p=0.9, sampling__top_k=20, sampling__min_p=0.1,
                  sampling__max_new_tokens=64, episodes__turns=4)
        self.sets(grpo(generation_kwargs={"stop_strings": "END", "do_sample": True, "top_k": 5}), sampling__stop=["END"],
                  sampling__top_k=5)
        self.sets(grpo(chat_template_kwargs={"enable_thinking": False}), prompts__template_vars={"enable_thinking": False})
        self.sets(grpo(top_k=-1), sampling__top_k=0)

    def test_files_of_a_run(self):
        found = grpo(output_dir="runs/a", report_to=["wandb", "tensorboard"], reward_weights=[1, 0.5], save_strategy="no",
                     log_completions=True, num_completions_to_print=3)
        self.assertEqual({k: v for k, v in found.arguments.items() if k != "settings"},
                         {"algo": "grpo", "out": "runs/a", "sink": ["wandb.so"], "reward_weights": [1, 0.5]})
        self.sets(found, checkpoint__every=0, checkpoint__every_s=0, log__samples=3)
        self.sets(grpo(eval_strategy="steps", eval_steps=20, save_total_limit=4), data__eval_every=20, checkpoint__keep=4)
        found = from_trl({"load_best_model_at_end": True, "eval_strategy": "steps"}, "SFTConfig")
        self.sets(found, checkpoint__best="eval/loss", checkpoint__best_mode="min", data__eval_every=10)
        found = from_trl({"load_best_model_at_end": True, "metric_for_best_model": "eval_rewards/margins"}, "DPOConfig")
        self.sets(found, checkpoint__best="eval/margin", checkpoint__best_mode="max")
        self.assertEqual(row(from_trl({"load_best_model_at_end": True}, "DPOConfig"), "load_best_model_at_end").becomes, "not here")

    def test_dpo(self):
        def dpo(**fields):
            return from_trl(fields, "DPOConfig")
        self.sets(dpo(), algo__loss="sigmoid", algo__beta=0.1, data__max_tokens=1024)
        self.sets(dpo(max_length=None, loss_type=["ipo"]), algo__loss="ipo", data__max_tokens=0)
        # TRL's sigmoid ignores label_smoothing
        self.sets(dpo(label_smoothing=0.1), algo__label_smoothing="nothing")
        self.sets(dpo(label_smoothing=0.1, loss_type="robust"), algo__label_smoothing=0.1, algo__loss="robust")
        self.sets(dpo(loss_type="robust"), algo__loss="sigmoid")
        for loss in ("exo_pair", ["sigmoid", "sft"], "bco_pair"):
            self.assertEqual(row(dpo(loss_type=loss), "loss_type").becomes, "not here")
        for name, value in (("f_divergence_type", "js_divergence"), ("ld_alpha", 0.5), ("use_weighting", True),
                            ("loss_weights", [2.0]), ("sync_ref_model", True)):
            self.assertEqual(row(dpo(**{name: value}), name).becomes, "not here", name)

    def test_others(self):
        self.sets(from_trl({"packing": True, "max_length": 256, "gradient_accumulation_steps": 2, "packing_strategy": "bfd_split"},
                           "SFTConfig"), data__batch_tokens=4096, batch__size="nothing", data__long_rows="split")
        self.assertEqual(row(from_trl({"completion_only_loss": False}, "SFT"), "completion_only_loss").becomes, "not here")
        self.assertEqual(row(from_trl({"loss_type": "dft"}, "SFT"), "loss_type").becomes, "not here")
        self.sets(from_trl({"assistant_only_loss": True, "bf16": False}, "SFT"), data__assistant_only=True, compute__dtype="f32")
        self.sets(from_trl({"undesirable_weight": 2.0, "loss_type": "apo_zero_unpaired"}, "KTOConfig"), data__shuffle=False,
                  algo__undesirable_weight=2, algo__loss="apo_zero_unpaired")
        self.sets(from_trl({"center_rewards_coefficient": 0.01}, "RewardConfig"), algo__center_coef=0.01, score__pooling="last",
                  score__calibrate=0)
        for beta, divergence in ((0, "forward"), (1.0, "reverse"), (0.3, "js")):
            self.sets(from_trl({"beta": beta}, "DistillationConfig"), algo__divergence=divergence,
                      algo__beta=beta if divergence == "js" else "nothing")
        rloo = from_trl({"reward_clip_range": (-2, 2), "epsilon_high": 0.3}, "RLOOConfig")
        self.sets(rloo, rewards__clip=2, algo__kl_coef=0.05, algo__group_size=2)
        self.assertEqual(row(rloo, "epsilon_high").becomes, "not here")


class Inputs(unittest.TestCase):
    def test_nothing_is_dropped(self):
        found = grpo(learning_rat=1, max_prompt_length=99, tokenizer=None, model_name_or_path="x", evaluation_strategy="no")
        self.assertEqual((row(found, "learning_rat").becomes, row(found, "learning_rat").why),
                         ("unknown", 'did you mean "learning_rate"?'))
        self.assertEqual(found.settings["prompts.max_tokens"], 99)
        self.assertEqual(row(found, "tokenizer").becomes, "unknown")
        self.assertIn("data.eval_every", row(found, "evaluation_strategy").why)
        for name in ("learning_rat", "tokenizer", "model_name_or_path", "evaluation_strategy"):
            self.assertIn(f"  {name}=", str(found))
        self.assertGreaterEqual(len(found.report), 79 + 100)

    def test_objects(self):
        class Schedule(enum.Enum):
            COSINE = "cosine"

        @dataclasses.dataclass
        class GRPOConfig:
            learning_rate: float = 1e-6
            lr_scheduler_type: Schedule = Schedule.COSINE
            accelerator_config: object = None
            beta: float = 0.0
            mine: object = None

        class MyConfig(GRPOConfig):
            pass

        found = from_trl(MyConfig(accelerator_config=unittest, mine=object()))
        self.assertEqual((found.algo, found.settings["optim.schedule"]), ("grpo", "cosine"))
        self.assertEqual([row(found, name).is_default for name in ("learning_rate", "beta", "lr_scheduler_type")],
                         [True, True, False])
        self.assertEqual((row(found, "mine").becomes, row(found, "mine").value), ("unknown", "<object>"))

    def refuses(self, sentence, *args, **kwargs):
        with self.assertRaises(Error) as caught:
            from_trl(*args, **kwargs)
        self.assertIn(sentence, str(caught.exception))

    def test_refused(self):
        self.refuses("a dict does not say what it configures", {})
        self.refuses('did you mean "GRPOConfig"?', {}, "GRPOCnfig")
        self.refuses("config is of type int", 3)
        self.refuses("num_generations is 3, which does not divide the 8 responses", {"num_generations": 3}, "GRPOConfig")
        self.refuses("expected a multiple of", {"generation_batch_size": 12}, "GRPOConfig")
        self.refuses("per_device_train_batch_size is 0; expected an integer of at least 1", {"per_device_train_batch_size": 0}, "SFT")
        self.refuses("scale_rewards is sometimes; expected one of group, batch, none", {"scale_rewards": "sometimes"}, "GRPOConfig")
        self.refuses("rows is 0", {}, "GRPOConfig", rows=0)
        self.refuses("lr_scheduler_kwargs is 3; expected a dict", {"lr_scheduler_kwargs": 3}, "SFT")


class Program(unittest.TestCase):
    """The program accepts the settings, which are typed, so that none may be without effect."""

    def accepts(self, found, more):
        command = [PROGRAM, *shlex.split(found.command())[1:], *more, "--dry-run"]
        with tempfile.TemporaryDirectory() as work:
            for name, text in (("rows.jsonl", '{"text": "a film"}'), ("pairs.jsonl", '{"prompt": "a", "chosen": "b", "rejected": "c"}'),
                               ("labels.jsonl", '{"prompt": "a", "completion": "b", "label": true}\n{"prompt": "a", "completion": "c", "label": false}')):
                with open(os.path.join(work, name), "w", encoding="utf-8") as file:
                    file.write((text + "\n") * 8)
            ran = subprocess.run(command, cwd=work, capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, shlex.join(command) + "\n" + ran.stderr)

    def test_accepted(self):
        reward = ["--reward", "period_count.so"]
        small = {"max_completion_length": 16, "max_steps": 3}
        for fields in ({}, {"beta": 0.04, "num_iterations": 2, "lr_scheduler_type": "constant", "epsilon_high": 0.28, "delta": 3.0},
                       {"beta": 0.04, "loss_type": "sapo", "scale_rewards": "none", "warmup_steps": 2, "entropy_coef": 0.0},
                       {"loss_type": "cispo", "epsilon_high": 5.0, "mask_truncated_completions": True, "entropy_coef": 0.01},
                       {"beta": 0.1, "sync_ref_model": True, "ref_model_mixup_alpha": 1.0, "multi_objective_aggregation": "normalize_then_sum"},
                       {"loss_type": "grpo", "importance_sampling_level": "sequence", "generation_kwargs": {"stop": ["x"]}, "report_to": "none"}):
            self.accepts(grpo(**small, **fields), reward)
        self.accepts(from_trl({**small, "reward_clip_range": [-1, 1]}, "RLOOConfig"), reward)
        teacher = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "..", "models", "policy")
        self.accepts(from_trl({**small, "beta": 0.5, "teacher_model_name_or_path": teacher}, "DistillationConfig"), [])
        short = {"max_length": 32}
        for kind, fields, data in (("SFT", {}, "rows"), ("SFT", {"packing": True, "max_steps": 2}, "rows"), ("DPO", {}, "pairs"),
                                   ("DPO", {"loss_type": "robust", "label_smoothing": 0.1}, "pairs"), ("KTO", {}, "labels"),
                                   ("Reward", {"center_rewards_coefficient": 0.01}, "pairs")):
            self.accepts(from_trl({**short, **fields}, kind + "Config"), ["--data", data + ".jsonl"])


    def test_trained(self):
        import rlhf_host
        os.environ["RLHF_HOST"] = PROGRAM
        with tempfile.TemporaryDirectory() as work:
            found = grpo(output_dir=os.path.join(work, "run"), max_steps=1, max_completion_length=4, num_iterations=2, beta=0.1,
                         num_generations=4, reward_weights=[0.5], report_to="none", bf16=False)
            run = rlhf_host.train(rewards=[lambda completions, **_: [float(len(c)) for c in completions]],
                                  prompts=["It was", "The film"], progress="none", **found.arguments)
            self.assertEqual(run.out, found.arguments["out"])
            self.assertEqual((run.settings["algo"]["plugin"], run.settings["algo"]["epochs"], run.settings["batch"]["size"],
                              run.settings["compute"]["dtype"], len(run.metrics)), ("grpo.so", 2, 8, "f32", 1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
