// board.c: see board.h.
#include "check/board.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int32_t lines[] = {
#include "rule_lines.h"
};

static const struct rlhf__check_source sources[] = {
#define RULE(name, id, header, words) {id, header, words, 0, 0},
#include "check/rules.def"
#undef RULE
};

_Static_assert(sizeof lines / sizeof *lines == RLHF__CHECK_RULES, "a line for each rule");

struct rlhf__check_source rlhf__check_source(int32_t rule) {
    struct rlhf__check_source s = sources[rule];
    s.line = lines[rule];
    return s;
}

struct rlhf__board *rlhf__board_new(void) {
    void *at = mmap(NULL, sizeof(struct rlhf__board), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void rlhf__board_free(struct rlhf__board *b) {
    if (b) munmap(b, sizeof *b);
}

void rlhf__board_found(struct rlhf__board *b, int32_t rule, const char *fmt, ...) {
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
    if (b->n_found == RLHF__BOARD_FOUND) return;
    struct rlhf__board_found *f = &b->found[b->n_found++];
    f->rule = rule;
    memcpy(f->saw, saw, sizeof saw);
}

void rlhf__board_fact(struct rlhf__board *b, const char *fmt, ...) {
    char text[sizeof b->fact[0]];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < b->n_facts; i++)
        if (strcmp(b->fact[i], text) == 0) return;
    if (b->n_facts < RLHF__BOARD_FACTS) memcpy(b->fact[b->n_facts++], text, sizeof text);
}

void rlhf__board_inside(struct rlhf__board *b, const char *function) {
    snprintf(b->inside, sizeof b->inside, "%s", function ? function : "");
    for (size_t i = 0; function && i < RLHF__BOARD_HUNG; i++) {
        if (strcmp(b->hung[i], b->inside) != 0) continue;
        b->left = 1;
        _exit(0);
    }
}

int rlhf__board_hangs(struct rlhf__board *b) {
    size_t i = 0;
    if (!b->inside[0]) return 0;
    while (i < RLHF__BOARD_HUNG && b->hung[i][0])
        i++;
    if (i < RLHF__BOARD_HUNG) memcpy(b->hung[i], b->inside, sizeof b->hung[i]);
    return 1;
}

void rlhf__board_doing(struct rlhf__board *b, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->doing, sizeof b->doing, fmt, ap);
    va_end(ap);
}
