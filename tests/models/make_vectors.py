#!/usr/bin/env python3
"""Vectors for tests/models, made by PyTorch and transformers in float64.

    python3 make_vectors.py > vectors.bin
    python3 make_vectors.py lfm2 qwen3_5 >> vectors.bin     (only these)

Parameters are not stored: both sides compute them with Philox 4x32-10 (seed 7, stream = FNV-1a of the name, four
values a block), uniform in +-0.3; norm gains are 1 plus such a number (Gemma's are
stored without the 1). The file is a list of records: name length,
name ("MODEL/TENSOR"), count (little-endian u32), then count float32. Made with PyTorch 2.15 and transformers 5.23; other recent
versions agree to float32 precision. The last bits depend on the CPU, because norms, rotary positions and softmax of transformers are in
float32 in every dtype, and PyTorch rounds them differently with AVX2 and AVX-512 (ATEN_CPU_CAPABILITY): most records here were
made with AVX-512, those of gemma2, vaultgemma, phi3 and olmo2 with AVX2. The gated delta rule of transformers is in float32 too; here
it is computed in float64, token by token.
"""
import struct
import sys

import numpy as np
import torch
import transformers as hf

SCALE, SEED = 0.3, 7
ROWS = [[5, 17, 60, 3, 3, 41, 9], [12], [58, 1, 0, 33, 20, 7, 7, 8, 50, 2, 11, 29], [44, 6, 19, 23]]
# pad_token_id 40 occurs nowhere, because torch gives a padding id no gradient.
PROMPTS = [2, 1, 5, 1]
SINK = 3, 60.0  # channel of the embedding, and its value for the first token of each row
LABELS = [0, 2, 1, 2]


def fnv(name):
    h = 0xCBF29CE484222325
    for b in name.encode():
        h = ((h ^ b) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def philox(stream, blocks):
    m = np.uint64(0xFFFFFFFF)
    c = np.arange(blocks, dtype=np.uint64)
    c0, c1 = c & m, c >> np.uint64(32)
    c2 = np.full(blocks, stream & 0xFFFFFFFF, np.uint64)
    c3 = np.full(blocks, stream >> 32, np.uint64)
    k0, k1 = SEED, 0
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = ((p1 >> np.uint64(32)) ^ c1 ^ np.uint64(k0), p1 & m,
                          (p0 >> np.uint64(32)) ^ c3 ^ np.uint64(k1), p0 & m)
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], 1).reshape(-1)


