// export.c: `rlhf-host export`. The source is a checkpoint of a run, or any model directory. The
// outputs are a directory for transformers (from_pretrained) with a model card, and a GGUF file for
// llama.cpp. Weights are copied or rounded; only --merge computes new ones.
#include "export/export.h"

#include "base/printable.h"
#include "cmd/commands.h"
#include "cmd/flags.h"
#include "cmd/program.h"
#include "export/export_adapter.h"
#include "export/export_card.h"
#include "export/export_config.h"
#include "export/export_place.h"
#include "export/export_tensors.h"
#include "export/modelfile.h"
#include "gguf_write/gguf.h"
#include "model/adapter.h"
#include "tensors/gguf_file.h"
#include "weights/hf_dir.h"
#include "weights/rounding.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *to, *gguf, *dtype, *checkpoint, *shard_size, *base_model, *adapter;
    int32_t force, merge;
    const char *source;
    uint64_t shard_bytes;
    int32_t to_dtype; // enum rlhf__tensor_dtype, -1 = not given
};

#define O struct options
static const struct rlhf__flag flags[] = {
    RLHF__FLAG_S(O, "--to", to, "DIR", "the directory to make"),
    RLHF__FLAG_S(
        O, "--gguf", gguf, "FILE",
        "for llama.cpp: the model, or an adapter without --merge; with --to or without it"),
    RLHF__FLAG_S(O, "--adapter", adapter, "DIR", "adapter on the model, as PEFT wrote it"),
    RLHF__FLAG_SW(O, "--merge", merge,
                  "of an adapter: the whole model with the adapter in it [the adapter alone]"),
    RLHF__FLAG_S(
        O, "--dtype", dtype, "T",
        "f32, bf16, f16 or, of a model with only --gguf, q8_0 [of a run, as its first model; "
        "of quantised weights f16 in a GGUF file, else f32; else as stored]"),
    RLHF__FLAG_S(O, "--checkpoint", checkpoint, "NAME",
                 "of a run: best, last or a name [best where the run keeps one, else last]"),
    RLHF__FLAG_S(O, "--shard-size", shard_size, "SIZE",
                 "bytes of weights in a file, as 500MB, 2GiB [5GB]"),
    RLHF__FLAG_S(O, "--base-model", base_model, "ID",
                 "the model on the hub that it was made from, for the card"),
    RLHF__FLAG_SW(O, "--force", force,
                  "replace the model in DIR, and FILE; other files of DIR stay"),
};
#undef O
#define N_FLAGS (sizeof flags / sizeof *flags)

// ---- flags ----

static rlhf_status parse_size(const char *text, uint64_t *out, struct rlhf__error *err) {
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},          {"KB", 1000},     {"MB", 1000000}, {"GB", 1000000000},
                 {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
    char *end;
    errno = 0;
    const unsigned long long n = strtoull(text, &end, 10);
    const int digits = text[0] >= '0' && text[0] <= '9' && !errno;
    for (size_t i = 0; digits && n > 0 && i < sizeof units / sizeof *units; i++)
        if (strcmp(end, units[i].unit) == 0 && n <= ((uint64_t)1 << 50) / units[i].bytes) {
            *out = n * units[i].bytes;
            return RLHF_OK;
        }
    return rlhf__fail(err, RLHF_E_INVALID,
                      "--shard-size must be a number of bytes from 1 to 1024 TiB, as 500MB, 5GB or "
                      "2GiB, found %s",
                      *text ? text : "nothing");
}

static rlhf_status parse_dtype(const char *text, int32_t *out, struct rlhf__error *err) {
    static const struct {
        const char *name;
        int32_t dtype;
    } names[] = {{"f32", RLHF__TENSOR_F32},
                 {"bf16", RLHF__TENSOR_BF16},
                 {"f16", RLHF__TENSOR_F16},
                 {"q8_0", RLHF__TENSOR_Q8_0}};
    *out = -1;
    for (size_t i = 0; text && i < 4; i++)
        if (strcmp(text, names[i].name) == 0) *out = names[i].dtype;
    if (!text || *out >= 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "--dtype must be f32, bf16, f16 or q8_0, found %s",
                      *text ? text : "nothing");
}

