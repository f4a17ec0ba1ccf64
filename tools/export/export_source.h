// export_source.h: what `rlhf-host export` was pointed at: a checkpoint of a run, with what the run
// says of itself, or any model directory.
#ifndef RLHF_HOST_EXPORT_SOURCE_H
#define RLHF_HOST_EXPORT_SOURCE_H

#include "base/file.h"
#include "base/log.h"

#include "weights/peft.h"

#include <jansson.h>

// Zero-initialise; release with rlhf__export_source_finish, also after a failure.
struct rlhf__export_source {
    char dir[RLHF__PATH_CAP]; // the model directory, absolute and without links
    char run[RLHF__PATH_CAP]; // its run, the same; "" = it is of no run
    // With an adapter dir is its PEFT directory; base: the model that it is on, "": none.
    struct rlhf__peft peft;
    char base[RLHF__PATH_CAP];
    char checkpoint[64]; // its name in the run
    int32_t is_best;
    int held;       // 1 + the descriptor that holds dir (rlhf__folder_hold); 0: none
    json_t *config; // of the model
    // What the run left, each NULL where it did not.
    json_t *settings, *manifest, *state, *metrics; // metrics: the numbers of the checkpoint's phase
};

// Find what `given` is; adapter: --adapter, a PEFT directory on it, NULL = none. choice:
// --checkpoint (NULL = the best where the run keeps one, else the last). Says in the log which
// checkpoint of a run it is. Errors: RLHF_E_INVALID, RLHF_E_IO. [main]
rlhf_status rlhf__export_source_open(struct rlhf__export_source *, const char *given,
                                     const char *adapter, const char *choice, struct rlhf__log *log,
                                     struct rlhf__error *err);

void rlhf__export_source_finish(struct rlhf__export_source *); // [main]

// 1 when `path`, absolute and without links, is the run, the model directory, an adapter's base or
// below one of them. [any]
int rlhf__export_source_holds(const struct rlhf__export_source *, const char *path);

// Where the tokenizer's files are: dir, or with an adapter that has none its base. [any]
const char *rlhf__export_source_text(const struct rlhf__export_source *);

// DIR/name of the model, an object; *out NULL where there is no such file, else a new reference.
// Errors: RLHF_E_INVALID (no JSON, no object), RLHF_E_IO. [main]
rlhf_status rlhf__export_source_json(const struct rlhf__export_source *, const char *name,
                                     json_t **out, struct rlhf__error *err);

// Whether it is a language model that writes, by the architectures of its config. [any]
int rlhf__export_source_writes(const struct rlhf__export_source *);

#endif
