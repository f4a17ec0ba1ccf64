// test_grader.c: grader.so and its parts: the cases of grader_cases.jsonl, whose grades come from
// the libraries that define them (tests/oracle/graders.py); files and rows that are refused;
// formulas; graders that ask a model; metrics and verdicts. Graders in Python are skipped without
// python3.
#include "plugin/row_service.h"
#include "rewards/fixture.h"
#include "rewards/http_server.h"
#include "rewards/many.h"

#include "grader/formula.h"
#include "grader/fuzzy.h"
#include "grader/stem.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static struct reward r;
static struct texts t;
static rlhf_limits limits = {.size = sizeof limits, .timeout_s = 60};
static char dir[64], file[128];

static void put(const char *text) {
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void put_json(const json_t *v) {
    char *text = json_dumps(v, 0);
    assert_non_null(text);
    put(text);
    free(text);
}

static rlhf_status try_it(const char *options) {
    char all[512];
    snprintf(all, sizeof all, "file=%s%s%s", file, *options ? "," : "", options);
    return reward_try(&r, "grader.so", all);
}

static void open_it(const char *options) {
    if (try_it(options) != RLHF_OK) fail_msg("%s", r.host.fail_text);
}

static rlhf_str str_of(const char *text) { return (rlhf_str){text, text ? strlen(text) : 0}; }

static void rows(uint32_t n, const char *const *responses, const char *item) {
    memset(&t, 0, sizeof t);
    for (uint32_t i = 0; i < n; i++) {
        texts_add(&t, "Say", 3, responses[i], strlen(responses[i]));
        t.meta[i] = str_of(item);
        t.finished[i] = 1;
    }
}

static double metric(const char *name) {
    double value = -1;
    rlhf_test_metric(&r.host, name, &value);
    return value;
}

static void near(double got, double want) {
    if (!(fabs(got - want) < 1e-6)) fail_msg("%.9g instead of %.9g", got, want);
}

static void says(const char *text) {
    if (!strstr(r.host.fail_text, text))
        fail_msg("\"%s\" is not in \"%s\"", text, r.host.fail_text);
}

static int has_python(void) { return system("python3 -c 'import sys' >/dev/null 2>&1") == 0; }

static int setup(void **state) {
    (void)state;
    strcpy(dir, "/tmp/rlhf-grader-XXXXXX");
    if (!mkdtemp(dir)) return -1;
    snprintf(file, sizeof file, "%s/grader.json", dir);
    memset(&r, 0, sizeof r);
    r.rows = rlhf__row_service();
    r.limits = &limits;
    r.programs = many_programs();
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(file);
    rmdir(dir);
    return 0;
}

// ---- cases ----

static void check_case(const json_t *v, int line) {
    char *item = json_dumps(json_object_get(v, "item"), 0);
    const char *response = json_string_value(json_object_get(v, "response"));
    const double want = json_number_value(json_object_get(v, "grade"));
    put_json(json_object_get(v, "grader"));
    open_it("");
    rows(1, &response, item);
    if (reward_check_row(&r, t.meta[0]) != RLHF_OK) fail_msg("case %d: %s", line, r.host.fail_text);
    if (texts_score(&r, &t, 0, 1) != RLHF_OK) fail_msg("case %d: %s", line, r.host.fail_text);
    if (!(fabs((double)t.seq[0] - want) <= 1e-6 * fmax(1, fabs(want))))
        fail_msg("case %d: %.9g instead of %.9g", line, (double)t.seq[0], want);
    reward_close(&r);
    free(item);
}

static void same_as_libraries(void **state) {
    (void)state;
    char line[16384];
    const int python = has_python();
    int n = 0;
    FILE *f = fopen(GRADER_CASES, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *v = json_loads(line, 0, NULL);
        assert_non_null(v);
        n++;
        if (python || !strstr(line, "\"python\"")) check_case(v, n);
        json_decref(v);
    }
    fclose(f);
    assert_true(n >= 60);
}

// ---- refusals ----

#define CHECK(MEMBERS) "{\"type\": \"string_check\", " MEMBERS "}"
#define SIMPLE                                                                                     \
    "{\"type\": \"string_check\", \"input\": \"a\", \"reference\": \"a\", \"operation\": \"eq\"}"
#define MULTI(FORMULA)                                                                             \
    "{\"type\": \"multi\", \"graders\": {\"a\": " SIMPLE "}, \"calculate_output\": \"" FORMULA "\"}"
#define INPUT(TEXT)    CHECK("\"input\": \"" TEXT "\", \"reference\": \"a\", \"operation\": \"eq\"")
#define MODEL(MEMBERS) "{\"type\": \"score_model\", \"model\": \"m\", " MEMBERS "}"

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } all[] = {
        {"[]", "the grader is not an object"},
        {"{", "line 1 is not valid JSON"},
        {"{\"type\": \"multi\", \"type\": \"multi\"}", "is not valid JSON: duplicate object key"},
        {"{}", "/type is missing; expected string_check, text_similarity, score_model, "
               "label_model, python or multi"},
        {"{\"type\": \"embedding\\n\"}", "/type is \"embedding\\n\"; expected string_check"},
        {CHECK("\"operation\": \"is\""),
         "/operation is \"is\"; expected eq, ne, like, ilike or neq"},
        {CHECK("\"operation\": \"eq\""), "/input is missing; expected a text"},
        {CHECK("\"opeartion\": \"eq\""), "the grader has \"opeartion\"; allowed: type name input"},
        {CHECK("\"name\": 1"), "/name is a number; expected a text"},
        {CHECK("\"pass_threshold\": \"1\""), "/pass_threshold is \"1\"; expected a number"},
        {"{\"type\": \"text_similarity\", \"evaluation_metric\": \"cosine\"}",
         "cosine compares embeddings of a hosted model, which is not here"},
        {INPUT("{{ sample.output_txt }}"),
         "/input has {{ sample.output_txt }}, which a sample does not have; it has output_text"},
        {INPUT("{{ item }}"), "/input has {{ item }}, which is not a path"},
        {INPUT("{{ item.a b }}"), "which is not a path"},
        {INPUT("{{ item.a | lower }}"), "which is not a path"},
        {INPUT("{{ item[x] }}"), "which is not a path"},
        {INPUT("{{ item[1 }}"), "which is not a path"},
        {INPUT("{{ row.a }}"), "which begins neither with item. nor with sample."},
        {INPUT("a {{ item.x "), "/input has {{ item.x , which has no \"}}\""},
        {MULTI("a +"), "/calculate_output has its end, too early, at character 3"},
        {MULTI("b"), "has \"b\", which is not the name of a grader"},
        {MULTI("a ** 2"), "a power is written ^"},
        {MULTI("0x10"), "has no number at character 0"},
        {MULTI("abs(a, a)"), "a second argument of a function of one"},
        {MULTI("(a"), "has no \\\")\\\" at character 2"},
        {MULTI("a a"), "an unexpected character at character 2"},
        {MULTI("1e999"), "a number that is too large"},
        {"{\"type\": \"multi\", \"graders\": [" SIMPLE "], \"calculate_output\": \"a\"}",
         "/graders is a list; expected an object of 1 to 32 graders"},
        {"{\"type\": \"multi\", \"graders\": {\"min\": " SIMPLE "}, \"calculate_output\": \"a\"}",
         "/graders has \"min\""},
        {"{\"type\": \"multi\", \"graders\": {\"a\": " MULTI("a") "}, \"calculate_output\": \"a\"}",
         "/graders/a/type is \"multi\"; expected string_check, text_similarity"},
        {"{\"type\": \"multi\", \"graders\": {\"a\": 3}, \"calculate_output\": \"a\"}",
         "/graders/a is not an object"},
        {MODEL("\"range\": [1, 0]"), "/range is a list; expected a list of two numbers"},
        {MODEL("\"input\": []"), "/input is a list; expected a list of 1 to 64 messages"},
        {MODEL("\"input\": [{\"role\": \"user\", \"content\": {\"type\": \"input_image\"}}]"),
         "/input/0/content is an object; expected a text"},
        {MODEL("\"input\": [{\"role\": \"tool\", \"content\": \"a\"}]"),
         "/input/0/role is \"tool\"; expected user, assistant, system or developer"},
        {MODEL("\"sampling_params\": {\"top_k\": 1}"),
         "/sampling_params has \"top_k\"; allowed: seed top_p"},
        {MODEL("\"input\": [{\"role\": \"user\", \"content\": \"a\"}]"),
         "the grader asks the model \"m\"; give url="},
        {"{\"type\": \"label_model\", \"model\": \"m\", \"labels\": [\"a\"], \"passing_labels\": "
         "[\"b\"]}",
         "/passing_labels is a list; expected labels that are in \"labels\", too"},
        {"{\"method\": {\"reinforcement\": {\"grader\": {\"type\": \"no\"}}}}",
         "/method/reinforcement/grader/type is \"no\""}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char want[200], *to = want;
        put(all[i].text);
        if (try_it("") != RLHF_E_INVALID) fail_msg("%s is not refused", all[i].text);
        for (const char *at = all[i].why; *at; at++)
            if (at[0] != '\\' || at[1] != '"') *to++ = *at;
        *to = 0;
        says(want);
        reward_close(&r);
    }
    unlink(file);
    assert_int_equal(try_it(""), RLHF_E_INVALID);
    says("grader.json cannot be read");
    reward_close(&r);
    put(SIMPLE);
    assert_int_equal(try_it("url=http://127.0.0.1:1/"), RLHF_E_INVALID);
    says("has no grader that asks a model, so leave out url=");
    reward_close(&r);
}

