// wild_reward.c: a reward that depends on a response's length and, by default, on the number of
// rows scored so far. The option `how` chooses how the reward misbehaves. The host survives most of
// these faults only if the reward runs in a separate process. With how=fail and a file, the reward
// fails only if it can create the file, so it fails only once.
#include "support/plugin.h"

#include <rlhf/reward.h>
#include <rlhf/service.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum how {
    NOTHING,
    CRASH,
    ABORT,
    EXIT,
    HANG,
    BEHIND,
    TOKENS,
    BEFORE,
    INPUT,
    MEMORY,
    PRINT,
    FORKS,
    KILL,
    WRITE,
    NETWORK,
    METRIC,
    FAIL,
    LOUD,
    HOST,
    BOMB,
    TIME,
    MARK,
    STATUS,
    THREAD,
    UNWRITTEN,
    BAD_VERDICT,
    BAD_FAILED,
    REDUCE,
    CHANGE_N,
    CHANGE_SEQ,
    CHANGE_RESERVED
};

static const char *const ways[] = {"nothing",
                                   "crash",
                                   "abort",
                                   "exit",
                                   "hang",
                                   "behind",
                                   "tokens",
                                   "before",
                                   "input",
                                   "memory",
                                   "print",
                                   "forks",
                                   "kill",
                                   "write",
                                   "network",
                                   "metric",
                                   "fail",
                                   "loud",
                                   "host",
                                   "bomb",
                                   "time",
                                   "mark",
                                   "status",
                                   "thread",
                                   "unwritten",
                                   "bad_verdict",
                                   "bad_failed",
                                   "reduce",
                                   "change_n",
                                   "change_seq",
                                   "change_reserved",
                                   NULL};

struct config {
    int64_t row, phase; // position at which it misbehaves
    int32_t how, at_create, by_group, late, measures, reserved;
    int64_t every; // n > 0: misbehaves also at every row whose texts hash to 1 of n, in each phase
    int64_t times; // n > 0: MARK marks n rows in each process
    const char *file; // the file that WRITE tries to open, or that FAIL creates
    const char *const *words;
};

static const char *const first_words[] = {"a", NULL};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, row, 0, 0, 1000, "row at which it misbehaves"),
    RLHF_OPT_I64(struct config, phase, 0, 0, 1000, "phase in which it misbehaves"),
    RLHF_OPT_ENUM(struct config, how, 0, ways, "what it does"),
    RLHF_OPT_BOOL(struct config, at_create, 0, "does it in create()"),
    RLHF_OPT_BOOL(struct config, by_group, 0, "pays for the group, not for what came before"),
    RLHF_OPT_BOOL(struct config, late, 0, "pays when it has seen all rows"),
    RLHF_OPT_BOOL(struct config, measures, 0, "reports what it has scored"),
    RLHF_OPT_I64(struct config, every, 0, 0, 1000,
                 "1 of so many rows by their texts, in each phase"),
    RLHF_OPT_I64(struct config, times, 0, 0, 1000, "rows that it marks at most; 0: any number"),
    RLHF_OPT_STR(struct config, file, "", "a file"),
    RLHF_OPT_LIST(struct config, words, first_words, NULL, "they change rewards"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    double paid;      // the state
    int64_t marked;   // rows
    char *held[4096]; // allocated by MEMORY
};

TEST_INSTANCE(struct self)

// Starts processes. Without a supervisor, they would stay.
static void fork_many(void) {
    for (int i = 0; i < 3; i++) {
        if (fork() != 0) continue;
        setsid();
        if (fork() != 0) _exit(0);
        setsid();
        for (;;)
            pause();
    }
}

// Forks until a fork is refused, at most 3000 times.
static void start_many(const struct self *s) {
    static pid_t pid[3000];
    char text[64];
    int n = 0;
    while (n < 3000 && (pid[n] = fork()) >= 0) {
        if (pid[n] == 0) {
            for (;;)
                pause();
        }
        n++;
    }
    snprintf(text, sizeof text, "it started %s processes",
             n == 3000               ? "3000"
             : n >= 1000 && n < 1024 ? "its share of"
                                     : "too few");
    s->host->log(s->host, RLHF_LOG_INFO, text);
    for (int i = 0; i < n; i++)
        if (kill(pid[i], SIGKILL) == 0) waitpid(pid[i], NULL, 0);
}

