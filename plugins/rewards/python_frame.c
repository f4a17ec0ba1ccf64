// python_frame.c: see python_frame.h.
#include "python_frame.h"

#include <stdio.h>
#include <string.h>

enum { LONGEST_HEAD = 64, MOST_TEXT = 16 << 20, MOST_DOUBLES = 1 << 28 };

static const char *const kinds[] = {"ready", "scores", "failed"};

// Parses a head such as "scores 120 64\n". Returns 0 if it is invalid.
static int read_head(struct rlhf__frame *f, const char *line, size_t len) {
    char text[LONGEST_HEAD + 1], kind[16], end;
    unsigned long long n_text, n_doubles;
    if (len > LONGEST_HEAD) return 0;
    memcpy(text, line, len);
    text[len] = 0;
    if (sscanf(text, "%15s %10llu %10llu%c", kind, &n_text, &n_doubles, &end) != 4 || end != '\n')
        return 0;
    if (n_text > MOST_TEXT || n_doubles > MOST_DOUBLES) return 0;
    f->kind = 0;
    while (f->kind < 3 && strcmp(kind, kinds[f->kind]) != 0)
        f->kind++;
    f->head = len;
    f->n_text = (size_t)n_text;
    f->n_doubles = (size_t)n_doubles;
    return f->kind < 3;
}

enum rlhf__taken rlhf__frame_take(void *ctx, const char *bytes, size_t n) {
    struct rlhf__frame *f = ctx;
    rlhf__bytes_add(&f->data, bytes, n);
    if (f->data.full || f->whole) return RLHF__TAKEN_NONE;
    if (!f->head) {
        const char *end = memchr(f->data.data, '\n', f->data.len);
        if (!end) return f->data.len > LONGEST_HEAD ? RLHF__TAKEN_NONE : RLHF__TAKEN_MORE;
        if (!read_head(f, f->data.data, (size_t)(end + 1 - f->data.data))) return RLHF__TAKEN_NONE;
    }
    const size_t all = f->head + f->n_text + f->n_doubles * sizeof(double);
    if (f->data.len > all) return RLHF__TAKEN_NONE;
    f->whole = f->data.len == all;
    return f->whole ? RLHF__TAKEN_ALL : RLHF__TAKEN_MORE;
}

rlhf_str rlhf__frame_text(const struct rlhf__frame *f) {
    return (rlhf_str){f->data.data + f->head, f->n_text};
}

double rlhf__frame_double(const struct rlhf__frame *f, size_t i) {
    double x;
    memcpy(&x, f->data.data + f->head + f->n_text + i * sizeof x, sizeof x);
    return x;
}

int rlhf__frame_line(rlhf_str *text, rlhf_str *line) {
    if (!text->len) return 0;
    const char *end = memchr(text->ptr, '\n', (size_t)text->len);
    line->ptr = text->ptr;
    line->len = end ? (uint64_t)(end - text->ptr) : text->len;
    const uint64_t used = line->len + (end != NULL);
    text->ptr += used;
    text->len -= used;
    return 1;
}
