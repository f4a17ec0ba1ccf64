// dataset.c: see dataset.h. One large buffer holds the requested fields of all rows, one after the
// other. In addition to its text, a row needs only a struct record (56 bytes), which says where its
// fields are.
#include "data/dataset.h"

#include "base/json.h"
#include "data/dataset_row.h"
#include "data/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { META = RLHF__N_TEXT_FIELDS, MESSAGES, PARTS };
#define ABSENT UINT32_MAX

struct record {
    uint64_t at; // where the row's first part begins in the buffer
    int64_t line;
    int32_t file, label, asked;
    uint32_t len[PARTS]; // lengths of the text fields, the meta, the messages; ABSENT: not stored
};

struct rlhf__dataset {
    struct rlhf__buf bytes;
    struct record *row; // [n]
    size_t n, cap;
    char **path; // [n_paths]
    size_t n_paths;
    int32_t n_labels, is_lines;
    int32_t completions; // 1 = a row is a prompt and a completion
};

// The state of a reading loop.
struct reader {
    const struct rlhf__dataset_opts *opts;
    struct rlhf__dataset *ds;
    const char *path;
    size_t file;
    int64_t line, seen; // line in the file; rows seen in all files
    struct rlhf__error *err;
};

static const char *field_name(const struct rlhf__dataset_opts *opts, int field) {
    static const char *const usual[] = {"text", "prompt", "chosen", "rejected", "label"};
    return opts->name[field] ? opts->name[field] : usual[field];
}

static int wants(const struct rlhf__dataset_opts *opts, int field) {
    return ((opts->need | opts->want) & RLHF__FIELD_BIT(field)) != 0;
}

static rlhf_status no_memory(struct rlhf__error *err) {
    rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the dataset");
    return RLHF_E_NOMEM;
}

// Returns NULL if memory runs out.
static struct record *add_record(struct reader *r) {
    struct rlhf__dataset *ds = r->ds;
    if (ds->n == ds->cap) {
        size_t cap = ds->cap ? ds->cap * 2 : 256;
        struct record *row = realloc(ds->row, cap * sizeof *row);
        if (!row) return NULL;
        ds->row = row;
        ds->cap = cap;
    }
    struct record *rec = &ds->row[ds->n++];
    *rec = (struct record){
        .at = ds->bytes.len, .line = r->line, .file = (int32_t)r->file, .label = -1};
    for (int i = 0; i < PARTS; i++)
        rec->len[i] = ABSENT;
    return rec;
}

static void put_part(struct reader *r, struct record *rec, int part, const char *s, size_t len) {
    rlhf__buf_put(&r->ds->bytes, s, len);
    rec->len[part] = (uint32_t)len; // a line has at most RLHF__LINE_MAX bytes
}

// Returns the name of a field that holds the row's text or messages but is null, or NULL.
static const char *null_field(const struct reader *r, const json_t *row) {
    static const char *const all[] = {"messages", "completion", "prompt"};
    for (int i = 0; i < 3; i++) {
        const int wanted = wants(r->opts, i ? RLHF__FIELD_COMPLETION : RLHF__FIELD_MESSAGES);
        if (wanted && json_is_null(json_object_get(row, all[i]))) return all[i];
    }
    return NULL;
}

static rlhf_status missing(struct reader *r, const json_t *row, int field) {
    const char *null = field < RLHF__N_TEXT_FIELDS ? null_field(r, row) : NULL;
    if (null)
        return rlhf__fail(r->err, RLHF_E_INVALID,
                          "%s:%lld: field '%s' is null, expected a text or messages", r->path,
                          (long long)r->line, null);
    if (field == RLHF__FIELD_TEXT && wants(r->opts, RLHF__FIELD_COMPLETION))
        return rlhf__fail(r->err, RLHF_E_INVALID,
                          "%s:%lld: the row has neither a field '%s', nor 'messages', nor 'prompt' "
                          "and 'completion'%s",
                          r->path, (long long)r->line, field_name(r->opts, field),
                          rlhf__completion_row_hint(row));
    if (field < RLHF__N_TEXT_FIELDS && wants(r->opts, RLHF__FIELD_MESSAGES))
        return rlhf__fail(r->err, RLHF_E_INVALID,
                          "%s:%lld: the row has neither a field '%s' nor 'messages'", r->path,
                          (long long)r->line, field_name(r->opts, field));
    return rlhf__fail(r->err, RLHF_E_INVALID, "%s:%lld: the row has no field '%s'", r->path,
                      (long long)r->line, field_name(r->opts, field));
}

