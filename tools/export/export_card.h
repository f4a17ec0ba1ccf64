// export_card.h: README.md of an exported directory, a model card as the hub reads it: what the
// model is, how it was trained, with which settings and figures.
//
// Nothing in it tells where it was made: of a path the last part stays, and neither hosts nor
// hardware nor notes are named.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_CARD_H
#define RLHF_TOOLS_EXPORT_EXPORT_CARD_H

#include "base/buf.h"
#include "base/folder.h"
#include "export/export_source.h"

struct rlhf__export_card {
    const struct rlhf__export_source *source;
    const char *title;      // name of the directory
    const char *base_model; // --base-model, NULL = what can be told from paths and config
    const char *dtype;      // "f32", ...; NULL = mixed
    int64_t n_parameters;
    int32_t adapter, reserved; // 1: it is an adapter alone, for PEFT
};

// Write README.md. A model of no run that has one keeps it. Errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__export_card_write(const struct rlhf__export_card *, const struct rlhf__folder *to,
                                    struct rlhf__error *err);

// 1: the source is of no run and has a README.md, which stays its card. [main]
int rlhf__export_card_kept(const struct rlhf__export_source *);

// ---- the run behind the model, and how foreign text is put into a card ----

// Append "## Training", "## Figures", "## Settings"; nothing where the source is of no run. [main]
void rlhf__export_card_run(struct rlhf__buf *out, const struct rlhf__export_source *);

// The algorithm of the run by its file, "ppo"; 0 when there is none. [any]
int rlhf__export_algo(const struct rlhf__export_source *, char out[64]);

// Append text on one line, as Markdown leaves it alone; code: between backticks. NULL is "?".
// [main]
void rlhf__export_code(struct rlhf__buf *out, const char *text, int code);

// Append a value as JSON with the last part of each path in it; indent 0: one line, as code. [main]
void rlhf__export_json(struct rlhf__buf *out, const json_t *v, int indent);

// ---- names on the Hugging Face hub, OWNER/NAME ----

// 1 when text is what the hub calls a model: NAME or OWNER/NAME. [any]
int rlhf__is_hub_id(const char *text);

// The hub's name of a path in the hub's cache, .../models--OWNER--NAME/snapshots/...; 0 = none.
// [any]
int rlhf__hub_id_of_path(const char *path, char out[128]);

#endif
