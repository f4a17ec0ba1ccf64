// lines.c: see lines.h. zlib also reads uncompressed files, so one code path serves both.
#include "data/lines.h"

#include "base/file.h"
#include "base/json.h"
#include "base/signals.h"
#include "text/unicode.h"

#include <zlib.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- how a file is loaded ----

static rlhf_status too_much(int64_t max_mib, const char *setting, const char *path, int64_t line,
                            struct rlhf__error *err) {
    char where[32] = "", size[64] = "";
    struct stat st;
    if (line > 0) snprintf(where, sizeof where, ":%lld", (long long)line);
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        snprintf(size, sizeof size, " (the file has %.1f MiB)", (double)st.st_size / (1 << 20));
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s%s: the rows and their tokens take more memory than the %lld MiB that %s "
                      "allows%s; raise it or use fewer rows",
                      path, where, (long long)max_mib, setting, size);
}

rlhf_status rlhf__loading_check(const struct rlhf__loading *l, uint64_t bytes, const char *path,
                                int64_t line, struct rlhf__error *err) {
    int64_t max_mib = l && l->max_mib > 0 ? l->max_mib : RLHF__DATA_MAX_MIB;
    if (l && l->cancelled && *l->cancelled)
        return rlhf__fail(err, RLHF_E_CANCELLED, "%s: stopped while its rows were loaded", path);
    if (bytes <= (uint64_t)max_mib << 20) return RLHF_OK;
    return too_much(max_mib, l && l->setting ? l->setting : "data.max_mib", path, line, err);
}

void rlhf__loading_seen(const struct rlhf__loading *l, const char *what, int64_t done, int64_t of) {
    if (l && done % 256 == 0) rlhf__watch_seen(l->watch, what, done, of);
}

// ---- kinds of values ----

static const struct kind {
    const char *end, *name, *instead;
} kinds[] = {
#define PANDAS(read)                                                                               \
    "in Python, pandas." read ".to_json(\"rows.jsonl\", orient=\"records\", lines=True)"
    {".csv", "a CSV", PANDAS("read_csv(\"FILE\")") " writes that"},
    {".tsv", "a TSV", PANDAS("read_csv(\"FILE\", sep=\"\\t\")") " writes that"},
    {".parquet", "a Parquet", PANDAS("read_parquet(\"FILE\")") " writes that"},
    {".feather", "a Feather", PANDAS("read_feather(\"FILE\")") " writes that"},
    {".arrow", "an Arrow",
     "in Python, datasets.Dataset.from_file(\"FILE\").to_json(\"rows.jsonl\") "
     "writes that"},
    {".xlsx", "an Excel", PANDAS("read_excel(\"FILE\")") " writes that"},
    {".pkl", "a pickle", PANDAS("read_pickle(\"FILE\")") " writes that"},
    {".zst", "a Zstandard", "unpack it, gzip is the only compression"},
    {".xz", "an xz", "unpack it, gzip is the only compression"},
    {".bz2", "a bzip2", "unpack it, gzip is the only compression"},
    {".zip", "a zip", "unpack it, gzip is the only compression"},
    {".tar", "a tar", "unpack it"},
    {".safetensors", "a safetensors", "it holds weights, not rows"},
};

// Length of `path` without ".gz".
static size_t plain_length(const char *path) {
    size_t n = strlen(path);
    return n > 3 && !strcasecmp(path + n - 3, ".gz") ? n - 3 : n;
}

static int ends_with(const char *path, size_t n, const char *end) {
    size_t k = strlen(end);
    return n > k && !strncasecmp(path + n - k, end, k);
}

// Refuses files of other kinds (CSV, Parquet, ...) with RLHF_E_UNSUPPORTED and advice.
static rlhf_status check_kind(const char *path, struct rlhf__error *err) {
    size_t n = plain_length(path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ends_with(path, n, kinds[i].end))
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "%s: %s file is not read; rows are JSON Lines (.jsonl, .jsonl.gz) or "
                              "lines of text (.txt, .txt.gz): %s",
                              path, kinds[i].name, kinds[i].instead);
    return RLHF_OK;
}

