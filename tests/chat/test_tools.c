// test_tools.c: reads tool calls as policies write them, in each form. Also tests how chat
// templates handle tools.
#include "support/scratch.h"

#include "base/json.h"
#include "chat/chat.h"
#include "chat/tool_calls.h"

static const char declared[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
    "\"properties\":{\"x\":{\"type\":\"integer\"},\"s\":{\"type\":\"string\"}},\"required\":[\"x\"]"
    "}}},{\"name\":\"g\"}]";

// Writes a turn's calls in words, each as NAME ARGUMENTS or as the fault that was found in it.
static void words(int32_t form, const char *turn, size_t n, char out[600]) {
    static const char *const faults[] = {"", "malformed", "unknown", "incomplete", "not run"};
    struct rlhf__tool_calls c = {.n = 0};
    struct rlhf__error err = {0, ""};
    json_t *tools = json_loads(declared, 0, NULL);
    check_ok(rlhf__tool_calls_read(form, (rlhf_str){turn, n}, tools, &c, &err), &err);
    *out = 0;
    for (size_t i = 0; i < c.n; i++) {
        char *arguments = json_dumps(c.item[i].arguments, JSON_COMPACT);
        const size_t at = strlen(out);
        snprintf(out + at, 600 - at, "%s%s%s%s%s%s%s", i ? "; " : "", faults[c.item[i].fault],
                 c.item[i].fault ? " " : "", json_string_value(c.item[i].name),
                 c.item[i].id ? "/" : "", c.item[i].id ? json_string_value(c.item[i].id) : "",
                 arguments);
        free(arguments);
    }
    if (c.forged) snprintf(out + strlen(out), 600 - strlen(out), " forged %d", (int)c.forged);
    rlhf__tool_calls_finish(&c);
    json_decref(tools);
}

#define H(c)    "<tool_call>\n" c "\n</tool_call>"
#define HERMES  RLHF__TOOL_FORM_HERMES
#define LLAMA3  RLHF__TOOL_FORM_LLAMA3
#define MISTRAL RLHF__TOOL_FORM_MISTRAL
#define CODER   RLHF__TOOL_FORM_QWEN3_CODER
#define XML     RLHF__TOOL_FORM_XML
#define LFM2    RLHF__TOOL_FORM_LFM2
#define L(c)    "<|tool_call_start|>" c "<|tool_call_end|>"

static const struct {
    int32_t form, reserved;
    const char *turn, *calls;
} cases[] = {
    {HERMES, 0, "The answer is 4.", ""},
    {HERMES, 0, H("{\"name\": \"f\", \"arguments\": {\"x\": 1}}"), "f{\"x\":1}"},
    {HERMES, 0, "So:\n" H("{\"name\":\"f\",\"arguments\":{\"x\":1}}") "\n" H("{\"name\":\"g\"}"),
     "f{\"x\":1}; g{}"},
    {HERMES, 0, H("{\"name\":\"f\",\"arguments\":{\"x\":1,\"s\":\"</tool_call>\"}}"),
     "f{\"x\":1,\"s\":\"</tool_call>\"}"},
    {HERMES, 0, H("{\"name\":\"g\",\"arguments\":\"{\\\"a\\\":2}\"}"), "g{\"a\":2}"},
    {HERMES, 0, H("{\"name\":\"f\",\"arguments\":{}}"), "incomplete f{}"},
    {HERMES, 0, H("{\"name\":\"h\",\"arguments\":{}}") H("{\"name\":\"g\"}"),
     "unknown h{}; not run g{}"},
    {HERMES, 0, H("f(1)"), "malformed {}"},
    {HERMES, 0, H("{\"name\":\"g\""), "malformed {}"},
    {HERMES, 0, H("[1]"), "malformed {}"},
    {HERMES, 0, H("{\"arguments\":{}}"), "malformed {}"},
    {HERMES, 0, H("{\"name\":\"g\",\"arguments\":[1]}"), "malformed {}"},
    {HERMES, 0, "<tool_call>{\"name\":\"g\"}", "malformed {}"},
    {HERMES, 0, "<think>" H("{\"name\":\"g\"}") "</think>no", ""},
    {HERMES, 0, "I think " H("{\"name\":\"g\"}") "</think>" H("{\"name\":\"g\"}"), "g{}"},
    {HERMES, 0, "<think>a</think><think>" H("{\"name\":\"g\"}"), ""},
    // think marks in the text of a call are text
    {HERMES, 0,
     H("{\"name\":\"f\",\"arguments\":{\"x\":1,\"s\":\"grep <think> f; echo </think>\"}}"),
     "f{\"x\":1,\"s\":\"grep <think> f; echo </think>\"}"},
    {HERMES, 0, H("{\"name\":\"f\",\"arguments\":{\"x\":1,\"s\":\"t.split('</think>')\"}}"),
     "f{\"x\":1,\"s\":\"t.split('</think>')\"}"},
    {HERMES, 0,
     H("{\"name\":\"f\",\"arguments\":{\"x\":1,\"s\":\"<think>\"}}") H("{\"name\":\"g\"}"),
     "f{\"x\":1,\"s\":\"<think>\"}; g{}"},
    {HERMES, 0,
     "<think>a</think>" H(
         "{\"name\":\"f\",\"arguments\":{\"x\":1,\"s\":\"</think>\"}}") "<think>" H("{\"name\":"
                                                                                    "\"g\"}") "</"
                                                                                              "thin"
                                                                                              "k>",
     "f{\"x\":1,\"s\":\"</think>\"}"},
    {HERMES, 0, "I say <tool_call> or</think>" H("{\"name\":\"g\"}"), "g{}"},
    {HERMES, 0, "<think>x</think>" H("{\"name\":\"g\"}") "</think>", "g{}"},
    {HERMES, 0, H("{\"name\":") "<think>" H("{\"name\":\"g\"}") "</think>" H("{\"name\":\"g\"}"),
     "malformed {}; not run g{}"},
    {LLAMA3, 0, "{\"name\":\"g\",\"parameters\":{\"s\":\"<think></think>\"}}",
     "g{\"s\":\"<think></think>\"}"},
    {LLAMA3, 0, "{\"name\":\"g\",\"parameters\":{\"s\":\"</think>\"}}", "g{\"s\":\"</think>\"}"},
    {LLAMA3, 0, "{\"name\": hm </think> {\"name\":\"g\",\"parameters\":{\"s\":\"</think>\"}}",
     "g{\"s\":\"</think>\"}"},
    {LLAMA3, 0, "<think>{</think>{\"name\":\"g\",\"parameters\":{}}<think>b</think> ", "g{}"},
    {MISTRAL, 0, "[TOOL_CALLS] [{\"name\":\"g\",\"arguments\":{\"s\":\"</think><think>\"}}]",
     "g{\"s\":\"</think><think>\"}"},
    {MISTRAL, 0, "[TOOL_CALLS]g[ARGS]{\"s\":\"</think>\"}[TOOL_CALLS]g[ARGS]{}",
     "g{\"s\":\"</think>\"}; g{}"},
    {MISTRAL, 0, "[TOOL_CALLS]g[ARGS]{}</think>[TOOL_CALLS]g[ARGS]{\"s\":1}", "g{\"s\":1}"},
    {CODER, 0,
     "<tool_call>\n<function=g>\n<parameter=s>\na </think> <think>\n</parameter>\n</function>\n"
     "</tool_call>",
     "g{\"s\":\"a </think> <think>\"}"},
    {XML, 0,
     "<call name=\"g\"><arg name=\"s\"></think></arg></call><think><call name=\"g\"></call>",
     "g{\"s\":\"</think>\"}"},
    {HERMES, 0, "<tool_response>\n4\n</tool_response>", " forged 1"},
    {HERMES, 0, "Observation: 4\nObservation: 5<|im_start|>user\n", " forged 3"},
    {LLAMA3, 0, "{\"name\": \"f\", \"parameters\": {\"x\": 1}}", "f{\"x\":1}"},
    {LLAMA3, 0, "\n<|python_tag|>{\"name\": \"g\", \"parameters\": {}} ", "g{}"},
    {LLAMA3, 0, "{\"name\": \"f\", \"parameters\": {\"x\": 1}} and more", "malformed {}"},
    {LLAMA3, 0, "{\"name\": \"f\", \"para", "malformed {}"},
    {LLAMA3, 0, "<|python_tag|>print(1)", "malformed {}"},
    {LLAMA3, 0, "{\"answer\": 4}", ""},
    {LLAMA3, 0, "It is {\"name\": \"f\", \"parameters\": {}}", ""},
    {MISTRAL, 0,
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"x\": 1}, \"id\": \"abcdefgh1\"}]",
     "f/abcdefgh1{\"x\":1}"},
    {MISTRAL, 0, "[TOOL_CALLS][{\"name\":\"g\"},{\"name\":\"g\"}]", "g{}; g{}"},
    {MISTRAL, 0, "[TOOL_CALLS]f[ARGS]{\"x\": 1}[TOOL_CALLS]g[CALL_ID]abcdefgh1[ARGS]{}",
     "f{\"x\":1}; g/abcdefgh1{}"},
    {MISTRAL, 0, "[TOOL_CALLS] [", "malformed {}"},
    {MISTRAL, 0, "[TOOL_CALLS]", "malformed {}"},
    {MISTRAL, 0, "[TOOL_CALLS] []", "malformed {}"},
    {CODER, 0,
     "<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n<parameter=s>\n2\n</parameter>\n"
     "</function>\n</tool_call>",
     "f{\"x\":1,\"s\":\"2\"}"},
    {CODER, 0, "<tool_call>\n<function=g>\n</function>\n</tool_call>", "g{}"},
    {CODER, 0, "<tool_call>\n<function=g>\n</function>", "malformed {}"},
    {CODER, 0, "<tool_call>\n<function=>\n</function>\n</tool_call>", "malformed {}"},
    {XML, 0, "<call name=\"f\"><arg name=\"x\">12</arg><arg name=\"s\">12</arg></call>",
     "f{\"x\":12,\"s\":\"12\"}"},
    {XML, 0, "a<call name=\"g\"></call>b<call name=\"f\"> <arg name=\"x\">one</arg> </call>",
     "g{}; f{\"x\":\"one\"}"},
    {XML, 0, "<call name=\"g\">5</call>", "malformed {}"},
    {XML, 0, "<call>", ""},
    {LFM2, 0, L("[f(x=1, s='a')]"), "f{\"x\":1,\"s\":\"a\"}"},
    {LFM2, 0, "So: " L("[ f ( x = 1 ,), g() ]") " and" L("[g(s=\"it's\")]") ".",
     "f{\"x\":1}; g{}; g{\"s\":\"it's\"}"},
    {LFM2, 0, L("[g(a=True, b=False, c=None, d=[1, -2.5e3, ('x',)], e={'k': {\"l\": []}})]"),
     "g{\"a\":true,\"b\":false,\"c\":null,\"d\":[1,-2500.0,[\"x\"]],\"e\":{\"k\":{\"l\":[]}}}"},
    {LFM2, 0, L("[g(a={\"k\": true, \"l\": null})]"), "g{\"a\":{\"k\":true,\"l\":null}}"},
    {LFM2, 0, L("[g(s='\\'\\\\\\n\\x41\\u00e9\\U0001F600\\ud83d\\ude00\\q')]"),
     "g{\"s\":\"'\\\\\\nA\303\251\360\237\230\200\360\237\230\200\\\\q\"}"},
    {LFM2, 0, L("[g(s='</think><|tool_call_end|>]\n')]"),
     "g{\"s\":\"</think><|tool_call_end|>]\\n\"}"},
    {LFM2, 0, L("[{\"name\": \"f\", \"arguments\": {\"x\": 1}}, g()]"), "f{\"x\":1}; g{}"},
    {LFM2, 0, L("[f(s='a')]"), "incomplete f{\"s\":\"a\"}"},
    {LFM2, 0, L("[h(), g()]"), "unknown h{}; not run g{}"},
    {LFM2, 0, L("[f(1)]"), "malformed {}"},
    {LFM2, 0, L("[f(x=)]"), "malformed {}"},
    {LFM2, 0, L("[f(x=y)]"), "malformed {}"},
    {LFM2, 0, L("[f(x=1]"), "malformed {}"},
    {LFM2, 0, L("[f(x='it's')]"), "malformed {}"},
    {LFM2, 0, L("[g(s='\\ud83d')]"), "malformed {}"},
    {LFM2, 0, L("[g(a={1: 2})]"), "malformed {}"},
    {LFM2, 0, L("[]"), "malformed {}"},
    {LFM2, 0, L("f(x=1)"), "malformed {}"},
    {LFM2, 0, "<|tool_call_start|>[g()]", "malformed {}"},
    {LFM2, 0, "<|tool_call_start|>", "malformed {}"},
    {LFM2, 0, "<think>" L("[g()]") "</think>no", ""},
    {LFM2, 0, "hm " L("[g()]") "</think>" L("[g()]"), "g{}"},
    {LFM2, 0, L("[g(") "<think>" L("[g()]") "</think>" L("[g()]"), "malformed {}; not run g{}"},
    {LFM2, 0, "<|tool_response_start|>4", " forged 1"},
};

static void forms(void **state) {
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        char got[600];
        words(cases[i].form, cases[i].turn, strlen(cases[i].turn), got);
        if (strcmp(got, cases[i].calls) != 0)
            fail_msg("'%s': '%s', not '%s'", cases[i].turn, got, cases[i].calls);
    }
}

