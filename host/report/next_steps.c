// next_steps.c: see next_steps.h.
#include "report/next_steps.h"

#include "base/json.h"
#include "config/command_text.h"

#include <string.h>

enum { PROMPT_BYTES = 60, MAX_NEW = 48 }; // MAX_NEW: the default of `generate --max-new`

static void say(const struct rlhf__next_steps *s, const char *text, struct rlhf__buf *line) {
    if (!line->bad) rlhf__log_command(s->log, text, rlhf__buf_text(line));
    rlhf__buf_finish(line);
}

// ---- plugins ----

// Returns 1 if a flag would read the text as two parts: the end of a value, and a further
// key=value.
static int is_two_pairs(const char *text) {
    const char *comma = strchr(text, ',');
    return comma && strchr(comma, '=');
}

// Append " --env X.so:key=value,..." with the options that were given. All other options have their
// defaults.
static void put_environment(struct rlhf__buf *out, const struct rlhf__plugin_config *p) {
    struct rlhf__buf spec = RLHF__BUF_INIT;
    const char *key, *between = ":";
    json_t *v;
    rlhf__buf_puts(&spec, p->plugin);
    json_object_foreach(p->options, key, v) {
        if (json_is_null(v) || !json_object_get(p->origin, key)) continue;
        rlhf__buf_printf(&spec, "%s%s=", between, key);
        if (json_is_string(v) && is_two_pairs(json_string_value(v))) spec.bad = 1;
        if (json_is_string(v))
            rlhf__buf_puts(&spec, json_string_value(v));
        else
            rlhf__json_write(&spec, v, 0);
        between = ",";
    }
    if (spec.bad)
        out->bad = 1;
    else
        rlhf__command_flag(out, "--env", rlhf__buf_text(&spec));
    rlhf__buf_finish(&spec);
}

// ---- texts ----

// Returns 1 if a prompt is one line of plain text that is short enough for a command, and leaves
// room for a response.
static int is_short(const struct rlhf__next_steps *s, const struct rlhf__sample *one) {
    const rlhf_str text = one->prompt;
    if (one->is_marked || text.len == 0 || text.len > PROMPT_BYTES) return 0;
    for (size_t i = 0; i < (size_t)text.len; i++)
        if ((unsigned char)text.ptr[i] < ' ' || (unsigned char)text.ptr[i] > '~') return 0;
    return one->prompt_tokens < s->n_ctx;
}

static const struct rlhf__sample *short_sample(const struct rlhf__next_steps *s) {
    for (size_t i = 0; i < s->samples->n; i++)
        if (is_short(s, &s->samples->rows[i])) return &s->samples->rows[i];
    return NULL;
}

// Append the prompt, and the flags with which the prompt gets the same tokens as in the run.
static void put_prompt(const struct rlhf__next_steps *s, const struct rlhf__sample *one,
                       struct rlhf__buf *out) {
    char prompt[PROMPT_BYTES + 1] = "";
    memcpy(prompt, one->prompt.ptr, (size_t)one->prompt.len);
    rlhf__command_flag(out, "--prompt", prompt);
    if (one->is_chat) return;
    if (s->templated) rlhf__buf_puts(out, " --raw");
}

static void say_generate(const struct rlhf__next_steps *s) {
    const struct rlhf__sample *one = short_sample(s);
    const int64_t room = s->n_ctx - (one ? one->prompt_tokens : 1);
    const int64_t wish = s->max_new > 0 ? s->max_new : MAX_NEW;
    const int64_t max_new = wish < room ? wish : room;
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__command_begin(&line, "generate");
    rlhf__command_flag(&line, "--model", s->dir);
    if (s->environment) {
        put_environment(&line, s->environment);
    } else {
        if (one) put_prompt(s, one, &line);
        if (one && s->ignore_eos) rlhf__buf_puts(&line, " --ignore-eos");
        if (max_new != MAX_NEW) rlhf__command_number(&line, "--max-new", max_new);
    }
    say(s, "try it:", &line);
}

// ---- the others ----

static void say_eval(const struct rlhf__next_steps *s) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__command_begin(&line, "eval");
    rlhf__command_flag(&line, "--model", s->dir);
    rlhf__command_flag(&line, "--data", s->data);
    say(s, "measure it:", &line);
}

void rlhf__next_steps_put_report(struct rlhf__buf *out, const char *dir) {
    rlhf__command_begin(out, "report");
    rlhf__command_path(out, dir);
}

void rlhf__next_steps_say(const struct rlhf__next_steps *s) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    rlhf__next_steps_put_report(&line, s->dir);
    say(s, "look closer:", &line);
    if (s->data)
        say_eval(s);
    else
        say_generate(s);
}
