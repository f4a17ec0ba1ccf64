// criteria.c: see criteria.h.
#include "rubric/criteria.h"

#include "rubric/question.h"

#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

// ---- the file ----

static rlhf_status refuse(const struct rlhf__criteria *c, const char *path, const char *what) {
    return rlhf_failf(c->host, RLHF_E_INVALID, "%s: %s", path, what);
}

static int is_name(const char *text) {
    const size_t n = text ? strlen(text) : 0;
    return n > 0 && n <= RLHF__CRITERION_NAME &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

static int number(const json_t *v, double lo, double hi, double *out) {
    if (!v) return 1;
    *out = json_number_value(v);
    return json_is_number(v) && *out >= lo && *out <= hi;
}

// Returns 1 if `key` is one of the members; the last one is only for judges whose answers are
// words.
static int is_member(const struct rlhf__criteria *c, const char *const all[], size_t n,
                     const char *key) {
    for (size_t i = 0; i < n - !c->kind->answers; i++)
        if (strcmp(all[i], key) == 0) return 1;
    return 0;
}

// Write into what[cap] what is wrong with words and their values; of is their place. Returns 1 if
// they are sound.
static int are_answers(const json_t *v, const char *of, char *what, size_t cap) {
    const char *word;
    json_t *value;
    double number_of;
    if (!json_is_object(v) || json_object_size(v) < 2 || json_object_size(v) > RLHF__ANSWERS_MOST) {
        snprintf(what, cap, "\"answers\" of %s is not an object of 2 to %d words with values", of,
                 RLHF__ANSWERS_MOST);
        return 0;
    }
    json_object_foreach((json_t *)(uintptr_t)v, word, value) {
        if (*word && number(value, 0, 1, &number_of)) continue;
        snprintf(what, cap, "\"answers\" of %s: the value of \"%.40s\" is not a number from 0 to 1",
                 of, word);
        return 0;
    }
    return 1;
}

static rlhf_status read_one(struct rlhf__criteria *c, const char *path, size_t i, json_t *v) {
    struct rlhf__criterion *to = &c->of[i];
    const char *name = json_string_value(json_object_get(v, "name")), *key;
    char what[240];
    json_t *member;
    if (!is_name(name)) {
        snprintf(what, sizeof what,
                 "criterion %zu has no \"name\" of lower-case letters, digits and '_', at most %d",
                 i, RLHF__CRITERION_NAME);
        return refuse(c, path, what);
    }
    snprintf(to->name, sizeof to->name, "%s", name);
    to->ask = json_string_value(json_object_get(v, "ask"));
    to->weight = 1;
    *what = 0;
    if (!to->ask || !*to->ask)
        snprintf(what, sizeof what, "criterion \"%s\" has no \"ask\", a text", name);
    else if (!number(json_object_get(v, "weight"), 0, 1e6, &to->weight))
        snprintf(what, sizeof what, "\"weight\" of \"%s\" is not a number from 0 to 1e6", name);
    else if (!number(json_object_get(v, "gate"), 0, 1, &to->gate))
        snprintf(what, sizeof what, "\"gate\" of \"%s\" is not a number from 0 to 1", name);
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->of[k].name, name) == 0)
            snprintf(what, sizeof what, "two criteria have the name \"%s\"", name);
    static const char *const all[] = {"name", "ask", "weight", "gate", "answers"};
    json_object_foreach(v, key, member) if (!is_member(c, all, 5, key)) {
        snprintf(what, sizeof what,
                 "criterion \"%s\" has \"%.60s\"; allowed: name, ask, weight, gate%s", name, key,
                 c->kind->answers ? ", answers" : "");
    }
    if (c->kind->answers && !*what) {
        to->answers = json_object_get(v, "answers");
        if (to->answers) are_answers(to->answers, name, what, sizeof what);
        if (!to->answers) to->answers = json_object_get(c->file, "answers");
    }
    return *what ? refuse(c, path, what) : RLHF_OK;
}

// Read the members of the file that hold for all criteria.
static rlhf_status read_common(struct rlhf__criteria *c, const char *path) {
    static const char *const numbers[] = {"criteria", "template", "scale"};
    static const char *const words[] = {"criteria", "template", "answers"};
    const char *const *all = c->kind->answers ? words : numbers;
    const struct rlhf__question_parts parts = {.answers = c->kind->answers ? "" : NULL,
                                               .scale = c->kind->answers ? NULL : ""};
    json_t *template = json_object_get(c->file, "template"), *member;
    const char *key;
    char what[240];
    json_object_foreach(c->file, key, member) {
        if (strcmp(key, all[0]) == 0 || strcmp(key, all[1]) == 0 || strcmp(key, all[2]) == 0)
            continue;
        snprintf(what, sizeof what, "it has \"%.60s\"; allowed: \"criteria\", \"%s\", \"template\"",
                 key, all[2]);
        return refuse(c, path, what);
    }
    c->scale = 10;
    if (!number(json_object_get(c->file, "scale"), 1, 1e6, &c->scale))
        return refuse(c, path, "\"scale\" is not a number from 1 to 1e6, the best score");
    c->template = template ? json_string_value(template) : c->kind->template;
    if (!c->template) return refuse(c, path, "\"template\" is not a text");
    if (!rlhf__question_check(c->template, &parts, what, sizeof what)) return refuse(c, path, what);
    if (!c->kind->answers) return RLHF_OK;
    if (!json_object_get(c->file, "answers") &&
        json_object_set_new(
            c->file, "answers",
            json_pack("{s:i, s:i, s:i, s:i}", "Yes", 1, "yes", 1, "No", 0, "no", 0)) != 0)
        return (c->host->fail)(c->host, RLHF_E_NOMEM, "out of memory");
    return are_answers(json_object_get(c->file, "answers"), "the file", what, sizeof what)
               ? RLHF_OK
               : refuse(c, path, what);
}

