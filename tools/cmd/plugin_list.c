// plugin_list.c: `rlhf-host plugin`: runs its subcommands, and lists all plugins that can be found.
#include "base/json.h"
#include "cmd/plugin.h"

#include "base/printable.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "option/nearest.h"
#include "plugin/search.h"

#include <stdio.h>
#include <string.h>

int rlhf__cmd_plugin(const struct rlhf__env *env, int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (rlhf__flags_want_help(argc, argv)) {
        rlhf__print_two_columns(
            stdout,
            "usage: rlhf-host plugin list [--json]          what can be found, and where\n"
            "       rlhf-host plugin info FILE [--json]            one file's plugins and their "
            "options\n"
            "       rlhf-host plugin new KIND NAME [--lang c|c++]   a plugin to begin with: KIND "
            "is reward, algo, model, sink, "
            "environment or kernel\n"
            "       rlhf-host plugin check FILE [--json] [--set KEY=VALUE]... [--rows FILE] "
            "[--seconds N]  what is wrong with them: tries what "
            "the contract says\n"
            "  --json                   list: a JSON list; info: a JSON Schema of the options; "
            "check: an object\n"
            "  --set KEY=VALUE          an option of the plugin that is checked; VALUE is JSON, "
            "else a text\n"
            "  --rows FILE              rows to score, JSON lines: \"prompt\", \"response\", the "
            "reward's fields\n"
            "  --seconds N              what one step of a check may take, 60 unless said\n");
        rlhf__plugin_new_help(stdout);
        return 0;
    }
    static char list_name[] = "plugin list", info_name[] = "plugin info",
                check_name[] = "plugin check", new_name[] = "plugin new"; // in messages
    if (strcmp(what, "list") == 0) {
        argv[1] = list_name;
        return rlhf__plugin_list(env, argc - 1, argv + 1);
    }
    if (strcmp(what, "info") == 0) {
        argv[1] = info_name;
        return rlhf__plugin_info(env, argc - 1, argv + 1);
    }
    if (strcmp(what, "check") == 0) {
        argv[1] = check_name;
        return rlhf__program_exec(env, "rlhf-plugin-check", argv + 1);
    }
    if (strcmp(what, "new") == 0) {
        argv[1] = new_name;
        return rlhf__plugin_new(env, argc - 1, argv + 1);
    }
    struct rlhf__nearest near = {what, NULL, 0};
    struct rlhf__error err;
    char hint[64];
    rlhf__nearest_offer(&near, "list");
    rlhf__nearest_offer(&near, "info");
    rlhf__nearest_offer(&near, "check");
    rlhf__nearest_offer(&near, "new");
    rlhf__fail(&err, RLHF_E_INVALID,
               "plugin: write \"plugin list\", \"plugin info FILE\", \"plugin check FILE\" or "
               "\"plugin new "
               "KIND NAME\", found \"%s\"%s",
               what, rlhf__nearest_hint(&near, hint, sizeof hint));
    rlhf__log_error(env->log, err.text);
    return 2;
}

struct list {
    const struct rlhf__env *env;
    json_t *rows;  // one object per plugin
    json_t *files; // paths with links resolved, in search order
    json_t *hides; // path of a hidden file -> path of the file that hides it
};

static int same_text(const json_t *a, const json_t *b, const char *key) {
    return strcmp(rlhf__json_text_in(a, key), rlhf__json_text_in(b, key)) == 0;
}

// Warn of each id that occurs in several files.
static void warn_shared(const struct list *l) {
    size_t i, k;
    json_t *row, *other;
    json_array_foreach(l->rows, i, row) {
        struct rlhf__buf files = RLHF__BUF_INIT;
        size_t n = 0, first = i;
        if (!*rlhf__json_text_in(row, "id")) continue;
        json_array_foreach(l->rows, k, other) {
            if (!same_text(other, row, "id") || !same_text(other, row, "kind")) continue;
            if (k < first) first = k;
            rlhf__buf_printf(&files, "%s%s", n++ ? ", " : "", rlhf__json_text_in(other, "path"));
        }
        if (n > 1 && first == i)
            rlhf__logf(l->env->log, RLHF_LOG_WARN, "the %s id \"%s\" is in %zu files: %s",
                       rlhf__json_text_in(row, "kind"), rlhf__json_text_in(row, "id"), n,
                       rlhf__buf_text(&files));
        rlhf__buf_finish(&files);
    }
}

