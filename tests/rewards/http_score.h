// http_score.h: a reward service that answers requests in http.so's own form correctly. The answer
// has the length of each response, half of it as a metric, and the verdict "right" if the row has
// {"right": true}.
#ifndef RLHF_TESTS_REWARDS_HTTP_SCORE_H
#define RLHF_TESTS_REWARDS_HTTP_SCORE_H

#include "rewards/http_server.h"

// Returns a malloc'd answer, or NULL if the request is not in that form.
char *http_score(const struct http_request *);

#endif
