// identity.c: see identity.h.
#include "team/identity.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "team/agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- a JSON value as lines "settings.batch.size\t8" ----

static void put_lines(struct rlhf__buf *out, const char *path, const json_t *v) {
    char at[512];
    const char *key;
    json_t *item;
    size_t i;
    if (json_is_object(v) && json_object_size(v) > 0) {
        json_object_foreach((json_t *)(uintptr_t)v, key, item) {
            snprintf(at, sizeof at, "%s%s%s", path, *path ? "." : "", key);
            put_lines(out, at, item);
        }
    } else if (json_is_array(v) && json_array_size(v) > 0) {
        json_array_foreach(v, i, item) {
            snprintf(at, sizeof at, "%s.%zu", path, i);
            put_lines(out, at, item);
        }
    } else {
        rlhf__buf_printf(out, "%s\t", path);
        rlhf__json_write(out, v, 0);
        rlhf__buf_puts(out, "\n");
    }
}

// ---- what differs ----

// Moves *a and *b to the first line in which the two texts differ.
static void skip_equal(const char **a, const char **b) {
    for (;;) {
        const size_t n = strcspn(*a, "\n") + 1;
        if (!**a || strncmp(*a, *b, n) != 0) return;
        *a += n;
        *b += n;
    }
}

// Writes the value of a line for a message.
static const char *value_of(const char *line, char out[160]) {
    const char *tab = strchr(line, '\t'), *end = strchr(line, '\n');
    if (!tab || !end || tab > end) return "nothing";
    snprintf(out, 160, "%.*s", end - tab - 1 < 159 ? (int)(end - tab - 1) : 159, tab + 1);
    return out;
}

static rlhf_status say_difference(const struct rlhf__team *t, const char *a, const char *b,
                                  int32_t rank, struct rlhf__error *err) {
    char first[160], other[160];
    skip_equal(&a, &b);
    const size_t n = strcspn(*a ? a : b, "\t\n");
    const int same = strncmp(a, b, n) == 0 && a[n] == b[n];
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "the processes do not do the same run: %.*s is %s for rank 0 on %s and %s for "
        "rank %d on %s; settings, files, plugins and program must be the same for "
        "all",
        (int)n, *a ? a : b, value_of(a, first), t->host[0],
        same ? value_of(b, other) : "something else", rank, t->host[rank]);
}

// Exchange the whole texts, because some differ. Each is padded to the length of the longest one.
static rlhf_status compare_texts(struct rlhf__team *t, const char *text, uint64_t longest,
                                 struct rlhf__error *err) {
    const size_t each = (size_t)longest + 1;
    char *own = calloc(1, each), *all = calloc((size_t)t->ranks, each);
    rlhf_status st = own && all ? RLHF_OK : RLHF__NOMEM(err, "out of memory for the settings");
    if (own) snprintf(own, each, "%s", text);
    if (st == RLHF_OK) st = rlhf__team_gather(t, own, each, all, err);
    for (int32_t k = 1; st == RLHF_OK && k < t->ranks; k++) {
        all[((size_t)k + 1) * each - 1] = all[each - 1] = '\0';
        if (strcmp(all, all + (size_t)k * each) != 0)
            st = say_difference(t, all, all + (size_t)k * each, k, err);
    }
    free(own);
    free(all);
    return st;
}

struct digest {
    uint8_t sha256[32];
    uint64_t bytes;
};

static rlhf_status compare(struct rlhf__team *t, const struct rlhf__buf *text,
                           struct rlhf__error *err) {
    struct digest own = {.bytes = text->len}, *all = calloc((size_t)t->ranks, sizeof *all);
    struct rlhf__sha256 sum;
    uint64_t longest = 0;
    int differ = 0;
    if (!all) return RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    rlhf__sha256_init(&sum);
    rlhf__sha256_put(&sum, rlhf__buf_text(text), text->len);
    rlhf__sha256_finish(&sum, own.sha256);
    rlhf_status st = rlhf__team_gather(t, &own, sizeof own, all, err);
    for (int32_t k = 0; st == RLHF_OK && k < t->ranks; k++) {
        if (all[k].bytes > longest) longest = all[k].bytes;
        differ |= memcmp(&all[k], &all[0], sizeof *all) != 0;
    }
    free(all);
    return st == RLHF_OK && differ ? compare_texts(t, rlhf__buf_text(text), longest, err) : st;
}

rlhf_status rlhf__team_same(struct rlhf__team *t, const json_t *own, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (!t) return RLHF_OK;
    put_lines(&text, "", own);
    rlhf_status st = rlhf__buf_ok(&text, err);
    st = rlhf__team_agree(t, RLHF__BARRIER_SETUP, NULL, st, err);
    if (st == RLHF_OK) st = compare(t, &text, err);
    // All ranks have found the same difference and return this error, so none of them comes to
    // another barrier.
    if (st == RLHF_E_INVALID) t->left = 1;
    rlhf__buf_finish(&text);
    return st;
}
