#!/usr/bin/env python3
"""Makes dirs.tar.gz: tiny models in pairs, base and tuned, and expected.json, their numbers from PyTorch's hooks in
float64 (tests/oracle/inspect_numbers.py). Run it in this folder; needs torch, transformers, tokenizers,
peft and safetensors. Made with PyTorch 2.15, transformers 5.24, peft 0.21.

    gpt2, llama, qwen3   pairs of language models; X-tuned is X with every weight moved
    gpt2-adapter         an adapter of gpt2, as PEFT writes it
    gpt2-reward          a reward model with a gain and a bias
    gpt2-critic          gpt2 with a value head

Weights are stored in bf16, which f32 and f64 hold exactly. The tokenizer is in gpt2/; the other
directories link to it. expected.json: {case: {"flags": [...], "subject": the keys of --json}}."""
import json
import os
import shutil
import sys

import torch
import transformers as hf
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "oracle"), os.path.join(HERE, "..", "hf")]
import inspect_numbers as numbers  # noqa: E402
import make_dirs  # noqa: E402
from families import fill  # noqa: E402

PROMPT, WORDS = "The river was better than", "the/in,bread"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")
D, LAYERS, HEADS, INNER = 16, 2, 2, 24


def configs(tok):
    ids = {"bos_token_id": tok.bos_token_id, "eos_token_id": tok.eos_token_id, "pad_token_id": None}
    common = dict(vocab_size=len(tok), max_position_embeddings=64, hidden_size=D, intermediate_size=INNER,
                  num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=1, **ids)
    return {
        "gpt2": hf.GPT2Config(vocab_size=len(tok), n_positions=64, n_embd=D, n_layer=LAYERS, n_head=HEADS, n_inner=INNER,
                              **ids),
        "llama": hf.LlamaConfig(tie_word_embeddings=False, rms_norm_eps=1e-5, **common),
        "qwen3": hf.Qwen3Config(tie_word_embeddings=True, head_dim=16, **common),
    }


def save(model, name, tok):
    model.to(torch.bfloat16).save_pretrained(f"dirs/{name}")
    for leftover in ("generation_config.json", "README.md"):
        if os.path.exists(f"dirs/{name}/{leftover}"):
            os.remove(f"dirs/{name}/{leftover}")
    if name == "gpt2":
        tok.save_pretrained("dirs/gpt2")
        return
    for f in TOKENIZER:
        os.symlink(f"../gpt2/{f}", f"dirs/{name}/{f}")


def load(name, kind=hf.AutoModelForCausalLM):
    return kind.from_pretrained(f"dirs/{name}", dtype=torch.float64, attn_implementation="eager").eval()


def vary(model, seed):
    g = torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.data = p.data + 0.2 * p.data.float().abs().mean() * torch.randn(p.shape, generator=g)
    return model


def adapter():
    import peft

    model = peft.get_peft_model(load("gpt2").float(), peft.LoraConfig(
        r=2, lora_alpha=6, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True, task_type="CAUSAL_LM"))
    g = torch.Generator().manual_seed(7)
    for n, p in model.named_parameters():
        if "lora" in n:
            p.data = 0.3 * torch.randn(p.shape, generator=g)
    model.peft_config["default"].base_model_name_or_path = "../gpt2"
    model.save_pretrained("dirs/gpt2-adapter")
    os.remove("dirs/gpt2-adapter/README.md")
    return peft.PeftModel.from_pretrained(load("gpt2"), "dirs/gpt2-adapter").merge_and_unload()


def reward(tok):
    config = configs(tok)["gpt2"]
    config.num_labels, config.pad_token_id = 1, 0
    save(fill(hf.AutoModelForSequenceClassification.from_config(config), 9), "gpt2-reward", tok)
    path = "dirs/gpt2-reward/config.json"
    config = json.load(open(path))
    config["rlhf_reward"] = {"pooling": "last", "gain": 1.7, "bias": -0.4}
    json.dump(config, open(path, "w"), indent=2, sort_keys=True)
    return load("gpt2-reward", hf.AutoModelForSequenceClassification)


def critic():
    shutil.copytree("dirs/gpt2", "dirs/gpt2-critic")
    for f in (*TOKENIZER, "config.json", "model.safetensors"):
        os.remove(f"dirs/gpt2-critic/{f}")
        os.symlink(f"../gpt2/{f}", f"dirs/gpt2-critic/{f}")
    g = torch.Generator().manual_seed(3)
    draw = lambda *shape: (torch.randn(*shape, generator=g) * 0.2).bfloat16().float()
    head = {"v_head.fc.weight": draw(4 * D, D), "v_head.fc.bias": draw(4 * D), "v_head.out.weight": draw(1, 4 * D),
            "v_head.out.bias": draw(1)}
    os.mkdir("dirs/gpt2-critic/state")
    save_file(head, "dirs/gpt2-critic/state/value_head.safetensors")
    return head


def plain(x):
    """Tensors as lists of numbers with 8 digits."""
    if isinstance(x, torch.Tensor):
        return plain(x.tolist())
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items() if k != "probability"}
    if isinstance(x, list):
        return [plain(v) for v in x]
    return float(f"{x:.8g}") if isinstance(x, float) else x


def main():
    os.chdir(HERE)
    shutil.rmtree("dirs", ignore_errors=True)
    tok = make_dirs.bpe()
    ids = tok(PROMPT).input_ids
    good, bad = [[tok(" " + w).input_ids[0] for w in side.split("/")] for side in WORDS.split(",")]
    of, cases = {}, {}

    def words(name, model):
        return numbers.Words(numbers.Parts(model), good, bad)

    def case(name, flags, of):
        cases[name] = {"flags": flags, "subject": plain(numbers.numbers(of, ids))}

    for name, config in configs(tok).items():
        save(fill(hf.AutoModelForCausalLM.from_config(config), 1), name, tok)
        save(vary(load(name).float(), 5), name + "-tuned", tok)
        of[name] = words(name, load(name))
        case(name, f"--base {name} --tuned {name}-tuned --words {WORDS}", [of[name], words(name, load(name + "-tuned"))])
    case("adapter", f"--tuned gpt2-adapter --words {WORDS}", [of["gpt2"], words("gpt2", adapter())])
    case("reward", "--reward-model gpt2-reward", [numbers.Score(numbers.Parts(reward(tok)), 1.7, -0.4)])
    case("critic", "--critic gpt2-critic", [numbers.Value(numbers.Parts(load("gpt2")), critic())])
    with open("expected.json", "w") as f:
        json.dump({"prompt": PROMPT, "cases": cases}, f, separators=(",", ":"))
        f.write("\n")
    make_dirs.pack("dirs")


if __name__ == "__main__":
    torch.set_num_threads(1)
    hf.logging.set_verbosity_error()
    main()
