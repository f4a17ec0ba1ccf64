// judge_model.c: see judge_model.h.
#include "rubric/judge_model.h"

#include <math.h>
#include <rlhf/exact.h>
#include <rlhf/log.h>
#include <stdio.h>
#include <string.h>

static rlhf_status no_memory(const struct rlhf__judge_model *j) {
    return (j->host->fail)(j->host, RLHF_E_NOMEM, "out of memory for questions");
}

// ---- the answer words ----

// Append the tokens of a word. Without a chat template, a space precedes the word.
static rlhf_status encode_word(const struct rlhf__judge_model *j, const char *word,
                               struct rlhf__bytes *out, uint32_t *n) {
    struct rlhf__bytes text = {.host = j->host};
    int32_t ids[64];
    if (!j->info.templated) rlhf__bytes_text(&text, " ");
    rlhf__bytes_text(&text, word);
    const rlhf_encode_in q = {.size = sizeof q, .text = {text.data, text.len}};
    rlhf_encode_out to = {.size = sizeof to, .cap = 64, .ids = ids};
    rlhf_status st = text.full ? no_memory(j) : j->service->encode(j->host, j->model, &q, &to);
    *n = to.n;
    rlhf__bytes_finish(&text);
    if (st == RLHF_OK && (*n == 0 || *n > 64))
        st = rlhf_failf(j->host, RLHF_E_INVALID, "the answer \"%.40s\" has %u tokens; 1 to 64",
                        word, *n);
    if (st == RLHF_OK) rlhf__bytes_add(out, ids, *n * sizeof *ids);
    return st;
}

// The probability of a word includes that of all longer answers that begin with it.
static rlhf_status check_apart(const struct rlhf__judge_model *j, const struct rlhf__judge_words *w,
                               const char *criterion) {
    if (!w->ids) return no_memory(j);
    for (uint32_t a = 0; a < w->n; a++)
        for (uint32_t b = 0; b < w->n; b++) {
            const uint32_t n = w->offset[a + 1] - w->offset[a];
            if (a == b || n > w->offset[b + 1] - w->offset[b]) continue;
            if (memcmp(w->ids + w->offset[a], w->ids + w->offset[b], n * sizeof *w->ids) != 0)
                continue;
            return rlhf_failf(
                j->host, RLHF_E_INVALID,
                "criterion \"%s\": the tokens of the answer \"%.40s\" begin those of "
                "\"%.40s\", so its probability includes that answer; choose other words",
                criterion, w->text[a], w->text[b]);
        }
    return RLHF_OK;
}

static rlhf_status read_words(struct rlhf__judge_model *j, const struct rlhf__criterion *c,
                              struct rlhf__judge_words *w) {
    struct rlhf__bytes ids = {.host = j->host};
    const char *word;
    json_t *value;
    rlhf_status st = RLHF_OK;
    json_object_foreach((json_t *)(uintptr_t)c->answers, word, value) {
        uint32_t n = 0;
        if (st == RLHF_OK) st = encode_word(j, word, &ids, &n);
        if (st != RLHF_OK) break;
        w->text[w->n] = word;
        w->value[w->n] = json_number_value(value);
        w->offset[w->n + 1] = w->offset[w->n] + n;
        w->n++;
        if (n > w->longest) w->longest = n;
        if (n > 1)
            rlhf_logf(j->host, RLHF_LOG_INFO,
                      "criterion %s: the answer \"%.40s\" has %u tokens; its probability is their "
                      "product",
                      c->name, word, n);
    }
    if (st == RLHF_OK && ids.full) st = no_memory(j);
    w->ids = (int32_t *)(void *)ids.data; // freed by rlhf__judge_model_close
    return st == RLHF_OK ? check_apart(j, w, c->name) : st;
}

// ---- opening ----

rlhf_status rlhf__judge_model_open(struct rlhf__judge_model *j, const rlhf_host *host,
                                   const char *path, int32_t longest,
                                   const struct rlhf__criteria *criteria) {
    const rlhf_language_open how = {.size = sizeof how, .path = path, .longest = longest};
    j->host = host;
    j->service = host->service(host, RLHF_SVC_LANGUAGE_MODEL);
    if (!j->service)
        return (host->fail)(host, RLHF_E_UNSUPPORTED,
                            "this host does not offer " RLHF_SVC_LANGUAGE_MODEL);
    RLHF_TRY(j->service->open(host, &how, &j->model));
    j->info.size = sizeof j->info;
    RLHF_TRY(j->service->info(host, j->model, &j->info));
    rlhf_logf(host, RLHF_LOG_INFO, "the judge %s reads %s, of at most %d tokens", path,
              j->info.templated ? "questions in its chat template"
                                : "questions as plain texts, because it has no chat template",
              j->info.longest);
    for (uint32_t k = 0; k < criteria->n; k++)
        RLHF_TRY(read_words(j, &criteria->of[k], &j->words[k]));
    return RLHF_OK;
}

