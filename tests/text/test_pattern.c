// test_pattern.c: the hand-written matchers of known tokenizers find the same words as PCRE2. A
// pattern that cannot be translated is refused, and the message quotes it. Characters have the
// classes that they have in the tokenizers library.
#include "support/scratch.h"

#include "text/pattern.h"
#include "text/unicode.h"
#include "text/word_rule.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <rlhf/rng.h>

#define LLAMA3(digits)                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" digits                     \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
static const char *const known[] = {RLHF__PATTERN_GPT2, LLAMA3("{1,3}"), LLAMA3("")};

// Characters that the alternatives distinguish, and some that only one of them matches.
static const char *const bits[] = {
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\xC2\xA0",
    "\xE2\x80\xA8",
    "\xC2\x85",
    "\xE3\x80\x80",
    "'",
    "'s",
    "'S",
    "'\xC5\xBF",
    "'ll",
    "'Ll",
    "'re",
    "'v",
    "'t",
    "a",
    "the",
    "Z",
    "\xC3\xA9",
    "\xE4\xB8\xAD",
    "\xF0\x9F\x98\x80",
    "e\xCC\x81",
    "\xCC\x81",
    "1",
    "12",
    "2024",
    "\xC2\xBD",
    "\xD9\xA3",
    "\xE2\x85\xA7",
    "!",
    "...",
    "_",
    "-",
    "$",
    "\xE2\x80\x94",
    "\xF0\xB1\x8D\x90",
    "\xF0\x96\x84\xB0",
    "\x01",
    "\xE2\x80\x8B",
};

static size_t odd_text(rlhf_rng *rng, char *s, size_t cap) {
    size_t n = 0, parts = 1 + (size_t)rlhf_rng_below(rng, 14);
    for (size_t i = 0; i < parts && n + 8 < cap; i++) {
        if (rlhf_rng_below(rng, 8)) {
            const char *bit = bits[rlhf_rng_below(rng, CHECK_COUNT(bits))];
            memcpy(s + n, bit, strlen(bit));
            n += strlen(bit);
            continue;
        }
        uint32_t cp = (uint32_t)rlhf_rng_below(rng, rlhf_rng_below(rng, 2) ? 0x3400 : 0x110000);
        if (cp < 0xD800 || cp >= 0xE000) n += rlhf__utf8_put(cp, s + n);
    }
    return n;
}

static void check_words(const struct rlhf__pattern *hand, const struct rlhf__pattern *pcre,
                        const char *s, size_t n) {
    struct rlhf__search a = {0}, b = {0};
    struct rlhf__error err = {0};
    for (;;) {
        rlhf_status x = rlhf__pattern_next(hand, s, n, &a, &err);
        rlhf_status y = rlhf__pattern_next(pcre, s, n, &b, &err);
        check_ok(x < 0 ? x : y < 0 ? y : RLHF_OK, &err);
        if (x != y || (x && (a.begin != b.begin || a.end != b.end)))
            fail_msg("'%.*s': by hand %zu to %zu, by PCRE2 %zu to %zu", (int)n, s, a.begin, a.end,
                     b.begin, b.end);
        if (!x) break;
    }
    assert_true(a.end == n); // every character is in a word
    rlhf__search_finish(&a);
    rlhf__search_finish(&b);
}

static void words_by_hand_are_those_of_pcre2(void **state) {
    (void)state;
    for (size_t k = 0; k < CHECK_COUNT(known); k++) {
        struct rlhf__pattern *hand = NULL, *pcre = NULL;
        struct rlhf__error err = {0};
        rlhf_rng rng = {.seed = 3 + k};
        char s[256];
        check_ok(rlhf__pattern_open(known[k], strlen(known[k]), 1, &hand, &err), &err);
        check_ok(rlhf__pattern_open(known[k], strlen(known[k]), 0, &pcre, &err), &err);
        assert_int_equal(rlhf__pattern_rule(hand), (int)k + 1);
        assert_int_equal(rlhf__pattern_rule(pcre), 0);
        for (int i = 0; i < 20000; i++)
            check_words(hand, pcre, s, odd_text(&rng, s, sizeof s));
        for (uint32_t cp = 0; cp < 0x110000; cp += cp < 0x3400 ? 1 : 7) { // each next to a letter
            if (cp >= 0xD800 && cp < 0xE000) continue;
            size_t n = rlhf__utf8_put(cp, s);
            s[n++] = 'a';
            n += rlhf__utf8_put(cp, s + n);
            s[n++] = '\n';
            check_words(hand, pcre, s, n);
        }
        rlhf__pattern_close(hand);
        rlhf__pattern_close(pcre);
    }
}

