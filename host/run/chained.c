// chained.c: see chained.h.
#include "run/chained.h"

#include "config/config.h"
#include "config/config_json.h"
#include "data/prompts.h"
#include "episode/episode_metrics.h"
#include "history/digest.h"
#include "keep/chain_log.h"
#include "run/run.h"
#include "weights/file_sum.h"

#include <rlhf/draft/program.h>
#include <stdio.h>
#include <string.h>

// ---- the settings ----

// The chain stores these settings separately from those that determine the results. Some of these
// settings do not affect the results. For the others, the chain stores what affects the results:
// the digests of files and models, the arithmetic, the dtype, and the number of tokens per
// microbatch. A name that ends in '.' means the whole section.
static const char *const apart[] = {"run.dir",
                                    "run.note",
                                    "run.preset",
                                    "run.stop_after",
                                    "run.stop_on",
                                    "run.threads",
                                    "algo.plugin",
                                    "compute.",
                                    "policy.path",
                                    "policy.adapter.path",
                                    "reference.path",
                                    "models.",
                                    "data.path",
                                    "data.eval_path",
                                    "data.max_mib",
                                    "prompts.path",
                                    "sampling.slots",
                                    "batch.microbatch_tokens",
                                    "episodes.on_failure",
                                    "episodes.retries",
                                    "rewards.on_failure",
                                    "rewards.retries",
                                    "rewards.isolate",
                                    "rewards.timeout_s",
                                    "rewards.memory_mib",
                                    "rewards.workers",
                                    "rewards.overlap",
                                    "rollout.threads",
                                    "parallel.actors",
                                    "parallel.backend",
                                    "parallel.timeout_s",
                                    "early_stop.",
                                    "checkpoint.",
                                    "log.",
                                    NULL};

static int is_apart(const char *section, const char *key) {
    char path[300];
    snprintf(path, sizeof path, "%s.%s", section, key);
    for (size_t i = 0; apart[i]; i++) {
        const size_t n = strlen(apart[i]);
        if (apart[i][n - 1] == '.' ? strncmp(apart[i], path, n) == 0 : strcmp(apart[i], path) == 0)
            return 1;
    }
    return 0;
}

// Move the settings listed in `apart` from a section to the object of the same section in
// `settings`.
static void move_section(json_t *section, const char *name, json_t *settings) {
    json_t *v, *to = json_object();
    const char *key;
    void *next;
    json_object_foreach_safe(section, next, key, v) {
        if (!is_apart(name, key)) continue;
        json_object_set(to, key, v);
        json_object_del(section, key);
    }
    if (json_object_size(to) > 0) json_object_set(settings, name, to);
    json_decref(to);
}

static int is_path(const struct rlhf__plugin *plugin, const char *key) {
    rlhf_opt o;
    for (uint32_t i = 0; i < plugin->table.n; i++) {
        rlhf__opt_at(&plugin->table, i, &o);
        if (o.type == RLHF_T_PATH && strcmp(o.key, key) == 0) return 1;
    }
    return 0;
}

// Move the name of a plugin's file, and the plugin's options that are paths, out of `config`.
// Returns what was moved.
static json_t *move_plugin(json_t *config, const struct rlhf__plugin *plugin) {
    json_t *v, *to = json_object();
    const char *key;
    void *next;
    json_object_foreach_safe(config, next, key, v) {
        if (strcmp(key, "plugin") != 0 && !is_path(plugin, key)) continue;
        json_object_set(to, key, v);
        json_object_del(config, key);
    }
    return to;
}

