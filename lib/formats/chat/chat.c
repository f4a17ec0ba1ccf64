// chat.c: see chat.h.
#include "chat/chat_state.h"

#include "base/dirs.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "chat/template_check.h"
#include "chat/template_vars.h"
#include "option/nearest.h"

#include <stdlib.h>
#include <string.h>

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
    char path[RLHF__PATH_CAP];
    if (strcmp(name, "auto") == 0) return RLHF_OK;
    RLHF_TRY(rlhf__chat_check_name(name, err));
    RLHF_TRY(file_of(name, path, err));
    rlhf_status st = rlhf__file_read(path, RLHF__CHAT_TEMPLATE_MAX, &text, err);
    if (st == RLHF_OK) st = rlhf__chat_parse(c, rlhf__buf_text(&text), text.len, &t, err);
    if (st == RLHF_E_UNSUPPORTED) {
        rlhf__error_context(err, "the chat template of %s cannot be used", path);
        if (err) err->code = st = RLHF_E_INVALID;
    }
    char *file = st == RLHF_OK ? strdup(name) : NULL;
    char *own = st == RLHF_OK ? strdup(rlhf__buf_text(&text)) : NULL;
    rlhf__buf_finish(&text);
    if (!file || !own) {
        free(file);
        free(own);
        rlhf__template_finish(&t);
        return st == RLHF_OK ? rlhf__chat_no_memory(err) : st;
    }
    rlhf__template_finish(&c->template);
    rlhf__chat_drop_for_tools(c);
    free(c->file);
    free(c->text);
    c->template = t;
    c->file = file;
    c->text = own;
    c->named = 1;
    if ((c->more && json_object_update_missing(c->template.vars, c->more) != 0) ||
        rlhf__chat_put_out(c, err) != RLHF_OK)
        return rlhf__chat_no_memory(err);
    // If the tokenizer lacks a token of the template, this is reported when a conversation is
    // rendered.
    return rlhf__chat_learn(c, err);
}

// ---- use ----

static const struct rlhf__template *template_for(const struct rlhf__chat *c, int has_tools) {
    return has_tools && c->for_tools ? c->for_tools : &c->template;
}

static rlhf_status check(const struct rlhf__chat *c, const struct rlhf__messages *m, int generate,
                         struct rlhf__error *err) {
    char shown[400];
    if (!c->known)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "the row has messages, but %s; name the template with prompts.template=NAME "
            "(chatml, llama2, llama3, qwen2.5, qwen3, gemma, zephyr, plain, or a .jinja file), in "
            "generate, eval and label with --template NAME",
            c->why);
    rlhf__printable(c->file, shown, sizeof shown);
    if (m->tools && c->tools_why[0])
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "the row has tools, and the entry tool_use of the chat template %s cannot "
            "be used (%.600s)",
            shown, c->tools_why);
    return rlhf__template_check(template_for(c, m->tools != NULL), shown, m, generate, err);
}

// Adds context to an error. Errors of templates that ship with the program need none, because these
// templates refuse a conversation in whole sentences.
static rlhf_status failed(const struct rlhf__chat *c, rlhf_status st, struct rlhf__error *err) {
    char shown[400];
    if (st != RLHF_E_INVALID || (c->named && !rlhf__chat_is_file(c->file))) return st;
    return rlhf__error_context(err, "the chat template %s",
                               rlhf__printable(c->file, shown, sizeof shown));
}

rlhf_status rlhf__chat_render(const struct rlhf__chat *c, const struct rlhf__messages *m,
                              int generate, struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__jinja_result r = {0};
    RLHF_TRY(check(c, m, generate, err));
    const rlhf_status st =
        rlhf__template_render(template_for(c, m->tools != NULL), m, generate, &r, err);
    if (st == RLHF_OK) rlhf__buf_put(out, r.turns.text.data, r.turns.text.len);
    rlhf__turns_finish(&r.turns);
    return st == RLHF_OK ? rlhf__buf_ok(out, err) : failed(c, st, err);
}

rlhf_status rlhf__chat_turns(const struct rlhf__chat *c, const struct rlhf__messages *m,
                             size_t first, int generate, struct rlhf__turns *out,
                             struct rlhf__error *err) {
    RLHF_TRY(check(c, m, generate, err));
    const rlhf_status st = rlhf__template_render_turns(template_for(c, m->tools != NULL), m, first,
                                                       generate, out, err);
    return st == RLHF_OK ? st : failed(c, st, err);
}

const char *rlhf__chat_known(const struct rlhf__chat *c) { return c->known ? c->file : NULL; }

const char *rlhf__chat_unknown(const struct rlhf__chat *c) {
    return c->has && !c->known ? c->why : NULL;
}

const char *rlhf__chat_jinja(const struct rlhf__chat *c) {
    return c->out ? c->out : c->named ? c->text : NULL;
}

int rlhf__chat_lists_tools(const struct rlhf__chat *c) { return template_for(c, 1)->tools.lists; }

int rlhf__chat_reads_date(const struct rlhf__chat *c) {
    return rlhf__template_reads(&c->template, "strftime_now");
}

int32_t rlhf__chat_tool_form(const struct rlhf__chat *c) { return template_for(c, 1)->tools.form; }

const char *rlhf__chat_turn_end(const struct rlhf__chat *c) { return c->template.end; }

void rlhf__chat_describe(const struct rlhf__chat *c, struct rlhf__buf *out) {
    enum { SHOWN = 120 };
    const struct rlhf__buf *before = &c->template.before;
    if (!c->known) return;
    rlhf__put_printable(out, c->file, strlen(c->file), "");
    if (c->named) rlhf__buf_puts(out, " (named)");
    if (c->out) {
        rlhf__buf_puts(out, " with ");
        rlhf__json_write(out, c->chosen, 0);
    }
    if (*c->date) rlhf__buf_printf(out, " of %s", c->date);
    if (c->named || !before->len) return;
    rlhf__buf_puts(out, " (before a first question: \"");
    rlhf__put_printable(out, rlhf__buf_text(before), before->len < SHOWN ? before->len : SHOWN, "");
    rlhf__buf_puts(out, before->len < SHOWN ? "\")" : "...\")");
}
