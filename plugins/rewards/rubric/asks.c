// asks.c: see asks.h.
#include "rubric/asks.h"

#include "process/utf8.h"
#include "rubric/score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static rlhf_status no_memory(const struct rlhf__asks *a) {
    return (a->host->fail)(a->host, RLHF_E_NOMEM, "out of memory for questions");
}

// Returns the slot of the ask with this question, or the empty slot for it. `seen` is a hash table
// with `room` slots. A slot contains the index of an ask plus 1; an empty slot contains 0.
static uint32_t *slot_of(const struct rlhf__asks *a, uint32_t *seen, uint64_t room,
                         struct rlhf__question q) {
    uint64_t at = q.word[0] & (room - 1);
    while (seen[at] && memcmp(&a->ask[seen[at] - 1].question, &q, sizeof q) != 0)
        at = (at + 1) & (room - 1);
    return &seen[at];
}

static rlhf_status list(struct rlhf__asks *a, const struct rlhf__record *record, uint32_t *seen,
                        uint64_t room) {
    struct rlhf__bytes text = {.host = a->host};
    const uint32_t most = a->in->n * a->criteria->n;
    for (uint32_t at = 0; at < most && !text.full; at++) {
        const uint32_t k = at / a->in->n, i = at % a->in->n;
        text.len = 0;
        rlhf__criteria_ask(a->criteria, k, a->in, i, &text);
        const struct rlhf__question q =
            rlhf__question_of(a->criteria->of[k].name, text.data ? text.data : "", text.len);
        const struct rlhf__recorded_answer *known = rlhf__record_find(record, q);
        a->of[at] = most;
        if (known) a->known[at] = known->score;
        if (known) continue;
        uint32_t *slot = slot_of(a, seen, room, q);
        if (!*slot) {
            a->ask[a->n] = (struct rlhf__ask){
                .question = q, .criterion = k, .row = i, .open = 1, .score = (double)NAN};
            *slot = ++a->n;
        }
        a->of[at] = *slot - 1;
    }
    const int full = text.full;
    rlhf__bytes_finish(&text);
    return full ? no_memory(a) : RLHF_OK;
}

rlhf_status rlhf__asks_init(struct rlhf__asks *a, const struct rlhf__record *record) {
    const size_t most = (size_t)a->in->n * a->criteria->n;
    uint64_t room = 64;
    while (room < 2 * most)
        room *= 2;
    uint32_t *seen = a->host->alloc(a->host, room * sizeof *seen);
    a->ask = a->host->alloc(a->host, most * sizeof *a->ask);
    a->of = a->host->alloc(a->host, most * sizeof *a->of);
    a->known = a->host->alloc(a->host, most * sizeof *a->known);
    const int good = seen && a->ask && a->of && a->known;
    const rlhf_status st = good ? list(a, record, seen, room) : no_memory(a);
    if (seen) a->host->free(a->host, seen);
    return st;
}

void rlhf__asks_finish(struct rlhf__asks *a) {
    void *const all[] = {a->ask, a->of, a->known};
    for (size_t i = 0; i < 3; i++)
        if (all[i]) a->host->free(a->host, all[i]);
}

void rlhf__ask_score(struct rlhf__ask *ask, double score) {
    ask->score = score;
    ask->open = 0;
}

void rlhf__ask_answer(struct rlhf__asks *a, struct rlhf__ask *ask, const char *text, size_t n) {
    const double scale = a->criteria->scale;
    char shown[80];
    double score;
    const char *fault = rlhf__score_read(text, n, scale, &score);
    if (!fault) {
        rlhf__ask_score(ask, score / scale);
        return;
    }
    text = rlhf__score_line(text, &n);
    snprintf(ask->why, sizeof ask->why,
             "it says \"%s\", %s; expected one number from 0 to %g in the last line",
             rlhf__utf8_shown(text, n, shown, sizeof shown), fault, scale);
    ask->open = 0;
}

void rlhf__ask_lose(struct rlhf__ask *ask, const char *why) {
    snprintf(ask->why, sizeof ask->why, "%s", why);
    ask->open = 0;
}

double rlhf__asks_score(const struct rlhf__asks *a, uint32_t i, uint32_t k) {
    const uint32_t at = k * a->in->n + i;
    return a->of[at] == a->in->n * a->criteria->n ? a->known[at] : a->ask[a->of[at]].score;
}
