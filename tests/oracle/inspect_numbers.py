"""Computes the numbers of `rlhf-host inspect` (docs/inspect.md) in float64, with PyTorch's hooks.

numbers(kind, base, tuned, ids, good, bad) returns the JSON of one subject without its texts; models are
those of transformers, in float64. compare(ours, theirs) yields (name, largest difference)."""
import torch


class Parts:
    """The modules and sizes of a model, whatever names its family has for them."""

    def __init__(self, model):
        self.model = model
        core = getattr(model, "transformer", None) or model.model
        self.gpt2 = hasattr(core, "wte")
        c = model.config
        self.layers, self.heads = c.num_hidden_layers, c.num_attention_heads
        self.kv = getattr(c, "num_key_value_heads", None) or self.heads
        self.embed, self.position = (core.wte, core.wpe) if self.gpt2 else (core.embed_tokens, None)
        self.blocks = core.h if self.gpt2 else core.layers
        self.norm = core.ln_f if self.gpt2 else core.norm
        self.rms = getattr(self.norm, "bias", None) is None
        self.eps = c.layer_norm_epsilon if self.gpt2 else c.rms_norm_eps
        # Granite's factors of the embeddings and of what is added to the stream; the divisor of its logits
        self.token, self.block = getattr(c, "embedding_multiplier", 1.0), getattr(c, "residual_multiplier", 1.0)
        self.divisor = getattr(c, "logits_scaling", 1.0)
        # Gemma (not VaultGemma) and OLMo: norms after the blocks; Gemma: gains that are stored without 1, and capped logits
        self.after = hasattr(self.blocks[0], "post_feedforward_layernorm")
        self.one = 1 if "gemma" in c.model_type else 0
        self.gain = self.one + self.norm.weight
        self.cap = getattr(c, "final_logit_softcapping", None)

    def attention(self, b):
        return b.attn if self.gpt2 else b.self_attn

    def added(self, b):
        """The modules whose outputs are added to the stream: of attention, of the MLP."""
        return (b.post_attention_layernorm, b.post_feedforward_layernorm) if self.after else (self.attention(b), self.mlp(b))

    def back(self, b, g, raw):
        """From directions g of the stream, those of the output projection's result `raw`, with the norm's scale fixed."""
        if not self.after:
            return g
        gain = self.one + b.post_attention_layernorm.weight
        return g * gain / (raw.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()

    def product(self, b):
        return b.attn.c_proj if self.gpt2 else b.self_attn.o_proj

    def mlp(self, b):
        return b.shared_mlp if hasattr(b, "shared_mlp") else b.mlp

    def down(self, b):
        m = self.mlp(b)
        return m.c_proj if self.gpt2 else m.output_linear if hasattr(m, "output_linear") else m.down_proj

    def before(self, b):
        """The norm of attention's input; OLMo 2 has none."""
        return b.ln_1 if self.gpt2 else getattr(b, "input_layernorm", None)

    def matrix(self, b):
        """The weight of the attention's output projection, as [heads, width, d]."""
        w = self.product(b).weight if self.gpt2 else self.product(b).weight.T
        return w.reshape(self.heads, -1, w.shape[-1])

    def values(self, b, h):
        """The values as [n, heads, width]. Values that several heads share are repeated."""
        if hasattr(b, "self_attn") and hasattr(b.self_attn, "qkv_proj"):  # Phi-3
            v = b.self_attn.qkv_proj(h)[..., -self.kv * b.self_attn.head_dim:]
        else:
            v = b.attn.c_attn(h).chunk(3, -1)[2] if self.gpt2 else b.self_attn.v_proj(h)
        v = v.reshape(v.shape[-2], self.kv, -1)
        return v.repeat_interleave(self.heads // self.kv, 1)


def first(out):
    return out[0] if isinstance(out, tuple) else out


def look(p, ids, changes=()):
    """Runs one forward pass. Returns the needed outputs of modules and the output of the model. `changes` is
    a list of (module, numbers to add to its output)."""
    seen, hooks = {}, []

    def watch(key, module, given=False):
        def keep(_, args, kwargs, out):
            x = (args[0] if args else kwargs["hidden_states"]) if given else first(out)
            seen[key] = x.reshape(-1, x.shape[-1])

        hooks.append(module.register_forward_hook(keep, with_kwargs=True))

    def change(module, delta):
        def add(_, args, out):
            return (out[0] + delta, *out[1:]) if isinstance(out, tuple) else out + delta

        hooks.append(module.register_forward_hook(add))

    for module, delta in changes:
        change(module, delta)
    watch("token", p.embed)
    if p.position is not None:
        watch("position", p.position)
    for i, b in enumerate(p.blocks):
        attention, mlp = p.added(b)
        for key, module, given in (("in", b, True), ("attention", attention, False), ("heads", p.product(b), True),
                                   ("raw", p.product(b), False), ("mlp", mlp, False), ("out", b, False),
                                   ("normed", p.before(b) or b, not p.before(b))):
            watch((i, key), module, given)
    watch("final", p.norm)
    with torch.no_grad():
        out = p.model(input_ids=torch.tensor([ids]), output_attentions=True)
    for h in hooks:
        h.remove()
    seen["weights"] = torch.stack([a[0] for a in out.attentions])
    seen["logits"] = out.logits[0]
    seen["products"] = p.cap * torch.atanh(seen["logits"] / p.cap) if p.cap else seen["logits"]
    return seen


class Words:
    """The mean logit of the good tokens minus that of the bad tokens."""

    def __init__(self, p, good, bad):
        self.p, self.good, self.bad = p, good, bad
        head = p.model.get_output_embeddings().weight
        self.u, self.b = (head[good].mean(0) - head[bad].mean(0)) / p.divisor, 0.0

    def measured(self, seen):
        return seen["products"][:, self.good].mean(-1) - seen["products"][:, self.bad].mean(-1)

    def at(self, x):
        return self.u.expand_as(x), torch.full(x.shape[:1], self.b, dtype=x.dtype)


class Score:
    """A reward model's gain * score + bias."""

    def __init__(self, p, gain=1.0, bias=0.0):
        self.p, self.u, self.b = p, p.model.score.weight[0] * gain, bias
        if p.model.score.bias is not None:
            self.b += float(p.model.score.bias[0]) * gain

    def measured(self, seen):
        return seen["final"] @ self.u + self.b

    at = Words.at


class Value:
    """A value head: linear from d to 4d, ReLU, linear from 4d to 1. At each input it is treated as
    the linear function of the units that are active there."""

    def __init__(self, p, head):
        self.p = p
        self.w, self.c, self.o, self.b = (head[k].double() for k in (
            "v_head.fc.weight", "v_head.fc.bias", "v_head.out.weight", "v_head.out.bias"))

    def measured(self, seen):
        return (torch.relu(seen["final"] @ self.w.T + self.c) @ self.o.T)[:, 0] + self.b

    def at(self, x):
        on = ((self.p.norm(x) @ self.w.T + self.c) > 0).double() * self.o
        return on @ self.w, on @ self.c + self.b


def direction(of, x):
    """Returns g and the constant of the linear function at each row of x, with the norm's scale
    fixed at its value for that row."""
    p = of.p
    u, b = of.at(x)
    if p.rms:
        return p.gain * u / (x.pow(2).mean(-1, keepdim=True) + p.eps).sqrt(), b
    g = p.gain * u / (x.var(-1, keepdim=True, unbiased=False) + p.eps).sqrt()
    return g - g.mean(-1, keepdim=True), b + u @ p.norm.bias


def attribution(of, seen):
    p = of.p
    x = seen[p.layers - 1, "out"]
    g, constant = direction(of, x)
    at = lambda y: (g * y).sum(-1)
    names, rows = ["token"], [at(seen["token"] * p.token)]
    if p.position is not None:
        names, rows = names + ["position"], rows + [at(seen["position"].expand_as(x))]
    heads, sources = [], []
    for i, b in enumerate(p.blocks):
        w, z = p.matrix(b) * p.block, seen[i, "heads"].reshape(len(x), p.heads, -1)
        back = p.back(b, g, seen[i, "raw"])
        heads.append(torch.einsum("thc,hcd,td->th", z, w, back))
        v = torch.einsum("shc,hcd->shd", p.values(b, seen[i, "normed"]), w)
        sources.append(torch.einsum("hts,shd,td->hts", seen["weights"][i], v, back))
        bias = [m.bias * p.block if getattr(m, "bias", None) is not None else None for m in (p.product(b), p.down(b))]
        names.append(f"{i}.attention")
        rows.append(heads[-1].sum(-1))
        if bias[0] is not None:
            names, rows = names + [f"{i}.attention bias"], rows + [(back * bias[0]).sum(-1)]
        names.append(f"{i}.mlp")
        rows.append(at(seen[i, "mlp"] * p.block - (0 if bias[1] is None else bias[1])))
        if bias[1] is not None:
            names, rows = names + [f"{i}.mlp bias"], rows + [at(bias[1])]
    if not p.rms or isinstance(of, Value) or of.b != 0:
        names, rows = names + ["final bias"], rows + [constant]
    stages = [seen[i, "in"] for i in range(p.layers)] + [x]
    lens = []
    for s in stages:
        gs, cs = direction(of, s)
        lens.append((gs * s).sum(-1) + cs)
    return {"names": names, "difference": of.measured(seen), "rows": torch.stack(rows), "sum": sum(rows),
            "heads": torch.stack(heads), "source": torch.stack(sources), "attention": seen["weights"],
            "accumulated": torch.stack([at(s) + constant for s in stages]), "lens": torch.stack(lens)}


def patching(base, tuned, ids, names):
    """How much the measured number of the base model changes if one output is replaced by that of
    the tuned model."""
    p, q = base.p, tuned.p
    a, b = look(p, ids), look(q, ids)
    was = base.measured(a)
    effect = lambda module, delta: base.measured(look(p, ids, [(module, delta)])) - was
    rows = []
    for name in names:
        layer, _, what = name.partition(".")
        if name == "token":
            rows.append(effect(p.embed, b["token"] - a["token"]))
        elif name == "position":
            rows.append(effect(p.position, b["position"] - a["position"]))
        elif what in ("attention", "mlp"):
            i = int(layer)
            module = p.added(p.blocks[i])[what == "mlp"]
            rows.append(effect(module, b[i, what] - a[i, what]))
        else:
            rows.append(None)
    heads = []
    for i in range(p.layers):
        z = [s[i, "heads"].reshape(len(ids), p.heads, -1) for s in (a, b)]
        w = [m.matrix(m.blocks[i]) for m in (p, q)]
        delta = [torch.einsum("thc,hcd->htd", zi, wi) for zi, wi in zip(z, w)]
        heads.append(torch.stack([effect(p.product(p.blocks[i]), delta[1][h] - delta[0][h]) for h in range(p.heads)], -1))
    x = a[p.layers - 1, "out"]
    g, constant = direction(tuned, x)
    return {"rows": rows, "heads": torch.stack(heads), "out": (g * x).sum(-1) + constant - was}


def numbers(of, ids):
    """`of` is [Words, ...] of the base and the tuned model, or of one model."""
    seen = [look(o.p, ids) for o in of]
    found = {"of": [attribution(o, s) for o, s in zip(of, seen)]}
    found["names"] = found["of"][0]["names"]
    if len(of) == 2:
        found["patched"] = patching(*of, ids, found["names"])
    if len(of) == 2 and isinstance(of[0], Words):
        p, q = (s["logits"].log_softmax(-1) for s in reversed(seen))
        found["kl"], found["probability"] = (p.exp() * (p - q)).sum(-1), torch.stack([q.exp(), p.exp()])
    return found


# ---- comparing with ours ----


def far(ours, theirs):
    theirs = theirs.detach()
    ours = torch.tensor(ours, dtype=torch.float64)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return float((ours - theirs).abs().max()) / max(1.0, float(theirs.abs().max()))


def triangle(text, n):
    import base64

    out, at = torch.zeros(n, n, dtype=torch.float64), 0
    data = base64.b64decode(text)
    for t in range(n):
        out[t, : t + 1] = torch.tensor(list(data[at : at + t + 1]), dtype=torch.float64) / 255
        at += t + 1
    return out


def check_moved(ours, probability, find):
    """The listed tokens have their probabilities, and none that is left out moved more."""
    worst = 0.0
    for t, listed in enumerate(ours):
        q, p = probability[:, t]
        half, move = len(listed) // 2, p - q
        for text, was, now in filter(None, listed):
            same = [i for i in find(text) if abs(float(q[i]) - was) + abs(float(p[i]) - now) < 1e-4]
            assert same, (t, text, was, now)
            worst = max(worst, min(abs(float(q[i]) - was) + abs(float(p[i]) - now) for i in same))
        rise, fall = listed[half - 1], listed[-1]
        assert (rise[2] - rise[1] if rise else 0) >= float(move.topk(half).values[-1]) - 1e-5
        assert (fall[2] - fall[1] if fall else 0) <= float((-move).topk(half).values[-1]) * -1 + 1e-5
    return worst


def compare(ours, theirs, find=None):
    assert ours["names"] == theirs["names"], (ours["names"], theirs["names"])
    n = len(ours["tokens"])
    for k, (a, b) in enumerate(zip(ours["of"], theirs["of"])):
        for key in ("difference", "sum", "rows", "heads", "accumulated", "lens"):
            yield f"{key} {k}", far(a[key], b[key].transpose(1, 2) if key == "none" else b[key])
        for j, (layer, head) in enumerate(ours["top"]):
            source = [row + [0.0] * (n - len(row)) for row in a["source"][j]]
            yield f"source {k}", far(source, b["source"][layer, head])
            weight = (triangle(a["attention"][j], n) - b["attention"][layer, head]).abs().max()
            yield f"attention {k}, a byte", max(0.0, float(weight) - 0.5 / 255)
    if "patched" in theirs:
        for name, a, b in zip(ours["names"], ours["patched"]["rows"], theirs["patched"]["rows"]):
            assert (a is None) == (b is None), name
            if a is not None:
                yield "patched " + name.split(".")[-1], far(a, b)
        yield "patched heads", far(ours["patched"]["heads"], theirs["patched"]["heads"])
        yield "patched out", far(ours["patched"]["out"], theirs["patched"]["out"])
    if "kl" in theirs:
        yield "kl", far(ours["kl"], theirs["kl"])
        if find:
            yield "moved", check_moved(ours["moved"], theirs["probability"], find)
