// test_inspect.c: `rlhf-host inspect` on tiny models. Compares its numbers with the numbers of
// PyTorch's hooks, which make_vectors.py stored. Also tests its sums, its page, and its refusals.
#include "../e2e/e2e.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT  1e-4 // relative to the largest value of a list, or to 1
#define SUMS   1e-5
#define PROMPT "--prompt 'The river was better than' "

static json_t *expected(void) {
    json_t *v = json_load_file(SOURCE_DIR "/expected.json", 0, NULL);
    if (!v) fail_msg("expected.json is missing or no JSON");
    return v;
}

// Runs `inspect --json <flags>` in the folder of models. The caller owns the result.
static json_t *subject(struct e2e *t, const char *flags) {
    char path[512];
    if (e2e_shell(t,
                  "out=$PWD; cd " DIRS " && \"$HOST\" inspect --json --threads 1 " PROMPT
                  "%s >$out/numbers.json",
                  flags) != 0)
        fail_msg("inspect %s: %s", flags, t->out);
    snprintf(path, sizeof path, "%s/numbers.json", t->dir);
    json_t *all = json_load_file(path, JSON_ALLOW_NUL, NULL);
    json_t *one = json_incref(json_array_get(json_object_get(all, "subjects"), 0));
    if (!one) fail_msg("inspect %s printed no subject", flags);
    json_decref(all);
    return one;
}

// ---- numbers ----

static double largest(const json_t *v) {
    double most = json_is_number(v) ? fabs(json_number_value(v)) : 0;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const double one = largest(json_array_get(v, i));
        if (one > most) most = one;
    }
    return most;
}

// Returns the largest difference of two nested lists, which must have the same form.
static double far(const json_t *a, const json_t *b, const char *what) {
    double most = 0;
    if (json_is_number(a) && json_is_number(b))
        return fabs(json_number_value(a) - json_number_value(b));
    if (json_is_null(a) && json_is_null(b)) return 0;
    if (!json_is_array(a) || !json_is_array(b) || json_array_size(a) != json_array_size(b))
        fail_msg("%s: lists of different forms", what);
    for (size_t i = 0; i < json_array_size(a); i++) {
        const double one = far(json_array_get(a, i), json_array_get(b, i), what);
        if (!(one <= most)) most = one;
    }
    return most;
}

static void close_to(const json_t *ours, const json_t *theirs, const char *key, const char *name,
                     double limit) {
    const json_t *a = json_object_get(ours, key), *b = json_object_get(theirs, key);
    char what[100];
    snprintf(what, sizeof what, "%s, %s", name, key);
    const double scale = largest(b), d = far(a, b, what);
    if (!(d <= limit * (scale > 1 ? scale : 1))) fail_msg("%s: %g from PyTorch's", what, d);
}

// Compares the sources of the heads that are kept. PyTorch's list has all heads, with zeros after
// the diagonal.
static void check_sources(const json_t *ours, const json_t *theirs, const json_t *top,
                          const char *name) {
    for (size_t k = 0; k < json_array_size(top); k++) {
        const json_t *head = json_array_get(top, k);
        const size_t l = (size_t)json_integer_value(json_array_get(head, 0));
        const size_t h = (size_t)json_integer_value(json_array_get(head, 1));
        const json_t *a = json_array_get(json_object_get(ours, "source"), k);
        const json_t *b = json_array_get(json_array_get(json_object_get(theirs, "source"), l), h);
        assert_non_null(b);
        for (size_t t = 0; t < json_array_size(b); t++)
            for (size_t s = 0; s <= t; s++) {
                const double x = json_number_value(json_array_get(json_array_get(a, t), s));
                const double y = json_number_value(json_array_get(json_array_get(b, t), s));
                if (!(fabs(x - y) <= LIMIT * fmax(1, fabs(y))))
                    fail_msg("%s: source %zu of token %zu, head %zu.%zu: %g, not %g", name, s, t, l,
                             h, x, y);
            }
    }
}

