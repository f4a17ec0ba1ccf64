// made_up.c: makes the metrics of made-up runs and compares their verdicts.
#include "support/check.h"

#include "made_up.h"

#include <stdio.h>
#include <string.h>

static void put_line(struct rlhf__series_set *s, const struct line *l, int64_t phases) {
    const int64_t from = l->to ? l->from : 1, to = l->to ? l->to : phases;
    for (int64_t p = 1; p <= phases; p++) {
        double at = to > from ? (double)(p - from) / (double)(to - from) : 0;
        at = at < 0 ? 0 : at > 1 ? 1 : at;
        const double v = l->first + (l->last - l->first) * at + (p % 2 ? -l->noise : l->noise);
        assert_int_equal(rlhf__series_set_put(s, l->name, p, v, NULL), RLHF_OK);
    }
}

static void ids_of(const struct rlhf__verdict *v, char *out, size_t cap) {
    *out = '\0';
    for (size_t i = 0; i < v->notes.n; i++) {
        if (i) strncat(out, ",", cap - strlen(out) - 1);
        strncat(out, v->notes.all[i].id, cap - strlen(out) - 1);
    }
}

static int says(const struct rlhf__verdict *v, const char *part) {
    for (size_t i = 0; i < v->notes.n; i++)
        if (strstr(v->notes.all[i].text, part)) return 1;
    return 0;
}

// Returns 1 if the note casts doubt on the run itself.
static int is_bad(const char *id) {
    static const char *const ids[] = {"collapsed", "fell_apart",      "diverged",
                                      "hacked",    "constant_reward", "right_answers_fell"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (strcmp(id, ids[i]) == 0) return 1;
    return 0;
}

// Checks that the verdict names the rule from which its title follows.
static void check_rule(const struct rlhf__verdict *v) {
    const struct rlhf__run_note *n = rlhf__notes_find(&v->notes, "collapsed");
    if (!n) n = rlhf__notes_find(&v->notes, "fell_apart");
    if (!n) n = rlhf__notes_find(&v->notes, "diverged");
    if (v->kind == RLHF__VERDICT_NONE) return;
    if (n && v->width) {
        assert_string_equal(v->rule, n->rule);
        return;
    }
    assert_non_null(strstr(v->rule, v->headline.metric));
    if ((n = rlhf__notes_find(&v->notes, "hacked")) ||
        (strstr(v->title, "got worse") && (n = rlhf__notes_find(&v->notes, "measure_worse"))) ||
        (strstr(v->title, "a part of it") && (n = rlhf__notes_find(&v->notes, "silent_reward"))))
        assert_string_equal(v->rule + strlen(v->rule) - strlen(n->rule), n->rule);
    else
        assert_null(strstr(v->title, ", but "));
}

const char *advice(const struct line *line, size_t n, const struct rlhf__run_facts *facts,
                   const char *id) {
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    for (size_t i = 0; i < n; i++)
        put_line(&s, &line[i], 20);
    const struct rlhf__history h = {&s, facts};
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    const struct rlhf__run_note *note = rlhf__notes_find(&v.notes, id);
    static char change[512];
    snprintf(change, sizeof change, "%s", !note ? "no note" : note->change ? note->change : "");
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
    return change;
}

static void judged(const struct run *r) {
    struct rlhf__series_set s = {0};
    struct rlhf__verdict v;
    char ids[256];
    for (size_t i = 0; i < 8 && r->line[i].name; i++)
        put_line(&s, &r->line[i], r->phases ? r->phases : 20);
    const struct rlhf__history h = {&s, &r->facts};
    assert_int_equal(rlhf__verdict_make(&h, &v, NULL), RLHF_OK);
    ids_of(&v, ids, sizeof ids);
    if (strcmp(rlhf__verdict_kind_name(v.kind), r->kind) != 0 ||
        strncmp(v.title, r->title, strlen(r->title)) != 0 || strcmp(ids, r->notes) != 0)
        fail_msg("%s: %s, '%s', found %s; want %s, '%s', %s", r->what,
                 rlhf__verdict_kind_name(v.kind), v.title, ids, r->kind, r->title, r->notes);
    if (r->says && !says(&v, r->says))
        fail_msg("%s: no sentence has '%s', but '%s'", r->what, r->says, v.notes.all[0].text);
    for (size_t i = 0; i < v.notes.n; i++) {
        const struct rlhf__run_note *n = &v.notes.all[i];
        if (!n->rule || (n->level != RLHF__NOTE_INFO && !n->change))
            fail_msg("%s: %s has no rule or no advice", r->what, n->id);
        if (n->level != RLHF__NOTE_INFO && (n->level == RLHF__NOTE_BAD) != is_bad(n->id))
            fail_msg("%s: %s has the level %s", r->what, n->id, rlhf__note_level_name(n->level));
    }
    check_rule(&v);
    rlhf__verdict_finish(&v);
    rlhf__series_set_finish(&s);
}

void judge_all(const struct run *runs, size_t n) {
    for (size_t i = 0; i < n; i++)
        judged(&runs[i]);
}
