// test_left_out.c: parts of a conversation that a chat template leaves out are refused, and only
// those. Short conversations do not show all that a template writes, so the row itself counts.
#include "chat/chat.h"
#include "support/scratch.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

#define EACH     "{% for m in messages %}"
#define TURN     "[{{ m.role }}]{{ m.content }}{% endfor %}"
#define Q        "{\"role\":\"user\",\"content\":\"Q\"}"
#define CALL     "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]"
#define TOOLS    ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]"
#define ROW(...) "{\"messages\":[" __VA_ARGS__ "]}"
#define PARTS                                                                                      \
    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","       \
    "\"text\":\"b\"}]}"

static const struct {
    const char *template, *row, *text, *part; // part: of the refusal; NULL = the row has this text
} cases[] = {
    // thoughts with calls only, under another name than in the row
    {EACH "[{{ m.role }}]{{ m.content }}{% if m.tool_calls %}<{{ m.thinking }}>"
          "{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}",
     ROW(Q ",{\"role\":\"assistant\",\"reasoning\":\"t\"," CALL "}"), "[user]Q[assistant]<t>f",
     NULL},
    {EACH
     "[{{ m.role }}]{{ m.content }}{% if m.tool_calls %}<{{ m.thinking }}>{% endif %}{% endfor %}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"A\",\"thinking\":\"t\"}"), NULL,
     "messages[1] has thoughts (field 'thinking'), and the chat template "},
    {EACH TURN, ROW(Q ",{\"role\":\"assistant\",\"content\":\"A\",\"reasoning\":\"\"}"),
     "[user]Q[assistant]A", NULL},
    // a template that loops over its tools fails on a question without tools
    {"{% for t in tools %}<{{ t.function.name }}>{% endfor %}" EACH TURN,
     "{\"messages\":[" Q "]" TOOLS "}", "<f>[user]Q", NULL},
    {"{% for t in tools %}<{{ t.function.name }}>{% endfor %}" EACH TURN, ROW(Q), NULL,
     "a loop over null"},
    {EACH TURN, "{\"messages\":[" Q "]" TOOLS "}", NULL,
     "the row has tools, and the chat template "},
    // tools that are written only in a certain conversation
    {EACH "{% if tools and m.content == 'use' %}{{ tools | length }}{% endif %}" TURN,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"use\"}]" TOOLS "}", "1[user]use", NULL},
    // calls that a generation prompt hides
    {EACH "[{{ m.role }}]{{ m.content }}{% if m.tool_calls and not add_generation_prompt %}"
          "{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}",
     ROW(Q ",{\"role\":\"assistant\"," CALL "}"), "[user]Q[assistant]f", NULL},
    {EACH TURN, ROW(Q ",{\"role\":\"assistant\",\"content\":\"\"," CALL "}"), NULL,
     "messages[1] has tool calls, and the chat template "},
    // results
    {EACH "{% if m.role == 'tool' %}{% if m.name == 'g' %}<{{ m.content }}>{% endif %}"
          "{% else %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"A\"},{\"role\":\"tool\",\"name\":\"g\","
           "\"content\":\"R\"}"),
     "[user]Q[assistant]A<R>", NULL},
    {EACH "{% if m.role != 'tool' %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"A\"},{\"role\":\"tool\",\"content\":\"R\"}"),
     NULL, "messages[2] is a tool's, and the chat template "},
    // a developer
    {EACH TURN, ROW("{\"role\":\"developer\",\"content\":\"D\"}," Q), "[developer]D[user]Q", NULL},
    {EACH "{% if m.role != 'developer' %}{{ m.content }}{% endif %}{% endfor %}",
     ROW("{\"role\":\"developer\",\"content\":\"D\"}," Q), NULL,
     "messages[0] is a developer's, and"},
    // lists of parts
    {EACH
     "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }};"
     "{% endfor %}{% endif %}{% endfor %}",
     ROW(PARTS), "a;b;", NULL},
    {EACH "{{ m.content }}{% endfor %}", ROW(PARTS), NULL,
     "messages[0]: field 'content' is a list, and the chat template "},
    {EACH "{{ m.content | tojson }}{% endfor %}", ROW(PARTS), NULL,
     "messages[0]: field 'content' is a list, and the chat template "},
    {EACH "{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}", ROW(PARTS), "ab", NULL},
    {EACH "{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}", ROW(Q), NULL,
     "messages[0]: field 'content' is a string, and the chat template "},
};

static void left_out(void **state) {
    static const struct rlhf__chat_tokens tokens = {.vars = "{\"eos_token\":\"</s>\"}"};
    struct scratch *s = *state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__chat *c = NULL;
        struct rlhf__messages m = {0};
        struct rlhf__error err = {0, ""};
        struct rlhf__buf text = RLHF__BUF_INIT;
        json_t *row = json_loads(cases[i].row, 0, NULL), *tools = NULL;
        scratch_text(s, "chat_template.jinja", cases[i].template);
        check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
        check_ok(rlhf__messages_read(&m, json_object_get(row, "messages"), "messages", &err), &err);
        check_ok(rlhf__messages_tools(row, &tools, &err), &err);
        m.tools = tools;
        const rlhf_status st = rlhf__chat_render(c, &m, 0, &text, &err);
        if (cases[i].part)
            check_error(st, RLHF_E_INVALID, &err, cases[i].part);
        else
            check_ok(st, &err);
        if (cases[i].text) assert_string_equal(rlhf__buf_text(&text), cases[i].text);
        rlhf__buf_finish(&text);
        rlhf__messages_finish(&m);
        rlhf__chat_close(c);
        json_decref(tools);
        json_decref(row);
    }
}