static rlhf_status read_all(struct rlhf__criteria *c, const char *path) {
    const json_t *list = json_object_get(c->file, "criteria");
    double weights = 0;
    RLHF_TRY(read_common(c, path));
    if (!json_is_array(list) || json_array_size(list) == 0 ||
        json_array_size(list) > RLHF__CRITERIA_MOST)
        return refuse(c, path, "\"criteria\" is not a list of 1 to 32 criteria");
    for (size_t i = 0; i < json_array_size(list); i++) {
        RLHF_TRY(read_one(c, path, i, json_array_get(list, i)));
        weights += c->of[i].weight;
        c->n++;
    }
    if (weights > 0) return RLHF_OK;
    return refuse(c, path, "all weights are 0; at least one criterion must count");
}

rlhf_status rlhf__criteria_read(struct rlhf__criteria *c, const char *path, const char *ask) {
    json_error_t why;
    if (!path) {
        c->file = json_pack("{s:[{s:s, s:s}]}", "criteria", "name", "ask", "ask", ask);
        if (c->file) return read_all(c, "ask");
        return (c->host->fail)(c->host, RLHF_E_INVALID, "ask: it is not valid UTF-8");
    }
    c->file = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (!c->file && why.line < 0)
        return rlhf_failf(c->host, RLHF_E_INVALID, "file: '%s' cannot be read", path);
    if (!json_is_object(c->file))
        return rlhf_failf(c->host, RLHF_E_INVALID, "%s:%d: it is not a JSON object: %.120s", path,
                          why.line, why.text);
    return read_all(c, path);
}

void rlhf__criteria_finish(struct rlhf__criteria *c) { json_decref(c->file); }

// ---- questions ----

rlhf_status rlhf__criteria_check_row(const struct rlhf__criteria *c, rlhf_str row) {
    char key[64];
    for (uint32_t k = 0; k < c->n; k++)
        if (rlhf__question_lacks(c->host, c->of[k].ask, row, key))
            return rlhf_failf(c->host, RLHF_E_INVALID,
                              "criterion \"%s\" names {row.%s}, and the row has no member \"%s\"",
                              c->of[k].name, key, key);
    if (!rlhf__question_lacks(c->host, c->template, row, key)) return RLHF_OK;
    return rlhf_failf(c->host, RLHF_E_INVALID,
                      "the template names {row.%s}, and the row has no member \"%s\"", key, key);
}

// Returns 1 if a word before `until` differs from `word` only in upper and lower case and spaces.
static int was_listed(json_t *answers, const char *until, const char *word) {
    const char *other;
    json_t *value;
    json_object_foreach(answers, other, value) {
        if (strcmp(other, until) == 0) return 0;
        if (strcasecmp(other + strspn(other, " "), word) == 0) return 1;
    }
    return 0;
}

// Lists the words as "Yes or No", "A, B or C".
static void list_answers(const json_t *of, struct rlhf__bytes *out) {
    json_t *answers = (json_t *)(uintptr_t)of, *value;
    const char *key, *last = NULL;
    json_object_foreach(answers, key, value) {
        const char *word = key + strspn(key, " ");
        if (was_listed(answers, key, word)) continue;
        if (last) rlhf__bytes_text(out, out->len ? ", " : "");
        if (last) rlhf__bytes_text(out, last);
        last = word;
    }
    if (out->len) rlhf__bytes_text(out, " or ");
    if (last) rlhf__bytes_text(out, last);
}

void rlhf__criteria_ask(const struct rlhf__criteria *c, uint32_t k, const rlhf_reward_in *in,
                        uint32_t i, struct rlhf__bytes *out) {
    struct rlhf__bytes words = {.host = c->host};
    char scale[32];
    snprintf(scale, sizeof scale, "%g", c->scale);
    if (c->of[k].answers) list_answers(c->of[k].answers, &words);
    rlhf__bytes_add(&words, "", 1);
    const struct rlhf__question_parts parts = {
        .ask = c->of[k].ask,
        .prompt = in->prompt[i],
        .response = in->response[i],
        .row = in->meta ? in->meta[i] : (rlhf_str){NULL, 0},
        .answers = c->of[k].answers ? words.data : NULL,
        .scale = c->of[k].answers ? NULL : scale,
    };
    rlhf__question_fill(c->template, &parts, out);
    out->full |= words.full;
    rlhf__bytes_finish(&words);
}
