"""The kinds of fields, for the table of counts."""

# Lists, sets and names, by kind; the others are numbers of a file.
CLASSES_OF_FIELDS = {
    "counters": "time run_delay timeslices utime stime guest_time cutime cstime cguest_time minflt majflt cminflt cmajflt "
    "nvcsw nivcsw read_bytes write_bytes cancelled_write_bytes rchar wchar syscr syscw delayacct_blkio",
    "shares and rates": "pcpu wait pcpu_user pcpu_system pmem minflt_per_second majflt_per_second "
    "read_bytes_per_second write_bytes_per_second etime",
    "memory": "rss vsize shr rssanon rssfile rssshmem vmswap vmpeak vmhwm vmlck vmpin vmdata vmstk vmexe vmlib trs vmpte "
    "hugetlbpages",
    "credentials": "user ruser group rgroup euid ruid suid fsuid egid rgid sgid fsgid groups umask capinh capprm capeff "
    "capbnd capamb nonewprivs seccomp seccomp_filters",
    "texts": "comm cmdline exe cgroup tty cls",
}
CLASS_OF = {name: kind for kind, names in CLASSES_OF_FIELDS.items() for name in names.split()}


def class_of(name: str) -> str:
    """The kind of a field."""
    return CLASS_OF.get(name, "states and ids")
