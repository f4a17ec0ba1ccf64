// probe.c: see probe.h.
#include "chat/probe.h"

#include "chat/jinja_parse.h"
#include "chat/jinja_run.h"
#include "chat/style.h"

#include <stdlib.h>
#include <string.h>

// ---- thoughts ----

// Conversations of one question and up to two answers, then maybe a question: thoughts (NULL: the
// message has none) and content of each answer.
static const struct {
    const char *thoughts, *content;
    const char *more_thoughts, *more; // more NULL: one answer
    int asks;                         // 1: another question ends it
} thought_probes[] = {
    {"T", "A", NULL, NULL, 0},
    {"T", "A", NULL, NULL, 1},
    {"", "<think>\nU\n</think>\n\nA", NULL, NULL, 0},
    {"\n\nT\n", "\n\nA", NULL, NULL, 0},
    {"\n", "\nA", "V", "\nB", 0},
    {"T", "<think>U</think>A", NULL, "<think>V</think>B", 0},
    {"", "A", "", "B", 0},
};

static rlhf_status say(json_t *list, struct rlhf__messages *m, int32_t role, const char *content,
                       const char *thoughts, struct rlhf__error *err) {
    struct rlhf__message x = {.role = role, .content = {content, strlen(content)}};
    json_t *v = json_pack("{s:s, s:s}", "role", rlhf__role_name(role), "content", content);
    if (thoughts) {
        x.thoughts = (rlhf_str){thoughts, strlen(thoughts)};
        json_object_set_new(v, "reasoning_content", json_string(thoughts));
    }
    if (json_array_append_new(list, v) != 0) return RLHF__NOMEM(err, "out of memory for messages");
    return rlhf__messages_put(m, &x, err);
}

static rlhf_status make(size_t i, json_t *list, struct rlhf__messages *m, struct rlhf__error *err) {
    RLHF_TRY(say(list, m, RLHF__ROLE_USER, "Q", NULL, err));
    RLHF_TRY(say(list, m, RLHF__ROLE_ASSISTANT, thought_probes[i].content,
                 thought_probes[i].thoughts, err));
    if (thought_probes[i].more)
        RLHF_TRY(say(list, m, RLHF__ROLE_ASSISTANT, thought_probes[i].more,
                     thought_probes[i].more_thoughts, err));
    return thought_probes[i].asks ? say(list, m, RLHF__ROLE_USER, "R", NULL, err) : RLHF_OK;
}

// 1 when the style writes m as the template does.
static int same_thoughts(const struct rlhf__jinja *j, const json_t *vars,
                         const struct rlhf__style *s, const struct rlhf__messages *m) {
    struct rlhf__error no = {0, ""};
    struct rlhf__turns mine = {0};
    struct rlhf__jinja_result got = {.raised = 0};
    int yes =
        rlhf__jinja_run(j, vars, &got, &no) == RLHF_OK && !got.raised &&
        rlhf__style_render(s, m->item, m->n, 0, &mine, &no) == RLHF_OK &&
        got.turns.text.len == mine.text.len &&
        memcmp(rlhf__buf_text(&got.turns.text), rlhf__buf_text(&mine.text), mine.text.len) == 0;
    rlhf__turns_finish(&got.turns);
    rlhf__turns_finish(&mine);
    return yes;
}

// Drops RLHF__STYLE_REASONING from *s where the template, run on conversations with thoughts, says
// something else. vars as for rlhf__probe_style; its messages and add_generation_prompt are set
// here. Errors: RLHF_E_NOMEM.
static rlhf_status check_thoughts(const struct rlhf__jinja *j, json_t *vars, struct rlhf__style *s,
                                  struct rlhf__error *err) {
    for (size_t i = 0;
         i < sizeof thought_probes / sizeof *thought_probes && s->flags & RLHF__STYLE_REASONING;
         i++) {
        struct rlhf__messages m = {0};
        json_t *list = json_array();
        rlhf_status st = make(i, list, &m, err);
        json_object_set_new(vars, "messages", list);
        json_object_set_new(vars, "add_generation_prompt", json_false());
        if (st == RLHF_OK && !same_thoughts(j, vars, s, &m))
            s->flags &= ~(uint32_t)RLHF__STYLE_REASONING;
        rlhf__messages_finish(&m);
        RLHF_TRY(st);
    }
    return RLHF_OK;
}

