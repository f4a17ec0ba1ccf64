// metric_words.h: the definitions of metrics. The build copies them from the tables of
// docs/metrics.md.
#ifndef RLHF_TOOLS_PAGE_METRIC_WORDS_H
#define RLHF_TOOLS_PAGE_METRIC_WORDS_H

#include <jansson.h>

// Returns ["definition", "unit"] of a metric, without Markdown; the unit may be "". A placeholder
// stands for any name: rewards/imdb/mean has the definition of rewards/<plugin>/mean. Ignores a
// prefix eval/. The caller owns the new reference. Returns NULL if the metric is not defined. [any]
json_t *rlhf__metric_words(const char *metric);

#endif
