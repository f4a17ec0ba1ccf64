// modelfile.c: see modelfile.h.
#include "export/modelfile.h"

#include "model/model.h"
#include "text/unicode.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- the texts that a chat template puts around messages ----

enum { FIRST, SYSTEM, SYSTEM_END, USER, USER_END, ANSWER, ANSWER_END, HEADER, N_TEXTS };

// text[FIRST] precedes the first question of a conversation without a system message. SYSTEM
// precedes a system message, and SYSTEM_END stands between it and the first question. USER precedes
// each later question. HEADER follows the last question and asks for an answer.
struct form {
    struct rlhf__buf text[N_TEXTS];
    int has_system; // 0: the template refuses system messages
};

static void form_finish(struct form *f) {
    for (int i = 0; i < N_TEXTS; i++)
        rlhf__buf_finish(&f->text[i]);
}

// Renders a conversation with the roles "s", "u" and "a". Message i says "KqiX", where i is a
// digit. Returns 0 if the template cannot render it.
static int render(const struct rlhf__chat *chat, const char *roles, int generate,
                  struct rlhf__buf *out) {
    char says[10][5];
    struct rlhf__messages m = {0};
    struct rlhf__error err = {0, ""}; // the template's own message
    int good = 1;
    rlhf__buf_clear(out);
    for (size_t i = 0; roles[i] && i < 10; i++) {
        const int32_t role = roles[i] == 's'   ? RLHF__ROLE_SYSTEM
                             : roles[i] == 'u' ? RLHF__ROLE_USER
                                               : RLHF__ROLE_ASSISTANT;
        snprintf(says[i], sizeof says[i], "Kq%dX", (int)i % 10);
        good &= rlhf__messages_add(&m, role, (rlhf_str){says[i], 4}, &err) == RLHF_OK;
    }
    good = good && rlhf__chat_render(chat, &m, generate, out, &err) == RLHF_OK && !out->bad;
    rlhf__messages_finish(&m);
    return good;
}

// The text between message i - 1 and message i; before the first one if i is 0, and after the last
// one if message i does not exist. ptr is NULL if a message is missing or occurs twice.
static rlhf_str between(const struct rlhf__buf *text, int i, int last) {
    char mark[5];
    const char *from = rlhf__buf_text(text), *to = from + text->len;
    if (i > 0) {
        snprintf(mark, sizeof mark, "Kq%dX", (i - 1) % 10);
        from = strstr(from, mark);
        if (!from || strstr(from + 4, mark)) return (rlhf_str){NULL, 0};
        from += 4;
    }
    if (!last) {
        snprintf(mark, sizeof mark, "Kq%dX", i % 10);
        to = strstr(from, mark);
        if (!to) return (rlhf_str){NULL, 0};
    }
    return (rlhf_str){from, (uint64_t)(to - from)};
}

static int begins(rlhf_str s, rlhf_str with) {
    return s.ptr && with.ptr && s.len >= with.len && memcmp(s.ptr, with.ptr, (size_t)with.len) == 0;
}

static rlhf_str text_of(const struct form *f, int which) {
    return (rlhf_str){rlhf__buf_text(&f->text[which]), f->text[which].len};
}

static void keep(struct form *f, int which, rlhf_str s, uint64_t from) {
    rlhf__buf_put(&f->text[which], s.ptr + from, (size_t)(s.len - from));
}

// Appends the conversation as the form has it.
static void compose(const struct form *f, const char *roles, struct rlhf__buf *out) {
    rlhf__buf_clear(out);
    for (size_t i = 0; roles[i]; i++) {
        const int before = roles[i] == 's'             ? SYSTEM
                           : roles[i] == 'a'           ? ANSWER
                           : i == 0                    ? FIRST
                           : i == 1 && roles[0] == 's' ? SYSTEM_END
                                                       : USER;
        rlhf__buf_put(out, f->text[before].data, f->text[before].len);
        rlhf__buf_printf(out, "Kq%dX", (int)i % 10);
        const int after = roles[i] == 'u' ? USER_END : ANSWER_END;
        if (roles[i] != 's') rlhf__buf_put(out, f->text[after].data, f->text[after].len);
    }
    rlhf__buf_put(out, f->text[HEADER].data, f->text[HEADER].len);
}

static int is_composed(const struct rlhf__chat *chat, const struct form *f, const char *roles,
                       struct rlhf__buf *a, struct rlhf__buf *b) {
    compose(f, roles, b);
    return render(chat, roles, 1, a) && a->len == b->len &&
           memcmp(rlhf__buf_text(a), rlhf__buf_text(b), a->len) == 0;
}

