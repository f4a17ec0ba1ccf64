// test_answer.c: answer.so: finding answers, reading numbers, comparing, and refusals.
#include "rewards/rows.h"

static struct reward r;

static int open_rows(void **state) {
    (void)state;
    r.rows = rlhf__row_service();
    return r.rows ? 0 : -1;
}

static int close_rows(void **state) {
    (void)state;
    return 0;
}

struct expectation {
    const char *answer, *response;
    int right;
};

static void expect(const char *options, const struct expectation *all, size_t n) {
    reward_open(&r, "answer.so", options);
    for (size_t i = 0; i < n; i++) {
        const double score = score_row(&r, row_of(all[i].answer), all[i].response);
        if (score != all[i].right)
            fail_msg("[%s] \"%s\" for the answer \"%s\" pays %g, %d is right", options,
                     all[i].response, all[i].answer, score, all[i].right);
    }
    reward_close(&r);
}
#define EXPECT(options, ...)                                                                       \
    do {                                                                                           \
        static const struct expectation all[] = {__VA_ARGS__};                                     \
        expect(options, all, sizeof all / sizeof *all);                                            \
    } while (0)

// ---- the place of the answer ----

static void places_in_order(void **state) {
    (void)state;
    EXPECT("", {"18", "3 + 15 is \\boxed{18}.", 1}, {"18", "#### 18", 1},
           {"18", "She has 3 and then 18 of them.", 1}, {"18", "18, and 3 more", 0},
           {"18", "\\boxed{18} or #### 17 or 16", 1}, // a box comes before the rest
           {"18", "#### 18\nThat was question 5.", 1}, {"18", "\\boxed{}, which is 18", 0},
           {"18", "", 0}, {"18", "I do not know.", 0});
    EXPECT("marker=The answer is", {"18", "The answer is 18. \\boxed{3} #### 4", 1},
           {"18", "The answer is 3. No: The answer is 18 apples, since 9 and 9", 1},
           {"18", "The answer is\n\n  18\n3", 1}, {"18", "the answer is 3; \\boxed{18}", 1},
           {"18", "The answer is", 0});
    EXPECT("where=marked", {"18", "So it is 18", 0}, {"18", "#### 18", 1});
    EXPECT("where=marker,marker=A:", {"18", "\\boxed{18}", 0}, {"18", "A: 18", 1},
           {"yes", "A: yes.\nno", 1}, {"yes", "yes", 0});
    EXPECT("where=boxed", {"18", "#### 18", 0}, {"18", "\\boxed {18}", 1}, {"18", "\\fbox{18}", 1},
           {"18", "boxed{18}", 0});
    EXPECT("where=hashes", {"18", "\\boxed{18}", 0}, {"18", "####18", 1}, {"18", "### 18", 0},
           {"18", "#### 3\n#### 18", 1}, {"18", "#### 18 20 22", 1});
    EXPECT("where=last_number", {"18", "\\boxed{18} is not 5", 0}, {"18", "5 is not 18", 1});
    EXPECT("where=whole", {"18", " 18\n", 1}, {"18", "It is 18", 0}, {"18", "$18", 1},
           {"yes", " yes. ", 1}, {"yes", "yes it is", 0});
    EXPECT("after=</think>", {"18", "<think>\\boxed{18}</think> 3", 0},
           {"18", "<think>3</think> so \\boxed{18}", 1}, {"18", "<think> \\boxed{18}", 0},
           {"18", "</think>3</think>18", 1});
}

static void boxes(void **state) {
    (void)state;
    EXPECT("where=boxed", {"\\frac{1}{2}", "\\boxed{\\frac{1}{2}}", 1},
           {"5", "\\boxed{3} and \\boxed{5}", 1}, {"5", "\\boxed{5} and \\boxed{3", 1},
           {"5", "\\boxed{ \\boxed{5}", 1}, {"5", "{ { \\boxed{5} }", 1},
           {"5", "} } \\boxed{5}", 1}, {"{1, 2}", "\\boxed{\\{1, 2\\}}", 0},
           {"\\{1, 2\\}", "\\boxed{\\{1, 2\\}}", 1}, {"\\{5", "\\boxed{\\{5}", 1},
           {"5", "\\\\boxed{5}", 1}, {"5", "\\boxed{\\text{5}}", 1}, {"5", "\\boxed{x = 5}", 1},
           {"5", "\\boxed{3+2=5}", 1}, {"5", "\\boxed{x \\leq 5}", 0}, {"5", "\\boxed{x != 5}", 0},
           {"5", "\\boxed{5 or 6}", 0}, {"5", "\\boxed{3 or 5}", 0}, {"5", "\\boxed{1,5}", 0},
           {"15", "\\boxed{1,5}", 0});
}

// ---- numbers ----

