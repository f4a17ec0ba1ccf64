// side_by_side.c: see side_by_side.h.
#include "prompt/side_by_side.h"

#include "base/printable.h"

#include <string.h>

#define GAP 2 // columns before each text

void rlhf__column_finish(struct rlhf__column *c) {
    rlhf__buf_finish(&c->text);
    rlhf__buf_finish(&c->foot);
}

// Take the next line of at most `width` columns from *rest.
static rlhf_str next_line(rlhf_str *rest, int width) {
    const char *end = rest->len ? memchr(rest->ptr, '\n', (size_t)rest->len) : NULL;
    rlhf_str line = {rest->ptr, end ? (uint64_t)(end - rest->ptr) : rest->len};
    const size_t fits = line.len ? rlhf__wrap_at(line, width) : 0;
    const int whole = fits >= line.len;
    if (!whole) line.len = fits;
    const size_t taken = (size_t)line.len + (whole && end ? 1 : 0);
    *rest = (rlhf_str){rest->ptr + taken, rest->len - taken};
    while (!whole && rest->len && rest->ptr[0] == ' ') // the space where the line was broken
        *rest = (rlhf_str){rest->ptr + 1, rest->len - 1};
    return line;
}

static void put_lines(rlhf_str left, rlhf_str right, int width, struct rlhf__buf *out) {
    while (left.len || right.len) {
        const rlhf_str a = next_line(&left, width), b = next_line(&right, width);
        rlhf__buf_printf(out, "%*s", GAP, "");
        int used = rlhf__put_clipped(out, a, width);
        if (b.len) rlhf__buf_printf(out, "%*s", width - used + GAP, "");
        rlhf__put_clipped(out, b, width);
        rlhf__buf_putc(out, '\n');
    }
}

static rlhf_str text_of(const struct rlhf__buf *b) { return (rlhf_str){rlhf__buf_text(b), b->len}; }

void rlhf__side_by_side(const struct rlhf__column *left, const struct rlhf__column *right,
                        int columns, struct rlhf__buf *out) {
    int width = (columns - 1 - 2 * GAP) / 2;
    if (width < 10) width = 10;
    put_lines((rlhf_str){left->title, strlen(left->title)},
              (rlhf_str){right->title, strlen(right->title)}, width, out);
    put_lines(text_of(&left->text), text_of(&right->text), width, out);
    put_lines(text_of(&left->foot), text_of(&right->foot), width, out);
}
