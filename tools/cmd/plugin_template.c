// plugin_template.c: see plugin_template.h.
#include "cmd/plugin_template.h"

#include "base/file.h"

#include <string.h>

void rlhf__template_fill(const struct rlhf__templates *t, const char *text, struct rlhf__buf *out) {
    while (*text) {
        size_t i = 0;
        while (i < t->n && strncmp(text, t->word[i].from, strlen(t->word[i].from)) != 0)
            i++;
        if (i == t->n) {
            rlhf__buf_putc(out, *text++);
        } else {
            rlhf__buf_puts(out, t->word[i].to);
            text += strlen(t->word[i].from);
        }
    }
}

rlhf_status rlhf__template_read(const struct rlhf__templates *t, const char *name,
                                struct rlhf__buf *out, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__path_put(path, "%s/%s", t->dir, name);
    rlhf_status st = rlhf__file_read(path, 1 << 20, &text, err);
    if (st == RLHF_OK) rlhf__template_fill(t, rlhf__buf_text(&text), out);
    if (st == RLHF_OK) st = rlhf__buf_ok(out, err);
    rlhf__buf_finish(&text);
    return st < 0 ? rlhf__error_context(err, "plugin new: a template of the SDK") : st;
}