static void check_model(const json_t *ours, const json_t *theirs, const json_t *top,
                        const char *name) {
    static const char *const keys[] = {"difference", "rows", "heads", "accumulated", "lens"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        close_to(ours, theirs, keys[i], name, LIMIT);
    close_to(ours, theirs, "sum", name, SUMS);
    check_sources(ours, theirs, top, name);
}

static void check_patched(const json_t *ours, const json_t *theirs, const char *name) {
    const json_t *a = json_object_get(ours, "patched"), *b = json_object_get(theirs, "patched");
    assert_int_equal(a != NULL, b != NULL);
    if (!a) return;
    close_to(a, b, "rows", name, LIMIT);
    close_to(a, b, "heads", name, LIMIT);
    close_to(a, b, "out", name, LIMIT);
}

static void numbers_are_those_of_hooks(void **state) {
    struct e2e *t = *state;
    json_t *all = expected();
    const char *name;
    json_t *one;
    int n = 0;
    json_object_foreach(json_object_get(all, "cases"), name, one) {
        const json_t *theirs = json_object_get(one, "subject");
        json_t *ours = subject(t, json_string_value(json_object_get(one, "flags")));
        assert_true(json_equal(json_object_get(ours, "names"), json_object_get(theirs, "names")));
        const json_t *mine = json_object_get(ours, "of"), *yours = json_object_get(theirs, "of");
        assert_int_equal(json_array_size(mine), json_array_size(yours));
        for (size_t k = 0; k < json_array_size(yours); k++)
            check_model(json_array_get(mine, k), json_array_get(yours, k),
                        json_object_get(ours, "top"), name);
        check_patched(ours, theirs, name);
        assert_int_equal(json_object_get(ours, "kl") != NULL,
                         json_object_get(theirs, "kl") != NULL);
        if (json_object_get(theirs, "kl")) close_to(ours, theirs, "kl", name, LIMIT);
        assert_true(json_number_value(json_object_get(ours, "error")) < SUMS);
        assert_true(json_number_value(json_object_get(ours, "source_error")) < SUMS);
        json_decref(ours);
        n++;
    }
    assert_int_equal(n, 6);
    json_decref(all);
}

// A model is compared with itself. Nothing has moved, and patching does not change any bit.
static void nothing_moves_in_the_same_model(void **state) {
    struct e2e *t = *state;
    json_t *s = subject(t, "--base qwen3 --tuned qwen3 --words the,bread");
    const json_t *patched = json_object_get(s, "patched");
    assert_true(largest(json_object_get(patched, "rows")) == 0);
    assert_true(largest(json_object_get(patched, "heads")) == 0);
    assert_true(largest(json_object_get(patched, "out")) == 0);
    assert_true(largest(json_object_get(s, "kl")) == 0);
    json_decref(s);
}

static void moved_tokens_are_in_order(void **state) {
    struct e2e *t = *state;
    json_t *s = subject(t, "--base gpt2 --tuned gpt2-tuned --words the,bread --no-patching");
    const json_t *last = json_array_get(json_object_get(s, "moved"), 4);
    const size_t half = json_array_size(last) / 2;
    double before = INFINITY;
    assert_int_equal(half, 12);
    assert_null(json_object_get(s, "patched"));
    for (size_t i = 0; i < 2 * half; i++) {
        const json_t *m = json_array_get(last, i);
        const double move =
            json_number_value(json_array_get(m, 2)) - json_number_value(json_array_get(m, 1));
        const double size = i < half ? move : -move;
        if (i == half) before = INFINITY;
        assert_true((size > 0 || json_is_null(m)) && size <= before + 1e-7);
        before = size;
    }
    json_decref(s);
}

// ---- other uses ----

static void ok(struct e2e *t, int status) {
    if (status != 0) fail_msg("exit %d: %s", status, t->out);
}

static void an_adapter_changes_few_directions(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_shell(t, "\"$HOST\" inspect --weights --tuned " DIRS "gpt2-adapter"));
    // c_attn [16, 48] has an adapter of rank 2, and the embedding none
    e2e_says(t, "transformer.h.0.attn.c_attn.weight           [16, 48]        100.0 %");
    e2e_says(t, "    2 of 16 ");
    e2e_says(t, "transformer.wte.weight");
    e2e_says(t, "  0.0 %           0    0.000 %      0 of 16");
    ok(t, e2e_shell(t, "\"$HOST\" inspect --weights --json --base " DIRS "gpt2 --tuned " DIRS
                       "gpt2-tuned"));
    e2e_says(t, "{\"name\":\"transformer.h.0.attn.c_attn.bias\",\"shape\":[48],\"changed\":");
    e2e_says(t, "\"effective_rank\":");
}

