// json_out.c: see json_out.h.
#include "page/json_out.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

void rlhf__json_put_number(struct rlhf__buf *out, double v, int digits) {
    if (!isfinite(v))
        rlhf__buf_puts(out, "null");
    else if (v == floor(v) && fabs(v) < 1e15)
        rlhf__buf_printf(out, "%lld", (long long)v);
    else
        rlhf__buf_printf(out, "%.*g", digits, v);
}

void rlhf__json_put_key(struct rlhf__buf *out, const char *key) {
    rlhf__buf_puts(out, ", ");
    rlhf__json_write_string(out, key, strlen(key));
    rlhf__buf_puts(out, ": ");
}

void rlhf__json_put_text(struct rlhf__buf *out, const char *key, const char *text) {
    rlhf__json_put_key(out, key);
    rlhf__json_write_string(out, text, strlen(text));
}

void rlhf__json_put(struct rlhf__buf *out, const char *key, const json_t *v) {
    rlhf__json_put_key(out, key);
    if (v)
        rlhf__json_write(out, v, 0);
    else
        rlhf__buf_puts(out, "null");
}
