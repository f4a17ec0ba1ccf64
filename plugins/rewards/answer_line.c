// answer_line.c: see answer_line.h.
#include "answer_line.h"

#include "process/json_reward.h"

#include <rlhf/reward.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

__attribute__((format(printf, 2, 3))) static int refuse(char *why, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, RLHF__LINE_WHY, fmt, ap);
    va_end(ap);
    return 0;
}

// ---- a bare number ----

// Reads a decimal number like strtod(), but refuses hexadecimal numbers and uses a point in any
// locale. Also reads true and false, as json_reward.h does.
static int read_number(const char *line, size_t n, double *out) {
    char text[352]; // longer than any double needs
    if (n == 0 || n >= sizeof text) return 0;
    memcpy(text, line, n);
    text[n] = 0;
    const char *word = text + (*text == '-' || *text == '+');
    if (strcasecmp(word, "nan") == 0) {
        *out = (double)NAN;
        return 1;
    }
    if (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0) {
        *out = strcasecmp(text, "true") == 0;
        return 1;
    }
    if (strcasecmp(word, "inf") == 0 || strcasecmp(word, "infinity") == 0) {
        *out = *text == '-' ? -(double)INFINITY : (double)INFINITY;
        return 1;
    }
    if (strspn(text, "+-.0123456789eE") != n) return 0;
    char *end;
    *out = strtod(text, &end);
    return *end == 0;
}

// ---- an object ----

static int read_reward(const json_t *v, double *out, char *why) {
    return rlhf__json_reward(v, out)
               ? 1
               : refuse(why, "its \"reward\" is %s, not a number", rlhf__json_what(v));
}

static int read_index(const json_t *v, int64_t *out, char *why) {
    const double index = json_number_value(v); // 0 if v is not a number
    if (!json_is_number(v) || !(index >= 0 && index <= UINT32_MAX) || index != floor(index))
        return refuse(why, "its \"index\" is not the number of a row");
    *out = (int64_t)index;
    return 1;
}

static int read_verdict(const json_t *v, int32_t *out, char *why) {
    const char *text = json_string_value(v);
    if (json_is_null(v))
        *out = RLHF_VERDICT_NONE;
    else if (json_is_true(v) || (text && strcmp(text, "right") == 0))
        *out = RLHF_VERDICT_RIGHT;
    else if (json_is_false(v) || (text && strcmp(text, "wrong") == 0))
        *out = RLHF_VERDICT_WRONG;
    else
        return refuse(why,
                      "its \"verdict\" is not one of \"right\", \"wrong\", true, false and null");
    return 1;
}

int rlhf__line_name(const char *name) {
    const size_t n = strlen(name);
    if (n == 0 || n >= RLHF__LINE_NAME) return 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return 0;
    return 1;
}

static int read_metrics(json_t *object, struct rlhf__line *out, char *why) {
    const char *name;
    json_t *v;
    if (!json_is_object(object))
        return refuse(why, "its \"metrics\" is %s, not an object", rlhf__json_what(object));
    json_object_foreach(object, name, v) {
        if (!rlhf__line_name(name))
            return refuse(why, "a metric's name is empty, over %d bytes, or not printable",
                          RLHF__LINE_NAME - 1);
        if (json_is_null(v)) continue;
        if (!json_is_number(v))
            return refuse(why, "its metric \"%.40s\" is %s, not a number", name,
                          rlhf__json_what(v));
        if (out->n_metrics == RLHF__LINE_METRICS)
            return refuse(why, "it has over %d metrics", RLHF__LINE_METRICS);
        out->metric[out->n_metrics].value = json_number_value(v);
        snprintf(out->metric[out->n_metrics].name, RLHF__LINE_NAME, "%s", name);
        out->n_metrics++;
    }
    return 1;
}

int rlhf__line_object(json_t *object, struct rlhf__line *out, char *why) {
    const char *key;
    json_t *v;
    int has_reward = 0;
    memset(out, 0, sizeof *out);
    out->index = -1;
    json_object_foreach(object, key, v) {
        int ok;
        if (strcmp(key, "reward") == 0)
            has_reward = ok = read_reward(v, &out->reward, why);
        else if (strcmp(key, "index") == 0)
            ok = read_index(v, &out->index, why);
        else if (strcmp(key, "verdict") == 0)
            ok = read_verdict(v, &out->verdict, why);
        else if (strcmp(key, "metrics") == 0)
            ok = read_metrics(v, out, why);
        else
            ok = refuse(
                why, "its member \"%.40s\" is not one of reward, index, metrics and verdict", key);
        if (!ok) return 0;
    }
    return has_reward ? 1 : refuse(why, "it has no \"reward\"");
}

int rlhf__line_read(const char *line, size_t n, struct rlhf__line *out, char *why) {
    json_error_t error;
    memset(out, 0, sizeof *out);
    out->index = -1;
    while (n && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    for (; n && (*line == ' ' || *line == '\t'); n--)
        line++;
    if (read_number(line, n, &out->reward)) return 1;
    if (n == 0) return refuse(why, "it is empty");
    if (n == 4 && memcmp(line, "null", 4) == 0) {
        out->reward = (double)NAN;
        return 1;
    }
    if (*line != '{') return refuse(why, "it is neither a number nor a JSON object");
    json_t *object = json_loadb(line, n, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, &error);
    if (!object) return refuse(why, "it is not JSON: %s", error.text);
    const int ok = rlhf__line_object(object, out, why);
    json_decref(object);
    return ok;
}
