// recorded.c: see recorded.h.
#include "feed/recorded.h"

#include "base/json.h"
#include "sample/mixing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rlhf__recorded {
    char path[RLHF__PATH_CAP];
    FILE *file; // NULL: the file is missing
    char *line; // the line that was read last
    size_t cap, len;
    int64_t number; // of that line, from 1
    int64_t phase;  // of that line; 0 = none has been read, or the file has ended
    json_t *rows, *updates;
};

// ---- the file ----

rlhf_status rlhf__recorded_open(const char *path, struct rlhf__recorded **out,
                                struct rlhf__error *err) {
    struct rlhf__recorded *r = *out = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory for %s", path);
    rlhf__path_put(r->path, "%s", path);
    r->file = fopen(path, "re");
    if (r->file || errno == ENOENT) return RLHF_OK;
    rlhf__fail(err, RLHF_E_IO, "%s: cannot read the file: %s", path, strerror(errno));
    free(r);
    *out = NULL;
    return RLHF_E_IO;
}

static void forget(struct rlhf__recorded *r) {
    json_decref(r->rows);
    json_decref(r->updates);
    r->rows = r->updates = NULL;
}

void rlhf__recorded_close(struct rlhf__recorded *r) {
    if (!r) return;
    forget(r);
    if (r->file) fclose(r->file);
    free(r->line);
    free(r);
}

static rlhf_status parse(const struct rlhf__recorded *r, json_t **out, struct rlhf__error *err) {
    json_error_t why;
    *out = rlhf__json_decode(r->line, r->len, JSON_REJECT_DUPLICATES, &why);
    return *out ? RLHF_OK : rlhf__json_failed(r->path, r->number, &why, err);
}

// Set r->phase to the phase of the line. Lines that this program wrote begin with the phase. Any
// other line is parsed whole.
static rlhf_status find_phase(struct rlhf__recorded *r, struct rlhf__error *err) {
    long long phase = 0;
    json_t *v = NULL;
    if (sscanf(r->line, "{\"phase\": %lld,", &phase) != 1) {
        RLHF_TRY(parse(r, &v, err));
        phase = json_integer_value(json_object_get(v, "phase"));
        json_decref(v);
    }
    r->phase = phase;
    if (phase > 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s:%lld: the line has no phase", r->path,
                      (long long)r->number);
}

// Read the next line. r->phase is 0 at the end of the file.
static rlhf_status advance(struct rlhf__recorded *r, struct rlhf__error *err) {
    const ssize_t n = getline(&r->line, &r->cap, r->file);
    r->phase = 0;
    if (n <= 0 && ferror(r->file))
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot read the file: %s", r->path, strerror(errno));
    if (n <= 0) return RLHF_OK;
    r->len = (size_t)n;
    r->number++;
    return find_phase(r, err);
}

static rlhf_status keep(struct rlhf__recorded *r, struct rlhf__error *err) {
    json_t *v = NULL;
    RLHF_TRY(parse(r, &v, err));
    json_array_append_new(json_object_get(v, "row") ? r->rows : r->updates, v);
    return RLHF_OK;
}

rlhf_status rlhf__recorded_seek(struct rlhf__recorded *r, int64_t phase, int *found,
                                struct rlhf__error *err) {
    *found = 0;
    forget(r);
    r->rows = json_array();
    r->updates = json_array();
    if (!r->file) return RLHF_OK;
    if (r->phase == 0 || r->phase > phase) {
        rewind(r->file);
        r->number = 0;
        RLHF_TRY(advance(r, err));
    }
    while (r->phase > 0 && r->phase < phase)
        RLHF_TRY(advance(r, err));
    while (r->phase == phase) {
        RLHF_TRY(keep(r, err));
        RLHF_TRY(advance(r, err));
    }
    *found = json_array_size(r->rows) > 0 && json_array_size(r->updates) > 0;
    return RLHF_OK;
}

const json_t *rlhf__recorded_rows(const struct rlhf__recorded *r) { return r->rows; }
const json_t *rlhf__recorded_updates(const struct rlhf__recorded *r) { return r->updates; }

// ---- rows ----

