#!/usr/bin/env python3
"""Writes dirs.tar.gz, tiny model directories with random weights as transformers writes them, and expected.json,
transformers' results for some texts. Run it in this folder; needs torch, transformers and tokenizers. Made with transformers 5.23. A
newer version may write other files, which then need to be tested.

    gpt2             GPT2LMHeadModel; only tokenizer.json
    gpt2-classic-f16 with vocab.json and merges.txt, float16
    gpt2-sharded     untied head, several safetensors files and their index
    gpt2-bf16        bfloat16, more embedding rows than tokens
    gpt2-classifier  GPT2ForSequenceClassification with two labels, which config.json omits
    gpt2-reward      one label, a tokenizer that adds BOS
    distilbert       DistilBertForSequenceClassification, three named labels

expected.json: {dir: [{"text", "ids", "logp" (LM: of ids[1:]) or "logits"}]}; ids as the tokenizer
returns them, including special tokens; weights in float32.
"""
import gzip
import json
import os
import shutil
import tarfile

import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SENTENCES = """The old keeper counted the waves that broke against the rocks.
She said the bread was better than it had been, and he didn't disagree.
Nothing about the evening was really surprising; it was merely pleasant.
In 1987 the river rose 12 feet in 3 days. The river was in the town.""".split("\n")
TEXTS = ["The river was better than the bread.", "It wasn't so.\n\n  In 2031, perhaps?",
         "naïve café — 東京 \U0001F600", " the", "a  b\tc   "]
END = "<|endoftext|>"


def bpe(**more):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.train_from_iterator(SENTENCES * 2, trainers.BpeTrainer(
        vocab_size=290, special_tokens=[END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    model = json.loads(tok.to_str())["model"]
    return hf.GPT2Tokenizer(vocab=model["vocab"], merges=[tuple(m) for m in model["merges"]], **more)


def wordpiece():
    words = {}
    for w in " ".join(SENTENCES).lower().replace(".", " .").replace(",", " ,").split():
        words[w] = words.get(w, 0) + 1
    chars = sorted({c for w in words for c in w} | set("!?'-—é"))
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + chars + ["##" + c for c in chars]
    vocab += [w for w in sorted(words, key=lambda w: (-words[w], w)) if w not in vocab][:20]
    return hf.DistilBertTokenizer(vocab={t: i for i, t in enumerate(vocab)})


def fill(model):
    gen = torch.Generator().manual_seed(3)
    for p in model.parameters():
        x = torch.randn(p.shape, generator=gen, dtype=torch.float32) * 0.3
        p.data = x + 1 if p.dim() == 1 and p.data.mean() > 0.5 else x
    return model.eval()


def gpt2_config(tok, **more):
    return hf.GPT2Config(**{"vocab_size": len(tok), "n_positions": 64, "n_embd": 16, "n_layer": 1,
                            "n_head": 2, "n_inner": 16, "bos_token_id": tok.bos_token_id,
                            "eos_token_id": tok.eos_token_id, **more})


def expect(directory):
    """Through from_pretrained, as a user would load it."""
    tok = hf.AutoTokenizer.from_pretrained(directory)
    lm = "LMHead" in json.load(open(f"{directory}/config.json"))["architectures"][0]
    kind = hf.AutoModelForCausalLM if lm else hf.AutoModelForSequenceClassification
    model = kind.from_pretrained(directory, dtype=torch.float32).eval()
    rows = []
    for text in TEXTS:
        ids = tok(text).input_ids
        with torch.no_grad():
            out = model(input_ids=torch.tensor([ids])).logits[0]
        if lm:
            logp = torch.log_softmax(out[:-1], -1)[range(len(ids) - 1), ids[1:]]
        row = {"logp": logp.tolist()} if lm else {"logits": out.tolist()}
        rows.append({"text": text, "ids": ids, **row})
    return rows


def pack(folder):
    """Writes FOLDER.tar.gz, the same bytes for the same files, and removes the folder. CMake unpacks it."""
    def plain(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        info.mode = 0o755 if info.isdir() else 0o644
        return info

    with open(folder + ".tar.gz", "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for top, folders, files in sorted(os.walk(folder)):
                for name in sorted(files):
                    tar.add(os.path.join(top, name), filter=plain)
    shutil.rmtree(folder)


def main():
    shutil.rmtree("dirs", ignore_errors=True)
    plain, bos = bpe(), bpe(add_bos_token=True)
    made = {}

    def save(name, tok, model, **how):
        model.save_pretrained(f"dirs/{name}", **how)
        tok.save_pretrained(f"dirs/{name}")
        os.path.exists(f"dirs/{name}/generation_config.json") and os.remove(f"dirs/{name}/generation_config.json")
        made[name] = None

    lm, score = hf.GPT2LMHeadModel, hf.GPT2ForSequenceClassification
    save("gpt2", plain, fill(lm(gpt2_config(plain))))
    save("gpt2-classic-f16", plain, fill(lm(gpt2_config(plain))).half())
    plain.backend_tokenizer.model.save("dirs/gpt2-classic-f16")
    save("gpt2-sharded", plain, fill(lm(gpt2_config(plain, tie_word_embeddings=False))),
         max_shard_size="20KB")
    save("gpt2-bf16", plain, fill(lm(gpt2_config(plain, vocab_size=320))).bfloat16())
    save("gpt2-classifier", plain, fill(score(gpt2_config(plain))))
    save("gpt2-reward", bos, fill(score(gpt2_config(bos, num_labels=1))))
    piece = wordpiece()
    names = ["bad", "fair", "good"]
    save("distilbert", piece, fill(hf.DistilBertForSequenceClassification(hf.DistilBertConfig(
        vocab_size=len(piece), max_position_embeddings=64, dim=16, n_layers=1, n_heads=2,
        hidden_dim=16, id2label=dict(enumerate(names)),
        label2id={n: i for i, n in enumerate(names)}))))
    for name in made:
        made[name] = expect(f"dirs/{name}")
    with open("expected.json", "w") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(n)}: [\n " + ",\n ".join(
            json.dumps(r) for r in rows) + "]" for n, rows in made.items()) + "}\n")
    pack("dirs")


if __name__ == "__main__":
    main()
