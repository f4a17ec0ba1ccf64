// hf_dir.c: see hf_dir.h.
#include "weights/hf_dir.h"

#include "base/file.h"
#include "base/json.h"
#include "weights/gguf_metadata.h"
#include "weights/run_checkpoint.h"
#include "weights/text_part.h"
#include "weights/wrong_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

// transformers omits the label names from config.json if there are two labels and the user did not
// name them.
#define CONFIG_MAX ((uint64_t)64 << 20)

enum { MAX_LABELS = 1 << 16, DEFAULT_LABELS = 2 };

static rlhf_status no_memory(struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for a model directory");
}

// Refuses the config.json of a run, which has the run's settings. The model is in a subdirectory.
static rlhf_status no_run(const json_t *config, const char *dir, struct rlhf__error *err) {
    if (json_object_get(config, "model_type") || !json_object_get(config, "run")) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s is a run directory; give its model, %s/checkpoints/latest", dir, dir);
}

static rlhf_status no_config(const char *dir, struct rlhf__error *err) {
    char *adapter = rlhf__path_join(dir, "adapter_config.json");
    int there = adapter && rlhf__is_file(adapter);
    free(adapter);
    if (!there) return rlhf__wrong_dir(dir, err);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s holds an adapter (adapter_config.json), not a whole model, which is "
                      "needed here; rlhf-host export --merge makes one",
                      dir);
}

// Python's json writes and reads NaN, Infinity and -Infinity, which are not JSON. Outside of
// strings they become null, like a missing value.
static void put_without_nan(struct rlhf__buf *out, const char *s, size_t n) {
    static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
    int in_string = 0;
    for (size_t i = 0, step; i < n; i += step) {
        const char *as = NULL;
        step = in_string && s[i] == '\\' && i + 1 < n ? 2 : 1;
        if (s[i] == '"') in_string = !in_string;
        for (size_t k = 0; k < 3 && !in_string && !as; k++) {
            const size_t len = strlen(words[k]);
            if (n - i < len || memcmp(s + i, words[k], len) != 0) continue;
            as = "null";
            step = len;
        }
        rlhf__buf_put(out, as ? as : s + i, as ? 4 : step);
    }
}

static rlhf_status load_config(const char *path, json_t **out, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT, plain = RLHF__BUF_INIT;
    rlhf_status st = rlhf__file_read(path, CONFIG_MAX, &text, err);
    if (st == RLHF_OK) put_without_nan(&plain, rlhf__buf_text(&text), text.len);
    if (st == RLHF_OK) st = rlhf__buf_ok(&plain, err);
    if (st == RLHF_OK)
        st = rlhf__json_parse_foreign(path, rlhf__buf_text(&plain), plain.len, out, err);
    rlhf__buf_finish(&text);
    rlhf__buf_finish(&plain);
    return st;
}

static rlhf_status gguf_config(const char *path, json_t **out, struct rlhf__error *err) {
    struct rlhf__gguf_file *file = NULL;
    rlhf_status st = rlhf__gguf_open(path, &file, err);
    if (st == RLHF_OK) st = rlhf__gguf_config(file, NULL, out, err);
    rlhf__gguf_close(file);
    return st;
}

rlhf_status rlhf__hf_config_read(const char *dir, json_t **out, struct rlhf__error *err) {
    *out = NULL;
    if (rlhf__gguf_is(dir)) return gguf_config(dir, out, err);
    char *path = rlhf__path_join(dir, "config.json");
    if (!path) return no_memory(err);
    rlhf_status st = rlhf__checkpoint_links(dir, err);
    errno = 0; // EACCES: it exists, but we may not look inside
    if (st != RLHF_OK)
        *out = NULL;
    else if (!rlhf__is_dir(dir) && errno != EACCES)
        st = rlhf__wrong_dir(dir, err);
    else if (!rlhf__is_file(path) && errno != EACCES)
        st = no_config(dir, err);
    else
        st = load_config(path, out, err);
    if (st == RLHF_OK && !json_is_object(*out))
        st = rlhf__fail(err, RLHF_E_INVALID, "%s: expected an object, found %s", path,
                        rlhf__json_kind(*out));
    if (st == RLHF_OK) st = no_run(*out, dir, err);
    if (st == RLHF_OK) st = rlhf__text_part_config(out, dir, err);
    if (st != RLHF_OK) {
        json_decref(*out);
        *out = NULL;
    }
    free(path);
    return st;
}

