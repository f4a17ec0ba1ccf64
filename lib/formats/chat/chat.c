// chat.c: see chat.h.
#include "chat/chat.h"

#include "base/dirs.h"
#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "chat/template.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPLATE_MAX = 1 << 18 };

struct rlhf__chat {
    struct rlhf__template template; // usable if `known` is set
    // The entry "tool_use" in a list of templates. As in transformers, it is for rows with tools.
    struct rlhf__template *for_tools; // NULL = the entry is missing or unusable
    char tools_why[1000];             // why the entry is unusable; "" if it is missing
    json_t *vars;                     // variables that templates can read: special tokens, tools
    char *dir;
    char *known;    // name or file of the template in use; NULL = no usable template
    char *named;    // text of a template chosen by name; NULL = the directory's template
    char why[1200]; // why the template cannot be used
    int32_t has;    // 1: the directory has a template, usable or not
};

static rlhf_status no_memory(struct rlhf__error *err) {
    return RLHF__NOMEM(err, "out of memory for a chat template");
}

// ---- the directory's own template ----

// Returns the entry with this name in a list of templates; NULL if it is missing.
static const json_t *entry(const json_t *list, const char *wanted) {
    const json_t *item;
    size_t i;
    json_array_foreach(list, i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, wanted) == 0) return json_object_get(item, "template");
    }
    return NULL;
}

// Returns the template in tokenizer_config.json. This is a string or, in a list, the entry named
// "default".
static const json_t *config_template(const json_t *config) {
    const json_t *v = json_object_get(config, "chat_template"), *item = entry(v, "default");
    return item ? item : v;
}

static json_t *variables(const struct rlhf__chat_tokens *t) {
    const struct {
        const char *name, *token;
    } all[] = {
        {"bos_token", t->bos}, {"eos_token", t->eos}, {"unk_token", t->unk}, {"pad_token", t->pad}};
    json_t *vars = json_object();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].token) json_object_set_new(vars, all[i].name, json_string(all[i].token));
    json_object_set_new(vars, "tools", json_null()); // transformers passes these too
    json_object_set_new(vars, "documents", json_null());
    return vars;
}

static rlhf_status take(struct rlhf__chat *c, const char *file, const char *text, size_t n,
                        struct rlhf__error *err) {
    struct rlhf__error why = {0, ""};
    char shown[400], *path = rlhf__path_join(c->dir, file);
    if (!path) return no_memory(err);
    c->has = 1;
    rlhf_status st = n > TEMPLATE_MAX ? rlhf__fail(&why, RLHF_E_UNSUPPORTED,
                                                   "it has %zu bytes; at most %d", n, TEMPLATE_MAX)
                                      : rlhf__template_parse(&c->template, text, n, c->vars, &why);
    if (st == RLHF_OK) st = rlhf__template_learn(&c->template, &why);
    if (st == RLHF_OK) {
        c->known = path;
        return RLHF_OK;
    }
    snprintf(c->why, sizeof c->why, "the chat template of %s cannot be used (%.700s)",
             rlhf__printable(path, shown, sizeof shown), why.text);
    free(path);
    rlhf__template_finish(&c->template);
    return st == RLHF_E_NOMEM ? no_memory(err) : RLHF_OK;
}

// Reads the template that is used for rows with tools. If it is unusable, the error is reported
// only when such a row is rendered.
static rlhf_status take_for_tools(struct rlhf__chat *c, const json_t *text,
                                  struct rlhf__error *err) {
    struct rlhf__error why = {0, ""};
    const size_t n = json_string_length(text);
    if (!json_is_string(text)) return RLHF_OK;
    struct rlhf__template *t = calloc(1, sizeof *t);
    if (!t) return no_memory(err);
    rlhf_status st =
        n > TEMPLATE_MAX
            ? rlhf__fail(&why, RLHF_E_UNSUPPORTED, "it has %zu bytes; at most %d", n, TEMPLATE_MAX)
            : rlhf__template_parse(t, json_string_value(text), n, c->vars, &why);
    if (st == RLHF_OK) st = rlhf__template_learn(t, &why);
    if (st == RLHF_OK) {
        c->for_tools = t;
        return RLHF_OK;
    }
    snprintf(c->tools_why, sizeof c->tools_why, "%.900s", why.text);
    rlhf__template_finish(t);
    free(t);
    return st == RLHF_E_NOMEM ? no_memory(err) : RLHF_OK;
}

