// help_search.c: see help_search.h.
#include "cmd/help_search.h"

#include "base/printable.h"

#include "cmd/algo_defaults.h"
#include "cmd/commands.h"
#include "cmd/help.h"
#include "config/schema.h"
#include "option/aliases.h"
#include "plugin/load.h"
#include "plugin/search.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Rows of the tables in docs/metrics.md, as Markdown.
static const char *const metric_rows[] = {
#include "metrics_rows.inc"
    NULL};

// Print lines, wrapped at the terminal's width, and free them.
static void print_page(struct rlhf__buf *lines) {
    struct rlhf__buf page = RLHF__BUF_INIT;
    rlhf__put_page(&page, (rlhf_str){rlhf__buf_text(lines), lines->len}, rlhf__page_width(stdout));
    fputs(rlhf__buf_text(&page), stdout);
    rlhf__buf_finish(&page);
    rlhf__buf_finish(lines);
}

int rlhf__search_name(const char *word, const char *name) { return strcasestr(name, word) != NULL; }

int rlhf__search_text(const char *word, const char *text) {
    const size_t n = strlen(word);
    if (n == 0) return 1;
    for (const char *at = text; (at = strcasestr(at, word)) != NULL; at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
            return 1;
    return 0;
}

// The word searched for and the matches.
struct search {
    const struct rlhf__env *env;
    struct rlhf__plugins *plugins;
    const char *word;
    size_t found;
    char path[RLHF__PATH_CAP]; // path of the plugin whose name is the word
};

static void begin(struct search *s, size_t *before, const char *title) {
    if (*before == 0) printf("%s%s\n", s->found ? "\n" : "", title);
    s->found++;
    ++*before;
}

// ---- plugins ----

struct options {
    struct search *s;
    const char *key; // the plugin option that TRL's word means; NULL if none
    struct rlhf__algo_defaults *defaults;
    size_t n, n_defaults;
};

static void print_option(const struct options *v, const struct rlhf__plugin *p, const rlhf_opt *o) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const int algo = p->desc.kind == RLHF_KIND_ALGO;
    rlhf__put_values(&text,
                     algo ? rlhf__algo_defaults_of(p->stem, v->defaults, v->n_defaults) : NULL, o);
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__buf_printf(&line, "  %s:%s: %s\n      %s\n", p->file, o->key, rlhf__buf_text(&text),
                     o->help);
    print_page(&line);
    rlhf__buf_finish(&text);
}

static rlhf_status visit_options(void *arg, int32_t kind, const char *path) {
    struct options *v = arg;
    const struct rlhf__plugin *p;
    struct rlhf__error err;
    if (kind == RLHF_KIND_MODEL || !rlhf__plugin_is_shipped(v->s->env->dirs, path) ||
        rlhf__plugin_open(v->s->plugins, path, kind, RLHF__NAME_TYPED, "help", &p, &err) < 0)
        return RLHF_OK;
    for (uint32_t i = 0; i < p->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&p->table, i, &o);
        const int meant = v->key && p->desc.kind == RLHF_KIND_ALGO && strcmp(v->key, o.key) == 0;
        if (!meant && !rlhf__search_name(v->s->word, o.key) &&
            !rlhf__search_text(v->s->word, o.help))
            continue;
        begin(v->s, &v->n, "options of plugins:");
        print_option(v, p, &o);
    }
    return RLHF_OK;
}

static void search_options(struct search *s) {
    const struct rlhf__alias *a = rlhf__alias_find(s->word);
    const int is_algo = a && strncmp(a->ours, "algo.", strlen("algo.")) == 0;
    struct options v = {.s = s, .key = is_algo ? a->ours + strlen("algo.") : NULL};
    struct rlhf__error err;
    if (rlhf__plugins_open(s->env->dirs, &s->plugins, &err) < 0) return;
    rlhf__plugins_leave_sums(s->plugins);
    v.defaults = rlhf__algo_defaults_all(s->env->dirs, &v.n_defaults);
    rlhf__plugin_each_file(s->env->dirs, visit_options, &v);
    rlhf__algo_defaults_finish(v.defaults, v.n_defaults);
    rlhf__plugins_close(s->plugins);
}

// A plugin file is found as "ppo" and as "ppo.so".
static rlhf_status visit_name(void *arg, int32_t kind, const char *path) {
    struct search *s = arg;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    const size_t n = strlen(s->word);
    (void)kind;
    if (strncmp(file, s->word, n) == 0 && (!file[n] || strcmp(file + n, ".so") == 0) && !s->path[0])
        snprintf(s->path, sizeof s->path, "%s", path);
    return RLHF_OK;
}

// ---- metrics and the help itself ----

