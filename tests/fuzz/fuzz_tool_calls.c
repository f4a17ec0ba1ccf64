// fuzz_tool_calls.c: any bytes as a turn of the policy, in each form of tool calls. Reading ends
// within its limits, and a good call has a name and an object. If a template like Qwen's writes the
// calls that were found, reading its text gives the same calls.
#include "fuzz.h"

#include "base/json.h"
#include "chat/tool_calls.h"

#include <string.h>

static void check_calls(const struct rlhf__tool_calls *c) {
    int32_t faults = 0;
    FUZZ_CHECK(c->n <= RLHF__TOOL_CALLS_MAX + 1);
    for (size_t i = 0; i < c->n; i++) {
        const struct rlhf__called *one = &c->item[i];
        FUZZ_CHECK(json_is_string(one->name) && json_is_object(one->arguments));
        FUZZ_CHECK(!one->id || json_is_string(one->id));
        FUZZ_CHECK(one->fault >= 0 && one->fault < RLHF__N_CALL_FAULTS);
        faults += one->fault != RLHF__CALL_GOOD && one->fault != RLHF__CALL_NOT_RUN;
    }
    FUZZ_CHECK(faults == c->faults);
}

// Writes the calls in the hermes form and reads them again.
static void round_trip(const struct rlhf__tool_calls *c) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__tool_calls again = {.n = 0};
    struct rlhf__error err = {0};
    for (size_t i = 0; i < c->n; i++) {
        rlhf__buf_puts(&text, "<tool_call>\n{\"name\": ");
        rlhf__json_write_string(&text, json_string_value(c->item[i].name),
                                json_string_length(c->item[i].name));
        rlhf__buf_puts(&text, ", \"arguments\": ");
        rlhf__json_write(&text, c->item[i].arguments, 0);
        rlhf__buf_puts(&text, "}\n</tool_call>\n");
    }
    FUZZ_CHECK(rlhf__tool_calls_read(RLHF__TOOL_FORM_HERMES, (rlhf_str){text.data, text.len}, NULL,
                                     &again, &err) == RLHF_OK);
    FUZZ_CHECK(again.n == c->n);
    for (size_t i = 0; i < c->n; i++) {
        const struct rlhf__called *a = &c->item[i], *b = &again.item[i];
        FUZZ_CHECK(json_equal(a->name, b->name) && json_equal(a->arguments, b->arguments));
    }
    rlhf__tool_calls_finish(&again);
    rlhf__buf_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char declared[] =
        "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"x\":{\"type\":"
        "\"integer\"}},\"required\":[\"x\"]}}},{\"name\":\"g\"}]";
    const rlhf_str turn = {n ? (const char *)data : "", n};
    json_t *tools = json_loads(declared, 0, NULL);
    for (int32_t form = 1; form < RLHF__N_TOOL_FORMS; form++) {
        struct rlhf__tool_calls c = {.n = 0};
        struct rlhf__error err = {0};
        FUZZ_CHECK(rlhf__tool_calls_read(form, turn, tools, &c, &err) == RLHF_OK);
        check_calls(&c);
        json_t *list = rlhf__tool_calls_json(&c);
        FUZZ_CHECK(json_array_size(list) == c.n);
        json_decref(list);
        FUZZ_CHECK(rlhf__tool_calls_read(form, turn, NULL, &c, &err) == RLHF_OK);
        check_calls(&c);
        // Longer turns are left out, because escapes can make the written text longer than the
        // original, and the forms limit how much they read.
        if (!c.faults && n < 4096 && !memmem(turn.ptr, n, "think>", 6)) round_trip(&c);
        rlhf__tool_calls_finish(&c);
    }
    json_decref(tools);
    return 0;
}
