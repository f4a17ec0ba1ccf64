// table_services.h: the host's services for a plugin in a worker. In the worker, an object of a
// service holds a handle for the object in the host, and caches some of the host's answers.
#ifndef RLHF_LIB_RUNTIME_WORKER_TABLE_SERVICES_H
#define RLHF_LIB_RUNTIME_WORKER_TABLE_SERVICES_H

#include "worker/table_calls.h"

void rlhf__table_services(struct rlhf__worker_host *t); // fill in the tables [main]

#endif
