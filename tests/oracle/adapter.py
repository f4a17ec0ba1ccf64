#!/usr/bin/env python3
"""Loads PEFT's adapters in this program, and this program's adapters in PEFT.

Usage: adapter.py HOST WORK [CASE ...]

HOST is the program, WORK an empty directory. For each family, with random weights:
- an adapter of PEFT, merged by the program, equals PEFT's merge_and_unload within 1e-4;
- the program's greedy tokens with the adapter are those of the merged model in transformers;
- a run's checkpoint and its export load into PEFT without missing or extra keys, and give the
  program's merged weights and the same greedy tokens;
- llama.cpp's LoRA file of PEFT's adapter, added to the tensors of the base's GGUF file as llama.cpp does, gives those of
  the merged model's GGUF file within 1e-4;
- a reward model's adapter includes its score head (if transformers has such a class of the family).
Exit status 0: all of this holds; 1: something does not.
"""
import json
import os
import subprocess
import sys

import forms
import numpy as np
import torch
import transformers as hf
from gguf import GGUFReader
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import safe_open
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES as CLASSIFIERS

HOST, WORK = sys.argv[1:3]
LINES = ["The river was better than the bread.", "A film. It wasn't so, and in 1987 it was.",
         "She said that they'd seen 12345 of them; nobody knew why.",
         "What the house had lost the garden kept."] * 8
PROMPTS = ["The river that", "It was the house", "She said because they", "Why and 12"]
ROTARY = dict(vocab_size=0, hidden_size=48, intermediate_size=88, num_hidden_layers=2,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
              initializer_range=0.2)
SCALARS = dict(embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.08, logits_scaling=1.5)
GEMMA = dict(head_dim=16, sliding_window=7, query_pre_attn_scalar=8, layer_types=["sliding_attention", "full_attention"],
             pad_token_id=None)
CASES = {
    "gpt2": (hf.GPT2Config, dict(n_embd=32, n_layer=2, n_head=2, n_positions=128,
                                 initializer_range=0.2), "gpt2"),
    "llama": (hf.LlamaConfig, ROTARY | dict(head_dim=16, tie_word_embeddings=False), "llama3"),
    "qwen2": (hf.Qwen2Config, ROTARY | dict(num_attention_heads=3, num_key_value_heads=1,
                                            tie_word_embeddings=True), "qwen2"),
    "qwen3": (hf.Qwen3Config, ROTARY | dict(head_dim=16, tie_word_embeddings=True), "qwen2"),
    "smollm3": (hf.SmolLM3Config, ROTARY | dict(head_dim=16, no_rope_layers=[0, 1], attention_bias=True,
                                                pad_token_id=None),
                "llama3"),
    "granite": (hf.GraniteConfig, ROTARY | SCALARS | dict(head_dim=16, tie_word_embeddings=True), "llama3"),
    "phi3": (hf.Phi3Config, ROTARY | dict(hidden_size=64, partial_rotary_factor=0.5, pad_token_id=None), "llama3"),
    "granitemoehybrid": (hf.GraniteMoeHybridConfig, ROTARY | SCALARS | dict(
        head_dim=16, layer_types=["attention"] * 2, num_local_experts=0, shared_intermediate_size=88,
        position_embedding_type="rope", mamba_n_heads=4, mamba_d_head=24), "llama3"),
    "olmo2": (hf.Olmo2Config, ROTARY | dict(hidden_size=64, attention_bias=True, pad_token_id=None), "llama3"),
    "olmo3": (hf.Olmo3Config, ROTARY | dict(sliding_window=7, layer_types=["sliding_attention", "full_attention"],
                                            hidden_size=64, pad_token_id=None), "llama3"),
    "gemma2": (hf.Gemma2Config, ROTARY | GEMMA | dict(attn_logit_softcapping=2.0, final_logit_softcapping=5.0), "qwen2"),
    "vaultgemma": (hf.VaultGemmaConfig, ROTARY | GEMMA | dict(attn_logit_softcapping=None, final_logit_softcapping=None), "qwen2"),
    "gemma3": (hf.Gemma3TextConfig, ROTARY | GEMMA, "qwen2"),
    "qwen3.5": (hf.Qwen3_5TextConfig, ROTARY | dict(
        head_dim=16, num_hidden_layers=3, full_attention_interval=2, linear_num_key_heads=2, linear_num_value_heads=6,
        linear_key_head_dim=16, linear_value_head_dim=16, pad_token_id=None), "qwen35"),
    "lfm2": (hf.Lfm2Config, ROTARY | dict(head_dim=16, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False,
                                          pad_token_id=None), "lfm2"),
}
IN_GGUF = ("gpt2", "llama", "qwen2", "qwen3", "granite", "phi3", "granitemoehybrid", "qwen3.5", "lfm2")  # as the cases are here
failed = []


