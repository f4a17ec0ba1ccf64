// data.c: see data.h.
#include "inspect/data.h"

#include "base/json.h"
#include "base/printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rlhf__subject_put_token(struct rlhf__buf *out, const struct rlhf__subject *s, int32_t id) {
    size_t n;
    char *piece = rlhf__tokenizer_text(s->of[0].model->tok, &id, 1, 0, &n);
    if (piece)
        rlhf__put_printable(out, piece, n, "");
    else
        out->bad = 1;
    free(piece);
}

// ---- numbers and lists ----

static void number(struct rlhf__buf *out, double v) {
    if (isfinite(v))
        rlhf__buf_printf(out, "%.7g", v);
    else
        rlhf__buf_puts(out, "null");
}

// Append n numbers from `v`. The numbers are `step` elements apart.
static void list(struct rlhf__buf *out, const double *v, size_t n, size_t step) {
    for (size_t i = 0; i < n; i++) {
        rlhf__buf_putc(out, i ? ',' : '[');
        number(out, v[i * step]);
    }
    rlhf__buf_puts(out, n ? "]" : "[]");
}

// Rows of n numbers.
static void table(struct rlhf__buf *out, const double *v, size_t rows, size_t n) {
    for (size_t i = 0; i < rows; i++) {
        rlhf__buf_putc(out, i ? ',' : '[');
        list(out, v + i * n, n, 1);
    }
    rlhf__buf_puts(out, rows ? "]" : "[]");
}

// [layers][tokens][heads]
static void heads(struct rlhf__buf *out, const double *v, const struct rlhf__attribution *a) {
    const size_t n = a->n, h = (size_t)a->heads;
    for (size_t l = 0; l < (size_t)a->layers; l++) {
        rlhf__buf_putc(out, l ? ',' : '[');
        table(out, v + l * n * h, n, h);
    }
    rlhf__buf_putc(out, ']');
}

static void text(struct rlhf__buf *out, const char *s) {
    rlhf__json_write_string(out, s, strlen(s));
}

// A token's text, which may contain a NUL.
static void token(struct rlhf__buf *out, const struct rlhf__subject *s, int32_t id) {
    size_t n;
    char *piece = rlhf__tokenizer_text(s->of[0].model->tok, &id, 1, 0, &n);
    if (piece)
        rlhf__json_write_string(out, piece, n);
    else
        out->bad = 1;
    free(piece);
}

static void key(struct rlhf__buf *out, const char *name) {
    rlhf__buf_printf(out, ",\"%s\":", name);
}

// ---- attention ----

// Append the lower triangle of an attention matrix, row by row, as base64 of one byte per weight;
// 255 means 1.
static void triangle(struct rlhf__buf *out, const double *a, size_t n, struct rlhf__buf *scratch) {
    rlhf__buf_clear(scratch);
    for (size_t t = 0; t < n; t++)
        for (size_t s = 0; s <= t; s++) {
            const double v = a[t * n + s];
            rlhf__buf_putc(scratch, (char)(uint8_t)(v > 0 && v <= 1 ? lround(v * 255) : 0));
        }
    rlhf__buf_putc(out, '"');
    rlhf__put_base64(out, rlhf__buf_text(scratch), scratch->len);
    rlhf__buf_putc(out, '"');
}

static void attention(struct rlhf__buf *out, const struct rlhf__attention *a) {
    struct rlhf__buf scratch = RLHF__BUF_INIT;
    const size_t n = a->n, square = n * n;
    key(out, "attention");
    rlhf__buf_putc(out, '[');
    for (size_t k = 0; k < a->n_heads; k++) {
        if (k) rlhf__buf_putc(out, ',');
        triangle(out, a->weight + k * square, n, &scratch);
    }
    rlhf__buf_puts(out, "]");
    key(out, "source");
    rlhf__buf_putc(out, '[');
    for (size_t k = 0; k < a->n_heads; k++) {
        if (k) rlhf__buf_putc(out, ',');
        for (size_t t = 0; t < n; t++) {
            rlhf__buf_putc(out, t ? ',' : '[');
            list(out, a->source + k * square + t * n, t + 1, 1);
        }
        rlhf__buf_putc(out, ']');
    }
    rlhf__buf_puts(out, "]");
    if (scratch.bad) out->bad = 1;
    rlhf__buf_finish(&scratch);
}

// ---- a subject ----

static void model(struct rlhf__buf *out, const struct rlhf__subject *s, uint32_t k) {
    const struct rlhf__attribution *a = &s->attribution[k];
    const size_t n = a->n, stages = (size_t)a->layers + 1;
    rlhf__buf_puts(out, "{\"difference\":");
    list(out, s->measured[k], n, 1);
    key(out, "sum");
    list(out, a->sum, n, 1);
    key(out, "rows");
    table(out, a->contribution, a->n_parts, n);
    key(out, "accumulated");
    table(out, a->accumulated, stages, n);
    key(out, "lens");
    table(out, a->lens, stages, n);
    key(out, "heads");
    heads(out, a->head, a);
    attention(out, &s->attention[k]);
    rlhf__buf_putc(out, '}');
}

