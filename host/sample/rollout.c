// rollout.c: see rollout.h.
#include "sample/rollout.h"

#include "base/file.h"
#include "base/log.h"
#include "config/effect.h"
#include "model/text_note.h"
#include "sample/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns the path of the prompt file that the config names or, if it names none, of the embedded
// prompt file.
static const char *prompts_file(const struct rlhf__prompts_config *c, const struct rlhf__dirs *dirs,
                                char own[RLHF__PATH_CAP]) {
    if (c->path[0]) return rlhf__dirs_shared(dirs, c->path, own);
    rlhf__path_put(own, "%s/models/prompts.jsonl", dirs->share);
    return own;
}

static int32_t has_bos(const struct rlhf__model *m) {
    return rlhf__tokenizer_info(m->tok)->bos >= 0;
}

static rlhf_status check_top_k(const struct rlhf__config *c, const struct rlhf__model *m,
                               struct rlhf__error *err) {
    char why[160];
    const int32_t tokens = m->info.n_vocab;
    if (c->sampling.top_k <= tokens) return RLHF_OK;
    snprintf(why, sizeof why, "%lld is more than the %d tokens of the policy's vocabulary",
             (long long)c->sampling.top_k, (int)tokens);
    return rlhf__effect_refuse_typed(c, "sampling.top_k", why, err);
}

rlhf_status rlhf__rollout_check_model(const struct rlhf__config *c, const struct rlhf__model *m,
                                      struct rlhf__log *log, struct rlhf__error *err) {
    char why[RLHF__PATH_CAP + 64];
    RLHF_TRY(check_top_k(c, m, err));
    if (c->prompts.prepend_bos != RLHF__BOS_ALWAYS || has_bos(m)) return RLHF_OK;
    snprintf(why, sizeof why, "the tokenizer of '%s' has no BOS token", m->dir);
    RLHF_TRY(rlhf__effect_refuse_typed(c, "prompts.prepend_bos", why, err));
    rlhf__logf(log, RLHF_LOG_INFO, "prompts begin without a BOS token: the tokenizer has none");
    return RLHF_OK;
}

rlhf_status rlhf__rollout_check_rows(const struct rlhf__config *c, const struct rlhf__prompts *set,
                                     struct rlhf__error *err) {
    static const char why[] = "all rows have messages, and their chat template says how they begin";
    if (rlhf__prompts_are_lines(set))
        RLHF_TRY(rlhf__effect_refuse_typed(c, "prompts.field", "each line of the file is a prompt",
                                           err));
    if (rlhf__prompts_chats(set) < rlhf__prompts_count(set) ||
        c->prompts.prepend_bos != RLHF__BOS_ALWAYS)
        return RLHF_OK;
    return rlhf__effect_refuse_typed(c, "prompts.prepend_bos", why, err);
}

// Warn if most prompts were cut, because the policy then learns to continue fragments.
static void warn_of_cuts(const struct rlhf__prompts *set, const struct rlhf__prompts_config *c,
                         const char *setting, int32_t most, struct rlhf__log *log) {
    const struct rlhf__prompt_counts n = rlhf__prompts_counts(set);
    const int64_t used = rlhf__prompts_count(set);
    if (2 * n.cut <= used) return;
    rlhf__logf(
        log, RLHF_LOG_WARN,
        "%s: %.0f %% of the prompts do not fit into %d tokens and were cut at their %s; what "
        "helps: %s, or prompts.long_rows=skip",
        setting, 100 * (double)n.cut / (double)used, (int)most,
        c->long_rows == RLHF__PROMPT_CUT_RIGHT ? "end" : "beginning",
        c->max_tokens ? "a higher prompts.max_tokens" : "a lower sampling.max_new_tokens");
}

