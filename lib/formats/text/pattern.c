// pattern.c: see pattern.h.
#include "text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/json.h"
#include "text/word_rule.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

// The largest window of a text in which the compiled pattern is searched; see "finding" below.
enum { JIT_WINDOW = 256 };

// ---- patterns ----

// A pattern is one of three: a rule, PCRE2 code, or a literal text.
struct rlhf__pattern {
    int32_t rule; // enum rlhf__word_rule
    pcre2_code *code;
    pcre2_code *counted; // for the interpreter; each byte that it goes back is a step, and it calls
                         // count_scan between the parts of the pattern
    size_t unseen;       // bytes that a part may compare before it fails
    char *text;          // [n] the literal text, or the text that was compiled
    size_t n;
};

static rlhf_status refuse(const char *text, size_t n, const char *why, struct rlhf__error *err) {
    struct rlhf__buf quoted = RLHF__BUF_INIT;
    rlhf__json_write_string(&quoted, text, n);
    rlhf_status st = rlhf__buf_ok(&quoted, err);
    if (st == RLHF_OK)
        st = rlhf__fail(err, RLHF_E_UNSUPPORTED, "the pattern %s is not supported: %s",
                        rlhf__buf_text(&quoted), why);
    rlhf__buf_finish(&quoted);
    return st;
}

// Returns the number of bytes that a part of the pattern may compare before it fails: those of the
// largest lower bound of a repeat. 0: few. Back references are refused (pattern_translate.c).
static size_t unseen_of(const char *s, size_t n) {
    size_t most = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\') {
            i++;
            if (i + 1 < n && s[i + 1] == '{') i += strcspn(s + i, "}");
        } else if (s[i] == '{') {
            const size_t bytes = 4 * (size_t)strtoul(s + i + 1, NULL, 10); // of that many letters
            if (bytes > JIT_WINDOW && bytes > most) most = bytes;
        }
    }
    return most;
}