// A recorded row, with the prompts and the vocabulary of the run, to check the row against them.
struct source {
    const struct rlhf__recorded *from;
    const struct rlhf__prompts *prompts;
    const json_t *row;
    uint32_t i;
    int32_t n_vocab;
};

static rlhf_status wrong(const struct source *s, const char *key, struct rlhf__error *err) {
    const json_t *phase = json_object_get(s->row, "phase");
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: row %u of phase %lld: \"%s\" is missing or does not fit the run",
                      s->from->path, s->i, (long long)json_integer_value(phase), key);
}

static int integer(const json_t *row, const char *key, int64_t from, int64_t to, int64_t *out) {
    const json_t *v = json_object_get(row, key);
    *out = json_integer_value(v);
    return json_is_integer(v) && *out >= from && *out < to;
}

// A number that is not finite is written as null.
static float number(const json_t *v) {
    return json_is_number(v) ? (float)json_number_value(v) : NAN;
}

static rlhf_status take_ids(const struct source *s, struct rlhf__rows *e, struct rlhf__error *err) {
    const json_t *ids = json_object_get(s->row, "ids");
    const size_t n = json_array_size(ids);
    int64_t prompt;
    if (!integer(s->row, "prompt_length", 1, (int64_t)n + 1, &prompt))
        return wrong(s, "prompt_length", err);
    e->prompt_len[s->i] = (int32_t)prompt;
    for (size_t k = 0; k < n; k++) {
        const json_t *v = json_array_get(ids, k);
        const json_int_t id = json_integer_value(v);
        if (!json_is_integer(v) || id < 0 || id >= s->n_vocab) return wrong(s, "ids", err);
        e->ids[e->offset[s->i] + (int32_t)k] = (int32_t)id;
    }
    return RLHF_OK;
}

// Read the numbers of the response tokens.
static rlhf_status take_tokens(const struct source *s, const char *key, struct rlhf__rows *e,
                               float *to, struct rlhf__error *err) {
    const json_t *v = json_object_get(s->row, key);
    const int32_t from = e->offset[s->i] + e->prompt_len[s->i], n = e->offset[s->i + 1] - from;
    if (!json_is_array(v) || json_array_size(v) != (size_t)n) return wrong(s, key, err);
    for (int32_t k = 0; k < n; k++)
        to[from + k] = number(json_array_get(v, (size_t)k));
    return RLHF_OK;
}

// Set *out to the index of the prompt with this row number in its file.
static int find_prompt(const struct rlhf__prompts *set, int64_t row, int64_t *out) {
    const int64_t n = rlhf__prompts_count(set);
    for (int64_t k = 0; k < n; k++) {
        *out = (row + k) % n; // if no rows were left out, the index is the row
        if (rlhf__prompts_get(set, *out).row == row) return 1;
    }
    return 0;
}

static rlhf_status take_row(const struct source *s, struct rlhf__rows *e, struct rlhf__error *err) {
    int64_t prompt, group;
    const uint32_t i = s->i;
    const json_t *finished = json_object_get(s->row, "finished");
    const json_t *score = json_object_get(s->row, "score");
    if (json_object_get(s->row, "segments"))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s: rows of several turns cannot be made from the file", s->from->path);
    RLHF_TRY(take_ids(s, e, err));
    if (!integer(s->row, "prompt", 0, INT64_MAX, &prompt) ||
        !find_prompt(s->prompts, prompt, &e->source[i]))
        return wrong(s, "prompt", err);
    if (!integer(s->row, "group", 0, INT32_MAX, &group)) return wrong(s, "group", err);
    if (!json_is_boolean(finished)) return wrong(s, "finished", err);
    if (!json_is_number(score)) return wrong(s, "score", err);
    e->group[i] = (int32_t)group;
    e->finished[i] = json_is_true(finished);
    e->score[i] = number(score);
    float *sampled = e->token[RLHF__LOGP_SAMPLED];
    RLHF_TRY(take_tokens(s, "logp_sampled", e, sampled, err));
    memcpy(e->token[RLHF__LOGP_OLD] + e->offset[i], sampled + e->offset[i],
           (size_t)(e->offset[i + 1] - e->offset[i]) * sizeof *sampled);
    return take_tokens(s, "token_reward", e, e->token[RLHF__TOKEN_REWARD], err);
}

