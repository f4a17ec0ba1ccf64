// plugin_check.c: rlhf-plugin-check, the program that `rlhf-host plugin check FILE` runs. It
// reports what is wrong with a plugin, as text or as JSON.
#include "base/json.h"
#include "base/printable.h"
#include "check/check.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "plugin/search.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct options {
    int32_t json;
    int64_t seconds;
    const char *rows;
    struct rlhf__flag_list set;
};

static const struct rlhf__flag flags[] = {
    RLHF__FLAG_SW(struct options, "--json", json, "print a JSON object"),
    RLHF__FLAG_L(struct options, "--set", set, "KEY=VALUE",
                 "an option of the plugin; VALUE is JSON, else a text"),
    RLHF__FLAG_S(struct options, "--rows", rows, "FILE",
                 "rows to score: JSON lines with \"prompt\", \"response\" and the reward's fields"),
    RLHF__FLAG_I(struct options, "--seconds", seconds, "N", 1, 3600,
                 "what one step may take, 60 unless said"),
};
enum { FLAGS = sizeof flags / sizeof *flags };

static rlhf_status read_options(const struct rlhf__flag_list *set, json_t *out,
                                struct rlhf__error *err) {
    for (size_t i = 0; i < set->n; i++) {
        const char *text = set->item[i], *eq = strchr(text, '=');
        if (!eq || eq == text)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "plugin check: --set needs KEY=VALUE, found \"%s\"", text);
        char *key = strndup(text, (size_t)(eq - text));
        json_t *value = rlhf__json_decode(eq + 1, strlen(eq + 1), JSON_DECODE_ANY, NULL);
        if (!value) value = rlhf__json_text(eq + 1);
        const int set_it = key && json_object_set_new(out, key, value) == 0;
        free(key);
        if (!set_it)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "plugin check: --set: \"%s\" cannot be an option", text);
    }
    return RLHF_OK;
}

static rlhf_status read_rows(const char *path, json_t *out, struct rlhf__error *err) {
    struct rlhf__buf file = RLHF__BUF_INIT;
    rlhf_status st = rlhf__file_read(path, (uint64_t)64 << 20, &file, err);
    const char *at = rlhf__buf_text(&file), *end = at + file.len;
    for (int64_t line = 1; st == RLHF_OK && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((stop ? stop : end) - at);
        char name[RLHF__PATH_CAP];
        json_t *row = NULL;
        rlhf__path_put(name, "%s, line %lld", path, (long long)line);
        if (n) st = rlhf__json_parse(name, at, n, &row, err);
        if (row && (!json_is_string(json_object_get(row, "prompt")) ||
                    !json_is_string(json_object_get(row, "response"))))
            st = rlhf__fail(err, RLHF_E_INVALID,
                            "%s: a row needs two strings, \"prompt\" and \"response\"", name);
        if (st == RLHF_OK && row) json_array_append(out, row);
        json_decref(row);
        at += n + 1;
    }
    rlhf__buf_finish(&file);
    if (st == RLHF_OK && json_array_size(out) == 0)
        st = rlhf__fail(err, RLHF_E_INVALID, "%s holds no rows", path);
    return st;
}

// 1 if the texts differ only in their numbers.
static int same_words(const char *a, const char *b) {
    static const char number[] = "0123456789.";
    while (*a && *b) {
        const size_t m = strspn(a, number), n = strspn(b, number);
        if ((m == 0) != (n == 0) || (m == 0 && *a != *b)) return 0;
        a += m ? m : 1;
        b += n ? n : 1;
    }
    return !*a && !*b;
}

// Returns 1 if both findings show the same fault, because a fault that shows with several inputs
// counts once. The plugin and the rule must be the same. The texts must be the same up to the first
// "()", as in "score() of ...", or differ only in numbers.
static int same_fault(const json_t *a, const json_t *b) {
    const char *x = rlhf__json_text_in(a, "saw"), *y = rlhf__json_text_in(b, "saw"),
               *end = strstr(x, "()");
    return strcmp(rlhf__json_text_in(a, "rule"), rlhf__json_text_in(b, "rule")) == 0 &&
           strcmp(rlhf__json_text_in(a, "plugin"), rlhf__json_text_in(b, "plugin")) == 0 &&
           (same_words(x, y) || (end && strncmp(x, y, (size_t)(end - x) + 2) == 0));
}

// Returns 1 if finding i is the first finding of its fault. *more is set to the number of later
// findings of the same fault.
static int is_first(const json_t *found, size_t i, size_t *more) {
    const json_t *row = json_array_get(found, i), *other;
    size_t k;
    *more = 0;
    json_array_foreach(found, k, other) {
        if (k < i && same_fault(row, other)) return 0;
        *more += k > i && same_fault(row, other);
    }
    return 1;
}

