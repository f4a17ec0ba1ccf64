// http_score.c: see http_score.h.
#include "rewards/http_score.h"

#include <jansson.h>

char *http_score(const struct http_request *q) {
    json_t *in = json_loadb(q->body, q->len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL),
           *out = json_array();
    const json_t *rows = json_object_get(in, "rows");
    int ok = json_is_array(rows);
    for (size_t i = 0; ok && i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *response = json_object_get(row, "response");
        const double length = (double)json_string_length(response);
        const json_t *known = json_object_get(json_object_get(row, "row"), "right");
        ok = json_is_string(response) && json_is_string(json_object_get(row, "prompt")) &&
             json_object_get(row, "row");
        json_t *entry =
            json_pack("{s:f, s:{s:f}}", "reward", length, "metrics", "half", length / 2);
        if (known)
            json_object_set_new(entry, "verdict",
                                json_string(json_is_true(known) ? "right" : "wrong"));
        json_array_append_new(out, entry);
    }
    char *text = ok ? json_dumps(out, 0) : NULL;
    json_decref(in);
    json_decref(out);
    return text;
}
