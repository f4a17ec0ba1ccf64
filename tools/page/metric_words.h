// metric_words.h: the definitions of metrics, from the tables of docs/metrics.md at build time.
#ifndef RLHF_TOOLS_METRIC_WORDS_H
#define RLHF_TOOLS_METRIC_WORDS_H

#include <jansson.h>

// ["definition", "unit"] of a metric without Markdown; the unit may be "". Names of plugins and the
// prefix eval/ are looked through: rewards/imdb/mean is rewards/<plugin>/mean. New reference; NULL
// if the metric is not defined. [any]
json_t *rlhf__metric_words(const char *metric);

#endif
