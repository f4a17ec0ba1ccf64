// tokenizer.c: a "rlhf.tokenizer/0" for which a byte is a token. See rlhf/test.h.
#include <rlhf/test.h>

static rlhf_status do_open(void *host, const char *path, rlhf_tokenizer **out) {
    struct rlhf_test_tokenizer *t = host;
    t->path = path;
    if (t->open_status < 0) return t->open_status;
    t->open_count++;
    *out = host;
    return RLHF_OK;
}

static void do_close(void *host, rlhf_tokenizer *model) {
    if (model) ((struct rlhf_test_tokenizer *)host)->open_count--;
}

static int32_t do_n_vocab(void *host, const rlhf_tokenizer *model) {
    (void)host;
    (void)model;
    return 256;
}

static rlhf_status do_encode(void *host, const rlhf_tokenizer *model, rlhf_str text, int32_t *ids,
                             uint32_t cap, uint32_t *n) {
    (void)host;
    (void)model;
    *n = (uint32_t)text.len;
    for (uint32_t i = 0; i < *n && i < cap; i++)
        ids[i] = (unsigned char)text.ptr[i];
    return RLHF_OK;
}

static rlhf_status do_decode(void *host, const rlhf_tokenizer *model, const int32_t *ids,
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
    t->table.host = t;
    t->table.open = do_open;
    t->table.close = do_close;
    t->table.n_vocab = do_n_vocab;
    t->table.encode = do_encode;
    t->table.decode = do_decode;
}
