// transformer/rotary_config.c: computes the frequencies of rotary positions from config.json, in
// f64, with the formulas of transformers' modeling_rope_utils; see decoder.h.
#include "decoder.h"

#include <math.h>
#include <rlhf/exact.h>
#include <rlhf/log.h>
#include <string.h>

#define PI       3.14159265358979323846
#define LONGROPE "longrope"

// The inputs of the formulas. Missing settings have their defaults.
struct rope {
    const struct rlhf_tf_rope_config *o;
    const char *object; // the name of o in config.json
    const char *type;
    double theta, factor, context; // context: the length before scaling
    double *frequency;
    int32_t dim; // elements of a head that are rotated
    // longrope
    const rlhf_f64_list *stretch;
    const char *stretch_key;
};

// Returns 1 if the object describes rotary positions. If rope_scaling, which older files have,
// describes them, rope_parameters is ignored.
static int given(const struct rlhf_tf_rope_config *o) {
    return o->rope_type || o->type || o->rope_theta > 0 || o->factor > 0;
}

static rlhf_status refuse(const rlhf_host *host, const struct rope *r, const char *key,
                          const char *why) {
    return rlhf_failf(host, RLHF_E_INVALID, "config.json: %s.%s %s", r->object, key, why);
}

// The default type: theta^(-2 c / dim).
static void plain(const struct rope *r) {
    for (int32_t c = 0; c < r->dim / 2; c++)
        r->frequency[c] = rlhf_pow(r->theta, -2.0 * c / r->dim);
}

static rlhf_status linear(const rlhf_host *host, const struct rope *r) {
    if (!(r->factor > 0)) return refuse(host, r, "factor", "is missing; it must be above 0");
    for (int32_t c = 0; c < r->dim / 2; c++)
        r->frequency[c] /= r->factor;
    return RLHF_OK;
}

// Computes the frequencies of type llama3: long wavelengths are scaled by the factor, and short
// ones stay unchanged. Between the two, the frequency is interpolated.
static rlhf_status llama3(const rlhf_host *host, const struct rope *r) {
    const double low = r->o->low_freq_factor, high = r->o->high_freq_factor;
    if (!(r->factor > 0)) return refuse(host, r, "factor", "is missing; it must be above 0");
    if (!(low > 0)) return refuse(host, r, "low_freq_factor", "is missing; it must be above 0");
    if (!(high > low)) return refuse(host, r, "high_freq_factor", "must be above low_freq_factor");
    for (int32_t c = 0; c < r->dim / 2; c++) {
        double *f = &r->frequency[c];
        const double wave = 2 * PI / *f, share = (r->context / wave - low) / (high - low);
        if (wave > r->context / low)
            *f /= r->factor;
        else if (wave >= r->context / high)
            *f = (1 - share) * *f / r->factor + share * *f;
    }
    return RLHF_OK;
}

// The index (a real number) of the pair that makes `rotations` turns within the context.
static double yarn_pair(const struct rope *r, double rotations) {
    return r->dim * rlhf_log(r->context / (rotations * 2 * PI)) / (2 * rlhf_log(r->theta));
}

static double yarn_mscale(double factor, double mscale) {
    return factor <= 1 ? 1 : 0.1 * mscale * rlhf_log(factor) + 1;
}

static rlhf_status yarn(const rlhf_host *host, const struct rope *r, double *scale) {
    const struct rlhf_tf_rope_config *o = r->o;
    if (!(r->theta > 1)) return refuse(host, r, "rope_theta", "must be above 1 with yarn");
    *scale = o->attention_factor;
    if (!(*scale > 0)) {
        *scale = yarn_mscale(r->factor, 1);
        if (o->mscale > 0 && o->mscale_all_dim > 0)
            *scale = yarn_mscale(r->factor, o->mscale) / yarn_mscale(r->factor, o->mscale_all_dim);
    }
    double low = yarn_pair(r, o->beta_fast > 0 ? o->beta_fast : 32);
    double high = yarn_pair(r, o->beta_slow > 0 ? o->beta_slow : 1);
    if (o->truncate) low = floor(low);
    if (o->truncate) high = ceil(high);
    low = fmax(low, 0);
    high = fmin(high, r->dim - 1);
    if (low == high) high += 0.001;
    for (int32_t c = 0; c < r->dim / 2; c++) {
        const double f = r->frequency[c], ramp = fmin(fmax((c - low) / (high - low), 0), 1);
        r->frequency[c] = f / r->factor * ramp + f * (1 - ramp);
    }
    return RLHF_OK;
}

