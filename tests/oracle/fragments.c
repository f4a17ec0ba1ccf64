// fragments.c: templates rendered with variables, for fragments.py.
//   fragments VARS.json    reads lines {"template": "..."} from standard input, and writes
//                          {"text": "..."}, {"raised": "..."} or {"refused": "..."}
#include "base/json.h"
#include "jinja/jinja_parse.h"
#include "jinja/jinja_run.h"

#include <stdio.h>
#include <stdlib.h>

static json_t *render(const json_t *vars, const json_t *template) {
    struct rlhf__jinja j = {0};
    struct rlhf__jinja_result out = {0};
    struct rlhf__error err = {0, ""};
    const struct rlhf__jinja_input in = {.vars = vars};
    json_t *answer;
    rlhf_status st =
        rlhf__jinja_parse(json_string_value(template), json_string_length(template), &j, &err);
    if (st == RLHF_OK) st = rlhf__jinja_run(&j, &in, &out, &err);
    if (st != RLHF_OK)
        answer = json_pack("{s:o}", "refused", rlhf__json_text(err.text));
    else if (out.raised)
        answer = json_pack("{s:o}", "raised", rlhf__json_text(out.why));
    else
        answer = json_pack("{s:o}", "text",
                           json_stringn(rlhf__buf_text(&out.turns.text), out.turns.text.len));
    rlhf__turns_finish(&out.turns);
    rlhf__jinja_finish(&j);
    return answer;
}

int main(int argc, char **argv) {
    char *line = NULL;
    size_t cap = 0;
    json_t *vars = argc == 2 ? json_load_file(argv[1], JSON_ALLOW_NUL, NULL) : NULL;
    if (!vars) {
        fprintf(stderr, "usage: fragments VARS.json\n");
        return 1;
    }
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        json_t *row = rlhf__json_decode(line, (size_t)n, JSON_ALLOW_NUL, NULL);
        json_t *answer = render(vars, json_object_get(row, "template"));
        char *text = json_dumps(answer, JSON_COMPACT | JSON_ENSURE_ASCII);
        puts(text ? text : "{\"refused\": \"no text\"}");
        free(text);
        json_decref(answer);
        json_decref(row);
    }
    free(line);
    json_decref(vars);
    return 0;
}
