// bridge.c: see bridge.h.
#include "tokenizer/bridge.h"

#include "base/printable.h"
#include "tokenizer/spelled.h"

#include <stdlib.h>
#include <string.h>

// The stand-ins for the policy's text, and for the names of the tools that the policy calls. A
// template may write names as JSON, so the stand-ins for names contain only characters that JSON
// does not escape. There are two stand-ins of each sort, because rlhf__bridge_check compares the
// results of the two.
static const char *const texts[] = {"Zq7bridge7qZ", "Qz one\nmore 7qZ"};
static const char *const names[] = {"Zq7bridge7qZ", "Qz_one_more_7qZ"};

// ---- the conversation around the stand-in ----

struct around {
    struct rlhf__messages talk;
    json_t *calls;
};

// Make a list of tool calls, all to a tool with this name; b->calls is their number. If the k-th
// tool message has a call id, the k-th call gets this id, otherwise a fixed id.
static json_t *make_calls(const struct rlhf__bridge *b, const char *name) {
    json_t *list = json_array();
    size_t at = 0;
    for (size_t k = 0; list && k < b->calls; k++) {
        while (at < b->said->n && b->said->item[at].role != RLHF__ROLE_TOOL)
            at++;
        const rlhf_str id = at < b->said->n && b->said->item[at].call_id.ptr
                                ? b->said->item[at].call_id
                                : (rlhf_str){"abcdefgh1", 9};
        at++;
        json_t *call = json_pack("{s:s%,s:s,s:{s:s,s:{s:i}}}", "id", id.ptr, (size_t)id.len, "type",
                                 "function", "function", "name", name, "arguments", "a", 1);
        if (json_array_append_new(list, call) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static rlhf_status arrange(const struct rlhf__bridge *b, const char *stand_in, struct around *a,
                           struct rlhf__error *err) {
    a->talk.tools = b->said->tools;
    a->talk.vars = b->said->vars;
    a->calls = b->calls ? make_calls(b, stand_in) : NULL;
    if (b->calls && !a->calls) return RLHF__NOMEM(err, "out of memory for a conversation");
    const struct rlhf__message asks = {.role = RLHF__ROLE_USER, .content = {"Q", 1}},
                               says = {.role = RLHF__ROLE_ASSISTANT,
                                       .content = {b->calls ? "" : stand_in,
                                                   b->calls ? 0 : strlen(stand_in)},
                                       .calls = a->calls};
    RLHF_TRY(rlhf__messages_put(&a->talk, &asks, err));
    RLHF_TRY(rlhf__messages_put(&a->talk, &says, err));
    for (size_t i = 0; i < b->said->n; i++) {
        struct rlhf__message m = b->said->item[i];
        m.written = RLHF__CONTENT_SPELLED;
        RLHF_TRY(rlhf__messages_put(&a->talk, &m, err));
    }
    return RLHF_OK;
}

static void around_finish(struct around *a) {
    rlhf__messages_finish(&a->talk);
    json_decref(a->calls);
}

// ---- where the turn ends ----

static rlhf_status no_end(const struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "the chat template %s cannot be used for episodes, because it is not clear where it "
        "ends a turn of the assistant; choose another template (prompts.template), or another "
        "form of calls (episodes.calls)",
        rlhf__chat_known(rlhf__tokenizer_chat(tok)));
}

// Finds the end token after the n-th stand-in. Sets *from to its offset and *end to its length. If
// the template writes no end token, *from is the end of that stand-in, and *end is 0.
static rlhf_status find_end(const struct rlhf__tokenizer *tok, rlhf_str s, const char *stand_in,
                            size_t n, size_t *from, size_t *end, struct rlhf__error *err) {
    const char *token = rlhf__chat_turn_end(rlhf__tokenizer_chat(tok)), *after = s.ptr;
    for (size_t k = 0; k < n; k++) {
        after = strstr(after, stand_in);
        if (!after) return no_end(tok, err);
        after += strlen(stand_in);
    }
    const char *at = token ? strstr(after, token) : NULL;
    *from = (size_t)((at ? at : after) - s.ptr);
    *end = at ? strlen(token) : 0;
    return RLHF_OK;
}

// Renders the text after the policy's turn to *text, which then begins with the end token. Sets
// *end to the length of that token in bytes. `which` chooses one of the two stand-ins.
static rlhf_status render(const struct rlhf__tokenizer *tok, const struct rlhf__bridge *b,
                          int which, struct rlhf__spelled *s, struct rlhf__turns *text, size_t *end,
                          struct rlhf__error *err) {
    struct around a = {.calls = NULL};
    const char *stand_in = b->calls ? names[which] : texts[which];
    size_t from = 0;
    rlhf_status st = arrange(b, stand_in, &a, err);
    if (st == RLHF_OK) st = rlhf__spelled_mark(tok, &a.talk, s, err);
    if (st == RLHF_OK)
        st = rlhf__chat_render(rlhf__tokenizer_chat(tok), &s->marked, 1, &text->text, err);
    if (st == RLHF_OK) st = rlhf__spelled_unmark(s, text, err);
    const rlhf_str whole = {rlhf__buf_text(&text->text), text->text.len};
    if (st == RLHF_OK)
        st = find_end(tok, whole, stand_in, b->calls ? b->calls : 1, &from, end, err);
    if (st == RLHF_OK && from) {
        memmove(text->text.data, text->text.data + from, text->text.len - from + 1);
        text->text.len -= from;
        for (size_t i = 0; i < s->cuts.n; i++)
            s->cuts.at[i] -= from; // all cuts are in the text that was kept
    }
    around_finish(&a);
    return st;
}

// ---- ids ----

rlhf_status rlhf__bridge_encode(const struct rlhf__tokenizer *tok, const struct rlhf__bridge *b,
                                struct rlhf__ids *out, struct rlhf__error *err) {
    struct rlhf__spelled s = {.mark = ""};
    struct rlhf__turns text = {0};
    struct rlhf__ids ids = {0};
    size_t end = 0;
    rlhf_status st = render(tok, b, 0, &s, &text, &end, err);
    const rlhf_str said = {rlhf__buf_text(&text.text), text.text.len};
    if (st == RLHF_OK) st = rlhf__tokenizer_encode_cut(tok, said, &s.cuts, &ids, err);
    const rlhf_str token = {said.ptr, end};
    const int whole =
        st == RLHF_OK && end && ids.n && ids.data[0] == rlhf__tokenizer_find(tok, token);
    if (st == RLHF_OK && end && !whole) st = no_end(tok, err);
    for (size_t i = whole && !b->with_end; st == RLHF_OK && i < ids.n; i++)
        st = rlhf__ids_push(out, ids.data[i], err);
    rlhf__ids_finish(&ids);
    rlhf__turns_finish(&text);
    rlhf__spelled_finish(&s);
    return st;
}

// ---- the check ----

static rlhf_status check_case(const struct rlhf__tokenizer *tok, const struct rlhf__bridge *b,
                              const char *what, struct rlhf__error *err) {
    struct rlhf__turns text[2] = {0};
    size_t end;
    rlhf_status st = RLHF_OK;
    for (int i = 0; st == RLHF_OK && i < 2; i++) {
        struct rlhf__spelled s = {.mark = ""};
        st = render(tok, b, i, &s, &text[i], &end, err);
        rlhf__spelled_finish(&s);
    }
    if (st == RLHF_OK && strcmp(rlhf__buf_text(&text[0].text), rlhf__buf_text(&text[1].text)) != 0)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "the chat template %s cannot be used for episodes: the text that it "
                        "writes between an assistant's turn and %s depends on that turn",
                        rlhf__chat_known(rlhf__tokenizer_chat(tok)), what);
    rlhf__turns_finish(&text[0]);
    rlhf__turns_finish(&text[1]);
    return st;
}

// Refuses a template whose end token is not in the vocabulary. Such a token would be encoded as
// ordinary tokens, and the policy could not end its turns with it.
static rlhf_status check_token(const struct rlhf__tokenizer *tok, struct rlhf__error *err) {
    const char *end = rlhf__chat_turn_end(rlhf__tokenizer_chat(tok));
    char shown[200];
    if (!end || rlhf__tokenizer_find(tok, (rlhf_str){end, strlen(end)}) >= 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the chat template %s cannot be used for episodes: it ends a turn with %s, "
                      "which is not a token of this model's vocabulary; choose another template "
                      "(prompts.template), or a model that has the token",
                      rlhf__chat_known(rlhf__tokenizer_chat(tok)),
                      rlhf__printable(end, shown, sizeof shown));
}

rlhf_status rlhf__bridge_check(const struct rlhf__tokenizer *tok, int tools,
                               struct rlhf__error *err) {
    struct rlhf__message said[] = {{.role = RLHF__ROLE_USER, .content = {"R", 1}},
                                   {.role = RLHF__ROLE_TOOL,
                                    .content = {"R", 1},
                                    .name = {"f", 1},
                                    .call_id = {"abcdefgh1", 9}}};
    const struct rlhf__messages user = {.item = &said[0], .n = 1},
                                tool = {.item = &said[1], .n = 1};
    RLHF_TRY(check_case(tok, &(struct rlhf__bridge){.said = &user}, "a user's", err));
    RLHF_TRY(check_token(tok, err));
    if (!tools) return RLHF_OK;
    return check_case(tok, &(struct rlhf__bridge){.said = &tool, .calls = 1}, "a tool's", err);
}
