// run_files.c: see run_files.h.
#include "history/run_files.h"

#include "base/json.h"
#include "base/regular.h"
#include "history/loose_json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OBJECT_MAX   ((uint64_t)8 << 20) // maximal size of config.json and manifest.json
#define TROUBLE_MAX  20                  // maximal number of sentences
#define SENTENCE_MAX 400

void rlhf__run_files_trouble(struct rlhf__run_files *run, const char *fmt, ...) {
    char text[SENTENCE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (json_array_size(run->trouble) < TROUBLE_MAX)
        json_array_append_new(run->trouble, rlhf__json_text(text));
}

int rlhf__run_files_fd(struct rlhf__run_files *run, const char *name, int64_t *size) {
    struct stat st;
    *size = 0;
    const int fd = rlhf__regular_open(run->root->fd, name, 0);
    if (fd >= 0) {
        *size = fstat(fd, &st) == 0 ? (int64_t)st.st_size : 0;
        return fd;
    }
    if (errno == ELOOP)
        rlhf__run_files_trouble(run, "%s is a link, which is not followed", name);
    else if (errno == EISDIR || errno == ENOTSUP)
        rlhf__run_files_trouble(run, "%s is not a regular file", name);
    else if (errno != ENOENT)
        rlhf__run_files_trouble(run, "%s could not be opened: %s", name, strerror(errno));
    return -1;
}

// Reads the JSON object in a file. On failure, adds a sentence to the trouble and returns an empty
// object.
static json_t *read_object(struct rlhf__run_files *run, const char *name) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0, ""};
    int64_t size;
    const int before = (int)json_array_size(run->trouble);
    const int fd = rlhf__run_files_fd(run, name, &size);
    json_t *v = NULL;
    if (fd < 0 && (int)json_array_size(run->trouble) == before)
        rlhf__run_files_trouble(run, "%s is missing", name);
    if (fd >= 0 && rlhf__file_read_fd(fd, name, OBJECT_MAX, &text, &err) < 0) {
        rlhf__run_files_trouble(run, "%s", err.text);
    } else if (fd >= 0) {
        v = rlhf__loose_json(rlhf__buf_text(&text), text.len);
        if (!json_is_object(v))
            rlhf__run_files_trouble(run, v ? "%s is not a JSON object" : "%s is not valid JSON",
                                    name);
    }
    if (fd >= 0) close(fd);
    rlhf__buf_finish(&text);
    if (json_is_object(v)) return v;
    json_decref(v);
    return json_object();
}

// Returns 0 for the directory of a model: its config.json has no member "run", and it has no
// metrics.jsonl. An empty config is accepted, because a damaged config.json is read as an empty
// object.
static int is_run(const struct rlhf__run_files *f) {
    return json_is_object(json_object_get(f->config, "run")) || json_object_size(f->config) == 0 ||
           rlhf__folder_has(f->root, "metrics.jsonl");
}

rlhf_status rlhf__run_files_open(const char *path, struct rlhf__run_files *out,
                                 struct rlhf__error *err) {
    char real[RLHF__PATH_CAP];
    *out = (struct rlhf__run_files){0};
    if (!rlhf__path_real(path, real) || !rlhf__is_dir(real))
        return rlhf__fail(err, RLHF_E_INVALID, "'%s' is not a directory of a run", path);
    RLHF_TRY(rlhf__folder_open(NULL, real, &out->root, err));
    if (!rlhf__folder_has(out->root, "config.json") &&
        !rlhf__folder_has(out->root, "metrics.jsonl"))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "'%s' is not a run: it has neither config.json nor metrics.jsonl", path);
    out->name = strdup(rlhf__path_base(real));
    out->trouble = json_array();
    if (!out->name || !out->trouble) return RLHF__NOMEM(err, "%s: out of memory", path);
    out->config = read_object(out, "config.json");
    out->manifest = read_object(out, "manifest.json");
    if (!out->config || !out->manifest) return RLHF__NOMEM(err, "%s: out of memory", path);
    if (!is_run(out))
        return rlhf__fail(err, RLHF_E_INVALID, "'%s' is not a run: its config.json has no \"run\"",
                          path);
    return RLHF_OK;
}

void rlhf__run_files_close(struct rlhf__run_files *run) {
    rlhf__folder_close(run->root);
    free(run->name);
    json_decref(run->config);
    json_decref(run->manifest);
    json_decref(run->trouble);
    *run = (struct rlhf__run_files){0};
}

const json_t *rlhf__run_files_setting(const struct rlhf__run_files *run, const char *key) {
    const json_t *at = run->config;
    const char *dot = strchr(key, '.');
    char section[64];
    if (dot) {
        snprintf(section, sizeof section, "%.*s", (int)(dot - key), key);
        at = json_object_get(at, section);
        key = dot + 1;
    }
    return json_object_get(at, key);
}

double rlhf__run_files_number(const struct rlhf__run_files *run, const char *key,
                              double otherwise) {
    const json_t *v = rlhf__run_files_setting(run, key);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}
