// wrong_dir.c: see wrong_dir.h.
#include "weights/wrong_dir.h"

#include "base/file.h"
#include "base/printable.h"
#include "base/regular.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- other formats ----

#define LOAD "convert it once, in Python: transformers.AutoModelForCausalLM.from_pretrained(\"DIR\""
#define SAVE ").save_pretrained(\"DIR\") (of a classifier, AutoModelForSequenceClassification)"
#define UNSAID                                                                                     \
    "load it in Python as its maker says and call save_pretrained, which writes safetensors"

static const struct format {
    const char *name, *ending; // one of them is set: the whole name of a file, or its ending
    const char *what, *how;    // the message is "model.gguf WHAT; HOW"
} formats[] = {
    {NULL, ".gguf", "is a GGUF file", "give the file itself instead of the directory"},
    {"pytorch_model.bin", NULL, "is a pickle, which is never read", LOAD SAVE},
    {"pytorch_model.bin.index.json", NULL, "names pickles, which are never read", LOAD SAVE},
    {"tf_model.h5", NULL, "holds TensorFlow's weights", LOAD ", from_tf=True" SAVE},
    {"flax_model.msgpack", NULL, "holds Flax's weights", LOAD ", from_flax=True" SAVE},
    {"adapter_model.safetensors", NULL, "is an adapter, not a model",
     "merge it into its base (rlhf-host export --merge), or give it as an adapter"},
    {NULL, ".safetensors", "has a name that no loader looks for",
     "a checkpoint in pieces needs its index, one file is called model.safetensors"},
    {NULL, ".bin", "is a pickle, which is never read", LOAD SAVE},
    {NULL, ".pt", "is a pickle, which is never read", UNSAID},
    {"consolidated.00.pth", NULL, "is of Meta's own form, which is not read",
     "the hub has the model as safetensors: hf download NAME --local-dir DIR"},
    {NULL, ".pth", "is a pickle, which is never read", UNSAID},
    {NULL, ".ckpt", "is a pickle, which is never read", UNSAID},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static int is_of(const struct format *f, const char *name) {
    if (f->name) return strcmp(name, f->name) == 0;
    const size_t n = strlen(name), m = strlen(f->ending);
    return n > m && strcmp(name + n - m, f->ending) == 0;
}

// Returns the first format in the list for which `dir` has a file, and writes the file's name to
// `name`. Returns N_FORMATS if `dir` has no such file.
static size_t find_format(const char *dir, char name[256]) {
    size_t best = N_FORMATS;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        for (size_t i = 0; i < N_FORMATS; i++) {
            if (!is_of(&formats[i], e->d_name)) continue;
            // If `dir` has several files of a format, take the first one by name, because the order
            // of readdir varies.
            if (i > best || (i == best && strcmp(e->d_name, name) >= 0)) break;
            best = i;
            memcpy(name, e->d_name, strlen(e->d_name) + 1);
            break;
        }
    if (d) closedir(d);
    return best;
}

static rlhf_status say_format(size_t i, const char *dir, const char *name,
                              struct rlhf__error *err) {
    char shown[1024];
    rlhf__printable(name, shown, sizeof shown);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s holds no model.safetensors or model.safetensors.index.json: %s %s; %s",
                      dir, shown, formats[i].what, formats[i].how);
}

// ---- the model is in a folder below ----

// Writes the name of the directory in `dir` that begins with `prefix` to `name`: the one with the
// largest number after the prefix or, without numbers, the last by name. Returns 0 if there is
// none.
static int find_below(const char *dir, const char *prefix, char name[256]) {
    const size_t n = strlen(prefix);
    char path[RLHF__PATH_CAP];
    long long best = -1;
    DIR *d = opendir(dir);
    *name = '\0';
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, prefix, n) != 0 || e->d_name[0] == '.') continue;
        const long long number = strtoll(e->d_name + n, NULL, 10);
        if (*name && (number < best || (number == best && strcmp(e->d_name, name) < 0))) continue;
        if (!rlhf__is_dir(rlhf__path_put(path, "%s/%s", dir, e->d_name))) continue;
        best = number;
        memcpy(name, e->d_name, strlen(e->d_name) + 1);
    }
    if (d) closedir(d);
    return *name != '\0';
}