void rlhf__judge_model_close(struct rlhf__judge_model *j) {
    for (uint32_t k = 0; k < RLHF__CRITERIA_MOST; k++)
        if (j->words[k].ids) j->host->free(j->host, j->words[k].ids);
    if (j->model) j->service->close(j->host, j->model);
}

// ---- questions ----

// The questions of one call of the service: for each, a row for each answer word.
struct part {
    struct rlhf__judge_model *j;
    struct rlhf__asks *asks;
    struct rlhf__bytes ids, offset, prompt_len; // arrays of int32_t
    struct rlhf__bytes of;                      // uint32_t: the ask of each question
    struct rlhf__bytes text, prompt;            // of one question; `prompt` is an array of int32_t
};

enum { TOKENS_AT_ONCE = 65536 };

static void part_reset(struct part *p) {
    const int32_t zero = 0;
    p->ids.len = p->offset.len = p->prompt_len.len = p->of.len = 0;
    rlhf__bytes_add(&p->offset, &zero, sizeof zero);
}

static void part_finish(struct part *p) {
    struct rlhf__bytes *const all[] = {&p->ids, &p->offset, &p->prompt_len,
                                       &p->of,  &p->text,   &p->prompt};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rlhf__bytes_finish(all[i]);
}

// Write the text of an ask as the service reads it: messages, or a plain text.
static void write_text(struct part *p, const struct rlhf__ask *ask) {
    struct rlhf__bytes text = {.host = p->j->host};
    p->text.len = 0;
    rlhf__criteria_ask(p->asks->criteria, ask->criterion, p->asks->in, ask->row, &text);
    if (p->j->info.templated) {
        rlhf__bytes_text(&p->text, "[{\"role\":\"user\",\"content\":");
        rlhf__bytes_string(&p->text, (rlhf_str){text.data, text.len});
        rlhf__bytes_text(&p->text, "}]");
    } else {
        rlhf__bytes_add(&p->text, text.data, text.len);
        rlhf__bytes_text(&p->text, "\nAnswer:");
    }
    p->text.full |= text.full;
    rlhf__bytes_finish(&text);
}

// Encode the text. The second call of the service is for texts with more tokens than bytes were
// expected.
static rlhf_status encode_text(struct part *p, uint32_t *n) {
    const struct rlhf__judge_model *j = p->j;
    const rlhf_str text = {p->text.data, p->text.len};
    rlhf_language_prompt q = {.size = sizeof q};
    if (j->info.templated)
        q.messages = text;
    else
        q.text = text;
    for (;;) {
        rlhf_encode_out to = {.size = sizeof to,
                              .cap = (uint32_t)(p->prompt.cap / sizeof(int32_t)),
                              .ids = (int32_t *)(void *)p->prompt.data};
        RLHF_TRY(j->service->prompt(j->host, j->model, &q, &to));
        *n = to.n;
        if (to.n <= to.cap) return RLHF_OK;
        p->prompt.len = 0;
        for (uint32_t i = 0; i < *n; i++)
            rlhf__bytes_add(&p->prompt, &(int32_t){0}, sizeof(int32_t));
        if (p->prompt.full) return no_memory(j);
    }
}

static void add_rows(struct part *p, const struct rlhf__judge_words *w, uint32_t n) {
    const int32_t len = (int32_t)n;
    for (uint32_t k = 0; k < w->n; k++) {
        rlhf__bytes_add(&p->ids, p->prompt.data, n * sizeof(int32_t));
        rlhf__bytes_add(&p->ids, w->ids + w->offset[k],
                        (w->offset[k + 1] - w->offset[k]) * sizeof(int32_t));
        const int32_t end = (int32_t)(p->ids.len / sizeof(int32_t));
        rlhf__bytes_add(&p->offset, &end, sizeof end);
        rlhf__bytes_add(&p->prompt_len, &len, sizeof len);
    }
}

