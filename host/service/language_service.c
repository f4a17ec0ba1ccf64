// language_service.c: see language_service.h.
#include "service/language_service.h"

#include "service/language_model.h"

#include <stdlib.h>

struct rlhf__language_service {
    struct rlhf__served_list models;
    struct rlhf_language_model *first; // the objects of plugins
    rlhf_language_model_service table;
};

// Returns the service that owns the caller's table.
static struct rlhf__language_service *of(const rlhf_host *host) {
    const rlhf_language_model_service *table = host->service(host, RLHF_SVC_LANGUAGE_MODEL);
    return table ? table->self : NULL;
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
                                                       .size = sizeof(struct rlhf__language),
                                                       .open = open_model,
                                                       .close = close_model,
                                                       .largest = rlhf__language_largest};

// ---- opening ----

enum { SLOTS_MOST = 4096 };

static rlhf_status check_open(const struct rlhf__served *o, const rlhf_language_open *q,
                              struct rlhf__error *err) {
    const int32_t n_ctx = o->model->info.n_ctx;
    if (q->longest < 0 || q->longest > n_ctx)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the language model '%s' reads at most %d tokens; rows of %d are asked "
                          "for",
                          o->dir, n_ctx, q->longest);
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
    RLHF_TRY(rlhf__service_may(host, RLHF__SERVICE_OPENS_MODEL));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_open, &q, how, path));
    RLHF_TRY(rlhf__served_open(&s->models, host, q.path, NULL, &o));
    struct rlhf__language *shared = (struct rlhf__language *)(void *)o;
    struct rlhf_language_model *lm = NULL;
    rlhf_status st = check_open(o, &q, &err);
    if (st == RLHF_OK && (lm = calloc(1, sizeof *lm)) == NULL)
        st = RLHF__NOMEM(&err, "out of memory opening a language model");
    if (st != RLHF_OK) {
        rlhf__served_close(&s->models, o);
        return rlhf__service_failed(host, &err);
    }
    *lm = (struct rlhf_language_model){.next = s->first,
                                       .of = shared,
                                       .longest = q.longest ? q.longest : o->model->info.n_ctx,
                                       .slots = q.slots};
    if (lm->longest > shared->longest) shared->longest = lm->longest;
    if (lm->slots > shared->slots) shared->slots = lm->slots;
    s->first = *out = lm;
    return RLHF_OK;
}

static void service_close(const rlhf_host *host, rlhf_language_model *lm) {
    struct rlhf__language_service *s = of(host);
    if (!lm || rlhf__service_may(host, RLHF__SERVICE_CLOSES) != RLHF_OK)
        return; // the service closes it later
    struct rlhf_language_model **at = &s->first;
    while (*at && *at != lm)
        at = &(*at)->next;
    if (*at) *at = lm->next;
    rlhf__served_close(&s->models, &lm->of->served);
    free(lm);
}

static rlhf_status service_info(const rlhf_host *host, const rlhf_language_model *lm,
                                rlhf_language_info *out) {
    const struct rlhf__model *m = lm->of->served.model;
    const rlhf_language_info info = {.size = sizeof info,
                                     .n_vocab = m->info.n_vocab,
                                     .longest = lm->longest,
                                     .templated =
                                         rlhf__chat_known(rlhf__tokenizer_chat(m->tok)) != NULL,
                                     .bos = rlhf__tokenizer_info(m->tok)->bos,
                                     .n_ends = (uint32_t)m->ends.n,
                                     .end = m->ends.id};
    return RLHF__GIVE(host, rlhf_language_info, out, &info, end);
}

// ---- texts ----

