// token_table.c: see token_table.h.
#include "prompt/token_table.h"

#include "base/printable.h"
#include "tokenizer/pieces.h"

#include <stdlib.h>
#include <string.h>

#define TOKEN_COLUMNS 20

void rlhf__put_piece(struct rlhf__buf *out, rlhf_str piece) {
    for (size_t at = 0; at < piece.len;) {
        const char *space = memchr(piece.ptr + at, ' ', (size_t)piece.len - at);
        const size_t end = space ? (size_t)(space - piece.ptr) : (size_t)piece.len;
        rlhf__put_printable(out, piece.ptr + at, end - at, "");
        if (space) rlhf__buf_puts(out, "\xc2\xb7");
        at = end + (space != NULL);
    }
}

// The colors of the report's page. Blue: the token is likelier than under the reference; orange: it
// is less likely. The colors are stronger if the difference is 1 nat or more.
static const char *color_of(float ratio) {
    if (ratio >= 1) return "\033[38;5;33m";
    if (ratio >= 0.1F) return "\033[38;5;75m";
    if (ratio <= -1) return "\033[38;5;208m";
    if (ratio <= -0.1F) return "\033[38;5;215m";
    return "";
}

static void put_row(const struct rlhf__token_table *t, size_t i, rlhf_str piece,
                    struct rlhf__buf *out) {
    struct rlhf__buf whole = RLHF__BUF_INIT, cell = RLHF__BUF_INIT;
    const float ratio = t->ref ? t->logp[i] - t->ref[i] : 0;
    const char *color = t->color ? color_of(ratio) : "";
    rlhf__put_piece(&whole, piece);
    const int used =
        rlhf__put_clipped(&cell, (rlhf_str){rlhf__buf_text(&whole), whole.len}, TOKEN_COLUMNS);
    rlhf__buf_printf(out, "  %s%s%s%*s  %9.2f", color, rlhf__buf_text(&cell),
                     *color ? "\033[0m" : "", TOKEN_COLUMNS - used, "", (double)t->logp[i]);
    if (t->ref) rlhf__buf_printf(out, "  %9.2f  %+6.2f", (double)t->ref[i], (double)ratio);
    if (t->entropy) rlhf__buf_printf(out, "  %8.2f", (double)t->entropy[i]);
    if (t->value) rlhf__buf_printf(out, "  %8.3f", (double)t->value[i]);
    rlhf__buf_putc(out, '\n');
    if (whole.bad || cell.bad) out->bad = 1;
    rlhf__buf_finish(&whole);
    rlhf__buf_finish(&cell);
}

rlhf_status rlhf__token_table_put(const struct rlhf__token_table *t, struct rlhf__buf *out,
                                  struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    size_t *end = calloc(t->n ? t->n : 1, sizeof *end);
    if (!end) return RLHF__NOMEM(err, "out of memory for %zu tokens", t->n);
    rlhf_status st = rlhf__pieces(t->tok, t->ids, t->n, &text, end, err);
    rlhf__buf_printf(out, "  %-*s  %9s%s%s%s\n", TOKEN_COLUMNS, "token", "log-prob",
                     t->ref ? "  reference   ratio" : "", t->entropy ? "   entropy" : "",
                     t->value ? "     value" : "");
    for (size_t i = 0, from = 0; st == RLHF_OK && i < t->n; from = end[i++])
        put_row(t, i, (rlhf_str){rlhf__buf_text(&text) + from, end[i] - from}, out);
    free(end);
    rlhf__buf_finish(&text);
    return st == RLHF_OK ? rlhf__buf_ok(out, err) : st;
}