static void rows_are_checked(void **state) {
    (void)state;
    put(INPUT("{{ item.a.b }} {{ sample.output_json.x }}"));
    open_it("");
    assert_int_equal(reward_check_row(&r, str_of("{\"a\": {\"b\": 1}}")), RLHF_OK);
    assert_int_equal(reward_check_row(&r, str_of("{\"a\": {\"c\": 1}}")), RLHF_E_INVALID);
    says("the data row has no value for {{ item.a.b }}, which");
    assert_int_equal(reward_check_row(&r, str_of("{\"a\": {\"b\": null}}")), RLHF_E_INVALID);
    assert_int_equal(reward_check_row(&r, (rlhf_str){NULL, 0}), RLHF_E_INVALID);
    reward_close(&r);
}

// ---- formulas ----

static void formulas(void **state) {
    (void)state;
    static struct rlhf__formula f;
    static const char *const names[] = {"a", "b_1"};
    const double values[] = {2, 0.5};
    static const struct {
        const char *text;
        double value;
    } all[] = {{"a + b_1 * 4 - 1", 3}, {"-a^2", -4},           {"2^-1", 0.5},
               {"a^2^3", 256},         {"-(a - 3) / b_1", 2},  {"max(a, b_1, 7, 1)", 7},
               {"min(a)", 2},          {"log(exp(1.5))", 1.5}, {"floor(-0.5) + ceil(0.5)", 0},
               {"+a - -a", 4},         {".5 * 1e1 + 2.", 7},   {"sqrt(a * 2) - abs(-a)", 0}};
    static const char *const undefined[] = {"1 / 0",       "log(-1)",         "sqrt(-1)",
                                            "(0 - 1)^0.5", "min(1, log(-1))", "exp(1000)"};
    char why[200], deep[4096];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!rlhf__formula_read(&f, all[i].text, names, 2, why, sizeof why))
            fail_msg("%s: %s", all[i].text, why);
        near(rlhf__formula_value(&f, values), all[i].value);
    }
    for (size_t i = 0; i < sizeof undefined / sizeof *undefined; i++) {
        assert_true(rlhf__formula_read(&f, undefined[i], names, 2, why, sizeof why));
        assert_true(isfinite(rlhf__formula_value(&f, values)) == 0);
    }
    static const char bombs[] = "(-";
    for (size_t k = 0; k < 2; k++) {
        memset(deep, bombs[k], sizeof deep - 1);
        deep[sizeof deep - 1] = 0;
        assert_false(rlhf__formula_read(&f, deep, names, 2, why, sizeof why));
        assert_non_null(strstr(why, "more than 64 levels"));
    }
    for (size_t i = 0; i + 1 < sizeof deep; i++)
        deep[i] = i % 2 ? '+' : 'a';
    assert_false(rlhf__formula_read(&f, deep, names, 2, why, sizeof why));
    assert_non_null(strstr(why, "more than 1024 parts"));
}