static rlhf_status check(struct options *o, const struct rlhf__flag_list *rest,
                         struct rlhf__error *err) {
    const struct rlhf__flag_idle of_dir[] = {{"--shard-size", o->shard_size != NULL},
                                             {"--base-model", o->base_model != NULL}};
    if (rest->n != 1 || (!o->to && !o->gguf))
        return rlhf__fail(err, RLHF_E_INVALID, "export: give %s, as in export RUN --to DIR",
                          rest->n == 0  ? "a run's directory or a model's"
                          : rest->n > 1 ? "one directory"
                                        : "the result's name with --to DIR or --gguf FILE");
    if (!o->to) RLHF_TRY(rlhf__flags_idle(of_dir, 2, "export", "without --to", err));
    o->source = rest->item[0];
    RLHF_TRY(parse_dtype(o->dtype, &o->to_dtype, err));
    if (o->to_dtype == RLHF__TENSOR_Q8_0 && o->to)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --dtype q8_0 is only for a GGUF file; give --gguf without --to");
    RLHF_TRY(parse_size(o->shard_size ? o->shard_size : "5GB", &o->shard_bytes, err));
    if (!o->base_model || rlhf__is_hub_id(o->base_model)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "--base-model must be NAME or OWNER/NAME as on the hub, found %s",
                      *o->base_model ? o->base_model : "nothing");
}

// ---- the export ----

static const char *dtype_text(int32_t dtype) {
    return dtype == RLHF__TENSOR_F32    ? "f32"
           : dtype == RLHF__TENSOR_BF16 ? "bf16"
           : dtype == RLHF__TENSOR_F16  ? "f16"
           : dtype == RLHF__TENSOR_Q8_0 ? "q8_0"
                                        : NULL;
}

struct job {
    const struct rlhf__env *env;
    const struct options *o;
    struct rlhf__export_source source;
    struct rlhf__export_tensors tensors;
    struct rlhf__export_adapter adapter; // with --merge
    int64_t n_adapter;                   // parameters of an adapter that is exported alone
    struct rlhf__export_place place;     // with --to
    struct rlhf__export_gguf file;       // with --gguf
    struct rlhf__gguf_model gguf;        // the contents of that file, if it is a model
    struct rlhf__buf modelfile;          // the text of its Modelfile
    char name[256];                      // name of the model or adapter in that file
    int32_t to_dtype;                    // that the weights get, -1 = as stored
    int32_t dtype;                       // of the exported weights, -1 = mixed
};

static rlhf_status outside(const struct job *j, const char *flag, const char *given,
                           const char *real, struct rlhf__error *err) {
    if (!rlhf__export_source_holds(&j->source, real)) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "export: %s '%s' is inside the exported model; choose a name outside of it",
                      flag, given);
}

static rlhf_status choose_place(struct job *j, struct rlhf__error *err) {
    char real[RLHF__PATH_CAP];
    if (j->o->to) {
        RLHF_TRY(rlhf__export_place_choose(&j->place, j->o->to, j->o->force, err));
        rlhf__export_place_real(j->place.to, real);
        RLHF_TRY(outside(j, "--to", j->o->to, real, err));
    }
    if (!j->o->gguf) return RLHF_OK;
    rlhf__export_place_real(j->o->gguf, real);
    RLHF_TRY(outside(j, "--gguf", j->o->gguf, real, err));
    return rlhf__export_gguf_choose(&j->file, j->o->gguf, j->o->to ? &j->place : NULL, j->o->force,
                                    err);
}

// The source is an adapter that is exported without its base.
static int is_adapter(const struct job *j) { return j->source.peft.dir && !j->o->merge; }

static rlhf_status write_adapter(struct job *j, struct rlhf__error *err) {
    RLHF_TRY(rlhf__export_adapter_write(&j->source, j->to_dtype, j->o->base_model, j->place.dir,
                                        &j->n_adapter, err));
    const struct rlhf__export_card card = {.source = &j->source,
                                           .title = rlhf__path_base(j->place.to),
                                           .base_model = j->o->base_model,
                                           .dtype = dtype_text(j->dtype),
                                           .n_parameters = j->n_adapter,
                                           .adapter = 1};
    return rlhf__export_card_write(&card, j->place.dir, err);
}

