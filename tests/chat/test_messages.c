// test_messages.c: the messages of data rows: how they are read, and which are refused.
#include "base/json.h"
#include "jinja/jinja_run.h"
#include "support/scratch.h"
#include "vectors.h"

static void refused(void **state) {
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"3", "field 'm' is an integer, expected a list of messages"},
        {"[]", "field 'm' has no messages"},
        {"[\"a\"]", "m[0] is a string, expected a message"},
        {"[{\"content\":\"a\"}]", "m[0]: field 'role' is missing, expected a string"},
        {"[{\"role\":1,\"content\":\"a\"}]", "m[0]: field 'role' is an integer"},
        {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"ipython\",\"content\":\"a\"}]",
         "m[1]: the role is 'ipython'; allowed: system, user, assistant, tool, developer"},
        {"[{\"role\":\"user\",\"content\":\"a\",\"tool_calls\":[{\"name\":\"f\",\"arguments\":{}}]}"
         "]",
         "m[0]: field 'tool_calls' is an assistant's, not the user's"},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":3}]",
         "m[0]: field 'tool_calls' is an integer, expected a list"},
        {"[{\"role\":\"assistant\",\"tool_calls\":[{\"name\":\"f\"}]}]",
         "tool_calls[0]: field 'arguments' is missing, expected an object or its JSON as a string"},
        {"[{\"role\":\"user\",\"content\":\"a\",\"tool_call_id\":\"1\"}]",
         "m[0]: field 'tool_call_id' is a tool's, not the user's"},
        {"[{\"role\":\"user\",\"content\":\"a\",\"name\":1}]",
         "m[0]: field 'name' is an integer, expected a string"},
        {"[{\"role\":\"tool\",\"content\":null}]", "m[0]: field 'content' is null"},
        {"[{\"role\":\"a\\u001b[2Jb\",\"content\":\"a\"}]", "the role is 'a\\x1b[2Jb'"},
        {"[{\"role\":\"user\"}]", "m[0]: field 'content' is missing, expected a string"},
        {"[{\"role\":\"user\",\"content\":null}]", "m[0]: field 'content' is null"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]",
         "m[0]: content[0] is not a part with text; a list of content consists of"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},\"b\"]}]",
         "m[0]: content[1] is not a part with text"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"image\":\"x\"}]}]",
         "m[0]: content[0] is of the type 'image'; only text is supported"},
        {"[{\"role\":\"user\",\"content\":{}}]",
         "m[0]: field 'content' is an object, expected a string or a list of text parts"},
        {"[{\"role\":\"assistant\",\"content\":null}]", "m[0]: field 'content' is null"},
        {"[{\"role\":\"assistant\",\"content\":null,\"thinking\":\"\"}]",
         "m[0]: field 'content' is null"},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"function_call\":{\"name\":\"f\"}}]",
         "m[0]: field 'function_call' is not supported; write it as tool_calls"},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{}]}]",
         "m[0]: tool_calls[0] has no name; a call is {"},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":[1]}]",
         "m[0]: field 'reasoning_content' is a list, expected a string"},
        {"[{\"role\":\"user\",\"content\":\"\",\"reasoning_content\":\"x\"}]",
         "m[0]: field 'reasoning_content' is an assistant's, not the user's"},
        {"[{\"role\":\"user\",\"content\":\"\",\"reasoning\":\"x\"}]",
         "m[0]: field 'reasoning' is an assistant's, not the user's"},
    };
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__messages m = {0};
        struct rlhf__error err = {0, ""};
        json_t *v = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
        assert_non_null(v);
        check_error(rlhf__messages_read(&m, v, "m", &err), RLHF_E_INVALID, &err, cases[i].part);
        rlhf__messages_finish(&m);
        json_decref(v);
    }
}