def say(name, what, good, detail=""):
    print(f"{name}: {what}: {'ok' if good else 'WRONG'} {detail}", flush=True)
    if not good:
        failed.append(f"{name}: {what}")


def host(*args):
    done = subprocess.run([HOST, *args], capture_output=True, text=True, cwd=WORK)
    if done.returncode:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def make(name):
    kind, fields, form = CASES[name]
    tok = forms.make(form, LINES, 500)
    forms.save(tok, form, f"{WORK}/{name}")
    torch.manual_seed(7)
    eos = tok.token_to_id(forms.FORMS[form][2]["eos"])
    fields = fields | {"vocab_size": tok.get_vocab_size(), "bos_token_id": None, "eos_token_id": eos}
    hf.AutoModelForCausalLM.from_config(kind(**fields)).save_pretrained(f"{WORK}/{name}")


def base(name):
    return hf.AutoModelForCausalLM.from_pretrained(f"{WORK}/{name}").eval()


def furthest(a, b):
    a, b = dict(a.named_parameters()), dict(b.named_parameters())
    return max((a[k] - b[k]).abs().max().item() for k in a) if a.keys() == b.keys() else float("inf")


def greedy(name, what, model, *args):
    rows = [json.loads(line) for line in host(
        "generate", *args, "--prompts", "prompts.txt", "--greedy", "--max-new", "20",
        "--ignore-eos", "--json", "--dtype", "f32").splitlines()]
    model.generation_config.eos_token_id = None
    same = 0
    for row in rows:
        n = len(row["ids"]) - 20
        with torch.no_grad():
            out = model.generate(torch.tensor([row["ids"][:n]]), max_new_tokens=20, do_sample=False,
                                 pad_token_id=0, attention_mask=torch.ones(1, n, dtype=torch.long))
        same += out[0].tolist() == row["ids"]
    say(name, f"greedy tokens, {what}", same == len(rows) == len(PROMPTS), f"{same} of {len(rows)}")


def theirs(name, **fields):
    """Uses PEFT's adapter in this program."""
    torch.manual_seed(3)
    model = get_peft_model(base(name), LoraConfig(r=4, lora_alpha=6, task_type="CAUSAL_LM",
                                                  fan_in_fan_out=name == "gpt2", **fields))
    for key, p in model.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(p, std=0.3)
    model.save_pretrained(f"{WORK}/theirs")
    want = model.merge_and_unload().eval()
    host("export", name, "--adapter", "theirs", "--merge", "--to", "merged", "--force")
    got = hf.AutoModelForCausalLM.from_pretrained(f"{WORK}/merged")
    far = furthest(want, got)
    say(name, f"merged, {fields}", far < 1e-4, f"{far:.1e}")
    greedy(name, "PEFT's adapter", want, "--model", name, "--adapter", "theirs")
    if name in IN_GGUF:
        lora_file(name)


def lora_file(name):
    """Adds alpha / rank B A to each tensor of the base."""
    host("export", name, "--gguf", "base.gguf", "--dtype", "f32", "--force")
    host("export", name, "--adapter", "theirs", "--merge", "--gguf", "merged.gguf", "--dtype", "f32", "--force")
    host("export", name, "--adapter", "theirs", "--gguf", "lora.gguf", "--force")
    lora = GGUFReader(f"{WORK}/lora.gguf")
    matrices = {t.name: t.data for t in lora.tensors}
    alpha = lora.fields["adapter.lora.alpha"].contents()
    base, merged = ({t.name: t.data for t in GGUFReader(f"{WORK}/{f}.gguf").tensors} for f in ("base", "merged"))
    far, changed = 0, 0
    for tensor, w in base.items():
        a, b = matrices.pop(tensor + ".lora_a", None), matrices.pop(tensor + ".lora_b", None)
        if a is not None:
            w, changed = w + alpha / len(a) * (b @ a), changed + 1
        far = max(far, float(np.abs(w - merged[tensor]).max()))
    kind = [lora.fields[k].contents() for k in ("general.type", "adapter.type")]
    say(name, f"LoRA file of {changed} tensors", far < 1e-4 and changed > 0 and not matrices and
        kind == ["adapter", "lora"], f"{far:.1e} {sorted(matrices)[:2] or ''}")