static void numbers_of_many_forms(void **state) {
    (void)state;
    EXPECT(
        "where=boxed", {"1234567", "\\boxed{1,234,567}", 1}, {"1,234,567", "\\boxed{1234567}", 1},
        {"1234", "\\boxed{1{,}234}", 1}, {"1234", "\\boxed{1\\,234}", 1},
        {"1234",
         "\\boxed{1\xe2\x80\xaf"
         "234}",
         1},
        {"1234", "\\boxed{12,34}", 0}, {"1234", "\\boxed{0,1234}", 0}, {"123", "\\boxed{0,123}", 0},
        {"12345", "\\boxed{1,2345}", 0}, {"18", "\\boxed{18.00}", 1}, {"18", "\\boxed{018}", 1},
        {"18", "\\boxed{+18}", 1}, {"18", "\\boxed{-18}", 0}, {"-18", "\\boxed{-18}", 1},
        {"-18",
         "\\boxed{\xe2\x88\x92"
         "18}",
         1},
        {"-18", "\\boxed{- 18}", 1}, {"0.5", "\\boxed{.5}", 1}, {"0", "\\boxed{-0.0}", 1},
        {"0.1", "\\boxed{1/10}", 1}, {"0.3333", "\\boxed{1/3}", 0},
        {"2/3", "\\boxed{\\frac{4}{6}}", 1}, {"2/3", "\\boxed{\\dfrac 23}", 1},
        {"-2/3", "\\boxed{-\\tfrac{2}{3}}", 1}, {"-2/3", "\\boxed{\\frac{-2}{3}}", 1},
        {"-2/3", "\\boxed{\\frac{2}{-3}}", 1}, {"2.5", "\\boxed{2\\frac{1}{2}}", 1},
        {"2.5", "\\boxed{2 1/2}", 1}, {"-2.5", "\\boxed{-2 \\frac12}", 1},
        {"2.5", "\\boxed{2\xc2\xbd}", 1}, {"3.75", "\\boxed{3 3 / 4}", 1}, {"5", "\\boxed{5/0}", 0},
        {"1500", "\\boxed{1.5e3}", 1}, {"1500", "\\boxed{1.5 \\times 10^{3}}", 1},
        {"0.0015", "\\boxed{1.5\\cdot 10^{-3}}", 1}, {"1500", "\\boxed{15 x 10^2}", 1},
        {"1000", "\\boxed{10^3}", 1}, {"10", "\\boxed{10^3}", 0}, {"8", "\\boxed{2^3}", 0},
        {"5000000", "\\boxed{5 million}", 1}, {"5000000", "\\boxed{5 millions}", 1},
        {"500000", "\\boxed{5 hundred thousand}", 1}, {"5", "\\boxed{\\sqrt{25}}", 0},
        {"7", "\\boxed{3+4}", 0});
}

static void money_units_and_percent(void **state) {
    (void)state;
    EXPECT(
        "where=boxed", {"18", "\\boxed{\\$18}", 1}, {"$18", "\\boxed{18}", 1},
        {"18", "\\boxed{$18.00$}", 1}, {"-18", "\\boxed{-\\$18}", 1}, {"-18", "\\boxed{$-18}", 1},
        {"18",
         "\\boxed{\xe2\x82\xac"
         "18}",
         1},
        {"18", "\\boxed{18 \xe2\x82\xac}", 1}, {"18", "\\boxed{USD 18}", 1},
        {"18 apples", "\\boxed{18}", 1}, {"18", "\\boxed{18\\text{ apples}}", 1},
        {"18", "\\boxed{18 \\, \\mathrm{cm}^2}", 1}, {"18", "\\boxed{18 km/h}", 1},
        {"18", "\\boxed{18^\\circ}", 1}, {"18", "\\boxed{18 foot-pounds}", 1},
        {"18", "\\boxed{18 - x}", 0}, {"18", "\\boxed{18 cm 2}", 0}, {"25", "\\boxed{25\\%}", 1},
        {"25%", "\\boxed{25}", 1}, {"0.25", "\\boxed{25\\%}", 0}, {"25", "\\boxed{25 percent}", 1});
    EXPECT("where=boxed,percent=hundredth", {"0.25", "\\boxed{25\\%}", 1},
           {"25", "\\boxed{25\\%}", 0}, {"25%", "\\boxed{1/4}", 1}, {"25%", "\\boxed{25\\%}", 1},
           {"25", "\\boxed{25}", 1}, {"0.25", "\\boxed{25 percent}", 1});
    EXPECT("where=boxed,percent=either", {"0.25", "\\boxed{25\\%}", 1}, {"25", "\\boxed{25\\%}", 1},
           {"25%", "\\boxed{0.25}", 1}, {"25", "\\boxed{0.25}", 0}, {"2500", "\\boxed{25\\%}", 0});
    EXPECT("where=boxed,units=false", {"18", "\\boxed{18 apples}", 0}, {"18", "\\boxed{18}", 1},
           {"18 apples", "\\boxed{18 apples}", 1}, {"18 apples", "\\boxed{18}", 0},
           {"5x", "\\boxed{5}", 0}, {"18", "\\boxed{18\\%}", 1});
    EXPECT("units=false", {"18", "#### 18 apples", 0}, {"18", "#### 18", 1});
}

