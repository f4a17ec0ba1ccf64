// test_options.c: the validator of options: each type, each kind of error, and its message.
#include "support/scratch.h"

#include "option/options.h"

struct config {
    double rate, open;
    int64_t count, free_count;
    int32_t on, mode;
    const char *name, *path;
    const char *const *words, *const *any;
};

static const char *const modes[] = {"fast", "slow", NULL};
static const char *const some[] = {"one", "two", "three", NULL};
static const char *const first[] = {"two", NULL};
static const rlhf_opt opts[] = {
    RLHF_OPT_F64(struct config, rate, 0.5, 0, 1, "a rate"),
    RLHF_OPT_F64_FLAGS(struct config, open, RLHF_OPT_MIN_OPEN | RLHF_OPT_MAX_OPEN, 1, 0, 2,
                       "an open range"),
    RLHF_OPT_I64(struct config, count, 3, 1, 10, "a count"),
    RLHF_OPT_I64(struct config, free_count, 0, INT64_MIN, INT64_MAX, "any integer"),
    RLHF_OPT_BOOL(struct config, on, 1, "a switch"),
    RLHF_OPT_ENUM(struct config, mode, 1, modes, "a mode"),
    RLHF_OPT_STR(struct config, name, "n", "a name"),
    RLHF_OPT_PATH(struct config, path, NULL, "a path"),
    RLHF_OPT_LIST(struct config, words, first, some, "some words"),
    RLHF_OPT_LIST(struct config, any, NULL, NULL, "any words"),
};
static const struct rlhf__opt_table table = {opts, CHECK_COUNT(opts), sizeof *opts};

struct fixture {
    struct rlhf__strings strings;
    struct config *config;
};

static int setup(void **state) {
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    free(f->config);
    rlhf__strings_finish(&f->strings);
    free(f);
    return 0;
}

// A fresh config from JSON text, which may span lines.
static rlhf_status read_text(struct fixture *f, const char *text, int lenient,
                             struct rlhf__error *err) {
    struct rlhf__origin from = {"c.json", "", text, strlen(text), lenient};
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    free(f->config);
    void *config;
    rlhf_status st =
        rlhf__opts_new(&table, sizeof(struct config), o, &from, &f->strings, &config, err);
    f->config = config;
    json_decref(o);
    return st;
}

static void defaults_then_values(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_ok(read_text(f, "{}", 0, &err), &err);
    assert_true(f->config->rate == 0.5 && f->config->count == 3 && f->config->on == 1);
    assert_int_equal(f->config->mode, 1);
    assert_string_equal(f->config->name, "n");
    assert_null(f->config->path);
    check_ok(
        read_text(f,
                  "{\"rate\": 1, \"count\": 1e1, \"on\": false, \"mode\": \"fast\", \"name\": \"\","
                  " \"path\": \"/x\", \"free_count\": -9223372036854775808, \"open\": 1.5}",
                  0, &err),
        &err);
    assert_true(f->config->rate == 1 && f->config->count == 10 && f->config->on == 0);
    assert_int_equal(f->config->mode, 0);
    assert_string_equal(f->config->name, "");
    assert_string_equal(f->config->path, "/x");
    assert_true(f->config->free_count == INT64_MIN && f->config->open == 1.5);
    check_ok(read_text(f, "{\"path\": null}", 0, &err), &err);
}

