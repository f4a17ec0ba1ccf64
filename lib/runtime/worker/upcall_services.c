// upcall_services.c: see upcall_services.h.
#include "worker/upcall_services.h"

#include "worker/upcall_models.h"

#include <rlhf/service.h>

#include <stdlib.h>
#include <string.h>

// In the order of the RLHF__HAS_* bits.
static const char *const services[] = {RLHF_SVC_CLASSIFIER,   RLHF_SVC_TOKENIZER,
                                       RLHF_SVC_REWARD_MODEL, RLHF_SVC_ROW,
                                       RLHF_SVC_LIMITS,       RLHF_SVC_LANGUAGE_MODEL};
enum { N_SERVICES = sizeof services / sizeof *services };

uint32_t rlhf__ear_services(const rlhf_host *api) {
    uint32_t has = 0;
    for (size_t i = 0; i < N_SERVICES; i++)
        if (api->service(api, services[i])) has |= 1u << i;
    return has;
}

// ---- opening and closing ----

static void classifier_open(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_classifier *c = rlhf__ear_open(e, RLHF__HANDLE_CLASSIFIER, in, out);
    if (!c) return;
    const rlhf_classifier_service *s = rlhf__ear_table(e, RLHF_SVC_CLASSIFIER);
    rlhf_classifier_info info = {.size = sizeof info};
    s->info(e->api, c, &info); // fails only for a struct of another size
    rlhf__wire_u32(out, info.n_labels);
    for (uint32_t i = 0; i < info.n_labels; i++)
        rlhf__wire_puts(out, info.label[i]);
}

static void tokenizer_open(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_tokenizer *t = rlhf__ear_open(e, RLHF__HANDLE_TOKENIZER, in, out);
    if (!t) return;
    const rlhf_tokenizer_service *s = rlhf__ear_table(e, RLHF_SVC_TOKENIZER);
    rlhf_tokenizer_info info = {.size = sizeof info};
    s->info(e->api, t, &info);
    rlhf__wire_u32(out, (uint32_t)info.n_vocab);
}

static void model_open(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    rlhf__ear_open(e, RLHF__HANDLE_MODEL, in, out);
}

static void language_open(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const rlhf_language_model *lm = rlhf__ear_open(e, RLHF__HANDLE_LANGUAGE, in, out);
    if (!lm) return;
    const rlhf_language_model_service *s = rlhf__ear_table(e, RLHF_SVC_LANGUAGE_MODEL);
    rlhf_language_info info = {.size = sizeof info};
    s->info(e->api, lm, &info); // fails only for a struct of another size
    rlhf__wire_u32(out, (uint32_t)info.n_vocab);
    rlhf__wire_u32(out, (uint32_t)info.longest);
    rlhf__wire_u32(out, (uint32_t)info.templated);
    rlhf__wire_u32(out, (uint32_t)info.bos);
    rlhf__wire_text(out, info.end, info.n_ends * sizeof *info.end);
}

static void call_close(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const uint32_t handle = rlhf__wire_get_u32(in);
    rlhf__ear_answer(out, !in->bad && rlhf__ear_close(e, handle) ? RLHF_OK : RLHF_E_INVALID);
}

// ---- texts ----

// The tokenizer or the language model of a handle; both are NULL for an invalid handle.
struct texts {
    const rlhf_host *api;
    const rlhf_tokenizer_service *tokenizers;
    const rlhf_language_model_service *models;
    const rlhf_tokenizer *t;
    const rlhf_language_model *lm;
};

static struct texts get_texts(struct rlhf__ear *e, struct rlhf__wire *in) {
    const uint32_t handle = rlhf__wire_get_u32(in);
    return (struct texts){e->api, rlhf__ear_table(e, RLHF_SVC_TOKENIZER),
                          rlhf__ear_table(e, RLHF_SVC_LANGUAGE_MODEL),
                          rlhf__ear_object(e, handle, RLHF__HANDLE_TOKENIZER),
                          rlhf__ear_object(e, handle, RLHF__HANDLE_LANGUAGE)};
}

// Calls encode() or, if `prompt` is not NULL, prompt().
static rlhf_status encode(const struct texts *x, rlhf_str text, const rlhf_language_prompt *prompt,
                          rlhf_encode_out *to) {
    const rlhf_encode_in q = {.size = sizeof q, .text = text};
    if (prompt) return x->models->prompt(x->api, x->lm, prompt, to);
    return x->t ? x->tokenizers->encode(x->api, x->t, &q, to)
                : x->models->encode(x->api, x->lm, &q, to);
}

static rlhf_status decode(const struct texts *x, const int32_t *ids, size_t n,
                          rlhf_decode_out *to) {
    const rlhf_decode_in q = {.size = sizeof q, .n = (uint32_t)n, .ids = ids};
    return x->t ? x->tokenizers->decode(x->api, x->t, &q, to)
                : x->models->decode(x->api, x->lm, &q, to);
}

