// child_log.c: see child_log.h.
#include "check/child_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int32_t lines[] = {
#include "rule_lines.h"
};

static const struct rlhf__check_source sources[] = {
#define RULE(name, id, header, words) {id, header, words, 0},
#include "check/rules.def"
#undef RULE
};

_Static_assert(sizeof lines / sizeof *lines == RLHF__CHECK_RULES, "a line for each rule");

struct rlhf__check_source rlhf__check_source(int32_t rule) {
    struct rlhf__check_source s = sources[rule];
    s.line = lines[rule];
    return s;
}

struct rlhf__child_log *rlhf__child_log_open(void) {
    void *at = mmap(NULL, sizeof(struct rlhf__child_log), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void rlhf__child_log_close(struct rlhf__child_log *b) {
    if (b) munmap(b, sizeof *b);
}

void rlhf__child_log_found(struct rlhf__child_log *b, int32_t rule, const char *fmt, ...) {
    char saw[sizeof b->found->saw];
    uint32_t same = 0;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(saw, sizeof saw, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < b->n_found; i++) {
        if (b->found[i].rule != rule) continue;
        if (++same == 3 || strcmp(b->found[i].saw, saw) == 0) return;
    }
    if (b->n_found == RLHF__CHILD_LOG_FOUND) return;
    struct rlhf__child_log_found *f = &b->found[b->n_found++];
    f->rule = rule;
    memcpy(f->saw, saw, sizeof saw);
}

void rlhf__child_log_fact(struct rlhf__child_log *b, const char *fmt, ...) {
    char text[sizeof b->fact[0]];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < b->n_facts; i++)
        if (strcmp(b->fact[i], text) == 0) return;
    if (b->n_facts < RLHF__CHILD_LOG_FACTS) memcpy(b->fact[b->n_facts++], text, sizeof text);
}

void rlhf__child_log_inside(struct rlhf__child_log *b, const char *function) {
    snprintf(b->inside, sizeof b->inside, "%s", function ? function : "");
    for (size_t i = 0; function && i < RLHF__CHILD_LOG_HUNG; i++) {
        if (strcmp(b->hung[i], b->inside) != 0) continue;
        b->left = 1;
        _exit(0);
    }
}

int rlhf__child_log_hangs(struct rlhf__child_log *b) {
    size_t i = 0;
    if (!b->inside[0]) return 0;
    while (i < RLHF__CHILD_LOG_HUNG && b->hung[i][0])
        i++;
    if (i < RLHF__CHILD_LOG_HUNG) memcpy(b->hung[i], b->inside, sizeof b->hung[i]);
    return 1;
}

void rlhf__child_log_doing(struct rlhf__child_log *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->doing, sizeof b->doing, fmt, ap);
    va_end(ap);
}
