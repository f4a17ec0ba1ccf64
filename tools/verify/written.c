// written.c: see written.h.
#include "verify/written.h"

#include "base/decimal.h"
#include "base/json.h"

#include <string.h>

static void put(struct rlhf__buf *out, const json_t *v, int is_float, int floats) {
    char number[40];
    const char *key;
    json_t *x;
    size_t i;
    if (json_is_object(v)) {
        const char *between = "{";
        json_object_foreach((json_t *)(uintptr_t)v, key, x) {
            rlhf__buf_puts(out, between);
            rlhf__json_write_string(out, key, strlen(key));
            rlhf__buf_puts(out, ": ");
            put(out, x, floats && strcmp(key, "score") == 0, floats);
            between = ", ";
        }
        rlhf__buf_puts(out, json_object_size(v) ? "}" : "{}");
    } else if (json_is_array(v)) {
        rlhf__buf_putc(out, '[');
        json_array_foreach(v, i, x) {
            if (i) rlhf__buf_puts(out, ", ");
            put(out, x, floats, floats);
        }
        rlhf__buf_putc(out, ']');
    } else if (json_is_real(v) && is_float) {
        rlhf__buf_puts(out, rlhf__format_float((float)json_real_value(v), number));
    } else if (json_is_real(v)) {
        rlhf__buf_puts(out, rlhf__format_double(json_real_value(v), 0, number));
    } else {
        rlhf__json_write(out, v, 0);
    }
}

// Returns 1 if the texts are the same, except that the line may have -0 where the other text has 0.
// The JSON reader loses the sign, because it reads -0 as the integer 0.
static int is_same(const char *line, size_t n, const char *again, size_t m) {
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const int zero = line[i] == '-' && i + 2 < n && line[i + 1] == '0' && line[i + 2] != '.';
        if (zero && k < m && again[k] == '0') continue;
        if (k == m || line[i] != again[k]) return 0;
        k++;
    }
    return k == m;
}

int rlhf__written(const char *line, size_t n, const json_t *v, int floats) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    put(&text, v, 0, floats);
    const int same = is_same(line, n, rlhf__buf_text(&text), text.len);
    rlhf__buf_finish(&text);
    return same;
}
