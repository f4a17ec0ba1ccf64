// serve.c: see serve.h.
#include "worker/serve.h"

#include "plugin/load.h"
#include "supervise/cgroup.h"
#include "supervise/confine.h"
#include "supervise/last_words.h"
#include "supervise/warden.h"
#include "wire/describe.h"
#include "wire/fence.h"
#include "worker/episode_serve.h"
#include "worker/programs.h"
#include "worker/sink_serve.h"
#include "worker/table_services.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct serving {
    const struct rlhf__env *env;
    int32_t network;
    const char *writes; // the directory in which it may write; NULL = none
    double timeout_s;   // limit of a call, 0 = none
    unsigned confined;
    struct rlhf__plugins *plugins;
    const struct rlhf__plugin *plugin; // NULL until it is open
    void *config, *self;               // config: NULL until there is an instance
    struct rlhf__strings strings;
    struct rlhf__worker_host table;
    struct rlhf__fence fence;
    struct rlhf__places places; // of an environment
    struct rlhf__buf in, out, state, results;
};

// ---- answers ----

static void answer(struct serving *s, rlhf_status st, const char *why) {
    rlhf__wire_begin(&s->out, RLHF__ASK_ANSWER);
    rlhf__wire_u32(&s->out, (uint32_t)st);
    rlhf__wire_puts(&s->out, st == RLHF_OK ? "" : why);
}

static char *text_of(struct rlhf__wire *in) {
    const rlhf_str s = rlhf__wire_get_text(in);
    return strndup(s.ptr, (size_t)s.len);
}

// Answer a request that a correct host does not send.
static void not_now(struct serving *s) {
    answer(s, RLHF_E_INTERNAL, "the worker got a request that it cannot serve now");
}

// Check what was lent to the plugin in a call that returned `st`.
static rlhf_status kept(const struct serving *s, struct rlhf__tails *tails, rlhf_status st) {
    const rlhf_host *host = &s->table.api;
    char why[192];
    return rlhf__tails_end(tails, why, sizeof why) ? host->fail(host, RLHF_E_INTERNAL, why) : st;
}

// ---- the plugin ----

// Report the confinement that is in force. This must happen before the file is opened, because
// constructors in the file could forge the report.
static void ask_confine(struct serving *s, struct rlhf__wire *in) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const uint64_t memory_mib = rlhf__wire_get_u64(in);
    s->timeout_s = rlhf__wire_get_f64(in);
    s->confined |= rlhf__confine_time(s->timeout_s);
    if (memory_mib) s->confined |= rlhf__confine_memory(memory_mib << 20, s->writes != NULL);
    s->fence.limited = (s->confined & RLHF__CONFINED_MEMORY) != 0;
    rlhf__confined_text(s->confined, memory_mib, &text);
    answer(s, RLHF_OK, "");
    rlhf__wire_puts(&s->out, rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
}

static void ask_open(struct serving *s, struct rlhf__wire *in) {
    struct rlhf__error err = {0, ""};
    char *path = text_of(in), *id = text_of(in), *asker = text_of(in);
    const int32_t kind = (int32_t)rlhf__wire_get_u32(in);
    rlhf_status st = s->plugins || in->bad || !path || !id || !asker
                         ? rlhf__fail(&err, RLHF_E_INTERNAL, "the worker cannot open it")
                         : rlhf__plugins_open(s->env->dirs, &s->plugins, &err);
    if (st == RLHF_OK)
        st = rlhf__plugin_open_trusted(s->plugins, path, id, kind, asker, &s->plugin, &err);
    answer(s, st, err.text);
    if (st == RLHF_OK) rlhf__table_for(&s->table, s->plugin->abi_minor);
    if (st == RLHF_OK) rlhf__description_put(s->plugin, &s->out);
    free(path);
    free(id);
    free(asker);
}

static int is_environment(const struct serving *s) {
    return s->plugin && s->plugin->desc.kind == RLHF_KIND_ENVIRONMENT;
}

// Make the plugin's config from options in JSON. The plugin's own option table checks them again.
static rlhf_status make_config(struct serving *s, rlhf_str options, struct rlhf__strings *strings,
                               void **config, struct rlhf__error *err) {
    const struct rlhf__origin from = {"the host", "", NULL, 0, 0};
    json_t *v = NULL;
    RLHF_TRY(rlhf__json_parse("the options", options.ptr, (size_t)options.len, &v, err));
    const rlhf_status st = rlhf__opts_new(&s->plugin->table, s->plugin->desc.config_size, v, &from,
                                          strings, config, err);
    json_decref(v);
    return st;
}

