// service_kit.h: the host's services for texts (rlhf/service.h), with the CPU backend in f32, for
// tests that call them as a plugin does.
#ifndef RLHF_TESTS_SERVICE_KIT_H
#define RLHF_TESTS_SERVICE_KIT_H

#include "model/session.h"
#include "plugin/instance.h"
#include "service/text_services.h"

struct service_kit {
    union {                      // must be the first member
        rlhf_host host;          // for the first argument of the services
        struct rlhf__host whole; // it seems to call a plugin's create() on the thread of _init
    };
    struct rlhf__dirs dirs;
    struct rlhf__plugins *plugins;
    struct rlhf__session session;
    struct rlhf__text_services *served;
    struct rlhf__error said; // what a service reported last
};

// Returns 0, or -1 after a failure. End with service_kit_finish.
int service_kit_init(struct service_kit *);

// Returns 1 if the test has left an object of a service open.
int service_kit_finish(struct service_kit *);

// From now on, the host seems to call this function of the plugin; NULL: none.
void service_kit_calls(struct service_kit *, const char *function);

// Asserts that a call succeeded, or that it failed with this status and message.
void service_works(const struct service_kit *, rlhf_status);
void service_refused(const struct service_kit *, rlhf_status, rlhf_status as, const char *why);

#endif
