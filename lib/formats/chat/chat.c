// chat.c: see chat.h.
#include "chat/chat.h"

#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "chat/probe.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

// ---- the templates of the fixed set as Jinja ----
//
// They are for other programs: transformers renders with them what style.c writes.

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

// By the form's name; NULL = there is no such form.
static const char *form_jinja(const char *name) {
    static const char *const all[][2] = {
        {"chatml", CHATML}, {"llama2", LLAMA2}, {"llama3", LLAMA3}, {"qwen2.5", QWEN25},
        {"qwen3", QWEN3},   {"gemma", GEMMA},   {"zephyr", ZEPHYR}, {"plain", PLAIN},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i][0], name) == 0) return all[i][1];
    return NULL;
}

// ---- templates ----

enum { TEMPLATE_MAX = 1 << 18 };

struct rlhf__chat {
    struct rlhf__style style; // form NULL: none is known
    char *bos, *eos, *dir;
    char *source;   // file that the template is from; NULL = it was named
    char why[1200]; // no template: the reason
    int32_t has;    // 1: the directory has a template, known or not
};

static rlhf_status no_memory(struct rlhf__error *err) {
    return RLHF__NOMEM(err, "out of memory for a chat template");
}

static char *copy(const char *s) { return s ? strdup(s) : NULL; }

// ---- the directory's own ----

// The template of tokenizer_config.json: a string, or the one named "default" of a list.
static const json_t *config_template(const json_t *config) {
    const json_t *v = json_object_get(config, "chat_template"), *item;
    size_t i;
    if (!json_is_array(v)) return v;
    json_array_foreach(v, i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, "default") == 0) return json_object_get(item, "template");
    }
    return v;
}

static json_t *variables(const struct rlhf__chat_tokens *t) {
    const struct {
        const char *name, *token;
    } all[] = {
        {"bos_token", t->bos}, {"eos_token", t->eos}, {"unk_token", t->unk}, {"pad_token", t->pad}};
    json_t *vars = json_object();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].token) json_object_set_new(vars, all[i].name, json_string(all[i].token));
    json_object_set_new(vars, "tools", json_null()); // as transformers passes them
    json_object_set_new(vars, "documents", json_null());
    return vars;
}

static rlhf_status recognise(struct rlhf__chat *c, const struct rlhf__chat_tokens *tokens,
                             const char *file, const char *text, size_t n,
                             struct rlhf__error *err) {
    struct rlhf__error why = {0, ""};
    char shown[400];
    json_t *vars = variables(tokens);
    c->has = 1;
    rlhf_status st =
        n > TEMPLATE_MAX
            ? rlhf__fail(&why, RLHF_E_UNSUPPORTED, "it has %zu bytes; at most %d", n, TEMPLATE_MAX)
            : rlhf__probe_style(text, n, vars, c->bos, c->eos, &c->style, &why);
    json_decref(vars);
    if (st == RLHF_E_NOMEM) return no_memory(err);
    c->source = rlhf__path_join(c->dir, file);
    if (!c->source) return no_memory(err);
    if (st != RLHF_OK)
        snprintf(c->why, sizeof c->why, "the chat template of %s is not recognised (%s)",
                 rlhf__printable(c->source, shown, sizeof shown), why.text);
    return RLHF_OK;
}

static rlhf_status cannot_read(struct rlhf__chat *c, const struct rlhf__error *why) {
    c->has = 1;
    snprintf(c->why, sizeof c->why, "the chat template cannot be read: %.900s", why->text);
    return RLHF_OK;
}

// tokenizer_config.json's.
static rlhf_status read_config(struct rlhf__chat *c, const struct rlhf__chat_tokens *tokens,
                               struct rlhf__error *err) {
    static const char name[] = "tokenizer_config.json";
    struct rlhf__error why = {0, ""};
    json_t *config = NULL;
    char *path = rlhf__path_join(c->dir, name);
    if (!path) return no_memory(err);
    rlhf_status st = RLHF_OK;
    if (rlhf__is_file(path) && rlhf__json_load(path, &config, &why) != RLHF_OK)
        st = cannot_read(c, &why);
    free(path);
    const json_t *v = config_template(config);
    if (v && !json_is_null(v)) {
        if (json_is_string(v))
            st = recognise(c, tokens, name, json_string_value(v), json_string_length(v), err);
        else
            snprintf(c->why, sizeof c->why,
                     "chat_template of tokenizer_config.json is %s, expected a string or a list "
                     "with one named default",
                     rlhf__json_kind(v));
        c->has = 1;
    }
    json_decref(config);
    return st;
}