// If this file hides another file of the same name, warn, and record which file is hidden.
static void see_hidden(struct list *l, const char *path, const char *real) {
    char other[RLHF__PATH_CAP];
    if (!rlhf__plugin_hidden(l->env->dirs, path, other)) return;
    rlhf__logf(l->env->log, RLHF_LOG_WARN, "%s hides %s: \"%s\" means the former", path, other,
               rlhf__path_base(path));
    json_object_set_new(l->hides, other, rlhf__json_text(real));
}

// Mark the rows of hidden files.
static void mark_hidden(const struct list *l) {
    size_t i;
    json_t *row;
    json_array_foreach(l->rows, i, row) {
        json_t *by = json_object_get(l->hides, rlhf__json_text_in(row, "path"));
        if (by) json_object_set(row, "hidden_by", by);
    }
}

// ---- what files hold ----

static void add_row(json_t *rows, const char *kind, const char *path, const char *id,
                    const char *version, const char *summary) {
    json_array_append_new(rows, json_pack("{ss,so,so,so,so,so}", "kind", kind, "file",
                                          rlhf__json_text(rlhf__path_base(path)), "id",
                                          rlhf__json_text(id), "version", rlhf__json_text(version),
                                          "summary", rlhf__json_text(summary), "path",
                                          rlhf__json_text(path)));
}

// The files that one child process opens.
struct part {
    const struct list *list;
    size_t from, to;
};

static void add_file(const struct rlhf__dirs *dirs, const char *path, json_t *answer) {
    struct rlhf__plugin_file f;
    struct rlhf__error err;
    json_t *rows = json_array();
    const rlhf_status st = rlhf__plugin_file_open(dirs, path, 0, &f, &err);
    for (size_t i = 0; st == RLHF_OK && i < f.n; i++) {
        const rlhf_plugin *d = &f.plugin[i]->desc;
        add_row(rows, rlhf__kind_name((int32_t)d->kind), path, d->id, d->version, d->summary);
    }
    json_array_append_new(answer, json_pack("{so,so}", "rows", rows, "warning",
                                            rlhf__json_text(st < 0 && !f.other ? err.text : "")));
    rlhf__plugin_file_finish(&f);
}

// Runs in the child.
static rlhf_status describe(void *arg, struct rlhf__buf *out) {
    const struct part *part = arg;
    json_t *answer = json_array();
    for (size_t i = part->from; i < part->to; i++)
        add_file(part->list->env->dirs, json_string_value(json_array_get(part->list->files, i)),
                 answer);
    rlhf__json_write(out, answer, 0);
    json_decref(answer);
    return out->bad ? RLHF_E_NOMEM : RLHF_OK;
}

// Add the rows that a child process reported for a file. Do not trust them, because the file's own
// code may have written them.
static void take_rows(struct list *l, const char *path, json_t *rows) {
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) {
        json_object_set_new(row, "path", rlhf__json_text(path));
        json_object_set_new(row, "file", rlhf__json_text(rlhf__path_base(path)));
        if (json_is_object(row)) json_array_append(l->rows, row);
    }
}

static rlhf_status ask(struct list *l, size_t from, size_t to, struct rlhf__error *err) {
    struct part part = {l, from, to};
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *answer = NULL, *one;
    const char *what = json_string_value(json_array_get(l->files, from));
    rlhf_status st = rlhf__plugin_file_ask(what, describe, &part, &text, err);
    if (st == RLHF_OK) st = rlhf__json_parse(what, rlhf__buf_text(&text), text.len, &answer, err);
    if (st == RLHF_OK && json_array_size(answer) != to - from)
        st = rlhf__fail(err, RLHF_E_INTERNAL, "%s: its answer is not what was asked", what);
    for (size_t i = 0; st == RLHF_OK && i < to - from; i++) {
        one = json_array_get(answer, i);
        if (*rlhf__json_text_in(one, "warning"))
            rlhf__logf(l->env->log, RLHF_LOG_WARN, "%s", rlhf__json_text_in(one, "warning"));
        take_rows(l, json_string_value(json_array_get(l->files, from + i)),
                  json_object_get(one, "rows"));
    }
    json_decref(answer);
    rlhf__buf_finish(&text);
    return st;
}

// One child opens all files that came with the program. Each other file gets its own child, so that
// the code in a file can forge only the answer about this file.
static void ask_all(struct list *l) {
    const size_t n = json_array_size(l->files);
    struct rlhf__error err;
    for (size_t i = 0, next; i < n && !*l->env->cancelled; i = next) {
        for (next = i; next < n; next++)
            if (!rlhf__plugin_is_shipped(l->env->dirs,
                                         json_string_value(json_array_get(l->files, next))))
                break;
        if (next > i && ask(l, i, next, &err) == RLHF_OK) continue;
        next = i + 1;
        if (ask(l, i, next, &err) < 0) rlhf__logf(l->env->log, RLHF_LOG_WARN, "%s", err.text);
    }
}