// Returns RLHF_E_INVALID if a .json or .jsonl file begins with "[": such a file is a single list,
// not rows.
static rlhf_status check_begin(const char *path, int first, struct rlhf__error *err) {
    size_t n = plain_length(path);
    if (first != '[' || !(ends_with(path, n, ".json") || ends_with(path, n, ".jsonl")))
        return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s:1: a JSON list, expected JSON Lines, one object a line: jq -c .[] FILE "
                      "writes that",
                      path);
}

int rlhf__data_is_text(const char *path) { return ends_with(path, plain_length(path), ".txt"); }

// ---- bad rows ----

rlhf_status rlhf__bad_row(const struct rlhf__loading *l, rlhf_status st, int *left_out,
                          const struct rlhf__error *err) {
    *left_out = st == RLHF_E_INVALID && l && l->bad;
    if (!*left_out) return st;
    if (l->bad->n < RLHF__BAD_ROWS_NAMED)
        snprintf(l->bad->first[l->bad->n], sizeof l->bad->first[0], "%.500s", err->text);
    l->bad->n++;
    return RLHF_OK;
}

void rlhf__bad_rows_add(struct rlhf__bad_rows *to, const struct rlhf__bad_rows *from) {
    for (int64_t i = 0, at = to->n; i < from->n && i < RLHF__BAD_ROWS_NAMED; i++, at++)
        if (at < RLHF__BAD_ROWS_NAMED) memcpy(to->first[at], from->first[i], sizeof to->first[0]);
    to->n += from->n;
}

rlhf_status rlhf__bad_rows_context(const struct rlhf__loading *l, struct rlhf__error *err) {
    const size_t n = strlen(err->text);
    if (l && l->bad && l->bad->n > 0)
        snprintf(err->text + n, sizeof err->text - n, "; bad rows: %lld, the first: %s",
                 (long long)l->bad->n, l->bad->first[0]);
    return err->code;
}

// ---- lines ----

#define FIRST_BYTES ((size_t)1 << 18) // initial size of the buffer; it grows with the longest line

struct rlhf__lines {
    gzFile file;
    const char *path;
    char *data; // [cap]; bytes [begin, end) are read but not returned yet
    size_t begin, end, cap;
    int64_t number;
    int32_t at_end;
    int32_t waits; // 1: reading may wait for another program
};

static int may_wait(const char *path, int fd) {
    struct stat s;
    return (fd < 0 ? stat(path, &s) : fstat(fd, &s)) == 0 && !S_ISREG(s.st_mode);
}

// Call these before and after an operation that may wait. A signal that asks to end then interrupts
// it. wait_begin returns 0 if such a signal has come already.
static int wait_begin(int waits) {
    if (waits) rlhf__signals_break_calls(1);
    return !waits || !*rlhf__signals_flag();
}

static void wait_end(int waits) {
    if (waits) rlhf__signals_break_calls(0);
}

static rlhf_status stopped(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
}

static gzFile open_file(const char *path, int fd, int waits) {
    gzFile file = NULL;
    errno = EINTR;
    if (wait_begin(waits)) {
        errno = 0;
        file = fd < 0 ? gzopen(path, "rb") : gzdopen(fd, "rb");
    }
    wait_end(waits); // keeps errno
    return file;
}

static rlhf_status read_error(struct rlhf__lines *l, struct rlhf__error *err) {
    int code = Z_OK;
    const char *why = gzerror(l->file, &code);
    if (code == Z_OK) return RLHF_OK;
    if (code == Z_BUF_ERROR)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the gzip file is truncated (after line %lld)",
                          l->path, (long long)l->number);
    if (code == Z_ERRNO && errno == EINTR) return stopped(err);
    if (code == Z_ERRNO)
        return rlhf__fail(err, RLHF_E_IO, "cannot read %s: %s", l->path, strerror(errno));
    return rlhf__fail(err, code == Z_MEM_ERROR ? RLHF_E_NOMEM : RLHF_E_INVALID,
                      "%s: the gzip file is damaged after line %lld: %s", l->path,
                      (long long)l->number, why);
}