def fill(model):
    for name, p in model.named_parameters():
        words = philox(fnv(name), (p.numel() + 3) // 4)[: p.numel()]
        u = (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0 ** -24)
        gain = p.dim() == 1 and name.endswith("weight") and "gemma" not in model.config.model_type
        if model.config.model_type == "qwen3_5_text":
            gain = name.endswith(("linear_attn.norm.weight", "dt_bias"))
        x = np.float32(gain) + (np.float32(2) * u - np.float32(1)) * np.float32(SCALE)
        p.data = torch.from_numpy(x.astype(np.float64)).reshape(p.shape)
    model.eval()
    return model


def weights(total):
    """Loss weights, the same on both sides: (i * 7 % 11 - 3) / 8."""
    return [(i * 7 % 11 - 3) / 8 for i in range(total)]


class Writer:
    def __init__(self, model):
        self.model = model

    def put(self, name, values):
        x = np.asarray(values, dtype=np.float64).reshape(-1).astype("<f4")
        key = f"{self.model}/{name}".encode()
        sys.stdout.buffer.write(struct.pack("<I", len(key)) + key + struct.pack("<I", x.size) + x.tobytes())

    def grads(self, model):
        for name, p in model.named_parameters():
            self.put("grad:" + name, p.grad.detach().numpy())


def row_logp(model, row):
    x = torch.tensor([row])
    logits = model(input_ids=x, attention_mask=torch.ones_like(x)).logits[0]
    logp = torch.log_softmax(logits[:-1], -1)
    return torch.cat([torch.zeros(1, dtype=torch.float64),
                      logp[torch.arange(len(row) - 1), x[0, 1:]]])


def lm_loss(model):
    w, at, loss, all_logp = weights(sum(map(len, ROWS))), 0, 0.0, []
    for row, prompt in zip(ROWS, PROMPTS):
        logp = row_logp(model, row)
        mask = torch.arange(len(row)) >= prompt
        all_logp.append(torch.where(mask, logp, torch.zeros_like(logp)))
        loss = loss + (torch.tensor(w[at:at + len(row)]) * all_logp[-1]).sum()
        at += len(row)
    return loss, torch.cat(all_logp)


def gpt2_lm():
    cfg = hf.GPT2Config(vocab_size=61, n_positions=24, n_embd=32, n_layer=2, n_head=2, n_inner=64,
                        bos_token_id=1, eos_token_id=1,
                        attn_implementation="eager")
    model = fill(hf.GPT2LMHeadModel(cfg).double())
    out = Writer("gpt2_lm")
    loss, logp = lm_loss(model)
    loss.backward()
    out.put("logp", logp.detach().numpy())
    out.grads(model)
    decay = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1},
                             {"params": rest, "weight_decay": 0.0}], lr=2e-3, betas=(0.9, 0.95),
                            eps=1e-4)  # key biases have gradient 0 in theory; this keeps the noise small
    for step in range(1, 11):
        opt.zero_grad()
        loss, logp = lm_loss(model)
        (-loss).backward()
        opt.step()
    out.put("adamw:logp", lm_loss(model)[1].detach().numpy())
    for name, p in model.named_parameters():
        if p.dim() == 1 or name.endswith("h.1.attn.c_attn.weight"):
            out.put("adamw:" + name, p.detach().numpy())


def classifier(name, model):
    fill(model)
    out, logits, loss, at = Writer(name), [], 0.0, 0
    w = weights(len(ROWS) * 3)
    for row in ROWS:
        x = torch.tensor([row])
        z = model(input_ids=x, attention_mask=torch.ones_like(x)).logits[0]
        logits.append(z)
        loss = loss + (torch.tensor(w[at:at + 3]) * z).sum()
        at += 3
    loss.backward()
    out.put("score", torch.cat(logits).detach().numpy())
    out.grads(model)


def token_scores(model):
    """The score matrix times the final hidden state of each response token; 0 for prompt tokens."""
    fill(model)
    out, all_scores, loss, at = Writer("gpt2_token_score"), [], 0.0, 0
    w = weights(sum(map(len, ROWS)))
    for row, prompt in zip(ROWS, PROMPTS):
        x = torch.tensor([row])
        h = model.transformer(input_ids=x, attention_mask=torch.ones_like(x)).last_hidden_state
        z = model.score(h)[0, :, 0]
        z = torch.where(torch.arange(len(row)) >= prompt, z, torch.zeros_like(z))
        all_scores.append(z)
        loss = loss + (torch.tensor(w[at:at + len(row)]) * z).sum()
        at += len(row)
    loss.backward()
    out.put("token_score", torch.cat(all_scores).detach().numpy())
    out.grads(model)


def gpt2_classifier(labels, pad=40):
    return hf.GPT2ForSequenceClassification(hf.GPT2Config(
        vocab_size=61, n_positions=24, n_embd=24, n_layer=2, n_head=3, n_inner=40,
        num_labels=labels, pad_token_id=pad, bos_token_id=1, eos_token_id=1,
        scale_attn_by_inverse_layer_idx=True, activation_function="gelu",
        attn_implementation="eager")).double()


# ---- Llama and its descendants ----

TINY = dict(vocab_size=61, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=24,
            bos_token_id=1, eos_token_id=1, pad_token_id=None, attn_implementation="eager")
WIDE = dict(TINY, num_attention_heads=4, num_key_value_heads=2, head_dim=8)


