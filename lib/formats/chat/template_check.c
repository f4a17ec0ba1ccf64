// template_check.c: see template_check.h.
#include "chat/template_check.h"

#include "chat/template_vars.h"

#include <stdlib.h>
#include <string.h>

static const char stand_in[] = "Zq7check7qZ";

// A part of a conversation that a template may leave out.
enum part { TOOLS, CALLS, RESULTS, THOUGHTS, DEVELOPER, N_PARTS };

struct check {
    const struct rlhf__template *t;
    const struct rlhf__messages *m;
    int generate;
    struct rlhf__jinja_result whole, other; // the conversation, and the same without a part
    struct rlhf__message *copy;             // [m->n]
    json_t *held;                           // what the copies borrow
};

static int has(const struct rlhf__message *m, enum part part) {
    switch (part) {
    case CALLS:
        return m->calls != NULL;
    case RESULTS:
        return m->role == RLHF__ROLE_TOOL;
    case DEVELOPER:
        return m->role == RLHF__ROLE_DEVELOPER;
    case THOUGHTS:
        for (const char *const *name = rlhf__thought_names(); m->thoughts.ptr && *name; name++)
            if (m->thoughts.len || json_string_length(json_object_get(m->given, *name))) return 1;
        return 0;
    default:
        return 0;
    }
}

// 1 if the short conversations showed that the template writes the part.
static int is_known(const struct rlhf__template *t, enum part part) {
    const int32_t known[N_PARTS] = {t->tools.lists, t->tools.calls, t->tools.results, t->thoughts,
                                    t->developer};
    return known[part];
}

static json_t *kept(struct check *c, json_t *v) {
    if (!c->held) c->held = json_array();
    return json_array_append(c->held, v) == 0 ? v : NULL; // the list frees it
}

// ---- the conversation without a part ----

static int rename_calls(struct check *c, struct rlhf__message *m) {
    json_t *calls = json_deep_copy(m->calls), *call;
    size_t i;
    json_array_foreach(calls, i, call) {
        json_t *inner = json_object_get(call, "function");
        json_object_set_new(json_is_object(inner) ? inner : call, "name", json_string(stand_in));
    }
    m->calls = calls ? kept(c, calls) : NULL;
    json_decref(calls);
    return m->calls != NULL;
}

static int drop_thoughts(struct check *c, struct rlhf__message *m) {
    json_t *given = json_copy((json_t *)(uintptr_t)m->given);
    for (const char *const *name = rlhf__thought_names(); *name; name++)
        json_object_del(given, *name);
    m->thoughts = (rlhf_str){NULL, 0};
    m->given = given ? kept(c, given) : NULL;
    json_decref(given);
    return m->given != NULL;
}

// Changes a part of a message.
static int change(struct check *c, struct rlhf__message *m, enum part part) {
    if (part == CALLS) return rename_calls(c, m);
    if (part == THOUGHTS) return !m->given || drop_thoughts(c, m);
    m->content = (rlhf_str){stand_in, sizeof stand_in - 1};
    m->written = c->t->parts_only ? RLHF__CONTENT_PARTS : RLHF__CONTENT_TEXT;
    m->parts = NULL;
    return 1;
}

// Returns the member of the row's message that has the thoughts.
static const char *thought_name(const struct rlhf__message *m) {
    const char *const *name = rlhf__thought_names();
    while (name[1] && !json_string_length(json_object_get(m->given, *name)))
        name++;
    return *name;
}

static rlhf_status left_out(const struct check *c, const char *name, enum part part, size_t i,
                            struct rlhf__error *err) {
    static const char advice[] =
        "name one that does with prompts.template (qwen2.5, qwen3, llama3, or a .jinja file)";
    switch (part) {
    case TOOLS:
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the row has tools, and the chat template %s does not write them; %s",
                          name, advice);
    case CALLS:
        return rlhf__fail(err, RLHF_E_INVALID,
                          "messages[%zu] has tool calls, and the chat template %s does not write "
                          "them; %s",
                          i, name, advice);
    case THOUGHTS:
        return rlhf__fail(err, RLHF_E_INVALID,
                          "messages[%zu] has thoughts (field '%s'), and the chat template %s does "
                          "not write them here",
                          i, thought_name(&c->m->item[i]), name);
    default:
        return rlhf__fail(err, RLHF_E_INVALID,
                          "messages[%zu] is a %s's, and the chat template %s does not write such "
                          "messages; %s",
                          i, rlhf__role_name(c->m->item[i].role), name, advice);
    }
}