// Logs the time that is left for the call.
static void tell_time(const struct self *s) {
    struct rlimit limit;
    struct rusage used;
    char text[96];
    getrlimit(RLIMIT_CPU, &limit);
    getrusage(RUSAGE_SELF, &used);
    snprintf(text, sizeof text, "it may compute for %ld s",
             limit.rlim_cur == RLIM_INFINITY
                 ? -1L
                 : (long)limit.rlim_cur - used.ru_utime.tv_sec - used.ru_stime.tv_sec);
    s->host->log(s->host, RLHF_LOG_INFO, text);
}

static rlhf_status take_memory(struct self *s) {
    for (int i = 0; i < 4096; i++) {
        char *p = malloc((size_t)1 << 20);
        if (!p) return s->host->fail(s->host, RLHF_E_NOMEM, "there is no memory left");
        memset(p, i, (size_t)1 << 20);
        s->held[i] = p;
    }
    return RLHF_OK;
}

// Opens a tokenizer in the host. The host does this when it is idle.
static rlhf_status open_tokenizer(const struct self *s) {
    const rlhf_tokenizer_service *service = s->host->service(s->host, RLHF_SVC_TOKENIZER);
    rlhf_tokenizer *t = NULL;
    if (!service) return s->host->fail(s->host, RLHF_E_INTERNAL, "no tokenizers");
    const rlhf_tokenizer_open how = {.size = sizeof how};
    RLHF_TRY(service->open(s->host, &how, &t));
    service->close(s->host, t);
    return RLHF_OK;
}

static void *report(void *arg) {
    const struct self *s = arg;
    rlhf_metric_last(s->host, "from_a_thread", 1);
    return NULL;
}

static void report_on_thread(struct self *s) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, report, s) == 0) pthread_join(thread, NULL);
}

static rlhf_status misbehave(struct self *s, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    static float other[1024];
    volatile uintptr_t nowhere = 0;
    char text[64];
    switch (s->config->how) {
    case CRASH:
        *(volatile int *)nowhere = 1;
        break;
    case ABORT:
        abort();
    case EXIT:
        exit(7);
    case HANG:
        for (;;)
            pause();
    case BEHIND:
        ((volatile float *)out->seq)[in->n] = 1;
        break;
    case TOKENS:
        ((volatile uint8_t *)out->verdict)[in->n] = 1;
        break;
    case BEFORE:
        ((volatile uint8_t *)out->failed)[-1] = 1;
        break;
    case INPUT:
        *(volatile int32_t *)(uintptr_t)in->ids = 1;
        break;
    case MEMORY:
        return take_memory(s);
    case PRINT:
        printf("to stdout\033[31m\n");
        fprintf(stderr, "to stderr\n");
        break;
    case FORKS:
        fork_many();
        *(volatile int *)nowhere = 1;
        break;
    case KILL:
        if (kill(getppid(), SIGKILL) == 0 && getppid() > 1)
            return s->host->fail(s->host, RLHF_E_INTERNAL, "it could end its parent");
        break;
    case WRITE:
        if (open(s->config->file, O_CREAT | O_WRONLY, 0600) >= 0)
            return s->host->fail(s->host, RLHF_E_INTERNAL, "it could write a file");
        break;
    case NETWORK:
        snprintf(text, sizeof text, "sockets: %s",
                 socket(AF_INET, SOCK_STREAM, 0) >= 0 ? "allowed" : "refused");
        s->host->log(s->host, RLHF_LOG_INFO, text);
        break;
    case METRIC:
        rlhf_metric_last(s->host, "rows", in->n);
        rlhf_metric_last(s->host, "paid", s->paid);
        break;
    case FAIL: // with a file: only the first time
        if (*s->config->file && open(s->config->file, O_CREAT | O_EXCL | O_WRONLY, 0600) < 0) break;
        return s->host->fail(s->host, RLHF_E_INVALID, "no opinion\033[31m today");
    case LOUD:
        for (int i = 0; i < 1000; i++)
            s->host->log(s->host, RLHF_LOG_INFO, "again");
        break;
    case HOST:
        return open_tokenizer(s);
    case BOMB:
        start_many(s);
        break;
    case TIME:
        tell_time(s);
        break;
    case STATUS:
        return 7;
    case THREAD:
        report_on_thread(s);
        break;
    case BAD_VERDICT:
        out->verdict[s->config->row] = RLHF_VERDICT_WRONG + 1;
        break;
    case BAD_FAILED:
        out->failed[s->config->row] = 2;
        break;
    case REDUCE:
        return s->host->reduce(s->host, &s->paid, 1);
    case CHANGE_N:
        ((rlhf_reward_in *)(uintptr_t)in)->n--;
        break;
    case CHANGE_SEQ:
        ((rlhf_reward_out *)(uintptr_t)out)->seq = other;
        break;
    case CHANGE_RESERVED:
        ((rlhf_reward_out *)(uintptr_t)out)->reserved = 1;
        break;
    default:
        break;
    }
    return RLHF_OK;
}

