// spec.c: see spec.h.
#include "grader/spec.h"

#include "process/json_reward.h"
#include "process/utf8.h"

#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

// A reader's place: a value of the file with its JSON Pointer.
struct place {
    struct rlhf__grader_spec *s;
    const json_t *v;
    char path[RLHF__GRADER_PATH];
};

// ---- messages ----

static rlhf_status refuse(const struct rlhf__grader_spec *s, const char *path, const char *what) {
    return rlhf_failf(s->host, RLHF_E_INVALID, "%s: %s %s", s->path, *path ? path : "the grader",
                      what);
}

// Says that the member `key` of a place is not what is expected.
static rlhf_status expected(const struct place *p, const char *key, const char *what) {
    const json_t *v = json_object_get(p->v, key);
    char path[RLHF__GRADER_PATH + 40], text[420], shown[60];
    snprintf(path, sizeof path, "%s/%s", p->path, key);
    if (json_is_string(v))
        snprintf(text, sizeof text, "is \"%s\"; expected %s",
                 rlhf__utf8_shown(json_string_value(v), json_string_length(v), shown, sizeof shown),
                 what);
    else
        snprintf(text, sizeof text, "is %s; expected %s", rlhf__json_what(v), what);
    return refuse(p->s, path, text);
}

static rlhf_status no_memory(const struct rlhf__grader_spec *s) {
    return (s->host->fail)(s->host, RLHF_E_NOMEM, "out of memory");
}

// ---- members ----

// The member `key`; null counts as missing, because a downloaded job has members that are null.
static const json_t *member(const struct place *p, const char *key) {
    const json_t *v = json_object_get(p->v, key);
    return json_is_null(v) ? NULL : v;
}

// Refuses members that are not in the list, which has a space around each name.
static rlhf_status check_keys(const struct place *p, const char *all) {
    const char *key;
    json_t *v;
    char name[64], what[320], shown[60];
    json_object_foreach((json_t *)(uintptr_t)p->v, key, v) {
        snprintf(name, sizeof name, " %.60s ", key);
        if (json_is_null(v) || (strlen(key) <= 60 && strstr(all, name))) continue;
        snprintf(what, sizeof what, "has \"%s\"; allowed:%.200s",
                 rlhf__utf8_shown(key, strlen(key), shown, sizeof shown), all);
        return refuse(p->s, p->path, what);
    }
    return RLHF_OK;
}

static rlhf_status read_text(const struct place *p, const char *key, const char **out) {
    *out = json_string_value(member(p, key));
    return *out ? RLHF_OK : expected(p, key, "a text");
}

static rlhf_status read_number(const struct place *p, const char *key, double *out) {
    const json_t *v = member(p, key);
    if (v && !json_is_number(v)) return expected(p, key, "a number");
    if (v) *out = json_number_value(v);
    return RLHF_OK;
}

// Reads a word of a list of n words.
static rlhf_status read_word(const struct place *p, const char *key, const char *const *words,
                             size_t n, int32_t *out) {
    const char *text = json_string_value(member(p, key));
    char what[320] = "";
    for (size_t i = 0; i < n; i++) {
        *out = (int32_t)i;
        if (text && strcmp(words[i], text) == 0) return RLHF_OK;
        const size_t at = strlen(what);
        snprintf(what + at, sizeof what - at, "%s%s",
                 i == 0      ? ""
                 : i + 1 < n ? ", "
                             : " or ",
                 words[i]);
    }
    return expected(p, key, what);
}

static rlhf_status compile(const struct place *p, const char *key, const char *text,
                           struct rlhf__template *out) {
    char what[320], path[RLHF__GRADER_PATH + 40];
    snprintf(path, sizeof path, "%s/%s", p->path, key);
    if (rlhf__template_read(out, p->s->host, text, what, sizeof what)) return RLHF_OK;
    return *what ? refuse(p->s, path, what) : no_memory(p->s);
}

