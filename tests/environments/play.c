// play.c: see play.h.
#include "environments/play.h"

#include "plugin/row_service.h"
#include "rewards/many.h"

#include <rlhf/draft/program.h>

// The episodes to which calls of say() and metric() belong. Only one struct plays at a time.
static struct play *playing;
static const uint64_t *playing_which;

rlhf_status play_open(struct play *p, const char *file, const char *options) {
    return play_open_within(p, file, options, 0);
}

rlhf_status play_open_within(struct play *p, const char *file, const char *options,
                             double timeout_s) {
    char path[4096];
    static char list[2048]; // string options point into it until the next call
    const char *build = getenv("RLHF_BUILD_DIR");
    memset(p, 0, sizeof *p);
    snprintf(path, sizeof path, "%s/lib/rlhf/1/environments/%s", build ? build : ".", file);
    p->plugin = rlhf_test_open(path, 0);
    assert_non_null(p->plugin);
    p->ops = p->plugin->ops;
    rlhf_test_init(&p->host, 1);
    rlhf_test_offer(&p->host, RLHF_SVC_PROGRAM, many_programs());
    rlhf_test_offer(&p->host, RLHF_SVC_ROW, rlhf__row_service());
    p->host.limits.timeout_s = timeout_s;
    rlhf_test_config(p->plugin, p->config.bytes);
    snprintf(list, sizeof list, "%s", options);
    for (char *item = list, *next; *item; item = next) {
        next = item + strcspn(item, ";");
        if (*next) *next++ = 0;
        char *equals = strchr(item, '=');
        assert_non_null(equals);
        *equals = 0;
        if (!rlhf_test_set(p->plugin, p->config.bytes, item, equals + 1))
            fail_msg("%s refuses %s=%s", file, item, equals + 1);
    }
    return p->plugin->create(&p->host.table, p->config.bytes, &p->self);
}

void play_close(struct play *p) {
    if (p->self) p->plugin->destroy(p->self);
    p->self = NULL;
    assert_int_equal(p->host.live, 0);
}

static rlhf_status say(const rlhf_episode_out *out, uint32_t i, const rlhf_message *m) {
    static const char *const names[] = {"", "system", "user", "assistant", "tool"};
    char *to = playing->said[playing_which[i]];
    const size_t at = strlen(to);
    (void)out;
    snprintf(to + at, PLAY_SAID - at, "%s: %.*s|", names[m->role], (int)m->text.len, m->text.ptr);
    return RLHF_OK;
}

static void metric(const rlhf_episode_out *out, uint32_t i, const char *name, double value,
                   double weight, int32_t combine) {
    (void)out;
    (void)name;
    assert_true(weight == 1 && combine == RLHF_COMBINE_MEAN);
    playing->metric[playing_which[i]] = value;
}

enum { RESET, STEP, FINISH };

enum { POLLS = 1, WAITS = 2 };