// ---- words ----

static void stems(void **state) {
    (void)state;
    static const char *const all[][2] = {
        {"caresses", "caress"},  {"ponies", "poni"},       {"dies", "die"},
        {"agreed", "agre"},      {"plastered", "plaster"}, {"hopping", "hop"},
        {"filing", "file"},      {"happy", "happi"},       {"enjoy", "enjoy"},
        {"relational", "relat"}, {"formally", "formal"},   {"theology", "theolog"},
        {"hopefulness", "hope"}, {"adoption", "adopt"},    {"rate", "rate"},
        {"controll", "control"}, {"dying", "die"},         {"by", "by"},
        {"syzygy", "syzygi"}};
    char out[RLHF__STEM_MOST + 1];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        out[rlhf__stem(all[i][0], strlen(all[i][0]), out)] = 0;
        assert_string_equal(out, all[i][1]);
    }
}

// Texts that would take too long to compare have an invalid grade, which is 0.
static void too_long(void **state) {
    (void)state;
    static char text[70000];
    memset(text, 'a', sizeof text - 1);
    const char *const response = text;
    put("{\"type\": \"text_similarity\", \"input\": \"{{ sample.output_text }}\", \"reference\": "
        "\"a\", \"evaluation_metric\": \"rouge_l\"}");
    open_it("");
    memset(&t, 0, sizeof t);
    t.n = 1;
    t.response[0] = t.prompt[0] = str_of(response);
    t.meta[0] = str_of("{}");
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_OK);
    near((double)t.seq[0], 0);
    near(metric("invalid"), 1);
    reward_close(&r);
}

