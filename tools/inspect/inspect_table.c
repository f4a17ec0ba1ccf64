// inspect_table.c: see inspect_table.h.
#include "inspect/inspect_table.h"

#include "base/printable.h"
#include "cmd/program.h"
#include "inspect/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PARTS = 14, HEADS = 8, MOVED = 6 }; // lines of each list

// A part's effect is shown as a share of the models' difference only if the difference is at least
// LEAST_GAP, and at least LEAST_PART of the largest effect. Otherwise the shares would be huge and
// meaningless.
#define LEAST_GAP  0.01
#define LEAST_PART 0.1

// One line of a list: a name, the number in each model, and the effect of patching.
struct line {
    char name[64];
    double value[2], effect; // effect NAN: none
};

// Sorts lines by the size of their change, the largest first. With one model, sorts by absolute
// value.
static int by_move(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    const double p = fabs(x->value[1] - x->value[0]), q = fabs(y->value[1] - y->value[0]);
    return p < q ? 1 : p > q ? -1 : strcmp(x->name, y->name);
}

// Put a text into a cell, cut and padded by columns.
static void put_cell(struct rlhf__buf *out, const char *text, int columns) {
    const int used = rlhf__put_clipped(out, (rlhf_str){text, (uint32_t)strlen(text)}, columns);
    rlhf__buf_printf(out, "%*s", columns - used, "");
}

// ---- the beginning ----

static void put_side(const struct rlhf__words *w, int side, struct rlhf__buf *out) {
    for (uint32_t i = 0; i < w->n[side]; i++) {
        if (i) rlhf__buf_puts(out, " or ");
        const char *text = w->side[side][i].text;
        rlhf__buf_puts(out, "“");
        rlhf__put_printable(out, text, strlen(text), "");
        rlhf__buf_puts(out, "”");
    }
}

static void put_wrapped(struct rlhf__buf *out, const char *text, size_t n) {
    rlhf__put_wrapped(out, (rlhf_str){text, n}, rlhf__terminal_width(STDOUT_FILENO, 0), 0, 2);
    rlhf__buf_putc(out, '\n');
}

static void put_what(const struct rlhf__subject *s, struct rlhf__buf *out) {
    if (s->explained == RLHF__EXPLAINED_WORDS) {
        put_side(&s->words, 0, out);
        rlhf__buf_puts(out, " over ");
        put_side(&s->words, 1, out);
        rlhf__buf_puts(out, ", difference of logits");
    } else {
        rlhf__buf_puts(out,
                       s->explained == RLHF__EXPLAINED_VALUE ? "value" : "reward at this token");
    }
    rlhf__buf_puts(out, " after “");
    rlhf__put_printable(out, s->prompt, strlen(s->prompt), "");
    rlhf__buf_puts(out, "”");
}

// One line for each note.
static void put_notes(const char *note, struct rlhf__buf *out) {
    for (const char *end; (end = strchr(note, '\n')) != NULL; note = end + 1)
        put_wrapped(out, note, (size_t)(end - note));
}

static void put_title(const struct rlhf__subject *s, struct rlhf__buf *out) {
    const size_t last = s->ids.n - 1;
    struct rlhf__buf what = RLHF__BUF_INIT;
    put_what(s, &what);
    put_wrapped(out, rlhf__buf_text(&what), what.len);
    if (what.bad) out->bad = 1;
    rlhf__buf_finish(&what);
    for (uint32_t k = 0; k < s->n_models; k++) {
        rlhf__buf_puts(out, "  ");
        put_cell(out, s->of[k].name, 28);
        rlhf__buf_printf(out, " %+9.4f\n", s->measured[k][last]);
    }
    if (s->next.n && s->n_models == 2)
        rlhf__buf_printf(out, "  %-28s %9.4f nats\n", "KL of the next token", s->next.kl[last]);
    rlhf__buf_printf(out, "contributions add up to it: largest error %.1e over %zu tokens",
                     s->error, s->ids.n);
    if (s->ids.n <= RLHF__ATTENTION_TOKENS)
        rlhf__buf_printf(out, "\nheads over their sources: largest error %.1e\n", s->source_error);
    else
        rlhf__buf_printf(out, "\nattention is kept for prompts of at most %d tokens\n",
                         RLHF__ATTENTION_TOKENS);
    put_notes(rlhf__buf_text(&s->words.note), out);
}

// ---- lists ----

static void put_head(const struct rlhf__subject *s, const char *what, struct rlhf__buf *out) {
    rlhf__buf_printf(out, "\n%-28s", what);
    if (s->n_models == 1)
        rlhf__buf_puts(out, "    adds\n");
    else
        rlhf__buf_printf(out, "%9s%9s%9s%s\n", "base", "tuned", "change",
                         s->patched ? "  patched  restores" : "");
}