static rlhf_status read_template(const struct place *p, const char *key,
                                 struct rlhf__template *out) {
    const char *text;
    RLHF_TRY(read_text(p, key, &text));
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

static rlhf_status read_message(const struct place *p, struct rlhf__grader_message *m) {
    static const char *const roles[] = {"user", "assistant", "system", "developer"};
    int32_t role;
    if (!json_is_object(p->v)) return refuse(p->s, p->path, "is not an object");
    RLHF_TRY(check_keys(p, " role content type "));
    RLHF_TRY(read_word(p, "role", roles, COUNT(roles), &role));
    m->role = roles[role];
    const char *text = text_of(member(p, "content"));
    if (!text)
        return expected(p, "content",
                        "a text, or one part {\"type\": \"input_text\", \"text\": ...}; a judge of "
                        "images or sound is not here");
    return compile(p, "content", text, &m->content);
}

static rlhf_status read_messages(const struct place *p, struct rlhf__grader *g) {
    const json_t *list = member(p, "input");
    const size_t n = json_array_size(list);
    if (n == 0 || n > RLHF__GRADER_MESSAGES)
        return expected(p, "input", "a list of 1 to 64 messages");
    g->message = p->s->host->alloc(p->s->host, n * sizeof *g->message);
    if (!g->message) return no_memory(p->s);
    g->n_messages = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct place at = {.s = p->s, .v = json_array_get(list, i)};
        snprintf(at.path, sizeof at.path, "%.60s/input/%zu", p->path, i);
        RLHF_TRY(read_message(&at, &g->message[i]));
    }
    return RLHF_OK;
}

// ---- the types ----

static rlhf_status read_string_check(const struct place *p, struct rlhf__grader *g) {
    static const char *const operations[] = {"eq", "ne", "like", "ilike", "neq"};
    RLHF_TRY(check_keys(p, " type name input reference operation pass_threshold "));
    RLHF_TRY(read_word(p, "operation", operations, COUNT(operations), &g->how));
    if (g->how > RLHF__CHECK_ILIKE) g->how = RLHF__CHECK_NE;
    RLHF_TRY(read_template(p, "input", &g->text[0]));
    return read_template(p, "reference", &g->text[1]);
}

static rlhf_status read_similarity(const struct place *p, struct rlhf__grader *g) {
    static const char *const metrics[] = {"fuzzy_match", "bleu",    "gleu",    "meteor",
                                          "rouge_1",     "rouge_2", "rouge_3", "rouge_4",
                                          "rouge_5",     "rouge_l"};
    const char *metric = json_string_value(member(p, "evaluation_metric"));
    RLHF_TRY(check_keys(p, " type name input reference evaluation_metric pass_threshold "));
    if (metric && strcmp(metric, "cosine") == 0)
        return expected(p, "evaluation_metric",
                        "another metric, because cosine compares embeddings of a hosted model, "
                        "which is not here; rouge_l, meteor or score_model may serve");
    RLHF_TRY(read_word(p, "evaluation_metric", metrics, COUNT(metrics), &g->how));
    RLHF_TRY(read_template(p, "input", &g->text[0]));
    return read_template(p, "reference", &g->text[1]);
}

static rlhf_status read_sampling(const struct place *p, struct rlhf__grader *g) {
    static const char *const numbers[] = {"seed", "top_p", "temperature", "max_completions_tokens"};
    struct place at = {.s = p->s, .v = g->sampling = member(p, "sampling_params")};
    double ignored = 0;
    const char *text;
    if (!at.v) return RLHF_OK;
    if (!json_is_object(at.v)) return expected(p, "sampling_params", "an object");
    snprintf(at.path, sizeof at.path, "%.70s/sampling_params", p->path);
    RLHF_TRY(check_keys(&at, " seed top_p temperature max_completions_tokens reasoning_effort "));
    for (size_t i = 0; i < COUNT(numbers); i++)
        RLHF_TRY(read_number(&at, numbers[i], &ignored));
    return member(&at, "reasoning_effort") ? read_text(&at, "reasoning_effort", &text) : RLHF_OK;
}

