// test_modelfile.c: Modelfiles of Ollama, from chat templates of several forms.
#include "gguf_model.h"

#include "export/modelfile.h"

#include <jansson.h>
#include <strings.h>

// ---- a reader of Modelfiles, by the grammar in Ollama's documentation ----

// What a Modelfile says. The texts point into a copy of it.
struct parsed {
    char *copy, *from, *adapter, *template, *stop[4];
    int n_stops;
};

// Ends a value and returns it. In quotes it ends at the last quote of its line, in three quotes at
// the next three; otherwise with its line, without spaces around it. *rest is the next line.
static char *value_of(char *at, char **rest) {
    while (*at == ' ' || *at == '\t')
        at++;
    const int three = strncmp(at, "\"\"\"", 3) == 0;
    char *end = three ? strstr(at + 3, "\"\"\"") : at + strcspn(at, "\n");
    if (!end) fail_msg("three quotes have no end: %s", at);
    if (three) {
        at += 3;
        if (end[3] != '\n') fail_msg("text after three quotes: %s", end);
        *rest = end + 4;
        *end = '\0';
        return at;
    }
    if (*end != '\n') fail_msg("a line has no end: %s", at);
    *rest = end + 1;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    if (*at != '"') return at;
    if (end == at + 1 || end[-1] != '"') fail_msg("a quote has no end: %s", at);
    end[-1] = '\0';
    return at + 1;
}

static void set(char **to, char *value) {
    if (*to) fail_msg("given twice: %s", value);
    *to = value;
}

static char *line_of(struct parsed *p, char *at) {
    char *rest = at + strcspn(at, "\n");
    if (*at == '#' || *at == '\n') return rest + (*rest == '\n');
    const size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
    if (n == 0 || at[n] != ' ') fail_msg("no instruction: %s", at);
    char *value = value_of(at + n, &rest);
    if (n == 4 && strncasecmp(at, "FROM", n) == 0) {
        set(&p->from, value);
    } else if (n == 7 && strncasecmp(at, "ADAPTER", n) == 0) {
        set(&p->adapter, value);
    } else if (n == 8 && strncasecmp(at, "TEMPLATE", n) == 0) {
        set(&p->template, value);
    } else if (n == 9 && strncasecmp(at, "PARAMETER", n) == 0) {
        fail_msg("a value without a name: %s", value);
    } else {
        fail_msg("an instruction that Ollama lacks, or that the writer does not write: %s", at);
    }
    return rest;
}

static char *parameter_of(struct parsed *p, char *at) {
    char *rest;
    at += strlen("PARAMETER ");
    if (strncmp(at, "stop ", 5) != 0) fail_msg("the writer writes no such parameter: %s", at);
    assert_in_range(p->n_stops, 0, 3);
    p->stop[p->n_stops++] = value_of(at + 5, &rest);
    return rest;
}

static void parse(const char *text, struct parsed *p) {
    *p = (struct parsed){.copy = strdup(text)};
    for (char *at = p->copy; *at;)
        at = strncasecmp(at, "PARAMETER ", 10) == 0 ? parameter_of(p, at) : line_of(p, at);
}

// ---- what is written ----

// `add_bos`: the tokenizer puts <s> before a text.
static void make(struct scratch *s, const char *template, int add_bos) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *config = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "<tool>");
    if (template) json_object_set_new(config, "chat_template", json_string(template));
    char *dumped = json_dumps(config, 0);
    scratch_text(s, "tokenizer_config.json", dumped);
    rlhf__buf_printf(&text, BPE "\"pre_tokenizer\": " BYTE_LEVEL ", \"post_processor\": %s}",
                     add_bos ? "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": "
                               "{\"id\": \"<s>\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", "
                               "\"type_id\": 0}}], \"pair\": [], \"special_tokens\": {\"<s>\": "
                               "{\"id\": \"<s>\", \"ids\": [1], \"tokens\": [\"<s>\"]}}}"
                             : "null");
    tokenizer_text(s, "tokenizer.json", rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    free(dumped);
    json_decref(config);
}

