// gguf_chat.c: see gguf_chat.h.
#include "gguf_write/gguf_chat.h"

#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "gguf/model_text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPLATE_MAX = 1 << 24, NAME_CAP = 160 };

#define FOLDER "additional_chat_templates"

// A directory's templates; the list owns all texts.
struct templates {
    const char *dir;
    json_t *item; // [{"name": .., "template": ..}]
};

static rlhf_status add(struct templates *t, const char *name, size_t n_name, json_t *text,
                       struct rlhf__error *err) {
    json_t *one = json_pack("{s:s%, s:O}", "name", name, n_name, "template", text);
    if (one && json_array_append_new(t->item, one) == 0) return RLHF_OK;
    return RLHF__NOMEM(err, "out of memory for a chat template");
}

// ---- in separate files ----

static rlhf_status add_file(struct templates *t, const char *file, const char *name, size_t n_name,
                            struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__path_put(path, "%s/%s", t->dir, file);
    rlhf_status st = rlhf__file_read(path, TEMPLATE_MAX, &text, err);
    json_t *v = st == RLHF_OK ? json_stringn(rlhf__buf_text(&text), text.len) : NULL;
    if (st == RLHF_OK && (!v || strlen(json_string_value(v)) != text.len))
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: not a text in UTF-8", path);
    if (st == RLHF_OK) st = add(t, name, n_name, v, err);
    json_decref(v);
    rlhf__buf_finish(&text);
    return st;
}

static int is_jinja(const struct dirent *e) {
    const size_t n = strlen(e->d_name), m = strlen(".jinja");
    return n > m && strcmp(e->d_name + n - m, ".jinja") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static rlhf_status add_folder(struct templates *t, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP], file[sizeof FOLDER + 258];
    struct dirent **list = NULL;
    rlhf_status st = RLHF_OK;
    rlhf__path_put(path, "%s/" FOLDER, t->dir);
    const int n = scandir(path, &list, is_jinja, by_bytes);
    for (int i = 0; i < n; i++) {
        const char *name = list[i]->d_name;
        snprintf(file, sizeof file, FOLDER "/%s", name);
        if (st == RLHF_OK) st = add_file(t, file, name, strlen(name) - strlen(".jinja"), err);
        free(list[i]);
    }
    free(list);
    return st;
}

// ---- in a JSON file ----

static rlhf_status add_value(struct templates *t, const char *file, json_t *v,
                             struct rlhf__error *err) {
    json_t *item;
    size_t i;
    if (!v || json_is_null(v)) return RLHF_OK;
    if (json_is_string(v)) return add(t, "default", strlen("default"), v, err);
    if (!json_is_array(v))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/%s: chat_template is %s, expected a string or a list of named ones",
                          t->dir, file, rlhf__json_kind(v));
    json_array_foreach(v, i, item) {
        const json_t *name = json_object_get(item, "name");
        json_t *text = json_object_get(item, "template");
        const int named = json_is_string(name) && json_string_length(name) > 0;
        if (!named || !json_is_string(text))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s/%s: chat_template[%zu] has %s: expected {\"name\": "
                              "\"..\", \"template\": \"..\"}",
                              t->dir, file, i, named ? "no text" : "no name");
        RLHF_TRY(add(t, json_string_value(name), json_string_length(name), text, err));
    }
    return RLHF_OK;
}

static rlhf_status read_all(struct templates *t, const json_t *config, struct rlhf__error *err) {
    static const char jinja[] = "chat_template.jinja", alone[] = "chat_template.json";
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/%s", t->dir, jinja);
    if (rlhf__is_file(path)) RLHF_TRY(add_file(t, jinja, "default", strlen("default"), err));
    RLHF_TRY(add_folder(t, err));
    if (json_array_size(t->item) > 0) return RLHF_OK;
    RLHF_TRY(add_value(t, "tokenizer_config.json", json_object_get(config, "chat_template"), err));
    if (json_array_size(t->item) > 0) return RLHF_OK;
    json_t *json = NULL;
    RLHF_TRY(rlhf__model_json(t->dir, alone, &json, err));
    const rlhf_status st = add_value(t, alone, json_object_get(json, "chat_template"), err);
    json_decref(json);
    return st;
}

// ---- keys ----

static int is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static const char *name_of(const json_t *list, size_t i) {
    return json_string_value(json_object_get(json_array_get(list, i), "name"));
}

static const char *text_of(const json_t *list, size_t i) {
    return json_string_value(json_object_get(json_array_get(list, i), "template"));
}

// Replace the names of the templates by their names in the GGUF file, which must be distinct.
static rlhf_status check_names(struct templates *t, struct rlhf__error *err) {
    char shown[NAME_CAP];
    for (size_t i = 0; i < json_array_size(t->item); i++) {
        char name[NAME_CAP];
        const char *own = name_of(t->item, i);
        size_t n = 0;
        for (; n + 1 < sizeof name && own[n]; n++)
            name[n] = own[n];
        name[n] = '\0';
        for (size_t k = 0; k < n; k++)
            if (!is_plain(name[k])) name[k] = '_';
        if (own[n])
            return rlhf__fail(err, RLHF_E_INVALID, "%s: a chat template has a name of %zu bytes",
                              t->dir, strlen(own));
        for (size_t k = 0; k < i; k++)
            if (strcmp(name_of(t->item, k), name) == 0)
                return rlhf__fail(err, RLHF_E_INVALID,
                                  "%s: two chat templates are called %s in a GGUF file", t->dir,
                                  rlhf__printable(name, shown, sizeof shown));
        if (json_object_set_new(json_array_get(t->item, i), "name", json_string(name)) != 0)
            return RLHF__NOMEM(err, "out of memory for a chat template");
    }
    return RLHF_OK;
}

static void put(struct rlhf__gguf *g, const json_t *list) {
    size_t n = 0, at = json_array_size(list);
    char key[NAME_CAP + 32];
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(name_of(list, i), "default") == 0) {
            at = i;
            continue;
        }
        snprintf(key, sizeof key, "tokenizer.chat_template.%s", name_of(list, i));
        rlhf__gguf_str(g, key, text_of(list, i));
        n++;
    }
    if (n > 0) rlhf__gguf_array(g, "tokenizer.chat_templates", RLHF__GGUF_STR, n);
    for (size_t i = 0; n > 0 && i < json_array_size(list); i++)
        if (i != at) rlhf__gguf_item_str(g, name_of(list, i), strlen(name_of(list, i)));
    if (at < json_array_size(list)) rlhf__gguf_str(g, "tokenizer.chat_template", text_of(list, at));
}

rlhf_status rlhf__gguf_chat_put(struct rlhf__gguf *g, const char *dir, const json_t *config,
                                struct rlhf__error *err) {
    struct templates t = {dir, json_array()};
    rlhf_status st =
        t.item ? read_all(&t, config, err) : RLHF__NOMEM(err, "out of memory for chat templates");
    if (st == RLHF_OK) st = check_names(&t, err);
    if (st == RLHF_OK) put(g, t.item);
    json_decref(t.item);
    return st;
}
