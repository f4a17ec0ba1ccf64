// test_chat_rows.c: rows with messages as prompts, as texts and as preferences. Their ids equal the
// ids of the rendered conversation, including special tokens.
#include "support/scratch.h"

#include "data/preferences.h"
#include "data/prompts.h"
#include "data/token_rows.h"
#include "tokenizer/conversation.h"

#define SYSTEM(s) "{\"role\":\"system\",\"content\":\"" s "\"}"
#define USER(s)   "{\"role\":\"user\",\"content\":\"" s "\"}"
#define SAYS(s)   "{\"role\":\"assistant\",\"content\":\"" s "\"}"

struct fixture {
    struct rlhf__tokenizer *tok;
    struct scratch *scratch;
};

static int setup(void **state) {
    static struct fixture f; // one group of tests at a time
    struct rlhf__error err = {0};
    void *scratch = NULL;
    if (scratch_setup(&scratch) || rlhf__tokenizer_open("../text/data/bpe", &f.tok, &err))
        return -1;
    f.scratch = scratch;
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    void *scratch = f->scratch;
    rlhf__tokenizer_close(f->tok);
    return scratch_teardown(&scratch);
}

static void name(struct fixture *f, const char *template) {
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_name_chat(f->tok, template, &err), &err);
}

// Returns the ids of a text, in which special tokens are recognized. The caller frees the ids.
static struct rlhf__ids encode(const struct fixture *f, const char *text) {
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    rlhf_str s = {text, strlen(text)};
    check_ok(rlhf__tokenizer_encode(f->tok, s, RLHF__ENCODE_SPECIAL, 0, &ids, &err), &err);
    return ids;
}

static void check_ids(const struct fixture *f, const int32_t *ids, size_t n, const char *text) {
    struct rlhf__ids want = encode(f, text);
    assert_int_equal(n, want.n);
    assert_memory_equal(ids, want.data, n * sizeof *ids);
    rlhf__ids_finish(&want);
}

// ---- prompts ----

static rlhf_status open_prompts(struct fixture *f, const char *rows, struct rlhf__prompt_opts o,
                                struct rlhf__prompts **out, struct rlhf__error *err) {
    const char *paths[] = {scratch_text(f->scratch, "p.jsonl", rows)};
    o.paths = paths;
    o.n_paths = 1;
    if (!o.max_tokens) o.max_tokens = 500;
    *out = NULL;
    return rlhf__prompts_open(&o, f->tok, out, err);
}

static void prompts(void **state) {
    struct fixture *f = *state;
    struct rlhf__prompts *set;
    struct rlhf__error err = {0};
    name(f, "zephyr");
    check_ok(
        open_prompts(f,
                     "{\"messages\":[" USER(
                         "Hi <|endoftext|>") "],\"answer\":\"4\"}\n"
                                             "{\"prompt\":[" SYSTEM("S") "," USER("A") "," SAYS(
                                                 "B") "," USER("C") "]}\n"
                                                                    "{\"prompt\":\"a text\"}\n"
                                                                    "{\"messages\":null,\"prompt\":"
                                                                    "\"a text\",\"tools\":[]}\n",
                     (struct rlhf__prompt_opts){.prepend_bos = 1}, &set, &err),
        &err);
    assert_int_equal(rlhf__prompts_count(set), 4);
    assert_int_equal(rlhf__prompts_chats(set), 2);
    struct rlhf__prompt p = rlhf__prompts_get(set, 0);
    // The text of a special token is that token, also inside a content, as in transformers.
    check_ids(f, p.ids, (size_t)p.n, "<|user|>\nHi <|endoftext|><|endoftext|>\n<|assistant|>\n");
    assert_int_equal(p.is_chat, 1);
    assert_int_equal(p.text.len, strlen("Hi <|endoftext|>"));
    assert_memory_equal(p.text.ptr, "Hi <|endoftext|>", (size_t)p.text.len);
    assert_non_null(strstr(p.meta.ptr, "\"answer\":\"4\"")); // the complete row, for rewards
    p = rlhf__prompts_get(set, 1);
    check_ids(
        f, p.ids, (size_t)p.n,
        "<|system|>\nS<|endoftext|>\n<|user|>\nA<|endoftext|>\n<|assistant|>\nB<|endoftext|>\n"
        "<|user|>\nC<|endoftext|>\n<|assistant|>\n");
    assert_int_equal(p.text.len, strlen("S\n\nA\n\nB\n\nC"));
    assert_memory_equal(p.text.ptr, "S\n\nA\n\nB\n\nC", (size_t)p.text.len);
    p = rlhf__prompts_get(set, 2);
    assert_int_equal(p.is_chat, 0);
    check_ids(f, p.ids, (size_t)p.n, "<|endoftext|>a text"); // only texts get a bos token
    rlhf__prompts_close(set);
}

