// episode.c: see episode.h.
#include "episode/episode.h"

#include "data/lines.h"
#include "values/message.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__episode_init(struct rlhf__episode *e, int32_t turns, uint64_t state_size,
                               struct rlhf__error *err) {
    memset(e, 0, sizeof *e);
    e->paid = calloc((size_t)turns, sizeof *e->paid);
    if (state_size) e->state = calloc(1, (size_t)state_size);
    if (e->paid && (e->state || !state_size)) return RLHF_OK;
    rlhf__episode_finish(e);
    return RLHF__NOMEM(err, "out of memory for an episode of %d turns", turns);
}

void rlhf__episode_finish(struct rlhf__episode *e) {
    free(e->state);
    free(e->paid);
    rlhf__buf_finish(&e->text);
    rlhf__tool_calls_finish(&e->calls);
    for (uint32_t k = 0; k < RLHF__EPISODE_MESSAGES; k++)
        rlhf__buf_finish(&e->said[k].text);
    for (size_t k = 0; k < e->n_past; k++) {
        rlhf__buf_finish(&e->past[k].text);
        rlhf__tool_calls_finish(&e->past[k].calls);
    }
    free(e->past);
    for (size_t k = 0; k < e->n_talk; k++) {
        rlhf__buf_finish(&e->talk[k].text);
        json_decref(e->talk[k].calls);
    }
    free(e->talk);
    rlhf__buf_finish(&e->whole);
    rlhf__ids_finish(&e->read);
    rlhf__ids_finish(&e->prompt);
    memset(e, 0, sizeof *e);
}

json_t *rlhf__episode_vars(const struct rlhf__episode *e) {
    static const char name[] = "chat_template_kwargs"; // rare, so most rows need not be parsed
    const int likely =
        e->meta.len && memmem(e->meta.ptr, (size_t)e->meta.len, name, sizeof name - 1);
    json_t *row = NULL;
    if (likely) rlhf__row_line_json(e->meta, "a data row", 1, &row, NULL); // it was valid before
    json_t *vars = json_incref((json_t *)(uintptr_t)rlhf__messages_vars(row));
    json_decref(row);
    return vars;
}

uint64_t rlhf__episode_seed(uint64_t run_seed, const char *stream, uint64_t first) {
    uint32_t word[4];
    const rlhf_rng dice = {run_seed, rlhf_rng_stream(stream), first};
    rlhf_rng_block(&dice, word);
    return (uint64_t)word[0] << 32 | word[1];
}

rlhf_status rlhf__episode_say(struct rlhf__episode *e, int32_t role, rlhf_str text) {
    if (e->n_said == RLHF__EPISODE_MESSAGES) return RLHF_E_INVALID;
    struct rlhf__said *s = &e->said[e->n_said];
    s->role = role;
    s->text.len = 0;
    rlhf__buf_put(&s->text, text.ptr, (size_t)text.len);
    if (s->text.bad) return RLHF_E_NOMEM;
    e->n_said++;
    return RLHF_OK;
}

void rlhf__episode_metric(struct rlhf__episode *e, const char *name, double value, double weight,
                          int32_t combine) {
    uint32_t k = 0;
    while (k < e->n_metrics && strcmp(e->metric[k].name, name) != 0)
        k++;
    if (k == RLHF__EPISODE_METRICS || strlen(name) >= sizeof e->metric[k].name) return;
    if (k == e->n_metrics) memcpy(e->metric[e->n_metrics++].name, name, strlen(name) + 1);
    e->metric[k].value = value;
    e->metric[k].weight = weight;
    e->metric[k].combine = combine;
}
