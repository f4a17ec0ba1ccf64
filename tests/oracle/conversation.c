// conversation.c: our chat templates applied to conversations, for chat.py.
//   conversation DIR [NAME]          reads lines {"messages": [...], "generate": bool}, with an
//                                    optional "answer": [...] and "tools": [...], from standard
//                                    input, and writes {"text", "ids", "says"} or {"error"};
//                                    "says_error" replaces "says" if the turns cannot be found
//   conversation DIR --date 2026-11-28    the same with this date
//   conversation DIR [NAME] --what   describes the template and reads nothing
//   conversation DIR NAME --jinja    writes the template as Jinja
// The template is the one called NAME or, without NAME, DIR's own.
#include "tokenizer/conversation.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *bytes_json(const struct rlhf__buf *b) {
    json_t *list = json_array();
    for (size_t i = 0; i < b->len; i++)
        json_array_append_new(list, json_integer(b->data[i]));
    return list;
}

static json_t *ids_json(const struct rlhf__ids *ids) {
    json_t *list = json_array();
    for (size_t i = 0; i < ids->n; i++)
        json_array_append_new(list, json_integer(ids->data[i]));
    return list;
}

static rlhf_status encode(const struct rlhf__tokenizer *tok, const json_t *row, json_t *out,
                          struct rlhf__error *err) {
    struct rlhf__messages m = {0}, answer = {0};
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__ids ids = {0}, marked = {0}, more = {0};
    struct rlhf__error no = {0, ""};
    struct rlhf__buf says = RLHF__BUF_INIT;
    json_t *tools = NULL;
    int generate = json_is_true(json_object_get(row, "generate"));
    rlhf_status st = rlhf__messages_read(&m, json_object_get(row, "messages"), "messages", err);
    if (st == RLHF_OK) st = rlhf__messages_tools(row, &tools, err);
    m.tools = tools;
    m.vars = rlhf__messages_vars(row);
    if (st == RLHF_OK) st = rlhf__chat_render(rlhf__tokenizer_chat(tok), &m, generate, &text, err);
    if (st == RLHF_OK) st = rlhf__conversation_encode(tok, &m, generate, &ids, NULL, err);
    const rlhf_status spans =
        st == RLHF_OK ? rlhf__conversation_encode(tok, &m, generate, &marked, &says, &no) : st;
    if (st == RLHF_OK && json_object_get(row, "answer"))
        st = rlhf__messages_read(&answer, json_object_get(row, "answer"), "answer", err);
    if (st == RLHF_OK && answer.n)
        st = rlhf__conversation_answer(tok, &m, &answer, ids.data, ids.n, &more, err);
    if (st == RLHF_OK) {
        json_object_set_new(out, "text", json_stringn(rlhf__buf_text(&text), text.len));
        json_object_set_new(out, "ids", ids_json(&ids));
        if (spans == RLHF_OK)
            json_object_set_new(out, "says", bytes_json(&says));
        else
            json_object_set_new(out, "says_error", rlhf__json_text(no.text));
        json_object_set_new(out, "answer", ids_json(&more));
    }
    rlhf__messages_finish(&m);
    rlhf__messages_finish(&answer);
    json_decref(tools);
    rlhf__buf_finish(&text);
    rlhf__ids_finish(&ids);
    rlhf__ids_finish(&marked);
    rlhf__ids_finish(&more);
    rlhf__buf_finish(&says);
    return st;
}

static void answer_line(const struct rlhf__tokenizer *tok, const char *line, size_t n) {
    struct rlhf__error err = {0, ""};
    json_t *row = rlhf__json_decode_digits(line, n, JSON_ALLOW_NUL, NULL), *out = json_object();
    if (encode(tok, row, out, &err) != RLHF_OK)
        json_object_set_new(out, "error", rlhf__json_text(err.text));
    char *text = json_dumps(out, JSON_COMPACT | JSON_ENSURE_ASCII);
    puts(text);
    free(text);
    json_decref(out);
    json_decref(row);
}

int main(int argc, char **argv) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0, ""};
    char *line = NULL;
    size_t cap = 0;
    int what = argc == 3 && strcmp(argv[2], "--what") == 0;
    int jinja = argc == 4 && strcmp(argv[3], "--jinja") == 0;
    rlhf_status st =
        argc == 2 || argc == 3 || argc == 4
            ? rlhf__tokenizer_open(argv[1], &tok, &err)
            : rlhf__fail(&err, RLHF_E_INVALID, "usage: conversation DIR [NAME [--jinja]]");
    const int dated = argc == 4 && strcmp(argv[2], "--date") == 0;
    const struct rlhf__chat_choice choice = {.name = argc > 2 && !what && !dated ? argv[2] : NULL,
                                             .date = dated ? argv[3] : NULL},
                                   flags = {"NAME", NULL, "--date"};
    if (st == RLHF_OK && rlhf__tokenizer_choose_chat(tok, &choice, &flags, &err) != RLHF_OK &&
        !dated)
        st = err.code;
    if (st == RLHF_OK && what) {
        struct rlhf__buf say = RLHF__BUF_INIT;
        rlhf__chat_describe(rlhf__tokenizer_chat(tok), &say);
        puts(rlhf__buf_text(&say));
        rlhf__buf_finish(&say);
    }
    if (st == RLHF_OK && jinja) fputs(rlhf__chat_jinja(rlhf__tokenizer_chat(tok)), stdout);
    for (ssize_t n; st == RLHF_OK && !what && !jinja && (n = getline(&line, &cap, stdin)) > 0;)
        answer_line(tok, line, (size_t)n);
    if (st != RLHF_OK) fprintf(stderr, "%s\n", err.text);
    free(line);
    rlhf__tokenizer_close(tok);
    return st != RLHF_OK;
}
