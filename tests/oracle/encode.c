// encode.c: ids of texts, for ids.py: `encode DIR` reads one JSON string a line from standard input
// and prints one list of ids a line, special tokens and what goes around a text included, as
// transformers' tokenizer(text) gives them.
#include "base/json.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

static rlhf_status encode(const struct rlhf__tokenizer *tok, const char *line, size_t n,
                          struct rlhf__error *err) {
    struct rlhf__ids ids = {0};
    json_t *text = rlhf__json_decode(line, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (!json_is_string(text)) return rlhf__fail(err, RLHF_E_INVALID, "no JSON string: %s", line);
    rlhf_str s = {json_string_value(text), json_string_length(text)};
    rlhf_status st =
        rlhf__tokenizer_encode(tok, s, RLHF__ENCODE_TEMPLATE | RLHF__ENCODE_SPECIAL, 0, &ids, err);
    for (size_t i = 0; st == RLHF_OK && i < ids.n; i++)
        printf("%s%d", i ? ", " : "[", (int)ids.data[i]);
    puts(ids.n ? "]" : "[]");
    rlhf__ids_finish(&ids);
    json_decref(text);
    return st;
}

int main(int argc, char **argv) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0, ""};
    char *line = NULL;
    size_t cap = 0;
    rlhf_status st = argc == 2 ? rlhf__tokenizer_open(argv[1], &tok, &err)
                               : rlhf__fail(&err, RLHF_E_INVALID, "usage: encode DIR");
    for (ssize_t n; st == RLHF_OK && (n = getline(&line, &cap, stdin)) > 0;)
        st = encode(tok, line, (size_t)n, &err);
    if (st != RLHF_OK) fprintf(stderr, "%s\n", err.text);
    free(line);
    rlhf__tokenizer_close(tok);
    return st != RLHF_OK;
}