static rlhf_status read_label(struct reader *r, const json_t *v, int32_t *out) {
    const char *name = field_name(r->opts, RLHF__FIELD_LABEL);
    rlhf_status st = rlhf__row_label_read(r->opts, name, v, out, r->err);
    if (st != RLHF_OK) rlhf__error_context(r->err, "%s:%lld", r->path, (long long)r->line);
    return st;
}

// ---- messages ----

// Finds the list of messages of a row. Returns the list and sets *name to its field: "messages" or,
// as TRL allows, a field that usually has a text. If the row lacks a list, or the reader does not
// want one, sets *name to NULL.
static const json_t *messages_of(const struct reader *r, const json_t *row, const char **name) {
    const json_t *v = json_object_get(row, "messages");
    *name = "messages";
    if (!wants(r->opts, RLHF__FIELD_MESSAGES)) *name = NULL;
    if (!*name || (v && !json_is_null(v))) return v;
    for (int field = 0; field < RLHF__N_TEXT_FIELDS; field++) {
        *name = field_name(r->opts, field);
        v = wants(r->opts, field) ? json_object_get(row, *name) : NULL;
        if (json_is_array(v)) return v;
    }
    *name = NULL;
    return NULL;
}

// The messages of `row` are in the field `name`. Returns another field of the row that is not
// allowed together with `name`, or NULL if there is none.
static const char *beside(const struct reader *r, const json_t *row, const char *name) {
    for (int field = 0; field < RLHF__N_TEXT_FIELDS; field++) {
        const char *other = field_name(r->opts, field);
        if (wants(r->opts, field) && strcmp(other, name) != 0 && json_object_get(row, other) &&
            !json_is_null(json_object_get(row, other)))
            return other;
    }
    return NULL;
}

static rlhf_status check_messages(struct reader *r, const json_t *row, const json_t *list,
                                  const char *name, json_t **tools) {
    struct rlhf__messages m = {0};
    const char *other = beside(r, row, name);
    rlhf_status st =
        other ? rlhf__fail(r->err, RLHF_E_INVALID,
                           "the row has '%s' and also '%s'; one of them is expected", name, other)
              : rlhf__messages_check_row(row, r->err);
    if (st == RLHF_OK) st = rlhf__messages_read(&m, list, name, r->err);
    if (st == RLHF_OK) st = rlhf__messages_tools(row, tools, r->err);
    if (st == RLHF_OK && r->opts->prompts) st = rlhf__messages_check_prompt(&m, name, r->err);
    rlhf__messages_finish(&m);
    if (st != RLHF_OK) rlhf__error_context(r->err, "%s:%lld", r->path, (long long)r->line);
    return st;
}

static rlhf_status read_messages(struct reader *r, const json_t *row, const json_t *list,
                                 const char *name, struct record *rec) {
    json_t *tools = NULL;
    RLHF_TRY(check_messages(r, row, list, name, &tools));
    char *text = rlhf__messages_pack(list, tools, rlhf__messages_vars(row));
    json_decref(tools);
    if (!text) return no_memory(r->err);
    size_t len = strlen(text);
    rlhf_status st = RLHF_OK;
    if (len < ABSENT) // always true: the text comes from one line
        put_part(r, rec, MESSAGES, text, len);
    else
        st = no_memory(r->err);
    free(text);
    return st;
}

rlhf_status rlhf__data_row_messages(const struct rlhf__data_row *row, json_t **held,
                                    struct rlhf__messages *out, struct rlhf__error *err) {
    return rlhf__messages_unpack(row->messages, held, out, err);
}

// ---- a prompt and a completion ----

int rlhf__data_row_is_pair(const struct rlhf__data_row *row) {
    return row->text[RLHF__FIELD_PROMPT].ptr && row->text[RLHF__FIELD_CHOSEN].ptr;
}

static int has(const json_t *row, const char *name) {
    const json_t *v = json_object_get(row, name);
    return v && !json_is_null(v);
}

// 1 if the reader wants completions, and the row has a completion instead of a text.
static int is_completion(const struct reader *r, const json_t *row) {
    return wants(r->opts, RLHF__FIELD_COMPLETION) && has(row, "completion") &&
           !has(row, field_name(r->opts, RLHF__FIELD_TEXT)) && !has(row, "messages");
}

static rlhf_status read_completion(struct reader *r, const json_t *row, struct record *rec) {
    struct rlhf__completion_row c = {.asked = 0};
    rlhf_status st = rlhf__completion_row_read(row, &c, r->err);
    if (st != RLHF_OK && st != RLHF_E_NOMEM)
        rlhf__error_context(r->err, "%s:%lld", r->path, (long long)r->line);
    if (st == RLHF_OK && c.messages) {
        put_part(r, rec, MESSAGES, c.messages, strlen(c.messages)); // not much longer than the line
        rec->asked = c.asked;
    } else if (st == RLHF_OK) {
        put_part(r, rec, RLHF__FIELD_PROMPT, c.prompt.ptr, (size_t)c.prompt.len);
        put_part(r, rec, RLHF__FIELD_CHOSEN, c.completion.ptr, (size_t)c.completion.len);
    }
    r->ds->completions = 1;
    free(c.messages);
    return st;
}

