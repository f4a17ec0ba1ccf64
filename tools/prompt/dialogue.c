// dialogue.c: see dialogue.h.
#include "prompt/dialogue.h"

#include "base/printable.h"
#include "base/signals.h"
#include "model/text_note.h"
#include "prompt/dialogue_state.h"
#include "prompt/editor.h"
#include "prompt/generate_prompts.h"
#include "prompt/side_by_side.h"
#include "text/unicode.h"
#include "tokenizer/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- the prompt of a text ----

static rlhf_status add_turn(struct rlhf__dialogue *d, int32_t role, rlhf_str text,
                            struct rlhf__error *err) {
    char *own = malloc((size_t)text.len + 1);
    if (!own) return RLHF__NOMEM(err, "out of memory for a conversation");
    if (text.len) memcpy(own, text.ptr, (size_t)text.len);
    own[text.len] = '\0';
    const rlhf_status st = rlhf__messages_add(&d->turns, role, (rlhf_str){own, text.len}, err);
    if (st != RLHF_OK) free(own);
    return st;
}

static rlhf_status encode(struct rlhf__dialogue *d, rlhf_str text, struct rlhf__error *err) {
    const struct rlhf__tokenizer *tok = d->model->tok;
    const int bos = d->at.bos || text.len == 0 || rlhf__tokenizer_has_bos(tok);
    d->prompt.n = 0;
    if (d->chat) return rlhf__conversation_encode(tok, &d->turns, 1, &d->prompt, NULL, err);
    if (bos && rlhf__tokenizer_info(tok)->bos < 0)
        return rlhf__fail(err, RLHF_E_INVALID, "the tokenizer of '%s' has no BOS token", d->name);
    return rlhf__tokenizer_encode(tok, text, bos ? RLHF__ENCODE_BOS : 0, 0, &d->prompt, err);
}

// ---- one text ----

static rlhf_status sample(struct rlhf__dialogue *d, const struct rlhf__model *m, FILE *out,
                          struct rlhf__answer *a, struct rlhf__error *err) {
    const struct rlhf__answer_request q = {.model = m,
                                           .settings = &d->settings,
                                           .rules = d->rules,
                                           .prompt = d->prompt.data,
                                           .n_prompt = d->prompt.n,
                                           .number = d->number,
                                           .out = out,
                                           .ended = d->at.setup->env->cancelled,
                                           .interrupted = d->interrupted};
    return rlhf__answer_sample(&q, a, err);
}

// Append the score, e.g. ", imdb.so 0.998". If the reward fails, log the error instead; the
// dialogue continues.
static void put_reward(struct rlhf__dialogue *d, rlhf_str text, const struct rlhf__answer *a,
                       struct rlhf__buf *out) {
    struct rlhf__error err;
    double score;
    if (!d->reward || a->n == 0) return;
    if (rlhf__dialogue_reward_score(d->reward, text, &d->prompt, a, &score, &err) == RLHF_OK)
        rlhf__buf_printf(out, ", %s %.3f", d->reward_name, score);
    else
        rlhf__log_error(d->log, err.text);
}

// Set d->under if there is a second model.
static rlhf_status look_from_other(struct rlhf__dialogue *d, struct rlhf__error *err) {
    if (!d->other) return RLHF_OK;
    d->under = calloc(d->answer.n ? d->answer.n : 1, sizeof *d->under);
    if (!d->under) return RLHF__NOMEM(err, "out of memory for a text");
    return rlhf__answer_under(&d->answer, d->other, d->prompt.data, d->prompt.n, d->under, err);
}

// Print the line under a text: the text's length, sampling time, log-prob and score.
static void say_numbers(struct rlhf__dialogue *d, rlhf_str text) {
    const struct rlhf__answer *a = &d->answer;
    const double sum = rlhf__answer_sum(a, a->logp);
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf__buf_printf(&out, "  %s%zu token%s in %.2f s", a->interrupted ? "stopped: " : "", a->n,
                     a->n == 1 ? "" : "s", a->seconds);
    if (a->n) rlhf__buf_printf(&out, ", log-prob %.1f (%.2f a token)", sum, sum / (double)a->n);
    put_reward(d, text, a, &out);
    printf("%s\n", rlhf__buf_text(&out));
    rlhf__buf_finish(&out);
}

static rlhf_status say_alone(struct rlhf__dialogue *d, rlhf_str text, struct rlhf__error *err) {
    if (!d->chat) {
        struct rlhf__buf seen = RLHF__BUF_INIT;
        rlhf__put_printable(&seen, text.ptr, (size_t)text.len, "\n\t");
        fwrite(rlhf__buf_text(&seen), 1, seen.len, stdout);
        fflush(stdout);
        rlhf__buf_finish(&seen);
    }
    const rlhf_status st = sample(d, d->model, stdout, &d->answer, err);
    putchar('\n');
    if (st == RLHF_OK) say_numbers(d, text);
    return st;
}

// ---- two models ----

static void put_column(struct rlhf__dialogue *d, rlhf_str text, const struct rlhf__answer *a,
                       const char *name, struct rlhf__column *c) {
    c->title = name;
    if (!d->chat) rlhf__buf_put(&c->text, text.ptr, (size_t)text.len);
    rlhf__buf_put(&c->text, rlhf__buf_text(&a->text), a->text.len);
    rlhf__buf_printf(&c->foot, "log-prob %.1f", rlhf__answer_sum(a, a->logp));
    put_reward(d, text, a, &c->foot);
}

