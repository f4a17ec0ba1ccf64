// plugin_in_tree.c: see plugin_in_tree.h.
#include "cmd/plugin_in_tree.h"

#include "base/file.h"
#include "base/folder.h"
#include "cmd/plugin_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Where the test and the page of a kind are.
static const struct home {
    const char *word, *tests, *pages;
} homes[] = {
    {"reward", "rewards", "rewards"},
    {"algo", "algos", "algorithms"},
    {"sink", "sinks", "sinks"},
    {"environment", "environments", "environments"},
};
enum { HOMES = sizeof homes / sizeof *homes };

enum how {
    NEW,    // a new file: a template or, if `template` is NULL, the text
    APPEND, // the text at the end of a file
    AFTER,  // the text after the line that begins with `anchor`
    BEFORE
};

static const char page[] = "# @NAME@.so: what it is for, in a few words\n"
                           "\n"
                           "What you can do with it, in one or two sentences.\n"
                           "\n"
                           "    rlhf-host plugin info @NAME@.so\n"
                           "\n"
                           "Then an example, the formula, and a table of its options.\n";

// All files that know a plugin of this repository.
static const struct place {
    const char *word; // of the kind; NULL: every kind
    enum how how;
    const char *path, *template, *anchor, *text;
} places[] = {
    {NULL, NEW, "plugins/@DIR@/@NAME@.c", "@WORD@.c", NULL, NULL},
    {NULL, APPEND, "plugins/@DIR@/CMakeLists.txt", NULL, NULL,
     "rlhf_add_plugin(@NAME@ KIND @KIND@ SOURCES @NAME@.c)\n"},
    {NULL, NEW, "tests/@TESTS@/test_@NAME@.c", "test_@WORD@.c", NULL, NULL},
    {NULL, APPEND, "tests/@TESTS@/CMakeLists.txt", NULL, NULL, "rlhf_add_plugin_test(@NAME@)\n"},
    {"reward", AFTER, "tests/rewards/test_reward_properties.c", NULL,
     "static const char *const plugins[][2] = {", "    {\"@NAME@.so\", \"\"},\n"},
    {NULL, AFTER, "tests/canaries/test_canaries.c", NULL, "    } own[] = {",
     "               {\"@DIR@/@NAME@\", \"\"},\n"},
    {NULL, NEW, "docs/@PAGES@/@NAME@.md", NULL, NULL, page},
    {NULL, BEFORE, "README.md", NULL, "| write an algorithm, model or backend |",
     "| use @NAME@.so, @WHAT@ | [@NAME@](docs/@PAGES@/@NAME@.md) |\n"},
};
enum { PLACES = sizeof places / sizeof *places, WORDS = 16 };

// A file to write: its text before (empty for a new file) and after.
struct change {
    char path[RLHF__PATH_CAP];
    struct rlhf__buf before, after;
    int32_t is_new, written;
};

struct adding {
    const char *root;
    const struct rlhf__new_plugin *plugin;
    struct rlhf__templates templates;
    struct rlhf__template_word word[WORDS];
    char dir[RLHF__PATH_CAP], texts[5][96];
    struct change change[PLACES];
    size_t n;
};

static void add_word(struct adding *a, const char *from, const char *to) {
    a->word[a->templates.n++] = (struct rlhf__template_word){from, to};
}

static void set_words(struct adding *a, const struct home *home) {
    const struct rlhf__new_plugin *p = a->plugin;
    char(*t)[96] = a->texts;
    snprintf(t[0], sizeof t[0], "org.example.my_%s", p->word);
    snprintf(t[1], sizeof t[1], "org.rlhf-host.%s", p->name);
    snprintf(t[2], sizeof t[2], "my_%s", p->word);
    snprintf(t[3], sizeof t[3], "// %s.c:", p->word);
    snprintf(t[4], sizeof t[4], "// %s.c:", p->name);
    add_word(a, "@NAME@", p->name);
    add_word(a, "@DIR@", p->dir);
    add_word(a, "@WORD@", p->word);
    add_word(a, "@KIND@", p->kind);
    add_word(a, "@WHAT@", p->what);
    add_word(a, "@TESTS@", home->tests);
    add_word(a, "@PAGES@", home->pages);
    add_word(a, t[0], t[1]); // before "my_..."
    add_word(a, t[2], p->name);
    add_word(a, t[3], t[4]);
    add_word(a, ".version = \"1.0.0\",",
             ".version = RLHF_SDK_VERSION,\n    .vendor = \"rlhf-host\",\n    .license = "
             "\"Apache-2.0\",");
    add_word(a, " // reverse DNS; must be unique", "");
    a->templates.word = a->word;
    rlhf__path_put(a->dir, "%s/sdk/templates", a->root);
    a->templates.dir = a->dir;
}

