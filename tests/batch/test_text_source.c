// test_text_source.c: batches of supervised rows: sizes, token budgets, epochs, the cursor.
#include "e2e.h"

#include "batch/text_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    // uses the tiny vocabulary: the id of a byte is the byte, and 259 is the end token
    struct e2e *scratch;
    char data[512];
    struct rlhf__tokenizer *tok;
};

// The rows "a", "ab", "abc" and "abcd" repeat in this order, 10 rows in all.
static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err = {0, ""};
    void *scratch = NULL;
    if (!f || e2e_setup(&scratch) != 0) return -1;
    f->scratch = scratch;
    e2e_write(f->scratch, "rows.txt", "a\nab\nabc\nabcd\na\nab\nabc\nabcd\na\nab\n");
    snprintf(f->data, sizeof f->data, "%s/rows.txt", f->scratch->dir);
    char model[512];
    snprintf(model, sizeof model, "%s/model", f->scratch->dir);
    if (rlhf__tokenizer_open(model, &f->tok, &err) != RLHF_OK) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    rlhf__tokenizer_set_bos(f->tok, 1);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    void *scratch = f->scratch;
    rlhf__tokenizer_close(f->tok);
    free(f);
    return e2e_teardown(&scratch);
}

static void open(struct fixture *f, struct rlhf__text_opts *o, struct rlhf__text_source *s) {
    struct rlhf__error err = {0, ""};
    o->path = f->data;
    if (!o->max_len) o->max_len = 16;
    o->threads = 1;
    if (rlhf__text_source_open(s, o, &err) != RLHF_OK ||
        rlhf__text_source_tokenize(s, o, f->tok, &err) != RLHF_OK)
        fail_msg("%s", err.text);
}

static void rows_come_with_bos_and_eos(void **state) {
    struct rlhf__text_opts o = {.batch_size = 4};
    struct rlhf__text_source s;
    struct rlhf__rows e = {0};
    open(*state, &o, &s);
    assert_int_equal(rlhf__text_source_next(&s, &e, NULL), RLHF_OK);
    const int32_t ids[] = {259, 'a', 259, 259, 'a', 'b', 259, 259, 'a',
                           'b', 'c', 259, 259, 'a', 'b', 'c', 'd', 259};
    assert_int_equal(e.n, 4);
    assert_int_equal(e.total, 18);
    assert_memory_equal(e.ids, ids, sizeof ids);
    assert_int_equal(e.prompt_len[2], 1);
    rlhf__rows_finish(&e);
    rlhf__text_source_finish(&s);
}

// A text begins with BOS only if the tokenizer itself puts it there.
static void no_bos_of_our_own(void **state) {
    struct fixture *f = *state;
    struct rlhf__text_opts o = {.batch_size = 2};
    struct rlhf__text_source s;
    struct rlhf__rows e = {0};
    rlhf__tokenizer_set_bos(f->tok, 0);
    open(f, &o, &s);
    assert_int_equal(rlhf__text_source_next(&s, &e, NULL), RLHF_OK);
    const int32_t ids[] = {'a', 259, 'a', 'b', 259};
    assert_int_equal(e.total, 5);
    assert_memory_equal(e.ids, ids, sizeof ids);
    rlhf__rows_finish(&e);
    rlhf__text_source_finish(&s);
}

// Only the assistant's tokens have a loss. Tokens before the first of them are the prompt. Later
// turns of other roles are left out of the loss.
static void the_assistant_alone(void **state) {
    struct fixture *f = *state;
    struct rlhf__text_opts o = {.batch_size = 2, .assistant_only = 1};
    struct rlhf__text_source s;
    struct rlhf__rows e = {0}, part = {0};
    struct rlhf__error err = {0, ""};
    e2e_write(
        f->scratch, "rows.jsonl",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"ab\"},{\"role\":\"assistant\","
        "\"content\":\"cd\"},{\"role\":\"user\",\"content\":\"e\"},{\"role\":\"assistant\","
        "\"content\":\"f\"}]}\n{\"messages\":[{\"role\":\"assistant\",\"content\":\"gh\"}]}\n");
    snprintf(f->data, sizeof f->data, "%s/rows.jsonl", f->scratch->dir);
    assert_int_equal(rlhf__tokenizer_name_chat(f->tok, "plain", &err), RLHF_OK);
    open(f, &o, &s);
    assert_int_equal(rlhf__text_source_next(&s, &e, &err), RLHF_OK);
    const int32_t ids[] = {'a', 'b', 'c', 'd', 259, 'e', 'f', 259, 'g', 'h', 259};
    const uint8_t left_out[] = {0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0};
    assert_int_equal(e.total, 11);
    assert_memory_equal(e.ids, ids, sizeof ids);
    assert_memory_equal(e.left_out, left_out, sizeof left_out);
    assert_int_equal(e.prompt_len[0], 2);
    assert_int_equal(e.prompt_len[1], 1); // the first token has no predecessor
    assert_int_equal(rlhf__rows_loss_tokens(&e, 0, 2), 5 + 2);
    const uint32_t pick[] = {1, 0};
    assert_int_equal(rlhf__rows_pick(&part, &e, pick, 2, &err), RLHF_OK);
    assert_memory_equal(part.left_out + 3, left_out, 8);
    assert_int_equal(rlhf__rows_loss_tokens(&part, 0, 1), 2);
    rlhf__rows_finish(&part);
    rlhf__rows_finish(&e);
    rlhf__text_source_finish(&s);
}

