// test_gsm8k.c: the answers of all problems of GSM8K are found in their solutions, and in responses
// with other places and forms of the answer. Wrong answers do not count as right. If
// ../shared/data, next to the repository, lacks the problems, the test is skipped with a message.
#include "rewards/rows.h"

#include "data/dataset.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/stat.h>

enum { ROWS = 8792, FORMS = 6, CHUNK = 100 };

static struct reward r;

// Returns the right answer, read as the dataset's authors read it: the text after "#### ", without
// commas.
static long long gold_of(const char *solution) {
    char digits[64];
    size_t n = 0;
    const char *at = strstr(solution, "#### ");
    assert_non_null(at);
    for (at += 5; *at; at++)
        if (*at != ',') {
            assert_true(n + 1 < sizeof digits && strchr("-0123456789", *at));
            digits[n++] = *at;
        }
    digits[n] = 0;
    return strtoll(digits, NULL, 10);
}

// Writes a response in the given form. Forms 0 to 3 contain the answer `gold`, and the other forms
// contain a wrong answer. Returns 1 if the response's answer is right.
static int respond(char *out, size_t cap, int form, const char *solution, long long gold) {
    switch (form) {
    case 0:
        snprintf(out, cap, "%s", solution);
        return 1;
    case 1:
        snprintf(out, cap, "First 3, then 4.\n\\[ x = \\boxed{%lld} \\] 5", gold);
        return 1;
    case 2:
        snprintf(out, cap, "That is 3 and so %s$%lld.00.", gold < 0 ? "-" : "",
                 gold < 0 ? -gold : gold);
        return 1;
    case 3:
        snprintf(out, cap, "#### %.4e", (double)gold);
        return strtod(out + 5, NULL) == (double)gold;
    case 4:
        snprintf(out, cap, "%s\n#### %lld", solution, gold + 1);
        return 0;
    default:
        snprintf(out, cap, "%s\n\\boxed{%lld.5}", solution, gold);
        return 0;
    }
}

struct batch {
    char text[CHUNK * FORMS][4096];
    int right[CHUNK * FORMS];
    rlhf_str response[CHUNK * FORMS], meta[CHUNK * FORMS];
    float seq[CHUNK * FORMS];
    uint8_t verdict[CHUNK * FORMS];
    uint32_t n;
};

static void add(struct batch *b, rlhf_str row) {
    json_t *v = json_loadb(row.ptr, (size_t)row.len, 0, NULL);
    const char *solution = json_string_value(json_object_get(v, "answer"));
    assert_non_null(solution);
    const long long gold = gold_of(solution);
    for (int form = 0; form < FORMS; form++, b->n++) {
        char *text = b->text[b->n];
        b->right[b->n] = respond(text, sizeof *b->text, form, solution, gold);
        assert_true(strlen(text) + 1 < sizeof *b->text);
        b->response[b->n] = (rlhf_str){text, strlen(text)};
        b->meta[b->n] = row;
    }
    json_decref(v);
}

static void score(struct batch *b) {
    const rlhf_reward_in in = {.size = sizeof in,
                               .n = b->n,
                               .prompt = b->response,
                               .response = b->response,
                               .meta = b->meta};
    const rlhf_reward_out out = {.size = sizeof out, .seq = b->seq, .verdict = b->verdict};
    assert_int_equal(r.ops->score(r.self, &in, &out), RLHF_OK);
    for (uint32_t i = 0; i < b->n; i++)
        if (b->seq[i] != (float)b->right[i])
            fail_msg("%.*s\n\"%s\" pays %g, %d is right", (int)b->meta[i].len, b->meta[i].ptr,
                     b->text[i], (double)b->seq[i], b->right[i]);
    b->n = 0;
}

static void all_of_them(void **state) {
    (void)state;
    static struct batch b;
    struct rlhf__error err = {0, ""};
    struct rlhf__dataset *ds = NULL;
    char path[2][1024];
    const char *source = getenv("RLHF_SOURCE_DIR"), *const paths[2] = {path[0], path[1]};
    struct stat there;
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/../shared/data/gsm8k/%s.jsonl.gz",
                 source ? source : ".", i ? "test" : "train");
    if (stat(path[0], &there) != 0) {
        print_message("%s is not there: skipped\n", path[0]);
        skip();
    }
    struct rlhf__dataset_opts o = {.paths = paths,
                                   .n_paths = 2,
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_PROMPT),
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_PROMPT),
                                   .keep_meta = 1};
    o.name[RLHF__FIELD_PROMPT] = "question";
    if (rlhf__dataset_open(&o, &ds, &err) != RLHF_OK) fail_msg("%s", err.text);
    assert_int_equal(rlhf__dataset_rows(ds), ROWS);
    reward_open(&r, "answer.so", "");
    for (int64_t i = 0; i < ROWS; i++) {
        add(&b, rlhf__dataset_row(ds, i).meta);
        if (b.n == CHUNK * FORMS || i + 1 == ROWS) score(&b);
    }
    reward_close(&r);
    rlhf__dataset_close(ds);
}

static int open_rows(void **state) {
    (void)state;
    r.rows = rlhf__row_service();
    return r.rows ? 0 : -1;
}

static int close_rows(void **state) {
    (void)state;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_them)};
    return cmocka_run_group_tests_name("rewards/gsm8k", tests, open_rows, close_rows);
}
