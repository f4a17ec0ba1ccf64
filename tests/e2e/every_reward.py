#!/usr/bin/env python3
"""Every option of every shipped reward changes the rewards or the requests, or is refused. Generated from
`plugin info --json`, so new options are tested automatically; an option without a known value fails.

`eval --reward` scores the responses of a policy that writes a given text at each position, so each row has its
response from ROWS. A value other than the default must change the result: the rewards, the requests to a
service, or the exit status. A refusal (exit status 2) must name a reason. Each option needs at least one value
that is not refused. CONTEXT lists other settings that an option needs. WITHOUT lists options whose effect
cannot be seen in a result, with the reason.
"""
import array
import json
import os
import random
import shutil
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import every_option as kit

REWARDS = os.path.join(kit.BUILD, "lib", "rlhf", "1", "rewards")
STEP = 64  # tokens from one prompt's end to the next one's
ROWS = [  # response, right answer
    ("so 7", "7"), ("\\boxed{12} or 5", "12"), ("#### 3", "3"), ("A: 9\nand 4", "9"),
    ("<think>a</think> 8", "8"), ("25%", "25"), ("0.5%", "0.005"), ("$5 apples", "5"),
    ("Paris", "paris"), ("it is 10.2", "10"), ("no no no no. ok. ok.", "x"), ("7.0", "7"),
    ("<think>a</think>b</think>c", "c"), ("a</think>b", "b"), ("6 END 4", "4"), ("4 END 6", "4"),
    ("a" * 30 + "b", "y"), ("40%", "40"), ("\\boxed{9 apples}", "9"),
]
BASE = {
    "bt_rm": "model=rm", "imdb": "model=classifier,self_test=false", "length": "max_len=20",
    "lm_judge": "model=judge,ask=Is it polite?", "exec": "command=python3 judge.py", "python": "file=one.py,function=paid",
    "rubric": "file=rubric.json,url=CHAT,model=m", "grader": "file=grader.json,url=CHAT",
}
COSINE = "shape=cosine"
CONTEXT = {
    "format.match": "pattern=7", "format.limit": "pattern=(a+)+b",
    "imdb.self_test": "label=NEGATIVE", "length.min_len": "shape=band", "length.margin": "shape=band",
    **{"length." + k: COSINE for k in (
        "right_short", "right_long", "wrong_short", "wrong_long", "exceed", "field", "where",
        "marker", "after", "compare", "tolerance", "relative", "percent", "units", "ignore_case")},
    "http.concurrency": "batch=1", "http.label": "form=openrlhf",
    "http.patience_s": "url=DOWN,backoff_s=0.01", "http.repeats": "url=BUSY,backoff_s=0.01",
    "http.redirects": "url=MOVED", "http.max_answer_mib": "url=BIG", "http.ca": "url=TLS",
    "http.connect_timeout_s": "url=SLOW,ca=cert.pem,patience_s=0", # the handshake takes a second
    "http.backoff_s": "url=DOWN,patience_s=4,backoff_max_s=100",
    "http.backoff_max_s": "url=DOWN,patience_s=4,backoff_s=100",
    "lm_judge.file": "ask=", "rubric.command": "url=,model=", "rubric.repeats": "url=BUSY",
    # With several requests at a time, an answer to one of them may end the failure of another.
    "rubric.patience_s": "url=DOWN,concurrency=1", "rubric.ca": "url=TLS",
    "grader.repeats": "url=BUSY", "grader.patience_s": "url=DOWN,concurrency=1", "grader.ca": "url=TLS",
}
VALUE = {
    "field": "other", "marker": "A:", "after": "END", "bt_rm.model": "rm2",
    "imdb.model": "classifier2", "imdb.label": "NEGATIVE", "exec.command": "python3 judge.py 2",
    "format.pattern": "so", "format.limit": "1", "length.max_len": "9", "length.cache": "15",
    "length.min_len": "12", "length.margin": "10", "period_count.cap": "1", "ngram3.n": "1",
    "python.file": "two.py", "python.function": "other", "python.weights": "2",
    "python.python": "./interpreter", "http.url": "DOUBLE", "http.batch": "3",
    "http.concurrency": "1", "http.label": "answer", "http.header_env": "EVERY_REWARD_HEADER",
    "http.ca": "cert.pem", "http.patience_s": "0", "http.repeats": "0", "http.max_answer_mib": "1",
    "http.connect_timeout_s": "0.01", "http.backoff_s": "100", "http.backoff_max_s": "0.01",
    "lm_judge.model": "judge2", "lm_judge.ask": "Is it short?", "lm_judge.file": "words.json",
    "lm_judge.longest": "400", "rubric.file": "rubric2.json", "rubric.url": "DOUBLE", "rubric.model": "another",
    "rubric.command": "python3 answers.py", "rubric.record": "kept.jsonl",
    "rubric.header_env": "EVERY_REWARD_HEADER", "rubric.ca": "cert.pem",
    "rubric.concurrency": "1", "rubric.repeats": "0", "rubric.patience_s": "0",
    "grader.file": "grader2.json", "grader.url": "DOUBLE", "grader.model": "another",
    "grader.header_env": "EVERY_REWARD_HEADER", "grader.ca": "cert.pem", "grader.python": "./interpreter",
    "grader.concurrency": "1", "grader.repeats": "0", "grader.patience_s": "0",
}
SAME = {("bt_rm.pooling", "mean"): "how this model was trained"}
REFUSES = {"imdb.self_test"} # options whose effect is a refusal
WITHOUT = {}


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock, asked, connections, port, tls, slow = threading.Lock(), [], 0, 0, 0, 0

    def setup(self):
        super().setup()
        with Service.lock:
            Service.connections += 1
        if self.server.server_port == Service.slow:
            time.sleep(1)

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for k, v in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(k, v)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with Service.lock:
            Service.asked.append((self.path, self.headers.get("X-Key"), body))
            times = sum(a[0] == self.path for a in Service.asked)
        time.sleep(0.02)
        if self.path in ("/busy", "/down") and times <= 2:
            return self.answer(500 if self.path == "/busy" else 503)
        if self.path == "/moved":
            return self.answer(307, Location=f"http://127.0.0.1:{Service.port}/score")
        asked, scale = json.loads(body), 2 if self.path == "/double" else 1
        if "messages" in asked: # chat completions
            says = str(scale * (len(body) % 5))
            return self.answer(200, json.dumps({"choices": [{"message": {"content": says}}]}).encode())
        texts = [r["response"] for r in asked["rows"]] if "rows" in asked else asked["query"]
        paid = [scale * len(t) / 100 for t in texts]
        room = " " * (2 << 20 if self.path == "/big" else 0)
        self.answer(200, (room + json.dumps(paid if "rows" in asked else {"rewards": paid})).encode())

    def log_message(self, *_):
        pass


