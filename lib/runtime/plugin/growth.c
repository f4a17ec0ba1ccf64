// growth.c: see growth.h.
#include "plugin/growth.h"

#define STRUCT_HEADERS
#include "growth_table.inc"
#undef STRUCT_HEADERS

#include <string.h>

enum { MINORS = RLHF_ABI_MINOR + 1 };

static const struct {
    const char *name;
    uint32_t size[MINORS]; // in each minor version
    uint32_t own;
} table[RLHF__STRUCTS] = {
#define STRUCT(T, ...) {#T, {__VA_ARGS__}, sizeof(T)},
#include "growth_table.inc"
#undef STRUCT
};

// Offset of the member `reserved`, or 0 if the struct has no such member.
static const uint32_t reserved_at[RLHF__STRUCTS] = {
#define RESERVED(T) [RLHF__STRUCT_##T] = offsetof(T, reserved),
#include "growth_table.inc"
#undef RESERVED
};

uint32_t rlhf__struct_size(enum rlhf__struct which, uint32_t minor) {
    return table[which].size[minor < MINORS ? minor : MINORS - 1];
}

uint32_t rlhf__struct_reserved(enum rlhf__struct which, const void *p) {
    uint32_t reserved = 0;
    if (reserved_at[which])
        memcpy(&reserved, (const char *)p + reserved_at[which], sizeof reserved);
    return reserved;
}

const char *rlhf__struct_name(enum rlhf__struct which) { return table[which].name; }

void rlhf__struct_pass(enum rlhf__struct which, void *p, uint32_t minor) {
    const uint32_t size = rlhf__struct_size(which, minor);
    memcpy(p, &size, sizeof size);
}

void *rlhf__filled_begin(struct rlhf__filled *f, enum rlhf__struct which, uint32_t minor) {
    memset(f, 0, sizeof *f);
    f->which = which;
    f->size = rlhf__struct_size(which, minor);
    rlhf__struct_pass(which, f->bytes, minor);
    return f->bytes;
}

rlhf_status rlhf__filled_end(const struct rlhf__filled *f, void *out, struct rlhf__error *err) {
    const char *name = table[f->which].name;
    const uint32_t own = table[f->which].own;
    uint32_t size;
    memcpy(&size, f->bytes, sizeof size);
    if (size != f->size)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "it changes the size of the host's %s from %u to %u; a plugin must leave "
                          "the size of a struct of the host as it is",
                          name, f->size, size);
    for (uint32_t i = f->size; i < sizeof f->bytes; i++)
        if (f->bytes[i])
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "it sets byte %u of the host's %s, which has %u bytes; use a newer "
                              "rlhf-host, or rebuild the plugin with SDK " RLHF_SDK_VERSION,
                              i, name, f->size);
    const uint32_t reserved = rlhf__struct_reserved(f->which, f->bytes);
    if (reserved)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "it sets `reserved` of the host's %s to %u; it must be 0", name,
                          reserved);
    memcpy(out, f->bytes, own);
    memcpy(out, &own, sizeof own);
    return RLHF_OK;
}

rlhf_status rlhf__lent_kept(const char *name, const struct rlhf__lent *lent, size_t n,
                            struct rlhf__error *err) {
    for (size_t i = 0; i < n; i++)
        if (lent[i].is != lent[i].was)
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "it replaces the pointer `%s` of the host's %s; a plugin must write "
                              "into the host's array and leave the pointer as it is",
                              lent[i].member, name);
    return RLHF_OK;
}
