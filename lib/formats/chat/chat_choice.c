// chat_choice.c: variables of a chat template and its date, which a user chooses; see chat.h.
#include "chat/chat_state.h"

#include "base/json.h"
#include "chat/template_vars.h"
#include "values/date.h"

#include <stdlib.h>
#include <string.h>

static json_t *object_of(const char *text, struct rlhf__error *err) {
    json_error_t why;
    json_t *v = rlhf__json_decode_digits(text, strlen(text), JSON_DECODE_ANY, &why);
    if (rlhf__json_is_object(v)) return v;
    if (v)
        rlhf__fail(err, RLHF_E_INVALID,
                   "%s; expected a JSON object, such as {\"enable_thinking\": false}",
                   rlhf__json_kind(v));
    else
        rlhf__fail(
            err, RLHF_E_INVALID,
            "not valid JSON (%.100s); expected an object, such as {\"enable_thinking\": false}",
            why.text);
    json_decref(v);
    return NULL;
}

// 1 if a text is given and not empty.
static int is_chosen(const char *text) { return text && *text && strcmp(text, "{}") != 0; }

rlhf_status rlhf__chat_check_choice(const struct rlhf__chat_choice *o,
                                    const struct rlhf__chat_choice *flags,
                                    struct rlhf__error *err) {
    rlhf_status st = o->name ? rlhf__chat_check_name(o->name, err) : RLHF_OK;
    if (st != RLHF_OK) return rlhf__error_context(err, "%s", flags->name);
    if (is_chosen(o->vars)) {
        json_t *v = object_of(o->vars, err);
        if (!v) return rlhf__error_context(err, "%s", flags->vars);
        json_decref(v);
    }
    if (!is_chosen(o->date) || rlhf__date_check(o->date, err) == RLHF_OK) return RLHF_OK;
    return rlhf__error_context(err, "%s", flags->date);
}

// Passes variables and the date to the templates.
static rlhf_status pass(struct rlhf__chat *c, struct rlhf__template *t, struct rlhf__error *err) {
    memcpy(t->date, c->date, sizeof t->date);
    return c->chosen && json_object_update(t->vars, c->chosen) != 0 ? rlhf__chat_no_memory(err)
                                                                    : RLHF_OK;
}

rlhf_status rlhf__chat_put_out(struct rlhf__chat *c, struct rlhf__error *err) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    json_t *all = json_object(), *v;
    const char *name;
    if (c->named) json_object_foreach(c->more, name, v) {
            if (rlhf__template_reads(&c->template, name)) json_object_set(all, name, v);
        }
    if (c->chosen) json_object_update(all, c->chosen);
    rlhf__template_put_defaults(all, &out);
    rlhf__buf_puts(&out, c->text);
    free(c->out);
    c->out = json_object_size(all) && !out.bad ? strdup(rlhf__buf_text(&out)) : NULL;
    const int bad = !all || out.bad || (json_object_size(all) && !c->out);
    json_decref(all);
    rlhf__buf_finish(&out);
    return bad ? rlhf__chat_no_memory(err) : RLHF_OK;
}

static rlhf_status set_vars(struct rlhf__chat *c, const char *text, struct rlhf__error *err) {
    json_t *v = object_of(text, err);
    if (!v) return err ? err->code : RLHF_E_INVALID;
    const rlhf_status st = rlhf__template_check_vars(&c->template, c->for_tools, v, err);
    json_decref(c->chosen);
    c->chosen = v;
    return st == RLHF_OK ? rlhf__chat_put_out(c, err) : st;
}

static rlhf_status set_date(struct rlhf__chat *c, const char *date, struct rlhf__error *err) {
    RLHF_TRY(rlhf__date_check(date, err));
    if (!rlhf__template_reads(&c->template, "strftime_now") &&
        !(c->for_tools && rlhf__template_reads(c->for_tools, "strftime_now")))
        return rlhf__fail(err, RLHF_E_INVALID, "the chat template never asks for a date");
    snprintf(c->date, sizeof c->date, "%s", date);
    return RLHF_OK;
}

rlhf_status rlhf__chat_choose(struct rlhf__chat *c, const struct rlhf__chat_choice *o,
                              const struct rlhf__chat_choice *flags, struct rlhf__error *err) {
    const int vars = is_chosen(o->vars), date = is_chosen(o->date);
    if (o->name && rlhf__chat_name(c, o->name, err) != RLHF_OK)
        return rlhf__error_context(err, "%s", flags->name);
    if (!vars && !date) return RLHF_OK;
    if (!c->file)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: %s", vars ? flags->vars : flags->date, c->why);
    if (vars && set_vars(c, o->vars, err) != RLHF_OK)
        return rlhf__error_context(err, "%s", flags->vars);
    if (date && set_date(c, o->date, err) != RLHF_OK)
        return rlhf__error_context(err, "%s", flags->date);
    RLHF_TRY(pass(c, &c->template, err));
    if (c->for_tools) RLHF_TRY(pass(c, c->for_tools, err));
    return rlhf__chat_learn(c, err);
}