def serve():
    plain = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    Service.port = plain.server_port
    servers = [plain]
    if shutil.which("openssl"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout",
                        "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("cert.pem", "key.pem")
        for name in ("tls", "slow"):
            secure = ThreadingHTTPServer(("127.0.0.1", 0), Service)
            secure.socket = context.wrap_socket(secure.socket, server_side=True,
                                                do_handshake_on_connect=False)
            setattr(Service, name, secure.server_port)
            servers.append(secure)
    else:
        for key in ("http.ca", "http.connect_timeout_s", "rubric.ca", "grader.ca"):
            WITHOUT[key] = "there is no openssl to make a certificate with"
    for s in servers:
        s.daemon_threads = True
        s.handle_error = lambda *_: None # the end of a run closes connections, which is no error
        threading.Thread(target=s.serve_forever, daemon=True).start()


def write_speaker():
    """A policy whose next token depends only on the position: tied embeddings, and blocks without output."""
    width, context, end = 64, STEP * (len(ROWS) + 1), 259
    rng = random.Random(1)
    says = [end] * context
    for k, (text, _) in enumerate(ROWS):
        for i, b in enumerate(text.encode()):
            says[STEP * (k + 1) - 1 + i] = b
    wte = []
    for _ in range(260):
        v = [rng.gauss(0, 1) for _ in range(width)]
        mean = sum(v) / width
        norm = sum((x - mean) ** 2 for x in v) ** 0.5
        wte.append([(x - mean) / norm for x in v])
    flat = lambda rows, by: [by * x for row in rows for x in row]
    tensors = {"wte.weight": ([260, width], flat(wte, 1)),
               "wpe.weight": ([context, width], flat([wte[t] for t in says], 40)),
               "ln_f.weight": ([width], [40.0] * width), "ln_f.bias": ([width], [0.0] * width)}
    for name, shape in (("ln_1", [width]), ("ln_2", [width]), ("attn.c_attn", [width, 3 * width]),
                        ("attn.c_proj", [width, width]), ("mlp.c_fc", [width, 4 * width]),
                        ("mlp.c_proj", [4 * width, width])):
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[f"h.0.{name}.weight"] = (shape, [0.0] * size)
        tensors[f"h.0.{name}.bias"] = (shape[-1:], [0.0] * shape[-1])
    shutil.copytree("model", "speaker")
    config = json.load(open("model/config.json"))
    config.update(n_positions=context, n_embd=width)
    json.dump(config, open("speaker/config.json", "w"))
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        raw = array.array("f", values).tobytes()
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open("speaker/model.safetensors", "wb").write(len(text).to_bytes(8, "little") + text + data)
    with open("rows.jsonl", "w") as f:
        for k, (_, right) in enumerate(ROWS):
            f.write(json.dumps({"prompt": "x" * (STEP * (k + 1)), "answer": right,
                                "other": "8"}) + "\n")


def train(algo, data, to, *more):
    p = subprocess.run([kit.HOST, "--algo", algo, "--data", data, *kit.COMMON, "--set",
                        "batch.size=4", "--phases", "1", "--out", "r", *more],
                       capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(p.stderr)
    shutil.move(os.path.realpath("r/checkpoints/latest"), to)
    shutil.rmtree("r")


def write_judges():
    kit.write_inputs()
    config = json.load(open("model/config.json"))
    json.dump({**config, "n_positions": 2048}, open("model/config.json", "w"))
    write_speaker()
    for k in ("", "2"):
        seed = ["--seed", k or "1"]
        train("bradley_terry.so", "pairs.jsonl", "rm" + k, "--set", "score.calibrate=0", *seed)
        train("classify.so", "labeled.jsonl", "classifier" + k, "--set",
              "score.labels=NEGATIVE,POSITIVE", *seed)
    for k in ("", "2"):
        train("sft.so", "texts.jsonl", "judge" + k, "--seed", k or "1")
    open("judge.py", "w").write(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    r = json.loads(line)\n"
        "    x = len(r['response']) * float((sys.argv + ['1'])[1]) + 100 * ('ids' in r)\n"
        "    print(json.dumps({'index': r['index'], 'reward': x}), flush=True)\n")
    for name, by in (("one", 1), ("two", 2)):
        open(name + ".py", "w").write(
            "import os\n"
            "def paid(completions, **_):\n"
            f"    k = {by} * float(os.environ.get('EVERY_REWARD_SCALE', '1'))\n"
            "    return [k * len(c) for c in completions]\n"
            "def other(completions, **_):\n"
            "    return [1.5] * len(completions)\n")
    for name, ask in (("rubric", "Is it polite?"), ("rubric2", "Is it short?")):
        json.dump({"criteria": [{"name": "one", "ask": ask}]}, open(name + ".json", "w"))
    json.dump({"criteria": [{"name": "one", "ask": "Is it polite?", "answers": {"a": 1, "b": 0}}]},
              open("words.json", "w"))
    source = ("import os\ndef grade(sample, item):\n"
              "    return len(sample['output_text']) * float(os.environ.get('EVERY_REWARD_SCALE', '1'))\n")
    for name, formula in (("grader", "own + asked"), ("grader2", "own - asked")):
        json.dump({"type": "multi", "calculate_output": formula, "graders": {
            "own": {"type": "python", "source": source},
            "asked": {"type": "score_model", "model": "m", "range": [0, 100], "input": [
                {"role": "user", "content": "Grade {{ sample.output_text }} for {{ item.answer }}."}]}}},
            open(name + ".json", "w"))
    open("answers.py", "w").write(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'ask': json.loads(line)['ask'], 'score': 9}), flush=True)\n")
    open("interpreter", "w").write('#!/bin/sh\nEVERY_REWARD_SCALE=3 exec python3 "$@"\n')
    os.chmod("interpreter", 0o755)


