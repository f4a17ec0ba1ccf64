// metadata.c: see metadata.h.
//
// The structs that the note leads to are copied out of the file with what they point to, and the
// copies are given to the checks that opened files go through.
#include "plugin/metadata.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/hash.h"
#include "plugin/descriptor.h"
#include "plugin/elf.h"
#include "plugin/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE     ((uint64_t)1 << 30)
#define MAX_ROOM     ((uint64_t)64 << 20) // bytes of copies
#define MAX_TEXT     65536u
#define LEAST        64u // bytes of a copy: who checks one reads its head before its size
#define MAX_CHOICES  1024u
#define MAX_ROWS     4096u
#define MAX_PLUGINS  256u
#define FIRST_STRIDE RLHF_SIZE_TO(rlhf_opt, choices)

struct block {
    struct block *next;
    uint64_t reserved;
    char bytes[];
};

struct rlhf__metadata_room {
    struct block *block;
    uint64_t used;
};

struct reader {
    struct rlhf__elf elf;
    struct rlhf__metadata_room *room;
    struct rlhf__error *err;
};

// What every function of the copies is.
static void not_loaded(void) {
    fputs("rlhf-host: a function of a plugin that was only read was called\n", stderr);
    abort();
}

static void *take(struct reader *r, uint64_t n) {
    const uint64_t whole = n + 2 * sizeof(struct block);
    if (n > MAX_ROOM || whole > MAX_ROOM - r->room->used) {
        rlhf__fail(r->err, RLHF_E_INVALID, "is damaged: its tables take more than %llu MiB",
                   (unsigned long long)(MAX_ROOM >> 20));
        return NULL;
    }
    struct block *b = calloc(1, sizeof *b + n);
    if (!b) {
        rlhf__fail(r->err, RLHF_E_NOMEM, "out of memory");
        return NULL;
    }
    b->next = r->room->block;
    r->room->block = b;
    r->room->used += whole;
    return b->bytes;
}

// ---- pieces ----

// Where the pointer at address `at` leads: *to, 0 for NULL.
static rlhf_status follow(struct reader *r, uint64_t at, const char *what, uint64_t *to) {
    const int where = rlhf__elf_pointer(&r->elf, at, to);
    if (where != RLHF__ELF_ELSEWHERE) return RLHF_OK;
    return rlhf__fail(r->err, RLHF_E_INVALID,
                      "its note leads to a %s that is not constant data of the file", what);
}

// The text that the pointer at address `at` leads to; *out NULL for NULL.
static rlhf_status copy_text(struct reader *r, uint64_t at, const char *what, const char **out) {
    uint64_t to, n = 0;
    char c = 1;
    *out = NULL;
    RLHF_TRY(follow(r, at, what, &to));
    if (!to) return RLHF_OK;
    while (c && n <= MAX_TEXT)
        RLHF_TRY(rlhf__elf_read(&r->elf, to + n++, &c, 1, r->err));
    char *text = take(r, n);
    if (!text) return r->err->code;
    *out = text;
    return rlhf__elf_text(&r->elf, to, text, n, r->err);
}

// The bytes of n at address `from`, addresses among them replaced by one that may not be called.
static rlhf_status copy_bytes(struct reader *r, uint64_t from, uint64_t n, void **out) {
    void (*const none)(void) = not_loaded;
    char *copy = take(r, n < LEAST ? LEAST : (n + 7) & ~(uint64_t)7);
    *out = copy;
    if (!copy) return r->err->code;
    RLHF_TRY(rlhf__elf_read(&r->elf, from, copy, n, r->err));
    for (uint64_t i = 0; i + sizeof none <= n; i += sizeof none) {
        uint64_t to;
        const int where = rlhf__elf_pointer(&r->elf, from + i, &to);
        // What is no address is a number, or two.
        if (where == RLHF__ELF_HERE || (where == RLHF__ELF_ELSEWHERE && to == 0))
            memcpy(copy + i, &none, sizeof none);
    }
    return RLHF_OK;
}

// A struct that begins with its size; as many bytes as it says, or 8 where that is impossible.
static rlhf_status copy_sized(struct reader *r, uint64_t from, uint32_t *size, void **out) {
    RLHF_TRY(rlhf__elf_read(&r->elf, from, size, sizeof *size, r->err));
    if (*size >= 8 && *size <= RLHF_STRUCT_MAX) return copy_bytes(r, from, *size, out);
    *out = take(r, LEAST);
    if (!*out) return r->err->code;
    memcpy(*out, size, sizeof *size);
    *size = 8;
    return RLHF_OK;
}

