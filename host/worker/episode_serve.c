// episode_serve.c: see episode_serve.h.
#include "worker/episode_serve.h"

#include <stdlib.h>
#include <string.h>

// The arrays of a call.
struct arrays {
    rlhf_episode_out out; // first member: say() and metric() cast it back
    rlhf_episode_in in;
    void **state;
    uint64_t *numbers; // [2n] episode, seed
    int32_t *turns;    // [2n + 1] turn, call_offset
    rlhf_str *texts;   // [2n] meta, text
    uint8_t *bytes;    // [4n] end of the output, verdict, failed, end of the input
    float *reward;
    rlhf_tool_call *calls;
    size_t n_calls, cap_calls;
    struct rlhf__buf said, metrics;
    uint32_t n_said, n_metrics;
};

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, int32_t role, rlhf_str text) {
    struct arrays *a = (struct arrays *)(uintptr_t)out;
    a->n_said++;
    rlhf__wire_u32(&a->said, i); // the host checks the entry and the role
    rlhf__wire_u32(&a->said, (uint32_t)role);
    rlhf__wire_text(&a->said, text.ptr, text.len);
    return a->said.bad ? RLHF_E_NOMEM : RLHF_OK;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value) {
    struct arrays *a = (struct arrays *)(uintptr_t)out;
    if (!name) return;
    a->n_metrics++;
    rlhf__wire_u32(&a->metrics, i);
    rlhf__wire_puts(&a->metrics, name);
    rlhf__wire_f64(&a->metrics, value);
}

static void arrays_finish(struct arrays *a) {
    free(a->state);
    free(a->numbers);
    free(a->turns);
    free(a->texts);
    free(a->bytes);
    free(a->reward);
    free(a->calls);
    rlhf__buf_free(&a->said);
    rlhf__buf_free(&a->metrics);
}

static int arrays_init(struct arrays *a, size_t n) {
    a->state = calloc(n + 1, sizeof *a->state);
    a->numbers = calloc(2 * n + 1, sizeof *a->numbers);
    a->turns = calloc(2 * n + 1, sizeof *a->turns);
    a->texts = calloc(2 * n + 1, sizeof *a->texts);
    a->bytes = calloc(4 * n + 1, 1);
    a->reward = calloc(n + 1, sizeof *a->reward);
    return a->state && a->numbers && a->turns && a->texts && a->bytes && a->reward;
}

// ---- states ----

static void close_place(struct rlhf__places *p, uint32_t place) {
    if (place >= p->n || !p->state[place]) return;
    if (p->ops->close) p->ops->close(p->self, 1, &p->state[place]);
    free(p->state[place]);
    p->state[place] = NULL;
}

// Returns the state at a place, which it allocates at first use; NULL: out of memory.
static void *state_at(struct rlhf__places *p, uint32_t place) {
    if (place >= p->n) {
        const uint32_t n = place + place / 2 + 16;
        void **more = realloc(p->state, n * sizeof *more);
        if (!more) return NULL;
        memset(more + p->n, 0, (n - p->n) * sizeof *more);
        p->state = more;
        p->n = n;
    }
    if (p->state[place]) return p->state[place];
    // A small overrun stays within the block.
    const size_t bytes = ((size_t)p->ops->state_size + 63) / 64 * 64 + 64;
    p->state[place] = aligned_alloc(64, bytes);
    if (p->state[place]) memset(p->state[place], 0, bytes);
    return p->state[place];
}

void rlhf__places_finish(struct rlhf__places *p) {
    for (uint32_t i = 0; i < p->n; i++)
        close_place(p, i);
    free(p->state);
    p->state = NULL;
    p->n = 0;
}

// ---- a call ----

static int get_calls(struct arrays *a, struct rlhf__wire *in) {
    const uint32_t n = rlhf__wire_get_u32(in);
    for (uint32_t k = 0; k < n && !in->bad; k++) {
        if (a->n_calls == a->cap_calls) {
            const size_t cap = 2 * a->cap_calls + 16;
            rlhf_tool_call *more = realloc(a->calls, cap * sizeof *more);
            if (!more) return 0;
            a->calls = more;
            a->cap_calls = cap;
        }
        rlhf_tool_call *c = &a->calls[a->n_calls++];
        c->name = rlhf__wire_get_text(in);
        c->arguments = rlhf__wire_get_text(in);
    }
    return 1;
}