// ---- styles ----

enum { TURNS_MAX = 7, ENDS_MAX = 16 };

#define S "s"
#define U "u"
#define A "a"
// Role and content in turn, NULL-ended.
static const char *const probes[][2 * TURNS_MAX + 1] = {
    {U, "Q"}, // what stands before a conversation; the first three are looked at by name
    {S, "S", U, "Q"},
    {U, "Q", U, "R"},
    {U, "Q", A, "A"},
    {U, "Q", A, "A", U, "R"},
    {S, "S", U, "Q", A, "A", U, "R", A, "B"},
    {U, "Q", A, "A", U, "R", A, "B", U, "T"},
    {S, " S\n", U, "\n Q \t", A, " A\n\n", U, " R\xc2\xa0"},
    {U, "Q", A, "\n\nA "},
    {U, ""},
    {S, "", U, "Q"},
    {U, "Q", A, ""},
    {U, "Q", A, "", U, "R"},
    {A, "A", U, "Q"},
    {U, "Q", A, "A", A, "B"},
    {U, "Q", S, "S", A, "A"},
    {U, "Q", A, "A", S, "S", U, "R"},
    {S, "S", S, "T", U, "Q"},
    {S, "S", A, "A"},
    {U, "{{ Q }} {% Q %} \xc3\xa9\xe2\x80\x83<|Q|> '\"\\n"},
    {U, "Q", A, "<think>\nT\n</think>\n\nA"},
    {U, "Q", A, "<think>\nT\n</think>\n\nA", U, "R"},
    {U, "Q", A, "<think>\nT\n</think>\n\nA", U, "R", A, "B"},
    {U, "Q", A, "\nT\n</think>A", A, "B"},
    {U, "Q", A, "<think>T</think>\n\nA<think>V</think>B"},
    {U, "Q", A, "<think>\nT\n</think>\n\nA", U, "<tool_response>R</tool_response>", A, "B"},
    {U, "Q", A, "A [/INST] <<SYS>> </s>"},
};
#undef S
#undef U
#undef A
enum { N_PROBES = sizeof probes / sizeof *probes, BARE = 0, SYSTEM = 1, TWICE = 2 };

struct probing {
    struct rlhf__jinja jinja;
    json_t *vars;
    const char *bos, *eos;
    struct rlhf__jinja_result got[N_PROBES][2]; // [add_generation_prompt]
    struct rlhf__error *err;
};

static rlhf_status read_probe(const char *const *probe, struct rlhf__messages *m, json_t *list,
                              struct rlhf__error *err) {
    for (; *probe; probe += 2) {
        int32_t role = **probe == 's'   ? RLHF__ROLE_SYSTEM
                       : **probe == 'u' ? RLHF__ROLE_USER
                                        : RLHF__ROLE_ASSISTANT;
        RLHF_TRY(rlhf__messages_add(m, role, (rlhf_str){probe[1], strlen(probe[1])}, err));
        if (list)
            json_array_append_new(
                list, json_pack("{s:s, s:s}", "role", rlhf__role_name(role), "content", probe[1]));
    }
    return RLHF_OK;
}

// What the template makes of each probe.
static rlhf_status run_all(struct probing *p) {
    for (size_t i = 0; i < N_PROBES; i++) {
        struct rlhf__messages m = {0};
        json_t *list = json_array();
        rlhf_status st = read_probe(probes[i], &m, list, p->err);
        rlhf__messages_finish(&m);
        json_object_set_new(p->vars, "messages", list);
        for (int generate = 0; st == RLHF_OK && generate < 2; generate++) {
            json_object_set_new(p->vars, "add_generation_prompt", json_boolean(generate));
            st = rlhf__jinja_run(&p->jinja, p->vars, &p->got[i][generate], p->err);
        }
        RLHF_TRY(st);
    }
    return RLHF_OK;
}

// ---- comparing ----