static void numbers_in_a_text(void **state) {
    (void)state;
    EXPECT("where=last_number", {"5", "It is 5.", 1}, {"3", "5-3", 1}, {"-3", "5 = -3", 1},
           {"-3", "(-3)", 1}, {"3", "x-3", 1}, {"-3", "a loss of -$3.", 1},
           {"-3", "a loss of $-3!", 1}, {"18", "The area is 18 cm^2.", 1},
           {"18", "18 m^{-2} of x_2, H2O and x2", 1}, {"1200", "It costs $1,200.", 1},
           {"3", "1,2,3", 1}, {"23", "1,23", 1}, {"2345", "1,2345", 1}, {"7", "7 at v1.2.3", 1},
           {"7", "7 on 1/2/2024", 1}, {"7", "7 and 2^10", 1}, {"7", "7 and 5/0", 1},
           {"0.75", "that is 3/4", 1}, {"2.5", "2 1/2 cups", 1}, {"2", "8 4/2", 1},
           {"2.5", "\\(2\\frac{1}{2}\\) cups", 1}, {"1.5", "6 and $\\frac{3}{2}$", 1},
           {"3", "the 3rd", 1}, {"5", "**5**", 1}, {"5", "is `5`.", 1}, {"1e3", "about 1000", 1},
           {"40", "40 %", 1}, {"5000000", "It has 5 Million people.", 1},
           {"0.5", "No.5 and .5", 1});
}

static void exact_numbers_of_any_size(void **state) {
    (void)state;
    EXPECT("where=whole", {"123456789012345678901234567890", "123456789012345678901234567890", 1},
           {"123456789012345678901234567890", "123456789012345678901234567891", 0},
           {"9007199254740993", "9007199254740992", 0}, {"0.1", "0.1000000000000000055511", 0},
           {"100000000000000000000000", "1e23", 1},
           {"1/3", "333333333333333333333333333333/999999999999999999999999999999", 1},
           {"1/3", "333333333333333333333333333333/1000000000000000000000000000000", 0},
           {"1e400", "1e401", 0}, {"1e-400", "0", 0}, {"1e400", "10e399", 1});
}

static void tolerance(void **state) {
    (void)state;
    EXPECT("tolerance=0.1", {"3", "3.1", 1}, {"3", "2.9", 1}, {"3", "3.1001", 0},
           {"1/3", "0.333", 1}, {"1e400", "1e401", 0}, {"1e400", "10e399", 1},
           // beyond doubles nothing is near
           {"3", "1e400", 0}, {"3", "-1e400", 0}, {"3", "5/1e-999", 0}, {"1e400", "3", 0});
    EXPECT("relative=0.01", {"200", "202", 1}, {"200", "202.1", 0}, {"-200", "-198", 1},
           {"0", "0.001", 0}, {"0", "0", 1});
    EXPECT("relative=0.01,tolerance=5", {"200", "205", 1}, {"200", "195", 1}, {"1000", "1010", 1},
           {"1000", "1011", 0});
}

// ---- texts ----

static void texts(void **state) {
    (void)state;
    EXPECT("", {"Paris", "\\boxed{Paris}", 1}, {"Paris", "\\boxed{\\text{Paris}}", 1},
           {"Paris", "#### Paris.", 1}, {"Paris", "#### **Paris**", 1}, {"Paris", "#### paris", 0},
           {"New York", "#### New  York ", 1}, {"New York", "#### NewYork", 0},
           {"Paris", "Paris", 1}, {"Paris", "It is Paris", 0}, {"x^2+1", "\\boxed{$x^2+1$}", 1},
           {"x^2+1", "\\boxed{x^2 + 1}", 1}, {"10:30", "\\boxed{10:30}", 1},
           {"10:30", "\\boxed{10.30}", 0}, {"(3, 4)", "\\boxed{\\left(3, 4\\right)}", 1});
    EXPECT("", {"B", "\\boxed{\\text{(B)}}", 1}, {"(B)", "#### B.", 1}, {"B", "\\boxed{(A)}", 0},
           {"(3, 4)", "\\boxed{3, 4}", 0}, {"( )", "\\boxed{( )}", 1}, {"f(x)", "\\boxed{fx}", 0},
           {"(a)(b)", "\\boxed{a)(b}", 0});
    EXPECT("ignore_case=true", {"Paris", "#### PARIS", 1}, {"Paris", "#### PARI", 0});
    EXPECT("compare=text", {"18", "#### 18", 1}, {"18", "#### 18.0", 0}, {"007", "#### 7", 0});
}

// ---- math-verify's verdicts on the same answers ----

