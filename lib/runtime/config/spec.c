// spec.c: see spec.h.
#include "config/spec.h"

#include "base/file.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

rlhf_status rlhf__typed_utf8(const char *flag, const char *text, struct rlhf__error *err) {
    json_t *probe = json_string(text);
    if (probe) {
        json_decref(probe);
        return RLHF_OK;
    }
    struct rlhf__buf shown = RLHF__BUF_INIT;
    rlhf__json_write_string(&shown, text, strlen(text));
    rlhf__fail(err, RLHF_E_INVALID, "%s: %s is not UTF-8", flag, rlhf__buf_text(&shown));
    rlhf__buf_finish(&shown);
    return RLHF_E_INVALID;
}

json_t *rlhf__typed_value(const char *raw) {
    const size_t n = strlen(raw);
    const int blanks = n && (isspace((unsigned char)raw[0]) || isspace((unsigned char)raw[n - 1]));
    json_t *v = rlhf__json_decode(raw, n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (v && !(blanks && json_is_number(v))) return v;
    json_decref(v);
    return json_string(raw);
}

size_t rlhf__spec_name_len(const char *spec) {
    if (rlhf__is_file(spec)) return strlen(spec);
    const char *so = strstr(spec, ".so:");
    return so ? (size_t)(so + 3 - spec) : strcspn(spec, ":");
}

// Returns the end of the pair that begins at `pairs`.
static char *pair_end(char *pairs) {
    char *end = pairs + strcspn(pairs, ",");
    for (char *more = end; *more; end = more) {
        more += 1 + strcspn(more + 1, ",");
        if (memchr(end + 1, '=', (size_t)(more - end - 1))) break;
    }
    return end;
}

rlhf_status rlhf__spec_pairs(const char *pairs, const char *flag,
                             rlhf_status (*set)(void *arg, const char *key, const char *value,
                                                struct rlhf__error *err),
                             void *arg, struct rlhf__error *err) {
    char *copy = strdup(pairs);
    rlhf_status st = RLHF_OK;
    if (!copy) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    for (char *pair = copy; st == RLHF_OK && *pair;) {
        char *end = pair_end(pair), *next = *end ? end + 1 : end;
        *end = '\0';
        char *value = strchr(pair, '=');
        const size_t n = strlen(pair);
        const int is_python = n > 3 && strcmp(pair + n - 3, ".py") == 0;
        if (!value || value == pair) {
            st = rlhf__fail(err, RLHF_E_INVALID, "%s: \"%s\" is not of the form key=value%s", flag,
                            pair, is_python ? ": python.so:file=FILE.py,function=NAME" : "");
            break;
        }
        *value++ = '\0';
        st = set(arg, pair, value, err);
        pair = next;
    }
    free(copy);
    return st;
}
