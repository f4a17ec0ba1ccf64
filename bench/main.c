// main.c: rlhf-bench: prints the machine's limits, and how close the backend and the models come to
// them.
//
//   rlhf-bench [--backend cpu|cuda|PATH] [--threads N] [--dtype bf16|f32] [--cpu-time] [--tiny]
//              [--only peak|memory|ops|profile|exact|curve|model|train|decode|phase|
//              programs|environments|quantised] [--rounds 3] [--rows 16] [--len 64]
//              [--slots 32] [--prompt 16] [--new 48] [--microbatch TOKENS] [--model gpt2]
//              [--set n_embd=256]... [--adapter RANK] [--count STEPS]
//
// --rounds is for curve: the number of alternations.
// --cpu-time with --threads 1 gives usable figures on a machine that also runs other programs.
// --tiny is for emulated devices: every part of the program runs, but its figures are meaningless.
// --count is for bench/guard: it runs this many training steps or generations without measuring.
#include "model.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void find_lib_dir(struct bench *b) {
    char exe[3072];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n < 0) bench_die("cannot find the program's own path");
    exe[n] = 0;
    snprintf(b->lib_dir, sizeof b->lib_dir, "%s/../lib/rlhf/%d", dirname(exe), RLHF_ABI_MAJOR);
}

static const char *value_of(int *i, int argc, char **argv) {
    if (*i + 1 >= argc) bench_die("%s needs a value", argv[*i]);
    return argv[++*i];
}

static int number_of(int *i, int argc, char **argv) {
    const char *name = argv[*i], *text = value_of(i, argc, argv);
    char *end;
    long n = strtol(text, &end, 10);
    if (*end || n < 1 || n > 1 << 20) bench_die("%s %s: a number from 1 is needed", name, text);
    return (int)n;
}

struct args {
    const char *only, *dtype;
    char *set[64];
};

// Parses one argument. Returns 0 if the argument is not a shape.
static int parse_shape(struct bench *b, int *i, int argc, char **argv) {
    const struct {
        const char *name;
        int *to;
    } shapes[] = {
        {"--rows", &b->rows},     {"--len", &b->len},       {"--slots", &b->slots},
        {"--prompt", &b->prompt}, {"--new", &b->fresh},     {"--adapter", &b->rank},
        {"--count", &b->count},   {"--rounds", &b->rounds}, {"--microbatch", &b->microbatch}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        if (strcmp(argv[*i], shapes[k].name) != 0) continue;
        *shapes[k].to = number_of(i, argc, argv);
        return 1;
    }
    return 0;
}

static void parse(struct bench *b, struct args *a, int argc, char **argv) {
    size_t n_set = 0;
    for (int i = 1; i < argc; i++) {
        if (parse_shape(b, &i, argc, argv)) continue;
        if (strcmp(argv[i], "--backend") == 0)
            b->backend = value_of(&i, argc, argv);
        else if (strcmp(argv[i], "--threads") == 0)
            b->threads = (uint32_t)number_of(&i, argc, argv);
        else if (strcmp(argv[i], "--model") == 0)
            b->model = value_of(&i, argc, argv);
        else if (strcmp(argv[i], "--dtype") == 0)
            a->dtype = value_of(&i, argc, argv);
        else if (strcmp(argv[i], "--only") == 0)
            a->only = value_of(&i, argc, argv);
        else if (strcmp(argv[i], "--set") == 0 && i + 1 < argc && n_set < 63)
            a->set[n_set++] = argv[++i];
        else if (strcmp(argv[i], "--cpu-time") == 0)
            b->cpu_time = 1;
        else if (strcmp(argv[i], "--tiny") == 0)
            b->tiny = 1;
        else
            bench_die("unknown argument %s", argv[i]);
    }
}

// Which parts of the model benchmark run: training steps, decode steps, or both.
enum part { BOTH, TRAIN, DECODE };

static void model_parts(const struct bench *b, enum part part) {
    struct model m = bench_model_open(b);
    char with[48] = "";
    if (b->rank) snprintf(with, sizeof with, ", adapters of rank %d", b->rank);
    printf("%s, %.1f M parameters, random weights, %s%s\n", b->model,
           (double)m.info.n_params * 1e-6, b->dtype == RLHF_BF16 ? "bf16" : "f32", with);
    if (part != DECODE) bench_train(b, &m);
    if (part != TRAIN) bench_decode(b, &m);
    bench_model_close(b, &m);
}

int main(int argc, char **argv) {
    struct args a = {.only = "", .dtype = ""};
    struct bench b = {.backend = "cpu",
                      .model = "gpt2",
                      .rows = 16,
                      .len = 64,
                      .slots = 32,
                      .prompt = 16,
                      .fresh = 48,
                      .rounds = 3,
                      .set = a.set};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "--answer") == 0) {
        bench_answer();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--game") == 0) {
        bench_game();
        return 0;
    }
    parse(&b, &a, argc, argv);
    find_lib_dir(&b);
    if (strcmp(a.only, "programs") == 0) {
        bench_programs(&b);
        return 0;
    }
    if (strcmp(a.only, "environments") == 0) {
        bench_environments(&b);
        return 0;
    }
    bench_load(&b);
    const int has_bf16 = (b.c->dtypes & 1u << RLHF_BF16) != 0;
    b.only_dtype = *a.dtype != 0;
    b.dtype = strcmp(a.dtype, "f32") == 0 || (!*a.dtype && !has_bf16) ? RLHF_F32 : RLHF_BF16;
    printf("%s: %s%s\n", b.c->name, b.c->detail, b.cpu_time ? ", processor time" : "");
    if (!b.count && strcmp(a.only, "phase") != 0 && strncmp(a.only, "exact", 5) != 0 &&
        strcmp(a.only, "curve") != 0 && strcmp(a.only, "quantised") != 0)
        bench_peak(&b);
    if (!*a.only || strcmp(a.only, "memory") == 0) bench_memory(&b);
    if (strcmp(a.only, "ops") == 0) bench_ops(&b);
    if (strcmp(a.only, "ops") == 0) bench_decoder(&b);
    if (strcmp(a.only, "profile") == 0) bench_profile(&b);
    if (strcmp(a.only, "quantised") == 0) bench_quantised(&b);
    if (strcmp(a.only, "exact") == 0) bench_exact(&b);
    if (strcmp(a.only, "curve") == 0) bench_curve(&b);
    if (!*a.only || strcmp(a.only, "model") == 0) model_parts(&b, BOTH);
    if (strcmp(a.only, "train") == 0) model_parts(&b, TRAIN);
    if (strcmp(a.only, "decode") == 0) model_parts(&b, DECODE);
    if (!*a.only || strcmp(a.only, "phase") == 0) bench_phase(&b);
    return 0;
}
