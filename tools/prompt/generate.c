// generate.c: `rlhf-host generate`: samples continuations of prompts from a model directory.
//
// Texts go to stdout, separated by lines "---", or as JSON Lines.
#include "prompt/prompt.h"

#include "base/json.h"
#include "cmd/command_setup.h"
#include "cmd/commands.h"
#include "cmd/program.h"
#include "model/text_note.h"
#include "prompt/dialogue.h"
#include "prompt/generate_prompts.h"
#include "sample/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK_ROWS 512 // texts sampled, then printed

struct options {
    const char *model, *prompts, *template;
    struct rlhf__flag_list prompt, stop, stop_id;
    int64_t n, max_new, seed, top_k, max_mib;
    double temperature, top_p, min_p;
    int32_t greedy, bos, raw, ignore_eos, json;
    struct rlhf__command_setup_flags at;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--model", model, "DIR", "model directory; the default policy when not given"),
    RLHF__FLAG_L(O, "--prompt", prompt, "TEXT",
                 "text to continue, a user's turn where the model has a chat template; repeatable; "
                 "empty: the BOS token alone; without it, a terminal asks for texts"),
    RLHF__FLAG_S(
        O, "--prompts", prompts, "FILE",
        "prompts: .jsonl, .jsonl.gz or .txt (a line each); -: standard input, JSON rows or "
        "lines, which is also read when it is piped and no prompt is given"),
    RLHF__TEMPLATE_FLAG(O),
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
    RLHF__COMMAND_SETUP_FLAGS(O),
    RLHF__FLAG_SW(O, "--json", json,
                  "one JSON object a line: prompt, response, logp, finished, prompt_length, ids, "
                  "logp_sampled"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

// The input of sampling: the prompts as texts and as ids, concatenated.
struct job {
    const struct rlhf__model *m;
    const struct options *o;
    struct rlhf__typed_prompts prompts;
    struct rlhf__ids ids;
    size_t *at; // [prompts + 1] offsets in ids
    size_t longest;
    int32_t texts_alone, reserved; // 1: the run that trained the model had no rows with messages
    struct rlhf__response_rules *rules; // --stop and --stop-id
    struct rlhf__buf stops;             // the same rules in the form of sampling.stop
};

// Returns 1 if prompt i is a text. Otherwise it is a chat, and the template decides how it begins.
static int is_text(const struct job *j, size_t i) {
    return !rlhf__typed_prompts_is_chat(&j->prompts, i);
}

static rlhf_status no_bos(const struct job *j, size_t i, struct rlhf__error *err) {
    char where[512];
    if (j->o->bos)
        return rlhf__fail(err, RLHF_E_INVALID, "--bos: the tokenizer of '%s' has no BOS token",
                          j->m->dir);
    rlhf__typed_prompts_where(&j->prompts, i, where, sizeof where);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s is empty, which stands for the BOS token alone, but the tokenizer of "
                      "'%s' has none",
                      where, j->m->dir);
}

// Tell users that texts begin without the BOS token. Policies are trained with it
// (prompts.prepend_bos), and transformers adds it if the tokenizer says so.
static void log_bos(const struct job *j, struct rlhf__log *log) {
    int left_out = 0;
    for (size_t i = 0; i < j->prompts.n; i++)
        left_out |= is_text(j, i) && j->prompts.text[i].len > 0;
    if (left_out && !j->o->bos && rlhf__tokenizer_has_bos(j->m->tok))
        rlhf__logf(log, RLHF_LOG_INFO,
                   "prompts begin without a BOS token, which this tokenizer puts in front of "
                   "texts; --bos does it here");
}

static rlhf_status encode_prompt(struct job *j, size_t i, struct rlhf__error *err) {
    const struct options *o = j->o;
    const int front = is_text(j, i) && (o->bos || j->prompts.text[i].len == 0);
    if (front && rlhf__tokenizer_info(j->m->tok)->bos < 0) return no_bos(j, i, err);
    j->at[i] = j->ids.n;
    RLHF_TRY(rlhf__typed_prompts_encode(&j->prompts, i, j->m->tok, o->bos, &j->ids, err));
    size_t n = j->ids.n - j->at[i];
    j->at[i + 1] = j->ids.n;
    if (n > j->longest) j->longest = n;
    if ((int64_t)n + o->max_new <= j->m->info.n_ctx) return RLHF_OK;
    char where[512];
    rlhf__typed_prompts_where(&j->prompts, i, where, sizeof where);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s has %zu token%s; with --max-new %lld that is more than the context of "
                      "'%s', %d tokens",
                      where, n, n == 1 ? "" : "s", (long long)o->max_new, j->m->dir,
                      j->m->info.n_ctx);
}