static rlhf_status write_dir(struct job *j, struct rlhf__shards_done *done,
                             struct rlhf__error *err) {
    if (is_adapter(j)) return write_adapter(j, err);
    const struct rlhf__file_shards shards = {.tensor = j->tensors.tensor,
                                             .n = j->tensors.n,
                                             .dtype = j->to_dtype,
                                             .limit = j->o->shard_bytes,
                                             .cancelled = j->env->cancelled};
    RLHF_TRY(rlhf__export_config_write(&j->source, j->place.dir, err));
    RLHF_TRY(rlhf__shards_write(&shards, j->place.dir, done, err));
    const struct rlhf__export_card card = {.source = &j->source,
                                           .title = rlhf__path_base(j->place.to),
                                           .base_model = j->o->base_model,
                                           .dtype = dtype_text(j->dtype),
                                           .n_parameters = done->n_parameters};
    return rlhf__export_card_write(&card, j->place.dir, err);
}

// Name the files of the replaced directory that stay.
static void say_own(const struct job *j) {
    const struct rlhf__export_own *own = &j->place.own;
    char more[64] = "", name[sizeof own->first], to[RLHF__PATH_CAP];
    if (own->n > 1)
        snprintf(more, sizeof more, " and %d more file%s", own->n - 1, own->n > 2 ? "s" : "");
    if (own->n > 0)
        rlhf__logf(j->env->log, RLHF_LOG_INFO, "kept in %s: %s%s, which no export writes",
                   rlhf__printable(j->place.to, to, sizeof to),
                   rlhf__printable(own->first, name, sizeof name), more);
}

static rlhf_status write_gguf(struct job *j, struct rlhf__error *err) {
    const struct rlhf__folder *in;
    const char *name;
    RLHF_TRY(rlhf__export_gguf_where(&j->file, &in, &name, err));
    RLHF_TRY(is_adapter(j) ? rlhf__export_adapter_gguf(&j->source, j->to_dtype, j->name,
                                                       j->env->cancelled, in, name, err)
                           : rlhf__gguf_write(&j->gguf, in, name, err));
    return rlhf__export_gguf_about(&j->file, &j->modelfile, err);
}

static rlhf_status write_all(struct job *j, struct rlhf__shards_done *done,
                             struct rlhf__error *err) {
    if (j->o->to) RLHF_TRY(rlhf__export_place_open(&j->place, err));
    if (j->o->to) RLHF_TRY(write_dir(j, done, err));
    if (j->o->gguf) RLHF_TRY(write_gguf(j, err));
    if (*j->env->cancelled && j->o->to) return rlhf__fail(err, RLHF_E_CANCELLED, "stopped");
    if (j->o->to) RLHF_TRY(rlhf__export_place_commit(&j->place, err));
    say_own(j);
    if (!j->o->gguf || rlhf__export_gguf_commit(&j->file, &j->modelfile, err) == RLHF_OK)
        return RLHF_OK;
    return rlhf__error_context(err, "export: '%s' was written, but not all of --gguf",
                               j->o->to ? j->o->to : j->o->gguf);
}

// Check the contents of a GGUF file and make its Modelfile before anything is written.
static rlhf_status check_gguf(struct job *j, struct rlhf__error *err) {
    char file[RLHF__PATH_CAP];
    rlhf__path_put(file, "./%s", rlhf__path_base(j->o->gguf));
    const struct rlhf__modelfile about = {.dir = rlhf__export_source_text(&j->source),
                                          .config = j->source.config,
                                          .from = is_adapter(j) ? j->source.base : file,
                                          .adapter = is_adapter(j) ? file : NULL};
    RLHF_TRY(is_adapter(j) ? rlhf__export_adapter_gguf(&j->source, j->to_dtype, j->name, NULL, NULL,
                                                       NULL, err)
                           : rlhf__gguf_check(&j->gguf, err));
    return rlhf__modelfile_make(&about, &j->modelfile, err);
}

static rlhf_status prepare_gguf(struct job *j, struct rlhf__error *err) {
    const char *base = rlhf__path_base(j->o->to ? j->place.to : j->o->gguf);
    const char *dot = j->o->to ? NULL : strrchr(base, '.');
    const char *from = j->source.peft.dir ? j->source.base : j->source.dir;
    const int file = rlhf__gguf_is(from);
    if (!j->o->gguf) return RLHF_OK;
    snprintf(j->name, sizeof j->name, "%.*s", (int)(dot && dot > base ? dot - base : 200), base);
    j->gguf = (struct rlhf__gguf_model){.dir = rlhf__export_source_text(&j->source),
                                        .name = j->name,
                                        .from = file ? from : NULL,
                                        .changed = j->o->merge,
                                        .config = j->source.config,
                                        .tensor = j->tensors.tensor,
                                        .n = j->tensors.n,
                                        .dtype = j->to_dtype,
                                        .cancelled = j->env->cancelled};
    return check_gguf(j, err) == RLHF_OK ? RLHF_OK : rlhf__error_context(err, "export: --gguf");
}

