package fastproc

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"
)

// A translation reads records of a service of another version by the names of their fields. Fields that the other
// layout lacks are unknown.
type translation struct {
	layout          uint64
	process, thread plan
	// Groups that it describes differently from this version.
	lacks Fields
}

// A plan has the sources of the fields of a structure.
type plan struct {
	// Size of the structure in the other layout.
	stride uint64
	copies []copied
	// A structure with all fields unknown.
	blank []byte
	// Groups that are missing, and whether every field without a group is present.
	lacks   Fields
	isWhole bool
}

type copied struct{ from, to, size uint64 }

// A field in the description of a layout.
type field struct {
	path   string
	offset uint64
	// Type, unit and group.
	described [3]string
}

// translate makes a translation from the description of a layout; false if it lacks fields that every record has.
func translate(layout uint64, text string) (translation, bool) {
	process := planOf("process", text)
	thread := planOf("thread", text)
	made := translation{layout: layout, process: process, thread: thread, lacks: process.lacks}
	if !thread.isWhole || thread.lacks != 0 {
		made.lacks |= FieldsThreads
	}
	return made, process.isWhole
}

func planOf(structure, text string) plan {
	ours, size := fieldsOf(structure, layoutText)
	fields, stride := fieldsOf(structure, text)
	theirs := map[string]field{}
	for _, one := range fields {
		theirs[one.path] = one
	}
	made := plan{stride: stride, blank: make([]byte, size), isWhole: true}
	for _, one := range ours {
		length := sizeOf(one.described[0])
		unknown, mayBeUnknown := unknowns[structure+" "+one.path]
		group, _ := strconv.ParseUint(one.described[2], 10, 32)
		there, ok := theirs[one.path]
		switch {
		case ok && there.described == one.described && there.offset <= stride && length <= stride-there.offset:
			made.copies = append(made.copies, copied{there.offset, one.offset, length})
		case mayBeUnknown && length == 8:
			binary.NativeEndian.PutUint64(made.blank[one.offset:], unknown)
		case mayBeUnknown && length == 4:
			binary.NativeEndian.PutUint32(made.blank[one.offset:], uint32(unknown))
		case group != 0:
			made.lacks |= Fields(group)
		default:
			made.isWhole = false
		}
	}
	return made
}

// fieldsOf returns the fields of a structure in the description of a layout, and its size.
func fieldsOf(structure, text string) ([]field, uint64) {
	var fields []field
	var size uint64
	isIn := false
	for _, line := range strings.Split(text, "\n") {
		columns := strings.Split(line, "\t")
		switch {
		case len(columns) == 3 && columns[0] == "structure":
			if isIn = columns[1] == structure; isIn {
				size, _ = strconv.ParseUint(columns[2], 10, 16)
			}
		case isIn && len(columns) == 6 && columns[0] == "field":
			if offset, err := strconv.ParseUint(columns[2], 10, 32); err == nil {
				fields = append(fields, field{columns[1], offset, [3]string{columns[3], columns[4], columns[5]}})
			}
		}
	}
	return fields, size
}

// sizeOf returns the size of a type of a layout.
func sizeOf(typ string) uint64 {
	if count, ok := strings.CutPrefix(typ, "char["); ok {
		size, _ := strconv.ParseUint(strings.TrimSuffix(count, "]"), 10, 16)
		return size
	}
	return map[string]uint64{"u8": 1, "u32": 4, "i32": 4, "u64": 8, "i64": 8}[typ]
}

// translated reads consecutive records of another layout.
func translated[T any](made plan, bytes []byte) []T {
	if made.stride == 0 {
		return nil
	}
	records := make([]T, uint64(len(bytes))/made.stride)
	for i := range records {
		theirs := bytes[uint64(i)*made.stride:]
		record := unsafe.Slice((*byte)(unsafe.Pointer(&records[i])), len(made.blank))
		copy(record, made.blank)
		for _, one := range made.copies {
			copy(record[one.to:one.to+one.size], theirs[one.from:])
		}
	}
	return records
}

// records returns a part of the memory as records of this version; other is the plan for those of another version.
func records[T any](memory []byte, place [3]uint64, other *plan) ([]T, error) {
	if other == nil {
		return part[T](memory, place)
	}
	offset, count, stride := place[0], place[1], place[2]
	if count == 0 {
		return nil, nil
	}
	length := uint64(len(memory))
	if stride != other.stride || stride == 0 || offset > length || count > (length-offset)/stride {
		return nil, errPart
	}
	return translated[T](*other, memory[offset:offset+count*stride]), nil
}