rlhf_status rlhf__rollout_prompts(const struct rlhf__prompts_config *c, const char *setting,
                                  const struct rlhf__model *m,
                                  const struct rlhf__sampling_config *sampling,
                                  const struct rlhf__dirs *dirs, struct rlhf__log *log,
                                  const struct rlhf__loading *loading, struct rlhf__prompts **out,
                                  struct rlhf__error *err) {
    const int32_t max_new = (int32_t)sampling->max_new_tokens;
    int64_t room = (int64_t)m->info.n_ctx - max_new;
    if (room < 1)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "sampling.max_new_tokens is %d, but the context of '%s' is %d tokens and a "
            "prompt needs one",
            max_new, m->dir, m->info.n_ctx);
    if (c->max_tokens > room)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "prompts.max_tokens %lld and sampling.max_new_tokens %d are together more "
            "than the context of '%s', %d tokens",
            (long long)c->max_tokens, max_new, m->dir, m->info.n_ctx);
    const int32_t bos = rlhf__tokenizer_has_bos(m->tok);
    if (c->length + bos > room)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "prompts.length %lld%s and sampling.max_new_tokens %d are together more "
                          "than the context of '%s', %d tokens",
                          (long long)c->length, bos ? ", the BOS token" : "", max_new, m->dir,
                          m->info.n_ctx);
    char own[RLHF__PATH_CAP];
    const char *path = prompts_file(c, dirs, own);
    struct rlhf__prompt_opts o = {.text = c->text,
                                  .paths = &path,
                                  .n_paths = c->text[0] ? 0 : 1,
                                  .setting = setting,
                                  .field = strcmp(c->field, "prompt") == 0 ? NULL : c->field,
                                  .prepend_bos = bos,
                                  .start_after_period = c->start_after_period,
                                  .end_at_period = c->end_at_period,
                                  .length = (int32_t)c->length,
                                  .min_tokens = (int32_t)c->min_tokens,
                                  .long_rows = c->long_rows,
                                  .max_tokens = (int32_t)(c->max_tokens ? c->max_tokens : room),
                                  .limit = c->limit,
                                  .loading = loading};
    RLHF_TRY(rlhf__prompts_open(&o, m->tok, out, err));
    const int mine = strcmp(setting, "prompts.path") == 0;
    if (mine) rlhf__model_chat_note(m, rlhf__prompts_chats(*out), c, sampling->stop, log);
    struct rlhf__buf say = RLHF__BUF_INIT;
    rlhf__prompts_summary(*out, &say);
    if (say.len)
        rlhf__logf(log, RLHF_LOG_INFO, "%s: %s", mine ? "prompts" : setting, rlhf__buf_text(&say));
    rlhf__buf_finish(&say);
    warn_of_cuts(*out, c, mine ? "prompts" : setting, o.max_tokens, log);
    return RLHF_OK;
}

rlhf_dist rlhf__sampling_dist(const struct rlhf__sampling_config *s) {
    rlhf_dist dist = RLHF_DIST(1 / s->temperature, s->top_p, (int32_t)s->top_k, 0);
    dist.min_p = s->min_p;
    return dist;
}

struct rlhf__rollout_request rlhf__rollout_request(const struct rlhf__config *c,
                                                   const struct rlhf__model *model,
                                                   const struct rlhf__prompts *prompts,
                                                   struct rlhf__response_rules *rules) {
    const rlhf_dist dist = rlhf__sampling_dist(&c->sampling);
    return (struct rlhf__rollout_request){
        .model = model,
        .prompts = prompts,
        .slots = rlhf__compute_slots(model->compute, c->sampling.slots),
        .max_new = (int32_t)c->sampling.max_new_tokens,
        .stop_at_eos = rlhf__response_stops_at_eos(&c->sampling, model),
        .cut_at_stop = c->response.truncate == RLHF__TRUNCATE_STOP,
        .rules = rules,
        .dist = dist,
        .logp_dist = dist,
        .seed = (uint64_t)c->run.seed};
}