static rlhf_status check_support(const struct rlhf__recorded *r, const struct rlhf__feed *feed,
                                 struct rlhf__error *err) {
    if (!rlhf__prompt_feed_keeps_support(feed)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "%s does not hold the tokens that sampling.top_k, top_p or min_p kept, over "
                      "which this run's log-probs are; with algo.logprob_support=full they are not "
                      "needed",
                      r->path);
}

static rlhf_status make_rows(const struct rlhf__recorded *r, struct rlhf__rows *e,
                             struct rlhf__error *err) {
    const size_t n = json_array_size(r->rows);
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += json_array_size(json_object_get(json_array_get(r->rows, i), "ids"));
    if (total > INT32_MAX || n > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: a phase of %zu tokens is too large", r->path,
                          total);
    RLHF_TRY(rlhf__rows_init(e, (uint32_t)n, (uint32_t)total, err));
    for (size_t i = 0; i < n; i++) {
        const json_t *ids = json_object_get(json_array_get(r->rows, i), "ids");
        e->offset[i + 1] = e->offset[i] + (int32_t)json_array_size(ids);
    }
    return RLHF_OK;
}

rlhf_status rlhf__recorded_take(const struct rlhf__recorded *r, const struct rlhf__feed *feed,
                                int64_t version, struct rlhf__experience *x,
                                struct rlhf__error *err) {
    const struct rlhf__feed_env *env = feed->env;
    struct rlhf__rows *e = &x->rows;
    struct source s = {
        .from = r, .prompts = feed->prompts, .n_vocab = env->cast->policy->info.n_vocab};
    RLHF_TRY(check_support(r, feed, err));
    RLHF_TRY(make_rows(r, e, err));
    for (s.i = 0; s.i < e->n; s.i++) {
        s.row = json_array_get(r->rows, s.i);
        e->version[s.i] = version;
        RLHF_TRY(take_row(&s, e, err));
    }
    e->flags |= RLHF__DRAWN;
    if (env->config->batch.share_prompts && env->cast->plan.group_size > 1)
        e->flags |= RLHF__SHARE_PROMPTS;
    rlhf__rows_sum_rewards(e);
    x->sampled = rlhf__rows_response_tokens(e, 0, e->n);
    x->drawn = e->n;
    return RLHF_OK;
}

// ---- scores of rows that were sampled again ----

static int same_ids(const struct source *s, const struct rlhf__rows *e) {
    const json_t *ids = json_object_get(s->row, "ids");
    const int32_t from = e->offset[s->i], n = e->offset[s->i + 1] - from;
    int same = json_array_size(ids) == (size_t)n;
    for (int32_t k = 0; same && k < n; k++)
        same = json_integer_value(json_array_get(ids, (size_t)k)) == e->ids[from + k];
    return same;
}

static rlhf_status score_row(const struct source *s, struct rlhf__rows *e,
                             struct rlhf__error *err) {
    const json_t *score = json_object_get(s->row, "score");
    if (!json_is_number(score)) return wrong(s, "score", err);
    e->score[s->i] = number(score);
    if (!same_ids(s, e)) return RLHF_OK; // the comparison reports the difference
    return take_tokens(s, "token_reward", e, e->token[RLHF__TOKEN_REWARD], err);
}

rlhf_status rlhf__recorded_score(const struct rlhf__recorded *r, const struct rlhf__feed *feed,
                                 struct rlhf__experience *x, struct rlhf__error *err) {
    struct rlhf__rows *e = &x->rows;
    struct source s = {.from = r, .prompts = feed->prompts};
    const size_t n = json_array_size(r->rows);
    uint8_t *keep = calloc((size_t)e->n + 1, 1);
    if (!keep) return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    rlhf_status st = RLHF_OK;
    size_t next = 0;
    for (s.i = 0; st == RLHF_OK && s.i < e->n && next < n; s.i++) {
        s.row = json_array_get(r->rows, next);
        keep[s.i] = n == e->n || same_ids(&s, e);
        if (!keep[s.i]) continue;
        next++;
        st = score_row(&s, e, err);
    }
    if (st == RLHF_OK) st = rlhf__experience_keep(x, keep, err);
    if (st == RLHF_OK) rlhf__rows_sum_rewards(&x->rows);
    free(keep);
    return st;
}
