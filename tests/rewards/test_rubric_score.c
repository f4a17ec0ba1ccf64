// test_rubric_score.c: the score in a judge's answer.
#include "rubric/score.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void judges_sentences(void **state) {
    static const struct {
        const char *text;
        double scale, score; // -1: lost
    } all[] = {
        {"8", 10, 8},
        {"8.5", 10, 8.5},
        {"Score: 8/10", 10, 8},
        {"8 / 10", 10, 8},
        {"Score: 2 out of 10.", 10, 2},
        {"8 of 10", 10, 8},
        {"8 (out of 10)", 10, 8},
        {"8\xef\xbc\x8f"
         "10",
         10, 8},
        {"8 \xef\xbc\x8f 10", 10, 8},
        {"\xef\xbc\x98\xef\xbc\x8f\xef\xbc\x91\xef\xbc\x90", 10, 8}, // all fullwidth
        {"8 stars out of 10 stars", 10, 8},
        {"8 points / 10 points", 10, 8},
        {"**Score:** **8** / 10", 10, 8},
        {"8,5/10", 10, 8.5},
        {"8,5", 10, 8.5},
        {"Score: 8/10\n```", 10, 8},
        {"```\n8/10\n```\n", 10, 8},
        {"It is good.\n\n8\n---\n", 10, 8},
        {"On a scale of 1 to 10, I give it an 8.", 10, 8},
        {"On a scale from 0 to 10: 8", 10, 8},
        {"8 on a scale of 10", 10, 8},
        {"On a 10-point scale it is an 8", 10, 8},
        {"8 (0-10)", 10, 8},
        {"8 (1\xe2\x80\x93"
         "10)",
         10, 8},
        {"Score: 8 (8/10)", 10, 8},
        {"It has 3 mistakes. Score: 8", 10, 8},
        {"3 of 4 claims hold, so its score is 7", 10, -1}, // 4 is not the scale
        {"It has 3 mistakes. The rating is **7**/10.", 10, 7},
        {"{\"score\": 8}", 10, 8},
        {"Q1: 8", 10, 8},
        {"\xe5\xbe\x97\xe5\x88\x86"
         "8",
         10, 8}, // a word of another script before it
        {"1,000", 1000, 1000},
        {"80%", 100, 80},
        {"1.0000000000000001e-05", 10, 1e-5},
        {"1e1", 10, 10},
        {"0", 10, 0},
        {"10 points", 10, 10},
        // lost
        {"between 7 and 8", 10, -1},
        {"7-8", 10, -1},
        {"7 or 8", 10, -1},
        {"7, 8", 10, -1},
        {"Score: 3 (max score: 10)", 10, 3},
        {"{\"score\": 3, \"max_score\": 10}", 10, 3},
        {"Score: 3. A perfect score is 10.", 10, 3},
        {"{\"score\": 3, \"reason\": \"it asks for score: 10\"}", 10, -1},
        {"Score: 3, although the response says \"Score: 10\"", 10, -1},
        {"I give 3. It asks for \"score: 10\"", 10, -1},
        {"Score: 7 or 8", 10, -1},
        {"Score: 7-8/10", 10, -1},
        {"Score: 8, although 9 would be possible", 10, -1},
        {"8/5", 10, -1},
        {"4 out of 5", 10, -1},
        {"80%", 10, -1},
        {"5%", 10, -1},
        {"11", 10, -1},
        {"-8", 10, -1},
        {"Score: -8", 10, -1},
        {"It has 3 mistakes, 8", 10, -1},
        {"0 to 10", 10, -1},
        {"It is the 2nd", 10, -1},
        {"great", 10, -1},
        {"", 10, -1},
        {"```", 10, -1},
        {"\n\n", 10, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double score = -1;
        const char *why = rlhf__score_read(all[i].text, strlen(all[i].text), all[i].scale, &score);
        if (why) score = -1;
        if (fabs(score - all[i].score) > 1e-12)
            fail_msg("\"%s\": %g, not %g (%s)", all[i].text, score, all[i].score, why ? why : "");
    }
    char longer[3000] = "1 ";
    double score;
    memset(longer + 2, 'x', sizeof longer - 2);
    memcpy(longer + sizeof longer - 4, " 8", 3);
    assert_non_null(rlhf__score_read(longer, strlen(longer), 10, &score)); // the 1 is not seen
    memcpy(longer + sizeof longer - 12, " score: 8", 10);
    assert_null(rlhf__score_read(longer, strlen(longer), 10, &score));
    assert_true(score == 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(judges_sentences)};
    return cmocka_run_group_tests_name("rubric_score", tests, NULL, NULL);
}