rlhf_status rlhf__hf_model_type(const json_t *config, const char *dir, const char **out,
                                struct rlhf__error *err) {
    const json_t *v = json_object_get(config, "model_type");
    if (!json_is_string(v))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: model_type is %s, expected a string", dir,
                          rlhf__json_kind(v));
    const char *s = json_string_value(v);
    size_t good = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");
    if (!*s || s[good] || good > 64)
        return rlhf__fail(err, RLHF_E_INVALID, "%s/config.json: '%.64s' is not a valid model_type",
                          dir, s);
    *out = s;
    return RLHF_OK;
}

int rlhf__hf_tied(const json_t *config) {
    static const char *const untied[] = {"llama",   "mistral",          "qwen2", "qwen3",
                                         "granite", "granitemoehybrid", "phi3",  "olmo2",
                                         "olmo3",   "qwen3_5_text"};
    const json_t *tied = json_object_get(config, "tie_word_embeddings");
    const char *type = json_string_value(json_object_get(config, "model_type"));
    // What LFM2's published files call it; transformers lets it take precedence.
    const json_t *first = json_object_get(config, "tie_embedding");
    if (json_is_boolean(first) && type && strcmp(type, "lfm2") == 0) tied = first;
    if (json_is_boolean(tied)) return json_is_true(tied);
    for (size_t i = 0; type && i < sizeof untied / sizeof *untied; i++)
        if (!strcmp(type, untied[i])) return 0;
    return 1;
}

static rlhf_status set_name(struct rlhf__labels *labels, int32_t i, const char *name,
                            struct rlhf__error *err) {
    labels->name[i] = strdup(name);
    return labels->name[i] ? RLHF_OK : no_memory(err);
}

