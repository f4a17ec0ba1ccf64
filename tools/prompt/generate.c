// generate.c: `rlhf-host generate`: samples continuations of prompts from a model directory.
//
// Texts go to stdout, separated by lines "---", or as JSON Lines.
#include "prompt/prompt.h"

#include "base/json.h"
#include "cmd/command_setup.h"
#include "cmd/commands.h"
#include "cmd/program.h"
#include "prompt/dialogue.h"
#include "prompt/generate_episodes.h"
#include "prompt/generate_input.h"
#include "prompt/token_numbers.h"
#include "prompt/token_table.h"
#include "sample/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK_ROWS 512 // texts sampled before they are printed

struct options {
    const char *model, *prompts, *environment;
    struct rlhf__chat_choice chat;
    struct rlhf__flag_list prompt, stop, stop_id;
    int64_t n, max_new, seed, top_k, max_mib, turns;
    double temperature, top_p, min_p;
    int32_t greedy, bos, raw, ignore_eos, json, token_table;
    struct rlhf__command_setup_flags at;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--model", model, "DIR",
                 "model directory or GGUF file; the default policy when not given"),
    RLHF__FLAG_L(O, "--prompt", prompt, "TEXT",
                 "text to continue, a user's turn where the model has a chat template; repeatable; "
                 "empty: the BOS token alone; without it, a terminal asks for texts"),
    RLHF__FLAG_S(
        O, "--prompts", prompts, "FILE",
        "prompts: .jsonl, .jsonl.gz or .txt (a line each); -: standard input, JSON rows or "
        "lines, which is also read when it is piped and no prompt is given"),
    RLHF__CHAT_FLAGS(O),
    RLHF__FLAG_S(O, "--env", environment, "X.so[:k=v,..]",
                 "play episodes with this environment; its settings are those of the model's run"),
    RLHF__FLAG_I(O, "--turns", turns, "N", 1, 4096, "with --env: turns at most [episodes.turns]"),
    RLHF__FLAG_I(O, "--n", n, "K", 1, 1 << 20, "how many texts to each prompt [1]"),
    RLHF__FLAG_I(O, "--max-new", max_new, "N", 1, RLHF__MAX_NEW_TOKENS,
                 "longest text in new tokens [48]"),
    RLHF__FLAG_F(O, "--temperature", temperature, "T", 1e-6, 100, "logits are divided by it [1]"),
    RLHF__FLAG_I(O, "--top-k", top_k, "K", 0, 1 << 24, "keep the K most likely tokens; 0: all [0]"),
    RLHF__FLAG_F(O, "--top-p", top_p, "P", 1e-9, 1, "keep the most likely mass P [1]"),
    RLHF__FLAG_F(O, "--min-p", min_p, "P", 0, 1,
                 "keep the tokens at least P times as likely as the likeliest one; 0: all [0]"),
    RLHF__FLAG_I(O, "--max-mib", max_mib, "N", 1, 1 << 20,
                 "MiB of memory that the prompts may take [1024]"),
    RLHF__FLAG_SW(O, "--greedy", greedy, "always the most likely token"),
    RLHF__FLAG_SW(O, "--raw", raw, "give --prompt and piped lines as they are, without a template"),
    RLHF__FLAG_SW(O, "--bos", bos, "put the BOS token in front of the prompt"),
    RLHF__FLAG_SW(O, "--ignore-eos", ignore_eos, "do not end at the end tokens"),
    RLHF__FLAG_L(O, "--stop", stop, "TEXT", "end before this text too, repeatable"),
    RLHF__FLAG_L(O, "--stop-id", stop_id, "ID", "end at this token too, repeatable"),
    RLHF__FLAG_I(O, "--seed", seed, "S", 0, INT64_MAX, "seed of the draws [1]"),
    RLHF__FLAG_SW(O, "--token-table", token_table,
                  "after each text its tokens, with log-prob, entropy and the value of the run's "
                  "critic"),
    RLHF__COMMAND_SETUP_FLAGS(O),
    RLHF__FLAG_SW(O, "--json", json,
                  "one JSON object a line: prompt, response, logp, finished, prompt_length, ids, "
                  "logp_sampled"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

struct job {
    const struct rlhf__model *m;
    struct rlhf__model *critic; // for --token-table; NULL: none
    const struct options *o;
    struct rlhf__generate_input in;
    struct rlhf__response_rules *rules; // --stop and --stop-id
    struct rlhf__buf stops;             // the same rules in the form of sampling.stop
};

// Log decoding settings, including defaults, for a person at a terminal.
static void log_decoding(const struct job *j, struct rlhf__log *log) {
    const struct options *o = j->o;
    const char *dtype = j->m->env->dtype == RLHF_BF16 ? "bf16" : "f32";
    struct rlhf__buf cut = RLHF__BUF_INIT;
    if (!isatty(STDERR_FILENO)) return;
    if (o->top_k > 0) rlhf__buf_printf(&cut, ", top-k %lld", (long long)o->top_k);
    if (o->top_p < 1) rlhf__buf_printf(&cut, ", top-p %g", o->top_p);
    if (o->min_p > 0) rlhf__buf_printf(&cut, ", min-p %g", o->min_p);
    if (o->greedy)
        rlhf__logf(log, RLHF_LOG_INFO, "decoding: greedy, in %s", dtype);
    else
        rlhf__logf(log, RLHF_LOG_INFO,
                   "decoding: drawn at temperature %g%s, seed %lld, in %s (--greedy takes the most "
                   "likely token)",
                   o->temperature, rlhf__buf_text(&cut), (long long)o->seed, dtype);
    rlhf__buf_finish(&cut);
}

// The numbers are those of the model itself, at temperature 1 over all tokens, even if sampling
// used another temperature or fewer tokens.
static rlhf_status put_table(const struct job *j, const struct rlhf__generated *g,
                             struct rlhf__buf *out, struct rlhf__error *err) {
    const struct rlhf__token_row row = {g->prompt_ids, g->n_prompt, g->ids, g->n};
    struct rlhf__token_numbers x;
    rlhf_status st = rlhf__token_numbers_take(j->m, j->critic, &row, &x, err);
    const struct rlhf__token_table t = {.tok = j->m->tok,
                                        .ids = g->ids,
                                        .logp = x.logp,
                                        .entropy = x.entropy,
                                        .value = x.value,
                                        .n = g->n};
    if (st == RLHF_OK) st = rlhf__token_table_put(&t, out, err);
    rlhf__token_numbers_finish(&x);
    return st;
}

// Print n texts, numbered from `first`.
static rlhf_status print_block(const struct job *j, const struct rlhf__gen_result *r,
                               uint64_t first, uint32_t n, struct rlhf__error *err) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        size_t len = 0;
        size_t p = (size_t)((first + i) / (uint64_t)j->o->n);
        struct rlhf__generated g = {.prompt = j->in.prompts.text[p],
                                    .chat = !rlhf__generate_input_is_text(&j->in, p),
                                    .prompt_ids = j->in.ids.data + j->in.at[p],
                                    .n_prompt = j->in.at[p + 1] - j->in.at[p],
                                    .ids = r->ids + (size_t)i * (size_t)r->stride,
                                    .logp = r->logp + (size_t)i * (size_t)r->stride,
                                    .n = (size_t)r->len[i],
                                    .finished = r->stopped[i]};
        char *text = rlhf__tokenizer_text(j->m->tok, g.ids, g.n, RLHF__DECODE_SKIP_SPECIAL, &len);
        if (!text) {
            st = RLHF__NOMEM(err, "out of memory printing");
            break;
        }
        g.response = (rlhf_str){text, rlhf__response_text_end(j->rules, text, len)};
        rlhf__buf_clear(&out);
        if (j->o->json)
            rlhf__generated_json(&g, &out);
        else
            rlhf__generated_text(&g, first + i == 0, &out);
        free(text);
        if (j->o->token_table) st = put_table(j, &g, &out, err);
        if (st == RLHF_OK) st = rlhf__buf_ok(&out, err);
        if (st == RLHF_OK) fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
    }
    rlhf__buf_finish(&out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// ---- sampling ----

// A text's random numbers depend only on the text's index, so the block size does not affect texts.
static rlhf_status sample_block(const struct job *j, rlhf_gen *cache, struct rlhf__gen_request *q,
                                struct rlhf__error *err) {
    const int32_t *prompt[BLOCK_ROWS];
    int32_t len[BLOCK_ROWS];
    struct rlhf__gen_result r = {0};
    for (uint32_t i = 0; i < q->n; i++) {
        size_t p = (size_t)((q->first + i) / (uint64_t)j->o->n);
        prompt[i] = j->in.ids.data + j->in.at[p];
        len[i] = (int32_t)(j->in.at[p + 1] - j->in.at[p]);
    }
    q->prompt = prompt;
    q->prompt_len = len;
    rlhf_status st = rlhf__generate(j->m, cache, q, &r, err);
    if (st == RLHF_OK) st = print_block(j, &r, q->first, q->n, err);
    rlhf__gen_result_finish(&r);
    q->prompt = NULL; // these arrays live on this function's stack
    q->prompt_len = NULL;
    return st;
}

static rlhf_status sample(const struct job *j, const struct rlhf__env *env,
                          struct rlhf__error *err) {
    const struct options *o = j->o;
    if (o->top_k > j->m->info.n_vocab)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "--top-k is %lld, more than the %d tokens of the vocabulary; 0 keeps all",
                          (long long)o->top_k, (int)j->m->info.n_vocab);
    const uint64_t all = (uint64_t)j->in.prompts.n * (uint64_t)o->n;
    const uint32_t wish = rlhf__compute_slots(j->m->compute, 0);
    const uint32_t slots = all < wish ? (uint32_t)all : wish;
    const uint32_t each = o->n < BLOCK_ROWS ? (uint32_t)o->n : BLOCK_ROWS;
    rlhf_gen *cache = NULL;
    rlhf_dist dist = RLHF_DIST(1 / o->temperature, o->top_p, (int32_t)o->top_k, o->greedy);
    dist.min_p = o->min_p;
    struct rlhf__gen_request q = {.prefix_slots = rlhf__prefix_slots(j->m, slots, each),
                                  .max_new = (int32_t)o->max_new,
                                  .ends = o->ignore_eos ? NULL : &j->m->ends,
                                  .rules = j->rules,
                                  .dist = &dist,
                                  .logp_dist = &dist,
                                  .seed = (uint64_t)o->seed,
                                  .stream = rlhf_rng_stream("generate"),
                                  .cancelled = env->cancelled};
    RLHF_TRY(rlhf__compute_draws(j->m->compute, &dist, err));
    rlhf_status st = rlhf__model_gen_open(
        j->m, slots + q.prefix_slots, (uint32_t)((int64_t)j->in.longest + o->max_new), &cache, err);
    for (uint64_t at = 0; st == RLHF_OK && at < all; at += q.n) {
        q.first = at;
        q.n = (uint32_t)(all - at < BLOCK_ROWS ? all - at : BLOCK_ROWS);
        q.slots = q.n < slots ? q.n : slots;
        st = sample_block(j, cache, &q, err);
    }
    rlhf__model_gen_close(j->m, cache);
    return st;
}

