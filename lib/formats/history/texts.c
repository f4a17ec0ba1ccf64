// texts.c: see texts.h.
#include "history/texts.h"

#include "history/text_cell.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX   12                 // rows in a set
#define SHOWN      3                  // phases that are shown: first, middle, last
#define HELD_MAX   1000               // rows of a phase that are examined
#define HELD_BYTES ((size_t)16 << 20) // bytes of these lines
#define PHASES_MAX ((size_t)1 << 20)

// The phases that have rows of one kind. Some of these phases are shown; only their rows are kept.
struct kind {
    int64_t *phase; // [n], ascending
    size_t n, cap;
    int64_t shown[SHOWN];
    json_t *rows[SHOWN]; // lists
    size_t bytes[SHOWN]; // of their lines
    size_t n_shown;
};

// ---- which phases ----

static rlhf_status add_phase(struct kind *k, int64_t phase, struct rlhf__error *err) {
    if (k->n && k->phase[k->n - 1] >= phase) return RLHF_OK;
    if (k->n == PHASES_MAX) return RLHF_OK;
    if (k->n == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 64;
        int64_t *more = realloc(k->phase, k->cap * sizeof *more);
        if (!more) return RLHF__NOMEM(err, "out of memory for samples");
        k->phase = more;
    }
    k->phase[k->n++] = phase;
    return RLHF_OK;
}

static void choose(struct kind *k) {
    const size_t at[SHOWN] = {0, k->n / 2, k->n - 1};
    for (size_t i = 0; k->n && i < SHOWN; i++) {
        if (k->n_shown && k->shown[k->n_shown - 1] == k->phase[at[i]]) continue;
        k->rows[k->n_shown] = json_array();
        k->shown[k->n_shown++] = k->phase[at[i]];
    }
}

static void kind_finish(struct kind *k) {
    for (size_t i = 0; i < k->n_shown; i++)
        json_decref(k->rows[i]);
    free(k->phase);
}

// Returns 1 if the row has the mark of a held-out prompt. The program writes this mark near the
// beginning of such a row. The text of a prompt or response cannot contain the mark, because quotes
// in a text are escaped.
static int is_eval(const struct rlhf__buf *line) {
    static const char mark[] = "\"eval\": true";
    return memmem(line->data, line->len < 100 ? line->len : 100, mark, sizeof mark - 1) != NULL;
}

// Finds the phases that have rows. k[0] is for rows that the run learned from, and k[1] for rows of
// held-out prompts.
static rlhf_status read_phases(struct rlhf__run_files *run, struct kind k[2],
                               struct rlhf__error *err) {
    struct rlhf__run_lines l;
    rlhf_status st = rlhf__run_lines_open(run, "samples.jsonl", &l, err);
    while (st == RLHF_OK && rlhf__run_lines_next(&l))
        st = add_phase(&k[is_eval(&l.line)], l.phase, err);
    l.skip = l.cut = 0; // read_rows will report skipped lines
    rlhf__run_lines_close(&l);
    choose(&k[0]);
    choose(&k[1]);
    return st;
}

static rlhf_status read_rows(struct rlhf__run_files *run, struct kind k[2],
                             struct rlhf__error *err) {
    struct rlhf__run_lines l;
    const rlhf_status st = rlhf__run_lines_open(run, "samples.jsonl", &l, err);
    while (st == RLHF_OK && rlhf__run_lines_next(&l)) {
        struct kind *of = &k[is_eval(&l.line)];
        for (size_t i = 0; i < of->n_shown; i++) {
            if (of->shown[i] != l.phase || json_array_size(of->rows[i]) >= HELD_MAX) continue;
            of->bytes[i] += l.line.len;
            if (of->bytes[i] > HELD_BYTES) continue;
            json_t *row = rlhf__run_lines_row(&l);
            if (row) json_array_append(of->rows[i], row);
        }
    }
    rlhf__run_lines_close(&l);
    return st;
}

// ---- sets ----

static json_t *phase_heads(const struct kind *k) {
    json_t *heads = json_array();
    for (size_t i = 0; i < k->n_shown; i++)
        json_array_append_new(heads, k->shown[i] == 0
                                         ? json_string("Before the first phase")
                                         : json_sprintf("Phase %" PRId64, k->shown[i]));
    return heads;
}

static json_t *set_of(const char *title, const char *rule, json_t *heads, json_t *rows) {
    return json_pack("{s:s, s:s, s:o, s:o}", "title", title, "rule", rule, "heads", heads, "rows",
                     rows);
}

// 1 if two rows answer the same prompt.
static int same_prompt(const json_t *a, const json_t *b) {
    const json_t *ra = json_object_get(a, "prompt_row"), *rb = json_object_get(b, "prompt_row");
    const json_t *pa = json_object_get(a, "prompt"), *pb = json_object_get(b, "prompt");
    if (json_is_integer(ra) && json_is_integer(rb)) return json_equal(ra, rb);
    return json_is_string(pa) && json_equal(pa, pb);
}

