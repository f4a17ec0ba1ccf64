// run_words.c: see run_words.h.
#include "page/run_words.h"

#include "base/json.h"
#include "base/printable.h"
#include "history/run_lines.h"
#include "history/run_settings.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define WORDS_MAX 4000 // maximum number of words of a command
#define LIST_MAX  64   // maximum number of entries of a list

// ---- the history of a run ----

struct events {
    json_t *start, *end; // the first start; the end after the last start or resume
    int64_t resumed;     // times
};

static rlhf_status read_events(struct rlhf__run_files *run, struct events *e,
                               struct rlhf__error *err) {
    struct rlhf__run_lines l;
    const rlhf_status st = rlhf__run_lines_open(run, "events.jsonl", &l, err);
    while (st == RLHF_OK && rlhf__run_lines_next(&l)) {
        json_t *row = rlhf__run_lines_row(&l);
        const char *event = json_string_value(json_object_get(row, "event"));
        if (!event) continue;
        const int resumes = strcmp(event, "resume") == 0, ends = strcmp(event, "end") == 0;
        if (strcmp(event, "start") == 0 && !e->start) e->start = json_incref(row);
        e->resumed += resumes;
        if (!ends && !resumes) continue;
        json_decref(e->end);
        e->end = ends ? json_incref(row) : NULL;
    }
    rlhf__run_lines_close(&l);
    return st;
}

// ---- the command ----

// Returns the command that the user typed. If it is not known, returns one that uses the run's
// config.json and repeats the run.
static json_t *command_of(const struct rlhf__run_files *run, const json_t *argv) {
    struct rlhf__buf out = RLHF__BUF_INIT, word = RLHF__BUF_INIT;
    const size_t n = json_array_size(argv);
    rlhf__buf_puts(&out, "rlhf-host");
    for (size_t i = 1; i < n && i < WORDS_MAX; i++) {
        rlhf__buf_clear(&word);
        rlhf__settings_put(&word, json_array_get(argv, i));
        rlhf__buf_putc(&out, ' ');
        rlhf__put_shell(&out, rlhf__buf_text(&word));
    }
    if (n == 0) {
        rlhf__buf_printf(&word, "%s/config.json", run->name);
        rlhf__buf_puts(&out, " --config ");
        rlhf__put_shell(&out, rlhf__buf_text(&word));
        rlhf__buf_clear(&word);
        rlhf__buf_printf(&word, "%s-again", run->name);
        rlhf__buf_puts(&out, " --out ");
        rlhf__put_shell(&out, rlhf__buf_text(&word));
    }
    json_t *text = rlhf__json_text(rlhf__buf_text(&out));
    rlhf__buf_finish(&out);
    rlhf__buf_finish(&word);
    return text;
}

// ---- facts ----

static void fact(json_t *facts, const char *name, struct rlhf__buf *text) {
    if (text->len)
        json_array_append_new(facts,
                              json_pack("[s, o]", name, rlhf__json_text(rlhf__buf_text(text))));
    rlhf__buf_clear(text);
}

static void put_policy(const json_t *manifest, struct rlhf__buf *out) {
    const json_t *policy = json_object_get(manifest, "policy"),
                 *n = json_object_get(policy, "parameters");
    rlhf__buf_puts(out, rlhf__path_checkpoint(rlhf__json_text_in(policy, "path")));
    if (json_is_integer(n))
        rlhf__buf_printf(out, "%s%.3g million parameters", out->len ? ", " : "",
                         (double)json_integer_value(n) / 1e6);
}

// Appends the last part of each path in the list. If an entry has a member called `second`, appends
// that member's value too, between `open` and `close`.
static void put_list(const json_t *list, const char *second, const char *open, const char *close,
                     struct rlhf__buf *out) {
    for (size_t i = 0; i < json_array_size(list) && i < LIST_MAX; i++) {
        const json_t *one = json_array_get(list, i);
        rlhf__buf_puts(out, i ? ", " : "");
        rlhf__buf_puts(out, rlhf__path_checkpoint(rlhf__json_text_in(one, "path")));
        if (*rlhf__json_text_in(one, second))
            rlhf__buf_printf(out, "%s%s%s", open, rlhf__json_text_in(one, second), close);
    }
}

