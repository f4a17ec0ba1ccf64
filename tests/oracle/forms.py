"""Makes tokenizer.json in the forms of common models, trained here by the package tokenizers: GPT-2, Llama 3, Qwen2, Qwen3.5, LFM2,
SmolLM (with all bytes; as published, without the bytes that its texts lack; the same with unk), Falcon, Llama 2 with a
normalizer and Llama 2 with Metaspace.

`make(form, lines, n)` gives a Tokenizer; `save(tok, form, folder)` writes it in the form that
transformers expects, with a realistic tokenizer_config.json.
"""
import json
import os

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WORDS = (CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def split(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated", False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)])


def bos_template(bos, number):
    return processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B:1",
                                         special_tokens=[(bos, number)])


def train(tok, lines, n, **options):
    trainer = trainers.BpeTrainer(vocab_size=n, show_progress=False, **options)
    tok.train_from_iterator(lines, trainer)


def byte_level(pre, lines, n, normalizer=None, special=(), alphabet=None):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer, tok.decoder = pre, decoders.ByteLevel()
    if normalizer:
        tok.normalizer = normalizer
    if alphabet is None:
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    train(tok, lines, n, initial_alphabet=alphabet, special_tokens=list(special))
    return tok


def gpt2(lines, n):
    tok = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), lines, n)
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.add_special_tokens(["<|endoftext|>"])
    return tok


def with_model(tok, **members):
    """The same tokenizer with changed members of its model, which the trainer cannot set."""
    file = json.loads(tok.to_str())
    file["model"].update(members)
    return Tokenizer.from_str(json.dumps(file))


def llama3(lines, n):
    tok = byte_level(split(WORDS % "{1,3}"), lines, n)
    # Tokens that merges cannot produce, for ignore_merges.
    file = json.loads(tok.to_str())
    for word in ("Ġunmerged", "unmerged", "ĠÐłÐ¾ÑģÑģÐ¸Ñı"):
        file["model"]["vocab"].setdefault(word, len(file["model"]["vocab"]))
    file["model"]["ignore_merges"] = True
    tok = Tokenizer.from_str(json.dumps(file))
    bos = "<|begin_of_text|>"
    tok.add_special_tokens(
        [bos, "<|end_of_text|>"] + [f"<|reserved_special_token_{i}|>" for i in range(200)]
        + ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                              bos_template(bos, tok.token_to_id(bos))])
    return tok


def qwen2(lines, n):
    tok = byte_level(split(WORDS % ""), lines, n, normalizers.NFC())
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tok.add_tokens([AddedToken(t, normalized=False) for t in ("<tool_call>", "</tool_call>")])
    return tok


def qwen35(lines, n):
    """Combining marks belong to words."""
    marks = WORDS.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
    tok = byte_level(split(marks % ""), lines, n, normalizers.NFC())
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>"])
    tok.add_tokens([AddedToken(t, normalized=False) for t in ("<tool_call>", "</tool_call>", "<think>", "</think>")])
    return tok


def lfm2(lines, n):
    """Special tokens are the first in the vocabulary."""
    special = ["<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|fim_pre|>", "<|im_start|>", "<|im_end|>", "<|tool_list_start|>",
               "<|tool_list_end|>", "<|tool_call_start|>", "<|tool_call_end|>", "<|tool_response_start|>", "<|tool_response_end|>"]
    tok = byte_level(split(WORDS % "{1,3}"), lines, n, special=special)
    tok.decoder = decoders.Sequence([decoders.ByteLevel()])
    tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), bos_template("<|startoftext|>", 1)])
    return tok


def smollm(lines, n, alphabet=None):
    pre = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False)])
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<empty_output>"]
    return byte_level(pre, lines, n, special=special, alphabet=alphabet)


def smollm_gaps(lines, n):
    return smollm(lines, n - 90, [])  # few merges, so that most texts have bytes without a token


def smollm_unk(lines, n, fuse=True):
    return with_model(smollm_gaps(lines, n), unk_token="<|endoftext|>", fuse_unk=fuse)


def smollm_fallback(lines, n):
    """byte_fallback is about the characters that stand for bytes: their UTF-8 begins with C3, C4 or C5."""
    tok = smollm_unk(lines, n, False)
    vocab = json.loads(tok.to_str())["model"]["vocab"]
    for b in [*range(0x21, 0x7F), *range(0x80, 0xC0), 0xC3, 0xC4]:
        vocab[f"<0x{b:02X}>"] = len(vocab)
    return with_model(tok, byte_fallback=True, vocab=vocab)


def falcon(lines, n):
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    return byte_level(pre, lines, n, special=[">>TITLE<<", "<|endoftext|>"])


def llama2(lines, n, metaspace=False):
    learn = Tokenizer(models.BPE())
    learn.normalizer = normalizers.Replace(" ", "▁")
    learn.pre_tokenizer = pre_tokenizers.Split(Regex("▁*[^▁]+|▁+"), "isolated")
    train(learn, lines, n - 259, limit_alphabet=300)
    model = json.loads(learn.to_str())["model"]
    learned = sorted(model["vocab"], key=model["vocab"].get)
    vocab = ["<unk>", "<s>", "</s>"] + BYTES + learned
    tok = with_model(learn, vocab={t: i for i, t in enumerate(vocab)}, unk_token="<unk>",
                     fuse_unk=True, byte_fallback=True)
    file = json.loads(tok.to_str())
    file["normalizer"] = file["pre_tokenizer"] = None
    tok = Tokenizer.from_str(json.dumps(file))
    if metaspace:
        tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first",
                                                     split=False)
    else:
        tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"),
                                               normalizers.Replace(" ", "▁")])
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                     decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True)
                            for t in ("<unk>", "<s>", "</s>")])
    tok.post_processor = bos_template("<s>", 1)
    return tok