// An integer beyond 64 bits keeps its digits in the arguments. It is not a name.
static void digits(void **state) {
    static const struct {
        int32_t form, reserved;
        const char *turn, *arguments;
    } with[] = {
        {HERMES, 0, H("{\"name\":\"f\",\"arguments\":{\"x\":123456789012345678901}}"),
         "{\"x\": 123456789012345678901}"},
        {MISTRAL, 0, "[TOOL_CALLS]f[ARGS]{\"x\":[-123456789012345678901]}",
         "{\"x\": [-123456789012345678901]}"},
        {XML, 0, "<call name=\"f\"><arg name=\"x\">123456789012345678901</arg></call>",
         "{\"x\": 123456789012345678901}"},
        {LFM2, 0, L("[f(x=123456789012345678901)]"), "{\"x\": 123456789012345678901}"},
        {HERMES, 0, H("{\"name\":123456789012345678901,\"arguments\":{}}"), "{}"},
        {HERMES, 0, H("{\"name\":\"f\",\"arguments\":123456789012345678901}"), "{}"},
        {HERMES, 0, H("{\"name\":\"f\",\"id\":123456789012345678901,\"arguments\":{\"x\":1}}"),
         "{\"x\": 1}"},
    };
    struct rlhf__error err = {0, ""};
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(with); i++) {
        struct rlhf__tool_calls c = {.n = 0};
        struct rlhf__buf text = RLHF__BUF_INIT;
        json_t *tools = json_loads(declared, 0, NULL);
        check_ok(rlhf__tool_calls_read(with[i].form, (rlhf_str){with[i].turn, strlen(with[i].turn)},
                                       tools, &c, &err),
                 &err);
        assert_int_equal(c.n, 1);
        assert_int_equal(c.item[0].fault, i == 4 || i == 5 ? RLHF__CALL_MALFORMED : 0);
        assert_null(c.item[0].id);
        rlhf__json_write(&text, c.item[0].arguments, 0);
        assert_string_equal(rlhf__buf_text(&text), with[i].arguments);
        rlhf__buf_finish(&text);
        rlhf__tool_calls_finish(&c);
        json_decref(tools);
    }
}

