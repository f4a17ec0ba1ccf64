// elf.c: see elf.h.
#include "plugin/elf.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR   36
#endif

enum { MAX_HEADERS = 256, MAX_DYNAMIC = 4096 };
#define MAX_MOVED ((uint64_t)1 << 22) // addresses to fill in: 64 MiB of them here

struct rlhf__elf_load {
    uint64_t at, from, n_file, n; // address, offset, bytes in the file and in memory
    uint32_t type, align;         // PT_LOAD; PT_NOTE
};

struct rlhf__elf_moved {
    uint64_t at, to;
    uint64_t where; // RLHF__ELF_HERE, RLHF__ELF_ELSEWHERE
};

static rlhf_status damaged(struct rlhf__error *err, const char *what) {
    return rlhf__fail(err, RLHF_E_INVALID, "is damaged: %s", what);
}

// n bytes at an offset of the file; NULL when they are not there.
static const uint8_t *in_file(const struct rlhf__elf *e, uint64_t at, uint64_t n) {
    return at <= e->n && n <= e->n - at ? e->bytes + at : NULL;
}

rlhf_status rlhf__elf_read(const struct rlhf__elf *e, uint64_t at, void *out, uint64_t n,
                           struct rlhf__error *err) {
    for (uint64_t i = 0; i < e->n_load; i++) {
        const struct rlhf__elf_load *l = &e->load[i];
        if (l->type != PT_LOAD || at < l->at || at - l->at > l->n || n > l->n - (at - l->at))
            continue;
        const uint64_t skip = at - l->at;
        uint64_t there = skip < l->n_file ? l->n_file - skip : 0;
        if (there > n) there = n;
        if (there) memcpy(out, e->bytes + l->from + skip, there);
        if (n > there) memset((uint8_t *)out + there, 0, n - there);
        return RLHF_OK;
    }
    return rlhf__fail(err, RLHF_E_INVALID,
                      "is damaged: %llu bytes at address 0x%llx are not in the file",
                      (unsigned long long)n, (unsigned long long)at);
}

// ---- headers ----

static rlhf_status read_headers(struct rlhf__elf *e, struct rlhf__error *err) {
    Elf64_Ehdr head;
    if (e->n < sizeof head || memcmp(e->bytes, ELFMAG, SELFMAG) != 0)
        return rlhf__fail(err, RLHF_E_INVALID, "is no shared object (ELF)");
    memcpy(&head, e->bytes, sizeof head);
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
        (head.e_machine != EM_X86_64 && head.e_machine != EM_AARCH64))
        return rlhf__fail(err, RLHF_E_INVALID, "is of another machine (64-bit x86-64 or aarch64)");
    e->machine = head.e_machine;
    if (head.e_type != ET_DYN) return rlhf__fail(err, RLHF_E_INVALID, "is no shared object");
    if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > MAX_HEADERS)
        return damaged(err, "its program headers are of another size or too many");
    const uint8_t *table = in_file(e, head.e_phoff, (uint64_t)head.e_phnum * sizeof(Elf64_Phdr));
    if (!table) return damaged(err, "its program headers lie outside the file");
    e->load = calloc(head.e_phnum ? head.e_phnum : 1, sizeof *e->load);
    if (!e->load) return RLHF__NOMEM(err, "out of memory");
    for (uint32_t i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr p;
        memcpy(&p, table + i * sizeof p, sizeof p);
        if (p.p_type != PT_LOAD && p.p_type != PT_NOTE && p.p_type != PT_DYNAMIC) continue;
        if (!in_file(e, p.p_offset, p.p_filesz) || p.p_filesz > p.p_memsz ||
            p.p_memsz > UINT64_MAX - p.p_vaddr)
            return damaged(err, "a segment lies outside the file");
        e->load[e->n_load++] = (struct rlhf__elf_load){
            p.p_vaddr, p.p_offset, p.p_filesz, p.p_memsz, p.p_type, p.p_align == 8 ? 8 : 4};
        if (p.p_type != PT_DYNAMIC) continue;
        e->dynamic = p.p_offset;
        e->n_dynamic = p.p_filesz / sizeof(Elf64_Dyn);
        if (e->n_dynamic > MAX_DYNAMIC) return damaged(err, "its dynamic section is too long");
    }
    return RLHF_OK;
}

