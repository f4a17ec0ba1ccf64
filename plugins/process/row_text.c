// row_text.c: see row_text.h.
#include "process/row_text.h"

#include <math.h>

// Append the JSON text of a value that exists.
static void put_json(const rlhf_row_service *rows, const rlhf_row *row, const char *path,
                     struct rlhf__bytes *out) {
    const rlhf_host *host = out->host;
    uint64_t len = 0;
    char small[256], *text = small;
    if (rows->json(host, row, path, small, sizeof small, &len) < 0) out->full = 1;
    if (len > sizeof small) {
        text = host->alloc(host, len);
        if (!text || rows->json(host, row, path, text, len, &len) < 0) out->full = 1;
    }
    if (!out->full) rlhf__bytes_add(out, text, (size_t)len);
    if (text != small) host->free(host, text);
}

int rlhf__row_text(const rlhf_row_service *rows, const rlhf_row *row, const char *path, int plain,
                   struct rlhf__bytes *out) {
    const rlhf_host *host = out->host;
    const int32_t type = rows->type(host, row, path);
    rlhf_str text;
    if (type == RLHF_JSON_ABSENT) return 0;
    if (plain && type == RLHF_JSON_STRING && rows->string(host, row, path, &text) == RLHF_OK)
        rlhf__bytes_add(out, text.ptr, (size_t)text.len);
    else
        put_json(rows, row, path, out);
    return 1;
}

int rlhf__row_member(rlhf_str row, const char *key, int plain, struct rlhf__bytes *out) {
    const rlhf_host *host = out->host;
    const rlhf_row_service *rows = host->service(host, RLHF_SVC_ROW);
    rlhf_row *r = NULL;
    if (!rows || !row.len || rows->open(host, row, &r) < 0) return 0;
    const int found = rlhf__row_text(rows, r, key, plain, out);
    rows->close(host, r);
    return found;
}

const char *rlhf__row_kind(const rlhf_host *host, const rlhf_row_service *rows, const rlhf_row *row,
                           const char *path) {
    static const char *const names[] = {"missing",  "null",   "true or false", "a number",
                                        "a string", "a list", "an object"};
    const int32_t type = rows->type(host, row, path);
    return type >= 0 && type <= RLHF_JSON_OBJECT ? names[type] : "unknown";
}

int rlhf__row_reward(const rlhf_host *host, const rlhf_row_service *rows, const rlhf_row *row,
                     const char *path, double *out) {
    const int32_t type = rows->type(host, row, path);
    int32_t yes = 0;
    *out = (double)NAN;
    if (type == RLHF_JSON_NUMBER) return rows->number(host, row, path, out) == RLHF_OK;
    if (type == RLHF_JSON_BOOL && rows->boolean(host, row, path, &yes) == RLHF_OK) *out = yes;
    return type == RLHF_JSON_BOOL || type == RLHF_JSON_NULL;
}
