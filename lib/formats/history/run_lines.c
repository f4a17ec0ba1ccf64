// run_lines.c: see run_lines.h.
#include "history/run_lines.h"

#include "history/loose_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK    ((size_t)64 << 10)
#define LINE_MAX ((size_t)8 << 20) // longer lines are skipped

// ---- phases ----

int64_t rlhf__run_row_phase(const json_t *row) {
    const json_t *v = json_object_get(row, "phase");
    const double phase = json_is_number(v) ? json_number_value(v) : -1;
    if (!(phase >= 0) || phase > (double)RLHF__RUN_PHASE_MAX) return -1;
    return (double)(int64_t)phase == phase ? (int64_t)phase : -1;
}

// Reads the phase at the beginning of a line, where the program writes it, without decoding the
// line. Returns -1 if the line does not begin with a phase.
static int64_t phase_at_start(const struct rlhf__buf *line) {
    static const char start[] = "{\"phase\": ";
    const size_t n = sizeof start - 1;
    int64_t phase = 0;
    if (line->len < n + 2 || memcmp(line->data, start, n) != 0) return -1;
    size_t i = n;
    for (; i < n + 15 && line->data[i] >= '0' && line->data[i] <= '9'; i++)
        phase = phase * 10 + (line->data[i] - '0');
    return i > n && (line->data[i] == ',' || line->data[i] == '}') ? phase : -1;
}

// ---- lines ----

rlhf_status rlhf__run_lines_open(struct rlhf__run_files *run, const char *name,
                                 struct rlhf__run_lines *out, struct rlhf__error *err) {
    *out = (struct rlhf__run_lines){.run = run, .name = name, .block = malloc(BLOCK), .fd = -1};
    if (!out->block) return RLHF__NOMEM(err, "%s: out of memory", name);
    out->fd = rlhf__run_files_fd(run, name, &out->left);
    return RLHF_OK;
}

void rlhf__run_lines_close(struct rlhf__run_lines *l) {
    if (l->skip)
        rlhf__run_files_trouble(l->run, "%s: %lld line%s without a JSON object of a phase, skipped",
                                l->name, (long long)l->skip, l->skip == 1 ? "" : "s");
    if (l->cut)
        rlhf__run_files_trouble(
            l->run, "%s ends within a line: it is still being written, or was truncated", l->name);
    if (l->fd >= 0) close(l->fd);
    json_decref(l->row);
    rlhf__buf_finish(&l->line);
    free(l->block);
    *l = (struct rlhf__run_lines){.fd = -1};
}

void rlhf__run_lines_more(struct rlhf__run_lines *l) {
    struct stat s;
    const off_t at = l->fd >= 0 && l->left == 0 ? lseek(l->fd, 0, SEEK_CUR) : -1;
    if (at >= 0 && fstat(l->fd, &s) == 0 && s.st_size > at) l->left = s.st_size - at;
}

// Read more bytes of the file into the block. Returns 0 at the end of the file.
static int fill(struct rlhf__run_lines *l) {
    if (l->fd < 0 || l->left <= 0) return 0;
    const size_t want = l->left < (int64_t)BLOCK ? (size_t)l->left : BLOCK;
    ssize_t n;
    do
        n = read(l->fd, l->block, want);
    while (n < 0 && errno == EINTR);
    if (n < 0) rlhf__run_files_trouble(l->run, "%s: %s", l->name, strerror(errno));
    l->left = n > 0 ? l->left - n : 0;
    l->at = 0;
    l->have = n > 0 ? (size_t)n : 0;
    return n > 0;
}

// Read one line. Returns 0 at the end of the file.
static int read_line(struct rlhf__run_lines *l) {
    int long_line = 0, any = 0;
    rlhf__buf_clear(&l->line);
    for (;;) {
        if (l->at == l->have && !fill(l)) {
            l->cut |= any;
            return 0;
        }
        any = 1;
        const char *from = l->block + l->at, *end = memchr(from, '\n', l->have - l->at);
        const size_t n = end ? (size_t)(end - from) : l->have - l->at;
        long_line |= l->line.len + n > LINE_MAX;
        if (!long_line) rlhf__buf_put(&l->line, from, n);
        l->at += n + (end != NULL);
        if (!end) continue;
        if (long_line || l->line.bad) rlhf__buf_clear(&l->line);
        return 1;
    }
}

json_t *rlhf__run_lines_row(struct rlhf__run_lines *l) {
    if (l->row) return l->row;
    json_t *row = rlhf__loose_json(rlhf__buf_text(&l->line), l->line.len);
    if (json_is_object(row) && rlhf__run_row_phase(row) >= 0) return l->row = row;
    json_decref(row);
    l->skip++;
    return NULL;
}

int rlhf__run_lines_next(struct rlhf__run_lines *l) {
    while (read_line(l)) {
        json_decref(l->row);
        l->row = NULL;
        l->phase = phase_at_start(&l->line);
        if (l->phase >= 0) return 1;
        if (!rlhf__run_lines_row(l)) continue;
        l->phase = rlhf__run_row_phase(l->row);
        return 1;
    }
    return 0;
}

// ---- the first and the last row ----

// Finds the last line of text[n] that is an object with a phase. Returns the object, or NULL. Text
// after the last line end is skipped. If `whole` is 0, the text may begin in the middle of a line,
// so the first line is skipped as well.
static json_t *last_row(const char *text, size_t n, int whole) {
    const char *end = n ? memrchr(text, '\n', n) : NULL;
    while (end) {
        const char *before = end > text ? memrchr(text, '\n', (size_t)(end - text)) : NULL;
        if (!before && !whole) return NULL;
        const char *from = before ? before + 1 : text;
        json_t *row = rlhf__loose_json(from, (size_t)(end - from));
        if (json_is_object(row) && rlhf__run_row_phase(row) >= 0) return row;
        json_decref(row);
        end = before;
    }
    return NULL;
}

static json_t *find_last(struct rlhf__run_files *run, const char *name) {
    int64_t size;
    json_t *row = NULL;
    const int fd = rlhf__run_files_fd(run, name, &size);
    for (int64_t want = 1 << 16; fd >= 0 && !row; want *= 8) {
        const int64_t n = want < size ? want : size;
        char *text = malloc((size_t)n + 1);
        const ssize_t got = text ? pread(fd, text, (size_t)n, (off_t)(size - n)) : 0;
        if (got > 0) row = last_row(text, (size_t)got, n == size);
        free(text);
        if (n == size || n >= (int64_t)LINE_MAX) break;
    }
    if (fd >= 0) close(fd);
    return row;
}

void rlhf__run_lines_ends(struct rlhf__run_files *run, const char *name, json_t **first,
                          json_t **last) {
    struct rlhf__run_lines l;
    json_t *const said = run->trouble; // reading the whole file will report these problems
    run->trouble = json_array();
    *first = *last = NULL;
    if (rlhf__run_lines_open(run, name, &l, NULL) == RLHF_OK) {
        while (!*first && rlhf__run_lines_next(&l))
            *first = json_incref(rlhf__run_lines_row(&l));
        rlhf__run_lines_close(&l);
    }
    if (*first) *last = find_last(run, name);
    json_decref(run->trouble);
    run->trouble = said;
}
