// Layout writes record.go, the records of a process and a thread, from bpf/record.h, which describes them,
// cgroup_record.go from bpf/cgroup_record.h, and files_record.go from bpf/files.h.
//
//	go run ./internal/layout ../bpf/record.h > record.go
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A member of a structure.
type member struct {
	name, typ, tag, doc string
	offset, size        int
	// The elements of an array of numbers; 0 if it is none.
	count int
	// The value that marks it as unknown, and whether there is one.
	unknown      int64
	mayBeUnknown bool
	// The condition under which a structure of a record is present.
	presence string
}

// A structure of the header.
type structure struct {
	name, doc string
	size      int
	members   []member
}

var (
	comment  = regexp.MustCompile(`(?s)/\*(.*?)\*/`)
	opening  = regexp.MustCompile(`^struct fp_(\w+) \{$`)
	declared = regexp.MustCompile(`^(?:struct fp_)?(\w+) (\w+)(?:\[(\w+)\])?((?: FP_\w+(?:\([-\w]+\))?)*);$`)
	defined  = regexp.MustCompile(`(?m)^#define FP_(\w+) (0x[0-9a-f]+|\d+)`)
	several  = regexp.MustCompile(`(?m)^\t(\w+) ([^;\n]+);`)
	constant = regexp.MustCompile(`(?m)^#define FILES_(\w+?)(?:_MAGIC)?[ \t]+(\w+)(?:[ \t]+(/\*.*) \*/)?$`)
	trusted  = regexp.MustCompile(`(?m)^    (?:(0x[0-9a-f_]+)|layout::(\w+)),`)
)

// The structures that a layout describes.
var roots = []struct{ name, structure string }{{"process", "record"}, {"thread", "thread_record"}, {"exit", "exit_record"}}

// Sizes of the plain types, and their Go types.
var plain = map[string]struct {
	size           int
	inGo, inLayout string
}{
	"u8":       {1, "uint8", "u8"},
	"u32":      {4, "uint32", "u32"},
	"s32":      {4, "int32", "i32"},
	"u64":      {8, "uint64", "u64"},
	"s64":      {8, "int64", "i64"},
	"fp_ns":    {8, "uint64", "u64"},
	"fp_bytes": {8, "uint64", "u64"},
}

// Whether the kernel shows all of a group only to users who could trace the process: a masked record has zeroes there.
func (of structure) guarded() bool {
	return !slices.ContainsFunc(of.members, func(one member) bool { return one.tag != "TRACERS" })
}

// setTags parses the words after the name of a member.
func (m *member) setTags(words string, constants map[string]int) error {
	for _, word := range strings.Fields(words) {
		if value, ok := strings.CutPrefix(word, "FP_UNKNOWN("); ok {
			value = strings.TrimSuffix(value, ")")
			number, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				constant, known := constants[strings.TrimPrefix(value, "FP_")]
				if !known {
					return fmt.Errorf("%s: no number says that it is unknown: %q", m.name, value)
				}
				number = int64(constant)
			}
			m.unknown, m.mayBeUnknown = number, true
			continue
		}
		switch tag := strings.TrimPrefix(word, "FP_"); tag {
		case "PUBLIC", "TICKS", "BOOT_TICKS", "TRACERS", "NOBODY":
			m.tag = tag
		case "ALWAYS", "GROUP":
			m.presence = tag
		case "PROCESS", "LEADER", "SUM", "INNER":
		default:
			return fmt.Errorf("%s: there is no tag %s", m.name, word)
		}
	}
	return nil
}

// The Go name of a member. A member that may be unknown or hidden while the rest of its structure is present is not
// exported: a method reports whether it is known.
func (of structure) inGo(m member) string {
	name := exported(m.name)
	isHidden := m.tag == "TRACERS" && m.presence == "" && !of.guarded()
	if m.tag == "NOBODY" || m.mayBeUnknown || isHidden || of.hidesPart(m) {
		words := strings.SplitN(m.name, "_", 2)
		return words[0] + strings.TrimPrefix(name, exported(words[0]))
	}
	return name
}

