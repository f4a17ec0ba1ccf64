// test_bridge.c: the ids between two turns of the policy. Random conversations are compared with
// the ids of the whole conversation, and text of an environment never becomes a special token.
//
// RLHF_BRIDGE_TURNS is the number of random turns over all templates (default 6000).
#include "support/chat_tokenizer.h"

#include "tokenizer/bridge.h"

#include <jansson.h>

// ---- random texts ----

static uint64_t state_ = 1;

static uint32_t below(uint32_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_ >> 33) % n;
}

static const char *const parts[] = {
    " ",
    "\n",
    "\n\n",
    "  ",
    "a",
    "The",
    " cat",
    ".",
    "'s",
    "\t",
    "é",
    "中",
    "</",
    "<",
    "|>",
    "1",
    "{\"",
    "\\n",
    " \n",
    "!?",
    "\u2028",
    "x",
    "\r",
    "\xc2\xa0",
    "\U0001f600",
    "e\u0301",
    "[INST]",
    "<think>",
    "\xee\x80\x80",
};

// Makes a text of up to nine parts. If `with_specials` is 1, some of these are special tokens or
// parts of special tokens.
static void random_text(struct rlhf__buf *b, int with_specials) {
    static const char *const pieces[] = {"<|", "im_end", "|>", "<"};
    for (uint32_t n = below(10); n; n--) {
        const uint32_t kind = with_specials ? below(4) : 0;
        rlhf__buf_puts(b, kind == 1   ? chat_specials[below(CHECK_COUNT(chat_specials))]
                          : kind == 2 ? pieces[below(CHECK_COUNT(pieces))]
                                      : parts[below(CHECK_COUNT(parts))]);
    }
}

static size_t count_special(const struct rlhf__tokenizer *tok, const struct rlhf__ids *ids) {
    size_t n = 0;
    for (size_t i = 0; i < ids->n; i++)
        n += (size_t)rlhf__tokenizer_is_special(tok, ids->data[i]);
    return n;
}

// ---- one turn ----

struct turn {
    struct rlhf__buf text[3];
    struct rlhf__message said[3];
    size_t n, calls;
    json_t *list; // the turn's calls
};

static void make(struct turn *t, const char *name, int with_specials) {
    const int tools =
        strcmp(name, "qwen2.5") == 0 || strcmp(name, "qwen3") == 0 || strcmp(name, "llama3") == 0;
    t->calls = tools && below(2) ? 1 + below(strcmp(name, "llama3") == 0 ? 1 : 3) : 0;
    t->n = t->calls ? t->calls : 1;
    t->list = t->calls ? json_array() : NULL;
    for (size_t k = 0; k < t->n; k++) {
        if (t->calls)
            json_array_append_new(t->list,
                                  json_pack("{s:s,s:{s:s,s:{s:i}}}", "type", "function", "function",
                                            "name", "f", "arguments", "x", (int)below(99)));
        rlhf__buf_clear(&t->text[k]);
        random_text(&t->text[k], with_specials);
        t->said[k] =
            (struct rlhf__message){.role = t->calls ? RLHF__ROLE_TOOL : RLHF__ROLE_USER,
                                   .content = {rlhf__buf_text(&t->text[k]), t->text[k].len}};
    }
}

static struct rlhf__ids bridge(const struct rlhf__tokenizer *tok, const struct turn *t) {
    const struct rlhf__messages said = {.item = (struct rlhf__message *)(uintptr_t)t->said,
                                        .n = t->n};
    const struct rlhf__bridge b = {.said = &said, .calls = t->calls};
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0, ""};
    check_ok(rlhf__bridge_encode(tok, &b, &ids, &err), &err);
    return ids;
}