static rlhf_status read_dir(struct rlhf__chat *c, const struct rlhf__chat_tokens *tokens,
                            struct rlhf__error *err) {
    static const char name[] = "chat_template.jinja";
    struct rlhf__error why = {0, ""};
    struct rlhf__buf text = RLHF__BUF_INIT;
    char *path = rlhf__path_join(c->dir, name);
    if (!path) return no_memory(err);
    rlhf_status st;
    if (!rlhf__is_file(path))
        st = read_config(c, tokens, err);
    else if (rlhf__file_read(path, TEMPLATE_MAX, &text, &why) != RLHF_OK)
        st = cannot_read(c, &why);
    else
        st = recognise(c, tokens, name, rlhf__buf_text(&text), text.len, err);
    rlhf__buf_free(&text);
    free(path);
    return st;
}

rlhf_status rlhf__chat_open(const char *dir, const struct rlhf__chat_tokens *tokens,
                            struct rlhf__chat **out, struct rlhf__error *err) {
    char shown[400];
    struct rlhf__chat *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return no_memory(err);
    c->dir = strdup(dir);
    c->bos = copy(tokens->bos);
    c->eos = copy(tokens->eos);
    snprintf(c->why, sizeof c->why, "'%s' has no chat template",
             rlhf__printable(dir, shown, sizeof shown));
    int ok = c->dir && !c->bos == !tokens->bos && !c->eos == !tokens->eos;
    rlhf_status st = ok ? read_dir(c, tokens, err) : no_memory(err);
    if (st != RLHF_OK) {
        rlhf__chat_close(c);
        return st;
    }
    *out = c;
    return RLHF_OK;
}

void rlhf__chat_close(struct rlhf__chat *c) {
    if (!c) return;
    rlhf__style_finish(&c->style);
    free(c->dir);
    free(c->bos);
    free(c->eos);
    free(c->source);
    free(c);
}

// ---- by name ----

const char *const *rlhf__chat_names(void) {
    static const char *const names[] = {"auto",  "chatml", "llama2", "llama3", "qwen2.5",
                                        "qwen3", "gemma",  "zephyr", "plain",  NULL};
    return names;
}

rlhf_status rlhf__chat_name(struct rlhf__chat *c, const char *name, struct rlhf__error *err) {
    const char *const *names = rlhf__chat_names();
    const struct rlhf__form *form = rlhf__form_find(name);
    if (strcmp(name, "auto") == 0) return RLHF_OK;
    if (!form) {
        struct rlhf__nearest near = {.wanted = name};
        char hint[80], shown[80];
        for (size_t i = 0; names[i]; i++)
            rlhf__nearest_offer(&near, names[i]);
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "there is no chat template '%s'%s; allowed: auto, chatml, llama2, llama3, "
            "qwen2.5, qwen3, gemma, zephyr, plain",
            rlhf__printable(name, shown, sizeof shown),
            rlhf__nearest_hint(&near, hint, sizeof hint));
    }
    rlhf__style_finish(&c->style);
    free(c->source);
    c->source = NULL;
    return rlhf__style_init(&c->style, form, c->bos, c->eos, err);
}

// ---- use ----

rlhf_status rlhf__chat_render(const struct rlhf__chat *c, const struct rlhf__messages *m,
                              int generate, struct rlhf__turns *out, struct rlhf__error *err) {
    if (!c->style.form)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "the row has messages, but %s; name the template with prompts.template=NAME "
            "(chatml, llama2, llama3, qwen2.5, qwen3, gemma, zephyr, plain), in "
            "generate, eval and label with --template NAME",
            c->why);
    return rlhf__style_render(&c->style, m->item, m->n, generate, out, err);
}

const char *rlhf__chat_known(const struct rlhf__chat *c) {
    return c->style.form ? c->style.form->name : NULL;
}

const char *rlhf__chat_unknown(const struct rlhf__chat *c) {
    return c->has && !c->style.form ? c->why : NULL;
}

const char *rlhf__chat_jinja(const struct rlhf__chat *c) {
    return c->style.form && !c->source ? form_jinja(c->style.form->name) : NULL;
}

const char *rlhf__chat_turn_end(const struct rlhf__chat *c) {
    if (!c->style.form) return NULL;
    return c->style.form->end ? c->style.form->end : c->style.eos;
}

static void put_quoted(struct rlhf__buf *out, const char *what, const char *text) {
    if (!text) return;
    rlhf__buf_printf(out, ", %s \"", what);
    rlhf__put_printable(out, text, strlen(text) < 120 ? strlen(text) : 120, "");
    rlhf__buf_puts(out, strlen(text) < 120 ? "\"" : "...\"");
}

void rlhf__chat_describe(const struct rlhf__chat *c, struct rlhf__buf *out) {
    const struct rlhf__style *s = &c->style;
    if (!s->form) return;
    rlhf__buf_printf(out, "%s (", s->form->name);
    if (c->source) {
        rlhf__buf_puts(out, "recognised from ");
        rlhf__put_printable(out, c->source, strlen(c->source), "");
    } else {
        rlhf__buf_puts(out, "named");
    }
    put_quoted(out, "where there is no system's turn:", s->standard);
    put_quoted(out, "before a system's:", s->preface);
    rlhf__buf_puts(out, ")");
}
