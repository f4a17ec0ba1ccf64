// elf_names.c: what a shared object offers to others and what it needs; see elf.h.
#include "plugin/elf.h"

#include <elf.h>
#include <string.h>

// The name at `i` of the strings, cut to 255 bytes; "" when it is not there.
static const char *name_at(const struct rlhf__elf *e, uint64_t i, char out[256]) {
    struct rlhf__error ignored;
    out[0] = out[255] = 0;
    for (uint64_t k = 0; k < 255; k++) {
        out[k] = out[k + 1] = 0;
        if (i + k >= e->n_strings ||
            rlhf__elf_read(e, e->strings + i + k, out + k, 1, &ignored) < 0)
            out[k] = 0;
        if (!out[k]) break;
    }
    return out;
}

static uint32_t word_at(const struct rlhf__elf *e, uint64_t at, int *there) {
    struct rlhf__error ignored;
    uint32_t word = 0;
    if (rlhf__elf_read(e, at, &word, sizeof word, &ignored) < 0) *there = 0;
    return word;
}

// How many symbols there are, by the table of the hash that has the highest of them.
static uint64_t by_gnu_hash(const struct rlhf__elf *e) {
    int there = 1;
    const uint64_t n_buckets = word_at(e, e->gnu_hash, &there);
    const uint64_t first = word_at(e, e->gnu_hash + 4, &there);
    const uint64_t bloom = word_at(e, e->gnu_hash + 8, &there);
    const uint64_t buckets = e->gnu_hash + 16 + 8 * bloom, chain = buckets + 4 * n_buckets;
    const uint64_t most = e->n / sizeof(Elf64_Sym);
    uint64_t last = 0;
    if (n_buckets > e->n / 4) return 0;
    for (uint64_t i = 0; there && i < n_buckets; i++) {
        const uint64_t b = word_at(e, buckets + 4 * i, &there);
        if (b > last) last = b;
    }
    if (!there || last < first) return first;
    while (there && last < most && !(word_at(e, chain + 4 * (last - first), &there) & 1))
        last++;
    return last + 1;
}

// No more than the file has room for.
static uint64_t symbol_count(const struct rlhf__elf *e) {
    int there = 1;
    const uint64_t most = e->n / sizeof(Elf64_Sym);
    uint64_t n = 0;
    if (e->gnu_hash)
        n = by_gnu_hash(e);
    else if (e->hash)
        n = word_at(e, e->hash + 4, &there);
    return n < most ? n : most;
}

int rlhf__elf_exports(const struct rlhf__elf *e, int (*visit)(void *arg, const char *name),
                      void *arg) {
    const uint64_t n = e->symbols ? symbol_count(e) : 0;
    struct rlhf__error ignored;
    char name[256];
    for (uint64_t i = 1; i < n; i++) {
        Elf64_Sym s;
        if (rlhf__elf_read(e, e->symbols + i * sizeof s, &s, sizeof s, &ignored) < 0) return 0;
        const int bind = ELF64_ST_BIND(s.st_info), seen = ELF64_ST_VISIBILITY(s.st_other);
        if (s.st_shndx == SHN_UNDEF || bind == STB_LOCAL || seen == STV_HIDDEN ||
            seen == STV_INTERNAL || ELF64_ST_TYPE(s.st_info) == STT_SECTION)
            continue;
        const int stop = visit(arg, name_at(e, s.st_name, name));
        if (stop) return stop;
    }
    return 0;
}

int rlhf__elf_needs(const struct rlhf__elf *e, int (*visit)(void *arg, const char *name),
                    void *arg) {
    char name[256];
    for (uint64_t i = 0; i < e->n_dynamic; i++) {
        Elf64_Dyn d;
        memcpy(&d, e->bytes + e->dynamic + i * sizeof d, sizeof d);
        if (d.d_tag == DT_NULL) return 0;
        if (d.d_tag != DT_NEEDED) continue;
        const int stop = visit(arg, name_at(e, d.d_un.d_val, name));
        if (stop) return stop;
    }
    return 0;
}
