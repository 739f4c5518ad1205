"""A checker of fastproc that shares no code with it: in storms, it compares with the kernel's texts."""