// A folder of the hub's cache: DIR/snapshots/HASH is the model. In the cache's root, DIR is
// models--OWNER--NAME.
static int find_snapshot(const char *dir, char path[RLHF__PATH_CAP]) {
    char below[RLHF__PATH_CAP], model[256] = "", hash[256];
    rlhf__path_put(below, "%s/snapshots", dir);
    if (!rlhf__is_dir(below) && !find_below(dir, "models--", model)) return 0;
    if (*model) rlhf__path_put(below, "%s/%s/snapshots", dir, model);
    if (!find_below(below, "", hash)) return 0;
    rlhf__path_put(path, "%s/%s", below, hash);
    return 1;
}

static rlhf_status say_below(const char *dir, const char *what, const char *path,
                             struct rlhf__error *err) {
    char shown[RLHF__PATH_CAP];
    rlhf__printable(path, shown, sizeof shown);
    return rlhf__fail(err, RLHF_E_INVALID, "%s is %s, not a model; give the model in it: %s", dir,
                      what, shown);
}

rlhf_status rlhf__wrong_weights(const char *dir, struct rlhf__error *err) {
    char name[256], path[RLHF__PATH_CAP];
    const size_t i = find_format(dir, name);
    if (i < N_FORMATS) return say_format(i, dir, name, err);
    if (find_below(dir, "checkpoint-", name))
        return say_below(dir, "the output folder of a trainer",
                         rlhf__path_put(path, "%s/%s", dir, name), err);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s holds no weights; expected model.safetensors or "
                      "model.safetensors.index.json",
                      dir);
}

// ---- names and files ----

// 1 if the text can be a name on the hub: NAME or OWNER/NAME.
static int is_hub_name(const char *s) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_.-";
    const size_t first = strspn(s, letters);
    const size_t second = s[first] == '/' ? strspn(s + first + 1, letters) : 0;
    const size_t n = s[first] == '/' ? first + 1 + second : first;
    return first > 0 && s[0] != '.' && !s[n] && (s[first] != '/' || second > 0);
}

static rlhf_status say_file(const char *path, struct rlhf__error *err) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const struct format gguf = {NULL, ".gguf", NULL, NULL};
    const int fd = rlhf__regular_open(AT_FDCWD, path, 1);
    if (fd < 0) return rlhf__regular_failed(path, err);
    close(fd);
    if (is_of(&gguf, name))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s does not begin with \"GGUF\", so it is not a GGUF file; was it "
                          "downloaded whole?",
                          path);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s is a file; give its directory: a model is a directory with config.json, "
                      "or a GGUF file",
                      path);
}

rlhf_status rlhf__wrong_dir(const char *dir, struct rlhf__error *err) {
    char name[256], path[RLHF__PATH_CAP];
    if (rlhf__is_file(dir)) return say_file(dir, err);
    if (!rlhf__is_dir(dir) && access(dir, F_OK) == 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s is neither a directory nor a regular file; a model is a directory "
                          "with config.json, or a GGUF file",
                          dir);
    if (!rlhf__is_dir(dir))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "model directory %s does not exist; a model is a directory on this "
                          "machine, nothing is downloaded%s%s%s",
                          dir, is_hub_name(dir) ? " (a model of the hub: hf download " : "",
                          is_hub_name(dir) ? dir : "", is_hub_name(dir) ? " --local-dir DIR)" : "");
    if (find_snapshot(dir, path)) return say_below(dir, "a folder of the hub's cache", path, err);
    const size_t i = find_format(dir, name);
    if (i < N_FORMATS && formats[i].how && strcmp(name, "adapter_model.safetensors") != 0 &&
        strstr(name, ".safetensors") == NULL)
        return say_format(i, dir, name, err);
    if (find_below(dir, "checkpoint-", name))
        return say_below(dir, "the output folder of a trainer",
                         rlhf__path_put(path, "%s/%s", dir, name), err);
    return rlhf__fail(err, RLHF_E_INVALID, "%s has no config.json, so it is not a model directory",
                      dir);
}

rlhf_status rlhf__wrong_head(const char *path, const char *what, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: a GGUF file holds a language model without a score head, so it is not a "
                      "%s; give a directory, or an adapter that was trained on this file as a %s",
                      path, what, what);
}
