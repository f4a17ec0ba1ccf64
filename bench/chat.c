// chat.c: `rlhf-bench-chat [ROWS [FILE...]]` measures how many rows per second chat templates
// render on one core. It measures the program's own templates and the templates in the files.
// Conversations of two and of four turns alternate. In the column "with turns", rendering also
// finds the positions of the assistant's turns.
#include "chat/chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 100000 };

static void add(struct rlhf__messages *m, int32_t role, const char *text) {
    struct rlhf__error err;
    if (rlhf__messages_add(m, role, (rlhf_str){text, strlen(text)}, &err) != RLHF_OK) exit(1);
}

// Set m to conversation i. `room` receives the text of the conversation's first message.
static void conversation(struct rlhf__messages *m, size_t i, char room[256]) {
    snprintf(room, 256, "What is the sum of %zu and %zu? Answer in one sentence, please.", i,
             i + 7);
    rlhf__messages_clear(m);
    add(m, RLHF__ROLE_USER, room);
    add(m, RLHF__ROLE_ASSISTANT, "It is the number that you get when you add both of them.");
    if (i % 2) return;
    add(m, RLHF__ROLE_USER, "Which number is that?");
    add(m, RLHF__ROLE_ASSISTANT, "I would rather that you work it out on your own.");
}

// Returns the seconds that it takes to render `rows` conversations. Ends the program on failure.
static double seconds(const struct rlhf__chat *c, size_t rows, int turns, size_t *bytes) {
    struct rlhf__messages m = {0};
    struct rlhf__turns out = {0};
    struct rlhf__error err = {0, ""};
    char room[256];
    const clock_t begin = clock(); // CPU time, which other programs do not affect
    *bytes = 0;
    for (size_t i = 0; i < rows; i++) {
        conversation(&m, i, room);
        rlhf__turns_clear(&out);
        const rlhf_status st = turns ? rlhf__chat_turns(c, &m, 0, 0, &out, &err)
                                     : rlhf__chat_render(c, &m, 0, &out.text, &err);
        if (st != RLHF_OK) {
            fprintf(stderr, "rlhf-bench-chat: %s\n", err.text);
            exit(1);
        }
        *bytes += out.text.len;
    }
    rlhf__turns_finish(&out);
    rlhf__messages_finish(&m);
    return (double)(clock() - begin) / CLOCKS_PER_SEC;
}

static void measure(const char *name, size_t rows) {
    const struct rlhf__chat_tokens tokens = {.vars =
                                                 "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}"};
    struct rlhf__chat *c = NULL;
    struct rlhf__error err = {0, ""};
    size_t bytes;
    if (rlhf__chat_open("/", &tokens, &c, &err) != RLHF_OK ||
        rlhf__chat_name(c, name, &err) != RLHF_OK) {
        fprintf(stderr, "rlhf-bench-chat: %s\n", err.text);
        exit(1);
    }
    const double turns = seconds(c, rows, 1, &bytes), plain = seconds(c, rows, 0, &bytes);
    const char *slash = strrchr(name, '/');
    printf("| %s | %.0f | %.0f | %.0f |\n", slash ? slash + 1 : name, (double)rows / plain,
           (double)rows / turns, (double)bytes / (double)rows);
    rlhf__chat_close(c);
}

int main(int argc, char **argv) {
    const size_t rows = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : ROWS;
    const char *const *names = rlhf__chat_names();
    printf("| template | rows a second | with turns | bytes a row |\n|---|---|---|---|\n");
    for (size_t i = 1; rows && names[i]; i++)
        measure(names[i], rows);
    for (int i = 2; rows && i < argc; i++)
        measure(argv[i], rows);
    return rows == 0;
}
