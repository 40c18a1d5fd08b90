package places

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// dockerfileBases are the images that building a Dockerfile starts from or copies from,
// as written and with arguments put in, in order and without repeats: not its own
// stages, not scratch, and nothing of the stages after the target, which aren't built.
//
// It reads what decides that and no more: parser directives, comments, continuation
// lines, heredocs, ARG before the first FROM, FROM, and --from. The engine judges the
// rest. Docker's own parser isn't used because it brings three dozen packages along.
func dockerfileBases(dockerfile []byte, args map[string]string, target string) ([]string, error) {
	instructions, escape, err := splitDockerfile(dockerfile)
	if err != nil {
		return nil, err
	}
	type stage struct {
		name  string
		bases []string
	}
	var stages []stage
	known := func(name string) bool {
		return slices.ContainsFunc(stages, func(s stage) bool {
			return s.name != "" && strings.EqualFold(s.name, name)
		})
	}
	global := map[string]string{}
	for _, in := range instructions {
		switch in.name {
		case "arg":
			if len(stages) > 0 {
				continue
			}
			for _, word := range shellWords(in.rest, escape) {
				name, value, hasDefault := strings.Cut(word, "=")
				if given, ok := args[name]; ok {
					global[name] = given
				} else if hasDefault {
					if global[name], err = expandWord(value, global, escape); err != nil {
						return nil, fmt.Errorf("line %d: ARG %s: %w", in.line, name, err)
					}
				}
			}
		case "from":
			words := in.words
			if len(words) != 1 && (len(words) != 3 || !strings.EqualFold(words[1], "as")) {
				return nil, fmt.Errorf("line %d: FROM needs an image, or an image AS a name", in.line)
			}
			base, err := expandWord(words[0], global, escape)
			if err != nil {
				return nil, fmt.Errorf("line %d: FROM %s: %w", in.line, words[0], err)
			}
			if base == "" || strings.HasSuffix(base, ":") || strings.HasSuffix(base, "@") {
				return nil, fmt.Errorf("line %d: FROM %s names no image: an argument in it has no value", in.line, words[0])
			}
			var s stage
			if base != "scratch" && !known(base) {
				s.bases = []string{base}
			}
			if len(words) == 3 {
				s.name = words[2]
			}
			stages = append(stages, s)
		case "copy", "add", "run":
			if len(stages) == 0 {
				return nil, fmt.Errorf("line %d: %s before any FROM", in.line, strings.ToUpper(in.name))
			}
			for _, from := range in.from {
				// A number is a stage's, and a variable isn't expanded here by any builder.
				if _, err := strconv.Atoi(from); err == nil || from == "" || known(from) || strings.Contains(from, "$") {
					continue
				}
				last := &stages[len(stages)-1]
				last.bases = append(last.bases, from)
			}
		}
	}
	if len(stages) == 0 {
		return nil, errors.New("it has no FROM")
	}
	end := len(stages) - 1
	if target != "" {
		end = slices.IndexFunc(stages, func(s stage) bool { return strings.EqualFold(s.name, target) })
		if n, err := strconv.Atoi(target); end < 0 && err == nil && n >= 0 && n < len(stages) {
			end = n
		}
		if end < 0 {
			return nil, fmt.Errorf("it has no stage %q", target)
		}
	}
	var bases []string
	for _, s := range stages[:end+1] {
		for _, base := range s.bases {
			if !slices.Contains(bases, base) {
				bases = append(bases, base)
			}
		}
	}
	return bases, nil
}

// instruction is one instruction of a Dockerfile.
type instruction struct {
	line  int
	name  string // lower case
	rest  string // all after the flags
	words []string
	from  []string // the values of --from, and of from= in --mount
}

var (
	directivePattern = regexp.MustCompile(`^#\s*([a-zA-Z][a-zA-Z0-9]*)\s*=\s*(.+?)\s*$`)
	heredocPattern   = regexp.MustCompile(`^\d*<<(-?)([^<]+)$`)
)

