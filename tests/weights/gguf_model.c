// gguf_model.c: see gguf_model.h.
#include "gguf_model.h"

// ---- a reader: the head of a file as lines of text ----

static uint64_t number(struct reader *r, int bytes) {
    uint64_t v = 0;
    assert_true(r->end - r->p >= bytes);
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)r->p[i] << (8 * i);
    r->p += bytes;
    return v;
}

static void text(struct reader *r) {
    const uint64_t n = number(r, 8);
    assert_true((uint64_t)(r->end - r->p) >= n);
    rlhf__buf_put(&r->out, r->p, n);
    r->p += n;
}

static void value(struct reader *r, uint64_t type) {
    uint32_t bits;
    float f;
    uint64_t n;
    switch (type) {
    case 4:
    case 5:
        rlhf__buf_printf(&r->out, "%d", (int)(int32_t)number(r, 4));
        break;
    case 6:
        bits = (uint32_t)number(r, 4);
        memcpy(&f, &bits, sizeof f);
        rlhf__buf_printf(&r->out, "%g", (double)f);
        break;
    case 7:
        rlhf__buf_puts(&r->out, number(r, 1) ? "true" : "false");
        break;
    case 8:
        text(r);
        break;
    case 9:
        type = number(r, 4);
        n = number(r, 8);
        for (uint64_t i = 0; i < n; i++) {
            if (i) rlhf__buf_putc(&r->out, ',');
            value(r, type);
        }
        break;
    default:
        fail_msg("type %llu", (unsigned long long)type);
    }
}

const char *reader_head(struct reader *r, const uint8_t *bytes, size_t len) {
    *r = (struct reader){bytes, bytes + len, RLHF__BUF_INIT};
    assert_memory_equal(bytes, "GGUF", 4);
    r->p += 4;
    assert_int_equal(number(r, 4), 3);
    const uint64_t tensors = number(r, 8), keys = number(r, 8);
    for (uint64_t i = 0; i < keys; i++) {
        text(r);
        const uint64_t type = number(r, 4);
        rlhf__buf_printf(&r->out, " %d ", (int)type);
        value(r, type);
        rlhf__buf_putc(&r->out, '\n');
    }
    for (uint64_t i = 0; i < tensors; i++) {
        text(r);
        for (uint64_t d = number(r, 4); d > 0; d--)
            rlhf__buf_printf(&r->out, " %d", (int)number(r, 8));
        rlhf__buf_printf(&r->out, " type %d", (int)number(r, 4));
        rlhf__buf_printf(&r->out, " at %d\n", (int)number(r, 8));
    }
    while ((r->p - bytes) % 32)
        assert_int_equal(number(r, 1), 0);
    return rlhf__buf_text(&r->out);
}

// ---- models ----

void model_add(struct model *m, const char *name, int64_t rows, int64_t columns) {
    const size_t k = m->m.n++;
    const int64_t n = rows * (columns < 0 ? -columns : columns ? columns : 1);
    assert_true(k < MAX_TENSORS && n <= MAX_ELEMENTS);
    for (int64_t i = 0; i < n; i++)
        m->data[k][i] = (float)k + (float)i / 64;
    m->tensor[k] = (struct rlhf__tensor){.name = name,
                                         .file = "weights",
                                         .dtype = RLHF__TENSOR_F32,
                                         .ndim = columns ? 2 : 1,
                                         .shape = {rows, columns},
                                         .count = n,
                                         .n_bytes = (uint64_t)n * 4,
                                         .data = (const uint8_t *)m->data[k]};
    if (columns < 0) {
        m->tensor[k].ndim = 3;
        m->tensor[k].shape[1] = 1;
        m->tensor[k].shape[2] = -columns;
    }
    m->list[k] = &m->tensor[k];
}

void put_bytes(struct rlhf__buf *out, const char *form) {
    for (int byte = 0, other = 256, id = 5; byte < 256; byte++) {
        const int itself = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
        const int c = itself ? byte : other++;
        char text[4] = {(char)c};
        if (byte == 'a' || byte == 'b') continue;
        if (c > 127) {
            text[0] = (char)(0xC0 | c >> 6);
            text[1] = (char)(0x80 | (c & 63));
        }
        const char *escape = strcmp(form, JSON_BYTES) == 0 && (c == '"' || c == '\\') ? "\\" : "";
        rlhf__buf_printf(out, form, escape, text, id++);
    }
}

void tokenizer_text(struct scratch *s, const char *name, const char *text) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    const char *at = strchr(text, '@');
    rlhf__buf_put(&out, text, at ? (size_t)(at - text) : strlen(text));
    if (at) put_bytes(&out, JSON_BYTES);
    if (at) rlhf__buf_puts(&out, at + 1);
    scratch_text(s, name, rlhf__buf_text(&out));
    rlhf__buf_finish(&out);
}

void model_begin(struct model *m, struct scratch *s, const char *config, const char *tokenizer) {
    struct rlhf__error err = {0};
    json_t *v = NULL;
    memset(m, 0, sizeof *m);
    m->s = s;
    check_ok(rlhf__json_parse("config", config, strlen(config), &v, &err), &err);
    tokenizer_text(s, "tokenizer.json", tokenizer);
    m->m = (struct rlhf__gguf_model){
        .dir = s->dir, .name = "tiny", .config = v, .tensor = m->list, .dtype = -1};
}

void model_end(struct model *m) {
    rlhf__buf_finish(&m->file);
    json_decref((json_t *)(uintptr_t)m->m.config);
}

const uint8_t *model_written(struct model *m, size_t *len) {
    struct rlhf__error err = {0};
    const char *path = scratch_path(m->s, "tiny.gguf");
    check_ok(rlhf__gguf_check(&m->m, &err), &err);
    check_ok(rlhf__gguf_write(&m->m, NULL, path, &err), &err);
    check_ok(rlhf__file_read(path, 1 << 20, &m->file, &err), &err);
    *len = m->file.len;
    return (const uint8_t *)m->file.data;
}

void model_refused_as(const struct model *m, rlhf_status status, const char *part) {
    struct rlhf__error err = {0};
    check_error(rlhf__gguf_check(&m->m, &err), status, &err, part);
}

void model_refused(const struct model *m, const char *part) {
    model_refused_as(m, RLHF_E_INVALID, part);
}

void model_add_llama(struct model *m) {
    const json_t *rows = json_object_get(m->m.config, "vocab_size");
    model_add(m, "model.embed_tokens.weight", rows ? json_integer_value(rows) : 6, 4);
    model_add(m, "model.layers.0.input_layernorm.weight", 4, 0);
    model_add(m, "model.layers.0.self_attn.q_proj.weight", 8, 4);
    model_add(m, "model.layers.0.self_attn.k_proj.weight", 4, 4);
    model_add(m, "model.layers.0.self_attn.k_proj.bias", 4, 0);
    model_add(m, "model.layers.0.self_attn.v_proj.weight", 4, 4);
    model_add(m, "model.layers.0.self_attn.o_proj.weight", 4, 8);
    model_add(m, "model.layers.0.post_attention_layernorm.weight", 4, 0);
    model_add(m, "model.layers.0.mlp.gate_proj.weight", 3, 4);
    model_add(m, "model.layers.0.mlp.up_proj.weight", 3, 4);
    model_add(m, "model.layers.0.mlp.down_proj.weight", 4, 3);
    model_add(m, "model.norm.weight", 4, 0);
}
