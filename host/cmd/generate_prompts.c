// generate_prompts.c: see generate_prompts.h.
#include "cmd/generate_prompts.h"

#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int rlhf__stdin_is_fed(void) {
    struct stat st;
    return fstat(STDIN_FILENO, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

static rlhf_status take_rows(struct rlhf__typed_prompts *p, const char *file,
                             const struct rlhf__loading *loading, struct rlhf__error *err) {
    struct rlhf__dataset_opts o = {.paths = &file,
                                   .n_paths = 1,
                                   .setting = "--prompts",
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_PROMPT) |
                                           RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .line_field = RLHF__FIELD_PROMPT,
                                   .standard_input = 1,
                                   .loading = loading};
    RLHF_TRY(rlhf__dataset_open(&o, &p->rows, err));
    int64_t n = rlhf__dataset_rows(p->rows);
    p->text = calloc((size_t)n, sizeof *p->text);
    if (!p->text) return RLHF__NOMEM(err, "out of memory for %lld prompts", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        struct rlhf__data_row row = rlhf__dataset_row(p->rows, i);
        rlhf_str text = row.text[RLHF__FIELD_PROMPT];
        if (!text.ptr) text = row.text[RLHF__FIELD_TEXT];
        if (!text.ptr) {
            char where[512];
            rlhf__dataset_where(p->rows, i, where, sizeof where);
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the row has neither a field 'prompt' nor 'text'", where);
        }
        p->text[p->n++] = text;
    }
    return RLHF_OK;
}

rlhf_status rlhf__typed_prompts_open(struct rlhf__typed_prompts *p,
                                     const struct rlhf__flag_list *typed, const char *file,
                                     const struct rlhf__loading *loading, struct rlhf__error *err) {
    if (typed->n && file)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "generate: give prompts by --prompt or by --prompts, not by both");
    if (file) return take_rows(p, file, loading, err);
    p->n = typed->n ? typed->n : 1;
    p->text = calloc(p->n, sizeof *p->text);
    if (!p->text) return RLHF__NOMEM(err, "out of memory for %zu prompts", p->n);
    for (size_t i = 0; i < p->n; i++) {
        const char *text = typed->n ? typed->item[i] : "";
        const size_t len = strlen(text), good = rlhf__utf8_valid(text, len);
        if (good < len)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "--prompt: invalid UTF-8 at byte %zu of prompt %zu", good + 1, i + 1);
        p->text[i] = (rlhf_str){text, len};
    }
    return RLHF_OK;
}

void rlhf__typed_prompts_finish(struct rlhf__typed_prompts *p) {
    rlhf__dataset_close(p->rows);
    free(p->text);
    memset(p, 0, sizeof *p);
}

void rlhf__typed_prompts_where(const struct rlhf__typed_prompts *p, size_t i, char *out,
                               size_t cap) {
    if (p->rows)
        rlhf__dataset_where(p->rows, (int64_t)i, out, cap);
    else
        snprintf(out, cap, "prompt %zu", i + 1);
}
