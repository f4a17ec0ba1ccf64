#include "a/one.h"
#include "a/three.h"
#include "a/two.h"
struct three; // a forward declaration, and an include that gives nothing
static int helper(int x) {
    return x; // third() in a comment
}
int one_of(const struct two *t) {
    struct one o = {.third = t->n};
    const char *text = "third(4)";
    return helper(o.third) + text[0];
}