// Read more bytes into the buffer at `end`.
static rlhf_status fill(struct rlhf__lines *l, struct rlhf__error *err) {
    if (l->begin) {
        memmove(l->data, l->data + l->begin, l->end - l->begin);
        l->end -= l->begin;
        l->begin = 0;
    }
    if (l->cap - l->end < 65536) {
        size_t cap = l->cap * 2;
        char *data = realloc(l->data, cap);
        if (!data) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %s", l->path);
        l->data = data;
        l->cap = cap;
    }
    const int goes_on = wait_begin(l->waits);
    int n = goes_on ? gzread(l->file, l->data + l->end, (unsigned)(l->cap - l->end)) : 0;
    wait_end(l->waits); // keeps errno
    if (!goes_on) return stopped(err);
    if (n <= 0) {
        RLHF_TRY(read_error(l, err));
        l->at_end = 1;
        return RLHF_OK;
    }
    l->end += (size_t)n;
    return RLHF_OK;
}

// Opens `path` or, if `fd` is not -1, reads from `fd`. Takes ownership of `fd`, also on failure.
static rlhf_status open_lines(const char *path, int fd, struct rlhf__lines **out,
                              struct rlhf__error *err) {
    struct rlhf__lines *l = calloc(1, sizeof *l);
    char *data = l ? malloc(FIRST_BYTES) : NULL;
    const int waits = may_wait(path, fd);
    errno = ENOMEM;
    gzFile file = data ? open_file(path, fd, waits) : NULL;
    if (!file) {
        int why = errno ? errno : ENOMEM;
        int wrong = why == ENOENT || why == ENOTDIR || why == ENAMETOOLONG || why == EACCES;
        free(data);
        free(l);
        if (fd >= 0) close(fd);
        if (why == EINTR) return stopped(err);
        return rlhf__fail(err, wrong ? RLHF_E_INVALID : RLHF_E_IO, "cannot open %s: %s", path,
                          strerror(why));
    }
    *l = (struct rlhf__lines){
        .file = file, .path = path, .data = data, .cap = FIRST_BYTES, .waits = waits};
    gzbuffer(l->file, 1 << 17);
    rlhf_status st = check_kind(path, err);
    if (st == RLHF_OK) st = fill(l, err);
    if (st == RLHF_OK) st = check_begin(path, l->end ? (unsigned char)*l->data : -1, err);
    if (st == RLHF_OK)
        *out = l;
    else
        rlhf__lines_close(l);
    return st;
}

rlhf_status rlhf__lines_open(const char *path, const char *setting, struct rlhf__lines **out,
                             struct rlhf__error *err) {
    rlhf_status st;
    if (rlhf__is_dir(path))
        st = rlhf__fail(err, RLHF_E_INVALID, "%s is a directory, expected a file", path);
    else
        st = open_lines(path, -1, out, err);
    return st == RLHF_OK || !setting ? st : rlhf__error_context(err, "%s", setting);
}

rlhf_status rlhf__lines_open_stdin(struct rlhf__lines **out, struct rlhf__error *err) {
    int fd = dup(STDIN_FILENO);
    if (fd < 0)
        return rlhf__fail(err, RLHF_E_IO, "standard input cannot be read: %s", strerror(errno));
    return open_lines("standard input", fd, out, err);
}

void rlhf__lines_close(struct rlhf__lines *l) {
    if (!l) return;
    gzclose_r(l->file);
    free(l->data);
    free(l);
}

