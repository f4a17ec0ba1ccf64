// help.c: see help.h.
#include "cmd/help.h"
#include "config/schema.h"

#include "cmd/cli.h"
#include "cmd/tuned.h"

void rlhf__help(FILE *out) {
    fputs(
        "rlhf-host: reinforcement learning from feedback for language models\n"
        "\n"
        "usage: rlhf-host --algo ppo.so --reward imdb.so [options]    train\n"
        "       rlhf-host --resume RUN [options]                      go on with a run\n"
        "       rlhf-host generate --model DIR --prompt TEXT ...      sample from a model\n"
        "       rlhf-host eval --model DIR --data FILE ...            measure a model\n"
        "       rlhf-host label --data FILE --out FILE ...            label texts by a classifier\n"
        "       rlhf-host pairs --judge X.so --out FILE ...           make preference rows\n"
        "       rlhf-host export RUN|DIR --to DIR ...                 a directory for "
        "transformers\n"
        "       rlhf-host plugin list | info FILE [--json]            look at plugins\n"
        "       rlhf-host plugin new KIND NAME                        begin a plugin\n"
        "       rlhf-host plugin check FILE                           what is wrong with a plugin\n"
        "       rlhf-host devices [--json]                            look at CPU and GPUs\n"
        "       rlhf-host help COMMAND                                flags of a command\n"
        "       rlhf-host help settings                               all settings\n"
        "       rlhf-host --help | --version [--json]\n"
        "\n"
        "options of a training run:\n",
        out);
    rlhf__cli_train_help(out);
    fputs(
        "\n"
        "Settings come from, later over earlier: built-in defaults, the algorithm's own file,\n"
        "--preset, --config, flags, --set. Results go to standard output, log lines to standard\n"
        "error. Exit status: 0 done, 1 failed while running, 2 bad input, 128 + n ended by signal\n"
        "n (Ctrl-C: 130), with a checkpoint.\n",
        out);
}

// "      0.99 with grpo.so, ppo.so; 0.9 with ..." where algorithms bring defaults of their own.
static void put_tuned(struct rlhf__buf *out, const char *section, const rlhf_opt *o,
                      const struct rlhf__tuned *tuned, size_t n) {
    const char *before = "\n      ";
    for (size_t i = 0; i < n; i++) {
        const json_t *v = rlhf__tuned_value(&tuned[i], section, o), *same = NULL;
        for (size_t k = 0; v && k < i && !same; k++) {
            same = rlhf__tuned_value(&tuned[k], section, o);
            if (same && !json_equal(same, v)) same = NULL;
        }
        if (!v || same) continue; // said with the first that has it
        rlhf__buf_puts(out, before);
        rlhf__put_value(out, o, v);
        const char *comma = " with ";
        for (size_t k = i; k < n; k++) {
            const json_t *w = rlhf__tuned_value(&tuned[k], section, o);
            if (!w || !json_equal(v, w)) continue;
            rlhf__buf_printf(out, "%s%s.so", comma, tuned[k].algo);
            comma = ", ";
        }
        before = "; ";
    }
}

void rlhf__help_settings(const struct rlhf__dirs *dirs, FILE *out) {
    size_t n, n_tuned;
    struct rlhf__tuned *tuned = rlhf__tuned_all(dirs, &n_tuned);
    const struct rlhf__section *s = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "%s%s: %s\n", i ? "\n" : "", s[i].name, s[i].help);
        for (uint32_t k = 0; k < s[i].table.n; k++) {
            rlhf_opt o;
            struct rlhf__buf text = RLHF__BUF_INIT;
            rlhf__opt_at(&s[i].table, k, &o);
            rlhf__put_default(&text, &o);
            put_tuned(&text, s[i].name, &o, tuned, n_tuned);
            rlhf__buf_printf(&text, "\n      %s\n      ", o.help);
            rlhf__opt_allowed(&o, &text);
            fprintf(out, "  %s.%s = %s\n", s[i].name, o.key, rlhf__buf_text(&text));
            rlhf__buf_free(&text);
        }
    }
    rlhf__tuned_finish(tuned, n_tuned);
    fputs("\nalgo.*, reward.N.* and judge.*: see rlhf-host plugin info FILE\n", out);
}