// ---- rows ----

static rlhf_status read_fields(struct reader *r, const json_t *row, struct record *rec) {
    const char *name;
    messages_of(r, row, &name);
    for (int field = 0; field <= RLHF__FIELD_LABEL; field++) {
        if (!wants(r->opts, field)) continue;
        const json_t *v = json_object_get(row, field_name(r->opts, field));
        if (name && field < RLHF__N_TEXT_FIELDS) continue;
        if (!v && (r->opts->need & RLHF__FIELD_BIT(field))) return missing(r, row, field);
        if (!v) continue;
        if (field == RLHF__FIELD_LABEL) {
            RLHF_TRY(read_label(r, v, &rec->label));
            if (rec->label >= r->ds->n_labels) r->ds->n_labels = rec->label + 1;
            continue;
        }
        if (!json_is_string(v))
            return rlhf__fail(r->err, RLHF_E_INVALID,
                              "%s:%lld: field '%s' is %s, expected a string", r->path,
                              (long long)r->line, field_name(r->opts, field), rlhf__json_kind(v));
        put_part(r, rec, field, json_string_value(v), json_string_length(v));
    }
    return RLHF_OK;
}

static rlhf_status read_json(struct reader *r, rlhf_str line, struct record *rec) {
    json_t *row;
    RLHF_TRY(rlhf__row_line_json(line, r->path, r->line, &row, r->err));
    const char *name;
    if (is_completion(r, row)) {
        rlhf_status read = read_completion(r, row, rec);
        json_decref(row);
        return read;
    }
    rlhf_status st = read_fields(r, row, rec);
    if (st == RLHF_OK && r->opts->keep_meta) put_part(r, rec, META, line.ptr, (size_t)line.len);
    const json_t *list = messages_of(r, row, &name);
    if (st == RLHF_OK && name) st = read_messages(r, row, list, name, rec);
    json_decref(row);
    return st;
}

static rlhf_status read_line(struct reader *r, rlhf_str line, struct record *rec) {
    int field = r->opts->line_field;
    for (int f = 0; f <= RLHF__FIELD_LABEL; f++)
        if (f != field && (r->opts->need & RLHF__FIELD_BIT(f)))
            return rlhf__fail(r->err, RLHF_E_INVALID,
                              "%s: a text file has no field '%s'; use JSON Lines", r->path,
                              field_name(r->opts, f));
    put_part(r, rec, field, line.ptr, (size_t)line.len);
    return RLHF_OK;
}

static rlhf_status read_row(struct reader *r, rlhf_str line, int text) {
    RLHF_TRY(rlhf__row_line_check(line, r->path, r->line, r->err));
    struct record *rec = add_record(r);
    if (!rec) return no_memory(r->err);
    RLHF_TRY(text ? read_line(r, line, rec) : read_json(r, line, rec));
    return r->ds->bytes.bad ? no_memory(r->err) : RLHF_OK;
}

static int full(const struct reader *r) {
    return r->opts->limit > 0 && r->ds->n >= (uint64_t)r->opts->limit;
}

static int is_stdin(const struct rlhf__dataset_opts *o, size_t file) {
    return o->standard_input && strcmp(o->paths[file], "-") == 0;
}

static rlhf_status read_file(struct reader *r) {
    int std = is_stdin(r->opts, r->file), more = 1, first = 1;
    int text = rlhf__data_is_text(r->path);
    struct rlhf__lines *lines = NULL;
    RLHF_TRY(std ? rlhf__lines_open_stdin(&lines, r->err)
                 : rlhf__lines_open(r->path, r->opts->setting, &lines, r->err));
    rlhf_status st = RLHF_OK;
    while (st == RLHF_OK && !full(r)) {
        rlhf_str line;
        st = rlhf__lines_next(lines, &line, &r->line, &more, r->err);
        if (st < 0 || !more) break;
        st = rlhf__loading_check(r->opts->loading, rlhf__dataset_bytes(r->ds), r->path, r->line,
                                 r->err);
        if (st < 0) break;
        rlhf__loading_seen(r->opts->loading, "reading rows", r->line, 0);
        if (rlhf__row_line_blank(line) || r->seen++ < r->opts->skip) continue;
        if (std && first) text = !rlhf__row_line_begins_object(line);
        first = 0;
        const size_t rows = r->ds->n, bytes = r->ds->bytes.len;
        int bad;
        st = read_row(r, line, text);
        if (std && !text) st = rlhf__row_line_hint_text(st, r->err);
        st = rlhf__bad_row(r->opts->loading, st, &bad, r->err);
        if (!bad) continue;
        r->ds->n = rows;
        r->ds->bytes.len = bytes;
    }
    r->ds->is_lines = text;
    rlhf__lines_close(lines);
    return st;
}

