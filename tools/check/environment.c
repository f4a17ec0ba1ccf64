// environment.c: tests an environment. Plays the same episodes, with many kinds of turns, in two
// orders, and checks that the environment's texts and rewards are the same in both.
#include "check/cases.h"

#include "base/json.h"
#include "check/episode_game.h"
#include "check/guard.h"

#include <stdlib.h>
#include <string.h>

static const rlhf_environment_ops *ops_of(const struct rlhf__check *c) {
    return &c->plugin->ops.environment;
}

// ---- whole games ----

// Plays these episodes to their end, or for RLHF__GAME_TURNS turns.
static rlhf_status play(struct rlhf__game *g, const uint32_t *which, uint32_t n, int32_t side,
                        int elsewhere) {
    struct rlhf__check *c = g->probe.check;
    rlhf_status st = rlhf__game_ask(g, RLHF__GAME_RESET, which, n, side, elsewhere);
    for (int turn = 0; st == RLHF_OK && turn < RLHF__GAME_TURNS; turn++) {
        uint32_t open[RLHF__GAME_EPISODES], left = 0;
        for (uint32_t i = 0; i < n; i++)
            if (g->of[which[i]].open) open[left++] = which[i];
        st = rlhf__game_ask(g, RLHF__GAME_STEP, open, left, side, elsewhere);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!g->of[which[i]].end) g->of[which[i]].end = RLHF_EPISODE_TURNS;
    uint32_t ended[RLHF__GAME_EPISODES], left = 0; // a failed episode is only closed
    for (uint32_t i = 0; i < n; i++)
        if (!g->of[which[i]].bad) ended[left++] = which[i];
    if (st == RLHF_OK) st = rlhf__game_ask(g, RLHF__GAME_FINISH, ended, left, side, elsewhere);
    for (uint32_t i = 0; i < n && ops_of(c)->close; i++) {
        rlhf_episode_close one = {.n = 1, .state = &g->of[which[i]].state};
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_episode_close, &one, c->plugin->abi_minor, &tails);
        rlhf__child_log_inside(c->log, "close()");
        ops_of(c)->close(g->probe.self, &one);
        rlhf__guard_kept(&tails, c->log);
        rlhf__child_log_inside(c->log, NULL);
    }
    return st;
}

// Returns a value for an argument of this schema. New reference.
static json_t *value_for(const json_t *schema) {
    const char *type = json_string_value(json_object_get(schema, "type"));
    const json_t *list = json_object_get(schema, "enum");
    if (json_array_size(list)) return json_deep_copy(json_array_get(list, 0));
    if (!type || strcmp(type, "string") == 0) return json_string("2+3");
    if (strcmp(type, "boolean") == 0) return json_true();
    if (strcmp(type, "array") == 0) return json_array();
    if (strcmp(type, "object") == 0) return json_object();
    return json_integer(1);
}

// Makes a call of a tool, with all arguments that the tool requires.
static void make_call(struct rlhf__game *g, const json_t *function) {
    const json_t *parameters = json_object_get(function, "parameters");
    const json_t *required = json_object_get(parameters, "required");
    json_t *arguments = json_object();
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *key = json_string_value(json_array_get(required, i));
        if (key)
            json_object_set_new(
                arguments, key,
                value_for(json_object_get(json_object_get(parameters, "properties"), key)));
    }
    char *text = json_dumps(arguments, 0);
    snprintf(g->tool, sizeof g->tool, "%s", json_string_value(json_object_get(function, "name")));
    snprintf(g->arguments, sizeof g->arguments, "%s", text ? text : "{}");
    free(text);
    json_decref(arguments);
}

// Checks the list of tools, and prepares a call of the first tool. Returns 0 if the list is not
// valid.
static int check_tools(struct rlhf__game *g) {
    struct rlhf__check *c = g->probe.check;
    const rlhf_environment_ops *ops = ops_of(c);
    if (!ops->tools) return 1;
    rlhf__child_log_inside(c->log, "tools()");
    const char *text = ops->tools(g->probe.self);
    rlhf__child_log_inside(c->log, NULL);
    json_t *list = text ? rlhf__json_decode(text, strlen(text), 0, NULL) : json_array();
    int good = json_is_array(list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *f = json_object_get(json_array_get(list, i), "function");
        const char *name = json_string_value(json_object_get(f, "name"));
        good = good && name;
        if (name && i == 0) make_call(g, f);
    }
    if (!good)
        rlhf__child_log_found(c->log, RLHF__CHECK_EPISODE_TOOLS,
                              "tools() gives \"%.80s\", which is not a list of tools",
                              text ? text : "");
    json_decref(list);
    return good;
}