// `stop`: the text of token 4, or NULL if it does not fit in a line.
static void check_stop(struct scratch *s, const char *want, const char *stop) {
    struct rlhf__error err = {0, ""};
    struct rlhf__buf out = RLHF__BUF_INIT;
    struct parsed p;
    json_t *config = json_pack("{s:[i, i]}", "eos_token_id", 4, 1);
    const struct rlhf__modelfile m = {s->dir, config, "./m.gguf", NULL};
    check_ok(rlhf__modelfile_make(&m, &out, &err), &err);
    assert_string_equal(rlhf__buf_text(&out), want);
    parse(rlhf__buf_text(&out), &p);
    assert_string_equal(p.from, "./m.gguf");
    assert_null(p.adapter);
    assert_int_equal(p.n_stops, stop ? 2 : 1);
    if (stop) assert_string_equal(p.stop[0], stop);
    assert_string_equal(p.stop[p.n_stops - 1], "<s>");
    if (p.template) assert_memory_equal(p.template, "{{- range", 9);
    free(p.copy);
    rlhf__buf_finish(&out);
    json_decref(config);
}

static void check(struct scratch *s, const char *want) { check_stop(s, want, "<tool>"); }

#define STOPS "PARAMETER stop \"<tool>\"\nPARAMETER stop \"<s>\"\n"
#define RANGE                                                                                      \
    "TEMPLATE \"\"\"{{- range $i, $_ := .Messages }}{{- $last := eq (len (slice $.Messages $i)) "  \
    "1 }}\n{{- if eq .Role \"user\" }}{{ if lt $i 2 }}"
#define END "{{ end }}\n{{- end }}\n{{- end }}\"\"\"\n"

// The template adds a default system message to conversations without one.
static void chatml(void **state) {
    make(*state,
         "{% for m in messages %}{% if loop.first and m.role != 'system' %}<|im|>system\nBe \"é\"."
         "<tool>\n{% endif %}<|im|>{{ m.role }}\n{{ m.content }}<tool>\n{% endfor %}"
         "{% if add_generation_prompt %}<|im|>assistant\n{% endif %}",
         0);
    check(*state,
          "FROM ./m.gguf\n" RANGE
          "{{ if $.System }}{{ \"<|im|>system\\n\" }}{{ $.System }}{{ \"<tool>\\n<|im|>user\\n\" "
          "}}{{ else }}{{ \"<|im|>system\\nBe \\x22\\xc3\\xa9\\x22.<tool>\\n<|im|>user\\n\" }}{{ "
          "end }}\n{{- else }}{{ \"<|im|>user\\n\" }}{{ end }}{{ .Content }}{{ \"<tool>\\n\" }}{{ "
          "if $last }}{{ \"<|im|>assistant\\n\" }}{{ end }}\n{{- else if eq .Role \"assistant\" "
          "}}{{ \"<|im|>assistant\\n\" }}{{ .Content }}{{ if not $last }}{{ \"<tool>\\n\" }}" END
              STOPS);
}

