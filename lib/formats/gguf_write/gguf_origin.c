// gguf_origin.c: see gguf_origin.h. The keys are those of ggml's docs/gguf.md.
#include "gguf_write/gguf_origin.h"

#include "tensors/gguf_file.h"
#include "text/unicode.h"

#include <string.h>

static const char *const kept[] = {
    "general.license",      "general.license.name", "general.license.link",   "general.author",
    "general.organization", "general.basename",     "general.size_label",     "general.url",
    "general.repo_url",     "general.source.url",   "general.source.repo_url"};
static const char *const lists[] = {"general.tags", "general.languages"};

static int is_text(const char *text, size_t n) {
    return n > 0 && !memchr(text, 0, n) && rlhf__utf8_valid(text, n) == n;
}

// Adds the text of key `key` of a file under the name `as`. Returns 0 if the file has no such text.
static int copy_text(struct rlhf__gguf *g, const struct rlhf__gguf_file *f, const char *key,
                     const char *as) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(f, key);
    const char *text;
    size_t n;
    if (!v || rlhf__gguf_value_str(v, &text, &n, NULL) != RLHF_OK || !is_text(text, n)) return 0;
    rlhf__gguf_bytes(g, as, text, n);
    return 1;
}

static void copy_list(struct rlhf__gguf *g, const struct rlhf__gguf_file *f, const char *key) {
    const struct rlhf__gguf_value *v = rlhf__gguf_find(f, key);
    size_t n, len;
    if (!v || rlhf__gguf_value_count(v, RLHF__GGUF_STR, &n, NULL) != RLHF_OK) return;
    for (size_t i = 0; i < n; i++) {
        const char *text = rlhf__gguf_item_text(v, i, &len);
        if (!is_text(text, len)) return;
    }
    rlhf__gguf_array(g, key, RLHF__GGUF_STR, n);
    for (size_t i = 0; i < n; i++) {
        const char *text = rlhf__gguf_item_text(v, i, &len);
        rlhf__gguf_item_str(g, text, len);
    }
}

rlhf_status rlhf__gguf_origin_put(struct rlhf__gguf *g, const char *from, int changed,
                                  const char *name, struct rlhf__error *err) {
    struct rlhf__gguf_file *f = NULL;
    if (from) RLHF_TRY(rlhf__gguf_open(from, &f, err));
    if (!f || changed || !copy_text(g, f, "general.name", "general.name"))
        rlhf__gguf_str(g, "general.name", name);
    for (size_t i = 0; f && i < sizeof kept / sizeof *kept; i++)
        copy_text(g, f, kept[i], kept[i]);
    for (size_t i = 0; f && i < sizeof lists / sizeof *lists; i++)
        copy_list(g, f, lists[i]);
    if (f && changed && copy_text(g, f, "general.name", "general.base_model.0.name"))
        rlhf__gguf_u32(g, "general.base_model.count", 1);
    rlhf__gguf_close(f);
    return RLHF_OK;
}
