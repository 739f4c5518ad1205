//! Writes the functions that compare, remember and fetch the words of a proof, from the list `bpf/tasks/words.h`.

/// A word: where it is, as C, and how it gets there.
struct Word<'a> {
    group: &'a str,
    name: &'a str,
    kind: &'a str,
    at: &'a str,
}

/// What the functions get: the task, and where its words are.
const OF: &str = "struct task_struct *t, struct signal_struct *s, struct mm_struct *mm";

/// A kernel thread has no memory.
const IF_ANY: &str = " && mm";

/// Returns the functions. Panics at a line that is not part of the list, and names it.
pub fn write(text: &str) -> String {
    let words = parse(text);
    let numbers = words
        .iter()
        .map(|word| format!("\tWORD_{},\n", word.name.to_uppercase()));
    let numbers = numbers.collect::<Vec<_>>().concat();
    let remember = |word: &Word| {
        let number = format!("words[WORD_{}]", word.name.to_uppercase());
        let remember = format!(
            "word = (u64)({}); differs |= old_proof->{number} ^ word; proof->{number} = word;",
            word.at
        );
        if word.kind == "VALUE" {
            remember
        } else {
            format!("if ({}) {{ {remember} }}", exists(word))
        }
    };
    let compare = |word: &Word| {
        let leave = if word.kind == "VALUE" {
            "if (differs) return 0;".into()
        } else {
            format!("if (!{}) goto lacks_words;", exists(word))
        };
        let number = word.name.to_uppercase();
        let at = word.at;
        format!("{leave} differs |= proof->words[WORD_{number}] ^ (u64)({at});")
    };
    let has = |word: &Word| match word.kind {
        "VALUE" => String::new(),
        _ => format!("if (!{}) has = 0;", exists(word)),
    };
    let fetch = |word: &Word| match word.kind {
        "LINE" => format!("if ({}) TOUCH({});", exists(word), word.at),
        _ => String::new(),
    };
    let function = |result: &str, head: &str, body: String, end: &str| {
        format!("static __always_inline {result} {head}\n{{\n{body}{end}}}\n")
    };
    [
        format!("/* Written by the library's build from tasks/words.h. */\nenum {{\n{numbers}\tWORDS_USED\n}};\n"),
        function(
            "int",
            &format!("has_members_of_words({OF})"),
            format!("\tint has = 1;\n{}", by_group(&words, "", has)),
            "\treturn has;\n",
        ),
        // First whether the task runs: every run ends in a counted switch before on_cpu becomes zero. The jump is one that
        // the verifier removes: nothing else leads there.
        function(
            "int",
            &format!("has_same_words({OF}, struct fp_proof *proof)"),
            format!(
                "\tu64 differs, parts;\n\tif (!bpf_core_field_exists(t->on_cpu)) goto lacks_words;\n\
                 \tdiffers = RELOAD(t->on_cpu);\n\tbarrier();\n{}",
                by_group(&words, IF_ANY, compare)
            ),
            "\treturn !differs;\nlacks_words:\n\trun.lacks_words = 1;\n\treturn 0;\n",
        ),
        function(
            "u64",
            &format!("remember_words({OF}, struct fp_proof *proof, struct fp_proof *old_proof)"),
            format!("\tu64 differs = 0, word, parts;\n{}", by_group(&words, IF_ANY, remember)),
            "\treturn differs;\n",
        ),
        function(
            "void",
            &format!("fetch_lines_of_words({OF})"),
            by_group(&words, "", fetch),
            "",
        ),
    ]
    .concat()
}

fn exists(word: &Word) -> String {
    format!("bpf_core_field_exists({})", word.at)
}

/// A statement for each word, below the condition of its group.
/// `of_memory`: what else is a condition of the words of memory.
fn by_group(words: &[Word], of_memory: &str, statement: impl Fn(&Word) -> String) -> String {
    let of_group = |words: &[Word]| {
        let statements = words
            .iter()
            .map(|word| format!("\t\t{}\n", statement(word)));
        let statements = statements.collect::<Vec<_>>().concat();
        match words[0].group {
            "always" => format!("\t{{\n{statements}\t}}\n"),
            group => {
                let of_memory = if group.starts_with("memory") {
                    of_memory
                } else {
                    ""
                };
                let group = group.to_uppercase();
                format!("\tif (WANTED(FP_{group}){of_memory}) {{\n{statements}\t}}\n")
            }
        }
    };
    words
        .chunk_by(|one, other| one.group == other.group)
        .map(of_group)
        .collect()
}

fn parse(text: &str) -> Vec<Word<'_>> {
    let (mut words, mut group) = (Vec::new(), None);
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("struct fp_words_") {
            group = name.strip_suffix(" {");
        } else if line == "};" {
            group = None;
        } else if let Some(group) = group {
            let word = word(group, line);
            words.push(word.unwrap_or_else(|| panic!("bpf/tasks/words.h: cannot read {line:?}")));
        }
    }
    words
}

/// Parses `u64 flags FP_WORD(t->flags);`.
fn word<'a>(group: &'a str, line: &'a str) -> Option<Word<'a>> {
    let (name, place) = line.strip_prefix("u64 ")?.split_once(' ')?;
    let (kind, at) = place.trim().strip_prefix("FP_")?.split_once('(')?;
    let known = ["LINE", "WORD", "VALUE"].contains(&kind);
    known.then_some(Word {
        group,
        name,
        kind,
        at: at.strip_suffix(");")?,
    })
}