// In a row with a completion, the loss covers the completion and its end token. In the other rows
// of the file, it covers all tokens.
static void the_completion_alone(void **state) {
    struct fixture *f = *state;
    struct rlhf__text_opts o = {.batch_size = 4};
    struct rlhf__text_source s;
    struct rlhf__rows e = {0};
    struct rlhf__error err = {0, ""};
    e2e_write(f->scratch, "rows.jsonl",
              "{\"prompt\":\"ab\",\"completion\":\"cd\"}\n{\"text\":\"e\"}\n"
              "{\"prompt\":[{\"role\":\"user\",\"content\":\"ab\"}],\"completion\":\"c\"}\n"
              "{\"prompt\":[{\"role\":\"user\",\"content\":\"ab\"}],\"completion\":["
              "{\"role\":\"assistant\",\"content\":\"c\"}]}\n");
    snprintf(f->data, sizeof f->data, "%s/rows.jsonl", f->scratch->dir);
    assert_int_equal(rlhf__tokenizer_name_chat(f->tok, "plain", &err), RLHF_OK);
    open(f, &o, &s);
    assert_int_equal(rlhf__text_source_next(&s, &e, &err), RLHF_OK);
    const int32_t ids[] = {259, 'a', 'b', 'c', 'd', 259, 259, 'e', 259,
                           'a', 'b', 'c', 259, 'a', 'b', 'c', 259};
    const int32_t prompt_len[] = {3, 1, 2, 2};
    assert_int_equal(e.total, 17);
    assert_memory_equal(e.ids, ids, sizeof ids);
    assert_memory_equal(e.prompt_len, prompt_len, sizeof prompt_len);
    for (uint32_t i = 0; i < e.total; i++)
        assert_int_equal(e.left_out[i], 0);
    assert_int_equal(rlhf__rows_loss_tokens(&e, 0, 4), 3 + 2 + 2 + 2);
    rlhf__rows_finish(&e);
    rlhf__text_source_finish(&s);
    o.max_len = 4; // a row whose completion is cut off completely is left out
    e2e_write(f->scratch, "rows.jsonl",
              "{\"prompt\":\"abcdef\",\"completion\":\"g\"}\n{\"prompt\":\"ab\",\"completion\":"
              "\"cd\"}\n");
    open(f, &o, &s);
    assert_int_equal(s.rows.n, 1);
    assert_int_equal(s.rows.unreached, 1);
    assert_int_equal(s.rows.silent, 0);
    assert_int_equal(s.rows.truncated, 1);
    rlhf__text_source_finish(&s);
}

static void a_token_budget_is_kept(void **state) {
    struct rlhf__text_opts o = {.batch_size = 1, .batch_tokens = 8, .epochs = 1};
    struct rlhf__text_source s;
    struct rlhf__rows e = {0};
    open(*state, &o, &s);
    int64_t batches = 0, rows = 0, count = 0;
    assert_int_equal(rlhf__text_source_batches(&s, &batches, NULL), RLHF_OK);
    // The rows have the lengths 3 4 5 6 3 4 5 6 3 4. The batches are (3 4) (5) (6) (3 4) (5) (6) (3
    // 4).
    assert_int_equal(batches, 7);
    for (; count < batches; count++) {
        assert_int_equal(rlhf__text_source_next(&s, &e, NULL), RLHF_OK);
        assert_true(e.total <= 8 && e.n > 0);
        rows += e.n;
        rlhf__rows_finish(&e);
    }
    assert_int_equal(rows, 10);
    assert_true(rlhf__order_epoch(&s.batches.order) == 1);
    rlhf__text_source_finish(&s);
}

static void epochs_may_be_fractions(void **state) {
    struct rlhf__text_opts o = {.batch_size = 4, .epochs = 1.5, .shuffle = 1, .seed = 7};
    struct rlhf__text_source s;
    int64_t batches = 0;
    open(*state, &o, &s);
    assert_int_equal(rlhf__text_source_batches(&s, &batches, NULL), RLHF_OK);
    assert_int_equal(batches, 4); // 15 rows
    rlhf__text_source_finish(&s);
}

static void the_cursor_is_all_there_is(void **state) {
    struct rlhf__text_opts o = {.batch_size = 3, .shuffle = 1, .seed = 7};
    struct rlhf__text_source a, b;
    struct rlhf__rows x = {0}, y = {0};
    open(*state, &o, &a);
    open(*state, &o, &b);
    for (int i = 0; i < 5; i++) { // into the second pass
        assert_int_equal(rlhf__text_source_next(&a, &x, NULL), RLHF_OK);
        rlhf__rows_finish(&x);
    }
    assert_int_equal(
        rlhf__order_seek(&b.batches.order, a.batches.order.pass, a.batches.order.pos, NULL),
        RLHF_OK);
    assert_int_equal(rlhf__text_source_next(&a, &x, NULL), RLHF_OK);
    assert_int_equal(rlhf__text_source_next(&b, &y, NULL), RLHF_OK);
    assert_int_equal(x.total, y.total);
    assert_memory_equal(x.ids, y.ids, x.total * sizeof *x.ids);
    rlhf__rows_finish(&x);
    rlhf__rows_finish(&y);
    rlhf__text_source_finish(&a);
    rlhf__text_source_finish(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_come_with_bos_and_eos, setup, teardown),
        cmocka_unit_test_setup_teardown(no_bos_of_our_own, setup, teardown),
        cmocka_unit_test_setup_teardown(the_assistant_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(the_completion_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(a_token_budget_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(epochs_may_be_fractions, setup, teardown),
        cmocka_unit_test_setup_teardown(the_cursor_is_all_there_is, setup, teardown),
    };
    return cmocka_run_group_tests_name("text_source", tests, NULL, NULL);
}