static void ask_why_unused(struct serving *s, struct rlhf__wire *in) {
    struct rlhf__error err = {0, ""};
    struct rlhf__strings strings = {0};
    void *config = NULL;
    char *key = text_of(in);
    const rlhf_status st = key ? make_config(s, rlhf__wire_get_text(in), &strings, &config, &err)
                               : rlhf__fail(&err, RLHF_E_NOMEM, "out of memory");
    rlhf_option_in of = {.config = config, .key = key};
    RLHF__PASS(rlhf_option_in, &of, s->plugin->abi_minor);
    const char *why =
        st == RLHF_OK && s->plugin->desc.why_unused ? s->plugin->desc.why_unused(&of) : NULL;
    answer(s, st, err.text);
    rlhf__wire_u32(&s->out, why != NULL);
    rlhf__wire_puts(&s->out, why);
    free(config);
    rlhf__strings_finish(&strings);
    free(key);
}

static void ask_create(struct serving *s, struct rlhf__wire *in) {
    struct rlhf__error err = {0, ""};
    struct rlhf__worker_host *t = &s->table;
    t->seed = rlhf__wire_get_u64(in);
    t->owner = text_of(in);
    t->id = strdup(s->plugin->desc.id);
    t->services = rlhf__wire_get_u32(in);
    t->limits.retries = (int32_t)rlhf__wire_get_u32(in);
    t->limits.timeout_s = rlhf__wire_get_f64(in);
    t->limits.memory_bytes = rlhf__wire_get_u64(in);
    const rlhf_str options = rlhf__wire_get_text(in);
    rlhf_status st = in->bad || !t->owner || !t->id
                         ? rlhf__fail(&err, RLHF_E_NOMEM, "out of memory")
                         : make_config(s, options, &s->strings, &s->config, &err);
    s->self = s->config;
    if (st == RLHF_OK && s->plugin->desc.create) {
        s->self = NULL;
        st = s->plugin->desc.create(&t->api, s->config, &s->self);
    }
    answer(s, st, err.text);
    if (!is_environment(s)) return;
    s->places = (struct rlhf__places){.ops = &s->plugin->ops.environment,
                                      .self = s->self,
                                      .table = &s->table,
                                      .abi_minor = s->plugin->abi_minor};
    if (st == RLHF_OK) rlhf__places_declare(&s->places, &s->out);
}

static void ask_check_row(struct serving *s, struct rlhf__wire *in) {
    rlhf_status (*const check)(void *, const rlhf_row_in *) =
        is_environment(s) ? s->plugin->ops.environment.check_row : s->plugin->ops.reward.check_row;
    rlhf_row_in row = {0};
    struct rlhf__tails tails = {.n = 0};
    row.held_out = (int32_t)rlhf__wire_get_u32(in);
    row.index = (int64_t)rlhf__wire_get_u64(in);
    row.meta = rlhf__wire_get_text(in);
    row.prompt = rlhf__wire_get_text(in);
    RLHF__LEND(rlhf_row_in, &row, s->plugin->abi_minor, &tails);
    answer(s, check && !in->bad ? kept(s, &tails, check(s->self, &row)) : RLHF_OK, "");
}

// ---- episodes ----

static void ask_play(struct serving *s, struct rlhf__wire *in) {
    struct rlhf__error err = {0, ""};
    rlhf__buf_clear(&s->results);
    const rlhf_status st = rlhf__places_play(&s->places, in, &s->results, &err);
    answer(s, st, err.text);
    if (st == RLHF_OK) rlhf__buf_put(&s->out, s->results.data, s->results.len);
}

// ---- a sink ----

static int is_sink(const struct serving *s) {
    return s->plugin && s->plugin->desc.kind == RLHF_KIND_SINK;
}

static void ask_sink(struct serving *s, struct rlhf__wire *in) {
    struct rlhf__error err = {0, ""};
    int64_t from_phase = 0;
    const rlhf_status st = rlhf__sink_serve(s->plugin, s->self, in, &from_phase, &err);
    answer(s, st, err.text);
    if (st == RLHF_OK) rlhf__wire_u64(&s->out, (uint64_t)from_phase);
}

// ---- state ----

struct stream {
    rlhf_ostream api; // first member: write() casts it back
    struct rlhf__buf *out;
};