static int get_episodes(struct rlhf__places *p, struct arrays *a, uint32_t n,
                        struct rlhf__wire *in) {
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        const uint32_t place = rlhf__wire_get_u32(in);
        if (place >= RLHF__MOST_PLACES) return 0;
        a->state[i] = state_at(p, place);
        if (!a->state[i]) return 0;
        a->numbers[i] = rlhf__wire_get_u64(in);
        a->numbers[n + i] = rlhf__wire_get_u64(in);
        a->turns[i] = (int32_t)rlhf__wire_get_u32(in);
        a->bytes[3 * (size_t)n + i] = (uint8_t)rlhf__wire_get_u32(in);
        a->texts[i] = rlhf__wire_get_text(in);
        a->texts[n + i] = rlhf__wire_get_text(in);
        if (!get_calls(a, in)) return 0;
        a->turns[n + i + 1] = (int32_t)a->n_calls;
    }
    return !in->bad;
}

static void put_results(const struct arrays *a, struct rlhf__buf *out) {
    const uint32_t n = a->in.n;
    for (uint32_t i = 0; i < n; i++) {
        rlhf__wire_f64(out, (double)a->reward[i]);
        for (size_t k = 0; k < 3; k++)
            rlhf__wire_u32(out, a->bytes[k * n + i]);
    }
    rlhf__wire_u32(out, a->n_said);
    rlhf__buf_put(out, a->said.data, a->said.len);
    rlhf__wire_u32(out, a->n_metrics);
    rlhf__buf_put(out, a->metrics.data, a->metrics.len);
}

static rlhf_status call(const struct rlhf__places *p, uint32_t function, uint64_t phase, uint32_t n,
                        struct arrays *a) {
    rlhf_status (*const fn[])(void *, const rlhf_episode_in *, const rlhf_episode_out *) = {
        p->ops->reset, p->ops->step, p->ops->finish};
    a->in = (rlhf_episode_in){.size = sizeof a->in,
                              .n = n,
                              .phase = (int64_t)phase,
                              .state = a->state,
                              .episode = a->numbers,
                              .seed = a->numbers + n,
                              .turn = a->turns,
                              .meta = a->texts,
                              .text = a->texts + n,
                              .call_offset = a->turns + n,
                              .call = a->calls};
    if (function == RLHF__PLAYED_FINISH) a->in.end = a->bytes + 3 * (size_t)n;
    a->out = (rlhf_episode_out){.size = sizeof a->out,
                                .reward = a->reward,
                                .end = a->bytes,
                                .verdict = a->bytes + n,
                                .failed = a->bytes + 2 * (size_t)n,
                                .say = say,
                                .metric = metric};
    return fn[function] ? fn[function](p->self, &a->in, &a->out) : RLHF_OK;
}

rlhf_status rlhf__places_play(struct rlhf__places *p, struct rlhf__wire *in, struct rlhf__buf *out,
                              struct rlhf__error *why) {
    struct arrays a = {.n_calls = 0};
    size_t n_closed;
    const uint32_t function = rlhf__wire_get_u32(in);
    const char *closed = rlhf__wire_get_items(in, sizeof(uint32_t), &n_closed);
    const uint64_t phase = rlhf__wire_get_u64(in);
    const uint32_t n = rlhf__wire_get_u32(in);
    for (size_t k = 0; !in->bad && k < n_closed; k++) {
        uint32_t place;
        memcpy(&place, closed + k * sizeof place, sizeof place);
        close_place(p, place);
    }
    if (in->bad || function > RLHF__PLAYED_FINISH || n > RLHF__MOST_PLACES)
        return rlhf__fail(why, RLHF_E_INTERNAL, "the worker cannot read the call");
    rlhf_status st = RLHF_OK;
    if (!arrays_init(&a, n) || !get_episodes(p, &a, n, in))
        st = rlhf__fail(why, RLHF_E_NOMEM, "out of memory for %u episodes", n);
    if (st == RLHF_OK) st = call(p, function, phase, n, &a);
    if (st == RLHF_OK && (a.said.bad || a.metrics.bad))
        st = rlhf__fail(why, RLHF_E_NOMEM, "out of memory for its messages");
    if (st == RLHF_OK) put_results(&a, out);
    arrays_finish(&a);
    return st;
}

void rlhf__places_declare(const struct rlhf__places *p, struct rlhf__buf *out) {
    const char *tools = p->ops->tools ? p->ops->tools(p->self) : NULL;
    rlhf__wire_u32(out, p->ops->promises ? p->ops->promises(p->self) : 0);
    rlhf__wire_u32(out, tools != NULL);
    rlhf__wire_puts(out, tools);
}
