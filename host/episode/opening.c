// opening.c: see opening.h.
#include "episode/opening.h"

#include "base/printable.h"
#include "data/lines.h"
#include "text/unicode.h"
#include "tokenizer/bridge.h"

#include <string.h>

// The texts of an environment as chat messages. The texts are well-formed UTF-8. A special token in
// them is encoded as ordinary text.
struct speech {
    struct rlhf__buf text[RLHF__EPISODE_MESSAGES];
    struct rlhf__buf joined; // the prompt's last message with what was added to it
    struct rlhf__messages m;
    json_t *own; // the tools of the data row
    int64_t specials;
};

static void speech_finish(struct speech *s) {
    for (int k = 0; k < RLHF__EPISODE_MESSAGES; k++)
        rlhf__buf_finish(&s->text[k]);
    rlhf__buf_finish(&s->joined);
    rlhf__messages_finish(&s->m);
    json_decref(s->own);
}

static int32_t role_of(int32_t role) {
    return role == RLHF_ROLE_SYSTEM ? RLHF__ROLE_SYSTEM
           : role == RLHF_ROLE_TOOL ? RLHF__ROLE_TOOL
                                    : RLHF__ROLE_USER;
}

static rlhf_str str_of(const struct rlhf__buf *b) { return (rlhf_str){rlhf__buf_text(b), b->len}; }

// Count the special tokens that a text would have if they were not encoded as ordinary text.
static rlhf_status count_specials(const struct rlhf__speaking *by, rlhf_str text, int64_t *n,
                                  struct rlhf__error *err) {
    struct rlhf__ids ids = {0};
    rlhf_status st = RLHF_OK;
    if (by->chat) st = rlhf__tokenizer_encode(by->tok, text, RLHF__ENCODE_SPECIAL, 0, &ids, err);
    for (size_t i = 0; st == RLHF_OK && i < ids.n; i++)
        *n += rlhf__tokenizer_is_special(by->tok, ids.data[i]) != 0;
    rlhf__ids_finish(&ids);
    return st;
}

// Copy the text of message k to s->text[k]. `most` is the maximum number of bytes to copy.
static rlhf_status take_text(const struct rlhf__speaking *by, const struct rlhf__episode *e,
                             uint32_t k, size_t most, struct speech *s, struct rlhf__error *err) {
    const struct rlhf__buf *said = &e->said[k].text;
    const char *text = rlhf__buf_text(said);
    const size_t len = said->len <= most ? said->len : rlhf__utf8_floor(text, most);
    const size_t n = rlhf__utf8_repair(text, len, NULL, 0);
    char *to = n ? rlhf__buf_grow(&s->text[k], n) : NULL;
    if (to) rlhf__utf8_repair(text, len, to, n);
    if (len < said->len) rlhf__buf_printf(&s->text[k], " [cut: %zu more bytes]", said->len - len);
    RLHF_TRY(rlhf__buf_ok(&s->text[k], err));
    return count_specials(by, str_of(&s->text[k]), &s->specials, err);
}

static rlhf_status add_said(struct speech *s, int32_t role, const struct rlhf__buf *text,
                            struct rlhf__error *err) {
    const struct rlhf__message m = {
        .role = role_of(role), .content = str_of(text), .written = RLHF__CONTENT_SPELLED};
    return rlhf__messages_put(&s->m, &m, err);
}

// Append the contents of the messages, in order. If a text spells a special token, the spelling is
// encoded as ordinary text.
static rlhf_status encode_contents(const struct rlhf__speaking *by, const struct rlhf__messages *m,
                                   struct rlhf__ids *out, struct rlhf__error *err) {
    struct rlhf__buf all = RLHF__BUF_INIT;
    for (size_t i = 0; i < m->n; i++)
        rlhf__message_text(&m->item[i], &all);
    rlhf_status st = rlhf__buf_ok(&all, err);
    if (st == RLHF_OK) st = rlhf__tokenizer_encode(by->tok, str_of(&all), 0, 0, out, err);
    rlhf__buf_finish(&all);
    return st;
}

// Add the environment's messages that have this role.
static rlhf_status add(const struct rlhf__episode *e, int32_t role, struct speech *s,
                       struct rlhf__error *err) {
    for (uint32_t k = 0; k < e->n_said; k++)
        if (e->said[k].role == role) RLHF_TRY(add_said(s, role, &s->text[k], err));
    return RLHF_OK;
}

// ---- prompts ----

// Store the tools that a data row lists. If the environment also has tools, both lists must be
// equal.
static rlhf_status take_tools(const struct rlhf__speaking *by, const json_t *row, struct speech *s,
                              struct rlhf__error *err) {
    json_t *own = NULL;
    RLHF_TRY(rlhf__messages_tools(row, &own, err));
    s->own = own;
    if (!own || !by->tools->list) {
        if (own) s->m.tools = own;
        return RLHF_OK;
    }
    if (json_equal(own, by->tools->list)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "a data row has \"tools\" that are not those of the environment; leave them "
                      "out, the environment's are listed");
}

