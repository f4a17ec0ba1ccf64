// tools.c: see tools.h.
#include "episode/tools.h"

#include "base/json.h"

#include <string.h>

// ---- the list ----

static rlhf_status bad_list(const struct rlhf__instance *e, size_t i, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: tools(): entry %zu is not {\"type\": \"function\", \"function\": "
                      "{\"name\": \"...\", ...}}",
                      e->plugin->file, i);
}

static rlhf_status read_list(const struct rlhf__instance *e, const char *text, json_t **out,
                             struct rlhf__error *err) {
    json_t *list = NULL;
    json_error_t why;
    rlhf_status st = RLHF_OK;
    list = rlhf__json_decode_digits(text, strlen(text), JSON_REJECT_DUPLICATES, &why);
    if (!list) st = rlhf__json_line_failed("tools()", why.line < 1 ? 1 : why.line, &why, err);
    if (st != RLHF_OK) return rlhf__error_context(err, "%s", e->plugin->file);
    if (!json_is_array(list))
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: tools() does not give a list of tools",
                        e->plugin->file);
    for (size_t i = 0; st == RLHF_OK && i < json_array_size(list); i++) {
        const json_t *tool = json_array_get(list, i);
        const json_t *function = json_object_get(tool, "function");
        if (!json_is_string(json_object_get(function, "name"))) st = bad_list(e, i, err);
    }
    if (st == RLHF_OK && json_array_size(list))
        *out = list;
    else
        json_decref(list);
    return st;
}

static rlhf_status check_place(const char *file, const struct rlhf__chat *chat,
                               struct rlhf__error *err) {
    if (!chat)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s has tools, but the prompts are texts, in which no chat template "
                          "lists them; give prompts that are messages, with another template "
                          "than plain, or set episodes.tools=hidden",
                          file);
    if (rlhf__chat_lists_tools(chat)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s has tools, but the chat template %s has no place for them; choose "
                      "another one (prompts.template), or set episodes.tools=hidden",
                      file, rlhf__chat_known(chat));
}

rlhf_status rlhf__episode_tools_open(const struct rlhf__instance *environment,
                                     const struct rlhf__episodes_config *c,
                                     const struct rlhf__chat *chat, struct rlhf__episode_tools *out,
                                     struct rlhf__error *err) {
    const struct rlhf__plugin *p = environment->plugin;
    *out = (struct rlhf__episode_tools){.form = RLHF__TOOL_FORM_NONE};
    if (!p->ops.environment.tools) return RLHF_OK;
    const struct rlhf__call call = rlhf__call_begin(environment, "tools()");
    const char *text = p->ops.environment.tools(environment->self);
    RLHF_TRY(rlhf__call_end(&call, RLHF_OK, err));
    if (text) RLHF_TRY(read_list(environment, text, &out->list, err));
    if (!out->list) return RLHF_OK;
    out->listed = c->tools == RLHF__TOOLS_TEMPLATE;
    out->form = c->calls; // 0 means auto
    if (!out->form && chat) out->form = rlhf__chat_tool_form(chat);
    if (!out->form) out->form = RLHF__TOOL_FORM_XML;
    out->marked = out->form == RLHF__TOOL_FORM_XML;
    const rlhf_status st = out->listed ? check_place(p->file, chat, err) : RLHF_OK;
    if (st != RLHF_OK) rlhf__episode_tools_finish(out);
    return st;
}

void rlhf__episode_tools_finish(struct rlhf__episode_tools *t) {
    json_decref(t->list);
    *t = (struct rlhf__episode_tools){.form = RLHF__TOOL_FORM_NONE};
}

// Set *n to the number of tokens of a prompt with a short question. If `list` is not NULL, the
// prompt also lists these tools.
static rlhf_status count(const struct rlhf__tokenizer *tok, const json_t *list, size_t *n,
                         struct rlhf__error *err) {
    struct rlhf__messages m = {.tools = list};
    struct rlhf__ids ids = {0};
    rlhf_status st = rlhf__messages_add(&m, RLHF__ROLE_USER, (rlhf_str){"Q", 1}, err);
    if (st == RLHF_OK) st = rlhf__conversation_encode(tok, &m, 1, &ids, NULL, err);
    *n = ids.n;
    rlhf__ids_finish(&ids);
    rlhf__messages_finish(&m);
    return st;
}

rlhf_status rlhf__episode_tools_tokens(const struct rlhf__episode_tools *t,
                                       const struct rlhf__tokenizer *tok, int32_t *out,
                                       struct rlhf__error *err) {
    size_t with, without;
    *out = 0;
    if (!t->listed) return RLHF_OK;
    RLHF_TRY(count(tok, t->list, &with, err));
    RLHF_TRY(count(tok, NULL, &without, err));
    if (with > without) *out = (int32_t)(with - without);
    return RLHF_OK;
}

// ---- calls ----

rlhf_status rlhf__episode_tools_read(const struct rlhf__episode_tools *t, struct rlhf__episode *e,
                                     rlhf_str turn, struct rlhf__error *err) {
    RLHF_TRY(rlhf__tool_calls_read(t->form, turn, t->list, &e->calls, err));
    e->n_calls += (int64_t)e->calls.n;
    e->n_faults += e->calls.faults;
    e->n_forged += e->calls.forged > 0;
    return RLHF_OK;
}

rlhf_status rlhf__episode_tools_refuse(struct rlhf__episode *e, struct rlhf__error *err) {
    e->n_said = 0;
    for (size_t i = 0; i < e->calls.n; i++) {
        const char *text = rlhf__call_fault_answer(e->calls.item[i].fault);
        if (rlhf__episode_say(e, RLHF_ROLE_TOOL, (rlhf_str){text, strlen(text)}) != RLHF_OK)
            return RLHF__NOMEM(err, "out of memory for the answers to %zu calls", e->calls.n);
    }
    return RLHF_OK;
}
