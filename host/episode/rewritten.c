// rewritten.c: see rewritten.h.
#include "episode/rewritten.h"

#include "base/printable.h"
#include "chat/chat.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

static rlhf_str str_of(const struct rlhf__buf *b) { return (rlhf_str){rlhf__buf_text(b), b->len}; }

static rlhf_str json_text(const json_t *v) {
    return (rlhf_str){json_string_value(v), json_string_length(v)};
}

// ---- the turns of an episode ----

rlhf_status rlhf__rewritten_note(const struct rlhf__rewriting *by, struct rlhf__episode *e,
                                 struct rlhf__error *err) {
    const char *text = rlhf__buf_text(&e->whole);
    if (!by->chat) return RLHF_OK;
    struct rlhf__past_turn *more = realloc(e->talk, (e->n_talk + 1) * sizeof *more);
    if (!more) return RLHF__NOMEM(err, "out of memory for %zu turns", e->n_talk);
    e->talk = more;
    struct rlhf__past_turn *now = &more[e->n_talk++];
    memset(now, 0, sizeof *now);
    const size_t n = rlhf__utf8_repair(text, e->whole.len, NULL, 0);
    char *to = n ? rlhf__buf_grow(&now->text, n) : NULL;
    if (to) rlhf__utf8_repair(text, e->whole.len, to, n);
    RLHF_TRY(rlhf__buf_ok(&now->text, err));
    for (uint32_t k = 0; k < e->n_said; k++)
        *(e->said[k].role == RLHF_ROLE_TOOL && !by->tools->marked ? &now->tools : &now->users) += 1;
    if (!e->calls.n || e->calls.faults || by->tools->marked) return RLHF_OK;
    now->calls = rlhf__tool_calls_json(&e->calls);
    return now->calls ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %zu calls", e->calls.n);
}

// Sets *out to the text before the first tool call of a turn. A call inside thoughts does not
// count.
static rlhf_status before_calls(int32_t form, rlhf_str s, rlhf_str *out, struct rlhf__error *err) {
    struct rlhf__tool_calls calls = {.n = 0};
    *out = (rlhf_str){s.ptr, 0};
    if (form == RLHF__TOOL_FORM_LLAMA3 || form == RLHF__TOOL_FORM_XML) return RLHF_OK;
    RLHF_TRY(rlhf__tool_calls_read(form, s, NULL, &calls, err));
    out->len = calls.n ? calls.first : s.len;
    while (out->len && strchr(" \t\r\n", out->ptr[out->len - 1]))
        out->len--;
    rlhf__tool_calls_finish(&calls);
    return RLHF_OK;
}

// ---- the conversation ----

static rlhf_status put_replies(const struct rlhf__past_turn *p, struct rlhf__messages *m,
                               struct rlhf__error *err) {
    for (uint32_t k = 0; k < p->tools; k++) {
        const json_t *call = json_array_get(p->calls, k);
        const json_t *name = json_object_get(json_object_get(call, "function"), "name");
        const struct rlhf__message tool = {.role = RLHF__ROLE_TOOL,
                                           .content = {"R", 1},
                                           .name = json_text(name),
                                           .call_id = json_text(json_object_get(call, "id"))};
        RLHF_TRY(rlhf__messages_put(m, &tool, err));
    }
    for (uint32_t k = 0; k < p->users; k++)
        RLHF_TRY(rlhf__messages_add(m, RLHF__ROLE_USER, (rlhf_str){"R", 1}, err));
    return RLHF_OK;
}

// Build the conversation. The texts of other speakers do not matter, so placeholders replace them.
static rlhf_status arrange(const struct rlhf__rewriting *by, const struct rlhf__episode *e,
                           struct rlhf__messages *m, struct rlhf__error *err) {
    m->tools = by->tools->listed ? by->tools->list : NULL;
    RLHF_TRY(rlhf__messages_add(m, RLHF__ROLE_USER, (rlhf_str){"Q", 1}, err));
    for (size_t k = 0; k < e->n_talk; k++) {
        const struct rlhf__past_turn *p = &e->talk[k];
        struct rlhf__message says = {
            .role = RLHF__ROLE_ASSISTANT, .content = str_of(&p->text), .calls = p->calls};
        if (p->calls) RLHF_TRY(before_calls(by->tools->form, says.content, &says.content, err));
        RLHF_TRY(rlhf__messages_put(m, &says, err));
        RLHF_TRY(put_replies(p, m, err));
    }
    return RLHF_OK;
}

// ---- the comparison ----

static int same_text(rlhf_str a, rlhf_str b) {
    return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}

