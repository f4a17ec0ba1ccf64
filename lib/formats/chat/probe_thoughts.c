// probe_thoughts.c: see probe_thoughts.h.
#include "chat/probe_thoughts.h"

#include "chat/jinja_run.h"

#include <string.h>

// Conversations of one question and up to two answers, then maybe a question: thoughts (NULL: the
// message has none) and content of each answer.
static const struct {
    const char *thoughts, *content;
    const char *more_thoughts, *more; // more NULL: one answer
    int asks;                         // 1: another question ends it
} probes[] = {
    {"T", "A", NULL, NULL, 0},
    {"T", "A", NULL, NULL, 1},
    {"", "<think>\nU\n</think>\n\nA", NULL, NULL, 0},
    {"\n\nT\n", "\n\nA", NULL, NULL, 0},
    {"\n", "\nA", "V", "\nB", 0},
    {"T", "<think>U</think>A", NULL, "<think>V</think>B", 0},
    {"", "A", "", "B", 0},
};

static rlhf_status say(json_t *list, struct rlhf__messages *m, int32_t role, const char *content,
                       const char *thoughts, struct rlhf__error *err) {
    struct rlhf__message x = {.role = role, .content = {content, strlen(content)}};
    json_t *v = json_pack("{s:s, s:s}", "role", rlhf__role_name(role), "content", content);
    if (thoughts) {
        x.thoughts = (rlhf_str){thoughts, strlen(thoughts)};
        json_object_set_new(v, "reasoning_content", json_string(thoughts));
    }
    if (json_array_append_new(list, v) != 0) return RLHF__NOMEM(err, "out of memory for messages");
    return rlhf__messages_put(m, &x, err);
}

static rlhf_status make(size_t i, json_t *list, struct rlhf__messages *m, struct rlhf__error *err) {
    RLHF_TRY(say(list, m, RLHF__ROLE_USER, "Q", NULL, err));
    RLHF_TRY(say(list, m, RLHF__ROLE_ASSISTANT, probes[i].content, probes[i].thoughts, err));
    if (probes[i].more)
        RLHF_TRY(say(list, m, RLHF__ROLE_ASSISTANT, probes[i].more, probes[i].more_thoughts, err));
    return probes[i].asks ? say(list, m, RLHF__ROLE_USER, "R", NULL, err) : RLHF_OK;
}

// 1 when the style writes m as the template does.
static int same(const struct rlhf__jinja *j, const json_t *vars, const struct rlhf__style *s,
                const struct rlhf__messages *m) {
    struct rlhf__error no = {0, ""};
    struct rlhf__turns mine = {0};
    struct rlhf__jinja_result got = {.raised = 0};
    int yes =
        rlhf__jinja_run(j, vars, &got, &no) == RLHF_OK && !got.raised &&
        rlhf__style_render(s, m->item, m->n, 0, &mine, &no) == RLHF_OK &&
        got.turns.text.len == mine.text.len &&
        memcmp(rlhf__buf_text(&got.turns.text), rlhf__buf_text(&mine.text), mine.text.len) == 0;
    rlhf__turns_finish(&got.turns);
    rlhf__turns_finish(&mine);
    return yes;
}

rlhf_status rlhf__probe_thoughts(const struct rlhf__jinja *j, json_t *vars, struct rlhf__style *s,
                                 struct rlhf__error *err) {
    for (size_t i = 0; i < sizeof probes / sizeof *probes && s->flags & RLHF__STYLE_REASONING;
         i++) {
        struct rlhf__messages m = {0};
        json_t *list = json_array();
        rlhf_status st = make(i, list, &m, err);
        json_object_set_new(vars, "messages", list);
        json_object_set_new(vars, "add_generation_prompt", json_false());
        if (st == RLHF_OK && !same(j, vars, s, &m)) s->flags &= ~(uint32_t)RLHF__STYLE_REASONING;
        rlhf__messages_finish(&m);
        RLHF_TRY(st);
    }
    return RLHF_OK;
}