// Returns how many tokens of response i are kept. *finished receives 1 if a stop token or a stop
// text ended the response, else 0. Rows of several turns are kept whole.
static int32_t kept_length(const struct rlhf__rollout_request *q, const struct rlhf__gen_result *r,
                           uint32_t i, uint8_t *finished) {
    const int32_t *ids = r->ids + (size_t)i * (size_t)r->stride;
    *finished = r->stopped[i];
    if (r->turn) return r->len[i];
    for (int32_t k = 0; k < r->len[i]; k++) {
        if (!rlhf__ends_has(&q->model->ends, ids[k])) continue;
        *finished = 1;
        return q->cut_at_stop ? k + 1 : r->len[i];
    }
    return r->len[i];
}

static rlhf_status assemble_support(const struct rlhf__rollout_request *q,
                                    const struct rlhf__gen_result *r, struct rlhf__rows *e,
                                    struct rlhf__error *err) {
    rlhf_status st = rlhf__rows_add_support(e, q->model->info.n_vocab, err);
    uint32_t *to = e->support;
    for (uint32_t i = 0; st == RLHF_OK && i < e->n; i++) {
        size_t words = (size_t)rlhf__rows_response_tokens(e, i, i + 1) * e->support_words;
        memcpy(to, r->support + (size_t)i * (size_t)r->stride * e->support_words,
               words * sizeof *to);
        to += words;
    }
    return st;
}

// A row's prompt.
struct prompt {
    const int32_t *ids;
    int32_t n;
};

static struct prompt prompt_of(const struct rlhf__rollout_request *q, const int64_t *row,
                               uint32_t i) {
    if (q->turns) return (struct prompt){.ids = q->turn_prompt[i], .n = q->turn_prompt_len[i]};
    const struct rlhf__prompt p = rlhf__prompts_get(q->prompts, row[i]);
    return (struct prompt){.ids = p.ids, .n = p.n};
}

static rlhf_status assemble(const struct rlhf__rollout_request *q, const int64_t *row,
                            const struct rlhf__gen_result *r, struct rlhf__rows *e,
                            struct rlhf__error *err) {
    uint64_t total = 0;
    uint8_t finished;
    for (uint32_t i = 0; i < q->n; i++)
        total += (uint64_t)(prompt_of(q, row, i).n + kept_length(q, r, i, &finished));
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "a batch of %llu tokens is too large",
                          (unsigned long long)total);
    RLHF_TRY(rlhf__rows_init(e, q->n, (uint32_t)total, err));
    e->flags |= RLHF__DRAWN;
    if (r->turn) RLHF_TRY(rlhf__rows_add_turns(e, err));
    for (uint32_t i = 0; i < q->n; i++) {
        const struct prompt p = prompt_of(q, row, i);
        int32_t at = e->offset[i] + p.n, len = kept_length(q, r, i, &e->finished[i]);
        size_t from = (size_t)i * (size_t)r->stride;
        memcpy(e->ids + e->offset[i], p.ids, (size_t)p.n * sizeof *e->ids);
        memcpy(e->ids + at, r->ids + from, (size_t)len * sizeof *e->ids);
        memcpy(e->token[RLHF__LOGP_OLD] + at, r->logp + from, (size_t)len * sizeof(float));
        memcpy(e->token[RLHF__LOGP_SAMPLED] + at, r->logp + from, (size_t)len * sizeof(float));
        if (r->turn) memcpy(e->turn + at, r->turn + from, (size_t)len * sizeof *e->turn);
        e->prompt_len[i] = p.n;
        e->source[i] = row[i];
        e->version[i] = q->version;
        e->group[i] = (int32_t)(i / (q->group ? q->group : 1));
        e->offset[i + 1] = at + len;
    }
    return r->support ? assemble_support(q, r, e, err) : RLHF_OK;
}

// The context of row_ended.
struct telling {
    const struct rlhf__rollout_request *q;
    const int64_t *row;
    const struct rlhf__gen_result *r;
};