static void words(struct rlhf__buf *out, const struct rlhf__subject *s) {
    static const char *const sides[] = {"good", "bad"};
    for (int side = 0; side < 2; side++) {
        key(out, sides[side]);
        for (uint32_t i = 0; i < s->words.n[side]; i++) {
            rlhf__buf_putc(out, i ? ',' : '[');
            text(out, s->words.side[side][i].text);
        }
        rlhf__buf_puts(out, s->words.n[side] ? "]" : "[]");
    }
    key(out, "notes");
    const char *at = rlhf__buf_text(&s->words.note), *end;
    rlhf__buf_putc(out, '[');
    for (int first = 1; (end = strchr(at, '\n')) != NULL; at = end + 1, first = 0) {
        if (!first) rlhf__buf_putc(out, ',');
        rlhf__json_write_string(out, at, (size_t)(end - at));
    }
    rlhf__buf_putc(out, ']');
}

static void moved(struct rlhf__buf *out, const struct rlhf__subject *s) {
    const struct rlhf__next_tokens *x = &s->next;
    const size_t each = 2 * (size_t)x->n_moved;
    key(out, "kl");
    list(out, x->kl, x->n, 1);
    key(out, "moved");
    for (size_t i = 0; i < x->n * each; i++) {
        const struct rlhf__moved_token *m = &x->moved[i];
        rlhf__buf_puts(out, i == 0 ? "[[" : i % each == 0 ? "],[" : ",");
        if (m->id < 0) {
            rlhf__buf_puts(out, "null");
            continue;
        }
        rlhf__buf_putc(out, '[');
        token(out, s, m->id);
        rlhf__buf_putc(out, ',');
        number(out, m->base);
        rlhf__buf_putc(out, ',');
        number(out, m->tuned);
        rlhf__buf_putc(out, ']');
    }
    rlhf__buf_puts(out, "]]");
}

// Append the effects of the parts. A bias has null, because the effect of its attention or MLP
// includes that of the bias.
static void patched(struct rlhf__buf *out, const struct rlhf__subject *s) {
    const struct rlhf__attribution *a = &s->attribution[0];
    key(out, "patched");
    rlhf__buf_puts(out, "{\"rows\":");
    for (size_t k = 0; k < a->n_parts; k++) {
        rlhf__buf_putc(out, k ? ',' : '[');
        if (rlhf__part_is_patched(&a->part[k]))
            list(out, s->patching.part + k * a->n, a->n, 1);
        else
            rlhf__buf_puts(out, "null");
    }
    rlhf__buf_putc(out, ']');
    key(out, "heads");
    heads(out, s->patching.head, a);
    key(out, "out");
    list(out, s->patching.out, a->n, 1);
    rlhf__buf_putc(out, '}');
}

static void tokens(struct rlhf__buf *out, const struct rlhf__subject *s) {
    key(out, "tokens");
    for (size_t t = 0; t < s->ids.n; t++) {
        rlhf__buf_putc(out, t ? ',' : '[');
        token(out, s, s->ids.data[t]);
    }
    rlhf__buf_putc(out, ']');
}

static void subject(struct rlhf__buf *out, const struct rlhf__subject *s) {
    static const char *const explained[] = {"words", "reward", "value"};
    const struct rlhf__attribution *a = &s->attribution[0];
    char name[40];
    rlhf__buf_printf(out, "{\"explained\":\"%s\",\"prompt\":", explained[s->explained]);
    text(out, s->prompt);
    tokens(out, s);
    words(out, s);
    key(out, "models");
    for (uint32_t k = 0; k < s->n_models; k++) {
        rlhf__buf_putc(out, k ? ',' : '[');
        text(out, s->of[k].name);
    }
    rlhf__buf_printf(out, "],\"shape\":[%d,%d]", a->layers, a->heads);
    key(out, "names");
    for (uint32_t k = 0; k < a->n_parts; k++) {
        rlhf__buf_putc(out, k ? ',' : '[');
        text(out, rlhf__part_name(&a->part[k], name));
    }
    rlhf__buf_puts(out, "],\"error\":");
    number(out, s->error);
    key(out, "source_error");
    number(out, s->source_error);
    if (s->next.n && s->n_models == 2) moved(out, s);
    if (s->patched) patched(out, s);
    key(out, "top");
    for (uint32_t k = 0; k < s->n_top; k++)
        rlhf__buf_printf(out, "%s[%d,%d]", k ? "," : "[", s->top[2 * k], s->top[2 * k + 1]);
    rlhf__buf_puts(out, s->n_top ? "],\"of\":" : "[],\"of\":");
    for (uint32_t k = 0; k < s->n_models; k++) {
        rlhf__buf_putc(out, k ? ',' : '[');
        model(out, s, k);
    }
    rlhf__buf_puts(out, "]}");
}

rlhf_status rlhf__subjects_json(struct rlhf__buf *out, const struct rlhf__subject *s, size_t n,
                                struct rlhf__error *err) {
    rlhf__buf_puts(out, "{\"version\":1,\"subjects\":[");
    for (size_t i = 0; i < n; i++) {
        if (i) rlhf__buf_putc(out, ',');
        subject(out, &s[i]);
    }
    rlhf__buf_puts(out, "]}\n");
    return rlhf__buf_ok(out, err);
}