static void every_wrong_value_has_its_sentence(void **state) {
    struct fixture *f = *state;
    const struct {
        const char *text, *want;
    } bad[] = {
        {"{\"rate\": 1.01}", "c.json:1: rate must be a number from 0 to 1, found 1.01"},
        {"{\"rate\": -1}", "c.json:1: rate must be a number from 0 to 1, found -1"},
        {"{\"rate\": \"1\"}", "c.json:1: rate must be a number from 0 to 1, found \"1\""},
        {"{\n\n\"rate\": true}", "c.json:3: rate must be a number from 0 to 1, found true"},
        {"{\"rate\": [1]}", "c.json:1: rate must be a number from 0 to 1, found a list"},
        {"{\"rate\": null}", "c.json:1: rate must be a number from 0 to 1, found null"},
        {"{\"open\": 0}", "c.json:1: open must be a number above 0 and below 2, found 0"},
        {"{\"open\": 2}", "c.json:1: open must be a number above 0 and below 2, found 2"},
        {"{\"count\": 0}", "c.json:1: count must be an integer from 1 to 10, found 0"},
        {"{\"count\": 11}", "c.json:1: count must be an integer from 1 to 10, found 11"},
        {"{\"count\": 2.5}", "c.json:1: count must be an integer from 1 to 10, found 2.5"},
        {"{\"count\": 1e300}", "c.json:1: count must be an integer from 1 to 10, found 1e+300"},
        {"{\"free_count\": 1e300}", "c.json:1: free_count must be an integer, found 1e+300"},
        {"{\"on\": 1}", "c.json:1: on must be true or false, found 1"},
        {"{\"mode\": \"fas\"}",
         "c.json:1: mode must be one of fast, slow, found \"fas\" (did you mean \"fast\"?)"},
        {"{\"mode\": 0}", "c.json:1: mode must be one of fast, slow, found 0"},
        {"{\"name\": 5}", "c.json:1: name must be a string, found 5"},
        {"{\"name\": null}", "c.json:1: name must be a string, found null"},
        {"{\"path\": {}}", "c.json:1: path must be a path (a string), found an object"},
        {"{\"words\": [\"one\", \"tow\"]}",
         "c.json:1: words must be a list of any of one, two, three, found a list with \"tow\" (did "
         "you mean \"two\"?)"},
        {"{\"words\": \"one,three,\"}", "c.json:1: words must be a list of any of one, two, three, "
                                        "found a list with \"\""},
        {"{\"words\": 5}", "c.json:1: words must be a list of any of one, two, three, found 5"},
        {"{\"any\": [\"a\", 5]}",
         "c.json:1: any must be a list of strings, as a,b or [\"a\", \"b\"], found a list with 5"},
        {"{\"any\": [[]]}", "c.json:1: any must be a list of strings, as a,b or [\"a\", \"b\"], "
                            "found a list with a list"},
        {"{\"any\": null}",
         "c.json:1: any must be a list of strings, as a,b or [\"a\", \"b\"], found null"},
        {"{\"any\": {}}",
         "c.json:1: any must be a list of strings, as a,b or [\"a\", \"b\"], found an object"},
        {"{\"any\": \"a,,b\"}", "c.json:1: any must be a list of strings, as a,b or [\"a\", "
                                "\"b\"], found a list with \"\""},
        {"{\"rate\": 1,\n \"cuont\": 2}",
         "c.json:2: unknown key \"cuont\" (did you mean \"count\"?)"},
        {"{\"zzzzzzzz\": 2}", "c.json:1: unknown key \"zzzzzzzz\""},
    };
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        struct rlhf__error err = {0};
        assert_int_equal(read_text(f, bad[i].text, 0, &err), RLHF_E_INVALID);
        assert_string_equal(err.text, bad[i].want);
    }
}

static void a_long_value_is_cut(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    char text[300] = "{\"rate\": \"";
    memset(text + strlen(text), 'x', 200);
    strcat(text, "\"}");
    assert_int_equal(read_text(f, text, 0, &err), RLHF_E_INVALID);
    assert_true(strlen(err.text) < 140);
    assert_non_null(strstr(err.text, "xxx..."));
}

static void lenient_origins_skip_and_default(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    check_ok(read_text(f, "{\"other\": {}, \"count\": null, \"rate\": 0.25}", 1, &err), &err);
    assert_true(f->config->count == 3 && f->config->rate == 0.25);
    check_error(read_text(f, "{\"count\": 99}", 1, &err), RLHF_E_INVALID, &err, "found 99");
}

