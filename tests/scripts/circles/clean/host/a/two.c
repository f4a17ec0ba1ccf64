#include "a/two.h"
#include "a/one.h"
int two_of(int n) {
    struct two t = {n};
    return one_of(&t);
}