static const json_t *answer_to(const json_t *rows, const json_t *like) {
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (same_prompt(json_array_get(rows, i), like)) return json_array_get(rows, i);
    return NULL;
}

// Returns rows of cells. There is one row for each prompt that occurs in every shown phase, in the
// order of the last phase. New reference.
static json_t *common_rows(const struct kind *k) {
    const json_t *last = k->n_shown ? k->rows[k->n_shown - 1] : NULL;
    json_t *out = json_array();
    for (size_t i = 0; i < json_array_size(last) && json_array_size(out) < ROWS_MAX; i++) {
        json_t *like = json_array_get(last, i), *row = json_array();
        for (size_t p = 0; p < k->n_shown; p++) {
            const json_t *found = p + 1 < k->n_shown ? answer_to(k->rows[p], like) : like;
            if (found) json_array_append_new(row, rlhf__text_cell(found));
        }
        if (json_array_size(row) == k->n_shown)
            json_array_append_new(out, row);
        else
            json_decref(row);
    }
    return out;
}

// Returns rows of cells. The cells of a row are made from samples with the same index, one from
// each shown phase. New reference.
static json_t *own_rows(const struct kind *k) {
    json_t *out = json_array();
    for (size_t i = 0; i < ROWS_MAX; i++) {
        json_t *row = json_array();
        int any = 0;
        for (size_t p = 0; p < k->n_shown; p++) {
            const json_t *found = json_array_get(k->rows[p], i);
            any |= found != NULL;
            json_array_append_new(row, found ? rlhf__text_cell(found) : json_null());
        }
        if (any)
            json_array_append_new(out, row);
        else
            json_decref(row);
    }
    return out;
}

// Pairs the preferred response to a prompt with the first of the other responses. The rows of a
// prompt are next to each other.
static json_t *pair_rows(const json_t *rows) {
    json_t *out = json_array();
    for (size_t i = 0; i + 1 < json_array_size(rows) && json_array_size(out) < ROWS_MAX; i++) {
        const json_t *a = json_array_get(rows, i), *b = json_array_get(rows, i + 1);
        const char *la = json_string_value(json_object_get(a, "label")),
                   *lb = json_string_value(json_object_get(b, "label"));
        if (!la || !lb || strcmp(la, "chosen") != 0 || strcmp(lb, "rejected") != 0) continue;
        json_array_append_new(out, json_pack("[o, o]", rlhf__text_cell(a), rlhf__text_cell(b)));
    }
    return out;
}

static int has_rewards(const json_t *row) { return json_is_number(json_object_get(row, "reward")); }

// The set of rows that the run learned from; NULL if there are no such rows.
static json_t *learned(const struct kind *k) {
    const json_t *first = k->n_shown ? json_array_get(k->rows[0], 0) : NULL;
    if (!first) return NULL;
    json_t *rows = pair_rows(k->rows[0]);
    if (json_array_size(rows))
        return set_of("Preferences", "the first rows of the first phase",
                      json_pack("[s, s]", "Preferred", "Rejected"), rows);
    json_decref(rows);
    if (!has_rewards(first) && json_object_get(first, "label"))
        return set_of("Rows of the data", "the first rows of each phase", phase_heads(k),
                      own_rows(k));
    rows = common_rows(k);
    if (json_array_size(rows) && k->n_shown > 1)
        return set_of("Responses that it learned from",
                      "prompts that all of these phases drew, in the order of the last phase's "
                      "rewards; of earlier phases the first response to the same prompt",
                      phase_heads(k), rows);
    json_decref(rows);
    return set_of("Responses that it learned from",
                  json_object_get(first, "pieces")
                      ? "of each phase the responses at 5, 25, 50, 75 and 95 % of its rewards, "
                        "lowest first"
                      : "the first responses of each phase, in the order in which they were drawn",
                  phase_heads(k), own_rows(k));
}

rlhf_status rlhf__texts_read(struct rlhf__run_files *run, json_t **out, struct rlhf__error *err) {
    struct kind k[2] = {{0}, {0}};
    *out = json_array();
    rlhf_status st = read_phases(run, k, err);
    if (st == RLHF_OK) st = read_rows(run, k, err);
    if (st == RLHF_OK) {
        json_t *held = common_rows(&k[1]), *rows = learned(&k[0]);
        if (json_array_size(held))
            json_array_append_new(
                *out, set_of("Held-out prompts",
                             "the same prompts every time, evenly spaced over the held-out rows "
                             "and drawn with the same random numbers; nothing is trained on them",
                             phase_heads(&k[1]), held));
        else
            json_decref(held);
        if (rows) json_array_append_new(*out, rows);
    }
    kind_finish(&k[0]);
    kind_finish(&k[1]);
    return st;
}
