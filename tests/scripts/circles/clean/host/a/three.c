#include "a/three.h"
#include "a/one.h"
#include "b/low.h"
struct three {
    int n;
};
static int helper(int x) { return x; }
int third(int n) {
    struct one o = {n};
    return helper(o.third) + LOW(n);
}