// A prompt that is too long is left out, never truncated.
static void long_prompts(void **state) {
    struct fixture *f = *state;
    struct rlhf__prompts *set;
    struct rlhf__error err = {0};
    static const char rows[] = "{\"messages\":[" USER("a") "]}\n{\"messages\":[" USER(
        "a much longer question that does not fit in there at all") "]}\n";
    name(f, "chatml");
    struct rlhf__ids one = encode(f, "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
    for (int how = RLHF__PROMPT_CUT_LEFT; how <= RLHF__PROMPT_SKIP; how++) {
        struct rlhf__prompt_opts o = {.max_tokens = (int32_t)one.n, .long_rows = how};
        check_ok(open_prompts(f, rows, o, &set, &err), &err);
        assert_int_equal(rlhf__prompts_count(set), 1);
        assert_int_equal(rlhf__prompts_counts(set).too_long, 1);
        assert_int_equal(rlhf__prompts_counts(set).cut, 0);
        assert_int_equal(rlhf__prompts_get(set, 0).n, one.n);
        rlhf__prompts_close(set);
    }
    struct rlhf__prompt_opts o = {.max_tokens = (int32_t)one.n, .long_rows = RLHF__PROMPT_REFUSE};
    check_error(open_prompts(f, rows, o, &set, &err), RLHF_E_INVALID, &err,
                "p.jsonl:2: the prompt has");
    rlhf__ids_finish(&one);
}

static void bad_prompts(void **state) {
    static const struct {
        const char *template, *row, *part;
        struct rlhf__prompt_opts o;
    } cases[] = {
        {"chatml",
         "{\"messages\":[" SYSTEM("a") "]}",
         "p.jsonl:2: field 'messages' has no user's turn",
         {0}},
        {"chatml",
         "{\"messages\":[" USER("a") "," SAYS("b") "]}",
         "p.jsonl:2: field 'messages' ends with the assistant's turn",
         {0}},
        {"chatml",
         "{\"messages\":[{\"role\":\"tool\",\"content\":\"a\"}]}",
         "p.jsonl:2: field 'messages' has no user's turn",
         {0}},
        {"chatml",
         "{\"messages\":[{\"role\":\"user\",\"content\":3}]}",
         "p.jsonl:2: messages[0]: field 'content' is an integer",
         {0}},
        {"chatml", "{\"messages\":\"a\"}", "p.jsonl:2: field 'messages' is a string", {0}},
        {"chatml", "{\"messages\":[]}", "p.jsonl:2: field 'messages' has no messages", {0}},
        {"chatml",
         "{\"messages\":[" USER("a") "],\"prompt\":\"b\"}",
         "p.jsonl:2: the row has 'messages' and also 'prompt'",
         {0}},
        {"chatml",
         "{\"messages\":[" USER("a") "],\"tools\":[1]}",
         "p.jsonl:2: tools[0] is an integer, expected an object",
         {0}},
        {"gemma",
         "{\"messages\":[" SYSTEM("a") "," USER("b") "]}",
         "p.jsonl:2: messages[0]: the chat template gemma has no role system",
         {0}},
        {"gemma",
         "{\"messages\":[" USER("a") "," USER("b") "]}",
         "p.jsonl:2: messages[1] is the user's",
         {0}},
        {"chatml",
         "{\"messages\":[" USER("a") "]}",
         "and prompts.length is for texts",
         {.length = 1}},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__prompts *set;
        struct rlhf__error err = {0};
        char rows[600];
        snprintf(rows, sizeof rows, "{\"prompt\":\"good\"}\n%s\n", cases[i].row);
        name(f, cases[i].template);
        check_error(open_prompts(f, rows, cases[i].o, &set, &err), RLHF_E_INVALID, &err,
                    cases[i].part);
    }
}

static void no_template(void **state) {
    struct fixture *f = *state;
    struct rlhf__prompts *set;
    struct rlhf__error err = {0};
    check_error(open_prompts(f, "{\"messages\":[" USER("a") "]}\n", (struct rlhf__prompt_opts){0},
                             &set, &err),
                RLHF_E_INVALID, &err,
                "p.jsonl:1: the row has messages, but '../text/data/bpe' has no");
    assert_non_null(strstr(err.text, "name the template with prompts.template=NAME"));
}

// ---- texts ----

static rlhf_status tokenize(struct fixture *f, const char *rows, struct rlhf__token_opts o,
                            struct rlhf__token_rows *out, struct rlhf__error *err) {
    const char *paths[] = {scratch_text(f->scratch, "t.jsonl", rows)};
    struct rlhf__dataset_opts d = {.paths = paths,
                                   .n_paths = 1,
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES)};
    struct rlhf__dataset *ds = NULL;
    if (!o.max_len) o.max_len = 500;
    o.encode_flags = RLHF__ENCODE_BOS | RLHF__ENCODE_EOS;
    rlhf_status st = rlhf__dataset_open(&d, &ds, err);
    if (st == RLHF_OK) st = rlhf__token_rows_init(out, ds, f->tok, &o, err);
    rlhf__dataset_close(ds);
    return st;
}

