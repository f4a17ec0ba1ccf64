// play_input.c: see play_input.h.
#include "prompt/play_input.h"

#include "base/signals.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const commands[] = {"/help", "/quit", "/call", NULL};
static const char *const none[] = {NULL};

static void say_commands(void) { puts("each line is a turn; /quit, Ctrl-C or Ctrl-D ends"); }

static rlhf_status open_editor(struct rlhf__play_input *p, struct rlhf__error *err) {
    const struct rlhf__editor_opts o = {.words = {.commands = commands, .with_path = none},
                                        .ended = p->env->cancelled,
                                        .interrupted = rlhf__signals_dialogue(0)};
    RLHF_TRY(rlhf__editor_open(&o, &p->editor, err));
    say_commands();
    return RLHF_OK;
}

rlhf_status rlhf__play_input_open(struct rlhf__play_input *p, const struct rlhf__env *env,
                                  const char *script, int json, struct rlhf__error *err) {
    p->env = env;
    if (!script && !json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        return open_editor(p, err);
    p->file = script ? fopen(script, "re") : stdin;
    p->echo = !json;
    if (p->file) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "--script: '%s' cannot be read", script);
}

void rlhf__play_input_close(struct rlhf__play_input *p) {
    rlhf__editor_close(p->editor);
    if (p->file && p->file != stdin) fclose(p->file);
    *p = (struct rlhf__play_input){0};
}

// Read a line that a person types. Only while the person types, Ctrl-C acts on the line instead of
// ending the program.
static void read_typed(struct rlhf__play_input *p, struct rlhf__buf *turn) {
    const char *line = "";
    int event;
    rlhf__signals_dialogue(1);
    while ((event = rlhf__editor_line(p->editor, &line)) == RLHF__LINE && !strcmp(line, "/help"))
        say_commands();
    rlhf__signals_dialogue(0);
    p->ended = event != RLHF__LINE || strcmp(line, "/quit") == 0;
    if (event != RLHF__LINE) putchar('\n');
    if (!p->ended) rlhf__buf_puts(turn, line);
}

static void read_line(struct rlhf__play_input *p, struct rlhf__buf *turn) {
    char *line = NULL;
    size_t cap = 0;
    rlhf__signals_break_calls(1);
    ssize_t n = *p->env->cancelled ? -1 : getline(&line, &cap, p->file);
    rlhf__signals_break_calls(0);
    p->ended = n < 0;
    if (n > 0 && line[n - 1] == '\n') n--;
    if (n > 0) rlhf__buf_put(turn, line, (size_t)n);
    free(line);
}

rlhf_status rlhf__play_input_turn(struct rlhf__play_input *p, int number, struct rlhf__buf *turn,
                                  struct rlhf__error *err) {
    rlhf__buf_clear(turn);
    if (p->editor)
        read_typed(p, turn);
    else
        read_line(p, turn);
    if (*p->env->cancelled) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
    const size_t good = turn->len ? rlhf__utf8_valid(rlhf__buf_text(turn), turn->len) : 0;
    if (good < turn->len)
        return rlhf__fail(err, RLHF_E_INVALID, "play: turn %d: invalid UTF-8 at byte %zu", number,
                          good + 1);
    if (p->file && p->echo && !p->ended) printf("> %.*s\n", (int)turn->len, rlhf__buf_text(turn));
    return rlhf__buf_ok(turn, err);
}