static rlhf_status read_score_model(const struct place *p, struct rlhf__grader *g) {
    const json_t *range = member(p, "range");
    const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);
    RLHF_TRY(check_keys(p, " type name input model range sampling_params pass_threshold "));
    RLHF_TRY(read_text(p, "model", &g->model));
    g->high = 1;
    if (range) {
        g->low = json_number_value(low);
        g->high = json_number_value(high);
        if (json_array_size(range) != 2 || !json_is_number(low) || !json_is_number(high) ||
            g->low >= g->high)
            return expected(p, "range", "a list of two numbers, the least and the greatest score");
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

static rlhf_status read_label_model(const struct place *p, struct rlhf__grader *g) {
    size_t i;
    json_t *v;
    RLHF_TRY(check_keys(p, " type name input model labels passing_labels sampling_params "
                           "pass_threshold "));
    RLHF_TRY(read_text(p, "model", &g->model));
    g->labels = member(p, "labels");
    g->passing = member(p, "passing_labels");
    if (!is_text_list(g->labels)) return expected(p, "labels", "a list of texts");
    if (!is_text_list(g->passing)) return expected(p, "passing_labels", "a list of some labels");
    json_array_foreach((json_t *)(uintptr_t)g->passing, i, v) if (
        !rlhf__grader_has_label(
            g->labels, json_string_value(v))) return expected(p, "passing_labels",
                                                              "labels that are in \"labels\", too");
    RLHF_TRY(read_sampling(p, g));
    return read_messages(p, g);
}

static rlhf_status read_python(const struct place *p, struct rlhf__grader *g) {
    const char *source;
    (void)g;
    RLHF_TRY(check_keys(p, " type name source image_tag pass_threshold "));
    RLHF_TRY(read_text(p, "source", &source));
    if (member(p, "image_tag"))
        (p->s->host->log)(p->s->host, RLHF_LOG_INFO,
                          "image_tag names packages of the hosted service; here the function "
                          "imports those of the interpreter that python= names");
    return RLHF_OK;
}

// ---- the file ----

static const char *const types[] = {"string_check", "text_similarity", "score_model",
                                    "label_model",  "python",          "multi"};

static rlhf_status read_one(const struct place *p, const char *key, size_t n_types) {
    static rlhf_status (*const read[])(const struct place *, struct rlhf__grader *) = {
        read_string_check, read_similarity, read_score_model, read_label_model, read_python};
    struct rlhf__grader *g = &p->s->of[p->s->n++];
    const char *name;
    snprintf(g->key, sizeof g->key, "%s", key);
    snprintf(g->path, sizeof g->path, "%s", p->path);
    g->pass = (double)NAN;
    RLHF_TRY(read_word(p, "type", types, n_types, &g->type));
    if (member(p, "name")) RLHF_TRY(read_text(p, "name", &name));
    RLHF_TRY(read_number(p, "pass_threshold", &g->pass));
    return read[g->type](p, g);
}

static int is_key(const char *text) {
    const size_t n = strlen(text);
    return n > 0 && n <= RLHF__GRADER_KEY && (*text < '0' || *text > '9') &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n &&
           !rlhf__formula_is_function(text);
}

static rlhf_status read_multi(const struct place *p) {
    const char *names[RLHF__FORMULA_NAMES], *key, *formula, *name;
    const json_t *graders = member(p, "graders");
    const size_t n = json_object_size(graders);
    char what[320], shown[60];
    json_t *v;
    RLHF_TRY(check_keys(p, " type name graders calculate_output pass_threshold "));
    if (member(p, "name")) RLHF_TRY(read_text(p, "name", &name));
    RLHF_TRY(read_number(p, "pass_threshold", &p->s->pass));
    if (n == 0 || n > RLHF__FORMULA_NAMES)
        return expected(p, "graders", "an object of 1 to 32 graders, {NAME: GRADER, ...}");
    json_object_foreach((json_t *)(uintptr_t)graders, key, v) {
        struct place at = {.s = p->s, .v = v};
        if (!is_key(key)) {
            snprintf(what, sizeof what,
                     "has \"%s\"; a name in a formula has letters, digits and _, at most 40, does "
                     "not begin with a digit and is not the name of a function",
                     rlhf__utf8_shown(key, strlen(key), shown, sizeof shown));
            return refuse(p->s, "/graders", what);
        }
        snprintf(at.path, sizeof at.path, "%.30s/graders/%s", p->path, key);
        if (!json_is_object(v)) return refuse(p->s, at.path, "is not an object");
        names[p->s->n] = key;
        RLHF_TRY(read_one(&at, key, COUNT(types) - 1));
    }
    RLHF_TRY(read_text(p, "calculate_output", &formula));
    if (rlhf__formula_read(&p->s->formula, formula, names, p->s->n, what, sizeof what))
        return RLHF_OK;
    snprintf(shown, sizeof shown, "%.30s/calculate_output has", p->path);
    return refuse(p->s, shown, what);
}

// The grader of a file, which may be in a fine-tuning job.
static void find_grader(struct place *p) {
    static const char *const path[] = {"method", "reinforcement", "grader"};
    const json_t *v = p->v;
    for (size_t i = 0; v && i < COUNT(path); i++)
        v = json_object_get(v, path[i]);
    if (!json_is_object(v)) return;
    p->v = v;
    snprintf(p->path, sizeof p->path, "/method/reinforcement/grader");
}

rlhf_status rlhf__grader_spec_take(struct rlhf__grader_spec *s, json_t *file) {
    struct place p = {.s = s, .v = s->file = file};
    s->pass = (double)NAN;
    s->of = s->host->alloc(s->host, RLHF__FORMULA_NAMES * sizeof *s->of);
    if (!s->of) return no_memory(s);
    if (!json_is_object(p.v)) return refuse(s, "", "is not an object");
    find_grader(&p);
    const char *type = json_string_value(member(&p, "type"));
    s->multi = type && strcmp(type, "multi") == 0;
    if (s->multi) return read_multi(&p);
    RLHF_TRY(read_one(&p, "grade", COUNT(types)));
    s->pass = s->of[0].pass;
    return RLHF_OK;
}

rlhf_status rlhf__grader_spec_read(struct rlhf__grader_spec *s) {
    json_error_t why;
    char shown[120];
    json_t *file = json_load_file(s->path, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &why);
    if (!file && why.line < 0)
        return rlhf_failf(s->host, RLHF_E_INVALID, "file=%s cannot be read", s->path);
    if (!file)
        return rlhf_failf(s->host, RLHF_E_INVALID, "%s: line %d is not valid JSON: %s", s->path,
                          why.line,
                          rlhf__utf8_shown(why.text, strlen(why.text), shown, sizeof shown));
    return rlhf__grader_spec_take(s, file);
}

void rlhf__grader_spec_finish(struct rlhf__grader_spec *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        struct rlhf__grader *g = &s->of[i];
        rlhf__template_finish(&g->text[0]);
        rlhf__template_finish(&g->text[1]);
        for (uint32_t k = 0; k < g->n_messages; k++)
            rlhf__template_finish(&g->message[k].content);
        s->host->free(s->host, g->message);
    }
    s->host->free(s->host, s->of);
    json_decref(s->file);
    *s = (struct rlhf__grader_spec){0};
}

