// export_card_run.h: what a model card says of the run: how it was trained, its figures and
// settings; and how foreign text is put into a card.
#ifndef RLHF_HOST_EXPORT_CARD_RUN_H
#define RLHF_HOST_EXPORT_CARD_RUN_H

#include "base/buf.h"
#include "export/export_source.h"

// Append "## Training", "## Figures", "## Settings"; nothing where the source is of no run. [main]
void rlhf__export_card_run(struct rlhf__buf *out, const struct rlhf__export_source *);

// The algorithm of the run by its file, "ppo"; 0 when there is none. [any]
int rlhf__export_algo(const struct rlhf__export_source *, char out[64]);

// Append text on one line, as Markdown leaves it alone; code: between backticks. NULL is "?".
// [main]
void rlhf__export_code(struct rlhf__buf *out, const char *text, int code);

// Append a value as JSON with the last part of each path in it; indent 0: one line, as code. [main]
void rlhf__export_json(struct rlhf__buf *out, const json_t *v, int indent);

#endif