static void limits(void **state) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__tool_calls c = {.n = 0};
    struct rlhf__error err = {0, ""};
    (void)state;
    for (int i = 0; i < 20; i++)
        rlhf__buf_puts(&b, H("{\"name\":\"g\"}"));
    check_ok(rlhf__tool_calls_read(HERMES, (rlhf_str){b.data, b.len}, NULL, &c, &err), &err);
    assert_int_equal(c.n, RLHF__TOOL_CALLS_MAX + 1);
    assert_int_equal(c.item[RLHF__TOOL_CALLS_MAX].fault, RLHF__CALL_MALFORMED);
    assert_int_equal(c.item[0].fault, RLHF__CALL_NOT_RUN);
    for (int deep = 60; deep < 80; deep += 10) {
        rlhf__buf_clear(&b);
        rlhf__buf_puts(&b, "<tool_call>{\"name\":\"g\",\"arguments\":{\"a\":");
        for (int i = 0; i < deep; i++)
            rlhf__buf_puts(&b, "[");
        for (int i = 0; i < deep; i++)
            rlhf__buf_puts(&b, "]");
        rlhf__buf_puts(&b, "}}</tool_call>");
        check_ok(rlhf__tool_calls_read(HERMES, (rlhf_str){b.data, b.len}, NULL, &c, &err), &err);
        assert_int_equal(c.n, 1);
        assert_int_equal(c.item[0].fault, deep > 62 ? RLHF__CALL_MALFORMED : RLHF__CALL_GOOD);
    }
    rlhf__buf_clear(&b);
    rlhf__buf_puts(&b, "<tool_call>{\"name\":\"g\",\"arguments\":{\"a\":\"");
    for (int i = 0; i < RLHF__TOOL_ARGUMENTS_MAX; i++)
        rlhf__buf_putc(&b, 'a');
    rlhf__buf_puts(&b, "\"}}</tool_call>");
    check_ok(rlhf__tool_calls_read(HERMES, (rlhf_str){b.data, b.len}, NULL, &c, &err), &err);
    assert_int_equal(c.item[0].fault, RLHF__CALL_MALFORMED);
    check_error(rlhf__tool_calls_read(99, (rlhf_str){"", 0}, NULL, &c, &err), RLHF_E_INVALID, &err,
                "99 is not a form");
    rlhf__tool_calls_finish(&c);
    rlhf__buf_finish(&b);
}