// ---- options ----

static rlhf_status copy_choices(struct reader *r, uint64_t at, const char *const **out) {
    uint64_t to, next;
    uint32_t n = 0;
    *out = NULL;
    RLHF_TRY(follow(r, at, "list of choices", &to));
    if (!to) return RLHF_OK;
    do {
        if (n > MAX_CHOICES)
            return rlhf__fail(r->err, RLHF_E_INVALID, "is damaged: an option has endless choices");
        RLHF_TRY(follow(r, to + 8 * (uint64_t)n++, "choice", &next));
    } while (next);
    const char **list = take(r, n * sizeof *list);
    if (!list) return r->err->code;
    *out = list;
    for (uint32_t i = 0; i < n; i++)
        RLHF_TRY(copy_text(r, to + 8 * (uint64_t)i, "choice", &list[i]));
    return RLHF_OK;
}

static rlhf_status copy_rows(struct reader *r, uint64_t from, uint64_t n, uint64_t stride,
                             int inner, const rlhf_opt **out);

// One row; `at` is its address in the file, `row` its copy. What the stride has no room for is not
// there.
static rlhf_status copy_row(struct reader *r, uint64_t at, uint64_t stride, int inner, char *row) {
    rlhf_opt o;
    uint64_t to;
    const uint64_t n = stride < sizeof o ? stride : sizeof o;
    memset(&o, 0, sizeof o);
    memcpy(&o, row, n);
    RLHF_TRY(copy_text(r, at + offsetof(rlhf_opt, key), "key", &o.key));
    RLHF_TRY(copy_text(r, at + offsetof(rlhf_opt, help), "help text", &o.help));
    RLHF_TRY(copy_text(r, at + offsetof(rlhf_opt, s_def), "default", &o.s_def));
    RLHF_TRY(copy_choices(r, at + offsetof(rlhf_opt, choices), &o.choices));
    if (stride >= RLHF_SIZE_TO(rlhf_opt, n_table)) {
        RLHF_TRY(follow(r, at + offsetof(rlhf_opt, table), "table", &to));
        o.table = NULL;
        // A table in a table is refused, and its rows are not looked at.
        if (to && (inner || o.n_table > MAX_ROWS)) o.table = (const rlhf_opt *)(const void *)row;
        if (to && !inner && o.n_table <= MAX_ROWS)
            RLHF_TRY(copy_rows(r, to, o.n_table, stride, 1, &o.table));
    }
    memcpy(row, &o, n);
    return RLHF_OK;
}

static rlhf_status copy_rows(struct reader *r, uint64_t from, uint64_t n, uint64_t stride,
                             int inner, const rlhf_opt **out) {
    void *rows;
    RLHF_TRY(copy_bytes(r, from, n * stride, &rows));
    *out = rows;
    for (uint64_t i = 0; i < n; i++)
        RLHF_TRY(copy_row(r, from + i * stride, stride, inner, (char *)rows + i * stride));
    return RLHF_OK;
}

// ---- descriptors ----

#define AT(T, base, f) ((base) + offsetof(T, f))

static rlhf_status copy_options(struct reader *r, uint64_t at, rlhf_plugin *d) {
    uint64_t to;
    const uint64_t stride = d->opt_stride ? d->opt_stride : sizeof(rlhf_opt);
    RLHF_TRY(follow(r, AT(rlhf_plugin, at, opts), "option table", &to));
    // Tables of other sizes are refused before a row is looked at.
    d->opts = to ? (const rlhf_opt *)(const void *)d : NULL;
    if (!to || d->n_opts > MAX_ROWS || stride < FIRST_STRIDE || stride > MAX_ROWS || stride % 8)
        return RLHF_OK;
    return copy_rows(r, to, d->n_opts, stride, 0, &d->opts);
}