static rlhf_status stream_write(const rlhf_ostream *api, const void *bytes, uint64_t n) {
    const struct stream *k = (const struct stream *)(const void *)api;
    if (n > RLHF__WIRE_MAX) return RLHF_E_NOMEM;
    rlhf__buf_put(k->out, bytes, (size_t)n);
    return k->out->bad ? RLHF_E_NOMEM : RLHF_OK;
}

static rlhf_status save(struct serving *s) {
    struct stream stream = {{.write = stream_write}, &s->state};
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_ostream, &stream.api, s->plugin->abi_minor, &tails);
    rlhf__buf_clear(&s->state);
    const rlhf_status st = s->plugin->desc.save(s->self, &stream.api);
    return kept(s, &tails, st);
}

static void ask_save(struct serving *s) {
    const rlhf_status st = save(s);
    answer(s, st, "");
    rlhf__wire_text(&s->out, s->state.data, s->state.len);
}

struct source {
    rlhf_istream api; // first member: read() casts it back
    const char **at;
    const char *end;
};

static rlhf_status source_read(const rlhf_istream *api, void *bytes, uint64_t n) {
    const struct source *k = (const struct source *)(const void *)api;
    if (n > (uint64_t)(k->end - *k->at)) return RLHF_E_IO;
    if (n) memcpy(bytes, *k->at, (size_t)n);
    *k->at += n;
    return RLHF_OK;
}

static uint64_t source_left(const rlhf_istream *api) {
    const struct source *k = (const struct source *)(const void *)api;
    return (uint64_t)(k->end - *k->at);
}

static void ask_load(struct serving *s, struct rlhf__wire *in) {
    const uint32_t version = rlhf__wire_get_u32(in);
    const rlhf_str bytes = rlhf__wire_get_text(in);
    const char *at = bytes.ptr;
    struct source source = {{.read = source_read, .left = source_left}, &at, at + bytes.len};
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_istream, &source.api, s->plugin->abi_minor, &tails);
    const rlhf_status st = kept(s, &tails, s->plugin->desc.load(s->self, &source.api, version));
    answer(s, st, "");
    rlhf__wire_u64(&s->out, (uint64_t)(at - bytes.ptr));
}

// ---- scoring ----

static rlhf_status score(struct serving *s, uint64_t bytes, struct rlhf__error *err) {
    rlhf_reward_in in;
    rlhf_reward_out out;
    rlhf_str *texts;
    int has_token;
    if (rlhf__fence_input(&s->fence, bytes) != 0 ||
        rlhf__batch_get(s->fence.input, bytes, &in, &has_token, &texts) != 0)
        return rlhf__fail(err, RLHF_E_INTERNAL, "the worker cannot read the batch");
    const uint64_t total = (uint64_t)in.offset[in.n];
    rlhf_status st = RLHF_OK;
    if (rlhf__fence_output(&s->fence, in.n, total, has_token, &out) != 0)
        st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the results of %u rows", in.n);
    if (st == RLHF_OK) {
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_reward_in, &in, s->plugin->abi_minor, &tails);
        RLHF__LEND(rlhf_reward_out, &out, s->plugin->abi_minor, &tails);
        st = kept(s, &tails, s->plugin->ops.reward.score(s->self, &in, &out));
        const unsigned before = rlhf__fence_before(&s->fence);
        if (before)
            st = rlhf__fail(err, RLHF_E_INTERNAL, "it wrote before the start of %s",
                            rlhf__fence_name(before));
    }
    free(texts);
    return st;
}

static void ask_score(struct serving *s, struct rlhf__wire *in) {
    struct rlhf__error err = {0, ""};
    const uint64_t bytes = rlhf__wire_get_u64(in);
    const rlhf_status st = score(s, bytes, &err);
    const int kept = st == RLHF_OK && s->plugin->desc.state_version && save(s) == RLHF_OK;
    answer(s, st, err.text);
    rlhf__wire_u32(&s->out, kept != 0);
    rlhf__wire_text(&s->out, s->state.data, kept ? s->state.len : 0);
}

// ---- the life ----

