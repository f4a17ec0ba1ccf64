// help_trl.c: see help_trl.h.
#include "cmd/help_trl.h"

#include "base/printable.h"
#include "option/aliases.h"
#include "option/nearest.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Append the configurations that have the field: "GRPOConfig, RLOOConfig". `between` separates
// them.
static void put_of(struct rlhf__buf *out, const char *of, const char *between, const char *after) {
    for (const char *before = ""; *of; before = between) {
        const size_t n = strcspn(of, " ");
        rlhf__buf_printf(out, "%s%.*s%s", before, (int)n, of, after);
        of += n + (of[n] == ' ');
    }
}

static void put_list(struct rlhf__buf *out, const struct rlhf__alias *all, size_t n) {
    rlhf__buf_printf(out, "%-28s %-22s %-24s %s\n", "TRL, transformers, PEFT", "of", "here",
                     "rlhf-host help trl FIELD prints more");
    for (size_t i = 0; i < n; i++) {
        const struct rlhf__alias *a = &all[i];
        const int is_word = strcmp(a->of, "word") == 0, is_ours = *a->ours != '\0';
        struct rlhf__buf of = RLHF__BUF_INIT;
        if (!is_word) put_of(&of, a->of, ",", "");
        rlhf__buf_printf(out, *a->note ? "%-28s %-22s %-24s " : "%-28s %-22s %s", a->theirs,
                         is_word ? "-" : rlhf__buf_text(&of), is_ours ? a->ours : "-");
        rlhf__buf_printf(out, "%s%s%.*s\n", is_ours ? "" : a->is, is_ours ? "" : ": ",
                         rlhf__alias_brief(a), a->note);
        rlhf__buf_finish(&of);
    }
}

// Append everything about a field of some configurations, or about a word.
static void put_field(struct rlhf__buf *out, const struct rlhf__alias *a) {
    rlhf__buf_puts(out, a->theirs);
    if (strcmp(a->of, "all") == 0)
        rlhf__buf_puts(out, " of every configuration");
    else if (strcmp(a->of, "word") != 0) {
        rlhf__buf_puts(out, " of ");
        put_of(out, a->of, ", ", "Config");
    }
    if (strcmp(a->of, "word") != 0) rlhf__buf_printf(out, ", %s by default", a->preset);
    rlhf__buf_printf(out, "\n    %s%s%s\n", *a->ours ? "here: " : a->is, *a->ours ? a->ours : ": ",
                     *a->ours ? "" : a->note);
    if (*a->ours && *a->note) rlhf__buf_printf(out, "    %s\n", a->note);
}

static int unknown(const struct rlhf__env *env, const char *field, const struct rlhf__alias *all,
                   size_t n) {
    struct rlhf__nearest near = {.wanted = field};
    struct rlhf__error err;
    char hint[128];
    for (size_t i = 0; i < n; i++)
        rlhf__nearest_offer(&near, all[i].theirs);
    rlhf__fail(&err, RLHF_E_INVALID,
               "help trl: \"%s\" is not a field of TRL 1.16%s; rlhf-host help trl lists all", field,
               rlhf__nearest_hint(&near, hint, sizeof hint));
    rlhf__log_error(env->log, err.text);
    return 2;
}

int rlhf__help_trl(const struct rlhf__env *env, const char *field) {
    struct rlhf__buf text = RLHF__BUF_INIT, page = RLHF__BUF_INIT;
    size_t n;
    const struct rlhf__alias *all = rlhf__aliases(&n);
    const struct rlhf__alias *first = field ? rlhf__alias_find(field) : NULL;
    if (field && !first) return unknown(env, field, all, n);
    if (!field) put_list(&text, all, n);
    for (size_t i = 0; first && i < n; i++)
        if (strcmp(all[i].theirs, first->theirs) == 0) put_field(&text, &all[i]);
    rlhf__put_page(&page, (rlhf_str){rlhf__buf_text(&text), text.len},
                   field ? rlhf__page_width(stdout) : 0);
    fputs(rlhf__buf_text(&page), stdout);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&page);
    return 0;
}