// The descriptor that the pointer at address `at` leads to; NULL for NULL.
static rlhf_status copy_plugin(struct reader *r, uint64_t at, const rlhf_plugin **out) {
    uint64_t from, to;
    uint32_t size;
    void *copy;
    *out = NULL;
    RLHF_TRY(follow(r, at, "descriptor", &from));
    if (!from) return RLHF_OK;
    RLHF_TRY(copy_sized(r, from, &size, &copy));
    rlhf_plugin *d = copy;
    *out = d;
    if (size < RLHF_SIZE_TO(rlhf_plugin, flags)) return RLHF_OK; // refused by its size
    RLHF_TRY(copy_text(r, AT(rlhf_plugin, from, id), "id", &d->id));
    RLHF_TRY(copy_text(r, AT(rlhf_plugin, from, version), "version", &d->version));
    RLHF_TRY(copy_text(r, AT(rlhf_plugin, from, summary), "summary", &d->summary));
    RLHF_TRY(copy_options(r, from, d));
    if (size < RLHF_SIZE_TO(rlhf_plugin, ops)) {
        const size_t cut = offsetof(rlhf_plugin, ops); // half an address is none
        if (size > cut) memset((char *)copy + cut, 0, size - cut);
        return RLHF_OK;
    }
    RLHF_TRY(follow(r, AT(rlhf_plugin, from, ops), "ops table", &to));
    d->ops = NULL;
    if (!to) return RLHF_OK;
    RLHF_TRY(copy_sized(r, to, &size, &copy));
    d->ops = copy;
    return RLHF_OK;
}

static rlhf_status other_abi(struct rlhf__error *err, uint32_t major) {
    return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                      "built for plugin ABI %u, this rlhf-host speaks %d.%d; rebuild it with "
                      "SDK " RLHF_SDK_VERSION,
                      major, RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
}

static rlhf_status note_of(struct reader *r, const char *owner, uint64_t *to) {
    uint32_t type;
    uint64_t at, n;
    *to = 0;
    if (!rlhf__elf_note(&r->elf, owner, &type, &at, &n)) return RLHF_OK;
    if (type != RLHF_ABI_MAJOR) return other_abi(r->err, type);
    if (n < sizeof *to) return rlhf__fail(r->err, RLHF_E_INVALID, "is damaged: its note is short");
    // An address, or a distance, which no relocation turns into one.
    if (rlhf__elf_pointer(&r->elf, at, to) == RLHF__ELF_ELSEWHERE && *to) *to += at;
    return *to ? RLHF_OK : rlhf__fail(r->err, RLHF_E_INVALID, "is damaged: its note is empty");
}

static rlhf_status copy_bundle(struct reader *r, uint64_t from, rlhf_bundle **out) {
    uint32_t size;
    uint64_t to;
    void *copy;
    RLHF_TRY(copy_sized(r, from, &size, &copy));
    rlhf_bundle *b = copy;
    *out = b;
    if (size < RLHF_SIZE_TO(rlhf_bundle, plugins) || b->abi_major != RLHF_ABI_MAJOR) return RLHF_OK;
    if (size >= RLHF_SIZE_TO(rlhf_bundle, built_with))
        RLHF_TRY(copy_text(r, AT(rlhf_bundle, from, built_with), "version", &b->built_with));
    RLHF_TRY(follow(r, AT(rlhf_bundle, from, plugins), "list of plugins", &to));
    b->plugins = NULL;
    if (!to || b->n_plugins > MAX_PLUGINS || b->abi_minor != RLHF_ABI_MINOR) return RLHF_OK;
    const rlhf_plugin **list = take(r, b->n_plugins * sizeof *list + 1);
    if (!list) return r->err->code;
    b->plugins = list;
    for (uint32_t i = 0; i < b->n_plugins; i++)
        RLHF_TRY(copy_plugin(r, to + 8 * (uint64_t)i, &list[i]));
    return RLHF_OK;
}

static rlhf_status copy_kernels(struct reader *r, uint64_t from, rlhf_kernels **out) {
    uint32_t size;
    void *copy;
    RLHF_TRY(copy_sized(r, from, &size, &copy));
    rlhf_kernels *k = copy;
    *out = k;
    if (size < RLHF_SIZE_TO(rlhf_kernels, destroy)) return RLHF_OK;
    RLHF_TRY(copy_text(r, AT(rlhf_kernels, from, name), "name", &k->name));
    return copy_text(r, AT(rlhf_kernels, from, summary), "summary", &k->summary);
}

// ---- the whole ----

struct entry {
    int32_t backend, major;
};