static rlhf_status say_done(const struct job *j, const struct rlhf__shards_done *done,
                            struct rlhf__error *err) {
    const char *dtype = dtype_text(j->dtype);
    char base[RLHF__PATH_CAP]; // the base's name from the adapter's config
    char to[RLHF__PATH_CAP];
    const char *in_file = dtype ? dtype : is_adapter(j) ? "f32" : NULL;
    if (is_adapter(j) && j->o->to)
        printf("adapter of %lld parameters%s%s on %s: %s\n", (long long)j->n_adapter,
               dtype ? " as " : "", dtype ? dtype : "",
               rlhf__printable(j->source.base, base, sizeof base),
               rlhf__printable(j->o->to, to, sizeof to));
    else if (j->o->to)
        printf("%lld parameters%s%s in %zu file%s: %s\n", (long long)done->n_parameters,
               dtype ? " as " : "", dtype ? dtype : "", done->n_files,
               done->n_files == 1 ? "" : "s", rlhf__printable(j->o->to, to, sizeof to));
    if (j->o->gguf)
        printf("for llama.cpp%s%s: %s\n", in_file ? " as " : "", in_file ? in_file : "",
               rlhf__printable(j->o->gguf, to, sizeof to));
    return rlhf__print_flush(err);
}

static void warn_of_pooling(const struct job *j) {
    const char *theirs, *pooling = rlhf__export_pooling(&j->source, &theirs);
    if (pooling && j->o->to)
        rlhf__logf(j->env->log, RLHF_LOG_WARN,
                   "scores come from the %s of the tokens here and from the %s one in "
                   "transformers, whose logits differ; a model trained with --set "
                   "score.pooling=%s agrees, except for the gain and bias of a reward model",
                   pooling, theirs, theirs);
}

// PEFT needs a directory as the base.
static void say_base(const struct job *j) {
    char base[RLHF__PATH_CAP];
    if (!is_adapter(j) || !j->o->to || j->o->base_model || !rlhf__gguf_is(j->source.base)) return;
    rlhf__printable(j->source.base, base, sizeof base);
    rlhf__logf(j->env->log, RLHF_LOG_INFO,
               "the base of this adapter is a GGUF file, which PEFT does not load: export it, too "
               "(rlhf-host export %s --to BASE), and load the adapter on BASE",
               base);
}

// Refuse options that need an adapter if none exists, and options that an export of only an adapter
// does not support.
static rlhf_status check_adapter(const struct job *j, struct rlhf__error *err) {
    const struct options *o = j->o;
    const struct rlhf__flag_idle of_model = {"--shard-size", o->shard_size != NULL};
    if (o->merge && !j->source.peft.dir)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "export: --merge has no effect here: '%s' has no adapter (--adapter DIR "
                          "gives it one)",
                          o->source);
    if (j->source.peft.dir)
        RLHF_TRY(rlhf__adapter_check_base(&j->source.peft, j->source.base, err));
    if (!is_adapter(j)) return RLHF_OK;
    if (o->to_dtype == RLHF__TENSOR_Q8_0)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "export: an adapter cannot have the dtype q8_0; allowed are f32, bf16 and "
            "f16 (--merge writes the whole model)");
    return rlhf__flags_idle(&of_model, 1, "export", "of an adapter without --merge", err);
}

// The dtype of --dtype, else that of the model from which the run began.
static void choose_dtype(struct job *j) {
    const json_t *first = json_object_get(j->source.config, RLHF__HF_FIRST_DTYPE);
    const char *name = json_string_value(first);
    j->to_dtype = j->o->to_dtype;
    if (name && j->to_dtype < 0 && strcmp(name, "bfloat16") == 0) j->to_dtype = RLHF__TENSOR_BF16;
    if (name && j->to_dtype < 0 && strcmp(name, "float16") == 0) j->to_dtype = RLHF__TENSOR_F16;
    json_object_del(j->source.config, RLHF__HF_FIRST_DTYPE);
}

static int is_quantised(const struct rlhf__export_tensors *x) {
    for (size_t i = 0; i < x->n; i++)
        if (rlhf__tensor_dtype_block(x->tensor[i]->dtype) > 1) return 1;
    return 0;
}

