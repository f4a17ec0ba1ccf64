// pattern.h: a regular expression in tokenizer.json, and its matches in texts.
//
// Patterns are written for Oniguruma, the engine of the tokenizers library. The patterns that
// nearly all byte-level models use are matched by hand (word_rule.h). Other patterns are translated
// for PCRE2.
//
// This file does not decide what is done with the matches; its callers do. Internal to text/.
#ifndef RLHF_FORMATS_TEXT_PATTERN_H
#define RLHF_FORMATS_TEXT_PATTERN_H

#include "base/buf.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct rlhf__pattern; // opaque

// Read a pattern {"Regex": text} or {"String": text}. Errors: RLHF_E_INVALID, RLHF_E_NOMEM, and
// RLHF_E_UNSUPPORTED if the pattern cannot be translated or does not compile; the message has the
// pattern. [main]
rlhf_status rlhf__pattern_read(const json_t *pattern, struct rlhf__pattern **out,
                               struct rlhf__error *err);

// Make a pattern from the text of a regular expression. If by_hand is 0, the pattern uses PCRE2
// even if it could be matched by hand. Errors: those of rlhf__pattern_read. [main]
rlhf_status rlhf__pattern_open(const char *text, size_t n, int by_hand, struct rlhf__pattern **out,
                               struct rlhf__error *err);

void rlhf__pattern_close(struct rlhf__pattern *pattern); // NULL allowed

// A search. Zero-initialize; release with rlhf__search_finish. [begin, end) is the last match.
struct rlhf__search {
    size_t begin, end;
    size_t from;            // where the next search begins
    int32_t seen;           // 1: a match was found before
    void *room, *limits;    // memory of PCRE2
    uint64_t spent, earned; // what the searches of a text have cost, and what its bytes allow
};

// Begin the searches of another text, none of whose budget is used. [any, one thread per search]
void rlhf__search_new_text(struct rlhf__search *match);

// Begin a search in n other bytes of the text. [any, one thread per search]
void rlhf__search_reset(struct rlhf__search *match, size_t n);
void rlhf__search_finish(struct rlhf__search *match);

// Find the next match in s[0..n), which must be valid UTF-8. As in Oniguruma's find_iter, an empty
// match directly after another match is skipped. Returns 1 for a match and 0 for none. Errors:
// RLHF_E_NOMEM, and RLHF_E_UNSUPPORTED if a search, or all searches of the text together, take too
// long for a text of this length; the message has the pattern's text. [any, one thread per search]
rlhf_status rlhf__pattern_next(const struct rlhf__pattern *pattern, const char *s, size_t n,
                               struct rlhf__search *match, struct rlhf__error *err);

// The rule that matches the pattern by hand (word_rule.h), or 0 if PCRE2 matches it. [any]
int32_t rlhf__pattern_rule(const struct rlhf__pattern *pattern);

// Append the PCRE2 form of an Oniguruma pattern to `out`. Returns NULL, or a description of the
// part that cannot be translated. [main]
const char *rlhf__pattern_translate(const char *text, size_t n, struct rlhf__buf *out);

#endif
