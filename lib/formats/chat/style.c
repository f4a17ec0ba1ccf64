// style.c: see style.h.
#include "chat/style.h"

#include "chat/jinja_value.h"

#include <stdlib.h>
#include <string.h>

static const struct rlhf__form forms[] = {
    {.name = "chatml",
     .open = "<|im_start|>",
     .close = "\n",
     .end = "<|im_end|>",
     .after = "\n",
     .model = "assistant"},
    {.name = "llama2",
     .flags = RLHF__STYLE_LLAMA2 | RLHF__STYLE_BOS | RLHF__STYLE_EOS | RLHF__STYLE_ALTERNATE |
              RLHF__STYLE_TRIM},
    {.name = "llama3",
     .open = "<|start_header_id|>",
     .close = "<|end_header_id|>\n\n",
     .end = "<|eot_id|>",
     .after = "",
     .model = "assistant",
     .flags = RLHF__STYLE_BOS | RLHF__STYLE_TRIM},
    {.name = "qwen2.5",
     .open = "<|im_start|>",
     .close = "\n",
     .end = "<|im_end|>",
     .after = "\n",
     .model = "assistant",
     .standard = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
    {.name = "qwen3",
     .open = "<|im_start|>",
     .close = "\n",
     .end = "<|im_end|>",
     .after = "\n",
     .model = "assistant",
     .flags = RLHF__STYLE_THINK | RLHF__STYLE_REASONING},
    {.name = "gemma",
     .open = "<start_of_turn>",
     .close = "\n",
     .end = "<end_of_turn>",
     .after = "\n",
     .model = "model",
     .flags = RLHF__STYLE_BOS | RLHF__STYLE_TRIM | RLHF__STYLE_ALTERNATE | RLHF__STYLE_NO_SYSTEM},
    {.name = "zephyr",
     .open = "<|",
     .close = "|>\n",
     .after = "\n",
     .model = "assistant",
     .flags = RLHF__STYLE_EOS},
    {.name = "plain", .flags = RLHF__STYLE_CONTENTS | RLHF__STYLE_EOS},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

const struct rlhf__form *rlhf__form_at(size_t i) { return i < N_FORMS ? &forms[i] : NULL; }

const struct rlhf__form *rlhf__form_find(const char *name) {
    for (size_t i = 0; i < N_FORMS; i++)
        if (strcmp(forms[i].name, name) == 0) return &forms[i];
    return NULL;
}

rlhf_status rlhf__style_init(struct rlhf__style *s, const struct rlhf__form *form, const char *bos,
                             const char *eos, struct rlhf__error *err) {
    *s = (struct rlhf__style){.form = form, .flags = form->flags, .bos = bos, .eos = eos};
    if (form->standard && !(s->standard = strdup(form->standard)))
        return RLHF__NOMEM(err, "out of memory for a chat template");
    return RLHF_OK;
}

void rlhf__style_finish(struct rlhf__style *s) {
    free(s->standard);
    free(s->preface);
    *s = (struct rlhf__style){0};
}

// A conversation on its way.
struct writer {
    const struct rlhf__style *s;
    const struct rlhf__message *m;
    size_t n;
    struct rlhf__turns *out;
    struct rlhf__error *err;
};

static void put(struct writer *w, const char *text) {
    if (text) rlhf__buf_puts(&w->out->text, text);
}

static void put_str(struct writer *w, rlhf_str s) {
    rlhf__buf_put(&w->out->text, s.ptr, (size_t)s.len);
}

static rlhf_str content_of(const struct writer *w, size_t i) {
    int trim = (w->s->flags & RLHF__STYLE_TRIM) != 0;
    return rlhf__space_trim(w->m[i].content, trim, trim);
}

static int has_system(const struct writer *w) { return w->m[0].role == RLHF__ROLE_SYSTEM; }

// ---- what a template refuses ----

static rlhf_status check(const struct writer *w) {
    const uint32_t flags = w->s->flags;
    const char *name = w->s->form->name;
    size_t first = (size_t)has_system(w);
    if ((flags & RLHF__STYLE_BOS) && !w->s->bos)
        return rlhf__fail(w->err, RLHF_E_INVALID,
                          "the chat template %s begins with the bos token, and the tokenizer has "
                          "none",
                          name);
    if ((flags & RLHF__STYLE_EOS) && !w->s->eos)
        return rlhf__fail(w->err, RLHF_E_INVALID,
                          "the chat template %s ends turns with the eos token, and the tokenizer "
                          "has none",
                          name);
    if (first && (flags & RLHF__STYLE_NO_SYSTEM))
        return rlhf__fail(w->err, RLHF_E_INVALID,
                          "messages[0]: the chat template %s has no role system", name);
    if ((flags & RLHF__STYLE_ALTERNATE) && first == w->n)
        return rlhf__fail(w->err, RLHF_E_INVALID,
                          "the chat template %s wants a user's turn behind the system's", name);
    for (size_t i = 0; !(flags & RLHF__STYLE_REASONING) && i < w->n; i++)
        if (w->m[i].thoughts.ptr)
            return rlhf__fail(w->err, RLHF_E_INVALID,
                              "messages[%zu]: the chat template %s does not write the field "
                              "'reasoning_content'",
                              i, name);
    for (size_t i = first; (flags & RLHF__STYLE_ALTERNATE) && i < w->n; i++) {
        int32_t wanted = (i - first) % 2 ? RLHF__ROLE_ASSISTANT : RLHF__ROLE_USER;
        if (w->m[i].role != wanted)
            return rlhf__fail(
                w->err, RLHF_E_INVALID,
                "messages[%zu] is the %s's, where the chat template %s wants the %s's: "
                "user and assistant alternate",
                i, rlhf__role_name(w->m[i].role), name, rlhf__role_name(wanted));
    }
    return RLHF_OK;
}

// ---- thoughts ----

static int begins(rlhf_str s, const char *part) {
    return s.len >= strlen(part) && memcmp(s.ptr, part, strlen(part)) == 0;
}

static int ends(rlhf_str s, const char *part) {
    size_t n = strlen(part);
    return s.len >= n && memcmp(s.ptr + (s.len - n), part, n) == 0;
}

static rlhf_str without_lines(rlhf_str s, int left, int right) {
    for (; left && s.len && *s.ptr == '\n'; s.len--)
        s.ptr++;
    while (right && s.len && s.ptr[s.len - 1] == '\n')
        s.len--;
    return s;
}

// Place of the first (last: the last) `part` in s; s.len when there is none.
static size_t place(rlhf_str s, const char *part, int last) {
    size_t n = strlen(part), found = (size_t)s.len;
    for (size_t i = 0; i + n <= s.len; i++)
        if (memcmp(s.ptr + i, part, n) == 0) {
            found = i;
            if (!last) break;
        }
    return found;
}

// The last question: a user's turn that is not what a tool answered.
static size_t last_question(const struct writer *w) {
    for (size_t i = w->n; i-- > 0;)
        if (w->m[i].role == RLHF__ROLE_USER && !(begins(w->m[i].content, "<tool_response>") &&
                                                 ends(w->m[i].content, "</tool_response>")))
            return i;
    return w->n - 1;
}

// Qwen3: an answer is its thoughts, of a member of their own or between <think> and </think>, and
// what is behind them.
static void put_answer(struct writer *w, size_t i) {
    static const char open[] = "<think>", close[] = "</think>";
    rlhf_str all = content_of(w, i), rest = all, thoughts = {"", 0};
    size_t end = place(all, close, 0);
    if (w->m[i].thoughts.ptr) {
        thoughts = w->m[i].thoughts;
    } else if (end < all.len) {
        size_t behind = place(all, close, 1) + strlen(close);
        thoughts = without_lines((rlhf_str){all.ptr, end}, 0, 1);
        size_t begin = place(thoughts, open, 1);
        if (begin < thoughts.len)
            begin += strlen(open);
        else
            begin = 0;
        thoughts = without_lines((rlhf_str){thoughts.ptr + begin, thoughts.len - begin}, 1, 0);
        rest = without_lines((rlhf_str){all.ptr + behind, all.len - behind}, 1, 0);
    }
    int shown = i > last_question(w) && (i + 1 == w->n || thoughts.len);
    if (!shown && !(w->s->flags & RLHF__STYLE_THINK_ALL)) {
        put_str(w, rest);
        return;
    }
    put(w, "<think>\n");
    put_str(w, without_lines(thoughts, 1, 1));
    put(w, "\n</think>\n\n");
    put_str(w, without_lines(rest, 1, 0));
}

// ---- turns with headers ----

static void put_header(struct writer *w, int32_t role) {
    put(w, w->s->form->open);
    put(w, role == RLHF__ROLE_ASSISTANT ? w->s->form->model : rlhf__role_name(role));
    put(w, w->s->form->close);
}

static rlhf_status put_turn(struct writer *w, size_t i) {
    const struct rlhf__form *f = w->s->form;
    const int32_t role = w->m[i].role;
    put_header(w, role);
    size_t from = w->out->text.len;
    if (i == 0 && role == RLHF__ROLE_SYSTEM) put(w, w->s->preface);
    if (i == 1 && has_system(w) && (w->s->flags & RLHF__STYLE_SYSTEM_IN_USER)) {
        put_str(w, w->m[0].content);
        put(w, "\n\n");
    }
    if (role == RLHF__ROLE_ASSISTANT && (w->s->flags & RLHF__STYLE_THINK))
        put_answer(w, i);
    else
        put_str(w, content_of(w, i));
    put(w, f->end ? f->end : w->s->eos);
    size_t to = w->out->text.len;
    put(w, f->after);
    return role == RLHF__ROLE_ASSISTANT ? rlhf__turns_add(w->out, from, to, w->err) : RLHF_OK;
}

static rlhf_status put_turns(struct writer *w, int generate) {
    if (!has_system(w) && w->s->standard) {
        put_header(w, RLHF__ROLE_SYSTEM);
        put(w, w->s->standard);
        put(w, w->s->form->end ? w->s->form->end : w->s->eos);
        put(w, w->s->form->after);
    }
    for (size_t i = 0; i < w->n; i++)
        if (i || !has_system(w) || !(w->s->flags & RLHF__STYLE_SYSTEM_IN_USER))
            RLHF_TRY(put_turn(w, i));
    if (generate) put_header(w, RLHF__ROLE_ASSISTANT);
    return RLHF_OK;
}

// ---- without headers ----

static rlhf_status put_llama2(struct writer *w) {
    size_t first = (size_t)has_system(w);
    for (size_t i = first; i < w->n; i++) {
        int answer = w->m[i].role == RLHF__ROLE_ASSISTANT;
        size_t from = w->out->text.len;
        if (!answer) put(w, w->s->bos);
        put(w, answer ? " " : "[INST] ");
        if (i == 1 && first) { // system and question are trimmed together
            struct rlhf__buf both = RLHF__BUF_INIT;
            rlhf__buf_puts(&both, "<<SYS>>\n");
            rlhf__buf_put(&both, w->m[0].content.ptr, (size_t)w->m[0].content.len);
            rlhf__buf_puts(&both, "\n<</SYS>>\n\n");
            rlhf__buf_put(&both, w->m[1].content.ptr, (size_t)w->m[1].content.len);
            put_str(w, rlhf__space_trim((rlhf_str){rlhf__buf_text(&both), both.len}, 1, 1));
            w->out->text.bad |= both.bad;
            rlhf__buf_free(&both);
        } else {
            put_str(w, content_of(w, i));
        }
        put(w, answer ? " " : " [/INST]");
        if (!answer) continue;
        put(w, w->s->eos);
        RLHF_TRY(rlhf__turns_add(w->out, from, w->out->text.len, w->err));
    }
    return RLHF_OK;
}

static rlhf_status put_contents(struct writer *w) {
    for (size_t i = 0; i < w->n; i++) {
        size_t from = w->out->text.len;
        put_str(w, content_of(w, i));
        if (w->m[i].role != RLHF__ROLE_ASSISTANT) continue;
        put(w, w->s->eos);
        RLHF_TRY(rlhf__turns_add(w->out, from, w->out->text.len, w->err));
    }
    return RLHF_OK;
}

// What {% generation %} blocks of the model's own template add to turns.
static void move_ends(const struct rlhf__style *s, struct rlhf__turns *t, size_t first) {
    for (size_t i = first; i < t->n; i++) {
        t->item[i].from = (size_t)((int64_t)t->item[i].from + s->from);
        t->item[i].to = (size_t)((int64_t)t->item[i].to + s->to);
        if (t->item[i].to > t->text.len) t->item[i].to = t->text.len;
    }
}

rlhf_status rlhf__style_render(const struct rlhf__style *s, const struct rlhf__message *m, size_t n,
                               int generate, struct rlhf__turns *out, struct rlhf__error *err) {
    struct writer w = {s, m, n, out, err};
    size_t first = out->n;
    RLHF_TRY(check(&w));
    if (s->flags & RLHF__STYLE_LLAMA2) {
        RLHF_TRY(put_llama2(&w));
    } else {
        if (s->flags & RLHF__STYLE_BOS) put(&w, s->bos);
        RLHF_TRY(s->flags & RLHF__STYLE_CONTENTS ? put_contents(&w) : put_turns(&w, generate));
    }
    move_ends(s, out, first);
    return rlhf__buf_ok(&out->text, err);
}
