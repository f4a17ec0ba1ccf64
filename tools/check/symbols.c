// symbols.c: see symbols.h.
#include "check/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash, *hash; // NULL: missing
};

static const ElfW(Dyn) * dynamic_of(void *object) {
    struct link_map *map = NULL;
    return dlinfo(object, RTLD_DI_LINKMAP, &map) == 0 ? map->l_ld : NULL;
}

// glibc has relocated the addresses in the dynamic section.
static struct tables tables_of(const ElfW(Dyn) * d) {
    struct tables t = {NULL, NULL, NULL, NULL};
    for (; d && d->d_tag != DT_NULL; d++) {
        const void *at = (const void *)(uintptr_t)d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB) t.symbols = at;
        if (d->d_tag == DT_STRTAB) t.strings = at;
        if (d->d_tag == DT_GNU_HASH) t.gnu_hash = at;
        if (d->d_tag == DT_HASH) t.hash = at;
    }
    return t;
}

// The table has no size of its own: the last chain of the highest bucket ends it.
static uint32_t count_by_gnu_hash(const uint32_t *h) {
    const uint32_t n_buckets = h[0], first = h[1], bloom_words = h[2];
    const uint32_t *bucket = h + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof *h);
    const uint32_t *chain = bucket + n_buckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < n_buckets; i++)
        if (bucket[i] > last) last = bucket[i];
    if (last < first) return first;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

void rlhf__exports(void *object, void (*visit)(void *arg, const char *name), void *arg) {
    const struct tables t = tables_of(dynamic_of(object));
    const uint32_t n = t.hash ? t.hash[1] : t.gnu_hash ? count_by_gnu_hash(t.gnu_hash) : 0;
    for (uint32_t i = 1; t.symbols && t.strings && i < n; i++) {
        const ElfW(Sym) *s = &t.symbols[i];
        const int bind = ELF64_ST_BIND(s->st_info), seen = ELF64_ST_VISIBILITY(s->st_other);
        if (s->st_shndx == SHN_UNDEF || bind == STB_LOCAL || seen == STV_HIDDEN ||
            seen == STV_INTERNAL || ELF64_ST_TYPE(s->st_info) == STT_SECTION)
            continue;
        visit(arg, t.strings + s->st_name);
    }
}

void rlhf__needs(void *object, void (*visit)(void *arg, const char *name), void *arg) {
    const ElfW(Dyn) *d = dynamic_of(object);
    const struct tables t = tables_of(d);
    for (; d && t.strings && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED) visit(arg, t.strings + d->d_un.d_val);
}
