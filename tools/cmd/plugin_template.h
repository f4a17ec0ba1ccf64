// plugin_template.h: fills in the templates of `plugin new`.
#ifndef RLHF_TOOLS_CMD_PLUGIN_TEMPLATE_H
#define RLHF_TOOLS_CMD_PLUGIN_TEMPLATE_H

#include "base/buf.h"
#include "base/error.h"

// A placeholder in the templates, and the text that replaces it.
struct rlhf__template_word {
    const char *from, *to;
};

struct rlhf__templates {
    const char *dir;                        // that contains the templates
    const struct rlhf__template_word *word; // [n] at each place the first one that fits is used
    size_t n;
};

// Append the text with all placeholders filled in. [main]
void rlhf__template_fill(const struct rlhf__templates *, const char *text, struct rlhf__buf *out);

// Read the template `name` and append it, filled in. Errors: those of rlhf__file_read. [main]
rlhf_status rlhf__template_read(const struct rlhf__templates *, const char *name,
                                struct rlhf__buf *out, struct rlhf__error *err);

#endif
