// form_jinja.c: see form_jinja.h.
#include "chat/form_jinja.h"

#include <stddef.h>
#include <string.h>

#define EACH      "{%- for message in messages %}\n"
#define END_EACH  "{%- endfor %}\n"
#define END_IF    "{%- endif %}\n"
#define NEXT(out) "{%- if add_generation_prompt %}\n{{- " out " }}\n" END_IF

// Turns of users and assistants alternate, a user's first; `turn` counts from 0.
#define ALTERNATE(turn)                                                                            \
    "{%- if (message['role'] == 'user') != (" turn " % 2 == 0) %}\n"                               \
    "{{- raise_exception('user and assistant alternate') }}\n" END_IF

#define CHATML                                                                                     \
    EACH "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' "    \
         "}}\n" END_EACH NEXT("'<|im_start|>assistant\\n'")

// The system's content begins the first question; both are trimmed together.
#define LLAMA2                                                                                     \
    "{%- set system = none %}\n"                                                                   \
    "{%- set turns = messages %}\n"                                                                \
    "{%- if messages[0]['role'] == 'system' %}\n"                                                  \
    "{%- set system = messages[0]['content'] %}\n"                                                 \
    "{%- set turns = messages[1:] %}\n" END_IF "{%- for message in turns %}\n" ALTERNATE(          \
        "loop.index0") "{%- set content = message['content'] %}\n"                                 \
                       "{%- if loop.first and system is not none %}\n"                             \
                       "{%- set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + content "  \
                       "%}\n" END_IF "{%- if message['role'] == 'user' %}\n"                       \
                       "{{- bos_token + '[INST] ' + content.strip() + ' [/INST]' }}\n"             \
                       "{%- else %}\n"                                                             \
                       "{{- ' ' + content.strip() + ' ' + eos_token }}\n" END_IF END_EACH

#define LLAMA3                                                                                     \
    "{{- bos_token }}\n" EACH                                                                      \
    "{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + "                   \
    "message['content'].strip() + '<|eot_id|>' }}\n" END_EACH NEXT(                                \
        "'<|start_header_id|>assistant<|end_header_id|>\\n\\n'")

#define QWEN25                                                                                     \
    "{%- if messages[0]['role'] != 'system' %}\n"                                                  \
    "{{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful "         \
    "assistant.<|im_end|>\\n' }}\n" END_IF CHATML

// Thoughts stay in answers behind the last question, and the last answer has some, empty or not.
#define QWEN3                                                                                      \
    "{%- set ns = namespace(last=messages|length - 1, found=false) %}\n"                           \
    "{%- for message in messages[::-1] %}\n"                                                       \
    "{%- set content = message['content'] %}\n"                                                    \
    "{%- if not ns.found and message['role'] == 'user' and not "                                   \
    "(content.startswith('<tool_response>') and content.endswith('</tool_response>')) %}\n"        \
    "{%- set ns.found = true %}\n"                                                                 \
    "{%- set ns.last = messages|length - 1 - loop.index0 %}\n" END_IF END_EACH EACH                \
    "{%- set content = message['content'] %}\n"                                                    \
    "{{- '<|im_start|>' + message['role'] + '\\n' }}\n"                                            \
    "{%- if message['role'] == 'assistant' %}\n"                                                   \
    "{%- set thoughts = '' %}\n"                                                                   \
    "{%- if message.reasoning_content is string %}\n"                                              \
    "{%- set thoughts = message.reasoning_content %}\n"                                            \
    "{%- elif '</think>' in content %}\n"                                                          \
    "{%- set thoughts = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1]"           \
    ".lstrip('\\n') %}\n"                                                                          \
    "{%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n" END_IF                    \
    "{%- if loop.index0 > ns.last and (loop.last or thoughts) %}\n"                                \
    "{{- '<think>\\n' + thoughts.strip('\\n') + '\\n</think>\\n\\n' }}\n"                          \
    "{%- set content = content.lstrip('\\n') %}\n" END_IF END_IF                                   \
    "{{- content + '<|im_end|>\\n' }}\n" END_EACH NEXT("'<|im_start|>assistant\\n'")

#define GEMMA                                                                                      \
    "{{- bos_token }}\n"                                                                           \
    "{%- if messages[0]['role'] == 'system' %}\n"                                                  \
    "{{- raise_exception('there is no role system') }}\n" END_IF EACH ALTERNATE(                   \
        "loop.index0") "{%- set role = 'model' if message['role'] == 'assistant' else "            \
                       "message['role'] %}\n"                                                      \
                       "{{- '<start_of_turn>' + role + '\\n' + message['content'].strip() + "      \
                       "'<end_of_turn>\\n' "                                                       \
                       "}}\n" END_EACH NEXT("'<start_of_turn>model\\n'")

#define ZEPHYR                                                                                     \
    EACH "{{- '<|' + message['role'] + '|>\\n' + message['content'] + eos_token + '\\n' "          \
         "}}\n" END_EACH NEXT("'<|assistant|>\\n'")

#define PLAIN                                                                                      \
    EACH "{{- message['content'] }}\n"                                                             \
         "{%- if message['role'] == 'assistant' %}\n"                                              \
         "{{- eos_token }}\n" END_IF END_EACH

const char *rlhf__form_jinja(const char *name) {
    static const char *const all[][2] = {
        {"chatml", CHATML}, {"llama2", LLAMA2}, {"llama3", LLAMA3}, {"qwen2.5", QWEN25},
        {"qwen3", QWEN3},   {"gemma", GEMMA},   {"zephyr", ZEPHYR}, {"plain", PLAIN},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i][0], name) == 0) return all[i][1];
    return NULL;
}