// The system message is written inside the first user message, answers are written without a
// header, and the tokenizer adds BOS.
static void inside(void **state) {
    static const char template[] =
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[Q]{% if loop.index0 == 1 "
        "and messages[0].role == 'system' %}({{ messages[0].content }}){% endif %}{{ m.content }}"
        "[/Q]{% elif m.role == 'assistant' %}{{ m.content }}<tool>{% endif %}{% endfor %}";
    for (int add_bos = 0; add_bos < 2; add_bos++) {
        make(*state, template, add_bos);
        check(*state,
              add_bos
                  ? "FROM ./m.gguf\n" RANGE
                    "{{ if $.System }}{{ \"[Q](\" }}{{ $.System }}{{ \")\" }}{{ else }}{{ "
                    "\"[Q]\" }}{{ end }}\n{{- else }}{{ \"[Q]\" }}{{ end }}{{ .Content }}{{ "
                    "\"[/Q]\" }}{{ if $last }}{{ end }}\n{{- else if eq .Role \"assistant\" "
                    "}}{{ .Content }}{{ if not $last }}{{ \"<tool>\" }}" END STOPS
                  : "FROM ./m.gguf\n" RANGE
                    "{{ if $.System }}{{ \"<s>[Q](\" }}{{ $.System }}{{ \")\" }}{{ else }}{{ "
                    "\"<s>[Q]\" }}{{ end }}\n{{- else }}{{ \"[Q]\" }}{{ end }}{{ .Content "
                    "}}{{ \"[/Q]\" }}{{ if $last }}{{ end }}\n{{- else if eq .Role "
                    "\"assistant\" }}{{ .Content }}{{ if not $last }}{{ \"<tool>\" }}" END STOPS);
    }
}

static void no_system(void **state) {
    make(*state,
         "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
         "{{ m.role }}: {{ m.content }}<tool>{% endfor %}{% if add_generation_prompt %}assistant: "
         "{% endif %}",
         0);
    check(*state,
          "FROM ./m.gguf\n# The model's chat template refuses system messages; TEMPLATE leaves "
          "them out.\n" RANGE
          "{{ \"user: \" }}\n{{- else }}{{ \"user: \" }}{{ end }}{{ .Content }}{{ \"<tool>\" }}{{ "
          "if $last }}{{ \"assistant: \" }}{{ end }}\n{{- else if eq .Role \"assistant\" }}{{ "
          "\"assistant: \" }}{{ .Content }}{{ if not $last }}{{ \"<tool>\" }}" END STOPS);
}

// Without a date, the template leaves it out.
static void dated(void **state) {
    make(*state,
         "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% endif %}"
         "{% for m in messages %}{{ m.role }}: {{ m.content }}<tool>{% endfor %}"
         "{% if add_generation_prompt %}assistant: {% endif %}",
         0);
    check(
        *state,
        "FROM ./m.gguf\n# TEMPLATE does not know today's date; the model's chat template "
        "does.\n" RANGE
        "{{ if $.System }}{{ \"system: \" }}{{ $.System }}{{ \"<tool>user: \" }}{{ else }}{{ "
        "\"user: \" }}{{ end }}\n{{- else }}{{ \"user: \" }}{{ end }}{{ .Content }}{{ "
        "\"<tool>\" }}{{ if $last }}{{ \"assistant: \" }}{{ end }}\n{{- else if eq .Role "
        "\"assistant\" }}{{ \"assistant: \" }}{{ .Content }}{{ if not $last }}{{ \"<tool>\" }}" END
            STOPS);
}

// Templates that do more than put texts around messages.
static void underived(void **state) {
    static const char *const templates[] = {
        // numbers the messages
        "{% for m in messages %}{{ loop.index }} {{ m.content }}<tool>{% endfor %}",
        // drops early messages
        "{% for m in messages[-2:] %}{{ m.role }} {{ m.content }}<tool>{% endfor %}",
        // changes a message
        "{% for m in messages %}{{ m.content | upper }}<tool>{% endfor %}",
        // says something else in long conversations
        "{% for m in messages %}{{ m.content }}<tool>{% endfor %}{% if messages | length > 4 %}!"
        "{% endif %}",
        // the same, and no system messages
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
        "{{ m.content }}<tool>{% endfor %}{% if messages | length > 4 %}!{% endif %}",
        // two system messages
        "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}{% endif %}"
        "{{ m.content }}<tool>{% endfor %}"};
    for (size_t i = 0; i < sizeof templates / sizeof *templates; i++) {
        make(*state, templates[i], 0);
        check(*state,
              "FROM ./m.gguf\n# No TEMPLATE: the model's chat template does more than put texts "
              "around messages.\n# Ollama then takes the nearest one that it has, which may "
              "differ, or none.\n" STOPS);
    }
    make(*state, NULL, 0);
    check(*state, "FROM ./m.gguf\n# No TEMPLATE: the model has no chat template.\n" STOPS);
}

// Texts that would end the value, and so write lines of their own.
static void foreign_stops(void **state) {
    static const char *const bad[] = {"x\\\"\\\"\\\"\\nADAPTER /x",
                                      "x\\\"",
                                      "\\\"x",
                                      "x\\u001b[31m",
                                      "x\\u00a0y",  // a no-break space
                                      "x\\u200by",  // no width
                                      "x\\u007fy"}; // DEL
    for (size_t i = 0; i <= CHECK_COUNT(bad); i++) {
        const char *token = i < CHECK_COUNT(bad) ? bad[i] : "x\\\"y\\n"; // the last one is written
        struct rlhf__buf text = RLHF__BUF_INIT;
        scratch_text(*state, "tokenizer_config.json", "{\"bos_token\": \"<s>\"}");
        rlhf__buf_printf(
            &text,
            "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"<s>\": 1, \"b\": 2, "
            "\"ab\": 3, \"%s\": 4@}, \"merges\": [[\"a\", \"b\"]]}, \"added_tokens\": "
            "[{\"id\": 1, \"content\": \"<s>\", \"special\": true}, {\"id\": 4, "
            "\"content\": \"%s\", \"special\": false}], \"pre_tokenizer\": " BYTE_LEVEL "}",
            token, token);
        tokenizer_text(*state, "tokenizer.json", rlhf__buf_text(&text));
        rlhf__buf_finish(&text);
        check_stop(
            *state,
            i < CHECK_COUNT(bad)
                ? "FROM ./m.gguf\n# No TEMPLATE: the model has no chat template.\n# Token 4 also "
                  "ends responses, but no line can hold its text.\nPARAMETER stop \"<s>\"\n"
                : "FROM ./m.gguf\n# No TEMPLATE: the model has no chat template.\nPARAMETER stop "
                  "\"\"\"x\"y\n\"\"\"\nPARAMETER stop \"<s>\"\n",
            i < CHECK_COUNT(bad) ? NULL : "x\"y\n");
    }
}

// Paths with spaces, with quotes, and with characters that do not fit in a line.
static void paths(void **state) {
    static const char *const cases[][3] = {
        {"/my files/b.gguf", "FROM /my files/b.gguf\n", "/my files/b.gguf"},
        {"/b.gguf ", "FROM \"/b.gguf \"\n", "/b.gguf "},
        {"/\"b\".gguf\"", "FROM /\"b\".gguf\"\n", "/\"b\".gguf\""},
        {"/\xc3\xa9.gguf", "FROM /\xc3\xa9.gguf\n", "/\xc3\xa9.gguf"},
        {"/x\nADAPTER /y", NULL, NULL},
        {"/x\ty", NULL, NULL},
        {"/x\xc2\xa0y", NULL, NULL},
        {"/x\xffy", NULL, NULL}};
    struct rlhf__error err = {0, ""};
    make(*state, NULL, 0);
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__buf out = RLHF__BUF_INIT;
        struct parsed p;
        json_t *config = json_object();
        const struct rlhf__modelfile m = {((struct scratch *)*state)->dir, config, cases[i][0],
                                          "./a.gguf"};
        check_ok(rlhf__modelfile_make(&m, &out, &err), &err);
        const char *want = cases[i][1] ? cases[i][1] : "# FROM is missing: no line can hold";
        assert_memory_equal(rlhf__buf_text(&out), want, strlen(want));
        parse(rlhf__buf_text(&out), &p);
        assert_string_equal(p.adapter, "./a.gguf");
        if (cases[i][2])
            assert_string_equal(p.from, cases[i][2]);
        else
            assert_null(p.from);
        free(p.copy);
        rlhf__buf_finish(&out);
        json_decref(config);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chatml, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(inside, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(no_system, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(dated, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(underived, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(foreign_stops, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(paths, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("modelfile", tests, NULL, NULL);
}
