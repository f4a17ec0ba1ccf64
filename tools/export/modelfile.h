// modelfile.h: the text of a Modelfile, from which Ollama makes a model of an exported GGUF file:
// FROM, ADAPTER, TEMPLATE, and PARAMETER stop for each end token.
//
// Ollama does not run the Jinja template in a GGUF file. It uses its own templates (of Go's
// text/template), and takes the one whose Jinja text is nearest to the file's, or none. So TEMPLATE
// is derived here: short conversations are rendered, and if the chat template only puts texts
// before and after messages, these texts make up TEMPLATE. Otherwise a comment says that it is
// missing.
#ifndef RLHF_TOOLS_EXPORT_MODELFILE_H
#define RLHF_TOOLS_EXPORT_MODELFILE_H

#include "base/buf.h"

#include <jansson.h>

struct rlhf__modelfile {
    const char *dir;      // of the tokenizer's files
    const json_t *config; // of the model
    const char *from;     // the model: a path as Ollama resolves it, "./m.gguf"
    const char *adapter;  // the adapter, in the same way; NULL = none
};

// Append the text. Errors: those of rlhf__tokenizer_open and rlhf__ends_read; RLHF_E_NOMEM. [main]
rlhf_status rlhf__modelfile_make(const struct rlhf__modelfile *, struct rlhf__buf *out,
                                 struct rlhf__error *err);

#endif
