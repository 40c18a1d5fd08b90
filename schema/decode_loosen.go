package schema

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// loosenKinds are the kinds of loosening and how each reads its value.
var loosenKinds = map[string]func(r *reader, name string, b *Loosening){
	LoosenCapAdd:             listOf(judgeCapability),
	LoosenWritableRoot:       exactly(cty.True),
	LoosenNewPrivileges:      exactly(cty.True),
	LoosenSeccomp:            exactly(cty.StringVal("unconfined")),
	LoosenInit:               exactly(cty.False),
	LoosenTmpExec:            listOf(judgeAny),
	LoosenSecretEnv:          listOf(judgeAny),
	LoosenDevice:             listOf(judgeDevice),
	LoosenGroupAdd:           listOf(judgeGroup),
	LoosenSysctl:             listOf(judgeSysctl),
	LoosenHoldsConfiguration: grantsOf,
	LoosenSourceWritable:     grantsOf,
}

// loosenings reads every loosen block, sorted by kind, then by values.
func (r *reader) loosenings() []Loosening {
	var list []Loosening
	for _, block := range r.blocks("loosen") {
		if len(block.Labels) == 0 {
			r.markBroken()
			continue // reported with the block's shape
		}
		if b, ok := r.loosening(block); ok {
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(a, b Loosening) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), slices.Compare(a.Values, b.Values),
			slices.CompareFunc(a.Grants, b.Grants, compareAddresses))
	})
	r.loosenedTwice(list)
	return list
}

func (r *reader) loosening(block *hclsyntax.Block) (Loosening, bool) {
	kind := block.Labels[0]
	read, ok := loosenKinds[kind]
	if !ok {
		r.fail(diagLoosenKind(kind, loosenMeant(kind), block.LabelRanges[0], block.DefRange()))
		return Loosening{}, false
	}
	in := r.inner(block, "loosen["+strconv.Quote(kind)+"]")
	b := Loosening{Kind: kind, Origin: originOf(block.DefRange())}
	read(in, "value", &b)
	reason, ok := in.reason()
	in.need("reason", ok)
	b.Reason = reason
	slices.Sort(b.Values)
	slices.SortFunc(b.Grants, compareAddresses)
	return b, true
}