// ---- where turns end ----

// A tokenizer whose special tokens are <|...|> and [e~[.
static size_t special(const void *tokenizer, rlhf_str s) {
    (void)tokenizer;
    if (s.len >= 4 && memcmp(s.ptr, "[e~[", 4) == 0) return 4;
    if (s.len < 4 || memcmp(s.ptr, "<|", 2) != 0) return 0;
    const char *end = memchr(s.ptr, '>', (size_t)s.len);
    return end && end[-1] == '|' ? (size_t)(end + 1 - s.ptr) : 0;
}

static const struct {
    const char *template, *row, *end;
    const char *turns[2]; // the assistant's turns; [0] NULL: they cannot be told
} ends[] = {
    // several tokens, with text between them
    {EACH "<|open|>{{ m.role }}<|sep|>{{ m.content }}<|close|>response<|sep|><|end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|open|>assistant<|sep|>{% endif %}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"A\"}," Q),
     "<|end|>",
     {"A<|close|>response<|sep|><|end|>"}},
    // brackets of no usual form
    {EACH "<|b|>{{ m.role }}\n{{ m.content }}[e~[\n{% endfor %}{% if add_generation_prompt %}<|b|>"
          "assistant\n{% endif %}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"A\"}," Q
           ",{\"role\":\"assistant\",\"content\":\"B\"}"),
     "[e~[",
     {"A[e~[", "B[e~["}},
    // another token after thoughts
    {EACH
     "<|b|>{{ m.role }}\n{% if m.thinking %}{{ m.thinking }}<|then|>{{ m.content }}<|text|>"
     "{% else %}{{ m.content }}{% endif %}<|e|>\n{% endfor %}{% if add_generation_prompt %}<|b|>"
     "assistant\n{% endif %}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"A\",\"thinking\":\"t\"}," Q),
     "<|e|>",
     {"t<|then|>A<|text|><|e|>"}},
    // a template that always writes the beginning of one more turn
    {"{{ '<|b|>' }}" EACH
     "{{ m.role }}\n{{ m.content }}<|t|><|e|><|b|>{% endfor %}{{ 'assistant\\n' }}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"A\"}"),
     "<|e|>",
     {"A<|t|><|e|>"}},
    // calls, and no token that ends a turn
    {EACH "<|{{ m.role }}|>{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}("
          "{{ m.tool_calls[0].function.arguments | tojson }}){% endif %}{% endfor %}"
          "{% if add_generation_prompt %}<|assistant|>{% endif %}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"\"," CALL
           "},{\"role\":\"tool\",\"content\":\"res\"},"
           "{\"role\":\"assistant\",\"content\":\"B\"}"),
     NULL,
     {"f({\"x\": 1})", "B"}},
    // a call and its result in one turn: the end token comes only after the answer
    {"{% set ns = namespace(open=false) %}" EACH
     "{% if m.role == 'tool' %}<|r|>{{ m.content }}<|r|>"
     "{% else %}{% if m.role != 'assistant' or not ns.open %}<|b|>{{ m.role }}\n{% endif %}"
     "{{ m.content }}{% if m.tool_calls %}{% set ns.open = true %}<|c|>{{ "
     "m.tool_calls[0].function.name }}<|c|>{% else %}{% set ns.open = false %}<|e|>\n{% endif %}"
     "{% endif %}{% endfor %}{% if add_generation_prompt and not ns.open %}<|b|>assistant\n{% "
     "endif %}",
     ROW(Q ",{\"role\":\"assistant\",\"content\":\"\"," CALL
           "},{\"role\":\"tool\",\"content\":\"res\"},"
           "{\"role\":\"assistant\",\"content\":\"B\"}"),
     "<|e|>",
     {"<|c|>f<|c|>", "B<|e|>"}},
};

static void turn_ends(void **state) {
    static const struct rlhf__chat_tokens tokens = {.vars = "{}", .special = special};
    struct scratch *s = *state;
    for (size_t i = 0; i < CHECK_COUNT(ends); i++) {
        struct rlhf__chat *c = NULL;
        struct rlhf__messages m = {0};
        struct rlhf__error err = {0, ""};
        struct rlhf__turns t = {0};
        json_t *row = json_loads(ends[i].row, 0, NULL);
        scratch_text(s, "chat_template.jinja", ends[i].template);
        check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
        check_ok(rlhf__messages_read(&m, json_object_get(row, "messages"), "messages", &err), &err);
        check_ok(rlhf__chat_turns(c, &m, 0, 0, &t, &err), &err);
        if (ends[i].end)
            assert_string_equal(rlhf__chat_turn_end(c), ends[i].end);
        else
            assert_null(rlhf__chat_turn_end(c));
        for (size_t k = 0; k < 2 && ends[i].turns[k]; k++) {
            assert_true(k < t.n);
            const size_t n = t.item[k].to - t.item[k].from;
            char *turn = strndup(rlhf__buf_text(&t.text) + t.item[k].from, n);
            assert_string_equal(turn, ends[i].turns[k]);
            free(turn);
        }
        rlhf__turns_finish(&t);
        rlhf__messages_finish(&m);
        rlhf__chat_close(c);
        json_decref(row);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(left_out, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(turn_ends, scratch_setup, scratch_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