#define TALK "{\"messages\":[" USER("A") "," SAYS("B") "," USER("C") "," SAYS("D") "]}\n"
#define TALK_TEXT                                                                                  \
    "<|user|>\nA<|endoftext|>\n<|assistant|>\nB<|endoftext|>\n<|user|>\nC<|endoftext|>\n"          \
    "<|assistant|>\nD<|endoftext|>\n"

static void token_rows(void **state) {
    struct fixture *f = *state;
    struct rlhf__token_rows rows;
    struct rlhf__error err = {0};
    int32_t ids[500];
    name(f, "zephyr");
    check_ok(tokenize(f, TALK "{\"text\":\"ab\"}\n", (struct rlhf__token_opts){0}, &rows, &err),
             &err);
    assert_int_equal(rows.n, 2);
    assert_int_equal(rows.chats, 1);
    rlhf__token_rows_copy(&rows, 0, ids); // no bos or eos except the template's
    check_ids(f, ids, (size_t)rlhf__token_rows_len(&rows, 0), TALK_TEXT);
    rlhf__token_rows_copy(&rows, 1, ids);
    check_ids(f, ids, (size_t)rlhf__token_rows_len(&rows, 1), "<|endoftext|>ab<|endoftext|>");
    rlhf__token_rows_finish(&rows);
    check_error(
        tokenize(f, "{\"text\":\"ab\"}\n{\"a\":1}\n", (struct rlhf__token_opts){0}, &rows, &err),
        RLHF_E_INVALID, &err, "t.jsonl:2: the row has neither a field 'text' nor 'messages'");
    check_error(tokenize(f, "{\"text\":\"ab\"}\n{\"messages\":null}\n",
                         (struct rlhf__token_opts){0}, &rows, &err),
                RLHF_E_INVALID, &err,
                "t.jsonl:2: field 'messages' is null, expected a text or messages");
}

// Checks the text of the marked tokens of row i.
static void check_says(const struct fixture *f, const struct rlhf__token_rows *rows, int64_t i,
                       const char *text) {
    struct rlhf__ids said = {0};
    struct rlhf__error err = {0};
    int32_t ids[3000];
    char got[500] = "";
    rlhf__token_rows_copy(rows, i, ids);
    for (int32_t k = 0; k < rlhf__token_rows_len(rows, i); k++)
        if (rows->says[rows->offset[i] + k]) check_ok(rlhf__ids_push(&said, ids[k], &err), &err);
    got[rlhf__tokenizer_decode(f->tok, said.data, said.n, 0, got, sizeof got - 1)] = '\0';
    assert_string_equal(got, text);
    rlhf__ids_finish(&said);
}

