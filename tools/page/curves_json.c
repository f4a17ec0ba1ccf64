// curves_json.c: see curves_json.h.
#include "page/curves_json.h"

#include "base/json.h"
#include "page/json_out.h"

#include <stdlib.h>
#include <string.h>

// The lists of phases that curves share.
struct phase_lists {
    const struct rlhf__curve **of; // [n] for each list, a curve that has it
    size_t n;
};

static int same_phases(const struct rlhf__curve *a, const struct rlhf__curve *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!a->point[i].n != !b->point[i].n ||
            (a->point[i].n && a->point[i].last != b->point[i].last))
            return 0;
    return 1;
}

static size_t list_of(struct phase_lists *lists, const struct rlhf__curve *c, int64_t n) {
    for (size_t i = 0; i < lists->n; i++)
        if (same_phases(lists->of[i], c, n)) return i;
    lists->of[lists->n] = c;
    return lists->n++;
}

enum column { PHASES, MEANS, LEAST, LARGEST };

static void put_column(struct rlhf__buf *out, const struct rlhf__curve *c, int64_t n,
                       enum column which) {
    const char *comma = "[";
    for (int64_t i = 0; i < n; i++) {
        const struct rlhf__curve_point *p = &c->point[i];
        if (!p->n) continue;
        rlhf__buf_puts(out, comma);
        rlhf__json_put_number(out,
                              which == PHASES  ? (double)p->last
                              : which == MEANS ? p->sum / (double)p->n
                              : which == LEAST ? p->lo
                                               : p->hi,
                              which == PHASES ? 16 : 5);
        comma = ",";
    }
    rlhf__buf_puts(out, *comma == '[' ? "[]" : "]");
}

rlhf_status rlhf__curves_json(const struct rlhf__curves *c, struct rlhf__buf *out,
                              struct rlhf__error *err) {
    struct phase_lists lists = {.of = calloc(c->n + 1, sizeof *lists.of)};
    const int64_t n = c->range.n_points;
    if (!lists.of) return RLHF__NOMEM(err, "out of memory");
    rlhf__buf_puts(out, "{\"of\": {");
    for (size_t i = 0; i < c->n; i++) {
        const struct rlhf__curve *one = &c->all[i];
        rlhf__buf_puts(out, i ? ",\n" : "");
        rlhf__json_write_string(out, one->name, strlen(one->name));
        rlhf__buf_printf(out, ":{\"x\":%zu,\"v\":", list_of(&lists, one, n));
        put_column(out, one, n, MEANS);
        if (!c->range.exact) {
            rlhf__buf_puts(out, ",\"lo\":");
            put_column(out, one, n, LEAST);
            rlhf__buf_puts(out, ",\"hi\":");
            put_column(out, one, n, LARGEST);
        }
        rlhf__buf_putc(out, '}');
    }
    rlhf__buf_puts(out, "}, \"x\": [");
    for (size_t i = 0; i < lists.n; i++) {
        rlhf__buf_puts(out, i ? "," : "");
        put_column(out, lists.of[i], n, PHASES);
    }
    rlhf__buf_puts(out, "]}");
    free(lists.of);
    return RLHF_OK;
}
