// language_service.c: see language_service.h.
#include "service/language_service.h"

#include "service/language_model.h"

#include <stdlib.h>

struct rlhf__language_service {
    struct rlhf__served_list models;
    rlhf_language_model_service table;
};

// Returns the service that owns the caller's table, or NULL if the caller may not use it now.
static struct rlhf__language_service *of(const rlhf_host *host) {
    const void *table = host->service(host, RLHF_SVC_LANGUAGE_MODEL);
    const size_t member = offsetof(struct rlhf__language_service, table);
    return table ? (struct rlhf__language_service *)((uintptr_t)table - member) : NULL;
}

static struct rlhf_language_model *handle(const struct rlhf__served *o) {
    return (struct rlhf_language_model *)(uintptr_t)o;
}

// ---- the models ----

static rlhf_status open_model(struct rlhf__served *o, const char *dir, const void *how,
                              struct rlhf__error *err) {
    const struct rlhf__model_spec spec = {
        .dir = dir, .role = "language model", .frozen = 1, .language = 1};
    (void)how;
    RLHF_TRY(rlhf__model_open(o->list->env, &spec, &o->model, err));
    return rlhf__model_writes(o->model, err);
}

static void close_model(struct rlhf__served *o) { rlhf__model_close(o->model); }

static const struct rlhf__served_kind language_kind = {.id = RLHF_SVC_LANGUAGE_MODEL,
                                                       .name = "language model",
                                                       .size = sizeof(struct rlhf_language_model),
                                                       .open = open_model,
                                                       .close = close_model,
                                                       .largest = rlhf__language_largest};

// Copy a struct of the caller (rlhf_copy_in), or report why that is impossible.
static rlhf_status take(const rlhf_host *host, void *to, uint32_t own, const void *from,
                        uint32_t first, const char *name) {
    struct rlhf__error err = {0, ""};
    const rlhf_status st = rlhf_copy_in(to, own, from, first);
    if (st == RLHF_OK) return st;
    rlhf__fail(&err, st, "%s %s", name,
               st == RLHF_E_INVALID ? "has a size that it never had"
                                    : "has a member that this host does not know");
    return rlhf__service_failed(host, &err);
}

// ---- opening ----

enum { SLOTS_MOST = 4096 };

static rlhf_status check_open(const struct rlhf_language_model *lm, const rlhf_language_open *q,
                              struct rlhf__error *err) {
    const int32_t n_ctx = lm->served.model->info.n_ctx;
    if (q->longest < 0 || q->longest > n_ctx)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the language model '%s' reads at most %d tokens; rows of %d are asked "
                          "for",
                          lm->served.dir, n_ctx, q->longest);
    if (q->slots < 0 || q->slots > SLOTS_MOST)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%d responses at a time are asked of a language model; 0 to %d", q->slots,
                          SLOTS_MOST);
    return RLHF_OK;
}

static rlhf_status service_open(const rlhf_host *host, const rlhf_language_open *how,
                                rlhf_language_model **out) {
    struct rlhf__language_service *s = of(host);
    struct rlhf__error err = {0, ""};
    struct rlhf__served *o = NULL;
    rlhf_language_open q;
    *out = NULL;
    if (!s) return rlhf__service_beside(host);
    RLHF_TRY(take(host, &q, sizeof q, how, RLHF_SIZE_TO(rlhf_language_open, path),
                  "rlhf_language_open"));
    RLHF_TRY(rlhf__served_open(&s->models, host, q.path, NULL, &o));
    struct rlhf_language_model *lm = handle(o);
    if (check_open(lm, &q, &err) != RLHF_OK) {
        rlhf__served_close(&s->models, o);
        return rlhf__service_failed(host, &err);
    }
    const int32_t longest = q.longest ? q.longest : o->model->info.n_ctx;
    if (longest > lm->longest) lm->longest = longest;
    if (q.slots > lm->slots) lm->slots = q.slots;
    *out = lm;
    return RLHF_OK;
}

static void service_close(const rlhf_host *host, rlhf_language_model *lm) {
    struct rlhf__language_service *s = of(host);
    if (s && lm) rlhf__served_close(&s->models, &lm->served); // else the service closes it later
}

static rlhf_status service_info(const rlhf_host *host, const rlhf_language_model *lm,
                                rlhf_language_info *out) {
    const struct rlhf__model *m = lm->served.model;
    const rlhf_language_info info = {.size = sizeof info,
                                     .n_vocab = m->info.n_vocab,
                                     .longest = lm->longest,
                                     .templated =
                                         rlhf__chat_known(rlhf__tokenizer_chat(m->tok)) != NULL,
                                     .bos = rlhf__tokenizer_info(m->tok)->bos,
                                     .n_ends = (uint32_t)m->ends.n,
                                     .end = m->ends.id};
    (void)host;
    // A plugin of an earlier version gets the first members.
    const uint32_t own = sizeof info, cut = out->size < own ? out->size : own;
    return rlhf_copy_out(out, &info, cut, RLHF_SIZE_TO(rlhf_language_info, end));
}

