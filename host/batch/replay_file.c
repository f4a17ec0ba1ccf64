// replay_file.c: the replay buffer's file in a checkpoint; see replay.h for the format.
#include "batch/replay.h"

#include "base/file.h"
#include "base/hash.h"

#include <string.h>

#define MAX_BYTES ((uint64_t)1 << 36)
#define HEAD      40 // magic and four u64
#define PAIR      12
#define TAIL      4

static const char magic[8] = {'R', 'L', 'H', 'F', 'P', 'A', 'I', 'R'};

rlhf_status rlhf__replay_write(const struct rlhf__replay *r, const struct rlhf__folder *in,
                               const char *name, struct rlhf__error *err) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    rlhf__buf_put(&b, magic, sizeof magic);
    rlhf__buf_u64le(&b, r->rounds);
    rlhf__buf_u64le(&b, r->n_history);
    rlhf__buf_u64le(&b, r->n);
    rlhf__buf_u64le(&b, r->ids.n);
    for (size_t i = 0; i < r->n; i++) {
        rlhf__buf_u32le(&b, (uint32_t)r->pair[i].prompt);
        rlhf__buf_u32le(&b, (uint32_t)r->pair[i].chosen);
        rlhf__buf_u32le(&b, (uint32_t)r->pair[i].rejected);
    }
    for (size_t i = 0; i < r->ids.n; i++)
        rlhf__buf_u32le(&b, (uint32_t)r->ids.data[i]);
    if (!b.bad) rlhf__buf_u32le(&b, rlhf__crc32c(0, b.data, b.len));
    rlhf_status st = rlhf__buf_ok(&b, err);
    if (st == RLHF_OK) st = rlhf__file_write(in, name, b.data, b.len, err);
    rlhf__buf_free(&b);
    return st;
}

static uint64_t get_le(const char *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

// Read the header and check it against the length of the file. Returns the error, or NULL.
static const char *check_head(const char *p, size_t len, uint64_t head[4]) {
    if (len < HEAD + TAIL || memcmp(p, magic, sizeof magic) != 0)
        return "it is not a replay buffer";
    for (int i = 0; i < 4; i++)
        head[i] = get_le(p + 8 + 8 * i, 8);
    uint64_t room = len - HEAD - TAIL;
    if (head[2] > room / PAIR || head[3] > room / 4 || PAIR * head[2] + 4 * head[3] != room ||
        head[1] > head[2])
        return "its head does not fit its length";
    if (get_le(p + len - TAIL, TAIL) != rlhf__crc32c(0, p, len - TAIL)) return "its checksum";
    return NULL;
}

// Check the pairs and the ids. Returns the error, or NULL.
static const char *check_body(const char *p, const uint64_t head[4], int32_t n_vocab) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < head[2]; i++) {
        uint64_t pair = 0;
        for (uint64_t k = 0; k < 3; k++) {
            uint64_t n = get_le(p + HEAD + PAIR * i + 4 * k, 4);
            if (n < 1) return "a length is out of range";
            pair += n;
        }
        if (pair > INT32_MAX) return "a length is out of range";
        sum += pair;
    }
    if (sum != head[3]) return "its lengths do not add up";
    const char *ids = p + HEAD + PAIR * head[2];
    for (uint64_t i = 0; i < head[3]; i++)
        if (get_le(ids + 4 * i, 4) >= (uint64_t)n_vocab) return "a token is not of the vocabulary";
    return NULL;
}

static rlhf_status take(struct rlhf__replay *r, const char *p, const uint64_t head[4],
                        struct rlhf__error *err) {
    const char *id = p + HEAD + PAIR * head[2];
    struct rlhf__ids row = {0};
    rlhf_status st = RLHF_OK;
    for (uint64_t i = 0; st == RLHF_OK && i < head[2]; i++) {
        int32_t n[3] = {0}, sum = 0;
        for (int k = 0; k < 3; k++)
            sum += n[k] = (int32_t)get_le(p + HEAD + PAIR * i + 4 * (uint64_t)k, 4);
        row.n = 0;
        for (int32_t k = 0; st == RLHF_OK && k < sum; k++, id += 4)
            st = rlhf__ids_push(&row, (int32_t)get_le(id, 4), err);
        if (st == RLHF_OK)
            st = rlhf__replay_add(r, row.data, n[0], row.data + n[0], n[1], row.data + n[0] + n[1],
                                  n[2], err);
    }
    rlhf__ids_finish(&row);
    r->rounds = head[0];
    r->n_history = (size_t)head[1];
    return st;
}

rlhf_status rlhf__replay_read(struct rlhf__replay *r, const char *path, int32_t n_vocab,
                              struct rlhf__error *err) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    uint64_t head[4] = {0};
    memset(r, 0, sizeof *r);
    rlhf_status st = rlhf__file_read(path, MAX_BYTES, &b, err);
    const char *wrong = NULL;
    if (st == RLHF_OK) wrong = check_head(rlhf__buf_text(&b), b.len, head);
    if (st == RLHF_OK && !wrong) wrong = check_body(b.data, head, n_vocab);
    if (wrong) st = rlhf__fail(err, RLHF_E_INVALID, "%s is damaged: %s", path, wrong);
    if (st == RLHF_OK) st = take(r, b.data, head, err);
    rlhf__buf_free(&b);
    if (st != RLHF_OK) rlhf__replay_finish(r);
    return st;
}