static void rows(void **state) {
    static const struct {
        const char *json, *part; // part NULL: fine
    } cases[] = {
        {"{\"tools\":null,\"functions\":[],\"chat_template_kwargs\":{},\"id\":3}", NULL},
        {"{\"tools\":[{}]}", NULL},
        {"{\"tools\":\"[{}]\"}", NULL},
        {"{\"tools\":\"x\"}", "field 'tools' is a string without a JSON list"},
        {"{\"tools\":{\"a\":1}}", "field 'tools' is an object, expected a list of tools"},
        {"{\"tools\":[1]}", "tools[0] is an integer, expected an object"},
        {"{\"functions\":\"x\"}", "also 'functions'"},
        {"{\"documents\":[{}]}", "also 'documents'"},
        {"{\"chat_template_kwargs\":{\"a\":1}}", NULL},
        {"{\"chat_template_kwargs\":null,\"documents\":{}}", NULL},
        {"{\"chat_template_kwargs\":[1]}",
         "field 'chat_template_kwargs' is a list, expected an object"},
    };
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0, ""};
        json_t *v = json_loads(cases[i].json, 0, NULL);
        json_t *tools = NULL;
        rlhf_status st = rlhf__messages_check_row(v, &err);
        if (st == RLHF_OK) st = rlhf__messages_tools(v, &tools, &err);
        json_decref(tools);
        if (cases[i].part)
            check_error(st, RLHF_E_INVALID, &err, cases[i].part);
        else
            check_ok(st, &err);
        json_decref(v);
    }
}

static void prompts(void **state) {
    static const struct {
        const char *json, *part;
    } cases[] = {
        {"[{\"role\":\"system\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}]", NULL},
        {"[{\"role\":\"system\",\"content\":\"a\"}]", "field 'm' has no user's turn"},
        {"[{\"role\":\"assistant\",\"content\":\"a\"}]", "field 'm' has no user's turn"},
        {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"a\"}]",
         "field 'm' ends with the assistant's turn; a prompt ends with a user's or a tool's"},
    };
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__messages m = {0};
        struct rlhf__error err = {0, ""};
        json_t *v = json_loads(cases[i].json, 0, NULL);
        check_ok(rlhf__messages_read(&m, v, "m", &err), &err);
        rlhf_status st = rlhf__messages_check_prompt(&m, "m", &err);
        if (cases[i].part)
            check_error(st, RLHF_E_INVALID, &err, cases[i].part);
        else
            check_ok(st, &err);
        if (i == 0) {
            struct rlhf__buf text = RLHF__BUF_INIT;
            rlhf__messages_text(&m, &text);
            assert_string_equal(rlhf__buf_text(&text), "a\n\nb");
            rlhf__buf_finish(&text);
        }
        rlhf__messages_finish(&m);
        json_decref(v);
    }
}

// What a message's members mean: empty members are absent, thoughts have three names.
static void members(void **state) {
    static const struct {
        const char *json, *content, *thoughts; // thoughts NULL: none
        int32_t written;
    } cases[] = {
        {"{\"role\":\"developer\",\"content\":\"a\"}", "a", NULL, RLHF__CONTENT_TEXT},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\","
         "\"text\":\"b\"}],\"tool_calls\":{},\"thinking\":\"\",\"function_call\":\"\"}",
         "ab", "", RLHF__CONTENT_PARTS},
        {"{\"role\":\"assistant\",\"content\":null,\"reasoning\":\"t\"}", "", "t",
         RLHF__CONTENT_ABSENT},
        {"{\"role\":\"assistant\",\"content\":\"a\",\"thinking\":\"t\",\"reasoning\":\"u\","
         "\"reasoning_content\":null,\"tool_calls\":[]}",
         "a", "t", RLHF__CONTENT_TEXT},
    };
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__messages m = {0};
        struct rlhf__error err = {0, ""};
        struct rlhf__buf text = RLHF__BUF_INIT;
        json_t *v = json_pack("[o]", json_loads(cases[i].json, 0, NULL));
        check_ok(rlhf__messages_read(&m, v, "m", &err), &err);
        rlhf__messages_text(&m, &text);
        assert_string_equal(rlhf__buf_text(&text), cases[i].content);
        assert_int_equal(m.item[0].written, cases[i].written);
        if (cases[i].thoughts)
            assert_string_equal(m.item[0].thoughts.ptr, cases[i].thoughts);
        else
            assert_null(m.item[0].thoughts.ptr);
        assert_null(m.item[0].calls);
        rlhf__buf_finish(&text);
        rlhf__messages_finish(&m);
        json_decref(v);
    }
}

