// describe.c: see describe.h.
#include "wire/describe.h"

#include <rlhf/draft/program.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_OPTIONS = 4096, MOST_CHOICES = 4096, MOST_TEXT = 1 << 16, SLOT = 16 };

// ---- writing ----

// Write a text that may be NULL.
static void put_text(struct rlhf__buf *out, const char *text) {
    rlhf__wire_u32(out, text != NULL);
    rlhf__wire_puts(out, text);
}

// Write u32 1 if there is a list, otherwise u32 0; then the number of texts as u32, and the texts.
static void put_list(struct rlhf__buf *out, const char *const *list) {
    uint32_t n = 0;
    while (list && list[n])
        n++;
    rlhf__wire_u32(out, list != NULL);
    rlhf__wire_u32(out, n);
    for (uint32_t i = 0; i < n; i++)
        put_text(out, list[i]);
}

static void put_option(const rlhf_opt *o, struct rlhf__buf *out) {
    const int listed = o->type == RLHF_T_ENUM || o->type == RLHF_T_LIST;
    put_text(out, o->key);
    put_text(out, o->help);
    rlhf__wire_u32(out, (uint32_t)o->type);
    rlhf__wire_u32(out, o->flags);
    rlhf__wire_u64(out, (uint64_t)o->i_def);
    rlhf__wire_u64(out, (uint64_t)o->i_min);
    rlhf__wire_u64(out, (uint64_t)o->i_max);
    rlhf__wire_f64(out, o->f_def);
    rlhf__wire_f64(out, o->f_min);
    rlhf__wire_f64(out, o->f_max);
    put_text(out, o->s_def);
    put_list(out, listed ? o->choices : NULL);
    put_list(out, o->type == RLHF_T_LIST ? o->l_def : NULL);
}

void rlhf__description_put(const struct rlhf__plugin *p, struct rlhf__buf *out) {
    const rlhf_plugin *d = &p->desc;
    const rlhf_environment_ops *e = d->kind == RLHF_KIND_ENVIRONMENT ? &p->ops.environment : NULL;
    const rlhf_sink_ops *k = d->kind == RLHF_KIND_SINK ? &p->ops.sink : NULL;
    const rlhf_reward_ops *r = e || k ? NULL : &p->ops.reward;
    const int checks = e ? e->check_row != NULL : r && r->check_row != NULL;
    put_text(out, d->id);
    put_text(out, d->version);
    put_text(out, d->summary);
    put_text(out, d->vendor);
    put_text(out, d->url);
    put_text(out, d->license);
    rlhf__wire_u32(out, d->host_minor_min);
    rlhf__wire_u32(out, d->state_version);
    rlhf__wire_u32(out, d->flags);
    rlhf__wire_u32(out, e ? e->flags : k ? k->flags : r->flags);
    const int programs = rlhf__plugin_extension(p, NULL, RLHF_EXT_PROGRAM) != NULL;
    rlhf__wire_u32(out, (d->why_unused ? RLHF__DESCRIBED_WHY_UNUSED : 0u) |
                            (checks ? RLHF__DESCRIBED_CHECK_ROW : 0u) |
                            (e && e->reset ? RLHF__DESCRIBED_RESET : 0u) |
                            (e && e->finish ? RLHF__DESCRIBED_FINISH : 0u) |
                            (k && k->end ? RLHF__DESCRIBED_END : 0u) |
                            (e && e->poll ? RLHF__DESCRIBED_POLL : 0u) |
                            (programs ? RLHF__DESCRIBED_PROGRAM : 0u));
    rlhf__wire_u32(out, p->table.n);
    for (uint32_t i = 0; i < p->table.n; i++) {
        rlhf_opt o;
        rlhf__opt_at(&p->table, i, &o);
        put_option(&o, out);
    }
}

// ---- reading ----

// Read a text that may be missing. Returns a copy that lives as long as the description. Returns
// NULL if the text is missing or malformed (in->bad), or if memory runs out (*no_memory).
static const char *get_text(struct rlhf__wire *in, struct rlhf__description *d, int *no_memory) {
    const uint32_t given = rlhf__wire_get_u32(in);
    const rlhf_str s = rlhf__wire_get_text(in);
    if (given > 1 || s.len > MOST_TEXT || memchr(s.ptr, '\0', (size_t)s.len)) in->bad = 1;
    if (in->bad || !given) return NULL;
    char *text = strndup(s.ptr, (size_t)s.len);
    const char *kept = rlhf__strings_add(&d->strings, text);
    if (!kept) *no_memory = 1;
    free(text);
    return kept;
}

