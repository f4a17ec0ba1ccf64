// plugin_new.c: `rlhf-host plugin new KIND NAME`: makes a directory with a plugin, its test and two
// ways to build it. It fills in templates from share/rlhf/templates.
#include "cmd/plugin.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/folder.h"
#include "cmd/flags.h"
#include "cmd/plugin_in_tree.h"
#include "cmd/plugin_template.h"
#include "option/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The Makefile checks the plugin only if rlhf-host is installed. The plugin's test needs only the
// SDK.
#define PLUGIN_CHECK                                                                               \
    "; \\\n\tif command -v rlhf-host >/dev/null; then rlhf-host plugin check ./$< || bad=1; fi"

static const struct kind {
    const char *word;    // KIND as typed, and in the templates' names
    const char *what;    // description for the README
    const char *cmake;   // KIND of rlhf_add_plugin
    const char *dir;     // below the directory of plugins
    const char *prefix;  // prefix of the plugin's file name
    const char *package; // pkg-config package to link with
    const char *links;   // the same library for rlhf_add_plugin
    const char *check;   // further steps of `make check`
} kinds[] = {
    {"reward", "a reward", "reward", "rewards", "", "rlhf-sdk", "", PLUGIN_CHECK},
    {"algo", "an algorithm", "algo", "algos", "", "rlhf-sdk", "", PLUGIN_CHECK},
    {"model", "a model family", "model", "models", "", "rlhf-transformer",
     " LIBS rlhf::transformer", PLUGIN_CHECK},
    {"sink", "a sink", "sink", "sinks", "", "rlhf-sdk", "", PLUGIN_CHECK},
    {"environment", "an environment", "environment", "environments", "", "rlhf-sdk", "",
     PLUGIN_CHECK},
    {"kernel", "a compute backend", "kernels", "kernels", "kernels_", "rlhf-reference",
     " LIBS rlhf::reference", ""},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };
enum { NAME_MAX_BYTES = 40 };

static const struct lang {
    const char *word, *shown, *suffix, *cmake, *compile;
} langs[] = {
    {"c", "C", "c", "C", "$(CC) -std=c11 $(CFLAGS)"},
    {"c++", "C++", "cc", "C CXX", "$(CXX) -std=c++20 $(CXXFLAGS)"},
};
enum { N_LANGS = sizeof langs / sizeof *langs };

struct options {
    const char *lang, *to;
    int32_t in_tree;
};
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(struct options, "--lang", lang, "c|c++", "new: language of the plugin [c]"),
    RLHF__FLAG_S(struct options, "--to", to, "DIR",
                 "new: the directory to make [NAME]; with --in-tree the clone [.]"),
    RLHF__FLAG_SW(struct options, "--in-tree", in_tree,
                  "new: add it to a clone of rlhf-host, with its test, page and table rows"),
};
enum { N_FLAGS = sizeof flags / sizeof *flags };

void rlhf__plugin_new_help(FILE *out) { rlhf__flags_help(out, flags, N_FLAGS); }

enum { N_WORDS = 20 };
struct making {
    const struct rlhf__dirs *dirs;
    const struct kind *kind;
    const struct lang *lang;
    const char *name, *to;
    char texts[9][96];
    struct rlhf__buf run; // the README's commands
    char templates_dir[RLHF__PATH_CAP];
    struct rlhf__template_word words[N_WORDS];
    struct rlhf__templates templates;
};

static void add_word(struct making *m, const char *from, const char *to) {
    m->words[m->templates.n++] = (struct rlhf__template_word){from, to};
}

static void set_words(struct making *m) {
    const struct kind *k = m->kind;
    char(*t)[96] = m->texts;
    snprintf(t[0], sizeof t[0], "%s%s", k->prefix, m->name);
    snprintf(t[1], sizeof t[1], "%s.%s", m->name, m->lang->suffix);
    snprintf(t[2], sizeof t[2], "my_%s", k->word);
    snprintf(t[3], sizeof t[3], "// test_%s.c:", k->word);
    snprintf(t[4], sizeof t[4], "// test_%s.c:", m->name);
    snprintf(t[5], sizeof t[5], "// %s.%s:", k->word, m->lang->suffix);
    snprintf(t[6], sizeof t[6], "// %s.%s:", m->name, m->lang->suffix);
    add_word(m, "@NAME@", m->name);
    add_word(m, "@FILE@", t[0]);
    add_word(m, "@SOURCE@", t[1]);
    add_word(m, "@WORD@", k->word);
    add_word(m, "@WHAT@", k->what);
    add_word(m, "@KIND@", k->cmake);
    add_word(m, "@DIR@", k->dir);
    add_word(m, "@PACKAGE@", k->package);
    add_word(m, "@LINKS@", k->links);
    add_word(m, "@CHECK@", k->check);
    add_word(m, "@CHECKED@", *k->check ? ", and rlhf-host plugin check if it is installed" : "");
    add_word(m, "@LANGUAGES@", m->lang->cmake);
    add_word(m, "@COMPILE@", m->lang->compile);
    add_word(m, "@RUN@", rlhf__buf_text(&m->run));
    add_word(m, t[2], m->name);
    add_word(m, t[3], t[4]);
    add_word(m, t[5], t[6]);
    snprintf(t[7], sizeof t[7], "Usage: test_%s", k->word);
    snprintf(t[8], sizeof t[8], "Usage: test_%s", m->name);
    add_word(m, t[7], t[8]);
}

