// vectors.c: see vectors.h.
#include "vectors.h"

#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *vectors_load(const char *path, size_t least) {
    json_error_t why;
    if (strcmp(path + strlen(path) - 5, ".json") == 0) {
        json_t *v = json_load_file(path, 0, &why);
        assert_non_null(v);
        return v;
    }
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    json_t *all = json_array();
    assert_non_null(in);
    for (ssize_t n; (n = getline(&line, &cap, in)) > 0;)
        assert_int_equal(json_array_append_new(all, json_loadb(line, (size_t)n, 0, &why)), 0);
    fclose(in);
    free(line);
    assert_true(json_array_size(all) >= least);
    return all;
}

void vectors_messages(const json_t *row, struct rlhf__messages *out) {
    struct rlhf__error err = {0, ""};
    rlhf__messages_clear(out);
    if (rlhf__messages_read(out, json_object_get(row, "messages"), "messages", &err) != RLHF_OK)
        fail_msg("%s", err.text);
}

const char *vectors_text(const json_t *row, const char *key) {
    return json_string_value(json_object_get(row, key));
}
