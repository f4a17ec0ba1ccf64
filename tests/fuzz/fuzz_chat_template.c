// fuzz_chat_template.c: any bytes as a model's chat template. It ends within its bounds; what it
// makes is UTF-8, the same each time, with turns inside of it; what is not known is one sentence
// that names a line. Where it is recognised, conversations come out of our code as out of it.
#include "fuzz.h"

#include "chat/jinja_parse.h"
#include "chat/jinja_run.h"
#include "chat/probe.h"
#include "text/unicode.h"

#include <string.h>

static json_t *variables(int generate) {
    static const char text[] =
        "{\"messages\":[{\"role\":\"system\",\"content\":\" S\\n\"},{\"role\":\"user\",\"content\":"
        "\"Q\\u00e9\"},{\"role\":\"assistant\",\"content\":\"<think>\\nT\\n</think>\\n\\nA\"}],"
        "\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"tools\":null}";
    json_t *vars = json_loads(text, 0, NULL);
    FUZZ_CHECK(vars &&
               json_object_set_new(vars, "add_generation_prompt", json_boolean(generate)) == 0);
    return vars;
}

static void check_result(const struct rlhf__jinja_result *r) {
    const struct rlhf__turns *t = &r->turns;
    if (r->raised) return;
    FUZZ_CHECK(rlhf__utf8_valid(rlhf__buf_text(&t->text), t->text.len) == t->text.len);
    FUZZ_CHECK(t->text.len <= (size_t)9 << 20);
    for (size_t i = 0; i < t->n; i++)
        FUZZ_CHECK(t->item[i].from <= t->item[i].to && t->item[i].to <= t->text.len);
}

static void run_twice(const struct rlhf__jinja *j, int generate) {
    struct rlhf__jinja_result a = {0}, b = {0};
    struct rlhf__error err = {0};
    json_t *vars = variables(generate), *before = json_deep_copy(vars);
    rlhf_status st = rlhf__jinja_run(j, vars, &a, &err), again = rlhf__jinja_run(j, vars, &b, &err);
    FUZZ_CHECK(st == again && a.raised == b.raised &&
               json_equal(vars, before)); // it changes nothing
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

// What is recognised renders a conversation that is no probe as the template does, or refuses it.
static void check_style(const struct rlhf__jinja *j, const struct rlhf__style *s) {
    struct rlhf__jinja_result theirs = {0};
    struct rlhf__turns ours = {0};
    struct rlhf__messages m = {0};
    struct rlhf__error err = {0};
    json_t *vars = variables(0);
    FUZZ_CHECK(rlhf__messages_read(&m, json_object_get(vars, "messages"), "messages", &err) ==
               RLHF_OK);
    rlhf_status st = rlhf__style_render(s, m.item, m.n, 0, &ours, &err);
    FUZZ_CHECK(st == RLHF_OK || st == RLHF_E_INVALID);
    for (size_t i = 0; st == RLHF_OK && i < ours.n; i++)
        FUZZ_CHECK(ours.item[i].from <= ours.item[i].to && ours.item[i].to <= ours.text.len);
    FUZZ_CHECK(rlhf__jinja_run(j, vars, &theirs, &err) != RLHF_E_NOMEM);
    rlhf__turns_finish(&theirs.turns);
    rlhf__turns_finish(&ours);
    rlhf__messages_finish(&m);
    json_decref(vars);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct rlhf__jinja j = {0};
    struct rlhf__error err = {0};
    struct rlhf__style style;
    const char *text = (const char *)data;
    rlhf_status st = rlhf__jinja_parse(n ? text : "", n, &j, &err);
    FUZZ_CHECK(st == RLHF_OK || (st == RLHF_E_UNSUPPORTED && strncmp(err.text, "line ", 5) == 0));
    if (st == RLHF_OK) {
        run_twice(&j, 0);
        run_twice(&j, 1);
        json_t *vars = variables(0);
        if (rlhf__probe_style(n ? text : "", n, vars, "<s>", "</s>", &style, &err) == RLHF_OK) {
            check_style(&j, &style);
            rlhf__style_finish(&style);
        }
        json_decref(vars);
    }
    rlhf__jinja_finish(&j);
    return 0;
}
