// single.c: see single.h.
#include "grader/single.h"

#include <math.h>
#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static rlhf_status no_memory(const rlhf_host *h) {
    return (h->fail)(h, RLHF_E_NOMEM, "out of memory");
}

static rlhf_status compile(const struct rlhf__members *p, const char *key, const char *text,
                           struct rlhf__template *out) {
    char what[320], path[RLHF__MEMBERS_PATH + 40];
    snprintf(path, sizeof path, "%s/%s", p->path, key);
    if (rlhf__template_read(out, p->host, text, what, sizeof what)) return RLHF_OK;
    return *what ? rlhf__members_refuse(p, path, what) : no_memory(p->host);
}

static rlhf_status read_template(const struct rlhf__members *p, const char *key,
                                 struct rlhf__template *out) {
    const char *text;
    RLHF_TRY(rlhf__members_text(p, key, &text));
    return compile(p, key, text, out);
}

// ---- messages to a model ----

// The text of a message's content: a string, or a part {"type": "input_text", "text": ...}.
static const char *text_of(const json_t *content) {
    const char *type = json_string_value(json_object_get(content, "type"));
    if (json_is_string(content)) return json_string_value(content);
    if (json_is_array(content) && json_array_size(content) == 1)
        return text_of(json_array_get(content, 0));
    if (!type || (strcmp(type, "input_text") != 0 && strcmp(type, "output_text") != 0 &&
                  strcmp(type, "text") != 0))
        return NULL;
    return json_string_value(json_object_get(content, "text"));
}

static rlhf_status read_message(const struct rlhf__members *p, struct rlhf__grader_message *m) {
    static const char *const roles[] = {"user", "assistant", "system", "developer"};
    int32_t role;
    if (!json_is_object(p->v)) return rlhf__members_refuse(p, p->path, "is not an object");
    RLHF_TRY(rlhf__members_check(p, " role content type "));
    RLHF_TRY(rlhf__members_word(p, "role", roles, COUNT(roles), &role));
    m->role = roles[role];
    const char *text = text_of(rlhf__members_get(p, "content"));
    if (!text)
        return rlhf__members_expected(
            p, "content",
            "a text, or one part {\"type\": \"input_text\", \"text\": ...}; a judge of "
            "images or sound is not here");
    return compile(p, "content", text, &m->content);
}

static rlhf_status read_messages(const struct rlhf__members *p, struct rlhf__grader *g) {
    const json_t *list = rlhf__members_get(p, "input");
    const size_t n = json_array_size(list);
    if (n == 0 || n > RLHF__GRADER_MESSAGES)
        return rlhf__members_expected(p, "input", "a list of 1 to 64 messages");
    g->message = p->host->alloc(p->host, n * sizeof *g->message);
    if (!g->message) return no_memory(p->host);
    g->n_messages = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct rlhf__members at = {.host = p->host, .file = p->file, .v = json_array_get(list, i)};
        snprintf(at.path, sizeof at.path, "%.60s/input/%zu", p->path, i);
        RLHF_TRY(read_message(&at, &g->message[i]));
    }
    return RLHF_OK;
}

// ---- the types ----

static rlhf_status read_string_check(const struct rlhf__members *p, struct rlhf__grader *g) {
    static const char *const operations[] = {"eq", "ne", "like", "ilike", "neq"};
    RLHF_TRY(rlhf__members_check(p, " type name input reference operation pass_threshold "));
    RLHF_TRY(rlhf__members_word(p, "operation", operations, COUNT(operations), &g->how));
    if (g->how > RLHF__CHECK_ILIKE) g->how = RLHF__CHECK_NE;
    RLHF_TRY(read_template(p, "input", &g->text[0]));
    return read_template(p, "reference", &g->text[1]);
}

static rlhf_status read_similarity(const struct rlhf__members *p, struct rlhf__grader *g) {
    static const char *const metrics[] = {"fuzzy_match", "bleu",    "gleu",    "meteor",
                                          "rouge_1",     "rouge_2", "rouge_3", "rouge_4",
                                          "rouge_5",     "rouge_l"};
    const char *metric = json_string_value(rlhf__members_get(p, "evaluation_metric"));
    RLHF_TRY(
        rlhf__members_check(p, " type name input reference evaluation_metric pass_threshold "));
    if (metric && strcmp(metric, "cosine") == 0)
        return rlhf__members_expected(
            p, "evaluation_metric",
            "another metric, because cosine compares embeddings of a hosted model, "
            "which is not here; rouge_l, meteor or score_model may serve");
    RLHF_TRY(rlhf__members_word(p, "evaluation_metric", metrics, COUNT(metrics), &g->how));
    RLHF_TRY(read_template(p, "input", &g->text[0]));
    return read_template(p, "reference", &g->text[1]);
}

