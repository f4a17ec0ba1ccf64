// kit.h: opens model directories on the reference backend and compares their results with
// expected.json, which make_dirs.py made with transformers.
#ifndef RLHF_TESTS_HF_KIT_H
#define RLHF_TESTS_HF_KIT_H

#include "support/scratch.h"

#include "model/session.h"

struct hf {
    struct scratch *scratch;
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__session session;
    json_t *expected;
};

// Setup and teardown for cmocka: *state = struct hf.
int hf_setup(void **state);
int hf_teardown(void **state);

// Makes a directory like dirs/<name> whose files are links to it, as in the hub's cache.
// config.json gets the keys of the JSON object `patch` (NULL: unchanged). Returns the path, which
// the caller does not own. The next call replaces the directory.
const char *hf_variant(const struct hf *f, const char *name, const char *patch);

// Checks the ids and log-probs of the language model in `dir` against `name` in expected.json.
void hf_check_lm(const struct hf *f, const char *dir, const char *name);

// Checks the logits of the classifier in `dir` against `name` in expected.json. Also checks the
// number of its labels and the name of the first label.
void hf_check_classifier(const struct hf *f, const char *dir, const char *name, int32_t n_labels,
                         const char *first);

#endif
