// tools.c: an environment of tools (docs/environments.md). So far, the only tool is a calculator
// for whole numbers.
//
// A turn without a tool call is the answer and ends the episode. A reward, such as answer.so,
// decides whether the answer is right.
#include "sum.h"

#include <rlhf/environment.h>
#include <rlhf/service.h>

struct tools {
    const rlhf_host *host;
    const rlhf_row_service *json;
};

static const char *list(void *self) {
    (void)self;
    return "[{\"type\": \"function\", \"function\": {\"name\": \"calculator\", \"description\": "
           "\"Computes an expression of whole numbers with + - * / and brackets.\", "
           "\"parameters\": {\"type\": \"object\", \"properties\": {\"expression\": "
           "{\"type\": \"string\", \"description\": \"For example 12*(3+4)\"}}, "
           "\"required\": [\"expression\"]}}}]";
}

// Evaluate the expression in the tool call's arguments and set *value. Returns NULL, or an error
// message.
static const char *compute(const struct tools *t, const rlhf_row *arguments, int64_t *value) {
    rlhf_str text = {NULL, 0};
    if (t->json->type(t->host, arguments, "expression") != RLHF_JSON_STRING ||
        t->json->string(t->host, arguments, "expression", &text) != RLHF_OK)
        return "expression is not a text";
    return rlhf__sum(text, value);
}

static rlhf_status answer(const struct tools *t, const rlhf_episode_out *out, uint32_t i,
                          const rlhf_tool_call *call) {
    rlhf_row *arguments = NULL;
    int64_t value = 0;
    RLHF_TRY(t->json->open(t->host, call->arguments, &arguments));
    const char *why = compute(t, arguments, &value);
    t->json->close(t->host, arguments);
    return why ? rlhf_sayf(out, i, RLHF_ROLE_TOOL, "{\"error\": \"%s\"}", why)
               : rlhf_sayf(out, i, RLHF_ROLE_TOOL, "%lld", (long long)value);
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    for (uint32_t i = 0; i < in->n; i++) {
        for (int32_t k = in->call_offset[i]; k < in->call_offset[i + 1]; k++)
            RLHF_TRY(answer(self, out, i, &in->call[k]));
        if (in->call_offset[i] == in->call_offset[i + 1]) out->end[i] = RLHF_EPISODE_DONE;
    }
    return RLHF_OK;
}

static void destroy(void *self) {
    struct tools *t = self;
    if (t) t->host->free(t->host, t);
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    (void)config;
    struct tools *t = host->alloc(host, sizeof *t);
    if (!t) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    t->host = host;
    t->json = host->service(host, RLHF_SVC_ROW);
    *self = t;
    if (t->json) return RLHF_OK;
    destroy(t);
    *self = NULL;
    return (host->fail)(host, RLHF_E_UNSUPPORTED, "the host has no " RLHF_SVC_ROW);
}

static const rlhf_environment_ops ops = {
    .size = sizeof ops, .flags = RLHF_ENVIRONMENT_FUNCTION, .tools = list, .step = step};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ENVIRONMENT,
    .id = "org.rlhf-host.tools",
    .version = RLHF_SDK_VERSION,
    .summary = "tools: a calculator for whole numbers",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