static rlhf_status put_file(const struct making *m, const struct rlhf__folder *in, const char *from,
                            const char *to, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf_status st = rlhf__template_read(&m->templates, from, &text, err);
    if (st == RLHF_OK) st = rlhf__file_write(in, to, rlhf__buf_text(&text), text.len, err);
    rlhf__buf_finish(&text);
    return st;
}

static rlhf_status put_files(const struct making *m, const struct rlhf__folder *in,
                             struct rlhf__error *err) {
    char source[64], test[64], own_test[96];
    struct rlhf__folder *ci = NULL;
    snprintf(source, sizeof source, "%s.%s", m->kind->word, m->lang->suffix);
    snprintf(test, sizeof test, "test_%s.c", m->kind->word);
    snprintf(own_test, sizeof own_test, "test_%s.c", m->name);
    const struct {
        const char *from, *to;
    } files[] = {
        {source, m->texts[1]},    {test, own_test},           {"CMakeLists.txt", "CMakeLists.txt"},
        {"Makefile", "Makefile"}, {"README.md", "README.md"}, {"gitignore", ".gitignore"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        RLHF_TRY(put_file(m, in, files[i].from, files[i].to, err));
    RLHF_TRY(rlhf__folder_make(in, ".ci", NULL, &ci, err));
    rlhf_status st = put_file(m, ci, "ci", "run", err);
    rlhf__folder_close(ci);
    return st;
}

// Make the directory under a temporary name first, so that no incomplete directory has the final
// name.
static rlhf_status make(const struct making *m, struct rlhf__error *err) {
    char above[RLHF__PATH_CAP], part[320];
    const char *base = rlhf__path_base(m->to);
    const int n = (int)(base - m->to);
    struct rlhf__folder *in = NULL, *dir = NULL;
    int taken = 0;
    rlhf__path_put(above, "%.*s", n, m->to);
    snprintf(part, sizeof part, "%.250s.tmp-%ld", base, (long)getpid());
    RLHF_TRY(rlhf__folder_open(NULL, n ? above : ".", &in, err));
    rlhf_status st = RLHF_OK;
    if (rlhf__folder_has(in, base))
        st = rlhf__fail(err, RLHF_E_INVALID, "plugin new: '%s' is there already", m->to);
    if (st == RLHF_OK) st = rlhf__folder_make(in, part, &taken, &dir, err);
    if (st == RLHF_OK && taken)
        st = rlhf__fail(err, RLHF_E_INVALID, "plugin new: '%s' is in the way; remove it", part);
    if (st == RLHF_OK) {
        struct rlhf__error ignored;
        st = put_files(m, dir, err);
        if (st == RLHF_OK) st = rlhf__folder_rename(in, part, base, err);
        if (st < 0) rlhf__folder_remove(in, part, &ignored);
    }
    rlhf__folder_close(dir);
    rlhf__folder_close(in);
    return st;
}

// ---- what was typed ---------------------------------------------------------------------------

static rlhf_status find_kind(struct making *m, const char *word, struct rlhf__error *err) {
    struct rlhf__nearest near = {word, NULL, 0};
    char hint[96];
    for (size_t i = 0; i < N_KINDS; i++) {
        rlhf__nearest_offer(&near, kinds[i].word);
        if (strcmp(kinds[i].word, word) != 0) continue;
        m->kind = &kinds[i];
        return RLHF_OK;
    }
    return rlhf__fail(err, RLHF_E_INVALID,
                      "plugin new: \"%.60s\" is not a kind of plugin%s; allowed are reward, algo, "
                      "model, sink, environment and kernel",
                      word, rlhf__nearest_hint(&near, hint, sizeof hint));
}

static rlhf_status find_lang(struct making *m, const char *word, struct rlhf__error *err) {
    if (!word) return RLHF_OK;
    for (size_t i = 0; i < N_LANGS; i++)
        if (strcmp(langs[i].word, word) == 0) {
            m->lang = &langs[i];
            return RLHF_OK;
        }
    return rlhf__fail(
        err, RLHF_E_INVALID, "plugin new: --lang is \"%.60s\", allowed are c and c++%s", word,
        strcmp(m->kind->word, "reward") == 0
            ? "; a reward in Python is a file of functions (--reward "
              "python.so:file=F,function=NAME), in another language a program (--reward "
              "exec.so:command=C)"
            : "");
}

// A name becomes part of file names, CMake identifiers and the plugin's id.
static rlhf_status check_name(const struct making *m, struct rlhf__error *err) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const char *name = m->name;
    const size_t n = strlen(name);
    char path[RLHF__PATH_CAP];
    if (n < 1 || n > NAME_MAX_BYTES || strspn(name, allowed) != n || name[0] < 'a')
        return rlhf__fail(err, RLHF_E_INVALID,
                          "plugin new: the name is \"%.60s\"; allowed are up to %d of a to z, 0 to "
                          "9 and _, the first a letter",
                          name, NAME_MAX_BYTES);
    rlhf__path_put(path, "%s/%s/%s%s.so", m->dirs->lib, m->kind->dir, m->kind->prefix, name);
    if (rlhf__is_file(path) || (strcmp(m->kind->word, "kernel") == 0 &&
                                (strcmp(name, "auto") == 0 || strcmp(name, "cuda") == 0)))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "plugin new: \"%s\" is the name of %s that comes with rlhf-host; choose "
                          "another",
                          name, m->kind->what);
    return RLHF_OK;
}