// Learns the texts. Returns 0 if the template does more than put texts around messages.
static int learn(const struct rlhf__chat *chat, struct form *f, struct rlhf__buf *a,
                 struct rlhf__buf *b) {
    if (!render(chat, "u", 1, a) || !render(chat, "u", 0, b)) return 0;
    const rlhf_str first = between(a, 0, 0), rest = between(a, 1, 1), end = between(b, 1, 1);
    if (!first.ptr || !begins(rest, end)) return 0;
    keep(f, FIRST, first, 0);
    keep(f, USER_END, end, 0);
    keep(f, HEADER, rest, end.len);
    if (!render(chat, "ua", 0, a) || !render(chat, "uau", 1, b)) return 0;
    const rlhf_str answer_end = between(a, 2, 1), said = between(b, 1, 0), next = between(b, 2, 0);
    if (!begins(said, text_of(f, USER_END)) || !begins(next, answer_end)) return 0;
    keep(f, ANSWER, said, f->text[USER_END].len);
    keep(f, ANSWER_END, answer_end, 0);
    keep(f, USER, next, answer_end.len);
    f->has_system = render(chat, "su", 1, a);
    if (f->has_system) {
        const rlhf_str before = between(a, 0, 0), middle = between(a, 1, 0);
        if (!before.ptr || !middle.ptr) return 0;
        keep(f, SYSTEM, before, 0);
        keep(f, SYSTEM_END, middle, 0);
    }
    return is_composed(chat, f, "uauau", a, b) &&
           (!f->has_system ||
            (is_composed(chat, f, "su", a, b) && is_composed(chat, f, "suauau", a, b)));
}

// ---- TEMPLATE ----

// If add_bos_token of the file is true, llama.cpp itself adds BOS before the text of a template, so
// the template must not repeat it.
static void drop_bos(struct form *f, const struct rlhf__tokenizer *tok) {
    const int32_t bos = rlhf__tokenizer_info(tok)->bos;
    size_t n = 0;
    char *text = rlhf__tokenizer_has_bos(tok) ? rlhf__tokenizer_text(tok, &bos, 1, 0, &n) : NULL;
    for (int i = FIRST; text && i <= SYSTEM; i++) {
        struct rlhf__buf rest = RLHF__BUF_INIT;
        if (n == 0 || !begins(text_of(f, i), (rlhf_str){text, n})) continue;
        rlhf__buf_put(&rest, f->text[i].data + n, f->text[i].len - n);
        rlhf__buf_finish(&f->text[i]);
        f->text[i] = rest;
    }
    free(text);
}

// Appends a text as a constant of a Go template. Everything but printable ASCII is escaped, so the
// text cannot end the constant or TEMPLATE, and Ollama's reader drops none of it.
static void put_constant(struct rlhf__buf *out, const struct rlhf__buf *text) {
    if (text->len == 0) return;
    rlhf__buf_puts(out, "{{ \"");
    for (size_t i = 0; i < text->len; i++) {
        const unsigned char c = (unsigned char)text->data[i];
        if (c == '\n')
            rlhf__buf_puts(out, "\\n");
        else if (c < 0x20 || c > 0x7E || c == '"' || c == '\\')
            rlhf__buf_printf(out, "\\x%02x", c);
        else
            rlhf__buf_putc(out, (char)c);
    }
    rlhf__buf_puts(out, "\" }}");
}

// Ollama joins messages of the same role that follow each other, and collects all system messages
// in .System. So the first question has index 0 or 1. An answer that is the last message is a
// beginning that the model continues.
static void put_template(struct rlhf__buf *out, const struct form *f) {
    rlhf__buf_puts(out, "TEMPLATE \"\"\"{{- range $i, $_ := .Messages }}"
                        "{{- $last := eq (len (slice $.Messages $i)) 1 }}\n"
                        "{{- if eq .Role \"user\" }}{{ if lt $i 2 }}");
    if (f->has_system) {
        rlhf__buf_puts(out, "{{ if $.System }}");
        put_constant(out, &f->text[SYSTEM]);
        rlhf__buf_puts(out, "{{ $.System }}");
        put_constant(out, &f->text[SYSTEM_END]);
        rlhf__buf_puts(out, "{{ else }}");
    }
    put_constant(out, &f->text[FIRST]);
    if (f->has_system) rlhf__buf_puts(out, "{{ end }}");
    rlhf__buf_puts(out, "\n{{- else }}");
    put_constant(out, &f->text[USER]);
    rlhf__buf_puts(out, "{{ end }}{{ .Content }}");
    put_constant(out, &f->text[USER_END]);
    rlhf__buf_puts(out, "{{ if $last }}");
    put_constant(out, &f->text[HEADER]);
    rlhf__buf_puts(out, "{{ end }}\n{{- else if eq .Role \"assistant\" }}");
    put_constant(out, &f->text[ANSWER]);
    rlhf__buf_puts(out, "{{ .Content }}{{ if not $last }}");
    put_constant(out, &f->text[ANSWER_END]);
    rlhf__buf_puts(out, "{{ end }}\n{{- end }}\n{{- end }}\"\"\"\n");
}