// Compiles the PCRE2 form of the pattern. Only \n ends a line for ^ and $.
static rlhf_status compile(struct rlhf__pattern *pattern, const char *text, size_t n,
                           struct rlhf__error *err) {
    struct rlhf__buf form = RLHF__BUF_INIT;
    const char *untold = rlhf__pattern_translate(text, n, &form);
    rlhf_status st = rlhf__buf_ok(&form, err);
    int code = 0;
    size_t at = 0;
    char why[256];
    if (st == RLHF_OK && untold) {
        snprintf(why, sizeof why, "it has %s", untold);
        st = refuse(text, n, why, err);
    }
    if (st == RLHF_OK) {
        pcre2_compile_context *how = pcre2_compile_context_create(NULL);
        if (how) pcre2_set_newline(how, PCRE2_NEWLINE_LF);
        const uint32_t opts = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
                       counted = opts | PCRE2_NO_AUTO_POSSESS | PCRE2_AUTO_CALLOUT;
        pattern->unseen = unseen_of(rlhf__buf_text(&form), form.len);
        PCRE2_SPTR s = (PCRE2_SPTR)rlhf__buf_text(&form);
        pattern->code = pcre2_compile(s, form.len, opts, &code, &at, how);
        if (pattern->code) pattern->counted = pcre2_compile(s, form.len, counted, &code, &at, how);
        if (how) pcre2_compile_context_free(how);
        if (!how || (!pattern->counted && code == PCRE2_ERROR_HEAP_FAILED)) {
            st = RLHF__NOMEM(err, "out of memory for a pattern");
        } else if (!pattern->counted) {
            char message[128] = "";
            pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
            snprintf(why, sizeof why, "PCRE2 says '%s'", message);
            st = refuse(text, n, why, err);
        }
    }
    rlhf__buf_finish(&form);
    if (st == RLHF_OK) // without compiled code, the pattern is interpreted
        pcre2_jit_compile(pattern->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    return st;
}

static rlhf_status keep_text(struct rlhf__pattern *pattern, const char *text, size_t n,
                             struct rlhf__error *err) {
    pattern->text = malloc(n + 1);
    if (!pattern->text) return RLHF__NOMEM(err, "out of memory for a pattern");
    memcpy(pattern->text, text, n);
    pattern->n = n;
    return RLHF_OK;
}

rlhf_status rlhf__pattern_open(const char *text, size_t n, int by_hand, struct rlhf__pattern **out,
                               struct rlhf__error *err) {
    struct rlhf__pattern *pattern = *out = calloc(1, sizeof *pattern);
    if (!pattern) return RLHF__NOMEM(err, "out of memory for a pattern");
    pattern->rule = by_hand ? rlhf__word_rule_of(text, n) : 0;
    rlhf_status st = keep_text(pattern, text, n, err);
    if (st == RLHF_OK && !pattern->rule) st = compile(pattern, text, n, err);
    if (st < 0) {
        rlhf__pattern_close(pattern);
        *out = NULL;
    }
    return st;
}

static rlhf_status create_literal(const char *text, size_t n, struct rlhf__pattern **out,
                                  struct rlhf__error *err) {
    struct rlhf__pattern *pattern = *out = calloc(1, sizeof *pattern);
    if (!pattern) return RLHF__NOMEM(err, "out of memory for a pattern");
    rlhf_status st = keep_text(pattern, text, n, err);
    if (st < 0) {
        rlhf__pattern_close(pattern);
        *out = NULL;
    }
    return st;
}

rlhf_status rlhf__pattern_read(const json_t *pattern, struct rlhf__pattern **out,
                               struct rlhf__error *err) {
    const json_t *regex = json_object_get(pattern, "Regex");
    const json_t *text = json_object_get(pattern, "String");
    *out = NULL;
    if (json_is_string(regex))
        return rlhf__pattern_open(json_string_value(regex), json_string_length(regex), 1, out, err);
    if (json_is_string(text) && json_string_length(text))
        return create_literal(json_string_value(text), json_string_length(text), out, err);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "pattern: expected {\"Regex\": text} or {\"String\": text}, found %s",
                      json_is_string(text) ? "an empty text" : rlhf__json_kind(pattern));
}

void rlhf__pattern_close(struct rlhf__pattern *pattern) {
    if (!pattern) return;
    pcre2_code_free(pattern->code);
    pcre2_code_free(pattern->counted);
    free(pattern->text);
    free(pattern);
}

int32_t rlhf__pattern_rule(const struct rlhf__pattern *pattern) { return pattern->rule; }

// ---- finding ----

// What all searches of a text may cost: FREE, and COST_A_BYTE for each byte that is searched. A
// search costs the bytes that it may have looked at, or its limit on steps if that limit is raised.
// In a large window, it also costs the bytes that it passes, since possessive and atomic parts of a
// pattern pass any number of bytes in one step, and may do so again and again.
enum { FREE = 1 << 20, COST_A_BYTE = 128 };

void rlhf__search_reset(struct rlhf__search *match, size_t n) {
    match->begin = match->end = match->from = 0;
    match->seen = 0;
    match->earned += (uint64_t)n * COST_A_BYTE;
}

void rlhf__search_new_text(struct rlhf__search *match) { match->spent = match->earned = 0; }

void rlhf__search_finish(struct rlhf__search *match) {
    pcre2_match_data_free(match->room);
    pcre2_match_context_free(match->limits);
    *match = (struct rlhf__search){0};
}

static int next_literal(const struct rlhf__pattern *pattern, const char *s, size_t n,
                        struct rlhf__search *match) {
    const char *at = memmem(s + match->from, n - match->from, pattern->text, pattern->n);
    if (!at) return 0;
    match->begin = (size_t)(at - s);
    match->end = match->from = match->begin + pattern->n;
    return 1;
}