static rlhf_status check(struct making *m, const struct options *o,
                         const struct rlhf__flag_list *rest, struct rlhf__error *err) {
    if (rest->n != 2)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "plugin new: name a kind and a plugin, e.g. rlhf-host plugin new reward "
                          "my_words; kinds are reward, algo, model, sink, environment and kernel");
    RLHF_TRY(find_kind(m, rest->item[0], err));
    RLHF_TRY(find_lang(m, o->lang, err));
    m->name = rest->item[1];
    RLHF_TRY(check_name(m, err));
    m->to = o->to ? o->to : m->name;
    if (!o->in_tree && !*rlhf__path_base(m->to))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "plugin new: --to is \"%.200s\", which does not end in a name", m->to);
    return RLHF_OK;
}

// Make a directory for the plugin.
static rlhf_status make_directory(struct making *m, struct rlhf__error *err) {
    char run[64];
    rlhf__path_put(m->templates_dir, "%s/templates", m->dirs->share);
    m->templates = (struct rlhf__templates){.dir = m->templates_dir, .word = m->words};
    set_words(m);
    snprintf(run, sizeof run, "run_%s.md", m->kind->word);
    RLHF_TRY(rlhf__template_read(&m->templates, run, &m->run, err));
    m->templates.n = 0;
    set_words(m);
    RLHF_TRY(make(m, err));
    printf("made %s: %s in %s; next:\n  cd %s && make check\n", m->to, m->kind->what,
           m->lang->shown, m->to);
    return RLHF_OK;
}

static rlhf_status add_to_tree(const struct making *m, const char *root, struct rlhf__error *err) {
    const struct rlhf__new_plugin plugin = {m->kind->word, m->kind->cmake, m->kind->dir,
                                            m->kind->what, m->name};
    if (m->lang != &langs[0])
        return rlhf__fail(err, RLHF_E_INVALID,
                          "plugin new: the plugins of rlhf-host are in C; --in-tree has no effect "
                          "with --lang %s",
                          m->lang->word);
    RLHF_TRY(rlhf__plugin_in_tree(root, &plugin, err));
    printf("next:\n  cmake --build build/dev --target plugin_%s test_%s\n"
           "  ctest --test-dir build/dev -R '^test_%s$' --output-on-failure\n",
           m->name, m->name, m->name);
    return RLHF_OK;
}

int rlhf__plugin_new(const struct rlhf__env *env, int argc, char **argv) {
    struct options o = {NULL, NULL, 0};
    struct rlhf__flag_list rest = {NULL, 0};
    struct making m = {
        .dirs = env->dirs, .kind = &kinds[0], .lang = &langs[0], .run = RLHF__BUF_INIT};
    struct rlhf__error err;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, &rest, &err);
    if (st == RLHF_OK) st = check(&m, &o, &rest, &err);
    if (st == RLHF_OK)
        st = o.in_tree ? add_to_tree(&m, o.to ? o.to : ".", &err) : make_directory(&m, &err);
    if (st != RLHF_OK) rlhf__log_error(env->log, err.text);
    rlhf__buf_finish(&m.run);
    free(rest.item);
    return rlhf__exit_status(st);
}