static rlhf_status add_template(const struct rlhf__tokenizer *tok, struct rlhf__buf *out,
                                struct rlhf__error *err) {
    const struct rlhf__chat *chat = rlhf__tokenizer_chat(tok);
    struct form f = {.has_system = 0};
    struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
    const int known = rlhf__chat_known(chat) != NULL;
    if (!known && !rlhf__chat_unknown(chat)) {
        rlhf__buf_puts(out, "# No TEMPLATE: the model has no chat template.\n");
    } else if (!known || !learn(chat, &f, &a, &b)) {
        rlhf__buf_puts(out, "# No TEMPLATE: the model's chat template does more than put texts "
                            "around messages.\n# Ollama then takes the nearest one that it has, "
                            "which may differ, or none.\n");
    } else {
        drop_bos(&f, tok);
        if (!f.has_system)
            rlhf__buf_puts(out, "# The model's chat template refuses system messages; TEMPLATE "
                                "leaves them out.\n");
        if (rlhf__chat_lists_tools(chat))
            rlhf__buf_puts(out, "# TEMPLATE has no tools; the model's chat template has.\n");
        if (rlhf__chat_reads_date(chat))
            rlhf__buf_puts(out, "# TEMPLATE does not know today's date; the model's chat template "
                                "does.\n");
        put_template(out, &f);
    }
    rlhf_status st = rlhf__buf_ok(&a, err);
    if (st == RLHF_OK) st = rlhf__buf_ok(&b, err);
    for (int i = 0; st == RLHF_OK && i < N_TEXTS; i++)
        st = rlhf__buf_ok(&f.text[i], err);
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
    form_finish(&f);
    return st;
}

// ---- the file ----

// Returns 1 if Ollama's reader keeps the character: letters, marks, numbers, punctuation, symbols
// and the ASCII space (Go's strconv.IsPrint). It drops others, among them the no-break space.
static int is_kept(uint32_t c) {
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return c == ' ' || (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_SO);
}

// Returns 1 if the reader keeps all n bytes. `also`: further ASCII characters that it keeps.
static int keeps(const char *text, size_t n, const char *also) {
    uint32_t c;
    for (size_t i = 0, bytes; i < n; i += bytes) {
        bytes = rlhf__utf8_next(text + i, n - i, &c, NULL);
        if (bytes == 0 || (!is_kept(c) && !(c > 0 && c < 0x80 && strchr(also, (int)c)))) return 0;
    }
    return 1;
}

// In a value in quotes nothing is escaped: it ends at the last quote of its line, and in three
// quotes at the next three. Only there, the reader keeps line ends and tabs.
static int can_hold(const char *text, size_t n) {
    if (strlen(text) != n || strstr(text, "\"\"\"") || text[0] == '"' || text[n - 1] == '"')
        return 0;
    return keeps(text, n, "\n\t");
}

// Writes a line with a path. Without quotes, spaces at its end would not count.
static void put_path(struct rlhf__buf *out, const char *name, const char *path) {
    const size_t n = strlen(path);
    const int quoted = n > 0 && (path[0] == '"' || path[n - 1] == ' ');
    if (keeps(path, n, ""))
        rlhf__buf_printf(out, quoted ? "%s \"%s\"\n" : "%s %s\n", name, path);
    else
        rlhf__buf_printf(out,
                         "# %s is missing: no line can hold the path, because it has characters "
                         "that Ollama's reader drops. Rename the file.\n",
                         name);
}

static void add_stop(const struct rlhf__tokenizer *tok, int32_t id, struct rlhf__buf *out) {
    size_t n = 0;
    char *text = rlhf__tokenizer_text(tok, &id, 1, 0, &n);
    if (!text) out->bad = 1;
    if (text && n > 0 && !can_hold(text, n)) {
        rlhf__buf_printf(out, "# Token %d also ends responses, but no line can hold its text.\n",
                         (int)id);
    } else if (text && n > 0) {
        const char *quote = strpbrk(text, "\"\n") ? "\"\"\"" : "\"";
        rlhf__buf_printf(out, "PARAMETER stop %s%s%s\n", quote, text, quote);
    }
    free(text);
}

rlhf_status rlhf__modelfile_make(const struct rlhf__modelfile *m, struct rlhf__buf *out,
                                 struct rlhf__error *err) {
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__ends ends;
    put_path(out, "FROM", m->from);
    if (m->adapter) put_path(out, "ADAPTER", m->adapter);
    rlhf_status st = rlhf__tokenizer_open(m->dir, &tok, err);
    if (st == RLHF_OK) st = rlhf__ends_read(m->dir, m->config, tok, &ends, err);
    if (st == RLHF_OK) st = add_template(tok, out, err);
    for (int32_t i = 0; st == RLHF_OK && i < ends.n; i++)
        add_stop(tok, ends.id[i], out);
    rlhf__tokenizer_close(tok);
    return st == RLHF_OK ? rlhf__buf_ok(out, err) : st;
}