// splitDockerfile puts lines together into instructions, and tells the escape character.
func splitDockerfile(dockerfile []byte) ([]instruction, byte, error) {
	dockerfile = bytes.TrimPrefix(dockerfile, []byte("\xef\xbb\xbf"))
	lines := strings.Split(string(dockerfile), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	escape := byte('\\')
	for _, line := range lines {
		// Directives end at the first line that is none.
		m := directivePattern.FindStringSubmatch(line)
		if m == nil {
			break
		}
		if strings.EqualFold(m[1], "escape") {
			if m[2] != `\` && m[2] != "`" {
				return nil, 0, fmt.Errorf("its escape directive is %q; only \\ and ` can be", m[2])
			}
			escape = m[2][0]
		}
	}
	comment := func(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") }

	var out []instruction
	for i := 0; i < len(lines); i++ {
		start := i + 1
		if comment(lines[i]) || strings.TrimSpace(lines[i]) == "" {
			continue
		}
		var whole strings.Builder
		text, more := continued(strings.TrimLeft(lines[i], " \t"), escape)
		whole.WriteString(text)
		for more && i+1 < len(lines) {
			i++
			// Comments and empty lines may stand inside an instruction.
			if comment(lines[i]) || strings.TrimSpace(lines[i]) == "" {
				continue
			}
			text, more = continued(lines[i], escape)
			whole.WriteString(text)
		}
		in := readInstruction(whole.String(), start, escape)
		if in.name == "" {
			continue
		}
		out = append(out, in)
		for _, end := range heredocs(in, escape) {
			terminated := false
			for i+1 < len(lines) && !terminated {
				i++
				line := lines[i]
				if end.tabs {
					line = strings.TrimLeft(line, "\t")
				}
				terminated = line == end.name
			}
			if !terminated {
				return nil, 0, fmt.Errorf("line %d: the heredoc %s has no end", start, end.name)
			}
		}
	}
	return out, escape, nil
}

// continued splits a line's trailing escape character off, and tells whether there was
// one: then the next line belongs to it. An escaped one is no continuation.
func continued(line string, escape byte) (string, bool) {
	text := strings.TrimRight(line, " \t")
	n := len(text)
	if n == 0 || text[n-1] != escape || n > 1 && text[n-2] == escape {
		return line, false
	}
	return text[:n-1], true
}

// readInstruction takes one whole instruction apart.
func readInstruction(text string, line int, escape byte) instruction {
	cut := func(s string) (string, string) {
		s = strings.TrimSpace(s)
		if i := strings.IndexAny(s, " \t"); i >= 0 {
			return s[:i], strings.TrimSpace(s[i:])
		}
		return s, ""
	}
	in := instruction{line: line}
	in.name, in.rest = cut(text)
	in.name = strings.ToLower(in.name)
	for strings.HasPrefix(in.rest, "--") {
		var flag string
		flag, in.rest = cut(in.rest)
		name, value, _ := strings.Cut(flag, "=")
		switch name {
		case "--from":
			in.from = append(in.from, strings.Trim(value, `"'`))
		case "--mount":
			for option := range strings.SplitSeq(strings.Trim(value, `"'`), ",") {
				if from, ok := strings.CutPrefix(option, "from="); ok {
					in.from = append(in.from, from)
				}
			}
		}
	}
	in.words = strings.Fields(in.rest)
	return in
}

// heredoc is the end of one heredoc.
type heredoc struct {
	name string
	tabs bool // leading tabs don't count
}

// heredocs are the heredocs an instruction opens, in order.
func heredocs(in instruction, escape byte) []heredoc {
	name, rest := in.name, in.rest
	if name == "onbuild" {
		inner := readInstruction(rest, in.line, escape)
		name, rest = inner.name, inner.rest
	}
	if name != "run" && name != "copy" && name != "add" || !strings.Contains(rest, "<<") || strings.HasPrefix(rest, "[") {
		return nil
	}
	var out []heredoc
	for _, word := range shellWords(rest, escape) {
		m := heredocPattern.FindStringSubmatch(word)
		if m == nil {
			continue
		}
		if end := unquote(m[2], escape); end != "" {
			out = append(out, heredoc{name: end, tabs: m[1] == "-"})
		}
	}
	return out
}

// shellWords splits at white space outside of quotes, keeping quotes and escapes.
func shellWords(s string, escape byte) []string {
	var words []string
	start, quote := -1, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if quote == 0 && (c == ' ' || c == '\t') {
			if start >= 0 {
				words = append(words, s[start:i])
				start = -1
			}
			continue
		}
		if start < 0 {
			start = i
		}
		switch {
		case c == escape && quote != '\'':
			i++
		case quote == c:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
	}
	if start >= 0 {
		words = append(words, s[start:])
	}
	return words
}

// unquote removes a word's quotes and escapes.
func unquote(word string, escape byte) string {
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == escape && quote != '\'' && i+1 < len(word):
			i++
			out.WriteByte(word[i])
		case quote == c:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// platformArgs are set by another builder than the one that is used here.
var platformArgs = regexp.MustCompile(`^(BUILD|TARGET)(PLATFORM|OS|ARCH|VARIANT)$`)

// maxWord is the longest an expanded word may be.
const maxWord = 64 << 10

// expandWord puts values into a word as the builder does: $name, ${name}, and the forms
// with a default or an alternative. Quotes and escapes go.
func expandWord(word string, values map[string]string, escape byte) (string, error) {
	x := expander{in: word, values: values, escape: escape}
	return x.until("")
}

type expander struct {
	in     string
	at     int
	depth  int
	values map[string]string
	escape byte
}

// until expands up to an unquoted stop character, which it leaves, or to the end.
func (x *expander) until(stop string) (string, error) {
	var out strings.Builder
	quote := byte(0)
	for x.at < len(x.in) {
		c := x.in[x.at]
		switch {
		case quote == 0 && stop != "" && strings.IndexByte(stop, c) >= 0:
			return out.String(), nil
		case c == x.escape && quote != '\'' && x.at+1 < len(x.in):
			out.WriteByte(x.in[x.at+1])
			x.at += 2
		case quote == c:
			quote = 0
			x.at++
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
			x.at++
		case c == '$' && quote != '\'':
			value, err := x.variable()
			if err != nil {
				return "", err
			}
			out.WriteString(value)
			// Each of a chain of arguments can double the one before.
			if out.Len() > maxWord {
				return "", fmt.Errorf("with its variables it is longer than %d bytes", maxWord)
			}
		default:
			out.WriteByte(c)
			x.at++
		}
	}
	if quote != 0 {
		return "", errors.New("a quote isn't closed")
	}
	if stop != "" {
		return "", errors.New("a ${ isn't closed")
	}
	return out.String(), nil
}

// variable expands what stands at a "$".
func (x *expander) variable() (string, error) {
	x.at++
	braced := x.at < len(x.in) && x.in[x.at] == '{'
	if braced {
		x.at++
	}
	start := x.at
	for x.at < len(x.in) && nameByte(x.in[x.at], x.at > start) {
		x.at++
	}
	name := x.in[start:x.at]
	value, set := x.values[name]
	if !set && platformArgs.MatchString(name) {
		return "", fmt.Errorf("the engine's own builder doesn't set %s; give it in args and declare it by ARG", name)
	}
	if !braced {
		if name == "" {
			return "$", nil
		}
		return value, nil
	}
	if name == "" || x.at >= len(x.in) {
		return "", errors.New("a ${ isn't closed or names nothing")
	}
	if x.in[x.at] == '}' {
		x.at++
		return value, nil
	}
	colon := x.in[x.at] == ':'
	if colon {
		x.at++
	}
	if x.at >= len(x.in) || strings.IndexByte("-+?", x.in[x.at]) < 0 {
		return "", fmt.Errorf("${%s…} has a form that can't be followed here; give the whole name by one ARG", name)
	}
	form := x.in[x.at]
	x.at++
	if x.depth++; x.depth > 20 {
		return "", errors.New("variables are nested too deeply")
	}
	other, err := x.until("}")
	x.depth--
	if err != nil {
		return "", err
	}
	x.at++
	has := set && (!colon || value != "")
	switch {
	case form == '+' && has:
		return other, nil
	case form == '+':
		return "", nil
	case has:
		return value, nil
	case form == '-':
		return other, nil
	default:
		return "", fmt.Errorf("%s has no value: %s", name, other)
	}
}

// nameByte reports whether a byte can be part of a variable's name.
func nameByte(c byte, digits bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digits && c >= '0' && c <= '9'
}