static void serve_one(struct serving *s, struct rlhf__wire *in) {
    const int open = s->plugin != NULL, alive = open && s->config != NULL;
    const int keeps = alive && s->plugin->desc.state_version, plays = alive && is_environment(s);
    const int sinks = alive && is_sink(s);
    if (in->kind == RLHF__ASK_CONFINE && !s->plugins)
        ask_confine(s, in);
    else if (in->kind == RLHF__ASK_OPEN)
        ask_open(s, in);
    else if (in->kind == RLHF__ASK_WHY_UNUSED && open)
        ask_why_unused(s, in);
    else if (in->kind == RLHF__ASK_CREATE && open && !s->config)
        ask_create(s, in);
    else if (in->kind == RLHF__ASK_SINK && sinks)
        ask_sink(s, in);
    else if (in->kind == RLHF__ASK_CHECK_ROW && alive && !sinks)
        ask_check_row(s, in);
    else if (in->kind == RLHF__ASK_PLAY && plays)
        ask_play(s, in);
    else if (in->kind == RLHF__ASK_SCORE && alive && !plays && !sinks)
        ask_score(s, in);
    else if (in->kind == RLHF__ASK_SAVE && keeps)
        ask_save(s);
    else if (in->kind == RLHF__ASK_LOAD && keeps)
        ask_load(s, in);
    else
        not_now(s);
}

// The plugin's function that a request is about. For an episode's call it is the whole request.
static const char *function_of(uint32_t ask) {
    static const char *const names[] = {
        [RLHF__ASK_CREATE] = "create()",   [RLHF__ASK_CHECK_ROW] = "check_row()",
        [RLHF__ASK_SCORE] = "score()",     [RLHF__ASK_SAVE] = "save()",
        [RLHF__ASK_LOAD] = "load()",       [RLHF__ASK_DESTROY] = "destroy()",
        [RLHF__ASK_PLAY] = "the episodes", [RLHF__ASK_WHY_UNUSED] = "why_unused()"};
    return ask < sizeof names / sizeof *names && names[ask] ? names[ask] : "the host's request";
}

// The worker process. Returns its exit status.
static int work(void *arg, unsigned spaces) {
    struct serving *s = arg;
    struct rlhf__wire in;
    if (rlhf__fence_open(&s->fence, RLHF__WORKER_INPUT, RLHF__WORKER_OUTPUT) != 0) return 1;
    rlhf__table_init(&s->table, RLHF__WORKER_CALL, s->fence.note);
    rlhf__table_services(&s->table);
    s->confined = rlhf__confine(spaces | s->confined, s->network, s->writes);
    rlhf__fence_watch(&s->fence);
    while (rlhf__wire_receive(RLHF__WORKER_ASK, &s->in, &in) == 0) {
        if (s->timeout_s > 0) rlhf__confine_time(s->timeout_s);
        const char *outer = rlhf__on_call_begin(&s->table.on_call, function_of(in.kind));
        if (in.kind == RLHF__ASK_DESTROY && s->places.ops) rlhf__places_finish(&s->places);
        if (in.kind == RLHF__ASK_DESTROY && s->self && s->config && s->plugin->desc.create &&
            s->plugin->desc.destroy)
            s->plugin->desc.destroy(s->self);
        if (in.kind == RLHF__ASK_DESTROY)
            answer(s, RLHF_OK, "");
        else
            serve_one(s, &in);
        rlhf__on_call_end(&s->table.on_call, outer);
        fflush(stdout); // so that lines which the plugin printed belong to this call
        rlhf__wire_end(&s->out);
        if (rlhf__wire_send(RLHF__WORKER_ASK, &s->out) != 0) return 1;
    }
    return 0;
}

static int is_socket(int fd) {
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode);
}

int rlhf__cmd_worker(const struct rlhf__env *env, int argc, char **argv) {
    struct serving s = {.env = env};
    if (argc > 2 && strcmp(argv[2], RLHF__PROGRAM_WORD) == 0)
        return rlhf__launched(env, argc, argv);
    const int numbered = argc == 5 && is_socket(RLHF__WORKER_ASK) && is_socket(RLHF__WORKER_CALL);
    if (!numbered) {
        rlhf__log_error(env->log, "worker: the host starts its workers itself; see "
                                  "docs/rewards-outside.md");
        return 2;
    }
    rlhf__ward_close_others();
    s.network = strcmp(argv[2], "network") == 0;
    s.writes = argv[4][0] ? argv[4] : NULL;
    rlhf__last_words_silence();
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    // before the first fork, so that the warden is in the group
    s.confined = rlhf__cgroup_enter(argv[3]);
    const struct rlhf__warden_rules rules = {.host = strtol(argv[1], NULL, 10),
                                             .walls = 1,
                                             .network = s.network,
                                             .orders = RLHF__WARD_ORDERS,
                                             .writes = s.writes};
    rlhf__warden(&rules, work, &s);
}
