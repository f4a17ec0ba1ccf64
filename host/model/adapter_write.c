// adapter_write.c: a model's adapter as a directory of PEFT; see adapter.h.
#include "model/adapter.h"

#include "base/json.h"
#include "model/parameters.h"

#include <stdlib.h>
#include <string.h>

static int has(char **name, size_t n, const char *text, size_t len) {
    for (size_t i = 0; i < n; i++)
        if (strlen(name[i]) == len && memcmp(name[i], text, len) == 0) return 1;
    return 0;
}

// The part of a parameter's name that a list has: of A the module's last part, of a score head the
// module; NULL: none.
static const char *part_of(const rlhf_param *p, int32_t group, size_t *n) {
    static const char tail[] = ".lora_A.weight";
    const size_t all = strlen(p->name);
    if (p->group != group) return NULL;
    if (group == RLHF_PARAM_SCORE) {
        const char *dot = strrchr(p->name, '.');
        *n = dot ? (size_t)(dot - p->name) : all;
        return p->name;
    }
    if (all < sizeof tail || strcmp(p->name + all - sizeof tail + 1, tail) != 0) return NULL;
    const char *from = p->name, *end = p->name + all - sizeof tail + 1;
    for (const char *at = from; at < end; at++)
        if (*at == '.') from = at + 1;
    *n = (size_t)(end - from);
    return from;
}

// Each once, in the order of the parameters; one block.
static char **list(const struct rlhf__model *m, int32_t group, size_t *n) {
    size_t bytes = 0, len = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++)
        bytes += strlen(m->params[i].name) + 1;
    char **name = malloc((m->n_tensors + 1) * sizeof *name + bytes);
    char *to = name ? (char *)(name + m->n_tensors + 1) : NULL;
    *n = 0;
    for (uint32_t i = 0; name && i < m->n_tensors; i++) {
        const char *part = part_of(&m->params[i], group, &len);
        if (!part || has(name, *n, part, len)) continue;
        memcpy(to, part, len);
        to[len] = '\0';
        name[(*n)++] = to;
        to += len + 1;
    }
    return name;
}

char **rlhf__adapter_leaves(const struct rlhf__model *m, size_t *n) {
    return list(m, RLHF_PARAM_ADAPTER, n);
}

// 1 when the matrices that have adapters are stored [inputs, outputs].
static int in_out(const struct rlhf__model *m) {
    const struct rlhf__model *trunk = m->base ? m->base : m;
    for (uint32_t i = 0; i < trunk->n_tensors; i++)
        if (trunk->params[i].flags & RLHF_PARAM_IN_OUT) return 1;
    return 0;
}

static rlhf_status write_base(const struct rlhf__model *m, const struct rlhf__folder *dir,
                              struct rlhf__error *err) {
    return rlhf__json_save_new(dir, "state/base.json",
                               json_pack("{s:i, s:s, s:I, s:s}", "format", 1, "path", m->dir,
                                         "bytes", (json_int_t)m->base_bytes, "sha256",
                                         m->base_sha256),
                               2, err);
}

rlhf_status rlhf__adapter_write(const struct rlhf__model *m, int32_t dtype, int state,
                                const struct rlhf__folder *dir, struct rlhf__error *err) {
    struct rlhf__peft_written w = {.base = m->dir, .in_out = in_out(m)};
    char **leaf = rlhf__adapter_leaves(m, &w.n_leaf);
    char **saved = list(m, RLHF_PARAM_SCORE, &w.n_saved);
    w.leaf = (const char *const *)leaf;
    w.saved = (const char *const *)saved;
    rlhf_status st = leaf && saved ? RLHF_OK : RLHF__NOMEM(err, "out of memory for an adapter");
    if (st == RLHF_OK) st = rlhf__peft_write(&m->peft, &w, dir, err);
    free(leaf);
    free(saved);
    if (st == RLHF_OK)
        st = rlhf__params_write(m, RLHF__PART_PEFT, dtype, dir, RLHF__PEFT_WEIGHTS, err);
    return st == RLHF_OK && state ? write_base(m, dir, err) : st;
}