static rlhf_status read_files(struct reader *r) {
    const struct rlhf__dataset_opts *o = r->opts;
    for (r->file = 0; r->file < o->n_paths && !full(r); r->file++) {
        r->path = r->ds->path[r->file];
        int64_t before = r->seen;
        RLHF_TRY(read_file(r));
        if (r->seen == before && !full(r))
            return rlhf__fail(r->err, RLHF_E_INVALID, "%s: the file has no rows", r->path);
    }
    if (r->ds->n) return RLHF_OK;
    rlhf__fail(r->err, RLHF_E_INVALID,
               "%s: no rows are left: the data has %lld and %lld are skipped",
               o->n_paths ? o->paths[0] : "data", (long long)r->seen, (long long)o->skip);
    return rlhf__bad_rows_context(o->loading, r->err);
}

int rlhf__dataset_is_lines(const struct rlhf__dataset *ds) { return ds->is_lines; }

rlhf_status rlhf__dataset_open(const struct rlhf__dataset_opts *opts, struct rlhf__dataset **out,
                               struct rlhf__error *err) {
    if (!opts->n_paths) return rlhf__fail(err, RLHF_E_INVALID, "no data file is given");
    struct rlhf__dataset *ds = calloc(1, sizeof *ds);
    if (!ds) return no_memory(err);
    rlhf_status st = RLHF_OK;
    ds->path = calloc(opts->n_paths, sizeof *ds->path);
    for (size_t i = 0; ds->path && i < opts->n_paths; i++, ds->n_paths++)
        if (!(ds->path[i] = strdup(is_stdin(opts, i) ? "standard input" : opts->paths[i]))) break;
    if (!ds->path || ds->n_paths < opts->n_paths) st = no_memory(err);
    struct reader r = {.opts = opts, .ds = ds, .err = err};
    if (st == RLHF_OK) st = read_files(&r);
    if (st < 0) {
        rlhf__dataset_close(ds);
        return st;
    }
    char *bytes = realloc(ds->bytes.data, ds->bytes.len + 1); // release the spare capacity
    if (bytes) {
        ds->bytes.data = bytes;
        ds->bytes.cap = ds->bytes.len + 1;
    }
    *out = ds;
    return RLHF_OK;
}

void rlhf__dataset_close(struct rlhf__dataset *ds) {
    if (!ds) return;
    for (size_t i = 0; i < ds->n_paths; i++)
        free(ds->path[i]);
    free(ds->path);
    free(ds->row);
    rlhf__buf_finish(&ds->bytes);
    free(ds);
}

uint64_t rlhf__dataset_bytes(const struct rlhf__dataset *ds) {
    return ds->bytes.len + ds->n * sizeof *ds->row;
}

int64_t rlhf__dataset_rows(const struct rlhf__dataset *ds) { return (int64_t)ds->n; }

int64_t rlhf__dataset_chats(const struct rlhf__dataset *ds) {
    int64_t n = 0;
    for (size_t i = 0; i < ds->n; i++)
        n += ds->row[i].len[MESSAGES] != ABSENT;
    return n;
}

struct rlhf__data_row rlhf__dataset_row(const struct rlhf__dataset *ds, int64_t i) {
    const struct record *rec = &ds->row[i];
    struct rlhf__data_row out = {
        .label = rec->label, .file = rec->file, .line = rec->line, .asked = rec->asked};
    const char *at = ds->bytes.data + rec->at;
    for (int p = 0; p < PARTS; p++) {
        if (rec->len[p] == ABSENT) continue;
        rlhf_str s = {at, rec->len[p]};
        if (p == META)
            out.meta = s;
        else if (p == MESSAGES)
            out.messages = s;
        else
            out.text[p] = s;
        at += rec->len[p];
    }
    return out;
}

const char *rlhf__dataset_path(const struct rlhf__dataset *ds, int32_t i) { return ds->path[i]; }

void rlhf__dataset_where(const struct rlhf__dataset *ds, int64_t i, char *out, size_t cap) {
    snprintf(out, cap, "%s:%lld", ds->path[ds->row[i].file], (long long)ds->row[i].line);
}

int rlhf__dataset_completions(const struct rlhf__dataset *ds) { return ds->completions; }

int32_t rlhf__dataset_labels(const struct rlhf__dataset *ds) { return ds->n_labels; }