def url_of(value):
    if value in ("TLS", "SLOW"):
        return f"https://127.0.0.1:{Service.tls if value == 'TLS' else Service.slow}/score"
    return f"http://127.0.0.1:{Service.port}/{value.lower()}" if value.isupper() else value


def run(reward, *options):
    """Returns the exit status, the result and the last output."""
    merged = {}
    for text in (BASE.get(reward, "url=SCORE" if reward == "http" else ""), *options):
        merged.update(p.split("=", 1) for p in text.split(",") if p)
    merged = {k: v for k, v in merged.items() if v} # "url=" leaves url out
    if "url" in merged:
        merged["url"] = url_of(merged["url"])
    spec = ",".join(f"{k}={v}" for k, v in merged.items())
    Service.asked, Service.connections = [], 0
    p = subprocess.run([kit.HOST, "eval", "--model", "speaker", "--data", "rows.jsonl", "--reward",
                        f"{reward}.so" + (":" + spec if spec else ""), "--n", str(len(ROWS)),
                        "--json", "--backend", "cpu", "--threads", "1", "--set",
                        "sampling.max_new_tokens=40", "--set", "sampling.stop_at_eos=true", "--set",
                        "prompts.prepend_bos=false"],
                       capture_output=True, text=True,
                       env={**os.environ, "EVERY_REWARD_HEADER": "X-Key: k"})
    said = (p.stderr.strip().splitlines() or [""])[-1]
    if p.returncode not in (0, 1, 2):
        raise SystemExit(f"{reward}.so:{spec}: exit status {p.returncode}\n{p.stderr}")
    sent = sorted((path, key or "", body) for path, key, body in Service.asked)
    return p.returncode, p.stdout + json.dumps([sent, Service.connections]), said


