// generate.c: `rlhf-host generate`: sample continuations of one prompt from a model directory.
//
// Texts go to stdout, one after another with a line "---" between them, or as JSON Lines.
#include "cmd/commands.h"

#include "base/json.h"
#include "base/printable.h"
#include "cmd/flags.h"
#include "model/session.h"
#include "train/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SLOTS 64

struct options {
    const char *model, *prompt, *backend, *dtype;
    int64_t n, max_new, seed, top_k, threads;
    double temperature, top_p;
    int32_t greedy, bos, ignore_eos, json;
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--model", model, "DIR", "model directory; the default policy when not given"),
    RLHF__FLAG_S(O, "--prompt", prompt, "TEXT", "text to continue; empty: the BOS token alone"),
    RLHF__FLAG_I(O, "--n", n, "K", 1, 1 << 20, "how many texts [1]"),
    RLHF__FLAG_I(O, "--max-new", max_new, "N", 1, RLHF__MAX_NEW_TOKENS,
                 "longest text in new tokens [48]"),
    RLHF__FLAG_F(O, "--temperature", temperature, "T", 1e-6, 100, "logits are divided by it [1]"),
    RLHF__FLAG_I(O, "--top-k", top_k, "K", 0, 1 << 24, "keep the K most likely tokens; 0: all [0]"),
    RLHF__FLAG_F(O, "--top-p", top_p, "P", 1e-9, 1, "keep the most likely mass P [1]"),
    RLHF__FLAG_SW(O, "--greedy", greedy, "always the most likely token"),
    RLHF__FLAG_SW(O, "--bos", bos, "put the BOS token in front of the prompt"),
    RLHF__FLAG_SW(O, "--ignore-eos", ignore_eos, "do not end at the end token"),
    RLHF__FLAG_I(O, "--seed", seed, "S", 0, INT64_MAX, "seed of the draws [1]"),
    RLHF__FLAG_I(O, "--threads", threads, "N", 0, 1024, "CPU threads; 0: all [0]"),
    RLHF__FLAG_S(O, "--backend", backend, "NAME", "kernels: cpu or reference [cpu]"),
    RLHF__FLAG_S(O, "--dtype", dtype, "T", "auto, f32 or bf16 [auto]"),
    RLHF__FLAG_SW(O, "--json", json, "one JSON object a line: prompt, response, logp, finished"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

static rlhf_status encode_prompt(const struct rlhf__model *m, const struct options *o,
                                 struct rlhf__ids *ids, struct rlhf__error *err) {
    rlhf_str text = {o->prompt, strlen(o->prompt)};
    uint32_t how = o->bos || text.len == 0 ? RLHF__ENCODE_BOS : 0;
    rlhf_status st = rlhf__tokenizer_encode(m->tok, text, how, 0, ids, err);
    if (st == RLHF_OK && (int64_t)ids->n + o->max_new > m->info.n_ctx)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the prompt has %zu tokens; with --max-new %lld that is more than the "
                          "context of '%s', %d tokens",
                          ids->n, (long long)o->max_new, m->dir, m->info.n_ctx);
    return st;
}

static void print_json(const struct options *o, const struct rlhf__gen_result *r, uint32_t i,
                       const char *text, size_t len) {
    struct rlhf__buf line = RLHF__BUF_INIT;
    char number[40];
    double logp = 0;
    for (int32_t k = 0; k < r->len[i]; k++)
        logp += (double)r->logp[(size_t)i * (size_t)r->stride + (size_t)k];
    rlhf__buf_puts(&line, "{\"prompt\": ");
    rlhf__json_write_string(&line, o->prompt, strlen(o->prompt));
    rlhf__buf_puts(&line, ", \"response\": ");
    rlhf__json_write_string(&line, text, len);
    rlhf__buf_printf(&line, ", \"logp\": %s, \"finished\": %s}",
                     rlhf__format_double(logp, 1, number), r->stopped[i] ? "true" : "false");
    puts(rlhf__buf_text(&line));
    rlhf__buf_free(&line);
}

// The text as it is, except on a terminal, which would obey what a model happens to write.
static void print_text(const struct options *o, uint32_t i, const char *text, size_t len) {
    struct rlhf__buf all = RLHF__BUF_INIT;
    if (i) rlhf__buf_puts(&all, "---\n");
    if (isatty(STDOUT_FILENO)) {
        rlhf__put_printable(&all, o->prompt, strlen(o->prompt), "\n\t");
        rlhf__put_printable(&all, text, len, "\n\t");
    } else {
        rlhf__buf_puts(&all, o->prompt);
        rlhf__buf_put(&all, text, len);
    }
    puts(rlhf__buf_text(&all));
    rlhf__buf_free(&all);
}

static rlhf_status print_all(const struct rlhf__model *m, const struct options *o,
                             const struct rlhf__gen_result *r, struct rlhf__error *err) {
    for (uint32_t i = 0; i < (uint32_t)o->n; i++) {
        size_t len = 0;
        char *text = rlhf__tokenizer_text(m->tok, r->ids + (size_t)i * (size_t)r->stride,
                                          (size_t)r->len[i], RLHF__DECODE_SKIP_SPECIAL, &len);
        if (!text) return RLHF__NOMEM(err, "out of memory printing");
        if (o->json)
            print_json(o, r, i, text, len);
        else
            print_text(o, i, text, len);
        free(text);
    }
    if (fflush(stdout) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "cannot write to standard output");
}

static rlhf_status sample(const struct rlhf__model *m, const struct options *o,
                          const struct rlhf__env *env, struct rlhf__error *err) {
    struct rlhf__ids ids = {0};
    rlhf_gen *session = NULL;
    struct rlhf__gen_result r = {0};
    uint32_t n = (uint32_t)o->n, slots = n < MAX_SLOTS ? n : MAX_SLOTS;
    uint32_t prefix_slots = rlhf__prefix_slots(m, slots, n) ? 1 : 0; // there is one prompt
    const int32_t **prompt = calloc(n, sizeof *prompt);
    int32_t *len = calloc(n, sizeof *len);
    rlhf_status st = RLHF_OK;
    if (!prompt || !len) st = RLHF__NOMEM(err, "out of memory for %u texts", n);
    if (st == RLHF_OK) st = encode_prompt(m, o, &ids, err);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        prompt[i] = ids.data;
        len[i] = (int32_t)ids.n;
    }
    rlhf_dist dist = {1 / o->temperature, o->top_p, (int32_t)o->top_k, o->greedy};
    struct rlhf__gen_request q = {.n = n,
                                  .slots = slots,
                                  .prefix_slots = prefix_slots,
                                  .prompt = prompt,
                                  .prompt_len = len,
                                  .max_new = (int32_t)o->max_new,
                                  .stop_id = o->ignore_eos ? -1 : rlhf__tokenizer_info(m->tok)->eos,
                                  .dist = &dist,
                                  .logp_dist = &dist,
                                  .seed = (uint64_t)o->seed,
                                  .stream = rlhf_rng_stream("generate"),
                                  .cancelled = env->cancelled};
    if (st == RLHF_OK)
        st = rlhf__model_gen_open(m, slots + prefix_slots, (uint32_t)((int64_t)ids.n + o->max_new),
                                  &session, err);
    if (st == RLHF_OK) st = rlhf__generate(m, session, &q, &r, err);
    if (st == RLHF_OK) st = print_all(m, o, &r, err);
    rlhf__gen_result_finish(&r);
    rlhf__model_gen_close(m, session);
    rlhf__ids_finish(&ids);
    free(prompt);
    free(len);
    return st;
}