static void move_plugins(const struct rlhf__run *r, json_t *config, json_t *settings) {
    json_t *rewards = json_object_get(config, "reward"), *judge = json_object_get(config, "judge");
    json_t *apart_of = json_array();
    for (size_t i = 0; i < json_array_size(rewards) && i < r->config->n_reward; i++)
        json_array_append_new(apart_of,
                              move_plugin(json_array_get(rewards, i), r->req->rewards[i]));
    if (json_array_size(apart_of) > 0) json_object_set(settings, "reward", apart_of);
    if (json_is_object(judge) && r->req->judge)
        json_object_set_new(settings, "judge", move_plugin(judge, r->req->judge));
    json_t *environment = json_object_get(config, "environment");
    if (json_is_object(environment) && r->req->environment)
        json_object_set_new(settings, "environment", move_plugin(environment, r->req->environment));
    if (json_object_get(config, "sink"))
        json_object_set(settings, "sink", json_object_get(config, "sink"));
    json_object_del(config, "sink");
    json_decref(apart_of);
}

static rlhf_status divide(const struct rlhf__run *r, json_t **config, json_t *settings,
                          struct rlhf__error *err) {
    const char *name;
    json_t *section;
    RLHF_TRY(rlhf__config_to_json(r->config, config, err));
    json_object_foreach(*config, name, section) if (json_is_object(section))
        move_section(section, name, settings);
    move_plugins(r, *config, settings);
    return RLHF_OK;
}

// ---- code and inputs ----

// Returns 1 if the programs that an environment runs promise what RLHF_ENVIRONMENT_FUNCTION says.
static int programs_promise(const struct rlhf__instance *open) {
    rlhf_program_use use;
    const void *table =
        open ? rlhf__plugin_extension(open->plugin, open->self, RLHF_EXT_PROGRAM) : NULL;
    return table &&
           rlhf_copy_in(&use, sizeof use, table, RLHF_SIZE_TO(rlhf_program_use, function)) == 0 &&
           use.function;
}

// Set "function" to true if the environment promises the same answers when it is played again. If
// this promise comes only from a program that the environment runs, and not from the environment's
// plugin, also set "promised" to true.
static void put_promise(const struct rlhf__run *r, json_t *one) {
    const rlhf_environment_ops *ops = &r->req->environment->ops.environment;
    const int own = (ops->flags & RLHF_ENVIRONMENT_FUNCTION) != 0;
    const int program = programs_promise(r->cast.environment);
    json_object_set_new(one, "function", json_boolean(own || program));
    if (program && !own) json_object_set_new(one, "promised", json_true());
}

// Returns the id and version of each plugin that takes part, as a new reference.
static json_t *plugins(const struct rlhf__run *r) {
    const struct rlhf__manifest m = rlhf__run_manifest(r);
    json_t *manifest = rlhf__manifest_json(&m), *out = json_array(), *p;
    size_t i, reward = 0;
    json_array_foreach(json_object_get(manifest, "plugins"), i, p) {
        const char *role = json_string_value(json_object_get(p, "role"));
        json_t *one = json_pack("{s:O, s:O, s:O}", "role", json_object_get(p, "role"), "id",
                                json_object_get(p, "id"), "version", json_object_get(p, "version"));
        if (role && strcmp(role, "reward") == 0) {
            const uint32_t flags = r->req->rewards[reward++]->ops.reward.flags;
            json_object_set_new(one, "function", json_boolean(flags & RLHF_REWARD_FUNCTION));
        }
        if (role && strcmp(role, "environment") == 0) put_promise(r, one);
        json_array_append_new(out, one);
    }
    json_decref(manifest);
    return out;
}

// Add the directory of a model whose weights the run begins with.
static rlhf_status add_start(json_t *inputs, const char *name, const char *dir, int weights,
                             struct rlhf__error *err) {
    char hex[RLHF__HEX];
    struct rlhf__file_sum sum;
    if (!dir) return RLHF_OK;
    RLHF_TRY(rlhf__sum_model(dir, 1, weights, &sum, err));
    rlhf__sha256_hex(&sum.hash, hex);
    json_object_set_new(inputs, name, json_string(hex));
    return RLHF_OK;
}

