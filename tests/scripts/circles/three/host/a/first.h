struct first {
    int n;
};
