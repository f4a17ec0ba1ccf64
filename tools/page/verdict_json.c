// verdict_json.c: see verdict_json.h.
#include "page/verdict_json.h"

#include "base/json.h"
#include "page/json_out.h"

#include <string.h>

static int put_tile(struct rlhf__buf *out, const struct rlhf__series_set *series,
                    const char *metric, const char *words, int first) {
    const struct rlhf__series *s = rlhf__series_of(series, metric);
    int moves = 0;
    for (int64_t i = 1; i < s->n && !moves; i++)
        moves = s->value[i] < s->value[0] || s->value[i] > s->value[0];
    if (!moves) return 0;
    const struct rlhf__first_last ends = rlhf__trend_ends(s);
    rlhf__buf_puts(out, first ? "{\"name\": " : ", {\"name\": ");
    rlhf__json_write_string(out, metric, strlen(metric));
    rlhf__json_put_text(out, "words", words);
    rlhf__buf_puts(out, ", \"first\": ");
    rlhf__json_put_number(out, ends.first, 4);
    rlhf__buf_puts(out, ", \"last\": ");
    rlhf__json_put_number(out, ends.last, 4);
    rlhf__buf_printf(out, ", \"width\": %lld}", (long long)ends.width);
    return 1;
}

// Appends up to five metrics that moved.
void rlhf__tiles_json(const struct rlhf__series_set *series, const struct rlhf__headline *h,
                      struct rlhf__buf *out) {
    static const struct {
        const char *metric, *words;
    } tiles[] = {
        {"eval/objective/verifiable_correct_rate", "Held-out right answers"},
        {"eval/reward", "Held-out reward"},
        {"eval/accuracy", "Held-out accuracy"},
        {"eval/bits_per_byte", "Held-out bits per byte"},
        {"objective/kl", "KL, nats per sequence"},
        {"objective/entropy_per_token", "Entropy, nats per token"},
        {"completions/mean_length", "Response length, tokens"},
        {"completions/distinct_3", "Distinct 3-grams"},
    };
    int n = 0;
    rlhf__buf_putc(out, '[');
    if (h->metric) n += put_tile(out, series, h->metric, h->word, 1);
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles && n < 5; i++)
        if (!h->metric || strcmp(h->metric, tiles[i].metric) != 0)
            n += put_tile(out, series, tiles[i].metric, tiles[i].words, n == 0);
    rlhf__buf_putc(out, ']');
}

static void put_notes(struct rlhf__buf *out, const struct rlhf__notes *notes) {
    rlhf__json_put_key(out, "notes");
    rlhf__buf_putc(out, '[');
    for (size_t i = 0; i < notes->n; i++) {
        const struct rlhf__run_note *note = &notes->all[i];
        rlhf__buf_puts(out, i ? ", {" : "{");
        rlhf__buf_printf(out, "\"level\": \"%s\"", rlhf__note_level_name(note->level));
        rlhf__json_put_text(out, "text", note->text);
        if (note->id) rlhf__json_put_text(out, "id", note->id);
        if (note->rule) rlhf__json_put_text(out, "rule", note->rule);
        if (note->change) rlhf__json_put_text(out, "change", note->change);
        if (note->held.phase > 0)
            rlhf__buf_printf(out, ", \"phase\": %lld", (long long)note->held.phase);
        rlhf__buf_putc(out, '}');
    }
    rlhf__buf_putc(out, ']');
}

void rlhf__verdict_json(const struct rlhf__verdict *v, struct rlhf__buf *out) {
    rlhf__buf_printf(out, "{\"kind\": \"%s\"", rlhf__verdict_kind_name(v->kind));
    rlhf__json_put_text(out, "title", v->title);
    rlhf__json_put_text(out, "text", v->text);
    rlhf__json_put_text(out, "rule", v->rule);
    if (v->headline.metric) rlhf__json_put_text(out, "metric", v->headline.metric);
    put_notes(out, &v->notes);
    rlhf__json_put_key(out, "checks");
    rlhf__buf_putc(out, '[');
    for (size_t i = 0; i < v->n_checks; i++) {
        rlhf__buf_puts(out, i ? ", {\"ok\": " : "{\"ok\": ");
        rlhf__buf_puts(out, v->check[i].ok < 0 ? "null" : v->check[i].ok ? "true" : "false");
        rlhf__json_put_text(out, "text", v->check[i].text);
        rlhf__buf_putc(out, '}');
    }
    rlhf__buf_puts(out, "]}");
}
