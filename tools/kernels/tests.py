"""Tests of the judgement: what is cut off or lost is no success. `make lint` runs them."""

import unittest

from debian import choose
from judge import Finding, Outcome, differences, finding, losses
from main import PAGE, TABLE, read
from page import page

WHOLE = "@begin exits 6.1.0\n@run verify bpf\n!fastproc: too old:\n!more\n@status 2\n@ok it\n@end exits\n"


class Tests(unittest.TestCase):
    """All of them."""

    def test_page_and_table_are_what_the_program_writes(self) -> None:
        assert read().text() == TABLE.read_text()
        assert page(read()) == PAGE.read_text()

    def test_a_report_that_is_cut_off_is_no_success(self) -> None:
        outcome = Outcome("6.1", "exits", WHOLE, "")
        assert (outcome.wrong, outcome.found["verify bpf"]["error"]) == ([], "fastproc: too old")
        for text in (
            WHOLE[:-6],
            WHOLE.replace("exits", "cost"),
            WHOLE.replace("@end", "@begin"),
            "",
            "@begin exits 6.1\n@end exits\n",
        ):
            assert Outcome("6.1", "exits", text, "").wrong, text
        assert Outcome("6.1", "exits", WHOLE.replace("@ok it", "@wrong it: no"), "").wrong == ["it: no"]
        assert Outcome("6.1", "exits", WHOLE.replace("status 2", "status 139"), "").wrong

    def test_a_measured_cost_is_a_result(self) -> None:
        row = '{"case": "%s", "cpu_us_per_cgroup": {"median": %d}}'
        rows = ", ".join(row % case for case in (("open-14", 720), ("kept-14", 270), ("bpf-pressure", 10)))
        text = f'@begin cgroup_cost 6.12\n@run cost of cgroups\n|{{"rows": [{rows}]}}\n@status 0\n@end cgroup_cost\n'
        outcome = Outcome("6.12", "cgroup_cost", text, "")
        assert (outcome.wrong, len(outcome.facts)) == ([], 3)

    def test_every_loss_is_a_difference(self) -> None:
        good = finding(source="bpf", usable=["bpf", "procfs"], fields=120, lines=190, ratios={"bpf": 50.0})
        assert (differences(good, good), losses(good, good)) == ([], [])
        changes: list[Finding] = [{"status": 1}, {"source": "procfs"}, {"usable": ["procfs"]}, {"fields": 119}, {"ratios": {}}]
        for change in changes:
            assert [len(compare(good, good | change)) for compare in (differences, losses)] == [1, 1], change
        assert len(differences(good, good | {"ratios": {"bpf": 47.0}})) == 1
        assert differences(good, good | {"ratios": {"bpf": 48.0}}) == []
        # A newer kernel may print fewer lines; one that now comes from the text is lost.
        assert losses(good, good | {"lines": 189}) == []
        assert len(losses(good, good | {"lines": 189, "text": {"stat intr"}})) == 1

    def test_an_older_kernel_stands_in_for_a_new_one_of_its_flavour(self) -> None:
        expected = read()
        shown = {one: expected.stand_in(one) for one in ("6.1", "6.13", "99.1-arm64", "4.19")}
        assert shown == {"6.1": "6.1", "6.13": "6.12", "99.1-arm64": "7.3-arm64", "4.19": None}

    def test_the_newest_of_a_series_is_found_where_it_lies(self) -> None:
        packages = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-56-cloud-amd64",
            "linux-image-6.1.0-58-cloud-amd64-dbg",
            "linux-image-6.12-cloud-amd64",
            "linux-image-6.12.9+deb13-cloud-amd64",
            "linux-binary-6.12.117+deb13-cloud-amd64",
            "linux-image-6.12.117+deb13-cloud-amd64",
            "linux-image-6.12.115+deb13-arm64-16k",
        ]
        for wanted, release, kind in (
            ("6.1", "6.1.0-56-cloud-amd64", "image"),
            ("newest", "6.12.117+deb13-cloud-amd64", "binary"),
            ("newest-16k-arm64", "6.12.115+deb13-arm64-16k", "image"),
        ):
            assert choose(wanted, packages)[1:] == (release, f"linux-{kind}-{release}")


if __name__ == "__main__":
    unittest.main()