// Computes the frequencies of type longrope (Ding et al. 2024): every wavelength has its own
// factor.
static rlhf_status longrope(const rlhf_host *host, const struct rope *r, double *scale) {
    if (r->stretch->len != (uint64_t)r->dim / 2)
        return rlhf_failf(
            host, RLHF_E_INVALID,
            "config.json: %s.%s has %llu numbers; it must have one for each of the %d "
            "pairs of a head that are rotated",
            r->object, r->stretch_key, (unsigned long long)r->stretch->len, r->dim / 2);
    if (!(r->context > 1))
        return rlhf_failf(
            host, RLHF_E_INVALID,
            "config.json: original_max_position_embeddings is %.10g; it must be above "
            "1 with longrope",
            r->context);
    for (int32_t c = 0; c < r->dim / 2; c++)
        r->frequency[c] /= r->stretch->ptr[c];
    *scale = r->o->attention_factor;
    if (!(*scale > 0))
        *scale = r->factor > 1 ? sqrt(1 + rlhf_log(r->factor) / rlhf_log(r->context)) : 1;
    return RLHF_OK;
}

static rlhf_status compute(const rlhf_host *host, const struct rope *r, double *scale) {
    *scale = 1;
    plain(r);
    if (!strcmp(r->type, "default")) return RLHF_OK;
    if (!strcmp(r->type, "linear")) return linear(host, r);
    if (!strcmp(r->type, "llama3")) return llama3(host, r);
    if (!strcmp(r->type, "yarn")) return yarn(host, r, scale);
    if (!strcmp(r->type, LONGROPE)) return longrope(host, r, scale);
    return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                      "config.json: %s.%s \"%s\" is not implemented; known: default, linear, "
                      "llama3, yarn, longrope",
                      r->object, r->o->rope_type ? "rope_type" : "type", r->type);
}

// 1 if layer i rotates its queries and keys.
static uint8_t rotates(const struct rlhf_tf_decoder *c, uint32_t reads, int64_t i) {
    if (reads & RLHF_TF_READS_HYBRID) return c->position_embedding_type != NULL;
    if (!(reads & RLHF_TF_READS_NO_ROPE)) return 1;
    if (c->no_rope_layers.len) return c->no_rope_layers.ptr[i] != 0;
    return (i + 1) % c->no_rope_layer_interval != 0;
}

// Sets *out to an array with 1 for each layer that rotates, or to NULL if all layers do.
static rlhf_status layers_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                               uint32_t reads, uint8_t **out) {
    const int64_t n = c->num_hidden_layers, listed = (int64_t)c->no_rope_layers.len;
    uint8_t all = 1;
    if (reads & RLHF_TF_READS_NO_ROPE && listed && listed < n)
        return rlhf_failf(host, RLHF_E_INVALID,
                          "config.json: no_rope_layers has items for %lld of the %lld layers; it "
                          "must have one for each",
                          (long long)listed, (long long)n);
    for (int64_t i = 0; i < n; i++)
        all &= rotates(c, reads, i);
    if (all) return RLHF_OK;
    *out = host->alloc(host, (uint64_t)n);
    if (!*out) return host->fail(host, RLHF_E_NOMEM, "out of memory for a list of layers");
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = rotates(c, reads, i);
    return RLHF_OK;
}

// Positions by kind of layer: the object and the base of the layers without a window.
static void kind_full(const struct rlhf_tf_decoder *c, const struct rlhf_tf_family *family,
                      struct rope *r) {
    const struct rlhf_tf_rope_config *o = &c->rope_full;
    if (!given(&c->rope_scaling)) {
        r->o = o;
        r->object = "rope_parameters.full_attention";
    }
    r->theta = o->rope_theta > 0   ? o->rope_theta
               : c->rope_theta > 0 ? c->rope_theta
                                   : family->rope_theta;
}