// 1 when a style makes of probe i what the template does.
static int same(const struct probing *p, const struct rlhf__style *s, size_t i, int generate) {
    struct rlhf__messages m = {0};
    struct rlhf__turns mine = {0};
    struct rlhf__error no = {0};
    const struct rlhf__jinja_result *got = &p->got[i][generate];
    rlhf_status st = read_probe(probes[i], &m, NULL, &no);
    if (st == RLHF_OK) st = rlhf__style_render(s, m.item, m.n, generate, &mine, &no);
    // What the style refuses nobody renders.
    int yes = st == RLHF_E_INVALID;
    if (st == RLHF_OK)
        yes = !got->raised && got->turns.text.len == mine.text.len &&
              memcmp(rlhf__buf_text(&got->turns.text), rlhf__buf_text(&mine.text), mine.text.len) ==
                  0;
    rlhf__turns_finish(&mine);
    rlhf__messages_finish(&m);
    return yes;
}

static int same_all(const struct probing *p, const struct rlhf__style *s) {
    for (size_t i = 0; i < N_PROBES; i++)
        if (!same(p, s, i, 0) || !same(p, s, i, 1)) return 0;
    return 1;
}

// ---- what differs within a form ----

static int starts(const char *text, size_t n, const char *with) {
    return n >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

// The system's turn that stands before the bare probe becomes the style's. 0 = there is none.
static rlhf_status learn_standard(const struct probing *p, struct rlhf__style *s, int *found) {
    const struct rlhf__buf *got = &p->got[BARE][0].turns.text;
    const struct rlhf__form *f = s->form;
    const char *text = rlhf__buf_text(got), *bos = s->flags & RLHF__STYLE_BOS ? s->bos : NULL;
    const char *end = f->end ? f->end : s->eos;
    struct rlhf__buf head = RLHF__BUF_INIT, tail = RLHF__BUF_INIT;
    *found = 0;
    if (!f->open || !end || p->got[BARE][0].raised) return RLHF_OK;
    rlhf__buf_printf(&head, "%s%ssystem%s", bos ? bos : "", f->open, f->close);
    rlhf__buf_printf(&tail, "%s%s%suser%sQ%s%s", end, f->after, f->open, f->close, end, f->after);
    rlhf_status st = rlhf__buf_ok(&head, p->err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&tail, p->err);
    if (st == RLHF_OK && got->len >= head.len + tail.len && starts(text, got->len, head.data) &&
        memcmp(text + got->len - tail.len, tail.data, tail.len) == 0) {
        free(s->standard);
        s->standard = strndup(text + head.len, got->len - head.len - tail.len);
        *found = s->standard != NULL;
        if (!*found) st = RLHF__NOMEM(p->err, "out of memory for a chat template");
    }
    rlhf__buf_free(&head);
    rlhf__buf_free(&tail);
    return st;
}

// A form's variants: with and without bos, an own system's turn, thoughts always, the system's
// content in the first user's turn.
enum {
    VARIANT_BOS = 1,
    VARIANT_STANDARD = 2,
    VARIANT_PREFACE = 4,
    VARIANT_OTHER = 8,
    VARIANTS = 16
};

// 0 = the form has no such variant.
static rlhf_status vary(const struct probing *p, int variant, struct rlhf__style *s, int *is) {
    *is = 1;
    if (variant & VARIANT_BOS) s->flags ^= RLHF__STYLE_BOS;
    if ((s->flags & RLHF__STYLE_BOS && !s->bos) || (s->flags & RLHF__STYLE_EOS && !s->eos)) *is = 0;
    uint32_t other = s->flags & RLHF__STYLE_THINK       ? RLHF__STYLE_THINK_ALL
                     : s->flags & RLHF__STYLE_NO_SYSTEM ? RLHF__STYLE_SYSTEM_IN_USER
                                                        : 0;
    if (!(s->flags & RLHF__STYLE_LLAMA2)) // what it refuses is what it raises on
        s->flags &= ~(uint32_t)(RLHF__STYLE_ALTERNATE | RLHF__STYLE_NO_SYSTEM);
    if (p->got[TWICE][0].raised) s->flags |= RLHF__STYLE_ALTERNATE;
    if (p->got[SYSTEM][0].raised) s->flags |= RLHF__STYLE_NO_SYSTEM;
    if (variant & VARIANT_OTHER && !other) *is = 0;
    if (variant & VARIANT_OTHER) s->flags |= other;
    if (*is && variant & VARIANT_STANDARD) RLHF_TRY(learn_standard(p, s, is));
    if (*is && variant & VARIANT_PREFACE) {
        *is = s->standard != NULL;
        s->preface = s->standard ? strdup(s->standard) : NULL;
        if (*is && !s->preface) return RLHF__NOMEM(p->err, "out of memory for a chat template");
    }
    return RLHF_OK;
}

// What {% generation %} blocks add to the turns, the same everywhere.
static rlhf_status learn_ends(const struct probing *p, struct rlhf__style *s) {
    int learned = 0;
    for (size_t i = 0; i < N_PROBES; i++) {
        struct rlhf__messages m = {0};
        struct rlhf__turns mine = {0};
        struct rlhf__error no = {0};
        const struct rlhf__turns *got = &p->got[i][0].turns;
        rlhf_status st = read_probe(probes[i], &m, NULL, p->err);
        struct rlhf__style bare = *s;
        bare.from = bare.to = 0;
        if (st == RLHF_OK && got->n &&
            rlhf__style_render(&bare, m.item, m.n, 0, &mine, &no) == RLHF_OK) {
            for (size_t k = 0; k < got->n && st == RLHF_OK; k++) {
                int64_t from =
                    k < mine.n ? (int64_t)got->item[k].from - (int64_t)mine.item[k].from : 99;
                int64_t to = k < mine.n ? (int64_t)got->item[k].to - (int64_t)mine.item[k].to : 99;
                if (!learned && llabs(from) <= ENDS_MAX && llabs(to) <= ENDS_MAX) {
                    s->from = (int32_t)from;
                    s->to = (int32_t)to;
                    learned = 1;
                }
                if (got->n != mine.n || from != s->from || to != s->to)
                    st = rlhf__fail(p->err, RLHF_E_UNSUPPORTED,
                                    "its generation blocks are no assistants' turns");
            }
        }
        rlhf__turns_finish(&mine);
        rlhf__messages_finish(&m);
        RLHF_TRY(st);
    }
    return RLHF_OK;
}

static rlhf_status search(const struct probing *p, struct rlhf__style *out) {
    const struct rlhf__form *form;
    for (int variant = 0; variant < VARIANTS; variant++)
        for (size_t i = 0; (form = rlhf__form_at(i)) != NULL; i++) {
            struct rlhf__style s;
            int is = 0;
            rlhf_status st = rlhf__style_init(&s, form, p->bos, p->eos, p->err);
            if (st == RLHF_OK) st = vary(p, variant, &s, &is);
            if (st == RLHF_OK && is && same_all(p, &s)) {
                *out = s;
                RLHF_TRY(learn_ends(p, out));
                return check_thoughts(&p->jinja, p->vars, out, p->err);
            }
            rlhf__style_finish(&s);
            RLHF_TRY(st);
        }
    return rlhf__fail(p->err, RLHF_E_UNSUPPORTED,
                      "what it produces is none of the known templates");
}

rlhf_status rlhf__probe_style(const char *text, size_t n, const json_t *vars, const char *bos,
                              const char *eos, struct rlhf__style *out, struct rlhf__error *err) {
    struct probing *p = calloc(1, sizeof *p);
    if (!p) return RLHF__NOMEM(err, "out of memory for a chat template");
    *out = (struct rlhf__style){0};
    p->vars = json_copy((json_t *)(uintptr_t)vars);
    p->bos = bos;
    p->eos = eos;
    p->err = err;
    rlhf_status st = rlhf__jinja_parse(text, n, &p->jinja, err);
    if (st == RLHF_OK) st = run_all(p);
    if (st == RLHF_OK) st = search(p, out);
    if (st != RLHF_OK) rlhf__style_finish(out);
    for (size_t i = 0; i < N_PROBES; i++)
        for (int k = 0; k < 2; k++)
            rlhf__turns_finish(&p->got[i][k].turns);
    rlhf__jinja_finish(&p->jinja);
    json_decref(p->vars);
    free(p);
    return st;
}