// Read a list of texts into *out, or set *out to NULL if the description does not contain the list.
// d->lists[at] owns the list.
static int get_list(struct rlhf__wire *in, struct rlhf__description *d, uint32_t at,
                    const char *const **out, int *no_memory) {
    const uint32_t given = rlhf__wire_get_u32(in), n = rlhf__wire_get_u32(in);
    *out = NULL;
    if (given > 1 || n > MOST_CHOICES || (!given && n)) in->bad = 1;
    if (in->bad || !given) return !in->bad;
    const char **list = calloc((size_t)n + 1, sizeof *list);
    d->lists[at] = list;
    if (!list) *no_memory = 1;
    for (uint32_t i = 0; list && i < n; i++) {
        list[i] = get_text(in, d, no_memory);
        if (!list[i]) return 0;
    }
    *out = list;
    return list != NULL;
}

static int get_option(struct rlhf__wire *in, struct rlhf__description *d, uint32_t at,
                      int *no_memory) {
    rlhf_opt *o = &d->opts[at];
    o->key = get_text(in, d, no_memory);
    o->help = get_text(in, d, no_memory);
    o->type = (int32_t)rlhf__wire_get_u32(in);
    o->flags = rlhf__wire_get_u32(in);
    o->i_def = (int64_t)rlhf__wire_get_u64(in);
    o->i_min = (int64_t)rlhf__wire_get_u64(in);
    o->i_max = (int64_t)rlhf__wire_get_u64(in);
    o->f_def = rlhf__wire_get_f64(in);
    o->f_min = rlhf__wire_get_f64(in);
    o->f_max = rlhf__wire_get_f64(in);
    o->s_def = get_text(in, d, no_memory);
    o->offset = SLOT * at;
    const int is_option = o->type >= RLHF_T_BOOL && o->type < RLHF_T_TABLE;
    return get_list(in, d, 2 * at, &o->choices, no_memory) &&
           get_list(in, d, 2 * at + 1, &o->l_def, no_memory) && is_option && !in->bad;
}

rlhf_status rlhf__description_get(struct rlhf__wire *in, struct rlhf__description *d,
                                  struct rlhf__error *err) {
    int no_memory = 0, ok = 1;
    memset(d, 0, sizeof *d);
    d->desc = (rlhf_plugin){.size = sizeof d->desc, .kind = RLHF_KIND_REWARD};
    d->desc.id = get_text(in, d, &no_memory);
    d->desc.version = get_text(in, d, &no_memory);
    d->desc.summary = get_text(in, d, &no_memory);
    d->desc.vendor = get_text(in, d, &no_memory);
    d->desc.url = get_text(in, d, &no_memory);
    d->desc.license = get_text(in, d, &no_memory);
    d->desc.host_minor_min = rlhf__wire_get_u32(in);
    d->desc.state_version = rlhf__wire_get_u32(in);
    d->desc.flags = rlhf__wire_get_u32(in);
    d->ops_flags = rlhf__wire_get_u32(in);
    d->has = rlhf__wire_get_u32(in);
    const uint32_t n = rlhf__wire_get_u32(in);
    if (in->bad || n > MOST_OPTIONS)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "what its worker says of it cannot be read");
    d->opts = calloc((size_t)n + 1, sizeof *d->opts);
    d->lists = calloc(2 * (size_t)n + 1, sizeof *d->lists);
    if (!d->opts || !d->lists) return RLHF__NOMEM(err, "out of memory");
    d->desc.n_opts = n;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = get_option(in, d, i, &no_memory);
    if (no_memory) return RLHF__NOMEM(err, "out of memory");
    if (!ok)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "what its worker says of it cannot be read");
    d->desc.opts = n ? d->opts : NULL;
    d->desc.opt_stride = n ? sizeof *d->opts : 0;
    d->desc.config_size = SLOT * n;
    return RLHF_OK;
}

void rlhf__description_finish(struct rlhf__description *d) {
    for (uint32_t i = 0; d->lists && i < 2 * d->desc.n_opts; i++)
        free(d->lists[i]);
    free(d->lists);
    free(d->opts);
    rlhf__strings_finish(&d->strings);
    memset(d, 0, sizeof *d);
}