// Sets the frequencies of the layers with a window, and which layers they are.
static rlhf_status kind_sliding(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                const struct rlhf_tf_family *family, int32_t dim,
                                struct rlhf_tf_rotary *out) {
    const struct rlhf_tf_rope_config *o = &c->rope_sliding;
    const int gemma = (family->reads & RLHF_TF_READS_GEMMA) != 0;
    const double local =
        gemma && c->rope_local_base_freq > 0 ? c->rope_local_base_freq : family->sliding_theta;
    // Versions of transformers differ: some ignore rope_theta here.
    if (!gemma && !(o->rope_theta > 0) && c->rope_theta > 0 && c->rope_theta != local)
        return rlhf_failf(
            host, RLHF_E_UNSUPPORTED,
            "config.json: rope_theta is %.10g, and it is not clear whether it is that "
            "of the layers with a window, too; write it into "
            "rope_parameters.sliding_attention.rope_theta",
            c->rope_theta);
    const struct rope r = {.o = o,
                           .object = "rope_parameters.sliding_attention",
                           .type = o->rope_type ? o->rope_type : "default",
                           .theta = o->rope_theta > 0 ? o->rope_theta : local,
                           .factor = o->factor,
                           .dim = dim,
                           .frequency = host->alloc(host, (uint64_t)dim / 2 * sizeof(double))};
    out->other = r.frequency;
    out->layers = host->alloc(host, (uint64_t)c->num_hidden_layers);
    if (!out->other || !out->layers)
        return host->fail(host, RLHF_E_NOMEM, "out of memory for the frequencies of positions");
    for (int64_t i = 0; i < c->num_hidden_layers; i++)
        out->layers[i] = rlhf_tf_is_sliding(c, family, i) ? RLHF_TF_TURN_OTHER : RLHF_TF_TURN;
    plain(&r);
    return strcmp(r.type, "linear") == 0 ? linear(host, &r) : RLHF_OK;
}

// Refuses positions by kind of layer in a family that does not have them, and types whose settings
// are not read.
static rlhf_status check_kinds(const rlhf_host *host, const struct rlhf_tf_decoder *c, int kinds) {
    const struct {
        const char *key;
        const struct rlhf_tf_rope_config *o;
        int yarn;
    } all[] = {{"full_attention", &c->rope_full, 1}, {"sliding_attention", &c->rope_sliding, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *type = all[i].o->rope_type;
        if (!kinds && given(all[i].o))
            return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                              "config.json: rope_parameters.%s: positions by kind of layer are not "
                              "implemented for this model_type",
                              all[i].key);
        if (type && strcmp(type, "default") != 0 && strcmp(type, "linear") != 0 &&
            !(all[i].yarn && strcmp(type, "yarn") == 0))
            return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                              "config.json: rope_parameters.%s.rope_type \"%s\" is not "
                              "implemented; known: default, linear%s",
                              all[i].key, type, all[i].yarn ? ", yarn" : "");
    }
    return RLHF_OK;
}

// The type of the positions. For Phi-3, refuses those that transformers refuses.
static rlhf_status type_read(const rlhf_host *host, uint32_t reads, struct rope *r) {
    const struct rlhf_tf_rope_config *o = r->o;
    r->type = o->rope_type ? o->rope_type : o->type ? o->type : "default";
    if (!(reads & RLHF_TF_READS_PHI)) return RLHF_OK;
    if (!strcmp(r->type, "su") || !strcmp(r->type, "yarn")) r->type = LONGROPE;
    if (!strcmp(r->type, "default") || !strcmp(r->type, LONGROPE)) return RLHF_OK;
    return rlhf_failf(host, RLHF_E_UNSUPPORTED,
                      "config.json: %s.%s \"%s\" is not implemented for this model_type; known: "
                      "default, longrope, which older files call su or yarn",
                      r->object, o->rope_type ? "rope_type" : "type", r->type);
}

// Sets the number of elements of a head that are rotated: int(head_dim * partial_rotary_factor).
// Only Phi-3 and Qwen3.5 have this factor; rlhf_tf_decoder_arch refuses it in the other families.
static rlhf_status part_read(const rlhf_host *host, const struct rlhf_tf_decoder *c, uint32_t reads,
                             int32_t head_dim, struct rope *r) {
    const double own = r->o->partial_rotary_factor, outer = c->partial_rotary_factor;
    const int delta = (reads & RLHF_TF_READS_DELTA) != 0;
    const double part = !delta && !(reads & RLHF_TF_READS_PHI) ? 1
                        : own != RLHF_TF_MISSING               ? own
                        : outer != RLHF_TF_MISSING             ? outer
                        : delta                                ? 0.25
                                                               : 1;
    r->dim = (int32_t)(head_dim * part);
    if (r->dim == head_dim || (r->dim >= 2 && r->dim % 2 == 0)) return RLHF_OK;
    return rlhf_failf(
        host, RLHF_E_UNSUPPORTED,
        "config.json: partial_rotary_factor %.10g rotates %d elements of a head of %d; "
        "known: an even number of at least 2",
        part, r->dim, head_dim);
}