static void variables_are_no_units(void **state) {
    (void)state;
    EXPECT("where=boxed", {"5", "\\boxed{5x}", 0}, {"5", "\\boxed{5 x}", 0},
           {"5", "\\boxed{5xy}", 0}, {"5", "\\boxed{5x^2}", 0}, {"5", "\\boxed{5n}", 0},
           {"5", "\\boxed{5\\pi}", 0}, {"5", "\\boxed{5 \\sqrt{2}}", 0},
           {"5", "\\boxed{5\xcf\x80}", 0}, {"5", "\\boxed{3x - 2 = 5}", 0},
           {"5", "\\boxed{f(2) = 5}", 1}, {"5", "\\boxed{5(x)}", 0}, {"5", "\\boxed{5K}", 0},
           {"5x", "\\boxed{5}", 0}, {"5x", "\\boxed{5 x}", 1}, {"5\\pi", "\\boxed{5 \\pi}", 1},
           {"5i", "\\boxed{5}", 0}, {"5", "\\boxed{5 m}", 1}, {"5", "\\boxed{5cm}", 1},
           {"5", "\\boxed{5 cm^2}", 1}, {"5", "\\boxed{5\\text{ km/h}}", 1},
           {"5", "\\boxed{5 a day}", 1}, {"5", "\\boxed{5 K}", 1}, {"5", "\\boxed{5\\%}", 1},
           {"5", "\\boxed{5th}", 1});
    EXPECT("", {"5", "#### 5x", 0}, {"5", "#### 5 x", 0}, {"5", "#### 5 apples", 1},
           {"5", "It is 5, or 3x.", 1}, {"3", "It is 5, or 3x.", 0}, {"5", "5\\pi", 0},
           {"15", "5 x 3 = 15 m", 1}, {"5", "x &= 5 \\end{aligned}", 1});
    EXPECT("where=hashes", {"5", "#### 5. So", 1}, {"5", "#### 5, or so", 1}, {"5", "#### 5; Q", 1},
           {"5", "#### 5 or 6", 0}, {"5", "#### 5 xy. So", 0}, {"5", "#### 5.x", 0});
}

static void brackets_around_a_number(void **state) {
    (void)state;
    EXPECT("where=boxed", {"5", "\\boxed{(5)}", 1}, {"5", "\\boxed{\\left(5\\right)}", 1},
           {"5", "\\boxed{\\left[ 5 \\right]}", 1}, {"5", "\\boxed{\\{5\\}}", 1},
           {"5", "\\boxed{{5}}", 1}, {"5", "\\boxed{((5))}", 1}, {"(5)", "\\boxed{5}", 1},
           {"\\{5\\}", "\\boxed{5.0}", 1},
           {"\\frac{1}{2}", "\\boxed{\\left(\\frac{1}{2}\\right)}", 1}, {"-3", "\\boxed{(-3)}", 1},
           {"5", "\\boxed{x = (5)}", 1}, {"5", "\\boxed{(5)(x)}", 0}, {"5", "\\boxed{(5, 6)}", 0},
           {"5", "\\boxed{(5x)}", 0}, {"5", "\\boxed{(5}", 0}, {"5", "\\boxed{f(5)}", 0},
           {"5", "\\boxed{()}", 0}, {"5", "\\boxed{(5](}", 0});
}

static void white_space_of_tex(void **state) {
    (void)state;
    EXPECT("where=boxed", {"x^2+1", "\\boxed{x^2 + 1}", 1}, {"x^2+1", "\\boxed{x^{2} + 1}", 1},
           {"(1,2)", "\\boxed{\\left( 1,\\, 2 \\right)}", 1}, {"[1,2)", "\\boxed{[1, 2)}", 1},
           {"\\sqrt{2}", "\\boxed{\\sqrt 2}", 1}, {"\\sqrt{2}", "\\boxed{\\sqrt{ 2 }}", 1},
           {"2\\pi r", "\\boxed{2 \\pi  r}", 1}, {"3+4i", "\\boxed{3 + 4i}", 1},
           {"\\{1,2\\}", "\\boxed{\\{ 1, 2 \\}}", 1},
           {"x \xe2\x89\xa4 3",
            "\\boxed{x\xe2\x89\xa4"
            "3}",
            1},
           {"\\begin{pmatrix}2\\\\3\\end{pmatrix}",
            "\\boxed{\\begin{pmatrix} 2 \\\\ 3 \\end{pmatrix}}", 1},
           {"\\begin{pmatrix}2\\\\3\\end{pmatrix}",
            "\\boxed{\\begin{pmatrix} 2 \\\\ 4 \\end{pmatrix}}", 0},
           {"a\\\\[b]", "\\boxed{a \\\\ [b]}", 1}, {"x\\geq 3", "\\boxed{x \\ge 3}", 1},
           {"x\\neq 3", "\\boxed{x\\ne3}", 1}, {"x\\leq 3", "\\boxed{x \\le 3}", 1},
           {"x\\leq 3", "\\boxed{x \\lt 3}", 0}, {"x_1", "\\boxed{x_{1}}", 1},
           {"x^{12}", "\\boxed{x^12}", 0}, {"x^{12}", "\\boxed{x^{ 12 }}", 1},
           {"New York", "\\boxed{New  York}", 1}, {"New York", "\\boxed{NewYork}", 0},
           {"1 2 x", "\\boxed{12 x}", 0}, {"\xc3\xa9 \xc3\xa9", "\\boxed{\xc3\xa9\xc3\xa9}", 0},
           {"x{", "\\boxed{x\\{}", 0});
}

