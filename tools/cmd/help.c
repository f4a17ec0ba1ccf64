// help.c: see help.h.
#include "cmd/help.h"

#include "base/json.h"
#include "base/printable.h"
#include "cmd/algo_defaults.h"
#include "cmd/cli.h"
#include "cmd/help_search.h"
#include "cmd/program.h"
#include "config/schema.h"
#include "model/compute_load.h"
#include "supervise/child.h"

#include <stdio.h>
#include <string.h>

void rlhf__help(FILE *out) {
    rlhf__print_two_columns(
        out,
        "rlhf-host: reinforcement learning from feedback for language models\n"
        "\n"
        "usage: rlhf-host --algo ppo.so --reward imdb.so [options]    train\n"
        "       rlhf-host --resume RUN [options]                      go on with a run\n"
        "       rlhf-host generate --model DIR [--prompt TEXT] ...    sample from a model\n"
        "       rlhf-host play --env X.so ...                         be the policy yourself\n"
        "       rlhf-host tokenize [--model DIR] [TEXT ...]           texts to token ids and back\n"
        "       rlhf-host eval --model DIR --data FILE ...            measure a model\n"
        "       rlhf-host label --data FILE --out FILE ...            label texts by a classifier\n"
        "       rlhf-host pairs --judge X.so --out FILE ...           make preference rows\n"
        "       rlhf-host export RUN|MODEL --to DIR ...               a directory for "
        "transformers\n"
        "       rlhf-host report RUN... [--out FILE]                  a page about runs\n"
        "       rlhf-host samples RUN [--phase N]                     responses that a run wrote\n"
        "       rlhf-host runs list | show | compare | prune ...      look at runs, prune them\n"
        "       rlhf-host inspect --tuned DIR --prompt TEXT ...       what training changed\n"
        "       rlhf-host plugin list | info FILE [--json]            look at plugins\n"
        "       rlhf-host plugin new KIND NAME                        begin a plugin\n"
        "       rlhf-host plugin check FILE                           what is wrong with a plugin\n"
        "       rlhf-host verify RUN [--all | --phase A..B]           prove that a run is what its "
        "files say\n"
        "       rlhf-host devices [--json]                            look at CPU and GPUs\n"
        "       rlhf-host help COMMAND                                flags of a command\n"
        "       rlhf-host help settings [WORD]                        all settings, or some\n"
        "       rlhf-host help WORD                                   settings, plugins, metrics\n"
        "       rlhf-host help trl [FIELD]                            TRL's fields and ours\n"
        "       rlhf-host --help | --version [--json]\n"
        "\n"
        "options of a training run:\n");
    rlhf__cli_train_help(out);
    rlhf__print_two_columns(
        out,
        "\n"
        "Settings come from, later over earlier: built-in defaults, the algorithm's own file,\n"
        "--preset, --config, flags, --set. Results go to standard output, log lines to standard\n"
        "error. Exit status: 0 done, 1 failed while running, 2 bad input, 128 + n ended by signal\n"
        "n (Ctrl-C: 130), with a checkpoint.\n");
}

// Append the defaults that some algorithms have instead, if any:
//   "      0.99 with grpo.so, ppo.so; 0.9 with ..."
static void put_algo_defaults(struct rlhf__buf *out, const char *section, const rlhf_opt *o,
                              const struct rlhf__algo_defaults *defaults, size_t n) {
    const char *before = "\n      ";
    for (size_t i = 0; i < n; i++) {
        const json_t *v = rlhf__algo_defaults_value(&defaults[i], section, o), *same = NULL;
        for (size_t k = 0; v && k < i && !same; k++) {
            same = rlhf__algo_defaults_value(&defaults[k], section, o);
            if (same && !json_equal(same, v)) same = NULL;
        }
        if (!v || same) continue; // already listed with the first algorithm that has this value
        rlhf__buf_puts(out, before);
        rlhf__put_value(out, o, v);
        const char *comma = " with ";
        for (size_t k = i; k < n; k++) {
            const json_t *w = rlhf__algo_defaults_value(&defaults[k], section, o);
            if (!w || !json_equal(v, w)) continue;
            rlhf__buf_printf(out, "%s%s.so", comma, defaults[k].algo);
            comma = ", ";
        }
        before = "; ";
    }
}

static void put_setting(FILE *out, const char *section, const rlhf_opt *o,
                        const struct rlhf__algo_defaults *defaults, size_t n_defaults) {
    struct rlhf__buf text = RLHF__BUF_INIT, page = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, "  %s.%s = ", section, o->key);
    rlhf__put_default(&text, o);
    put_algo_defaults(&text, section, o, defaults, n_defaults);
    rlhf__buf_printf(&text, "\n      %s\n      ", o->help);
    rlhf__opt_allowed(o, &text);
    rlhf__buf_putc(&text, '\n');
    rlhf__put_page(&page, (rlhf_str){rlhf__buf_text(&text), text.len}, rlhf__page_width(out));
    fputs(rlhf__buf_text(&page), out);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&page);
}

