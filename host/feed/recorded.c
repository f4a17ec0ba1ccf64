// recorded.c: see recorded.h.
#include "feed/recorded.h"

#include "base/json.h"
#include "history/text_lines.h"

#include <stdio.h>
#include <stdlib.h>

struct rlhf__recorded {
    struct rlhf__text_lines file;
    int64_t phase; // of the current line; 0 = none has been read, or the file has ended
    json_t *rows, *updates;
};

// ---- the file ----

rlhf_status rlhf__recorded_open(const char *path, struct rlhf__recorded **out,
                                struct rlhf__error *err) {
    struct rlhf__recorded *r = *out = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory for %s", path);
    const rlhf_status st = rlhf__text_lines_open(path, &r->file, err);
    if (st == RLHF_OK) return RLHF_OK;
    rlhf__text_lines_close(&r->file);
    free(r);
    *out = NULL;
    return st;
}

static void forget(struct rlhf__recorded *r) {
    json_decref(r->rows);
    json_decref(r->updates);
    r->rows = r->updates = NULL;
}

void rlhf__recorded_close(struct rlhf__recorded *r) {
    if (!r) return;
    forget(r);
    rlhf__text_lines_close(&r->file);
    free(r);
}

static rlhf_status parse(const struct rlhf__recorded *r, json_t **out, struct rlhf__error *err) {
    json_error_t why;
    *out = rlhf__json_decode(rlhf__buf_text(&r->file.line), r->file.line.len,
                             JSON_REJECT_DUPLICATES, &why);
    return *out ? RLHF_OK : rlhf__json_line_failed(r->file.path, r->file.number, &why, err);
}

// Set r->phase to the phase of the current line. A line of a file that this program wrote begins
// with the phase, so only its beginning is read. Any other line is parsed as a whole.
static rlhf_status find_phase(struct rlhf__recorded *r, struct rlhf__error *err) {
    long long phase = 0;
    json_t *v = NULL;
    if (sscanf(rlhf__buf_text(&r->file.line), "{\"phase\": %lld,", &phase) != 1) {
        RLHF_TRY(parse(r, &v, err));
        phase = json_integer_value(json_object_get(v, "phase"));
        json_decref(v);
    }
    r->phase = phase;
    if (phase > 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s:%lld: the line has no phase", r->file.path,
                      (long long)r->file.number);
}

// Read the next line. r->phase is 0 at the end of the file.
static rlhf_status advance(struct rlhf__recorded *r, struct rlhf__error *err) {
    int more;
    r->phase = 0;
    RLHF_TRY(rlhf__text_lines_next(&r->file, &more, err));
    return more ? find_phase(r, err) : RLHF_OK;
}

static rlhf_status keep(struct rlhf__recorded *r, struct rlhf__error *err) {
    json_t *v = NULL;
    RLHF_TRY(parse(r, &v, err));
    json_array_append_new(json_object_get(v, "row") ? r->rows : r->updates, v);
    return RLHF_OK;
}

rlhf_status rlhf__recorded_seek(struct rlhf__recorded *r, int64_t phase, int *found,
                                struct rlhf__error *err) {
    *found = 0;
    forget(r);
    r->rows = json_array();
    r->updates = json_array();
    if (r->phase == 0 || r->phase > phase) {
        rlhf__text_lines_rewind(&r->file);
        RLHF_TRY(advance(r, err));
    }
    while (r->phase > 0 && r->phase < phase)
        RLHF_TRY(advance(r, err));
    while (r->phase == phase) {
        RLHF_TRY(keep(r, err));
        RLHF_TRY(advance(r, err));
    }
    *found = json_array_size(r->rows) > 0 && json_array_size(r->updates) > 0;
    return RLHF_OK;
}

const json_t *rlhf__recorded_rows(const struct rlhf__recorded *r) { return r->rows; }
const json_t *rlhf__recorded_updates(const struct rlhf__recorded *r) { return r->updates; }

const char *rlhf__recorded_path(const struct rlhf__recorded *r) { return r->file.path; }