// ---- metrics and verdicts ----

static void metrics_and_verdicts(void **state) {
    (void)state;
    static const char *const responses[] = {"{\"x\": \"a\"}", "{\"x\": \"b\"}", "a"};
    put("{\"type\": \"multi\", \"pass_threshold\": 0.75, \"graders\": {"
        "\"first\": {\"type\": \"string_check\", \"input\": \"{{sample.output_json.x}}\", "
        "\"reference\": \"a\", \"operation\": \"eq\", \"pass_threshold\": 0.5}, \"second\": "
        "{\"type\": \"string_check\", \"input\": \"{{sample.output_text}}\", \"reference\": \"x\", "
        "\"operation\": \"like\"}}, \"calculate_output\": \"(first + second) / 2\"}");
    open_it("");
    rows(3, responses, "{}");
    assert_int_equal(texts_score(&r, &t, 0, 3), RLHF_OK);
    near((double)t.seq[0], 1);
    near((double)t.seq[1], 0.5);
    near((double)t.seq[2], 0);
    assert_int_equal(t.verdict[0], RLHF_VERDICT_RIGHT);
    assert_int_equal(t.verdict[1], RLHF_VERDICT_WRONG);
    near(metric("first/mean"), 1.0 / 3);
    near(metric("second/mean"), 2.0 / 3);
    near(metric("first/passed"), 1.0 / 3);
    near(metric("passed"), 1.0 / 3);
    near(metric("invalid"), 1.0 / 3);
    reward_close(&r);
}

// ---- graders that ask a model ----

static const char *_Atomic answer; // the content of the service's answers

static void serve(void *context, const struct http_request *q, struct http_reply *reply) {
    (void)context;
    json_t *v = json_loads(q->body, 0, NULL);
    const json_t *format = json_object_get(json_object_get(v, "response_format"), "json_schema");
    const json_t *last = json_array_get(json_object_get(v, "messages"), 1);
    const char *asked = json_string_value(json_object_get(last, "content"));
    if (!format || !asked || strcmp(asked, "yes or 7?") != 0 ||
        json_integer_value(json_object_get(v, "max_completion_tokens")) != 99 ||
        strcmp(json_string_value(json_object_get(v, "model")), "mine") != 0) {
        reply->status = 400;
        reply->body = strdup("not what was expected");
    } else if (answer) {
        json_t *out = json_pack("{s:[{s:{s:s}}]}", "choices", "message", "content", answer);
        reply->body = json_dumps(out, 0);
        json_decref(out);
    } else
        reply->body = strdup("{}");
    json_decref(v);
}

#define ASKS                                                                                       \
    "\"model\": \"o9\", \"sampling_params\": {\"max_completions_tokens\": 99, \"seed\": null}, "   \
    "\"input\": [{\"role\": \"system\", \"content\": \"Grade.\"}, {\"role\": \"user\", "           \
    "\"content\": {\"type\": \"input_text\", \"text\": \"{{ sample.output_text }} or "             \
    "{{ item.n }}?\"}}]"

