// text_note.c: see text_note.h.
#include "model/text_note.h"

#include "config/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- tokens around texts ----

static void put_token(const struct rlhf__tokenizer *tok, int32_t id, struct rlhf__buf *out) {
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    char *text = rlhf__tokenizer_text(tok, &id, 1, 0, NULL);
    const char *role = id == info->bos ? "BOS " : id == info->eos ? "EOS " : "";
    rlhf__buf_printf(out, "%s%s\"%s\"", out->len ? " " : "", role, text ? text : "");
    free(text);
}

// Append the special tokens that come before a text, from left to right. If `behind` is 1, append
// those that come after it instead.
static void put_side(const struct rlhf__tokenizer *tok, int behind, uint32_t flags,
                     struct rlhf__buf *out) {
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(tok);
    const int32_t *ids;
    const size_t n = flags & RLHF__ENCODE_TEMPLATE ? rlhf__tokenizer_around(tok, behind, &ids) : 0;
    if (!behind && flags & RLHF__ENCODE_BOS && info->bos >= 0) put_token(tok, info->bos, out);
    for (size_t i = 0; i < n; i++)
        put_token(tok, ids[i], out);
    if (behind && flags & RLHF__ENCODE_EOS) {
        char *text = rlhf__tokenizer_text(tok, &info->eos, 1, 0, NULL);
        rlhf__buf_printf(out, "%sEOS \"%s\"", out->len ? " " : "", text ? text : "");
        free(text);
    }
}

void rlhf__model_text_note(const struct rlhf__model *m, const char *what, int64_t texts,
                           uint32_t flags, int32_t ends, struct rlhf__log *log) {
    struct rlhf__buf before = RLHF__BUF_INIT, after = RLHF__BUF_INIT;
    if (texts == 0) return;
    put_side(m->tok, 0, flags, &before);
    put_side(m->tok, 1, flags, &after);
    rlhf__logf(log, RLHF_LOG_INFO, "%s: %s before%s%s%s", what,
               before.len ? rlhf__buf_text(&before) : "no BOS", ends ? ", " : "",
               !ends       ? ""
               : after.len ? rlhf__buf_text(&after)
                           : "no EOS",
               ends ? " after" : "");
    rlhf__buf_finish(&before);
    rlhf__buf_finish(&after);
}

// ---- chat templates ----

rlhf_status rlhf__model_choose_chat(const struct rlhf__model *m,
                                    const struct rlhf__prompts_config *c, struct rlhf__error *err) {
    struct rlhf__chat_choice names;
    const struct rlhf__chat_choice choice = rlhf__config_chat(c, &names);
    return rlhf__tokenizer_choose_chat(m->tok, &choice, &names, err);
}

void rlhf__model_prepend_bos(const struct rlhf__model *m, int32_t choice) {
    if (choice != RLHF__BOS_AUTO) rlhf__tokenizer_set_bos(m->tok, choice == RLHF__BOS_ALWAYS);
}

// Returns 1 if sampling.stop, a JSON list, contains the token as a string or as an id.
static int is_stop(const char *stop, const char *text, int32_t id) {
    json_t *list = json_loads(stop, 0, NULL), *v;
    size_t i;
    int found = 0;
    json_array_foreach(list, i, v) {
        const char *s = json_string_value(v);
        found |= s ? strcmp(s, text) == 0 : json_is_integer(v) && json_integer_value(v) == id;
    }
    json_decref(list);
    return found;
}

// Returns the id of the end-of-turn token. Returns -1 if that token ends responses, if the
// tokenizer lacks it, or if the model cannot generate text.
static int32_t ignored_end(const struct rlhf__model *m, const char *end, const char *stop) {
    const int32_t id = rlhf__tokenizer_find(m->tok, (rlhf_str){end, strlen(end)});
    if (id < 0 || !rlhf__tokenizer_is_special(m->tok, id)) return -1;
    if (!(m->info.caps & RLHF_CAP_GENERATE) || rlhf__ends_has(&m->ends, id)) return -1;
    return stop && is_stop(stop, end, id) ? -1 : id;
}

int32_t rlhf__model_ignored_turn_end(const struct rlhf__model *m, const char *stop,
                                     const char **text) {
    *text = rlhf__chat_turn_end(rlhf__tokenizer_chat(m->tok));
    return *text ? ignored_end(m, *text, stop) : -1;
}

void rlhf__model_turn_end_note(const struct rlhf__model *m, const char *stop,
                               enum rlhf__turn_end_remedy how, struct rlhf__log *log) {
    static const char *const remedy[][2] = {
        [RLHF__REMEDY_SETTING] = {"responses go on after it; sampling.stop=[", "]"},
        [RLHF__REMEDY_FLAG] = {"responses go on after it; --stop-id ", ""},
        [RLHF__REMEDY_FILE] = {"responses of the trained model will go on after it; id ",
                               " among the eos_token_id of generation_config.json"}};
    const char *end = rlhf__chat_turn_end(rlhf__tokenizer_chat(m->tok));
    if (!end) return;
    const int32_t id = rlhf__tokenizer_find(m->tok, (rlhf_str){end, strlen(end)});
    if (id < 0 || !rlhf__tokenizer_is_special(m->tok, id)) {
        rlhf__logf(log, RLHF_LOG_WARN,
                   "the tokenizer of '%s' has no special token '%s', which ends the turns of its "
                   "chat template: it is spelled out in ordinary tokens",
                   m->dir, end);
        return;
    }
    if (ignored_end(m, end, stop) < 0) return;
    rlhf__logf(log, RLHF_LOG_WARN,
               "'%s' ends turns of the chat template, but is not one of the tokens that end a "
               "response of '%s' (eos_token_id of generation_config.json and config.json): %s%d%s "
               "ends them there",
               end, m->dir, remedy[how][0], (int)id, remedy[how][1]);
}

void rlhf__model_chat_note(const struct rlhf__model *m, int64_t rows,
                           const struct rlhf__prompts_config *c, const char *stop,
                           struct rlhf__log *log) {
    const struct rlhf__chat *chat = rlhf__tokenizer_chat(m->tok);
    const int named = c && strcmp(c->template, "auto") != 0,
              vars = c && strcmp(c->template_vars, "{}") != 0;
    if (rows == 0) {
        if (named || vars || (c && *c->date))
            rlhf__logf(log, RLHF_LOG_WARN,
                       "prompts.%s is %s, but no row has messages: texts are taken as they are",
                       named  ? "template"
                       : vars ? "template_vars"
                              : "date",
                       named  ? c->template
                       : vars ? c->template_vars
                              : c->date);
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
    rlhf__buf_finish(&what);
    rlhf__model_turn_end_note(m, stop, stop ? RLHF__REMEDY_SETTING : RLHF__REMEDY_FILE, log);
}
