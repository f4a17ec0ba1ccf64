"""Tests reports and pages of inspect in headless Chromium. usage: test_browser.py PROGRAM [PAGE...].
Status 77 (skipped) without Chromium.

Each page is opened at widths of 390 and 1280 px, in the light and in the dark scheme. It must not print
to the console, send requests or overflow sideways. Every text must have a contrast of at least 4.5, and
drawing the page must take less than a second of processor time. The cursor must move by keyboard and by
pointer. The scripts in a hostile run's texts must not run, and the texts must be readable.
"""
import os
import subprocess
import sys
import tempfile

import browser as chromium
import made_runs as made

PROGRAM = os.path.realpath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
CONTRAST = open(f"{HERE}/contrast.js").read()


def pages(at):
    """The (name, file) of each page to test."""
    made.write(f"{at}/good")
    made.hostile(f"{at}/hostile")
    made.write(f"{at}/long", 3000, more=10)
    made.write(f"{at}/short", 2)
    # Names that each object of JavaScript has.
    made.write(f"{at}/own", 20, change=lambda row: {**row, "constructor": 1.5, "toString": 2.5, "__proto__": 3.5, "valueOf": 4.5})
    for seed in (1, 2, 3):
        for coef in (0, 0.2):
            config = {**made.CONFIG, "algo": {"plugin": "ppo.so", "kl_coef": coef}, "run": {**made.CONFIG["run"], "seed": seed}}
            made.write(f"{at}/{coef}-{seed}", 20, config)
    out = []
    for name, runs in (("good", ["good"]), ("hostile", ["hostile"]), ("long", ["long"]), ("short", ["short"]),
                       ("own", ["own"]), ("names", ["own", "good"]),
                       ("several", [f"{c}-{s}" for c in (0, 0.2) for s in (1, 2, 3)])):
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        file = f"{at}/{name}.html"
        subprocess.run([PROGRAM, "report", *(f"{at}/{r}" for r in runs), "--out", file], check=True, stdout=subprocess.DEVNULL)
        out.append((name, file))
    return out