static void models(void **state) {
    (void)state;
    static const char score[] = "{\"type\": \"score_model\", \"range\": [-1, 2], " ASKS "}";
    static const char label[] = "{\"type\": \"label_model\", \"labels\": [\"good\", \"bad\"], "
                                "\"passing_labels\": [\"good\"], " ASKS "}";
    static const char *const responses[] = {"yes", "yes"};
    static const struct {
        const char *file, *answer;
        double grade, invalid;
    } all[] = {{score, "{\"steps\": [], \"result\": 0.25}", 0.25, 0},
               {score, "{\"result\": 17}", 2, 0},
               {score, "{\"result\": -1e300}", -1, 0},
               {score, "1.5", 1.5, 0},
               {score, "{\"result\": \"1\"}", 0, 1},
               {score, "about 1", 0, 1},
               {score, NULL, 0, 1},
               {label, "{\"result\": \"good\"}", 1, 0},
               {label, "{\"result\": \"bad\"}", 0, 0},
               {label, "\"good\"", 1, 0},
               {label, "{\"result\": \"ugly\"}", 0, 1},
               {label, "{\"result\": 1}", 0, 1}};
    char options[128];
    struct http_server *server = http_server_open(serve, NULL);
    assert_non_null(server);
    snprintf(options, sizeof options,
             "model=mine,patience_s=0.2,repeats=0,url=http://127.0.0.1:%d/v1",
             http_server_port(server));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        answer = all[i].answer;
        put(all[i].file);
        open_it(options);
        rows(2, responses, "{\"n\": 7}");
        if (texts_score(&r, &t, 0, 2) != RLHF_OK) fail_msg("%zu: %s", i, r.host.fail_text);
        near((double)t.seq[1], all[i].grade);
        near(metric("invalid"), all[i].invalid);
        reward_close(&r);
    }
    // A service that refuses the question loses the row, which is no grade of 0.
    static const char *const some[] = {"yes", "no"};
    answer = all[0].answer;
    put(score);
    open_it(options);
    rows(2, some, "{\"n\": 7}");
    assert_int_equal(texts_score(&r, &t, 0, 2), RLHF_OK);
    assert_true(!t.failed[0] && t.failed[1]);
    rows(1, some + 1, "{\"n\": 7}");
    assert_int_equal(texts_score(&r, &t, 0, 1), RLHF_E_IO);
    says("status 400");
    reward_close(&r);
    http_server_close(server);
}

// ---- graders in Python ----

static void python(void **state) {
    (void)state;
    if (!has_python()) skip();
    static const struct {
        const char *source, *why;
    } all[] = {
        {"def grade(sample item):\\n    return 1", "cannot be imported: line 1: SyntaxError"},
        {"def grad(sample, item):\\n    return 1", "has no function \"grade\""}};
    char text[512];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        snprintf(text, sizeof text, "{\"type\": \"python\", \"source\": \"%s\"}", all[i].source);
        put(text);
        assert_int_equal(try_it(""), RLHF_E_INVALID);
        says(all[i].why);
        reward_close(&r);
    }
    put("{\"type\": \"python\", \"source\": \"def grade(sample, item):\\n    return {'a': 0.5, "
        "'b': float('nan'), 'c': None, 'd': '1', 'e': -3}[sample['output_text']]\\n\"}");
    open_it("");
    static const char *const responses[] = {"a", "b", "c", "d", "e", "f"};
    static const double want[] = {0.5, 0, 0, 0, -3, 0};
    rows(6, responses, "{}");
    assert_int_equal(reward_check_row(&r, str_of("{}")), RLHF_OK);
    assert_int_equal(texts_score(&r, &t, 0, 6), RLHF_OK);
    for (int i = 0; i < 6; i++)
        near((double)t.seq[i], want[i]);
    near(metric("invalid"), 4.0 / 6);
    reward_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_as_libraries, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_are_checked, setup, teardown),
        cmocka_unit_test(formulas),
        cmocka_unit_test(stems),
        cmocka_unit_test_setup_teardown(too_long, setup, teardown),
        cmocka_unit_test_setup_teardown(metrics_and_verdicts, setup, teardown),
        cmocka_unit_test_setup_teardown(models, setup, teardown),
        cmocka_unit_test_setup_teardown(python, setup, teardown)};
    return cmocka_run_group_tests_name("grader", tests, NULL, NULL);
}
