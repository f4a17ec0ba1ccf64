// tokenizer.c: a fake "rlhf.tokenizer/1" in which every byte is a token. See rlhf/test.h.
#include <rlhf/test.h>

// Returns the test's tokenizer, or NULL if the test does not offer one.
static struct rlhf_test_tokenizer *offered(const rlhf_host *host) {
    const rlhf_tokenizer_service *table =
        (const rlhf_tokenizer_service *)host->service(host, RLHF_SVC_TOKENIZER);
    return (struct rlhf_test_tokenizer *)(table ? table->self : NULL);
}

static rlhf_status do_open(const rlhf_host *host, const rlhf_tokenizer_open *how,
                           rlhf_tokenizer **out) {
    struct rlhf_test_tokenizer *t = offered(host);
    t->path = how->path;
    *out = NULL;
    if (t->open_status < 0)
        return host->fail(host, t->open_status, "the test's tokenizer does not open");
    t->open_count++;
    *out = (rlhf_tokenizer *)(void *)t;
    return RLHF_OK;
}

static void do_close(const rlhf_host *host, rlhf_tokenizer *model) {
    if (model) offered(host)->open_count--;
}

static rlhf_status do_info(const rlhf_host *host, const rlhf_tokenizer *model,
                           rlhf_tokenizer_info *out) {
    const uint32_t own = (uint32_t)sizeof *out, cut = out->size < own ? out->size : own;
    rlhf_tokenizer_info info;
    (void)host;
    (void)model;
    memset(&info, 0, sizeof info);
    info.n_vocab = 256;
    return rlhf_copy_out(out, &info, cut, RLHF_SIZE_TO(rlhf_tokenizer_info, n_vocab));
}

static rlhf_status do_encode(const rlhf_host *host, const rlhf_tokenizer *model,
                             const rlhf_encode_in *in, rlhf_encode_out *out) {
    (void)host;
    (void)model;
    out->n = (uint32_t)in->text.len;
    for (uint32_t i = 0; i < out->n && i < out->cap; i++)
        out->ids[i] = (unsigned char)in->text.ptr[i];
    return RLHF_OK;
}

static rlhf_status do_decode(const rlhf_host *host, const rlhf_tokenizer *model,
                             const rlhf_decode_in *in, rlhf_decode_out *out) {
    (void)host;
    (void)model;
    out->len = in->n;
    for (uint32_t i = 0; i < in->n && i < out->cap; i++)
        out->utf8[i] = (char)(in->ids[i] & 255);
    return RLHF_OK;
}

void rlhf_test_tokenizer_init(struct rlhf_test_tokenizer *t) {
    memset(t, 0, sizeof *t);
    t->table.size = (uint32_t)sizeof t->table;
    t->table.self = t;
    t->table.open = do_open;
    t->table.close = do_close;
    t->table.info = do_info;
    t->table.encode = do_encode;
    t->table.decode = do_decode;
}
