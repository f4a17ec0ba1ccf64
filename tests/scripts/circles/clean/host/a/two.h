#ifndef TWO_H
#define TWO_H
struct two {
    int n;
};
int two_of(int n);
int two_more(int n);
#endif
