// dialogue_commands.c: the commands of a dialogue; see dialogue_state.h.
#include "prompt/dialogue_state.h"

#include "base/printable.h"
#include "option/nearest.h"
#include "prompt/token_table.h"
#include "prompt/typed_completion.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef rlhf_status command_fn(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err);

static command_fn help, use_model, compare, temperature, top_p, max_new, greedy, seed, texts,
    reward, tokens, forget, quit;

enum argument { NO_ARG, ONE_ARG };

static const struct {
    const char *name, *arg, *help;
    command_fn *run;
    int32_t argument;
} commands[] = {
    {"/help", "", "this list", help, NO_ARG},
    {"/model", "DIR", "another model or run", use_model, ONE_ARG},
    {"/compare", "DIR|off", "a second model to compare with", compare, ONE_ARG},
    {"/temperature", "T", "logits are divided by it", temperature, ONE_ARG},
    {"/top-p", "P", "keep the most likely mass P", top_p, ONE_ARG},
    {"/max-new", "N", "longest text in new tokens", max_new, ONE_ARG},
    {"/greedy", "", "always the most likely token; /temperature draws again", greedy, NO_ARG},
    {"/seed", "S", "seed of the draws, which start over", seed, ONE_ARG},
    {"/n", "K", "how many texts for each line", texts, ONE_ARG},
    {"/reward", "PLUGIN|off", "score texts by a reward", reward, ONE_ARG},
    {"/tokens", "", "the tokens of the last text", tokens, NO_ARG},
    {"/new", "", "forget the conversation with a chat model", forget, NO_ARG},
    {"/quit", "", "end, as Ctrl-D does", quit, NO_ARG},
};
#define N_COMMANDS (sizeof commands / sizeof *commands)

struct rlhf__completion_words rlhf__dialogue_words(void) {
    static const char *const names[] = {
        "/help", "/model", "/compare", "/temperature", "/top-p", "/max-new", "/greedy",
        "/seed", "/n",     "/reward",  "/tokens",      "/new",   "/quit",    NULL};
    static const char *const with_path[] = {"/model", "/compare", "/reward", NULL};
    return (struct rlhf__completion_words){names, with_path};
}

// ---- arguments ----

static rlhf_status number(const char *command, const char *text, double low, double high,
                          double *out, struct rlhf__error *err) {
    char *end, seen[100];
    errno = 0;
    const double v = strtod(text, &end);
    if (errno || *end || end == text || !(v >= low && v <= high))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: a number from %g to %g, found \"%s\"", command,
                          low, high, rlhf__printable(text, seen, sizeof seen));
    *out = v;
    return RLHF_OK;
}

static rlhf_status integer(const char *command, const char *text, int64_t low, int64_t high,
                           int64_t *out, struct rlhf__error *err) {
    char seen[100];
    int64_t v;
    if (!rlhf__typed_integer(text, &v) || v < low || v > high)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: an integer from %lld to %lld, found \"%s\"",
                          command, (long long)low, (long long)high,
                          rlhf__printable(text, seen, sizeof seen));
    *out = v;
    return RLHF_OK;
}

static int is_off(const char *arg) { return strcmp(arg, "off") == 0; }

// ---- the commands ----

static rlhf_status help(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    (void)d;
    (void)arg;
    (void)err;
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-12s %-11s %s\n", commands[i].name, commands[i].arg, commands[i].help);
    puts("  Ctrl-C stops a text; any other line is the beginning of a text or, for a chat model, a "
         "turn");
    return RLHF_OK;
}

static rlhf_status use_model(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    struct rlhf__model *m;
    RLHF_TRY(rlhf__dialogue_model(d, "/model", arg, &m, err));
    const rlhf_status st = rlhf__dialogue_use(d, m, arg, err);
    if (st != RLHF_OK)
        rlhf__model_close(m);
    else
        rlhf__dialogue_describe(d);
    return st;
}

static rlhf_status compare(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    RLHF_TRY(rlhf__dialogue_compare(d, is_off(arg) ? NULL : arg, err));
    rlhf__dialogue_describe(d);
    return RLHF_OK;
}

