// words.c: see words.h.
#include "process/words.h"

#include <rlhf/log.h>

struct reader {
    const char *at;
    char *to;   // where to write the next character of a word
    char quote; // the open quote, 0: none
};

static int is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int acts(char c) { return c && strchr("|&;<>()$`", c) != NULL; }

// Reads the next character of the command, or a backslash with the character after it. If a
// character is not allowed, returns this character, otherwise 0.
static char step(struct reader *r) {
    const char c = *r->at++;
    if (r->quote == '\'') {
        if (c == '\'')
            r->quote = 0;
        else
            *r->to++ = c;
    } else if (c == '\\') {
        const char next = *r->at;
        if (!next) return '\\';
        r->at++;
        if (r->quote && !strchr("\"\\$`\n", next)) *r->to++ = '\\';
        if (next != '\n') *r->to++ = next; // a backslash at the end of a line joins the two lines
    } else if (r->quote) {
        if (c == '"')
            r->quote = 0;
        else if (c == '$' || c == '`')
            return c;
        else
            *r->to++ = c;
    } else if (c == '\'' || c == '"') {
        r->quote = c;
    } else if (acts(c)) {
        return c;
    } else {
        *r->to++ = c;
    }
    return 0;
}

static rlhf_status refuse(const rlhf_host *host, const char *command, char bad) {
    if (bad == '\\')
        return rlhf_failf(host, RLHF_E_INVALID, "the command ends in a backslash: %s", command);
    return rlhf_failf(host, RLHF_E_INVALID,
                      "the command has an unquoted %c, but it is not run by a shell: %s (put the "
                      "character in single quotes, or run sh -c '...')",
                      bad, command);
}

rlhf_status rlhf__words_split(const rlhf_host *host, const char *command, char ***out) {
    // Allocate for the largest possible numbers of words and characters. A word takes at least one
    // character, and a space separates it from the next. Unquoting never makes a word longer.
    const size_t len = strlen(command), most = len / 2 + 2;
    char **words = host->alloc(host, most * sizeof *words + len + 1);
    size_t n = 0;
    *out = NULL;
    if (!words) return (host->fail)(host, RLHF_E_NOMEM, "out of memory");
    struct reader r = {.at = command, .to = (char *)(words + most)};
    char bad = 0;
    while (!bad) {
        while (is_blank(*r.at) || (r.at[0] == '\\' && r.at[1] == '\n'))
            r.at++;
        if (!*r.at) break;
        words[n++] = r.to;
        while (!bad && *r.at && (r.quote || !is_blank(*r.at)))
            bad = step(&r);
        *r.to++ = 0;
    }
    rlhf_status st = RLHF_OK;
    if (bad)
        st = refuse(host, command, bad);
    else if (r.quote)
        st = rlhf_failf(host, RLHF_E_INVALID, "the command has a %c that is not closed: %s",
                        r.quote, command);
    else if (!n || !*words[0])
        st = (host->fail)(host, RLHF_E_INVALID, "the command is empty: it has to name a program");
    if (st < 0)
        host->free(host, words);
    else
        *out = words;
    return st;
}
