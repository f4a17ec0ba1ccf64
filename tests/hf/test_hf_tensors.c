// test_hf_tensors.c: checkpoints like those of users, whose tensors have other names, or that have
// more or fewer tensors than the model. The tests make them from dirs/gpt2 by changing its tensors.
#include "kit.h"

#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

// A modification of dirs/gpt2 or dirs/gpt2-classifier.
struct change {
    const char *bare;       // removes this prefix from names
    const char *drop, *add; // leaves out a tensor; appends a tensor of this name,
    const char *like;       // with the numbers of this tensor,
    float shift;            // all increased by this number,
    int32_t dtype;          // in this dtype (F32 = 0)
    const char *second;     // appends one more tensor, of zeros
    const char *patch;      // changes to config.json
};

enum { MAX = 40 };

struct plan {
    struct rlhf__tensor_spec spec[MAX];
    const struct rlhf__tensor *from[MAX];
    float shift[MAX];
    size_t n;
};

static void plan_add(struct plan *p, const char *name, const struct rlhf__tensor *from,
                     int32_t dtype, float shift) {
    struct rlhf__tensor_spec *s = &p->spec[p->n];
    assert_true(p->n < MAX);
    *s = (struct rlhf__tensor_spec){.name = name, .dtype = dtype, .ndim = from->ndim};
    memcpy(s->shape, from->shape, sizeof s->shape);
    p->from[p->n] = from;
    p->shift[p->n++] = shift;
}

static void make_plan(struct plan *p, const struct rlhf__weights *w, const struct change *c) {
    p->n = 0;
    for (size_t i = 0; i < rlhf__weights_count(w); i++) {
        const struct rlhf__tensor *t = rlhf__weights_at(w, i);
        const size_t bare =
            c->bare && !strncmp(t->name, c->bare, strlen(c->bare)) ? strlen(c->bare) : 0;
        if (!c->drop || strcmp(t->name, c->drop) != 0)
            plan_add(p, t->name + bare, t, RLHF__TENSOR_F32, 0);
    }
    const char *like = c->like ? c->like : "transformer.ln_f.bias";
    if (c->second) plan_add(p, c->second, rlhf__weights_find(w, like), RLHF__TENSOR_F32, 0);
    if (c->add) plan_add(p, c->add, rlhf__weights_find(w, like), c->dtype, c->shift);
}

static void write_plan(const struct plan *p, const char *path) {
    struct rlhf__weights_writer *out = NULL;
    struct rlhf__error err = {0};
    float values[8192];
    check_ok(rlhf__weights_writer_open(NULL, path, p->spec, p->n, NULL, 0, &out, &err), &err);
    for (size_t i = 0; i < p->n; i++) {
        const struct rlhf__tensor *t = p->from[i];
        assert_true(t->count <= 8192);
        check_ok(rlhf__tensor_read_f32(t, 0, t->count, values, &err), &err);
        for (int64_t k = 0; k < t->count; k++)
            values[k] += p->shift[i];
        if (p->spec[i].dtype == RLHF__TENSOR_I32)
            check_ok(rlhf__weights_put_bytes(out, values, (size_t)t->n_bytes, &err), &err);
        else
            check_ok(rlhf__weights_put_f32(out, values, (size_t)t->count, &err), &err);
    }
    check_ok(rlhf__weights_commit(out, &err), &err);
}

// Makes a copy of dirs/<name> with the modification. Returns its path.
static const char *changed(const struct hf *f, const char *name, const struct change *c) {
    struct rlhf__weights *w = NULL;
    struct rlhf__error err = {0};
    struct plan p;
    char path[512];
    const char *dir = hf_variant(f, name, c->patch);
    check_ok(rlhf__weights_open(dir, &w, &err), &err);
    make_plan(&p, w, c);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    write_plan(&p, path); // in place of the link
    rlhf__weights_close(w);
    return dir;
}

#define WTE "transformer.wte.weight"