def inspect_pages(at):
    """Two models with words, and a reward model, of which a hostile prompt is read."""
    models = os.path.join(os.path.dirname(PROGRAM), "..", "tests", "inspect", "dirs")
    pair = ["--base", f"{models}/gpt2", "--tuned", f"{models}/gpt2-tuned", "--words", "the,bread"]
    out = []
    for name, args in (("inspect", [*pair, "--prompt", "The river was better than"]),
                       ("inspect-hostile", [*pair, "--prompt", made.EVIL.replace("\0", "")[:60], "--reward-model", f"{models}/gpt2-reward"])):
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        file = f"{at}/{name}.html"
        subprocess.run([PROGRAM, "inspect", *args, "--threads", "1", "--out", file], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        out.append((name, file))
    return out


def positions(page, name):
    """A position is chosen by a click and by the arrow keys, and the rest of the page follows. The same holds for a head."""
    chosen = "[...document.querySelectorAll('.strip button')].findIndex((b) => b.getAttribute('aria-pressed') === 'true')"
    title = "document.querySelector('h1').textContent"
    count = page.js("document.querySelector('.strip').children.length")
    assert page.js(chosen) == count - 1 > 2, (name, page.js(chosen), count)
    last = page.js(title)
    page.key("ArrowLeft")
    assert page.js(chosen) == count - 2 and page.js(title) != last, (name, page.js(title))
    page.key("ArrowRight")
    assert page.js(chosen) == count - 1 and page.js(title) == last
    page.js("document.querySelectorAll('.strip button')[1].click()")
    assert page.js(chosen) == 1 and page.js(title) != last
    head = "document.querySelector('#Attention ~ * h3').textContent"
    before = page.js(head)
    page.js("[...document.querySelectorAll('.heads button[aria-pressed=false]')][0].click()")
    assert page.js(head) != before, (name, before)


def check_inspect(page, name, width):
    assert page.js("document.querySelector('h1').textContent.length > 5"), name
    assert page.js("document.documentElement.scrollWidth <= innerWidth"), (name, width, page.js("document.documentElement.scrollWidth"))
    assert page.js("document.querySelectorAll('.subject').length") == (1 if name == "inspect" else 2)
    assert page.js("document.querySelectorAll('svg').length") > 10, name
    assert "contributions add up" in page.js("document.querySelector('.checks .yes').textContent"), name
    seen = page.js(CONTRAST)
    assert seen["count"] > 50 and seen["least"] >= 4.5, (name, width, seen)
    assert page.js("window.pwned") is None and page.js("document.querySelectorAll('img').length") == 0, name
    if name == "inspect-hostile":
        text = page.js("document.querySelector('h1 + p').textContent")
        assert "</script>" in text, text
    positions(page, name)
    return seen["least"]


def cursor(page, name):
    told = "document.querySelector('nav .cursor').textContent"
    assert page.js(told) == "", page.js(told)
    page.js("document.querySelector('.charts').focus()")
    page.key("Home")
    first = page.js(told)
    page.key("ArrowRight")
    second = page.js(told)
    page.key("ArrowLeft")
    back = page.js(told)
    page.key("End")
    assert first.startswith("phase ") and first == back != second and page.js(told) != first, (name, first, second, back)
    dots = "[...document.querySelectorAll('#curves ~ .charts svg .now')].filter((e) => e.getAttribute('visibility') === 'visible').length"
    assert page.js(dots) > 2, name  # one cursor for all charts
    page.key("Escape")
    assert page.js(told) == ""
    page.js("document.querySelector('.charts svg').scrollIntoView({ block: 'center' })")
    x, y = page.js("(() => { const r = document.querySelector('.charts svg').getBoundingClientRect(); return [r.left + r.width / 2, r.top + 40]; })()")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert page.js(told).startswith("phase "), page.js(told)


def tokens(page):
    """The keyboard shows the facts of a token, and moves to the next token."""
    page.js("document.querySelector('.token').focus()")
    first = page.js("document.querySelector('.facts').textContent")
    page.key("ArrowRight")
    assert "log-prob" in first and page.js("document.querySelector('.facts').textContent") != first, first


def check(page, name, width, scheme):
    assert page.js("document.querySelector('h1').textContent.length > 5"), name
    assert page.js("document.documentElement.scrollWidth <= innerWidth"), (name, width, page.js("document.documentElement.scrollWidth"))
    page.js("document.querySelectorAll('details').forEach((d, i) => { if (i < 4) d.open = true; })")
    ground = page.js("getComputedStyle(document.documentElement).backgroundColor")
    assert (sum(map(float, ground[4:-1].split(","))) < 200) == (scheme == "dark"), (ground, scheme)
    seen = page.js(CONTRAST)
    assert seen["count"] > 50 and seen["least"] >= 4.5, (name, width, scheme, seen)
    assert page.js("window.pwned") is None, name
    if name == "hostile":
        text = page.js("document.body.textContent")
        assert "window.pwned=1" in text and "\\u202e" in text and "\\x1b" in text and "\u202e" not in text
        assert page.js("document.querySelectorAll('img').length") == 0
    else:
        cursor(page, name)
    if name in ("own", "names"):
        text = page.js("document.body.textContent")
        assert all(n in text for n in ("constructor", "toString", "__proto__", "valueOf")), name
    if name == "good":
        tokens(page)
        said = page.js("document.querySelector('.verdict p').textContent")
        assert said == "ppo.so with imdb.so; policy, 8.05 million parameters; 30 phases, 3\u202f840 responses, 1 min 54 s.", said
        assert "means of the last 3 phases" in page.js("document.querySelector('.tiles + .aside').textContent")
    if name in ("good", "short"):  # a marker at each point of a short curve
        dots = page.js("document.querySelectorAll('.charts svg .dot:not([visibility])').length")
        assert (dots > 10) == (name == "short"), (name, dots)
    return seen["least"]


def main():
    if not chromium.program():
        print("skipped: no Chromium here (apt-get install chromium)")
        sys.exit(77)
    browser = chromium.Browser()
    try:
        with tempfile.TemporaryDirectory() as at:
            for name, file in pages(os.path.realpath(at)) + inspect_pages(os.path.realpath(at)):
                for width in (390, 1280):
                    for scheme in ("light", "dark"):
                        page = chromium.Page(browser, width, scheme)
                        page.open(file)
                        busy = page.busy()
                        least = check_inspect(page, name, width) if name.startswith("inspect") else check(page, name, width, scheme)
                        wrong = page.complaints()
                        assert not wrong, (name, width, scheme, wrong[:3])
                        assert busy < 1, (name, width, scheme, busy)
                        page.close()
                        print(f"{name} {width} {scheme}: contrast {least:.2f}, {busy:.2f} s of processor time", flush=True)
    finally:
        browser.close()


main()
