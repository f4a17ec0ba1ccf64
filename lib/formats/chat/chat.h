// chat.h: the chat template of a model directory. It turns messages into text in the form that the
// model was trained on.
//
// The program runs a template's Jinja text. The template is the directory's own
// (chat_template.jinja, otherwise chat_template of tokenizer_config.json), a named template that
// ships with the program (configs/chat), or a file of the user. As in transformers, the rendered
// text contains special tokens as text; the tokenizer finds them (RLHF__ENCODE_SPECIAL).
//
// It is not a general Jinja library or a tokenizer.
#ifndef RLHF_FORMATS_CHAT_CHAT_H
#define RLHF_FORMATS_CHAT_CHAT_H

#include "values/message.h"

struct rlhf__chat; // opaque

// The tokenizer's part of a template.
struct rlhf__chat_tokens {
    // The variables with special tokens, as a JSON object: {"bos_token": "<s>", ...}. Borrowed
    // during the call.
    const char *vars;
    // The same for tokens that transformers would not pass, since only an id names them; NULL =
    // none. They are for templates that are chosen by name. rlhf__chat_jinja sets them, so that
    // transformers writes them, too.
    const char *more;
    // Returns the length of the special token with which s begins, 0 = none. It is called with
    // `tokenizer`, also later. NULL: no tokenizer.
    size_t (*special)(const void *tokenizer, rlhf_str s);
    const void *tokenizer;
};

// What a user chose for the chat template. In each member, NULL means: nothing.
struct rlhf__chat_choice {
    const char *name; // for rlhf__chat_name
    const char *vars; // variables of the template: the text of a JSON object
    const char *date; // of strftime_now, as 2026-11-28
};

// Read the template of a directory. If the template is missing or unusable, rlhf__chat_render
// reports that. The caller owns *out; free it with rlhf__chat_close. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__chat_open(const char *dir, const struct rlhf__chat_tokens *tokens,
                            struct rlhf__chat **out, struct rlhf__error *err);
void rlhf__chat_close(struct rlhf__chat *); // NULL allowed

// Replace the directory's template by a named template, or by the user's file if `name` is a path.
// "auto" changes nothing. Errors: RLHF_E_INVALID for an unknown name (the message lists the known
// names), a missing file, or text that cannot be parsed. [one thread]
rlhf_status rlhf__chat_name(struct rlhf__chat *, const char *name, struct rlhf__error *err);

// Apply a choice: the template, then its variables and its date. They also count for templates that
// are named later. `flags` has the names of the settings or flags, for messages. Errors:
// RLHF_E_INVALID, also for a variable or a date that the template never reads. [one thread]
rlhf_status rlhf__chat_choose(struct rlhf__chat *, const struct rlhf__chat_choice *,
                              const struct rlhf__chat_choice *flags, struct rlhf__error *err);

// Check the texts of a choice, without a template. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__chat_check_choice(const struct rlhf__chat_choice *,
                                    const struct rlhf__chat_choice *flags, struct rlhf__error *err);

// The names that rlhf__chat_name accepts, NULL-terminated, "auto" first. [any]
const char *const *rlhf__chat_names(void);

// Returns 1 if rlhf__chat_name treats the name as a file, because it contains a '/' or ends with
// ".jinja". [any]
int rlhf__chat_is_file(const char *name);

// Check that the name is a known name or looks like a file. Opens no file. Errors: RLHF_E_INVALID.
// [any]
rlhf_status rlhf__chat_check_name(const char *name, struct rlhf__error *err);

// Append a conversation's text to *out. If `generate` is 1, also append the header of the
// assistant's next turn. Errors: RLHF_E_NOMEM, and RLHF_E_INVALID if
//   the template is missing (the message says how to choose one)
//   the template refuses the conversation or cannot render it
//   the rendered text would lack thoughts, tools, tool calls, tool results or what a developer says
//   it would have a list of parts as the code of a list
//   the row has a variable that the template never reads
// [any]
rlhf_status rlhf__chat_render(const struct rlhf__chat *, const struct rlhf__messages *,
                              int generate, struct rlhf__buf *out, struct rlhf__error *err);

// Like rlhf__chat_render, but also finds the assistant's turns in messages [first, n). Errors: also
// RLHF_E_INVALID if the position of a turn cannot be determined. [any]
rlhf_status rlhf__chat_turns(const struct rlhf__chat *, const struct rlhf__messages *, size_t first,
                             int generate, struct rlhf__turns *out, struct rlhf__error *err);

// The template's name or file; NULL without a usable template. [any]
const char *rlhf__chat_known(const struct rlhf__chat *);

// Returns a clause that explains why the directory's template cannot be used. Returns NULL if the
// template can be used, or if the directory lacks one. [any]
const char *rlhf__chat_unknown(const struct rlhf__chat *);

// Append a description for the log: "zephyr (named)", or the template's file and the text that the
// template puts before the first question. Without a usable template, appends nothing. [any]
void rlhf__chat_describe(const struct rlhf__chat *, struct rlhf__buf *out);

// The Jinja text that a directory needs so that it renders as here: that of a named template, and
// variables that were chosen, as defaults. NULL if the directory's own is enough. [any]
const char *rlhf__chat_jinja(const struct rlhf__chat *);

// 1 if the template writes the tools that a row lists. [any]
int rlhf__chat_lists_tools(const struct rlhf__chat *);

// 1 if the template reads the date, by strftime_now. [any]
int rlhf__chat_reads_date(const struct rlhf__chat *);

// Returns the form of the tool calls that the template writes (enum rlhf__tool_form). Returns
// RLHF__TOOL_FORM_NONE if it writes no calls, or writes them in a form that we cannot read. [any]
int32_t rlhf__chat_tool_form(const struct rlhf__chat *);

// The text of the special token that ends an assistant's turn; NULL if it is unknown. [any]
const char *rlhf__chat_turn_end(const struct rlhf__chat *);

#endif
