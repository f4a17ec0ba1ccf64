// test_option_check.c: the rules for one row of a plugin's option table (rlhf/option_check.h). The
// modules of tests/plugin/faulty.c break the rules for whole tables.
#include "support/check.h"

#include <rlhf/option_check.h>

#include <math.h>

static const char *const list[] = {"a", NULL};

// Makes one member nonzero. Returns its name, or NULL if `member` is past the last one.
static const char *set_member(rlhf_opt *o, int member) {
    static const char *const names[] = {"i_def", "i_min",   "i_max", "f_def", "f_min",  "f_max",
                                        "s_def", "choices", "l_def", "table", "n_table"};
    switch (member) {
    case 0:
        o->i_def = 1;
        break;
    case 1:
        o->i_min = -1;
        break;
    case 2:
        o->i_max = 1;
        break;
    case 3:
        o->f_def = -1;
        break;
    case 4:
        o->f_min = -1;
        break;
    case 5:
        o->f_max = INFINITY;
        break;
    case 6:
        o->s_def = "";
        break;
    case 7:
        o->choices = list;
        break;
    case 8:
        o->l_def = list;
        break;
    case 9:
        o->table = o;
        break;
    case 10:
        o->n_table = 1;
        break;
    default:
        return NULL;
    }
    return names[member];
}

// A member or flag that does not apply to the type is refused, and one that applies is not.
static void members_and_flags_apply_to_types(void **state) {
    (void)state;
    static const struct {
        int32_t type;
        const char *name, *members; // 'x': applies, in the order of set_member
        uint32_t flags;
    } all[] = {{RLHF_T_BOOL, "BOOL", "x.x........", RLHF_OPT_REQUIRED},
               {RLHF_T_I64, "I64", "xxx........", RLHF_OPT_REQUIRED | RLHF_OPT_NULL_IS_0},
               {RLHF_T_F64, "F64", "...xxx.....", 1 | 2 | 4},
               {RLHF_T_STR, "STR", "......x....", RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED},
               {RLHF_T_PATH, "PATH", "......x....", RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED},
               {RLHF_T_ENUM, "ENUM", "x......x...", RLHF_OPT_REQUIRED},
               {RLHF_T_LIST, "LIST", ".......xx..", RLHF_OPT_REQUIRED | RLHF_OPT_TRUSTED},
               {RLHF_T_I64_LIST, "I64_LIST", ".xx........", RLHF_OPT_REQUIRED},
               {RLHF_T_F64_LIST, "F64_LIST", "....xx.....", 1 | 2 | 4},
               {RLHF_T_TABLE, "TABLE", ".........xx", 0}};
    char why[256], want[256];
    for (size_t k = 0; k < CHECK_COUNT(all); k++) {
        for (int m = 0; m < 11; m++) {
            rlhf_opt o = {.key = "it", .type = all[k].type};
            const char *member = set_member(&o, m);
            const int refused = rlhf_opt_row_refused(&o, why, sizeof why) > 0;
            if (refused == (all[k].members[m] == 'x')) fail_msg("%s %s", all[k].name, member);
            snprintf(want, sizeof want, "\"it\" sets %s, which does not apply to its type %s;",
                     member, all[k].name);
            // a BOOL has an i_min, which must be 0
            if (refused && !strstr(why, want) && !(all[k].type == RLHF_T_BOOL && m == 1))
                fail_msg("%s", why);
        }
        for (uint32_t bit = 0; bit < 32; bit++) {
            const rlhf_opt o = {.key = "it", .type = all[k].type, .flags = 1u << bit};
            const int refused = rlhf_opt_row_refused(&o, why, sizeof why) > 0;
            if (refused == ((all[k].flags >> bit & 1) == 1)) fail_msg("%s %u", all[k].name, bit);
            if (bit == 5) assert_non_null(strstr(why, "sets bit 5 of its flags"));
        }
    }
}