// A template gets the row's members as transformers passes them: in their order, unknown ones too,
// but none that is null; thoughts also under the other names.
static void values(void **state) {
    static const struct {
        const char *row, *value;
    } cases[] = {
        {"{\"weight\":0,\"content\":\"a\",\"role\":\"user\",\"tool_calls\":null,\"name\":null}",
         "{\"weight\": 0, \"content\": \"a\", \"role\": \"user\"}"},
        {"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"name\":\"f\",\"arguments\":{"
         "\"x\":"
         "null}}],\"id\":[]}",
         "{\"role\": \"assistant\", \"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"x\": "
         "null}}], "
         "\"id\": []}"},
        {"{\"role\":\"assistant\",\"reasoning\":\"t\",\"content\":\"a\"}",
         "{\"thinking\": \"t\", \"role\": \"assistant\", \"reasoning\": \"t\", \"content\": \"a\", "
         "\"reasoning_content\": \"t\"}"},
        {"{\"role\":\"assistant\",\"reasoning_content\":\"\",\"content\":\"a\",\"thinking\":\"t\"}",
         "{\"thinking\": \"t\", \"role\": \"assistant\", \"reasoning_content\": \"\", \"content\": "
         "\"a\"}"},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\",\"image\":null}]}",
         "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\", \"image\": "
         "null}]}"},
    };
    static const char text[] = "{{ messages[0] | tojson }}";
    struct rlhf__jinja j = {0};
    struct rlhf__error err = {0, ""};
    (void)state;
    check_ok(rlhf__jinja_parse(text, sizeof text - 1, &j, &err), &err);
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__messages m = {0};
        struct rlhf__jinja_result got = {0};
        json_t *list = json_pack("[o]", json_loads(cases[i].row, 0, NULL)), *vars = json_object();
        check_ok(rlhf__messages_read(&m, list, "m", &err), &err);
        const struct rlhf__jinja_input in = {.vars = vars, .messages = m.item, .n = 1};
        check_ok(rlhf__jinja_run(&j, &in, &got, &err), &err);
        assert_string_equal(rlhf__buf_text(&got.turns.text), cases[i].value);
        rlhf__turns_finish(&got.turns);
        rlhf__messages_finish(&m);
        json_decref(list);
        json_decref(vars);
    }
    rlhf__jinja_finish(&j);
}

// Templates print all digits of an integer beyond 64 bits, as Python does.
static void digits(void **state) {
    static const char text[] = "{{ a }} {{ a | tojson }} {{ a + 1 }} {{ b | tojson }}",
                      values[] = "{\"a\": 123456789012345678901, \"b\": [-123456789012345678901]}";
    struct rlhf__jinja j = {0};
    struct rlhf__error err = {0, ""};
    struct rlhf__jinja_result got = {0};
    json_t *vars = rlhf__json_decode_digits(values, sizeof values - 1, 0, NULL);
    (void)state;
    check_ok(rlhf__jinja_parse(text, sizeof text - 1, &j, &err), &err);
    const struct rlhf__jinja_input in = {.vars = vars};
    check_ok(rlhf__jinja_run(&j, &in, &got, &err), &err);
    assert_string_equal(rlhf__buf_text(&got.turns.text),
                        "123456789012345678901 123456789012345678901 123456789012345678902 "
                        "[-123456789012345678901]");
    rlhf__turns_finish(&got.turns);
    json_decref(vars);
    rlhf__jinja_finish(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused), cmocka_unit_test(members), cmocka_unit_test(values),
        cmocka_unit_test(rows),    cmocka_unit_test(prompts), cmocka_unit_test(digits),
    };
    return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