static void row_ended(void *ctx, uint32_t i) {
    const struct telling *t = ctx;
    const struct rlhf__prompt p = rlhf__prompts_get(t->q->prompts, t->row[i]);
    uint8_t finished;
    const int32_t len = kept_length(t->q, t->r, i, &finished);
    const struct rlhf__overlap_row row = {.row = i,
                                          .prompt_len = p.n,
                                          .response_len = len,
                                          .finished = finished,
                                          .source = t->row[i],
                                          .prompt = p.ids,
                                          .response = t->r->ids + (size_t)i * (size_t)t->r->stride};
    rlhf__overlap_add(t->q->overlap, &row);
}

// Sample into r, with the request's cache or, if the request has none, a temporary cache.
static rlhf_status draw(const struct rlhf__rollout_request *q, const int64_t *row,
                        struct rlhf__gen_result *r, struct rlhf__error *err) {
    const int32_t **ids = calloc(q->n ? q->n : 1, sizeof *ids);
    int32_t *len = calloc(q->n ? q->n : 1, sizeof *len);
    rlhf_gen *cache = q->cache;
    uint32_t slots = q->slots < q->n ? q->slots : q->n;
    struct telling telling = {q, row, r};
    rlhf_status st = RLHF_OK;
    if (!ids || !len) st = RLHF__NOMEM(err, "out of memory for %u prompts", q->n);
    for (uint32_t i = 0; st == RLHF_OK && i < q->n; i++) {
        struct rlhf__prompt p = rlhf__prompts_get(q->prompts, row[i]);
        ids[i] = p.ids;
        len[i] = p.n;
    }
    struct rlhf__gen_request g = {.n = q->n,
                                  .slots = slots,
                                  .prefix_slots = q->prefix_slots,
                                  .keep_support = q->keep_support,
                                  .prompt = ids,
                                  .prompt_len = len,
                                  .max_new = q->max_new,
                                  .ends = q->stop_at_eos ? &q->model->ends : NULL,
                                  .rules = q->rules,
                                  .dist = &q->dist,
                                  .logp_dist = &q->logp_dist,
                                  .seed = q->seed,
                                  .stream = rlhf_rng_stream(q->stream),
                                  .first = q->first,
                                  .cancelled = q->cancelled,
                                  .watch = q->watch,
                                  .doing = q->doing,
                                  .ended = q->overlap ? row_ended : NULL,
                                  .ended_ctx = &telling,
                                  .turns = q->turns};
    if (q->turns) {
        g.prompt = q->turn_prompt;
        g.prompt_len = q->turn_prompt_len;
    }
    const int32_t longest =
        q->turns ? q->turns->longest : rlhf__prompts_longest(q->prompts) + q->max_new;
    if (st == RLHF_OK && !cache)
        st =
            rlhf__model_gen_open(q->model, slots + q->prefix_slots, (uint32_t)longest, &cache, err);
    if (st == RLHF_OK) st = rlhf__generate(q->model, cache, &g, r, err);
    if (!q->cache) rlhf__model_gen_close(q->model, cache);
    free(ids);
    free(len);
    return st;
}

rlhf_status rlhf__rollout(const struct rlhf__rollout_request *q, const int64_t *row,
                          struct rlhf__rows *e, int64_t *tokens, struct rlhf__error *err) {
    struct rlhf__gen_result r = {0};
    rlhf_status st = draw(q, row, &r, err);
    if (st == RLHF_OK) st = assemble(q, row, &r, e, err);
    if (tokens) *tokens += r.tokens;
    rlhf__gen_result_finish(&r);
    return st;
}

rlhf_status rlhf__rollout_in_turn(const struct rlhf__rollout_request *q, struct rlhf__rows *e,
                                  struct rlhf__error *err) {
    int64_t *row = calloc(q->n ? q->n : 1, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", q->n);
    for (uint32_t i = 0; i < q->n; i++)
        row[i] = (int64_t)i % rlhf__prompts_count(q->prompts);
    rlhf_status st = rlhf__rollout(q, row, e, NULL, err);
    free(row);
    return st;
}
