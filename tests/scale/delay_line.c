// delay_line.c: a network line with a limited rate and a delay between two network namespaces, for
// kernels without netem. Each namespace has a TUN device. This process moves the packets between
// the devices and delays every packet.
//
//   delay_line NAMESPACE ADDRESS NAMESPACE ADDRESS MBIT_PER_S DELAY_US
//
// Needs root. Prints "up" when the line is ready, and runs until it is ended. Each direction has a
// separate queue. A packet arrives DELAY_US after its last bit was sent. The devices take packets
// of 60 KB, so that one core can move a gigabit a second.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { MTU = 60000, SLOTS = 512 };

struct packet {
    double at; // when it arrives
    ssize_t len;
    char bytes[MTU + 64];
};

struct way {
    int in, out;
    double free_at; // when the line has sent what was put on it
    unsigned head, n;
    struct packet *slot; // [SLOTS], a ring
};

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Makes a device in the network namespace of this process. Returns its descriptor, or -1.
static int make_device(const char *address) {
    struct ifreq q = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    char command[400];
    snprintf(q.ifr_name, sizeof q.ifr_name, "slow0");
    const int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, TUNSETIFF, &q) != 0) return -1;
    snprintf(command, sizeof command,
             "ip addr add %s/24 dev slow0 && ip link set slow0 mtu %d up && ip link set lo up",
             address, MTU);
    return system(command) == 0 ? fd : -1;
}

static int device_in(const char *name, const char *address) {
    char path[200];
    snprintf(path, sizeof path, "/var/run/netns/%s", name);
    const int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    const int there = open(path, O_RDONLY | O_CLOEXEC);
    if (home < 0 || there < 0 || setns(there, CLONE_NEWNET) != 0) return -1;
    const int fd = make_device(address);
    if (setns(home, CLONE_NEWNET) != 0) return -1;
    close(home);
    close(there);
    return fd;
}

// Takes the packets that were sent.
static void take(struct way *w, double rate, double delay) {
    const double now = seconds();
    while (w->n < SLOTS) {
        struct packet *p = &w->slot[(w->head + w->n) % SLOTS];
        p->len = read(w->in, p->bytes, sizeof p->bytes);
        if (p->len <= 0) return;
        w->free_at = (w->free_at > now ? w->free_at : now) + (double)p->len / rate;
        p->at = w->free_at + delay;
        w->n++;
    }
}

// Delivers the packets that have arrived. Returns the time of the next arrival, at most `limit`.
static double deliver(struct way *w, double limit) {
    while (w->n > 0 && w->slot[w->head].at <= seconds()) {
        const struct packet *p = &w->slot[w->head];
        if (write(w->out, p->bytes, (size_t)p->len) < 0) perror("write");
        w->head = (w->head + 1) % SLOTS;
        w->n--;
    }
    return w->n > 0 && w->slot[w->head].at < limit ? w->slot[w->head].at : limit;
}

static void wait_until(double at, const struct way w[2]) {
    struct pollfd p[2];
    for (int k = 0; k < 2; k++)
        p[k] = (struct pollfd){.fd = w[k].n < SLOTS ? w[k].in : -1, .events = POLLIN};
    const double left = at - seconds();
    const struct timespec t = {0, left <= 0 ? 0 : left > 0.9 ? 900000000 : (long)(left * 1e9)};
    ppoll(p, 2, &t, NULL);
}

int main(int argc, char **argv) {
    if (argc != 7) return 2;
    const double rate = atof(argv[5]) * 1e6 / 8, delay = atof(argv[6]) * 1e-6;
    const int a = device_in(argv[1], argv[2]), b = device_in(argv[3], argv[4]);
    struct way w[2] = {{.in = a, .out = b}, {.in = b, .out = a}};
    if (a < 0 || b < 0) {
        perror("delay_line");
        return 1;
    }
    struct packet *slots = calloc(2 * SLOTS, sizeof *slots);
    if (!slots) return 1;
    w[0].slot = slots;
    w[1].slot = slots + SLOTS;
    puts("up");
    fflush(stdout);
    for (;;) {
        double next = seconds() + 1;
        for (int k = 0; k < 2; k++) {
            take(&w[k], rate, delay);
            next = deliver(&w[k], next);
        }
        wait_until(next, w);
    }
}
