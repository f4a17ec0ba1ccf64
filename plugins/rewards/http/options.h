// options.h: the options of http.so. The host fills the struct from the table in http.c.
#ifndef RLHF_REWARDS_HTTP_OPTIONS_H
#define RLHF_REWARDS_HTTP_OPTIONS_H

#include <rlhf/option.h>

// The format of requests and answers.
enum rlhf__http_form { RLHF__FORM_ROWS = 0, RLHF__FORM_OPENRLHF = 1 };

struct rlhf__http_options {
    const char *url;
    const char *label;      // for openrlhf: key of the label in the data row; NULL: labels are ""
    const char *header_env; // name of the environment variable with a secret header, or NULL
    const char *ca;         // PEM file of certificates; NULL: the system's certificates
    int64_t batch, concurrency, repeats, redirects, max_answer_mib;
    double connect_timeout_s, patience_s, backoff_s, backoff_max_s;
    int32_t form; // enum rlhf__http_form
    int32_t ids, probe;
};

#endif
