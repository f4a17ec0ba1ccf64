int second_of(int n);