static void refused_with_their_text(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"[a[bc]]", "a class inside [...]"},
        {"[a-z&&[^b]]", "&& inside [...]"},
        {"(?<x>a)", "a kind of group"},
        {"(?m:a)", "a kind of group"},
        {"a(?i)b", "a kind of group"},
        {"(*FAIL)", "it has (*"},
        {"(a)\\1", "an escape"},
        {"\\K", "an escape"},
        {"[\\W]", "a negated set inside"},
        {"\\p{Greek}", "a property other than"},
        {"a{1,2}+", "followed by + or *"},
        {"a{2}?", "{n}?"},
        {"[ab", "a [ without its ]"},
        {"a)", "a ) without its ("},
        {"[]a]", "[] or []...]"},
        {"\\xE9", "\\x above 7F"},
        {"\\", "a \\ at the end"},
        {"*a", "PCRE2 says 'quantifier does not follow"},
    };
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__pattern *pattern = NULL;
        struct rlhf__error err = {0};
        check_error(rlhf__pattern_open(cases[i][0], strlen(cases[i][0]), 1, &pattern, &err),
                    RLHF_E_UNSUPPORTED, &err, cases[i][1]);
        assert_non_null(strstr(err.text, "the pattern \""));
        assert_null(pattern);
    }
}

static int is_letter(uint32_t cp) {
    utf8proc_category_t c = rlhf__unicode_category(cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

static int is_changed(uint32_t cp) {
    uint32_t out[2];
    return rlhf__unicode_lower(cp, out) != 1 || out[0] != cp;
}

// For each property, tests how many code points have it, as counted with the tokenizers library
// (0.23).
static void characters_are_the_librarys(void **state) {
    (void)state;
    static const struct {
        const char *what;
        int (*is)(uint32_t);
        int n;
    } sets[] = {
        {"\\p{L}", is_letter, 141028},
        {"Digits", rlhf__unicode_is_number, 1924},
        {"WhitespaceSplit", rlhf__unicode_is_space, 25},
        {"Punctuation", rlhf__unicode_is_punct, 726},
        {"Lowercase", is_changed, 1488},
        {"StripAccents", rlhf__unicode_is_mark, 2097},
        {"BertNormalizer's accents", rlhf__unicode_is_accent, 1567},
    };
    for (size_t i = 0; i < CHECK_COUNT(sets); i++) {
        int n = 0;
        for (uint32_t cp = 0; cp < 0x110000; cp++)
            n += (cp < 0xD800 || cp >= 0xE000) && sets[i].is(cp);
        if (n != sets[i].n) fail_msg("%s: %d code points, expected %d", sets[i].what, n, sets[i].n);
    }
}

// Searches a text of n times c, followed by `end`. Returns the status of the first search.
static rlhf_status first_match(const char *pattern, char c, size_t n, char end,
                               struct rlhf__error *err) {
    struct rlhf__pattern *p = NULL;
    struct rlhf__search match = {0};
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, c, n);
    text[n] = end;
    check_ok(rlhf__pattern_open(pattern, strlen(pattern), 0, &p, err), err);
    rlhf__search_reset(&match, n + 1);
    const rlhf_status st = rlhf__pattern_next(p, text, n + 1, &match, err);
    rlhf__search_finish(&match);
    rlhf__pattern_close(p);
    free(text);
    return st;
}

// The limit on matching steps grows with the text. So matching a short text cannot take seconds,
// and a long text has enough steps.
static void steps_go_with_the_text(void **state) {
    struct rlhf__error err = {0};
    (void)state;
    assert_int_equal(first_match("^((a|aa)+)+$", 'a', 8, 'b', &err), 0);
    assert_int_equal(first_match("^((a|aa)+)+$", 'a', 13, 'b', &err), RLHF_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "PCRE2 gave up on a text: match limit exceeded"));
    assert_int_equal(first_match("^(?: |\\t)+[xz]", ' ', 200000, 'y', &err), 0);
}

// Compares the matches with those that PCRE2 finds in the whole text.
static void check_windows(const char *pattern, const char *s, size_t n) {
    struct rlhf__pattern *p = NULL;
    struct rlhf__search match = {0};
    struct rlhf__error err = {0};
    struct rlhf__buf form = RLHF__BUF_INIT;
    int code = 0;
    size_t at = 0, last = SIZE_MAX;
    check_ok(rlhf__pattern_open(pattern, strlen(pattern), 0, &p, &err), &err);
    assert_null(rlhf__pattern_translate(pattern, strlen(pattern), &form));
    pcre2_code *whole = pcre2_compile((PCRE2_SPTR)rlhf__buf_text(&form), form.len,
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &code, &at, NULL);
    pcre2_match_data *room = pcre2_match_data_create(1, NULL);
    assert_non_null(whole);
    assert_non_null(room);
    rlhf__search_reset(&match, n);
    for (at = 0; at <= n;) {
        const int found = pcre2_match(whole, (PCRE2_SPTR)s, n, at, 0, room, NULL) > 0;
        const size_t *range = pcre2_get_ovector_pointer(room);
        if (found && range[0] == range[1] && range[1] == last) {
            do
                at++;
            while (at < n && ((uint8_t)s[at] & 0xC0) == 0x80);
            continue;
        }
        const rlhf_status st = rlhf__pattern_next(p, s, n, &match, &err);
        check_ok(st < 0 ? st : RLHF_OK, &err);
        if (st != found || (found && (match.begin != range[0] || match.end != range[1])))
            fail_msg("'%s': %zu to %zu, in the whole text %zu to %zu", pattern, match.begin,
                     match.end, range[0], range[1]);
        if (!found) break;
        at = last = range[1];
    }
    pcre2_match_data_free(room);
    pcre2_code_free(whole);
    rlhf__buf_finish(&form);
    rlhf__search_finish(&match);
    rlhf__pattern_close(p);
}