// Origins may name members of objects and items of lists, as in a checkpoint's config.json.
static void lenient_origins_look_inside(void **state) {
    struct fixture *f = *state;
    static const char *const words[] = {"full", "half", NULL};
    const rlhf_opt rows[] = {{.key = "rope.rate",
                              .type = RLHF_T_F64,
                              .offset = offsetof(struct config, rate),
                              .f_max = 1},
                             {.key = "kinds[]",
                              .type = RLHF_T_ENUM,
                              .offset = offsetof(struct config, mode),
                              .choices = words},
                             {.key = "none",
                              .type = RLHF_T_ENUM,
                              .offset = offsetof(struct config, on),
                              .choices = words}};
    const struct rlhf__opt_table inside = {rows, 3, sizeof *rows};
    static const struct {
        const char *text, *error;
        double rate;
        int32_t mode, lenient;
    } cases[] = {
        {"{\"rope\": {\"rate\": 0.5, \"other\": [1]}, \"kinds\": [\"full\", \"half\"]}", NULL, 0.5,
         1, 1},
        {"{\"rope\": {\"rate\": null}, \"kinds\": [], \"rope.rates\": 3}", NULL, 0, 0, 1},
        {"{\"rope\": null, \"kinds\": \"half\"}", NULL, 0, 0, 1},
        {"{\"rope\": {\"rate\": 2}}", "rope.rate must be a number from 0 to 1, found 2", 0, 0, 1},
        {"{\"kinds\": [\"full\", \"less\", \"half\"]}",
         "kinds[] must be one of full, half, found \"less\"", 0, 0, 1},
        {"{\"none\": {\"full\": 1}}", "none must be one of full, half, found an object", 0, 0, 1},
        {"{\"rope\": {\"rate\": 0.5}}", "unknown key \"rope\"", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rlhf__origin from = {"config.json", "", NULL, 0, cases[i].lenient};
        struct rlhf__error err = {0};
        json_t *o = json_loads(cases[i].text, 0, NULL);
        void *made = NULL;
        rlhf_status st =
            rlhf__opts_new(&inside, sizeof(struct config), o, &from, &f->strings, &made, &err);
        json_decref(o);
        if (cases[i].error) {
            check_error(st, RLHF_E_INVALID, &err, cases[i].error);
            continue;
        }
        check_ok(st, &err);
        const struct config *c = made;
        assert_true(c->rate == cases[i].rate && c->mode == cases[i].mode);
        free(made);
    }
}

static void typed_text_is_a_string_where_one_is_wanted(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct rlhf__origin from = {"--set", "s", NULL, 0, 0};
    json_t *five = json_integer(5);
    check_ok(read_text(f, "{}", 0, &err), &err);
    check_ok(rlhf__opts_set(&table, "name", five, "5", &from, f->config, &f->strings, &err), &err);
    assert_string_equal(f->config->name, "5");
    rlhf_status st = rlhf__opts_set(&table, "mode", five, "5", &from, f->config, &f->strings, &err);
    json_decref(five);
    check_error(st, RLHF_E_INVALID, &err, "--set: s.mode must be one of fast, slow, found 5");
}

static void expect_list(const char *const *got, const char *want) {
    char text[256] = "";
    for (; *got; got++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s|", *got);
    assert_string_equal(text, want);
}

// Lists are never NULL, and the strings of the config own them.
static void lists_are_read_from_json_and_from_text(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *text, *words, *any;
        int32_t defaults[2];
    } cases[] = {
        {"{}", "two|", "", {1, 1}},
        {"{\"words\": [], \"any\": [\"a,b\", \"\", \"c\"]}", "", "a,b||c|", {0, 0}},
        {"{\"words\": \"three,one\", \"any\": \"a\"}", "three|one|", "a|", {0, 0}},
        {"{\"words\": [\"two\"], \"any\": \"\"}", "two|", "", {1, 1}},
        {"{\"words\": [\"two\", \"two\"]}", "two|two|", "", {0, 1}},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0};
        check_ok(read_text(f, cases[i].text, 0, &err), &err);
        expect_list(f->config->words, cases[i].words);
        expect_list(f->config->any, cases[i].any);
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(rlhf__opt_is_default(&opts[CHECK_COUNT(opts) - 2 + k], f->config),
                             cases[i].defaults[k]);
    }
}

