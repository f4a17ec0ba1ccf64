// env_http.c: an environment that is played by a service. A request is either a POST with lines of
// JSON in the format of this project, or an OpenEnv message over a WebSocket (docs/env-http.md).
#include "http/client.h"
#include "http_openenv.h"
#include "http_post.h"

#include <math.h>
#include <rlhf/environment.h>
#include <rlhf/log.h>
#include <rlhf/service.h>
#include <stdio.h>
#include <string.h>

enum form { FORM_LINES = 0, FORM_OPENENV = 1 };

enum { READ, REPLAY }; // execution_error

struct config {
    const char *url, *header_env, *ca, *action, *observation;
    int64_t repeats, max_answer_mib;
    double patience_s;
    int32_t form, execution_error;
};

struct env {
    const rlhf_host *host;
    const struct config *config;
    struct rlhf__http_options options;
    struct rlhf__post post;
    struct rlhf__target target; // target of OpenEnv messages
    struct curl_slist *headers;
    struct rlhf__openenv openenv;
    struct rlhf__openenv_wait wait;
    char path[1024];
    int32_t started;
};

static void destroy(void *self) {
    struct env *e = self;
    if (!e) return;
    rlhf__post_close(&e->post);
    curl_slist_free_all(e->headers);
    rlhf__target_finish(&e->target);
    if (e->started) curl_global_cleanup();
    e->host->free(e->host, e);
}

// ---- OpenEnv ----

// Connect once, so that a wrong certificate or address is found before the first phase.
static rlhf_status try_openenv(const struct env *e) {
    const struct rlhf__openenv *o = &e->openenv;
    struct rlhf__socket s = {.host = e->host, .longest = o->longest};
    char why[RLHF__SOCKET_WHY] = "";
    const double most = o->timeout_s > 0 ? fmin(o->timeout_s, 10) : 10;
    const enum rlhf__socket_end end =
        rlhf__socket_open(&s, &o->target, rlhf__http_now() + most, why);
    if (end == RLHF__SOCKET_CANCELLED) return RLHF_E_CANCELLED;
    if (end == RLHF__SOCKET_FAILED)
        rlhf_logf(e->host, RLHF_LOG_WARN, "%s does not answer yet: %s", o->shown, why);
    if (end == RLHF__SOCKET_DONE) rlhf__socket_close(&s);
    return end == RLHF__SOCKET_NO_MEMORY ? (e->host->fail)(e->host, RLHF_E_NOMEM, "out of memory")
                                         : RLHF_OK;
}

static rlhf_status open_openenv(struct env *e) {
    const struct config *c = e->config;
    const rlhf_limits *limits = e->host->service(e->host, RLHF_SVC_LIMITS);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return (e->host->fail)(e->host, RLHF_E_INTERNAL, "libcurl does not start");
    e->started = 1;
    RLHF_TRY(rlhf__target_init(&e->target, e->host, &e->options, &e->headers));
    char *path = NULL;
    if (curl_url_get(e->target.url, CURLUPART_PATH, &path, 0) != CURLUE_OK)
        return (e->host->fail)(e->host, RLHF_E_NOMEM, "out of memory");
    const size_t n = strlen(path);
    snprintf(e->path, sizeof e->path, "%s%sws", path, n && path[n - 1] == '/' ? "" : "/");
    curl_free(path);
    const rlhf_row_service *rows = e->host->service(e->host, RLHF_SVC_ROW);
    if (!rows) return (e->host->fail)(e->host, RLHF_E_UNSUPPORTED, "the host cannot read JSON");
    e->openenv = (struct rlhf__openenv){.host = e->host,
                                        .rows = rows,
                                        .target = {.url = c->url,
                                                   .path = e->path,
                                                   .origin = e->target.origin,
                                                   .ca = e->target.ca,
                                                   .headers = e->headers},
                                        .shown = e->target.shown,
                                        .action = c->action,
                                        .observation = c->observation,
                                        .patience_s = c->patience_s,
                                        .wait = &e->wait,
                                        .reads_errors = c->execution_error == READ,
                                        .timeout_s = limits ? limits->timeout_s : 300,
                                        .longest = (size_t)c->max_answer_mib << 20};
    return try_openenv(e);
}

// ---- life ----

static rlhf_status open_it(struct env *e) {
    const struct config *c = e->config;
    e->options = (struct rlhf__http_options){.url = c->url,
                                             .header_env = c->header_env,
                                             .ca = c->ca,
                                             .concurrency = 1,
                                             .repeats = c->repeats,
                                             .max_answer_mib = c->max_answer_mib,
                                             .connect_timeout_s = 10,
                                             .patience_s = c->patience_s,
                                             .backoff_s = 0.5,
                                             .backoff_max_s = 60};
    RLHF_TRY(rlhf__target_network(e->host));
    if (c->form == FORM_OPENENV) return open_openenv(e);
    e->post.host = e->host;
    e->post.o = &e->options;
    return rlhf__post_open(&e->post);
}

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct env *e = host->alloc(host, sizeof *e);
    if (!e) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    e->host = host;
    e->config = config;
    const rlhf_status st = open_it(e);
    if (st < 0) {
        destroy(e);
        return st;
    }
    *self = e;
    return RLHF_OK;
}

