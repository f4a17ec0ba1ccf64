// columns.c: see columns.h.
#include "base/columns.h"

#include "base/printable.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

int rlhf__terminal_width(int fd, int otherwise) {
    struct winsize size;
    if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return otherwise;
}

// The next character of text at *at: appended to out, its columns returned.
static int put_char(struct rlhf__buf *out, rlhf_str text, size_t *at) {
    uint32_t c;
    const char *p = text.ptr + *at;
    size_t n = rlhf__char_at(p, (size_t)text.len - *at, &c);
    if (n == 0) {
        *at += 1;
        rlhf__buf_puts(out, "\xef\xbf\xbd");
        return 1;
    }
    *at += n;
    if (!rlhf__is_printable(c)) {
        rlhf__buf_putc(out, ' ');
        return 1;
    }
    int wide = utf8proc_charwidth((utf8proc_int32_t)c);
    rlhf__buf_put(out, p, n);
    return wide < 0 ? 0 : wide;
}

size_t rlhf__wrap_at(rlhf_str text, int columns) {
    struct rlhf__buf seen = RLHF__BUF_INIT;
    size_t at = 0, space = 0;
    int used = 0;
    while (at < text.len) {
        size_t next = at;
        const int wide = put_char(&seen, text, &next);
        if (used + wide > columns && at > 0) break;
        if (text.ptr[at] == ' ' && used >= columns / 2) space = next;
        used += wide;
        at = next;
    }
    rlhf__buf_free(&seen);
    return at < text.len && space && text.ptr[at] != ' ' ? space : at;
}

// The word at *at, with the blanks in front of it: where it begins, its columns; *at is moved after
// it.
static size_t next_word(rlhf_str text, size_t *at, int *columns) {
    struct rlhf__buf seen = RLHF__BUF_INIT;
    size_t from = *at;
    while (from < text.len && text.ptr[from] == ' ')
        from++;
    *at = from;
    *columns = 0;
    while (*at < text.len && text.ptr[*at] != ' ')
        *columns += put_char(&seen, text, at);
    rlhf__buf_free(&seen);
    return from;
}

void rlhf__put_wrapped(struct rlhf__buf *out, rlhf_str text, int columns, int used, int indent) {
    size_t at = 0;
    for (int first = 1; at < text.len; first = 0) {
        const size_t before = at;
        int wide;
        const size_t word = next_word(text, &at, &wide);
        const int blanks = (int)(word - before);
        if (!first && columns > indent && used + blanks + wide > columns) {
            rlhf__buf_printf(out, "\n%*s", indent, "");
            used = indent;
        } else {
            rlhf__buf_put(out, text.ptr + before, (size_t)blanks);
            used += blanks;
        }
        rlhf__buf_put(out, text.ptr + word, at - word);
        used += wide;
    }
}

int rlhf__put_clipped(struct rlhf__buf *out, rlhf_str text, int columns) {
    int used = 0, used_at_dots = 0;
    size_t at = 0, dots = out->len; // where "..." goes if the rest does not fit
    while (at < text.len) {
        size_t before = out->len;
        int wide = put_char(out, text, &at);
        if (used + wide > columns) {
            // A line shorter than the dots has none.
            out->len = columns < 3 ? before : dots;
            if (out->data) out->data[out->len] = '\0';
            if (columns < 3) return used;
            rlhf__buf_puts(out, "...");
            return used_at_dots + 3;
        }
        used += wide;
        if (used + 3 <= columns) {
            dots = out->len;
            used_at_dots = used;
        }
    }
    return used;
}