static rlhf_status fill_labels(const json_t *names, const char *dir, struct rlhf__labels *out,
                               struct rlhf__error *err) {
    char key[32];
    for (int32_t i = 0; i < out->n; i++) {
        snprintf(key, sizeof key, "%d", (int)i);
        const json_t *name = json_object_get(names, key);
        if (names && !json_is_string(name))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s/config.json: id2label has %d entries but \"%s\" is %s", dir,
                              (int)out->n, key, name ? "not a string" : "missing");
        snprintf(key, sizeof key, "LABEL_%d", (int)i);
        RLHF_TRY(set_name(out, i, names ? json_string_value(name) : key, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__hf_labels(const json_t *config, const char *dir, struct rlhf__labels *out,
                            struct rlhf__error *err) {
    *out = (struct rlhf__labels){0};
    const json_t *names = json_object_get(config, "id2label");
    const json_t *number = json_object_get(config, "num_labels");
    if (json_is_null(names)) names = NULL;
    if (names && !json_is_object(names))
        return rlhf__fail(err, RLHF_E_INVALID, "%s/config.json: id2label is %s, expected an object",
                          dir, rlhf__json_kind(names));
    if (json_is_null(number)) number = NULL;
    double n = names    ? (double)json_object_size(names)
               : number ? json_number_value(number)
                        : DEFAULT_LABELS;
    if (!names && number && (!json_is_number(number) || n != floor(n)))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/config.json: num_labels is %s, expected an integer", dir,
                          rlhf__json_kind(number));
    if (n < 0 || n > MAX_LABELS)
        return rlhf__fail(err, RLHF_E_INVALID, "%s/config.json: %.0f labels; allowed: 0 to %d", dir,
                          n, MAX_LABELS);
    if (n == 0) return RLHF_OK;
    out->name = calloc((size_t)n, sizeof *out->name);
    if (!out->name) return no_memory(err);
    out->n = (int32_t)n;
    rlhf_status st = fill_labels(names, dir, out, err);
    if (st < 0) rlhf__labels_finish(out);
    return st;
}

void rlhf__labels_finish(struct rlhf__labels *labels) {
    for (int32_t i = 0; i < labels->n; i++)
        free(labels->name[i]);
    free(labels->name);
    *labels = (struct rlhf__labels){0};
}

int32_t rlhf__labels_find(const struct rlhf__labels *labels, const char *name) {
    for (int32_t i = 0; i < labels->n; i++)
        if (!strcmp(labels->name[i], name)) return i;
    for (int32_t i = 0; i < labels->n; i++)
        if (!strcasecmp(labels->name[i], name)) return i;
    return -1;
}

rlhf_status rlhf__hf_set_labels(json_t *config, const struct rlhf__labels *labels,
                                struct rlhf__error *err) {
    json_t *to_name = json_object(), *to_id = json_object();
    int bad = !to_name || !to_id;
    for (int32_t i = 0; !bad && i < labels->n; i++) {
        char key[32];
        snprintf(key, sizeof key, "%d", (int)i);
        bad = json_object_set_new(to_name, key, json_string(labels->name[i])) ||
              json_object_set_new(to_id, labels->name[i], json_integer(i));
    }
    bad = bad || json_object_set(config, "id2label", to_name) ||
          json_object_set(config, "label2id", to_id) ||
          json_object_set_new(config, "num_labels", json_integer(labels->n));
    json_decref(to_name);
    json_decref(to_id);
    return bad ? no_memory(err) : RLHF_OK;
}

rlhf_status rlhf__hf_set_dtype(json_t *config, int32_t dtype, struct rlhf__error *err) {
    static const char *const keys[] = {"dtype", "torch_dtype"};
    for (size_t i = 0; i < 2; i++)
        if (json_object_get(config, keys[i]) &&
            json_object_set_new(config, keys[i],
                                json_string(dtype == RLHF_BF16 ? "bfloat16" : "float32")))
            return no_memory(err);
    return RLHF_OK;
}

rlhf_status rlhf__hf_config_write(const struct rlhf__folder *dir, json_t *config,
                                  struct rlhf__error *err) {
    return rlhf__json_save_new(dir, "config.json", json_incref(config), 2, err);
}

static rlhf_status copy_file(const struct rlhf__folder *from, const struct rlhf__folder *to,
                             const char *name, struct rlhf__error *err) {
    struct rlhf__buf bytes = RLHF__BUF_INIT;
    if (!rlhf__folder_is_file(from, name)) return RLHF_OK;
    rlhf_status st = rlhf__folder_read(from, name, (uint64_t)256 << 20, &bytes, err);
    if (st == RLHF_OK) st = rlhf__file_write(to, name, rlhf__buf_text(&bytes), bytes.len, err);
    rlhf__buf_finish(&bytes);
    return st;
}

// Copies the additional chat templates, which have one file each.
static rlhf_status copy_templates(const struct rlhf__folder *from, const struct rlhf__folder *to,
                                  struct rlhf__error *err) {
    static const char sub[] = "additional_chat_templates";
    const int fd = openat(from->fd, sub, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    struct rlhf__folder *made = NULL;
    rlhf_status st = RLHF_OK;
    for (struct dirent *e; d && st == RLHF_OK && (e = readdir(d)) != NULL;) {
        const size_t n = strlen(e->d_name);
        char name[sizeof sub + 256];
        snprintf(name, sizeof name, "%s/%s", sub, e->d_name);
        if (n < 7 || strcmp(e->d_name + n - 6, ".jinja") != 0) continue;
        if (!made) st = rlhf__folder_make(to, sub, NULL, &made, err);
        if (st == RLHF_OK) st = copy_file(from, to, name, err);
    }
    rlhf__folder_close(made);
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
    return st;
}

// The tokenizer's files, and the files that are copied with them.
static const char *const copied[] = {"vocab.json",
                                     "merges.txt",
                                     "vocab.txt",
                                     "tokenizer.json",
                                     "tokenizer_config.json",
                                     "special_tokens_map.json",
                                     "added_tokens.json",
                                     "tokenizer.model",
                                     "generation_config.json",
                                     "chat_template.json",
                                     "chat_template.jinja"};

int rlhf__hf_copies(const char *name) {
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        if (strcmp(name, copied[i]) == 0) return 1;
    return 0;
}

rlhf_status rlhf__hf_copy_tokenizer(const struct rlhf__folder *from, const struct rlhf__folder *to,
                                    struct rlhf__error *err) {
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        RLHF_TRY(copy_file(from, to, copied[i], err));
    return copy_templates(from, to, err);
}
