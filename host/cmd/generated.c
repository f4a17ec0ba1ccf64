// generated.c: see generated.h.
#include "cmd/generated.h"

#include "base/json.h"
#include "base/printable.h"

#include <unistd.h>

static void put_ids(struct rlhf__buf *out, const char *before, const int32_t *ids, size_t n) {
    for (size_t k = 0; k < n; k++)
        rlhf__buf_printf(out, "%s%d", k ? ", " : before, ids[k]);
}

void rlhf__generated_json(const struct rlhf__generated *g, struct rlhf__buf *out) {
    char number[40];
    double sum = 0;
    for (size_t k = 0; k < g->n; k++)
        sum += (double)g->logp[k];
    rlhf__buf_puts(out, "{\"prompt\": ");
    rlhf__json_write_string(out, g->prompt.ptr, (size_t)g->prompt.len);
    rlhf__buf_puts(out, ", \"response\": ");
    rlhf__json_write_string(out, g->response.ptr, (size_t)g->response.len);
    rlhf__buf_printf(out, ", \"logp\": %s, \"finished\": %s, \"prompt_length\": %zu, \"ids\": ",
                     rlhf__format_double(sum, 1, number), g->finished ? "true" : "false",
                     g->n_prompt);
    put_ids(out, "[", g->prompt_ids, g->n_prompt);
    put_ids(out, ", ", g->ids, g->n);
    rlhf__buf_puts(out, "], \"logp_sampled\": [");
    for (size_t k = 0; k < g->n; k++)
        rlhf__buf_printf(out, "%s%s", k ? ", " : "", rlhf__format_float(g->logp[k], number));
    rlhf__buf_puts(out, "]}\n");
}

// The text unchanged, except on a terminal, which would interpret control characters.
void rlhf__generated_text(const struct rlhf__generated *g, int first, struct rlhf__buf *out) {
    const char *between = g->chat ? "\n\n" : "";
    if (!first) rlhf__buf_puts(out, "---\n");
    if (isatty(STDOUT_FILENO)) {
        rlhf__put_printable(out, g->prompt.ptr, (size_t)g->prompt.len, "\n\t");
        rlhf__buf_puts(out, between);
        rlhf__put_printable(out, g->response.ptr, (size_t)g->response.len, "\n\t");
    } else {
        rlhf__buf_put(out, g->prompt.ptr, (size_t)g->prompt.len);
        rlhf__buf_puts(out, between);
        rlhf__buf_put(out, g->response.ptr, (size_t)g->response.len);
    }
    rlhf__buf_putc(out, '\n');
}