// Add a data row's messages.
static rlhf_status add_row(const struct rlhf__speaking *by, const json_t *row, struct speech *s,
                           struct rlhf__error *err) {
    RLHF_TRY(take_tools(by, row, s, err));
    s->m.vars = rlhf__messages_vars(row);
    const char *const keys[] = {by->field, "prompt", "messages"};
    for (size_t i = 0; i < 3; i++) {
        const json_t *list = keys[i] ? json_object_get(row, keys[i]) : NULL;
        if (json_is_array(list)) return rlhf__messages_read(&s->m, list, keys[i], err);
    }
    return rlhf__fail(err, RLHF_E_INTERNAL, "a prompt of messages has no messages");
}

// If the prompt ends with a user message, append the environment's first USER message to that
// message. Add all other USER messages separately.
static rlhf_status add_users(struct rlhf__episode *e, struct speech *s, struct rlhf__error *err) {
    struct rlhf__message *last = s->m.n ? &s->m.item[s->m.n - 1] : NULL;
    int joins = last && last->role == RLHF__ROLE_USER;
    for (uint32_t k = 0; k < e->n_said; k++) {
        if (e->said[k].role != RLHF_ROLE_USER) continue;
        if (joins) {
            rlhf__message_text(last, &s->joined);
            rlhf__buf_put(&s->joined, rlhf__buf_text(&s->text[k]), s->text[k].len);
            RLHF_TRY(rlhf__buf_ok(&s->joined, err));
            last->content = str_of(&s->joined);
            last->parts = NULL;
            last->written = RLHF__CONTENT_SPELLED;
        } else {
            RLHF_TRY(add_said(s, RLHF_ROLE_USER, &s->text[k], err));
        }
        joins = 0;
    }
    return RLHF_OK;
}

static rlhf_status encode_chat(struct rlhf__speaking *by, struct rlhf__episode *e, struct speech *s,
                               struct rlhf__error *err) {
    json_t *row = NULL;
    s->m.tools = by->tools->listed ? by->tools->list : NULL;
    rlhf_status st = add(e, RLHF_ROLE_SYSTEM, s, err);
    if (st == RLHF_OK && !by->alone) st = rlhf__row_line_json(e->meta, "a data row", 1, &row, err);
    if (st == RLHF_OK && !by->alone) st = add_row(by, row, s, err);
    if (st == RLHF_OK) st = add_users(e, s, err);
    if (st == RLHF_OK && s->m.n > 0)
        st = rlhf__conversation_encode(by->tok, &s->m, 1, &e->read, NULL, err);
    json_decref(row);
    return st;
}

static rlhf_status encode_plain(struct rlhf__speaking *by, struct rlhf__episode *e,
                                struct rlhf__prompt p, struct speech *s, struct rlhf__error *err) {
    if (by->alone && by->bos >= 0) RLHF_TRY(rlhf__ids_push(&e->read, by->bos, err));
    for (int32_t k = 0; !by->alone && k < p.n; k++)
        RLHF_TRY(rlhf__ids_push(&e->read, p.ids[k], err));
    RLHF_TRY(add(e, RLHF_ROLE_SYSTEM, s, err));
    RLHF_TRY(add(e, RLHF_ROLE_USER, s, err));
    return s->m.n ? encode_contents(by, &s->m, &e->read, err) : RLHF_OK;
}

static rlhf_status encode_prompt(struct rlhf__speaking *by, struct rlhf__episode *e,
                                 struct rlhf__prompt p, size_t most, struct rlhf__error *err) {
    struct speech s = {.specials = 0};
    rlhf_status st = RLHF_OK;
    e->read.n = 0;
    for (uint32_t k = 0; st == RLHF_OK && k < e->n_said; k++)
        st = take_text(by, e, k, most, &s, err);
    // if nothing is added to the prompt, encode it as in a run without an environment
    if (st == RLHF_OK && by->chat && (e->n_said || by->alone || by->tools->listed))
        st = encode_chat(by, e, &s, err);
    else if (st == RLHF_OK)
        st = encode_plain(by, e, p, &s, err);
    by->specials += s.specials;
    speech_finish(&s);
    return st;
}

rlhf_status rlhf__speak_prompt(struct rlhf__speaking *by, const struct rlhf__episode_limits *l,
                               struct rlhf__episode *e, int64_t row, struct rlhf__error *err) {
    const struct rlhf__prompt p = rlhf__prompts_get(by->prompts, row);
    RLHF_TRY(encode_prompt(by, e, p, SIZE_MAX, err));
    if (e->read.n == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the environment says nothing in reset(), and the run has no prompts; "
                          "give some with --prompts FILE");
    if (e->read.n >= (size_t)l->tokens)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "a prompt, with the text that the environment adds in reset(), has %zu "
                          "tokens, and a row may have at most %d, which leaves no room for a turn; "
                          "set episodes.tokens higher (the policy's context is the limit)",
                          e->read.n, l->tokens);
    return RLHF_OK;
}

// ---- replies ----

