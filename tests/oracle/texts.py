"""Odd texts that are the same every time: `texts` for any tokenizer, `long_texts` of a megabyte, and `prose` to train a
vocabulary on.
"""
import random
import unicodedata

SPECIAL = ["<|endoftext|>", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]", "<|endoftext", "[MASK",
           "<tool>", "river bank", "<|user|>", "<|user|>x", "<|user"]
PARTS = SPECIAL + [
    "don't", "DON'T", "we've", "'ll", "'", "''re", "\u2019s", " ", "  ", "   ", "\t", "\n", "\r\n",
    "\n\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\u1680", "\u180e", "\u200b", "\ufeff",
    "\x00", "\x01", "\x1c", "\x1f", "\x7f", "\ufffd", "\ufffe", "a", "A", "\u00e9", "e\u0301", "\u0130", "\u00df",
    "\u1e9e", "\ufb01", "\u01c5", "\u03c3\u03c2", "\u05e9\u05c1", "\u0643\u0650", "\u0915\u094d\u0937", "\ud55c\uad6d", "\u1112\u1161\u11ab", "\u4e2d\u6587",
    "\U00020000", "\u3042", "\u0e20\u0e32", "\U0001f468\u200d\U0001f469", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea",
    "0", "12", "1,000.50", "\u0664", "\u2167", "\u00b2", "\u00bd", "\U0001d7d9", "\uff12", "!", "...", "\u2014", "\u00bf",
    "$", "^", "`", "\u20ac", "+", "=", "\u00ac", "_", "__", "-", "#", "##", "##ing", "@", "<", ">", "/", "\\", "|",
    "http://a.b/c?d=e&f", "the", " the", "The", "ing", "river", " 1987", "x" * 99, "y" * 101,
    "\u0301", "\u20dd", "\u0489", "\u1d165", "\U0001d165", "\u0344", "\u0f73", "\u212b", "\u1f80", "\u00c5", "\uac01",
]


def assigned():
    """Characters whose class is the same in all versions of Unicode since 8.0."""
    old = unicodedata.ucd_3_2_0
    return [chr(c) for c in range(0x30000)
            if not 0xD800 <= c < 0xE000 and old.category(chr(c)) != "Cn"
            and old.category(chr(c)) == unicodedata.category(chr(c))]


def texts(n):
    rng, chars = random.Random(5), assigned()
    rows = ["", *PARTS, *(a + b for a in PARTS[:60] for b in (" ", "a", "\u0301", "1", "<|endoftext|>"))]
    for _ in range(n):
        rows.append("".join(rng.choice(PARTS) for _ in range(rng.randint(2, 12))))
        rows.append("".join(rng.choice(chars) for _ in range(rng.randint(1, 24))))
        rows.append("".join(rng.choice((rng.choice(PARTS), rng.choice(chars), " "))
                            for _ in range(rng.randint(2, 16))))
    rows += chars[::29]
    return rows


def long_texts():
    """Texts on which code with quadratic time or recursion would fail."""
    rng, chars = random.Random(7), assigned()
    return ["a" * 1000000, " " * 100000, "\n" * 5000, "\r\n" * 3000, "ab" * 20000, "7" * 10000,
            "\u0301" * 3000, "\u1112\u1161\u11ab" * 2000, "\u4e2d" * 10000, "!" * 10000,
            "\u200d\U0001f469" * 2000, "\0" * 5000, "'" * 5000, " a" * 10000, "\u2581" * 5000,
            "<|" * 5000, "<0x41>" * 500, "".join(rng.choice(chars) for _ in range(20000))]


def planes():
    """Every code point except surrogates, alone, between letters and between spaces."""
    rows, at = [], 0
    while at < 0x110000:
        n = 64 if at < 0x32000 or 0xE0000 <= at < 0xE1000 else 1024
        block = [chr(c) for c in range(at, at + n) if not 0xD800 <= c < 0xE000]
        rows.append(("", "a", " ")[at // n % 3].join(block))
        at += n
    return [r for r in rows if r]


CONTRACTIONS = ["'" + e for e in ("s", "t", "re", "ve", "m", "ll", "d")]
CODE = ["def f(x, y=1):\n    return x[0] + y  # sum\n", "if (a != b) { c->d = 0x1F; }\n\n",
        "\tfor i in range(10):\n\t\tprint(i)\r\n", "https://example.org/a?b=c&d=%20", "a_b-c.d/e\\f",
        "x  +   y    =     z", "100,000.50 EUR; 1234567890", "   \n  \n\n", "2024-02-29T12:34:56Z"]
LANGUAGES = ["Der große Bär läuft über die Straße", "Café naïve à São Paulo", "Москва стоит на реке",
             "日本の冬は寒いです", "中国的茶很好喝", "한국어 텍스트", "हिन्दी क्षत्रिय", "עברית שלום",
             "Ελληνικά Σίσυφος", "ภาษาไทย", "العربية كتاب", "e\u0301a\u0308o\u0323\u0302"]


def prose(n):
    """n lines of invented words, some of them frequent, with text that tokenizers must split correctly."""
    rng = random.Random(11)
    syllables = [a + b + c for a in ("", "b", "d", "st", "th", "r", "k", "pl") for b in "aeiou"
                 for c in ("", "n", "r", "ng", "l")]
    words = ["".join(rng.choice(syllables) for _ in range(rng.randint(1, 4))) for _ in range(3000)]
    for _ in range(n):
        line = []
        for _ in range(rng.randint(3, 20)):
            w = words[int(3000 * rng.random() ** 3)]
            w = rng.choice((w, w, w, w.capitalize(), w.upper()))
            line.append(w + rng.choice(("", "", "", "", rng.choice(CONTRACTIONS), ",", ".", "!?",
                                        str(rng.randint(0, 99999)))))
        yield rng.choice((" ", " ", " ", "  ")).join(line) + rng.choice((".", "\n", "...", " "))
        if rng.random() < 0.2:
            yield rng.choice(CODE)
        if rng.random() < 0.2:
            yield rng.choice(LANGUAGES)
