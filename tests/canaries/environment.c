// environment.c: environments that each break one rule, chosen by a BREAK_ macro; see reward.c.
#include <rlhf/environment.h>
#include <rlhf/log.h>
#include <rlhf/service.h>

#include <stdlib.h>

#ifdef BREAK_METRIC
#define METRIC_NAME "the sum"
#else
#define METRIC_NAME "sum"
#endif

struct env {
    const rlhf_host *host;
#if defined BREAK_MODEL_KEPT || defined BREAK_MODEL_LEFT
    const rlhf_language_model_service *service;
    rlhf_language_model *model;
#endif
    int64_t calls, shown;
};

struct state {
    char *held;
    int64_t sum;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct env *e = host->alloc(host, sizeof *e);
    (void)config;
    if (!e) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    e->host = host;
#if defined BREAK_MODEL_KEPT || defined BREAK_MODEL_LEFT
    const rlhf_language_open how = {.size = sizeof how, .slots = 1};
    e->service = host->service(host, RLHF_SVC_LANGUAGE_MODEL);
    const rlhf_status st =
        e->service ? e->service->open(host, &how, &e->model) : RLHF_E_UNSUPPORTED;
    if (st < 0) {
        host->free(host, e);
        return st;
    }
#endif
    *self = e;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct env *e = self;
    if (!e) return;
#ifdef BREAK_MODEL_KEPT
    e->service->close(e->host, e->model);
#endif
    e->host->free(e->host, e);
}

static const char *tools(void *self) {
    (void)self;
#ifdef BREAK_TOOLS
    return "{\"name\": \"add\"}";
#else
    return "[{\"type\": \"function\", \"function\": {\"name\": \"add\", \"parameters\": "
           "{\"type\": \"object\", \"properties\": {\"x\": {\"type\": \"integer\"}}, "
           "\"required\": [\"x\"]}}}]";
#endif
}

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    struct env *e = self;
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *s = in->state[i];
        s->held = e->host->alloc(e->host, 16);
#ifndef BREAK_MEMORY
        if (!s->held) return e->host->fail(e->host, RLHF_E_NOMEM, "out of memory");
#endif
        s->held[0] = 'a';
        rlhf_rng dice = {in->seed[i], rlhf_rng_stream("sum"), 0};
        s->sum = (int64_t)rlhf_rng_below(&dice, 9);
#ifdef BREAK_SEED
        s->sum += (int64_t)in->episode[i];
#elif defined BREAK_STATE
        ((char *)in->state[i])[64] = 1;
#elif defined BREAK_RESET_ENDS
        out->end[i] = RLHF_EPISODE_DONE;
#elif defined BREAK_RESET_PAYS
        out->reward[i] = 1;
#elif defined BREAK_NO_ROLE
        rlhf_sayf(out, i, 0, "no role");
#endif
        RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_USER, "from %lld", (long long)s->sum));
    }
    return RLHF_OK;
}

static rlhf_status answer(struct env *e, const rlhf_episode_in *in, const rlhf_episode_out *out,
                          uint32_t i) {
    const int32_t calls = in->call_offset[i + 1] - in->call_offset[i];
    struct state *s = in->state[i];
    (void)e;
    s->sum += (int64_t)in->text[i].len;
    out->metric(out, i, METRIC_NAME, (double)s->sum, 1, RLHF_COMBINE_MEAN);
    out->reward[i] = (float)s->sum;
#ifdef BREAK_SILENT
    if (in->turn[i] == 2) return RLHF_OK;
#elif defined BREAK_ROLE
    if (in->turn[i] == 2) rlhf_sayf(out, i, RLHF_ROLE_SYSTEM, "quiet");
#elif defined BREAK_UNASKED
    if (!calls) rlhf_sayf(out, i, RLHF_ROLE_TOOL, "3");
#elif defined BREAK_UNANSWERED
    if (calls) return rlhf_sayf(out, i, RLHF_ROLE_USER, "no");
#elif defined BREAK_ORDER
    return rlhf_sayf(out, i, calls ? RLHF_ROLE_TOOL : RLHF_ROLE_USER, "%u of %u", i, in->n);
#elif defined BREAK_REMEMBERS
    e->shown += in->n;
    return rlhf_sayf(out, i, calls ? RLHF_ROLE_TOOL : RLHF_ROLE_USER, "%lld", (long long)e->shown);
#elif defined BREAK_END
    out->end[i] = RLHF_EPISODE_LENGTH;
#elif defined BREAK_VERDICT
    out->verdict[i] = 9;
#elif defined BREAK_FAILED
    out->failed[i] = 2;
#elif defined BREAK_OPEN_VERDICT
    out->verdict[i] = RLHF_VERDICT_RIGHT;
#elif defined BREAK_CHANGES
    ((rlhf_episode_out *)(uintptr_t)out)->reserved = 1;
#elif defined BREAK_OUTSIDE
    out->reward[in->n] = 1;
#elif defined BREAK_BORROWED
    ((int32_t *)(uintptr_t)in->turn)[i]++;
#elif defined BREAK_TEXT
    s->sum += in->text[i].ptr[in->text[i].len] == 'x';
#endif
    for (int32_t k = 0; k < calls; k++)
        RLHF_TRY(rlhf_sayf(out, i, RLHF_ROLE_TOOL, "%d", (int)in->call[k].arguments.len));
    return calls ? RLHF_OK : rlhf_sayf(out, i, RLHF_ROLE_USER, "%lld", (long long)s->sum);
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    struct env *e = self;
    e->calls++;
#ifdef BREAK_WORDS
    if (in->turn[0] == 3) return RLHF_E_IO;
#elif defined BREAK_CRASH
    if (in->turn[0] == 3) abort();
#endif
    for (uint32_t i = 0; i < in->n; i++) {
#ifdef BREAK_LATER
        out->later[i] = 1;
#endif
        if (in->text[i].len > 4)
            out->end[i] = RLHF_EPISODE_DONE;
        else
            RLHF_TRY(answer(e, in, out, i));
    }
    return RLHF_OK;
}

#ifdef BREAK_PART
static rlhf_status later(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    (void)in;
    (void)out;
    return RLHF_OK; // the answers of finish()
}
#endif

static rlhf_status finish(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++) {
        out->reward[i] = in->end[i] == RLHF_EPISODE_DONE ? 1 : -1;
#ifdef BREAK_PART
        out->later[i] = 1;
#endif
#ifdef BREAK_FINISH_SAYS
        rlhf_sayf(out, i, RLHF_ROLE_USER, "bye");
#endif
    }
    return RLHF_OK;
}

static void close_states(void *self, const rlhf_episode_close *in) {
    struct env *e = self;
    e->calls++;
    for (uint32_t i = 0; i < in->n; i++) {
        struct state *s = in->state[i];
#ifndef BREAK_LEAK
        e->host->free(e->host, s->held);
#endif
        s->held = NULL;
    }
#ifdef BREAK_CLOSES
    ((rlhf_episode_close *)(uintptr_t)in)->n = 0;
#endif
}

static const rlhf_environment_ops ops = {.size = sizeof ops,
                                         .flags = RLHF_ENVIRONMENT_PAYS | RLHF_ENVIRONMENT_TASKS,
                                         .state_size = sizeof(struct state),
                                         .tools = tools,
                                         .reset = reset,
                                         .step = step,
#ifdef BREAK_PART
                                         .poll = later,
#endif
                                         .finish = finish,
                                         .close = close_states};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ENVIRONMENT,
    .id = "org.example.canary",
    .version = "1",
    .summary = "breaks a rule",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

RLHF_DEFINE_PLUGIN(plugin)