// A response or row with several equations is not read as a number.
static void several_equations(void **state) {
    (void)state;
    EXPECT("", {"x=3, y=5", "\\boxed{x=4, y=5}", 0}, {"x=3, y=5", "\\boxed{y=5}", 0},
           {"x=3, y=5", "so y is 5", 0}, {"x=3, y=5", "\\boxed{x = 3, y = 5}", 1},
           {"x=1 \\text{ or } x=2", "\\boxed{x=5 \\text{ or } x=2}", 0},
           {"x=1 \\text{ or } x=2", "\\boxed{2}", 0},
           {"x=1 \\text{ or } x=2", "\\boxed{x = 1 \\text{ or } x = 2}", 1},
           {"5", "\\boxed{x=3, y=5}", 0}, {"5", "\\boxed{x = 3 \\text{ or } x = 5}", 0},
           {"5", "\\boxed{x \\ge 3, x = 5}", 0}, {"5", "\\boxed{x=3\\\\ y=5}", 0},
           {"5", "\\boxed{x=3 \\quad y=5}", 0}, {"5", "\\boxed{x=3 \\lor x=5}", 0},
           {"5", "\\boxed{x=3; y=5}", 0}, {"#### x = 3, y = 5", "#### x = 3, y = 5", 1},
           {"5", "#### x = 3, y = 5", 0}, {"3", "#### x = 3, y = 5", 0},
           {"A=\\{9\\}, B=2", "\\boxed{A=\\{1\\}, B=2}", 0}, {"5", "\\boxed{f(2, 3) = 5}", 1},
           {"5", "\\boxed{x = 2 + 3 = 5}", 1}, {"1234", "\\boxed{n = 1,000 + 234 = 1,234}", 1},
           {"30", "\\boxed{d = 3 cm = 30 mm}", 1}, {"(12, 345)", "\\boxed{(12,345)}", 1},
           {"12345", "\\boxed{(12,345)}", 0}, {"1,234", "\\boxed{1234}", 1});
}

static void factorials_and_primes(void **state) {
    (void)state;
    EXPECT("", {"2004!", "\\boxed{2004}", 0}, {"2004", "\\boxed{2004!}", 0},
           {"n!", "\\boxed{n}", 0}, {"n!", "\\boxed{n!}", 1}, {"(n-1)!", "\\boxed{n-1}", 0},
           {"2^n n!", "\\boxed{2^n n}", 0}, {"n!", "#### n", 0}, {"n", "#### n!", 0},
           {"yes", "#### yes!", 1}, {"5", "It is 5!", 1}, {"5", "I have 5! Nice.", 1},
           {"5", "It is 5! \xf0\x9f\x8e\x89", 1}, {"5", "<answer>It is 5!</answer>", 1},
           {"5", "There are $5!$", 0}, {"5", "\\(5!\\)", 0}, {"5", "It is 5! ways.", 0},
           {"5", "It is 5! \xc3\x97 2", 0}, {"120", "5! = 120", 1}, {"f'", "\\boxed{f}", 0},
           {"f", "\\boxed{f'}", 0}, {"f''", "\\boxed{f'}", 0}, {"'a'", "\\boxed{a}", 1},
           {"p^*", "\\boxed{{p^{*}}}", 1}, {"{p^{*}}", "\\boxed{p^*}", 1},
           {"p", "\\boxed{p^*}", 0});
    EXPECT("where=whole", {"18", "18!", 1});
    EXPECT("compare=text", {"n!", "\\boxed{n}", 0}, {"n!", "\\boxed{n!}", 1});
}

static void terms_in_a_text(void **state) {
    (void)state;
    EXPECT("where=last_number", {"7", "of 7 the side is $\\sqrt{25}$.", 1},
           {"7",
            "7 and \xe2\x88\x9a"
            "25",
            1},
           {"7", "7, $\\log 8$", 1}, {"7", "7, $\\binom{5}{2}$", 1},
           {"7", "7, $\\frac{\\pi}{3}$", 1}, {"7/9", "so $0.\\overline{7}$", 1},
           {"7", "7, \\sin(2)", 1}, {"7", "7, log 8, ln(2)", 1},
           {"7",
            "7, x = \xc2\xb1"
            "2021",
            1},
           {"7", "7, 2\xc2\xb3", 1}, {"5000", "that is 5 \xc3\x97 10\xc2\xb3", 1},
           {"7", "7, $x_{12}$", 1}, {"7", "7, $\\sum_{i=1}^{5} x$", 1},
           {"7", "7, $(\\frac{3}{5})^{2}$", 1}, {"7", "7, \xcf\x80/2", 1}, {"7", "7 \\pmod{9}", 1},
           {"3", "$\\sqrt{9} = 3$", 1}, {"10", "$\\binom{5}{2} = 10$", 1},
           {"7", "7, $\\sqrt[3]{8}$", 1}, {"7", "7, $x\\sqrt{25}$", 1}, {"73", "It is __73__.", 1},
           {"73", "It is _73_.", 1}, {"7", "7, but 3 dozen", 1}, {"7", "7, or 3 and a half", 1},
           {"12", "12 and none", 1}, {"-5", "It is minus 5.", 1}, {"5", "10 minus 5", 1},
           {"-5", "negative 5", 1});
}