static rlhf_status create_wild(const rlhf_host *host, const void *config, void **self) {
    static const rlhf_reward_in in;
    static const rlhf_reward_out out;
    RLHF_TRY(create(host, config, self));
    struct self *s = *self;
    return s->config->at_create ? misbehave(s, &in, &out) : RLHF_OK;
}

// Returns the part of a row's reward that depends on its group.
static float of_group(const rlhf_reward_in *in, uint32_t row) {
    float sum = 0;
    for (uint32_t i = 0; i < in->n; i++)
        if (in->group[i] == in->group[row]) sum += (float)in->response[i].len / 8;
    return sum;
}

// Returns whether the reward misbehaves at row i.
static int is_now(const struct self *s, const rlhf_reward_in *in, uint32_t i) {
    const struct config *c = s->config;
    uint32_t sum = 0;
    for (uint64_t k = 0; k < in->response[i].len; k++)
        sum = sum * 31 + (unsigned char)in->response[i].ptr[k];
    if (c->at_create) return 0;
    if (c->every > 0) return (sum >> 3) % (uint64_t)c->every == 0;
    return (int64_t)in->phase == c->phase && i == c->row;
}

// Returns a number computed from the list of strings, which is 0 for the default list.
static float of_words(const struct self *s) {
    float sum = -1;
    for (const char *const *word = s->config->words; *word; word++)
        sum = 2 * sum + (float)strlen(*word);
    return s->config->words[0] ? sum + 1 : 0;
}

// Reports metrics. They are whole numbers, so that the order of sums does not matter.
static void measure(const struct self *s, const rlhf_reward_in *in) {
    double sum = 0, sources = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        const double length = (double)in->response[i].len;
        sum += length;
        sources += (double)in->source[i];
        s->host->metric(s->host, "measured/max", length, 1, RLHF_COMBINE_MAX);
        s->host->metric(s->host, "measured/min", length, 1, RLHF_COMBINE_MIN);
        s->host->metric(s->host, "measured/each", length, 1, RLHF_COMBINE_MEAN);
    }
    rlhf_metric_mean(s->host, "measured/mean", sum / in->n, in->n);
    rlhf_metric_add(s->host, "measured/rows", in->n);
    rlhf_metric_add(s->host, "measured/sources", sources);
    rlhf_metric_last(s->host, "measured/last", (double)in->response[in->n - 1].len);
}

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; i < in->n; i++) {
        const int now = is_now(s, in, i);
        if (now) RLHF_TRY(st = misbehave(s, in, out)); // STATUS scores all rows
        const int marks = !s->config->times || s->marked < s->config->times;
        if (now && s->config->how == MARK && marks) {
            out->failed[i] = 1;
            s->marked++;
        }
        if (s->config->late || (now && s->config->how == UNWRITTEN)) continue;
        s->paid += 1;
        out->seq[i] = (float)in->response[i].len;
        out->seq[i] += of_words(s) * (float)(in->response[i].len % 5);
        if (s->config->every) continue;
        out->seq[i] += s->config->by_group ? of_group(in, i) : (float)s->paid / 64;
    }
    for (uint32_t i = 0; s->config->late && i < in->n; i++)
        out->seq[i] = (float)in->response[i].len;
    if (s->config->measures) measure(s, in);
    return st;
}

static rlhf_status save(void *self, const rlhf_ostream *out) {
    const struct self *s = self;
    return out->write(out, &s->paid, sizeof s->paid);
}

static rlhf_status load(void *self, const rlhf_istream *in, uint32_t version) {
    struct self *s = self;
    (void)version;
    return in->read(in, &s->paid, sizeof s->paid);
}

#ifdef ALONE
static const rlhf_reward_ops ops = {
    .size = sizeof ops, .flags = RLHF_REWARD_ROW_ALONE | RLHF_REWARD_EXTERNAL, .score = score};
#else
static const rlhf_reward_ops ops = {.size = sizeof ops, .score = score};
#endif

// STATEFUL is 0 or 1: whether it keeps the sum of its rewards.
TEST_PLUGIN(RLHF_KIND_REWARD, "wild_reward", .summary = "misbehaves on purpose", TEST_OPTIONS(opts),
            .create = create_wild, .destroy = destroy, .state_version = STATEFUL,
            .save = STATEFUL ? save : NULL, .load = STATEFUL ? load : NULL)
