// play.c: `rlhf-host play`: plays one episode of an environment, with a person or a script in place
// of the policy. Each line of the input is a turn.
#include "prompt/prompt.h"

#include "base/json.h"
#include "cmd/command_setup.h"
#include "cmd/commands.h"
#include "config/config.h"
#include "data/dataset.h"
#include "episode/call.h"
#include "episode/playing.h"
#include "prompt/play_input.h"
#include "prompt/play_reading.h"
#include "prompt/play_show.h"
#include "sample/rewards.h"

#include <stdlib.h>
#include <string.h>

struct options {
    const char *environment, *prompts, *policy, *script;
    struct rlhf__chat_choice chat;
    int64_t row, turns, seed, max_mib;
    int32_t json;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--env", environment, "X.so[:k=v,..]", "the environment"),
    RLHF__FLAG_S(O, "--prompts", prompts, "FILE", "rows that episodes begin with: .jsonl or .txt"),
    RLHF__FLAG_I(O, "--row", row, "N", 0, INT64_MAX / 2, "which of them, from 0 [0]"),
    RLHF__FLAG_I(O, "--turns", turns, "N", 1, 65535, "turns at most [episodes.turns: 8]"),
    RLHF__FLAG_S(
        O, "--policy", policy, "DIR",
        "also show what this model, or GGUF file, would read, with its template and tokens"),
    RLHF__CHAT_FLAGS(O),
    RLHF__FLAG_S(O, "--script", script, "FILE", "turns, one a line [standard input]"),
    RLHF__FLAG_I(O, "--seed", seed, "S", 0, INT64_MAX,
                 "the episode is the first of a run with this run.seed [1]"),
    RLHF__FLAG_I(O, "--max-mib", max_mib, "N", 1, 1 << 20,
                 "MiB of memory that the rows may take [1024]"),
    RLHF__FLAG_SW(O, "--json", json, "one JSON object a line: tools, each turn, and the end"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

struct game {
    const struct options *o;
    const struct rlhf__env *env;
    struct rlhf__instance *environment;
    struct rlhf__dataset *rows; // NULL without prompts
    struct rlhf__play_reading reading;
    struct rlhf__play_show show;
    struct rlhf__episode episode;
    struct rlhf__play_input input;
    double timeout_s; // rewards.timeout_s
};

// ---- the row ----

static rlhf_status check_row(const struct game *g, const struct rlhf__data_row *row,
                             struct rlhf__error *err) {
    const rlhf_environment_ops *ops = &g->environment->plugin->ops.environment;
    char where[512];
    if (!ops->check_row) return RLHF_OK;
    struct rlhf__tails tails = {.n = 0};
    const struct rlhf__buf *text = &g->episode.text;
    rlhf_row_in in = {
        .held_out = 1, .meta = row->meta, .prompt = {rlhf__buf_text(text), text->len}};
    RLHF__LEND(rlhf_row_in, &in, g->environment->plugin->abi_minor, &tails);
    const struct rlhf__call call = rlhf__call_begin(g->environment, "check_row()");
    const rlhf_status st =
        rlhf__call_wrote(&call, &tails, ops->check_row(g->environment->self, &in), err);
    if (st == RLHF_OK) return st;
    rlhf__dataset_where(g->rows, 0, where, sizeof where);
    return rlhf__error_context(err, "%s", where);
}

static rlhf_status take_messages(const struct rlhf__data_row *row, struct rlhf__buf *text,
                                 struct rlhf__error *err) {
    struct rlhf__messages m = {0};
    json_t *held = NULL;
    rlhf_status st = rlhf__data_row_messages(row, &held, &m, err);
    if (st == RLHF_OK) rlhf__messages_text(&m, text);
    rlhf__messages_finish(&m);
    json_decref(held);
    return st == RLHF_OK ? rlhf__buf_ok(text, err) : st;
}

// Read the data row, and give its prompt to the episode.
static rlhf_status open_row(struct game *g, const struct rlhf__loading *loading,
                            struct rlhf__error *err) {
    const struct options *o = g->o;
    const struct rlhf__dataset_opts d = {.paths = &o->prompts,
                                         .n_paths = 1,
                                         .setting = "--prompts",
                                         .want = RLHF__FIELD_BIT(RLHF__FIELD_PROMPT) |
                                                 RLHF__FIELD_BIT(RLHF__FIELD_TEXT) |
                                                 RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES),
                                         .line_field = RLHF__FIELD_PROMPT,
                                         .keep_meta = 1,
                                         .prompts = 1,
                                         .skip = o->row,
                                         .limit = 1,
                                         .loading = loading};
    if (!o->prompts) return RLHF_OK;
    RLHF_TRY(rlhf__dataset_open(&d, &g->rows, err));
    const struct rlhf__data_row row = rlhf__dataset_row(g->rows, 0);
    const rlhf_str text = row.text[RLHF__FIELD_PROMPT].ptr ? row.text[RLHF__FIELD_PROMPT]
                                                           : row.text[RLHF__FIELD_TEXT];
    if (row.messages.ptr)
        RLHF_TRY(take_messages(&row, &g->episode.text, err));
    else
        rlhf__buf_put(&g->episode.text, text.ptr, (size_t)text.len);
    if (!rlhf__dataset_is_lines(g->rows)) g->episode.meta = row.meta;
    RLHF_TRY(rlhf__buf_ok(&g->episode.text, err));
    return check_row(g, &row, err);
}

// ---- turns ----

static rlhf_status call(struct game *g, int function, struct rlhf__error *err) {
    const struct rlhf__episode_call c = {
        .environment = g->environment, .timeout_s = g->timeout_s, .function = function};
    return rlhf__episode_call_now(c, &g->episode, err);
}

// Replace a turn "/call NAME {...}" with a tool call in the form that models write.
static rlhf_status write_call(struct game *g, struct rlhf__error *err) {
    static const char word[] = "/call ";
    struct rlhf__buf *text = &g->episode.text, call = RLHF__BUF_INIT;
    const char *typed = rlhf__buf_text(text), *name = typed + sizeof word - 1;
    if (strncmp(typed, word, sizeof word - 1) != 0) return RLHF_OK;
    const size_t n = strcspn(name, " ");
    const char *arguments = name + n + strspn(name + n, " ");
    rlhf__buf_printf(&call, "<tool_call>\n{\"name\": ");
    rlhf__json_write_string(&call, name, n);
    rlhf__buf_printf(&call, ", \"arguments\": %s}\n</tool_call>", *arguments ? arguments : "{}");
    rlhf__buf_clear(text);
    rlhf__buf_put(text, rlhf__buf_text(&call), call.len);
    rlhf__buf_finish(&call);
    return rlhf__buf_ok(text, err);
}

// Find the tool calls of the turn.
static rlhf_status read_calls(struct game *g, struct rlhf__error *err) {
    struct rlhf__episode_tools tools = g->reading.tools; // the list is borrowed
    struct rlhf__episode *e = &g->episode;
    if (!tools.list) return RLHF_OK;
    if (strncmp(rlhf__buf_text(&e->text), "/call ", 6) == 0) tools.form = RLHF__TOOL_FORM_HERMES;
    RLHF_TRY(write_call(g, err));
    const rlhf_str turn = {rlhf__buf_text(&e->text), e->text.len};
    return rlhf__episode_tools_read(&tools, e, turn, err);
}

// Let the environment answer the turn. If a tool call is invalid, the host answers instead.
static rlhf_status step(struct game *g, struct rlhf__error *err) {
    RLHF_TRY(read_calls(g, err));
    return g->episode.calls.faults ? rlhf__episode_tools_refuse(&g->episode, err)
                                   : call(g, RLHF__CALL_STEP, err);
}

static rlhf_status say(struct game *g, struct rlhf__error *err) {
    struct rlhf__episode *e = &g->episode;
    if (e->end == RLHF_EPISODE_OPEN) RLHF_TRY(rlhf__play_read(&g->reading, e, err));
    rlhf__play_show_said(&g->show, e);
    return RLHF_OK;
}

static void show_tools(const struct game *g) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (g->reading.tools.list) rlhf__json_write(&text, g->reading.tools.list, 0);
    rlhf__play_show_tools(&g->show, text.data);
    rlhf__buf_finish(&text);
}

