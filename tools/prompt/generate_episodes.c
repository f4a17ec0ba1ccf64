// generate_episodes.c: see generate_episodes.h.
#include "prompt/generate_episodes.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/printable.h"
#include "cmd/given_settings.h"
#include "cmd/program.h"
#include "episode/episode_metrics.h"
#include "episode/said_json.h"
#include "eval/eval_setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 256 }; // episodes sampled before they are printed

// ---- settings that flags give ----

static rlhf_status give_stops(struct rlhf__given_settings *g, const struct rlhf__flag_list *stop,
                              struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (stop->n == 0) return RLHF_OK;
    for (size_t i = 0; i < stop->n; i++) {
        rlhf__buf_puts(&text, i ? ", " : "[");
        rlhf__json_write_string(&text, stop->item[i], strlen(stop->item[i]));
    }
    rlhf__buf_putc(&text, ']');
    const rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) rlhf__give(g, "sampling.stop=%s", rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    return st;
}

static rlhf_status settings(struct rlhf__given_settings *g, const struct rlhf__generate_episodes *o,
                            struct rlhf__error *err) {
    if (o->max_new >= 0) rlhf__give(g, "sampling.max_new_tokens=%lld", (long long)o->max_new);
    if (o->top_k >= 0) rlhf__give(g, "sampling.top_k=%lld", (long long)o->top_k);
    if (o->temperature > 0) rlhf__give(g, "sampling.temperature=%.17g", o->temperature);
    if (o->top_p > 0) rlhf__give(g, "sampling.top_p=%.17g", o->top_p);
    if (o->min_p >= 0) rlhf__give(g, "sampling.min_p=%.17g", o->min_p);
    if (o->turns > 0) rlhf__give(g, "episodes.turns=%lld", (long long)o->turns);
    if (o->chat.name) rlhf__give(g, "prompts.template=%s", o->chat.name);
    if (o->chat.vars) rlhf__give(g, "prompts.template_vars=%s", o->chat.vars);
    if (o->chat.date) rlhf__give(g, "prompts.date=%s", o->chat.date);
    return give_stops(g, o->stop, err);
}

// ---- printing ----

static void put_text(struct rlhf__buf *b, const char *text, size_t len) {
    if (isatty(STDOUT_FILENO))
        rlhf__put_printable(b, text, len, "\n\t");
    else
        rlhf__buf_put(b, text, len);
}

static void put_tokens(struct rlhf__buf *b, const struct rlhf__tokenizer *tok,
                       const struct rlhf__rows *e, int32_t from, int32_t to) {
    size_t len = 0;
    char *text = rlhf__tokenizer_text(tok, e->ids + from, (size_t)(to - from),
                                      RLHF__DECODE_SKIP_SPECIAL, &len);
    if (text)
        put_text(b, text, len);
    else
        b->bad = 1;
    if (!text || !len || text[len - 1] != '\n') rlhf__buf_putc(b, '\n');
    free(text);
}

static void put_episode(struct rlhf__buf *b, const struct rlhf__tokenizer *tok,
                        const struct rlhf__rows *e, uint32_t i) {
    static const char *const verdicts[] = {"", "; verdict: right", "; verdict: wrong"};
    const int32_t end = e->offset[i + 1];
    int32_t t = e->offset[i] + e->prompt_len[i], turns = 0;
    rlhf__buf_puts(b, "prompt: ");
    put_tokens(b, tok, e, e->offset[i], t);
    for (int32_t from; t < end;) {
        for (from = t++; t < end && e->turn[t] == e->turn[from];)
            t++;
        turns += e->turn[from] >= 0;
        rlhf__buf_puts(b, e->turn[from] < 0 ? "environment: " : "policy: ");
        put_tokens(b, tok, e, from, t);
        if (e->turn[from] >= 0 && e->paid[t - 1] != 0)
            rlhf__buf_printf(b, "[turn %d pays %g]\n", turns, (double)e->paid[t - 1]);
    }
    rlhf__buf_printf(b, "[ended: %s after %d turn%s; pays %g%s]\n",
                     rlhf__episode_end_name(e->end[i]), turns, turns == 1 ? "" : "s",
                     rlhf__rows_response_sum(e, i, e->paid, NULL), verdicts[e->verdict[i]]);
}