static void values_of_members(void **state) {
    (void)state;
    enum { REQUIRED = RLHF_OPT_REQUIRED };
    const struct {
        rlhf_opt o;
        const char *why;
    } all[] = {
        {{.type = RLHF_T_BOOL, .i_min = 1, .i_max = 1}, "has i_min 1 and i_max 1"},
        {{.type = RLHF_T_BOOL, .i_max = -1}, "has i_min 0 and i_max -1"},
        {{.type = RLHF_T_BOOL, .i_max = 2}, "has i_min 0 and i_max 2"},
        {{.type = RLHF_T_F64, .f_def = -INFINITY}, "has f_def -inf; a default must be finite"},
        {{.type = RLHF_T_F64, .f_min = NAN}, "has f_min nan"},
        {{.type = RLHF_T_F64_LIST, .f_max = NAN}, "has f_max nan"},
        {{.type = RLHF_T_I64, .flags = REQUIRED, .i_def = 1}, "sets i_def and RLHF_OPT_REQUIRED"},
        {{.type = RLHF_T_F64, .flags = REQUIRED, .f_def = 1}, "so f_def must be 0"},
        {{.type = RLHF_T_PATH, .flags = REQUIRED, .s_def = ""}, "so s_def must be 0"},
        {{.type = RLHF_T_LIST, .flags = REQUIRED, .l_def = list}, "so l_def must be 0"},
        {{.type = RLHF_T_I64, .reserved = 7}, "sets `reserved` to 7; it must be 0"},
        {{.type = RLHF_T_BOOL}, NULL},
        {{.type = RLHF_T_F64_LIST, .f_min = -INFINITY, .f_max = INFINITY}, NULL},
        {{.type = RLHF_T_TABLE + 1, .flags = 1u << 31, .reserved = 1}, NULL}, // rlhf_opt_fault's
    };
    for (size_t i = 0; i < CHECK_COUNT(all); i++) {
        char why[256] = "";
        const int bad = rlhf_opt_row_refused(&all[i].o, why, sizeof why);
        if ((bad > 0) != (all[i].why != NULL) || bad != (int)strlen(why) ||
            (bad && !strstr(why, all[i].why)))
            fail_msg("case %zu: \"%s\"", i, why);
    }
}

static void texts_are_utf8(void **state) {
    (void)state;
    static const char *const good[] = {"",
                                       "a",
                                       "\x7f",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {
        "\x80",             // a continuation alone
        "a\xbf",            //
        "\xc0\x80",         // overlong forms
        "\xc1\xbf",         //
        "\xe0\x9f\xbf",     //
        "\xf0\x8f\xbf\xbf", //
        "\xed\xa0\x80",     // surrogates
        "\xed\xbf\xbf",     //
        "\xf4\x90\x80\x80", // beyond U+10FFFF
        "\xf5\x80\x80\x80", //
        "\xff",             //
        "\xc2",             // cut short
        "\xe2\x82",         //
        "\xf0\x9f\x98",     //
        "\xe2\x82"
        "a",                //
        "\xf0\x9f\x98\x28", //
    };
    char why[256];
    for (size_t i = 0; i < CHECK_COUNT(good); i++) {
        const rlhf_opt o = {.key = "it", .type = RLHF_T_STR, .s_def = good[i]};
        if (rlhf_opt_row_refused(&o, why, sizeof why)) fail_msg("good %zu: %s", i, why);
    }
    for (size_t i = 0; i < CHECK_COUNT(bad); i++) {
        const rlhf_opt o = {.key = "it", .type = RLHF_T_STR, .s_def = bad[i]};
        if (!rlhf_opt_row_refused(&o, why, sizeof why)) fail_msg("bad %zu is accepted", i);
        assert_non_null(strstr(why, " in s_def; it must be UTF-8"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(members_and_flags_apply_to_types),
                                       cmocka_unit_test(values_of_members),
                                       cmocka_unit_test(texts_are_utf8)};
    return cmocka_run_group_tests_name("config_option_check", tests, NULL, NULL);
}
