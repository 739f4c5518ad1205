"""A checker of fastproc that shares no code with it: what the kernel's texts say before and after, in storms."""
