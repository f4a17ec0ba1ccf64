// other_formats.c: see other_formats.h.
#include "weights/other_formats.h"

#include "base/printable.h"

#include <dirent.h>
#include <string.h>

#define LOAD "convert it once, in Python: transformers.AutoModelForCausalLM.from_pretrained(\"DIR\""
#define SAVE ").save_pretrained(\"DIR\") (of a classifier, AutoModelForSequenceClassification)"
#define UNSAID                                                                                     \
    "load it in Python as its maker says and call save_pretrained, which writes safetensors"

static const struct format {
    const char *name, *ending; // one of them: the whole name, or how it ends
    const char *what, *how;    // "model.gguf WHAT; HOW"
} formats[] = {
    {"pytorch_model.bin", NULL, "is a pickle, which is never read", LOAD SAVE},
    {"pytorch_model.bin.index.json", NULL, "names pickles, which are never read", LOAD SAVE},
    {NULL, ".gguf", "is GGUF, which is not read", LOAD ", gguf_file=\"FILE.gguf\"" SAVE},
    {"tf_model.h5", NULL, "holds TensorFlow's weights", LOAD ", from_tf=True" SAVE},
    {"flax_model.msgpack", NULL, "holds Flax's weights", LOAD ", from_flax=True" SAVE},
    {"adapter_model.safetensors", NULL, "is an adapter, not a model",
     "merge it into its base (rlhf-host export --merge), or give it as an adapter"},
    {NULL, ".safetensors", "has a name that no loader looks for",
     "a checkpoint in pieces needs its index, one file is called model.safetensors"},
    {NULL, ".bin", "is a pickle, which is never read", LOAD SAVE},
    {NULL, ".pt", "is a pickle, which is never read", UNSAID},
    {NULL, ".pth", "is a pickle, which is never read", UNSAID},
    {NULL, ".ckpt", "is a pickle, which is never read", UNSAID},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static int is_of(const struct format *f, const char *name) {
    if (f->name) return strcmp(name, f->name) == 0;
    const size_t n = strlen(name), m = strlen(f->ending);
    return n > m && strcmp(name + n - m, f->ending) == 0;
}

// The first format of the list that a file of dir is of, and that file's name; N_FORMATS: none.
static size_t find(const char *dir, char name[256]) {
    size_t best = N_FORMATS;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        for (size_t i = 0; i < N_FORMATS; i++) {
            if (!is_of(&formats[i], e->d_name)) continue;
            // Of several of one format the first by name: readdir's order is the disk's.
            if (i > best || (i == best && strcmp(e->d_name, name) >= 0)) break;
            best = i;
            memcpy(name, e->d_name, strlen(e->d_name) + 1);
            break;
        }
    if (d) closedir(d);
    return best;
}

rlhf_status rlhf__other_formats(const char *dir, struct rlhf__error *err) {
    char name[256], shown[1024];
    const size_t i = find(dir, name);
    if (i == N_FORMATS)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s holds no weights; expected model.safetensors or "
                          "model.safetensors.index.json",
                          dir);
    const struct format *f = &formats[i];
    rlhf__printable(name, shown, sizeof shown);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s holds no model.safetensors or model.safetensors.index.json: %s %s; %s",
                      dir, shown, f->what, f->how);
}
