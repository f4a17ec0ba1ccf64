// vocab.c: see vocab.h.
#include "text/vocab.h"

#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

// ---- lists of ids ----

rlhf_status rlhf__ids_reserve(struct rlhf__ids *ids, size_t more, struct rlhf__error *err) {
    if (more <= ids->cap - ids->n) return RLHF_OK;
    size_t cap = ids->cap ? ids->cap : 64, limit = SIZE_MAX / 2 / sizeof *ids->data;
    if (more > limit - ids->n) return rlhf__fail(err, RLHF_E_NOMEM, "too many token ids");
    while (cap - ids->n < more)
        cap *= 2;
    int32_t *data = realloc(ids->data, cap * sizeof *data);
    if (!data) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu token ids", cap);
    ids->data = data;
    ids->cap = cap;
    return RLHF_OK;
}

rlhf_status rlhf__ids_push(struct rlhf__ids *ids, int32_t id, struct rlhf__error *err) {
    if (ids->n == ids->cap) RLHF_TRY(rlhf__ids_reserve(ids, 1, err));
    ids->data[ids->n++] = id;
    return RLHF_OK;
}

void rlhf__ids_finish(struct rlhf__ids *ids) {
    free(ids->data);
    *ids = (struct rlhf__ids){0};
}

// ---- vocabularies ----

uint64_t rlhf__vocab_hash_bytes(const char *s, size_t len) {
    uint64_t h = 0x9E3779B97F4A7C15u ^ len;
    for (; len >= 8; s += 8, len -= 8) {
        uint64_t w;
        memcpy(&w, s, 8);
        h = (h ^ w) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    uint64_t w = 0;
    for (size_t i = 0; i < len; i++)
        w |= (uint64_t)(uint8_t)s[i] << (8 * i);
    h = (h ^ w) * 0xC4CEB9FE1A85EC53u;
    h ^= h >> 29;
    h *= 0xFF51AFD7ED558CCDu;
    return h ^ (h >> 32);
}

static rlhf_status grow_tokens(struct rlhf__vocab *v, int32_t id, struct rlhf__error *err) {
    if (id >= v->cap) {
        int32_t cap = v->cap ? v->cap : 1024;
        while (cap <= id)
            cap *= 2;
        struct rlhf__vocab_token *token = realloc(v->token, (size_t)cap * sizeof *token);
        if (!token) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the vocabulary");
        memset(token + v->cap, 0, (size_t)(cap - v->cap) * sizeof *token);
        v->token = token;
        v->cap = cap;
    }
    if (id >= v->n) v->n = id + 1;
    return RLHF_OK;
}

static rlhf_status grow_bytes(struct rlhf__vocab *v, size_t len, struct rlhf__error *err) {
    if (len > UINT32_MAX - v->bytes_len)
        return rlhf__fail(err, RLHF_E_INVALID, "the vocabulary is larger than 4 GiB");
    if (len <= v->bytes_cap - v->bytes_len) return RLHF_OK;
    size_t cap = v->bytes_cap ? v->bytes_cap : 4096;
    while (cap - v->bytes_len < len)
        cap *= 2;
    char *bytes = realloc(v->bytes, cap);
    if (!bytes) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the vocabulary");
    v->bytes = bytes;
    v->bytes_cap = cap;
    return RLHF_OK;
}

rlhf_status rlhf__vocab_add(struct rlhf__vocab *v, int64_t id, const char *s, size_t len,
                            struct rlhf__error *err) {
    if (id < 0 || id >= RLHF__VOCAB_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "token id %lld is outside [0, %d)", (long long)id,
                          RLHF__VOCAB_MAX);
    RLHF_TRY(grow_tokens(v, (int32_t)id, err));
    RLHF_TRY(grow_bytes(v, len, err));
    struct rlhf__vocab_token *t = &v->token[id];
    if (t->used)
        return rlhf__fail(err, RLHF_E_INVALID, "two tokens have the id %lld", (long long)id);
    *t = (struct rlhf__vocab_token){.at = (uint32_t)v->bytes_len, .len = (uint32_t)len, .used = 1};
    if (len) memcpy(v->bytes + v->bytes_len, s, len);
    v->bytes_len += len;
    if (t->len > v->longest) v->longest = t->len;
    return RLHF_OK;
}

rlhf_status rlhf__vocab_index(struct rlhf__vocab *v, int32_t n, struct rlhf__error *err) {
    size_t slots = 16;
    while (slots < (size_t)n * 2)
        slots *= 2;
    free(v->slot);
    v->n_slots = 0;
    v->hashed = 0;
    v->slot = malloc(slots * sizeof *v->slot);
    if (!v->slot) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the vocabulary");
    memset(v->slot, 0xFF, slots * sizeof *v->slot);
    v->n_slots = slots;
    return RLHF_OK;
}

// The slot that holds these bytes, or the empty slot where they belong.
static size_t probe(const struct rlhf__vocab *v, const char *s, size_t len) {
    size_t mask = v->n_slots - 1, i = (size_t)rlhf__vocab_hash_bytes(s, len) & mask;
    for (; v->slot[i] >= 0; i = (i + 1) & mask) {
        const struct rlhf__vocab_token *t = &v->token[v->slot[i]];
        if (t->len == len && !memcmp(v->bytes + t->at, s, len)) break;
    }
    return i;
}

void rlhf__vocab_hash(struct rlhf__vocab *v, int32_t id) {
    const struct rlhf__vocab_token *t = &v->token[id];
    if (!t->len || v->hashed * 2 > v->n_slots) return;
    size_t i = probe(v, v->bytes + t->at, t->len);
    if (v->slot[i] < 0) v->hashed++;
    v->slot[i] = id;
}

int32_t rlhf__vocab_find(const struct rlhf__vocab *v, const char *s, size_t len) {
    if (!len || len > v->longest || !v->n_slots) return -1;
    return v->slot[probe(v, s, len)];
}

rlhf_str rlhf__vocab_bytes(const struct rlhf__vocab *v, int32_t id) {
    if (id < 0 || id >= v->n || !v->token[id].used) return (rlhf_str){NULL, 0};
    return (rlhf_str){v->bytes + v->token[id].at, v->token[id].len};
}

void rlhf__vocab_finish(struct rlhf__vocab *v) {
    free(v->token);
    free(v->bytes);
    free(v->slot);
    *v = (struct rlhf__vocab){0};
}

// ---- how the files write bytes ----

void rlhf__bpe_byte_chars(uint16_t chars[256]) {
    uint16_t next = 0x100;
    for (unsigned b = 0; b < 256; b++) {
        int printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        chars[b] = printable ? (uint16_t)b : next++;
    }
}

// The byte that a stand-in character represents; -1 = none. The inverse of rlhf__bpe_byte_chars.
static int byte_of(uint32_t cp) {
    if ((cp >= '!' && cp <= '~') || (cp >= 0xA1 && cp <= 0xAC) || (cp >= 0xAE && cp <= 0xFF))
        return (int)cp;
    if (cp < 0x100 || cp >= 0x100 + 68) return -1;
    uint32_t k = cp - 0x100; // the k-th byte without a printable form
    if (k <= 0x20) return (int)k;
    return k <= 0x42 ? (int)(k - 0x21 + 0x7F) : 0xAD;
}

size_t rlhf__bpe_token_bytes(const char *s, size_t len, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t step = rlhf__utf8_next(s + i, len - i, &cp, NULL);
        int b = step ? byte_of(cp) : -1;
        if (b < 0) return SIZE_MAX;
        out[n++] = (char)b;
        i += step;
    }
    return n;
}
