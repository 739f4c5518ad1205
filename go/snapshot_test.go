package fastproc

import "testing"

func TestANumberOfGroupsThatIsWrongSizesNoAllocation(t *testing.T) {
	record := new(Record)
	record.Identity.Groups = uint32(FieldsCredentials)
	process := Process{record: record, pool: []uint64{0, 2<<32 | 1, 3}}
	for _, one := range []struct{ at, count, want uint32 }{
		{1, 3, 3}, {1, 1<<32 - 1, 4}, {2, 1<<32 - 1, 2}, {3, 1<<32 - 1, 0}, {1<<32 - 1, 1<<32 - 1, 0},
	} {
		record.Credentials.GroupsAt, record.Credentials.Ngroups = one.at, one.count
		groups := process.SupplementaryGroups()
		if uint32(len(groups)) != one.want || cap(groups) > 4 {
			t.Errorf("%v: %v, of capacity %d", one, groups, cap(groups))
		}
	}
	record.Credentials.GroupsAt, record.Credentials.Ngroups = 1, 3
	groups := process.SupplementaryGroups()
	if groups[0] != 1 || groups[1] != 2 || groups[2] != 3 {
		t.Errorf("%v", groups)
	}
}