// Which factors longrope takes, and thus how long a row may be.
static rlhf_status lengths_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                struct rope *r, int32_t *context) {
    const int64_t most = c->max_position_embeddings;
    r->stretch = c->long_factors ? &r->o->long_factor : &r->o->short_factor;
    r->stretch_key = c->long_factors ? "long_factor" : "short_factor";
    if (strcmp(r->type, LONGROPE) != 0) return RLHF_OK;
    if (r->context >= (double)most) {
        if (!c->long_factors) return RLHF_OK;
        return rlhf_failf(
            host, RLHF_E_INVALID,
            "config.json: long_factors is true, but max_position_embeddings (%lld) is "
            "not above original_max_position_embeddings (%.10g); leave it out",
            (long long)most, r->context);
    }
    if (c->long_factors) {
        rlhf_logf(host, RLHF_LOG_INFO,
                  "longrope: all rows have the long factors; transformers gives them only to rows "
                  "of more than %.10g tokens",
                  r->context);
        return RLHF_OK;
    }
    *context = (int32_t)r->context;
    rlhf_logf(host, RLHF_LOG_INFO,
              "longrope: rows have the short factors and at most %d tokens; with \"long_factors\": "
              "true in config.json they have the long factors and at most %lld tokens",
              *context, (long long)most);
    return RLHF_OK;
}

static int64_t original_context(const struct rlhf_tf_decoder *c, const struct rope *r,
                                uint32_t reads) {
    if (c->original_max_position_embeddings) return c->original_max_position_embeddings;
    if (reads & RLHF_TF_READS_PHI) return 4096;
    if (r->o->original_max_position_embeddings) return r->o->original_max_position_embeddings;
    return c->max_position_embeddings;
}

// Everything but the frequencies.
static rlhf_status rope_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                             const struct rlhf_tf_family *family, int32_t head_dim, struct rope *r,
                             int32_t *context) {
    const double theta = family->rope_theta > 0 ? family->rope_theta : 10000;
    const int old = given(&c->rope_scaling);
    const int kinds = (family->reads & RLHF_TF_READS_KIND_ROPE) != 0;
    *r = (struct rope){.o = old ? &c->rope_scaling : &c->rope_parameters,
                       .object = old ? "rope_scaling" : "rope_parameters"};
    r->theta = r->o->rope_theta > 0 ? r->o->rope_theta : c->rope_theta > 0 ? c->rope_theta : theta;
    RLHF_TRY(check_kinds(host, c, kinds));
    if (kinds) kind_full(c, family, r);
    r->context = (double)original_context(c, r, family->reads);
    RLHF_TRY(type_read(host, family->reads, r));
    RLHF_TRY(part_read(host, c, family->reads, head_dim, r));
    r->factor = r->o->factor;
    if (!(r->factor > 0) && (!strcmp(r->type, "yarn") || !strcmp(r->type, LONGROPE)))
        r->factor = (double)c->max_position_embeddings / r->context;
    return lengths_read(host, c, r, context);
}

rlhf_status rlhf_tf_rotary_read(const rlhf_host *host, const struct rlhf_tf_decoder *c,
                                const struct rlhf_tf_family *family, int32_t head_dim,
                                struct rlhf_tf_rotary *out, int32_t *context) {
    const int kinds = (family->reads & RLHF_TF_READS_KIND_ROPE) != 0;
    struct rope r;
    *context = (int32_t)c->max_position_embeddings;
    *out = (struct rlhf_tf_rotary){.frequency = NULL};
    RLHF_TRY(rope_read(host, c, family, head_dim, &r, context));
    r.frequency = host->alloc(host, (uint64_t)r.dim / 2 * sizeof *r.frequency);
    if (!r.frequency)
        return host->fail(host, RLHF_E_NOMEM, "out of memory for the frequencies of positions");
    out->frequency = r.frequency;
    if (r.dim < head_dim) out->dim = r.dim;
    rlhf_status st = compute(host, &r, &out->scale);
    if (st == RLHF_OK && kinds) st = kind_sliding(host, c, family, head_dim, out);
    if (st == RLHF_OK && !kinds) st = layers_read(host, c, family->reads, &out->layers);
    if (st < 0) {
        host->free(host, r.frequency);
        host->free(host, out->other);
        host->free(host, out->layers);
        *out = (struct rlhf_tf_rotary){.frequency = NULL};
    }
    return st;
}
