// samples.c: `rlhf-host samples`: prints responses that a run has written to samples.jsonl.
#include "base/json.h"
#include "base/printable.h"
#include "base/signals.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "history/run_lines.h"
#include "runs/runs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INDENT = 11 };

struct options {
    int64_t phase; // -1: the last one that has rows
    int32_t held_out, json;
};

// The rows of one phase.
struct chosen {
    json_t *rows; // owned list
    int64_t phase, last;
};

// ---- which rows ----

// Keeps the rows of the wanted phase in *out. Errors: RLHF_E_NOMEM.
static rlhf_status choose(struct rlhf__run_files *run, const struct options *o, struct chosen *out,
                          struct rlhf__error *err) {
    struct rlhf__run_lines l;
    rlhf_status st = rlhf__run_lines_open(run, "samples.jsonl", &l, err);
    if (st != RLHF_OK) return st;
    out->phase = out->last = -1;
    while (rlhf__run_lines_next(&l)) {
        if (o->phase >= 0 && l.phase != o->phase) {
            out->last = l.phase;
            continue;
        }
        json_t *row = rlhf__run_lines_row(&l);
        if (!row || json_is_true(json_object_get(row, "eval")) != o->held_out) continue;
        if (l.phase != out->phase) json_array_clear(out->rows);
        out->phase = out->last = l.phase;
        if (json_array_append(out->rows, row) != 0) {
            st = RLHF__NOMEM(err, "out of memory for samples");
            break;
        }
    }
    rlhf__run_lines_close(&l);
    return st;
}

static rlhf_status none(const char *path, const struct options *o, const struct chosen *c,
                        struct rlhf__error *err) {
    const char *kind = o->held_out ? "rows of held-out prompts" : "rows";
    if (o->phase < 0)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "%s/samples.jsonl has no %s yet; a run writes them after its first phase, "
            "and after those that log.samples_every and log.samples_every_s select",
            path, kind);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s/samples.jsonl has no %s of phase %lld; the last phase in it is %lld. "
                      "log.samples_every and log.samples_every_s select the phases",
                      path, kind, (long long)o->phase, (long long)c->last);
}

// ---- lines ----

static void put_text(struct rlhf__buf *out, const char *label, const char *text, int width) {
    struct rlhf__buf shown = RLHF__BUF_INIT;
    rlhf__put_printable(&shown, text, strlen(text), "");
    rlhf__buf_printf(out, "  %-*s", INDENT - 2, label);
    const rlhf_str s = {.ptr = rlhf__buf_text(&shown), .len = (uint32_t)shown.len};
    rlhf__put_wrapped(out, s, width, INDENT, INDENT);
    rlhf__buf_putc(out, '\n');
    if (shown.bad) out->bad = 1;
    rlhf__buf_finish(&shown);
}

static void put_number(struct rlhf__buf *out, const char *name, const json_t *value) {
    if (json_is_number(value)) rlhf__buf_printf(out, "  %s %.4g", name, json_number_value(value));
}

// "reward 0.75 (right 0.7, length 0.05)  ref logp -36.1  12 tokens"
static void put_numbers(struct rlhf__buf *out, json_t *row) {
    json_t *rewards = json_object_get(row, "rewards"), *label = json_object_get(row, "label");
    const char *name;
    json_t *value;
    rlhf__buf_printf(out, "row %lld", (long long)json_integer_value(json_object_get(row, "row")));
    put_number(out, "reward", json_object_get(row, "reward"));
    if (json_object_size(rewards) > 1) {
        const char *before = " (";
        json_object_foreach(rewards, name, value) {
            rlhf__buf_puts(out, before);
            rlhf__put_printable(out, name, strlen(name), "");
            if (json_is_number(value))
                rlhf__buf_printf(out, " %.4g", json_number_value(value));
            else
                rlhf__buf_puts(out, " unknown");
            before = ", ";
        }
        rlhf__buf_putc(out, ')');
    }
    if (json_is_string(label)) {
        rlhf__buf_puts(out, "  label ");
        rlhf__put_printable(out, json_string_value(label), json_string_length(label), "");
    } else if (json_is_boolean(label)) {
        rlhf__buf_printf(out, "  label %s", json_is_true(label) ? "true" : "false");
    }
    put_number(out, "ref logp", json_object_get(row, "ref_logp"));
    const long long n = (long long)json_integer_value(json_object_get(row, "length"));
    rlhf__buf_printf(out, "  %lld token%s\n", n, n == 1 ? "" : "s");
}