// Returns 1 if the environment accepts the data rows. If not, reports that.
static int rows_suit(struct rlhf__game *g) {
    struct rlhf__check *c = g->probe.check;
    struct rlhf__error err;
    for (size_t i = 0; ops_of(c)->check_row && i < RLHF__GAME_EPISODES; i++) {
        rlhf_row_in row = {.index = (int64_t)i,
                           .meta = {g->of[i].row, strlen(g->of[i].row)},
                           .prompt = {"2+3=", 4}};
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_row_in, &row, c->plugin->abi_minor, &tails);
        rlhf__probe_begin(&g->probe, "check_row()");
        const rlhf_status st = ops_of(c)->check_row(g->probe.self, &row);
        rlhf__guard_kept(&tails, c->log);
        if (rlhf__probe_end(&g->probe, st, &err) == RLHF_OK) continue;
        rlhf__child_log_fact(c->log, "it refuses data rows: %s (rows of your own: --rows FILE)",
                             err.text);
        return 0;
    }
    return 1;
}

static void compare(struct rlhf__check *c, const struct rlhf__game *a, uint32_t i,
                    const struct rlhf__game *b, uint32_t j, const char *how) {
    const struct rlhf__game_episode *x = &a->of[i], *y = &b->of[j];
    if (x->bad || y->bad || strcmp(x->told, y->told) == 0) return;
    size_t at = 0;
    while (x->told[at] == y->told[at])
        at++;
    while (at > 0 && x->told[at - 1] != '\n')
        at--;
    rlhf__child_log_found(c->log, RLHF__CHECK_EPISODE_REPEAT,
                          "episode %u gave \"%.*s\", and \"%.*s\" %s", i,
                          (int)strcspn(x->told + at, "\n"), x->told + at,
                          (int)strcspn(y->told + at, "\n"), y->told + at, how);
}

// Episodes 0 and 1 have the same seed, and begin with the same task.
static void compare_task(struct rlhf__check *c, const struct rlhf__game *g) {
    const struct rlhf__game_episode *x = &g->of[0], *y = &g->of[1];
    if (x->bad || y->bad || (x->n_reset == y->n_reset && memcmp(x->told, y->told, x->n_reset) == 0))
        return;
    rlhf__child_log_found(c->log, RLHF__CHECK_EPISODE_SEED,
                          "episodes 0 and 1 have the same seed and data row, but begin with "
                          "\"%.*s\" and \"%.*s\"",
                          (int)strcspn(x->told, "\n"), x->told, (int)strcspn(y->told, "\n"),
                          y->told);
}

// Plays all episodes together, with one call of each function for all of them. Then plays them one
// after the other on another thread, the last episode first.
static int try_episodes(struct rlhf__check *c, int32_t step) {
    static const uint32_t all[RLHF__GAME_EPISODES] = {0, 1, 2, 3, 4};
    const int varies = (ops_of(c)->flags & RLHF_ENVIRONMENT_VARIES) != 0;
    struct rlhf__game a, b;
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "%d episodes of %d turns, all in each call", RLHF__GAME_EPISODES,
                          RLHF__GAME_TURNS);
    rlhf_status st = rlhf__game_open(c, &a, RLHF__GUARD_END);
    if (st == RLHF_OK && check_tools(&a) && rows_suit(&a)) {
        st = play(&a, all, RLHF__GAME_EPISODES, RLHF__GUARD_END, 0);
        rlhf__child_log_doing(c->log, "the same episodes one after the other, the last one first");
        const rlhf_status other = rlhf__game_open(c, &b, RLHF__GUARD_BEGIN);
        memcpy(b.tool, a.tool, sizeof b.tool);
        memcpy(b.arguments, a.arguments, sizeof b.arguments);
        for (uint32_t i = RLHF__GAME_EPISODES; other == RLHF_OK && st == RLHF_OK && i-- > 0;)
            st = play(&b, &all[i], 1, RLHF__GUARD_BEGIN, 1);
        for (uint32_t i = 0;
             st == RLHF_OK && other == RLHF_OK && !varies && i < RLHF__GAME_EPISODES; i++)
            compare(c, &a, i, &b, i, "when it was played alone, on another thread");
        if (st == RLHF_OK) compare_task(c, &a);
        rlhf__game_finish(&b);
    }
    rlhf__game_finish(&a);
    return 1;
}

// Lets allocation `step` of a game fail.
static int try_memory(struct rlhf__check *c, int32_t step) {
    static const uint32_t two[] = {0, 1};
    struct rlhf__game g;
    int more = 0;
    if (step >= 200) return 0;
    rlhf__child_log_doing(c->log, "two episodes, without memory for allocation %d", step + 1);
    if (rlhf__game_open(c, &g, RLHF__GUARD_END) == RLHF_OK && rows_suit(&g)) {
        const int64_t before = rlhf__probe_allocs(&g.probe);
        rlhf__probe_fail_alloc(&g.probe, step + 1);
        play(&g, two, 2, RLHF__GUARD_END, 0);
        more = rlhf__probe_allocs(&g.probe) - before > step;
    }
    rlhf__game_finish(&g);
    return more;
}

const struct rlhf__check_case rlhf__environment_cases[] = {
    {"episodes", RLHF__CHECK_CRASH, 0, 0, try_episodes},
    {"episodes-memory", RLHF__CHECK_MEMORY, 0, 0, try_memory},
    {NULL, 0, 0, 0, NULL},
};