// If an option takes a list, a typed number or boolean becomes a list of one string.
static void typed_text_is_a_list(void **state) {
    struct fixture *f = *state;
    static const char *const typed[][2] = {
        {"5", "5|"}, {"5,6", "5|6|"}, {"true", "true|"}, {"[\"x\", \"y\"]", "x|y|"}, {"", ""}};
    for (size_t i = 0; i < CHECK_COUNT(typed); i++) {
        struct rlhf__error err = {0};
        struct rlhf__origin from = {"--set", "s", NULL, 0, 0};
        json_t *v = json_loads(typed[i][0], JSON_DECODE_ANY, NULL);
        if (!v) v = json_string(typed[i][0]);
        check_ok(read_text(f, "{}", 0, &err), &err);
        check_ok(rlhf__opts_set(&table, "any", v, typed[i][0], &from, f->config, &f->strings, &err),
                 &err);
        json_decref(v);
        expect_list(f->config->any, typed[i][1]);
    }
}

// ---- lists of numbers ----

struct numbers {
    rlhf_i64_list layers;
    rlhf_f64_list factor, open;
};

static const rlhf_opt number_opts[] = {
    RLHF_OPT_I64_LIST(struct numbers, layers, 0, 1, "layers"),
    {.key = "rope.factor",
     .help = "factors",
     .type = RLHF_T_F64_LIST,
     .offset = offsetof(struct numbers, factor),
     .f_max = 1e30},
    {.key = "open",
     .help = "not 0",
     .type = RLHF_T_F64_LIST,
     .flags = RLHF_OPT_MIN_OPEN,
     .offset = offsetof(struct numbers, open),
     .f_max = 2},
};
static const struct rlhf__opt_table number_table = {number_opts, CHECK_COUNT(number_opts),
                                                    sizeof *number_opts};

static rlhf_status read_numbers(struct fixture *f, const char *text, struct numbers **out,
                                struct rlhf__error *err) {
    const struct rlhf__origin from = {"config.json", "", text, strlen(text), 1};
    json_t *o = json_loads(text, 0, NULL);
    void *config;
    assert_non_null(o);
    const rlhf_status st =
        rlhf__opts_new(&number_table, sizeof(struct numbers), o, &from, &f->strings, &config, err);
    free(f->config);
    f->config = config;
    *out = config;
    json_decref(o);
    return st;
}

// As in the config.json of a model: a list of a layer's kinds, and factors inside an object.
static void lists_of_numbers(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct numbers *c;
    check_ok(rlhf__opts_check(&number_table, sizeof *c, &err), &err);
    check_ok(read_numbers(f, "{}", &c, &err), &err);
    assert_true(c->layers.len == 0 && c->factor.len == 0 && rlhf__opt_is_default(number_opts, c));
    check_ok(read_numbers(f,
                          "{\"layers\": [1, 1.0, 0], \"rope\": {\"factor\": [1, 2.5, 1e3], "
                          "\"type\": \"x\"}}",
                          &c, &err),
             &err);
    assert_int_equal(c->layers.len, 3);
    assert_true(c->layers.ptr[0] == 1 && c->layers.ptr[1] == 1 && c->layers.ptr[2] == 0);
    assert_int_equal(c->factor.len, 3);
    assert_true(c->factor.ptr[0] == 1 && c->factor.ptr[1] == 2.5 && c->factor.ptr[2] == 1000);
    assert_false(rlhf__opt_is_default(&number_opts[1], c));
    json_t *all = json_object(), *want = NULL;
    check_ok(rlhf__opts_to_json(&number_table, c, all, &err), &err);
    want = json_loads("{\"layers\": [1, 1, 0], \"rope.factor\": [1.0, 2.5, 1000.0], \"open\": []}",
                      0, NULL);
    assert_true(json_equal(all, want));
    json_decref(all);
    json_decref(want);
    all = rlhf__opts_schema(&number_table);
    want = json_loads("{\"layers\": {\"description\": \"layers\", \"type\": \"array\", \"items\": "
                      "{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 1}, \"default\": []},"
                      " \"rope.factor\": {\"description\": \"factors\", \"type\": \"array\", "
                      "\"items\": {\"type\": \"number\", \"minimum\": 0.0}, \"default\": []},"
                      " \"open\": {\"description\": \"not 0\", \"type\": \"array\", \"items\": "
                      "{\"type\": \"number\", \"exclusiveMinimum\": 0.0, \"maximum\": 2.0}, "
                      "\"default\": []}}",
                      0, NULL);
    assert_true(json_equal(all, want));
    json_decref(all);
    json_decref(want);
}