static void put_machine(const json_t *machine, struct rlhf__buf *out) {
    const json_t *cores = json_object_get(machine, "cores"),
                 *memory = json_object_get(machine, "memory_mib");
    rlhf__buf_puts(out, rlhf__json_text_in(machine, "cpu"));
    if (json_is_integer(cores))
        rlhf__buf_printf(out, "%s%lld cores", out->len ? ", " : "",
                         (long long)json_integer_value(cores));
    if (json_is_integer(memory))
        rlhf__buf_printf(out, "%s%.3g GiB of memory", out->len ? ", " : "",
                         (double)json_integer_value(memory) / 1024);
}

static void put_time(const json_t *event, struct rlhf__buf *out) {
    const double seconds = json_number_value(json_object_get(event, "time"));
    const time_t at = (time_t)seconds;
    struct tm day;
    char text[64];
    if (!(seconds > 0) || seconds > 1e11 || !gmtime_r(&at, &day)) return;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &day);
    rlhf__buf_puts(out, text);
}

// Appends when the run began, how often it was resumed, and how it ended.
static void put_course(const struct events *e, struct rlhf__buf *out) {
    put_time(e->start, out);
    if (e->resumed)
        rlhf__buf_printf(out, ", resumed %lld time%s", (long long)e->resumed,
                         e->resumed == 1 ? "" : "s");
    if (!e->start) return;
    const char *status = rlhf__json_text_in(e->end, "status"),
               *reason = rlhf__json_text_in(e->end, "reason");
    rlhf__buf_printf(out, "%s%s", out->len ? "; " : "",
                     e->end ? (*status ? status : "ended") : "still running, or its process died");
    if (*reason) rlhf__buf_printf(out, ": %s", reason);
}

static json_t *facts_of(const struct rlhf__run_files *run, const struct events *e) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *facts = json_array();
    const json_t *m = run->manifest, *compute = json_object_get(m, "compute");
    put_policy(m, &text);
    fact(facts, "Policy", &text);
    put_list(json_object_get(m, "inputs"), "setting", " (", ")", &text);
    fact(facts, "Inputs", &text);
    put_list(json_object_get(m, "plugins"), "version", " ", "", &text);
    fact(facts, "Plugins", &text);
    rlhf__buf_puts(&text, rlhf__json_text_in(compute, "backend"));
    if (*rlhf__json_text_in(compute, "detail"))
        rlhf__buf_printf(&text, ": %s", rlhf__json_text_in(compute, "detail"));
    fact(facts, "Compute", &text);
    put_machine(json_object_get(e->start, "machine"), &text);
    fact(facts, "Machine", &text);
    rlhf__settings_put(&text, rlhf__run_files_setting(run, "run.seed"));
    fact(facts, "Seed", &text);
    if (*rlhf__json_text_in(m, "version"))
        rlhf__buf_printf(&text, "rlhf-host %s", rlhf__json_text_in(m, "version"));
    fact(facts, "Program", &text);
    put_course(e, &text);
    fact(facts, "Started", &text);
    rlhf__settings_put(&text, rlhf__run_files_setting(run, "run.note"));
    fact(facts, "Note", &text);
    rlhf__buf_finish(&text);
    return facts;
}

rlhf_status rlhf__run_words_read(struct rlhf__run_files *run, struct rlhf__run_words *out,
                                 struct rlhf__error *err) {
    struct events e = {0};
    const rlhf_status st = read_events(run, &e, err);
    out->command = command_of(run, json_object_get(e.start, "argv"));
    out->facts = facts_of(run, &e);
    json_decref(e.start);
    json_decref(e.end);
    return st;
}