static rlhf_status cannot_read(struct rlhf__chat *c, const struct rlhf__error *why) {
    c->has = 1;
    snprintf(c->why, sizeof c->why, "the chat template cannot be read: %.900s", why->text);
    return RLHF_OK;
}

// Reads the template of tokenizer_config.json.
static rlhf_status read_config(struct rlhf__chat *c, struct rlhf__error *err) {
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
            st = take(c, name, json_string_value(v), json_string_length(v), err);
        else
            snprintf(c->why, sizeof c->why,
                     "chat_template of tokenizer_config.json is %s, expected a string or a list "
                     "with one named default",
                     rlhf__json_kind(v));
        c->has = 1;
    }
    if (st == RLHF_OK && c->known)
        st = take_for_tools(c, entry(json_object_get(config, "chat_template"), "tool_use"), err);
    json_decref(config);
    return st;
}

static rlhf_status read_dir(struct rlhf__chat *c, struct rlhf__error *err) {
    static const char name[] = "chat_template.jinja";
    struct rlhf__error why = {0, ""};
    struct rlhf__buf text = RLHF__BUF_INIT;
    char *path = rlhf__path_join(c->dir, name);
    if (!path) return no_memory(err);
    rlhf_status st;
    if (!rlhf__is_file(path))
        st = read_config(c, err);
    else if (rlhf__file_read(path, TEMPLATE_MAX, &text, &why) != RLHF_OK)
        st = cannot_read(c, &why);
    else
        st = take(c, name, rlhf__buf_text(&text), text.len, err);
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
    c->vars = variables(tokens);
    snprintf(c->why, sizeof c->why, "'%s' has no chat template",
             rlhf__printable(dir, shown, sizeof shown));
    rlhf_status st = c->dir && c->vars ? read_dir(c, err) : no_memory(err);
    if (st != RLHF_OK) {
        rlhf__chat_close(c);
        return st;
    }
    *out = c;
    return RLHF_OK;
}

static void drop_for_tools(struct rlhf__chat *c) {
    if (c->for_tools) rlhf__template_finish(c->for_tools);
    free(c->for_tools);
    c->for_tools = NULL;
    c->tools_why[0] = 0;
}

void rlhf__chat_close(struct rlhf__chat *c) {
    if (!c) return;
    rlhf__template_finish(&c->template);
    drop_for_tools(c);
    json_decref(c->vars);
    free(c->dir);
    free(c->known);
    free(c->named);
    free(c);
}

// ---- by name ----

const char *const *rlhf__chat_names(void) {
    static const char *const names[] = {"auto",  "chatml", "llama2", "llama3", "qwen2.5",
                                        "qwen3", "gemma",  "zephyr", "plain",  NULL};
    return names;
}

int rlhf__chat_is_file(const char *name) {
    static const char end[] = ".jinja";
    const size_t n = strlen(name), k = sizeof end - 1;
    return strchr(name, '/') || (n > k && strcmp(name + n - k, end) == 0);
}