static void the_range_is_that_of_each_item(void **state) {
    struct fixture *f = *state;
    static const char *const cases[][2] = {
        {"{\"layers\": [1, 2]}", "config.json:1: layers must be a list of integers from 0 to 1, as "
                                 "1,2 or [1, 2], found a list with 2"},
        {"{\"layers\": [1, 0.5]}", "found a list with 0.5"},
        {"{\"layers\": [true]}", "found a list with true"},
        {"{\"layers\": [\"1\"]}", "found a list with \"1\""},
        {"{\"layers\": [[1]]}", "found a list with a list"},
        {"{\"layers\": {\"a\": 1}}", "found an object"},
        {"{\"open\": [1, 0]}", "open must be a list of numbers above 0 and at most 2, as 1,2.5 or "
                               "[1, 2.5], found a list with 0"},
        {"{\"rope\": {\"factor\": [1, -1]}}",
         "rope.factor must be a list of numbers of at least 0"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0};
        struct numbers *c;
        check_error(read_numbers(f, cases[i][0], &c, &err), RLHF_E_INVALID, &err, cases[i][1]);
    }
}

static void typed_text_is_a_list_of_numbers(void **state) {
    struct fixture *f = *state;
    static const struct {
        const char *typed, *says; // says NULL: it is read
        uint64_t n;
    } cases[] = {
        {"1,2.5,-0", NULL, 3},        {"7", NULL, 1},         {"", NULL, 0},
        {"[1, 2]", NULL, 2},          {"1,,2", "nothing", 0}, {"1,x", "found a list with x", 0},
        {"true", "list with true", 0}};
    struct rlhf__error err = {0};
    struct numbers *c;
    check_ok(read_numbers(f, "{}", &c, &err), &err);
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        const struct rlhf__origin from = {"--set", "s", NULL, 0, 0};
        json_t *v = json_loads(cases[i].typed, JSON_DECODE_ANY, NULL);
        if (!v) v = json_string(cases[i].typed);
        const rlhf_status st = rlhf__opts_set(&number_table, "rope.factor", v, cases[i].typed,
                                              &from, c, &f->strings, &err);
        json_decref(v);
        if (cases[i].says)
            check_error(st, RLHF_E_INVALID, &err, cases[i].says);
        else
            assert_true(st == RLHF_OK && c->factor.len == cases[i].n);
    }
}

static void a_list_with_a_wrong_default_is_refused(void **state) {
    (void)state;
    static const char *const other[] = {"one", "four", NULL}, *const none[] = {NULL};
    const rlhf_opt wrong = RLHF_OPT_LIST(struct config, words, other, some, ""),
                   empty = RLHF_OPT_LIST(struct config, words, NULL, none, "");
    const struct rlhf__opt_table a = {&wrong, 1, sizeof wrong}, b = {&empty, 1, sizeof empty};
    struct rlhf__error err = {0};
    check_error(rlhf__opts_check(&a, sizeof(struct config), &err), RLHF_E_UNSUPPORTED, &err,
                "its option \"words\" has a default with an item that is not a choice");
    check_error(rlhf__opts_check(&b, sizeof(struct config), &err), RLHF_E_UNSUPPORTED, &err,
                "its option \"words\" has no choices");
}

