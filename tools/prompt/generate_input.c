// generate_input.c: see generate_input.h.
#include "prompt/generate_input.h"

#include "cmd/command_setup.h"
#include "model/text_note.h"

#include <stdlib.h>

// Returns 1 if prompt i is a text, and 0 if it is a chat. A chat gets no separate BOS token,
// because the chat template determines how it begins.
int rlhf__generate_input_is_text(const struct rlhf__generate_input *j, size_t i) {
    return !rlhf__typed_prompts_is_chat(&j->prompts, i);
}

static rlhf_status no_bos(const struct rlhf__generate_input *j, size_t i, struct rlhf__error *err) {
    char where[512];
    if (j->how.bos)
        return rlhf__fail(err, RLHF_E_INVALID, "--bos: the tokenizer of '%s' has no BOS token",
                          j->model->dir);
    rlhf__typed_prompts_where(&j->prompts, i, where, sizeof where);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s is empty, which stands for the BOS token alone, but the tokenizer of "
                      "'%s' has none",
                      where, j->model->dir);
}

static rlhf_status encode_prompt(struct rlhf__generate_input *j, size_t i,
                                 struct rlhf__error *err) {
    const int text = rlhf__generate_input_is_text(j, i);
    const int bos = j->how.bos || (text && rlhf__tokenizer_has_bos(j->model->tok));
    if (text && (bos || j->prompts.text[i].len == 0) &&
        rlhf__tokenizer_info(j->model->tok)->bos < 0)
        return no_bos(j, i, err);
    j->at[i] = j->ids.n;
    RLHF_TRY(rlhf__typed_prompts_encode(&j->prompts, i, j->model->tok, bos, &j->ids, err));
    size_t n = j->ids.n - j->at[i];
    j->at[i + 1] = j->ids.n;
    if (n > j->longest) j->longest = n;
    if ((int64_t)n + j->how.max_new <= j->model->info.n_ctx) return RLHF_OK;
    char where[512];
    rlhf__typed_prompts_where(&j->prompts, i, where, sizeof where);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s has %zu token%s; with --max-new %lld that is more than the context of "
                      "'%s', %d tokens",
                      where, n, n == 1 ? "" : "s", (long long)j->how.max_new, j->model->dir,
                      j->model->info.n_ctx);
}

static const char *known(const struct rlhf__generate_input *j) {
    return rlhf__chat_known(rlhf__tokenizer_chat(j->model->tok));
}

// Set the chat template, and decide whether typed texts become turns in the template.
rlhf_status rlhf__generate_input_template(struct rlhf__generate_input *j, struct rlhf__error *err) {
    int64_t chats = 0;
    for (size_t i = 0; j->prompts.own && i < j->prompts.n; i++)
        chats += j->prompts.own[i] != NULL;
    int lines = 0;
    for (size_t i = 0; j->prompts.lines && i < j->prompts.n; i++)
        lines |= j->prompts.text[i].len > 0;
    const struct rlhf__flag_idle raw = {"--raw", j->how.raw && !lines};
    RLHF_TRY(rlhf__flags_idle(&raw, 1, "generate",
                              j->how.flags
                                  ? "here: the prompt is empty, so the text begins at the BOS "
                                    "token, without a chat template"
                                  : "here: no text is given by --prompt or as a piped line",
                              err));
    RLHF_TRY(rlhf__command_setup_template_used("generate", &j->how.chat,
                                               chats + (lines && !j->how.raw), err));
    RLHF_TRY(rlhf__command_setup_template(j->model, &j->how.chat, err));
    RLHF_TRY(rlhf__texts_alone(j->model, &j->texts_alone, err));
    const int alone = j->texts_alone && !rlhf__command_setup_chat_given(&j->how.chat);
    j->prompts.turns = lines && !j->how.raw && !alone && known(j) != NULL;
    return RLHF_OK;
}

// If the model has a chat template, log whether it is applied to texts.
static void log_template(const struct rlhf__generate_input *j, struct rlhf__log *log) {
    const char *unknown = rlhf__chat_unknown(rlhf__tokenizer_chat(j->model->tok));
    struct rlhf__buf what = RLHF__BUF_INIT;
    int texts = 0;
    for (size_t i = 0; i < j->prompts.n; i++)
        texts |= rlhf__generate_input_is_text(j, i) && j->prompts.text[i].len > 0;
    rlhf__chat_describe(rlhf__tokenizer_chat(j->model->tok), &what);
    if (j->prompts.turns)
        rlhf__logf(log, RLHF_LOG_INFO,
                   "each prompt is a user's turn of the chat template %s; --raw leaves it out",
                   rlhf__buf_text(&what));
    else if (texts && known(j))
        rlhf__logf(log, RLHF_LOG_INFO,
                   "prompts are continued as they are, without the chat template %s%s", known(j),
                   j->how.raw       ? ""
                   : j->texts_alone ? ", since the model's run had no messages; --template NAME "
                                      "makes them a user's turns"
                                    : "; rows with messages get it");
    else if (texts && unknown)
        rlhf__logf(log, RLHF_LOG_WARN,
                   "prompts are continued as they are: %s; --template names one", unknown);
    else if (j->how.raw)
        rlhf__logf(log, RLHF_LOG_INFO, "--raw changes nothing: the model has no chat template");
    rlhf__buf_finish(&what);
}

// Warn if a prompt uses a chat template but the template's end-of-turn token does not end
// responses.
static void warn_turn_end(const struct rlhf__generate_input *j, const char *stops,
                          struct rlhf__log *log) {
    int chats = 0;
    for (size_t i = 0; i < j->prompts.n; i++)
        chats |= !rlhf__generate_input_is_text(j, i);
    if (chats && !j->how.ignore_eos)
        rlhf__model_turn_end_note(j->model, stops, RLHF__REMEDY_FLAG, log);
}

rlhf_status rlhf__generate_input_encode(struct rlhf__generate_input *j,
                                        const volatile sig_atomic_t *cancelled,
                                        struct rlhf__error *err) {
    j->at = calloc(j->prompts.n + 1, sizeof *j->at);
    if (!j->at) return RLHF__NOMEM(err, "out of memory for %zu prompts", j->prompts.n);
    for (size_t i = 0; i < j->prompts.n; i++) {
        if (*cancelled) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
        RLHF_TRY(encode_prompt(j, i, err));
    }
    return RLHF_OK;
}

void rlhf__generate_input_log(const struct rlhf__generate_input *j, const char *stops,
                              struct rlhf__log *log) {
    log_template(j, log);
    warn_turn_end(j, stops, log);
}

void rlhf__generate_input_finish(struct rlhf__generate_input *j) {
    rlhf__typed_prompts_finish(&j->prompts);
    rlhf__ids_finish(&j->ids);
    free(j->at);
}