static void put_text(struct rlhf__buf *out, const char *path, const struct rlhf__check_report *r) {
    size_t i, more;
    json_t *row;
    rlhf__put_printable(out, path, strlen(path), "");
    json_array_foreach(r->plugins, i, row)
        rlhf__buf_printf(out, "%s %s", i ? "," : ":", json_string_value(row));
    rlhf__buf_printf(out, ": %lld steps\n", (long long)r->steps);
    json_array_foreach(r->facts, i, row) {
        rlhf__buf_puts(out, "  ");
        rlhf__put_printable(out, rlhf__json_text_in(row, "text"),
                            strlen(rlhf__json_text_in(row, "text")), "");
        rlhf__buf_putc(out, '\n');
    }
    json_array_foreach(r->found, i, row) {
        if (!is_first(r->found, i, &more)) continue;
        rlhf__buf_printf(out, "%s: ", rlhf__json_text_in(row, "rule"));
        rlhf__put_printable(out, rlhf__json_text_in(row, "saw"),
                            strlen(rlhf__json_text_in(row, "saw")), "");
        if (more)
            rlhf__buf_printf(out, "; the same with %zu more input%s, which --json lists", more,
                             more == 1 ? "" : "s");
        rlhf__buf_printf(out, "\n  %s:%lld: %s\n", rlhf__json_text_in(row, "header"),
                         (long long)json_integer_value(json_object_get(row, "line")),
                         rlhf__json_text_in(row, "says"));
    }
    if (json_array_size(r->found) == 0) rlhf__buf_puts(out, "nothing found\n");
}

static void put_json(struct rlhf__buf *out, const char *path, const struct rlhf__check_report *r) {
    json_t *all =
        json_pack("{so,sO,sI,sO,sO}", "file", rlhf__json_text(path), "plugins", r->plugins, "steps",
                  (json_int_t)r->steps, "found", r->found, "facts", r->facts);
    rlhf__json_write(out, all, 2);
    rlhf__buf_putc(out, '\n');
    json_decref(all);
}

static int check(const struct rlhf__env *env, const struct options *o,
                 const struct rlhf__flag_list *rest, struct rlhf__error *err) {
    struct rlhf__check_request request = {.dirs = env->dirs, .seconds = (int32_t)o->seconds};
    struct rlhf__check_report report = {0};
    struct rlhf__buf out = RLHF__BUF_INIT;
    json_t *options = json_object(), *rows = json_array();
    char *path = NULL;
    if (rest->n != 1)
        rlhf__fail(
            err, RLHF_E_INVALID,
            "plugin check: name one plugin file, e.g. rlhf-host plugin check ./my_reward.so");
    rlhf_status st = rest->n == 1 ? read_options(&o->set, options, err) : RLHF_E_INVALID;
    if (st == RLHF_OK && o->rows) st = read_rows(o->rows, rows, err);
    if (st == RLHF_OK)
        st = rlhf__plugin_find(env->dirs, rest->item[0], 0, RLHF__NAME_TYPED, "plugin check", &path,
                               err);
    request.path = path;
    request.options = options;
    request.rows = rows;
    if (st == RLHF_OK) st = rlhf__check_file(&request, &report, err);
    const int found = st == RLHF_OK && json_array_size(report.found) > 0;
    if (st == RLHF_OK && o->json) put_json(&out, path, &report);
    if (st == RLHF_OK && !o->json) put_text(&out, path, &report);
    fputs(rlhf__buf_text(&out), stdout);
    rlhf__buf_finish(&out);
    rlhf__check_report_finish(&report);
    json_decref(options);
    json_decref(rows);
    free(path);
    return st == RLHF_OK ? found : -1;
}

static int run(const struct rlhf__env *env, int argc, char **argv) {
    static char name[] = "plugin check"; // in messages
    struct options o = {.seconds = 60};
    struct rlhf__flag_list rest = {NULL, 0};
    struct rlhf__error err;
    int status = -1;
    if (rlhf__flags_want_help(argc, argv)) {
        rlhf__print_two_columns(
            stdout, "usage: rlhf-plugin-check FILE [flags]    same as rlhf-host plugin check\n");
        rlhf__flags_help(stdout, flags, FLAGS);
        return 0;
    }
    argv[0] = name;
    // A signal ends the program and its children (supervise/child.h). Nothing needs to be saved.
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    if (rlhf__flags_parse(flags, FLAGS, argc, argv, &o, &rest, &err) == RLHF_OK)
        status = check(env, &o, &rest, &err);
    if (status < 0) rlhf__log_error(env->log, err.text);
    free(o.set.item);
    free(rest.item);
    // A file that cannot be opened, or that crashes while it is loaded, counts as bad input here.
    return status < 0 ? 2 : status;
}

int main(int argc, char **argv) { return rlhf__program(argc, argv, run); }