static void words_that_change_a_number(void **state) {
    static const char *const changed[] = {
        "5 and a half", "5 dozen",    "5 hundredths",   "5 squared",    "5 factorial",
        "5 or six",     "negative 5", "minus 5",        "5 or more",    "5 plus two",
        "5 times ten",  "5 million",  "5 quadrillion",  "5 billionths", "5 point five",
        "5 base seven", "5 root two", "5 \xe4\xb8\x87", "5\xe5\x8d\x8a"};
    char response[64];
    (void)state;
    reward_open(&r, "answer.so", "");
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        for (int box = 0; box < 2; box++) {
            snprintf(response, sizeof response, box ? "\\boxed{%s}" : "#### %s", changed[i]);
            if (score_row(&r, row_of("5"), response) != 0) fail_msg("%s pays", response);
        }
    }
    reward_close(&r);
    EXPECT("", {"-5", "\\boxed{negative 5}", 1}, {"-5", "\\boxed{\\text{minus } 5}", 1},
           {"5 dozen", "\\boxed{5 dozen}", 1}, {"5", "\\boxed{5 times}", 1},
           {"5", "\\boxed{5 apples and pears}", 1}, {"5", "#### 5 cm squared", 1});
}

// In a box, a number that a character outside ASCII changes is another number.
static void characters_that_change_a_number(void **state) {
    static const char *const changed[] = {"\xef\xbc\x90",     // full-width 0
                                          "\xd9\xa0",         // Arabic 0
                                          "\xe2\x82\x80",     // subscript 0
                                          "\xf0\x9d\x9f\x8e", // mathematical 0
                                          "\xcc\xb8",         // strikes the digit out
                                          "\xe2\x80\xb0",     // per mille
                                          "\xe2\x85\x88",     // the imaginary unit
                                          "\xef\xbc\x81"};    // full-width !
    char response[64];
    (void)state;
    reward_open(&r, "answer.so", "");
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        snprintf(response, sizeof response, "\\boxed{5%s}", changed[i]);
        if (score_row(&r, row_of("5"), response) != 0) fail_msg("%s pays", response);
    }
    reward_close(&r);
    EXPECT("", {"5", "\\boxed{5\xc2\xb0}", 1}, {"5", "\\boxed{5 \xce\xbcm}", 1},
           {"5", "\\boxed{5\xe2\x84\x83}", 1}, {"5", "\\boxed{5 \xd0\xba\xd0\xb3}", 1},
           {"5", "\\boxed{5\xe5\x8d\x83\xe5\x85\x8b}", 1});
}

static void negated_equations(void **state) {
    (void)state;
    EXPECT("", {"5", "\\boxed{x \\not= 5}", 0}, {"5", "\\boxed{x \\not\\approx 5}", 0},
           {"5", "\\boxed{x /= 5}", 0}, {"5", "\\boxed{x =/= 5}", 0}, {"5", "\\boxed{x != 5}", 0},
           {"5", "\\boxed{x ~=~ 5}", 1}, {"5", "\\boxed{\\boxed{5}}", 1},
           {"5", "\\boxed{\\underline{5}}", 1}, {"5", "\\boxed{6 \\boxed{5}}", 0});
}

// Few braces are taken away, because each pair takes a pass over the text.
static void many_braces(void **state) {
    (void)state;
    EXPECT("", {"ab", "\\boxed{{{{{ab}}}}}", 1}, {"ab", "\\boxed{{{{{{{{ab}}}}}}}}", 0});
}