// Write the text of column k of a row of a Markdown table, without markup. Writes "" if the row
// lacks this column.
static void column(const char *row, int k, char *out, size_t cap) {
    size_t n = 0;
    for (; *row && k >= 0; row++) {
        if (*row == '\\' && row[1]) {
            row++;
        } else if (*row == '|') {
            k--;
            continue;
        }
        if (k == 0 && *row != '`' && n + 1 < cap) out[n++] = *row;
    }
    while (n && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    memmove(out, out + strspn(out, " "), strlen(out + strspn(out, " ")) + 1);
}

// The heading of each table tells which column holds the definitions.
static void search_metrics(struct search *s) {
    size_t n = 0;
    int at = 2;
    for (const char *const *row = metric_rows; *row; row++) {
        char name[512], what[2048];
        column(*row, 1, name, sizeof name);
        column(*row, 2, what, sizeof what);
        if (strcmp(name, "name") == 0) at = strcmp(what, "definition") == 0 ? 2 : 3;
        if (!strchr(*row, '`') || strcmp(name, "name") == 0) continue;
        column(*row, at, what, sizeof what);
        if (!rlhf__search_name(s->word, name) && !rlhf__search_text(s->word, what)) continue;
        begin(s, &n, "metrics:");
        struct rlhf__buf line = RLHF__BUF_INIT;
        rlhf__buf_printf(&line, "  %s\n      %s\n", name, what);
        print_page(&line);
    }
}

static void search_help(struct search *s) {
    char *text = NULL, *save = NULL;
    size_t len = 0, n = 0;
    FILE *to = open_memstream(&text, &len);
    if (!to) return;
    rlhf__help(to);
    fclose(to);
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] != ' ' || !rlhf__search_text(s->word, line)) continue;
        begin(s, &n, "commands and flags:");
        struct rlhf__buf shown = RLHF__BUF_INIT;
        rlhf__buf_printf(&shown, "  %s\n", line + strspn(line, " "));
        print_page(&shown);
    }
    free(text);
}

// ---- all of it ----

static void say_alias(struct search *s) {
    const struct rlhf__alias *a = rlhf__alias_find(s->word);
    struct rlhf__buf what = RLHF__BUF_INIT;
    if (a && !*a->ours) {
        struct rlhf__buf line = RLHF__BUF_INIT;
        rlhf__buf_printf(&line, "%s: %s: %s\n", s->word, a->is, a->note);
        print_page(&line);
        s->found++;
    } else if (rlhf__alias_hint(s->word, 1, &what)) {
        struct rlhf__buf line = RLHF__BUF_INIT;
        rlhf__buf_printf(&line, "TRL's %s%s\n", s->word, rlhf__buf_text(&what));
        print_page(&line);
        s->found++;
    }
    rlhf__buf_finish(&what);
}

static void search_settings(struct search *s) {
    const struct rlhf__alias *a = rlhf__alias_find(s->word);
    char *text = NULL;
    size_t len = 0;
    say_alias(s);
    FILE *to = open_memstream(&text, &len);
    if (!to) return;
    size_t n = rlhf__help_settings(s->env->dirs, s->word, to);
    if (!n && a && *a->ours) n = rlhf__help_settings(s->env->dirs, a->ours, to);
    fclose(to);
    struct rlhf__buf lines = RLHF__BUF_INIT;
    if (n && s->found) putchar('\n');
    if (n) rlhf__buf_put(&lines, text, len);
    print_page(&lines);
    s->found += n;
    free(text);
}

static int nothing(const struct search *s, struct rlhf__nearest *near, const char *see) {
    struct rlhf__error err;
    char hint[128];
    size_t n;
    const struct rlhf__section *section = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < section[i].table.n; k++) {
            rlhf_opt o;
            rlhf__opt_at(&section[i].table, k, &o);
            rlhf__nearest_offer(near, o.key);
        }
    rlhf__fail(&err, RLHF_E_INVALID, "help: nothing is found for \"%s\"%s; see %s", s->word,
               rlhf__nearest_hint(near, hint, sizeof hint), see);
    rlhf__log_error(s->env->log, err.text);
    return 2;
}

int rlhf__search_settings(const struct rlhf__env *env, const char *word) {
    struct search s = {.env = env, .word = word};
    search_settings(&s);
    struct rlhf__nearest near = {.wanted = word};
    return s.found ? 0 : nothing(&s, &near, "rlhf-host help settings");
}

int rlhf__search(const struct rlhf__env *env, struct rlhf__nearest *near) {
    struct search s = {.env = env, .word = near->wanted};
    if (!*s.word) return nothing(&s, near, "rlhf-host --help");
    rlhf__plugin_each_file(env->dirs, visit_name, &s);
    if (s.path[0]) {
        static char plugin[] = "plugin", info[] = "info";
        char *argv[] = {plugin, info, s.path, NULL};
        return rlhf__cmd_plugin(env, 3, argv);
    }
    search_settings(&s);
    search_options(&s);
    search_metrics(&s);
    search_help(&s);
    return s.found ? 0 : nothing(&s, near, "rlhf-host --help");
}
