// levels.c: see levels.h.
#include "cmd/levels.h"

#include "base/json.h"
#include "base/printable.h"

#include <string.h>

// A text of the backend's, which need not have ended it.
static json_t *text_json(const char *text, size_t cap) {
    char copy[64];
    const size_t n = strnlen(text, cap - 1);
    memcpy(copy, text, n);
    copy[n] = 0;
    return rlhf__json_text(copy);
}

json_t *rlhf__levels_json(const rlhf_device_info *d) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < d->n_levels && i < RLHF_LEVELS_MAX; i++) {
        const rlhf_level *l = &d->levels[i];
        json_array_append_new(list, json_pack("{so,sb,sb,so,so,so,so}", "level",
                                              text_json(l->name, sizeof l->name), "has",
                                              l->has != 0, "used", l->used != 0, "loops",
                                              text_json(l->loops, sizeof l->loops), "f32",
                                              text_json(l->f32, sizeof l->f32), "bf16",
                                              text_json(l->bf16, sizeof l->bf16), "why_not",
                                              text_json(l->why_not, sizeof l->why_not)));
    }
    return list;
}

static const char *text_of(const json_t *row, const char *key) {
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "";
}

static void put_line(struct rlhf__buf *out, char mark, const char *has, const json_t *row) {
    const char *why = text_of(row, "why_not");
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_printf(&line, "  %c %-12s %-4s %-28s %-14s %-18s%s%s", mark, text_of(row, "level"),
                     has, text_of(row, "loops"), text_of(row, "f32"), text_of(row, "bf16"),
                     *why ? "not: " : "", why);
    while (line.len && rlhf__buf_text(&line)[line.len - 1] == ' ')
        line.len--;
    rlhf__put_printable(out, rlhf__buf_text(&line), line.len, "");
    rlhf__buf_puts(out, "\n");
    rlhf__buf_free(&line);
}

void rlhf__levels_put(struct rlhf__buf *out, const json_t *levels) {
    size_t i;
    const json_t *row;
    if (json_array_size(levels) == 0) return;
    json_t *head = json_pack("{ss,ss,ss,ss}", "level", "level", "loops", "loops", "f32",
                             "f32 products", "bf16", "bf16 products");
    put_line(out, ' ', "has", head);
    json_decref(head);
    json_array_foreach(levels, i, row)
        put_line(out, json_is_true(json_object_get(row, "used")) ? '*' : ' ',
                 json_is_true(json_object_get(row, "has")) ? "yes" : "no", row);
}