rlhf_status rlhf__chat_check_name(const char *name, struct rlhf__error *err) {
    const char *const *names = rlhf__chat_names();
    struct rlhf__nearest near = {.wanted = name};
    char hint[80], shown[80];
    if (rlhf__chat_is_file(name)) return RLHF_OK;
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return RLHF_OK;
    for (size_t i = 0; names[i]; i++)
        rlhf__nearest_offer(&near, names[i]);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "there is no chat template '%s'%s; allowed: auto, chatml, llama2, llama3, "
                      "qwen2.5, qwen3, gemma, zephyr, plain, or a file, whose name ends with "
                      ".jinja or has a '/'",
                      rlhf__printable(name, shown, sizeof shown),
                      rlhf__nearest_hint(&near, hint, sizeof hint));
}

// Finds the file of a template. A `name` that is a path is the user's file. Any other `name` is a
// template that ships with the program.
static rlhf_status file_of(const char *name, char out[RLHF__PATH_CAP], struct rlhf__error *err) {
    struct rlhf__dirs dirs;
    if (rlhf__chat_is_file(name)) {
        rlhf__path_put(out, "%s", name);
        return RLHF_OK;
    }
    RLHF_TRY(rlhf__dirs_find(&dirs, err));
    rlhf__path_put(out, "%s/configs/chat/%s.jinja", dirs.share, name);
    return RLHF_OK;
}

rlhf_status rlhf__chat_name(struct rlhf__chat *c, const char *name, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__template t = {0};
    struct rlhf__error no = {0, ""};
    char path[RLHF__PATH_CAP];
    if (strcmp(name, "auto") == 0) return RLHF_OK;
    RLHF_TRY(rlhf__chat_check_name(name, err));
    RLHF_TRY(file_of(name, path, err));
    rlhf_status st = rlhf__file_read(path, TEMPLATE_MAX, &text, err);
    if (st == RLHF_OK) st = rlhf__template_parse(&t, rlhf__buf_text(&text), text.len, c->vars, err);
    if (st == RLHF_E_UNSUPPORTED) {
        rlhf__error_context(err, "the chat template of %s cannot be used", path);
        if (err) err->code = st = RLHF_E_INVALID;
    }
    // If the tokenizer lacks a token of the template, this is reported when a conversation is
    // rendered.
    if (st == RLHF_OK)
        st = rlhf__template_learn(&t, &no) == RLHF_E_NOMEM ? no_memory(err) : RLHF_OK;
    char *known = st == RLHF_OK ? strdup(name) : NULL;
    char *own = st == RLHF_OK ? strdup(rlhf__buf_text(&text)) : NULL;
    rlhf__buf_free(&text);
    if (!known || !own) {
        free(known);
        free(own);
        rlhf__template_finish(&t);
        return st == RLHF_OK ? no_memory(err) : st;
    }
    rlhf__template_finish(&c->template);
    drop_for_tools(c);
    free(c->known);
    free(c->named);
    c->template = t;
    c->known = known;
    c->named = own;
    return RLHF_OK;
}

// ---- use ----

static const struct rlhf__template *template_for(const struct rlhf__chat *c, int has_tools) {
    return has_tools && c->for_tools ? c->for_tools : &c->template;
}

// Refuses a conversation whose tools, tool calls or tool results the template would leave out.
static rlhf_status check_tools(const struct rlhf__chat *c, const struct rlhf__messages *m,
                               struct rlhf__error *err) {
    static const char advice[] =
        "name one that does with prompts.template (qwen2.5, qwen3, llama3, or a .jinja file)";
    const struct rlhf__template_tools *t = &template_for(c, m->tools != NULL)->tools;
    char shown[400];
    rlhf__printable(c->known, shown, sizeof shown);
    if (m->tools && c->tools_why[0])
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "the row has tools, and the entry tool_use of the chat template %s cannot "
            "be used (%.600s)",
            shown, c->tools_why);
    if (m->tools && !t->lists)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the row has tools, and the chat template %s does not write them; %s",
                          shown, advice);
    for (size_t i = 0; i < m->n; i++) {
        if (m->item[i].calls && !t->calls)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "messages[%zu] has tool calls, and the chat template %s does not "
                              "write them; %s",
                              i, shown, advice);
        if (m->item[i].role == RLHF__ROLE_TOOL && !t->results)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "messages[%zu] is a tool's, and the chat template %s does not write "
                              "such messages; %s",
                              i, shown, advice);
    }
    return RLHF_OK;
}

