// Layout writes record.go, the records of a process and a thread, from bpf/record.h: the one description of them.
//
//	go run ./internal/layout ../bpf/record.h > record.go
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A member of a structure.
type member struct {
	name, typ, tag, doc string
	offset, size        int
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
	declared = regexp.MustCompile(`^(?:struct fp_)?(\w+) (\w+)(?:\[(\w+)\])?(?: FP_(PUBLIC|TICKS|BOOT_TICKS|TRACERS))?;$`)
	defined  = regexp.MustCompile(`(?m)^#define FP_(\w+) (0x[0-9a-f]+|\d+)`)
)

// Sizes of the plain types, and what they are in Go.
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

// Whether the kernel shows all of a group only to those who could trace the process: a record that is masked has zeroes there.
func (of structure) guarded() bool {
	return !slices.ContainsFunc(of.members, func(one member) bool { return one.tag != "TRACERS" })
}

// The name of a member in Go. A member without a tag is shown to nobody, so it is not exported. Parts say it of their own members.
func (m member) inGo() string {
	name := exported(m.name)
	if _, isPlain := plain[m.typ]; m.tag == "" && (isPlain || m.typ == "char") {
		return strings.ToLower(name[:1]) + name[1:]
	}
	return name
}

// The structures of the header, in their order, and its constants.
func parse(header string) ([]structure, map[string]int, error) {
	constants := map[string]int{}
	for _, found := range defined.FindAllStringSubmatch(header, -1) {
		value, err := strconv.ParseInt(found[2], 0, 64)
		if err != nil {
			return nil, nil, err
		}
		constants[found[1]] = int(value)
	}
	// A comment becomes a line of its own, before what it is about.
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
			one := member{name: found[2], typ: found[1], tag: found[4], doc: doc, offset: current.size}
			doc = ""
			if found[3] != "" {
				count, err := strconv.Atoi(found[3])
				if err != nil {
					count = constants[strings.TrimPrefix(found[3], "FP_")]
				}
				if one.typ != "char" || count == 0 {
					return nil, nil, fmt.Errorf("struct fp_%s: %q is not understood", current.name, code)
				}
				one.size = count
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

// The description whose hash is the id of the layout: see docs/protocol.md.
func describe(all []structure, constants map[string]int) string {
	var text strings.Builder
	var fields func(of structure, prefix string, offset, group int)
	fields = func(of structure, prefix string, offset, group int) {
		for _, one := range of.members {
			at := offset + one.offset
			if known, ok := plain[one.typ]; ok || one.typ == "char" {
				if one.tag == "" {
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
	for _, root := range []struct{ name, structure string }{{"process", "record"}, {"thread", "thread_record"}, {"exit", "exit_record"}} {
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

// generate makes record.go of the header.
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
	for _, of := range all {
		name := exported(of.name)
		fmt.Fprintf(&out, "// %s is struct fp_%s. %s\ntype %s struct {\n", name, of.name, of.doc, name)
		for _, one := range of.members {
			typ := plain[one.typ].inGo
			switch {
			case one.typ == "char":
				typ = fmt.Sprintf("[%d]byte", one.size)
			case typ == "":
				typ = exported(one.typ)
			}
			if one.doc != "" {
				fmt.Fprintf(&out, "\t// %s\n", one.doc)
			}
			fmt.Fprintf(&out, "\t%s %s\n", one.inGo(), typ)
		}
		fmt.Fprintf(&out, "}\n\n")
	}
	fmt.Fprintf(&out, "// The compiler lays them out as C does, or does not compile them.\nvar (\n")
	for _, of := range all {
		name := exported(of.name)
		fmt.Fprintf(&out, "\t_ [%d]struct{} = [unsafe.Sizeof(%s{})]struct{}{}\n", of.size, name)
		for _, one := range of.members {
			fmt.Fprintf(&out, "\t_ [%d]struct{} = [unsafe.Offsetof(%s{}.%s)]struct{}{}\n", one.offset, name, one.inGo())
		}
	}
	fmt.Fprintf(&out, ")\n\n")
	for _, one := range record.members {
		bit, ok := constants[strings.ToUpper(one.name)]
		if !ok {
			continue
		}
		condition := fmt.Sprintf("p.record.Identity.Groups&0x%x == 0", bit)
		if find(all, one.typ).guarded() {
			condition += " || p.record.Identity.Masked != 0"
		}
		fmt.Fprintf(&out, "// %s is nil if it was not asked for, or is not known. %s\nfunc (p Process) %s() *%s {\n\tif %s {\n\t\treturn nil\n\t}\n\treturn &p.record.%s\n}\n\n",
			exported(one.name), one.doc, exported(one.name), exported(one.typ), condition, exported(one.name))
	}
	return format.Source(out.Bytes())
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: layout HEADER")
		os.Exit(2)
	}
	header, err := os.ReadFile(os.Args[1])
	if err == nil {
		var text []byte
		if text, err = generate(string(header)); err == nil {
			_, err = os.Stdout.Write(text)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}
