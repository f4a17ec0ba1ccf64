// chat_note.c: see chat_note.h.
#include "model/chat_note.h"

#include <stdio.h>
#include <string.h>

rlhf_status rlhf__model_name_chat(const struct rlhf__model *m, int32_t template,
                                  struct rlhf__error *err) {
    return rlhf__tokenizer_name_chat(m->tok, rlhf__chat_names()[template], err);
}

// draws: 1 where responses are sampled, which sampling.stop can end.
static void note_end(const struct rlhf__model *m, const char *end, int draws,
                     struct rlhf__log *log) {
    const int32_t id = rlhf__tokenizer_find(m->tok, (rlhf_str){end, strlen(end)});
    char remedy[160];
    if (id < 0 || !rlhf__tokenizer_is_special(m->tok, id)) {
        rlhf__logf(log, RLHF_LOG_WARN,
                   "the tokenizer of '%s' has no special token '%s', which ends the turns of its "
                   "chat template: it is spelled out in ordinary tokens",
                   m->dir, end);
        return;
    }
    if (!(m->info.heads & RLHF_HEAD_GENERATE) || rlhf__ends_has(&m->ends, id)) return;
    if (draws)
        snprintf(remedy, sizeof remedy,
                 "responses go on after it; sampling.stop=[%d] ends them there", (int)id);
    else
        snprintf(remedy, sizeof remedy,
                 "responses of the trained model will go on after it; id %d among the "
                 "eos_token_id of generation_config.json ends them there",
                 (int)id);
    rlhf__logf(log, RLHF_LOG_WARN,
               "'%s' ends turns of the chat template, but is none of the tokens that end a "
               "response of '%s' (eos_token_id of generation_config.json and config.json): %s",
               end, m->dir, remedy);
}

void rlhf__model_chat_note(const struct rlhf__model *m, int64_t rows, int32_t template, int draws,
                           struct rlhf__log *log) {
    const struct rlhf__chat *chat = rlhf__tokenizer_chat(m->tok);
    if (rows == 0) {
        if (template)
            rlhf__logf(
                log, RLHF_LOG_WARN,
                "prompts.template is %s, but no row has messages: texts are taken as they are",
                rlhf__chat_names()[template]);
        else if (rlhf__chat_known(chat))
            rlhf__logf(log, RLHF_LOG_INFO,
                       "no row has messages: texts are taken as they are, without the model's chat "
                       "template %s",
                       rlhf__chat_known(chat));
        return;
    }
    struct rlhf__buf what = RLHF__BUF_INIT;
    rlhf__chat_describe(chat, &what);
    rlhf__logf(log, RLHF_LOG_INFO, "chat template: %s, of %lld row%s with messages",
               rlhf__buf_text(&what), (long long)rows, rows == 1 ? "" : "s");
    rlhf__buf_free(&what);
    const char *end = rlhf__chat_turn_end(chat);
    if (end) note_end(m, end, draws, log);
}