static rlhf_status service_prompt(const rlhf_host *host, const rlhf_language_model *lm,
                                  const rlhf_language_prompt *how, rlhf_encode_out *to) {
    const struct rlhf__tokenizer *tok = lm->of->served.model->tok;
    struct rlhf__error err = {0, ""};
    struct rlhf__ids found = {0};
    rlhf_language_prompt q;
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_prompt, &q, how, messages));
    if (!q.messages.len) return rlhf__served_encode(host, tok, q.text, RLHF__ENCODE_TEMPLATE, to);
    rlhf_status st =
        q.text.len ? rlhf__fail(&err, RLHF_E_INVALID, "a prompt is a text or messages, not both")
                   : rlhf__language_messages(tok, q.messages, &found, &err);
    st = st == RLHF_OK ? rlhf__served_ids(host, &found, to) : rlhf__service_failed(host, &err);
    rlhf__ids_finish(&found);
    return st;
}

static rlhf_status service_encode(const rlhf_host *host, const rlhf_language_model *lm,
                                  const rlhf_encode_in *how, rlhf_encode_out *to) {
    rlhf_encode_in q;
    RLHF_TRY(RLHF__TAKE(host, rlhf_encode_in, &q, how, text));
    return rlhf__served_encode(host, lm->of->served.model->tok, q.text, 0, to);
}

static rlhf_status service_decode(const rlhf_host *host, const rlhf_language_model *lm,
                                  const rlhf_decode_in *how, rlhf_decode_out *to) {
    return rlhf__served_decode(host, lm->of->served.model->tok, how, to);
}

// ---- calls that compute ----

static rlhf_status service_score(const rlhf_host *host, rlhf_language_model *lm,
                                 const rlhf_language_rows *how, const rlhf_language_scores *to) {
    struct rlhf__model *m = lm->of->served.model;
    struct rlhf__error err = {0, ""};
    rlhf_language_rows q;
    rlhf_language_scores out;
    RLHF_TRY(rlhf__service_may(host, RLHF__SERVICE_COMPUTES));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_rows, &q, how, prompt_len));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_scores, &out, to, logp));
    if (q.n == 0) return RLHF_OK;
    RLHF_TRY(rlhf__service_needs(host, q.ids && q.offset && q.prompt_len && out.logp, "score()",
                                 "ids, offset, prompt_len and logp"));
    RLHF_TRY(rlhf__service_rows(host, q.n, q.offset, q.prompt_len));
    rlhf_status st = rlhf__model_load(m, &err); // needed if create() computes scores
    if (st == RLHF_OK) st = rlhf__language_score(lm, &q, out.logp, &err);
    rlhf__model_trim(m);
    return st == RLHF_OK ? st : rlhf__service_failed(host, &err);
}

static rlhf_status service_generate(const rlhf_host *host, rlhf_language_model *lm,
                                    const rlhf_language_request *how,
                                    const rlhf_language_responses *to) {
    struct rlhf__model *m = lm->of->served.model;
    struct rlhf__error err = {0, ""};
    rlhf_language_request q;
    rlhf_language_responses out;
    RLHF_TRY(rlhf__service_may(host, RLHF__SERVICE_COMPUTES));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_request, &q, how, flags));
    RLHF_TRY(RLHF__TAKE(host, rlhf_language_responses, &out, to, logp));
    if (q.n == 0) return RLHF_OK;
    RLHF_TRY(rlhf__service_needs(
        host, q.ids && q.offset && (q.stop || !q.n_stop) && out.ids && out.len && out.stopped,
        "generate()", "ids, offset, stop, len and stopped"));
    RLHF_TRY(rlhf__service_rows(host, q.n, q.offset, NULL));
    rlhf_status st = rlhf__model_load(m, &err);
    if (st == RLHF_OK) st = rlhf__language_respond(lm, &q, &out, &err);
    rlhf__model_trim(m);
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
                                             .self = s,
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
    for (struct rlhf_language_model *lm = s->first, *next; lm; lm = next) {
        next = lm->next;
        free(lm);
    }
    rlhf__served_finish(&s->models);
    free(s);
}

const struct rlhf__served_list *
rlhf__language_service_list(const struct rlhf__language_service *s) {
    return &s->models;
}