static rlhf_status open_prompts(struct job *j, const struct rlhf__command_setup *w,
                                struct rlhf__error *err) {
    const struct rlhf__loading loading = rlhf__command_setup_loading(w, j->o->max_mib);
    const char *file = j->o->prompts;
    if (!file && j->o->prompt.n == 0) {
        if (rlhf__stdin_is_fed()) file = "-";
        rlhf__logf(w->env->log, RLHF_LOG_INFO,
                   file ? "prompts are read from standard input, one a line: texts, or JSON rows"
                        : "no prompt is given: texts begin at the BOS token");
    }
    return rlhf__typed_prompts_open(&j->in.prompts, &j->o->prompt, file, &loading, err);
}

// Without a prompt, a person at a terminal types texts.
static int is_dialogue(const struct options *o) {
    return !o->prompts && !o->prompt.n && !o->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static rlhf_status talk(struct rlhf__command_setup *w, const struct options *o,
                        struct rlhf__error *err) {
    struct rlhf__dialogue_start start = {.setup = w,
                                         .given = o->model ? o->model : o->at.adapter,
                                         .chat = o->chat,
                                         .stop = &o->stop,
                                         .stop_id = &o->stop_id,
                                         .settings = {.temperature = o->temperature,
                                                      .top_p = o->top_p,
                                                      .min_p = o->min_p,
                                                      .top_k = o->top_k,
                                                      .max_new = o->max_new,
                                                      .seed = o->seed,
                                                      .greedy = o->greedy,
                                                      .ignore_eos = o->ignore_eos},
                                         .n = o->n,
                                         .bos = o->bos,
                                         .raw = o->raw};
    RLHF_TRY(rlhf__command_setup_start(w, o->seed, err));
    RLHF_TRY(rlhf__command_setup_writer(w, o->model, &start.model, err));
    return rlhf__dialogue(&start, err);
}

// The critic of the run that wrote the model, if the run had a critic.
static rlhf_status open_critic(struct rlhf__command_setup *w, struct job *j,
                               struct rlhf__error *err) {
    const char *dir = j->m->peft.dir ? j->m->peft.dir : j->m->dir;
    return rlhf__command_setup_critic(w, dir, &j->critic, err);
}

static rlhf_status run(const struct rlhf__env *env, const struct options *o,
                       struct rlhf__error *err) {
    struct rlhf__command_setup w = {0};
    struct rlhf__model *m = NULL;
    struct job j = {.o = o, .stops = RLHF__BUF_INIT};
    j.in.how = (struct rlhf__generate_how){.chat = o->chat,
                                           .max_new = o->max_new,
                                           .bos = o->bos,
                                           .raw = o->raw,
                                           .ignore_eos = o->ignore_eos,
                                           .flags = o->prompt.n > 0};
    RLHF_TRY(rlhf__command_setup_chat_check(&o->chat, err));
    // The progress bar is off, because the terminal shows the texts.
    rlhf_status st = rlhf__command_setup_init(&w, env, &o->at, RLHF__PROGRESS_OFF, err);
    if (st == RLHF_OK && is_dialogue(o)) {
        st = talk(&w, o, err);
        rlhf__command_setup_finish(&w);
        return st;
    }
    if (st == RLHF_OK) st = open_prompts(&j, &w, err);
    if (st == RLHF_OK) st = rlhf__command_setup_start(&w, o->seed, err);
    if (st == RLHF_OK) st = rlhf__command_setup_writer(&w, o->model, &m, err);
    j.m = m;
    j.in.model = m;
    if (st == RLHF_OK) st = rlhf__generate_input_template(&j.in, err);
    if (st == RLHF_OK)
        st = rlhf__typed_stops(&o->stop, &o->stop_id, m->tok, &j.rules, &j.stops, err);
    if (st == RLHF_OK) st = rlhf__generate_input_encode(&j.in, env->cancelled, err);
    if (st == RLHF_OK && o->token_table) st = open_critic(&w, &j, err);
    if (st == RLHF_OK) rlhf__generate_input_log(&j.in, rlhf__buf_text(&j.stops), env->log);
    if (st == RLHF_OK) log_decoding(&j, env->log);
    if (st == RLHF_OK) st = sample(&j, env, err);
    rlhf__generate_input_finish(&j.in);
    rlhf__response_rules_close(j.rules);
    rlhf__buf_finish(&j.stops);
    rlhf__model_close(j.critic);
    rlhf__model_close(m);
    rlhf__command_setup_finish(&w);
    return st;
}

// Play with an environment instead.
static rlhf_status play(const struct rlhf__env *env, const struct options *o,
                        struct rlhf__error *err) {
    const struct rlhf__flag_idle idle[] = {{"--prompt", o->prompt.n > 0},
                                           {"--stop-id", o->stop_id.n > 0},
                                           {"--greedy", o->greedy},
                                           {"--raw", o->raw},
                                           {"--bos", o->bos},
                                           {"--ignore-eos", o->ignore_eos},
                                           {"--token-table", o->token_table}};
    RLHF_TRY(rlhf__flags_idle(idle, sizeof idle / sizeof *idle, "generate", "with --env", err));
    const struct rlhf__generate_episodes e = {.model = o->model,
                                              .environment = o->environment,
                                              .prompts = o->prompts,
                                              .chat = o->chat,
                                              .stop = &o->stop,
                                              .n = o->n,
                                              .max_new = o->max_new,
                                              .turns = o->turns,
                                              .seed = o->seed < 0 ? 1 : o->seed,
                                              .top_k = o->top_k,
                                              .max_mib = o->max_mib,
                                              .temperature = o->temperature,
                                              .top_p = o->top_p,
                                              .min_p = o->min_p,
                                              .json = o->json,
                                              .at = &o->at};
    return rlhf__generate_episodes(env, &e, err);
}

// Reject flags that have no effect with --greedy. Then set the defaults of flags that were not
// given.
static rlhf_status check_flags(struct options *o, struct rlhf__error *err) {
    const struct rlhf__flag_idle turns = {"--turns", o->turns > 0};
    RLHF_TRY(rlhf__flags_idle(&turns, 1, "generate", "without --env", err));
    const struct rlhf__flag_idle drawing[] = {{"--temperature", o->temperature > 0},
                                              {"--top-k", o->top_k >= 0},
                                              {"--top-p", o->top_p > 0},
                                              {"--min-p", o->min_p >= 0},
                                              {"--seed", o->seed >= 0},
                                              {"--n", o->n > 1}};
    const struct rlhf__flag_idle table = {"--token-table", o->token_table};
    if (o->json)
        RLHF_TRY(rlhf__flags_idle(&table, 1, "generate",
                                  "with --json, which prints log-probs itself", err));
    if (is_dialogue(o))
        RLHF_TRY(
            rlhf__flags_idle(&table, 1, "generate", "in a dialogue, where /tokens shows it", err));
    if (o->greedy) RLHF_TRY(rlhf__flags_idle(drawing, 6, "generate", "with --greedy", err));
    if (o->temperature <= 0) o->temperature = 1;
    if (o->top_k < 0) o->top_k = 0;
    if (o->top_p <= 0) o->top_p = 1;
    if (o->min_p < 0) o->min_p = 0;
    if (o->seed < 0) o->seed = 1;
    if (o->max_new < 0) o->max_new = 48;
    return RLHF_OK;
}

int rlhf__cmd_generate(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.at = RLHF__COMMAND_SETUP_DEFAULTS,
                        .n = 1,
                        .max_new = -1,
                        .seed = -1, // below the flag's minimum: not given
                        .top_k = -1,
                        .min_p = -1};
    if (rlhf__flags_helped(flags, N_FLAGS, "rlhf-host generate --model DIR [--prompt TEXT] [flags]",
                           argc, argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK && o.environment) {
        st = play(env, &o, &err);
    } else {
        if (st == RLHF_OK) st = check_flags(&o, &err);
        if (st == RLHF_OK) st = run(env, &o, &err);
    }
    free(o.prompt.item);
    free(o.stop.item);
    free(o.stop_id.item);
    return rlhf__cmd_end(env, st, &err);
}