// An entry function of a plugin or a backend, of whichever contract.
static int entry_of(void *arg, const char *name) {
    static const char plugin[] = "rlhf_plugin_v", kernels[] = "rlhf_kernels_v";
    struct entry *e = arg;
    e->backend = strncmp(name, kernels, sizeof kernels - 1) == 0;
    if (!e->backend && strncmp(name, plugin, sizeof plugin - 1) != 0) return 0;
    e->major = atoi(name + (e->backend ? sizeof kernels : sizeof plugin) - 1);
    return 1;
}

// A file without a note: is it a plugin, and of this contract?
static rlhf_status without_note(const struct reader *r, struct rlhf__metadata *out) {
    struct entry e = {0};
    if (!rlhf__elf_exports(&r->elf, entry_of, &e)) return RLHF_OK;
    if (e.major != RLHF_ABI_MAJOR) return other_abi(r->err, (uint32_t)e.major);
    out->backend = e.backend;
    out->found = RLHF__METADATA_NO_NOTE;
    return RLHF_OK;
}

static rlhf_status check_all(const char *path, const rlhf_bundle *src, struct rlhf__metadata *out,
                             struct rlhf__error *err) {
    rlhf_bundle bundle;
    RLHF_TRY(rlhf__bundle_check(path, src, &bundle, err));
    out->plugin = calloc(bundle.n_plugins, sizeof *out->plugin);
    if (!out->plugin) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", path);
    for (uint32_t i = 0; i < bundle.n_plugins; i++) {
        out->n++;
        RLHF_TRY(rlhf__plugin_init(&out->plugin[i], path, out->sha256, bundle.plugins[i], err));
    }
    return RLHF_OK;
}

// The sentence without the path.
static rlhf_status copy_all(struct reader *r, rlhf_bundle **bundle, rlhf_kernels **kernels) {
    uint64_t plugins, backend;
    RLHF_TRY(note_of(r, RLHF_NOTE_PLUGIN, &plugins));
    RLHF_TRY(note_of(r, RLHF_NOTE_KERNEL, &backend));
    if (plugins) RLHF_TRY(copy_bundle(r, plugins, bundle));
    if (backend) RLHF_TRY(copy_kernels(r, backend, kernels));
    return RLHF_OK;
}

rlhf_status rlhf__metadata_of(const char *path, const void *bytes, uint64_t n,
                              struct rlhf__metadata *out, struct rlhf__error *err) {
    struct rlhf__sha256 hash;
    struct reader r = {.err = err};
    rlhf_bundle *bundle = NULL;
    rlhf_kernels *kernels = NULL;
    *out = (struct rlhf__metadata){0};
    r.room = out->room = calloc(1, sizeof *out->room);
    if (!r.room) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", path);
    rlhf_status st = rlhf__elf_init(&r.elf, bytes, n, err);
    if (st == RLHF_OK) st = copy_all(&r, &bundle, &kernels);
    if (bundle || kernels) out->found = RLHF__METADATA_READ;
    out->backend = kernels != NULL;
    if (st == RLHF_OK && !out->found) st = without_note(&r, out);
    rlhf__elf_finish(&r.elf);
    if (st < 0) return rlhf__error_context(err, "%s", path);
    rlhf__sha256_init(&hash);
    rlhf__sha256_put(&hash, bytes, n);
    rlhf__sha256_hex(&hash, out->sha256);
    if (bundle) RLHF_TRY(check_all(path, bundle, out, err));
    if (kernels) RLHF_TRY(rlhf__kernels_check(path, kernels, &out->kernels, err));
    return RLHF_OK;
}

rlhf_status rlhf__metadata_read(const char *path, struct rlhf__metadata *out,
                                struct rlhf__error *err) {
    struct rlhf__buf bytes = RLHF__BUF_INIT;
    *out = (struct rlhf__metadata){0};
    rlhf_status st = rlhf__file_read(path, MAX_FILE, &bytes, err);
    if (st == RLHF_OK) st = rlhf__metadata_of(path, bytes.data, bytes.len, out, err);
    rlhf__buf_free(&bytes);
    return st;
}

void rlhf__metadata_finish(struct rlhf__metadata *m) {
    for (size_t i = 0; i < m->n; i++)
        rlhf__plugin_finish(&m->plugin[i]);
    free(m->plugin);
    while (m->room && m->room->block) {
        struct block *b = m->room->block;
        m->room->block = b->next;
        free(b);
    }
    free(m->room);
    *m = (struct rlhf__metadata){0};
}