static void required_keys(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    const rlhf_opt one[] = {
        RLHF_OPT_F64_FLAGS(struct config, rate, RLHF_OPT_REQUIRED, 0, 0, 1, "a rate")};
    const struct rlhf__opt_table t = {one, 1, sizeof *one};
    struct rlhf__origin from = {"ppo.so", "algo", NULL, 0, 0};
    void *config;
    check_error(rlhf__opts_new(&t, 8, NULL, &from, &f->strings, &config, &err), RLHF_E_INVALID,
                &err, "ppo.so: algo.rate is missing; it must be a number from 0 to 1");
    assert_null(config);
}

static void json_and_back(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    json_t *a = json_object(), *b = json_object();
    check_ok(read_text(f,
                       "{\"rate\": 0.1, \"mode\": \"fast\", \"path\": \"p\", \"on\": false, "
                       "\"words\": \"one,two\", \"any\": [\"\"]}",
                       0, &err),
             &err);
    check_ok(rlhf__opts_to_json(&table, f->config, a, &err), &err);
    assert_int_equal(json_object_size(a), CHECK_COUNT(opts));
    char *text = json_dumps(a, 0);
    check_ok(read_text(f, text, 0, &err), &err);
    check_ok(rlhf__opts_to_json(&table, f->config, b, &err), &err);
    assert_true(json_equal(a, b));
    free(text);
    json_decref(a);
    json_decref(b);
}

static void a_table_of_a_future_sdk_has_a_longer_stride(void **state) {
    struct fixture *f = *state;
    struct rlhf__error err = {0};
    struct longer {
        rlhf_opt now;
        const char *unit;
    } rows[] = {{RLHF_OPT_I64(struct config, count, 3, 1, 10, "a count"), "things"},
                {RLHF_OPT_F64(struct config, rate, 0.5, 0, 1, "a rate"), "1/s"}};
    const struct rlhf__opt_table t = {&rows[0].now, 2, sizeof *rows};
    struct rlhf__origin from = {"x", "", NULL, 0, 0};
    json_t *o = json_pack("{sf}", "rate", 0.75);
    void *config;
    check_ok(rlhf__opts_check(&t, sizeof(struct config), &err), &err);
    check_ok(rlhf__opts_new(&t, sizeof(struct config), o, &from, &f->strings, &config, &err), &err);
    assert_true(((struct config *)config)->rate == 0.75);
    free(config);
    json_decref(o);
    struct rlhf__opt_table read;
    check_error(rlhf__opt_table_init(&read, &rows[0].now, 2, sizeof *rows, &err),
                RLHF_E_UNSUPPORTED, &err, "row 0 of its option table uses a field newer than this");
    rows[0].unit = rows[1].unit = NULL;
    check_ok(rlhf__opt_table_init(&read, &rows[0].now, 2, sizeof *rows, &err), &err);
    assert_int_equal(read.n, 2);
}

// Rows may grow, so a table states their size. A host whose rows are longer must not guess it.
static void a_stride_of_no_version_is_refused(void **state) {
    (void)state;
    enum { FIRST = RLHF_SIZE_TO(rlhf_opt, n_table) };
    struct rlhf__error err = {0};
    struct rlhf__opt_table t;
    check_error(rlhf__opt_table_init(&t, opts, 2, 0, &err), RLHF_E_UNSUPPORTED, &err,
                "stride of 0 bytes; 120 to 4096");
    check_error(rlhf__opt_table_init(&t, opts, 2, FIRST - 8, &err), RLHF_E_UNSUPPORTED, &err,
                "stride of 112 bytes; 120 to 4096");
    check_error(rlhf__opt_table_init(&t, opts, 2, FIRST + 4, &err), RLHF_E_UNSUPPORTED, &err,
                "stride of 124 bytes");
    check_ok(rlhf__opt_table_init(&t, NULL, 0, 0, &err), &err);
    assert_int_equal(t.n, 0);
}

