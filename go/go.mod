module example.org/fastproc

go 1.19