// Set the digests of the files and models that the run reads. The keys are the settings that name
// them.
static rlhf_status add_inputs(const struct rlhf__run *r, int64_t keep, json_t *inputs,
                              struct rlhf__error *err) {
    const struct rlhf__model *policy = r->cast.policy;
    char name[300];
    size_t i;
    json_t *e;
    json_array_foreach(r->inputs, i, e) {
        const char *setting = json_string_value(json_object_get(e, "setting"));
        snprintf(name, sizeof name, "%s", setting ? setting : "");
        for (int k = 2; json_object_get(inputs, name); k++) // a setting may have several inputs
            snprintf(name, sizeof name, "%.250s %d", setting, k);
        json_object_set(inputs, name, json_object_get(e, "sha256"));
    }
    // A resume reads a checkpoint, also one of phase 0.
    if (keep >= 0 || r->count.phase > 0) return RLHF_OK;
    RLHF_TRY(
        add_start(inputs, "policy", policy->dir, r->config->policy.init != RLHF__INIT_RANDOM, err));
    return add_start(inputs, "policy's adapter", policy->peft.dir, 1, err);
}

static rlhf_status make_begin(const struct rlhf__run *r, int64_t keep, json_t *config, json_t **out,
                              struct rlhf__error *err) {
    const int32_t dtype = r->session.models.dtype;
    json_t *inputs = json_object();
    const rlhf_status st = add_inputs(r, keep, inputs, err);
    *out = json_pack("{s:s, s:O, s:s, s:O, s:I, s:o, s:s}", "arithmetic",
                     rlhf__compute_arithmetic(r->session.compute, dtype), "config", config, "dtype",
                     dtype == RLHF_BF16 ? "bf16" : "f32", "inputs", inputs, "microbatch_tokens",
                     (json_int_t)r->learner.microbatch_tokens, "plugins", plugins(r), "version",
                     RLHF_SDK_VERSION);
    json_decref(inputs);
    return st;
}

rlhf_status rlhf__chained_open(struct rlhf__run *r, const struct rlhf__folder *to, int64_t keep,
                               struct rlhf__error *err) {
    struct rlhf__chain_start start = {NULL, json_object()};
    json_t *config = NULL;
    rlhf_status st = divide(r, &config, start.settings, err);
    if (st == RLHF_OK) st = make_begin(r, keep, config, &start.begin, err);
    json_decref(config);
    if (st == RLHF_OK) return rlhf__chain_log_open(to, keep, start, r->report.log, &r->chain, err);
    json_decref(start.begin);
    json_decref(start.settings);
    return st;
}

// ---- a phase ----

// The numbers of a row that the hash covers, collected from the row's tokens.
struct hashed {
    struct rlhf__sha256 row, reward;
    struct rlhf__buf logp, rewards; // f32 of the response's tokens
    struct rlhf__buf segments;      // i32; see struct rlhf__chain_row
    struct rlhf__buf paid;          // f32 of the turns
};

static void collect(struct hashed *h, const struct rlhf__rows *e, uint32_t i) {
    const int32_t end = e->offset[i + 1];
    rlhf__buf_clear(&h->logp);
    rlhf__buf_clear(&h->rewards);
    rlhf__buf_clear(&h->segments);
    rlhf__buf_clear(&h->paid);
    for (int32_t t = e->offset[i] + e->prompt_len[i], from = t; t < end; t++) {
        if (rlhf__rows_is_response(e, t)) {
            rlhf__buf_put(&h->logp, &e->token[RLHF__LOGP_SAMPLED][t], sizeof(float));
            rlhf__buf_put(&h->rewards, &e->token[RLHF__TOKEN_REWARD][t], sizeof(float));
        }
        if (!e->turn || (t + 1 < end && e->turn[t + 1] == e->turn[t])) continue;
        const int32_t n = t + 1 - from, segment = e->turn[t] < 0 ? -n : n;
        rlhf__buf_put(&h->segments, &segment, sizeof segment);
        if (segment > 0) rlhf__buf_put(&h->paid, &e->paid[t], sizeof(float));
        from = t + 1;
    }
}

static const float *floats(const struct rlhf__buf *b) {
    return (const float *)(const void *)b->data;
}

