// prompt_choice.c: see prompt_choice.h.
#include "feed/prompt_choice.h"

#include "base/file.h"
#include "supervise/tail.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

#include <rlhf/algo.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "state/prompts.safetensors"

// The data about prompts that a checkpoint contains.
struct known {
    float *last_score; // [n]
    int64_t *seen;     // [n]
};

struct rlhf__prompt_choice {
    const struct rlhf__instance *algo;
    int64_t n;           // prompts
    rlhf_str *meta;      // [n] borrowed from the prompts
    struct known now;    // as the algorithm sees it
    struct known noted;  // the same at the last phase boundary
    int64_t *used;       // [n] the last phase that used the prompt; -1: none in this process
    double *sum;         // [n] sum of the rewards of its responses in that phase
    uint32_t *responses; // [n] number of those responses
};

static int known_init(struct known *k, int64_t n) {
    k->last_score = calloc((size_t)n + 1, sizeof *k->last_score);
    k->seen = calloc((size_t)n + 1, sizeof *k->seen);
    for (int64_t i = 0; k->last_score && i < n; i++)
        k->last_score[i] = NAN;
    return k->last_score && k->seen;
}

static void known_finish(struct known *k) {
    free(k->last_score);
    free(k->seen);
}

static void known_copy(struct known *to, const struct known *from, int64_t n) {
    memcpy(to->last_score, from->last_score, (size_t)n * sizeof *to->last_score);
    memcpy(to->seen, from->seen, (size_t)n * sizeof *to->seen);
}

void rlhf__prompt_choice_close(struct rlhf__prompt_choice *c) {
    if (!c) return;
    known_finish(&c->now);
    known_finish(&c->noted);
    free(c->meta);
    free(c->used);
    free(c->sum);
    free(c->responses);
    free(c);
}

static int make_room(struct rlhf__prompt_choice *c) {
    const size_t n = (size_t)c->n + 1;
    c->meta = calloc(n, sizeof *c->meta);
    c->used = calloc(n, sizeof *c->used);
    c->sum = calloc(n, sizeof *c->sum);
    c->responses = calloc(n, sizeof *c->responses);
    const int known = known_init(&c->now, c->n) && known_init(&c->noted, c->n);
    return known && c->meta && c->used && c->sum && c->responses;
}

rlhf_status rlhf__prompt_choice_open(const struct rlhf__instance *algo,
                                     const struct rlhf__prompts *prompts,
                                     struct rlhf__prompt_choice **out, struct rlhf__error *err) {
    *out = NULL;
    if (!algo->plugin->ops.algo.choose_prompts) return RLHF_OK;
    const int64_t n = rlhf__prompts_count(prompts);
    struct rlhf__prompt_choice *c = calloc(1, sizeof *c);
    if (c) *c = (struct rlhf__prompt_choice){.algo = algo, .n = n};
    if (!c || !make_room(c)) {
        rlhf__prompt_choice_close(c);
        return RLHF__NOMEM(err, "out of memory for %lld prompts", (long long)n);
    }
    for (int64_t i = 0; i < n; i++) {
        c->meta[i] = rlhf__prompts_get(prompts, i).meta;
        c->used[i] = -1;
    }
    *out = c;
    return RLHF_OK;
}

// ---- a phase ----

// Mark prompt i as used by the phase. The prompt's last score is kept until the new responses are
// scored. Returns 0 if the phase had already marked the prompt, and 1 otherwise.
static int mark(struct rlhf__prompt_choice *c, int64_t i, int64_t phase) {
    if (c->used[i] == phase) return 0;
    c->used[i] = phase;
    c->sum[i] = 0;
    c->responses[i] = 0;
    return 1;
}

static void use(struct rlhf__prompt_choice *c, int64_t i, int64_t phase) {
    c->now.seen[i] += mark(c, i, phase);
}

static rlhf_status refuse(const struct rlhf__prompt_choice *c, int64_t phase, uint32_t at,
                          int64_t index, struct rlhf__error *err) {
    const struct rlhf__plugin *plugin = c->algo->plugin;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "algo %s, choose_prompts(), phase %lld: prompt[%u] is %lld; the run has %lld "
                      "prompt%s, with indices from 0",
                      rlhf__plugin_name(plugin), (long long)phase + 1, at, (long long)index,
                      (long long)c->n, c->n == 1 ? "" : "s");
}