// Returns the difference of the explained number between the models. Effects of patching are shown
// as shares of this difference. Returns 0 if such shares would be meaningless.
static double gap(const struct rlhf__subject *s) {
    const size_t n = s->ids.n, last = n - 1;
    if (s->n_models < 2 || !s->patched) return 0;
    const double all = s->measured[1][last] - s->measured[0][last];
    double most = fabs(s->patching.out[last]);
    for (uint32_t i = 0; i < s->attribution[0].n_parts; i++)
        if (rlhf__part_is_patched(&s->attribution[0].part[i]))
            most = fmax(most, fabs(s->patching.part[i * n + last]));
    return fabs(all) >= LEAST_GAP && fabs(all) >= LEAST_PART * most ? all : 0;
}

static void put_share(const struct rlhf__subject *s, double effect, struct rlhf__buf *out) {
    const double all = gap(s);
    if (all < 0 || all > 0) rlhf__buf_printf(out, "%8.0f %%", 100 * effect / all);
}

static void put_line(const struct rlhf__subject *s, const struct line *l, struct rlhf__buf *out) {
    rlhf__buf_printf(out, "%-28s", l->name);
    if (s->n_models == 1) {
        rlhf__buf_printf(out, "%+8.3f\n", l->value[1]);
        return;
    }
    rlhf__buf_printf(out, "%+9.3f%+9.3f%+9.3f", l->value[0], l->value[1],
                     l->value[1] - l->value[0]);
    if (s->patched && !isnan(l->effect)) {
        rlhf__buf_printf(out, "%+9.3f", l->effect);
        put_share(s, l->effect, out);
    }
    rlhf__buf_putc(out, '\n');
}

static struct line part_line(const struct rlhf__subject *s, uint32_t i) {
    const struct rlhf__attribution *a = &s->attribution[0];
    const size_t at = (size_t)i * a->n + a->n - 1;
    struct line l = {.effect = NAN};
    char name[40];
    rlhf__part_name(&a->part[i], name);
    snprintf(l.name, sizeof l.name, "%s%.32s", a->part[i].layer < 0 ? "" : "layer ", name);
    char *dot = strchr(l.name, '.');
    if (dot) *dot = ' ';
    l.value[1] = s->attribution[s->n_models - 1].contribution[at];
    l.value[0] = s->n_models == 2 ? a->contribution[at] : 0;
    if (s->patched && rlhf__part_is_patched(&a->part[i])) l.effect = s->patching.part[at];
    return l;
}

// Print the `most` lines with the largest changes, then one line for all others.
static void put_lines(const struct rlhf__subject *s, struct line *l, size_t n, size_t most,
                      struct rlhf__buf *out) {
    struct line rest = {.effect = NAN};
    qsort(l, n, sizeof *l, by_move);
    for (size_t i = 0; i < n; i++) {
        if (i < most) {
            put_line(s, &l[i], out);
            continue;
        }
        rest.value[0] += l[i].value[0];
        rest.value[1] += l[i].value[1];
    }
    if (n <= most) return;
    snprintf(rest.name, sizeof rest.name, "%zu others", n - most);
    put_line(s, &rest, out);
}