// Each buffer's floats are counted separately, because one buffer may have fewer floats than
// another if memory ran out.
static int32_t n_floats(const struct rlhf__buf *b) { return (int32_t)(b->len / sizeof(float)); }

static void hash_row(struct hashed *h, const struct rlhf__rows *e, uint32_t i, int64_t source,
                     int samples) {
    const int32_t from = e->offset[i];
    if (samples) collect(h, e, i);
    const struct rlhf__chain_row one = {.source = source,
                                        .group = e->group[i],
                                        .finished = e->finished[i],
                                        .prompt_length = e->prompt_len[i],
                                        .n = e->offset[i + 1] - from,
                                        .ids = e->ids + from,
                                        .logp = floats(&h->logp),
                                        .n_logp = n_floats(&h->logp),
                                        .n_segments = (int32_t)(h->segments.len / sizeof(int32_t)),
                                        .segment = (const int32_t *)(const void *)h->segments.data,
                                        .end = e->turn ? rlhf__episode_end_name(e->end[i]) : NULL};
    rlhf__chain_put_row(&h->row, &one);
    rlhf__chain_put_reward(&h->reward, e->score[i], floats(&h->rewards), n_floats(&h->rewards));
    if (e->turn)
        rlhf__chain_put_paid(&h->reward, floats(&h->paid), n_floats(&h->paid), e->verdict[i]);
}

static rlhf_status hash_rows(const struct rlhf__phase *p, char rows[RLHF__HEX],
                             char rewards[RLHF__HEX], struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    const struct rlhf__prompts *prompts = p->feed->prompts;
    struct hashed h = {.logp = RLHF__BUF_INIT};
    rlhf__sha256_init(&h.row);
    rlhf__sha256_init(&h.reward);
    for (uint32_t i = 0; i < e->n; i++)
        hash_row(&h, e, i, prompts ? rlhf__prompts_get(prompts, e->source[i]).row : e->source[i],
                 rlhf__cast_samples(p->cast));
    rlhf_status st = rlhf__buf_ok(&h.logp, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&h.rewards, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&h.segments, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&h.paid, err);
    rlhf__buf_finish(&h.logp);
    rlhf__buf_finish(&h.rewards);
    rlhf__buf_finish(&h.segments);
    rlhf__buf_finish(&h.paid);
    rlhf__sha256_hex(&h.row, rows);
    rlhf__sha256_hex(&h.reward, rewards);
    return st;
}

struct metrics {
    const struct rlhf__metrics *of;
    struct rlhf__sha256 steady, unsteady;
};

static void put_metric(void *arg, const char *name) {
    struct metrics *m = arg;
    double value = 0;
    if (!rlhf__metrics_get(m->of, name, &value)) return;
    rlhf__chain_put_metric(rlhf__chain_is_steady(name) ? &m->steady : &m->unsteady, name, value);
}

rlhf_status rlhf__chained_phase(const struct rlhf__run *r, const struct rlhf__phase *p,
                                struct rlhf__error *err) {
    char rows[RLHF__HEX], rewards[RLHF__HEX], metrics[RLHF__HEX], unsteady[RLHF__HEX];
    struct metrics m = {.of = r->report.metrics};
    if (!r->chain) return RLHF_OK;
    rlhf__sha256_init(&m.steady);
    rlhf__sha256_init(&m.unsteady);
    rlhf__metrics_names(r->report.metrics, put_metric, &m);
    rlhf__sha256_hex(&m.steady, metrics);
    rlhf__sha256_hex(&m.unsteady, unsteady);
    if (p) RLHF_TRY(hash_rows(p, rows, rewards, err));
    const struct rlhf__chain_link link = {.phase = r->count.phase,
                                          .rows = p ? rows : NULL,
                                          .rewards =
                                              p && rlhf__cast_samples(p->cast) ? rewards : NULL,
                                          .metrics = metrics};
    return rlhf__chain_log_phase(r->chain, &link, unsteady, err);
}
