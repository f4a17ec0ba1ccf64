// printable.c: see printable.h.
#include "base/printable.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

size_t rlhf__char_at(const char *s, size_t n, uint32_t *c) {
    const unsigned char *p = (const unsigned char *)s;
    *c = p[0];
    if (p[0] < 0x80) return 1;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > n) return 0;
    *c = p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        *c = *c << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    return *c < least[len] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff) ? 0 : len;
}

static int continues(char c) { return ((unsigned char)c & 0xc0) == 0x80; }

size_t rlhf__utf8_floor(const char *text, size_t n) {
    size_t at = n;
    while (at > 0 && n - at < 3 && continues(text[at]))
        at--;
    return continues(text[at]) ? n : at;
}

int rlhf__is_printable(uint32_t c) {
    if (c < 0x7f) return c >= 0x20;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return 0;
    default:
        return 1;
    }
}

// Writes the character (or invalid byte) at `s` to `out`, in its printable form and NUL-ended.
// Returns the length of the character in `s`, in bytes.
static size_t show(const char *s, size_t n, const char *keep, char out[16]) {
    uint32_t c;
    size_t len = rlhf__char_at(s, n, &c);
    if (len && (rlhf__is_printable(c) || (c && c < 0x80 && strchr(keep, (int)c)))) {
        memcpy(out, s, len);
        out[len] = '\0';
    } else if (len && (c == '\n' || c == '\t' || c == '\r')) {
        snprintf(out, 16, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    } else if (len == 0 || c < 0x100) {
        snprintf(out, 16, "\\x%02x", len ? c : (unsigned char)*s);
    } else {
        snprintf(out, 16, c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    }
    return len ? len : 1;
}

void rlhf__put_printable(struct rlhf__buf *out, const char *s, size_t n, const char *keep) {
    char shown[16];
    for (size_t at = 0; at < n;) {
        at += show(s + at, n - at, keep, shown);
        rlhf__buf_puts(out, shown);
    }
}

const char *rlhf__printable(const char *s, char *out, size_t cap) {
    char shown[16];
    size_t n = strlen(s), used = 0;
    if (cap == 0) return "";
    for (size_t at = 0; at < n;) {
        at += show(s + at, n - at, "", shown);
        size_t len = strlen(shown);
        if (used + len >= cap) break;
        memcpy(out + used, shown, len);
        used += len;
    }
    out[used] = '\0';
    return out;
}

void rlhf__put_shell(struct rlhf__buf *out, const char *s) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "._/+=@%:,-";
    if (*s && !s[strspn(s, plain)]) {
        rlhf__buf_puts(out, s);
        return;
    }
    rlhf__buf_putc(out, '\'');
    for (; *s; s++)
        if (*s == '\'')
            rlhf__buf_puts(out, "'\\''");
        else
            rlhf__buf_putc(out, *s);
    rlhf__buf_putc(out, '\'');
}

// ---- columns ----

int rlhf__terminal_width(int fd, int otherwise) {
    struct winsize size;
    if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return otherwise;
}

// Append the character at text[*at] to `out`, and move *at past it. Returns the character's width
// in columns.
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
    rlhf__buf_finish(&seen);
    return at < text.len && space && text.ptr[at] != ' ' ? space : at;
}

// Find the next word at or after *at, skipping spaces. Returns the offset of the word, sets
// *columns to its width, and sets *at to the offset after the word.
static size_t next_word(rlhf_str text, size_t *at, int *columns) {
    struct rlhf__buf seen = RLHF__BUF_INIT;
    size_t from = *at;
    while (from < text.len && text.ptr[from] == ' ')
        from++;
    *at = from;
    *columns = 0;
    while (*at < text.len && text.ptr[*at] != ' ')
        *columns += put_char(&seen, text, at);
    rlhf__buf_finish(&seen);
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

void rlhf__put_page(struct rlhf__buf *out, rlhf_str text, int columns) {
    const char *at = text.ptr, *end = text.ptr + text.len;
    while (at < end) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((line ? line : end) - at);
        size_t blanks = 0;
        while (blanks < n && at[blanks] == ' ')
            blanks++;
        rlhf__put_wrapped(out, (rlhf_str){at, n}, columns, 0, (int)blanks);
        if (line) rlhf__buf_putc(out, '\n');
        at += n + (line != NULL);
    }
}

// Append a line of two columns. `gap` and `right` are the offsets at which the first column ends
// and the second one begins.
static void put_two(struct rlhf__buf *out, rlhf_str line, size_t gap, size_t right, int blanks,
                    int columns) {
    enum { NARROW = 24 };
    const rlhf_str second = {line.ptr + right, line.len - right};
    const int at = (int)right;
    if (columns - at >= NARROW) {
        rlhf__buf_put(out, line.ptr, right);
        rlhf__put_wrapped(out, second, columns, at, at);
        return;
    }
    rlhf__put_wrapped(out, (rlhf_str){line.ptr, gap}, columns, 0, blanks + 4);
    rlhf__buf_printf(out, "\n%*s", blanks + 6, "");
    rlhf__put_wrapped(out, second, columns, blanks + 6, blanks + 6);
}

void rlhf__put_two_columns(struct rlhf__buf *out, rlhf_str text, int columns) {
    const char *at = text.ptr, *end = text.ptr + text.len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const rlhf_str line = {at, (size_t)((stop ? stop : end) - at)};
        size_t blanks = 0, gap, right;
        while (blanks < line.len && at[blanks] == ' ')
            blanks++;
        for (gap = blanks; gap + 1 < line.len && (at[gap] != ' ' || at[gap + 1] != ' ');)
            gap++;
        for (right = gap; right < line.len && at[right] == ' ';)
            right++;
        if (columns == 0 || line.len <= (size_t)columns)
            rlhf__buf_put(out, line.ptr, line.len);
        else if (gap + 1 < line.len)
            put_two(out, line, gap, right, (int)blanks, columns);
        else
            rlhf__put_wrapped(out, line, columns, 0, blanks ? (int)blanks + 4 : 0);
        if (stop) rlhf__buf_putc(out, '\n');
        at += line.len + (stop != NULL);
    }
}

int rlhf__page_width(FILE *to) {
    const char *given = getenv("COLUMNS");
    const int fd = fileno(to); // -1 for a stream in memory
    return fd < 0 ? 0 : rlhf__terminal_width(fd, given ? (int)strtol(given, NULL, 10) : 0);
}

void rlhf__print_two_columns(FILE *to, const char *text) {
    struct rlhf__buf page = RLHF__BUF_INIT;
    rlhf__put_two_columns(&page, (rlhf_str){text, strlen(text)}, rlhf__page_width(to));
    fputs(rlhf__buf_text(&page), to);
    rlhf__buf_finish(&page);
}

int rlhf__put_clipped(struct rlhf__buf *out, rlhf_str text, int columns) {
    int used = 0, used_at_dots = 0;
    size_t at = 0, dots = out->len; // where "..." goes if the rest does not fit
    while (at < text.len) {
        size_t before = out->len;
        int wide = put_char(out, text, &at);
        if (used + wide > columns) {
            // If the line is narrower than the dots, leave them out.
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
