"""Writes data/: small vocabularies trained on the sentences below, and the tokenizers library's results for the texts
below. Run it in this folder; needs the `tokenizers` package.

  data/bpe/        vocab.json, merges.txt, tokenizer_config.json   byte-level BPE, 600 tokens
  data/wordpiece/  vocab.txt, tokenizer_config.json                lower-casing WordPiece
  data/cased/      the same vocabulary, do_lower_case false
  data/vectors.jsonl  {"text", "bpe", "bpe_special", "wordpiece", "cased"} a line
  data/decoders.jsonl {"decoder", "tokens", "text"} a line
  data/added.jsonl    {"file": a tokenizer.json, "rows": [[text, ids, ids with special tokens spelled
                      out, text of the ids, the same without special tokens]]} a line
  data/forms.jsonl    the same of small vocabularies in the forms of ../oracle/forms.py
"""
import json
import os
import sys

from tokenizers import (Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

sys.path.insert(0, "../oracle")
import forms  # noqa: E402

SENTENCES = """The old lighthouse keeper counted every wave that broke against the rocks.
She said that the bread was better than it had been in years, and he didn't disagree.
They're planning to walk from the harbour to the hills before the rain comes.
I can't remember whether we'd locked the door, but I'll go back and look.
Nothing about the evening was really surprising; it was merely pleasant.
The actors spoke slowly, as if each word had to be carried up a long stair.
A terrible script, a wonderful cast: that is how most of these evenings go.
In 1987 the river rose 12 feet in 3 days and took 45 boats with it.
What is the point of a story that nobody wants to finish?
The camera waits, and waits, and then it finally looks away.
Boring, boring, boring! And yet the music almost saves the whole thing.
We watched it twice: once for the jokes and once for the weather.
My sister's garden has forty kinds of mint and not a single tomato.
The best scenes are the quiet ones, in which people cook and do not talk.
Café owners in Zürich and São Paulo agreed about the price of coffee.
El niño comió una manzana después de la escuela.
Der große Bär läuft über die Straße und sucht Honig.
Москва стоит на реке, и зимой река замерзает.
日本の冬は寒いです。 中国的茶很好喝。
Running, runner, runs; walked, walking, walker; slowly, slower, slowest.""".split("\n")

TEXTS = SENTENCES[:6] + [
    "", " ", "   ", "a", "\n", "\n\n\n", " \t ", "\r\n", "a  b   c    d", "trailing   ", "   leading",
    "line one\nline two\n\n  indented\tand tabbed \n", "don't I'll we've they're it's I'm he'd",
    "DON'T I'LL WE'VE", "'s 't ' '' '''", "O'Neil's 'quoted' words", "3.14159 1,000,000 12/31/1999",
    "x1y2z3 abc123 123abc", "٣٤٥ Ⅷ ² ½ ৪", "!!!???...,,,;;;", "a.b,c;d:e!f?g", "(a) [b] {c} <d> #e @f",
    "<br /><br />What a day", "snake_case camelCase kebab-case", "http://example.org/a?b=c&d=%20",
    "naïve café Zürich ŠĐĆŽ", "nai\u0308ve cafe\u0301 Zu\u0308rich", "İstanbul ıssız ß ẞ ﬁ ǅ",
    "ＦＵＬＬ width １２３", "Ελληνικά Σίσυφος", "Москва река Ёж й", "עברית שָׁלוֹם", "العربية كِتَاب",
    "हिन्दी क्षत्रिय", "日本の冬は寒い", "中国茶很好喝123abc", "한국어 텍스트", "ภาษาไทย",
    "\U0001F600 \U0001F468\u200d\U0001F469\u200d\U0001F467 \U0001F1E9\U0001F1EA \u2764\ufe0f",
    "a\u00a0b\u2003c\u3000d\u200be\ufefff", "line\u2028sep\u2029end\u0085next\u000bvt\u000cff",
    "\x01\x02 control \x7f\x1f", "nul\u0000inside", "\ufffd replacement", "combining q\u0307\u0323 a\u0301\u0327",
    "the the the the", "unbelievably slowest walkers running", "zzzzqqqqxxxx",
    "w" * 99, "w" * 100, "w" * 101, "ä" * 100 + " ä" + "ä" * 100, "ab" * 60, "9" * 70, "=" * 80,
    " " * 50 + "x", "\n" * 33, "the" * 40, "\u4e00\u4e8c\u4e09" * 5, "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛",
    "<|endoftext|>", "before<|endoftext|>after", "<|endoftext|><|endoftext|> x", "<|endof text|>",
    "[CLS] is text [SEP] here [MASK] [UNK]", "—dash– “quotes” ‘single’ …", "$5 + 3 = 8 ^ 2 ~ `tick`",
    "tab\tseparated\tvalues", "mixed 中 english 文 text", "e\u0301" * 40,
]


def bpe_vocabulary():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(SENTENCES * 2, trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<|endoftext|>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    os.makedirs("data/bpe", exist_ok=True)
    tok.model.save("data/bpe")
    end = "<|endoftext|>"
    with open("data/bpe/tokenizer_config.json", "w") as f:
        json.dump({"bos_token": end, "eos_token": {"content": end}, "unk_token": end,
                   "add_prefix_space": False, "tokenizer_class": "GPT2Tokenizer"}, f, indent=1)
    return tok


def wordpiece(lower):
    tok = Tokenizer(models.WordPiece.from_file("data/wordpiece/vocab.txt", unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ids = {t: tok.token_to_id(t) for t in ("[SEP]", "[CLS]")}
    tok.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return tok


def wordpiece_vocabulary():
    """Special tokens, every character alone and inside a word, then whole words and beginnings and
    ends of words by frequency. (The library's own trainer gives another result on every run.)"""
    norm, pre = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    count = {}
    for line in SENTENCES + ["walk walk run run light house", "The Runner Walked"]:
        for text in (norm.normalize_str(line), line if line.startswith("The Run") else ""):
            for word, _ in pre.pre_tokenize_str(text):
                for piece in [word] + [word[:n] for n in (2, 3, 4)] + ["##" + word[-n:] for n in (2, 3, 4)]:
                    if len(word) > 4 or piece == word:
                        count[piece] = count.get(piece, 0) + 1
    chars = sorted({c for w in count for c in w if c != "#"})
    base = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + chars + ["##" + c for c in chars]
    base += [w for w in sorted(count, key=lambda w: (-count[w], w)) if w not in base][:600 - len(base)]
    for name, lower in (("wordpiece", True), ("cased", False)):
        os.makedirs(f"data/{name}", exist_ok=True)
        with open(f"data/{name}/tokenizer_config.json", "w") as f:
            json.dump({"do_lower_case": lower, "cls_token": "[CLS]", "sep_token": "[SEP]",
                       "unk_token": "[UNK]", "pad_token": "[PAD]"}, f, indent=1)
        with open(f"data/{name}/vocab.txt", "w") as f:
            f.write("".join(t + "\n" for t in base))


def decoder_vectors():
    llama = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(),
                               decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    words = ["the", "light", "##house", "##s", "do", "n't", " do not", "'", "s", "!", ".", "[SEP]",
             "'s", "##'s", "a ' b", "''", "##"]
    runs = ["x", "<0xE2>", "<0x82>", "<0xAC>", "<0xe2>", "<0x82>", "y", "<0x+A>", "<0x4>", "<0xGG>",
            "<0x41>", "<0xE2>", "<0x82>", "<0xAC>"]
    cases = [
        (decoders.Metaspace("\u2581", "always"), ["\u2581\u2581Hi", "\u2581wor\u2581ld", "a"]),
        (decoders.Metaspace("\u2581", "never"), ["\u2581Hello", "\u2581world"]),
        (decoders.Metaspace("_", "first"), ["_Hello", "_world"]),
        (decoders.ByteFallback(), runs), (decoders.ByteFallback(), ["<0xFF>"]), (llama, runs),
        (llama, ["\u2581", "\u2581Hi", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "\u2581", "<0xFF>"]),
        (llama, ["\u2581a"]), (llama, []), (decoders.Fuse(), ["a", "", "b"]),
        (decoders.Strip("x", 1, 2), ["xxaxb", "xb", "cxxx", "xx\u00e9"]),
        (decoders.Sequence([decoders.Fuse(), decoders.Strip("\u2581", 2, 1)]),
         ["\u2581", "\u2581\u2581a", "b\u2581\u2581"]),
        (decoders.Sequence([decoders.ByteFallback(), decoders.Strip("\ufffd", 1, 0)]),
         ["<0xFF>", "<0xFE>", "a"]),
        (decoders.WordPiece("##", True), words), (decoders.WordPiece("##", False), words),
        (decoders.WordPiece("##", True), ["##the", "light"]), (decoders.WordPiece("", False), words),
        (decoders.Replace("aa", "b"), ["aaa", "caac", "b"]), (decoders.Replace("aa", ""), ["aaa", "b"]),
        (decoders.Sequence([decoders.Sequence([decoders.Fuse()]), decoders.Replace("ab", " ")]),
         ["a", "b", "ab", "c"]),
    ]
    with open("data/decoders.jsonl", "w") as f:
        for decoder, tokens in cases:
            row = {"decoder": json.loads(decoder.__getstate__()), "tokens": tokens,
                   "text": decoder.decode(tokens)}
            f.write(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n")


def added(number, content, **flags):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": False, **flags}


def write_rows(f, tok, texts):
    rows = []
    for text in texts:
        tok.encode_special_tokens = False
        ids = tok.encode(text).ids
        tok.encode_special_tokens = True
        rows.append([text, ids, tok.encode(text, add_special_tokens=False).ids,
                     *(tok.decode(ids, skip_special_tokens=s) for s in (False, True))])
    row = {"file": json.loads(tok.to_str()), "rows": rows}
    f.write(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n")


def form_vectors():
    with open("data/forms.jsonl", "w") as f:
        for form in forms.FORMS:
            tok = forms.make(form, SENTENCES, 420)
            write_rows(f, tok, [t for t in TEXTS[::2] if "\0" not in t] + [
                "a<|im_start|>b <|im_end|>", "<s>a</s> <s> b", "<|begin_of_text|>x", "<0x41>\u2581",
                "Can'T WE'LL", "12345678 1,234.5", "unmerged unmerged", "a\r\n\r\n  b\t\n"])


def added_vectors():
    sets = [
        (None, [added(256, "<S>", special=True), added(257, "S>x"), added(258, "S"),
                added(259, "<S>x<", special=True)],
         ["a<S>x", "<S>S", "S>x<S", "<S>x<S>x", "S<S", "", "<S", "<S>x<S>"]),
        (None, [added(256, "<l>", lstrip=True), added(257, "<r>", rstrip=True), added(258, "  "),
                added(259, "wo", single_word=True),
                added(260, "<b>", lstrip=True, rstrip=True, special=True)],
         ["a  <l>  b", "a  <r>     b", "wo woa awo a_wo wo1 wo\u0301 wo.", "wo\u200d \u24b6wo wo\u20dd \u2160wo wo\u00bd wo",
          "a  <b>   <b>  b <l>", "<r>   ", "   <l>", "\u3000<l>\u00a0\u2028<r>\u1680\u0085x\u200b<l>",
          "<r> <l> wo <r>  <l>", "\ud7a3wo wo\ud7a3 wo", "<b>\n\t <b>"]),
        ("lower", [added(256, "ABC", normalized=True), added(257, "Def"),
                   added(258, "abcd", normalized=True), added(259, "\u00c9t", normalized=True),
                   added(260, "<Sp>", special=True), added(261, "ab", single_word=True, normalized=True)],
         ["ABC abc abCD Def def", "\u00e9T \u00c9t e\u0301t", "<sp><Sp>ABC", "AB aB xab ab", "abDefc", ""]),
        (None, [added(256, "\u4e2d\u6587"), added(257, "<\u0401>"), added(258, "b c"),
                added(259, "b cd"), added(260, "b")],
         ["\u4e2d\u6587\u4e2d", "\u4e2d<\u0401>\u0401", "ab cdb c", "b b cb", "bb"]),
        # All characters of this token also stand for bytes, so the library decodes the token as if
        # it were bytes.
        (None, [added(256, "caf\u00e9", special=True)], ["caf\u00e9", "une caf\u00e9 caf"]),
    ]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    with open("data/added.jsonl", "w") as f:
        for normal, tokens, texts in sets:
            tok = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
            tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
            tok.decoder = decoders.ByteLevel()
            if normal:
                tok.normalizer = normalizers.BertNormalizer(lowercase=True)
            file = json.loads(tok.to_str()) | {"added_tokens": tokens}
            write_rows(f, Tokenizer.from_str(json.dumps(file)), texts)  # with the library's ids


def main():
    added_vectors()
    form_vectors()
    decoder_vectors()
    bpe = bpe_vocabulary()
    plain = Tokenizer(bpe.model)  # without added tokens, special text is text
    plain.pre_tokenizer = bpe.pre_tokenizer
    wordpiece_vocabulary()
    lower, cased = wordpiece(True), wordpiece(False)
    with open("data/vectors.jsonl", "w") as f:
        for text in TEXTS:
            row = {"text": text, "bpe": plain.encode(text).ids, "bpe_special": bpe.encode(text).ids,
                   "wordpiece": lower.encode(text).ids, "cased": cased.encode(text).ids}
            f.write(json.dumps(row, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(len(TEXTS), "texts,", bpe.get_vocab_size(), "BPE and", lower.get_vocab_size(), "WordPiece tokens")


if __name__ == "__main__":
    main()
