// help.c: see help.h.
#include "cmd/help.h"

#include "cmd/cli.h"

#include <string.h>

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
        "       rlhf-host plugin list | info FILE [--json]            look at plugins\n"
        "       rlhf-host help COMMAND                                flags of a command\n"
        "       rlhf-host help settings                               all settings\n"
        "       rlhf-host --help | --version\n"
        "\n"
        "options of a training run:\n",
        out);
    rlhf__cli_train_help(out);
    fputs("\n"
          "Settings come from, later over earlier: built-in defaults, the algorithm's own file,\n"
          "--preset, --config, flags, --set. Results go to standard output, log lines to standard\n"
          "error. Exit status: 0 done, 1 failed while running, 2 bad input, 130 interrupted (a\n"
          "checkpoint was written).\n",
          out);
}

void rlhf__version(FILE *out) {
    fprintf(out, "rlhf-host %s (plugin ABI %d.%d)\n", RLHF_SDK_VERSION, RLHF_ABI_MAJOR,
            RLHF_ABI_MINOR);
}

static void print_default(FILE *out, const rlhf_opt *o) {
    char number[40];
    switch (o->type) {
    case RLHF_T_BOOL:
        fputs(o->i_def ? "true" : "false", out);
        break;
    case RLHF_T_I64:
        fprintf(out, "%lld", (long long)o->i_def);
        break;
    case RLHF_T_F64:
        fputs(rlhf__format_double(o->f_def, 0, number), out);
        break;
    case RLHF_T_ENUM:
        fputs(o->choices[o->i_def], out);
        break;
    default:
        fprintf(out, o->flags & RLHF__OPT_LIST ? "%s" : "\"%s\"", o->s_def ? o->s_def : "");
        break;
    }
}

void rlhf__help_settings(FILE *out) {
    size_t n;
    const struct rlhf__section *s = rlhf__sections(&n);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, "%s%s: %s\n", i ? "\n" : "", s[i].name, s[i].help);
        for (uint32_t k = 0; k < s[i].table.n; k++) {
            rlhf_opt o;
            struct rlhf__buf allowed = RLHF__BUF_INIT;
            rlhf__opt_at(&s[i].table, k, &o);
            rlhf__opt_allowed(&o, &allowed);
            fprintf(out, "  %s.%s = ", s[i].name, o.key);
            print_default(out, &o);
            fprintf(out, "\n      %s\n      %s\n", o.help, rlhf__buf_text(&allowed));
            rlhf__buf_free(&allowed);
        }
    }
    fputs("\nalgo.*, reward.N.* and judge.*: see rlhf-host plugin info FILE\n", out);
}
