// tests/models/test_adapter_open.c: the list of parameters of a model with an adapter, and the
// adapters and bases that are refused.
#include "adapters.h"
#include "decoders.h"

#include <math.h>
#include <string.h>

// ---- the list ----

static void listed(void **state) {
    (void)state;
    static const char *const want[] = {"model.layers.0.self_attn.q_proj.lora_A.weight",
                                       "model.layers.0.self_attn.q_proj.lora_B.weight",
                                       "model.layers.0.self_attn.v_proj.lora_A.weight",
                                       "model.layers.0.self_attn.v_proj.lora_B.weight",
                                       "model.layers.1.self_attn.q_proj.lora_A.weight",
                                       "model.layers.1.self_attn.q_proj.lora_B.weight",
                                       "model.layers.1.self_attn.v_proj.lora_A.weight",
                                       "model.layers.1.self_attn.v_proj.lora_B.weight"};
    static const int64_t shapes[][2] = {{4, 16}, {16, 4}, {4, 16}, {8, 4}};
    const struct adapted k = {
        "qwen2", adapted_untied_qwen2, {"v_proj", "q_proj", "q_proj"}, 4, 0, RLHF_VALUE_NONE,
        0,       RLHF_HEAD_LOGP};
    const rlhf_adapter a = adapter_of(&k);
    rlhf_model_open o = open_args(&backend, RLHF_BF16, 1);
    o.adapter = &a;
    struct model m = model_open(k.plugin, k.settings, &o);
    assert_true(m.info.caps & RLHF_CAP_ADAPTER);
    rlhf_param p = {.size = sizeof p};
    uint32_t n = 0;
    uint64_t trained = 0;
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        const int packed = p.group == RLHF_PARAM_TRUNK && p.ndim == 2 && !strstr(p.name, "embed");
        assert_int_equal(p.value == NULL, packed);
        if (p.group != RLHF_PARAM_ADAPTER) {
            assert_int_equal(n, 0); // adapter parameters come last
            assert_true(p.flags & RLHF_PARAM_FROZEN);
            assert_null(p.grad);
            continue;
        }
        assert_string_equal(p.name, want[n]);
        assert_int_equal(p.shape[0], shapes[n % 4][0]);
        assert_int_equal(p.shape[1], shapes[n % 4][1]);
        assert_int_equal(p.flags, RLHF_PARAM_DECAY);
        assert_int_equal(p.init, n % 2 ? RLHF_INIT_ZERO : RLHF_INIT_UNIFORM);
        if (n % 2 == 0) assert_true(fabs(p.init_std - 0.25) < 1e-12);
        assert_non_null(p.grad);
        trained += param_count(&p);
        n++;
    }
    assert_int_equal(n, 8);
    assert_true(m.info.grad_bytes >= trained * sizeof(float) &&
                m.info.grad_bytes < 2 * 4 * trained);
    const uint64_t before = m.c->bytes_in_use(m.c->ctx);
    model_fill(&m, 0.3);
    must(&m, m.ops->refresh(m.self)); // the requested number of times
    assert_true(m.c->bytes_in_use(m.c->ctx) < before + 61 * 16 * 16);
    for (uint32_t i = 0; m.ops->param(m.self, i, &p) == RLHF_OK; i++) {
        const int packed = p.group == RLHF_PARAM_TRUNK && p.ndim == 2 && !strstr(p.name, "embed");
        assert_int_equal(p.value == NULL, packed);
    }
    model_close(&m);
}

// ---- refusals ----

static void refuse(const struct adapted *k, const rlhf_adapter *a, const void *base, int32_t dtype,
                   const char *says) {
    rlhf_model_open o = open_args(&backend, dtype, 1);
    struct model m;
    o.adapter = a;
    o.base = base;
    o.n_labels = k->n_labels;
    must(&m, model_create(k->plugin, k->settings, &m));
    m.c = backend.compute;
    const rlhf_status st = m.ops->open(m.self, &o);
    if (st != RLHF_E_INVALID) fail_msg("%s: %d", says, st);
    if (!strstr(host_failure(), says)) fail_msg("\"%s\" does not say \"%s\"", host_failure(), says);
    model_close(&m);
}

static void refused(void **state) {
    (void)state;
    const struct adapted *k = &adapted_kinds[3];
    const char *typo[] = {"q_proj", "gate_prj"}, *part[] = {"proj"}, *head[] = {"lm_head"};
    const char *empty[] = {""}, *both[] = {"all-linear", "q_proj"}, *norm[] = {"q_norm"};
    rlhf_adapter a = adapter_of(k);
    a.rank = 0;
    refuse(k, &a, NULL, RLHF_F32, "adapter: rank 0 is outside 1 .. 65536");
    a = adapter_of(k);
    a.scale = 0;
    refuse(k, &a, NULL, RLHF_F32, "adapter: scale 0 is not a number above 0");
    a.scale = NAN;
    refuse(k, &a, NULL, RLHF_F32, "is not a number above 0");
    a = adapter_of(k);
    a.n_targets = 0;
    refuse(k, &a, NULL, RLHF_F32, "adapter: no target is given");
    a.n_targets = 2;
    a.target = typo;
    refuse(k, &a, NULL, RLHF_F32,
           "adapter: no linear layer of the trunk is called \"gate_prj\"; the nearest is "
           "gate_proj. There are q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj; "
           "all-linear alone means all of them");
    a.n_targets = 1;
    const char *const *none[] = {part, head, empty, norm};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        a.target = none[i];
        refuse(k, &a, NULL, RLHF_F32, "no linear layer of the trunk is called");
    }
    a.n_targets = 2;
    a.target = both;
    refuse(k, &a, NULL, RLHF_F32, "is called \"all-linear\"");
}

static void refused_bases(void **state) {
    (void)state;
    const struct adapted *k = &adapted_kinds[3], *other = &adapted_kinds[5];
    const rlhf_adapter a = adapter_of(k);
    struct model trained =
        adapted_open(k, (struct adapted_how){.dtype = RLHF_F32, .trainable = 1, .plain = 1});
    struct model fixed = adapted_open(k, (struct adapted_how){.dtype = RLHF_F32});
    struct model good = adapted_open(k, (struct adapted_how){.dtype = RLHF_F32, .trainable = 1});
    refuse(k, &a, trained.self, RLHF_F32, "the base is trained itself");
    refuse(k, &a, fixed.self, RLHF_F32, "the base was not opened for training");
    refuse(k, &a, good.self, RLHF_BF16, "differs in config, dtype or compute table");
    refuse(other, NULL, good.self, RLHF_F32, "differs in config, dtype or compute table");
    const struct adapted plain = {"qwen2", adapted_untied_qwen2, {"q_proj"}, 1,
                                  1,       RLHF_VALUE_NONE,      0,          0};
    struct model classifier =
        adapted_open(&plain, (struct adapted_how){.dtype = RLHF_F32, .trainable = 1});
    struct adapted wants_lm = plain;
    wants_lm.n_labels = 0;
    refuse(&wants_lm, &a, classifier.self, RLHF_F32, "a classifier without an LM head");
    struct model unopened;
    must(&unopened, model_create(k->plugin, k->settings, &unopened));
    refuse(k, &a, unopened.self, RLHF_F32, "not an open model of the same plugin");
    model_close(&unopened);
    model_close(&classifier);
    model_close(&good);
    model_close(&fixed);
    model_close(&trained);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(listed), cmocka_unit_test(refused),
                                       cmocka_unit_test(refused_bases)};
    return on_backends("adapter, open", ON_ALL, 2, tests, sizeof tests / sizeof *tests);
}