static rlhf_status play(struct game *g, struct rlhf__error *err) {
    struct rlhf__episode *e = &g->episode;
    show_tools(g);
    rlhf__play_show_prompt(&g->show, (rlhf_str){rlhf__buf_text(&e->text), e->text.len});
    RLHF_TRY(call(g, RLHF__CALL_RESET, err));
    RLHF_TRY(say(g, err));
    while (e->end == RLHF_EPISODE_OPEN) {
        RLHF_TRY(rlhf__play_input_turn(&g->input, e->turns + 1, &e->text, err));
        if (g->input.ended) break;
        e->turns++;
        RLHF_TRY(step(g, err));
        if (e->end == RLHF_EPISODE_OPEN && e->turns == g->o->turns) e->end = RLHF_EPISODE_TURNS;
        RLHF_TRY(say(g, err));
    }
    if (!g->input.ended) RLHF_TRY(call(g, RLHF__CALL_FINISH, err));
    rlhf__play_show_end(&g->show, e, g->input.ended);
    return RLHF_OK;
}

// ---- set-up ----

static rlhf_status open_environment(struct game *g, struct rlhf__command_setup *w,
                                    struct rlhf__config *c, struct rlhf__error *err) {
    const struct rlhf__plugin *plugin;
    const struct rlhf__config_request req = {
        .dirs = g->env->dirs, .default_algo = "ppo.so", .environment = g->o->environment};
    RLHF_TRY(rlhf__config_load(&req, c, err));
    RLHF_TRY(rlhf__config_resolve_environment(c, w->plugins, &plugin, err));
    RLHF_TRY(rlhf__rewards_offer_limits(c, &w->session.services, &w->session.limits, err));
    g->timeout_s = c->mixing.timeout_s;
    return rlhf__playing_instance_open(plugin, &w->session.services, &c->environment, "environment",
                                       &g->environment, err);
}