// Renders the conversation without a part, and refuses it if the text is the same.
static rlhf_status compare(struct check *c, const char *name, enum part part,
                           struct rlhf__error *err) {
    struct rlhf__error no = {0, ""};
    struct rlhf__messages talk = *c->m;
    size_t first = c->m->n;
    int good = 1;
    memcpy(c->copy, c->m->item, c->m->n * sizeof *c->copy);
    for (size_t i = 0; i < c->m->n; i++) {
        if (!has(&c->m->item[i], part)) continue;
        if (first == c->m->n) first = i;
        good = good && change(c, &c->copy[i], part);
    }
    if (!good) return RLHF__NOMEM(err, "out of memory for a conversation");
    if (part == TOOLS ? !c->m->tools : first == c->m->n) return RLHF_OK;
    talk.item = c->copy;
    if (part == TOOLS) talk.tools = NULL;
    rlhf_status st = RLHF_OK;
    if (!c->whole.turns.text.data)
        st = rlhf__template_render(c->t, c->m, c->generate, &c->whole, &no);
    if (st == RLHF_OK) st = rlhf__template_render(c->t, &talk, c->generate, &c->other, &no);
    if (st == RLHF_E_NOMEM) return RLHF__NOMEM(err, "out of memory for a conversation");
    // If one of them cannot be rendered, the part makes a difference. The caller then renders the
    // conversation, and says what is wrong with it.
    if (st != RLHF_OK ||
        !rlhf__jinja_same(rlhf__template_text(&c->whole), rlhf__template_text(&c->other)))
        return RLHF_OK;
    return left_out(c, name, part, first, err);
}

// ---- contents ----

static int mentions(const struct rlhf__messages *m, const char *text) {
    struct rlhf__buf all = RLHF__BUF_INIT;
    rlhf__messages_text(m, &all);
    const int found = strstr(rlhf__buf_text(&all), text) != NULL;
    rlhf__buf_finish(&all);
    return found;
}

// Refuses a list of parts that the template writes as the code of a list, and a text that it would
// leave out because it writes only lists.
static rlhf_status check_contents(struct check *c, const char *name, struct rlhf__error *err) {
    static const char *const code[] = {"'type': 'text'", "\"type\": \"text\""}; // Python, JSON
    struct rlhf__error no = {0, ""};
    size_t i = 0;
    for (; c->t->parts_only && i < c->m->n; i++)
        if (c->m->item[i].content.len && c->m->item[i].given)
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "messages[%zu]: field 'content' is a string, and the chat template %s "
                "writes only a list: [{\"type\": \"text\", \"text\": ...}]",
                i, name);
    for (i = 0; i < c->m->n && !c->m->item[i].parts; i++)
        ;
    if (i == c->m->n || mentions(c->m, code[0]) || mentions(c->m, code[1])) return RLHF_OK;
    rlhf_status st = RLHF_OK;
    if (!c->whole.turns.text.data)
        st = rlhf__template_render(c->t, c->m, c->generate, &c->whole, &no);
    if (st == RLHF_E_NOMEM) return RLHF__NOMEM(err, "out of memory for a conversation");
    const char *text = rlhf__template_text(&c->whole).ptr;
    if (st != RLHF_OK || !(strstr(text, code[0]) || strstr(text, code[1]))) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "messages[%zu]: field 'content' is a list, and the chat template %s writes it "
        "as code, as in [{'type': 'text', ...; give the content as a string",
        i, name);
}

rlhf_status rlhf__template_check(const struct rlhf__template *t, const char *name,
                                 const struct rlhf__messages *m, int generate,
                                 struct rlhf__error *err) {
    struct check c = {.t = t, .m = m, .generate = generate};
    rlhf_status st = m->vars ? rlhf__template_check_vars(t, NULL, m->vars, err) : RLHF_OK;
    if (st != RLHF_OK) return rlhf__error_context(err, "field 'chat_template_kwargs'");
    c.copy = malloc((m->n + 1) * sizeof *c.copy);
    if (!c.copy) return RLHF__NOMEM(err, "out of memory for a conversation");
    for (int part = 0; st == RLHF_OK && part < N_PARTS; part++)
        if (!is_known(t, (enum part)part)) st = compare(&c, name, (enum part)part, err);
    if (st == RLHF_OK) st = check_contents(&c, name, err);
    rlhf__turns_finish(&c.whole.turns);
    rlhf__turns_finish(&c.other.turns);
    json_decref(c.held);
    free(c.copy);
    return st;
}
