// chat_open.c: reads the chat template of a directory; see chat.h.
#include "chat/chat_state.h"

#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "gguf/model_text.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__chat_no_memory(struct rlhf__error *err) {
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

static json_t *variables(const char *tokens) {
    json_t *vars = tokens ? json_loads(tokens, 0, NULL) : json_object();
    json_object_set_new(vars, "tools", json_null()); // transformers passes these too
    json_object_set_new(vars, "documents", json_null());
    return vars;
}

rlhf_status rlhf__chat_parse(const struct rlhf__chat *c, const char *text, size_t n,
                             struct rlhf__template *out, struct rlhf__error *err) {
    if (n > RLHF__CHAT_TEMPLATE_MAX)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "it has %zu bytes; at most %d", n,
                          RLHF__CHAT_TEMPLATE_MAX);
    out->special = c->special;
    RLHF_TRY(rlhf__template_parse(out, text, n, c->vars, err));
    memcpy(out->date, c->date, sizeof out->date);
    return c->chosen && json_object_update(out->vars, c->chosen) != 0
               ? RLHF__NOMEM(err, "out of memory for a chat template")
               : RLHF_OK;
}

static void unusable(struct rlhf__chat *c, const char *file, const struct rlhf__error *why) {
    char shown[400];
    snprintf(c->why, sizeof c->why, "the chat template of %s cannot be used (%.700s)",
             rlhf__printable(file, shown, sizeof shown), why->text);
}

rlhf_status rlhf__chat_learn(struct rlhf__chat *c, struct rlhf__error *err) {
    struct rlhf__error why = {0, ""};
    if (!c->file) return RLHF_OK;
    rlhf_status st = rlhf__template_learn(&c->template, &why);
    c->known = st == RLHF_OK || c->named;
    if (!c->known) unusable(c, c->file, &why);
    if (st == RLHF_E_NOMEM || !c->for_tools)
        return st == RLHF_E_NOMEM ? rlhf__chat_no_memory(err) : RLHF_OK;
    st = rlhf__template_learn(c->for_tools, &why);
    c->tools_why[0] = 0;
    if (st != RLHF_OK) snprintf(c->tools_why, sizeof c->tools_why, "%.900s", why.text);
    return st == RLHF_E_NOMEM ? rlhf__chat_no_memory(err) : RLHF_OK;
}

static rlhf_status take(struct rlhf__chat *c, const char *file, const char *text, size_t n,
                        struct rlhf__error *err) {
    struct rlhf__error why = {0, ""};
    char *path = rlhf__is_file(c->dir) ? strdup(c->dir) : rlhf__path_join(c->dir, file);
    char *own = strndup(text, n);
    c->has = 1;
    rlhf_status st =
        path && own ? rlhf__chat_parse(c, text, n, &c->template, &why) : rlhf__chat_no_memory(&why);
    if (st == RLHF_OK) {
        c->file = path;
        c->text = own;
        return RLHF_OK;
    }
    if (path) unusable(c, path, &why);
    free(path);
    free(own);
    rlhf__template_finish(&c->template);
    return st == RLHF_E_NOMEM ? rlhf__chat_no_memory(err) : RLHF_OK;
}

void rlhf__chat_drop_for_tools(struct rlhf__chat *c) {
    if (c->for_tools) rlhf__template_finish(c->for_tools);
    free(c->for_tools);
    c->for_tools = NULL;
    c->tools_why[0] = 0;
}

// Reads the template that is used for rows with tools. If it is unusable, the error is reported
// only when such a row is rendered.
static rlhf_status take_for_tools(struct rlhf__chat *c, const json_t *text,
                                  struct rlhf__error *err) {
    struct rlhf__error why = {0, ""};
    if (!json_is_string(text)) return RLHF_OK;
    c->for_tools = calloc(1, sizeof *c->for_tools);
    if (!c->for_tools) return rlhf__chat_no_memory(err);
    const rlhf_status st =
        rlhf__chat_parse(c, json_string_value(text), json_string_length(text), c->for_tools, &why);
    if (st == RLHF_OK) return st;
    rlhf__chat_drop_for_tools(c);
    snprintf(c->tools_why, sizeof c->tools_why, "%.900s", why.text);
    return st == RLHF_E_NOMEM ? rlhf__chat_no_memory(err) : RLHF_OK;
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
    rlhf_status st = RLHF_OK;
    if (rlhf__model_json(c->dir, name, &config, &why) != RLHF_OK) st = cannot_read(c, &why);
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
    if (st == RLHF_OK && c->file)
        st = take_for_tools(c, entry(json_object_get(config, "chat_template"), "tool_use"), err);
    json_decref(config);
    return st;
}

static rlhf_status read_dir(struct rlhf__chat *c, struct rlhf__error *err) {
    static const char name[] = "chat_template.jinja";
    struct rlhf__error why = {0, ""};
    struct rlhf__buf text = RLHF__BUF_INIT;
    char *path = rlhf__path_join(c->dir, name);
    if (!path) return rlhf__chat_no_memory(err);
    rlhf_status st;
    if (!rlhf__is_file(path))
        st = read_config(c, err);
    else if (rlhf__file_read(path, RLHF__CHAT_TEMPLATE_MAX, &text, &why) != RLHF_OK)
        st = cannot_read(c, &why);
    else
        st = take(c, name, rlhf__buf_text(&text), text.len, err);
    rlhf__buf_finish(&text);
    free(path);
    return st;
}

rlhf_status rlhf__chat_open(const char *dir, const struct rlhf__chat_tokens *tokens,
                            struct rlhf__chat **out, struct rlhf__error *err) {
    char shown[400];
    struct rlhf__chat *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return rlhf__chat_no_memory(err);
    c->dir = strdup(dir);
    c->vars = variables(tokens->vars);
    c->more = tokens->more ? json_loads(tokens->more, 0, NULL) : NULL;
    c->special = (struct rlhf__template_special){tokens->special, tokens->tokenizer};
    snprintf(c->why, sizeof c->why, "'%s' has no chat template",
             rlhf__printable(dir, shown, sizeof shown));
    rlhf_status st = c->dir && c->vars ? read_dir(c, err) : rlhf__chat_no_memory(err);
    if (st == RLHF_OK) st = rlhf__chat_learn(c, err);
    if (st != RLHF_OK) {
        rlhf__chat_close(c);
        return st;
    }
    *out = c;
    return RLHF_OK;
}

void rlhf__chat_close(struct rlhf__chat *c) {
    if (!c) return;
    rlhf__template_finish(&c->template);
    rlhf__chat_drop_for_tools(c);
    json_decref(c->vars);
    json_decref(c->more);
    json_decref(c->chosen);
    free(c->dir);
    free(c->file);
    free(c->text);
    free(c->out);
    free(c);
}
