// metric_words.c: see metric_words.h.
#include "page/metric_words.h"

#include "base/buf.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

// The rows of the tables in docs/metrics.md, unchanged.
static const char *const rows[] = {
#include "metrics_rows.inc"
    NULL};

// Writes cell k of a row, counted from 1, to `out`, with its Markdown. "\|" is a bar within a cell.
static void cell(const char *row, int k, struct rlhf__buf *out) {
    rlhf__buf_clear(out);
    for (; *row && k >= 0; row++) {
        if (*row == '\\' && row[1] == '|')
            row++;
        else if (*row == '|') {
            k--;
            continue;
        }
        if (k == 0 && (*row != ' ' || out->len)) rlhf__buf_putc(out, *row);
    }
    while (out->len && out->data[out->len - 1] == ' ')
        out->data[--out->len] = '\0';
}

// Returns the text of a cell without code marks and links: [words](target) becomes words.
static json_t *plain(const struct rlhf__buf *in) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    for (const char *p = rlhf__buf_text(in); *p; p++) {
        const char *close = *p == '[' ? strstr(p, "](") : NULL, *end = close;
        if (close) end = strchr(close, ')');
        if (close && end) {
            for (const char *q = p + 1; q < close; q++)
                if (*q != '`') rlhf__buf_putc(&out, *q);
            p = end;
        } else if (*p != '`') {
            rlhf__buf_putc(&out, *p);
        }
    }
    json_t *text = rlhf__json_text(rlhf__buf_text(&out));
    rlhf__buf_finish(&out);
    return text;
}

// Returns 1 if the metric is in `names`, a cell such as "`a`, `b/c`, `.../d`". "..." stands for the
// previous name up to its last slash.
static int names_metric(const char *names, const char *metric) {
    char last[256] = "";
    for (const char *open = strchr(names, '`'); open; open = strchr(open, '`')) {
        const char *close = strchr(open + 1, '`');
        if (!close) return 0;
        const int n = (int)(close - open - 1);
        if (strncmp(open + 1, "...", 3) == 0) {
            char *slash = strrchr(last, '/');
            const size_t at = slash ? (size_t)(slash - last) : strlen(last);
            snprintf(last + at, sizeof last - at, "%.*s", n - 3, open + 4);
        } else {
            snprintf(last, sizeof last, "%.*s", n, open + 1);
        }
        if (strcmp(last, metric) == 0) return 1;
        open = close + 1;
    }
    return 0;
}

static json_t *find(const char *metric) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    json_t *found = NULL;
    int what = 2, unit = 0; // columns of the table
    for (size_t i = 0; rows[i] && !found; i++) {
        cell(rows[i], 1, &text);
        if (strcmp(rlhf__buf_text(&text), "name") == 0) {
            what = unit = 0;
            for (int k = 2; k < 8; k++) {
                cell(rows[i], k, &text);
                if (strcmp(rlhf__buf_text(&text), "definition") == 0) what = k;
                if (strcmp(rlhf__buf_text(&text), "unit") == 0) unit = k;
            }
        } else if (what && names_metric(rlhf__buf_text(&text), metric)) {
            cell(rows[i], what, &text);
            json_t *words = plain(&text);
            cell(rows[i], unit ? unit : 100, &text);
            found = json_pack("[o, o]", words, plain(&text));
        }
    }
    rlhf__buf_finish(&text);
    return found;
}

json_t *rlhf__metric_words(const char *metric) {
    char general[300];
    const char *slash = strchr(metric, '/'), *end = slash ? strchr(slash + 1, '/') : NULL;
    json_t *found = find(metric);
    if (!found && end && (strncmp(metric, "rewards/", 8) == 0) &&
        snprintf(general, sizeof general, "rewards/<plugin>%s", end) < (int)sizeof general)
        found = find(general);
    if (!found && strncmp(metric, "eval/", 5) == 0) found = rlhf__metric_words(metric + 5);
    return found;
}
