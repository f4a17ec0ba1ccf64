// template.h: a text with fields such as {{ item.answer }} and {{ sample.output_json.steps[0] }}.
//
// After the namespace, a path consists of .NAME, [NUMBER] and ["NAME"]. A field becomes the content
// of a string, or the JSON text of any other value.
#ifndef RLHF_REWARDS_GRADER_TEMPLATE_H
#define RLHF_REWARDS_GRADER_TEMPLATE_H

#include "process/bytes.h"

#include <rlhf/service.h>

// Zero-initialize.
struct rlhf__template {
    const rlhf_host *host;
    uint32_t n;
    struct rlhf__template_part *part; // [n]
};

enum rlhf__template_space { RLHF__TEMPLATE_ITEM = 0, RLHF__TEMPLATE_SAMPLE = 1 };

// What the fields are read from: the data row, and the sample (sample.h). NULL: it has no fields.
struct rlhf__template_from {
    const rlhf_row_service *rows;
    const rlhf_row *of[2]; // index: enum rlhf__template_space
};

// Reads a text, which must live as long as the template. Returns 1, or 0 with the reason in
// why[cap]; "" means that memory ran out. Release with rlhf__template_finish, even then. [main]
int rlhf__template_read(struct rlhf__template *, const rlhf_host *host, const char *text, char *why,
                        size_t cap);
void rlhf__template_finish(struct rlhf__template *); // [main]

// Append the text with its fields replaced. If a value is missing, writes the field into
// lacks[cap], unless that is NULL, and returns 0. [any]
int rlhf__template_fill(const struct rlhf__template *, const struct rlhf__template_from *,
                        struct rlhf__bytes *out, char *lacks, size_t cap);

// Find a field of the data row that the row lacks; the arguments are as above. Returns 1 if there
// is one. [any]
int rlhf__template_lacks(const struct rlhf__template *, const struct rlhf__template_from *,
                         char *lacks, size_t cap);

#endif
