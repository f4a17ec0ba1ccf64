// said_json.c: see said_json.h.
#include "episode/said_json.h"

#include "base/json.h"
#include "episode/episode_metrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void put_pay(struct rlhf__buf *b, double pay) {
    if (isfinite(pay))
        rlhf__buf_printf(b, "\"paid\": %.4g, ", pay);
    else
        rlhf__buf_puts(b, "\"paid\": null, ");
}

static void put_text(struct rlhf__buf *b, const struct rlhf__tokenizer *tok, const int32_t *ids,
                     size_t n) {
    size_t len = 0;
    char *text = rlhf__tokenizer_text(tok, ids, n, RLHF__DECODE_SKIP_SPECIAL, &len);
    rlhf__buf_puts(b, "\"text\": ");
    rlhf__json_write_string(b, text ? text : "", len);
    if (!text) b->bad = 1;
    free(text);
}

void rlhf__said_json(struct rlhf__buf *b, const struct rlhf__tokenizer *tok,
                     const struct rlhf__rows *e, uint32_t i) {
    const char *between = "";
    const int32_t end = e->offset[i + 1];
    rlhf__buf_printf(b, "\"end\": \"%s\", \"turns\": [", rlhf__episode_end_name(e->end[i]));
    for (int32_t t = e->offset[i] + e->prompt_len[i], from; t < end;) {
        for (from = t++; t < end && e->turn[t] == e->turn[from];)
            t++;
        const int own = e->turn[from] >= 0;
        rlhf__buf_printf(b, "%s{\"by\": \"%s\", \"tokens\": %d, ", between,
                         own ? "policy" : "environment", t - from);
        if (own) put_pay(b, (double)e->paid[t - 1]);
        put_text(b, tok, e->ids + from, (size_t)(t - from));
        rlhf__buf_putc(b, '}');
        between = ", ";
    }
    rlhf__buf_putc(b, ']');
}
