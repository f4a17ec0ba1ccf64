// test_messages.c: the messages of data rows: how they are read, and which are refused.
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
        {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"tool\",\"content\":\"a\"}]",
         "m[1]: the role is 'tool'; allowed: system, user, assistant"},
        {"[{\"role\":\"a\\u001b[2Jb\",\"content\":\"a\"}]", "the role is 'a\\x1b[2Jb'"},
        {"[{\"role\":\"user\"}]", "m[0]: field 'content' is missing, expected a string"},
        {"[{\"role\":\"user\",\"content\":null}]", "m[0]: field 'content' is null"},
        {"[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]",
         "m[0]: field 'content' is a list"},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{}]}]",
         "m[0]: field 'tool_calls' is not supported"},
        {"[{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":[]}]",
         "m[0]: field 'reasoning_content' is a list, expected a string"},
        {"[{\"role\":\"user\",\"content\":\"\",\"reasoning_content\":\"x\"}]",
         "m[0]: field 'reasoning_content' is an assistant's, not the user's"},
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
        {"{\"tools\":[{}]}", "the row has messages and also 'tools'"},
        {"{\"functions\":\"x\"}", "also 'functions'"},
        {"{\"chat_template_kwargs\":{\"a\":1}}", "also 'chat_template_kwargs'"},
    };
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0, ""};
        json_t *v = json_loads(cases[i].json, 0, NULL);
        rlhf_status st = rlhf__messages_check_row(v, &err);
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
         "field 'm' ends with the assistant's turn; a prompt ends with a user's"},
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
            rlhf__buf_free(&text);
        }
        rlhf__messages_finish(&m);
        json_decref(v);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused),
        cmocka_unit_test(rows),
        cmocka_unit_test(prompts),
    };
    return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
