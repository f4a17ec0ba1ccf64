// question.h: the text of a question to a judge: a template whose fields in braces are replaced.
//
//   {prompt} {response}   of the row
//   {ask}                 the criterion
//   {answers} {scale}     the words, or the best score, with which a judge may answer
//   {row.KEY}             a member of the data row; also in the text of a criterion
#ifndef RLHF_REWARDS_RUBRIC_QUESTION_H
#define RLHF_REWARDS_RUBRIC_QUESTION_H

#include "process/bytes.h"

// The beginning of the templates that plugins have.
#define RLHF__QUESTION_HEAD                                                                        \
    "Here is a prompt:\n<prompt>\n{prompt}\n</prompt>\n\nHere is the response to judge:\n"         \
    "<response>\n{response}\n</response>\n\n"

struct rlhf__question_parts {
    const char *ask;
    rlhf_str prompt, response, row;
    const char *answers, *scale; // NULL: the template may not have this field
};

// Append the template with its fields replaced. Fields inside the parts are not replaced, except
// {row.KEY} in `ask`. [any]
void rlhf__question_fill(const char *template, const struct rlhf__question_parts *,
                         struct rlhf__bytes *out);

// Write into why[cap] what is wrong with a template: a field that does not exist, or no {response}
// or {ask}. Only which of `answers` and `scale` are NULL matters. Returns 1 if it is sound. [any]
int rlhf__question_check(const char *template, const struct rlhf__question_parts *, char *why,
                         size_t cap);

// Find a field {row.KEY} of a text whose KEY is not a member of the row, and copy KEY to key[64].
// Returns 1 if there is one. [any]
int rlhf__question_lacks(const rlhf_host *host, const char *text, rlhf_str row, char key[64]);

#endif