// Returns 1 if `word` is the section or the full name of the setting, or occurs in the setting's
// key or help.
static int is_wanted(const char *word, const char *section, const rlhf_opt *o) {
    char full[160];
    snprintf(full, sizeof full, "%s.%s", section, o->key);
    if (!word || strcmp(word, section) == 0) return 1;
    if (strchr(word, '.')) return strcmp(word, full) == 0;
    return rlhf__search_name(word, o->key) || rlhf__search_text(word, o->help);
}

size_t rlhf__help_settings(const struct rlhf__dirs *dirs, const char *word, FILE *out) {
    size_t n, n_defaults, found = 0;
    struct rlhf__algo_defaults *defaults = rlhf__algo_defaults_all(dirs, &n_defaults);
    const struct rlhf__section *s = rlhf__sections(&n);
    const char *said = NULL; // the last section printed
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < s[i].table.n; k++) {
            rlhf_opt o;
            rlhf__opt_at(&s[i].table, k, &o);
            if (!is_wanted(word, s[i].name, &o)) continue;
            if (said != s[i].name)
                fprintf(out, "%s%s: %s\n", said ? "\n" : "", s[i].name, s[i].help);
            said = s[i].name;
            put_setting(out, s[i].name, &o, defaults, n_defaults);
            found++;
        }
    rlhf__algo_defaults_finish(defaults, n_defaults);
    if (!word)
        fputs("\nmodels.<name>: a further frozen model, by the algorithm's name for it\n", out);
    if (!word) fputs("algo.*, reward.N.* and judge.*: see rlhf-host plugin info FILE\n", out);
    return found;
}

// ---- version ----

// `rlhf-host --version`, also with --json: prints the data for a bug report.

#if defined __clang__
#define COMPILER "clang " __clang_version__
#elif defined __GNUC__
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

// Called in the child process. Writes the CPU backend's description, e.g. "amx, ...", and its
// instruction-set levels.
static rlhf_status describe(void *arg, struct rlhf__buf *out) {
    const struct rlhf__dirs *dirs = arg;
    struct rlhf__error err;
    struct rlhf__kernels k = {0};
    struct rlhf__device_info d = {0};
    rlhf_status st = rlhf__kernels_load(dirs, "cpu", NULL, &k, &err);
    if (st == RLHF_OK) st = rlhf__kernels_describe(&k, 0, &d, &err);
    if (st == RLHF_OK) {
        json_t *all = json_pack("{ss,so}", "library", d.library, "levels", rlhf__levels_json(&d));
        rlhf__json_write(out, all, 0);
        json_decref(all);
    } else {
        rlhf__buf_puts(out, err.text);
    }
    rlhf__device_info_finish(&d);
    rlhf__kernels_finish(&k);
    return st;
}

// Returns the output of describe(), or NULL if the backend cannot be queried.
static json_t *ask(const struct rlhf__dirs *dirs) {
    struct rlhf__buf said = RLHF__BUF_INIT;
    struct rlhf__dirs own = *dirs;
    struct rlhf__error none;
    json_t *all = NULL;
    if (rlhf__child_run("cpu", describe, &own, &said, &none) == RLHF_OK)
        (void)rlhf__json_parse("cpu", rlhf__buf_text(&said), said.len, &all, &none);
    rlhf__buf_finish(&said);
    return all;
}

rlhf_status rlhf__version(const struct rlhf__dirs *dirs, struct rlhf__error *err) {
    struct rlhf__buf table = RLHF__BUF_INIT;
    json_t *said = ask(dirs);
    rlhf__levels_put(&table, json_object_get(said, "levels"));
    json_decref(said);
    printf("rlhf-host %s (plugin contract %d.%d)\n%s", RLHF_SDK_VERSION, RLHF_ABI_MAJOR,
           RLHF_ABI_MINOR, rlhf__buf_text(&table));
    rlhf__buf_finish(&table);
    return rlhf__print_flush(err);
}

// Returns the first part of a text such as "a, b, c", or JSON null if the text is empty.
static json_t *first_part(const char *text) {
    const char *end = strstr(text, ", ");
    if (!*text) return json_null();
    return json_stringn(text, end ? (size_t)(end - text) : strlen(text));
}

rlhf_status rlhf__version_json(const struct rlhf__dirs *dirs, const char *git, const char *build,
                               struct rlhf__error *err) {
    json_t *said = ask(dirs);
    const char *library = json_string_value(json_object_get(said, "library"));
    json_t *levels = json_object_get(said, "levels");
    json_t *all = json_pack(
        "{ss,s{si,si},ss,ss,ss,so,so,ss,ss}", "version", RLHF_SDK_VERSION, "contract", "major",
        RLHF_ABI_MAJOR, "minor", RLHF_ABI_MINOR, "git", git, "compiler", COMPILER, "build", build,
        "instruction_set", first_part(library ? library : ""), "levels",
        levels ? json_incref(levels) : json_array(), "lib", dirs->lib, "share", dirs->share);
    json_decref(said);
    return rlhf__print_json_new(all, err);
}