static void separators_and_superscripts(void **state) {
    (void)state;
    EXPECT("where=boxed", {"11111", "\\boxed{11,\\! 111}", 1}, {"11,\\! 111", "\\boxed{11111}", 1},
           {"11111", "\\boxed{11,\\,111}", 1}, {"11111", "\\boxed{11\\;111}", 1},
           {"11111", "\\boxed{11~111}", 1}, {"11111", "\\boxed{11, 111}", 0},
           {"1000", "\\boxed{10\xc2\xb3}", 1},
           {"0.005",
            "\\boxed{5\xc3\x97"
            "10\xe2\x81\xbb\xc2\xb3}",
            1},
           {"10", "\\boxed{10\xc2\xb3}", 0}, {"5", "\\boxed{5\xc2\xb2}", 0},
           {"5", "\\boxed{5 cm\xc2\xb2}", 1}, {"x^{10}", "\\boxed{x\xc2\xb9\xe2\x81\xb0}", 1},
           {"0.5",
            "\\boxed{1\xe2\x81\x84"
            "2}",
            1},
           {"1/6", "\\boxed{0.1\\overline{6}}", 1}, {"100/99", "\\boxed{1.\\overline{01}}", 1},
           {"0.3", "\\boxed{0.\\overline{3}}", 0}, {"5", "\\boxed{\\pm 5}", 0});
}

// A data row may give the gold answer as a whole solution, as a number, or inside a list.
static void gold_in_solutions(void **state) {
    (void)state;
    EXPECT("", {"He has 3 * 6 = 18 eggs.\n#### 18", "#### 18", 1},
           {"Not 3.\n#### 1,234", "1234", 1},
           {"So it is $\\boxed{\\frac{1}{2}}$.", "\\boxed{0.5}", 1}, {"#### -5", "That is -5", 1});
    EXPECT("marker=Answer:", {"Since 3.\nAnswer: 18", "Answer: 18", 1});
    reward_open(&r, "answer.so", "");
    assert_true(score_row(&r, "{\"answer\": 18}", "#### 18.0") == 1);
    assert_true(score_row(&r, "{\"answer\": 0.1}", "#### 1/10") == 1);
    assert_true(score_row(&r, "{\"answer\": -2.5e-7}", "#### -0.00000025") == 1);
    reward_close(&r);
    reward_open(&r, "answer.so", "field=/gold/0");
    assert_true(score_row(&r, "{\"gold\": [\"18\", \"19\"]}", "#### 18") == 1);
    reward_close(&r);
}

// ---- the reward ----

static void pay_and_metrics(void **state) {
    (void)state;
    static struct texts t;
    static const char *const said[] = {"\\boxed{18}", "so 18", "\\boxed{17}", "nothing",
                                       "\\boxed{}18"};
    static const float pays[] = {2.25f, 2, -0.75f, -1, -1};
    double value;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 5; i++) {
        texts_add(&t, "x", 1, said[i], strlen(said[i]));
        t.meta[i] = (rlhf_str){"{\"answer\": \"18\"}", 16};
    }
    reward_open(&r, "answer.so", "right=2,wrong=-1,format_weight=0.25");
    assert_int_equal(texts_score(&r, &t, 0, 5), RLHF_OK);
    for (int i = 0; i < 5; i++) {
        assert_float_equal(t.seq[i], pays[i], 0);
        assert_int_equal(t.verdict[i], i < 2 ? RLHF_VERDICT_RIGHT : RLHF_VERDICT_WRONG);
    }
    assert_true(rlhf_test_metric(&r.host, "correct", &value) && value == 0.4);
    assert_true(rlhf_test_metric(&r.host, "found", &value) && value == 0.6);
    assert_true(rlhf_test_metric(&r.host, "marked", &value) && value == 0.4);
    rlhf_test_phase(&r.host);
    assert_int_equal(texts_score(&r, &t, 0, 2), RLHF_OK); // the same in two calls
    assert_int_equal(texts_score(&r, &t, 2, 5), RLHF_OK);
    assert_true(rlhf_test_metric(&r.host, "correct", &value) && value == 0.4);
    assert_true(rlhf_test_metric(&r.host, "found", &value) && value == 0.6);
    assert_true(rlhf_test_metric(&r.host, "marked", &value) && value == 0.4);
    reward_close(&r);
}

// If many responses lack an answer in the requested place, one message reports this and names the
// place.
static void nothing_found_is_said(void **state) {
    (void)state;
    static struct texts t;
    static const char say[] = "none of 8 responses has an answer where 'where=boxed' looks";
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 8; i++) {
        texts_add(&t, "x", 1, "so 18", 5);
        t.meta[i] = (rlhf_str){"{\"answer\": \"18\"}", 16};
    }
    reward_open(&r, "answer.so", "where=boxed");
    assert_int_equal(texts_score(&r, &t, 0, 7), RLHF_OK);
    assert_int_equal(r.host.n_logs, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(texts_score(&r, &t, 0, 8), RLHF_OK);
    assert_true(rlhf_test_logged(&r.host, say));
    assert_int_equal(r.host.n_logs, 1);
    reward_close(&r);
    reward_open(&r, "answer.so", "");
    assert_int_equal(texts_score(&r, &t, 0, 8), RLHF_OK);
    assert_int_equal(r.host.n_logs, 0);
    reward_close(&r);
}

// A row may be stored at the address of an earlier row. It must be read again.
static void same_place_other_row(void **state) {
    (void)state;
    char row[] = "{\"answer\": \"18\"}";
    reward_open(&r, "answer.so", "");
    assert_true(score_row(&r, row, "18") == 1);
    memcpy(strchr(row, '8'), "9", 1);
    assert_true(score_row(&r, row, "19") == 1);
    reward_close(&r);
}

