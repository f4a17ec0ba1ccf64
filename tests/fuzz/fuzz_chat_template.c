// fuzz_chat_template.c: any bytes as a model's chat template. Rendering ends within its limits and
// changes no variables. The text is UTF-8 and the same each time, and the assistant's turns lie
// inside it. An unknown construct gives one message that names a line.
#include "fuzz.h"

#include "chat/template.h"
#include "text/unicode.h"

#include <string.h>

static json_t *variables(int generate) {
    static const char text[] =
        "{\"messages\":[{\"role\":\"system\",\"content\":\" S\\n\"},{\"role\":\"user\",\"content\":"
        "\"Q\\u00e9\"},{\"role\":\"assistant\",\"content\":\"<think>\\nT\\n</think>\\n\\nA\"}],"
        "\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"tools\":[{\"function\":{\"name\":\"f\","
        "\"x\":[1,1.5,true,null,-3]}}]}";
    json_t *vars = json_loads(text, 0, NULL);
    FUZZ_CHECK(vars &&
               json_object_set_new(vars, "add_generation_prompt", json_boolean(generate)) == 0);
    return vars;
}

static void check_result(const struct rlhf__jinja_result *r) {
    const struct rlhf__turns *t = &r->turns;
    if (r->raised) return;
    FUZZ_CHECK(rlhf__utf8_valid(rlhf__buf_text(&t->text), t->text.len) == t->text.len);
    FUZZ_CHECK(t->text.len <= (size_t)3 * RLHF__JINJA_TEXT_MAX);
    for (size_t i = 0; i < t->n; i++)
        FUZZ_CHECK(t->item[i].from <= t->item[i].to && t->item[i].to <= t->text.len);
}

static void run_twice(const struct rlhf__jinja *j, int generate) {
    struct rlhf__jinja_result a = {0}, b = {0};
    struct rlhf__error err = {0};
    json_t *vars = variables(generate), *before = json_deep_copy(vars);
    const struct rlhf__jinja_input in = {.vars = vars};
    rlhf_status st = rlhf__jinja_run(j, &in, &a, &err), again = rlhf__jinja_run(j, &in, &b, &err);
    FUZZ_CHECK(st == again && a.raised == b.raised &&
               json_equal(vars, before)); // rendering changes no variables
    FUZZ_CHECK(st == RLHF_OK || (st == RLHF_E_UNSUPPORTED && strncmp(err.text, "line ", 5) == 0));
    if (st == RLHF_OK) check_result(&a);
    FUZZ_CHECK(a.turns.text.len == b.turns.text.len && a.turns.n == b.turns.n);
    FUZZ_CHECK(!a.turns.text.len ||
               memcmp(a.turns.text.data, b.turns.text.data, a.turns.text.len) == 0);
    rlhf__turns_finish(&a.turns);
    rlhf__turns_finish(&b.turns);
    json_decref(vars);
    json_decref(before);
}

// Checks a template that is usable: its text and its turns.
static void check_turns(const char *text, size_t n) {
    struct rlhf__template t = {0};
    struct rlhf__turns got = {0};
    struct rlhf__messages m = {0};
    struct rlhf__jinja_result plain = {0};
    struct rlhf__error err = {0};
    json_t *vars = variables(0), *list = json_incref(json_object_get(vars, "messages"));
    json_object_del(vars, "messages");
    FUZZ_CHECK(rlhf__messages_read(&m, list, "messages", &err) == RLHF_OK);
    rlhf_status st = rlhf__template_parse(&t, text, n, vars, &err);
    if (st == RLHF_OK) st = rlhf__template_learn(&t, &err);
    FUZZ_CHECK(st == RLHF_OK || (st == RLHF_E_UNSUPPORTED && err.text[0]));
    for (int generate = 0; st == RLHF_OK && generate < 2; generate++) {
        rlhf__turns_clear(&got);
        const rlhf_status told = rlhf__template_render_turns(&t, &m, 0, generate, &got, &err);
        FUZZ_CHECK(told == RLHF_OK || told == RLHF_E_INVALID);
        if (told != RLHF_OK) continue;
        for (size_t i = 0; i < got.n; i++)
            FUZZ_CHECK(got.item[i].from <= got.item[i].to && got.item[i].to <= got.text.len &&
                       got.item[i].end <= got.text.len);
        FUZZ_CHECK(rlhf__template_render(&t, &m, generate, &plain, &err) == RLHF_OK);
        FUZZ_CHECK(
            plain.turns.text.len == got.text.len &&
            (!got.text.len || memcmp(plain.turns.text.data, got.text.data, got.text.len) == 0));
    }
    rlhf__turns_finish(&plain.turns);
    rlhf__turns_finish(&got);
    rlhf__messages_finish(&m);
    rlhf__template_finish(&t);
    json_decref(list);
    json_decref(vars);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct rlhf__jinja j = {0};
    struct rlhf__error err = {0};
    const char *text = n ? (const char *)data : "";
    rlhf_status st = rlhf__jinja_parse(text, n, &j, &err);
    FUZZ_CHECK(st == RLHF_OK || (st == RLHF_E_UNSUPPORTED && strncmp(err.text, "line ", 5) == 0));
    if (st == RLHF_OK) {
        run_twice(&j, 0);
        run_twice(&j, 1);
        check_turns(text, n);
    }
    rlhf__jinja_finish(&j);
    return 0;
}