// The tools, calls and results of a row are rendered. The loss covers the assistant's turns, both
// calls and answers.
static void tool_rows(void **state) {
    static const char row[] = "{\"messages\":[" USER(
        "Q") ",{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{"
             "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1.5}}}]},{"
             "\"role\":\"tool\",\"content\":\"R\"}," SAYS("A") "],\"tools\":%s}\n";
    static const char *const tools[] = {"[{\"name\":\"f\"}]", "\"[{\\\"name\\\": \\\"f\\\"}]\""};
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    name(f, "qwen2.5");
    for (size_t i = 0; i < CHECK_COUNT(tools); i++) {
        struct rlhf__token_rows rows;
        char line[600], text[3000] = "";
        int32_t ids[3000];
        snprintf(line, sizeof line, row, tools[i]);
        check_ok(
            tokenize(f, line, (struct rlhf__token_opts){.says = 1, .max_len = 3000}, &rows, &err),
            &err);
        assert_int_equal(rows.n, 1);
        check_says(f, &rows, 0,
                   "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1.5}}\n</tool_call>"
                   "<|im_end|>A<|im_end|>");
        rlhf__token_rows_copy(&rows, 0, ids);
        rlhf__tokenizer_decode(f->tok, ids, (size_t)rlhf__token_rows_len(&rows, 0), 0, text,
                               sizeof text - 1);
        assert_non_null(strstr(text, "<tools>\n{\"name\": \"f\"}\n</tools>"));
        assert_non_null(strstr(text, "<tool_response>\nR\n</tool_response>"));
        rlhf__token_rows_finish(&rows);
    }
    name(f, "zephyr");
    struct rlhf__token_rows rows;
    char line[600];
    snprintf(line, sizeof line, row, tools[0]);
    check_error(tokenize(f, line, (struct rlhf__token_opts){.says = 1}, &rows, &err),
                RLHF_E_INVALID, &err, "the row has tools, and the chat template zephyr does not");
}

static void assistant_tokens(void **state) {
    struct fixture *f = *state;
    struct rlhf__token_rows rows;
    struct rlhf__error err = {0};
    const struct rlhf__token_opts says = {.says = 1};
    name(f, "zephyr");
    check_ok(tokenize(f, TALK "{\"messages\":[" USER("A") "]}\n{\"messages\":[" SAYS("x") "]}\n",
                      says, &rows, &err),
             &err);
    assert_int_equal(rows.n, 2); // rows in which the assistant says nothing are left out
    assert_int_equal(rows.silent, 1);
    check_says(f, &rows, 0, "B<|endoftext|>D<|endoftext|>");
    check_says(f, &rows, 1, "x<|endoftext|>");
    rlhf__token_rows_finish(&rows);
    // A truncated row keeps its marks; a row without remaining answers is left out.
    struct rlhf__ids head =
        encode(f, "<|user|>\nA<|endoftext|>\n<|assistant|>\nB<|endoftext|>\n<|user|>");
    struct rlhf__token_opts cut = {.says = 1, .max_len = (int32_t)head.n};
    check_ok(tokenize(f, TALK, cut, &rows, &err), &err);
    check_says(f, &rows, 0, "B<|endoftext|>");
    assert_int_equal(rows.truncated, 1);
    rlhf__token_rows_finish(&rows);
    cut.max_len = 5;
    check_error(tokenize(f, TALK, cut, &rows, &err), RLHF_E_INVALID, &err,
                "t.jsonl:1: the prompt is longer than the 5 tokens of a row (data.max_tokens, or "
                "else the model's context), so no token of the answer is left; of 1 row none can "
                "be used");
    // If such a row is among others, it is left out and counted once.
    err = (struct rlhf__error){0};
    struct rlhf__ids said = encode(f, "<|assistant|>\nx<|endoftext|>\n");
    cut.max_len = (int32_t)said.n;
    rlhf__ids_finish(&said);
    check_ok(tokenize(f, "{\"messages\":[" SAYS("x") "]}\n" TALK, cut, &rows, &err), &err);
    assert_int_equal(rows.n, 1);
    assert_int_equal(rows.unreached, 1);
    assert_non_null(strstr(rows.first_unreached, "t.jsonl:2"));
    assert_int_equal(rows.silent, 0);
    assert_int_equal(rows.truncated, 0);
    rlhf__token_rows_finish(&rows);
    // Windows: tokens keep their marks, and windows without marks are left out.
    struct rlhf__token_opts split = {.says = 1, .max_len = 6, .long_rows = RLHF__LONG_SPLIT};
    err = (struct rlhf__error){0};
    check_ok(tokenize(f, TALK, split, &rows, &err), &err);
    assert_true(rows.n >= 2 && rows.silent >= 1);
    for (int64_t i = 0; i < rows.n; i++) {
        int any = 0;
        for (int64_t k = rows.offset[i] + 1; k < rows.offset[i + 1]; k++)
            any |= rows.says[k];
        assert_true(any);
    }
    rlhf__token_rows_finish(&rows);
    rlhf__ids_finish(&head);
    check_error(tokenize(f, TALK "{\"text\":\"a\"}\n", says, &rows, &err), RLHF_E_INVALID, &err,
                "t.jsonl:2: the row is a text, and data.assistant_only is for rows with messages");
}

