// model_text.c: see model_text.h.
#include "gguf/model_text.h"

#include "base/file.h"
#include "base/json.h"
#include "gguf/gguf_text.h"
#include "weights/hf_dir.h"

#include <string.h>

// The files of a GGUF file.
static const struct {
    const char *name;
    rlhf_status (*make)(const struct rlhf__gguf_file *, const char *, json_t **,
                        struct rlhf__error *);
} made[] = {{"tokenizer.json", rlhf__gguf_tokenizer},
            {"tokenizer_config.json", rlhf__gguf_tokenizer_config},
            {"generation_config.json", rlhf__gguf_generation_config}};
enum { N_MADE = sizeof made / sizeof *made };

static size_t made_at(const char *name) {
    size_t i = 0;
    while (i < N_MADE && strcmp(made[i].name, name) != 0)
        i++;
    return i;
}

rlhf_status rlhf__model_json(const char *model, const char *name, json_t **out,
                             struct rlhf__error *err) {
    struct rlhf__gguf_file *f = NULL;
    const size_t at = made_at(name);
    *out = NULL;
    if (!rlhf__gguf_is(model)) return rlhf__json_load_any(model, name, out, err);
    if (at == N_MADE) return RLHF_OK;
    rlhf_status st = rlhf__gguf_open(model, &f, err);
    if (st == RLHF_OK) st = made[at].make(f, model, out, err);
    rlhf__gguf_close(f);
    return st;
}

int rlhf__model_has(const char *model, const char *name) {
    char path[RLHF__PATH_CAP];
    if (rlhf__gguf_is(model)) return made_at(name) < N_MADE;
    return rlhf__is_file(rlhf__path_put(path, "%s/%s", model, name));
}

rlhf_status rlhf__model_copy_text(const char *model, const struct rlhf__folder *to,
                                  struct rlhf__error *err) {
    struct rlhf__folder *from = NULL;
    rlhf_status st = RLHF_OK;
    if (!rlhf__gguf_is(model)) {
        RLHF_TRY(rlhf__folder_open(NULL, model, &from, err));
        st = rlhf__hf_copy_tokenizer(from, to, err);
        rlhf__folder_close(from);
        return st;
    }
    for (size_t i = 0; st == RLHF_OK && i < N_MADE; i++) {
        json_t *v;
        st = rlhf__model_json(model, made[i].name, &v, err);
        if (st == RLHF_OK) st = rlhf__json_save_new(to, made[i].name, v, 2, err);
    }
    return st;
}