// ---- the functions of an environment ----

static const char *tools(void *self) {
    const struct env *e = self;
    return e->post.hello.tools;
}

static rlhf_status ask(struct env *e, enum rlhf__asked what, const rlhf_episode_in *in,
                       const rlhf_episode_out *out) {
    if (!in->n) return RLHF_OK;
    if (e->config->form == FORM_LINES) return rlhf__post_ask(&e->post, what, in, out);
    return what == RLHF__ASKED_FINISH ? RLHF_OK : rlhf__openenv_ask(&e->openenv, what, in, out);
}

static rlhf_status reset(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return ask(self, RLHF__ASKED_RESET, in, out);
}

static rlhf_status step(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return ask(self, RLHF__ASKED_STEP, in, out);
}

static rlhf_status finish(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    return ask(self, RLHF__ASKED_FINISH, in, out);
}

// Only OpenEnv's answers come later: form=lines has one answer for all episodes of a call.
static rlhf_status later(void *self, const rlhf_episode_in *in, const rlhf_episode_out *out) {
    const struct env *e = self;
    return rlhf__openenv_poll(&e->openenv, in, out);
}

static void close_all(void *self, const rlhf_episode_close *in) {
    struct env *e = self;
    for (uint32_t i = 0; e->config->form == FORM_OPENENV && i < in->n; i++)
        rlhf__openenv_close(&e->openenv, in->state[i]);
}

// ---- options ----

static const char *why_unused(const rlhf_option_in *in) {
    const struct config *c = in->config;
    const char *key = in->key;
    if (c->form == FORM_OPENENV && strcmp(key, "repeats") == 0)
        return "with form=openenv, failed episodes are played again (episodes.retries)";
    if (c->form == FORM_LINES && (strcmp(key, "action") == 0 || strcmp(key, "observation") == 0))
        return "only form=openenv has actions and observations";
    if (c->form == FORM_LINES && strcmp(key, "execution_error") == 0)
        return "only servers of form=openenv answer so";
    return NULL;
}

static const char *const form_names[] = {"lines", "openenv", NULL};
static const char *const error_names[] = {"read", "replay", NULL};
static const rlhf_opt options[] = {
    {.key = "url",
     .help = "the service: http:// or https://, no user or password in it",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, url)},
    RLHF_OPT_ENUM(
        struct config, form, FORM_LINES, form_names,
        "what is sent: lines, those of env_exec.so in a POST; openenv, OpenEnv's messages "
        "on a WebSocket at <url>/ws"),
    RLHF_OPT_STR(struct config, action, "message",
                 "member of OpenEnv's action that is the policy's turn; json: the turn is the "
                 "action"),
    RLHF_OPT_STR(struct config, observation, NULL,
                 "which part of OpenEnv's observation is said, such as /echoed_message; without "
                 "it, all"),
    RLHF_OPT_ENUM(struct config, execution_error, READ, error_names,
                  "if OpenEnv's environment fails on a turn: read, the policy reads the error and "
                  "goes on; replay, the episode is replayed (episodes.retries)"),
    {.key = "header_env",
     .help = "environment variable with a header to send, \"Name: value\"; it is never shown",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, header_env)},
    {.key = "ca",
     .help = "PEM file of the authorities that may sign the service's certificate, in place of the "
             "system's",
     .type = RLHF_T_PATH,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, ca)},
    RLHF_OPT_I64(struct config, repeats, 3, 0, 100,
                 "how often a request is sent again that is answered with a status 5xx"),
    RLHF_OPT_F64(struct config, patience_s, 600, 0, 1e7,
                 "seconds that the run waits for a service that is down or says 429"),
    RLHF_OPT_I64(struct config, max_answer_mib, 4, 1, 1024, "size of an answer, at most"),
};
static const rlhf_environment_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_ENVIRONMENT_PAYS | RLHF_ENVIRONMENT_TASKS,
    .state_size = sizeof(struct rlhf__openenv_state),
    .tools = tools,
    .reset = reset,
    .step = step,
    .poll = later,
    .finish = finish,
    .close = close_all,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ENVIRONMENT,
    .id = "org.rlhf-host.env_http",
    .version = RLHF_SDK_VERSION,
    .summary = "an environment that a service plays, by HTTP or OpenEnv's WebSocket",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
    .why_unused = why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