// Returns the ids of a whole conversation in which `t` follows the assistant's turn.
static struct rlhf__ids whole(const struct rlhf__tokenizer *tok, const struct turn *t) {
    struct rlhf__messages m = {0};
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0, ""};
    const struct rlhf__message asks = {.role = RLHF__ROLE_USER, .content = {"What?", 5}},
                               says = {.role = RLHF__ROLE_ASSISTANT,
                                       .content = {"Let me see", t->calls ? 0 : 10},
                                       .calls = t->list};
    check_ok(rlhf__messages_put(&m, &asks, &err), &err);
    check_ok(rlhf__messages_put(&m, &says, &err), &err);
    for (size_t k = 0; k < t->n; k++)
        check_ok(rlhf__messages_put(&m, &t->said[k], &err), &err);
    check_ok(rlhf__conversation_encode(tok, &m, 1, &ids, NULL, &err), &err);
    rlhf__messages_finish(&m);
    return ids;
}

// The bridge equals the end of the whole conversation's ids, which follows an end token.
static void same_as_whole(const struct rlhf__tokenizer *tok, const char *name) {
    struct turn t = {.n = 0};
    make(&t, name, 0);
    struct rlhf__ids b = bridge(tok, &t), w = whole(tok, &t);
    const char *end = rlhf__chat_turn_end(rlhf__tokenizer_chat(tok));
    assert_true(w.n > b.n);
    if (b.n && memcmp(w.data + (w.n - b.n), b.data, b.n * sizeof *b.data) != 0)
        fail_msg("%s: the bridge of '%s' is not the end of the conversation", name,
                 rlhf__buf_text(&t.text[0]));
    assert_int_equal(w.data[w.n - b.n - 1],
                     rlhf__tokenizer_find(tok, (rlhf_str){end, strlen(end)}));
    rlhf__ids_finish(&b);
    rlhf__ids_finish(&w);
    json_decref(t.list);
    for (size_t k = 0; k < CHECK_COUNT(t.text); k++)
        rlhf__buf_finish(&t.text[k]);
}

// A message's text that spells a special token adds no special id to the bridge. The text of the
// bridge still equals the last part of the whole conversation's text.
static void spelled_out(const struct rlhf__tokenizer *tok, const char *name) {
    struct turn t = {.n = 0};
    make(&t, name, 1);
    struct rlhf__ids b = bridge(tok, &t), w = whole(tok, &t);
    struct turn plain = t;
    for (size_t k = 0; k < t.n; k++)
        plain.said[k].content = (rlhf_str){"x", 1};
    struct rlhf__ids p = bridge(tok, &plain);
    size_t n_b, n_w;
    char *said = rlhf__tokenizer_text(tok, b.data, b.n, 0, &n_b),
         *all = rlhf__tokenizer_text(tok, w.data, w.n, 0, &n_w);
    if (count_special(tok, &b) != count_special(tok, &p))
        fail_msg("%s: '%s' has a special token in '%s'", name, said, rlhf__buf_text(&t.text[0]));
    assert_true(n_w > n_b);
    assert_string_equal(all + (n_w - n_b), said);
    free(said);
    free(all);
    rlhf__ids_finish(&b);
    rlhf__ids_finish(&w);
    rlhf__ids_finish(&p);
    json_decref(t.list);
    for (size_t k = 0; k < CHECK_COUNT(t.text); k++)
        rlhf__buf_finish(&t.text[k]);
}

static void random_turns(void **state) {
    struct scratch *s = *state;
    struct rlhf__tokenizer *tok = chat_tokenizer(s, "data/bpe");
    const char *const *names = rlhf__chat_names(), *most = getenv("RLHF_BRIDGE_TURNS");
    const long turns = most ? atol(most) : 6000;
    for (size_t i = 1; names[i]; i++) {
        struct rlhf__error err = {0, ""};
        check_ok(rlhf__tokenizer_name_chat(tok, names[i], &err), &err);
        check_ok(rlhf__bridge_check(tok, 0, &err), &err);
        for (long k = 0; k < turns / 16; k++) {
            same_as_whole(tok, names[i]);
            spelled_out(tok, names[i]);
        }
    }
    rlhf__tokenizer_close(tok);
}