// The same adapter, a thousandth as large, on the same base in bf16. The change is smaller than the
// rounding of the base, but it was added to the rounded base, so its rank is still exact.
static void a_rounded_base_does_not_hide_an_adapter(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_shell(t, "\"$HOST\" export " DIRS "gpt2 --to gpt2 --dtype bf16 && cp -rL " DIRS
                       "gpt2-adapter small && chmod -R u+w small && "
                       "sed -i 's/\"lora_alpha\": 6/\"lora_alpha\": 0.006/' "
                       "small/adapter_config.json && "
                       "\"$HOST\" inspect --weights --tuned small"));
    e2e_says(t, "0.486 %      2 of 16 ");
    assert_null(strstr(t->out, "%      1 of 16 "));
}

// If the same model draws again, it gives the same texts. Other weights give other texts.
static void texts_are_drawn_with_the_same_noise(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_shell(t, "\"$HOST\" inspect --samples --json --n 3 --max-new 8 " PROMPT "--base " DIRS
                       "gpt2 --tuned " DIRS "gpt2 2>/dev/null"));
    json_t *v = json_loads(t->out, JSON_ALLOW_NUL, NULL), *row;
    size_t i;
    assert_non_null(v);
    assert_int_equal(json_array_size(json_object_get(v, "samples")), 3);
    json_array_foreach(json_object_get(v, "samples"), i, row) {
        assert_true(json_equal(json_object_get(row, "base"), json_object_get(row, "tuned")));
    }
    json_decref(v);
    ok(t, e2e_shell(t, "\"$HOST\" inspect --samples --n 2 --max-new 8 " PROMPT "--base " DIRS
                       "gpt2 --tuned " DIRS "gpt2-tuned"));
    e2e_says(t, "gpt2                                               gpt2-tuned\n");
}

static void the_page_holds_the_numbers(void **state) {
    struct e2e *t = *state;
    ok(t,
       e2e_shell(t, "\"$HOST\" inspect --base " DIRS "llama --tuned " DIRS
                    "llama-tuned --prompt '</script><script>alert(1)</script>' --words the,bread "
                    "--reward-model " DIRS "gpt2-reward --out p.html && grep -c '<script' p.html"));
    e2e_says(t, "contributions add up to it");
    e2e_says(t, "the page is p.html");
    assert_string_equal(t->out + strlen(t->out) - 3, "\n2\n"); // data and code: no third script
    ok(t, e2e_shell(t, "grep -q 'sha256-' p.html && grep -q '\"subjects\"' p.html"));
    ok(t, e2e_shell(t, "echo mine >q.html; ! \"$HOST\" inspect --reward-model " DIRS
                       "gpt2-reward " PROMPT "--out q.html && cat q.html"));
    e2e_says(t, "'q.html' exists and is not a page of this program");
    e2e_says(t, "mine");
}

// ---- bad input ----

static void refused(struct e2e *t, const char *flags, const char *why) {
    const int status = e2e_shell(t, "cd " DIRS " && \"$HOST\" inspect %s", flags);
    if (status != 2) fail_msg("inspect %s: exit %d: %s", flags, status, t->out);
    e2e_says(t, why);
}

static void bad_input_is_one_sentence(void **state) {
    struct e2e *t = *state;
    refused(t, "--base gpt2 --tuned gpt2-tuned " PROMPT "--words the", "two sides with one comma");
    refused(t, "--base gpt2 --tuned gpt2-tuned " PROMPT "--words the,", "a word is empty");
    refused(t, "--base gpt2 --tuned gpt2-tuned " PROMPT "--words the/bread,bread",
            "“bread” and “bread” begin with the same token");
    refused(t, "--base gpt2 --tuned gpt2-tuned --prompt 'The river was' --words 4/5,6",
            "“4” and “6” begin with the same token, “ ”, so their logits cannot differ: the space "
            "before a word is a separate token here");
    refused(t, "--base gpt2 --tuned llama-tuned " PROMPT "--words the,bread",
            "the models have different shapes: ");
    refused(t, "--base gpt2 --tuned gpt2-reward " PROMPT, "both must be of one kind");
    // the same shape with other tokens
    ok(t, e2e_shell(t, "cp -rL " DIRS "gpt2 other && chmod -R u+w other && "
                       "sed -i 's/: 288\\b/: 9999/; s/: 289\\b/: 288/; s/: 9999\\b/: 289/' "
                       "other/tokenizer.json"));
    const int status = e2e_shell(t, "\"$HOST\" inspect --base " DIRS "gpt2 --tuned other " PROMPT
                                    "--words the,bread");
    if (status != 2) fail_msg("exit %d: %s", status, t->out);
    e2e_says(t, "the models have different tokenizers: the tokens of ");
    refused(t, "--base gpt2 --tuned ../../hf/dirs/gpt2-bf16 " PROMPT "--words the,bread",
            "the models have different shapes: ");
    refused(t, "--tuned gpt2-tuned " PROMPT "--words the,bread", "--base is missing");
    refused(t, "--base gpt2 --tuned gpt2-tuned " PROMPT, "give the next words to compare");
    refused(t, "--base gpt2 --tuned gpt2-tuned --words the,bread", "give the text with --prompt");
    refused(t, "--base gpt2 --tuned gpt2-tuned --prompt '' --words the,bread", "--prompt is empty");
    refused(
        t,
        "--base gpt2 --tuned gpt2-tuned --words the,bread --prompt \"$(printf 'a%.0s' $(seq 90))\"",
        "more than the 64 that fit");
    refused(t, "--reward-model gpt2-reward --words a,b " PROMPT,
            "--words has no effect without --tuned");
    refused(t, "--reward-model ../../hf/dirs/distilbert " PROMPT, "--reward-model: ");
    refused(t, "--critic gpt2 " PROMPT, "has no value head");
    refused(t, "--weights --base gpt2 --tuned llama", "the models have different shapes: ");
    refused(t, "--weights --samples --tuned gpt2", "--weights and --samples do not go together");
    refused(t, "--weights --tuned gpt2 --words a,b", "--words has no effect with --weights");
    refused(t, "--weights --tuned gpt2 --threads 2", "--threads has no effect with --weights");
    refused(t, "--weights --tuned gpt2 --backend cpu", "--backend has no effect with --weights");
    refused(t, "--weights --tuned gpt2", "--base is missing, and 'gpt2' is not a run");
}