// hidesPart reports whether a member is a structure that is hidden from some readers while the rest is present.
func (of structure) hidesPart(m member) bool {
	return m.typ == "io" && of.name != "record"
}

// The value for unknown in Go.
func (m member) unknownInGo() string {
	if typ := plain[m.typ].inGo; m.unknown < 0 && strings.HasPrefix(typ, "u") {
		return "^" + typ + "(0)"
	}
	return strconv.FormatInt(m.unknown, 10)
}

// The structures of the header, in their order, and its constants.
func parse(header string) ([]structure, map[string]int, error) {
	constants := map[string]int{}
	for _, found := range defined.FindAllStringSubmatch(header, -1) {
		value, err := strconv.ParseUint(found[2], 0, 64)
		if err != nil {
			return nil, nil, err
		}
		constants[found[1]] = int(value)
	}
	// A comment becomes a separate line before the member that it describes.
	var docs []string
	marked := comment.ReplaceAllStringFunc(header, func(text string) string {
		words := strings.Fields(strings.NewReplacer("/*", " ", "*/", " ", "\n *", " ").Replace(text))
		docs = append(docs, strings.Join(words, " "))
		return fmt.Sprintf("@%d", len(docs)-1)
	})
	var all []structure
	sizes := map[string]int{}
	var current *structure
	doc := ""
	for _, line := range strings.Split(marked, "\n") {
		code, rest, has := strings.Cut(strings.TrimSpace(line), "@")
		code = strings.Join(strings.Fields(code), " ")
		if has {
			nth, err := strconv.Atoi(strings.TrimSpace(rest))
			if err != nil {
				return nil, nil, fmt.Errorf("a comment in the middle of %q", line)
			}
			doc = docs[nth]
		}
		switch {
		case code == "":
		case opening.MatchString(code):
			current = &structure{name: opening.FindStringSubmatch(code)[1], doc: doc}
			doc = ""
		case code == "};" && current != nil:
			sizes[current.name] = current.size
			all = append(all, *current)
			current = nil
		case current != nil:
			found := declared.FindStringSubmatch(code)
			if found == nil {
				return nil, nil, fmt.Errorf("struct fp_%s: %q is not understood", current.name, code)
			}
			one := member{name: found[2], typ: found[1], doc: doc, offset: current.size}
			doc = ""
			if err := one.setTags(found[4], constants); err != nil {
				return nil, nil, fmt.Errorf("struct fp_%s: %w", current.name, err)
			}
			if _, isPlain := plain[one.typ]; one.tag == "" && (isPlain || one.typ == "char") {
				return nil, nil, fmt.Errorf("struct fp_%s: no tag says who may see %s", current.name, one.name)
			}
			if found[3] != "" {
				count, err := strconv.Atoi(found[3])
				if err != nil {
					count = constants[strings.TrimPrefix(found[3], "FP_")]
				}
				known, isPlain := plain[one.typ]
				switch {
				case one.typ == "char" && count != 0:
					one.size = count
				case isPlain && count != 0:
					one.count, one.size = count, count*known.size
				default:
					return nil, nil, fmt.Errorf("struct fp_%s: %q is not understood", current.name, code)
				}
			} else if known, ok := plain[one.typ]; ok {
				one.size = known.size
			} else if size, ok := sizes[one.typ]; ok {
				one.size = size
			} else {
				return nil, nil, fmt.Errorf("struct fp_%s: the type of %q is not known", current.name, code)
			}
			current.size += one.size
			current.members = append(current.members, one)
		default:
			doc = ""
		}
	}
	return all, constants, nil
}

