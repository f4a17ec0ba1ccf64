#!/usr/bin/env python3
"""Writes two directories with transformers for calculator.sh: small models with random weights, a Llama whose chat template is llama3,
and a Qwen3. Their tokenizer is that of models/calc; the Llama has tokens for the marks of its template.

Usage: calculator.py ROOT
"""
import sys

import torch
import transformers as hf

LLAMA = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"]
SMALL = dict(hidden_size=64, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
             max_position_embeddings=320, tie_word_embeddings=True, initializer_range=0.05)


def main():
    root = sys.argv[1]
    torch.manual_seed(1)
    tok = hf.AutoTokenizer.from_pretrained(f"{root}/models/calc")
    tok.save_pretrained("qwen3")
    config = hf.Qwen3Config(vocab_size=len(tok), eos_token_id=tok.eos_token_id, bos_token_id=None, **SMALL)
    hf.Qwen3ForCausalLM(config).save_pretrained("qwen3")
    with open(f"{root}/configs/chat/llama3.jinja") as f:
        tok.chat_template = f.read()
    tok.add_special_tokens({"bos_token": LLAMA[0], "eos_token": LLAMA[3], "additional_special_tokens": LLAMA})
    tok.save_pretrained("llama")
    config = hf.LlamaConfig(vocab_size=len(tok), eos_token_id=tok.eos_token_id, bos_token_id=tok.bos_token_id, **SMALL)
    hf.LlamaForCausalLM(config).save_pretrained("llama")


main()
