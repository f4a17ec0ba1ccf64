// episode_calls.c: see episode_calls.h. wire.h has the form of the messages.
#include "worker/episode_calls.h"

#include "worker/worker_instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ANSWER ((uint64_t)256 << 20)
enum { LONGEST_NAME = 256 };

// The state of an episode as the host keeps it.
struct state {
    uint64_t start; // which start of the worker made the episode's state, from 1; 0: none
    uint32_t place;
};

// A call for some of the episodes of `in`.
struct played {
    struct rlhf__pool *t;
    const rlhf_episode_in *in;
    const rlhf_episode_out *out;
    uint32_t *entry; // [n] indices in `in` of these episodes
    uint32_t n, function;
};

// ---- places ----

static uint32_t take_place(struct rlhf__pool *t) {
    uint32_t place;
    if (t->vacant.len < sizeof place) return t->places++;
    t->vacant.len -= sizeof place;
    memcpy(&place, t->vacant.data + t->vacant.len, sizeof place);
    return place;
}

// The worker learns of closed episodes with the next call.
static void close_all(void *self, const rlhf_episode_close *in) {
    struct rlhf__pool *t = self;
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *s = in->state[i];
        if (s->start == t->starts && s->start) {
            rlhf__buf_put(&t->closed, &s->place, sizeof s->place);
            rlhf__buf_put(&t->vacant, &s->place, sizeof s->place);
        }
        s->start = 0;
    }
}

// ---- asking ----

static void put_episode(const struct played *p, uint32_t i, struct rlhf__buf *to) {
    const rlhf_episode_in *in = p->in;
    const struct state *s = in->state[i];
    rlhf__wire_u32(to, s->place);
    rlhf__wire_u64(to, in->episode[i]);
    rlhf__wire_u64(to, in->seed[i]);
    rlhf__wire_u32(to, (uint32_t)in->turn[i]);
    rlhf__wire_u32(to, in->end[i]);
    rlhf__wire_text(to, in->meta[i].ptr, in->meta[i].len);
    rlhf__wire_text(to, in->text[i].ptr, in->text[i].len);
    rlhf__wire_u32(to, (uint32_t)(in->call_offset[i + 1] - in->call_offset[i]));
    for (int32_t k = in->call_offset[i]; k < in->call_offset[i + 1]; k++) {
        rlhf__wire_text(to, in->call[k].name.ptr, in->call[k].name.len);
        rlhf__wire_text(to, in->call[k].arguments.ptr, in->call[k].arguments.len);
    }
}

// Choose the episodes whose state this worker has; the others have failed.
static void choose(struct played *p) {
    struct rlhf__pool *t = p->t;
    for (uint32_t i = 0; i < p->in->n; i++) {
        struct state *s = p->in->state[i];
        // An environment without reset() gets its first call in step().
        const int begins = p->function == RLHF__PLAYED_RESET ||
                           (!s->start && !(t->s->what.has & RLHF__DESCRIBED_RESET));
        if (begins) *s = (struct state){.start = t->starts, .place = take_place(t)};
        if (s->start == t->starts)
            p->entry[p->n++] = i;
        else
            p->out->failed[i] = 1;
    }
}

static void put_call(const struct played *p, struct rlhf__buf *to) {
    struct rlhf__pool *t = p->t;
    rlhf__wire_begin(to, RLHF__ASK_PLAY);
    rlhf__wire_u32(to, p->function);
    rlhf__wire_text(to, t->closed.data, t->closed.len);
    rlhf__wire_u64(to, (uint64_t)p->in->phase);
    rlhf__wire_u32(to, p->in->wait_ms);
    rlhf__wire_u32(to, p->n);
    for (uint32_t k = 0; k < p->n; k++)
        put_episode(p, p->entry[k], to);
}

// ---- the answer ----

static rlhf_status take_messages(const struct played *p, struct rlhf__wire *in) {
    const uint32_t n = rlhf__wire_get_u32(in);
    for (uint32_t k = 0; k < n && !in->bad; k++) {
        const uint32_t at = rlhf__wire_get_u32(in);
        const int32_t role = (int32_t)rlhf__wire_get_u32(in);
        const rlhf_str text = rlhf__wire_get_text(in);
        if (in->bad) break;
        // the environment may have named an episode that does not exist
        RLHF_TRY(rlhf_say(p->out, at < p->n ? p->entry[at] : p->in->n, role, text));
    }
    return RLHF_OK;
}

