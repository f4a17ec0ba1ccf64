// template.c: see template.h.
#include "chat/template.h"

#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__template_parse(struct rlhf__template *t, const char *text, size_t n,
                                 const json_t *vars, struct rlhf__error *err) {
    t->vars = json_copy((json_t *)(uintptr_t)vars);
    if (!t->vars) return RLHF__NOMEM(err, "out of memory for a chat template");
    return rlhf__jinja_parse(text, n, &t->jinja, err);
}

void rlhf__template_finish(struct rlhf__template *t) {
    rlhf__jinja_finish(&t->jinja);
    json_decref(t->vars);
    rlhf__buf_finish(&t->before);
    rlhf__buf_finish(&t->header);
    rlhf__buf_finish(&t->lead);
    rlhf__template_forget_ends(t);
    *t = (struct rlhf__template){0};
}

rlhf_status rlhf__template_render(const struct rlhf__template *t, const struct rlhf__messages *m,
                                  int generate, struct rlhf__jinja_result *out,
                                  struct rlhf__error *err) {
    const struct rlhf__jinja_input in = {.vars = t->vars,
                                         .row_vars = m->vars,
                                         .date = t->date,
                                         .tools = m->tools,
                                         .messages = m->item,
                                         .n = m->n,
                                         .generate = generate};
    rlhf_status st = rlhf__jinja_run(&t->jinja, &in, out, err);
    if (st == RLHF_E_UNSUPPORTED && err) err->code = st = RLHF_E_INVALID;
    if (st == RLHF_OK && out->raised) st = rlhf__fail(err, RLHF_E_INVALID, "%s", out->why);
    return st;
}

// ---- texts ----

rlhf_str rlhf__template_text(const struct rlhf__jinja_result *r) {
    return (rlhf_str){rlhf__buf_text(&r->turns.text), r->turns.text.len};
}

size_t rlhf__template_common(rlhf_str a, rlhf_str b) {
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n])
        n++;
    return n;
}

// ---- what ends a turn ----

rlhf_str rlhf__template_token_at(const struct rlhf__template *t, rlhf_str s) {
    const json_t *eos = json_object_get(t->vars, "eos_token");
    const size_t n = json_string_length(eos);
    s = rlhf__space_trim(s, 1, 0);
    const size_t special = t->special.at ? t->special.at(t->special.tokenizer, s) : 0;
    if (special) return (rlhf_str){s.ptr, special};
    if (n && s.len >= n && memcmp(s.ptr, json_string_value(eos), n) == 0)
        return (rlhf_str){s.ptr, n};
    if (!s.len || (*s.ptr != '<' && *s.ptr != '[')) return (rlhf_str){s.ptr, 0};
    const char *end = memchr(s.ptr, *s.ptr == '<' ? '>' : ']', (size_t)s.len);
    return (rlhf_str){s.ptr, end ? (uint64_t)(end + 1 - s.ptr) : 0};
}

size_t rlhf__template_end(const struct rlhf__template *t, rlhf_str s) {
    const rlhf_str from = rlhf__space_trim(s, 1, 0);
    size_t longest = 0;
    for (int32_t i = 0; i < t->n_ends; i++) {
        const size_t n = strlen(t->ends[i]);
        if (n > longest && from.len >= n && memcmp(from.ptr, t->ends[i], n) == 0) longest = n;
    }
    return longest ? (size_t)(from.ptr - s.ptr) + longest : 0;
}

void rlhf__template_forget_ends(struct rlhf__template *t) {
    free(t->end);
    t->end = NULL;
    while (t->n_ends > 0)
        free(t->ends[--t->n_ends]);
}