// ---- preferences ----

static rlhf_status open_pairs(struct fixture *f, const char *rows, struct rlhf__preference_opts o,
                              struct rlhf__preferences **out, struct rlhf__error *err) {
    const char *paths[] = {scratch_text(f->scratch, "r.jsonl", rows)};
    o.paths = paths;
    o.n_paths = 1;
    if (!o.max_tokens) o.max_tokens = 500;
    *out = NULL;
    return rlhf__preferences_open(&o, f->tok, out, err);
}

// A response that a length limit cut off does not end its turn.
static void cut_responses(void **state) {
    struct fixture *f = *state;
    struct rlhf__preferences *set;
    struct rlhf__error err = {0};
    name(f, "zephyr");
#define PAIR "{\"prompt\":[" USER("a") "],\"chosen\":[" SAYS("yes") "],\"rejected\":\"no\",\"cut\":"
    check_ok(open_pairs(f,
                        PAIR
                        "[false,true]}\n" PAIR "[true,false]}\n" PAIR "null}\n"
                        "{\"prompt\":[" USER("a") "],\"responses\":[\"yes\",\"no\"],\"best\":1,"
                                                  "\"cut\":[true,true]}\n",
                        (struct rlhf__preference_opts){0}, &set, &err),
             &err);
    static const char *const want[][2] = {{"yes<|endoftext|>", "no"},
                                          {"yes", "no<|endoftext|>"},
                                          {"yes<|endoftext|>", "no<|endoftext|>"},
                                          {"yes", "no"}};
    for (int64_t i = 0; i < 4; i++) {
        const struct rlhf__preference p = rlhf__preferences_get(set, i);
        check_ids(f, p.ids, (size_t)p.len[0], want[i][0]);
        check_ids(f, p.ids + p.len[0], (size_t)p.len[1], want[i][1]);
    }
    rlhf__preferences_close(set);
    check_error(open_pairs(f, PAIR "[true]}\n", (struct rlhf__preference_opts){0}, &set, &err),
                RLHF_E_INVALID, &err,
                "r.jsonl:1: field 'cut' is expected to be a list of 2 booleans");
    check_error(open_pairs(f, PAIR "[true,1]}\n", (struct rlhf__preference_opts){0}, &set, &err),
                RLHF_E_INVALID, &err, "entry 1 of field 'cut' is an integer, expected true or");
}