// The number of the first dynamic entry with that tag, 0 when there is none.
static uint64_t dynamic(const struct rlhf__elf *e, int64_t tag) {
    for (uint64_t i = 0; i < e->n_dynamic; i++) {
        Elf64_Dyn d;
        memcpy(&d, e->bytes + e->dynamic + i * sizeof d, sizeof d);
        if (d.d_tag == DT_NULL) return 0;
        if (d.d_tag == tag) return d.d_un.d_val;
    }
    return 0;
}

// ---- addresses that the loader fills in ----

static int by_address(const void *a, const void *b) {
    const struct rlhf__elf_moved *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void add_moved(struct rlhf__elf *e, uint64_t at, uint64_t to, uint64_t where) {
    e->moved[e->n_moved++] = (struct rlhf__elf_moved){at, to, where};
}

// Where a symbol of this object lies; RLHF__ELF_ELSEWHERE when the loader has to look for it.
static uint64_t symbol_at(const struct rlhf__elf *e, uint64_t i, uint64_t *to) {
    Elf64_Sym s;
    struct rlhf__error ignored;
    if (!e->symbols || i > UINT32_MAX ||
        rlhf__elf_read(e, e->symbols + i * sizeof s, &s, sizeof s, &ignored) < 0)
        return RLHF__ELF_ELSEWHERE;
    const int type = ELF64_ST_TYPE(s.st_info);
    *to = s.st_value;
    return s.st_shndx != SHN_UNDEF && type != STT_GNU_IFUNC && type != STT_TLS
               ? RLHF__ELF_HERE
               : RLHF__ELF_ELSEWHERE;
}

static void add_rela(struct rlhf__elf *e, const Elf64_Rela *r) {
    const uint64_t type = ELF64_R_TYPE(r->r_info);
    const int arm = e->machine == EM_AARCH64;
    if (type == (arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE)) {
        add_moved(e, r->r_offset, (uint64_t)r->r_addend, RLHF__ELF_HERE);
    } else if (type == (arm ? R_AARCH64_ABS64 : R_X86_64_64)) {
        uint64_t to = 0;
        const uint64_t where = symbol_at(e, ELF64_R_SYM(r->r_info), &to);
        add_moved(e, r->r_offset, to + (uint64_t)r->r_addend, where);
    } else {
        add_moved(e, r->r_offset, 0, RLHF__ELF_ELSEWHERE);
    }
}

// Address `at` has an entry of DT_RELR: its content is the address it gets.
static rlhf_status add_relr(struct rlhf__elf *e, uint64_t at, struct rlhf__error *err) {
    uint64_t to;
    if (e->n_moved == MAX_MOVED) return damaged(err, "it has too many relocations");
    RLHF_TRY(rlhf__elf_read(e, at, &to, sizeof to, err));
    add_moved(e, at, to, RLHF__ELF_HERE);
    return RLHF_OK;
}

static rlhf_status read_relr(struct rlhf__elf *e, uint64_t at, uint64_t n,
                             struct rlhf__error *err) {
    uint64_t next = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t word;
        RLHF_TRY(rlhf__elf_read(e, at + i * sizeof word, &word, sizeof word, err));
        if (!(word & 1)) {
            RLHF_TRY(add_relr(e, word, err));
            next = word + sizeof word;
            continue;
        }
        for (uint64_t bit = 1; bit < 64; bit++)
            if (word >> bit & 1) RLHF_TRY(add_relr(e, next + (bit - 1) * sizeof word, err));
        next += 63 * sizeof word;
    }
    return RLHF_OK;
}