rlhf_status rlhf__prompt_choice_ask(struct rlhf__prompt_choice *c, int64_t phase, uint32_t n,
                                    int64_t *row, struct rlhf__error *err) {
    const struct rlhf__instance *algo = c->algo;
    rlhf_prompts in = {.n_choose = n,
                       .n = c->n,
                       .phase = phase,
                       .last_score = c->now.last_score,
                       .seen = c->now.seen,
                       .meta = c->meta};
    int64_t *chosen = rlhf__tail_alloc(n, sizeof *chosen);
    if (!chosen) return RLHF__NOMEM(err, "out of memory for %u prompts", n);
    for (uint32_t k = 0; k < n; k++)
        chosen[k] = -1; // if the algorithm does not write the index, it is rejected
    const uint32_t minor = algo->plugin->abi_minor;
    struct rlhf__filled filled;
    rlhf_choice *out = RLHF__FILLED(rlhf_choice, &filled, minor), took;
    out->prompt = chosen;
    struct rlhf__call call = rlhf__call_begin(algo, "choose_prompts()");
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_prompts, &in, minor, &tails);
    rlhf__tails_mark(&tails, "out->prompt", chosen, n * sizeof *chosen);
    rlhf_status st = algo->plugin->ops.algo.choose_prompts(algo->self, &in, out);
    st = rlhf__call_kept(&call, &tails, st);
    st = rlhf__call_end_filled(&call, st, &filled, &took, err);
    const struct rlhf__lent lent = {"prompt", chosen, st == RLHF_OK ? took.prompt : chosen};
    if (rlhf__lent_kept("rlhf_choice", &lent, 1, err) < 0) st = rlhf__call_context(&call, err);
    memcpy(row, chosen, n * sizeof *row);
    free(chosen);
    RLHF_TRY(st);
    for (uint32_t k = 0; k < n; k++)
        if (row[k] < 0 || row[k] >= c->n) return refuse(c, phase, k, row[k], err);
    for (uint32_t k = 0; k < n; k++)
        use(c, row[k], phase);
    return RLHF_OK;
}

void rlhf__prompt_choice_chosen(struct rlhf__prompt_choice *c, int64_t phase,
                                const struct rlhf__rows *e) {
    for (uint32_t k = 0; k < e->n; k++)
        mark(c, e->source[k], phase);
}

void rlhf__prompt_choice_scored(struct rlhf__prompt_choice *c, int64_t phase,
                                const struct rlhf__rows *e) {
    for (uint32_t k = 0; k < e->n; k++) {
        const int64_t i = e->source[k];
        use(c, i, phase);
        c->sum[i] += (double)e->reward[k];
        c->responses[i]++;
        c->now.last_score[i] = (float)(c->sum[i] / c->responses[i]);
    }
}

// ---- checkpoints ----

void rlhf__prompt_choice_note(struct rlhf__prompt_choice *c) {
    known_copy(&c->noted, &c->now, c->n);
}

rlhf_status rlhf__prompt_choice_save(const struct rlhf__prompt_choice *c,
                                     const struct rlhf__folder *checkpoint,
                                     struct rlhf__error *err) {
    const struct rlhf__tensor_spec specs[] = {{"seen", RLHF__TENSOR_I64, 1, {c->n}},
                                              {"last_score", RLHF__TENSOR_F32, 1, {c->n}}};
    const size_t n = (size_t)c->n;
    struct rlhf__weights_writer *w = NULL;
    RLHF_TRY(rlhf__weights_writer_open(checkpoint, FILE_NAME, specs, 2, NULL, 0, &w, err));
    rlhf_status st = rlhf__weights_put_bytes(w, c->noted.seen, n * sizeof *c->noted.seen, err);
    if (st == RLHF_OK)
        st = rlhf__weights_put_bytes(w, c->noted.last_score, n * sizeof *c->noted.last_score, err);
    if (st == RLHF_OK) return rlhf__weights_commit(w, err);
    rlhf__weights_abort(w);
    return st;
}

static rlhf_status read_file(struct rlhf__prompt_choice *c, const struct rlhf__weights *file,
                             struct rlhf__error *err) {
    const struct rlhf__tensor *score = rlhf__weights_find(file, "last_score");
    const struct rlhf__tensor *seen = rlhf__weights_find(file, "seen");
    if (!score || !seen || score->dtype != RLHF__TENSOR_F32 || seen->dtype != RLHF__TENSOR_I64 ||
        score->ndim != 1 || seen->ndim != 1 || score->count != seen->count)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "\"last_score\" (f32) and \"seen\" (i64) must have one number a prompt");
    if ((int64_t)seen->count != c->n)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the checkpoint is for %lld prompts, but the run has %lld: %s chooses by "
                          "its record of each prompt, so the prompts must be the same",
                          (long long)seen->count, (long long)c->n,
                          rlhf__plugin_name(c->algo->plugin));
    RLHF_TRY(rlhf__tensor_read_bytes(score, c->now.last_score, err));
    RLHF_TRY(rlhf__tensor_read_bytes(seen, c->now.seen, err));
    for (int64_t i = 0; i < c->n; i++)
        if (c->now.seen[i] < 0)
            return rlhf__fail(err, RLHF_E_INVALID, "\"seen\" of prompt %lld is %lld", (long long)i,
                              (long long)c->now.seen[i]);
    rlhf__prompt_choice_note(c);
    return RLHF_OK;
}

rlhf_status rlhf__prompt_choice_load(struct rlhf__prompt_choice *c, const char *dir,
                                     struct rlhf__error *err) {
    char path[4400];
    struct rlhf__weights *file = NULL;
    RLHF_TRY(rlhf__weights_open(rlhf__path_in(path, sizeof path, dir, FILE_NAME), &file, err));
    const rlhf_status st = read_file(c, file, err);
    rlhf__weights_close(file);
    return st == RLHF_OK ? st : rlhf__error_context(err, "%s", path);
}
