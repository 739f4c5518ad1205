package fastproc

import (
	"encoding/binary"
	"strconv"
	"testing"
)

func auxv(pairs ...uint64) []byte {
	var bytes []byte
	for _, word := range pairs {
		if strconv.IntSize == 32 {
			bytes = binary.NativeEndian.AppendUint32(bytes, uint32(word))
		} else {
			bytes = binary.NativeEndian.AppendUint64(bytes, word)
		}
	}
	return bytes
}

func TestAProgramWithMoreRightsThanItsCallerIsKnown(t *testing.T) {
	for _, test := range []struct {
		auxv   []byte
		secure bool
	}{
		{auxv(6, 4096, 23, 0, 0, 0), false},
		{auxv(6, 4096, 23, 1, 0, 0), true},
		{auxv(23, 0, 23, 1), false},
		{auxv(6, 4096, 0, 0), true},
		{nil, true},
	} {
		if isSecure(test.auxv) != test.secure {
			t.Errorf("%v: not %v", test.auxv, test.secure)
		}
	}
	if moreRights {
		t.Error("a test has no more rights than its caller")
	}
}
