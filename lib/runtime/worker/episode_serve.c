// episode_serve.c: see episode_serve.h.
#include "worker/episode_serve.h"

#include "plugin/episode_arrays.h"
#include "plugin/growth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A call, with the messages and metrics that the environment returns.
struct played {
    struct rlhf__episode_arrays arrays; // first member: say() and metric() cast it back
    struct rlhf__worker_host *table;
    rlhf_tool_call *calls;
    size_t n_calls, cap_calls;
    struct rlhf__buf said, metrics;
    uint32_t n_said, n_metrics;
    rlhf_status refused; // of the last call of say() that was refused
};

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, const rlhf_message *message) {
    struct played *a = (struct played *)(uintptr_t)out;
    rlhf_message m;
    char where[96], why[192];
    const int away = rlhf__on_call_where(&a->table->on_call, where, sizeof where) != NULL;
    if (away) snprintf(why, sizeof why, "say() was called %s", where);
    if (away || rlhf__message_read(&m, message, why, sizeof why) < 0)
        return a->refused = a->table->api.fail(&a->table->api, RLHF_E_INVALID, why);
    a->n_said++;
    rlhf__wire_u32(&a->said, i); // the host checks the entry and the role
    rlhf__wire_u32(&a->said, (uint32_t)m.role);
    rlhf__wire_text(&a->said, m.text.ptr, m.text.len);
    return a->said.bad ? RLHF_E_NOMEM : RLHF_OK;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value,
                   double weight, int32_t combine) {
    struct played *a = (struct played *)(uintptr_t)out;
    if (!rlhf__table_may_report(a->table, name) || !name) return;
    a->n_metrics++;
    rlhf__wire_u32(&a->metrics, i);
    rlhf__wire_puts(&a->metrics, name);
    rlhf__wire_f64(&a->metrics, value);
    rlhf__wire_f64(&a->metrics, weight);
    rlhf__wire_u32(&a->metrics, (uint32_t)combine);
}

static void played_finish(struct played *a) {
    rlhf__episode_arrays_finish(&a->arrays);
    free(a->calls);
    rlhf__buf_finish(&a->said);
    rlhf__buf_finish(&a->metrics);
}

// ---- states ----

static void close_place(struct rlhf__places *p, uint32_t place) {
    if (place >= p->n || !p->state[place]) return;
    rlhf_episode_close one = {.n = 1, .state = &p->state[place]};
    RLHF__PASS(rlhf_episode_close, &one, p->abi_minor);
    if (p->ops->close) p->ops->close(p->self, &one);
    free(p->state[place]);
    p->state[place] = NULL;
}

// Returns the state at a place, or NULL if memory runs out. The state is allocated at its first
// use.
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

static int get_calls(struct played *a, struct rlhf__wire *in) {
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

static int get_episodes(struct rlhf__places *p, struct played *a, uint32_t n,
                        struct rlhf__wire *in) {
    struct rlhf__episode_arrays *x = &a->arrays;
    for (uint32_t i = 0; i < n && !in->bad; i++) {
        const uint32_t place = rlhf__wire_get_u32(in);
        if (place >= RLHF__MOST_PLACES) return 0;
        x->state[i] = state_at(p, place);
        if (!x->state[i]) return 0;
        x->episode[i] = rlhf__wire_get_u64(in);
        x->seed[i] = rlhf__wire_get_u64(in);
        x->turn[i] = (int32_t)rlhf__wire_get_u32(in);
        x->ended[i] = (uint8_t)rlhf__wire_get_u32(in);
        x->meta[i] = rlhf__wire_get_text(in);
        x->text[i] = rlhf__wire_get_text(in);
        if (!get_calls(a, in)) return 0;
        x->call_offset[i + 1] = (int32_t)a->n_calls;
    }
    return !in->bad;
}

static void put_results(const struct played *a, struct rlhf__buf *out) {
    const rlhf_episode_out *x = &a->arrays.out;
    for (uint32_t i = 0; i < a->arrays.in.n; i++) {
        rlhf__wire_f64(out, (double)x->reward[i]);
        rlhf__wire_u32(out, x->end[i]);
        rlhf__wire_u32(out, x->verdict[i]);
        rlhf__wire_u32(out, x->failed[i]);
        rlhf__wire_u32(out, x->later[i]);
    }
    rlhf__wire_u32(out, a->n_said);
    rlhf__buf_put(out, a->said.data, a->said.len);
    rlhf__wire_u32(out, a->n_metrics);
    rlhf__buf_put(out, a->metrics.data, a->metrics.len);
}

static rlhf_status call(const struct rlhf__places *p, uint32_t function, struct played *a,
                        struct rlhf__error *why) {
    rlhf_status (*const fn[])(void *, const rlhf_episode_in *, const rlhf_episode_out *) = {
        p->ops->reset, p->ops->step, p->ops->finish, p->ops->poll};
    struct rlhf__episode_arrays *x = &a->arrays;
    x->in.call = a->calls;
    x->out.say = say;
    x->out.metric = metric;
    if (!fn[function]) return RLHF_OK;
    struct rlhf__tails tails = {.n = 0};
    rlhf__episode_arrays_mark(x, &tails, p->abi_minor);
    rlhf_status st = fn[function](p->self, &x->in, &x->out);
    if (st == RLHF_OK) st = a->refused;
    char text[192];
    const char *fault = rlhf__tails_end(&tails, text, sizeof text);
    return fault ? rlhf__fail(why, RLHF_E_INTERNAL, "%s", fault) : st;
}

rlhf_status rlhf__places_play(struct rlhf__places *p, struct rlhf__wire *in, struct rlhf__buf *out,
                              struct rlhf__error *why) {
    struct played a = {.table = p->table};
    size_t n_closed;
    const uint32_t function = rlhf__wire_get_u32(in);
    const char *closed = rlhf__wire_get_items(in, sizeof(uint32_t), &n_closed);
    const uint64_t phase = rlhf__wire_get_u64(in);
    const uint32_t wait_ms = rlhf__wire_get_u32(in), n = rlhf__wire_get_u32(in);
    for (size_t k = 0; !in->bad && k < n_closed; k++) {
        uint32_t place;
        memcpy(&place, closed + k * sizeof place, sizeof place);
        close_place(p, place);
    }
    if (in->bad || function > RLHF__PLAYED_POLL || n > RLHF__MOST_PLACES)
        return rlhf__fail(why, RLHF_E_INTERNAL, "the worker cannot read the call");
    rlhf_status st = RLHF_OK;
    if (!rlhf__episode_arrays_init(&a.arrays, n, (int64_t)phase) || !get_episodes(p, &a, n, in))
        st = rlhf__fail(why, RLHF_E_NOMEM, "out of memory for %u episodes", n);
    a.arrays.in.wait_ms = wait_ms;
    if (st == RLHF_OK) st = call(p, function, &a, why);
    if (st == RLHF_OK && (a.said.bad || a.metrics.bad))
        st = rlhf__fail(why, RLHF_E_NOMEM, "out of memory for its messages");
    if (st == RLHF_OK) put_results(&a, out);
    played_finish(&a);
    return st;
}

void rlhf__places_declare(const struct rlhf__places *p, struct rlhf__buf *out) {
    const char *tools = p->ops->tools ? p->ops->tools(p->self) : NULL;
    rlhf__wire_u32(out, tools != NULL);
    rlhf__wire_puts(out, tools);
}
