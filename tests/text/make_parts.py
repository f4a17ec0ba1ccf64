"""Writes data/parts.jsonl: the results of single parts of tokenizer.json for odd texts, by the tokenizers library. Run it
in this folder; needs the `tokenizers` package.

A line is {"normalizer" or "pre_tokenizer": the part, "cases": [[text, normal text or pieces], ...]}.
"""
import json

from tokenizers import Tokenizer, models

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def regex(text, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": text}, "behavior": behavior, "invert": invert}


def meta(scheme, split=True):
    return {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}


def cuts(*parts):
    return {"type": "Sequence", "pretokenizers": list(parts)}


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PRE_TOKENIZERS = [
    digits(False), digits(True), {"type": "Whitespace"}, {"type": "WhitespaceSplit"},
    {"type": "BertPreTokenizer"}, {"type": "CharDelimiterSplit", "delimiter": "e"},
    *({"type": "Punctuation", "behavior": b} for b in BEHAVIORS),
    *(meta(s) for s in ("always", "first", "never")), meta("always", False), meta("first", False),
    cuts({"type": "WhitespaceSplit"}, meta("always")), cuts({"type": "Punctuation"}, meta("first")),
    cuts(meta("always"), digits(True), {**meta("always"), "replacement": "_"}),
    *(regex(r"\s", b, i) for b in BEHAVIORS for i in (False, True)),
    *(regex(r"e*", b) for b in BEHAVIORS), regex(r"(?=\d)|(?<=\p{P})", "MergedWithPrevious"),
    {"type": "Split", "pattern": {"String": "the"}, "behavior": "MergedWithNext", "invert": False},
    regex(LLAMA3), regex(LLAMA3, "Removed", True), regex(O200K), cuts(regex(r"\p{N}{1,3}"), regex(r"[一-龥぀-ヿ]+")),
    regex(r"\w+"), regex(r"\W+"), regex(r"\b"), regex(r"\B"), regex(r"\D+"), regex(r"\S+"), regex(r"^.+$"),
    regex(r"\h+"), regex(r"[^\p{Han}]+"), regex(r"[\u0900-\u0fff]+|\x41|\x{4e2d}"), regex(r"[^\r\n\p{L}]?+\p{L}+|n++e"),
    regex(r"e{,2}n"), regex(r"(?i)[a-k]+|ß|é"), regex(r"\A.|.\z"), regex(r"[^e\p{Lu}]"), regex(r"\p{^L}+"),
]
NORMALIZERS = [
    *({"type": t} for t in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents")),
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Strip", "strip_left": False, "strip_right": True},
    {"type": "Prepend", "prepend": "\u2581"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
    {"type": "Replace", "pattern": {"Regex": r" {2,}|\n+"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": r"(?=e)"}, "content": "<>"},
    *({"type": "BertNormalizer", "clean_text": c, "handle_chinese_chars": True, "strip_accents": a,
       "lowercase": low} for c, a, low in ((True, None, True), (True, None, False), (False, True, False))),
    {"type": "Sequence", "normalizers": [
        {"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
        {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "Lowercase"},
        {"type": "Prepend", "prepend": "\u2581"}]},
]
TEXTS = [
    "", " ", "a", "the then", "I've 'SEEN' we'Ll 'ſ it's", "  two  spaces ", "one\n\n two\r\n\t three \n", "12345 x1y22 Ⅷ²½ ٣٤ 𝟙",
    "tree, bee... (see) -- !?e", "_under_score $5+3=8 a\u2581b \u2581", "na\u0308ive e\u0301\u0316e\u0316\u0301 \u212b ﬁ ① \uac01 \u1100\u1161\u11a8",
    "中文 e あア 한국 \u200d\u200cน้ำ हिन्दी", "ÀÉ\u0130 ǅ ß ẞ Σς \u1c89 \U00010d50", "\u00a0\u2003x\u3000\u0085\u2028", "A\ufffd\x01\x7f\u00ad\u200be",
    # Characters that one part knows and another does not: new letters, marks, digits, decompositions.
    "a\u0898\u0301 \u07fd\u0316 \U00031350\U0002ebf0 \U00011de0 \U00016130 \u166d\u2e52 \U00010781 \U00011935\U00011930 \u32ff \u0897e\u08d4\u0301",
    "e" * 40, "\u0301\u0316" * 20 + "e",
]


def main():
    base = json.loads(Tokenizer(models.BPE()).to_str())
    with open("data/parts.jsonl", "w") as f:
        for kind, parts in (("pre_tokenizer", PRE_TOKENIZERS), ("normalizer", NORMALIZERS)):
            for part in parts:
                tok = Tokenizer.from_str(json.dumps({**base, kind: part}))
                if kind == "normalizer":
                    cases = [[t, tok.normalizer.normalize_str(t)] for t in TEXTS]
                else:
                    cases = [[t, [p for p, _ in tok.pre_tokenizer.pre_tokenize_str(t)]] for t in TEXTS if t]
                f.write(json.dumps({kind: part, "cases": cases}, separators=(",", ":")) + "\n")
    print(len(PRE_TOKENIZERS) + len(NORMALIZERS), "parts,", len(TEXTS), "texts")


if __name__ == "__main__":
    main()
