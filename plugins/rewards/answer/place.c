// place.c: see place.h. Each function reads the text once.
#include "answer/place.h"

#include "answer/letters.h"

// The number of open boxes that are remembered. If there are more, the outermost are forgotten
// first.
enum { MAX_OPEN = 64 };

struct boxes {
    uint64_t begin[MAX_OPEN], depth[MAX_OPEN]; // ring buffers
    uint64_t n, first;
};

// If a box begins at `at`, returns the position of its contents, otherwise 0.
static uint64_t inside_box(rlhf_str text, uint64_t at) {
    static const char *const names[] = {"\\boxed", "\\fbox"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t n = strlen(names[i]);
        if (text.len - at < n || memcmp(text.ptr + at, names[i], n) != 0) continue;
        uint64_t k = at + n;
        while (k < text.len && text.ptr[k] == ' ')
            k++;
        if (k < text.len && text.ptr[k] == '{') return k + 1;
    }
    return 0;
}

static void open_box(struct boxes *b, uint64_t begin, uint64_t depth) {
    const uint64_t k = b->n++ % MAX_OPEN;
    b->begin[k] = begin;
    b->depth[k] = depth;
    if (b->n - b->first > MAX_OPEN) b->first++;
}

// Closes the brace that was opened at this depth. If it belongs to a box, returns the position of
// the box's contents, otherwise 0.
static uint64_t close_box(struct boxes *b, uint64_t depth) {
    if (b->n == b->first || b->depth[(b->n - 1) % MAX_OPEN] != depth) return 0;
    return b->begin[--b->n % MAX_OPEN];
}

int rlhf__place_boxed(rlhf_str text, rlhf_str *out) {
    struct boxes b = {.n = 0};
    uint64_t depth = 0;
    int found = 0;
    for (uint64_t at = 0; at < text.len; at++) {
        const char c = text.ptr[at];
        const uint64_t begin = c == '\\' ? inside_box(text, at) : 0;
        if (begin) {
            open_box(&b, begin, depth++);
            at = begin - 1;
        } else if (c == '\\' && at + 1 < text.len && rlhf__is_one_of(text.ptr[at + 1], "\\{}")) {
            at += !inside_box(text, at + 1); // a box whose backslash is escaped counts too
        } else if (c == '{') {
            depth++;
        } else if (c == '}' && depth > 0) {
            const uint64_t from = close_box(&b, --depth);
            if (!from) continue;
            *out = (rlhf_str){text.ptr + from, at - from};
            found = 1;
        }
    }
    return found;
}

int rlhf__place_after(rlhf_str text, rlhf_str mark, rlhf_str *out) {
    if (!mark.len || text.len < mark.len) return 0;
    for (uint64_t at = text.len - mark.len + 1; at-- > 0;) {
        if (text.ptr[at] != *mark.ptr || memcmp(text.ptr + at, mark.ptr, (size_t)mark.len) != 0)
            continue;
        at += mark.len;
        *out = (rlhf_str){text.ptr + at, text.len - at};
        return 1;
    }
    return 0;
}

int rlhf__place_behind(rlhf_str text, rlhf_str mark, rlhf_str *out) {
    if (!rlhf__place_after(text, mark, out)) return 0;
    while (out->len && rlhf__is_space(*out->ptr)) {
        out->ptr++;
        out->len--;
    }
    const char *line = out->len ? memchr(out->ptr, '\n', (size_t)out->len) : NULL;
    if (line) out->len = (uint64_t)(line - out->ptr);
    return 1;
}