// ---- refusals ----

static void refuses(const char *options, const char *row, const char *sentence) {
    double score;
    reward_open(&r, "answer.so", options);
    assert_int_equal(try_row(&r, row, "18", &score), RLHF_E_INVALID);
    assert_string_equal(rlhf_test_failure(&r.host), sentence);
    r.host.fail_text[0] = 0;
    assert_int_equal(reward_check_row(&r, (rlhf_str){row, row ? strlen(row) : 0}), RLHF_E_INVALID);
    assert_string_equal(rlhf_test_failure(&r.host), sentence);
    assert_int_equal(reward_check_row(&r, (rlhf_str){"{\"answer\": \"18\", \"gold\": 1}", 27}),
                     RLHF_OK);
    reward_close(&r);
}

static void rows_without_an_answer(void **state) {
    (void)state;
    refuses("", NULL,
            "the prompt has no data row, so no \"answer\", which field names; use prompts in a "
            ".jsonl file");
    refuses("", "{\"prompt\": \"x\"}",
            "the data row has no \"answer\"; expected a string: {\"prompt\": \"x\"}");
    refuses("", "{\"answer\": [1]}",
            "\"answer\" of the data row is a list; expected a string: {\"answer\": [1]}");
    refuses("field=gold", "{\"gold\": \"\"}",
            "\"gold\" of the data row is \"\", which has no answer in it");
    refuses("", "{\"answer\": \"It is\\n#### \"}",
            "\"answer\" of the data row is \"It is\n#### \", which has no answer in it");
    refuses("compare=number", "{\"answer\": \"Paris\"}",
            "\"answer\" of the data row is \"Paris\", which is not a number (compare=number)");
    refuses("where=last_number", "{\"answer\": \"Paris\"}",
            "\"answer\" of the data row is \"Paris\", which is not a number (where=last_number)");
}

static void options_that_do_not_go_together(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"where=marker", "where=marker needs marker=TEXT"},
        {"where=last_number,compare=text",
         "where=last_number reads a number; compare=text compares texts"}};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(reward_try(&r, "answer.so", bad[i][0]), RLHF_E_INVALID);
        assert_string_equal(r.host.fail_text, bad[i][1]);
        assert_int_equal(r.host.live, 0);
    }
    reward_open(&r, "answer.so", "where=boxed,compare=text");
    assert_string_equal(reward_why_unused(&r, "marker"), "where names another place");
    assert_string_equal(reward_why_unused(&r, "tolerance"), "compare is text");
    assert_null(reward_why_unused(&r, "format_weight"));
    reward_close(&r);
    reward_open(&r, "answer.so", "where=whole,compare=number");
    assert_string_equal(reward_why_unused(&r, "ignore_case"), "compare is number");
    assert_string_equal(reward_why_unused(&r, "format_weight"),
                        "where names a place that needs no mark");
    reward_close(&r);
}

static void out_of_memory(void **state) {
    (void)state;
    double score;
    for (int64_t n = 1; n <= 3; n++) {
        reward_open(&r, "answer.so", "");
        rlhf_test_fail_alloc(&r.host, n, 0);
        const rlhf_status st = try_row(&r, row_of("18"), "\\boxed{18}", &score);
        assert_int_equal(st, n < 3 ? RLHF_E_NOMEM : RLHF_OK);
        reward_close(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_in_order),
                                       cmocka_unit_test(boxes),
                                       cmocka_unit_test(numbers_of_many_forms),
                                       cmocka_unit_test(money_units_and_percent),
                                       cmocka_unit_test(numbers_in_a_text),
                                       cmocka_unit_test(exact_numbers_of_any_size),
                                       cmocka_unit_test(tolerance),
                                       cmocka_unit_test(texts),
                                       cmocka_unit_test(variables_are_no_units),
                                       cmocka_unit_test(brackets_around_a_number),
                                       cmocka_unit_test(white_space_of_tex),
                                       cmocka_unit_test(several_equations),
                                       cmocka_unit_test(factorials_and_primes),
                                       cmocka_unit_test(terms_in_a_text),
                                       cmocka_unit_test(words_that_change_a_number),
                                       cmocka_unit_test(characters_that_change_a_number),
                                       cmocka_unit_test(negated_equations),
                                       cmocka_unit_test(many_braces),
                                       cmocka_unit_test(separators_and_superscripts),
                                       cmocka_unit_test(gold_in_solutions),
                                       cmocka_unit_test(pay_and_metrics),
                                       cmocka_unit_test(nothing_found_is_said),
                                       cmocka_unit_test(same_place_other_row),
                                       cmocka_unit_test(rows_without_an_answer),
                                       cmocka_unit_test(options_that_do_not_go_together),
                                       cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests_name("rewards/answer", tests, open_rows, close_rows);
}