static rlhf_status start(struct game *g, struct rlhf__command_setup *w, struct rlhf__error *err) {
    const struct options *o = g->o;
    const struct rlhf__loading loading = rlhf__command_setup_loading(w, o->max_mib);
    const rlhf_environment_ops *ops = &g->environment->plugin->ops.environment;
    const struct rlhf__play_policy policy = {.env = g->env,
                                             .environment = g->environment,
                                             .dir = o->policy,
                                             .chat = &o->chat,
                                             .prompts = o->prompts,
                                             .row = o->row,
                                             .turns = o->turns,
                                             .loading = &loading};
    if (!o->prompts && !(ops->flags & RLHF_ENVIRONMENT_TASKS))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s states no tasks of its own, so it needs prompts: --prompts FILE",
                          g->environment->plugin->file);
    RLHF_TRY(rlhf__episode_init(&g->episode, (int32_t)o->turns, ops->state_size, err));
    g->episode.seed = rlhf__episode_seed((uint64_t)o->seed, "environment", 0);
    RLHF_TRY(open_row(g, &loading, err));
    RLHF_TRY(rlhf__play_reading_open(&g->reading, &policy, err));
    g->show = (struct rlhf__play_show){.tok = g->reading.tok, .json = o->json};
    return rlhf__play_input_open(&g->input, g->env, o->script, o->json, err);
}

static void finish(struct game *g) {
    struct rlhf__episode *e = &g->episode;
    if (g->environment) rlhf__episode_close(g->environment, &e, 1);
    rlhf__episode_finish(e);
    rlhf__play_reading_finish(&g->reading);
    rlhf__dataset_close(g->rows);
    rlhf__play_input_close(&g->input);
    rlhf__instance_close(g->environment);
}

static rlhf_status run(const struct rlhf__env *env, const struct options *o,
                       struct rlhf__error *err) {
    const struct rlhf__command_setup_flags at = RLHF__COMMAND_SETUP_DEFAULTS;
    const struct rlhf__flag_idle idle[] = {{"--row", o->row > 0 && !o->prompts}};
    struct rlhf__command_setup w = {0};
    struct rlhf__config config = {0};
    struct game g = {.o = o, .env = env};
    if (!o->environment)
        return rlhf__fail(err, RLHF_E_INVALID, "play: name the environment: --env X.so");
    RLHF_TRY(rlhf__flags_idle(idle, 1, "play", "without --prompts", err));
    if (!o->policy)
        RLHF_TRY(rlhf__command_setup_chat_idle("play", &o->chat, "without --policy", err));
    rlhf_status st = rlhf__command_setup_init(&w, env, &at, RLHF__PROGRESS_OFF, err);
    if (st == RLHF_OK) st = rlhf__command_setup_start(&w, o->seed, err);
    if (st == RLHF_OK) st = open_environment(&g, &w, &config, err);
    if (st == RLHF_OK) st = start(&g, &w, err);
    if (st == RLHF_OK) st = play(&g, err);
    finish(&g);
    rlhf__command_setup_finish(&w);
    rlhf__config_finish(&config);
    return st;
}

int rlhf__cmd_play(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.turns = 8, .seed = 1, .max_mib = 1024};
    if (rlhf__flags_helped(flags, N_FLAGS, "rlhf-host play --env X.so[:key=value,..] [flags]", argc,
                           argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK) st = run(env, &o, &err);
    return rlhf__cmd_end(env, st, &err);
}