// ---- data rows ----

static int lacks(const struct rlhf__grader *g, const struct rlhf__template_from *from, char *what,
                 size_t cap) {
    for (int k = 0; k < 2; k++)
        if (rlhf__template_lacks(&g->text[k], from, what, cap)) return 1;
    for (uint32_t k = 0; k < g->n_messages; k++)
        if (rlhf__template_lacks(&g->message[k].content, from, what, cap)) return 1;
    return 0;
}

rlhf_status rlhf__grader_spec_check_row(const struct rlhf__grader_spec *s, rlhf_str row) {
    struct rlhf__template_from from = {.rows = s->host->service(s->host, RLHF_SVC_ROW)};
    rlhf_row *item = NULL;
    char what[120];
    rlhf_status st = RLHF_OK;
    if (!from.rows) return RLHF_OK;
    if (row.len) RLHF_TRY(from.rows->open(s->host, row, &item));
    from.of[RLHF__TEMPLATE_ITEM] = item;
    for (uint32_t i = 0; st == RLHF_OK && i < s->n; i++)
        if (lacks(&s->of[i], &from, what, sizeof what))
            st = rlhf_failf(s->host, RLHF_E_INVALID,
                            "the data row has no value for %s, which %s reads at %s", what, s->path,
                            *s->of[i].path ? s->of[i].path : "its top");
    from.rows->close(s->host, item);
    return st;
}
