// play_show.c: see play_show.h.
#include "prompt/play_show.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/printable.h"
#include "episode/episode_metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const roles[] = {"", "system", "user", "assistant", "tool"};

static void flush(struct rlhf__buf *b) {
    fwrite(rlhf__buf_text(b), 1, b->len, stdout);
    fflush(stdout);
    rlhf__buf_finish(b);
}

// Append a text unchanged. On a terminal, control characters are escaped.
static void put_text(struct rlhf__buf *b, const char *text, size_t len) {
    if (isatty(STDOUT_FILENO))
        rlhf__put_printable(b, text, len, "\n\t");
    else
        rlhf__buf_put(b, text, len);
}

static void put_pay(struct rlhf__buf *b, double pay) {
    char number[40];
    rlhf__buf_puts(b, rlhf__format_float((float)pay, number));
}

static double paid_in_all(const struct rlhf__episode *e) {
    double sum = 0;
    for (int32_t k = 0; k < e->turns; k++)
        sum += (double)e->paid[k];
    return sum;
}

// ---- tools and prompt ----

void rlhf__play_show_tools(const struct rlhf__play_show *s, const char *tools) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    if (!tools) return;
    if (s->json)
        rlhf__buf_printf(&b, "{\"tools\": %s}\n", tools);
    else
        rlhf__buf_printf(
            &b, "tools: %s\n(for a turn that calls one: /call NAME {\"argument\": 1})\n", tools);
    flush(&b);
}

void rlhf__play_show_prompt(const struct rlhf__play_show *s, rlhf_str prompt) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    if (s->json || !prompt.len) return;
    rlhf__buf_puts(&b, "prompt: ");
    put_text(&b, prompt.ptr, (size_t)prompt.len);
    rlhf__buf_putc(&b, '\n');
    flush(&b);
}

// ---- what was said ----

static void put_ids(struct rlhf__buf *b, const struct rlhf__episode *e) {
    rlhf__buf_puts(b, ", \"ids\": [");
    for (size_t i = 0; i < e->read.n; i++)
        rlhf__buf_printf(b, "%s%d", i ? ", " : "", e->read.data[i]);
    rlhf__buf_putc(b, ']');
}

static void put_metrics(struct rlhf__buf *b, const struct rlhf__episode *e) {
    const char *between = ", \"metrics\": {";
    for (uint32_t k = 0; k < e->n_metrics; k++) {
        rlhf__buf_puts(b, between);
        rlhf__json_write_string(b, e->metric[k].name, strlen(e->metric[k].name));
        rlhf__buf_puts(b, ": ");
        put_pay(b, e->metric[k].value);
        between = ", ";
    }
    if (e->n_metrics) rlhf__buf_putc(b, '}');
}

static void put_said_json(const struct rlhf__play_show *s, const struct rlhf__episode *e,
                          struct rlhf__buf *b) {
    rlhf__buf_printf(b, "{\"turn\": %d", e->turns);
    if (e->turns) {
        rlhf__buf_puts(b, ", \"text\": ");
        rlhf__json_write_string(b, rlhf__buf_text(&e->text), e->text.len);
    }
    rlhf__buf_puts(b, ", \"say\": [");
    for (uint32_t k = 0; k < e->n_said; k++) {
        rlhf__buf_printf(b, "%s{\"role\": \"%s\", \"content\": ", k ? ", " : "",
                         roles[e->said[k].role]);
        rlhf__json_write_string(b, rlhf__buf_text(&e->said[k].text), e->said[k].text.len);
        rlhf__buf_putc(b, '}');
    }
    rlhf__buf_putc(b, ']');
    if (e->turns) {
        rlhf__buf_puts(b, ", \"reward\": ");
        put_pay(b, (double)e->paid[e->turns - 1]);
        rlhf__buf_printf(b, ", \"end\": \"%s\"", rlhf__episode_end_name(e->end));
    }
    put_metrics(b, e);
    if (s->tok && e->end == RLHF_EPISODE_OPEN) put_ids(b, e);
    rlhf__buf_puts(b, "}\n");
}

// Append what a policy reads, special tokens included.
static void put_reads(const struct rlhf__play_show *s, const struct rlhf__episode *e,
                      struct rlhf__buf *b) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const size_t bytes = rlhf__tokenizer_decode(s->tok, e->read.data, e->read.n, 0, NULL, 0);
    char *at = rlhf__buf_grow(&text, bytes);
    if (at) rlhf__tokenizer_decode(s->tok, e->read.data, e->read.n, 0, at, bytes);
    rlhf__buf_printf(b, "[the policy reads %zu token%s: ", e->read.n, e->read.n == 1 ? "" : "s");
    rlhf__json_write_string(b, rlhf__buf_text(&text), text.len);
    rlhf__buf_puts(b, "]\n");
    rlhf__buf_finish(&text);
}

void rlhf__play_show_said(const struct rlhf__play_show *s, const struct rlhf__episode *e) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    if (s->json) {
        put_said_json(s, e, &b);
        flush(&b);
        return;
    }
    for (uint32_t k = 0; k < e->n_said; k++) {
        rlhf__buf_printf(&b, "%s: ", roles[e->said[k].role]);
        put_text(&b, rlhf__buf_text(&e->said[k].text), e->said[k].text.len);
        if (!e->said[k].text.len || e->said[k].text.data[e->said[k].text.len - 1] != '\n')
            rlhf__buf_putc(&b, '\n');
    }
    if (e->turns && e->paid[e->turns - 1] != 0) {
        rlhf__buf_printf(&b, "[turn %d pays ", e->turns);
        put_pay(&b, (double)e->paid[e->turns - 1]);
        rlhf__buf_puts(&b, "]\n");
    }
    if (s->tok && e->end == RLHF_EPISODE_OPEN) put_reads(s, e, &b);
    flush(&b);
}

// ---- the end ----

void rlhf__play_show_end(const struct rlhf__play_show *s, const struct rlhf__episode *e, int left) {
    static const char *const verdicts[] = {"none", "right", "wrong"};
    static const char *const words[] = {"open",
                                        "ended: done",
                                        "ended: truncated by the environment",
                                        "ended: turn_length",
                                        "ended: the last turn was taken",
                                        "ended: length"};
    struct rlhf__buf b = RLHF__BUF_INIT;
    if (s->json) {
        rlhf__buf_printf(&b, "{\"end\": \"%s\", \"turns\": %d, \"reward\": ",
                         rlhf__episode_end_name(e->end), e->turns);
        put_pay(&b, paid_in_all(e));
        rlhf__buf_printf(&b, ", \"verdict\": \"%s\"}\n", verdicts[e->verdict]);
    } else {
        rlhf__buf_printf(&b, "[%s after %d turn%s; pays ", left ? "the input ended" : words[e->end],
                         e->turns, e->turns == 1 ? "" : "s");
        put_pay(&b, paid_in_all(e));
        if (e->verdict) rlhf__buf_printf(&b, "; verdict: %s", verdicts[e->verdict]);
        for (uint32_t k = 0; k < e->n_metrics; k++) {
            rlhf__buf_printf(&b, "; %s ", e->metric[k].name);
            put_pay(&b, e->metric[k].value);
        }
        rlhf__buf_puts(&b, "]\n");
    }
    flush(&b);
}
