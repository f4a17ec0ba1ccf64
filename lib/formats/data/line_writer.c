// line_writer.c: see line_writer.h.
#include "data/line_writer.h"

#include "base/file.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

struct rlhf__line_writer {
    struct rlhf__file_writer *file;
    int32_t gz, open; // open: z must be ended
    z_stream z;
    unsigned char out[65536];
};

static int ends_with_gz(const char *s) {
    size_t n = strlen(s);
    return n >= 3 && strcmp(s + n - 3, ".gz") == 0;
}

// Check the name itself, not its link target: the file would replace the link.
rlhf_status rlhf__line_writer_free_target(const char *command, const char *target, int force,
                                          struct rlhf__error *err) {
    struct stat there;
    const char *why = "; --force replaces it";
    if (lstat(target, &there) != 0) return RLHF_OK; // if it cannot be created, opening reports why
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
    // 16 asks for a gzip header; zlib writes it without time and name.
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
    // zlib does not write to its input.
    w->z.next_in = (unsigned char *)(uintptr_t)bytes;
    w->z.avail_in = (unsigned)n;
    rlhf_status st = RLHF_OK;
    do {
        w->z.next_out = w->out;
        w->z.avail_out = sizeof w->out;
        deflate(&w->z, flush); // cannot fail: the stream is sound and there is room
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
    rlhf__buf_free(&line);
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