// Heads are sorted by their contribution at the last token. Percentages of a tiny difference are
// not shown. All lines fit a terminal of 80 columns.
static void the_summary_fits(void **state) {
    struct e2e *t = *state;
    const char *call = "\"$HOST\" inspect --base " DIRS "gpt2 --tuned " DIRS "%s " PROMPT
                       "--words the,bread >all; %s";
    char line[900];
    snprintf(line, sizeof line, call, "gpt2-tuned",
             "sed -n '/^head/,/^$/p' all | awk '/layer/ {x = $7 < 0 ? -$7 : +$7; if (n++ && x > "
             "last) exit 1; last = x} END {exit n != 4}'");
    ok(t, e2e_shell(t, "%s", line));
    ok(t, e2e_shell(t, "cat all"));
    e2e_says(t, "restores: not shown, because the models differ too little here\n");
    ok(t, e2e_shell(t, "! grep -q ' %%$' all"));
    ok(t, e2e_shell(t, "test $(LC_ALL=C.UTF-8 wc -L <all) -le 80"));
}

// A checkpoint is named with its run.
static void a_checkpoint_is_named_with_its_run(void **state) {
    struct e2e *t = *state;
    ok(t,
       e2e_shell(t, "mkdir -p mine/checkpoints && cp -rL " DIRS "gpt2 mine/checkpoints/000060 && "
                    "\"$HOST\" inspect --base mine/checkpoints/000060/ --tuned " DIRS
                    "gpt2-tuned " PROMPT "--words the,bread --no-patching"));
    e2e_says(t, "  mine/checkpoints/000060        +1.2326\n");
}

// Copies the test directories' Llama to `name`, with a context of `context` tokens.
static void make_llama(struct e2e *t, const char *name, int context) {
    ok(t, e2e_shell(t,
                    "cp -rL " DIRS "llama %s && chmod -R u+w %s && "
                    "sed -i 's/_embeddings\": 64/_embeddings\": %d/' %s/config.json",
                    name, name, context, name));
}

static void the_shorter_context_counts(void **state) {
    struct e2e *t = *state;
    make_llama(t, "short", 24);
    const int status = e2e_shell(t, "\"$HOST\" inspect --samples --n 1 --max-new 20 " PROMPT
                                    "--base " DIRS "llama --tuned short");
    if (status != 2) fail_msg("exit %d: %s", status, t->out);
    e2e_says(t, "short', 24 tokens");
}

// The memory for attention grows with the square of the prompt.
static void a_long_prompt_keeps_no_attention(void **state) {
    struct e2e *t = *state;
    static const char *const call =
        "\"$HOST\" inspect --base long --tuned long --no-patching --words the,bread --prompt "
        "\"$(printf 'a%%.0s' $(seq %d))\" ";
    char line[300];
    make_llama(t, "long", 4096);
    snprintf(line, sizeof line, call, 3000);
    ok(t, e2e_shell(t, "%s | grep 'at most'", line));
    e2e_says(t, "attention is kept for prompts of at most 1024 tokens\n");
    ok(t, e2e_shell(t, "%s --json | grep -o '\"attention\":.\\{14\\}'", line));
    e2e_says(t, "\"attention\":[],\"source\":[]");
}