static rlhf_status run(const struct rlhf__env *env, const struct options *o,
                       struct rlhf__error *err) {
    struct rlhf__plugins *plugins = NULL;
    struct rlhf__session session = {0};
    struct rlhf__model *m = NULL;
    struct rlhf__compute_config compute = {.backend = o->backend};
    struct rlhf__run_config run_config = {.seed = o->seed, .threads = o->threads};
    char built_in[2048];
    rlhf__default_model(env->dirs, "policy", built_in);
    struct rlhf__model_spec spec = {
        .dir = o->model ? o->model : built_in, .role = "model", .frozen = 1};
    rlhf_status st = rlhf__dtype_choice(o->dtype, "--dtype", &compute.dtype, err);
    if (st == RLHF_OK) st = rlhf__plugins_create(env->dirs, &plugins, err);
    if (st == RLHF_OK)
        st = rlhf__session_init(&session, env->dirs, env->log, env->cancelled, plugins, &compute,
                                &run_config, err);
    if (st == RLHF_OK) st = rlhf__model_open(&session.models, &spec, &m, err);
    if (st == RLHF_OK) st = rlhf__model_writes(m, err);
    if (st == RLHF_OK) st = sample(m, o, env, err);
    rlhf__model_close(m);
    rlhf__session_finish(&session);
    rlhf__plugins_destroy(plugins);
    return st;
}

// Flags that --greedy leaves without a use; then the defaults of those that were not given.
static rlhf_status check_flags(struct options *o, struct rlhf__error *err) {
    const struct rlhf__flag_idle drawing[] = {{"--temperature", o->temperature > 0, 0},
                                              {"--top-k", o->top_k >= 0, 0},
                                              {"--top-p", o->top_p > 0, 0},
                                              {"--seed", o->seed >= 0, 0},
                                              {"--n", o->n > 1, 0}};
    if (o->greedy) RLHF_TRY(rlhf__flags_idle(drawing, 5, "generate", "with --greedy", err));
    if (o->temperature <= 0) o->temperature = 1;
    if (o->top_k < 0) o->top_k = 0;
    if (o->top_p <= 0) o->top_p = 1;
    if (o->seed < 0) o->seed = 1;
    return RLHF_OK;
}

int rlhf__cmd_generate(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct options o = {.prompt = "",
                        .backend = "cpu",
                        .dtype = "auto",
                        .n = 1,
                        .max_new = 48,
                        .seed = -1, // of these: below what the flag allows, not given
                        .top_k = -1};
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        puts("usage: rlhf-host generate --model DIR --prompt TEXT [flags]");
        rlhf__flags_help(stdout, flags, N_FLAGS);
        return 0;
    }
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, NULL, &err);
    if (st == RLHF_OK) st = check_flags(&o, &err);
    if (st == RLHF_OK) st = run(env, &o, &err);
    if (st == RLHF_OK) return 0;
    if (st == RLHF_E_CANCELLED) return 130;
    rlhf__log_error(env->log, err.text);
    return rlhf__exit_status(st);
}
