// turns.c: see turns.h.
#include "verify/turns.h"

#include <stdio.h>
#include <string.h>

// A place in a row.
struct place {
    int32_t turn;   // from 1; 0: in no turn
    int32_t answer; // 1: in the environment's answer to the turn
};

// Find the token with index k in a row. If `drawn` is 1, counts only the tokens that the policy
// wrote.
static struct place find_token(const json_t *row, int64_t k, int drawn) {
    struct place p = {0, 0};
    int64_t at = drawn ? 0 : json_integer_value(json_object_get(row, "prompt_length"));
    size_t i;
    json_t *one;
    if (k < at) return p;
    json_array_foreach(json_object_get(row, "segments"), i, one) {
        const char *by = json_string_value(json_array_get(one, 0));
        const int policy = by && strcmp(by, "policy") == 0;
        p.turn += policy;
        p.answer = !policy;
        if (drawn && !policy) continue;
        at += json_integer_value(json_array_get(one, 1));
        if (k < at) return p;
    }
    return (struct place){0, 0};
}

// Find the k-th segment.
static struct place find_segment(const json_t *row, int64_t k) {
    struct place p = {0, 0};
    const json_t *all = json_object_get(row, "segments");
    for (int64_t i = 0; i <= k && i < (int64_t)json_array_size(all); i++) {
        const char *by = json_string_value(json_array_get(json_array_get(all, (size_t)i), 0));
        p.answer = !(by && strcmp(by, "policy") == 0);
        p.turn += !p.answer;
    }
    return p;
}

static struct place find(const json_t *row, const char *key, int64_t k) {
    if (strcmp(key, "ids") == 0) return find_token(row, k, 0);
    if (strcmp(key, "segments") == 0) return find_segment(row, k);
    if (strcmp(key, "paid") == 0) return (struct place){(int32_t)k + 1, 0};
    return find_token(row, k, 1);
}

void rlhf__turns_name(const json_t *row, struct rlhf__fault *f) {
    char key[64], place[160];
    long long k;
    char *at = strrchr(f->where, ',');
    if (!at || !json_object_get(row, "segments")) return;
    if (sscanf(at, ", %63[a-z_.][%lld]", key, &k) != 2) return;
    const struct place p = find(row, key, k);
    if (p.turn == 0) return;
    snprintf(place, sizeof place, "%.150s", at + 2);
    snprintf(at, sizeof f->where - (size_t)(at - f->where), ", %s %d, %s",
             p.answer ? "answer to turn" : "turn", p.turn, place);
}