// Returns the next line, which is the `len` bytes at `begin`. Moves past the line and past its line
// end, which has `skip` bytes.
static rlhf_str take(struct rlhf__lines *l, size_t len, size_t skip) {
    const char *s = l->data + l->begin;
    l->begin += len + skip;
    l->number++;
    if (len && s[len - 1] == '\r') len--;
    if (l->number == 1 && len >= 3 && !memcmp(s, "\xEF\xBB\xBF", 3)) {
        s += 3;
        len -= 3;
    }
    return (rlhf_str){s, len};
}

rlhf_status rlhf__lines_next(struct rlhf__lines *l, rlhf_str *line, int64_t *number, int *more,
                             struct rlhf__error *err) {
    size_t seen = 0; // bytes after `begin` that have been searched for a line end
    *more = 1;
    for (;;) {
        size_t have = l->end - l->begin;
        const char *eol = memchr(l->data + l->begin + seen, '\n', have - seen);
        if ((eol ? (size_t)(eol - (l->data + l->begin)) : have) > RLHF__LINE_MAX)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s:%lld: the line is longer than the %zu MiB a line may have",
                              l->path, (long long)l->number + 1, RLHF__LINE_MAX >> 20);
        if (eol || (l->at_end && have)) {
            size_t len = eol ? (size_t)(eol - (l->data + l->begin)) : have;
            *line = take(l, len, eol != NULL);
            *number = l->number;
            return RLHF_OK;
        }
        seen = have;
        if (l->at_end) {
            *more = 0;
            return RLHF_OK;
        }
        RLHF_TRY(fill(l, err));
    }
}

// ---- rows ----

int rlhf__row_line_blank(rlhf_str line) {
    for (uint64_t i = 0; i < line.len; i++)
        if (!strchr(" \t\v\f\r", line.ptr[i]) || !line.ptr[i]) return 0;
    return 1;
}

int rlhf__row_line_begins_object(rlhf_str line) {
    uint64_t i = 0;
    while (i < line.len && isspace((unsigned char)line.ptr[i]))
        i++;
    if (i == line.len || line.ptr[i] != '{') return 0;
    for (i++; i < line.len && isspace((unsigned char)line.ptr[i]);)
        i++;
    return i == line.len || line.ptr[i] == '"';
}

rlhf_status rlhf__row_line_hint_text(rlhf_status st, struct rlhf__error *err) {
    const size_t n = strlen(err->text);
    if (st == RLHF_E_INVALID)
        snprintf(err->text + n, sizeof err->text - n,
                 " (standard input begins with {, so its lines are JSON rows; such a text is "
                 "given as {\"prompt\": ...})");
    return st;
}

rlhf_status rlhf__row_line_check(rlhf_str line, const char *path, int64_t number,
                                 struct rlhf__error *err) {
    size_t good = rlhf__utf8_valid(line.ptr, (size_t)line.len);
    if (good == line.len) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s:%lld: invalid UTF-8 at byte %zu of the line", path,
                      (long long)number, good + 1);
}

rlhf_status rlhf__row_line_json(rlhf_str line, const char *path, int64_t number, json_t **out,
                                struct rlhf__error *err) {
    json_error_t why;
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    *out = rlhf__json_decode_digits(line.ptr, (size_t)line.len, flags, &why);
    if (*out && !rlhf__json_widen(*out)) {
        json_decref(*out);
        *out = rlhf__json_decode(line.ptr, (size_t)line.len, flags, &why); // finds the place
    }
    if (!*out) return rlhf__json_line_failed(path, number, &why, err);
    if (rlhf__json_is_object(*out)) return RLHF_OK;
    rlhf_status st = rlhf__fail(err, RLHF_E_INVALID, "%s:%lld: the row is %s, expected an object",
                                path, (long long)number, rlhf__json_kind(*out));
    json_decref(*out);
    *out = NULL;
    return st;
}

// ---- writing JSON Lines ----

