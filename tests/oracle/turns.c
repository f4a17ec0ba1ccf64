// turns.c: the ids of conversations as episodes make them, turn by turn, for turns.py.
//   turns DIR [NAME]   reads lines {"messages": [...]}, with an optional "tools": [...], from
//                      standard input, and writes the ids, or "error: ..."
// The last message is not the assistant's, and the ids end where the assistant's next turn begins.
// An assistant's turn has the ids that a rollout would have drawn. The bridge gives all other ids.
#include "base/json.h"
#include "tokenizer/bridge.h"

#include <stdio.h>
#include <stdlib.h>

static int is_assistant(const struct rlhf__messages *m, size_t i) {
    return i < m->n && m->item[i].role == RLHF__ROLE_ASSISTANT;
}

// Appends the turn m->item[at], and the ids between it and the next turn. *next receives the index
// of the next turn, or m->n.
static rlhf_status add_turn(const struct rlhf__tokenizer *tok, const struct rlhf__messages *m,
                            size_t at, struct rlhf__ids *ids, size_t *next,
                            struct rlhf__error *err) {
    const struct rlhf__messages before = {.item = m->item, .n = at, .tools = m->tools},
                                turn = {.item = m->item + at, .n = 1, .tools = m->tools};
    struct rlhf__messages said = {.item = m->item + at + 1, .tools = m->tools};
    struct rlhf__ids drawn = {0};
    rlhf_status st = rlhf__conversation_answer(tok, &before, &turn, ids->data, ids->n, &drawn, err);
    for (size_t i = 0; st == RLHF_OK && i < drawn.n; i++)
        st = rlhf__ids_push(ids, drawn.data[i], err);
    rlhf__ids_finish(&drawn);
    while (at + 1 + said.n < m->n && !is_assistant(m, at + 1 + said.n))
        said.n++;
    *next = at + 1 + said.n;
    const struct rlhf__bridge b = {
        .said = &said, .calls = m->item[at].calls ? json_array_size(m->item[at].calls) : 0};
    return st == RLHF_OK ? rlhf__bridge_encode(tok, &b, ids, err) : st;
}

static rlhf_status encode(const struct rlhf__tokenizer *tok, const json_t *row,
                          struct rlhf__ids *ids, struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    json_t *tools = NULL;
    size_t at = 0;
    rlhf_status st = rlhf__messages_read(&m, json_object_get(row, "messages"), "messages", err);
    if (st == RLHF_OK) st = rlhf__messages_tools(row, &tools, err);
    m.tools = tools;
    while (at < m.n && !is_assistant(&m, at))
        at++;
    const struct rlhf__messages prompt = {.item = m.item, .n = at, .tools = tools};
    if (st == RLHF_OK) st = rlhf__conversation_encode(tok, &prompt, 1, ids, NULL, err);
    while (st == RLHF_OK && at < m.n)
        st = add_turn(tok, &m, at, ids, &at, err);
    rlhf__messages_finish(&m);
    json_decref(tools);
    return st;
}

static void answer_line(const struct rlhf__tokenizer *tok, const char *line, size_t n) {
    struct rlhf__error err = {0, ""};
    struct rlhf__ids ids = {0};
    json_t *row = rlhf__json_decode(line, n, JSON_ALLOW_NUL, NULL);
    if (encode(tok, row, &ids, &err) == RLHF_OK) {
        for (size_t i = 0; i < ids.n; i++)
            printf("%s%d", i ? " " : "", (int)ids.data[i]);
        putchar('\n');
    } else {
        printf("error: %s\n", err.text);
    }
    rlhf__ids_finish(&ids);
    json_decref(row);
}

int main(int argc, char **argv) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0, ""};
    char *line = NULL;
    size_t cap = 0;
    rlhf_status st = argc == 2 || argc == 3
                         ? rlhf__tokenizer_open(argv[1], &tok, &err)
                         : rlhf__fail(&err, RLHF_E_INVALID, "usage: turns DIR [NAME]");
    if (st == RLHF_OK && argc > 2) st = rlhf__tokenizer_name_chat(tok, argv[2], &err);
    for (ssize_t n; st == RLHF_OK && (n = getline(&line, &cap, stdin)) > 0;)
        answer_line(tok, line, (size_t)n);
    if (st != RLHF_OK) fprintf(stderr, "%s\n", err.text);
    free(line);
    rlhf__tokenizer_close(tok);
    return st != RLHF_OK;
}