static const char *known(const struct job *j) {
    return rlhf__chat_known(rlhf__tokenizer_chat(j->m->tok));
}

// Set the chat template, and decide whether typed texts become turns in it.
static rlhf_status name_template(struct job *j, struct rlhf__error *err) {
    int64_t chats = 0;
    for (size_t i = 0; j->prompts.own && i < j->prompts.n; i++)
        chats += j->prompts.own[i] != NULL;
    int lines = 0;
    for (size_t i = 0; j->prompts.lines && i < j->prompts.n; i++)
        lines |= j->prompts.text[i].len > 0;
    const struct rlhf__flag_idle raw = {"--raw", j->o->raw && !lines, 0};
    RLHF_TRY(rlhf__flags_idle(&raw, 1, "generate",
                              j->o->prompt.n
                                  ? "here: the prompt is empty, so the text begins at the BOS "
                                    "token, without a chat template"
                                  : "here: no text is given by --prompt or as a piped line",
                              err));
    RLHF_TRY(rlhf__command_setup_template_used("generate", j->o->template,
                                               chats + (lines && !j->o->raw), err));
    RLHF_TRY(rlhf__command_setup_template(j->m, j->o->template, err));
    RLHF_TRY(rlhf__texts_alone(j->m, &j->texts_alone, err));
    const int alone = j->texts_alone && !j->o->template;
    j->prompts.turns = lines && !j->o->raw && !alone && known(j) != NULL;
    return RLHF_OK;
}

// Log whether texts go through the chat template, if the model has one.
static void log_template(const struct job *j, struct rlhf__log *log) {
    const char *unknown = rlhf__chat_unknown(rlhf__tokenizer_chat(j->m->tok));
    struct rlhf__buf what = RLHF__BUF_INIT;
    int texts = 0;
    for (size_t i = 0; i < j->prompts.n; i++)
        texts |= is_text(j, i) && j->prompts.text[i].len > 0;
    rlhf__chat_describe(rlhf__tokenizer_chat(j->m->tok), &what);
    if (j->prompts.turns)
        rlhf__logf(log, RLHF_LOG_INFO,
                   "each prompt is a user's turn of the chat template %s; --raw leaves it out",
                   rlhf__buf_text(&what));
    else if (texts && known(j))
        rlhf__logf(log, RLHF_LOG_INFO,
                   "prompts are continued as they are, without the chat template %s%s", known(j),
                   j->o->raw        ? ""
                   : j->texts_alone ? ", since the model's run had no messages; --template NAME "
                                      "makes them a user's turns"
                                    : "; rows with messages get it");
    else if (texts && unknown)
        rlhf__logf(log, RLHF_LOG_WARN,
                   "prompts are continued as they are: %s; --template names one", unknown);
    else if (j->o->raw)
        rlhf__logf(log, RLHF_LOG_INFO, "--raw changes nothing: the model has no chat template");
    rlhf__buf_free(&what);
}

// Warn if a prompt goes through a template whose end-of-turn token does not end responses.
static void warn_turn_end(const struct job *j, struct rlhf__log *log) {
    int chats = 0;
    for (size_t i = 0; i < j->prompts.n; i++)
        chats |= !is_text(j, i);
    if (chats && !j->o->ignore_eos)
        rlhf__model_turn_end_note(j->m, rlhf__buf_text(&j->stops), RLHF__REMEDY_FLAG, log);
}

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
    rlhf__buf_free(&cut);
}

static rlhf_status encode_prompts(struct job *j, struct rlhf__error *err) {
    j->at = calloc(j->prompts.n + 1, sizeof *j->at);
    if (!j->at) return RLHF__NOMEM(err, "out of memory for %zu prompts", j->prompts.n);
    for (size_t i = 0; i < j->prompts.n; i++)
        RLHF_TRY(encode_prompt(j, i, err));
    return RLHF_OK;
}

// Print n texts, numbered from `first`.
static rlhf_status print_block(const struct job *j, const struct rlhf__gen_result *r,
                               uint64_t first, uint32_t n, struct rlhf__error *err) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        size_t len = 0;
        size_t p = (size_t)((first + i) / (uint64_t)j->o->n);
        struct rlhf__generated g = {.prompt = j->prompts.text[p],
                                    .chat = !is_text(j, p),
                                    .prompt_ids = j->ids.data + j->at[p],
                                    .n_prompt = j->at[p + 1] - j->at[p],
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
        st = rlhf__buf_ok(&out, err);
        if (st == RLHF_OK) fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
    }
    rlhf__buf_free(&out);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

