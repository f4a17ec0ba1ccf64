// question.c: see question.h.
#include "rubric/question.h"

#include "process/row_text.h"

#include <stdio.h>
#include <string.h>

enum { NAME_CAP = 68 }; // of "row." and a key

// Finds the next "{NAME}" in a text. Returns its beginning, sets *end to the position after it, and
// stores the name. Returns NULL if none exists.
static const char *next_field(const char *text, char name[NAME_CAP], const char **end) {
    for (const char *at = text; (at = strchr(at, '{')); at++) {
        const size_t n = strcspn(at + 1, "{}");
        if (at[1 + n] != '}' || n == 0 || n >= NAME_CAP) continue;
        memcpy(name, at + 1, n);
        name[n] = 0;
        *end = at + n + 2;
        return at;
    }
    return NULL;
}

// Returns KEY of "row.KEY", or NULL.
static const char *key_of(const char *name) {
    return strncmp(name, "row.", 4) == 0 && name[4] ? name + 4 : NULL;
}

// Returns the text of a field other than {ask} and {row.KEY}. The ptr is NULL for other names.
static rlhf_str part(const struct rlhf__question_parts *p, const char *name) {
    static const char none[] = "";
    const struct {
        const char *name;
        rlhf_str text;
    } all[] = {{"prompt", p->prompt},
               {"response", p->response},
               {"answers", {p->answers, p->answers ? strlen(p->answers) : 0}},
               {"scale", {p->scale, p->scale ? strlen(p->scale) : 0}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return i < 2 && !all[i].text.ptr ? (rlhf_str){none, 0} : all[i].text;
    return (rlhf_str){NULL, 0};
}

// Appends `text`. Of its fields, {row.KEY} is replaced and, if `p` is not NULL, so are the others.
static void fill(const char *text, const struct rlhf__question_parts *p, rlhf_str row,
                 struct rlhf__bytes *out) {
    char name[NAME_CAP];
    for (const char *end, *at; (at = next_field(text, name, &end)); text = end) {
        const char *key = key_of(name);
        const rlhf_str s = p ? part(p, name) : (rlhf_str){NULL, 0};
        rlhf__bytes_add(out, text, (size_t)(at - text));
        if (key) {
            rlhf__row_member(row, key, 1, out);
        } else if (s.ptr) {
            rlhf__bytes_add(out, s.ptr, (size_t)s.len);
        } else if (p && strcmp(name, "ask") == 0) {
            fill(p->ask, NULL, row, out);
        } else {
            rlhf__bytes_add(out, at, (size_t)(end - at));
        }
    }
    rlhf__bytes_text(out, text);
}

void rlhf__question_fill(const char *template, const struct rlhf__question_parts *p,
                         struct rlhf__bytes *out) {
    fill(template, p, p->row, out);
}

int rlhf__question_check(const char *template, const struct rlhf__question_parts *p, char *why,
                         size_t cap) {
    const char *const must[] = {"{response}", "{ask}"};
    char name[NAME_CAP];
    for (size_t i = 0; i < 2; i++)
        if (!strstr(template, must[i])) {
            snprintf(why, cap, "the template has no %s", must[i]);
            return 0;
        }
    for (const char *end = template; next_field(end, name, &end);) {
        // text such as {"a": 1} is not meant as a field
        const int word = strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name);
        if (!word || strcmp(name, "ask") == 0 || part(p, name).ptr) continue;
        snprintf(why, cap,
                 "the template has {%s}; allowed: {prompt}, {response}, {ask}, {%s}, {row.KEY}",
                 name, p->answers ? "answers" : "scale");
        return 0;
    }
    return 1;
}

int rlhf__question_lacks(const rlhf_host *host, const char *text, rlhf_str row, char key[64]) {
    struct rlhf__bytes value = {.host = host};
    char name[NAME_CAP];
    int lacks = 0;
    for (const char *end = text; !lacks && next_field(end, name, &end);) {
        const char *wanted = key_of(name);
        if (!wanted || rlhf__row_member(row, wanted, 1, &value)) continue;
        snprintf(key, 64, "%s", wanted);
        lacks = 1;
    }
    rlhf__bytes_finish(&value);
    return lacks;
}