// None of these modifications changes the model, so the results are those of transformers.
static void the_same_model(void **state) {
    static const struct change same[] = {
        {.bare = "transformer."},                                // as saved by GPT2Model
        {.add = "transformer.h.0.attn.bias"},                    // masks of old versions
        {.bare = "transformer.", .add = "h.0.attn.masked_bias"}, // and without prefix
        {.add = "transformer.rotary_emb.inv_freq"},              // tables of others
        {.add = "transformer.h.0.attn.rotary_emb.inv_freq"},     //
        {.add = "score.weight"},                                 // heads of other uses
        {.add = "v_head.summary.weight", .second = "v_head.summary.bias"},
        {.add = "lm_head.weight", .like = WTE},              // the tied head, written out
        {.drop = WTE, .add = "lm_head.weight", .like = WTE}, // and in its place
        {.bare = "transformer.", .drop = WTE, .add = "lm_head.weight", .like = WTE},
        // layers that config.json does not describe
        {.add = "transformer.h.1.ln_1.weight", .second = "transformer.h.12.ln_1.bias"},
        {.bare = "transformer.", .add = "h.1.attn.c_attn.weight"},
    };
    for (size_t i = 0; i < CHECK_COUNT(same); i++)
        hf_check_lm(*state, changed(*state, "gpt2", &same[i]), "gpt2");
    // A classifier does not need its LM head.
    const struct change head = {.add = "lm_head.weight", .like = WTE, .shift = 1};
    hf_check_classifier(*state, changed(*state, "gpt2-classifier", &head), "gpt2-classifier", 2,
                        "LABEL_0");
}

static void refusals(void **state) {
    static const struct {
        struct change change;
        const char *part;
    } cases[] = {
        {{.drop = "transformer.ln_f.bias"},
         "/dir has no tensor transformer.ln_f.bias, which the policy '"},
        {{.patch = "{\"tie_word_embeddings\": false}"},
         "has no tensor lm_head.weight, which the policy '"},
        {{.patch = "{\"tie_word_embeddings\": false}"},
         "needs, since its config.json does not tie the LM head to the embedding"},
        {{.add = "lm_head.weight", .like = WTE, .shift = 1},
         "model.safetensors: lm_head.weight differs from transformer.wte.weight, but "},
        {{.add = "lm_head.weight"}, "set tie_word_embeddings to false for a separate head"},
        {{.add = "transformer.h.1.ln_9.weight"},
         "/dir/model.safetensors holds the tensor transformer.h.1.ln_9.weight, for which the model "
         "that "},
        {{.add = "transformer.h.1.ln_9.weight", .second = "transformer.h.1.ln_9.bias"},
         "holds the tensor transformer.h.1.ln_9.bias and 1 more, for which"},
        {{.add = "h.0.ln_1.weight"}, "holds the tensor h.0.ln_1.weight, for which"},
        {{.add = "wte.weight", .like = WTE}, "holds the tensor wte.weight, for which"},
        {{.add = "lm_head.bias"}, "holds the tensor lm_head.bias, for which"},
        {{.add = "transformer.h.0.cross_attn.bias"}, "holds the tensor"},
        {{.patch = "{\"n_positions\": 32}"},
         "model.safetensors: tensor transformer.wpe.weight has shape [64, 16], the model needs "
         "[32, 16]"},
        {{.patch = "{\"vocab_size\": 300}"},
         "tensor transformer.wte.weight has shape [290, 16], the model needs [300, 16]"},
        {{.drop = "transformer.ln_f.bias",
          .add = "transformer.ln_f.bias",
          .dtype = RLHF__TENSOR_I32},
         "tensor transformer.ln_f.bias is I32; weights must be F32, F16 or BF16"},
        {{.patch = "{\"n_layer\": 2}"}, "has no tensor transformer.h.1.ln_1.weight, which"},
    };
    struct hf *f = *state;
    for (size_t i = 0; i < CHECK_COUNT(cases); i++) {
        struct rlhf__error err = {0};
        struct rlhf__model *m = NULL;
        struct rlhf__model_spec spec = {.dir = changed(f, "gpt2", &cases[i].change),
                                        .role = "policy"};
        rlhf_status st = rlhf__model_open(&f->session.models, &spec, &m, &err);
        if (rlhf__exit_status(st) != 2) fail_msg("case %zu: status %d %s", i, st, err.text);
        if (!strstr(err.text, cases[i].part))
            fail_msg("case %zu: \"%s\" (expected \"%s\" in it)", i, err.text, cases[i].part);
        assert_null(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_model, hf_setup, hf_teardown),
        cmocka_unit_test_setup_teardown(refusals, hf_setup, hf_teardown),
    };
    return cmocka_run_group_tests_name("tensors of checkpoints", tests, NULL, NULL);
}
