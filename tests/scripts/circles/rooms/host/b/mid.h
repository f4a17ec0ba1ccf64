#include "a/up.h"
struct mid {
    void *call;
};
#define MID_CALL(m, n) ((up_call)(m)->call)(n)