static void faults_have_answers(void **state) {
    (void)state;
    for (int32_t fault = 0; fault < RLHF__N_CALL_FAULTS; fault++) {
        json_t *v = json_loads(rlhf__call_fault_answer(fault), 0, NULL);
        assert_true(json_is_string(json_object_get(v, "error")));
        json_decref(v);
    }
}

// ---- templates ----

static struct rlhf__chat *open_named(struct scratch *s, const char *name) {
    static const struct rlhf__chat_tokens tokens = {
        .vars = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}"};
    struct rlhf__chat *c = NULL;
    struct rlhf__error err = {0, ""};
    check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
    check_ok(rlhf__chat_name(c, name, &err), &err);
    return c;
}

static rlhf_status render(const struct rlhf__chat *c, const char *row, struct rlhf__turns *out,
                          struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    json_t *v = json_loads(row, 0, NULL), *tools = NULL;
    assert_non_null(v);
    check_ok(rlhf__messages_read(&m, json_object_get(v, "messages"), "messages", err), err);
    check_ok(rlhf__messages_tools(v, &tools, err), err);
    m.tools = tools;
    rlhf__turns_clear(out);
    const rlhf_status st = rlhf__chat_turns(c, &m, 0, 1, out, err);
    rlhf__messages_finish(&m);
    json_decref(tools);
    json_decref(v);
    return st;
}