// ---- sampling ----

// The random numbers of a text depend only on its index, so the block size does not affect texts.
static rlhf_status sample_block(const struct job *j, rlhf_gen *cache, struct rlhf__gen_request *q,
                                struct rlhf__error *err) {
    const int32_t *prompt[BLOCK_ROWS];
    int32_t len[BLOCK_ROWS];
    struct rlhf__gen_result r = {0};
    for (uint32_t i = 0; i < q->n; i++) {
        size_t p = (size_t)((q->first + i) / (uint64_t)j->o->n);
        prompt[i] = j->ids.data + j->at[p];
        len[i] = (int32_t)(j->at[p + 1] - j->at[p]);
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
    const uint64_t all = (uint64_t)j->prompts.n * (uint64_t)o->n;
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
        j->m, slots + q.prefix_slots, (uint32_t)((int64_t)j->longest + o->max_new), &cache, err);
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
    return rlhf__typed_prompts_open(&j->prompts, &j->o->prompt, file, &loading, err);
}

// Without a prompt, a person at a terminal types texts.
static int is_dialogue(const struct options *o) {
    return !o->prompts && !o->prompt.n && !o->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static rlhf_status talk(struct rlhf__command_setup *w, const struct options *o,
                        struct rlhf__error *err) {
    struct rlhf__dialogue_start start = {.setup = w,
                                         .given = o->model ? o->model : o->at.adapter,
                                         .template = o->template,
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

static rlhf_status run(const struct rlhf__env *env, const struct options *o,
                       struct rlhf__error *err) {
    struct rlhf__command_setup w = {0};
    struct rlhf__model *m = NULL;
    struct job j = {.o = o, .stops = RLHF__BUF_INIT};
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
    if (st == RLHF_OK) st = name_template(&j, err);
    if (st == RLHF_OK)
        st = rlhf__typed_stops(&o->stop, &o->stop_id, m->tok, &j.rules, &j.stops, err);
    if (st == RLHF_OK) st = encode_prompts(&j, err);
    if (st == RLHF_OK) log_template(&j, env->log);
    if (st == RLHF_OK) warn_turn_end(&j, env->log);
    if (st == RLHF_OK) log_bos(&j, env->log);
    if (st == RLHF_OK) log_decoding(&j, env->log);
    if (st == RLHF_OK) st = sample(&j, env, err);
    rlhf__typed_prompts_finish(&j.prompts);
    rlhf__ids_finish(&j.ids);
    free(j.at);
    rlhf__response_rules_destroy(j.rules);
    rlhf__buf_free(&j.stops);
    rlhf__model_close(m);
    rlhf__command_setup_finish(&w);
    return st;
}

// Reject flags that have no effect with --greedy. Then set the defaults of flags that were not
// given.
static rlhf_status check_flags(struct options *o, struct rlhf__error *err) {
    const struct rlhf__flag_idle drawing[] = {{"--temperature", o->temperature > 0, 0},
                                              {"--top-k", o->top_k >= 0, 0},
                                              {"--top-p", o->top_p > 0, 0},
                                              {"--min-p", o->min_p >= 0, 0},
                                              {"--seed", o->seed >= 0, 0},
                                              {"--n", o->n > 1, 0}};
    if (o->greedy) RLHF_TRY(rlhf__flags_idle(drawing, 6, "generate", "with --greedy", err));
    if (o->temperature <= 0) o->temperature = 1;
    if (o->top_k < 0) o->top_k = 0;
    if (o->top_p <= 0) o->top_p = 1;
    if (o->min_p < 0) o->min_p = 0;
    if (o->seed < 0) o->seed = 1;
    return RLHF_OK;
}

int rlhf__cmd_generate(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.at = RLHF__COMMAND_SETUP_DEFAULTS,
                        .n = 1,
                        .max_new = 48,
                        .seed = -1, // below the flag's minimum: not given
                        .top_k = -1,
                        .min_p = -1};
    if (rlhf__flags_helped(flags, N_FLAGS, "rlhf-host generate --model DIR [--prompt TEXT] [flags]",
                           argc, argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK) st = check_flags(&o, &err);
    if (st == RLHF_OK) st = run(env, &o, &err);
    free(o.prompt.item);
    free(o.stop.item);
    free(o.stop_id.item);
    return rlhf__cmd_end(env, st, &err);
}