struct rlhf__line_writer {
    struct rlhf__file_writer *file;
    int32_t gz, open; // open = 1: deflateEnd is needed
    z_stream z;
    unsigned char out[65536];
};

static int ends_with_gz(const char *s) {
    size_t n = strlen(s);
    return n >= 3 && strcmp(s + n - 3, ".gz") == 0;
}

// Check `target` itself even if it is a link, because the new file would replace the link, not the
// link's target.
rlhf_status rlhf__line_writer_free_target(const char *command, const char *target, int force,
                                          struct rlhf__error *err) {
    struct stat there;
    const char *why = "; --force replaces it";
    if (lstat(target, &there) != 0) return RLHF_OK; // if it cannot be created, opening it says why
    if (S_ISREG(there.st_mode) && force) return RLHF_OK;
    if (S_ISDIR(there.st_mode))
        why = " and is a directory";
    else if (S_ISLNK(there.st_mode))
        why = " and is a link, not a regular file";
    else if (!S_ISREG(there.st_mode))
        why = " and is not a regular file";
    return rlhf__fail(err, RLHF_E_INVALID, "%s: --out '%s' exists already%s", command, target, why);
}

rlhf_status rlhf__line_writer_open(const char *target, struct rlhf__line_writer **out,
                                   struct rlhf__error *err) {
    struct rlhf__line_writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w) return RLHF__NOMEM(err, "out of memory for '%s'", target);
    w->gz = ends_with_gz(target);
    // The 16 requests a gzip header, which zlib writes without a time or a name.
    if (w->gz && deflateInit2(&w->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(w);
        return RLHF__NOMEM(err, "out of memory for '%s'", target);
    }
    w->open = w->gz;
    rlhf_status st = rlhf__file_writer_open(NULL, target, &w->file, err);
    if (st == RLHF_OK)
        *out = w;
    else
        rlhf__line_writer_abort(w);
    return st;
}

static rlhf_status deflate_bytes(struct rlhf__line_writer *w, const char *bytes, size_t n,
                                 int flush, struct rlhf__error *err) {
    // zlib does not write to its input, although the pointer is not const.
    w->z.next_in = (unsigned char *)(uintptr_t)bytes;
    w->z.avail_in = (unsigned)n;
    rlhf_status st = RLHF_OK;
    do {
        w->z.next_out = w->out;
        w->z.avail_out = sizeof w->out;
        deflate(&w->z, flush); // cannot fail: the stream is valid, and there is room for the output
        st = rlhf__file_writer_put(w->file, w->out, sizeof w->out - w->z.avail_out, err);
    } while (st == RLHF_OK && w->z.avail_out == 0);
    return st;
}

rlhf_status rlhf__line_writer_put_new(struct rlhf__line_writer *w, json_t *row,
                                      struct rlhf__error *err) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    if (!row) return RLHF__NOMEM(err, "out of memory writing rows");
    rlhf__json_write(&line, row, 0);
    rlhf__buf_putc(&line, '\n');
    json_decref(row);
    rlhf_status st = rlhf__buf_ok(&line, err);
    if (st == RLHF_OK)
        st = w->gz ? deflate_bytes(w, line.data, line.len, Z_NO_FLUSH, err)
                   : rlhf__file_writer_put(w->file, line.data, line.len, err);
    rlhf__buf_finish(&line);
    return st;
}

rlhf_status rlhf__line_writer_commit(struct rlhf__line_writer *w, struct rlhf__error *err) {
    rlhf_status st = w->gz ? deflate_bytes(w, "", 0, Z_FINISH, err) : RLHF_OK;
    if (st == RLHF_OK) {
        st = rlhf__file_writer_commit(w->file, err);
        w->file = NULL;
    }
    rlhf__line_writer_abort(w);
    return st;
}

void rlhf__line_writer_abort(struct rlhf__line_writer *w) {
    if (!w) return;
    rlhf__file_writer_abort(w->file);
    if (w->open) deflateEnd(&w->z);
    free(w);
}
