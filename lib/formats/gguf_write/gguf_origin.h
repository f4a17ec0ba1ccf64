// gguf_origin.h: what a GGUF file says of the model's origin: its name, its makers, its license.
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_ORIGIN_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_ORIGIN_H

#include "gguf_write/gguf_writer.h"

// Add general.name and, if the model was read from the GGUF file `from`, that file's keys about
// license and makers. If `changed` is 1 (a merged adapter), the model gets the name `name`, and the
// name of `from` becomes that of its base (general.base_model.0.name); otherwise it keeps the name
// that `from` has. `from` NULL: the model was read from a directory. Errors: those of
// rlhf__gguf_open. [main]
rlhf_status rlhf__gguf_origin_put(struct rlhf__gguf *g, const char *from, int changed,
                                  const char *name, struct rlhf__error *err);

#endif