static void take_metrics(const struct played *p, struct rlhf__wire *in) {
    const uint32_t n = rlhf__wire_get_u32(in);
    for (uint32_t k = 0; k < n && !in->bad; k++) {
        char name[LONGEST_NAME];
        const uint32_t at = rlhf__wire_get_u32(in);
        const rlhf_str text = rlhf__wire_get_text(in);
        const double value = rlhf__wire_get_f64(in), weight = rlhf__wire_get_f64(in);
        const int32_t combine = (int32_t)rlhf__wire_get_u32(in);
        if (in->bad || text.len >= sizeof name) continue;
        memcpy(name, text.ptr, (size_t)text.len);
        name[text.len] = 0;
        p->out->metric(p->out, at < p->n ? p->entry[at] : p->in->n, name, value, weight, combine);
    }
}

static uint8_t byte_of(uint32_t v) { return v < 255 ? (uint8_t)v : 255; }

static rlhf_status take_answer(const struct played *p, struct rlhf__wire *in) {
    for (uint32_t k = 0; k < p->n; k++) {
        const uint32_t i = p->entry[k];
        p->out->reward[i] = (float)rlhf__wire_get_f64(in);
        p->out->end[i] = byte_of(rlhf__wire_get_u32(in));
        p->out->verdict[i] = byte_of(rlhf__wire_get_u32(in));
        p->out->failed[i] = byte_of(rlhf__wire_get_u32(in));
        p->out->later[i] = byte_of(rlhf__wire_get_u32(in));
    }
    RLHF_TRY(take_messages(p, in));
    take_metrics(p, in);
    if (!in->bad && in->at == in->end) return RLHF_OK;
    return rlhf__pool_fail(p->t, RLHF_E_INTERNAL, "it sent what no worker sends");
}

static rlhf_status exchange(struct played *p) {
    struct rlhf__pool *t = p->t;
    struct rlhf__asked a = {.may_be_left = 1, .most = MOST_ANSWER};
    choose(p);
    if (p->n == 0) return RLHF_OK;
    put_call(p, &a.frame);
    rlhf_status st = RLHF_OK;
    if (a.frame.bad || t->closed.bad || t->vacant.bad)
        st = rlhf__pool_fail(t, RLHF_E_NOMEM, "out of memory for a call of its worker");
    else if (t->places > RLHF__MOST_PLACES)
        st = rlhf__pool_fail(t, RLHF_E_INVALID, "more than 1048576 episodes are open");
    if (st == RLHF_OK) {
        rlhf__buf_clear(&t->closed);
        st = rlhf__pool_ask(t, &t->hand[0], &a);
    }
    if (st == RLHF_OK) st = take_answer(p, &a.result);
    rlhf__asked_finish(&a);
    return st;
}

static rlhf_status play(void *self, uint32_t function, const rlhf_episode_in *in,
                        const rlhf_episode_out *out) {
    struct rlhf__pool *t = self;
    struct played p = {.t = t, .in = in, .out = out, .function = function};
    RLHF_TRY(rlhf__pool_ready(t, &t->hand[0]));
    p.entry = calloc((size_t)in->n + 1, sizeof *p.entry);
    if (!p.entry) return RLHF_E_NOMEM;
    const rlhf_status st = exchange(&p);
    free(p.entry);
    return st;
}

// ---- the table ----

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return play(self, RLHF__PLAYED_RESET, in, out);
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return play(self, RLHF__PLAYED_STEP, in, out);
}

static rlhf_status finish(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return play(self, RLHF__PLAYED_FINISH, in, out);
}

static rlhf_status later(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return play(self, RLHF__PLAYED_POLL, in, out);
}

static const char *tools(void *self) { return ((const struct rlhf__pool *)self)->tools; }

void rlhf__episode_calls_ops(const struct rlhf__description *d, rlhf_environment_ops *out) {
    *out = (rlhf_environment_ops){.size = sizeof *out,
                                  .flags = d->ops_flags,
                                  .state_size = sizeof(struct state),
                                  .tools = tools,
                                  .step = step,
                                  .close = close_all};
    if (d->has & RLHF__DESCRIBED_RESET) out->reset = reset;
    if (d->has & RLHF__DESCRIBED_FINISH) out->finish = finish;
    if (d->has & RLHF__DESCRIBED_POLL) out->poll = later;
    if (d->has & RLHF__DESCRIBED_CHECK_ROW) out->check_row = rlhf__stand_in_check_row;
}