// Calls a function. If `polls` is not 0, calls poll() for its answers.
static rlhf_status call(struct play *p, int what, int polls, uint32_t n, const uint64_t *which,
                        const char *const *text, const char *tool, const char *row, int32_t end) {
    void *state[PLAY_MOST];
    uint64_t seed[PLAY_MOST];
    int32_t turn[PLAY_MOST], offset[PLAY_MOST + 1] = {0};
    rlhf_str meta[PLAY_MOST], said[PLAY_MOST];
    rlhf_tool_call calls[PLAY_MOST];
    float reward[PLAY_MOST] = {0};
    uint8_t ends[PLAY_MOST], how[PLAY_MOST] = {0}, verdict[PLAY_MOST] = {0},
                             failed[PLAY_MOST] = {0}, later[PLAY_MOST] = {0};
    for (uint32_t i = 0; i < n; i++) {
        const char *t = text && text[i] ? text[i] : "";
        const int is_call = tool && *t == '{';
        state[i] = p->state[which[i]];
        if (what == RESET && !polls) memset(state[i], 0, sizeof p->state[0]);
        if (!polls) p->turn[which[i]] = what == RESET ? 0 : p->turn[which[i]] + 1;
        p->said[which[i]][0] = 0;
        seed[i] = (which[i] % 2) << 40;
        turn[i] = p->turn[which[i]];
        meta[i] = (rlhf_str){row, row ? strlen(row) : 0};
        said[i] = what == RESET ? (rlhf_str){"P", 1} : (rlhf_str){t, is_call ? 0 : strlen(t)};
        offset[i + 1] = offset[i] + is_call;
        if (is_call) calls[offset[i]] = (rlhf_tool_call){{tool, strlen(tool)}, {t, strlen(t)}};
        ends[i] = (uint8_t)end;
    }
    const rlhf_episode_in in = {.size = sizeof in,
                                .n = n,
                                .wait_ms = polls == WAITS ? 100 : 0,
                                .phase = 1,
                                .state = state,
                                .episode = which,
                                .seed = seed,
                                .turn = turn,
                                .meta = meta,
                                .text = said,
                                .call_offset = offset,
                                .call = calls,
                                .end = ends};
    const rlhf_episode_out out = {.size = sizeof out,
                                  .reward = reward,
                                  .end = how,
                                  .verdict = verdict,
                                  .failed = failed,
                                  .later = later,
                                  .say = say,
                                  .metric = metric};
    playing = p;
    playing_which = which;
    const rlhf_status st = polls           ? p->ops->poll(p->self, &in, &out)
                           : what == RESET ? p->ops->reset(p->self, &in, &out)
                           : what == STEP  ? p->ops->step(p->self, &in, &out)
                                           : p->ops->finish(p->self, &in, &out);
    for (uint32_t i = 0; i < n; i++) {
        p->reward[which[i]] = reward[i];
        p->end[which[i]] = how[i];
        p->verdict[which[i]] = verdict[i];
        p->failed[which[i]] = failed[i] || st < 0;
        p->later[which[i]] = later[i];
    }
    return st;
}

// Calls poll() until all answers of the function are there.
static rlhf_status wait_for(struct play *p, int what, uint32_t n, const uint64_t *which,
                            const char *row, int32_t end) {
    uint64_t left[PLAY_MOST];
    rlhf_status st = RLHF_OK;
    for (uint32_t waits = 1; st == RLHF_OK && waits > 0;) {
        waits = 0;
        for (uint32_t i = 0; i < n; i++)
            if (p->later[which[i]]) left[waits++] = which[i];
        if (waits) st = call(p, what, WAITS, waits, left, NULL, NULL, row, end);
    }
    return st;
}

static rlhf_status play(struct play *p, int what, uint32_t n, const uint64_t *which,
                        const char *const *text, const char *tool, const char *row, int32_t end) {
    const rlhf_status st = call(p, what, 0, n, which, text, tool, row, end);
    return st == RLHF_OK ? wait_for(p, what, n, which, row, end) : st;
}

rlhf_status play_step_at_once(struct play *p, uint32_t n, const uint64_t *which,
                              const char *const *text) {
    return call(p, STEP, 0, n, which, text, NULL, NULL, RLHF_EPISODE_OPEN);
}

rlhf_status play_poll_at_once(struct play *p, uint32_t n, const uint64_t *which) {
    return call(p, STEP, POLLS, n, which, NULL, NULL, NULL, RLHF_EPISODE_OPEN);
}

rlhf_status play_wait(struct play *p, uint32_t n, const uint64_t *which) {
    return wait_for(p, STEP, n, which, NULL, RLHF_EPISODE_OPEN);
}

rlhf_status play_reset(struct play *p, uint32_t n, const uint64_t *which, const char *row) {
    return play(p, RESET, n, which, NULL, NULL, row, RLHF_EPISODE_OPEN);
}

rlhf_status play_step(struct play *p, uint32_t n, const uint64_t *which, const char *const *text,
                      const char *tool) {
    return play(p, STEP, n, which, text, tool, NULL, RLHF_EPISODE_OPEN);
}

rlhf_status play_finish(struct play *p, uint32_t n, const uint64_t *which, int32_t end) {
    return play(p, FINISH, n, which, NULL, NULL, NULL, end);
}

void play_end(struct play *p, uint32_t n, const uint64_t *which) {
    void *state[PLAY_MOST];
    for (uint32_t i = 0; i < n; i++)
        state[i] = p->state[which[i]];
    const rlhf_episode_close all = {.size = sizeof all, .n = n, .state = state};
    p->ops->close(p->self, &all);
}
