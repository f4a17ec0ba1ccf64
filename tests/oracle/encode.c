// encode.c: ids of texts and texts of ids, for ids.py and check_forms.py. `encode [--plain] DIR`
// reads one JSON value per line from standard input. For a string it writes the list of its ids,
// including special tokens and those added around a text, as transformers' tokenizer(text) does.
// With --plain it adds nothing and encodes special tokens as ordinary text. For a list of ids it
// writes [its text, its text without special tokens].
#include "base/json.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rlhf_status encode(const struct rlhf__tokenizer *tok, const json_t *text, uint32_t flags,
                          struct rlhf__error *err) {
    struct rlhf__ids ids = {0};
    rlhf_str s = {json_string_value(text), json_string_length(text)};
    rlhf_status st = rlhf__tokenizer_encode(tok, s, flags, 0, &ids, err);
    for (size_t i = 0; st == RLHF_OK && i < ids.n; i++)
        printf("%s%d", i ? ", " : "[", (int)ids.data[i]);
    puts(ids.n ? "]" : "[]");
    rlhf__ids_finish(&ids);
    return st;
}

static rlhf_status decode(const struct rlhf__tokenizer *tok, const json_t *list,
                          struct rlhf__error *err) {
    struct rlhf__ids ids = {0};
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    for (size_t i = 0; st == RLHF_OK && i < json_array_size(list); i++)
        st = rlhf__ids_push(&ids, (int32_t)json_integer_value(json_array_get(list, i)), err);
    for (uint32_t skip = 0; st == RLHF_OK && skip < 2; skip++) {
        size_t len = 0;
        char *text = rlhf__tokenizer_text(tok, ids.data, ids.n, skip, &len);
        rlhf__buf_puts(&line, skip ? ", " : "[");
        if (text)
            rlhf__json_write_string(&line, text, len);
        else
            st = RLHF__NOMEM(err, "out of memory for a text");
        free(text);
    }
    if (st == RLHF_OK) st = rlhf__buf_ok(&line, err);
    printf("%s]\n", rlhf__buf_text(&line));
    rlhf__buf_finish(&line);
    rlhf__ids_finish(&ids);
    return st;
}

static rlhf_status answer(const struct rlhf__tokenizer *tok, const char *line, size_t n,
                          uint32_t flags, struct rlhf__error *err) {
    json_t *v = rlhf__json_decode(line, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    rlhf_status st = json_is_string(v) ? encode(tok, v, flags, err)
                     : json_is_array(v)
                         ? decode(tok, v, err)
                         : rlhf__fail(err, RLHF_E_INVALID, "no JSON string or list: %.200s", line);
    json_decref(v);
    return st;
}

int main(int argc, char **argv) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0, ""};
    char *line = NULL;
    size_t cap = 0;
    int plain = argc > 1 && !strcmp(argv[1], "--plain");
    uint32_t flags = plain ? 0 : RLHF__ENCODE_TEMPLATE | RLHF__ENCODE_SPECIAL;
    rlhf_status st = argc == 2 + plain
                         ? rlhf__tokenizer_open(argv[1 + plain], &tok, &err)
                         : rlhf__fail(&err, RLHF_E_INVALID, "usage: encode [--plain] DIR");
    for (ssize_t n; st == RLHF_OK && (n = getline(&line, &cap, stdin)) > 0;)
        st = answer(tok, line, (size_t)n, flags, &err);
    if (st != RLHF_OK) fprintf(stderr, "%s\n", err.text);
    free(line);
    rlhf__tokenizer_close(tok);
    return st != RLHF_OK;
}