static rlhf_status gave_up(const struct rlhf__pattern *pattern, int code, struct rlhf__error *err) {
    char message[128] = "", why[160];
    pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
    snprintf(why, sizeof why, "PCRE2 gave up on a text: %s", message);
    return refuse(pattern->text, pattern->n, why, err);
}

// Limits on the memory of a search, and on its steps from one position. Both grow with the length
// of the text. Only a search that tries the same bytes again and again needs far more than these
// limits.
enum { STEPS = 100000, STEPS_A_BYTE = 32, ROOM_KIB = 64 << 10, ROOM_A_BYTE = 256 };

// A search looks at a window of the text, and at a larger window if the match may go on behind the
// window's end. In windows up to JIT_WINDOW the compiled pattern is searched from each position.
// One of its steps can look at all bytes of the window, so in larger windows each position is tried
// on its own by the interpreter, whose steps are all counted.
enum { FIRST_WINDOW = 64, WINDOW_GROWS = 4 };
enum { FIRST_STEPS = 64, FIRST_STEPS_A_BYTE = 16, STEPS_GROW = 8 };

static uint32_t within_32_bits(uint64_t v) { return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX; }

struct attempt {
    size_t from, window; // the bytes [from, from + window) are searched
    uint64_t steps;      // the limit on steps; 0: the limit of the window
    int one;             // 1: only a match that begins at `from` counts
};

static int is_spent(const struct rlhf__search *match) {
    return match->spent > match->earned + FREE;
}

static rlhf_status charge(const struct rlhf__pattern *pattern, uint64_t cost,
                          struct rlhf__search *match, struct rlhf__error *err) {
    match->spent += cost;
    if (!is_spent(match)) return RLHF_OK;
    return refuse(pattern->text, pattern->n, "it searches the same bytes of a text too often", err);
}

// Where the interpreter was at the last call of count_scan.
struct scan {
    struct rlhf__search *match;
    size_t at, unseen;
};

// PCRE2 calls this function before each part of a pattern, and at its end.
static int count_scan(pcre2_callout_block *now, void *data) {
    struct scan *c = data;
    const size_t left = now->subject_length - now->current_position;
    if (now->current_position > c->at) c->match->spent += now->current_position - c->at;
    c->match->spent += left < c->unseen ? left : c->unseen;
    c->at = now->current_position;
    return is_spent(c->match) ? PCRE2_ERROR_CALLOUT : 0;
}

// Returns PCRE2's code for one attempt in s[0..end).
static int try_window(const struct rlhf__pattern *pattern, const char *s, size_t n, size_t end,
                      const struct attempt *a, uint64_t steps, struct rlhf__search *match) {
    const uint64_t kib = ROOM_KIB + (uint64_t)n * ROOM_A_BYTE / 1024;
    const uint32_t how = PCRE2_NO_UTF_CHECK | (end < n ? PCRE2_PARTIAL_HARD : 0) |
                         (a->one ? PCRE2_ANCHORED | PCRE2_NO_JIT : 0);
    pcre2_set_match_limit(match->limits, within_32_bits(steps));
    pcre2_set_heap_limit(match->limits, within_32_bits(kib));
    struct scan scan = {match, a->from, pattern->unseen};
    pcre2_set_callout(match->limits, count_scan, &scan);
    const int code = pcre2_match(a->one ? pattern->counted : pattern->code, (PCRE2_SPTR)s, end,
                                 a->from, how, match->room, match->limits);
    pcre2_set_callout(match->limits, NULL, NULL);
    return code;
}

static size_t next_char(const char *s, size_t n, size_t at) {
    do
        at++;
    while (at < n && ((uint8_t)s[at] & 0xC0) == 0x80);
    return at;
}

