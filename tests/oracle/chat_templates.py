"""Chat templates written here that behave like those of well-known models: name -> (form of the tokenizer,
special tokens that it needs, text). Published templates are in tests/chat/published.py.
"""

ALTERNATE = ("{% if (m.role == 'user') != (loop.index0 is even) %}"
             "{{ raise_exception('user and assistant must alternate') }}{% endif %}")

CHATML = """
{%- for m in messages %}
{{- '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

# A default system turn, and a branch for tools that is never executed.
QWEN25 = """{# of the 2.5 series #}
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- for t in tools | map(attribute='function') %}{{ t | tojson(indent=2) }}{% endfor %}
{%- else %}
    {%- set own = 'You are Qwen, created by Alibaba Cloud. You are a helpful assistant.' %}
    {%- set own = messages[0]['content'] if messages[0]['role'] == 'system' else own %}
    {{- '<|im_start|>system\\n' + own + '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
    {%- if m.role in ['user'] or (m.role == 'system' and not loop.first) or (m.role == 'assistant' and not m.tool_calls) %}
        {{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' }}
    {%- elif m.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

SMOLLM2 = """{% for m in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>
' }}{% endif %}{{'<|im_start|>' + m['role'] + '
' + m['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

QWEN3 = """
{%- if messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(looking=true, question=messages|length - 1) %}
{%- for m in messages[::-1] %}
    {%- set at = messages|length - 1 - loop.index0 %}
    {%- if ns.looking and m.role == 'user' and m.content is string and not(m.content.startswith('<tool_response>') and m.content.endswith('</tool_response>')) %}
        {%- set ns.looking = false %}
        {%- set ns.question = at %}
    {%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- set said = m.content if m.content is string else '' %}
    {%- if m.role == 'user' or (m.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + m.role + '\\n' + said + '<|im_end|>\\n' }}
    {%- elif m.role == 'assistant' %}
        {%- set thought = '' %}
        {%- if m.reasoning_content is string %}
            {%- set thought = m.reasoning_content %}
        {%- elif '</think>' in said %}
            {%- set thought = said.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set said = said.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {{- '<|im_start|>' + m.role + '\\n' }}
        {%- if loop.index0 > ns.question and (loop.last or thought) %}
            {{- '<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + said.lstrip('\\n') }}
        {%- else %}
            {{- said }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

LLAMA2 = """{% set rest = messages[1:] if messages[0].role == 'system' else messages -%}
{% set own = messages[0].content if messages[0].role == 'system' else none -%}
{% for m in rest -%}""" + ALTERNATE + """
{%- set said = m.content -%}
{% if loop.first and own is not none %}{% set said = '<<SYS>>\\n' + own + '\\n<</SYS>>\\n\\n' + m.content %}{% endif -%}
{% if m.role == 'user' %}{{ bos_token + '[INST] ' + said.strip() + ' [/INST]' }}
{%- elif m.role == 'assistant' %}{{ ' ' + said.strip() + ' ' + eos_token }}{% endif -%}
{% endfor -%}"""

LLAMA3 = """{% for m in messages %}{% set said = '<|start_header_id|>' + m['role'] + '<|end_header_id|>

' + m['content'] | trim + '<|eot_id|>' %}{{ bos_token + said if loop.first else said }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>

' }}{% endif %}"""

# Always has a system turn, which begins with dates.
LLAMA31 = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set own = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set own = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Cutting Knowledge Date: December 2023\\nToday Date: " + date_string + "\\n\\n" }}
{{- own ~ "<|eot_id|>" }}
{%- for m in messages %}
    {%- if not (m.role == 'ipython' or m.role == 'tool' or 'tool_calls' in m) %}
        {{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n'+ m['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in m %}
        {{- raise_exception("no tools") }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

GEMMA = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}{% for m in messages %}""" + ALTERNATE + """{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' + m.content | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"""

ZEPHYR = """{% for m in messages %}
{% if m['role'] == 'user' %}
{{ '<|user|>
' + m['content'] + eos_token }}
{% elif m['role'] == 'system' %}
{{ '<|system|>
' + m['content'] + eos_token }}
{% elif m['role'] == 'assistant' %}
{{ '<|assistant|>
'  + m['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

PLAIN = """{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}{{ eos_token }}{% endif %}{% endfor %}"""

# With blocks from which the mask is computed.
CHATML_MASK = """{% for m in messages %}{% if m.role == 'assistant' %}{{ '<|im_start|>assistant\\n' }}{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{{ '\\n' }}{% else %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
LLAMA3_MASK = """{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' }}{% if m.role == 'assistant' %}{% generation %}{{ m.content | trim + '<|eot_id|>' }}{% endgeneration %}{% else %}{{ m.content | trim + '<|eot_id|>' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""
LLAMA2_MASK = LLAMA2.replace("{{ ' ' + said.strip() + ' ' + eos_token }}",
                             "{% generation %}{{ ' ' + said.strip() + ' ' + eos_token }}{% endgeneration %}")

MISTRAL = """{{ bos_token }}{% for m in messages %}""" + ALTERNATE + """{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}{% else %}{{ m.content + eos_token }}{% endif %}{% endfor %}"""
MACRO = "{% macro turn(m) %}{{ m.content }}{% endmacro %}{% for m in messages %}{{ turn(m) }}{% endfor %}"
IM = ["<|im_start|>", "<|im_end|>"]
TURNS = ["<start_of_turn>", "<end_of_turn>"]

TEMPLATES = {
    "chatml": ("gpt2", IM, CHATML),
    "chatml-smollm2": ("smollm", [], SMOLLM2),
    "chatml-bos": ("gpt2", IM, "{{ bos_token }}" + CHATML),
    "qwen2.5": ("qwen2", [], QWEN25),
    "qwen3": ("qwen2", ["<think>", "</think>"], QWEN3),
    "llama2": ("llama2", [], LLAMA2),
    "llama2-metaspace": ("llama2-metaspace", [], LLAMA2),
    "llama3": ("llama3", [], LLAMA3),
    "llama3.1": ("llama3", [], LLAMA31),
    "gemma": ("llama2-metaspace", TURNS, GEMMA),
    "zephyr": ("llama2", ["<|user|>"], ZEPHYR),
    "plain": ("gpt2", [], PLAIN),
    "chatml-mask": ("qwen2", [], CHATML_MASK),
    "llama3-mask": ("llama3", [], LLAMA3_MASK),
    "llama2-mask": ("llama2-metaspace", [], LLAMA2_MASK),
    "mistral": ("llama2", [], MISTRAL),
    "macro": ("gpt2", [], MACRO),
}
# If TRL is installed: its chat_templates files, which it took from models.
TRL = {
    "gemma": ("llama2-metaspace", TURNS),
    "gemma_training": ("llama2-metaspace", TURNS),
    "gemma3": ("llama2-metaspace", TURNS),
    "llama3": ("llama3", []),
    "llama3_training": ("llama3", []),
    "llama3_1": ("llama3", []),
    "llama3_2": ("llama3", []),  # transformers writes today's date, this program the template's default
    "qwen2_5": ("qwen2", []),
    "qwen2_5_training": ("qwen2", []),
    "qwen3": ("qwen2", ["<think>", "</think>"]),
    "qwen3_training": ("qwen2", ["<think>", "</think>"]),
    "qwen3_instruct_2507": ("qwen2", []),
    "qwen3_instruct_2507_training": ("qwen2", []),
}