static rlhf_status read_sampling(const struct rlhf__members *p, struct rlhf__grader *g) {
    static const char *const numbers[] = {"seed", "top_p", "temperature", "max_completions_tokens"};
    struct rlhf__members at = {.host = p->host,
                               .file = p->file,
                               .v = g->sampling = rlhf__members_get(p, "sampling_params")};
    double ignored = 0;
    const char *text;
    if (!at.v) return RLHF_OK;
    if (!json_is_object(at.v)) return rlhf__members_expected(p, "sampling_params", "an object");
    snprintf(at.path, sizeof at.path, "%.70s/sampling_params", p->path);
    RLHF_TRY(rlhf__members_check(
        &at, " seed top_p temperature max_completions_tokens reasoning_effort "));
    for (size_t i = 0; i < COUNT(numbers); i++)
        RLHF_TRY(rlhf__members_number(&at, numbers[i], &ignored));
    return rlhf__members_get(&at, "reasoning_effort")
               ? rlhf__members_text(&at, "reasoning_effort", &text)
               : RLHF_OK;
}

static rlhf_status read_score_model(const struct rlhf__members *p, struct rlhf__grader *g) {
    const json_t *range = rlhf__members_get(p, "range");
    const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);
    RLHF_TRY(
        rlhf__members_check(p, " type name input model range sampling_params pass_threshold "));
    RLHF_TRY(rlhf__members_text(p, "model", &g->model));
    g->high = 1;
    if (range) {
        g->low = json_number_value(low);
        g->high = json_number_value(high);
        if (json_array_size(range) != 2 || !json_is_number(low) || !json_is_number(high) ||
            g->low >= g->high)
            return rlhf__members_expected(
                p, "range", "a list of two numbers, the least and the greatest score");
    }
    RLHF_TRY(read_sampling(p, g));
    return read_messages(p, g);
}

static int is_text_list(const json_t *list) {
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)list, i, v) if (!json_is_string(v)) return 0;
    return json_array_size(list) > 0;
}

int rlhf__grader_has_label(const json_t *list, const char *label) {
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)(uintptr_t)list, i,
                       v) if (strcmp(json_string_value(v), label) == 0) return 1;
    return 0;
}

static rlhf_status read_label_model(const struct rlhf__members *p, struct rlhf__grader *g) {
    size_t i;
    json_t *v;
    RLHF_TRY(rlhf__members_check(p, " type name input model labels passing_labels sampling_params "
                                    "pass_threshold "));
    RLHF_TRY(rlhf__members_text(p, "model", &g->model));
    g->labels = rlhf__members_get(p, "labels");
    g->passing = rlhf__members_get(p, "passing_labels");
    if (!is_text_list(g->labels)) return rlhf__members_expected(p, "labels", "a list of texts");
    if (!is_text_list(g->passing))
        return rlhf__members_expected(p, "passing_labels", "a list of some labels");
    json_array_foreach((json_t *)(uintptr_t)g->passing, i, v) if (
        !rlhf__grader_has_label(
            g->labels, json_string_value(
                           v))) return rlhf__members_expected(p, "passing_labels",
                                                              "labels that are in \"labels\", too");
    RLHF_TRY(read_sampling(p, g));
    return read_messages(p, g);
}

static rlhf_status read_python(const struct rlhf__members *p, struct rlhf__grader *g) {
    const char *source;
    (void)g;
    RLHF_TRY(rlhf__members_check(p, " type name source image_tag pass_threshold "));
    RLHF_TRY(rlhf__members_text(p, "source", &source));
    if (rlhf__members_get(p, "image_tag"))
        (p->host->log)(p->host, RLHF_LOG_INFO,
                       "image_tag names packages of the hosted service; here the function "
                       "imports those of the interpreter that python= names");
    return RLHF_OK;
}

// ---- all types ----

static const char *const types[] = {"string_check", "text_similarity", "score_model",
                                    "label_model",  "python",          "multi"};

rlhf_status rlhf__grader_read(const struct rlhf__members *p, const char *key, int nested,
                              struct rlhf__grader *g) {
    static rlhf_status (*const read[])(const struct rlhf__members *, struct rlhf__grader *) = {
        read_string_check, read_similarity, read_score_model, read_label_model, read_python};
    const char *name;
    snprintf(g->key, sizeof g->key, "%s", key);
    snprintf(g->path, sizeof g->path, "%s", p->path);
    g->pass = (double)NAN;
    RLHF_TRY(rlhf__members_word(p, "type", types, COUNT(types) - (nested != 0), &g->type));
    if (rlhf__members_get(p, "name")) RLHF_TRY(rlhf__members_text(p, "name", &name));
    RLHF_TRY(rlhf__members_number(p, "pass_threshold", &g->pass));
    return read[g->type](p, g);
}

void rlhf__grader_finish(struct rlhf__grader *g, const rlhf_host *host) {
    rlhf__template_finish(&g->text[0]);
    rlhf__template_finish(&g->text[1]);
    for (uint32_t k = 0; k < g->n_messages; k++)
        rlhf__template_finish(&g->message[k].content);
    host->free(host, g->message);
}

int rlhf__grader_lacks(const struct rlhf__grader *g, const struct rlhf__template_from *from,
                       char *what, size_t cap) {
    for (int k = 0; k < 2; k++)
        if (rlhf__template_lacks(&g->text[k], from, what, cap)) return 1;
    for (uint32_t k = 0; k < g->n_messages; k++)
        if (rlhf__template_lacks(&g->message[k].content, from, what, cap)) return 1;
    return 0;
}
