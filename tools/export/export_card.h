// export_card.h: writes README.md of an exported directory, which is a model card for the hub. The
// card describes what the model is and how it was trained, with the run's metrics and settings.
//
// The card does not reveal where the model was made: it has only the last part of each path, and no
// hosts, hardware or notes.
#ifndef RLHF_TOOLS_EXPORT_EXPORT_CARD_H
#define RLHF_TOOLS_EXPORT_EXPORT_CARD_H

#include "base/buf.h"
#include "base/folder.h"
#include "export/export_source.h"

struct rlhf__export_card {
    const struct rlhf__export_source *source;
    const char *title;      // name of the directory
    const char *base_model; // --base-model, NULL = from paths and config
    const char *dtype;      // "f32", ...; NULL = mixed
    int64_t n_parameters;
    int32_t adapter; // 1: an adapter alone, for PEFT
};

// Write README.md. If the source is not from a run and has a README.md, keep that file. Errors:
// RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__export_card_write(const struct rlhf__export_card *, const struct rlhf__folder *to,
                                    struct rlhf__error *err);

// Returns 1 if the source is not from a run and has a README.md. The export then keeps this file.
// [main]
int rlhf__export_card_kept(const struct rlhf__export_source *);

// ---- the model's run, and text from other sources in a card ----

// Append the sections "## Training", "## Figures" and "## Settings", or nothing if the source is
// not from a run. [main]
void rlhf__export_card_run(struct rlhf__buf *out, const struct rlhf__export_source *);

// Set `out` to the algorithm of the run, named by its file, e.g. "ppo". Returns 0 if it is not
// known. [any]
int rlhf__export_algo(const struct rlhf__export_source *, char out[64]);

// Append text on one line, escaped for Markdown. If `code` is 1, the text is put between backticks.
// NULL becomes "?". [main]
void rlhf__export_code(struct rlhf__buf *out, const char *text, int code);

// Append a value as JSON, with only the last part of each path. If `indent` is 0, the JSON is on
// one line, inside a Markdown code span. [main]
void rlhf__export_json(struct rlhf__buf *out, const json_t *v, int indent);

// ---- names on the Hugging Face hub, OWNER/NAME ----

// Returns 1 if the text is a model's name on the hub: NAME or OWNER/NAME. [any]
int rlhf__is_hub_id(const char *text);

// If the path is in the hub's cache, .../models--OWNER--NAME/snapshots/..., sets `out` to the
// model's name on the hub, OWNER/NAME, and returns 1. Otherwise returns 0. [any]
int rlhf__hub_id_of_path(const char *path, char out[128]);

#endif