// Add the rows of ask `at`, or lose it.
static rlhf_status add_ask(struct part *p, uint32_t at) {
    struct rlhf__ask *ask = &p->asks->ask[at];
    const struct rlhf__judge_words *w = &p->j->words[ask->criterion];
    uint32_t n = 0;
    char why[128];
    write_text(p, ask);
    if (p->text.full) return no_memory(p->j);
    const rlhf_status st = encode_text(p, &n);
    if (st == RLHF_E_UNSUPPORTED) // the response is a text for which the tokenizer takes too long
        rlhf__ask_lose(ask, "the judge's tokenizer cannot encode the question");
    if (st != RLHF_OK) return st == RLHF_E_UNSUPPORTED ? RLHF_OK : st;
    if ((int64_t)n + w->longest > p->j->info.longest) {
        snprintf(why, sizeof why, "the question has %u tokens; with an answer at most %d fit", n,
                 p->j->info.longest);
        rlhf__ask_lose(ask, why);
        return RLHF_OK;
    }
    add_rows(p, w, n);
    rlhf__bytes_add(&p->of, &at, sizeof at);
    return RLHF_OK;
}

// ---- answers ----

// Score an ask by the log-probs of its rows: sum of value * P(word) / sum of P(word). Returns the
// sum of P(word).
static double answer(struct rlhf__ask *ask, const struct rlhf__judge_words *w, const float *logp,
                     const int32_t *offset, const int32_t *prompt_len) {
    double log_p[RLHF__ANSWERS_MOST], most = -INFINITY, sum = 0, values = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        log_p[k] = 0;
        for (int32_t t = offset[k] + prompt_len[k]; t < offset[k + 1]; t++)
            log_p[k] += (double)logp[t];
        if (log_p[k] > most) most = log_p[k];
    }
    for (uint32_t k = 0; k < w->n; k++) {
        const double p = rlhf_exp(log_p[k] - most);
        sum += p;
        values += w->value[k] * p;
    }
    if (isfinite(most))
        rlhf__ask_score(ask, values / sum);
    else
        rlhf__ask_lose(ask, "the model gives no answer word a probability above 0");
    return isfinite(most) ? sum * rlhf_exp(most) : 0;
}

static rlhf_status ask_part(struct part *p) {
    struct rlhf__judge_model *j = p->j;
    const uint32_t *of = (const uint32_t *)(const void *)p->of.data;
    const int32_t *offset = (const int32_t *)(const void *)p->offset.data;
    const int32_t *prompt_len = (const int32_t *)(const void *)p->prompt_len.data;
    const uint32_t n = (uint32_t)(p->of.len / sizeof *of);
    if (p->ids.full || p->offset.full || p->prompt_len.full || p->of.full) return no_memory(j);
    if (n == 0) return RLHF_OK;
    const uint64_t total = p->ids.len / sizeof(int32_t);
    float *logp = j->host->alloc(j->host, total * sizeof *logp);
    if (!logp) return no_memory(j);
    const rlhf_language_rows rows = {.size = sizeof rows,
                                     .n = (uint32_t)(p->prompt_len.len / sizeof *prompt_len),
                                     .ids = (const int32_t *)(const void *)p->ids.data,
                                     .offset = offset,
                                     .prompt_len = prompt_len};
    const rlhf_language_scores out = {.size = sizeof out, .logp = logp};
    const rlhf_status st = j->service->score(j->host, j->model, &rows, &out);
    for (uint32_t i = 0, row = 0; st == RLHF_OK && i < n; i++) {
        struct rlhf__ask *ask = &p->asks->ask[of[i]];
        const struct rlhf__judge_words *w = &j->words[ask->criterion];
        j->mass += answer(ask, w, logp, offset + row, prompt_len + row);
        j->answered++;
        row += w->n;
    }
    j->host->free(j->host, logp);
    return st;
}

rlhf_status rlhf__judge_model_ask(struct rlhf__judge_model *j, struct rlhf__asks *asks) {
    const struct rlhf__bytes empty = {.host = j->host};
    struct part p = {j, asks, empty, empty, empty, empty, empty, empty};
    rlhf_status st = RLHF_OK;
    j->mass = 0;
    j->answered = 0;
    part_reset(&p);
    for (uint32_t at = 0; st == RLHF_OK && at < asks->n; at++) {
        st = add_ask(&p, at);
        if (st != RLHF_OK || p.ids.len < TOKENS_AT_ONCE * sizeof(int32_t)) continue;
        st = ask_part(&p);
        part_reset(&p);
    }
    if (st == RLHF_OK) st = ask_part(&p);
    if (j->answered) j->mass /= j->answered;
    part_finish(&p);
    return st;
}