def load(name, directory, model):
    """Loads an adapter of this program in PEFT, which must use all of its keys."""
    out = PeftModel.from_pretrained(model, directory)
    with safe_open(f"{directory}/adapter_model.safetensors", "pt") as f:
        keys = set(f.keys())
    from peft import get_peft_model_state_dict
    # A SEQ_CLS model of PEFT saves "classifier" and "score", if they exist.
    own = set(get_peft_model_state_dict(out))
    say(name, f"{len(keys)} keys in PEFT", keys == own, str(sorted(keys ^ own)[:3] or ""))
    return out


def ours(name):
    """Loads results of runs in PEFT."""
    host("--algo", "sft.so", "--data", "texts.txt", "--policy", name, "--out", "run", "--phases", "4",
         "--set", "policy.adapter.rank=4", "--set", "optim.lr=0.01", "--set", "compute.dtype=f32",
         "--set", "batch.size=4")
    host("export", "run", "--merge", "--to", "merged", "--force")
    host("export", "run", "--to", "apart", "--base-model", "someone/base")
    with open(f"{WORK}/apart/adapter_config.json") as f:
        say(name, "base_model_name_or_path",
            json.load(f)["base_model_name_or_path"] == "someone/base")
    got = hf.AutoModelForCausalLM.from_pretrained(f"{WORK}/merged").eval()
    say(name, "trained", furthest(base(name), got) > 1e-3)
    for directory in ("run/checkpoints/latest", "apart"):
        model = load(name, f"{WORK}/{directory}", base(name)).merge_and_unload().eval()
        far = furthest(model, got)
        say(name, f"{directory} merged by PEFT", far < 1e-4, f"{far:.1e}")
    greedy(name, "a run's checkpoint", model, "--model", "run/checkpoints/latest")


def scored(name):
    """A reward model's score head is among modules_to_save."""
    host("--algo", "bradley_terry.so", "--data", "pairs.jsonl", "--policy", name, "--out", "rm",
         "--phases", "2", "--set", "policy.adapter.rank=2", "--set", "optim.lr=0.01", "--set",
         "score.calibrate=0", "--set", "compute.dtype=f32")
    model = hf.AutoModelForSequenceClassification.from_pretrained(f"{WORK}/{name}", num_labels=1)
    out = load(name, f"{WORK}/rm/checkpoints/latest", model)
    with safe_open(f"{WORK}/rm/checkpoints/latest/adapter_model.safetensors", "pt") as f:
        head = f.get_tensor("base_model.model.score.weight")
    kept = [p for k, p in out.named_parameters() if k.endswith("modules_to_save.default.weight")]
    say(name, "score head", len(kept) == 1 and torch.equal(kept[0], head))


hf.logging.set_verbosity_error()
with open(f"{WORK}/prompts.txt", "w") as out:
    out.write("\n".join(PROMPTS) + "\n")
with open(f"{WORK}/texts.txt", "w") as out:
    out.write("\n".join(LINES) + "\n")
with open(f"{WORK}/pairs.jsonl", "w") as out:
    for a in PROMPTS:
        out.write(json.dumps({"prompt": a, "chosen": " was better.", "rejected": " it"}) + "\n")
for case in sys.argv[3:] or CASES:
    make(case)
    theirs(case, target_modules="all-linear")
    theirs(case, target_modules={"gpt2": ["c_attn"], "phi3": ["qkv_proj", "gate_up_proj"]}.get(case, ["q_proj", "v_proj"]),
           use_rslora=True)
    ours(case)
    if CASES[case][0].model_type in CLASSIFIERS:
        scored(case)
    for left in ("run", "rm", "apart", "merged", "theirs"):
        subprocess.run(["rm", "-rf", os.path.join(WORK, left)], check=True)
sys.exit("\n".join(["", *failed]) if failed else 0)