// ---- texts ----

static rlhf_status service_prompt(const rlhf_host *host, const rlhf_language_model *lm,
                                  const rlhf_language_prompt *how, int32_t *ids, uint32_t cap,
                                  uint32_t *n) {
    const struct rlhf__tokenizer *tok = lm->served.model->tok;
    struct rlhf__error err = {0, ""};
    struct rlhf__ids found = {0};
    rlhf_language_prompt q;
    *n = 0;
    RLHF_TRY(take(host, &q, sizeof q, how, RLHF_SIZE_TO(rlhf_language_prompt, messages),
                  "rlhf_language_prompt"));
    if (!q.messages.len)
        return rlhf__served_encode(host, tok, q.text, RLHF__ENCODE_TEMPLATE, ids, cap, n);
    const rlhf_status st =
        q.text.len ? rlhf__fail(&err, RLHF_E_INVALID, "a prompt is a text or messages, not both")
                   : rlhf__language_messages(tok, q.messages, &found, &err);
    if (st == RLHF_OK) rlhf__served_ids(&found, ids, cap, n);
    rlhf__ids_finish(&found);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

static rlhf_status service_encode(const rlhf_host *host, const rlhf_language_model *lm,
                                  rlhf_str text, int32_t *ids, uint32_t cap, uint32_t *n) {
    return rlhf__served_encode(host, lm->served.model->tok, text, 0, ids, cap, n);
}

static rlhf_status service_decode(const rlhf_host *host, const rlhf_language_model *lm,
                                  const int32_t *ids, uint32_t n, char *utf8, uint64_t cap,
                                  uint64_t *len) {
    return rlhf__served_decode(host, lm->served.model->tok, ids, n, utf8, cap, len);
}

// ---- calls that compute ----

static rlhf_status service_score(const rlhf_host *host, rlhf_language_model *lm,
                                 const rlhf_language_rows *how, const rlhf_language_scores *to) {
    struct rlhf__error err = {0, ""};
    rlhf_language_rows q;
    rlhf_language_scores out;
    if (!of(host)) return rlhf__service_beside(host);
    RLHF_TRY(take(host, &q, sizeof q, how, RLHF_SIZE_TO(rlhf_language_rows, prompt_len),
                  "rlhf_language_rows"));
    RLHF_TRY(take(host, &out, sizeof out, to, RLHF_SIZE_TO(rlhf_language_scores, logp),
                  "rlhf_language_scores"));
    if (q.n == 0) return RLHF_OK;
    rlhf_status st = rlhf__model_load(lm->served.model, &err); // needed if create() computes scores
    if (st == RLHF_OK) st = rlhf__language_score(lm, &q, out.logp, &err);
    rlhf__model_trim(lm->served.model);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

static rlhf_status service_generate(const rlhf_host *host, rlhf_language_model *lm,
                                    const rlhf_language_request *how,
                                    const rlhf_language_responses *to) {
    struct rlhf__error err = {0, ""};
    rlhf_language_request q;
    rlhf_language_responses out;
    if (!of(host)) return rlhf__service_beside(host);
    RLHF_TRY(take(host, &q, sizeof q, how, RLHF_SIZE_TO(rlhf_language_request, flags),
                  "rlhf_language_request"));
    RLHF_TRY(take(host, &out, sizeof out, to, RLHF_SIZE_TO(rlhf_language_responses, logp),
                  "rlhf_language_responses"));
    if (q.n == 0) return RLHF_OK;
    rlhf_status st = rlhf__model_load(lm->served.model, &err);
    if (st == RLHF_OK) st = rlhf__language_respond(lm, &q, &out, &err);
    rlhf__model_trim(lm->served.model);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

// ---- the service ----

rlhf_status rlhf__language_service_open(const struct rlhf__model_env *env, const char *default_dir,
                                        struct rlhf__language_service **out,
                                        struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__language_service *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for services");
    s->table = (rlhf_language_model_service){.size = sizeof s->table,
                                             .open = service_open,
                                             .close = service_close,
                                             .info = service_info,
                                             .prompt = service_prompt,
                                             .encode = service_encode,
                                             .decode = service_decode,
                                             .score = service_score,
                                             .generate = service_generate};
    rlhf_status st = rlhf__served_init(&s->models, &language_kind, env, default_dir, err);
    if (st == RLHF_OK)
        st = rlhf__services_offer(env->services, RLHF_SVC_LANGUAGE_MODEL,
                                  RLHF__STRUCT_rlhf_language_model_service, &s->table, err);
    if (st != RLHF_OK) {
        rlhf__language_service_close(s);
        return st;
    }
    *out = s;
    return RLHF_OK;
}

void rlhf__language_service_close(struct rlhf__language_service *s) {
    if (!s) return;
    rlhf__served_finish(&s->models);
    free(s);
}

const struct rlhf__served_list *
rlhf__language_service_list(const struct rlhf__language_service *s) {
    return &s->models;
}