// A GGUF file of a model that was read from quantised blocks has f16: in f32, twice as many bytes
// would hold little more.
static void choose_gguf_dtype(struct job *j) {
    if (j->to_dtype >= 0 || j->o->to || !is_quantised(&j->tensors)) return;
    j->to_dtype = RLHF__TENSOR_F16;
    rlhf__logf(j->env->log, RLHF_LOG_INFO,
               "written as f16, because the model's weights are quantised; --dtype f32 writes the "
               "dequantised numbers exactly");
}

// Names the dtype if it was decided for the user and rounds the weights.
static void say_dtype(const struct job *j) {
    if (j->o->to_dtype < 0 && j->to_dtype >= 0 && j->to_dtype != j->tensors.dtype)
        rlhf__logf(j->env->log, RLHF_LOG_INFO,
                   "written as %s, the dtype of the model from which the run began; --dtype f32 "
                   "writes the exact weights",
                   dtype_text(j->to_dtype));
}

static rlhf_status run(struct job *j, struct rlhf__error *err) {
    const struct options *o = j->o;
    struct rlhf__shards_done done = {0};
    struct rlhf__log *log = j->env->log;
    char room[RLHF__PATH_CAP];
    const char *from = rlhf__dirs_shared(j->env->dirs, o->source, room);
    RLHF_TRY(rlhf__export_source_open(&j->source, from, o->adapter, o->checkpoint, log, err));
    const struct rlhf__flag_idle of_card = {"--base-model",
                                            o->base_model && rlhf__export_card_kept(&j->source)};
    RLHF_TRY(rlhf__flags_idle(&of_card, 1, "export",
                              "on a model that already has a README.md, which is kept unchanged",
                              err));
    RLHF_TRY(check_adapter(j, err));
    RLHF_TRY(choose_place(j, err));
    if (is_adapter(j)) {
        j->to_dtype = j->dtype = o->to_dtype;
        RLHF_TRY(prepare_gguf(j, err));
        RLHF_TRY(write_all(j, &done, err));
        say_base(j);
        return say_done(j, &done, err);
    }
    // A checkpoint may store the weights rounded to bf16. Only exports in f32, f16 and q8_0 need
    // the exact weights instead.
    choose_dtype(j);
    const int exact = j->to_dtype >= 0 && j->to_dtype != RLHF__TENSOR_BF16;
    RLHF_TRY(rlhf__export_tensors_open(&j->tensors, &j->source, exact, log, err));
    if (o->merge)
        RLHF_TRY(rlhf__export_adapter_merge(&j->adapter, &j->tensors, &j->source, 1, err));
    say_dtype(j);
    choose_gguf_dtype(j);
    j->dtype = j->to_dtype >= 0 ? j->to_dtype : j->tensors.dtype;
    RLHF_TRY(rlhf__export_config_set(&j->source, j->tensors.weights, j->dtype, err));
    RLHF_TRY(prepare_gguf(j, err));
    warn_of_pooling(j);
    RLHF_TRY(write_all(j, &done, err));
    return say_done(j, &done, err);
}

int rlhf__cmd_export(const struct rlhf__env *env, int argc, char **argv) {
    struct rlhf__error err = {0, ""};
    struct rlhf__flag_list rest = {0};
    struct options o = {0};
    struct job j = {.env = env, .o = &o};
    if (rlhf__flags_helped(flags, N_FLAGS,
                           "rlhf-host export RUN|MODEL --to DIR [--gguf FILE] [flags]", argc, argv))
        return 0;
    rlhf_status st = rlhf__flags_parse(flags, N_FLAGS, argc, argv, &o, &rest, &err);
    if (st == RLHF_OK) st = check(&o, &rest, &err);
    if (st == RLHF_OK) st = run(&j, &err);
    if (st == RLHF_E_CANCELLED)
        rlhf__logf(env->log, RLHF_LOG_INFO, "stopped; '%s' was not written", o.to ? o.to : o.gguf);
    rlhf__export_gguf_finish(&j.file);
    rlhf__buf_finish(&j.modelfile);
    rlhf__export_place_finish(&j.place);
    rlhf__export_tensors_finish(&j.tensors);
    rlhf__export_adapter_finish(&j.adapter);
    rlhf__export_source_finish(&j.source);
    free(rest.item);
    return rlhf__cmd_end(env, st, &err);
}