// The matches are those of a search in the whole text at once, also where a window of the text ends
// within a match, or within what follows a match and decides about it.
static void windows_change_no_match(void **state) {
    static const char *const patterns[] = {"a+b|.",
                                           "\\s+(?!\\S)|\\s+|\\S+",
                                           "a+$|\n",
                                           "a*",
                                           "(?<=b)a+\\b|\\bb+",
                                           "a(?=a*b)+",
                                           "\\Z|b+\\Z",
                                           "a{3,90}(?=b)",
                                           "(?!a+\n)a+",
                                           "\xC3\xA9+a?|^b",
                                           "a{200,}b?",
                                           "(?:a|b){70}\\z",
                                           "\\A a|a+b+a+"};
    static const char *const parts[] = {"a", "b", " ", "\n", "\xC3\xA9"};
    (void)state;
    rlhf_rng rng = {.seed = 7};
    for (size_t round = 0; round < 60; round++) {
        struct rlhf__buf text = RLHF__BUF_INIT;
        while (text.len < 1500) {
            const char *part = parts[rlhf_rng_below(&rng, CHECK_COUNT(parts))];
            size_t times =
                rlhf_rng_below(&rng, 4) ? 1 + rlhf_rng_below(&rng, 4) : rlhf_rng_below(&rng, 300);
            while (times--)
                rlhf__buf_puts(&text, part);
        }
        for (size_t i = 0; i < CHECK_COUNT(patterns); i++)
            check_windows(patterns[i], rlhf__buf_text(&text), text.len);
        rlhf__buf_finish(&text);
    }
}

// All searches of a text share one budget of steps. Without it, the time would grow with the square
// of the text's length if each search reads far and finds only a short match.
static void searches_of_a_text_share_a_budget(void **state) {
    static const char often[] = "it searches the same bytes of a text too often";
    static const char limit[] = "PCRE2 gave up on a text: match limit exceeded";
    static const struct {
        const char *pattern;
        size_t n_line, n; // n lines of n_line letters
        const char *why;
    } cases[] = {
        {"a*a*b|.", 1500, 1, limit},           {"a*a*b|.", 60000, 1, limit},
        {"a*a*b|.", 400, 100, often},          {"a*b|.", 60000, 1, often},
        {"a*a*a*b|[a\n]", 250, 4000, often},   {"a*a*b|[a\n]", 1000, 1000, often},
        {"(?:a*+b|a)+c|.", 60000, 1, often},   {"(?:(?>a*)b|a)+c|[a\n]", 1000, 1000, often},
        {"(?:(?=a*+)a)+c|.", 60000, 1, often}, {"(?:a{50000}b|a)+c|.", 49999, 2, often}};
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__pattern *p = NULL;
        struct rlhf__search match = {0};
        struct rlhf__error err = {0};
        struct rlhf__buf text = RLHF__BUF_INIT;
        rlhf_status st;
        for (size_t k = 0; k < cases[i].n * (cases[i].n_line + 1); k++)
            rlhf__buf_puts(&text, (k + 1) % (cases[i].n_line + 1) ? "a" : "\n");
        check_ok(rlhf__pattern_open(cases[i].pattern, strlen(cases[i].pattern), 0, &p, &err), &err);
        rlhf__search_reset(&match, text.len);
        while ((st = rlhf__pattern_next(p, rlhf__buf_text(&text), text.len, &match, &err)) == 1)
            ;
        check_error(st, RLHF_E_UNSUPPORTED, &err, cases[i].why);
        rlhf__search_finish(&match);
        rlhf__pattern_close(p);
        rlhf__buf_finish(&text);
    }
}

// A match may be as long as the text, also of patterns whose repeats never go back.
static void long_matches_are_within_the_budget(void **state) {
    static const char *const patterns[] = {"a++|\n",           "(?>a+)|\n",    "(?>a{1,3})+|\n",
                                           "(?:(?>a)(?=a*))+", "(?:a++\n?)++", "(?:a|b)*+\n?"};
    struct rlhf__error err = {0};
    (void)state;
    for (size_t i = 0; i < CHECK_COUNT(patterns); i++)
        if (first_match(patterns[i], 'a', i == 3 ? 1000 : 1000000, '\n', &err) != 1)
            fail_msg("'%s': %s", patterns[i], err.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_by_hand_are_those_of_pcre2),
                                       cmocka_unit_test(refused_with_their_text),
                                       cmocka_unit_test(characters_are_the_librarys),
                                       cmocka_unit_test(steps_go_with_the_text),
                                       cmocka_unit_test(windows_change_no_match),
                                       cmocka_unit_test(searches_of_a_text_share_a_budget),
                                       cmocka_unit_test(long_matches_are_within_the_budget)};
    return cmocka_run_group_tests_name("patterns", tests, NULL, NULL);
}