// The name in Go: each word begins with a capital, and CPU, ID and IO are in capitals.
func exported(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words {
		switch word {
		case "cpu", "id", "io", "ns", "oom":
			words[i] = strings.ToUpper(word)
		default:
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

func find(all []structure, name string) structure {
	for _, one := range all {
		if one.name == name {
			return one
		}
	}
	panic("there is no struct fp_" + name)
}

// The description whose hash is the id of the layout: see docs/dev/protocol.md.
func describe(all []structure, constants map[string]int) string {
	var text strings.Builder
	var fields func(of structure, prefix string, offset, group int)
	fields = func(of structure, prefix string, offset, group int) {
		for _, one := range of.members {
			at := offset + one.offset
			if known, ok := plain[one.typ]; ok || one.typ == "char" {
				if one.tag == "NOBODY" {
					continue
				}
				typ := known.inLayout
				if one.typ == "char" {
					typ = fmt.Sprintf("char[%d]", one.size)
				}
				unit := map[string]string{"fp_ns": "ns", "fp_bytes": "bytes"}[one.typ]
				if unit == "" {
					unit = "-"
				}
				fmt.Fprintf(&text, "field\t%s%s\t%d\t%s\t%s\t%d\n", prefix, one.name, at, typ, unit, group)
				continue
			}
			inner := group
			if inner == 0 {
				inner = constants[strings.ToUpper(one.name)]
			}
			fields(find(all, one.typ), prefix+one.name+".", at, inner)
		}
	}
	for _, root := range roots {
		of := find(all, root.structure)
		fmt.Fprintf(&text, "structure\t%s\t%d\n", root.name, of.size)
		fields(of, "", 0, 0)
	}
	return text.String()
}

// FNV-1a.
func hash(text string) uint64 {
	sum := uint64(0xcbf29ce484222325)
	for i := 0; i < len(text); i++ {
		sum = (sum ^ uint64(text[i])) * 0x100000001b3
	}
	return sum
}

// generate makes record.go from the header.
func generate(header string) ([]byte, error) {
	all, constants, err := parse(header)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "// Code generated by internal/layout from bpf/record.h. DO NOT EDIT.\n\npackage fastproc\n\nimport \"unsafe\"\n\n")
	fmt.Fprintf(&out, "// layoutID is the id of the layout that these structures have.\nconst layoutID uint64 = 0x%x\n\n", hash(describe(all, constants)))
	fmt.Fprintf(&out, "// The groups of fields.\nconst (\n")
	record := find(all, "record")
	for _, one := range record.members {
		if bit, ok := constants[strings.ToUpper(one.name)]; ok {
			fmt.Fprintf(&out, "\t// %s: %s\n\t%s Fields = 0x%x\n", exported(one.name), one.doc, "Fields"+exported(one.name), bit)
		}
	}
	fmt.Fprintf(&out, "\t// Threads: every thread on its own.\n\tFieldsThreads Fields = 0x%x\n)\n\n", constants["THREADS"])
	writeStructures(&out, all)
	for _, one := range record.members {
		part := find(all, one.typ)
		bit, isGroup := constants[strings.ToUpper(one.name)]
		condition := fmt.Sprintf("p.record.Identity.Groups&0x%x == 0", bit)
		if isGroup {
			absent := condition
			if part.guarded() {
				absent += " || p.record.Identity.Masked != 0"
			}
			fmt.Fprintf(&out, "// %s is nil if it was not requested, or is not known. %s\nfunc (p Process) %s() *%s {\n\tif %s {\n\t\treturn nil\n\t}\n\treturn &p.record.%s\n}\n\n",
				exported(one.name), one.doc, exported(one.name), exported(one.typ), absent, exported(one.name))
		}
		for _, inner := range part.members {
			if inner.tag != "TRACERS" || inner.mayBeUnknown || part.guarded() {
				continue
			}
			known := "p.record.Identity.Masked == 0"
			if isGroup {
				known += fmt.Sprintf(" && p.record.Identity.Groups&0x%x != 0", bit)
			}
			fmt.Fprintf(&out, "// %s: %s False: it is not known, or the kernel would not show it.\nfunc (p Process) %s() (%s, bool) {\n\tif !(%s) {\n\t\treturn 0, false\n\t}\n\treturn p.record.%s.%s, true\n}\n\n",
				exported(inner.name), inner.doc, exported(inner.name), plain[inner.typ].inGo, known, exported(one.name), part.inGo(inner))
		}
	}
	return format.Source(out.Bytes())
}

// writeStructures writes the types, checks of their layout, and a method for each member that may be unknown.
func writeStructures(out *bytes.Buffer, all []structure) {
	for _, of := range all {
		name := exported(of.name)
		fmt.Fprintf(out, "// %s is struct fp_%s. %s\ntype %s struct {\n", name, of.name, of.doc, name)
		for _, one := range of.members {
			typ := plain[one.typ].inGo
			switch {
			case one.typ == "char":
				typ = fmt.Sprintf("[%d]byte", one.size)
			case typ == "":
				typ = exported(one.typ)
			case one.count != 0:
				typ = fmt.Sprintf("[%d]%s", one.count, typ)
			}
			if one.doc != "" {
				fmt.Fprintf(out, "\t// %s\n", one.doc)
			}
			fmt.Fprintf(out, "\t%s %s\n", of.inGo(one), typ)
		}
		fmt.Fprintf(out, "}\n\n")
	}
	fmt.Fprintf(out, "// The compiler lays them out as C does, or does not compile them.\nvar (\n")
	for _, of := range all {
		name := exported(of.name)
		fmt.Fprintf(out, "\t_ [%d]struct{} = [unsafe.Sizeof(%s{})]struct{}{}\n", of.size, name)
		for _, one := range of.members {
			fmt.Fprintf(out, "\t_ [%d]struct{} = [unsafe.Offsetof(%s{}.%s)]struct{}{}\n", one.offset, name, of.inGo(one))
		}
	}
	fmt.Fprintf(out, ")\n\n")
	for _, of := range all {
		for _, one := range of.members {
			if one.mayBeUnknown && of.name != "exit_record" {
				name, typ := of.inGo(one), plain[one.typ].inGo
				fmt.Fprintf(out, "// %s: %s False: it is not known.\nfunc (of *%s) %s() (%s, bool) {\n\treturn of.%s, of.%s != %s\n}\n\n",
					exported(one.name), one.doc, exported(of.name), exported(one.name), typ, name, name, one.unknownInGo())
			}
		}
	}
}

// generateCgroups makes cgroup_record.go from its header.
func generateCgroups(header string) ([]byte, error) {
	all, constants, err := parse(header)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "// Code generated by internal/layout from bpf/cgroup_record.h. DO NOT EDIT.\n\npackage fastproc\n\nimport \"unsafe\"\n\n")
	fmt.Fprintf(&out, "// cgroupLayoutID is the id of the layout that these structures have.\nconst cgroupLayoutID uint64 = 0x%x\n\n", hash(header))
	fmt.Fprintf(&out, "// NoLimit is a limit of a cgroup that is not set.\nconst NoLimit uint64 = 0x%x\n\n", uint64(constants["CGROUP_NO_LIMIT"]))
	fmt.Fprintf(&out, "// The groups of fields of cgroups.\nconst (\n")
	record := find(all, "cgroup_record")
	bit := func(one member) (int, bool) {
		bit, ok := constants["CGROUP_"+strings.ToUpper(one.name)]
		return bit, ok
	}
	for _, one := range record.members {
		if bit, ok := bit(one); ok {
			fmt.Fprintf(&out, "\t// %s: %s\n\t%s CgroupFields = 0x%x\n", exported(one.name), one.doc, "CgroupFields"+exported(one.name), bit)
		}
	}
	fmt.Fprintf(&out, ")\n\n")
	writeStructures(&out, all)
	for _, one := range record.members {
		if bit, ok := bit(one); ok {
			fmt.Fprintf(&out, "// %s is nil if it was not requested, or is not known. %s\nfunc (c CgroupView) %s() *%s {\n\tif c.record.Identity.Groups&0x%x == 0 {\n\t\treturn nil\n\t}\n\treturn &c.record.%s\n}\n\n",
				exported(one.name), one.doc, exported(one.name), exported(one.typ), bit, exported(one.name))
		}
	}
	return format.Source(out.Bytes())
}

// The constants of files.h: how a block of them begins, and its prefix, type and description in Go.
var blocks = []struct{ begins, prefix, typ, doc string }{
	{"What is read", "FileFields", "FileFields", "What to read of open files. Without any, descriptors are only counted"},
	{"What a descriptor is open on", "FileKind", "FileKind", "What a descriptor is open on"},
	{"Numbers of files", "FD", "uint32", "What File.FD returns for files that a process holds without a descriptor"},
	{"files_record.state", "file", "uint8", "Bits of filesRecord.state"},
	{"files_process.state", "holder", "uint32", "Bits of filesProcess.state"},
	{"File systems of objects", "magic", "uint32", "File systems of objects without a path"},
	{"The others whose files", "magic", "uint32", "File systems whose files may have no path"},
}

// filesFrom returns what makes files_record.go from files.h in this folder. Methods of files.go show its members, since
// most may be unknown.
func filesFrom(folder string) func(header string) ([]byte, error) {
	return func(header string) ([]byte, error) {
		list, err := os.ReadFile(filepath.Join(folder, "../crates/fastproc/src/files/trusted.rs"))
		if err != nil {
			return nil, err
		}
		tagged := several.ReplaceAllStringFunc(header, func(line string) string {
			found := several.FindStringSubmatch(line)
			return "\t" + found[1] + " " + strings.ReplaceAll(found[2], ", ", " FP_NOBODY;\n\t"+found[1]+" ") + " FP_NOBODY;"
		})
		all, constants, err := parse(strings.NewReplacer("struct files_", "struct fp_files_", "#define FILES_", "#define FP_", "[FILES_", "[FP_").Replace(tagged))
		if err != nil {
			return nil, err
		}
		var out, kinds bytes.Buffer
		fmt.Fprintf(&out, "// Code generated by internal/layout from bpf/files.h. DO NOT EDIT.\n\npackage fastproc\n\nimport \"unsafe\"\n\n")
		fmt.Fprintf(&out, "// filesLayoutID is the id of the layout that these structures have.\nconst filesLayoutID uint64 = 0x%x\n\n", hash(header))
		for _, block := range strings.Split(header, "\n\n") {
			for _, one := range blocks {
				if !strings.HasPrefix(block, "/* "+one.begins) {
					continue
				}
				fmt.Fprintf(&out, "// %s.\nconst (\n", one.doc)
				for _, found := range constant.FindAllStringSubmatch(block, -1) {
					if name := strings.ToLower(found[1]); name != "kinds" {
						doc := strings.NewReplacer("/*", "//", "FILES_FILES", "FileFieldsFiles").Replace(found[3])
						fmt.Fprintf(&out, "\t%s%s %s = %s %s\n", one.prefix, exported(name), one.typ, found[2], doc)
						if one.prefix == "FileKind" {
							fmt.Fprintf(&kinds, "\t%s: %q,\n", found[2], name)
						}
					}
				}
				fmt.Fprintf(&out, ")\n\n")
			}
		}
		fmt.Fprintf(&out, "var fileKindNames = [...]string{\n%s}\n\n", &kinds)
		fmt.Fprintf(&out, "// File systems of which stat(2) shows the numbers that the kernel keeps: crates/fastproc/src/files/trusted.rs.\nvar isAsStat = map[uint32]bool{\n")
		for _, found := range trusted.FindAllStringSubmatch(string(list), -1) {
			number := found[1]
			if found[2] != "" {
				number = fmt.Sprintf("0x%08x", constants[found[2]])
			}
			fmt.Fprintf(&out, "\t%s: true,\n", number)
		}
		fmt.Fprintf(&out, "}\n\n")
		var structures bytes.Buffer
		writeStructures(&structures, []structure{find(all, "files_process"), find(all, "files_record"), find(all, "files_socket")})
		out.WriteString(strings.NewReplacer("Files", "files", "fp_files_", "files_").Replace(structures.String()))
		return format.Source(out.Bytes())
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: layout HEADER")
		os.Exit(2)
	}
	header, err := os.ReadFile(os.Args[1])
	if err == nil {
		var text []byte
		make := generate
		switch filepath.Base(os.Args[1]) {
		case "cgroup_record.h":
			make = generateCgroups
		case "files.h":
			make = filesFrom(filepath.Dir(os.Args[1]))
		}
		if text, err = make(string(header)); err == nil {
			_, err = os.Stdout.Write(text)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}