// Set *same to 1 if the template renders a turn as the policy wrote it.
static rlhf_status compare(const struct rlhf__rewriting *by, const struct rlhf__past_turn *p,
                           rlhf_str now, int *same, struct rlhf__error *err) {
    const int32_t form = by->tools->form;
    struct rlhf__tool_calls calls = {.n = 0};
    *same = same_text(str_of(&p->text), now);
    if (*same || !p->calls) return RLHF_OK;
    rlhf_status st = rlhf__tool_calls_read(form, now, NULL, &calls, err);
    json_t *list = st == RLHF_OK ? rlhf__tool_calls_json(&calls) : NULL;
    if (st == RLHF_OK && !list) st = RLHF__NOMEM(err, "out of memory for %zu calls", calls.n);
    rlhf_str before[2] = {{NULL, 0}};
    if (st == RLHF_OK) st = before_calls(form, str_of(&p->text), &before[0], err);
    if (st == RLHF_OK) st = before_calls(form, now, &before[1], err);
    *same = list && json_equal(list, p->calls) && same_text(before[0], before[1]);
    json_decref(list);
    rlhf__tool_calls_finish(&calls);
    return st;
}

static rlhf_status refuse(const struct rlhf__rewriting *by, const struct rlhf__episode *e, size_t k,
                          rlhf_str now, struct rlhf__error *err) {
    struct rlhf__buf was = RLHF__BUF_INIT, is = RLHF__BUF_INIT;
    rlhf__put_clipped(&was, str_of(&e->talk[k].text), 60);
    rlhf__put_clipped(&is, now, 60);
    const rlhf_status st = rlhf__fail(
        err, RLHF_E_INVALID,
        "the chat template %s rewrites a turn once later turns follow: turn %zu of episode "
        "%llu was \"%s\", and becomes \"%s\"; episodes.rewrites=keep allows that",
        rlhf__chat_known(by->chat), k + 1, (unsigned long long)e->number, rlhf__buf_text(&was),
        rlhf__buf_text(&is));
    rlhf__buf_finish(&was);
    rlhf__buf_finish(&is);
    return st;
}

// Returns the text of a turn without the token that ends it.
static rlhf_str turn_text(const struct rlhf__rewriting *by, const struct rlhf__turns *t, size_t k) {
    const char *token = rlhf__chat_turn_end(by->chat), *from = rlhf__buf_text(&t->text);
    const size_t n = token ? strlen(token) : 0;
    rlhf_str s = {from + t->item[k].from, t->item[k].to - t->item[k].from};
    for (uint64_t at = s.len; n && at >= n; at--)
        if (memcmp(s.ptr + at - n, token, n) == 0) return (rlhf_str){s.ptr, at - n};
    return s;
}

// Add the episode's turns to the counts. Errors: RLHF_E_NOMEM; RLHF_E_INVALID if the template
// cannot render the whole conversation. With by->refuses, a rewritten turn is RLHF_E_INVALID, too.
static rlhf_status count(struct rlhf__rewriting *by, const struct rlhf__episode *e,
                         struct rlhf__error *err) {
    struct rlhf__messages m = {.n = 0};
    struct rlhf__turns turns = {.n = 0};
    json_t *vars = rlhf__episode_vars(e);
    rlhf_status st = arrange(by, e, &m, err);
    m.vars = vars;
    if (st == RLHF_OK) {
        st = rlhf__chat_turns(by->chat, &m, 0, 1, &turns, err);
        if (st != RLHF_OK) rlhf__error_context(err, "episode %llu", (unsigned long long)e->number);
    }
    if (st == RLHF_OK && turns.n == e->n_talk) by->past += (int64_t)e->n_talk;
    for (size_t k = 0; st == RLHF_OK && turns.n == e->n_talk && k < turns.n; k++) {
        const rlhf_str now = turn_text(by, &turns, k);
        int same = 1;
        st = compare(by, &e->talk[k], now, &same, err);
        by->rewritten += !same;
        if (st == RLHF_OK && !same && by->refuses) st = refuse(by, e, k, now, err);
    }
    rlhf__turns_finish(&turns);
    rlhf__messages_finish(&m);
    json_decref(vars);
    return st;
}

rlhf_status rlhf__rewritten_count(struct rlhf__rewriting *by, const struct rlhf__episode *e,
                                  struct rlhf__error *err) {
    struct rlhf__error why;
    if (!e->n_talk) return RLHF_OK;
    const rlhf_status st = count(by, e, &why);
    if (st == RLHF_OK || (st == RLHF_E_INVALID && !by->refuses)) return RLHF_OK;
    if (err) *err = why;
    return st;
}