// Write the reply to a call that makes at most `most` ids.
static void give_ids(const struct texts *x, int sound, rlhf_str text,
                     const rlhf_language_prompt *prompt, uint64_t most, struct rlhf__buf *out) {
    const int fits = most <= RLHF__MOST_REPLY / sizeof(int32_t);
    int32_t *ids = sound && fits ? calloc((size_t)most + 1, sizeof *ids) : NULL;
    rlhf_encode_out to = {.size = sizeof to, .cap = (uint32_t)most, .ids = ids};
    rlhf_status st = !sound ? RLHF_E_INVALID : !ids ? RLHF_E_NOMEM : RLHF_OK;
    if (st == RLHF_OK) st = encode(x, text, prompt, &to);
    if (rlhf__ear_answer(out, st) == RLHF_OK) {
        rlhf__wire_u32(out, to.n);
        rlhf__wire_text(out, ids, (to.n < most ? to.n : most) * sizeof *ids);
    }
    free(ids);
}

static void text_encode(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const struct texts x = get_texts(e, in);
    const uint32_t cap = rlhf__wire_get_u32(in);
    const rlhf_str text = rlhf__wire_get_text(in);
    // A token has at least one byte, and the tokenizer may add a few tokens before the text.
    const uint64_t most = text.len + 16 < cap ? text.len + 16 : cap;
    give_ids(&x, (x.t || x.lm) && !in->bad, text, NULL, most, out);
}

static void text_prompt(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const struct texts x = get_texts(e, in);
    const uint32_t cap = rlhf__wire_get_u32(in);
    rlhf_language_prompt prompt = {.size = sizeof prompt};
    prompt.text = rlhf__wire_get_text(in);
    prompt.messages = rlhf__wire_get_text(in);
    give_ids(&x, x.lm && !in->bad, prompt.text, &prompt, cap, out);
}

static void text_decode(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *out) {
    const struct texts x = get_texts(e, in);
    const uint64_t cap = rlhf__wire_get_u64(in);
    size_t n;
    const void *items = rlhf__wire_get_items(in, sizeof(int32_t), &n);
    const int sound = (x.t || x.lm) && !in->bad && n < RLHF__MOST_TEXTS;
    int32_t *ids = sound ? calloc(n + 1, sizeof *ids) : NULL;
    rlhf_decode_out to = {.size = sizeof to};
    rlhf_status st = !sound ? RLHF_E_INVALID : !ids ? RLHF_E_NOMEM : RLHF_OK;
    if (st == RLHF_OK) {
        memcpy(ids, items, n * sizeof *ids);
        st = decode(&x, ids, n, &to); // only counts
    }
    to.cap = to.len < cap ? to.len : cap;
    if (to.cap > RLHF__MOST_REPLY) st = RLHF_E_NOMEM;
    if (st == RLHF_OK && (to.utf8 = malloc((size_t)to.cap + 1)) == NULL) st = RLHF_E_NOMEM;
    if (st == RLHF_OK && to.cap) st = decode(&x, ids, n, &to);
    if (rlhf__ear_answer(out, st) == RLHF_OK) {
        rlhf__wire_u64(out, to.len);
        rlhf__wire_text(out, to.utf8, to.cap);
    }
    free(to.utf8);
    free(ids);
}

// ---- calls ----

static int serve(struct rlhf__ear *e, struct rlhf__wire *in, struct rlhf__buf *reply) {
    static void (*const calls[])(struct rlhf__ear *, struct rlhf__wire *, struct rlhf__buf *) = {
        [RLHF__CALL_CLASSIFIER_OPEN] = classifier_open,
        [RLHF__CALL_CLASSIFIER_LOGITS] = rlhf__ear_logits,
        [RLHF__CALL_TOKENIZER_OPEN] = tokenizer_open,
        [RLHF__CALL_ENCODE] = text_encode,
        [RLHF__CALL_DECODE] = text_decode,
        [RLHF__CALL_MODEL_OPEN] = model_open,
        [RLHF__CALL_MODEL_SCORE] = rlhf__ear_reward_score,
        [RLHF__CALL_LANGUAGE_OPEN] = language_open,
        [RLHF__CALL_LANGUAGE_PROMPT] = text_prompt,
        [RLHF__CALL_LANGUAGE_SCORE] = rlhf__ear_language_score,
        [RLHF__CALL_LANGUAGE_GENERATE] = rlhf__ear_language_generate,
        [RLHF__CALL_CLOSE] = call_close};
    if (in->kind >= sizeof calls / sizeof *calls || !calls[in->kind] || !e->api) return -1;
    rlhf__wire_begin(reply, in->kind);
    calls[in->kind](e, in, reply);
    rlhf__wire_end(reply);
    return reply->bad ? -1 : 0;
}

int rlhf__ear_call(struct rlhf__ear *e, struct rlhf__wire in, struct rlhf__buf *reply) {
    rlhf__buf_clear(reply);
    e->messages++;
    return in.kind <= RLHF__CALL_METRIC ? rlhf__ear_words(e, &in) : serve(e, &in, reply);
}
