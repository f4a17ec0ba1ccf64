// http_score.h: a reward service that answers http.so's own form as it should: the length of each
// response, its half as a metric, and right where the row says {"right": true}.
#ifndef RLHF_TESTS_REWARDS_HTTP_SCORE_H
#define RLHF_TESTS_REWARDS_HTTP_SCORE_H

#include "rewards/http_server.h"

// malloc'd; NULL when the request is not in that form.
char *http_score(const struct http_request *);

#endif
