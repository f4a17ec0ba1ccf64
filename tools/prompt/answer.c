// answer.c: see answer.h.
#include "prompt/answer.h"

#include "base/clock.h"
#include "base/printable.h"
#include "learn/pass.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_SECONDS 0.03 // seconds between two updates of a growing text

// The text while it grows.
struct growing {
    const struct rlhf__answer_request *q;
    const struct rlhf__gen_result *result;
    struct rlhf__answer *a;
    size_t shown; // bytes of the text that were printed
    double last;  // time of the last update
    volatile sig_atomic_t stop;
    int32_t bad; // 1: out of memory
};

// Returns the number of bytes at the end of the text that belong to an unfinished character. Until
// the last token of a character is there, the character decodes as U+FFFD.
static size_t unfinished(const char *text, size_t n) {
    size_t open = 0;
    while (n - open >= 3 && memcmp(text + n - open - 3, "\xef\xbf\xbd", 3) == 0)
        open += 3;
    return open;
}

// Decode the tokens so far, and print the new part of the text.
static void show(struct growing *g, int whole) {
    struct rlhf__answer *a = g->a;
    size_t len = 0;
    char *text =
        rlhf__tokenizer_text(g->q->model->tok, a->ids, a->n, RLHF__DECODE_SKIP_SPECIAL, &len);
    if (!text) {
        g->bad = 1;
        return;
    }
    if (g->q->rules) len = rlhf__response_text_end(g->q->rules, text, len);
    rlhf__buf_clear(&a->text);
    rlhf__buf_put(&a->text, text, len);
    free(text);
    if (!g->q->out || a->text.bad) return;
    const size_t end = whole ? len : len - unfinished(rlhf__buf_text(&a->text), len);
    if (end <= g->shown) return;
    struct rlhf__buf seen = RLHF__BUF_INIT;
    rlhf__put_printable(&seen, a->text.data + g->shown, end - g->shown, "\n\t");
    fwrite(rlhf__buf_text(&seen), 1, seen.len, g->q->out);
    fflush(g->q->out);
    rlhf__buf_finish(&seen);
    g->shown = end;
    g->last = rlhf__seconds();
}

// Copy the tokens so far, because generation returns no result after an interruption.
static void seen(void *arg, const char *what, int64_t done, int64_t of) {
    struct growing *g = arg;
    const size_t n = (size_t)g->result->len[0], from = g->a->n;
    (void)what;
    (void)done;
    (void)of;
    if (n > from) {
        memcpy(g->a->ids + from, g->result->ids + from, (n - from) * sizeof *g->a->ids);
        memcpy(g->a->logp + from, g->result->logp + from, (n - from) * sizeof *g->a->logp);
        g->a->n = n;
    }
    if (*g->q->ended || *g->q->interrupted) g->stop = 1;
    if (g->q->out && rlhf__seconds() - g->last >= SHOWN_SECONDS) show(g, 0);
}

static rlhf_status check_length(const struct rlhf__answer_request *q, struct rlhf__error *err) {
    const int32_t room = q->model->info.n_ctx;
    if ((int64_t)q->n_prompt + q->settings->max_new <= room) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the prompt has %zu tokens; with %lld new ones that is more than the context "
                      "of %d tokens",
                      q->n_prompt, (long long)q->settings->max_new, room);
}

static rlhf_status answer_init(struct rlhf__answer *a, int64_t max_new, struct rlhf__error *err) {
    rlhf__answer_finish(a);
    a->ids = calloc((size_t)max_new, sizeof *a->ids);
    a->logp = calloc((size_t)max_new, sizeof *a->logp);
    return a->ids && a->logp ? RLHF_OK : RLHF__NOMEM(err, "out of memory for a text");
}