// A cell is padded to its width on the screen, not to its number of bytes.
static void cells_are_padded_by_columns(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_shell(t, "\"$HOST\" inspect --base " DIRS "llama --tuned " DIRS
                       "llama-tuned --no-patching --words the,bread --prompt 'é the' | tail -3"));
    // Each of the two tokens is one byte of é, and is shown as U+FFFD.
    e2e_says(t, "\xef\xbf\xbd                              -0.");
    e2e_says(t, "\n the                           -0.");
}

static void a_plugin_without_a_tap(void **state) {
    struct e2e *t = *state;
    ok(t, e2e_shell(t, "cp -rL " DIRS "gpt2 plain && chmod -R u+w plain && "
                       "sed -i 's/\"gpt2\"/\"plain_gpt2\"/' plain/config.json"));
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" inspect --base plain --tuned plain " PROMPT "--words the,bread"),
        2);
    e2e_says(t, "cannot be inspected: its model plugin plain_gpt2.so has no "
                "rlhf.tap/1");
}

// If a tap has an error, one sentence names it. The numbers are not shown.
static void a_broken_tap_is_named(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *bad, *why;
    } all[] = {{"layers", "do not fit its model"},
               {"heads", "the models have different shapes"},
               {"wide", "do not fit its model"},
               {"none", "do not fit its model"},
               {"negative", "do not fit its model"},
               {"vocabulary", "do not fit its model"},
               {"eps", "do not fit its model"},
               {"status", "it returned 77, which is not a valid status"},
               {"forgets", "read() of the tap"},
               {"silent", "is missing, NaN or infinite"},
               {"nan", "is missing, NaN or infinite"},
               {"few", "is missing, NaN or infinite"},
               {"wrong", "the contributions do not add up"},
               {"headless", "head() of the tap"},
               {"logits", "logits() of its tap: number "},
               {"lacks", "lacks a function"},
               {"version", "is of another version"}};
    ok(t, e2e_shell(t, "cp -rL " DIRS "gpt2 tap && chmod -R u+w tap && "
                       "sed -i 's/\"gpt2\"/\"tap_gpt2\"/' tap/config.json"));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int status = e2e_shell(t,
                                     "BAD=%s \"$HOST\" inspect --base " DIRS "gpt2 --tuned tap "
                                     "--out tap.html " PROMPT "--words the,bread",
                                     all[i].bad);
        if (status != 2) fail_msg("%s: exit %d: %s", all[i].bad, status, t->out);
        e2e_says(t, all[i].why);
        const char *error = strstr(t->out, "error: ");
        if (!error || strstr(error + 1, "error: ") || strstr(t->out, "logit of"))
            fail_msg("%s: %s", all[i].bad, t->out);
        ok(t, e2e_shell(t, "! test -e tap.html"));
    }
    ok(t, e2e_shell(t, "BAD=nothing \"$HOST\" inspect --base " DIRS "gpt2 --tuned tap " PROMPT
                       "--words the,bread"));
}

// If a word has several tokens, its first token represents it. A note tells the user so, and the
// numbers are printed.
static void a_word_of_several_tokens_is_noted(void **state) {
    struct e2e *t = *state;
    json_t *s = subject(t, "--base gpt2 --tuned gpt2-tuned --words riverboat,bread --no-patching");
    const char *note = json_string_value(json_array_get(json_object_get(s, "notes"), 0));
    assert_non_null(note);
    assert_non_null(strstr(note, "“riverboat” is "));
    assert_non_null(strstr(note, " tokens; the first one, “"));
    json_decref(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_those_of_hooks, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(nothing_moves_in_the_same_model, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(moved_tokens_are_in_order, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(an_adapter_changes_few_directions, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_rounded_base_does_not_hide_an_adapter, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(texts_are_drawn_with_the_same_noise, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(the_page_holds_the_numbers, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(bad_input_is_one_sentence, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_summary_fits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_is_named_with_its_run, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(the_shorter_context_counts, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_long_prompt_keeps_no_attention, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(cells_are_padded_by_columns, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_plugin_without_a_tap, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_broken_tap_is_named, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_word_of_several_tokens_is_noted, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