// Copy c->before to c->after, with the text before or after the anchor's line, or at the end.
static rlhf_status insert(struct change *c, const struct place *p, const char *text,
                          struct rlhf__error *err) {
    const char *all = rlhf__buf_text(&c->before), *at = all;
    while (p->anchor && *at && strncmp(at, p->anchor, strlen(p->anchor)) != 0) {
        const char *end = strchr(at, '\n');
        at = end ? end + 1 : at + strlen(at);
    }
    if (!p->anchor) at += c->before.len;
    if (p->anchor && !*at)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "plugin new: %s has no line that begins with '%s'; add the plugin by "
                          "hand, as CONTRIBUTING.md says",
                          c->path, p->anchor);
    if (p->how == AFTER) at += strcspn(at, "\n") + 1;
    rlhf__buf_put(&c->after, all, (size_t)(at - all));
    rlhf__buf_puts(&c->after, text);
    rlhf__buf_puts(&c->after, at);
    return rlhf__buf_ok(&c->after, err);
}

static rlhf_status prepare_text(struct adding *a, const struct place *p, struct change *c,
                                struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (p->how == NEW) {
        c->is_new = 1;
        if (access(c->path, F_OK) == 0)
            return rlhf__fail(err, RLHF_E_INVALID, "plugin new: '%s' is there already", c->path);
        if (p->template) {
            rlhf__template_fill(&a->templates, p->template, &text);
            const rlhf_status st =
                rlhf__template_read(&a->templates, rlhf__buf_text(&text), &c->after, err);
            rlhf__buf_finish(&text);
            return st;
        }
        rlhf__template_fill(&a->templates, p->text, &c->after);
        return rlhf__buf_ok(&c->after, err);
    }
    RLHF_TRY(rlhf__file_read(c->path, 1 << 22, &c->before, err));
    rlhf__template_fill(&a->templates, p->text, &text);
    const rlhf_status st = insert(c, p, rlhf__buf_text(&text), err);
    rlhf__buf_finish(&text);
    return st;
}

static rlhf_status prepare(struct adding *a, struct rlhf__error *err) {
    for (size_t i = 0; i < PLACES; i++) {
        const struct place *p = &places[i];
        if (p->word && strcmp(p->word, a->plugin->word) != 0) continue;
        struct change *c = &a->change[a->n++];
        struct rlhf__buf path = RLHF__BUF_INIT;
        rlhf__template_fill(&a->templates, p->path, &path);
        rlhf__path_put(c->path, "%s/%s", a->root, rlhf__buf_text(&path));
        rlhf__buf_finish(&path);
        RLHF_TRY(prepare_text(a, p, c, err));
    }
    return RLHF_OK;
}

static rlhf_status write_all(struct adding *a, struct rlhf__error *err) {
    for (size_t i = 0; i < a->n; i++) {
        struct change *c = &a->change[i];
        if (c->is_new) RLHF_TRY(rlhf__folder_make_above(NULL, c->path, err));
        RLHF_TRY(rlhf__file_write(NULL, c->path, c->after.data, c->after.len, err));
        c->written = 1;
    }
    return RLHF_OK;
}

static void take_back(struct adding *a) {
    struct rlhf__error ignored;
    for (size_t i = 0; i < a->n; i++) {
        const struct change *c = &a->change[i];
        if (!c->written) continue;
        if (c->is_new)
            unlink(c->path);
        else
            rlhf__file_write(NULL, c->path, c->before.data, c->before.len, &ignored);
    }
}

static rlhf_status check(const struct adding *a, const struct home **home,
                         struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/sdk/templates/%s.c", a->root, a->plugin->word);
    if (!rlhf__is_file(path))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "plugin new: '%s' is not a clone of rlhf-host; run --in-tree in one, or "
                          "name it with --to DIR",
                          a->root);
    for (size_t i = 0; i < HOMES; i++)
        if (strcmp(homes[i].word, a->plugin->word) == 0) *home = &homes[i];
    if (*home) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "plugin new: --in-tree adds a reward, an algorithm, a sink or an environment, "
        "and not %s",
        a->plugin->what);
}

rlhf_status rlhf__plugin_in_tree(const char *root, const struct rlhf__new_plugin *plugin,
                                 struct rlhf__error *err) {
    struct adding *a = calloc(1, sizeof *a);
    const struct home *home = NULL;
    if (!a) return RLHF__NOMEM(err, "plugin new: out of memory");
    a->root = root;
    a->plugin = plugin;
    rlhf_status st = check(a, &home, err);
    if (st == RLHF_OK && home) {
        set_words(a, home);
        st = prepare(a, err);
        if (st == RLHF_OK) st = write_all(a, err);
        if (st != RLHF_OK) take_back(a);
    }
    for (size_t i = 0; st == RLHF_OK && i < a->n; i++)
        printf("%s %s\n", a->change[i].is_new ? "made  " : "edited", a->change[i].path);
    for (size_t i = 0; i < a->n; i++) {
        rlhf__buf_finish(&a->change[i].before);
        rlhf__buf_finish(&a->change[i].after);
    }
    free(a);
    return st;
}