// An option table can include another. The rows of the included table take the place of the
// include.
static void a_table_may_include_another(void **state) {
    (void)state;
    struct outer {
        int64_t before;
        struct config inner;
        int64_t after;
    };
    const rlhf_opt rows[] = {RLHF_OPT_I64(struct outer, before, 1, 0, 9, "in front"),
                             RLHF_OPT_TABLE(struct outer, inner, opts, CHECK_COUNT(opts)),
                             RLHF_OPT_I64(struct outer, after, 2, 0, 9, "behind")};
    struct rlhf__error err = {0};
    struct rlhf__opt_table t;
    check_ok(rlhf__opt_table_init(&t, rows, CHECK_COUNT(rows), sizeof *rows, &err), &err);
    assert_int_equal(t.n, CHECK_COUNT(opts) + 2);
    check_ok(rlhf__opts_check(&t, sizeof(struct outer), &err), &err);
    assert_int_equal(rlhf__opt_find(&t, "before"), 0);
    assert_int_equal(rlhf__opt_find(&t, "count"), 3);
    assert_int_equal(rlhf__opt_find(&t, "after"), (int)t.n - 1);
    rlhf_opt o;
    rlhf__opt_at(&t, 3, &o);
    assert_int_equal(o.offset, offsetof(struct outer, inner) + offsetof(struct config, count));
    assert_int_equal(rlhf_opt_at(rows, CHECK_COUNT(rows), sizeof *rows, t.n, &o), 0);
    check_error(rlhf__opts_check(&t, sizeof(struct outer) - 16, &err), RLHF_E_UNSUPPORTED, &err,
                "lies outside the config struct");
}

static void schema_of_a_table(void **state) {
    (void)state;
    json_t *got = rlhf__opts_schema(&table);
    json_t *want = json_loads(
        "{\"rate\": {\"description\": \"a rate\", \"type\": \"number\", \"minimum\": 0.0,"
        "            \"maximum\": 1.0, \"default\": 0.5},"
        " \"open\": {\"description\": \"an open range\", \"type\": \"number\","
        "            \"exclusiveMinimum\": 0.0, \"exclusiveMaximum\": 2.0, \"default\": 1.0},"
        " \"count\": {\"description\": \"a count\", \"type\": \"integer\", \"minimum\": 1,"
        "            \"maximum\": 10, \"default\": 3},"
        " \"free_count\": {\"description\": \"any integer\", \"type\": \"integer\", \"default\": "
        "0},"
        " \"on\": {\"description\": \"a switch\", \"type\": \"boolean\", \"default\": true},"
        " \"mode\": {\"description\": \"a mode\", \"enum\": [\"fast\", \"slow\"],"
        "            \"default\": \"slow\"},"
        " \"name\": {\"description\": \"a name\", \"type\": \"string\", \"default\": \"n\"},"
        " \"path\": {\"description\": \"a path\", \"type\": [\"string\", \"null\"],"
        "            \"default\": null},"
        " \"words\": {\"description\": \"some words\", \"type\": \"array\", \"items\": {\"enum\":"
        "            [\"one\", \"two\", \"three\"]}, \"default\": [\"two\"]},"
        " \"any\": {\"description\": \"any words\", \"type\": \"array\", \"items\":"
        "            {\"type\": \"string\"}, \"default\": []}}",
        0, NULL);
    assert_non_null(want);
    assert_true(json_equal(got, want));
    json_decref(got);
    json_decref(want);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(defaults_then_values),
        T(every_wrong_value_has_its_sentence),
        T(a_long_value_is_cut),
        T(lenient_origins_skip_and_default),
        T(lenient_origins_look_inside),
        T(typed_text_is_a_string_where_one_is_wanted),
        T(lists_are_read_from_json_and_from_text),
        T(typed_text_is_a_list),
        T(lists_of_numbers),
        T(the_range_is_that_of_each_item),
        T(typed_text_is_a_list_of_numbers),
        T(a_list_with_a_wrong_default_is_refused),
        T(required_keys),
        T(json_and_back),
        T(a_table_of_a_future_sdk_has_a_longer_stride),
        T(a_stride_of_no_version_is_refused),
        T(a_table_may_include_another),
        T(schema_of_a_table),
    };
    return cmocka_run_group_tests_name("config_options", tests, NULL, NULL);
}
