// export_evaluations.c: see export_evaluations.h.
#include "export/export_evaluations.h"

#include "base/json.h"
#include "data/lines.h"
#include "export/export_card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- reading ----

static const char *text_of(const json_t *v, const char *key) {
    return json_string_value(json_object_get(v, key));
}

// Returns an object that has, for each file of prompts, its last result.
static json_t *read_all(const struct rlhf__export_source *s) {
    char path[RLHF__PATH_CAP];
    struct rlhf__lines *lines = NULL;
    json_t *found = json_object();
    rlhf_str line;
    int64_t number;
    int more = 1, bad = 0;
    struct rlhf__error err = {0, ""};
    rlhf_status st = RLHF_OK;
    rlhf__path_put(path, "%s/evaluations.jsonl", s->run);
    if (!rlhf__is_file(path) || rlhf__lines_open(path, NULL, &lines, NULL) != RLHF_OK) return found;
    while ((st = rlhf__lines_next(lines, &line, &number, &more, &err)) == RLHF_OK && more) {
        json_t *v = rlhf__json_decode(line.ptr, (size_t)line.len, 0, NULL);
        bad += !v;
        const char *model = text_of(v, "model"), *data = text_of(v, "data");
        if (model && strcmp(rlhf__path_base(model), s->checkpoint) == 0)
            json_object_set(found, data ? data : "", v);
        json_decref(v);
    }
    rlhf__lines_close(lines);
    if (st != RLHF_OK)
        rlhf__logf(s->log, RLHF_LOG_WARN, "export: %s; later results are left out", err.text);
    if (bad)
        rlhf__logf(s->log, RLHF_LOG_WARN, "export: evaluations.jsonl: %d line%s cannot be read",
                   bad, bad == 1 ? "" : "s");
    return found;
}

// ---- one table ----

// A cell such as "0.9612 (0.0043)", or "-".
static void put_cell(struct rlhf__buf *out, const json_t *mean, const json_t *error,
                     const char *form) {
    rlhf__buf_puts(out, " | ");
    if (!json_is_number(mean))
        rlhf__buf_puts(out, "-");
    else
        rlhf__buf_printf(out, form, json_number_value(mean));
    if (json_is_number(error)) rlhf__buf_printf(out, " (%.4f)", json_number_value(error));
}

static void put_difference(struct rlhf__buf *out, const json_t *v, const char *name) {
    const json_t *d = json_object_get(json_object_get(v, "difference"), name);
    put_cell(out, json_object_get(d, "mean"), json_object_get(d, "error"), "%+.4f");
}

// Append the row of the measure `name`. `other` has the results of the second model, or is NULL.
static void put_measure(struct rlhf__buf *out, const json_t *v, const json_t *other,
                        const char *name) {
    char error[64];
    if (!json_object_get(v, name)) return;
    snprintf(error, sizeof error, "%s_error", name);
    rlhf__buf_printf(out, "| %s", name);
    put_cell(out, json_object_get(v, name), json_object_get(v, error), "%.4f");
    if (other) {
        put_cell(out, json_object_get(other, name), json_object_get(other, error), "%.4f");
        put_difference(out, v, name);
    }
    rlhf__buf_puts(out, " |\n");
}

static void put_pass(struct rlhf__buf *out, const json_t *v, const json_t *other, long k) {
    char key[32], name[40];
    snprintf(key, sizeof key, "%ld", k);
    snprintf(name, sizeof name, "pass@%ld", k);
    const json_t *a = json_object_get(json_object_get(v, "pass"), key),
                 *b = json_object_get(json_object_get(other, "pass"), key);
    rlhf__buf_printf(out, "| %s", name);
    put_cell(out, json_object_get(a, "mean"), json_object_get(a, "error"), "%.4f");
    if (other) {
        put_cell(out, json_object_get(b, "mean"), json_object_get(b, "error"), "%.4f");
        put_difference(out, v, name);
    }
    rlhf__buf_puts(out, " |\n");
}

// Append the rows of pass@k, in ascending order of k.
static void put_passes(struct rlhf__buf *out, const json_t *v, const json_t *other) {
    json_t *pass = json_object_get(v, "pass");
    for (long last = 0, next = 1; next;) {
        const char *key;
        json_t *unused;
        next = 0;
        json_object_foreach(pass, key, unused) {
            const long k = strtol(key, NULL, 10);
            if (k > last && (!next || k < next)) next = k;
        }
        if (next) put_pass(out, v, other, next);
        last = next;
    }
}

// Append "512 responses to 128 prompts (4 to each), seed 1, right from a reward of 0.5". Parts that
// are not known are left out.
static void put_responses(struct rlhf__buf *out, const json_t *v) {
    const json_t *prompts = json_object_get(v, "prompts"), *seed = json_object_get(v, "seed"),
                 *each = json_object_get(v, "per_prompt"),
                 *right = json_object_get(v, "right_from");
    rlhf__buf_printf(out, "%lld responses",
                     (long long)json_integer_value(json_object_get(v, "samples")));
    if (json_is_integer(prompts))
        rlhf__buf_printf(out, " to %lld prompt%s", (long long)json_integer_value(prompts),
                         json_integer_value(prompts) == 1 ? "" : "s");
    if (json_is_integer(each))
        rlhf__buf_printf(out, " (%lld to each)", (long long)json_integer_value(each));
    if (json_is_integer(seed))
        rlhf__buf_printf(out, ", seed %lld", (long long)json_integer_value(seed));
    if (json_is_number(right))
        rlhf__buf_printf(out, ", right from a reward of %g", json_number_value(right));
}

static void put_table(struct rlhf__buf *out, const char *data, const json_t *v) {
    static const char *const first[] = {"reward", "correct"}, *const then[] = {"kl", "distinct_3",
                                                                               "mean_length"};
    const json_t *other = json_object_get(v, "compare");
    const char *was = text_of(other, "model");
    if (!was) other = NULL;
    rlhf__buf_puts(out, "\n");
    if (*data) rlhf__export_code(out, rlhf__path_base(data), 1);
    rlhf__buf_puts(out, *data ? ", " : "");
    put_responses(out, v);
    if (other) {
        rlhf__buf_puts(out, ", compared with ");
        rlhf__export_code(out, rlhf__path_checkpoint(was), 1);
    }
    rlhf__buf_printf(out, ":\n\n| measure | this model |%s\n|---|---|%s\n",
                     other ? " before | difference |" : "", other ? "---|---|" : "");
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        put_measure(out, v, other, first[i]);
    put_passes(out, v, other);
    for (size_t i = 0; i < sizeof then / sizeof *then; i++)
        put_measure(out, v, other, then[i]);
}

void rlhf__export_evaluations(struct rlhf__buf *out, const struct rlhf__export_source *s) {
    json_t *all = read_all(s), *v;
    const char *data;
    if (json_object_size(all) > 0)
        rlhf__buf_puts(out, "\n## Evaluation\n\nMeans, with standard errors in parentheses.\n");
    json_object_foreach(all, data, v) put_table(out, data, v);
    json_decref(all);
}