GEMMA = dict(WIDE, hidden_size=24, head_dim=8, sliding_window=3)
# Many scores are beyond the cap. Without layer_types, the first layer has the window.
CAPPED = dict(GEMMA, attn_logit_softcapping=1.5, query_pre_attn_scalar=1)


def scaled(kind, **more):
    return dict(WIDE, rope_parameters=dict(rope_type=kind, rope_theta=100.0, **more))


SCALARS = dict(embedding_multiplier=3.0, residual_multiplier=0.22, attention_multiplier=0.1, logits_scaling=1.3)
# Granite 4: attention in all layers, no experts. transformers wants Mamba's sizes to agree nevertheless.
HYBRID = dict(layer_types=["attention", "attention"], num_local_experts=0, shared_intermediate_size=20,
              position_embedding_type="rope", mamba_n_heads=4, mamba_d_head=8)



def phi(original, short, long, **more):
    return hf.Phi3Config(**TINY, original_max_position_embeddings=original, **more, rope_scaling=dict(
        type="longrope", short_factor=short, long_factor=long))


# A layer with a convolution or the delta rule, and one with attention.
QWEN3_5 = dict(WIDE, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=6)


def delta_rule(query, key, value, g, beta, **rest):
    """The gated delta rule in float64. Arrays [1, tokens, heads, width]; g and beta [1, tokens, heads]."""
    def unit(x):
        return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)

    n, width = value.shape[2] // key.shape[2], key.shape[3]
    q, k = (unit(x).repeat_interleave(n, 2)[0] for x in (query, key))
    state, out = torch.zeros(value.shape[2], width, value.shape[3]), []
    for t in range(value.shape[1]):
        state = state * g[0, t].exp()[:, None, None]
        seen = (state * k[t][..., None]).sum(1)
        state = state + k[t][..., None] * ((value[0, t] - seen) * beta[0, t][:, None])[:, None]
        out.append((state * q[t][..., None]).sum(1) / width ** 0.5)
    return torch.stack(out)[None], state[None].detach()


