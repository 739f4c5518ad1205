module fastproc

go 1.19
