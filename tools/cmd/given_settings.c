// given_settings.c: see given_settings.h.
#include "cmd/given_settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void rlhf__give(struct rlhf__given_settings *g, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    if (g->n < RLHF__GIVEN_MAX && vasprintf(&g->own[g->n], format, ap) < 0) g->own[g->n] = NULL;
    g->n++; // rlhf__given_join reports a failed allocation
    va_end(ap);
}

rlhf_status rlhf__given_join(struct rlhf__given_settings *g, const struct rlhf__flag_list *set,
                             struct rlhf__error *err) {
    const size_t more = set ? set->n : 0;
    g->all.item = calloc(g->n + more + 1, sizeof *g->all.item);
    if (!g->all.item || g->n > RLHF__GIVEN_MAX) return RLHF__NOMEM(err, "out of memory for flags");
    for (size_t i = 0; i < g->n; i++) {
        if (!g->own[i]) return RLHF__NOMEM(err, "out of memory for flags");
        g->all.item[g->all.n++] = g->own[i];
    }
    for (size_t i = 0; i < more; i++)
        g->all.item[g->all.n++] = set->item[i];
    return RLHF_OK;
}

void rlhf__given_finish(struct rlhf__given_settings *g) {
    for (size_t i = 0; i < g->n && i < RLHF__GIVEN_MAX; i++)
        free(g->own[i]);
    free(g->all.item);
    *g = (struct rlhf__given_settings){0};
}

rlhf_status rlhf__give_decoding(struct rlhf__given_settings *g,
                                const struct rlhf__decoding_flags *d, const char *command,
                                struct rlhf__error *err) {
    const struct rlhf__flag_idle drawing = {"--temperature", d->temperature > 0};
    if (d->greedy) RLHF_TRY(rlhf__flags_idle(&drawing, 1, command, "with --greedy", err));
    if (d->max_new > 0) rlhf__give(g, "sampling.max_new_tokens=%lld", (long long)d->max_new);
    if (d->temperature > 0) rlhf__give(g, "sampling.temperature=%.17g", d->temperature);
    if (d->greedy) rlhf__give(g, "sampling.top_k=1");
    return RLHF_OK;
}