static const char *text_of(const json_t *o, const char *key) {
    const char *text = json_string_value(json_object_get(o, key));
    return text ? text : "";
}

static void put_row(struct rlhf__buf *out, json_t *row, int width) {
    json_t *turns = json_object_get(row, "turns");
    size_t i;
    json_t *turn;
    rlhf__buf_putc(out, '\n');
    put_numbers(out, row);
    if (*text_of(row, "prompt")) put_text(out, "prompt", text_of(row, "prompt"), width);
    if (!json_array_size(turns)) {
        put_text(out, "response", text_of(row, "response"), width);
        return;
    }
    json_array_foreach(turns, i, turn) {
        const int policy = strcmp(text_of(turn, "by"), "policy") == 0;
        put_text(out, policy ? "policy" : "answer", text_of(turn, "text"), width);
    }
    if (*text_of(row, "end")) put_text(out, "end", text_of(row, "end"), width);
}

static void put_rows(struct rlhf__buf *out, const struct chosen *c, const struct options *o) {
    const int width = rlhf__terminal_width(STDOUT_FILENO, 0);
    const size_t n = json_array_size(c->rows);
    size_t i;
    json_t *row;
    if (!o->json) {
        if (c->phase == 0)
            rlhf__buf_puts(out, "before the first phase");
        else
            rlhf__buf_printf(out, "phase %lld", (long long)c->phase);
        rlhf__buf_printf(out, ": %zu row%s%s\n", n, n == 1 ? "" : "s",
                         o->held_out ? " of held-out prompts" : "");
    }
    json_array_foreach(c->rows, i, row) {
        if (!o->json) {
            put_row(out, row, width);
            continue;
        }
        char *text = json_dumps(row, 0);
        if (!text) out->bad = 1;
        rlhf__buf_printf(out, "%s\n", text ? text : "");
        free(text);
    }
}

// ---- the command ----

static rlhf_status print_samples(const char *path, const struct options *o,
                                 struct rlhf__error *err) {
    struct rlhf__run_files run = {0};
    struct rlhf__buf out = RLHF__BUF_INIT;
    struct chosen c = {.rows = json_array()};
    rlhf_status st = rlhf__run_files_open(path, &run, err);
    if (st == RLHF_OK && !c.rows) st = RLHF__NOMEM(err, "out of memory for samples");
    if (st == RLHF_OK) st = choose(&run, o, &c, err);
    if (st == RLHF_OK && json_array_size(c.rows) == 0) st = none(path, o, &c, err);
    if (st == RLHF_OK) {
        put_rows(&out, &c, o);
        st = rlhf__buf_ok(&out, err);
    }
    if (st == RLHF_OK) {
        fputs(rlhf__buf_text(&out), stdout);
        st = rlhf__print_flush(err);
    }
    rlhf__buf_finish(&out);
    json_decref(c.rows);
    rlhf__run_files_close(&run);
    return st;
}

int rlhf__cmd_samples(const struct rlhf__env *env, int argc, char **argv) {
    static const struct rlhf__flag flags[] = {
        RLHF__FLAG_I(struct options, "--phase", phase, "N", 0, RLHF__RUN_PHASE_MAX,
                     "of this phase (default: the last phase in the file); 0 is before the first"),
        RLHF__FLAG_SW(struct options, "--held-out", held_out, "rows of held-out prompts"),
        RLHF__FLAG_SW(struct options, "--json", json, "print the rows as JSON lines"),
    };
    struct options o = {.phase = -1};
    struct rlhf__flag_list rest = {0};
    struct rlhf__error err = {0, ""};
    if (rlhf__flags_helped(flags, sizeof flags / sizeof *flags, "rlhf-host samples RUN [flags]",
                           argc, argv))
        return 0;
    rlhf__signals_at_once(1);
    rlhf_status st =
        rlhf__flags_parse(flags, sizeof flags / sizeof *flags, argc, argv, &o, &rest, &err);
    if (st == RLHF_OK && rest.n != 1)
        st = rlhf__fail(&err, RLHF_E_INVALID,
                        "samples: give the directory of one run, as in samples RUN");
    if (st == RLHF_OK) st = print_samples(rest.item[0], &o, &err);
    free(rest.item);
    return rlhf__cmd_end(env, st, &err);
}