static void put_parts(const struct rlhf__subject *s, struct rlhf__buf *out) {
    const uint32_t n = s->attribution[0].n_parts;
    const size_t last = s->ids.n - 1;
    struct line *l = malloc((n + 1) * sizeof *l);
    if (!l) {
        out->bad = 1;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        l[i] = part_line(s, i);
    put_head(s, "part", out);
    put_lines(s, l, n, PARTS, out);
    struct line sum = {.name = "sum", .effect = NAN};
    sum.value[0] = s->n_models == 2 ? s->attribution[0].sum[last] : 0;
    sum.value[1] = s->attribution[s->n_models - 1].sum[last];
    put_line(s, &sum, out);
    if (s->patched) {
        rlhf__buf_printf(out, "%-28s%27s%+9.3f", "final norm and head", "", s->patching.out[last]);
        put_share(s, s->patching.out[last], out);
        rlhf__buf_puts(out, "\npatched: the base with that part's output of the tuned model\n");
        if (!(gap(s) < 0 || gap(s) > 0))
            rlhf__buf_puts(out, "restores: not shown, because the models differ too little here\n");
    }
    free(l);
}

static struct line head_line(const struct rlhf__subject *s, size_t layer, size_t h) {
    const struct rlhf__attribution *a = &s->attribution[0];
    const size_t at = (layer * a->n + a->n - 1) * (size_t)a->heads + h;
    struct line l = {.effect = s->patched ? s->patching.head[at] : NAN};
    snprintf(l.name, sizeof l.name, "layer %zu head %zu", layer, h);
    l.value[1] = s->attribution[s->n_models - 1].head[at];
    l.value[0] = s->n_models == 2 ? a->head[at] : 0;
    return l;
}

// Append the heads that changed most at the last token or, with one model, those that contribute
// most there.
static void put_heads(const struct rlhf__subject *s, struct rlhf__buf *out) {
    const struct rlhf__attribution *a = &s->attribution[0];
    const size_t heads = (size_t)a->heads, n = (size_t)a->layers * heads;
    struct line *l = malloc((n + 1) * sizeof *l);
    if (!l) {
        out->bad = 1;
        return;
    }
    for (size_t i = 0; i < n; i++)
        l[i] = head_line(s, i / heads, i % heads);
    qsort(l, n, sizeof *l, by_move);
    put_head(s, "head", out);
    for (size_t i = 0; i < n && i < HEADS; i++)
        put_line(s, &l[i], out);
    free(l);
}

// For each layer: the sum of the contributions up to that layer, and the value that the explained
// number would have if that layer were the last.
static void put_layers(const struct rlhf__subject *s, struct rlhf__buf *out) {
    const size_t n = s->ids.n;
    rlhf__buf_printf(out, "\n%-24s", "after");
    for (uint32_t k = 0; k < s->n_models; k++)
        rlhf__buf_printf(out, "%13s%13s", k + 1 < s->n_models ? "base, so far" : "so far",
                         "logit lens");
    rlhf__buf_putc(out, '\n');
    for (int32_t l = 0; l <= s->attribution[0].layers; l++) {
        char name[40] = "embedding";
        if (l) snprintf(name, sizeof name, "layer %d", l - 1);
        rlhf__buf_printf(out, "%-24s", name);
        for (uint32_t k = 0; k < s->n_models; k++) {
            const size_t at = (size_t)l * n + n - 1;
            rlhf__buf_printf(out, "%+13.3f%+13.3f", s->attribution[k].accumulated[at],
                             s->attribution[k].lens[at]);
        }
        rlhf__buf_putc(out, '\n');
    }
}

static void put_token(const struct rlhf__subject *s, const struct rlhf__moved_token *m,
                      struct rlhf__buf *out) {
    struct rlhf__buf word = RLHF__BUF_INIT;
    if (m->id < 0) {
        rlhf__buf_printf(out, "%-38s", "");
        return;
    }
    rlhf__subject_put_token(&word, s, m->id);
    rlhf__buf_puts(out, "  ");
    put_cell(out, rlhf__buf_text(&word), 16);
    rlhf__buf_printf(out, " %7.4f -> %-8.4f", m->base, m->tuned);
    rlhf__buf_finish(&word);
}

static void put_moved(const struct rlhf__subject *s, struct rlhf__buf *out) {
    const struct rlhf__next_tokens *x = &s->next;
    const struct rlhf__moved_token *m = x->moved + (x->n - 1) * 2 * x->n_moved;
    rlhf__buf_printf(out, "\n%-37s  %s\n", "next tokens that rose most", "that fell most");
    for (uint32_t i = 0; i < x->n_moved && i < MOVED; i++) {
        if (m[i].id < 0 && m[x->n_moved + i].id < 0) break;
        put_token(s, &m[i], out);
        put_token(s, &m[x->n_moved + i], out);
        rlhf__buf_putc(out, '\n');
    }
}

// The number and KL after each token.
static void put_tokens(const struct rlhf__subject *s, struct rlhf__buf *out) {
    const int pair = s->n_models == 2;
    rlhf__buf_printf(out, "\n%-28s%s%s\n", "after the token",
                     pair ? "     base    tuned" : "   number",
                     s->next.n && pair ? "       KL" : "");
    for (size_t t = 0; t < s->ids.n; t++) {
        struct rlhf__buf word = RLHF__BUF_INIT;
        rlhf__subject_put_token(&word, s, s->ids.data[t]);
        put_cell(out, rlhf__buf_text(&word), 28);
        for (uint32_t k = 0; k < s->n_models; k++)
            rlhf__buf_printf(out, "%+9.3f", s->measured[k][t]);
        if (s->next.n && pair) rlhf__buf_printf(out, "%9.4f", s->next.kl[t]);
        rlhf__buf_putc(out, '\n');
        rlhf__buf_finish(&word);
    }
}

rlhf_status rlhf__subject_print(const struct rlhf__subject *s, struct rlhf__error *err) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    put_title(s, &out);
    put_parts(s, &out);
    put_heads(s, &out);
    put_layers(s, &out);
    if (s->next.n && s->n_models == 2) put_moved(s, &out);
    put_tokens(s, &out);
    const rlhf_status st = rlhf__buf_ok(&out, err);
    if (st == RLHF_OK) fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
    rlhf__buf_finish(&out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}