func loosenMeant(kind string) string {
	kinds := make([]string, 0, len(loosenKinds))
	for k := range loosenKinds {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return Closest(kind, kinds)
}

// loosenedTwice reports what two blocks of one kind both loosen.
func (r *reader) loosenedTwice(list []Loosening) {
	seen := map[string]Origin{}
	for _, b := range list {
		for _, value := range slices.Concat(b.Values, addressNames(b.Grants)) {
			key := b.Kind + " " + value
			if first, ok := seen[key]; ok {
				r.fail(diagLoosenedTwice(b.Kind, value, b.Origin.hclRange(), first.hclRange()))
			}
			seen[key] = b.Origin
		}
	}
}

func addressNames(list []Address) []string {
	names := make([]string, 0, len(list))
	for _, a := range list {
		names = append(names, a.String())
	}
	return names
}

// exactly reads a value that can only be one thing, written so that the file says it.
func exactly(want cty.Value) func(*reader, string, *Loosening) {
	return func(r *reader, name string, b *Loosening) {
		v, ok := r.value(name)
		if !r.need(name, ok) {
			return
		}
		v, err := convert.Convert(v, want.Type())
		if err != nil || !v.RawEquals(want) {
			r.fail(diagLoosenValue(b.Kind, literal(want), r.place(name)))
			return
		}
		text, _ := convert.Convert(want, cty.String)
		b.Values = []string{text.AsString()}
	}
}

// literal is a string or bool as the files spell it.
func literal(v cty.Value) string {
	if v.Type() == cty.String {
		return strconv.Quote(v.AsString())
	}
	return strconv.FormatBool(v.True())
}

// listOf reads a list of strings, each of which passes judgement.
func listOf(judge func(string, place) *hcl.Diagnostic) func(*reader, string, *Loosening) {
	return func(r *reader, name string, b *Loosening) {
		items, ok := r.strs(name)
		if !r.need(name, ok) {
			return
		}
		if len(items) == 0 {
			r.fail(diagLoosenNothing(b.Kind, r.place(name)))
		}
		for _, it := range items {
			if diag := judge(it.value, it.at); diag != nil {
				r.fail(diag)
				continue
			}
			if slices.Contains(b.Values, it.value) {
				r.fail(diagListedTwice(name, it.value, it.at))
				continue
			}
			b.Values = append(b.Values, it.value)
		}
	}
}

func grantsOf(r *reader, name string, b *Loosening) {
	items, ok := r.refs(name, kindNamed("grant"))
	if !r.need(name, ok) {
		return
	}
	if len(items) == 0 {
		r.fail(diagLoosenNothing(b.Kind, r.place(name)))
	}
	for _, it := range items {
		b.Grants = append(b.Grants, it.value)
	}
}

func judgeAny(string, place) *hcl.Diagnostic { return nil }

func judgeCapability(name string, where place) *hcl.Diagnostic {
	bare := strings.TrimPrefix(strings.ToUpper(name), "CAP_")
	switch {
	case slices.Contains(capabilities, name):
		return nil
	case bare == "ALL":
		return diagCapabilityAll(where)
	case slices.Contains(capabilities, bare):
		return diagCapability(name, bare, where)
	}
	return diagCapability(name, Closest(bare, capabilities), where)
}

func judgeDevice(name string, where place) *hcl.Diagnostic {
	if !cleanInside(name) || path.Dir(name) == "/" || !lies(name, "/dev") {
		return diagDevice(name, where)
	}
	return nil
}

func judgeGroup(name string, where place) *hcl.Diagnostic {
	if !groupRE.MatchString(name) {
		return diagGroup(name, where)
	}
	return nil
}

var sysctlRE = regexp.MustCompile(`^((?:net|fs\.mqueue)\.[a-zA-Z0-9_.*-]+|[a-z._]+)=\S.*$`)

func judgeSysctl(setting string, where place) *hcl.Diagnostic {
	m := sysctlRE.FindStringSubmatch(setting)
	if m == nil {
		return diagSysctl(setting, where)
	}
	name := m[1]
	if !strings.HasPrefix(name, "net.") && !strings.HasPrefix(name, "fs.mqueue.") && !slices.Contains(kernelSysctls, name) {
		return diagSysctlHost(name, where)
	}
	return nil
}

// kernelSysctls are the settings under kernel. that a container has of its own.
var kernelSysctls = []string{
	"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem", "kernel.shmall", "kernel.shmmax",
	"kernel.shmmni", "kernel.shm_rmid_forced",
}

// loosenedTmpfs marks the tmpfs that may execute.
func (r *reader) loosenedTmpfs(s *Space) {
	for _, b := range s.Loosen {
		if b.Kind != LoosenTmpExec {
			continue
		}
		for _, value := range b.Values {
			i := slices.IndexFunc(s.Tmpfs, func(t Tmpfs) bool { return t.Path == value })
			switch {
			case i >= 0:
				s.Tmpfs[i].Exec = true
			case value == tmpPath:
				s.Tmpfs = append(s.Tmpfs, Tmpfs{Path: tmpPath, Exec: true, Origin: b.Origin})
			default:
				r.fail(diagTmpExecPath(value, b.Origin.hclRange()))
			}
		}
	}
	slices.SortFunc(s.Tmpfs, func(a, b Tmpfs) int { return cmp.Compare(a.Path, b.Path) })
}

// loosenedEnv reports names in secret_env that hide nothing.
func (r *reader) loosenedEnv(s *Space) {
	for _, b := range s.Loosen {
		if b.Kind != LoosenSecretEnv || (r.l.broken[s.Address] && len(s.Env) == 0) {
			continue
		}
		for _, value := range b.Values {
			i := slices.IndexFunc(s.Env, func(v EnvVar) bool { return v.Name == value })
			if i < 0 || !s.Env[i].Sensitive {
				r.fail(diagSecretEnvName(value, i >= 0, b.Origin.hclRange()))
			}
		}
	}
}

// loosenedGrants reports loosened grants that the space doesn't have.
func (r *reader) loosenedGrants(s *Space) {
	for _, b := range s.Loosen {
		for _, grant := range b.Grants {
			if !slices.Contains(s.Grants, grant) {
				r.fail(diagLoosenedGrant(grant, b.Origin.hclRange()))
			}
		}
	}
}

// capabilities are the kernel's, without their prefix.
var capabilities = []string{
	"AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "CHOWN",
	"DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE",
	"LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST",
	"NET_RAW", "PERFMON", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_ADMIN", "SYS_BOOT", "SYS_CHROOT",
	"SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE", "SYS_TIME",
	"SYS_TTY_CONFIG", "SYSLOG", "WAKE_ALARM",
}