static rlhf_status check(const struct rlhf__chat *c, const struct rlhf__messages *m,
                         struct rlhf__error *err) {
    char shown[400];
    if (!c->known)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "the row has messages, but %s; name the template with prompts.template=NAME "
            "(chatml, llama2, llama3, qwen2.5, qwen3, gemma, zephyr, plain, or a .jinja file), in "
            "generate, eval and label with --template NAME",
            c->why);
    for (size_t i = 0; !template_for(c, m->tools != NULL)->thoughts && i < m->n; i++)
        if (m->item[i].thoughts.ptr)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "messages[%zu]: the chat template %s does not write the field "
                              "'reasoning_content'",
                              i, rlhf__printable(c->known, shown, sizeof shown));
    return check_tools(c, m, err);
}

// Adds context to an error. Errors of templates that ship with the program need none, because these
// templates refuse a conversation in whole sentences.
static rlhf_status failed(const struct rlhf__chat *c, rlhf_status st, struct rlhf__error *err) {
    char shown[400];
    if (st != RLHF_E_INVALID || (c->named && !rlhf__chat_is_file(c->known))) return st;
    return rlhf__error_context(err, "the chat template %s",
                               rlhf__printable(c->known, shown, sizeof shown));
}

rlhf_status rlhf__chat_render(const struct rlhf__chat *c, const struct rlhf__messages *m,
                              int generate, struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__jinja_result r = {0};
    RLHF_TRY(check(c, m, err));
    const rlhf_status st =
        rlhf__template_render(template_for(c, m->tools != NULL), m, generate, &r, err);
    if (st == RLHF_OK) rlhf__buf_put(out, r.turns.text.data, r.turns.text.len);
    rlhf__turns_finish(&r.turns);
    return st == RLHF_OK ? rlhf__buf_ok(out, err) : failed(c, st, err);
}

rlhf_status rlhf__chat_turns(const struct rlhf__chat *c, const struct rlhf__messages *m,
                             size_t first, int generate, struct rlhf__turns *out,
                             struct rlhf__error *err) {
    RLHF_TRY(check(c, m, err));
    const rlhf_status st = rlhf__template_render_turns(template_for(c, m->tools != NULL), m, first,
                                                       generate, out, err);
    return st == RLHF_OK ? st : failed(c, st, err);
}

const char *rlhf__chat_known(const struct rlhf__chat *c) { return c->known; }

const char *rlhf__chat_unknown(const struct rlhf__chat *c) {
    return c->has && !c->known ? c->why : NULL;
}

const char *rlhf__chat_jinja(const struct rlhf__chat *c) { return c->named; }

int rlhf__chat_lists_tools(const struct rlhf__chat *c) { return template_for(c, 1)->tools.lists; }

int32_t rlhf__chat_tool_form(const struct rlhf__chat *c) { return template_for(c, 1)->tools.form; }

const char *rlhf__chat_turn_end(const struct rlhf__chat *c) { return c->template.end; }

void rlhf__chat_describe(const struct rlhf__chat *c, struct rlhf__buf *out) {
    enum { SHOWN = 120 };
    const struct rlhf__buf *before = &c->template.before;
    if (!c->known) return;
    rlhf__put_printable(out, c->known, strlen(c->known), "");
    if (c->named) rlhf__buf_puts(out, " (named)");
    if (c->named || !before->len) return;
    rlhf__buf_puts(out, " (before a first question: \"");
    rlhf__put_printable(out, rlhf__buf_text(before), before->len < SHOWN ? before->len : SHOWN, "");
    rlhf__buf_puts(out, before->len < SHOWN ? "\")" : "...\")");
}