#define CALL(name)                                                                                 \
    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"type\":\"function\","             \
    "\"function\":"                                                                                \
    "{\"name\":\"" name "\",\"arguments\":{\"x\":1}}}]}"
#define TALK                                                                                       \
    "\"messages\":[{\"role\":\"user\",\"content\":\"Q\"}," CALL(                                   \
        "f") ",{\"role\":\"tool\","                                                                \
             "\"content\":\"R\"},{\"role\":\"assistant\",\"content\":\"A\"}]"

// Each template writes calls in its own form. If the text is read in this form, the same calls are
// found, and so are the assistant's turns.
static void own_forms(void **state) {
    static const struct {
        const char *name;
        int32_t form;
        const char *turns;
    } templates[] = {
        {"qwen2.5", HERMES,
         "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call><|im_end|>|"
         "A<|im_end|>|"},
        {"qwen3", HERMES,
         "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call><|im_end|>|"
         "<think>\n\n</think>\n\nA<|im_end|>|"},
        {"llama3", LLAMA3, "{\"name\": \"f\", \"parameters\": {\"x\": 1}}<|eot_id|>|A<|eot_id|>|"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < CHECK_COUNT(templates); i++) {
        struct rlhf__error err = {0, ""};
        struct rlhf__turns t = {0};
        struct rlhf__buf said = RLHF__BUF_INIT;
        struct rlhf__chat *c = open_named(s, templates[i].name);
        assert_true(rlhf__chat_lists_tools(c));
        assert_int_equal(rlhf__chat_tool_form(c), templates[i].form);
        check_ok(render(c, "{" TALK ",\"tools\":[{\"name\":\"fetch\"}]}", &t, &err), &err);
        assert_non_null(strstr(rlhf__buf_text(&t.text), "fetch"));
        for (size_t k = 0; k < t.n; k++) {
            rlhf__buf_put(&said, t.text.data + t.item[k].from, t.item[k].to - t.item[k].from);
            rlhf__buf_puts(&said, "|");
        }
        assert_string_equal(rlhf__buf_text(&said), templates[i].turns);
        rlhf__turns_finish(&t);
        rlhf__buf_finish(&said);
        rlhf__chat_close(c);
    }
}

// LFM2's way to write calls, which is learned from the template.
static void python_form(void **state) {
    static const struct rlhf__chat_tokens tokens = {.vars = "{\"bos_token\":\"<s>\"}"};
    static const char config[] =
        "{\"chat_template\":\"{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}"
        "{% if m.tool_calls %}<|tool_call_start|>[{% for c in m.tool_calls %}{{ c.function.name }}("
        "{% for k, v in c.function.arguments.items() %}{{ k }}={{ \\\"'\\\" + v + \\\"'\\\" if v "
        "is "
        "string else v }}{% if not loop.last %}, {% endif %}{% endfor %}){% if not loop.last %}, "
        "{% endif %}{% endfor %}]<|tool_call_end|>{% endif %}<|im_end|>\\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}\"}";
    struct scratch *s = *state;
    struct rlhf__chat *c = NULL;
    struct rlhf__error err = {0, ""};
    scratch_text(s, "tokenizer_config.json", config);
    check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
    assert_int_equal(rlhf__chat_tool_form(c), LFM2);
    rlhf__chat_close(c);
}

static void left_out(void **state) {
    static const struct {
        const char *name, *row, *part;
    } rows[] = {
        {"zephyr", "{\"messages\":[{\"role\":\"user\",\"content\":\"Q\"}],\"tools\":[{}]}",
         "the row has tools, and the chat template zephyr does not write them"},
        {"plain", "{" TALK "}", "messages[1] has tool calls, and the chat template plain"},
        {"gemma",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Q\"},{\"role\":\"assistant\","
         "\"content\":\"A\"},{\"role\":\"tool\",\"content\":\"R\"}]}",
         "messages[2] is the tool's, where the chat template gemma wants the user's"},
        {"llama3",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"Q\"},{\"role\":\"assistant\","
         "\"tool_calls\":[{\"name\":\"f\",\"arguments\":{}},{\"name\":\"f\",\"arguments\":{}}]}]}",
         "one tool call in a turn"},
    };
    struct scratch *s = *state;
    for (size_t i = 0; i < CHECK_COUNT(rows); i++) {
        struct rlhf__error err = {0, ""};
        struct rlhf__turns t = {0};
        struct rlhf__chat *c = open_named(s, rows[i].name);
        const rlhf_status st = render(c, rows[i].row, &t, &err);
        check_error(st, RLHF_E_INVALID, &err, rows[i].part);
        rlhf__turns_finish(&t);
        rlhf__chat_close(c);
    }
}

// In a list of templates, the entry "tool_use" is for rows with tools, as in transformers.
static void tool_use(void **state) {
    static const struct rlhf__chat_tokens tokens = {
        .vars = "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}"};
    static const char *const config[] = {
        "{\"chat_template\":[{\"name\":\"default\",\"template\":\"{{ messages[0].content }}\"},"
        "{\"name\":\"tool_use\",\"template\":\"{% if tools %}{{ tools[0].function.name }}{% endif "
        "%}{{ messages[0].content "
        "}}\"}]}",
        "{\"chat_template\":[{\"name\":\"default\",\"template\":\"{{ messages[0].content }}\"},"
        "{\"name\":\"tool_use\",\"template\":\"{% import x %}\"}]}"};
    struct scratch *s = *state;
    for (int i = 0; i < 2; i++) {
        struct rlhf__chat *c = NULL;
        struct rlhf__error err = {0, ""};
        struct rlhf__buf text = RLHF__BUF_INIT;
        const struct rlhf__message q = {.role = RLHF__ROLE_USER, .content = {"Q", 1}};
        json_t *tools = json_pack("[{s:{s:s}}]", "function", "name", "f");
        struct rlhf__messages m = {.item = (struct rlhf__message *)(uintptr_t)&q, .n = 1};
        scratch_text(s, "tokenizer_config.json", config[i]);
        check_ok(rlhf__chat_open(s->dir, &tokens, &c, &err), &err);
        check_ok(rlhf__chat_render(c, &m, 0, &text, &err), &err);
        assert_string_equal(rlhf__buf_text(&text), "Q");
        m.tools = tools;
        rlhf__buf_clear(&text);
        const rlhf_status st = rlhf__chat_render(c, &m, 0, &text, &err);
        if (i)
            check_error(st, RLHF_E_INVALID, &err, "the entry tool_use of the chat template");
        else
            assert_string_equal(rlhf__buf_text(&text), "fQ");
        rlhf__buf_finish(&text);
        rlhf__chat_close(c);
        json_decref(tools);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms),
        cmocka_unit_test(digits),
        cmocka_unit_test(limits),
        cmocka_unit_test(faults_have_answers),
        cmocka_unit_test_setup_teardown(own_forms, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(python_form, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(left_out, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(tool_use, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("tools", tests, NULL, NULL);
}
