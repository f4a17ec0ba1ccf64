// run_settings.c: see run_settings.h.
#include "history/run_settings.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/printable.h"

#include <stdio.h>
#include <string.h>

#define SETTINGS_MAX 4000 // settings in a config
#define KEY_MAX      200  // bytes of a dotted name
#define VALUE_MAX    1000 // bytes of a value
#define DEPTH_MAX    8

static int holds_objects(const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_object(json_array_get(list, i))) return 1;
    return 0;
}

static void put_flat(json_t *out, const char *key, json_t *v, int depth) {
    char name[KEY_MAX + 1];
    const char *dot = *key ? "." : "", *member;
    json_t *item;
    if (json_object_size(out) >= SETTINGS_MAX || depth > DEPTH_MAX) return;
    if (json_is_object(v)) {
        json_object_foreach(v, member, item) {
            if (snprintf(name, sizeof name, "%s%s%s", key, dot, member) < (int)sizeof name)
                put_flat(out, name, item, depth + 1);
        }
    } else if (holds_objects(v)) {
        for (size_t i = 0; i < json_array_size(v); i++)
            if (snprintf(name, sizeof name, "%s%s%zu", key, dot, i) < (int)sizeof name)
                put_flat(out, name, json_array_get(v, i), depth + 1);
    } else if (*key) {
        json_object_set(out, key, v);
    }
}

json_t *rlhf__settings_flat(const json_t *config) {
    json_t *out = json_object();
    if (out) put_flat(out, "", (json_t *)(uintptr_t)config, 0);
    return out;
}

void rlhf__settings_put(struct rlhf__buf *out, const json_t *value) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    char number[40];
    if (json_is_string(value))
        rlhf__buf_put(&text, json_string_value(value), json_string_length(value));
    else if (json_is_real(value))
        rlhf__buf_puts(&text, rlhf__format_double(json_real_value(value), 0, number));
    else if (value)
        rlhf__json_write(&text, value, 0);
    const size_t n = text.len > VALUE_MAX ? rlhf__utf8_floor(text.data, VALUE_MAX) : text.len;
    rlhf__buf_put(out, rlhf__buf_text(&text), n);
    if (n < text.len) rlhf__buf_puts(out, "...");
    rlhf__buf_finish(&text);
}