// Sets *a to the attempt after one that ended with `code`. The window ended at `end`. Returns 0 if
// no match exists, 1 if *a is to be tried, or `code` if the search must end with it.
static int next_attempt(int code, const char *s, size_t n, size_t end, uint64_t steps,
                        const struct rlhf__search *match, struct attempt *a) {
    const uint64_t most = STEPS + (uint64_t)n * STEPS_A_BYTE;
    if (code == PCRE2_ERROR_PARTIAL) {
        const size_t begin = pcre2_get_startchar(match->room);
        // No match begins before the partial one.
        a->window = begin > a->from ? FIRST_WINDOW : a->window * WINDOW_GROWS;
        a->from = begin;
        a->one = a->window > JIT_WINDOW;
        a->steps = 0;
        return 1;
    }
    if (code == PCRE2_ERROR_NOMATCH) {
        if (!a->one && end == n) return 0;
        a->from = a->one ? next_char(s, n, a->from) : end;
        if (a->from > n) return 0;
        *a = (struct attempt){.from = a->from, .window = FIRST_WINDOW};
        return 1;
    }
    if (!a->one && (code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_JIT_STACKLIMIT)) {
        a->one = 1;
        return 1;
    }
    if (code != PCRE2_ERROR_MATCHLIMIT || steps >= most) return code;
    a->steps = steps < most / STEPS_GROW ? steps * STEPS_GROW : most;
    return 1;
}

// Finds the first match at or after match->from, as a search of the whole text would.
static rlhf_status search(const struct rlhf__pattern *pattern, const char *s, size_t n,
                          struct rlhf__search *match, struct rlhf__error *err) {
    struct attempt a = {.from = match->from, .window = FIRST_WINDOW};
    int code;
    if (!match->room) match->room = pcre2_match_data_create(1, NULL);
    if (!match->limits) match->limits = pcre2_match_context_create(NULL);
    if (!match->room || !match->limits) return RLHF__NOMEM(err, "out of memory for a pattern");
    do {
        size_t end = a.window < n - a.from ? a.from + a.window : n;
        while (end < n && ((uint8_t)s[end] & 0xC0) == 0x80)
            end++;
        const size_t looked = end - a.from + 1;
        const uint64_t steps = a.steps ? a.steps : FIRST_STEPS + looked * FIRST_STEPS_A_BYTE;
        RLHF_TRY(charge(pattern, a.steps ? a.steps : looked, match, err));
        code = try_window(pattern, s, n, end, &a, steps, match);
        const size_t *range = pcre2_get_ovector_pointer(match->room);
        if (code > 0 && (end == n || range[0] < end)) {
            match->begin = range[0];
            match->end = match->from = range[1];
            return 1;
        }
        if (code > 0) code = PCRE2_ERROR_NOMATCH; // an empty match at the end of the window
        code = next_attempt(code, s, n, end, steps, match, &a);
    } while (code == 1);
    if (code == PCRE2_ERROR_CALLOUT) return charge(pattern, 0, match, err);
    if (code == PCRE2_ERROR_NOMEMORY) return RLHF__NOMEM(err, "out of memory for a pattern");
    return code < 0 ? gave_up(pattern, code, err) : 0;
}

rlhf_status rlhf__pattern_next(const struct rlhf__pattern *pattern, const char *s, size_t n,
                               struct rlhf__search *match, struct rlhf__error *err) {
    if (pattern->rule) {
        if (match->from == n) return 0;
        match->begin = match->from;
        match->end = match->from = rlhf__word_end(pattern->rule, s, n, match->from);
        return 1;
    }
    if (!pattern->code) return next_literal(pattern, s, n, match);
    for (;;) {
        if (match->from > n) return 0;
        size_t last = match->seen ? match->end : SIZE_MAX;
        rlhf_status st = search(pattern, s, n, match, err);
        if (st != 1) return st;
        if (match->begin < match->end || match->end != last) {
            match->seen = 1;
            return 1;
        }
        match->from = next_char(s, n, match->from); // skip an empty match directly after another
    }
}