// The second model's text is on the left, because that model is usually the one before training.
static rlhf_status say_both(struct rlhf__dialogue *d, rlhf_str text, struct rlhf__error *err) {
    struct rlhf__answer before = {0};
    struct rlhf__column left = {NULL, RLHF__BUF_INIT, RLHF__BUF_INIT},
                        right = {NULL, RLHF__BUF_INIT, RLHF__BUF_INIT};
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf_status st = sample(d, d->other, NULL, &before, err);
    if (st == RLHF_OK) st = sample(d, d->model, NULL, &d->answer, err);
    if (st == RLHF_OK) st = look_from_other(d, err);
    if (st == RLHF_OK) {
        put_column(d, text, &before, d->other_name, &left);
        put_column(d, text, &d->answer, d->name, &right);
        rlhf__buf_printf(&right.foot, ", under %s %.1f", d->other_name,
                         rlhf__answer_sum(&d->answer, d->under));
        rlhf__side_by_side(&left, &right, rlhf__terminal_width(STDOUT_FILENO, 80), &out);
        fwrite(rlhf__buf_text(&out), 1, out.len, stdout);
    }
    rlhf__buf_finish(&out);
    rlhf__column_finish(&left);
    rlhf__column_finish(&right);
    rlhf__answer_finish(&before);
    return st;
}

static rlhf_status say(struct rlhf__dialogue *d, rlhf_str text, struct rlhf__error *err) {
    const size_t turns = d->turns.n;
    rlhf_status st = RLHF_OK;
    if (d->chat) RLHF_TRY(add_turn(d, RLHF__ROLE_USER, text, err));
    st = encode(d, text, err);
    *d->interrupted = 0;
    for (int64_t i = 0; st == RLHF_OK && i < d->n && !*d->interrupted; i++, d->number++) {
        free(d->under);
        d->under = NULL;
        if (i) puts("---");
        st = d->other ? say_both(d, text, err) : say_alone(d, text, err);
    }
    const rlhf_str answer = {rlhf__buf_text(&d->answer.text), d->answer.text.len};
    if (st == RLHF_OK && d->chat) st = add_turn(d, RLHF__ROLE_ASSISTANT, answer, err);
    if (st != RLHF_OK) rlhf__dialogue_forget(d, turns); // drop the turns that the model did not see
    return st;
}

// ---- the dialogue ----

static rlhf_status take_line(struct rlhf__dialogue *d, const char *line, struct rlhf__error *err) {
    const rlhf_str text = {line, strlen(line)};
    const size_t good = rlhf__utf8_valid(line, (size_t)text.len);
    if (line[0] == '/') return rlhf__dialogue_command(d, line, err);
    if (good < text.len)
        return rlhf__fail(err, RLHF_E_INVALID, "invalid UTF-8 at byte %zu", good + 1);
    // An empty turn is a mistake: ignore it.
    return text.len || !d->chat ? say(d, text, err) : RLHF_OK;
}

static rlhf_status lead(struct rlhf__dialogue *d, struct rlhf__editor *e, struct rlhf__error *err) {
    const volatile sig_atomic_t *ended = d->at.setup->env->cancelled;
    while (!d->quit) {
        const char *line;
        fflush(stdout);
        const int event = rlhf__editor_line(e, &line);
        if (event == RLHF__LINE_END) break;
        if (event == RLHF__LINE_LEFT) {
            puts("\n  Ctrl-D or /quit ends");
            continue;
        }
        if (take_line(d, line, err) != RLHF_OK && !*ended) {
            fflush(stdout);
            rlhf__log_error(d->log, err->text);
        }
    }
    if (!d->quit) putchar('\n');
    return *ended ? rlhf__fail(err, RLHF_E_CANCELLED, "stopped") : RLHF_OK;
}

static void finish(struct rlhf__dialogue *d) {
    rlhf__dialogue_forget(d, 0);
    rlhf__messages_finish(&d->turns);
    rlhf__dialogue_reward_close(d->reward);
    rlhf__response_rules_close(d->rules);
    rlhf__ids_finish(&d->prompt);
    rlhf__answer_finish(&d->answer);
    free(d->under);
    rlhf__model_close(d->other);
    rlhf__model_close(d->model);
    free(d->name);
    free(d->other_name);
    free(d->reward_name);
}

rlhf_status rlhf__dialogue(const struct rlhf__dialogue_start *start, struct rlhf__error *err) {
    struct rlhf__dialogue d = {
        .at = *start, .log = start->setup->env->log, .settings = start->settings, .n = start->n};
    struct rlhf__editor *editor = NULL;
    rlhf_status st = rlhf__dialogue_use(&d, start->model, start->given, err);
    if (st != RLHF_OK) rlhf__model_close(start->model);
    d.interrupted = rlhf__signals_dialogue(1);
    const struct rlhf__editor_opts o = {.words = rlhf__dialogue_words(),
                                        .ended = start->setup->env->cancelled,
                                        .interrupted = d.interrupted};
    if (st == RLHF_OK) st = rlhf__editor_open(&o, &editor, err);
    if (st == RLHF_OK) rlhf__dialogue_describe(&d);
    if (st == RLHF_OK) puts("/help lists the commands, Ctrl-D ends");
    if (st == RLHF_OK) st = lead(&d, editor, err);
    rlhf__editor_close(editor);
    rlhf__signals_dialogue(0);
    finish(&d);
    return st;
}