// The bits of a word of DT_RELR stand for up to 63 addresses.
static rlhf_status read_moved(struct rlhf__elf *e, struct rlhf__error *err) {
    const uint64_t rela = dynamic(e, DT_RELA), n_rela = dynamic(e, DT_RELASZ) / sizeof(Elf64_Rela);
    const uint64_t relr = dynamic(e, DT_RELR), n_relr = dynamic(e, DT_RELRSZ) / sizeof(uint64_t);
    const uint64_t words = e->n / sizeof(uint64_t);
    if ((rela && n_rela > words) || (relr && n_relr > words))
        return damaged(err, "its relocations are longer than the file");
    uint64_t cap = (rela ? n_rela : 0) + (relr ? 63 * n_relr : 0);
    if ((rela && n_rela > MAX_MOVED)) return damaged(err, "it has too many relocations");
    if (cap > MAX_MOVED) cap = MAX_MOVED;
    e->moved = calloc(cap ? cap : 1, sizeof *e->moved);
    if (!e->moved) return RLHF__NOMEM(err, "out of memory");
    for (uint64_t i = 0; rela && i < n_rela; i++) {
        Elf64_Rela r;
        RLHF_TRY(rlhf__elf_read(e, rela + i * sizeof r, &r, sizeof r, err));
        add_rela(e, &r);
    }
    if (relr) RLHF_TRY(read_relr(e, relr, n_relr, err));
    qsort(e->moved, e->n_moved, sizeof *e->moved, by_address);
    return RLHF_OK;
}

int rlhf__elf_pointer(const struct rlhf__elf *e, uint64_t at, uint64_t *to) {
    const struct rlhf__elf_moved want = {at, 0, 0};
    const struct rlhf__elf_moved *m = bsearch(&want, e->moved, e->n_moved, sizeof want, by_address);
    struct rlhf__error ignored;
    *to = 0;
    if (m) {
        if (m->where == RLHF__ELF_HERE) *to = m->to;
        return (int)m->where;
    }
    // A number that no relocation turns into an address is none, unless it is NULL.
    return rlhf__elf_read(e, at, to, sizeof *to, &ignored) == RLHF_OK && *to == 0
               ? RLHF__ELF_NULL
               : RLHF__ELF_ELSEWHERE;
}

// ---- the whole ----

rlhf_status rlhf__elf_init(struct rlhf__elf *e, const void *bytes, uint64_t n,
                           struct rlhf__error *err) {
    *e = (struct rlhf__elf){.bytes = bytes, .n = n};
    RLHF_TRY(read_headers(e, err));
    e->symbols = dynamic(e, DT_SYMTAB);
    e->strings = dynamic(e, DT_STRTAB);
    e->n_strings = dynamic(e, DT_STRSZ);
    e->gnu_hash = dynamic(e, DT_GNU_HASH);
    e->hash = dynamic(e, DT_HASH);
    return read_moved(e, err);
}

void rlhf__elf_finish(struct rlhf__elf *e) {
    free(e->load);
    free(e->moved);
    *e = (struct rlhf__elf){0};
}

rlhf_status rlhf__elf_text(const struct rlhf__elf *e, uint64_t at, char *out, uint64_t cap,
                           struct rlhf__error *err) {
    for (uint64_t i = 0; i < cap; i++) {
        RLHF_TRY(rlhf__elf_read(e, at + i, out + i, 1, err));
        if (!out[i]) return RLHF_OK;
    }
    return rlhf__fail(err, RLHF_E_INVALID, "is damaged: a text is longer than %llu bytes",
                      (unsigned long long)(cap - 1));
}

int rlhf__elf_note(const struct rlhf__elf *e, const char *owner, uint32_t *type, uint64_t *at,
                   uint64_t *n) {
    const uint64_t wanted = strlen(owner) + 1;
    for (uint64_t i = 0; i < e->n_load; i++) {
        const struct rlhf__elf_load *l = &e->load[i];
        Elf64_Nhdr head;
        for (uint64_t k = 0; l->type == PT_NOTE && l->n_file - k >= sizeof head;) {
            memcpy(&head, e->bytes + l->from + k, sizeof head);
            const uint64_t round = l->align - 1;
            const uint64_t name = k + sizeof head;
            const uint64_t held = (name + head.n_namesz + round) & ~round;
            const uint64_t end = (held + head.n_descsz + round) & ~round;
            if (held > l->n_file || head.n_descsz > l->n_file - held) break;
            if (head.n_namesz == wanted && memcmp(e->bytes + l->from + name, owner, wanted) == 0) {
                *type = head.n_type;
                *at = l->at + held;
                *n = head.n_descsz;
                return 1;
            }
            if (end > l->n_file) break;
            k = end;
        }
    }
    return 0;
}