static void put_json(struct rlhf__buf *b, const struct rlhf__tokenizer *tok,
                     const struct rlhf__rows *e, uint32_t i) {
    static const char *const verdicts[] = {"null", "\"right\"", "\"wrong\""};
    const int32_t from = e->offset[i], response = from + e->prompt_len[i];
    size_t len = 0;
    char *prompt = rlhf__tokenizer_text(tok, e->ids + from, (size_t)e->prompt_len[i],
                                        RLHF__DECODE_SKIP_SPECIAL, &len);
    char number[40];
    if (!prompt) b->bad = 1;
    rlhf__buf_puts(b, "{\"prompt\": ");
    rlhf__json_write_string(b, prompt ? prompt : "", len);
    free(prompt);
    rlhf__buf_puts(b, ", ");
    rlhf__said_json(b, tok, e, i);
    rlhf__buf_printf(b, ", \"reward\": %s, \"verdict\": %s, \"prompt_length\": %d, \"ids\": [",
                     rlhf__format_double(rlhf__rows_response_sum(e, i, e->paid, NULL), 0, number),
                     verdicts[e->verdict[i]], e->prompt_len[i]);
    for (int32_t t = from; t < e->offset[i + 1]; t++)
        rlhf__buf_printf(b, "%s%d", t > from ? ", " : "", e->ids[t]);
    rlhf__buf_puts(b, "], \"logp_sampled\": [");
    const char *between = "";
    for (int32_t t = response; t < e->offset[i + 1]; t++) {
        if (e->turn[t] < 0) continue;
        rlhf__buf_printf(b, "%s%s", between,
                         rlhf__format_float(e->token[RLHF__LOGP_SAMPLED][t], number));
        between = ", ";
    }
    rlhf__buf_puts(b, "]}\n");
}

static rlhf_status print(const struct rlhf__generate_episodes *o, const struct rlhf__tokenizer *tok,
                         const struct rlhf__rows *e, int first, struct rlhf__error *err) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    for (uint32_t i = 0; i < e->n; i++) {
        if (!o->json && (i > 0 || !first)) rlhf__buf_puts(&b, "---\n");
        if (o->json)
            put_json(&b, tok, e, i);
        else
            put_episode(&b, tok, e, i);
    }
    const rlhf_status st = rlhf__buf_ok(&b, err);
    if (st == RLHF_OK) fwrite(rlhf__buf_text(&b), 1, b.len, stdout);
    rlhf__buf_finish(&b);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// ---- sampling ----

static rlhf_status sample(const struct rlhf__generate_episodes *o, const struct rlhf__eval_setup *t,
                          struct rlhf__error *err) {
    // Without --prompts, sample n episodes in all, because the run may have thousands of rows.
    const int one = t->episodes.alone || !o->prompts;
    const int64_t prompts = one ? 1 : rlhf__prompts_count(t->prompts);
    const uint64_t all = (uint64_t)(prompts * o->n);
    const uint32_t slots = rlhf__compute_slots(t->model->compute, 0);
    rlhf_status st = RLHF_OK;
    for (uint64_t at = 0; st == RLHF_OK && at < all; at += BLOCK) {
        const uint32_t n = (uint32_t)(all - at < BLOCK ? all - at : BLOCK);
        struct rlhf__rows e = {0};
        struct rlhf__rollout_request q =
            rlhf__eval_setup_request(t, n, n < slots ? n : slots, o->seed, "generate");
        q.first = at;
        st = rlhf__eval_setup_sample(t, &q, &e, err);
        if (st == RLHF_OK) st = print(o, t->model->tok, &e, at == 0, err);
        rlhf__rows_finish(&e);
    }
    return st;
}

rlhf_status rlhf__generate_episodes(const struct rlhf__env *env,
                                    const struct rlhf__generate_episodes *o,
                                    struct rlhf__error *err) {
    struct rlhf__eval_setup t = {0};
    struct rlhf__given_settings g = {.n = 0};
    const struct rlhf__flag_list none = {0};
    rlhf_status st = settings(&g, o, err);
    if (st == RLHF_OK) st = rlhf__given_join(&g, NULL, err);
    const struct rlhf__eval_setup_options with = {.model = o->model,
                                                  .prompts = o->prompts,
                                                  .environment = o->environment,
                                                  .reward_flag = "--reward",
                                                  .command = "generate",
                                                  .at = o->at,
                                                  .reward = &none,
                                                  .set = &g.all,
                                                  .max_mib = o->max_mib,
                                                  .seed = o->seed,
                                                  .as_the_run = 1,
                                                  .unpaid = 1};
    if (st == RLHF_OK) st = rlhf__eval_setup_open(&t, env, &with, err);
    if (st == RLHF_OK && t.at.progress) rlhf__progress_hide(t.at.progress);
    if (st == RLHF_OK) st = sample(o, &t, err);
    rlhf__eval_setup_finish(&t);
    rlhf__given_finish(&g);
    return st;
}