rlhf_status rlhf__answer_sample(const struct rlhf__answer_request *q, struct rlhf__answer *a,
                                struct rlhf__error *err) {
    const struct rlhf__answer_settings *s = q->settings;
    const int32_t len = (int32_t)q->n_prompt;
    const double began = rlhf__seconds();
    struct rlhf__gen_result result = {0};
    struct growing g = {.q = q, .result = &result, .a = a};
    const struct rlhf__watch watch = {seen, &g};
    rlhf_dist dist = RLHF_DIST(1 / s->temperature, s->top_p, (int32_t)s->top_k, s->greedy);
    const rlhf_dist own = RLHF_DIST(1, 1, 0, 0);
    dist.min_p = s->min_p;
    const struct rlhf__gen_request r = {.n = 1,
                                        .slots = 1,
                                        .prompt = &q->prompt,
                                        .prompt_len = &len,
                                        .max_new = (int32_t)s->max_new,
                                        .ends = s->ignore_eos ? NULL : &q->model->ends,
                                        .rules = q->rules,
                                        .dist = &dist,
                                        .logp_dist = &own,
                                        .seed = (uint64_t)s->seed,
                                        .stream = rlhf_rng_stream("generate"),
                                        .first = q->number,
                                        .cancelled = &g.stop,
                                        .watch = &watch};
    rlhf_gen *cache = NULL;
    RLHF_TRY(check_length(q, err));
    RLHF_TRY(rlhf__compute_draws(q->model->compute, &dist, err));
    RLHF_TRY(answer_init(a, s->max_new, err));
    RLHF_TRY(rlhf__model_gen_open(q->model, 1, (uint32_t)(q->n_prompt + (size_t)s->max_new), &cache,
                                  err));
    rlhf_status st = rlhf__generate(q->model, cache, &r, &result, err);
    rlhf__model_gen_close(q->model, cache);
    if (st == RLHF_OK) a->finished = result.stopped[0];
    if (st == RLHF_E_CANCELLED && !*q->ended) {
        a->interrupted = 1;
        st = RLHF_OK;
    }
    if (st == RLHF_OK) show(&g, 1);
    if (st == RLHF_OK && g.bad) st = RLHF__NOMEM(err, "out of memory for a text");
    a->seconds = rlhf__seconds() - began;
    rlhf__gen_result_finish(&result);
    return st == RLHF_OK ? rlhf__buf_ok(&a->text, err) : st;
}

void rlhf__answer_finish(struct rlhf__answer *a) {
    free(a->ids);
    free(a->logp);
    rlhf__buf_finish(&a->text);
    memset(a, 0, sizeof *a);
}

double rlhf__answer_sum(const struct rlhf__answer *a, const float *logp) {
    double sum = 0;
    for (size_t i = 0; i < a->n; i++)
        sum += (double)logp[i];
    return sum;
}

rlhf_status rlhf__answer_under(const struct rlhf__answer *a, const struct rlhf__model *m,
                               const int32_t *prompt, size_t n_prompt, float *logp,
                               struct rlhf__error *err) {
    struct rlhf__rows e = {0};
    const size_t total = n_prompt + a->n;
    const rlhf_dist own = RLHF_DIST(1, 1, 0, 0);
    float *all = calloc(total + 1, sizeof *all);
    rlhf_status st = all ? rlhf__rows_init(&e, 1, (uint32_t)total, err)
                         : RLHF__NOMEM(err, "out of memory for %zu tokens", total);
    if (st == RLHF_OK) {
        const struct rlhf__pass_out out = {.logp = all};
        memcpy(e.ids, prompt, n_prompt * sizeof *e.ids);
        memcpy(e.ids + n_prompt, a->ids, a->n * sizeof *e.ids);
        e.offset[1] = (int32_t)total;
        e.prompt_len[0] = (int32_t)n_prompt;
        if (a->n) st = rlhf__pass(m, &e, &own, RLHF__MICROBATCH_TOKENS, &out, err);
    }
    if (st == RLHF_OK) memcpy(logp, all + n_prompt, a->n * sizeof *logp);
    rlhf__rows_finish(&e);
    free(all);
    return st;
}