static rlhf_str text_of(const json_t *v) {
    return (rlhf_str){json_string_value(v), json_string_length(v)};
}

// Add the answer to a tool call as a message that the chat template renders as a tool result.
static rlhf_status add_result(const struct rlhf__called *c, const struct rlhf__buf *text,
                              struct speech *s, struct rlhf__error *err) {
    const rlhf_str name = text_of(c->name), none = {NULL, 0};
    const struct rlhf__message m = {.role = RLHF__ROLE_TOOL,
                                    .content = str_of(text),
                                    .name = name.len ? name : none,
                                    .call_id = c->id ? text_of(c->id) : none,
                                    .written = RLHF__CONTENT_SPELLED};
    return rlhf__messages_put(&s->m, &m, err);
}

// Add the answers to all tool calls as one user message.
static rlhf_status add_marked(const struct rlhf__episode *e, struct speech *s,
                              struct rlhf__error *err) {
    for (uint32_t k = 0; k < e->n_said; k++) {
        if (e->said[k].role != RLHF_ROLE_TOOL) continue;
        if (s->joined.len) rlhf__buf_putc(&s->joined, '\n');
        rlhf__buf_printf(&s->joined, "<result>");
        rlhf__buf_put(&s->joined, rlhf__buf_text(&s->text[k]), s->text[k].len);
        rlhf__buf_printf(&s->joined, "</result>");
    }
    RLHF_TRY(rlhf__buf_ok(&s->joined, err));
    return s->joined.len ? add_said(s, RLHF_ROLE_USER, &s->joined, err) : RLHF_OK;
}

// Add the reply to a turn: first the answers to its tool calls, then the other messages.
static rlhf_status add_reply(const struct rlhf__speaking *by, const struct rlhf__episode *e,
                             struct speech *s, struct rlhf__error *err) {
    size_t call = 0;
    if (by->tools->marked) RLHF_TRY(add_marked(e, s, err));
    for (uint32_t k = 0; k < e->n_said && !by->tools->marked; k++)
        if (e->said[k].role == RLHF_ROLE_TOOL && call < e->calls.n)
            RLHF_TRY(add_result(&e->calls.item[call++], &s->text[k], s, err));
    return add(e, RLHF_ROLE_USER, s, err);
}

static rlhf_status encode_reply(struct rlhf__speaking *by, struct rlhf__episode *e, size_t most,
                                struct rlhf__error *err) {
    struct speech s = {.specials = 0};
    rlhf_status st = RLHF_OK;
    e->read.n = 0;
    for (uint32_t k = 0; st == RLHF_OK && k < e->n_said; k++)
        st = take_text(by, e, k, most, &s, err);
    if (st == RLHF_OK) st = add_reply(by, e, &s, err);
    json_t *vars = by->chat ? rlhf__episode_vars(e) : NULL;
    s.m.tools = by->tools->listed ? by->tools->list : NULL;
    s.m.vars = vars;
    const struct rlhf__bridge bridge = {
        .said = &s.m, .calls = by->tools->marked ? 0 : e->calls.n, .with_end = !e->closed};
    if (st == RLHF_OK && by->chat)
        st = rlhf__bridge_encode(by->tok, &bridge, &e->read, err);
    else if (st == RLHF_OK)
        st = encode_contents(by, &s.m, &e->read, err);
    json_decref(vars);
    if (most == SIZE_MAX) by->specials += s.specials;
    speech_finish(&s);
    return st;
}

rlhf_status rlhf__speak_reply(struct rlhf__speaking *by, const struct rlhf__episode_limits *l,
                              struct rlhf__episode *e, struct rlhf__error *err) {
    const size_t most = (size_t)l->reply;
    size_t longest = 0;
    for (uint32_t k = 0; k < e->n_said; k++)
        if (e->said[k].text.len > longest) longest = e->said[k].text.len;
    // A text of more than 64 bytes per allowed token is practically always too long, so only its
    // beginning is encoded.
    size_t bytes = longest > 64 * most ? 64 * most : SIZE_MAX;
    RLHF_TRY(encode_reply(by, e, bytes, err));
    by->cut += e->read.n > most || bytes != SIZE_MAX;
    for (bytes = bytes < longest ? bytes : longest; e->read.n > most && bytes > 0;) {
        const size_t n = e->read.n > 0 ? e->read.n : 1, fewer = bytes * most / n;
        bytes = fewer < bytes ? fewer : bytes - 1;
        RLHF_TRY(encode_reply(by, e, bytes, err));
    }
    // Without a template, an empty text has no tokens, but the policy has to read something.
    if (e->read.n == 0 && longest == 0 && !by->chat)
        RLHF_TRY(rlhf__tokenizer_encode(by->tok, (rlhf_str){"\n", 1}, 0, 0, &e->read, err));
    if (e->read.n == 0 || (e->read.n > most && e->calls.n < 2))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "episodes.reply_tokens is %d, but even a reply that is cut to nothing "
                          "takes %zu tokens%s",
                          l->reply, e->read.n, by->chat ? " with the chat template" : "");
    return RLHF_OK;
}