static void preferences(void **state) {
    // The same pair in each form that a file may use, then a best of three.
    static const char rows[] =
        "{\"prompt\":[" USER("Q") "],\"chosen\":[" SAYS("yes") "],\"rejected\":[" SAYS(
            "no") "]}\n"
                  "{\"messages\":[" USER(
                      "Q") "],\"chosen\":\"yes\",\"rejected\":\"no\"}\n"
                           "{\"chosen\":[" USER("Q") "," SAYS("yes") "],\"rejected\":[" USER(
                               "Q") "," SAYS("no") "]}\n"
                                                   "{\"prompt\":[" USER("Q") "],\"responses\":["
                                                                             "\"no\",[" SAYS(
                                                                                 "yes") "],\"x\"],"
                                                                                        "\"best\":"
                                                                                        "1}\n"
                                                                                        "{\"prompt"
                                                                                        "\":\"Q\","
                                                                                        "\"chosen\""
                                                                                        ":\"yes\","
                                                                                        "\"rejected"
                                                                                        "\":\"no\"}"
                                                                                        "\n";
    struct fixture *f = *state;
    struct rlhf__preferences *set;
    struct rlhf__error err = {0};
    name(f, "zephyr");
    check_ok(open_pairs(f, rows, (struct rlhf__preference_opts){.prepend_bos = 1}, &set, &err),
             &err);
    assert_int_equal(rlhf__preferences_count(set), 5);
    assert_int_equal(rlhf__preferences_chats(set), 4);
    for (int64_t i = 0; i < 4; i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, i);
        check_ids(f, p.prompt, (size_t)p.n_prompt, "<|user|>\nQ<|endoftext|>\n<|assistant|>\n");
        const int32_t *best = p.ids + (p.best ? p.len[0] : 0),
                      *other = p.ids + (p.best ? 0 : p.len[0]);
        check_ids(f, best, (size_t)p.len[p.best], "yes<|endoftext|>"); // it ends as in a rollout
        check_ids(f, other, (size_t)p.len[!p.best], "no<|endoftext|>");
    }
    assert_int_equal(rlhf__preferences_get(set, 3).n, 3);
    struct rlhf__preference text = rlhf__preferences_get(set, 4);
    check_ids(f, text.prompt, (size_t)text.n_prompt, "<|endoftext|>Q");
    rlhf__preferences_close(set);
}

// A completion has the same tokens as in a pair.
static void completions(void **state) {
    static const char rows[] = "{\"prompt\":[" USER("Q") "],\"completion\":[" SAYS(
        "yes") "],\"label\":true}\n{\"messages\":[" USER("Q") "],\"completion\":\"no\",\"label\":"
                                                              "false}\n";
    struct fixture *f = *state;
    struct rlhf__preferences *set;
    struct rlhf__error err = {0};
    name(f, "zephyr");
    check_ok(open_pairs(f, rows, (struct rlhf__preference_opts){.completions = 1}, &set, &err),
             &err);
    assert_int_equal(rlhf__preferences_chats(set), 2);
    for (int64_t i = 0; i < 2; i++) {
        const struct rlhf__preference p = rlhf__preferences_get(set, i);
        check_ids(f, p.prompt, (size_t)p.n_prompt, "<|user|>\nQ<|endoftext|>\n<|assistant|>\n");
        check_ids(f, p.ids, (size_t)p.len[0], i ? "no<|endoftext|>" : "yes<|endoftext|>");
        assert_int_equal(p.best, i ? -1 : 0);
    }
    rlhf__preferences_close(set);
}