# Name -> class of the model, its config. test_vectors.c has the same list in `decoders`.
DECODERS = {
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(**TINY)),
    "llama_bias": (hf.LlamaForCausalLM, hf.LlamaConfig(
        **TINY, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "mistral": (hf.MistralForCausalLM, hf.MistralConfig(
        **WIDE, sliding_window=None, hidden_act="gelu_new")),
    "qwen2": (hf.Qwen2ForCausalLM, hf.Qwen2Config(
        **TINY, tie_word_embeddings=True, rope_theta=1000.0)),
    "qwen3": (hf.Qwen3ForCausalLM, hf.Qwen3Config(**WIDE, rms_norm_eps=1e-3)),
    "smollm3": (hf.SmolLM3ForCausalLM, hf.SmolLM3Config(
        **WIDE, no_rope_layers=[1, 0], attention_bias=True)),
    # Sliding windows: the longest row has three of them.
    "mistral_window": (hf.MistralForCausalLM, hf.MistralConfig(**WIDE, sliding_window=4)),
    "qwen2_window": (hf.Qwen2ForCausalLM, hf.Qwen2Config(
        **TINY, use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    "qwen3_window": (hf.Qwen3ForCausalLM, hf.Qwen3Config(
        **WIDE, use_sliding_window=True, sliding_window=4, layer_types=["sliding_attention", "full_attention"])),
    "gemma3": (hf.Gemma3ForCausalLM, hf.Gemma3TextConfig(
        **GEMMA, layer_types=["sliding_attention", "full_attention"], query_pre_attn_scalar=5,
        rope_parameters=dict(full_attention=dict(rope_type="linear", factor=3.0, rope_theta=1000.0),
                             sliding_attention=dict(rope_type="default", rope_theta=100.0)))),
    # the older form, with an untied and capped head
    "gemma3_old": (hf.Gemma3ForCausalLM, hf.Gemma3TextConfig(
        **GEMMA, sliding_window_pattern=2, rope_theta=1000.0, rope_local_base_freq=50.0,
        rope_scaling=dict(rope_type="linear", factor=2.0), final_logit_softcapping=2.0,
        tie_word_embeddings=False, attention_bias=True, rms_norm_eps=1e-3)),
    "gemma2": (hf.Gemma2ForCausalLM, hf.Gemma2Config(**CAPPED, final_logit_softcapping=2.0)),
    "vaultgemma": (hf.VaultGemmaForCausalLM, hf.VaultGemmaConfig(
        **CAPPED, final_logit_softcapping=None, layer_types=["full_attention", "sliding_attention"])),
    "granite": (hf.GraniteForCausalLM, hf.GraniteConfig(**WIDE, **SCALARS, rms_norm_eps=1e-2)),
    "granitemoehybrid": (hf.GraniteMoeHybridForCausalLM, hf.GraniteMoeHybridConfig(
        **WIDE, **SCALARS, **HYBRID, tie_word_embeddings=True)),
    "phi3": (hf.Phi3ForCausalLM, hf.Phi3Config(**TINY, partial_rotary_factor=0.75, sliding_window=5)),
    "phi3_short": (hf.Phi3ForCausalLM, phi(original=16, short=[1.0, 1.3, 2.0, 3.0], long=[9.0] * 4)),
    # Some rows are longer than the original context and some are not; here all have the long factors.
    "phi3_long": (hf.Phi3ForCausalLM, phi(original=8, short=[2.0, 5.0], long=[2.0, 5.0], tie_word_embeddings=True,
                                          partial_rotary_factor=0.5)),
    "olmo2": (hf.Olmo2ForCausalLM, hf.Olmo2Config(**WIDE, attention_bias=True, rms_norm_eps=1e-3)),
    "olmo2_tied": (hf.Olmo2ForCausalLM, hf.Olmo2Config(**TINY, tie_word_embeddings=True, rope_theta=1000.0)),
    "lfm2": (hf.Lfm2ForCausalLM, hf.Lfm2Config(
        **TINY, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False)),
    # the older form; the MLP is 24 wide
    "lfm2_bias": (hf.Lfm2ForCausalLM, hf.Lfm2Config(
        **TINY, full_attn_idxs=[0], conv_bias=True, conv_L_cache=4, block_ff_dim=29, block_multiple_of=6,
        block_ffn_dim_multiplier=1.1, tie_embedding=False, norm_eps=1e-3, rope_theta=100.0)),
    "qwen3_5": (hf.Qwen3_5ForCausalLM, hf.Qwen3_5TextConfig(**QWEN3_5, full_attention_interval=2)),
    "qwen3_5_bias": (hf.Qwen3_5ForCausalLM, hf.Qwen3_5TextConfig(
        **dict(QWEN3_5, linear_num_value_heads=2), layer_types=["full_attention", "linear_attention"], attention_bias=True,
        tie_word_embeddings=True, linear_conv_kernel_dim=3, rms_norm_eps=1e-3,
        rope_parameters=dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.5,
                             mrope_section=[1, 1, 0], mrope_interleaved=True))),
    "olmo3": (hf.Olmo3ForCausalLM, hf.Olmo3Config(
        **WIDE, sliding_window=3, layer_types=["sliding_attention", "full_attention"], attention_bias=True,
        rope_parameters=dict(full_attention=dict(rope_type="yarn", factor=3.0, rope_theta=100.0, beta_fast=2.0,
                                                 beta_slow=0.5, attention_factor=1.3, original_max_position_embeddings=8),
                             sliding_attention=dict(rope_type="default", rope_theta=50.0)))),
}
# The same with other positions: log-probs and the gradients of one matrix.
ROTARY = {
    "rope_linear": (hf.LlamaForCausalLM, hf.LlamaConfig(**scaled("linear", factor=3.0))),
    "rope_llama3": (hf.LlamaForCausalLM, hf.LlamaConfig(**scaled(
        "llama3", factor=4.0, low_freq_factor=0.5, high_freq_factor=2.0,
        original_max_position_embeddings=16))),
    "rope_yarn": (hf.LlamaForCausalLM, hf.LlamaConfig(**scaled(
        "yarn", factor=3.0, beta_fast=2.0, beta_slow=0.5,
        original_max_position_embeddings=64))),
    "rope_yarn_mscale": (hf.Qwen3ForCausalLM, hf.Qwen3Config(**scaled(
        "yarn", factor=3.0, beta_fast=2.0, beta_slow=0.5, mscale=1.5, mscale_all_dim=0.5,
        truncate=False, original_max_position_embeddings=64))),
    # the first layer does not rotate, the second does
    "no_rope": (hf.SmolLM3ForCausalLM, hf.SmolLM3Config(
        **scaled("linear", factor=3.0), no_rope_layers=[0, 1], tie_word_embeddings=False)),
    "granite_no_rope": (hf.GraniteMoeHybridForCausalLM, hf.GraniteMoeHybridConfig(**WIDE, **SCALARS, **{
        **HYBRID, "position_embedding_type": None})),
    "no_rope_interval": (hf.SmolLM3ForCausalLM, hf.SmolLM3Config(**WIDE, no_rope_layer_interval=2)),
    "rope_yarn_factor": (hf.Qwen3ForCausalLM, hf.Qwen3Config(**scaled(
        "yarn", factor=3.0, attention_factor=0.7, original_max_position_embeddings=8))),
}


def decoder(name, cls, cfg, grads):
    model = fill(cls(cfg).double())
    out = Writer(name)
    loss, logp = lm_loss(model)
    loss.backward()
    out.put("logp", logp.detach().numpy())
    for tensor, p in model.named_parameters():
        if grads in tensor:
            out.put("grad:" + tensor, p.grad.detach().numpy())


# ---- bf16 ----

class Round(torch.autograd.Function):
    """Rounds the value (f) and the gradient (b) to bf16."""

    @staticmethod
    def forward(ctx, x, f, b):
        ctx.b = b
        return x.bfloat16().double() if f else x.clone()

    @staticmethod
    def backward(ctx, g):
        return (g.bfloat16().double() if ctx.b else g), None, None


class Attention(torch.autograd.Function):
    """Causal attention. Only its result is rounded; the backward pass reads the rounded result."""

    @staticmethod
    def forward(ctx, q, k, v, scale):
        s = (q @ k.transpose(-1, -2)) * scale
        p = (s + torch.full(s.shape[-2:], -torch.inf).triu(1)).softmax(-1)
        o = (p @ v).bfloat16().double()
        ctx.save_for_backward(q, k, v, p, o)
        ctx.scale = scale
        return o

    @staticmethod
    def backward(ctx, g):
        q, k, v, p, o = ctx.saved_tensors
        ds = p * (g @ v.transpose(-1, -2) - (g * o).sum(-1, keepdim=True)) * ctx.scale
        return ds @ k, ds.transpose(-1, -2) @ q, p.transpose(-1, -2) @ g, None


def rounded_logits(model, row):
    """The logits of a Llama. Weights, inputs and results of products are rounded, and so are their gradients.

    The residual stream, norms, softmax, logits and the gradients of weights are not.
    """
    def both(x):
        return Round.apply(x, True, True)

    def product(x, layer):
        return x @ Round.apply(layer.weight, True, False).T

    def heads(x):
        return x.view(len(row), -1, size).transpose(0, 1)

    def turn(x):
        half = torch.cat((-x[..., size // 2:], x[..., :size // 2]), -1)
        return both(x * cos + half * sin)

    cfg, size = model.config, model.config.head_dim
    x = model.model.embed_tokens.weight[row]
    cos, sin = (t[0] for t in model.model.rotary_emb(x[None], torch.arange(len(row))[None]))
    for layer in model.model.layers:
        a, h = layer.self_attn, both(layer.input_layernorm(x))
        q, k, v = (heads(both(product(h, w))) for w in (a.q_proj, a.k_proj, a.v_proj))
        n = cfg.num_attention_heads // cfg.num_key_value_heads
        o = Attention.apply(turn(q), turn(k).repeat_interleave(n, 0), v.repeat_interleave(n, 0), size ** -0.5)
        o = Round.apply(o.transpose(0, 1).reshape(len(row), -1), False, True)
        x = x + Round.apply(product(o, a.o_proj), False, True)
        h, m = both(layer.post_attention_layernorm(x)), layer.mlp
        h = both(torch.nn.functional.silu(both(product(h, m.gate_proj))) * both(product(h, m.up_proj)))
        x = x + Round.apply(product(h, m.down_proj), False, True)
    return Round.apply(product(both(model.model.norm(x)), model.lm_head), False, True)


def sink():
    """A Llama whose first tokens have one large channel, as pretrained models have behind BOS: with bf16's roundings."""
    cls, cfg = DECODERS["llama"]
    model = fill(cls(cfg).double())
    for row in ROWS:
        model.model.embed_tokens.weight.data[row[0], SINK[0]] = SINK[1]
    for name, logits in (("sink", lambda row: model(input_ids=torch.tensor([row])).logits[0]),
                         ("sink_bf16", lambda row: rounded_logits(model, row))):
        out, w, at, loss, all_logp = Writer(name), weights(sum(map(len, ROWS))), 0, 0.0, []
        for row, prompt in zip(ROWS, PROMPTS):
            logp = torch.log_softmax(logits(row)[:-1], -1)[torch.arange(len(row) - 1), row[1:]]
            logp = torch.cat([torch.zeros(1), logp])
            all_logp.append(torch.where(torch.arange(len(row)) >= prompt, logp, torch.zeros_like(logp)))
            loss = loss + (torch.tensor(w[at:at + len(row)]) * all_logp[-1]).sum()
            at += len(row)
        model.zero_grad()
        loss.backward()
        out.put("logp", torch.cat(all_logp).detach().numpy())
        out.grads(model)


def main():
    torch.set_default_dtype(torch.float64)
    hf.models.qwen3_5.modeling_qwen3_5.torch_chunk_gated_delta_rule = delta_rule
    for name in sys.argv[1:]:
        decoder(name, *DECODERS[name], "")
    if sys.argv[1:]:
        return
    gpt2_lm()
    classifier("gpt2_score", gpt2_classifier(3))
    token_scores(gpt2_classifier(1))
    classifier("distilbert", hf.DistilBertForSequenceClassification(hf.DistilBertConfig(
        vocab_size=61, max_position_embeddings=24, dim=24, n_layers=2, n_heads=3, hidden_dim=40,
        num_labels=3, pad_token_id=40, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0,
        attn_implementation="eager")).double())
    for name, (cls, cfg) in DECODERS.items():
        decoder(name, cls, cfg, "")
    for name, (cls, cfg) in ROTARY.items():
        decoder(name, cls, cfg, "layers.1.self_attn.k_proj")
    sink()
    # Token 29 ends a row. It is the padding of these classifiers, so they skip it.
    padded = dict(pad_token_id=29, num_labels=3)
    classifier("llama_score", hf.LlamaForSequenceClassification(
        hf.LlamaConfig(**dict(TINY, **padded))).double())
    classifier("qwen3_score", hf.Qwen3ForSequenceClassification(
        hf.Qwen3Config(**dict(WIDE, **padded))).double())
    classifier("smollm3_score", hf.SmolLM3ForSequenceClassification(
        hf.SmolLM3Config(**dict(WIDE, **padded, no_rope_layers=[1, 0]))).double())
    classifier("gemma2_score", hf.Gemma2ForSequenceClassification(
        hf.Gemma2Config(**dict(CAPPED, **padded))).double())
    classifier("phi3_score", hf.Phi3ForSequenceClassification(
        hf.Phi3Config(**dict(TINY, **padded, partial_rotary_factor=0.5))).double())
    classifier("olmo2_score", hf.Olmo2ForSequenceClassification(
        hf.Olmo2Config(**dict(WIDE, **padded))).double())
    classifier("gpt2_padded", gpt2_classifier(3, 29))


main()