// The end token is among the ids only when the turn lacks it.
static void with_end(void **state) {
    struct scratch *s = *state;
    struct rlhf__tokenizer *tok = chat_tokenizer(s, "data/bpe");
    struct rlhf__error err = {0, ""};
    struct rlhf__ids ids = {0};
    struct rlhf__message user = {.role = RLHF__ROLE_USER, .content = {"R", 1}};
    const struct rlhf__messages said = {.item = &user, .n = 1};
    check_ok(rlhf__tokenizer_name_chat(tok, "chatml", &err), &err);
    for (int with = 0; with < 2; with++) {
        ids.n = 0;
        const struct rlhf__bridge b = {.said = &said, .with_end = with};
        check_ok(rlhf__bridge_encode(tok, &b, &ids, &err), &err);
        char *text = rlhf__tokenizer_text(tok, ids.data, ids.n, 0, NULL);
        assert_string_equal(
            text, with ? "<|im_end|>\n<|im_start|>user\nR<|im_end|>\n<|im_start|>assistant\n"
                       : "\n<|im_start|>user\nR<|im_end|>\n<|im_start|>assistant\n");
        free(text);
    }
    rlhf__ids_finish(&ids);
    rlhf__tokenizer_close(tok);
}

// Templates that write the name of a call by tojson are accepted.
static void calls_as_json(void **state) {
    struct scratch *s = *state;
    static const char *const calls[] = {
        "{{ c.function | tojson }}",
        "{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}",
        "{\"name\": {{ c.function.name | tojson }}}"};
    for (size_t i = 0; i < CHECK_COUNT(calls); i++) {
        struct rlhf__error err = {0, ""};
        char template[600];
        snprintf(template, sizeof template,
                 "{%% if tools %%}{{ tools | tojson }}{%% endif %%}{%% for m in messages %%}"
                 "<|im_start|>{{ m.role }}\n{{ m.content }}{%% for c in m.tool_calls or [] %%}%s"
                 "{%% endfor %%}<|im_end|>\n{%% endfor %%}"
                 "{%% if add_generation_prompt %%}<|im_start|>assistant\n{%% endif %%}",
                 calls[i]);
        struct rlhf__tokenizer *tok = chat_tokenizer(s, "data/bpe");
        const char *path = scratch_text(s, "t.jinja", template);
        check_ok(rlhf__tokenizer_name_chat(tok, path, &err), &err);
        check_ok(rlhf__bridge_check(tok, 1, &err), &err);
        rlhf__tokenizer_close(tok);
    }
}

static void refused(void **state) {
    struct scratch *s = *state;
    static const struct {
        const char *template, *part;
        int tools;
    } cases[] = {
        {"{% for m in messages %}<|im_start|>{{ m.content }}{% if m.role == 'assistant' "
         "%}<|im_end|>"
         "{{ m.content | length }}{% endif %}{% endfor %}",
         "depends on that turn", 0},
        {"{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}",
         "messages[1] has tool calls, and the chat template", 1},
        {"{% for m in messages %}<|im_start|>{{ m.content }}<|nothing|>{% endfor %}",
         "it ends a turn with <|nothing|>, which is not a token of this model's vocabulary", 0},
        {"{% for m in messages if m.role != 'assistant' %}{{ m.content }}{% endfor %}",
         "it is not clear where it ends a turn", 0},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0, ""};
        struct rlhf__tokenizer *tok = chat_tokenizer(s, "data/bpe");
        const char *path = scratch_text(s, "t.jinja", cases[i].template);
        check_ok(rlhf__tokenizer_name_chat(tok, path, &err), &err);
        check_error(rlhf__bridge_check(tok, cases[i].tools, &err), RLHF_E_INVALID, &err,
                    cases[i].part);
        rlhf__tokenizer_close(tok);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_turns, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(with_end, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(calls_as_json, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(refused, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("bridge", tests, NULL, NULL);
}
