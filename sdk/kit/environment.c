// environment.c: plays an episode of an environment. See rlhf/test.h.
#include <rlhf/test.h>

#include <stdio.h>
#include <stdlib.h>

// The call that is in progress. say() and metric() find the episode through it.
struct call {
    rlhf_episode_out out; // first member: say() casts it back
    struct rlhf_test_episode *episode;
};

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, const rlhf_message *message) {
    static const char *const names[] = {"", "system", "user", "assistant", "tool"};
    union {
        const rlhf_episode_out *out;
        const struct call *call;
    } u = {out};
    struct rlhf_test_episode *e = u.call->episode;
    rlhf_message m;
    RLHF_TRY(rlhf_copy_in(&m, sizeof m, message, RLHF_SIZE_TO(rlhf_message, text)));
    if (i != 0 || m.role < RLHF_ROLE_SYSTEM || m.role > RLHF_ROLE_TOOL ||
        m.role == RLHF_ROLE_ASSISTANT)
        return RLHF_E_INVALID;
    const size_t at = strlen(e->said);
    snprintf(e->said + at, sizeof e->said - at, "%s: %.*s\n", names[m.role], (int)m.text.len,
             m.text.len ? m.text.ptr : "");
    return RLHF_OK;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value,
                   double weight, int32_t combine) {
    (void)out;
    (void)i;
    (void)name;
    (void)value;
    (void)weight;
    (void)combine;
}

typedef rlhf_status function(void *, const rlhf_episode_in *, const rlhf_episode_out *);

enum { WAIT_MS = 100 };

// Calls a function. Sets *later if the answer comes from poll().
static rlhf_status call(struct rlhf_test_episode *e, function *f, rlhf_str text,
                        const rlhf_tool_call *tool, uint8_t end, uint8_t *later) {
    static const rlhf_tool_call none = {{NULL, 0}, {NULL, 0}};
    const rlhf_str meta = {e->row, e->row ? strlen(e->row) : 0};
    const int32_t offset[] = {0, tool != NULL};
    uint8_t ended = 0, verdict = 0, failed = 0;
    float reward = 0;
    const rlhf_episode_in in = {.size = (uint32_t)sizeof in,
                                .n = 1,
                                .wait_ms = f == e->ops->poll ? WAIT_MS : 0,
                                .reserved = 0,
                                .phase = 0,
                                .state = &e->state,
                                .episode = &e->seed,
                                .seed = &e->seed,
                                .turn = &e->turn,
                                .meta = &meta,
                                .text = &text,
                                .call_offset = offset,
                                .call = tool ? tool : &none,
                                .end = &end};
    const struct call call = {.out = {.size = (uint32_t)sizeof call.out,
                                      .reserved = 0,
                                      .reward = &reward,
                                      .end = &ended,
                                      .verdict = &verdict,
                                      .failed = &failed,
                                      .later = later,
                                      .say = say,
                                      .metric = metric},
                              .episode = e};
    *later = 0;
    const rlhf_status st = f(e->self, &in, &call.out);
    e->reward += reward;
    e->failed = failed;
    if (verdict) e->verdict = verdict;
    if (!end) e->end = ended;
    return st;
}

// Calls a function, and then poll() until the answer is there.
static rlhf_status ask(struct rlhf_test_episode *e, function *f, const char *text,
                       const rlhf_tool_call *tool, uint8_t end) {
    const rlhf_str said = {text, text ? strlen(text) : 0}, nothing = {NULL, 0};
    uint8_t later;
    e->said[0] = 0;
    if (!f) return RLHF_OK;
    rlhf_status st = call(e, f, said, tool, end, &later);
    while (st == RLHF_OK && later)
        st = e->ops->poll ? call(e, e->ops->poll, nothing, NULL, end, &later) : RLHF_E_INVALID;
    return st;
}

rlhf_status rlhf_test_begin(struct rlhf_test_episode *e, const rlhf_environment_ops *ops,
                            void *self, uint64_t seed, const char *row, const char *prompt) {
    memset(e, 0, sizeof *e);
    e->ops = ops;
    e->self = self;
    e->seed = seed;
    e->row = row;
    if (ops->state_size) {
        e->state = calloc(1, (size_t)ops->state_size);
        if (!e->state) return RLHF_E_NOMEM;
    }
    return ask(e, ops->reset, prompt, NULL, RLHF_EPISODE_OPEN);
}

static rlhf_status step(struct rlhf_test_episode *e, const char *text, const rlhf_tool_call *tool) {
    e->turn++;
    return ask(e, e->ops->step, text, tool, RLHF_EPISODE_OPEN);
}

rlhf_status rlhf_test_turn(struct rlhf_test_episode *e, const char *text) {
    return step(e, text, NULL);
}

rlhf_status rlhf_test_call(struct rlhf_test_episode *e, const char *tool, const char *arguments) {
    const rlhf_tool_call call = {{tool, strlen(tool)}, {arguments, strlen(arguments)}};
    return step(e, "", &call);
}

rlhf_status rlhf_test_finish(struct rlhf_test_episode *e, int32_t end) {
    const uint8_t how = (uint8_t)end;
    e->end = how;
    return ask(e, e->ops->finish, NULL, NULL, how);
}

void rlhf_test_close(struct rlhf_test_episode *e) {
    const rlhf_episode_close one = {.size = (uint32_t)sizeof one, .n = 1, .state = &e->state};
    if (e->ops && e->ops->close) e->ops->close(e->self, &one);
    free(e->state);
    memset(e, 0, sizeof *e);
}