static int is_listed(const json_t *files, const char *path) {
    size_t i;
    json_t *one;
    json_array_foreach(files, i, one) {
        if (strcmp(json_string_value(one), path) == 0) return 1;
    }
    return 0;
}

static rlhf_status visit(void *arg, int32_t kind, const char *path) {
    (void)kind;
    struct list *l = arg;
    char real[RLHF__PATH_CAP];
    if (!rlhf__path_real(path, real)) return RLHF_OK; // a dangling link
    if (is_listed(l->files, real)) return RLHF_OK;
    json_array_append_new(l->files, json_string_nocheck(real));
    see_hidden(l, path, real);
    return RLHF_OK;
}

// ---- the table ----

static int width(const json_t *rows, const char *key, const char *title) {
    size_t i, n = strlen(title);
    json_t *row;
    json_array_foreach(rows, i, row) {
        size_t len = strlen(rlhf__json_text_in(row, key));
        if (len > n) n = len;
    }
    return (int)n;
}

// Returns the rows with control characters escaped, to be printed on a terminal.
static json_t *printable_rows(json_t *rows) {
    size_t i;
    const char *key;
    json_t *row, *v, *all = json_array();
    json_array_foreach(rows, i, row) {
        json_t *shown = json_object();
        json_object_foreach(row, key, v) {
            struct rlhf__buf text = RLHF__BUF_INIT;
            rlhf__put_printable(&text, json_string_value(v), json_string_length(v), "");
            json_object_set_new(shown, key, json_string(rlhf__buf_text(&text)));
            rlhf__buf_finish(&text);
        }
        json_array_append_new(all, shown);
    }
    return all;
}

// Without ids and versions, which plugin info and --json have.
static void print_narrow(const json_t *rows, int kind, int file, int columns) {
    struct rlhf__buf text = RLHF__BUF_INIT, page = RLHF__BUF_INIT;
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
        rlhf__buf_printf(&text, "%-*s  %-*s  %s\n", file, rlhf__json_text_in(row, "file"), kind,
                         rlhf__json_text_in(row, "kind"), rlhf__json_text_in(row, "summary"));
    rlhf__put_two_columns(&page, (rlhf_str){rlhf__buf_text(&text), text.len}, columns);
    fputs(rlhf__buf_text(&page), stdout);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&page);
}

static void print_table(const json_t *rows) {
    int wk = width(rows, "kind", "KIND"), wf = width(rows, "file", "FILE");
    int wi = width(rows, "id", "ID"), wv = width(rows, "version", "VERSION");
    const int columns = rlhf__page_width(stdout), before = wk + wf + wi + wv + 8;
    size_t i;
    json_t *row;
    if (columns > 0 && columns < before + width(rows, "summary", "SUMMARY")) {
        print_narrow(rows, wk, wf, columns);
        return;
    }
    printf("%-*s  %-*s  %-*s  %-*s  %s\n", wk, "KIND", wf, "FILE", wi, "ID", wv, "VERSION",
           "SUMMARY");
    json_array_foreach(rows, i, row)
        printf("%-*s  %-*s  %-*s  %-*s  %s\n", wk, rlhf__json_text_in(row, "kind"), wf,
               rlhf__json_text_in(row, "file"), wi, rlhf__json_text_in(row, "id"), wv,
               rlhf__json_text_in(row, "version"), rlhf__json_text_in(row, "summary"));
}

int rlhf__plugin_list(const struct rlhf__env *env, int argc, char **argv) {
    struct options {
        int32_t json;
    } o = {0};
    static const struct rlhf__flag flags[] = {
        RLHF__FLAG_SW(struct options, "--json", json, "print a JSON list"),
    };
    struct rlhf__error err;
    if (rlhf__flags_parse(flags, 1, argc, argv, &o, NULL, &err) < 0 ||
        rlhf__plugin_path_check(&err) < 0) {
        rlhf__log_error(env->log, err.text);
        return 2;
    }
    struct list l = {env, json_array(), json_array(), json_object()};
    rlhf__plugin_each_file(env->dirs, visit, &l);
    ask_all(&l);
    warn_shared(&l);
    mark_hidden(&l);
    if (o.json) {
        struct rlhf__buf text = RLHF__BUF_INIT;
        rlhf__json_write(&text, l.rows, 2);
        puts(rlhf__buf_text(&text));
        rlhf__buf_finish(&text);
    } else {
        json_t *shown = printable_rows(l.rows);
        print_table(shown);
        json_decref(shown);
    }
    json_decref(l.files);
    json_decref(l.hides);
    json_decref(l.rows);
    return 0;
}