def llama2_metaspace(lines, n):
    return llama2(lines, n, metaspace=True)


def gemma(lines, n):
    """Gemma 3: no space before a text, runs of spaces and a newline as added tokens, an end of a turn."""
    learn = Tokenizer(models.BPE())
    learn.normalizer = normalizers.Replace(" ", "▁")
    learn.pre_tokenizer = pre_tokenizers.Split(Regex("▁?[^▁\n]+|▁+|\n"), "isolated")
    train(learn, lines, n - 272, limit_alphabet=300)
    model = json.loads(learn.to_str())["model"]
    learned = sorted(model["vocab"], key=model["vocab"].get)
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>"]
    own = ["\n", "▁▁", "▁▁▁", "▁▁▁▁"]
    vocab = special + own + BYTES + [t for t in learned if t not in own]
    merges = [["▁" * k, "▁" * (n - k)] for n in (2, 3, 4) for k in range(n - 1, 0, -1)] + [m for m in model["merges"] if "".join(m) not in own]
    tok = with_model(learn, vocab={t: i for i, t in enumerate(vocab)}, merges=merges, unk_token="<unk>",
                     fuse_unk=True, byte_fallback=True)
    tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tok.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in special])
    tok.add_tokens([AddedToken(t, normalized=False) for t in own])
    tok.post_processor = bos_template("<bos>", 2)
    return tok


# class of tokenizer_config.json, its special tokens, model_type of config.json
FORMS = {
    "gpt2": (gpt2, "GPT2Tokenizer", {"bos": "<|endoftext|>", "eos": "<|endoftext|>"}, "gpt2"),
    "llama3": (llama3, "PreTrainedTokenizerFast",
               {"bos": "<|begin_of_text|>", "eos": "<|end_of_text|>"}, "llama"),
    "qwen2": (qwen2, "Qwen2Tokenizer", {"eos": "<|im_end|>", "pad": "<|endoftext|>"}, "qwen2"),
    "qwen35": (qwen35, "Qwen3_5Tokenizer", {"eos": "<|im_end|>", "pad": "<|endoftext|>"}, "qwen3_5_text"),
    "lfm2": (lfm2, "PreTrainedTokenizerFast", {"bos": "<|startoftext|>", "eos": "<|im_end|>", "pad": "<|pad|>"}, "lfm2"),
    "smollm": (smollm, "GPT2Tokenizer",
               {"bos": "<|im_start|>", "eos": "<|im_end|>", "unk": "<|endoftext|>"}, "llama"),
    "smollm-gaps": (smollm_gaps, "GPT2Tokenizer", {"bos": "<|im_start|>", "eos": "<|im_end|>"}, "llama"),
    "smollm-unk": (smollm_unk, "GPT2Tokenizer", {"eos": "<|im_end|>", "unk": "<|endoftext|>"}, "llama"),
    "smollm-fallback": (smollm_fallback, "GPT2Tokenizer", {"eos": "<|im_end|>"}, "llama"),
    "falcon": (falcon, "PreTrainedTokenizerFast", {"eos": "<|endoftext|>"}, "llama"),
    "llama2": (llama2, "LlamaTokenizer", {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}, "llama"),
    "llama2-metaspace": (llama2_metaspace, "LlamaTokenizer",
                         {"bos": "<s>", "eos": "</s>", "unk": "<unk>"}, "llama"),
    "gemma": (gemma, "GemmaTokenizer", {"bos": "<bos>", "eos": "<eos>", "unk": "<unk>", "pad": "<pad>"}, "gemma3_text"),
}


def make(form, lines, n):
    return FORMS[form][0](lines, n)


def save(tok, form, folder):
    _, name, roles, family = FORMS[form]
    os.makedirs(folder, exist_ok=True)
    tok.save(f"{folder}/tokenizer.json")
    config = {"tokenizer_class": name, "clean_up_tokenization_spaces": False,
              **{f"{r}_token": t for r, t in roles.items()}}
    if form == "qwen2":
        config |= {"add_bos_token": False, "add_prefix_space": False, "bos_token": None}
    if name == "LlamaTokenizer":
        config |= {"add_bos_token": True, "add_eos_token": False,
                   "legacy": form == "llama2", "sp_model_kwargs": {}}
    config["added_tokens_decoder"] = {
        str(i): {"content": t.content, "lstrip": t.lstrip, "normalized": t.normalized,
                 "rstrip": t.rstrip, "single_word": t.single_word, "special": t.special}
        for i, t in sorted(tok.get_added_tokens_decoder().items())}
    with open(f"{folder}/tokenizer_config.json", "w") as f:
        json.dump(config, f)
    with open(f"{folder}/config.json", "w") as f:
        json.dump({"model_type": family}, f)