static void long_preferences(void **state) {
    static const char rows[] = "{\"prompt\":[" USER(
        "Q") "],\"chosen\":\"a b c d e\",\"rejected\":\"b\"}\n"
             "{\"prompt\":[" USER(
                 "a question that fills all there is of room") "],\"chosen\":\"a\","
                                                               "\"rejected\":\"b\"}\n";
    struct fixture *f = *state;
    struct rlhf__preferences *set;
    struct rlhf__error err = {0};
    name(f, "zephyr");
    struct rlhf__ids prompt = encode(f, "<|user|>\nQ<|endoftext|>\n<|assistant|>\n");
    struct rlhf__preference_opts o = {.max_tokens = (int32_t)prompt.n + 2};
    check_ok(open_pairs(f, rows, o, &set, &err), &err);
    assert_int_equal(rlhf__preferences_count(set), 1);
    assert_int_equal(rlhf__preferences_too_long(set), 1);
    assert_int_equal(rlhf__preferences_truncated(set), 1);
    struct rlhf__preference p = rlhf__preferences_get(set, 0);
    assert_int_equal(p.n_prompt, prompt.n); // a prompt is never cut
    assert_int_equal(p.len[0], 2);
    rlhf__preferences_close(set);
    o.long_rows = RLHF__PREFERENCE_REFUSE;
    check_error(open_pairs(f, rows, o, &set, &err), RLHF_E_INVALID, &err, "r.jsonl:1: ");
    rlhf__ids_finish(&prompt);
}

static void bad_preferences(void **state) {
    static const struct {
        const char *row, *part;
    } cases[] = {
        {"{\"prompt\":[" SAYS("Q") "],\"chosen\":\"a\",\"rejected\":\"b\"}",
         "r.jsonl:1: field 'prompt' has no user's turn"},
        {"{\"prompt\":[" USER("Q") "],\"chosen\":[" USER("a") "],\"rejected\":\"b\"}",
         "r.jsonl:1: field 'chosen' ends with another's turn than the assistant's"},
        {"{\"prompt\":[" USER("Q") "],\"chosen\":[" USER("x") "," SAYS("a") "],\"rejected\":\"b\"}",
         "r.jsonl:1: field 'chosen' begins with another's turn"},
        {"{\"prompt\":\"Q\",\"chosen\":[" SAYS("a") "],\"rejected\":\"b\"}",
         "r.jsonl:1: field 'chosen' is a list of messages, and the prompt is a text"},
        {"{\"prompt\":[" USER("Q") "],\"chosen\":[" SAYS("a") "],\"rejected\":[" SAYS("a") "]}",
         "r.jsonl:1: fields 'chosen' and 'rejected' are the same text"},
        {"{\"chosen\":[" USER("Q") "," SAYS("a") "],\"rejected\":[" USER("R") "," SAYS("b") "]}",
         "do not begin with the same prompt"},
        {"{\"chosen\":[" USER("Q") "],\"rejected\":[" USER("Q") "]}",
         "field 'chosen' ends with another's turn"},
        {"{\"prompt\":[" USER("Q") "],\"messages\":[" USER(
             "Q") "],\"chosen\":\"a\",\"rejected\":\"b\"}",
         "the row has 'messages' and also 'prompt'"},
        {"{\"prompt\":[" USER("Q") "],\"responses\":[\"a\",3],\"best\":0}",
         "field 'responses[1]' is an integer"},
        {"{\"prompt\":[{\"role\":\"tool\",\"content\":\"a\"}],\"chosen\":\"a\",\"rejected\":\"b\"}",
         "field 'prompt' has no user's turn"},
        {"{\"prompt\":[" USER("Q") "],\"chosen\":\"a\",\"rejected\":\"b\",\"tools\":[1]}",
         "tools[0] is an integer, expected an object"},
    };
    struct fixture *f = *state;
    name(f, "zephyr");
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__preferences *set;
        struct rlhf__error err = {0};
        check_error(open_pairs(f, cases[i].row, (struct rlhf__preference_opts){0}, &set, &err),
                    RLHF_E_INVALID, &err, cases[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prompts, setup, teardown),
        cmocka_unit_test_setup_teardown(long_prompts, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_prompts, setup, teardown),
        cmocka_unit_test_setup_teardown(no_template, setup, teardown),
        cmocka_unit_test_setup_teardown(token_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(assistant_tokens, setup, teardown),
        cmocka_unit_test_setup_teardown(tool_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(preferences, setup, teardown),
        cmocka_unit_test_setup_teardown(cut_responses, setup, teardown),
        cmocka_unit_test_setup_teardown(completions, setup, teardown),
        cmocka_unit_test_setup_teardown(long_preferences, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_preferences, setup, teardown),
    };
    return cmocka_run_group_tests_name("chat_rows", tests, NULL, NULL);
}
