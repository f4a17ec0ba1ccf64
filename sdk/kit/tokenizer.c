// tokenizer.c: a fake "rlhf.tokenizer/1" in which every byte is a token. See rlhf/test.h.
#include <rlhf/test.h>

// Returns the test's tokenizer, or NULL if the test does not offer one. The offered table is the
// first member of the tokenizer's struct, so both have the same address.
static struct rlhf_test_tokenizer *offered(const rlhf_host *host) {
    union {
        const void *table;
        struct rlhf_test_tokenizer *object;
    } u;
    u.table = host->service(host, RLHF_SVC_TOKENIZER);
    return u.object;
}

static rlhf_status do_open(const rlhf_host *host, const char *path, rlhf_tokenizer **out) {
    struct rlhf_test_tokenizer *t = offered(host);
    t->path = path;
    if (t->open_status < 0)
        return host->fail(host, t->open_status, "the test's tokenizer does not open");
    t->open_count++;
    *out = (rlhf_tokenizer *)(void *)t;
    return RLHF_OK;
}

static void do_close(const rlhf_host *host, rlhf_tokenizer *model) {
    if (model) offered(host)->open_count--;
}

static int32_t do_n_vocab(const rlhf_host *host, const rlhf_tokenizer *model) {
    (void)host;
    (void)model;
    return 256;
}

static rlhf_status do_encode(const rlhf_host *host, const rlhf_tokenizer *model, rlhf_str text,
                             int32_t *ids, uint32_t cap, uint32_t *n) {
    (void)host;
    (void)model;
    *n = (uint32_t)text.len;
    for (uint32_t i = 0; i < *n && i < cap; i++)
        ids[i] = (unsigned char)text.ptr[i];
    return RLHF_OK;
}

static rlhf_status do_decode(const rlhf_host *host, const rlhf_tokenizer *model, const int32_t *ids,
                             uint32_t n, char *utf8, uint64_t cap, uint64_t *len) {
    (void)host;
    (void)model;
    *len = n;
    for (uint32_t i = 0; i < n && i < cap; i++)
        utf8[i] = (char)(ids[i] & 255);
    return RLHF_OK;
}

void rlhf_test_tokenizer_init(struct rlhf_test_tokenizer *t) {
    memset(t, 0, sizeof *t);
    t->table.size = (uint32_t)sizeof t->table;
    t->table.open = do_open;
    t->table.close = do_close;
    t->table.n_vocab = do_n_vocab;
    t->table.encode = do_encode;
    t->table.decode = do_decode;
}