static rlhf_status temperature(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    RLHF_TRY(number("/temperature", arg, 1e-6, 100, &d->settings.temperature, err));
    d->settings.greedy = 0;
    return RLHF_OK;
}

static rlhf_status top_p(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    return number("/top-p", arg, 1e-9, 1, &d->settings.top_p, err);
}

static rlhf_status max_new(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    const int64_t most = d->model->info.n_ctx - 1;
    return integer("/max-new", arg, 1, most < RLHF__MAX_NEW_TOKENS ? most : RLHF__MAX_NEW_TOKENS,
                   &d->settings.max_new, err);
}

static rlhf_status greedy(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    (void)arg;
    (void)err;
    d->settings.greedy = 1;
    return RLHF_OK;
}

static rlhf_status seed(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    RLHF_TRY(integer("/seed", arg, 0, INT64_MAX, &d->settings.seed, err));
    d->number = 0;
    return RLHF_OK;
}

static rlhf_status texts(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    return integer("/n", arg, 1, 1000, &d->n, err);
}

static rlhf_status reward(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    RLHF_TRY(rlhf__dialogue_score(d, is_off(arg) ? NULL : arg, err));
    rlhf__dialogue_describe(d);
    return RLHF_OK;
}

static rlhf_status tokens(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    const struct rlhf__answer *a = &d->answer;
    struct rlhf__buf out = RLHF__BUF_INIT;
    const char *no_color = getenv("NO_COLOR");
    const struct rlhf__token_table t = {.tok = d->model->tok,
                                        .ids = a->ids,
                                        .logp = a->logp,
                                        .ref = d->under,
                                        .n = a->n,
                                        .color = !(no_color && *no_color)};
    (void)arg;
    if (a->n == 0) return rlhf__fail(err, RLHF_E_INVALID, "/tokens: there is no text yet");
    const rlhf_status st = rlhf__token_table_put(&t, &out, err);
    if (st == RLHF_OK) fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
    rlhf__buf_finish(&out);
    return st;
}

static rlhf_status forget(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    (void)arg;
    if (!d->chat)
        return rlhf__fail(err, RLHF_E_INVALID, "/new: %s has no chat template, so each text is new",
                          d->name);
    rlhf__dialogue_forget(d, 0);
    return RLHF_OK;
}

static rlhf_status quit(struct rlhf__dialogue *d, const char *arg, struct rlhf__error *err) {
    (void)arg;
    (void)err;
    d->quit = 1;
    return RLHF_OK;
}

// ---- a line ----

static rlhf_status unknown(const char *name, struct rlhf__error *err) {
    struct rlhf__nearest near = {name, NULL, 0};
    char hint[128], seen[100];
    for (size_t i = 0; i < N_COMMANDS; i++)
        rlhf__nearest_offer(&near, commands[i].name);
    return rlhf__fail(err, RLHF_E_INVALID, "unknown command \"%s\"%s; /help lists them",
                      rlhf__printable(name, seen, sizeof seen),
                      rlhf__nearest_hint(&near, hint, sizeof hint));
}

rlhf_status rlhf__dialogue_command(struct rlhf__dialogue *d, const char *line,
                                   struct rlhf__error *err) {
    char name[64], arg[RLHF__PATH_CAP];
    const size_t n = strcspn(line, " \t"), gap = strspn(line + n, " \t");
    size_t end = strlen(line);
    while (end > n + gap && strchr(" \t", line[end - 1]))
        end--;
    snprintf(name, sizeof name, "%.*s", n < 60 ? (int)n : 60, line);
    if (end - n - gap >= sizeof arg)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the argument is too long", name);
    snprintf(arg, sizeof arg, "%.*s", (int)(end - n - gap), line + n + gap);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) != 0) continue;
        if (commands[i].argument == NO_ARG && arg[0])
            return rlhf__fail(err, RLHF_E_INVALID, "%s takes no argument", name);
        if (commands[i].argument == ONE_ARG && !arg[0])
            return rlhf__fail(err, RLHF_E_INVALID, "%s %s: %s", name, commands[i].arg,
                              commands[i].help);
        return commands[i].run(d, arg, err);
    }
    return unknown(name, err);
}
