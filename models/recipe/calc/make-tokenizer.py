#!/usr/bin/env python3
"""Write the tokenizer and the chat template of models/calc.

usage: make-tokenizer.py OUT_DIR

A token for each byte, so that any text can be encoded, and one for each fixed part of a conversation: the marks
of ChatML, of tool calls and of results, and the fixed text of a call of the calculator.
"""
import json
import os
import sys

END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
PARTS = ("system\n", "user\n", "assistant\n", "<tool_call>\n", "\n</tool_call>", "<tool_response>\n", "\n</tool_response>",
         '{"name": "', "calculator", '", "arguments": {"expression": "', '"}}')
TEMPLATE = """{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- 'Tools:' }}
{%- for tool in tools %}{{- '\\n' + tool | tojson }}{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- elif message.tool_calls %}
{{- '<|im_start|>' + message.role }}
{%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
{%- for call in message.tool_calls %}
{%- set call = call.function if call.function is defined else call %}
{{- '\\n<tool_call>\\n{"name": "' + call.name + '", "arguments": ' + (call.arguments if call.arguments is string else call.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif not (loop.first and message.role == 'system') %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def byte_names():
    """The characters by which GPT-2's vocabularies name the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + k) for k, b in enumerate(rest)}}


def added(number, content, special):
    return {"id": number, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": special}


def main():
    out = sys.argv[1]
    names = byte_names()
    vocab = {names[b]: b for b in range(256)}
    tokens = [added(256 + k, t, t in (END, START, STOP)) for k, t in enumerate((END, START, STOP, *PARTS))]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": None,
                 "pre_tokenizer": bytes_, "post_processor": None, "decoder": bytes_,
                 "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                           "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                           "vocab": vocab, "merges": []}}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": None, "eos_token": STOP, "pad_token": END,
              "clean_up_tokenization_spaces": False, "model_max_length": 160}
    for name, what in (("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            json.dump(what, f, indent=1, ensure_ascii=False)
            f.write("\n")
    with open(os.path.join(out, "chat_template.jinja"), "w", encoding="utf-8") as f:
        f.write(TEMPLATE)


if __name__ == "__main__":
    main()
