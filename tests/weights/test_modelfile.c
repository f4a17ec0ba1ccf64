// test_modelfile.c: Modelfiles of Ollama, from chat templates of several forms.
#include "gguf_model.h"

#include "export/modelfile.h"

#include <jansson.h>

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

static void check(struct scratch *s, const char *want) {
    struct rlhf__error err = {0, ""};
    struct rlhf__buf out = RLHF__BUF_INIT;
    json_t *config = json_pack("{s:[i, i]}", "eos_token_id", 4, 1);
    const struct rlhf__modelfile m = {s->dir, config, "./m.gguf", NULL};
    check_ok(rlhf__modelfile_make(&m, &out, &err), &err);
    assert_string_equal(rlhf__buf_text(&out), want);
    rlhf__buf_finish(&out);
    json_decref(config);
}

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
    static const char *const bad[] = {"x\\\"\\\"\\\"\\nADAPTER /x", "x\\\"", "\\\"x",
                                      "x\\u001b[31m"};
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
        check(*state,
              i < CHECK_COUNT(bad)
                  ? "FROM ./m.gguf\n# No TEMPLATE: the model has no chat template.\n# Token 4 also "
                    "ends responses, but no line can hold its text.\nPARAMETER stop \"<s>\"\n"
                  : "FROM ./m.gguf\n# No TEMPLATE: the model has no chat template.\nPARAMETER stop "
                    "\"\"\"x\"y\n\"\"\"\nPARAMETER stop \"<s>\"\n");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chatml, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(inside, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(no_system, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(underived, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(foreign_stops, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("modelfile", tests, NULL, NULL);
}