def values(name, key, spec):
    if name in VALUE or key in VALUE:
        return [VALUE.get(name, VALUE.get(key))]
    if "enum" in spec:
        return [v for v in spec["enum"] if v != spec["default"] and (name, v) not in SAME]
    if "default" not in spec or spec["default"] is None or spec["type"] == "string":
        return []
    return kit.other_values(key, spec)


def try_option(reward, key, spec):
    name, changed, wrong, why = f"{reward}.{key}", False, [], ""
    context = CONTEXT.get(name, "")
    if reward in BASE and key == "self_test":
        spec = {**spec, "default": False}
    without = run(reward, context)
    for value in values(name, key, spec):
        status, result, why = run(reward, context, f"{key}={value}")
        if status == 2 and name not in REFUSES:
            continue
        seen = (status, result) != without[:2]
        changed |= seen
        if not seen:
            wrong.append(f"{reward}.so: {key}={value} changes nothing and is not refused")
    if not changed:
        wrong.append(f"{reward}.so: no value of {key} changes what is paid or sent"
                     + (f" ({why})" if why else "; give one in VALUE"))
    return wrong


def try_all():
    write_judges()
    serve()
    run("rubric", "record=kept.jsonl")
    wrong, tried = [], 0
    for reward in sorted(f[:-3] for f in os.listdir(REWARDS) if f.endswith(".so")):
        status, _, said = run(reward)
        if status:
            wrong.append(f"{reward}.so without further options: exit status {status}: {said}")
            continue
        for key, spec in kit.options_of(f"{reward}.so").items():
            if f"{reward}.{key}" not in WITHOUT:
                wrong += try_option(reward, key, spec)
                tried += 1
    return wrong, (f"{tried} options, each changes what is paid or sent"
                   + "".join(f"; without {k} ({v})" for k, v in WITHOUT.items()))


if __name__ == "__main__":
    kit.in_scratch(try_all)
